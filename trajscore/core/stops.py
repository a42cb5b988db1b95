"""Why a run ended, and what that means for its outcome: one table, one rule.

A run that the harness lost is left out, whatever outcome it recorded. At the end of a budget a
success is one, and anything less is not observed. Every other outcome counts as recorded, which is
said where the reason is not known.
"""

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from trajscore.core.errors import RowError
from trajscore.core.outcomes import CENSORED, SUCCESS, WORDS
from trajscore.core.policy import MIN_CONTINUED_STEPS, MIN_STOPPED_RUNS
from trajscore.core.values import (
    AnyArray,
    ArrayLike,
    BoolArray,
    IntArray,
    as_pairs,
    first_true,
    number_of,
)
from trajscore.core.within_runs import last_cells

Mechanism = Literal["complete", "administrative", "informative", "excluded", "unknown"]

COMPLETE: Mechanism = "complete"
"""The run came to its own end, so that its outcome should be known."""
ADMINISTRATIVE: Mechanism = "administrative"
"""A budget fixed in advance cut the run off, which says nothing of the outcome."""
INFORMATIVE: Mechanism = "informative"
"""The run brought its stop about itself, which may say how it would have ended."""
EXCLUDED: Mechanism = "excluded"
"""An infrastructure error ended the run, which is not a run of the agent."""
UNKNOWN: Mechanism = "unknown"
"""Nobody said what the reason means."""

MECHANISMS = get_args(Mechanism)
"""How a run can have ended, see `settle_stops`."""

ReadRule = Mapping[str, str] | Callable[[str], str]
Rule = ReadRule | str

FORECAST_STOPS = WORDS["forecast_stops"]
"""Reasons of runs that a forecast stopped: it cannot be judged on these, see `refuse_own_stops`."""
_MECHANISM_OF_REASON = dict.fromkeys(FORECAST_STOPS, INFORMATIVE) | {
    reason: mechanism for mechanism, reasons in WORDS["stops"].items() for reason in reasons
}

STOP_FIELDS = (
    "stop_reason", "termination_reason", "termination", "exit_status", "end_reason", "exit_reason",
)  # fmt: skip
"""Fields and columns that say why a run ended, the most specific first."""
ERROR_FIELDS = ("exception_type", "exception_info", "exception", "error_type", "error")
"""Those that name an error, of which only text is a reason."""
_NO_REASON = set(WORDS["no_reason"])
_KINDS_OF_ERRORS = ("exception_type", "type", "name", "code", "message")
_ERROR_WITH_TEXT = re.compile(r"(?:\w+\.)*(\w*(?:Error|Exception|Timeout))\s*[:(]")
_SENTENCES = {  # as those of AutoGen, LlamaIndex and LangGraph begin, and the words for them
    "Maximum number of messages ": "max_messages", "Maximum number of turns ": "max_turns",
    "Token usage limit reached": "token_limit", "Stop message received": "agent_stop",
    "Max iterations of ": "max_iterations", "Recursion limit of ": "max_steps",
    "Text message received from ": "agent_stop",
    "Text '": "agent_stop",  # that the agent was to say at its end
}  # fmt: skip
_MAX_NAMED = 3  # reasons of one kind, in a sentence

_BETWEEN_WORDS = re.compile(r"[\s\-]+|(?<=[a-z0-9])(?=[A-Z])")


def mechanism_of(reason: Any, rule: Rule | None = None) -> Mechanism:
    """Return what a stop reason means: the rule's answer, else that of `words.toml`.

    >>> mechanism_of("Max Steps"), mechanism_of("timeout", {"timeout": "administrative"})
    ('administrative', 'administrative')
    """
    return _as_function(rule)(_normalize("" if reason is None else reason))


def as_reason(value: Any, name: str = "") -> str | None:
    """Return what a field says of why a run ended; None if nothing, or if it is not about that.

    >>> as_reason("docker.StartError: no space left"), as_reason(True, "error"), as_reason("None")
    ('StartError', 'error', None)
    """
    if isinstance(value, Mapping):
        value = next((value[key] for key in _KINDS_OF_ERRORS if value.get(key)), None)
    if isinstance(value, (bool, np.bool_, int, np.integer)):
        is_error = plain_name(name) in _PLAIN_ERRORS
        if isinstance(value, (bool, np.bool_)):
            value = "error" * bool(value and is_error)
        elif not is_error:
            return str(value)
    if not isinstance(value, str) or value.strip().lower() in _NO_REASON:
        return None
    if error := _ERROR_WITH_TEXT.match(value):
        return error[1]
    words = (word for start, word in _SENTENCES.items() if value.startswith(start))
    return next(words, value.strip())


def choose_reason(reasons: Iterable[str | None], rule: Rule | None) -> str | None:
    """Return the reason that decides: that the harness lost the run, or else the first there is."""
    stated = [reason for reason in reasons if reason is not None]
    lost = (reason for reason in stated if mechanism_of(reason, rule) == EXCLUDED)
    return next(chain(lost, stated), None)


def settled(outcome: Any, mechanism: Any) -> Any:
    """Return an outcome, or those of several runs: at the end of a budget only a success is one.

    >>> settled(0, "administrative"), settled(1, "administrative"), settled(0, "informative")
    (-1, 1, 0)
    """
    hidden = (mechanism == ADMINISTRATIVE) & (outcome < SUCCESS)
    if isinstance(hidden, np.ndarray):
        return np.where(hidden, CENSORED, outcome)
    if hidden:
        return CENSORED
    return outcome


class Stops(NamedTuple):
    """How runs ended, after the rule."""

    y: AnyArray  # -1 where not observed
    mechanism: AnyArray  # of each run; of an observed one "complete", unless it was lost
    unknown: AnyArray  # whether an outcome counts although its stop reason is not known
    stop_counts: Counter[tuple[str, str]]  # runs by what a reason made of them, and the reason
    reasons: AnyArray  # as they were recorded
    is_stated: BoolArray  # whether a run has one


def settle_stops(
    y: ArrayLike, reasons: ArrayLike, *, kinds: ArrayLike | None = None, rule: Rule | None = None
) -> Stops:
    """Apply the rule to runs, and tell by which mechanism each ended (Raghu et al. 2026, App. G).

    What a reason means is the first of these answers: what the reader of the log noted (`kinds`),
    the `rule`, the words of words.toml. Without an outcome, a run that came to its own end is
    unknown, as is any other reason, or none at all.

    >>> reasons = ["done", "max_steps", "parse_error", "rate limit", "user_error"]
    >>> stops = settle_stops([1, 0, 0, -1, 1], reasons)
    >>> stops.y.tolist(), stops.mechanism.tolist()[1:]
    ([1, -1, 0, -1, 1], ['administrative', 'complete', 'unknown', 'excluded'])
    """
    recorded = np.asarray(y)
    names = normalize_reasons(reasons)
    codes, distinct = pd.factorize(names)
    meant = np.array([*map(_as_function(rule), distinct)], dtype=object)[codes]
    is_noted = np.zeros(len(names), dtype=bool)
    if kinds is not None:
        noted = pd.Series(np.asarray(kinds, dtype=object), dtype=object)
        is_noted = noted.notna().to_numpy()
        row = first_true(is_noted & ~noted.isin(MECHANISMS))
        if row is not None:
            raise RowError(f"stop_kind {noted[row]!r} is not one of {', '.join(MECHANISMS)}", row)
        meant = noted.where(is_noted, meant).to_numpy()
    outcomes = settled(recorded, meant)
    seen = outcomes != CENSORED
    mechanism = np.where(seen & (meant != EXCLUDED), COMPLETE, meant)
    mechanism[~seen & (mechanism == COMPLETE)] = UNKNOWN  # it came to its end, nobody noted how
    words = np.asarray(reasons, dtype=object)
    unknown = seen & (meant == UNKNOWN) & (names != "")
    changed = {
        EXCLUDED: meant == EXCLUDED,
        ADMINISTRATIVE: outcomes != recorded,
        UNKNOWN: unknown & ~is_noted,
    }
    stop_counts = Counter(
        (str(kind), str(word)) for kind, rows in changed.items() for word in words[rows]
    )
    return Stops(outcomes, mechanism, unknown, stop_counts, words, names != "")


def read_stops(y: AnyArray, meta: pd.DataFrame, stop_reason: ArrayLike | None) -> Stops | None:
    """Settle the stops that runs were recorded with; None where no run has a reason."""
    reasons, kinds = recorded_stops(meta, stop_reason)
    return None if reasons is None else settle_stops(y, reasons, kinds=kinds)


def note_on_lost(reasons: Counter[str], n_runs: int) -> str:
    """Say how many runs of all the harness lost, by their reasons."""
    n = reasons.total()
    left_out = "are left out, as the harness lost them"
    if n == 1:
        left_out = "is left out, as the harness lost it"
    return (
        f"{n:,} of {number_of(n_runs, 'run')} {left_out}, whatever outcome was recorded "
        f"({_listed(reasons)})"
    )


def notes_on_stops(stop_counts: Counter[tuple[str, str]], n_runs: int) -> Iterator[str]:
    """Say which runs were lost or not observed, and which reasons are not known, with counts."""
    lost, cut, unknown = (
        Counter({name: n for (of, name), n in stop_counts.items() if of == kind})
        for kind in (EXCLUDED, ADMINISTRATIVE, UNKNOWN)
    )
    if lost:
        yield note_on_lost(lost, n_runs)
    if n := cut.total():
        are = "is" if n == 1 else "are"
        yield (
            f"{number_of(n, 'run')} that a budget ended without a success {are} not observed "
            f"({_listed(cut)})"
        )
    if unknown:
        name = unknown.most_common(1)[0][0]
        yield (
            f"{number_of(unknown.total(), 'run')} ended for reasons that are not known "
            f"({_listed(unknown)}) and count as recorded; say what each means, such as "
            f"{{argument:rule={name}=complete}}, administrative, informative or excluded"
        )


def _listed(reasons: Counter[str]) -> str:
    parts = [f"{reason} {n:,}" for reason, n in reasons.most_common(_MAX_NAMED)]
    if len(reasons) > _MAX_NAMED:
        parts.append(f"{len(reasons) - _MAX_NAMED} more")
    return ", ".join(parts)


def names_among(usual: Iterable[str], names: Iterable[Any]) -> tuple[Any, ...]:
    """Return the names that are usual ones, however written, in the order of the usual ones.

    >>> names_among(("run_id", "step"), ["Step", "runId", "x"])
    ('runId', 'Step')
    """
    plain = {plain_name(name): name for name in reversed(list(names))}
    return tuple(plain[name] for name in map(plain_name, usual) if name in plain)


def stop_names(columns: Iterable[Any]) -> tuple[Any, ...]:
    """Return the columns that tell why runs ended by their names."""
    return names_among((*STOP_FIELDS, *ERROR_FIELDS), columns)


def stop_columns(frame: pd.DataFrame) -> list[Any]:
    """Return the columns that tell why runs ended; of errors only those that hold no numbers."""
    return [
        name
        for name in stop_names(frame.columns)
        if plain_name(name) not in _PLAIN_ERRORS or frame[name].dtype.kind not in "iufmM"
    ]


def reasons_in_rows(
    frame: pd.DataFrame, columns: Iterable[Any], starts: IntArray, rule: Rule | None
) -> AnyArray:
    """Return why each run ended, of rows in the order of runs and steps.

    A reason is the last one in the rows of a run, and an error counts if it is in the last row.
    """
    ends = np.append(starts[1:], len(frame)) - 1
    by_column = []
    for name in columns:
        column = frame[name].astype(object)
        if not all(map(pd.api.types.is_hashable, column)):  # the object of an exception
            column = column.map(lambda value, name=name: as_reason(value, str(name)))
        codes, values = pd.factorize(column)
        words = np.array([*(as_reason(value, str(name)) for value in values), None], dtype=object)
        last = ends
        if plain_name(name) not in _PLAIN_ERRORS:
            has_one = ~pd.isna(words)[codes]
            last = np.maximum.reduceat(np.where(has_one, np.arange(len(codes)), -1), starts)
        by_column.append(words[np.append(codes, -1)[last]])  # None where no row has one
    rows = zip(*by_column, strict=True)
    return np.array([choose_reason(row, rule) for row in rows], dtype=object)


def plain_name(name: Any) -> str:
    """Return a name without what separates its words: "runId" is the same as "run_id"."""
    return re.sub(r"[\W_]", "", str(name).lower())


def is_scored(mechanism: AnyArray) -> NDArray[np.bool_]:
    """Tell which runs a score may count: those that are complete, or that a budget cut off."""
    return (mechanism == COMPLETE) | (mechanism == ADMINISTRATIVE)


def recorded_stops(
    meta: pd.DataFrame, stop_reason: ArrayLike | None = None, rule: Rule | None = None
) -> tuple[AnyArray | None, pd.Series | None]:
    """Return the stop reasons of runs, and what the reader of their log took them to mean.

    The columns "stop_reason" and "stop_kind" of `meta`, None where there is none, or no run
    has a reason; given reasons count instead of both, and a given rule instead of the kinds.
    """
    if stop_reason is not None:
        reasons = np.asarray(stop_reason, dtype=object)
        is_text = all(isinstance(reason, Hashable) for reason in reasons.ravel())
        if reasons.shape != (len(meta),) or not is_text:
            raise ValueError(
                f"stop_reason must have one reason a run, as text: {len(meta)}, got {reasons.size}"
            )
        return reasons, None
    kinds = meta.get("stop_kind")
    reasons_in_meta = meta.get("stop_reason", kinds)
    if reasons_in_meta is None or reasons_in_meta.isna().all():
        return None, None
    return reasons_in_meta.to_numpy(dtype=object), kinds if rule is None else None


def refuse_own_stops(traces: Mapping[str, Any], stop_reason: ArrayLike | None = None) -> None:
    """Refuse a predictor whose own flag explains which runs a forecast stopped.

    Which forecast stopped a run no log says, so this is told by its pattern: each run that was
    stopped ends at the first step up to some threshold, and no run goes on after such a step.
    """
    about = next(iter(traces.values())).meta  # of the runs, as everywhere
    reasons = recorded_stops(about, stop_reason)[0]
    if reasons is None:
        return
    stopped = np.isin(normalize_reasons(reasons), FORECAST_STOPS)
    for name, X in traces.items():
        threshold = stopping_threshold(X, stopped)
        if threshold is not None:
            subject = f"predictor {name!r}" if name else "the forecast"
            raise ValueError(
                f"{subject} stopped {stopped.sum()} of "
                f"these {len(X)} runs itself: each of them ends at the first step at which it is "
                f"at most {threshold:g}, and no run goes on after it. A forecast cannot be "
                f"judged on runs that it stopped, as it decides which outcomes are seen. Let runs "
                f"go on to their end, and replay all predictors on the same complete logs. If "
                f"something else stopped these runs, correct their stop reasons"
            )


def stopping_threshold(X: Any, stopped: BoolArray) -> float | None:
    """Return up to what value a trace stopped all these runs and no other one; None: it did not."""
    values = X.cells.ravel()
    ends = last_cells(X)
    others = np.delete(values, ends)  # at its own end a run can no longer be stopped
    others = others[~np.isnan(others)]
    if stopped.sum() < MIN_STOPPED_RUNS or len(others) < MIN_CONTINUED_STEPS:
        return None
    highest = float(values[ends[stopped]].max())
    if highest < others.min():  # never if one is missing
        return highest
    return None


def normalize_reasons(reasons: ArrayLike) -> AnyArray:
    """Return stop reasons in lower case, with "_" between words, "" where missing."""
    codes, names = pd.factorize(np.asarray(reasons, dtype=object))
    return np.array([*map(_normalize, names), ""], dtype=object)[codes]


def _normalize(reason: Any) -> str:
    return _BETWEEN_WORDS.sub("_", str(reason).strip()).lower()


_PLAIN_ERRORS = {plain_name(name) for name in ERROR_FIELDS}


def _as_function(rule: Rule | None) -> Callable[[str], Mechanism]:
    """Return the rule as a function of a normalised reason that answers one of MECHANISMS."""
    rule = as_pairs(rule)
    if callable(rule):
        return lambda name: _checked(rule(name), name)
    if not isinstance(rule, (Mapping, type(None))):
        raise ValueError(f"rule must be a dict of reasons, or a function of one, got {rule!r}")
    ruled = {_normalize(name): mechanism for name, mechanism in (rule or {}).items()}
    meanings = _MECHANISM_OF_REASON | ruled
    return lambda name: _checked(meanings.get(name, UNKNOWN), name)


def _checked(mechanism: Any, name: str) -> Mechanism:
    if mechanism in MECHANISMS:
        return mechanism
    raise ValueError(
        f"stop reason {name!r}: the rule says {mechanism!r}; say one of {', '.join(MECHANISMS)}"
    )
