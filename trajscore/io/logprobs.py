"""Token log-probabilities, in the forms in which logs hold them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from trajscore.io._run import MalformedRunError
from trajscore.io.files import Place

# Servers write this number, or one below it, where they have no value.
NOT_RECORDED = -9999.0

Top = tuple[tuple[str, float], ...]


class TokenScores(NamedTuple):
    """Tokens, their log-probabilities, and the likeliest alternatives; None where absent."""

    tokens: tuple[str, ...] | None = None
    logprobs: tuple[float, ...] | None = None
    top_logprobs: tuple[Top, ...] | None = None


def parse_logprobs(raw: Any, place: Place, index: int) -> TokenScores:
    """Read the log-probabilities of a message; one above 0 is an error.

    Accepts ``{"content": [{"token", "logprob", "top_logprobs"}]}``, such a list itself, a list of
    numbers, and the older ``{"tokens", "token_logprobs", "top_logprobs"}``. A value of -9999 or
    below, a missing value and a list of nothing but zeros count as not recorded; -inf is kept.
    """
    entries = _entries(raw, index)
    if not entries:
        return TokenScores()
    where = place.message(index)
    logprobs = tuple(_number(one.get("logprob"), where) for one in entries)
    tokens = tuple(str(one["token"]) for one in entries if one.get("token") is not None)
    top = tuple(_alternatives(one.get("top_logprobs"), where) for one in entries)
    if not any_recorded(logprobs):
        return TokenScores()
    whole = len(tokens) == len(entries)
    return TokenScores(tokens if whole else None, logprobs, top if any(top) else None)


def any_recorded(logprobs: Iterable[float]) -> bool:
    """Tell whether log-probabilities say anything: there are some, and not only zeros."""
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
            f"message {index}: its logprobs are no list but {type(raw).__name__}"
        )
    return [one if isinstance(one, Mapping) else {"logprob": one} for one in raw]


def _number(value: Any, where: str) -> float:
    if value is None:
        return math.nan
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ValueError(
            f"{where}: the logprob {value!r} is no number; write null where it was not recorded"
        ) from None
    if number > 0:
        raise ValueError(
            f"{where}: the logprob {number:g} is above 0; logprobs are natural logarithms of "
            f"probabilities, so convert the values, or write null where they were not recorded"
        )
    return math.nan if number <= NOT_RECORDED and number != -math.inf else number


def _alternatives(raw: Any, where: str) -> Top:
    if not raw:
        return ()
    if isinstance(raw, Mapping):
        pairs = [(str(token), _number(value, where)) for token, value in raw.items()]
    else:
        pairs = [
            (str(one.get("token", "")), _number(one.get("logprob"), where))
            for one in raw
            if isinstance(one, Mapping)
        ]
    return tuple(pair for pair in pairs if not math.isnan(pair[1]))
