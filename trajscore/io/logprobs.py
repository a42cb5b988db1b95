"""Token log-probabilities, in all forms in which logs hold them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from trajscore.io._run import MalformedRunError
from trajscore.io.files import Place

NOT_RECORDED = -9999.0  # written by servers where they have no value, as is any lower number

Top = tuple[tuple[str, float], ...]


class TokenScores(NamedTuple):
    """Tokens, their log-probabilities, and the likeliest alternatives; None where absent."""

    tokens: tuple[str, ...] | None = None
    logprobs: tuple[float, ...] | None = None
    top_logprobs: tuple[Top, ...] | None = None


def parse_logprobs(raw: Any, place: Place, index: int) -> TokenScores:
    """Read a message's log-probabilities; missing values, -9999 and all zeros are not recorded."""
    entries = _entries(raw, index)
    if not entries:
        return TokenScores()
    where = place.message(index)
    logprobs = tuple(_number(entry.get("logprob"), where) for entry in entries)
    tokens = tuple(str(entry["token"]) for entry in entries if entry.get("token") is not None)
    top = tuple(_alternatives(entry.get("top_logprobs"), where) for entry in entries)
    if not any_recorded(logprobs):
        return TokenScores()
    whole = len(tokens) == len(entries)
    return TokenScores(tokens if whole else None, logprobs, top if any(top) else None)


def any_recorded(logprobs: Iterable[float]) -> bool:
    """Tell whether any log-probability was recorded; a list of zeros was not."""
    return any(value > NOT_RECORDED or value == -math.inf for value in logprobs if value != 0)


def _entries(raw: Any, index: int) -> list[Mapping[str, Any]]:
    if isinstance(raw, Mapping) and "token_logprobs" in raw:
        values, tokens = raw["token_logprobs"] or [], raw.get("tokens") or []
        top = raw.get("top_logprobs") or []
        raw = [
            {
                "logprob": value,
                "token": tokens[k] if k < len(tokens) else None,
                "top_logprobs": top[k] if k < len(top) else None,
            }
            for k, value in enumerate(values)
        ]
    elif isinstance(raw, Mapping):
        raw = raw.get("content")
    if raw is None:
        return []
    if not isinstance(raw, Sequence) or isinstance(raw, str):
        raise MalformedRunError(
            f"message {index}: its logprobs are {type(raw).__name__}, not a list"
        )
    return [entry if isinstance(entry, Mapping) else {"logprob": entry} for entry in raw]


def _number(value: Any, where: str) -> float:
    if value is None:
        return math.nan
    try:
        number = float(value)
    except (TypeError, ValueError):
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
    if not raw:
        return ()
    if isinstance(raw, Mapping):
        pairs = [(str(token), _number(value, where)) for token, value in raw.items()]
    else:
        pairs = [
            (str(entry.get("token", "")), _number(entry.get("logprob"), where))
            for entry in raw
            if isinstance(entry, Mapping)
        ]
    return tuple(pair for pair in pairs if not math.isnan(pair[1]))
