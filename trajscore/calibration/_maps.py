"""Calibration of whole traces by beta and isotonic maps, and by the mean of these and Platt's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, logit
from sklearn.isotonic import isotonic_regression

from trajscore.calibration._platt import LinkCalibrator, PlattCrossFitCalibrator, fit_columns
from trajscore.calibration.cross_fit import CrossFitCalibrator, Map
from trajscore.calibration.training import CalibrationSample
from trajscore.core.score_families import CLIP
from trajscore.core.values import ArrayLike, FloatArray, as_within
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
    _reads = {"probabilities": True, "single_channel": True}  # noqa: RUF012

    def __init__(
        self,
        C: float = 1.0,
        cv: Any = 2,
        weights: Weights = "early",
        horizon: Horizon = None,
        censored: str = "failure",
    ) -> None:
        self.C = C
        super().__init__(cv, weights, horizon, censored)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        as_within(self.C, "C", 0, np.inf, "right")

    def _fit_map(self, sample: CalibrationSample) -> BetaMap:
        ends = _ends(sample.values)
        used = np.ptp(ends, axis=0) > 0
        slopes = np.zeros(2)
        c = float(logit(sample.base_rate))
        while used.any():
            # an end whose coefficient points the wrong way is left out, as the authors do
            *rises, constant = fit_columns(ends[:, used].T, sample, self.C)
            if min(rises) >= 0:
                slopes[used] = rises
                c = float(constant)
                break
            used[used] = np.array(rises) >= 0
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
        ends = _ends(np.asarray(values, dtype=float))
        # no product of matrices, whose last digit depends on how many values there are
        z = self.a * ends[..., 0] + self.b * ends[..., 1] + self.c
        return np.clip(expit(z), CLIP, 1 - CLIP)


def _ends(values: FloatArray) -> FloatArray:
    """Return log F and -log(1 - F) of clipped forecasts, side by side."""
    F = np.clip(values, CLIP, 1 - CLIP)
    return np.stack([np.log(F), -np.log1p(-F)], axis=-1)


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

    def _fit_map(self, sample: CalibrationSample) -> IsotonicMap:
        success = sample.success.copy()
        failure = sample.failure.copy()
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
        return np.interp(np.asarray(values, dtype=float), self.values, self.probabilities)


_N_HALF = 1000  # training runs of which the isotonic map counts for one half


class EnsembleCrossFitCalibrator(LinkCalibrator):
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
        super().__init__(cv, weights, horizon, censored)

    def _fit_map(self, sample: CalibrationSample) -> EnsembleMap:
        platt = PlattCrossFitCalibrator(link=self.link, increasing=True)._fit_map(sample)
        members: list[Map] = [platt]
        logistic = [1.0]
        rises = not platt.fallback
        if self.link == "logit":
            beta = BetaCrossFitCalibrator()._fit_map(sample)
            members.append(beta)
            logistic = [2 / 3, 1 / 3]
            rises = rises or beta.a + beta.b > 0
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
        raw = np.asarray(values, dtype=float)
        odds = np.zeros(raw.shape)
        for member, share in zip(self.members, self.shares, strict=True):
            p = member(raw)
            odds += share * np.log(p / (1 - p))
        return 1 / (1 + np.exp(-odds))
