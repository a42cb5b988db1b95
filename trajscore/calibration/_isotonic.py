"""Isotonic calibration of whole traces."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.isotonic import isotonic_regression

from trajscore.calibration._cross_fit import CrossFitCalibrator
from trajscore.calibration.training import CalibrationSample
from trajscore.core.score_families import CLIP
from trajscore.core.type_aliases import FloatArray
from trajscore.core.weights import Horizon, Weights

_PRIOR = 0.5  # runs that are added at each end


class IsotonicCrossFitCalibrator(CrossFitCalibrator):
    """Calibrate a per-step signal by the best rising step function.

    Takes any signal that is higher where success is more likely, on whatever scale. It learns any
    rising shape, and so needs more runs than Platt's two numbers do: below about a thousand, hold
    both against each other by a proper score. Half a success is added at the lowest value, and half
    a failure at the highest, so that no probability is 0 or 1, which one run could prove wrong at
    any cost.

    Parameters
    ----------
    cv, weights, horizon, censored : int or splitter, str or callable, int or "own", and str
        Folds, step weights and unobserved runs, as in `PlattCrossFitCalibrator`.

    Attributes
    ----------
    maps_ : dict of str to map
        One for each fold, as in `PlattCrossFitCalibrator`.
    full_map_, calibrated_range_, n_censored_, n_dropped_, n_channels_in_ : map, tuple and int
        As in `PlattCrossFitCalibrator`.

    See Also
    --------
    trajscore.PlattCrossFitCalibrator : A smooth map of two numbers.
    BetaCrossFitCalibrator : A smooth map of three.

    References
    ----------
    Zadrozny and Elkan (2002), Transforming Classifier Scores into Accurate Multiclass Probability
    Estimates; Raghu et al. (2026), Appendix D, for the cross-fitting.

    Examples
    --------
    >>> from trajscore.calibration import IsotonicCrossFitCalibrator
    >>> X, y = [[0.99, 0.95], [0.99, 0.99], [0.95, 0.9], [0.9, 0.9]], [1, 1, 0, 0]
    >>> IsotonicCrossFitCalibrator().fit(X, y).full_map_([0.9, 0.93, 0.99]).round(2)
    array([0.26, 0.35, 0.76])
    """

    keyword = "isotonic"
    _is_stepwise = True

    def __init__(
        self,
        cv: Any = 2,
        weights: Weights = "early",
        horizon: Horizon = None,
        censored: str = "failure",
    ) -> None:
        self.cv = cv
        self.weights = weights
        self.horizon = horizon
        self.censored = censored

    def _fit_map(self, sample: CalibrationSample) -> IsotonicMap:
        success, failure = sample.success.copy(), sample.failure.copy()
        success[0] += _PRIOR
        failure[-1] += _PRIOR
        weight = success + failure
        rates = np.clip(isotonic_regression(success / weight, sample_weight=weight), CLIP, 1 - CLIP)
        rises = np.append(True, rates[1:] != rates[:-1])
        knots = rises | np.append(rises[1:], True)  # the ends of each level
        return IsotonicMap(sample.n_runs, sample.base_rate, sample.values[knots], rates[knots])


@dataclass(frozen=True)
class IsotonicMap:
    """One fitted map: linear between the knots, constant beyond them."""

    n_runs: int
    base_rate: float
    values: FloatArray
    probabilities: FloatArray

    def __call__(self, values: ArrayLike) -> FloatArray:
        """Map raw values to probabilities in [1e-6, 1 - 1e-6]."""
        return np.interp(np.asarray(values, dtype=np.float64), self.values, self.probabilities)
