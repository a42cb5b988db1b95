"""Loading predictors from a table, a log or bundled data; and how a log is loaded."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone

from trajscore import io
from trajscore.core.array import TrajectoryArray
from trajscore.core.errors import ArgumentError
from trajscore.core.outcomes import CENSORED, as_verdicts, outcomes_vary
from trajscore.core.stops import EXCLUDED, names_among
from trajscore.core.values import AnyArray, as_numbers, check_known, number_of, parse_numbers
from trajscore.core.within_runs import last_cells, whole_runs
from trajscore.datasets import load_chess
from trajscore.io._selection import Tally
from trajscore.io.fields import SCORES, Fields, dig, scalar, usual_names
from trajscore.io.files import TABLE_ENDINGS, has_ending, read_table
from trajscore.io.reading import stream_runs
from trajscore.io.registry import Format, find_format
from trajscore.io.runs import count_left_out
from trajscore.loading.detection import detect_log
from trajscore.loading.tables import (
    COSTS,
    NO_SCORE,
    Inputs,
    LoadRequest,
    NoteText,
    load_table,
    note_on_clusters,
    notes_on_rule,
)
from trajscore.metrics.first_error import first_error_labels
from trajscore.tracer import ChannelRisk, StepConfidence, TracerScorer, TracerSignals
from trajscore.tracer.step_confidence import StatedConfidence
from trajscore.tracer.turns import Turns, take_turns

RISKS = {
    "TRACER": TracerScorer(),
    "repetition": TracerScorer(beta=0, gamma=0),
    "agent gap": TracerScorer(alpha=0, gamma=0),
    "user gap": TracerScorer(alpha=0, beta=0),
    "tool calls": ChannelRisk("tool_calls", kind="count"),
}
"""A log without a confidence is judged by minus each of these risks."""

_VERBAL = "verbal"  # the channel of what turns state
_SIGNALS = ("surprisal", "repetition", "agent_gap", "user_gap")


def load(path: Path | None, request: LoadRequest) -> Inputs:
    """Load the predictors of a table with one row a step, of a log of runs, or of bundled data.

    What the fields do not name is looked for under usual names. A file without a score, where none
    is needed, gives one predictor that has no name and nothing but steps.
    """
    fields = request.fields
    if path is None:
        _refuse(vars(replace(fields, scores=())), "is for a file, and none was named")
        X, y = load_chess(return_X_y=True)
        if fields.scores:
            X = X[list(fields.scores)]
        note = "no table was given: judging the bundled chess data (see datasets.load_chess)"
        return Inputs(X, y, notes=(note,), outcome="won")
    parts = fields.named_parts
    name = request.format or ("jsonl" if parts else None)
    names_columns = False
    if has_ending(path, TABLE_ENDINGS):
        columns = {*read_table(path, request.max_size, 1)}
        names_columns = bool(fields.wide or fields.step or columns.intersection(fields.predictors))
    if name is not None:
        log_format = find_format(name)
    elif names_columns:
        log_format = None
    else:
        log_format = detect_log(path, request.max_size)
    if log_format is None:
        reason = f"is for logs, but {path} is a table"
        _refuse({"embedder": request.embedder, "roles": request.roles}, reason)
        return load_table(path, request)
    of_tables = {name: getattr(fields, name) for name in ("risks", "wide", "step")}
    of_tables["first_step"] = request.first_step
    if log_format.name == "jsonl" and fields.step is not None:
        parts["step"] = of_tables.pop("step")
    _refuse(of_tables, f"is for tables, but {path} is a log")
    inputs = _load_log(path, log_format, request, parts)
    check_known(request.by, io.meta(inputs.log), "column", "by")
    return inputs


def _refuse(arguments: dict[str, Any], reason: str) -> None:
    for name, value in arguments.items():
        if value not in (None, ()):
            raise ArgumentError(f"{{argument}} {reason}; leave it out", name)


def _load_log(
    path: Path, log_format: Format, request: LoadRequest, parts: dict[str, str]
) -> Inputs:
    fields = request.fields
    names = ("outcome_map", "outcomes", "rule", "max_size", "roles")
    options = {name: getattr(request, name) for name in names}
    for name in ("id", "outcome", "confidence", "stop_reason"):
        options[name] = getattr(fields, name)
    stream = stream_runs(path, log_format, options | {"fields": parts})
    log = io.Runs(stream)
    if not log:
        raise ValueError(f"{path}: the log holds no run that can be judged")
    if request.needs_outcomes and (problem := stream.findings.outcome_problem()):
        raise ArgumentError(f"{path}: {problem}")
    lost = _lost_runs(log) if request.keep_lost else []
    runs = [*log, *lost]
    notes = []
    if log.left_out:
        notes.append(count_left_out(log.left_out, len(log)))
    tally = stream.findings.tally
    stated = _stated_name(tally)
    predictors = _predictors(log, lost, request, tally, stated, notes)
    for used in (fields.label, *fields.scores):
        tally.unused.pop(("step", str(used)), None)
    notes += stream.findings.notes()
    excluded = [run.reason for run in log.left_out if run.kind == EXCLUDED]
    notes += notes_on_rule(request.rule, [*(run.stop_reason for run in log), *excluded])
    if stated not in dict(fields.scales):
        notes += _note_on_scale(log, stated)
    group, groups = _groups(runs, fields.group, len(log))
    if group is not None:
        notes.append(note_on_clusters(group, groups[: len(log)]))
    return Inputs(
        predictors,
        io.outcomes(runs),
        groups,
        tuple(notes),
        _costs(runs),
        runs,
        n_left_out=len(log.left_out),
        group=group,
        first_error=_first_error(runs, fields, predictors),
    )


def _first_error(
    runs: Sequence[io.Run], fields: Fields, predictors: Mapping[str, TrajectoryArray]
) -> AnyArray | None:
    """Return the first wrong step of each run, if a field of runs or of steps says it."""
    label = fields.label
    if label is None:
        return None
    turns = turns_of(predictors, runs)
    is_verdict = fields.step_label is not None
    if not (is_verdict or turns.is_agent.all()):
        raise ArgumentError(
            "{argument}: turns of users are steps here, too, so a number may mean another one; "
            "label steps, with {argument:step_label}",
            "first_error",
        )
    labels = _field_of(turns, label, is_verdict)
    if labels is None:
        raise ValueError(f"no run or turn says anything in a field {label!r}; name another one")
    return first_error_labels(labels, is_verdict)


def turns_of(predictors: Mapping[str, TrajectoryArray], runs: Sequence[io.Run]) -> Turns:
    """Return the turns of a log that the steps of its predictors are."""
    turns = take_turns(runs, ("agent",), "report")
    if np.array_equal(turns.lengths, next(iter(predictors.values())).lengths):
        return turns
    return take_turns(runs, ("agent", "user"), "report")


def _field_of(turns: Turns, name: str, is_verdict: bool = True) -> TrajectoryArray | None:
    """Return the numbers, or verdicts, in a field of turns or of their runs; None without any.

    A user's turn without a verdict is right.
    """
    of_runs = [run.meta | run.extra | run.scores for run in turns.runs]
    pairs = zip(turns.run_of, turns.steps, strict=True)
    records = [of_runs[row] | step.extra | step.scores for row, step in pairs]
    fields = [scalar(dig(record, name)) for record in records]
    values = as_verdicts(fields, name) if is_verdict else as_numbers(fields, f"field {name!r}")
    missing = np.isnan(values)
    if missing.all():
        return None
    values[missing & ~turns.is_agent & is_verdict] = 1.0
    return turns.container(values[:, None], [name])


def _lost_runs(runs: io.Runs) -> list[io.Run]:
    """Return the runs that an infrastructure error ended, if readable and not run again."""
    readable = {run.id for run in runs}
    lost = {left.run.id: left.run for left in runs.left_out if left.run is not None}
    return [run for name, run in lost.items() if name not in readable]


def _stated_name(tally: Tally) -> str:
    """Return the name of stated confidences: of the field that holds them, if it has its own."""
    names = {name for (part, name), n in tally.used.items() if part == "confidence" and n}
    names.discard("confidence")
    return names.pop() if len(names) == 1 else _VERBAL


def _predictors(
    log: io.Runs,
    lost: list[io.Run],
    request: LoadRequest,
    tally: Tally,
    stated: str,
    notes: list[NoteText],
) -> dict[str, TrajectoryArray]:
    """Return the confidences of a log, else minus risks, else its steps alone; note which."""
    fields = request.fields
    scales = dict(fields.scales)
    check_known(scales, [stated], "predictor with a scale", "scales")
    signals = StepConfidence(scale=scales.get(stated, "auto"))
    predictors, coverage = _confidences(log, lost, request.missing, signals, stated)
    for name in set(fields.scores).difference(predictors, RISKS, signals.get_feature_names_out()):
        verdicts = _field_of(take_turns([*log, *lost], ("agent",), "report"), name)
        if verdicts is not None:
            predictors[name] = verdicts
    notes += coverage
    if not predictors and (request.needs_scores or fields.scores):
        reason = "the log has no confidence (neither token log-probabilities nor stated ones)"
        if tally.unread_logprobs:
            reason = "no confidence of the log could be read"
        elif coverage:
            reason = "no confidence covers enough turns"
        text = f"{reason}; judging it by minus these risks: {', '.join(fields.scores or RISKS)}"
        judgements = () if coverage else names_among(SCORES, tally.names_of_turns)
        if judgements:
            name = judgements[0]
            text += f"; to judge field {name!r} of turns, pass {{argument:confidence={name}}}"
        notes.append(text)
        predictors = _confidences_of_risks(log, lost, request.embedder or "char", notes)
    elif not predictors:
        steps = StepConfidence().fit_transform([*log, *lost])
        predictors = {NO_SCORE: steps.with_cells(np.zeros(len(steps.cells)))}
    check_known(fields.scores, predictors, "predictor", "scores")
    return {name: predictors[name] for name in fields.scores or predictors}


def _confidences(
    runs: io.Runs, lost: list[io.Run], missing: str | None, signals: StepConfidence, stated: str
) -> tuple[dict[str, TrajectoryArray], list[NoteText]]:
    """Return the confidences that enough runs have at every turn, and say how many turns do."""
    X = signals.fit_transform(runs)
    y = io.outcomes([*runs])  # without asking for one
    has_outcomes = (y != CENSORED).any()
    filled = X.ffill()
    shares = (~np.isnan(X.cells)).mean(axis=0)
    of_all = _followed_by(X, signals, lost)
    predictors = {}
    notes = []
    too_rare = []

    def has_enough(trace: TrajectoryArray) -> bool:
        rows = whole_runs(trace)
        return outcomes_vary(y[rows]) if has_outcomes else bool(rows.any())

    for channel, share in zip(X.channels or (), shares, strict=True):
        name = stated if channel == _VERBAL else channel
        frequency = f"{name}: in {share:.0%} of the agent's turns"
        is_enough_filled = has_enough(filled[channel])
        if has_enough(X[channel]) or (is_enough_filled and missing == "ffill"):
            predictors[name] = of_all[channel]
            notes.append(frequency)
        elif share:
            text = f"{frequency}; too few runs have it at every turn"
            if missing is not None and is_enough_filled:
                text += " ({argument:missing=ffill} uses the value before)"
            too_rare.append(text)
    return predictors, notes + too_rare


def _note_on_scale(runs: io.Runs, stated: str) -> list[NoteText]:
    """Say how many stated confidences are missing because their scale is not known."""
    steps = [step for run in runs for step in run.steps if step.actor == "agent"]
    percent = StatedConfidence(scale=100.0)(steps)
    unread = np.isnan(StatedConfidence()(steps)) & ~np.isnan(percent)
    if not unread.any():
        return []
    count = number_of(unread.sum(), "stated confidence")
    top = 100 if (percent > 0.1).any() else 10
    return [f"{count} not read; pass {{argument:scales={stated}={top}}}, if {top} means certainty"]


def _confidences_of_risks(
    runs: io.Runs, lost: list[io.Run], embedder: str, notes: list[NoteText]
) -> dict[str, TrajectoryArray]:
    """Return minus TRACER's risk, its parts, and the number of calls; note the signals present."""
    signals = TracerSignals(embedder)
    S = signals.fit_transform(runs)
    begun = S[S.lengths > 0]
    counts = (~np.isnan(S[list(_SIGNALS)].cells)).sum(axis=0).tolist()
    of_all = _followed_by(S, signals, lost)
    started = of_all[of_all.lengths > 0]
    predictors = {}
    with warnings.catch_warnings(record=True) as caught:  # TRACER says it by warnings only
        warnings.simplefilter("always")
        for name, scorer in RISKS.items():
            risk = clone(scorer).fit(begun).transform(started)
            values = -risk.cells.ravel()
            # 0 before the first risk of a run, missing where a run has none
            has_risk = np.repeat(~np.isnan(values[last_cells(risk)]), risk.lengths)
            values[np.isnan(values) & has_risk] = 0.0
            predictors[name] = of_all.with_cells(values, channels=[name])
    present = ", ".join(f"{name} {n:,}" for name, n in zip(_SIGNALS, counts, strict=True))
    notes.append(f"TRACER signals present in {number_of(len(S.cells), 'turn')}: {present}")
    notes += dict.fromkeys(str(warning.message) for warning in caught)
    return predictors


def _followed_by(X: TrajectoryArray, signals: Any, lost: list[io.Run]) -> TrajectoryArray:
    """Put the signals of the runs that an infrastructure error ended after those of the others."""
    return X.concat([X, signals.transform(lost)]) if lost else X


def _groups(runs: Sequence[io.Run], group: str | None, n_counted: int) -> tuple[str | None, Any]:
    """Return the column asked for, else that of the tasks if all runs have one, and its values."""
    table = io.meta(runs)
    column = group or "task"
    check_known([column], table, "column", "group")
    counted = table[column].iloc[:n_counted]
    if counted.isna().any() or counted.nunique() < 2:
        if group is None:
            return None, None
        problem = f"column {group!r} does not name two clusters of runs"
        raise ArgumentError(f"{{argument}}: {problem}", "group")
    return column, table[column].astype(str).to_numpy(dtype=object)


def _costs(runs: Sequence[io.Run]) -> dict[str, AnyArray]:
    """What each run cost by what its log says of it, or of all of its steps."""
    table = pd.DataFrame([{**run.extra, **run.meta} for run in runs])
    costs = {}
    parts = {name: part for part in COSTS for name in usual_names(part, table.columns)[:1]}
    for name in table.columns:
        if name in parts or str(name).endswith(("_cost", "_tokens")):
            costs[parts.get(name, str(name))] = parse_numbers(table[name]).to_numpy(float)
    if "cost" not in costs:
        steps = [[step.cost for step in run.steps if step.actor == "agent"] for run in runs]
        # NaN of a run without a turn, or with one whose cost is not known
        sums = [np.array(values or [None], dtype=float).sum() for values in steps]
        costs["cost"] = np.array(sums)
    return {name: values for name, values in costs.items() if not np.isnan(values).all()}
