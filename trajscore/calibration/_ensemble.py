"""The mean of three calibration maps of whole traces."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from trajscore.calibration._beta import BetaCrossFitCalibrator
from trajscore.calibration._cross_fit import CrossFitCalibrator, Map
from trajscore.calibration._isotonic import IsotonicCrossFitCalibrator
from trajscore.calibration._platt import PlattCrossFitCalibrator
from trajscore.calibration.training import CalibrationSample
from trajscore.core.type_aliases import FloatArray
from trajscore.core.weights import Horizon, Weights

_N_HALF = 1000  # training runs of which the isotonic map counts for one half


class EnsembleCrossFitCalibrator(CrossFitCalibrator):
    """Calibrate by the mean, in log-odds, of Platt's, a beta and an isotonic map.

    This is ``evaluate(calibrator="auto")``. With few runs the two logistic maps decide, which
    need little data; with many runs the isotonic map does, which learns any rising shape. The mean
    keeps the order of the values, and no map has to be chosen, which with few runs is chance.

    Of n training runs, the isotonic map's share is 1 / (1 + (1000 / n)^(2/3)), as the error of
    isotonic regression falls with n^(-2/3). Of the rest, Platt's map has two thirds and the beta
    map, which bends more, one third.

    Parameters
    ----------
    link : {"logit", "identity"}, default="logit"
        "logit" takes forecasts in [0, 1]. "identity" takes any signal that is higher where success
        is more likely; there is no beta map of it.
    cv, weights, horizon, censored : int or splitter, str or callable, int or "own", and str
        Folds, step weights and unobserved runs, as in `PlattCrossFitCalibrator`.

    Attributes
    ----------
    maps_ : dict of str to map
        One for each fold, as in `PlattCrossFitCalibrator`. Each has its ``members`` and their
        ``shares``, which add up to one, and ``fallback``: whether it is the constant base rate,
        because neither Platt's nor the beta map rises with the signal.
    full_map_, calibrated_range_, n_censored_, n_dropped_, n_channels_in_ : map, tuple and int
        As in `PlattCrossFitCalibrator`.

    See Also
    --------
    trajscore.PlattCrossFitCalibrator : Two numbers, and the calibration of the paper.
    BetaCrossFitCalibrator : Three numbers.
    IsotonicCrossFitCalibrator : Any rising shape.

    References
    ----------
    Zhang (2002), Risk Bounds in Isotonic Regression; Raghu et al. (2026), Appendix D, for the
    cross-fitting.

    Examples
    --------
    >>> from trajscore.calibration import EnsembleCrossFitCalibrator
    >>> from trajscore.datasets import load_chess
    >>> X, y = load_chess(return_X_y=True)
    >>> calibrator = EnsembleCrossFitCalibrator().fit(X["engine"], y)
    >>> calibrator.full_map_([0.0, 0.5, 1.0]).round(2)
    array([0.2 , 0.43, 0.67])
    >>> calibrator.summary()[["n_runs", "isotonic_share", "fallback"]].round(2)
         n_runs  isotonic_share  fallback
    map
    A       181            0.24     False
    B       179            0.24     False
    all     360            0.34     False
    """

    keyword = "auto"
    _for_signals = {"link": "identity"}  # noqa: RUF012
    _is_stepwise = True

    def __init__(
        self,
        link: str = "logit",
        cv: Any = 2,
        weights: Weights = "early",
        horizon: Horizon = None,
        censored: str = "failure",
    ) -> None:
        self.link = link
        self.cv = cv
        self.weights = weights
        self.horizon = horizon
        self.censored = censored

    def _reads(self) -> dict[str, bool]:
        return PlattCrossFitCalibrator(link=self.link)._reads()

    def _fit_map(self, sample: CalibrationSample) -> EnsembleMap:
        platt = PlattCrossFitCalibrator(link=self.link, increasing=True)._fit_map(sample)
        members: list[Map] = [platt]
        logistic, rises = [1.0], not platt.fallback
        if self.link == "logit":
            beta = BetaCrossFitCalibrator()._fit_map(sample)
            members.append(beta)
            logistic, rises = [2 / 3, 1 / 3], rises or beta.a + beta.b > 0
        if not rises:  # the constant that Platt's map falls back to
            return EnsembleMap(sample.n_runs, sample.base_rate, 0.0, True, (platt,), (1.0,))
        members.append(IsotonicCrossFitCalibrator()._fit_map(sample))
        # the weights of a run add up to one on average: a run of weight 2 is two runs
        n_runs = float((sample.success + sample.failure).sum())
        # the share of the isotonic map, which is free to take any rising shape
        free = 1 / (1 + (_N_HALF / n_runs) ** (2 / 3))
        shares = (*((1 - free) * share for share in logistic), free)
        return EnsembleMap(sample.n_runs, sample.base_rate, free, False, tuple(members), shares)


@dataclass(frozen=True)
class EnsembleMap:
    """One fitted map: the weighted mean of the log-odds of its members."""

    n_runs: int
    base_rate: float
    isotonic_share: float
    fallback: bool
    members: tuple[Map, ...]
    shares: tuple[float, ...]

    def __call__(self, values: ArrayLike) -> FloatArray:
        """Map raw values to probabilities in [1e-6, 1 - 1e-6]."""
        raw = np.asarray(values, dtype=np.float64)
        odds = np.zeros(raw.shape)
        for member, share in zip(self.members, self.shares, strict=True):
            p = member(raw)
            odds += share * np.log(p / (1 - p))
        return np.asarray(1 / (1 + np.exp(-odds)))
