"""Which thresholds a forecast is good at: the mixture behind every proper score."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from trajscore.core.ties import ROUNDING
from trajscore.core.type_aliases import FloatArray
from trajscore.core.values import as_numbers
from trajscore.core.weights import Horizon, Weights, as_step_weights
from trajscore.metrics._decomposition import Mass, weighted_mass
from trajscore.metrics._tps import check_scored


def murphy_curve(
    y_true: ArrayLike,
    traces: Any,
    *,
    thresholds: ArrayLike | None = None,
    weights: Weights = "early",
    horizon: Horizon = None,
    sample_weight: ArrayLike | None = None,
) -> pd.DataFrame:
    """Elementary score at each threshold, with its parts; higher is better.

    Somebody who lets a run go on where the forecast exceeds the threshold c loses c on each run
    that then fails, and 1 - c on each run stopped that would have succeeded. The elementary score
    is minus that loss, and every proper score is a mixture of elementary ones: Beta(a, b) weights
    them with c^(a-1) (1-c)^(b-1), Brier with 2, log with 1/(c (1-c)). A forecast whose curve
    is nowhere lower has no lower score in any family.

    Parameters
    ----------
    y_true, traces : array-likes
        As in `tps_score`.
    thresholds : array-like of shape (n_thresholds,), optional
        Thresholds strictly between 0 and 1. Default: 0.005, 0.010, ..., 0.995.
    weights, horizon, sample_weight : step weights and array-like
        As in `tps_score`.

    Returns
    -------
    DataFrame indexed by threshold
        score, and its parts miscalibration, discrimination and uncertainty: score =
        -(miscalibration - discrimination + uncertainty), all steps pooled with their weights.

    Raises
    ------
    ValueError
        If a threshold, a forecast or an outcome is not as described.

    See Also
    --------
    tps_decomposition : The parts of a score; those of Beta(a, b) are the mixtures of these.

    Notes
    -----
    Between two neighbouring distinct forecasts the score is linear in the threshold.

    References
    ----------
    Ehm, Gneiting, Jordan and Krüger (2016), Of quantiles and expectiles: consistent scoring
    functions, Choquet representations and forecast rankings, JRSS B 78(3).

    Examples
    --------
    >>> murphy_curve([1, 0], [[0.9], [0.4]], thresholds=[0.2, 0.5])["score"].tolist()
    [-0.1, 0.0]
    """
    cuts = _check_thresholds(thresholds)
    how = as_step_weights(weights, horizon)
    mass, _, _ = weighted_mass(check_scored(y_true, traces, how, sample_weight), how)
    parts = mass.parts(lambda part: _elementary(part, cuts))
    return pd.DataFrame(parts, index=pd.Index(cuts, name="threshold"))


def _check_thresholds(thresholds: ArrayLike | None) -> FloatArray:
    if thresholds is None:
        return np.arange(1, 200) / 200
    cuts = as_numbers(thresholds, "thresholds")
    if cuts.ndim != 1 or not len(cuts):
        raise ValueError(f"thresholds must be a sequence of numbers, got shape {cuts.shape}")
    bad = ~((cuts > 0) & (cuts < 1))
    if bad.any():
        at = int(np.argmax(bad))
        raise ValueError(f"threshold {at}: {cuts[at]:g} does not lie strictly between 0 and 1")
    return cuts


def _elementary(mass: Mass, cuts: FloatArray) -> FloatArray:
    """Minus the loss at each threshold; the forecasts of the one group ascend."""
    # forecasts up to the threshold, where 0.1 + 0.2 is no more than 0.3
    below = np.searchsorted(mass.forecast, cuts * (1 + ROUNDING), side="right")
    missed = np.concatenate([[0.0], np.cumsum(mass.success)])[below]
    wasted = np.concatenate([np.cumsum(mass.failure[::-1])[::-1], [0.0]])[below]
    return np.asarray(0.0 - (cuts * wasted + (1 - cuts) * missed))
