"""How a run ended, and what words mean of it: as somebody says, never as we guess."""

import re
import tomllib
from collections import Counter
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any

import numpy as np
import pandas as pd

from trajscore.core.errors import ArgumentError, RowError
from trajscore.core.ids import check_index
from trajscore.core.values import (
    AnyArray,
    ArrayLike,
    BoolArray,
    ByName,
    FloatArray,
    IntArray,
    RunsLike,
    as_array,
    as_pairs,
    check_choice,
    first_true,
    is_number,
    number_of,
    one_per_run,
    outside_unit,
    parse_number,
    refuse_first,
    run_label,
    to_unit,
)

SUCCESS = 1
FAILURE = 0
CENSORED = -1
"""The outcome was not observed; -1 is also scikit-learn's code for "unlabelled"."""


def check_outcomes(
    y: ArrayLike,
    runs: int | RunsLike | None = None,
    *,
    allow_censored: bool = True,
    allow_soft: bool = True,
) -> AnyArray:
    """Return outcomes as codes: 1 success, 0 failure, -1 not observed, or grades in [0, 1].

    Parameters
    ----------
    y : array-like of shape (n_runs,)
        Numbers, booleans, or missing values (NaN, None, pd.NA, or masked), which mean "not
        observed".
    runs : int or container, optional
        How many outcomes there must be, or the runs that they are of.
    allow_censored : bool, default=True
        Whether outcomes may be unobserved.
    allow_soft : bool, default=True
        Whether outcomes strictly between 0 and 1 may occur.

    Returns
    -------
    ndarray of shape (n_runs,)
        int64 codes in {-1, 0, 1}; float64 where some outcome lies between 0 and 1.

    Raises
    ------
    ValueError
        If an outcome is anything else, with its run and the remedy; or if a Series names the runs,
        by its index, in another order.

    Examples
    --------
    >>> check_outcomes([True, False, None])
    array([ 1,  0, -1])
    >>> check_outcomes([1, 0.25, float("nan")])
    array([ 1.  ,  0.25, -1.  ])
    """
    ids = getattr(runs, "ids", None)
    values = _as_numbers(y, ids)
    n_runs = len(values)
    if isinstance(runs, (int, np.integer)):
        n_runs = int(runs)
    elif runs is not None:
        n_runs = len(runs)
    if len(values) != n_runs:
        raise ValueError(
            f"y has {number_of(len(values), 'outcome')} for {number_of(n_runs, 'run')}; give one "
            f"for each run. TrajectoryArray.from_frame(df, ..., outcome=NAME) returns X and such "
            f"a y from a table with a row for each step"
        )
    if ids is not None:
        check_index(y, ids, "y")
    values = values.astype(float)
    values[np.isnan(values)] = CENSORED
    censored = values == CENSORED
    recoded = "; if a meta-estimator re-coded -1, 0, 1 as 0, 1, 2, leave unobserved runs out first"
    refuse_first(
        ~censored & outside_unit(values),
        lambda row: (
            f"{_place(row, ids)}: outcome {values[row]:g} lies outside [0, 1]; use 1 for success, "
            f"0 for failure, -1 where it was not observed, or a grade between 0 and 1"
            f"{recoded * int(values[row] == 2)}"
        ),
    )
    refuse_first(
        censored & (not allow_censored),
        lambda row: (
            f"{_place(row, ids)}: the outcome is not observed ({int(censored.sum())} of "
            f"{len(values)} are not); leave these runs out, or score them with censored_tps_score"
        ),
    )
    values = to_unit(values)
    graded = values != np.floor(values)
    refuse_first(
        graded & (not allow_soft),
        lambda row: (
            f"{_place(row, ids)}: outcome {values[row]:g} must be 0 or 1; leave out graded runs"
        ),
    )
    return values if graded.any() else values.astype(np.int64)


def outcomes_vary(y: AnyArray) -> bool:
    """Tell whether two of the observed outcomes differ."""
    observed = y[y != CENSORED]
    return bool((observed != observed[:1]).any())


CENSORED_AS = ("failure", "drop", "q_z")
"""What a run without an observed outcome can be taken for."""


@dataclass(frozen=True)
class Labels:
    """One vector of outcomes in [0, 1], behind every number that is computed from it."""

    value: FloatArray  # those of unobserved runs as `censored` says
    is_counted: BoolArray  # whether a run counts: only censored="drop" leaves runs out
    observed: BoolArray  # whether the outcome was observed

    @property
    def stratum(self) -> IntArray:
        """1 success, 0 failure, for a soft outcome the likelier one: folds are balanced by it."""
        return (self.value >= 0.5).astype(np.int64)


def as_labels(y: ArrayLike, *, censored: str = "failure", q_z: ArrayLike | None = None) -> Labels:
    """Give the runs whose outcome was not observed one to be scored and fitted with.

    They are failures (the simple censored score), do not count ("drop"), or have the soft outcome
    `q_z`, the chance that they would have succeeded (the exact score).
    """
    check_choice(censored, "censored", CENSORED_AS)
    codes = np.asarray(y)
    observed = codes != CENSORED
    if censored == "q_z" and q_z is None and not observed.all():
        raise ValueError('censored="q_z" needs q_z, one for each run')
    if censored != "q_z" and q_z is not None:
        raise ValueError(f'q_z is read only with censored="q_z", not {censored!r}')
    q = np.zeros(len(codes))
    if q_z is not None:
        q = one_per_run(q_z, "q_z", len(codes))
        row = first_true(~observed & (np.isnan(q) | outside_unit(q)))
        if row is not None:
            raise RowError(
                f"its outcome was not observed and q_z is {q[row]:g}; give the chance in [0, 1] "
                f"that it would have succeeded",
                row,
            )
    value = np.where(observed, codes, to_unit(q))
    return Labels(value, observed | (censored != "drop"), observed)


def _place(row: int, ids: AnyArray | None) -> str:
    """Name the run of an outcome: by its id, or where there are no ids by its number from 0."""
    if ids is None or row >= len(ids):
        return f"run {row}"
    return f"run {run_label(ids[row])}"


def _as_numbers(y: ArrayLike, ids: AnyArray | None) -> AnyArray:
    if y is None:
        raise ValueError("there are no outcomes: y is None; give one for each run")
    if isinstance(y, np.ma.MaskedArray):
        y = np.ma.filled(y.astype(object), np.nan)  # not observed
    array = as_array(y, "outcomes")
    if array.dtype.kind in "US":  # name the first outcome, not what NumPy made of it
        array = np.asarray(y, dtype=object)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise ValueError(f"outcomes must be one-dimensional, got shape {array.shape}")
    if array.dtype.kind in "biuf":
        return array
    missing = pd.isna(array)
    are_numbers = [isinstance(value, np.bool_) or is_number(value) for value in array]
    refuse_first(
        ~missing & ~np.array(are_numbers, dtype=bool),
        lambda row: (
            f"{_place(row, ids)}: outcome {run_label(array[row])} is not a number; use 1 or True "
            f"for success, 0 or False for failure, and -1 or an empty value where it was not "
            f"observed, of words by pandas.Series(y).map({{'pass': 1, 'fail': 0}})"
        ),
    )
    return np.where(missing, np.nan, array).astype(float)


def opposite(labels: FloatArray) -> FloatArray:
    """Return the outcomes that did not happen; of a graded one, the one further away.

    >>> opposite(np.array([0.0, 1.0, 0.7]))
    array([1., 0., 0.])
    """
    return (labels < 0.5).astype(float)


WORDS = tomllib.loads(files("trajscore.core").joinpath("words.toml").read_text("utf-8"))
"""Words that logs and tables use, by what they are for."""
_BAD = set(WORDS["names"]["bad"])  # of which a high value is bad
_TURNED_BY = set(WORDS["names"]["turned_by"])  # unless one of these turns it
_VERDICTS = {word: float(value) for value, words in WORDS["verdicts"].items() for word in words}
_CLEAR = {"true": 1, "yes": 1, "false": 0, "no": 0}  # words that need no map
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
    return is_code or (bool(words & _BAD) and not words & _TURNED_BY)


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
    pairs = as_pairs(outcome_map)
    if not isinstance(pairs, (Mapping, type(None))):
        raise ArgumentError(
            f"{{argument}} must be a dict of words, got {outcome_map!r}", "outcome_map"
        )
    meanings: dict[str, float] = {}
    for word, value in (pairs or {}).items():
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


def as_verdicts(values: Iterable[Any], name: str) -> FloatArray:
    """Return verdicts on steps as numbers: words such as right are 1, such as wrong 0; else NaN.

    >>> as_verdicts(["right", "Wrong", True, -1, "0.5", None], "human")
    array([ 1. ,  0. ,  1. , -1. ,  0.5,  nan])
    """
    verdicts = [as_mapped(value, _VERDICTS) for value in values]
    if unknown := [verdict for verdict in verdicts if isinstance(verdict, str)]:
        raise ValueError(
            f"{name!r} of a step is {unknown[0]!r}; write right, neutral or wrong, or numbers that "
            f"are below 0 where a step is wrong"
        )
    return np.array([verdict if is_number(verdict) else np.nan for verdict in verdicts], float)


def _word(value: Any) -> str:
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        value = int(value)
    return str(value).strip().lower()


def map_outcomes(column: pd.Series, meanings: Mapping[str, float], is_turned: bool) -> pd.Series:
    """Return a column of outcomes with its words as numbers; refuse words that are not mapped."""
    if column.dtype.kind in "biuf" and not meanings:
        return column
    outcomes = {kind: as_mapped(kind, meanings) for kind in column.dropna().unique()}
    values = column.astype(object).map(outcomes)
    words = Counter(value for value in values if isinstance(value, str))
    if words:
        present = set(map(_word, outcomes))
        mapped = {word: value for word, value in meanings.items() if word in present}
        refuse_words(words, len(column), mapped, bare=column.name if is_turned else "")
    return values


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
        usual = {word: int(value) for value, of in WORDS["outcomes"].items() for word in of}
    return Meanings((word, usual.get(word.strip().lower(), "?")) for word in words)
