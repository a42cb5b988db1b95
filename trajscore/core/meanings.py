"""What outcomes and their words mean: as somebody says, never as we guess."""

import re
from collections import Counter
from collections.abc import Container, Iterable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

from trajscore.core.errors import ArgumentError
from trajscore.core.outcomes import CENSORED, FAILURE, SUCCESS
from trajscore.core.type_aliases import AnyArray, ByName
from trajscore.core.values import is_number, number_of, parse_number, split_pairs

# fmt: off
_USUAL = {  # what an error proposes; only the user decides
    SUCCESS: ("pass", "passed", "success", "succeeded", "yes", "y", "true", "correct", "resolved",
              "solved", "ok", "win", "won", "completed", "done"),
    FAILURE: ("fail", "failed", "failure", "no", "n", "false", "incorrect", "wrong", "unresolved",
              "unsolved", "loss", "lost", "error"),
    CENSORED: ("timeout", "unknown", "none", "na", "n/a", "cancelled", "canceled", "skipped",
               "pending", "aborted", "running"),
}
_FAILURES = {  # words in names of which a high value is bad
    "bad", "bias", "cost", "crash", "crashed", "entropy", "error", "errors", "exception",
    "fail", "failed", "fails", "failure", "failures", "flagged", "hallucinated", "hallucination",
    "hallucinations", "harm", "harmful", "incorrect", "leak", "leakage", "loss", "lost", "penalty",
    "perplexity", "pii", "refusal", "refused", "risk", "risks", "timeout", "toxic", "toxicity",
    "uncertainty", "unresolved", "unsafe", "unsolved", "violation", "violations", "wrong",
}
_TURNED_BY = {"confidence", "free", "no", "non", "not", "without", "zero"}  # words that turn these
_CLEAR = {"true": 1, "yes": 1, "false": 0, "no": 0}  # words that need no map
# fmt: on
_TURNED = "not "
_MOST_NAMED = 12


@lru_cache(1024)
def words_of(name: str) -> frozenset[str]:
    """Return the words of a name in lower case.

    >>> sorted(words_of("judgeScore"))
    ['judge', 'score']
    """
    return frozenset(re.split(r"[^a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()))


def sounds_bad(name: str) -> bool:
    """Tell a name of which high values sound like failure.

    >>> [name for name in ("exit_code", "error_free", "failed", "safety") if sounds_bad(name)]
    ['exit_code', 'failed']
    """
    words = words_of(name)
    is_code = name.lower().endswith(("exit_code", "exit_status", "return_code"))  # 0 is success
    return is_code or (bool(words & _FAILURES) and not words & _TURNED_BY)


def outcome_hint(name: str) -> str:
    """Return how to name an outcome: "not hallucination" where high values sound like failure."""
    if sounds_bad(name):
        return f"{_TURNED}{name}"
    return name


def bare_name(name: str, columns: Container[str] = ()) -> str:
    """Return the column that an outcome names: of "not failed" it is "failed"."""
    if name in columns:
        return name
    return name.removeprefix(_TURNED).strip() or name


def check_polarity(name: str | None, meanings: Mapping[str, float]) -> None:
    """Refuse an outcome where it is not clear whether high values are successes."""
    if not name:
        return
    mapped = {SUCCESS, FAILURE} & set(meanings.values())
    bare = bare_name(name)
    if bare != name and mapped:
        raise ArgumentError(
            f"{{argument}}: {name!r} turns the outcomes, and a map says what they mean; leave the "
            f"map out, or pass {{argument:outcome={bare}}}",
            "outcome",
        )
    if sounds_bad(name) and bare == name and len(mapped) < 2:
        raise ArgumentError(
            f"{{argument}}: a high {name!r} sounds like failure. If it is, pass "
            f"{{argument:outcome={outcome_hint(name)}}}; if it is success, say so with "
            f"{{argument:outcome_map=1=1,0=0}}",
            "outcome",
        )


def turn(outcomes: AnyArray) -> AnyArray:
    """Return outcomes of which high values were failures; those not observed stay so.

    >>> turn(np.array([1, 0, -1]))
    array([ 0,  1, -1])
    """
    return np.where(outcomes == CENSORED, outcomes, 1 - outcomes)


def turned_note(name: str) -> str:
    """Say how an outcome was taken of which high values are failures."""
    return f"outcome: not {name!r}, so 1 counts as failure"


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
    pairs: Iterable[tuple[Any, Any]] = (
        split_pairs(outcome_map) if isinstance(outcome_map, str) else (outcome_map or {}).items()
    )
    meanings: dict[str, float] = {}
    for word, value in pairs:
        number: Any = parse_number(value) if isinstance(value, str) else value
        is_outcome = is_number(number) and (0 <= number <= 1 or number == CENSORED)
        if (word == "" and isinstance(outcome_map, str)) or not is_outcome:
            problem = f"{_word(word)!r} means {value!r}" if word else f"{value!r} is not a pair"
            raise ArgumentError(
                f"{{argument}}: {problem}; give words and what they mean, such as "
                f"pass=1,fail=0: 1 for success, 0 for failure, -1 for not observed, or a grade",
                "outcome_map",
            )
        meanings[_word(word)] = float(number)
    return meanings


def as_mapped(value: Any, meanings: Mapping[str, float]) -> Any:
    """Return what an outcome means by a map of words, else as text; itself where it is unclear."""
    if meanings and (word := _word(value)) in meanings:
        return meanings[word]
    if not isinstance(value, str):
        return value
    number = _CLEAR.get(_word(value), parse_number(value))
    if number is None:
        return value
    return number


def note_on_words(values: Iterable[Any], meanings: Mapping[str, float]) -> str:
    """Say which words of outcomes were read that nobody mapped; "" where there are none."""
    words = {_word(value) for value in values if isinstance(value, str)} & _CLEAR.keys()
    read = ", ".join(f"{word!r} as {_CLEAR[word]}" for word in sorted(words - meanings.keys()))
    return f"outcome: read {read}" if read else ""


def _word(value: Any) -> str:
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        value = int(value)
    return str(value).strip().lower()


def map_outcomes(column: pd.Series, meanings: Mapping[str, float], is_turned: bool) -> pd.Series:
    """Return a column of outcomes with its words as numbers; refuse words that are not mapped."""
    if column.dtype.kind in "biuf" and not meanings:
        return column
    codes, kinds = pd.factorize(column)  # missing values are -1
    outcomes = [as_mapped(kind, meanings) for kind in kinds]
    words = {k: kind for k, kind in enumerate(outcomes) if isinstance(kind, str)}
    if words:
        counts = Counter({word: int((codes == k).sum()) for k, word in words.items()})
        present = {_word(kind) for kind in kinds}
        mapped = {word: value for word, value in meanings.items() if word in present}
        refuse_words(counts, len(column), mapped, bare=column.name if is_turned else "")
    values = pd.Series([*outcomes, None], dtype=object)
    return values.iloc[codes].set_axis(column.index)


def refuse_words(
    words: Counter[str], n_runs: int, mapped: Mapping[str, float], where: str = "", bare: str = ""
) -> None:
    """Refuse outcomes that are words; show a map that would do, with the words `mapped` so far.

    The map of an outcome that was to be turned goes with its `bare` name.
    """
    shown = [word for word, _ in words.most_common(_MOST_NAMED)]
    arguments = "{argument}"
    if bare:
        arguments = f"{{argument:outcome={bare}}} {arguments}"
    if len(words) > _MOST_NAMED:
        arguments += f" and {number_of(len(words) - _MOST_NAMED, 'other word')}"
    raise ArgumentError(
        f"{where}the outcome is a word in {words.total()} of {number_of(n_runs, 'run')}; say "
        f"what each word means (1 success, 0 failure, -1 not observed) with {arguments}",
        "outcome_map",
        Meanings({word: f"{value:g}" for word, value in mapped.items()} | propose(shown, bare)),
    )


def propose(words: Iterable[str], name: str = "") -> Meanings:
    """Return what words usually mean, with a question mark where that is not clear.

    >>> propose(["yes", "pass", "meh"]), propose(["yes"], "has_error")
    ({'yes': 1, 'pass': 1, 'meh': '?'}, {'yes': '?'})
    """
    usual: ByName = {}
    if not sounds_bad(name):
        usual = {word: value for value, words in _USUAL.items() for word in words}
    return Meanings((word, usual.get(word.strip().lower(), "?")) for word in words)
