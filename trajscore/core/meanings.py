"""What outcomes and their words mean: as somebody says, never as we guess."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Container, Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from trajscore.core.errors import ArgumentError
from trajscore.core.outcomes import CENSORED, FAILURE, SUCCESS
from trajscore.core.values import is_number, number_of, parse_number, split_pairs

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
# Words and their beginnings of which a high value is bad, and words that turn them.
_BAD = re.compile(
    r"(?!\w*(?:free|less(?:ness)?)$)(?:abort|abus|anomal|attack|bad$|bias|bug|block|cancel|complain|contradict|"
    r"cost|crash|danger|decept|deceiv|defect|denied|entropy|err(?:or|on|s?$)|escalat|exceed|fabricat|fail|flag|fraud|"
    r"hallucinat|harm(?!on)|hate|illegal|inaccura|incoheren|incorrect|inject|insult|invalid|"
    r"irrelevan|jail(?:b|$)|leak|loss|malicious|misinform|mislead|mistake|nsfw|offens|penalt|"
    r"perplex|pii$|profan|refus|regret|reject|risk|spam|stereotyp|stuck|sycophan|timeout|toxi[cn]|truncat|uncertain|unfaithful|"
    r"ungrounded|unresolved|unsafe|unsolved|unsuccess|violat|violen|vulnerab|wrong)"
)
_NEGATIONS = {
    "avoid", "avoidance", "avoided", "avoids", "free", "less", "never", "no", "non", "not",
    "prevented", "prevention", "resistance", "robustness", "without", "zero",
}
# Words in the names of outcomes; an error asks about fields that have one.
_OUTCOMES = {
    "correct", "outcome", "passed", "resolved", "return", "reward", "rewards",
    "solved", "succeeded", "success",
}
_TURNED = "not "
COUNTED = {  # names of outcomes that may be counts of tests, and what is counted beside them
    "passed": ("failed",), "succeeded": ("failed",), "success": ("failed", "failure"),
    "correct": ("incorrect", "wrong"), "solved": ("unsolved",), "resolved": ("unresolved",),
}
_ANSWERS = ("yes", "y", "true", "t", "no", "n", "false", "f")  # to the question that a name asks
_CLEAR = {"true": 1, "yes": 1, "false": 0, "no": 0}  # words that need no map
# fmt: on
MOST_NAMED = 12


def words_of(name: str) -> set[str]:
    """Return the words of a name in lower case.

    >>> sorted(words_of("judgeScore"))
    ['judge', 'score']
    """
    return set(re.split(r"[^a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()))


def sounds_bad(name: str) -> bool:
    """Tell a name of which high values sound like failure.

    >>> [name for name in ("exit_code", "error_free", "failed", "safety") if sounds_bad(name)]
    ['exit_code', 'failed']
    """
    words = words_of(name)
    if {"entropy", "confidence"} <= words:  # as StepConfidence names what is high without entropy
        return False
    if re.search(r"(?:exit|return|ret)_?(?:code|status)$", name.lower()):  # 0 is success
        return True
    return any(map(_BAD.match, words)) and not words & _NEGATIONS


def outcome_hint(name: str) -> str:
    """Return how to name an outcome: "not hallucination" where high values sound like failure."""
    return f"{_TURNED}{name}" if sounds_bad(name) else name


def outcome_candidates(fields: Mapping[str, Iterable[Any]]) -> list[str]:
    """Return how to name the fields that may be the outcome, by their words or names.

    >>> outcome_candidates({"failed": [0, 1], "price": [0, 1]})
    ['{argument:outcome=not failed}']
    >>> outcome_candidates({"status": ["pass", "fail"]})
    ['{argument:outcome=status} {argument:outcome_map=pass=1,fail=0}']
    """
    return list(filter(None, (_candidate(name, list(of)) for name, of in fields.items())))


def _candidate(name: str, values: list[Any]) -> str:
    if any(isinstance(value, str) for value in values):
        meanings = propose(map(str, values), name)
        is_named = {SUCCESS, FAILURE} <= set(meanings.values()) and len(meanings) <= MOST_NAMED
        return f"{{argument:outcome={name}}} {{argument:outcome_map={meanings}}}" * is_named
    is_flag = sounds_bad(name) and set(values) == {0, 1}
    is_grade = bool(words_of(name) & _OUTCOMES) and all(0 <= value <= 1 for value in values)
    return f"{{argument:outcome={outcome_hint(name)}}}" * (is_flag or is_grade)


def bare_name(name: str, known: Container[str] = ()) -> str:
    """Return the column that an outcome names: of "not failed" it is "failed"."""
    return name if name in known else name.removeprefix(_TURNED).strip() or name


def check_polarity(name: str | None, meanings: Mapping[str, float]) -> None:
    """Refuse an outcome where it is not clear whether high values are successes."""
    mapped, bare = {SUCCESS, FAILURE} & set(meanings.values()), bare_name(name or "")
    if bare != (name or "") and mapped:
        raise ArgumentError(
            f"{{argument}}: {name!r} turns the outcomes, and a map says what they mean; leave the "
            f"map out, or pass {{argument:outcome={bare}}}",
            "outcome",
        )
    if name and sounds_bad(name) and bare == name and len(mapped) < 2:
        raise ArgumentError(
            f"{{argument}}: a high {name!r} sounds like failure. If it is, pass "
            f"{{argument:outcome={outcome_hint(name)}}}; if it is success, say so with "
            f"{{argument:outcome_map=1=1,0=0}}",
            "outcome",
        )


def turn(outcomes: NDArray[Any]) -> NDArray[Any]:
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
    for word, value in split_pairs(text):
        if not word:
            raise ArgumentError(
                f"{{argument}}: {value!r} is not a pair such as pass=1", "outcome_map"
            )
        number = parse_number(value)
        pairs[word] = value if number is None else number
    return pairs


def as_mapped(value: Any, meanings: Mapping[str, float]) -> Any:
    """Return what an outcome means by a map of words, else as text; itself where it is unclear."""
    if meanings and (word := _word(value)) in meanings:
        return meanings[word]
    if not isinstance(value, str):
        return value
    number = _CLEAR.get(_word(value), parse_number(value))
    return value if number is None else number


def note_on_words(values: Iterable[Any], meanings: Mapping[str, float]) -> str:
    """Say which words of outcomes were read that nobody mapped; "" where there are none."""
    words = {_word(value) for value in values if isinstance(value, str)} & _CLEAR.keys()
    read = ", ".join(f"{word!r} as {_CLEAR[word]}" for word in sorted(words - meanings.keys()))
    return f"outcome: read {read}" if read else ""


def _word(value: Any) -> str:
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        value = int(value)
    return str(value).strip().lower()


def listed_outcomes(name: Any) -> ValueError:
    """Return the error for a column of outcomes that holds lists."""
    return ValueError(
        f"column {name!r} holds a list or an object; give one outcome a run, in pandas "
        f"df.explode([{name!r}, ...]) with the other lists of samples"
    )


def map_outcomes(
    column: pd.Series, meanings: Mapping[str, float], is_turned: bool = False
) -> pd.Series:
    """Return a column of outcomes with its words as numbers; refuse words that are not mapped."""
    if column.dtype.kind in "biuf" and not meanings:
        return column
    try:
        codes, kinds = pd.factorize(column)  # missing values are -1
    except TypeError:
        raise listed_outcomes(column.name) from None
    outcomes = [as_mapped(kind, meanings) for kind in kinds]
    words = {k: kind for k, kind in enumerate(outcomes) if isinstance(kind, str)}
    if words:
        counts = Counter({word: int((codes == k).sum()) for k, word in words.items()})
        there = {_word(kind) for kind in kinds}
        known = {word: value for word, value in meanings.items() if word in there}
        refuse_words(counts, len(column), known, bare=column.name if is_turned else "")
    values = pd.Series([*outcomes, None], dtype=object)
    return values.iloc[codes].set_axis(column.index)


def refuse_words(
    words: Counter[str], n_runs: int, known: Mapping[str, float], where: str = "", bare: str = ""
) -> None:
    """Refuse outcomes that are words, and show the map that would do, with what is known of it.

    The map of an outcome that was to be turned goes with its `bare` name.
    """
    shown = [word for word, _ in words.most_common(MOST_NAMED)]
    more = f" and {len(words) - len(shown)} other words" if len(words) > len(shown) else ""
    name = f"{{argument:outcome={bare}}} " if bare else ""
    raise ArgumentError(
        f"{where}the outcome is a word in {words.total()} of {number_of(n_runs, 'run')}; say "
        f"what each word means (1 success, 0 failure, -1 not observed) with "
        f"{name}{{argument}}{more}",
        "outcome_map",
        Meanings({word: f"{value:g}" for word, value in known.items()} | propose(shown, bare)),
    )


def opposite_of(name: str, known: Iterable[Any]) -> str | None:
    """Return the field that counts what an outcome does not: beside "passed" it is "failed"."""
    usual = COUNTED.get(name.lower(), ())
    return next((str(other) for other in known if str(other).lower() in usual), None)


def counts_tests(value: Any, other: Any = None) -> bool:
    """Tell a number of tests, beside the `other` number, from an outcome, which is 0, 1 or a grade.

    >>> counts_tests(3), counts_tests(1, 2), counts_tests(1, 0), counts_tests(True, 2)
    (True, True, False, False)
    """
    if isinstance(value, (bool, np.bool_)) or not is_number(value):
        return False
    beside = is_number(other) and not isinstance(other, bool) and math.isfinite(other)
    return bool(1 < value < math.inf or (beside and value in (0, 1) and value + other != 1))


def refuse_counts(
    pairs: Collection[tuple[Any, Any]], name: str, opposite: str | None, where: str = ""
) -> None:
    """Refuse an outcome that counts tests, or has another scale.

    `pairs` are its distinct values in runs, with those of its opposite.
    """
    odd = next((pair for pair in pairs if counts_tests(*pair)), None)
    if odd is None:
        return
    found = f"the outcome {name!r} is {odd[0]:g} in a run, which is not a grade from 0 to 1"
    if opposite is not None:
        found = f"{name!r} and {opposite!r} are {odd[0]:g} and {odd[1]:g} in a run: counts of tests"
    raise ArgumentError(
        f"{where}{found}; name another field with {{argument}}, say what each value means with "
        f"{{argument:outcome_map}}, or give a table of run ids and outcomes with "
        f"{{argument:outcomes}}",
        "outcome",
    )


def refuse_counts_in(frame: pd.DataFrame, outcome: str, meanings: Mapping[str, float]) -> None:
    """Refuse a column of outcomes that counts tests, or has another scale."""
    name = bare_name(outcome, frame.columns)
    if name not in frame or frame[name].dtype.kind not in "iuf":
        return
    opposite = None if meanings else opposite_of(name, frame.select_dtypes("number"))
    names = [name] if opposite is None else [name, opposite]
    whole = frame[names][~frame[name].between(0, 1, inclusive="neither")]
    rows = whole.dropna().drop_duplicates().itertuples(index=False, name=None)
    pairs = [(as_mapped(value, meanings), *(other or (None,))) for value, *other in rows]
    refuse_counts(pairs, name, opposite)


def propose(words: Iterable[str], name: str = "") -> Meanings:
    """Return what words usually mean, with a question mark at those that are not usual.

    >>> propose(["yes", "pass"]), propose(["yes", "pass"], "has_error")
    ({'yes': 1, 'pass': 1}, {'yes': 0, 'pass': 1})
    """
    usual: dict[str, Any] = {word: value for value, words in _USUAL.items() for word in words}
    if sounds_bad(name):
        usual |= {word: 1 - usual[word] for word in _ANSWERS}
    return Meanings((word, usual.get(word.strip().lower(), "?")) for word in words)
