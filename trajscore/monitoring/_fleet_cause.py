"""What changed between two sets of runs: inputs, outcomes, or what forecasts are worth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import logit
from scipy.stats import rankdata
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from trajscore.core.type_aliases import FloatArray, IntArray

ADVICE = {
    "lengths": "Runs are longer or shorter than they were, and forecasts mean what they meant; "
    "leave the predictor as it is, and look at the tasks.",
    "forecasts and success": "Forecasts and success moved together, and forecasts mean what they "
    "meant; leave the predictor as it is, and look at the tasks.",
    "success": "Success changed, and forecasts of successes and of failures are as they were; "
    "recalibrate the predictor, and look at the agent.",
    "success at the same forecast": "Success changed, and the forecasts did not notice; "
    "recalibrate the predictor, and read runs that it was wrong about.",
    "forecasts": "The forecasts moved, and success and ranking did not; recalibrate the predictor.",
    "ranking": "The forecasts rank runs less well, and success is as it was; recalibrating does "
    "not bring that back, so train or choose another predictor.",
    "runs without a forecast": "Another share of runs has no forecast, as they end before "
    "their first step or a value is missing; read some of them.",
    "unclear": "More than one cause fits; compare the runs since the change with those before.",
}
"""What to do, by cause."""
UNCLEAR = "unclear"
_LEAST = 20  # runs of each outcome
_FREE = 3.5  # what a cause pays for leaving one quantity more free than the others do, in nats
_LEAD = 2.0  # how far a cause must be ahead of another, in nats
_WITHOUT_FORECAST = "runs without a forecast"
_SUCCESS, _UNNOTICED, _RANKING = "success", "success at the same forecast", "ranking"
# neither of the first two is a special case of the other, so what the second pays to be free does
# not count; the third is the second where success did not change, which has paid for that
_LEADS = {(_SUCCESS, _UNNOTICED): 5.0, (_UNNOTICED, _SUCCESS): 1.0, (_RANKING, _UNNOTICED): 1.0}
_MISFIT = 10.0  # of the best cause, in nats, beyond which it is none of these


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


def cause_of(before: Runs, after: Runs, predictor: int) -> str:
    """Return the one cause that leaves unchanged what did not change; or that it is not clear.

    Each cause says that some quantities are as before. Its misfit is half the sum of their squared
    standardized changes, plus what it leaves free; the smallest must be well ahead.
    """
    old, new = (_columns(runs, predictor) for runs in (before, after))
    (length, f, y), (new_length, g, z) = old, new
    has_none = [np.array([not run.has_forecast for run in runs]) for runs in (before, after)]
    if _moved(*has_none) / 2 > _MISFIT:
        return _WITHOUT_FORECAST
    if min(sum(outcome == k) for outcome in (y, z) for k in (0, 1)) < _LEAST:
        return UNCLEAR
    lengths = _moved(length, new_length)
    forecasts = _moved(f, g)
    success = _moved(y, z)
    within = [
        _moved(values[y == k], others[z == k])
        for values, others in ((f, g), (length, new_length))
        for k in (0, 1)
    ]
    misfit = {
        "forecasts and success": _recalibrated(old, new) / 2,
        _SUCCESS: sum(within) / 2,
        _UNNOTICED: (forecasts + lengths) / 2 + _FREE,
        "forecasts": (success + _reranked(f, y, g, z) + lengths) / 2,
        _RANKING: (forecasts + success + lengths) / 2,
    }
    first, *others = sorted(misfit, key=lambda cause: misfit[cause])
    leads = [misfit[cause] - misfit[first] - _LEADS.get((first, cause), _LEAD) for cause in others]
    if min(leads) < 0 or misfit[first] > _MISFIT:
        return UNCLEAR
    is_of_lengths = first == "forecasts and success" and lengths > forecasts
    return "lengths" if is_of_lengths else first


def _columns(runs: Runs, predictor: int) -> FloatArray:
    """Return lengths, forecasts and outcomes of runs with a forecast whose outcome is known."""
    rows = [
        (run.length, run.forecast[predictor], run.outcome)
        for run in runs
        if run.outcome >= 0 and run.has_forecast
    ]
    return np.array(rows, dtype=float).reshape(-1, 3).T


def _moved(before: FloatArray, after: FloatArray) -> float:
    """Return the squared standardized difference of ranks, ties included."""
    n, m = len(before), len(after)
    ranks = rankdata(np.concatenate([before, after]))
    variance = n * m / (n + m - 1) * ranks.var()
    difference = ranks[n:].sum() - m * (n + m + 1) / 2
    return float(difference**2 / variance) if variance > 0 else 0.0


def _recalibrated(old: FloatArray, new: FloatArray) -> float:
    """Return twice the log likelihood that a new level and slope of the forecasts add."""
    is_new = np.repeat([0.0, 1.0], [old.shape[1], new.shape[1]])
    length, forecast, y = np.concatenate([old, new], axis=1)
    logits = _standardized(logit(np.clip(forecast, 0.01, 0.99)))
    lengths = _standardized(np.log(length))
    same = np.column_stack([logits, lengths])
    losses = []
    for columns in (same, np.column_stack([same, is_new, is_new * logits])):
        fit = LogisticRegression(C=1e4, max_iter=500).fit(columns, y)
        losses.append(log_loss(y, fit.predict_proba(columns)[:, 1], normalize=False))
    return float(2 * (losses[0] - losses[1]))


def _standardized(values: FloatArray) -> FloatArray:
    spread = values.std()
    return (values - values.mean()) / (spread if spread > 0 else 1.0)


def _reranked(f: FloatArray, y: FloatArray, g: FloatArray, z: FloatArray) -> float:
    """Return the squared standardized difference of AUROC (DeLong's variance)."""
    (first, var_first), (second, var_second) = _auroc(f, y), _auroc(g, z)
    variance = var_first + var_second
    return float((second - first) ** 2 / variance) if variance > 0 else 0.0


def _auroc(f: FloatArray, y: FloatArray) -> tuple[float, float]:
    ranks = rankdata(f)
    parts = []
    for k in (0, 1):
        own = f[y == k]
        parts.append((ranks[y == k] - rankdata(own)) / (len(f) - len(own)))
    failing, succeeding = parts
    variance = failing.var(ddof=1) / len(failing) + succeeding.var(ddof=1) / len(succeeding)
    return float(succeeding.mean()), float(variance)
