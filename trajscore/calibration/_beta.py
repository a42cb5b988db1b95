"""Beta calibration of whole traces."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, logit

from trajscore.calibration._cross_fit import CrossFitCalibrator
from trajscore.calibration._platt import check_penalty, fit_logistic
from trajscore.calibration.training import CalibrationSample
from trajscore.core.score_families import CLIP
from trajscore.core.type_aliases import FloatArray
from trajscore.core.weights import Horizon, Weights


class BetaCrossFitCalibrator(CrossFitCalibrator):
    """Calibrate forecasts in [0, 1] by sigmoid(a log F - b log(1 - F) + c), with a, b >= 0.

    Unlike Platt's map it can bend the two ends apart, and it holds the identity (a = b = 1, c = 0).

    Parameters
    ----------
    C : float, default=1.0
        Inverse of the penalty on a and b; c is not penalised.
    cv, weights, horizon, censored : int or splitter, str or callable, int or "own", and str
        Folds, step weights and unobserved runs, as in `PlattCrossFitCalibrator`.

    Attributes
    ----------
    maps_ : dict of str to map
        One for each fold, with its ``a``, ``b`` and ``c``.
    full_map_, calibrated_range_, n_censored_, n_dropped_, n_channels_in_ : map, tuple and int
        As in `PlattCrossFitCalibrator`.

    See Also
    --------
    trajscore.PlattCrossFitCalibrator : Two numbers instead of three.
    IsotonicCrossFitCalibrator : Any rising shape.

    References
    ----------
    Kull, Silva Filho and Flach (2017), Beta Calibration; Raghu et al. (2026), Appendix D, for the
    cross-fitting.

    Examples
    --------
    >>> from trajscore.calibration import BetaCrossFitCalibrator
    >>> X, y = [[0.99, 0.95], [0.99, 0.99], [0.95, 0.9], [0.9, 0.9]], [1, 1, 0, 0]
    >>> BetaCrossFitCalibrator().fit(X, y).full_map_([0.9, 0.99]).round(2)
    array([0.28, 0.75])
    """

    keyword = "beta"

    def __init__(
        self,
        C: float = 1.0,
        cv: Any = 2,
        weights: Weights = "early",
        horizon: Horizon = None,
        censored: str = "failure",
    ) -> None:
        self.C = C
        self.cv = cv
        self.weights = weights
        self.horizon = horizon
        self.censored = censored

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_penalty(self.C)

    def _reads(self) -> dict[str, bool]:
        return {"probabilities": True, "single_channel": True}

    def _fit_map(self, sample: CalibrationSample) -> BetaMap:
        ends = _ends(sample.values)
        used = np.ptp(ends, axis=0) > 0
        slopes, c = np.zeros(2), float(logit(sample.base_rate))
        while used.any():
            # an end whose coefficient points the wrong way is left out, as the authors do
            coefficients, intercept = fit_logistic(ends[:, used], sample, self.C)
            if (coefficients >= 0).all():
                slopes[used], c = coefficients, intercept
                break
            used[np.flatnonzero(used)[coefficients < 0]] = False
        return BetaMap(sample.n_runs, sample.base_rate, float(slopes[0]), float(slopes[1]), c)


@dataclass(frozen=True)
class BetaMap:
    """One fitted map p = sigmoid(a log F - b log(1 - F) + c)."""

    n_runs: int
    base_rate: float
    a: float
    b: float
    c: float

    def __call__(self, values: ArrayLike) -> FloatArray:
        """Map forecasts to probabilities in [1e-6, 1 - 1e-6]."""
        ends = _ends(np.asarray(values, dtype=np.float64))
        # no product of matrices, whose last digit depends on how many values there are
        z = self.a * ends[..., 0] + self.b * ends[..., 1] + self.c
        return np.clip(expit(z), CLIP, 1 - CLIP)


def _ends(values: FloatArray) -> FloatArray:
    """Return log F and -log(1 - F) of clipped forecasts, side by side."""
    F = np.clip(values, CLIP, 1 - CLIP)
    return np.stack([np.log(F), -np.log1p(-F)], axis=-1)
