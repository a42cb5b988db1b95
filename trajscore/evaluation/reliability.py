"""What forecasts say against what happens: in bins of equal weight, and where they err most."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from trajscore.core.outcomes import CENSORED, FAILURE
from trajscore.core.policy import MIN_RUNS_PER_BIN
from trajscore.core.ties import bins_of
from trajscore.core.values import BoolArray, FloatArray
from trajscore.core.weights import PART_STARTS, run_sums, step_parts
from trajscore.core.within_runs import run_numbers
from trajscore.evaluation.evaluation import Evaluation
from trajscore.evaluation.options import RowKey
from trajscore.evaluation.recommendation import intervals_of
from trajscore.inference.intervals import wilson_interval

_MOST_BINS = 10


class Bins(NamedTuple):
    """Mean forecast, share of successes and its 95% interval in bins of equal weight."""

    forecast: FloatArray
    rate: FloatArray
    low: FloatArray
    high: FloatArray
    weight: FloatArray  # share of that of all steps

    @property
    def error(self) -> float:
        """Mean gap between forecast and rate, as the weights count."""
        gaps = np.abs(self.rate - self.forecast)
        return float(self.weight @ gaps / self.weight.sum()) if len(gaps) else np.nan


class Stated(NamedTuple):
    """What a predictor says at many steps, from lowest to highest, and what happens there."""

    low: float
    high: float
    forecast: float
    rate: float
    is_off: bool  # whether they are shown to differ


def typical(data: Evaluation, name: str) -> Stated:
    """Return what a predictor says at the middle half of all steps, and how many succeed there.

    Where the middle is right and the rest is not, the lower or upper quarter: the one that is more
    wrong. Groups change none of these but what is shown.
    """
    row = data.rows_of(name)[0]
    weights = data.options.weights
    cells = row.traces.cells
    weight = weights.of(row.traces).cells()
    quarter = bins_of(cells, weight, 4, "quantile")
    parts = [np.isin(quarter, place) & (weight > 0) for place in ((1, 2), (0,), (3,))]
    parts = [part for part in parts if part.any()]
    stated = [row.overconfidence(weights, part) for part in parts]
    gaps = np.abs([each.mean for each in stated])
    middle_is_right = gaps[0] < np.average(gaps, weights=[weight @ part for part in parts]) / 2
    k = int(np.argmax(gaps)) if middle_is_right else 0
    level = data.recommendations[name].confidence_level
    ends = intervals_of({name: stated[k]}, row.runs.units, data.options.settings, level)
    gap = ends[name]
    cells = cells[parts[k]]
    forecast = float(np.average(cells, weights=weight[parts[k]]))
    rate = forecast - gap.estimate
    return Stated(cells.min(), cells.max(), forecast, rate, gap.low > 0 or gap.high < 0)


def reliability(data: Evaluation, key: RowKey, part: str | None = None) -> Bins:
    """Return the bins of a row: of all steps or a part of them.

    The steps of a run, or of a cluster, stand or fall together: the interval is Wilson's, with as
    many runs as would vary as much.
    """
    X = data.traces[key]
    weight = data.options.weights.of(X).cells()
    used = weight > 0
    if part is not None:
        used &= step_parts(X) == list(PART_STARTS).index(part)
    cells = X.cells[used]
    w = weight[used]
    run = run_numbers(X)[used]
    if not len(cells):
        return Bins(*np.empty((5, 0)))
    label = data.runs.labels[run]
    unit = data.runs.units.of_runs[run]
    gap = w * (label - np.average(label, weights=w))
    by_run, by_unit = ((np.bincount(of, gap) ** 2).sum() for of in (run, unit))
    # of as many runs that vary as much as these do, of which those of a unit may be alike
    n_runs = len(np.unique(run)) * min(1.0, by_run / by_unit if by_unit else 1.0)
    n_bins = int(np.clip(n_runs // (2 * MIN_RUNS_PER_BIN), 1, _MOST_BINS))
    bins = bins_of(cells, w, n_bins, "quantile")
    total = np.bincount(bins, w, n_bins)
    with np.errstate(invalid="ignore", divide="ignore"):
        forecast = np.bincount(bins, w * cells, n_bins) / total
        rate = np.clip(np.bincount(bins, w * label, n_bins) / total, 0.0, 1.0)
        place, inverse = np.unique(unit * n_bins + bins, return_inverse=True)
        residual = np.bincount(inverse, w * (label - rate[bins]), len(place))
        of_bin = place % n_bins
        n = np.bincount(of_bin, minlength=n_bins)
        variance = np.bincount(of_bin, residual**2, n_bins) * n / np.maximum(n - 1, 1) / total**2
        effective = np.where(variance > 0, rate * (1 - rate) / variance, np.inf)
        low, high = wilson_interval(rate, np.clip(effective, 1.0, np.maximum(n, 1)))
    enough = n >= MIN_RUNS_PER_BIN
    columns = (forecast, rate, low, high, total / total.sum())
    return Bins(*(np.asarray(column, dtype=float)[enough] for column in columns))


@dataclass(frozen=True, eq=False)
class WrongRun:
    """A run with what its forecasts lost, and the step to look at first."""

    row: int
    id: str
    y: float  # -1 where not observed
    label: float
    loss: float
    cells: FloatArray  # its forecasts
    flag: int  # number of the step to look at
    reason: str  # why the run ended; "" where that is not known
    task: str


def worst_runs(
    data: Evaluation, key: RowKey, most: int, among: BoolArray | None = None
) -> list[WrongRun]:
    """Return the runs with the largest loss, of some or all; those without an outcome come last."""
    trace = data.traces[key]
    labels = data.runs.labels
    y = data.runs.y
    score = data.options.scores[0]
    sums = run_sums(labels, trace, score, data.options.weights)
    # of its own steps; those of a run may all be without weight
    of_runs = sums.total / np.where(sums.divisor > 0, sums.divisor, 1.0)
    loss = score.perfect(labels) - of_runs
    rows = np.lexsort((-np.round(loss, 9), y == CENSORED))  # ties but for rounding
    if among is not None:
        rows = rows[among[rows]]
    meta = trace.meta.reindex(columns=["stop_reason", "task"]).astype(object)
    meta = meta.where(meta.notna(), "").astype(str)
    worst = []
    for row in rows[:most].tolist():
        cells = trace[row]
        flag = int(np.argmax(np.abs(labels[row] - cells)))
        if flag == 0 and np.ptp(cells) > 0:  # the first says little: flag where it moved most
            flag = int(np.argmax(np.abs(np.diff(cells)))) + 1
        reason, task = meta.iloc[row]
        worst.append(
            WrongRun(
                row=row,
                id=str(trace.ids[row]),
                y=float(y[row]),
                label=float(labels[row]),
                loss=float(loss[row]),
                cells=cells.ravel(),
                flag=flag + 1,
                reason=reason,
                task=task,
            )
        )
    return worst


def run_to_read(data: Evaluation, key: RowKey) -> tuple[WrongRun, bool]:
    """Return the run with the largest loss, and whether only failed runs were asked for.

    They are where labels of steps show no wrong step in the run that lost most of all.
    """
    (worst,) = worst_runs(data, key, 1)
    labelled = data.first_errors
    has_failed = data.runs.y == FAILURE
    if labelled is None or labelled.labels[worst.row] != 0 or not has_failed.any():
        return worst, False
    return worst_runs(data, key, 1, has_failed)[0], True
