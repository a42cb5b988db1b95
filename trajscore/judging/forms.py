"""The forms in which a judge may answer, and how each is read; what cannot be read is missing."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from trajscore.core.errors import ArgumentError
from trajscore.io.logprobs import parse_logprobs

ASK_NUMBER = "pass {argument:answer=number} to ask for a number"


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
                f"returns no log-probabilities, from which yes and no are read; {ASK_NUMBER}"
            )
        case _:
            return None
    place: Any = "an answer"
    try:
        scores = parse_logprobs(candidates, place, 0)
    except ValueError:
        shown = f"{candidates!r:.100}"
        raise ArgumentError(
            f"returns log-probabilities that are not numbers of at most 0 ({shown}); {ASK_NUMBER}"
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
