"""What the words of an outcome mean: as somebody says, never as we guess."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from trajscore.core.errors import ArgumentError
from trajscore.core.outcomes import CENSORED
from trajscore.core.values import number_of

# What an error proposes; only the user decides.
# fmt: off
_USUAL = {
    1: ("pass", "passed", "success", "succeeded", "successful", "yes", "y", "true", "t", "correct",
        "resolved", "solved", "ok", "good", "win", "won", "completed", "done", "c"),
    0: ("fail", "failed", "failure", "no", "n", "false", "f", "incorrect", "wrong", "unresolved",
        "unsolved", "bad", "loss", "lost", "error", "i"),
    CENSORED: ("timeout", "unknown", "none", "na", "n/a", "cancelled", "canceled", "skipped",
               "pending", "aborted", "running"),
}
# fmt: on
MOST_NAMED = 12


class Meanings(dict[str, Any]):
    """What words mean: in Python a dict, in a command ``pass=1,fail=0``."""

    def __str__(self) -> str:
        return ",".join(f"{word}={meaning}" for word, meaning in self.items())


def check_map(outcome_map: Mapping[Any, float] | str | None) -> dict[str, float]:
    """Return what words mean as outcomes, by the word in lower case."""
    if outcome_map is not None and not isinstance(outcome_map, (str, Mapping)):
        raise ArgumentError(
            f"{{argument}} must be a dict of words, got {outcome_map!r}", "outcome_map"
        )
    pairs = _pairs(outcome_map) if isinstance(outcome_map, str) else dict(outcome_map or {})
    meanings = {_word(word): value for word, value in pairs.items()}
    for word, value in meanings.items():
        number = isinstance(value, (int, float, np.number)) and (0 <= value <= 1 or value == -1)
        if not number:
            raise ArgumentError(
                f"{{argument}}: {word!r} means {value!r}; give 1 for success, 0 for failure, -1 "
                f"for not observed, or a grade between 0 and 1",
                "outcome_map",
            )
    return {word: float(value) for word, value in meanings.items()}


def _pairs(text: str) -> dict[str, Any]:
    pairs: dict[str, Any] = {}
    for pair in text.split(","):
        word, _, value = pair.rpartition("=")
        if not word:
            raise ArgumentError(
                f"{{argument}}: {pair!r} is not a pair such as pass=1", "outcome_map"
            )
        try:
            pairs[word] = float(value)
        except ValueError:
            pairs[word] = value
    return pairs


def as_mapped(value: Any, meanings: Mapping[str, float]) -> Any:
    """Return what an outcome means by a map of words; itself where the map does not have it."""
    return meanings.get(_word(value), value) if meanings else value


def _word(value: Any) -> str:
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        value = int(value)
    return str(value).strip().lower()


def map_outcomes(column: pd.Series, meanings: Mapping[str, float]) -> pd.Series:
    """Return a column of outcomes with its words as numbers; refuse words that are not mapped."""
    if column.dtype.kind in "biuf" and not meanings:
        return column
    try:
        codes, kinds = pd.factorize(column)  # missing values are -1
    except TypeError:
        problem = f"column {column.name!r} holds a list or an object"
        raise ValueError(f"{problem}; give one outcome a run") from None
    outcomes = [as_mapped(kind, meanings) for kind in kinds]
    words = {k: kind for k, kind in enumerate(outcomes) if isinstance(kind, str)}
    if words:
        counts = Counter({word: int((codes == k).sum()) for k, word in words.items()})
        there = {_word(kind) for kind in kinds}
        known = {word: value for word, value in meanings.items() if word in there}
        refuse_words(counts, len(column), known)
    values = pd.Series([*outcomes, None], dtype=object)
    return values.iloc[codes].set_axis(column.index)


def refuse_words(
    words: Counter[str], n_runs: int, known: Mapping[str, float], where: str = ""
) -> None:
    """Refuse outcomes that are words, and show the map that would do, with what is known of it."""
    shown = [word for word, _ in words.most_common(MOST_NAMED)]
    more = f" and {len(words) - len(shown)} other words" if len(words) > len(shown) else ""
    raise ArgumentError(
        f"{where}the outcome is a word in {words.total()} of {number_of(n_runs, 'run')}; say "
        f"what each word means with {{argument}}{more}",
        "outcome_map",
        Meanings({word: f"{value:g}" for word, value in known.items()} | propose(shown)),
    )


def propose(words: Iterable[str]) -> Meanings:
    """Return what words usually mean, with a question mark at those that are not usual."""
    usual = {word: value for value, words in _USUAL.items() for word in words}
    return Meanings((word, usual.get(word.strip().lower(), "?")) for word in words)
