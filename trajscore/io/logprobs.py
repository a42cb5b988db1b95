"""Token log-probabilities, in all forms in which logs hold them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import zip_longest
from typing import Any, NamedTuple

from trajscore.core.values import is_number
from trajscore.io._run import MalformedRunError
from trajscore.io._vocabulary import as_fields, as_list, first, parsed
from trajscore.io.files import Place

NOT_RECORDED = -9999.0  # written by servers where they have no value, as is any lower number

Top = tuple[tuple[str, float], ...]


# The lists of tokens, of their alternatives, and of their texts, which may stand beside the tokens.
_ANY = (
    ("content", "", ""),  # chat completions
    ("token_logprobs", "top_logprobs", "tokens"),  # legacy completions
    ("chosenCandidates", "topCandidates", ""),  # Gemini
    ("chosen_candidates", "top_candidates", ""),  # Gemini in Python, events of Google's ADK
)
# Where an answer, its message, its choice or a part of it has the list of tokens, or these lists.
_SHAPES: dict[tuple[str, ...], tuple[tuple[str, str, str], ...]] = {
    ("logprobs",): _ANY,  # also Responses, Ollama, and lists of numbers
    ("logprobsResult",): _ANY,
    ("logprobs_result",): _ANY,
    ("response_metadata", "logprobs"): _ANY,  # LangChain
    ("response_metadata", "logprobs_result"): _ANY,
    ("provider_details", "logprobs"): _ANY,  # Pydantic AI
    ("vendor_details", "logprobs"): _ANY,  # Pydantic AI before 1.0
    ("completion_probabilities",): (),  # llama.cpp
    ("details",): (("tokens", "top_tokens", ""),),  # text-generation-inference
    ("meta_info",): (("output_token_logprobs", "output_top_logprobs", ""),),  # SGLang
}
# What a token has, and an alternative; one of SGLang is [log-probability, id, text].
_TEXT = ("token", "text", "tok_str", "content")
_LOGPROB = ("logprob", "logProbability", "log_probability")
_ALTERNATIVES = ("top_logprobs", "topLogprobs", "top_probs", "probs")  # the last two of llama.cpp

_OUTER = {path[0] for path in _SHAPES}
_WITHIN = _OUTER | {"choices", "raw_data"}
_NAMED = re.compile(r"log[ _-]?prob(?!lem|e)|^completion_probabilities$", re.IGNORECASE)


class TokenScores(NamedTuple):
    """Tokens, their log-probabilities, and the likeliest alternatives; None where absent."""

    tokens: tuple[str, ...] | None = None
    logprobs: tuple[float, ...] | None = None
    top_logprobs: tuple[Top, ...] | None = None


def find_logprobs(answer: Any) -> Any:
    """Return the tokens with log-probabilities of an answer, or of a part of it; None if none."""
    is_other = not isinstance(answer, dict) or _OUTER.isdisjoint(answer)
    if is_other or not any(map(answer.get, _OUTER)):
        return None
    for (*outer, name), forms in _SHAPES.items():
        value = as_fields(answer.get(outer[0]) if outer else answer).get(name)
        if isinstance(value, dict):
            lists = (_joined(value, own) for own in forms if as_list(value.get(own[0])))
            value = next(lists, None)
        elif forms and forms is not _ANY:
            continue
        if value and (forms is _ANY or all(map(_is_token, as_list(value) or [None]))):
            return value
    return None


def _joined(value: Mapping[str, Any], names: tuple[str, str, str]) -> list[Any]:
    """Return the tokens of an object, each with its alternatives and its text."""
    tokens: list[Any] = value[names[0]]
    for name, other in zip(("top_logprobs", "token"), names[1:], strict=True):
        if listed := as_list(value.get(other)):
            pairs = zip_longest(tokens, listed[: len(tokens)])
            tokens = [{**_fields_of(token), name: own} for token, own in pairs]
    return tokens


def _is_token(value: Any) -> bool:
    """Tell a token with its log-probability from what else has the name of such a list."""
    if isinstance(value, list):
        return bool(value) and isinstance(value[0], (float, type(None)))
    return not as_fields(value).keys().isdisjoint((*_LOGPROB, "prob", "probs"))


def _fields_of(token: Any) -> Mapping[str, Any]:
    if isinstance(token, (list, tuple)):
        return dict(zip(("logprob", "id", "token"), token, strict=False))
    return token if isinstance(token, Mapping) else {"logprob": token}


def parse_logprobs(raw: Any, place: Place, index: int) -> TokenScores:
    """Read a message's log-probabilities; missing values, -9999 and all zeros are not recorded."""
    if not isinstance(raw, (list, tuple)):
        raise MalformedRunError(
            f"message {index}: its logprobs are {type(raw).__name__}, not a list"
        )
    where = place.message(index)
    entries = list(map(_fields_of, raw))
    texts = [_text_of(entry) for entry in entries]
    top = tuple(_alternatives(first(entry, _ALTERNATIVES), where) for entry in entries)
    logprobs = tuple(_logprob_of(*token, where) for token in zip(entries, texts, top, strict=True))
    if not any_recorded(logprobs):
        return TokenScores()
    tokens = tuple(text for text in texts if text is not None)
    whole = tokens if len(tokens) == len(texts) else None
    return TokenScores(whole, logprobs, top if any(top) else None)


def any_recorded(logprobs: Iterable[float]) -> bool:
    """Tell whether any log-probability was recorded; a list of zeros was not."""
    return any(value > NOT_RECORDED or value == -math.inf for value in logprobs if value != 0)


@lru_cache(1024)
def names_logprobs(name: str) -> bool:
    """Tell the name of log-probabilities, such as logprob, log_prob or logProbability."""
    return _NAMED.search(name) is not None


def recorded_in(value: Any) -> Iterator[float]:
    """Yield the numbers within a value that may be log-probabilities."""
    todo = [value]
    while todo:
        inner = parsed(todo.pop())
        if isinstance(inner, (dict, list)):
            todo += inner.values() if isinstance(inner, dict) else inner
        elif isinstance(inner, (int, float)) and inner < 0 and any_recorded((inner,)):
            yield float(inner)


def without_logprobs(answer: Any) -> Any:
    """Leave out the log-probabilities, the largest part of a message, which the step holds."""
    if isinstance(answer, list):
        return list(map(without_logprobs, answer))
    if not isinstance(answer, Mapping):
        return answer
    return {
        name: without_logprobs(value) if name in _WITHIN else value
        for name, value in answer.items()
        if not (names_logprobs(str(name)) and isinstance(value, (dict, list)))
    }


def _text_of(token: Mapping[str, Any]) -> str | None:
    text = token["token"] if "token" in token else first(token, _TEXT, blank=True)
    return None if text is None else str(text)


def _logprob_of(token: Mapping[str, Any], text: str | None, top: Top, where: str) -> float:
    value = token["logprob"] if "logprob" in token else first(token, _LOGPROB)
    share: Any = token.get("prob") if value is None else None
    if is_number(share):
        value = math.log(share) if share > 0 else -math.inf
    elif value is None and "probs" in token:
        value = dict(top).get(text or "")
    return _number(value, where)


def _number(value: Any, where: str) -> float:
    if value is None:
        return math.nan
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(
            f"{where}: the logprob is {value!r}, not a number; write null if it was not recorded"
        ) from None
    if number > 0:
        raise ValueError(
            f"{where}: the logprob is {number:g}, but the natural logarithm of a probability is at "
            f"most 0; convert the values, or write null if they were not recorded"
        )
    return math.nan if number <= NOT_RECORDED and number != -math.inf else number


def _alternatives(raw: Any, where: str) -> Top:
    raw = as_list(as_fields(raw).get("candidates")) or raw
    if isinstance(raw, Mapping):
        pairs = [(str(token), _number(value, where)) for token, value in raw.items()]
    else:
        entries = [_fields_of(entry) for entry in as_list(raw) if not isinstance(entry, str)]
        pairs = [(_text_of(own) or "", _logprob_of(own, None, (), where)) for own in entries]
    return tuple(pair for pair in pairs if not math.isnan(pair[1]))
