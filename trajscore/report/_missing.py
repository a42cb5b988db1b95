"""Runs in which a value of a predictor is missing: who is judged on which runs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from trajscore.core.array import TrajectoryArray
from trajscore.core.outcomes import differ
from trajscore.core.sample import Sample
from trajscore.core.type_aliases import BoolArray
from trajscore.core.values import check_choice
from trajscore.report._data import Note
from trajscore.report._left_out import without_values
from trajscore.report._runs import Judged

MISSING = ("same_runs", "own_runs", "ffill")


def fill_forward(sample: Sample, missing: str, notes: list[Note]) -> Sample:
    """Let a stated value hold until the next one is, if that is wanted."""
    check_choice(missing, "missing", MISSING)
    if missing != "ffill":
        return sample
    filled = {name: X.ffill() for name, X in sample.traces.items()}
    for name, X in sample.traces.items():
        if n_filled := int((np.isnan(X.cells) & ~np.isnan(filled[name].cells)).sum()):
            notes.append(Note(name, "filled", {"share": n_filled / len(X.cells)}))
    return replace(sample, traces=filled)


def leave_out_missing(judged: Judged, missing: str, notes: list[Note]) -> Judged:
    """Leave out predictors with too few complete runs, then incomplete runs."""
    whole = {name: whole_runs(X) for name, X in judged.traces.items()}
    for name in [name for name, rows in whole.items() if not differ(judged.runs.y[rows])]:
        notes.append(Note(name, "too few runs"))
        del whole[name]
    if not whole:
        raise ValueError(
            f"no predictor has enough runs without missing values; each of "
            f"{', '.join(judged.traces)} needs complete runs of both outcomes. missing='ffill' "
            f"lets a value hold until the next one"
        )
    traces = {name: judged.traces[name] for name in whole}
    excluded = dict(judged.excluded)
    if missing == "own_runs":
        for name, rows in whole.items():
            if not rows.all():
                excluded[name, without_values([name])] = int((~rows).sum())
        return replace(judged, traces=traces, excluded=excluded)
    common = np.logical_and.reduce(list(whole.values()))
    if not differ(judged.runs.y[common]):
        raise ValueError(
            f"{int(common.sum())} of {len(common)} runs have a value of every predictor at every "
            f"step, and they do not include both a success and a failure; leave out a predictor, "
            f"or pass missing='own_runs' to judge each on its own runs, or 'ffill' to let a value "
            f"hold until the next one"
        )
    excluded |= lost_runs(whole)
    return replace(judged, traces=traces, excluded=excluded).take(np.flatnonzero(common))


def lost_runs(whole: dict[str, BoolArray]) -> dict[tuple[str, str], int]:
    """Count the runs with missing values, by whose values are missing."""
    lost = np.stack([~rows for rows in whole.values()], axis=1)
    patterns, counts = np.unique(lost[lost.any(axis=1)], axis=0, return_counts=True)
    excluded = {}
    for pattern, n in zip(patterns[::-1], counts[::-1], strict=True):
        names = [name for name, is_missing in zip(whole, pattern, strict=True) if is_missing]
        excluded["all", without_values(names)] = int(n)
    return excluded


def whole_runs(trace: TrajectoryArray) -> BoolArray:
    """Find the runs without a missing value in any channel."""
    lost = np.isnan(trace.cells)
    if not lost.any():
        return np.ones(len(trace), dtype=bool)
    if lost.ndim > 1:
        lost = np.asarray(lost.any(axis=1))
    return np.asarray(~np.logical_or.reduceat(lost, trace.offsets[:-1]))
