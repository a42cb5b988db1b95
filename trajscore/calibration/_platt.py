"""Platt scaling of whole traces."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import logit

from trajscore.calibration.cross_fit import CrossFitCalibrator
from trajscore.calibration.training import CalibrationSample, LogisticLoss
from trajscore.core.score_families import CLIP
from trajscore.core.values import ArrayLike, FloatArray, as_within, check_choice
from trajscore.core.weights import Horizon, Weights

# A standard deviation below this is none: in log-odds (Appendix D), and as a share of the largest
# absolute value of a signal, which may come in any unit.
_SMALLEST_LOGIT_SCALE = 1e-6
_SMALLEST_SHARE = 1e-12


class LinkCalibrator(CrossFitCalibrator):
    """Base of calibrators whose maps are of log-odds of forecasts, or of any signal as it is."""

    link: str

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice(self.link, "link", ("logit", "identity"))

    @property
    def _reads(self) -> dict[str, bool]:  # type: ignore[override]
        return {"probabilities": self.link == "logit", "single_channel": True}


class PlattCrossFitCalibrator(LinkCalibrator):
    """Turn a per-step signal into calibrated probabilities of eventual success.

    Platt scaling over all steps, weighted with the step weights of the score, so that the
    calibrator's target is the evaluator's. Training rows get *out-of-fold* probabilities. Outliers
    of a signal count as the nearest other value: up to one in 20 of the training values, if they
    lie ten times as far from the median as all others, and new values as far out.

    Parameters
    ----------
    C : float, default=1.0
        Inverse of the penalty lambda on the slope b: lambda b^2 / 2 is added to the log-loss summed
        over runs, whose step weights add up to one on average, for standardised values. The
        intercept is not penalised.
    cv : int, splitter or list of (train, test), default=2
        Folds of the cross-fit: every run is held out once, and trained on otherwise. Every map
        needs a success and a failure to be fitted on, and one of the outcomes as many runs as there
        are folds.
    weights, horizon : str or callable, and int, "own" or None
        Step weights, as in `trajscore.metrics.tps_score`; should be those of the score that judges
        the result. Default: "early", 1/sqrt(t). They depend on the step alone, so that forecasts
        state what happens among the runs that are still going; ``weights="linear_front"`` with
        ``horizon="own"`` is the paper's calibration.
    link : {"logit", "identity"}, default="logit"
        "logit" takes log-odds of forecasts in [0, 1], clipped to [1e-6, 1 - 1e-6]; "identity"
        takes any real signal as it is.
    censored : {"failure", "drop", "q_z"}, default="failure"
        What runs with outcome -1 are in training: failures (the pseudo-label of the simple
        censored score), left out, or the soft outcome given as `q_z`.
    increasing : bool, "auto" or None, default=None
        Direction of the map; where the data point the other way, it falls back to the constant
        base rate, as it does where the signal does not vary: where the standard deviation is below
        1e-6 in log-odds, or 1e-12 of the largest value of another signal. "auto" takes either
        direction. None is True for forecasts (``link="logit"``) and "auto" for other signals, which
        may be risks as well as confidences.

    Attributes
    ----------
    maps_ : dict of str to map
        "A", "B", ...: the map *fitted on* that fold, applied to the others' runs ("A" is applied
        to fold B when there are two); with more folds, the map of fold A is fitted on all others
        and applied to fold A. A map p = sigmoid(intercept + slope (link(F) - center) / scale) is
        called with values, and has these numbers and ``n_runs``, ``base_rate`` and ``fallback``,
        whether it is the constant base rate.
    full_map_ : map
        Fitted on all runs; used by `transform`.
    calibrated_range_ : tuple of float
        Smallest and largest out-of-fold probability of the runs of positive weight.
    n_censored_, n_dropped_ : int
        Training runs without an observed outcome, and those of them (or of weight zero) left out.
    n_channels_in_ : int
        Always 1.

    See Also
    --------
    trajscore.calibration.cross_fit_traces : Out-of-fold traces, where ``cross_val_predict`` gives
        none.
    TraceAggregator : Collapses the calibrated trace for scikit-learn's own scorers.

    References
    ----------
    Raghu et al. (2026), Proper Scoring Rules for Agentic Uncertainty Quantification, Appendix D.

    Examples
    --------
    >>> from trajscore import PlattCrossFitCalibrator
    >>> X, y = [[0.99, 0.95], [0.99, 0.99], [0.95, 0.9], [0.9, 0.9]], [1, 1, 0, 0]
    >>> calibrator = PlattCrossFitCalibrator().fit(X, y)
    >>> calibrator.full_map_([0.9, 0.99]).round(2)
    array([0.28, 0.75])
    >>> calibrator.summary()[["slope", "fallback"]].round(2)
         slope  fallback
    map
    A     0.48     False
    B     0.67     False
    all   0.90     False
    """

    keyword = "platt"
    _for_signals = {"link": "identity", "increasing": True}  # noqa: RUF012

    def __init__(
        self,
        C: float = 1.0,
        cv: Any = 2,
        weights: Weights = "early",
        horizon: Horizon = None,
        link: str = "logit",
        censored: str = "failure",
        increasing: bool | str | None = None,
    ) -> None:
        self.C = C
        self.link = link
        super().__init__(cv, weights, horizon, censored)
        self.increasing = increasing

    def _check_parameters(self) -> None:
        super()._check_parameters()
        as_within(self.C, "C", 0, np.inf, "right")  # infinity is no penalty at all
        if self.increasing not in (True, False, "auto", None):
            raise ValueError(
                f"increasing must be True, False, 'auto' or None, got {self.increasing!r}"
            )

    def _fit_map(self, sample: CalibrationSample) -> PlattMap:
        x = _linked(sample.values, self.link)
        x, center, scale, is_flat = _standardize(x, sample.success + sample.failure, self.link)
        intercept = float(logit(sample.base_rate))
        slope = 0.0
        fallback = is_flat
        if not is_flat:
            rise, constant = fit_columns(x, sample, self.C)
            increasing = self.increasing
            if increasing is None:
                increasing = True if self.link == "logit" else "auto"
            wrong = rise < 0 if increasing else rise > 0
            fallback = increasing != "auto" and bool(wrong)
            if not fallback:
                intercept = float(constant)
                slope = float(rise)
        return PlattMap(
            sample.n_runs, sample.base_rate, self.link, center, scale, intercept, slope, fallback
        )


@dataclass(frozen=True)
class PlattMap:
    """One fitted map p = sigmoid(intercept + slope (link(F) - center) / scale)."""

    n_runs: int
    base_rate: float
    link: str
    center: float
    scale: float
    intercept: float
    slope: float
    fallback: bool

    def __call__(self, values: ArrayLike) -> FloatArray:
        """Map raw values to probabilities in [1e-6, 1 - 1e-6]."""
        raw = np.asarray(values, dtype=float)
        with np.errstate(over="ignore"):  # an infinite score is a probability of 0 or 1
            if self.slope == 0:
                z = np.full(raw.shape, self.intercept)
            else:
                # halves: a difference of large values of both signs would overflow
                x = (_linked(raw, self.link) / 2 - self.center / 2) / (self.scale / 2)
                z = self.intercept + self.slope * x
            return np.clip(1 / (1 + np.exp(-z)), CLIP, 1 - CLIP)


def _linked(values: FloatArray, link: str) -> FloatArray:
    """Return log-odds of clipped probabilities, or the values themselves."""
    if link == "identity":
        return values
    p = np.clip(values, CLIP, 1 - CLIP)
    return np.asarray(np.log(p / (1 - p)))  # an eighth of the time of scipy's logit


def _standardize(
    x: FloatArray, weight: FloatArray, link: str
) -> tuple[FloatArray, float, float, bool]:
    """Return standardised values, their center and scale, and whether they do not vary."""
    # a power of two takes the values to [-1, 1] without rounding, so that no square overflows
    exponent = int(np.frexp(np.abs(x).max())[1])
    z = np.ldexp(x, -exponent)
    total = weight.sum()
    center = float(weight @ z / total)
    scale = float(np.sqrt(weight @ (z - center) ** 2 / total))
    smallest = _SMALLEST_SHARE * float(np.abs(z).max())
    if link == "logit":
        smallest = float(np.ldexp(_SMALLEST_LOGIT_SCALE, -exponent))
    is_flat = scale <= smallest
    scale = max(scale, smallest) or 1.0
    return (
        (z - center) / scale,
        float(np.ldexp(center, exponent)),
        float(np.ldexp(scale, exponent)),
        is_flat,
    )


def fit_columns(columns: FloatArray, sample: CalibrationSample, C: float) -> FloatArray:
    """Slopes of one or more columns, penalised by C, and the intercept of a logistic regression."""
    rows = np.vstack([columns, np.ones(len(sample.values))]).T
    return LogisticLoss(rows, sample.success, sample.failure, 1 / C).fit()
