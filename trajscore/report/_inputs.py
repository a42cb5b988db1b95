"""From a table or a log to predictors that can be judged, with what was guessed on the way."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone

from trajscore import io
from trajscore.core.array import TrajectoryArray
from trajscore.core.errors import ArgumentError
from trajscore.core.frame import joined_ids, runs_of_table
from trajscore.core.meanings import (
    bare_name,
    check_map,
    check_polarity,
    note_on_words,
    turned_note,
)
from trajscore.core.outcomes import outcomes_vary
from trajscore.core.stops import EXCLUDED, Rule, normalize_reasons, notes_on_stops, stop_columns
from trajscore.core.values import number_of, unknown_name
from trajscore.core.visible import visible
from trajscore.core.within_runs import last_cells, whole_runs
from trajscore.datasets import load_chess
from trajscore.evaluation.doubts import without_leaky_columns
from trajscore.io.fields import ROWS, USUAL_FIELDS, Fields, usual_names
from trajscore.io.outcome_tables import join_outcomes
from trajscore.io.reading import stream_runs
from trajscore.io.registry import Format, detect_log, find_format
from trajscore.io.runs import count_left_out
from trajscore.io.tables import (
    PARTS,
    agent_rows,
    beyond_unit,
    choose_columns,
    guess_first_step,
    notes_on_trials,
    read_table,
    unused_columns,
    with_scales,
)
from trajscore.io.wide_tables import as_long
from trajscore.report._spent import spent_in_log, spent_in_table
from trajscore.tracer import ChannelRisk, StepConfidence, TracerScorer, TracerSignals
from trajscore.tracer.stated_confidence import StatedConfidence

NO_SCORE = ""
RISKS = {
    "TRACER": TracerScorer(),
    "repetition": TracerScorer(beta=0, gamma=0),
    "agent gap": TracerScorer(alpha=0, gamma=0),
    "user gap": TracerScorer(alpha=0, beta=0),
    "tool calls": ChannelRisk("tool_calls", kind="count"),
}
"""What is judged of a log that holds no confidence: minus each of these risks."""
_SIGNALS = ("surprisal", "repetition", "agent_gap", "user_gap")

Predictors = TrajectoryArray | dict[str, TrajectoryArray]


# What an option of the command line is called that a sentence names.
OPTIONS = {name: f"--{name}" for name in ("outcome", "confidence", "id", "outcomes")}
OPTIONS |= {
    "rule": "--stop",
    "roles": "--role",
    "scores": "--score",
    "scales": "--scale",
    "risks": "--risk",
}


@dataclass(frozen=True)
class Inputs:
    """What can be judged, as `evaluate` takes it, and what was found and guessed to get there.

    Why runs ended stands in their meta. The text is for a person to read.
    """

    predictors: Predictors
    y: NDArray[Any]
    groups: NDArray[Any] | None = None
    lines: tuple[str, ...] = ()  # what was guessed, found, left out
    spent: dict[str, NDArray[Any]] = field(default_factory=dict)
    log: Sequence[io.Run] = ()
    outcome: str = ""  # column of outcomes
    n_left_out: int = 0  # runs of a log
    has_ids: bool = True
    group: str | None = None  # column of `groups`

    def __str__(self) -> str:
        return visible("\n".join(self.lines))


def load(
    path: Path | None,
    fields: Fields = USUAL_FIELDS,
    *,
    format: str | None = None,  # noqa: A002
    outcome_map: Any = None,
    outcomes: Any = None,
    rule: Rule | None = None,
    first_step: int | None = None,
    embedder: str | None = None,
    by: Sequence[str] = (),
    missing: str | None = None,
    needs_scores: bool = True,
    keep_lost: bool = False,
    max_size: int | None = None,
    roles: Any = None,
) -> Inputs:
    """Load the predictors of a table with one row a step, of a log of runs, or of bundled data.

    What `fields` does not name is looked for under usual names. Of a log, its ``scores`` are names
    of predictors and its ``group`` is a column of `trajscore.io.meta`. `format`, `outcome_map`,
    `outcomes`, `rule`, `max_size` and `roles` are as in `trajscore.io.read_runs`, `embedder` as in
    `trajscore.TracerSignals`, `missing` as in `trajscore.evaluate`; None where a command does not
    fill values. The columns of a table that `by` names come along in the meta of the predictors.
    Where nothing is a score and none is needed, there is one without a name, of nothing but steps;
    a table may have a row a run then.
    Runs that the harness lost may be kept, as recorded; `trajscore.evaluate` leaves them out.
    """
    if path is None:
        X, y = load_chess(return_X_y=True)
        line = "no table was given: judging the bundled chess data (see datasets.load_chess)"
        X = X[list(fields.scores)] if fields.scores else X
        return Inputs(X, y, lines=(line,), outcome="won")
    known = format_of(path, format, fields, max_size)
    asked = {"outcome_map": outcome_map, "outcomes": outcomes, "rule": rule, "max_size": max_size,
             "keep_lost": keep_lost}  # fmt: skip
    if known is None:
        _refuse(f"is for logs, but {path} is a table", embedder=embedder, roles=roles)
        asked["may_be_runs"] = not needs_scores
        try:
            return _load_table(path, fields, first_step, by, **asked)
        except ArgumentError as error:
            if needs_scores or fields.scores or error.part != "scores":
                raise
        return _load_table(path, replace(fields, scores=(NO_SCORE,)), first_step, by, **asked)
    parts = fields.named_parts
    of_tables: dict[str, Any] = {
        "first_step": first_step,
        "risks": fields.risks,
        "wide": fields.wide,
    }
    if known.name == "jsonl" and fields.step is not None:
        parts |= {"step": fields.step}
    else:
        of_tables["step"] = fields.step
    _refuse(f"is for tables, but {path} is a log", **of_tables)
    asked |= {"roles": roles} | ({"fields": parts} if parts else {})
    own_embedder = (embedder or "char") if needs_scores else None
    inputs = _load_log(path, known, fields, own_embedder, missing, asked)
    check_by(by, list(io.meta(inputs.log)))
    return inputs


def _refuse(why: str, **options: Any) -> None:
    for name, value in options.items():
        if value not in (None, ()):
            raise ArgumentError(f"{{argument}} {why}; leave it out", name)


def format_of(path: Path, name: str | None, fields: Fields, max_size: int | None) -> Format | None:
    """Return the format of a log, named or recognised; None for a table."""
    if not fields.named_parts:
        if name is not None:
            return find_format(name)
        return detect_log(path, max_size)
    if name not in (None, "jsonl"):
        raise ArgumentError(
            f"{{argument}} names the parts of JSON in no known format, and the format is {name}; "
            f"leave one of them out",
            "fields",
        )
    return find_format("jsonl")


# ------------------------------------------------------------------ tables


def _load_table(
    path: Path,
    fields: Fields,
    first_step: int | None,
    by: Sequence[str],
    *,
    outcome_map: Any,
    outcomes: Any,
    rule: Rule | None,
    max_size: int | None,
    may_be_runs: bool,
    keep_lost: bool,
) -> Inputs:
    meanings = check_map(outcome_map)
    check_polarity(fields.outcome, meanings)
    frame, fields, remarks, there = _read_steps(path, fields, outcomes, rule, max_size)
    has_ids = True
    if may_be_runs and _has_no_steps(frame, fields):
        remarks += ("no column has steps, so each row is a run of one step",)
        ids = fields.ids or usual_names("id", frame.columns)[:1] or ("run",)
        has_ids = ids[0] in frame
        frame = frame if has_ids else frame.assign(run=np.arange(len(frame)))
        fields = replace(fields, id=ids, step=ROWS)
    if fields.scores == (NO_SCORE,):
        frame = frame.assign(**{NO_SCORE: 0.0})
    chosen, guessed = choose_columns(frame, fields, there)
    remarks += _notes_on_outcome(frame, fields.outcome or str(chosen.outcome), meanings)
    frame = with_scales(frame, chosen)
    step = None if chosen.step == ROWS and ROWS not in frame else chosen.step
    frame, notes = agent_rows(frame, replace(chosen, step=step))
    remarks += notes
    if NO_SCORE in frame and step is not None:  # a row without a step has no value
        frame[NO_SCORE] = frame[NO_SCORE].where(frame[step].notna())
    first = guess_first_step(frame, chosen) if first_step is None else first_step
    group = chosen.group or task_column(frame, chosen)
    check_by(by, there)
    per_run = list(dict.fromkeys(name for name in (group, *by) if name is not None))
    stops = fields.stop_reason or stop_columns(frame.drop(columns=list(chosen.scores)))
    X, y, ended = runs_of_table(
        TrajectoryArray,
        frame,
        id=list(chosen.ids),
        step=step,
        value=list(chosen.scores),
        outcome=chosen.outcome,
        outcome_map=outcome_map,
        horizon=None,
        meta=per_run,
        first_step=first,
        missing="allow",
        stop_reason=stops,
        rule=rule,
        keep_lost=keep_lost,
    )
    counts = np.ones(len(y), dtype=bool)  # the runs that the harness did not lose
    if ended is not None:
        counts = (X.meta["stop_kind"] != EXCLUDED).to_numpy()
    groups = None if group is None else X.meta[group]
    if groups is not None and pd.api.types.infer_dtype(groups).startswith("mixed"):
        groups = groups.astype(str)
    not_used: list[str] = []
    if "scores" in guessed:
        X, not_used = without_leaky_columns(X, y, counts)
        guessed["scores"] = X.channels or ()
    not_used += note_on_unused(frame.drop(columns=per_run), chosen)
    scaled = {*chosen.risks, *(name for name, _ in chosen.scales)}
    not_used += [
        f"column {name!r} has values above 1, which are judged as they are; if one means "
        f"certainty, such as 100, pass --scale {name}=100"
        for name in beyond_unit(frame, [own for own in X.channels or () if own not in scaled])
    ]
    counted = first if first_step is None and step is not None else None
    if ended is not None:
        remarks += tuple(
            ArgumentError(note).in_options(OPTIONS)
            for note in notes_on_stops(ended.stop_counts, len(ended.y))
        )
        lost = (name for kind, name in ended.stop_counts if kind == EXCLUDED)
        remarks += _not_met(rule, [*X.meta["stop_reason"], *lost])
    elif rule is not None:
        remarks += ("--stop: no column of stop reasons was found; name it with --stop-reason",)
    remarks += notes_on_trials(frame, chosen.ids)
    lines = (*guesses(guessed, counted), *not_used, *remarks, *_clusters(group, groups, counts))
    spent = spent_in_table(frame, joined_ids(frame, chosen.ids), X)
    outcome = str(chosen.outcome)
    return Inputs(X, y, groups, lines, spent, outcome=outcome, has_ids=has_ids, group=group)


def guesses(guessed: dict[str, tuple[str, ...]], first_step: int | None) -> list[str]:
    """Say which columns were taken for what, and from which step runs are counted."""
    parts = [
        f"{PARTS.get(part, part)}: column{'s' * (len(names) > 1)} {', '.join(map(repr, names))}"
        for part, names in guessed.items()
    ]
    if first_step not in (None, 1):
        parts.append(f"steps are counted from {first_step}")
    return ["guessed " + "; ".join(parts)] if parts else []


def _read_steps(
    path: Path,
    fields: Fields,
    outcomes: Any,
    rule: Rule | None,
    max_size: int | None,
) -> tuple[pd.DataFrame, Fields, tuple[str, ...], list[Any]]:
    """Read a table with one row a step, its names, what was done to get it, and its columns."""
    frame = read_table(path, max_size)
    if frame.empty:
        raise ValueError("the table has no rows; give at least one step of one run")
    frame, fields, how = as_long(frame, fields)
    own = {*frame.columns, "stop_reason"}
    frame, fields, remarks = join_outcomes(frame, fields, outcomes, rule, max_size)
    return frame, fields, (*how, *remarks), [name for name in frame.columns if name in own]


def _notes_on_outcome(
    frame: pd.DataFrame, outcome: str, meanings: Mapping[str, float]
) -> tuple[str, ...]:
    """Say how outcomes were read, where their name or their words are not plain."""
    bare = bare_name(outcome, frame.columns)
    words = note_on_words(frame[bare].dropna(), meanings)
    turned = turned_note(bare) if bare != outcome else ""
    return tuple(filter(None, (turned, words)))


def check_by(by: Sequence[str], columns: Sequence[Any]) -> None:
    """Refuse groups by a column that is not there."""
    for name in by:
        if name not in columns:
            raise ArgumentError(f"{{argument}}: {unknown_name('column', name, columns)}", "by")


def _has_no_steps(frame: pd.DataFrame, fields: Fields) -> bool:
    """Whether a table has no column of steps, and no run has two rows."""
    ids = fields.ids or usual_names("id", frame.columns)[:1]
    if fields.step is not None or usual_names("step", frame.columns) or not set(ids) <= set(frame):
        return False
    return not ids or not joined_ids(frame, ids).duplicated().any()


def _not_met(rule: Rule | None, reasons: Any) -> tuple[str, ...]:
    """Say which stop reasons of a rule no run has."""
    if not isinstance(rule, Mapping):
        return ()
    there = normalize_reasons(reasons)
    names = ", ".join(name for name in dict.fromkeys(there.tolist()) if name) or "none"
    lost = [name for name in rule if normalize_reasons([name])[0] not in there]
    return tuple(f"--stop: no run was stopped by {name!r}; there are: {names}" for name in lost)


def task_column(frame: pd.DataFrame, chosen: Fields) -> str | None:
    """Return the column of tasks, if every run is of one, and there are several."""
    keys = [frame[name] for name in chosen.ids]
    for name in usual_names("task", frame.columns):
        if frame[name].dtype == object and not frame[name].map(pd.api.types.is_hashable).all():
            continue
        codes = pd.Series(pd.factorize(frame[name])[0], index=frame.index)
        is_of_run = (codes == codes.groupby(keys).transform("first")).all()
        if is_of_run and codes.min() == 0 and codes.max() > 0:
            return str(name)
    return None


def note_on_unused(frame: pd.DataFrame, chosen: Fields) -> list[str]:
    """Name the columns that have neither a part nor a usual name, if there are any."""
    unused, numbers = unused_columns(frame, chosen)
    how = f"; to judge one, pass --score {numbers[0]}" if numbers else ""
    names = ", ".join(map(str, unused[:10])) + ", ..." * (len(unused) > 10)
    return [f"{number_of(len(unused), 'column')} not used ({names}){how}"] if unused else []


# ------------------------------------------------------------------ logs


def _load_log(
    path: Path,
    format: Format,  # noqa: A002
    fields: Fields,
    embedder: str | None,
    missing: str | None,
    asked: dict[str, Any],
) -> Inputs:
    named = {name: getattr(fields, name) for name in ("id", "outcome", "confidence", "stop_reason")}
    keep_lost = asked.pop("keep_lost")
    stream = stream_runs(path, format, asked | named)
    log = io.Runs(stream)
    if not log:
        raise ValueError(f"{path}: the log holds no run that can be judged")
    y = io.outcomes(log)
    lost = _lost(log) if keep_lost else []
    runs, counts = [*log, *lost], np.arange(len(log) + len(lost)) < len(log)
    if problem := stream.findings.problem():
        raise ArgumentError(f"{path}: {problem}")
    tops = dict(fields.scales)
    for name in tops.keys() - {"verbal"}:
        known = unknown_name("predictor with a scale", name, ["verbal"])
        raise ArgumentError(f"{{argument}}: {known}", "scales")
    lines = [count_left_out(log.left_out, len(log))] if log.left_out else []
    predictors, how = _confidences(log, lost, y, missing, tops.get("verbal", "auto"))
    lines += how
    if not predictors and (embedder or fields.scores):
        unread = "no confidence of the log could be read"
        none = "the log has no confidence (neither token log-probabilities nor stated ones)"
        why = unread if stream.findings.tally.unread_logprobs else none
        lines.append(f"{why}; judging it by minus TRACER's risk")
        predictors, how = _risks(log, lost, embedder or "char")
        lines += how
    elif not predictors:
        steps = StepConfidence().fit_transform(runs)
        predictors = {NO_SCORE: steps.with_cells(np.zeros(len(steps.cells)))}
    for name in fields.scores:
        if name not in predictors:
            raise ArgumentError(
                f"{{argument}}: {unknown_name('predictor', name, list(predictors))}", "scores"
            )
    if fields.scores:
        predictors = {name: predictors[name] for name in fields.scores}
    excluded = [run.reason for run in log.left_out if run.kind == "excluded"]
    unmet = _not_met(asked["rule"], [*(run.stop_reason for run in log), *excluded])
    unused = [*stream.findings.notes(), *unmet]
    unused += [] if "verbal" in tops else _unknown_scale(log)
    lines += [ArgumentError(remark).in_options(OPTIONS) for remark in unused]
    group, groups = _groups(runs, fields.group, counts)
    lines += _clusters(group, groups, counts)
    n, spent = len(log.left_out), spent_in_log(runs)
    y = io.outcomes(runs) if lost else y
    return Inputs(predictors, y, groups, tuple(lines), spent, runs, n_left_out=n, group=group)


def _lost(runs: io.Runs) -> list[io.Run]:
    """Return the runs that the harness lost, if they can be read and were not run again."""
    again = {run.id for run in runs}
    lost = {left.run.id: left.run for left in runs.left_out if left.run is not None}
    return [run for name, run in lost.items() if name not in again]


def _clusters(group: str | None, groups: Any, counts: Any) -> list[str]:
    """Say how many clusters the runs that count are of."""
    if group is None:
        return []
    return [f"{number_of(pd.Series(groups)[counts].nunique(), 'cluster')} of runs by {group!r}"]


def _confidences(
    runs: list[io.Run], lost: list[io.Run], y: NDArray[Any], missing: str | None, scale: str | float
) -> tuple[dict[str, TrajectoryArray], list[str]]:
    """Return the confidences that enough runs have at every turn of the agent; and lines."""
    signals = StepConfidence(scale=scale)
    X = signals.fit_transform(runs)
    there = ~np.isnan(X.cells)
    filled = X.ffill()
    used = filled if missing == "ffill" else X
    whole = {name: whole_runs(used[name]) for name in X.channels or ()}
    X = _followed_by(X, signals, lost)
    predictors, lines, too_rare = {}, [], []
    for column, name in enumerate(whole):
        share = float(there[:, column].mean())
        how_often = f"{name}: in {share:.0%} of the agent's turns"
        if outcomes_vary(y[whole[name]]):
            predictors[name] = X[name]
            lines.append(how_often)
        elif share:
            remedy = " (--missing ffill uses the value before)" * (
                missing is not None and outcomes_vary(y[whole_runs(filled[name])])
            )
            too_rare.append(f"{how_often}; too few runs have it at every turn{remedy}")
    return predictors, lines + too_rare


def _unknown_scale(runs: list[io.Run]) -> list[str]:
    """Say how many stated confidences are missing because their scale is not known."""
    steps = [step for run in runs for step in run.steps if step.actor == "agent"]
    percent = StatedConfidence(scale=100.0)(steps)
    unread = np.isnan(StatedConfidence()(steps)) & ~np.isnan(percent)
    if not unread.any():
        return []
    n, top = number_of(int(unread.sum()), "stated confidence"), 100 if (percent > 0.1).any() else 10
    return [f"{n} not read; pass {{argument:scales=verbal={top}}}, if {top} means certainty"]


def _risks(
    runs: list[io.Run], lost: list[io.Run], embedder: str
) -> tuple[dict[str, TrajectoryArray], list[str]]:
    """Return the negative of TRACER's risk, of its parts, of the number of calls; and what is said.

    Turns are counted, and those with each signal.
    """
    signals = TracerSignals(embedder)
    S = signals.fit_transform(runs)
    begun = S[S.lengths > 0]
    there = (~np.isnan(S[list(_SIGNALS)].cells)).sum(axis=0).tolist()
    of_all = _followed_by(S, signals, lost)
    counts = ", ".join(f"{name} {n:,}" for name, n in zip(_SIGNALS, there, strict=True))
    with warnings.catch_warnings(record=True) as caught:  # TRACER says it by warnings only
        warnings.simplefilter("always")
        judged = of_all[of_all.lengths > 0]
        risks = {name: clone(scorer).fit(begun).transform(judged) for name, scorer in RISKS.items()}
    lines = [f"TRACER signals present in {number_of(len(S.cells), 'turn')}: {counts}"]
    lines += dict.fromkeys(str(warning.message) for warning in caught)
    return {
        name: of_all.with_cells(_as_confidence(risk).cells.ravel()) for name, risk in risks.items()
    }, lines


def _followed_by(X: TrajectoryArray, signals: Any, lost: list[io.Run]) -> TrajectoryArray:
    """Put the signals of the runs that the harness lost after those of the others."""
    return X.concat([X, signals.transform(lost)]) if lost else X


def _as_confidence(risk: TrajectoryArray) -> TrajectoryArray:
    """Return minus a risk: 0 before the first one of a run, missing where a run has none."""
    values = -risk.cells.ravel()
    has_one = np.repeat(~np.isnan(values[last_cells(risk)]), risk.lengths)
    return risk.with_cells(np.where(np.isnan(values) & has_one, 0.0, values))


def _groups(
    runs: list[io.Run], group: str | None, counts: NDArray[np.bool_]
) -> tuple[str | None, NDArray[Any] | None]:
    """Return the clusters asked for, else the tasks if all runs have one, and their column."""
    table = io.meta(runs)
    column = group or "task"
    if column not in table:
        known = unknown_name("column", column, list(table.columns))
        raise ArgumentError(f"{{argument}}: {known}", "group")
    named = table[column][counts]
    if named.isna().any() or named.nunique() < 2:
        if group is not None:
            raise ArgumentError(
                f"{{argument}}: column {group!r} does not name two clusters of runs", "group"
            )
        return None, None
    return column, table[column].astype(str).to_numpy(dtype=object)
