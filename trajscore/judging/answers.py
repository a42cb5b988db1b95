"""Answers of a model behind an OpenAI-compatible endpoint: forms, a cache for them, errors.

What cannot be read in its form is missing.
"""

import json
import math
import os
import re
import sqlite3
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from trajscore.core.errors import ArgumentError, optional
from trajscore.core.values import check_file
from trajscore.io.logprobs import parse_logprobs

_KEY = "OPENAI_API_KEY"
_CHECK_URL = "check {argument:base_url}, which usually ends in /v1"
_REMEDIES = {
    **dict.fromkeys(
        range(300, 400),
        "redirects are not followed; if you trust that one, change {argument:base_url}",
    ),
    400: "if the text is too long for the model, lower {argument:max_chars}",
    **dict.fromkeys((401, 403), f"set the environment variable {_KEY}"),
    404: f"check {{argument:model}}, and {_CHECK_URL}",
    429: "wait, or lower {argument:concurrency}",
}
_WAITS = (0.5, 1.0, 2.0, 4.0)  # seconds before a request is made again
_LONGEST_WAIT = 60.0
_MOST_BYTES = 2**24  # of a reply
_MOST_CHARS = 200  # of a text that is kept or shown
_MOST_TOKENS = 2**53
_COLUMNS = "(key TEXT PRIMARY KEY, probability REAL, text TEXT, asked INTEGER, answered INTEGER)"

_ASK_NUMBER = "pass {argument:answer=number} to ask for a number"


@dataclass(frozen=True)
class Form:
    """What an answer is to be, what the endpoint is asked for, and how the answer is read."""

    words: str
    options: dict[str, Any]
    read: Callable[[str, Any], float | None]  # of its text, and of its log-probabilities


def _yes_no(text: str, logprobs: Any) -> float | None:
    """Return the share of yes in the probabilities of yes and no as the first token."""
    match logprobs:
        case {"content": [{"top_logprobs": [_, *_] as candidates}, *_]}:
            pass
        case _ if text:
            raise ArgumentError(
                f"returns no log-probabilities, from which yes and no are read; {_ASK_NUMBER}"
            )
        case _:
            return None
    place: Any = "an answer"
    try:
        scores = parse_logprobs(candidates, place, 0)
    except ValueError:
        shown = f"{candidates!r:.100}"
        raise ArgumentError(
            f"returns log-probabilities that are not numbers of at most 0 ({shown}); {_ASK_NUMBER}"
        ) from None
    if scores.tokens is None:
        return None
    values = [candidate.get("logprob") for candidate in candidates]
    return yes_share(zip(scores.tokens, values, strict=True))


def yes_share(candidates: Iterable[tuple[str, float | None]]) -> float | None:
    """Return the probability of yes among yes and no of a token's candidates; None of neither."""
    mass: defaultdict[str, float] = defaultdict(float)
    for token, logprob in candidates:
        value = math.nan if logprob is None else float(logprob)
        mass[token.strip(" \n\t▁Ġ").casefold()] += math.exp(value)
    total = mass["yes"] + mass["no"]
    if total > 0:
        return mass["yes"] / total
    return None


_NUMBER = re.compile(r"\s*(\d{1,3}(?:\.\d+)?)\s*(%?)\.?\s*(?:\n|$)")


def percent_share(text: str) -> float | None:
    """Return a number from 0 to 100, alone on the first line, as a share; None of other texts."""
    match = _NUMBER.match(text)
    if match is None:
        return None
    number = float(match[1])
    is_unclear = "." in match[1] and number <= 1 and not match[2]  # 0.7 may be 70% or 0.7%
    if is_unclear or number > 100:
        return None
    return number / 100


FORMS = {
    "yes_no": Form(
        "one word, yes or no",
        {"max_tokens": 1, "logprobs": True, "top_logprobs": 20},
        _yes_no,
    ),
    "number": Form(
        "one number, from 0 (certainly not) to 100 (certainly)",
        {"max_tokens": 8},
        lambda text, _: percent_share(text),
    ),
}


# -------------------------------------------------------------------- the endpoint


class Answer(NamedTuple):
    """An answer: its probability and its text, and the tokens that it took; None where missing."""

    probability: float | None
    text: str
    prompt_tokens: int | None
    answer_tokens: int | None


def url_of(base_url: str | None) -> str:
    """Return the address of an endpoint, which must not hold a secret."""
    url = str(base_url or os.environ.get("OPENAI_BASE_URL") or "https://api.openai.com/v1")
    if "@" in urlsplit(url).netloc or urlsplit(url).query:
        raise ArgumentError(f"{{argument}} must not hold a secret; set {_KEY} instead", "base_url")
    return url.rstrip("/")


class Endpoint:
    """A model behind an address; nothing that it answers is trusted, and no redirect followed."""

    def __init__(self, url: str, model: str, form: Form) -> None:
        self._openai = optional("openai", "StepJudge needs the package openai", "judge")
        self._key = os.environ.get(_KEY) or "no-key"  # which local servers do not look at
        http = self._openai.DefaultHttpxClient(follow_redirects=False)
        self._client = self._openai.OpenAI(
            api_key=self._key, base_url=url, max_retries=0, http_client=http
        )
        self._url = url
        self._model = model
        self._form = form

    def close(self) -> None:
        """Let go of the connections."""
        self._client.close()

    def ask(self, prompt: str, place: Callable[[], str]) -> Answer:
        """Ask for an answer; `place` returns the run and the step, for an error."""
        try:
            body = self._reply(prompt)
        except Exception as error:  # of openai, or of what it is built on
            problem = self._problem(error)
        else:
            try:
                return self._answer(body)
            except ArgumentError as error:
                problem = error.text
        raise ArgumentError(  # errors may hold the key
            f"{place()}: the model {self._model!r} at {self._url} {problem}"
        ) from None

    def _reply(self, prompt: str) -> bytes:
        """Return a reply; ask again only where none was begun, since a reply is paid for."""
        for wait in _WAITS:
            try:
                return self._send(prompt)
            except self._openai.APIError as error:
                if type(error.__cause__).__name__ == "ReadTimeout":  # it may be under way
                    raise
                status = getattr(error, "status_code", 503)
                if status not in (408, 409, 429) and status < 500:
                    raise
                time.sleep(_wait_of(error, wait))
        return self._send(prompt)

    def _send(self, prompt: str) -> bytes:
        message = {"role": "user", "content": prompt}
        body = bytearray()
        with self._client.chat.completions.with_streaming_response.create(
            model=self._model, messages=[message], temperature=0, **self._form.options
        ) as reply:
            for part in reply.iter_bytes():
                body += part
                if len(body) > _MOST_BYTES:
                    raise ValueError(f"it has more than {_MOST_BYTES:,} bytes")
        return bytes(body)

    def _answer(self, body: bytes) -> Answer:
        """Read a chat completion, and nothing else."""
        try:
            reply = json.loads(body)
        except (ValueError, RecursionError):
            reply = None
        match reply:
            case {"choices": [{"message": dict() as message} as choice, *_]}:
                text = message.get("content") or ""
                if isinstance(text, str):
                    probability = self._form.read(text, choice.get("logprobs"))
                    excerpt = text[:_MOST_CHARS].encode(errors="replace").decode()
                    return Answer(probability, excerpt, *_tokens(reply.get("usage")))
        shown = self._clean(body.decode(errors="replace")) or "nothing"
        raise ArgumentError(f"answered with {shown}, not with a chat completion; {_CHECK_URL}")

    def _problem(self, error: Any) -> str:
        """Say what an error means for who asks, never with the key."""
        words = self._clean(error.__cause__ or error)
        if isinstance(error, self._openai.APIStatusError):
            status = error.status_code
            reply = error.response
            words = self._clean(reply.headers.get("location") or reply.text)
            remedy = _REMEDIES.get(status, "see the log of the server")
            if "logprob" in words:
                remedy = _ASK_NUMBER
            shown = "" if status in (401, 403) else f" ({words})"  # which may quote some of the key
            return f"answered with {status}{shown}; {remedy}"
        if isinstance(error, self._openai.APITimeoutError):
            return f"did not answer in time ({words}); lower {{argument:concurrency}}"
        if isinstance(error, self._openai.APIConnectionError):
            return f"cannot be reached ({words}); start the server, or {_CHECK_URL}"
        return f"broke off its answer ({words}); see the log of the server"

    def _clean(self, error: object) -> str:
        """Return the words of an error on one line, cut, without the key."""
        words = " ".join(str(error).replace(self._key, "***").split())
        words = "".join(filter(str.isprintable, words))
        if len(words) > _MOST_CHARS:
            words = words[:_MOST_CHARS] + "..."
        return words


def _wait_of(error: Any, wait: float) -> float:
    """Return the seconds that an endpoint asks to wait, which are not many, else those of ours."""
    headers = getattr(getattr(error, "response", None), "headers", {})
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        with suppress(ValueError):
            seconds = float(headers.get(name, "")) * unit
            if 0 <= seconds <= _LONGEST_WAIT:
                return seconds
    return wait


def _tokens(usage: Any) -> Iterator[int | None]:
    """Yield the tokens asked and answered; None where they are not counted."""
    for name in ("prompt_tokens", "completion_tokens"):
        count = usage.get(name) if isinstance(usage, dict) else None
        yield count if isinstance(count, int) and 0 <= count < _MOST_TOKENS else None


class Cache:
    """Answers by their keys, in a file, or in memory for a path of None."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._lock = Lock()
        with self._usable():
            if path is not None:
                check_file(path)
            self._db = sqlite3.connect(
                path or ":memory:", timeout=60, isolation_level=None, check_same_thread=False
            )
        self._run(f"CREATE TABLE IF NOT EXISTS judge_answers {_COLUMNS}")

    @contextmanager
    def _usable(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, ValueError) as error:
            raise ValueError(
                f"cache {self._path} cannot be used ({error}); name another file"
            ) from None

    def __contains__(self, key: str) -> bool:
        return self._run("SELECT 1 FROM judge_answers WHERE key = ?", key) is not None

    def __getitem__(self, key: str) -> Answer:
        return Answer(*self._run("SELECT * FROM judge_answers WHERE key = ?", key)[1:])

    def __setitem__(self, key: str, answer: Answer) -> None:
        self._run("INSERT OR REPLACE INTO judge_answers VALUES (?, ?, ?, ?, ?)", key, *answer)

    def _run(self, statement: str, *values: object) -> Any:
        with self._lock, self._usable():
            return self._db.execute(statement, values).fetchone()

    def close(self) -> None:
        """Let go of the file."""
        self._db.close()
