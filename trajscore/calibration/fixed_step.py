"""Comparisons free of the length of runs: at one step, among runs of one length.

Forecasts that were made out of fold are compared within folds.
"""

from typing import Any

import numpy as np
import pandas as pd

from trajscore.calibration.cross_fit import folds_of
from trajscore.core.array import TrajectoryArray
from trajscore.core.outcomes import opposite
from trajscore.core.policy import MIN_RUNS_PER_OUTCOME
from trajscore.core.ranking import auroc_within
from trajscore.core.score_families import get_family
from trajscore.core.statistics import MeanOfRuns
from trajscore.core.type_aliases import FloatArray, IntArray
from trajscore.core.weights import score_cells
from trajscore.inference.intervals import any_units
from trajscore.inference.mean_intervals import interval_of, intervals_of_means

# Up to 10 steps a bin is one length; lengths of one bin differ by a tenth at most.
_WIDTH = 0.1
_FIRST_STEPS = (1, 2, 3, 4, 6, 8)


def length_bins(lengths: IntArray) -> IntArray:
    """Return the bin of each length: runs of one bin are equally long, or nearly so.

    >>> length_bins(np.array([9, 10, 11, 12, 13, 14])).tolist()
    [9, 10, 10, 11, 11, 12]
    """
    edges = [1]
    longest = int(lengths.max(initial=0))
    while edges[-1] <= longest:
        edges.append(int(edges[-1] * (1 + _WIDTH)) + 1)
    return np.searchsorted(edges, lengths, side="right")


def round_steps(longest: int) -> list[int]:
    """Return the steps at which forecasts are judged.

    >>> round_steps(60)
    [1, 2, 3, 4, 6, 8, 10, 15, 20, 30, 50]
    """
    decades = 10 ** np.arange(1, len(str(longest)))
    later = np.multiply.outer(decades, (1.0, 1.5, 2.0, 3.0, 5.0)).ravel().astype(int).tolist()
    return [t for t in [*_FIRST_STEPS, *later] if t <= longest]


def has_both(success: FloatArray) -> bool:
    """Whether there are enough runs of each outcome."""
    return bool(min(success.sum(), (1 - success).sum()) >= MIN_RUNS_PER_OUTCOME)


def at_step(X: TrajectoryArray, t: int) -> tuple[IntArray, FloatArray]:
    """Return the runs of at least t steps that have a value after step t, and these values."""
    rows = np.flatnonzero(X.lengths >= t)
    values = X.cells.ravel()[X.offsets[rows] + t - 1]
    there = ~np.isnan(values)
    return rows[there], values[there]


def runs_with_a_partner(success: FloatArray, stratum: IntArray) -> IntArray:
    """Return the runs that have one of another outcome in their stratum.

    >>> runs_with_a_partner(np.array([1.0, 0, 1, 0]), np.array([5, 5, 7, 8]))
    array([0, 1])
    """
    code = np.unique(stratum, return_inverse=True)[1]
    successes, failures = (np.bincount(code, part) for part in (success, 1 - success))
    return np.flatnonzero((np.minimum(successes, failures) > 0)[code])


AUROC = ("AUROC", "AUROC_low", "AUROC_high")
MARGIN = ("margin", "margin_low", "margin_high")
COLUMNS = ("n_runs", "success_rate", *AUROC, "score", *MARGIN)


def step_table(
    X: TrajectoryArray,
    success: FloatArray,
    groups: IntArray | None,
    *,
    forecasts: TrajectoryArray | None,
    score: Any = "log",
    confidence_level: float = 0.95,
) -> pd.DataFrame:
    """Return AUROC of traces and the score of forecasts at steps that enough runs reach.

    The score's margin is over the success rate of the runs that reach the step. A run without a
    value at a step is left out there; forecasts have all that the traces have.
    """
    rows = {}
    for t in round_steps(int(X.lengths.max(initial=0))):
        runs, values = at_step(X, t)
        labels = success[runs]
        units = None if groups is None else groups[runs]
        if not has_both(labels):
            continue
        ends = auroc_interval(values, labels, folds_of(X)[runs], units, confidence_level)
        scored = (np.nan,) * (1 + len(MARGIN))
        if forecasts is not None:
            p = forecasts.cells.ravel()[X.offsets[runs] + t - 1]
            of_run, constant = (
                _both_ways(of, labels, score) for of in (p, np.full(len(p), labels.mean()))
            )
            margin = of_run - constant
            three = intervals_of_means(
                margin.samples[:, None],
                [margin.change(np.ones(len(p)))],
                any_units(units, len(p)),
                confidence_level,
            )
            scored = float(of_run.samples.mean()), *(float(part[0]) for part in three)
        rows[t] = len(runs), labels.mean(), *ends, *scored
    index = pd.Index(list(rows), name="step", dtype=np.int64)
    table = pd.DataFrame(list(rows.values()), index=index, columns=list(COLUMNS), dtype=float)
    return table.astype({"n_runs": np.int64})


def auroc_interval(
    confidence: FloatArray,
    success: FloatArray,
    stratum: IntArray,
    groups: IntArray | None,
    confidence_level: float,
) -> tuple[float, float, float]:
    """Return AUROC within strata, with its interval.

    Where it is 0 or 1 nothing varies. Then m pairs of different runs are in order, with chance
    AUROC^m at most, so that the interval ends at (alpha / 2)^(1/m).
    """
    estimate = auroc_within(confidence, success, stratum)
    area, low, high = interval_of(*estimate, groups, confidence_level, on_logit=True)
    if area in (0.0, 1.0):
        unit = np.arange(len(success)) if groups is None else groups
        reach = ((1 - confidence_level) / 2) ** (1 / _disjoint_pairs(success, stratum, unit))
        if area:
            return area, min(low, reach), area
        return area, area, max(high, 1 - reach)
    return area, low, high


def _disjoint_pairs(success: FloatArray, stratum: IntArray, unit: IntArray) -> float:
    """Count pairs of a success and a failure within strata, of which none shares a unit."""
    won = success >= 0.5
    n_won, n_lost, n_units = (
        np.bincount(
            np.unique(np.stack([stratum[used], unit[used]]), axis=1)[0],
            minlength=int(stratum.max()) + 1,
        )
        for used in (won, ~won, np.ones_like(won))
    )
    pairs = np.minimum(np.minimum(n_won, n_lost), n_units // 2).sum()
    return float(max(1, min(pairs, len(np.unique(unit)) // 2)))


def _both_ways(p: FloatArray, success: FloatArray, score: Any) -> MeanOfRuns:
    """Return the score of forecasts, and what it were, had each run ended the other way."""
    family = get_family(score)
    of_run, other = (score_cells(family, p, y) for y in (success, opposite(success)))
    return MeanOfRuns(of_run, None, other)
