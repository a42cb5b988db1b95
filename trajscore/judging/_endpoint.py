"""One model behind an OpenAI-compatible endpoint, and what its errors mean."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from trajscore.core.errors import ArgumentError
from trajscore.core.optional import optional
from trajscore.judging._cache import Answer
from trajscore.judging._forms import Form

_KEY = "OPENAI_API_KEY"
_CHECK_URL = "check {argument:base_url}, which usually ends in /v1"
_REMEDIES = {
    400: "if the text is too long for the model, lower {argument:max_chars}",
    **dict.fromkeys((401, 403), f"set the environment variable {_KEY}"),
    404: f"check {{argument:model}}, and {_CHECK_URL}",
    429: "wait, or lower {argument:concurrency}",
}


def url_of(base_url: str | None) -> str:
    """Return the address of an endpoint, which must not hold a secret."""
    url = str(base_url or os.environ.get("OPENAI_BASE_URL") or "https://api.openai.com/v1")
    if "@" in urlsplit(url).netloc or urlsplit(url).query:
        raise ArgumentError(f"{{argument}} must not hold a secret; set {_KEY} instead", "base_url")
    return url.rstrip("/")


class Endpoint:
    """A model behind an address; the client asks again after 429, 5xx and broken connections."""

    def __init__(self, url: str, model: str, form: Form) -> None:
        self._openai = optional("openai", "StepJudge needs the package openai", "judge")
        self._key = os.environ.get(_KEY) or "no-key"  # which local servers do not look at
        self._client = self._openai.OpenAI(api_key=self._key, base_url=url, max_retries=4)
        self._url, self._model, self._form = url, model, form

    def ask(self, prompt: str, place: Callable[[], str]) -> Answer:
        """Ask once; `place` returns the run and the step, for an error."""
        message = {"role": "user", "content": prompt}
        try:
            reply = self._client.chat.completions.create(
                model=self._model, messages=[message], temperature=0, **self._form.options
            )
        except self._openai.APIStatusError as error:
            raise self._refusal(error, place()) from None  # its words may hold the key
        except self._openai.APIConnectionError as error:
            problem = f"{self._url} cannot be reached ({self._clean(error.__cause__ or error)})"
            raise ArgumentError(f"{problem}; start the server, or {_CHECK_URL}") from None
        if not getattr(reply, "choices", None):
            raise ArgumentError(f"{self._url} returned no chat completion; {_CHECK_URL}")
        choice, usage = reply.choices[0], reply.usage
        spent = (usage.prompt_tokens, usage.completion_tokens) if usage else (0, 0)
        return Answer(self._form.read(choice), choice.message.content or "", *spent)

    def _refusal(self, error: Any, place: str) -> ArgumentError:
        """Say what a status of HTTP means for who asks, never with the key."""
        status, words = error.status_code, self._clean(error.message.partition(" - ")[2])
        remedy = _REMEDIES.get(status, "see the log of the server")
        if "logprob" in words:
            remedy = "pass {argument:answer=number} to ask for a number"
        shown = "" if status in (401, 403) else f" ({words})"  # which may quote some of the key
        model = f"the model {self._model!r} at {self._url}"
        return ArgumentError(f"{place}: {model} answered with {status}{shown}; {remedy}")

    def _clean(self, error: object) -> str:
        """Return the words of an error on one line, cut, without the key."""
        words = " ".join(str(error).replace(self._key, "***").split())
        return words if len(words) <= 200 else words[:200] + "..."
