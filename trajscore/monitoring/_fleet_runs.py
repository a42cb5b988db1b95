"""The runs of a fleet: what is watched of each, bets on it, and what changed between two sets."""

from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, logit
from scipy.stats import kruskal, rankdata
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.preprocessing import scale

from trajscore.core.array import TrajectoryArray
from trajscore.core.ids import are_default_ids
from trajscore.core.outcomes import CENSORED
from trajscore.core.policy import MIN_RUNS_TO_NAME_CAUSE
from trajscore.core.ranking import auroc_within
from trajscore.core.values import AnyArray, BoolArray, FloatArray, IntArray
from trajscore.core.weights import collapse

_MOST_EARLIER = 100_000  # runs by which those that are sent again are known
_LEAST_ALIKE = 20  # values of a set of runs that are not those of another by chance


@dataclass
class Run:
    """What is watched of a run."""

    number: int
    id: Any
    length: float
    forecast: FloatArray  # of each predictor; NaN where it has none
    cells: IntArray  # of the length and, where it has any, the forecasts, on grids
    outcome: int  # -1 while it is not known

    @property
    def has_forecast(self) -> bool:
        """Whether it has forecasts."""
        return len(self.cells) > 1


Runs = list[Run]


def run_hashes(X: TrajectoryArray) -> list[int]:
    """Return a hash of each run's id and values."""
    values = np.split(X.cells, X.offsets[1:-1])
    return [
        crc32(str(label).encode()) << 32 | crc32(cells.tobytes())
        for label, cells in zip(X.ids.tolist(), values, strict=True)
    ]


def are_new(X: TrajectoryArray, earlier: OrderedDict[Any, None]) -> BoolArray:
    """Tell the runs that no earlier update had by hashes of ids and values, and remember them."""
    hashes: list[Any] = run_hashes(X)
    is_default = are_default_ids(X.ids)  # which do not identify a run, but all of a batch do
    if is_default:
        batch_hash = crc32(np.append(X.lengths, X.cells).tobytes())
        hashes = [(batch_hash, run_hash) for run_hash in hashes]
    is_new = np.ones(len(X), dtype=bool)
    for row, run_hash in enumerate(hashes):
        is_new[row] = run_hash not in earlier
        earlier[run_hash] = None
    while len(earlier) > _MOST_EARLIER:
        earlier.popitem(last=False)
    return is_new | (is_default and len(X.cells) < _LEAST_ALIKE)


def draw_third(tasks: AnyArray, random: np.random.Generator) -> list[IntArray]:
    """Split rows by tasks: a third, from which bets are learned, and those in p-values."""
    labels, codes = np.unique(tasks, return_inverse=True)
    place = random.permutation(len(labels)).argsort()[codes]
    is_training = place < len(labels) // 3
    return [np.flatnonzero(is_training), np.flatnonzero(~is_training)]


def forecasts_of_runs(traces: TrajectoryArray, phi: str) -> FloatArray:
    """Return one forecast for each run and predictor."""
    columns = traces.cells.reshape(len(traces.cells), -1).T
    return np.column_stack([collapse(traces.with_cells(F), phi) for F in columns])


def count_outcomes(runs: Runs) -> tuple[int, int]:
    """Count successes and observed outcomes."""
    outcomes = [run.outcome for run in runs if run.outcome != CENSORED]
    return sum(outcomes), len(outcomes)


# A bet on a p-value u is 1 + tilt (u - 1/2), one on an outcome shifts the log odds of its success
# rate. Each is made down, not at all, and up.
_SIGNS = np.array([-1.0, 0.0, 1.0])
_TILT = 1.5
_SHIFT = 0.45
GRID = 512  # cells of the values whose ranks are counted
_LONGEST_LOGIT = 8.0


def bets_on_ranks(u: FloatArray) -> FloatArray:
    """Bets on ranks of values among all so far, a row each."""
    return 1 + _TILT * _SIGNS * (u[:, None] - 0.5)


def bets_on_outcomes(splits: FloatArray) -> FloatArray:
    """Bets on success, levels and slopes by bin, a row each: on p-values above splits, and below.

    `splits` are success rates: p-values of failures lie above, of successes below.
    """
    rows, n_bins = splits.shape
    rate = splits[:, :, None]
    stretch = np.ones_like(rate)
    # a slope shifts low bins down and high ones up, as far in the mean square as a level
    stretch[rows // 2 + 1 :, :, 0] = np.sqrt(3) * ((2 * np.arange(n_bins) + 1) / n_bins - 1)
    shifted = expit(logit(rate) + _SHIFT * stretch * _SIGNS)
    return np.stack([(1 - shifted) / (1 - rate), shifted / rate])


def grid_cells(lengths: IntArray, forecasts: FloatArray) -> list[IntArray]:
    """Cells of each run's length and forecasts, on grids that do not depend on any run.

    A run without a forecast has only that of its length.
    """
    octave = 32  # each length up to here has its own
    beyond = octave * (np.log2(np.maximum(lengths, 1) / octave) + 1)
    length_cells = np.where(lengths <= octave, lengths, beyond)
    with np.errstate(divide="ignore"):
        logits = np.clip(logit(forecasts), -_LONGEST_LOGIT, _LONGEST_LOGIT)
    places = (logits / _LONGEST_LOGIT + 1) / 2 * (GRID - 1)
    cells = np.minimum(np.column_stack([length_cells, np.nan_to_num(places)]), GRID - 1)
    n_cells = np.where(np.isnan(forecasts).any(axis=1), 1, cells.shape[1]).tolist()
    return [row[:n] for row, n in zip(cells.astype(np.int64), n_cells, strict=True)]


ADVICE = {
    "lengths": "Runs are longer or shorter than they were, and forecasts mean what they meant; "
    "leave the predictor as it is, and look at the tasks.",
    "forecasts and success": "Forecasts and success moved together, and forecasts mean what they "
    "meant; leave the predictor as it is, and look at the tasks.",
    "success": "Success changed, and no change is shown in the forecasts of successes and of "
    "failures; recalibrate the predictor, and look at the agent.",
    "success at the same forecast": "Success changed, and no change of the forecasts is shown; "
    "recalibrate the predictor, and read runs that it was wrong about.",
    "forecasts": "The forecasts moved, and no change of success or of ranking is shown; "
    "recalibrate the predictor.",
    "ranking": "The forecasts rank runs less well, and no change of success is shown; "
    "recalibrating does not bring that back, so train or choose another predictor.",
    "runs without a forecast": "Another share of runs has no forecast, as they end before "
    "their first step or a value is missing; read some of them.",
    "unclear": "More than one cause fits; compare the runs since the change with those before.",
}
"""What to do, by cause."""
UNCLEAR = "unclear"
_FREE = 3.5  # what a cause pays for leaving one quantity more free than the others do, in nats
_LEAD = 2.0  # how far a cause must be ahead of another, in nats
_WITHOUT_FORECAST = "runs without a forecast"
_SUCCESS = "success"
_UNNOTICED = "success at the same forecast"
_RANKING = "ranking"
# neither of the first two is a special case of the other, so what the second pays to be free does
# not count; the third is the second where success did not change, which has paid for that
_LEADS = {(_SUCCESS, _UNNOTICED): 5.0, (_UNNOTICED, _SUCCESS): 1.0, (_RANKING, _UNNOTICED): 1.0}
_MISFIT = 10.0  # of the best cause, in nats, beyond which it is none of these


class FleetChange(NamedTuple):
    """A change that was noticed; runs are numbered from 1, the first after the fit."""

    alarm: int  # the last run that had been given by then
    since: int  # the first run after the change, as far as can be told
    quantity: str  # whose evidence grew: length, forecast, spread, success, level or slope
    predictor: str  # "" where the quantity is of all
    log_e_value: float
    cause: str = ""  # "" until enough runs have followed the alarm
    # successes and known outcomes: of the reference, and of runs after the alarm until the cause
    before: tuple[int, int] = (0, 0)
    after: tuple[int, int] = (0, 0)

    @property
    def advice(self) -> str:
        """What to do."""
        return ADVICE.get(self.cause, "Wait for more runs, from which the cause is named.")


class FleetStatus(NamedTuple):
    """What a fleet monitor says after an update."""

    alarm: bool  # whether this update gave one
    cause: str  # of the last change; "" while it is not known


def name_cause(before: Runs, after: Runs, predictor: int) -> str:
    """Return the one cause that leaves unchanged what did not change; or that it is not clear.

    Each cause says that some quantities are as before. Its misfit is half the sum of their squared
    standardized changes, plus what it leaves free; the smallest must be well ahead.
    """
    old, new = (_columns(runs, predictor) for runs in (before, after))
    y, z = old[-1], new[-1]
    has_none = [[float(not run.has_forecast) for run in runs] for runs in (before, after)]
    if _moved(*has_none) / 2 > _MISFIT:
        return _WITHOUT_FORECAST
    if min(sum(outcome == k) for outcome in (y, z) for k in (0, 1)) < MIN_RUNS_TO_NAME_CAUSE:
        return UNCLEAR
    lengths, forecasts, success = map(_moved, old, new)
    same_forecasts = (forecasts + _spread_moved(old[1], new[1]) + lengths) / 2
    within = sum(
        _moved(values[y == k], others[z == k])
        for values, others in zip(old[:2], new[:2], strict=True)
        for k in (0, 1)
    )
    misfit = {
        "forecasts and success": _recalibrated(old, new) / 2,
        _SUCCESS: within / 2,
        _UNNOTICED: same_forecasts + _FREE,
        "forecasts": (success + _reranked(old, new) + lengths) / 2,
        _RANKING: same_forecasts + success / 2,
    }
    best, *others = sorted(misfit, key=lambda cause: misfit[cause])
    leads = [misfit[cause] - misfit[best] - _LEADS.get((best, cause), _LEAD) for cause in others]
    if min(leads) < 0 or misfit[best] > _MISFIT:
        return UNCLEAR
    if best == "forecasts and success" and lengths > forecasts:
        return "lengths"
    return best


def _columns(runs: Runs, predictor: int) -> FloatArray:
    """Return lengths, forecasts and outcomes of runs with a forecast whose outcome is known."""
    rows = [
        (run.length, run.forecast[predictor], run.outcome)
        for run in runs
        if run.outcome >= 0 and run.has_forecast
    ]
    return np.array(rows, dtype=float).reshape(-1, 3).T


def _moved(before: ArrayLike, after: ArrayLike) -> float:
    """Return the squared standardized difference of ranks, ties included; 0 if nothing varies."""
    if not np.ptp(np.concatenate([before, after])):
        return 0.0
    return float(kruskal(before, after).statistic)


def _spread_moved(before: FloatArray, after: FloatArray) -> float:
    """Return the squared standardized difference of how far ranks are from their middle."""
    ranks = rankdata(np.append(before, after))
    return _moved(*np.split(np.abs(ranks - ranks.mean()), [len(before)]))


def _recalibrated(old: FloatArray, new: FloatArray) -> float:
    """Return twice the log likelihood that a new level and slope of the forecasts add."""
    is_new = np.repeat([0.0, 1.0], [old.shape[1], new.shape[1]])
    length, forecast, y = np.concatenate([old, new], axis=1)
    same = scale(np.column_stack([logit(np.clip(forecast, 0.01, 0.99)), np.log(length)]))
    losses = []
    for columns in (same, np.column_stack([same, is_new, is_new * same[:, 0]])):
        fit = LogisticRegression(C=1e4, max_iter=500).fit(columns, y)
        losses.append(log_loss(y, fit.predict_proba(columns)[:, 1], normalize=False))
    return float(2 * (losses[0] - losses[1]))


def _reranked(old: FloatArray, new: FloatArray) -> float:
    """Return the squared standardized difference of AUROC (DeLong's variance)."""
    areas = []
    variance = 0.0
    for _, f, y in (old, new):
        area, influence = auroc_within(f, y, np.zeros(len(y), int))
        areas.append(area)
        parts = [influence[y == k] for k in (0, 1)]
        variance += sum(len(part) * part.var(ddof=1) for part in parts) / len(y) ** 2
    if variance > 0:
        return float(np.ptp(areas) ** 2 / variance)
    return 0.0
