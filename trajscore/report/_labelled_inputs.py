"""Runs of which few are labelled: a judge's verdicts from a file, and labels from another."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from trajscore.core.array import TrajectoryArray
from trajscore.core.errors import ArgumentError
from trajscore.core.outcomes import CENSORED
from trajscore.core.stops import normalize_reasons, recorded_stops
from trajscore.core.type_aliases import BoolArray
from trajscore.core.values import number_of
from trajscore.io.fields import USUAL_FIELDS, Fields
from trajscore.io.outcome_tables import LABEL_PROBABILITY, read_labels
from trajscore.report._inputs import Inputs, load


def load_labelled(
    path: Path | None,
    fields: Fields = USUAL_FIELDS,
    *,
    judge: str | None = None,
    labels: Any = None,
    to_draw: bool = False,
    **reading: Any,
) -> Inputs:
    """Load runs as `load` does; with a judge or labels, their outcomes are those of the labels.

    `judge` names the field or column of its verdicts, which are read as outcomes are. `labels` is a
    table as `trajscore label` writes it; without its column of chances, all runs are taken to have
    been equally likely. `to_draw` is whether more runs are to be chosen: then these chances must be
    known, and the outcomes may all be missing. Runs that were stopped before a verdict have no
    chance of being labelled.
    """
    if judge is None and labels is None and not to_draw:
        return load(path, fields, **reading)
    instead = "judge" if judge is not None else "labels"
    if path is None:
        raise ArgumentError("{argument} needs a table or a log; name it", instead)
    for name, value in {"outcome": fields.outcome, "outcomes": reading.get("outcomes")}.items():
        if value is not None:
            raise _outcomes_elsewhere(name, None if judge is None and labels is None else instead)
    # a verdict is an outcome by somebody else
    inputs = _load_verdicts(path, fields, judge, reading)
    verdict, n_runs = (None if judge is None else inputs.y), len(inputs.y)
    lost = np.zeros(n_runs, dtype=bool) if verdict is None else verdict == CENSORED
    if (without := lost & ~has_stop(inputs)).any():
        raise ArgumentError(
            f"{{argument}}: run {str(ids_of(inputs)[np.argmax(without)])!r} has no verdict; get "
            f"one for every run, or leave {{argument}} out",
            "judge",
        )
    y, probability, notes = np.full(n_runs, CENSORED), None, tuple[str, ...]()
    if labels is not None:
        y, probability, notes = read_labels(labels, fields, ids_of(inputs), reading["outcome_map"])
    n_labelled = int((y != CENSORED).sum())
    if labels is not None:
        _check_labels(labels, n_labelled, probability is not None, to_draw)
    if probability is None and (lost.any() or (n_labelled and verdict is None)):
        probability = np.full(n_runs, n_labelled / max((~lost).sum(), 1))
        notes += ("each run is taken to have been equally likely to be labelled",) * (
            labels is not None
        )
    if verdict is not None and probability is not None and lost.any():
        verdict = np.where(lost, 0, verdict)
        probability = np.where(lost & (y == CENSORED), np.nan, probability)
    return replace(inputs, y=y, judge=verdict, label_probability=probability, remarks=(*notes,))


def _outcomes_elsewhere(name: str, instead: str | None) -> ArgumentError:
    """Say that outcomes are not read from what argument `name` names."""
    if instead is None:
        return ArgumentError(
            "{argument} is not used to choose runs to label; leave it out, or if outcomes are "
            "known, judge with them: trajscore report",
            name,
        )
    return ArgumentError(
        f"{{argument}} and {{argument:{name}}} exclude each other; outcomes come from "
        f"{{argument:labels}}",
        instead,
    )


def _load_verdicts(path: Path, fields: Fields, judge: str | None, reading: Any) -> Inputs:
    """Load runs with a judge's verdicts as outcomes; an error names the judge."""
    if judge is None:
        reading = {**reading, "outcomes": {}}
    try:
        return load(path, replace(fields, outcome=judge), **reading)
    except ArgumentError as error:
        if judge is None or error.part != "outcome":
            raise
        text = error.text.replace("{argument:outcome=", "{argument:judge=")
        raise ArgumentError(text, "judge", error.value) from error


def _check_labels(labels: Any, n_labelled: int, has_chances: bool, to_draw: bool) -> None:
    """Refuse a file of labels without outcomes, or that does not say what more are drawn by."""
    if not n_labelled and not to_draw:
        raise ArgumentError(
            f"{{argument}}: no outcome is filled in in {labels}; write 1 or 0 in its column "
            f"outcome",
            "labels",
        )
    if n_labelled and to_draw and not has_chances:
        raise ArgumentError(
            f"{{argument}}: {labels} has {number_of(n_labelled, 'outcome')}, but no column "
            f"{LABEL_PROBABILITY}, so by which chance they were chosen is not known; give a file "
            f"that trajscore label wrote",
            "labels",
        )


def ids_of(inputs: Inputs) -> Any:
    """Return the ids of the runs."""
    return _first(inputs).ids


def has_stop(inputs: Inputs) -> BoolArray:
    """Whether each run has a stop reason."""
    reasons, _ = recorded_stops(_first(inputs).meta, inputs.stop_reason)
    if reasons is None:
        return np.zeros(len(inputs.y), dtype=bool)
    return np.asarray(normalize_reasons(reasons) != "")


def _first(inputs: Inputs) -> TrajectoryArray:
    X = inputs.predictors
    return X if isinstance(X, TrajectoryArray) else next(iter(X.values()))
