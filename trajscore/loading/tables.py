"""What is asked of a file and what it gives; and how a table with one row a step is loaded."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from trajscore.core.array import TrajectoryArray
from trajscore.core.errors import ArgumentError, visible
from trajscore.core.frame import as_times, joined_ids, runs_of_table
from trajscore.core.outcomes import (
    as_verdicts,
    bare_name,
    check_map,
    check_polarity,
    note_on_words,
    turned_note,
)
from trajscore.core.stops import (
    EXCLUDED,
    Rule,
    Stops,
    names_among,
    normalize_reasons,
    notes_on_stops,
    stop_columns,
)
from trajscore.core.values import AnyArray, check_known, number_of, parse_numbers
from trajscore.evaluation.notes import without_leaky_columns
from trajscore.io import Run
from trajscore.io.fields import ROWS, TIMES, USUAL_FIELDS, Fields, usual_names
from trajscore.io.files import read_table
from trajscore.io.outcome_tables import join_outcomes
from trajscore.io.tables import (
    PARTS,
    TABLE_STEP,
    agent_rows,
    beyond_unit,
    choose_columns,
    guess_first_step,
    holds_objects,
    notes_on_trials,
    unused_columns,
    usual_column,
    with_scales,
)
from trajscore.io.wide_tables import as_long, has_row_per_run, usual_ids
from trajscore.metrics.first_error import first_error_labels

NO_SCORE = ""
"""The name of the predictor that has steps and no values, where a file holds no score."""

COSTS = ("cost", "tokens")

NoteText = str
"""A sentence; it names arguments as `ArgumentError` does, which a command line knows as options."""


@dataclass(frozen=True)
class LoadRequest:
    """What to take from a file, and how to read it."""

    fields: Fields = USUAL_FIELDS  # of a log, `scores` are predictors, `group` a column of io.meta
    format: str | None = None
    outcome_map: Any = None
    outcomes: Any = None  # an empty dict says that none is known
    rule: Rule | None = None
    first_step: int | None = None
    embedder: str | None = None  # of TracerSignals
    by: Sequence[str] = ()  # columns of a table that go into the meta of the predictors
    missing: str | None = None  # as in `trajscore.evaluate`; None if values are not filled
    needs_scores: bool = True  # if not, a table may have a row a run
    needs_outcomes: bool = True  # if not, none are named, and runs may have none
    is_followed: bool = False  # the order of runs counts
    keep_lost: bool = False  # keep the runs that an infrastructure error ended
    max_size: int | None = None
    roles: Any = None


@dataclass(frozen=True)
class Inputs:
    """Predictors and outcomes as `evaluate` takes them; the meta says why runs ended."""

    predictors: TrajectoryArray | dict[str, TrajectoryArray]
    y: AnyArray
    groups: AnyArray | None = None
    notes: tuple[NoteText, ...] = ()  # what was guessed, and what was left out
    costs: dict[str, AnyArray] = field(default_factory=dict)
    log: Sequence[Run] = ()
    outcome: str = ""  # column of outcomes
    n_left_out: int = 0  # runs of a log
    has_ids: bool = True
    group: str | None = None  # column of `groups`
    first_error: AnyArray | None = None  # first wrong step of each run, where it is labelled
    table_steps: TrajectoryArray | None = None  # numbers in the table, where rows were left out

    def container(self) -> TrajectoryArray:
        """Return the predictors in one container."""
        X = self.predictors
        if isinstance(X, dict):
            return TrajectoryArray.stack(list(X.values()), channels=list(X))
        return X


def describe_notes(notes: Iterable[NoteText], options: Mapping[str, str]) -> str:
    """Return a note a line, with options for the arguments that have one."""
    return visible("\n".join(ArgumentError(note).in_options(options) for note in notes))


def load_table(path: Path, request: LoadRequest) -> Inputs:
    """Load the predictors of a table, or its steps alone if it has no score and needs none."""
    fields = request.fields
    frame = read_table(path, request.max_size)
    if frame.empty:
        raise ValueError("the table has no rows; give at least one step of one run")
    if not request.needs_outcomes and usual_column(frame, "outcome") is None:
        request = replace(request, outcomes={})
    try:
        return _load_frame(frame, request)
    except ArgumentError as error:
        if request.needs_scores or fields.scores or error.part != "scores":
            raise
    frame[NO_SCORE] = 0.0
    return _load_frame(frame, replace(request, fields=replace(fields, scores=(NO_SCORE,))))


def _load_frame(frame: pd.DataFrame, request: LoadRequest) -> Inputs:
    meanings = check_map(request.outcome_map)
    check_polarity(request.fields.outcome, meanings)
    frame, fields, columns, notes = _as_steps(frame, request)
    chosen, guessed = choose_columns(frame, fields, columns)
    notes += notes_on_outcome(frame, str(chosen.outcome), meanings)
    if chosen.step == ROWS and ROWS not in frame:
        chosen = replace(chosen, step=None)
    frame, role_notes = _rows_to_judge(frame, chosen)
    notes += role_notes
    first_step = first_step_of(frame, chosen, request)
    group = chosen.group or task_column(frame, chosen)
    per_run = list(dict.fromkeys(filter(None, (group, *request.by))))
    X, y, ended = runs_of_table(
        TrajectoryArray,
        frame,
        id=list(chosen.ids),
        step=chosen.step,
        value=[*chosen.scores, *frame.columns.intersection([chosen.label, TABLE_STEP])],
        outcome=chosen.outcome,
        outcome_map=request.outcome_map,
        horizon=None,
        meta=per_run,
        first_step=first_step,
        missing="allow",
        stop_reason=fields.stop_reason or stop_columns(frame.drop(columns=list(chosen.scores))),
        rule=request.rule,
        keep_lost=request.keep_lost,
    )
    first_error = None
    if chosen.label is not None:
        first_error = first_error_labels(X[chosen.label], chosen.step_label is not None)
    table_steps = None
    if TABLE_STEP in frame:
        table_steps = X[TABLE_STEP]
    X = X[list(chosen.scores)]
    is_counted = np.ones(len(y), dtype=bool)  # not ended by an infrastructure error
    if ended is not None:
        is_counted = (X.meta["stop_kind"] != EXCLUDED).to_numpy()
    notes += [*_notes_on_ends(X, ended, request.rule), *notes_on_trials(frame, chosen.ids)]
    leaks: list[NoteText] = []
    if "scores" in guessed:
        X, leaks = without_leaky_columns(X, y, is_counted)
        guessed["scores"] = X.channels or ()
    groups = None
    if group is not None:
        groups = X.meta[group]
        if pd.api.types.infer_dtype(groups).startswith("mixed"):
            groups = groups.astype(str)
        notes.append(note_on_clusters(group, groups[is_counted]))
    ids = joined_ids(frame, chosen.ids)
    if request.is_followed:
        notes += _notes_on_order(frame, ids)
    costs, cost_notes = _costs(frame, ids, X)
    unused = frame.drop(columns=[*per_run, TABLE_STEP], errors="ignore")
    return Inputs(
        X,
        y,
        groups,
        (
            *note_on_guesses(guessed, first_step, request.first_step),
            *leaks,
            *note_on_unused(unused, chosen),
            *_notes_on_scales(frame, X, chosen),
            *notes,
            *cost_notes,
        ),
        costs,
        outcome=str(chosen.outcome),
        has_ids={*chosen.ids} <= {*columns},
        group=group,
        first_error=first_error,
        table_steps=table_steps,
    )


def _as_steps(
    frame: pd.DataFrame, request: LoadRequest
) -> tuple[pd.DataFrame, Fields, list[Any], list[NoteText]]:
    """Return a table with a row a step, its names, the columns that it came with, and notes."""
    columns = list(frame.columns)
    ids = request.fields.ids or usual_ids(frame)[:1]
    frame, fields, wide_notes = as_long(frame, request.fields)
    frame, fields, join_notes = join_outcomes(
        frame, fields, request.outcomes, request.rule, request.max_size
    )
    if "stop_reason" in frame and "stop_reason" not in columns:  # of a table of outcomes
        columns.append("stop_reason")
    check_known(request.by, columns, "column", "by")
    notes = [*wide_notes, *join_notes]
    has_steps = fields.step is not None or usual_names("step", frame.columns)
    if not request.needs_scores and not has_steps and has_row_per_run(frame, ids):
        notes.append("no column has steps, so each row is a run of one step")
        frame = frame if ids else frame.assign(run=np.arange(len(frame)))
        fields = replace(fields, id=ids or "run", step=ROWS)
    return frame, fields, columns, notes


def _rows_to_judge(
    frame: pd.DataFrame, chosen: Fields
) -> tuple[pd.DataFrame, tuple[NoteText, ...]]:
    """Return the rows of the agent, with scores and verdicts as numbers, and what was left out."""
    frame = with_scales(frame, chosen)
    if (label := chosen.step_label) is not None:
        frame = frame.assign(**{label: as_verdicts(frame[label], label)})
    frame, notes = agent_rows(frame, chosen)
    if NO_SCORE in frame and chosen.step is not None:  # a row without a step has no value
        frame[NO_SCORE] = frame[NO_SCORE].where(frame[chosen.step].notna())
    return frame, notes


def _notes_on_ends(
    X: TrajectoryArray, ended: Stops | None, rule: Rule | None
) -> Iterator[NoteText]:
    """Say how the runs of a table ended, and what of a rule was not used."""
    if ended is not None:
        excluded = [name for kind, name in ended.stop_counts if kind == EXCLUDED]
        yield from notes_on_stops(ended.stop_counts, len(ended.y))
        yield from notes_on_rule(rule, [*X.meta["stop_reason"], *excluded])
    elif rule is not None:
        yield "no column of stop reasons was found; name it with {argument:stop_reason}"


def _notes_on_scales(frame: pd.DataFrame, X: TrajectoryArray, chosen: Fields) -> list[NoteText]:
    """Ask for the scales of predictors with values above 1."""
    scaled = {*chosen.risks, *dict(chosen.scales)}
    names = [name for name in X.channels or () if name not in scaled]
    return [
        f"column {name!r} has values above 1, which are judged as they are; if one means "
        f"certainty, such as 100, pass {{argument:scales={name}=100}}"
        for name in beyond_unit(frame, names)
    ]


def first_step_of(frame: pd.DataFrame, chosen: Fields, request: LoadRequest) -> int:
    """Return the number of each run's first step, as asked for, or else as guessed."""
    if request.first_step is not None:
        return request.first_step
    return guess_first_step(frame, chosen)


def task_column(frame: pd.DataFrame, chosen: Fields) -> str | None:
    """Return the column of tasks, if every run is of one, and there are several."""
    keys = [frame[name] for name in chosen.ids]
    for name in usual_names("task", frame.columns):
        if holds_objects(frame[name]):
            continue
        codes = pd.Series(pd.factorize(frame[name])[0], index=frame.index)
        is_of_run = (codes == codes.groupby(keys).transform("first")).all()
        if is_of_run and codes.min() == 0 and codes.max() > 0:
            return str(name)
    return None


def _costs(
    frame: pd.DataFrame, ids: pd.Series, X: TrajectoryArray
) -> tuple[dict[str, AnyArray], list[str]]:
    """Return what each run cost, and say how a column that does not vary within runs was read.

    Where runs differ, such a column holds what a run cost; the same number in all runs is of steps.
    """
    costs = {}
    notes = []
    for part in COSTS:
        for name in usual_names(part, frame.columns)[:1]:
            numbers = parse_numbers(frame[name])
            runs = numbers.groupby(ids)
            totals = runs.sum(min_count=1)
            is_of_run = runs.nunique(dropna=False).max() == 1 < runs.size().max()
            if is_of_run and numbers.notna().any():
                how = "in all runs, added up over the steps"
                if numbers.min() < numbers.max():
                    totals = runs.first()
                    how = "a run, which counts once"
                notes.append(f"{part}: column {name!r} has one number {how}")
            costs[part] = totals.reindex(X.ids).to_numpy(dtype=float)
    return costs, notes


# ------------------------------------------------------------------ notes


def note_on_guesses(
    guessed: Mapping[str, Sequence[str]], first_step: int, requested_step: int | None
) -> list[str]:
    """Say which columns were taken for what, and from which step runs are counted."""
    parts = [
        f"{PARTS.get(part, part)}: column{'s' * (len(names) > 1)} {', '.join(map(repr, names))}"
        for part, names in guessed.items()
    ]
    if first_step not in (1, requested_step):
        parts.append(f"steps are counted from {first_step}")
    return ["guessed " + "; ".join(parts)] if parts else []


def _notes_on_order(frame: pd.DataFrame, ids: pd.Series) -> Iterator[NoteText]:
    """Name the column of times by which runs would be in another order."""
    for name in names_among(TIMES, frame):
        column = frame[name].dropna()
        times = as_times(column.rename("time"))
        if times is None:
            continue
        if (
            not pd.Series(times, column.index)
            .groupby(ids, sort=False)
            .min()
            .is_monotonic_increasing
        ):
            yield (
                f"runs are taken in the order of the rows, not of column {name!r}; to take them by "
                f"it, sort the table first, in pandas df.sort_values({name!r}, kind='stable')"
            )
        return


def notes_on_outcome(frame: pd.DataFrame, outcome: str, meanings: Mapping[str, float]) -> list[str]:
    """Say how outcomes were read, where their name or their words are not plain."""
    column = bare_name(outcome, frame.columns)
    notes = [note_on_words(frame[column].dropna(), meanings)]
    if column != outcome:
        notes.insert(0, turned_note(column))
    return [note for note in notes if note]


def note_on_unused(frame: pd.DataFrame, chosen: Fields) -> list[NoteText]:
    """Name the columns that have neither a part nor a usual name, if there are any."""
    unused, numbers = unused_columns(frame, chosen)
    if not unused:
        return []
    names = ", ".join(map(str, unused[:10])) + ", ..." * (len(unused) > 10)
    text = f"{number_of(len(unused), 'column')} not used ({names})"
    if not numbers:
        return [text]
    return [f"{text}; to use one as a score, pass {{argument:scores={numbers[0]}}}"]


def notes_on_rule(rule: Rule | None, reasons: Sequence[Any]) -> list[NoteText]:
    """Say which stop reasons of a rule no run has."""
    if not isinstance(rule, Mapping):
        return []
    in_runs = normalize_reasons(reasons)
    names = ", ".join(name for name in dict.fromkeys(in_runs.tolist()) if name) or "none"
    return [
        f"{{argument:rule={name}={meaning}}}: no run was stopped by {name!r}; there are: {names}"
        for name, meaning in rule.items()
        if normalize_reasons([name])[0] not in in_runs
    ]


def note_on_clusters(group: str, groups: Any) -> str:
    """Say how many clusters some runs are of."""
    return f"{number_of(pd.Series(groups).nunique(), 'cluster')} of runs by {group!r}"
