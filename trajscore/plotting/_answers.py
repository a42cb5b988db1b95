"""Confidences: do they come true, and what do errors and rejected answers cost?"""

from typing import Any, Self

import numpy as np

from trajscore.core.checks import check_traces
from trajscore.core.outcomes import CENSORED, check_outcomes
from trajscore.core.ties import bins_of
from trajscore.core.values import ArrayLike, ByName, FloatArray, IntArray, check_choice
from trajscore.core.weights import AGGREGATORS, Horizon, Weights, as_step_weights, collapse
from trajscore.inference.intervals import wilson_interval
from trajscore.metrics import Answers, aurc, risk_coverage_curve
from trajscore.plotting._display import (
    GREY,
    REFERENCE,
    SHARES,
    AnswerDisplayMixin,
    PredictionDisplayMixin,
    next_style,
    shade_behind,
)


class RiskCoverageDisplay(AnswerDisplayMixin):
    """Error rate among accepted answers against the share accepted.

    Beside it stand the curves of no and of a perfect ranking. Several predictors may share axes.

    Parameters
    ----------
    coverage, risk : ndarray of shape (n_thresholds,)
        From `risk_coverage_curve`.
    aurc : float
        Area under the curve.
    best : ndarray of shape (n_points,)
        Risk of a perfect ranking over equal steps of coverage.

    Examples
    --------
    >>> from trajscore.plotting import RiskCoverageDisplay
    >>> display = RiskCoverageDisplay.from_predictions([1, 0, 1], [0.9, 0.2, 0.6])
    >>> display.risk.round(3)
    array([0.   , 0.   , 0.333])
    """

    coverage: FloatArray
    risk: FloatArray
    aurc: float
    best: FloatArray

    @classmethod
    def from_predictions(
        cls,
        correct: ArrayLike,
        confidence: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        **kwargs: Any,
    ) -> Self:
        """Compute the curve.

        Parameters
        ----------
        correct, confidence, sample_weight
            As in `trajscore.metrics.risk_coverage_curve`.
        **kwargs
            Passed to `plot`.

        Returns
        -------
        RiskCoverageDisplay
            The display, drawn.
        """
        coverage, risk, _ = risk_coverage_curve(correct, confidence, sample_weight=sample_weight)
        area = aurc(correct, confidence, sample_weight=sample_weight)
        share = _equal_steps(200)
        best = np.maximum(share - (1 - risk[-1]), 0) / share
        return cls(coverage, risk, area, best).plot(**kwargs)

    def _draw(self, ax: Any, name: str | None, **style: Any) -> Any:
        label = f"{name or ''} AURC = {self.aurc:.3f}".lstrip()
        # a threshold accepts whole groups of ties, so the curve moves in steps
        look = next_style(ax, style, linewidth=1.6, drawstyle="steps-pre", label=label)
        (line,) = ax.plot(self.coverage, self.risk, **look)
        grey = {"color": GREY, "linewidth": 1, "zorder": 0}
        ax.axhline(self.risk[-1], linestyle="--", label="no ranking", **grey)
        share = _equal_steps(len(self.best))
        ax.plot(share, self.best, linestyle=":", label="perfect ranking", **grey)
        ax.set(xlabel="coverage (share accepted)", ylabel="risk (share wrong)", xlim=SHARES)
        return line


def _equal_steps(n: int) -> FloatArray:
    return np.linspace(0, 1, n + 1)[1:]


class CostCurveDisplay(AnswerDisplayMixin):
    """Cost against the cost of rejecting, with the weight that ECUAS_n gives to each.

    The weight is the grey behind, on the axis to the right. Several systems may share axes.

    Parameters
    ----------
    gamma : ndarray of shape (n_points,)
        Costs of rejecting.
    cost : ndarray of shape (n_points,)
        Expected cost at each.
    weight : ndarray of shape (n_points,)
        w_n at each; for n > 0 its integral from 0 to u_M, the largest possible uncertainty, is
        (n + 1) / (n u_M).
    n : float
        Parameter of ECUAS_n.
    ecuas : float
        ECUAS_n, the area under weight times cost from 0 to u_M.

    References
    ----------
    Estienne et al. (2026), ECUAS_n, arXiv:2605.20490, Eq. 8.

    Examples
    --------
    >>> from trajscore.plotting import CostCurveDisplay
    >>> display = CostCurveDisplay.from_predictions([1, 0], [0.9, 0.4], n=1)
    >>> round(display.ecuas, 3)
    0.585
    """

    gamma: FloatArray
    cost: FloatArray
    weight: FloatArray
    n: float
    ecuas: float

    @classmethod
    def from_predictions(
        cls,
        correct: ArrayLike,
        confidence: ArrayLike,
        *,
        n: float = 1,
        n_classes: float = np.inf,
        sample_weight: ArrayLike | None = None,
        **kwargs: Any,
    ) -> Self:
        """Compute the cost over a grid of rejection costs.

        Parameters
        ----------
        correct, confidence, n, n_classes, sample_weight
            As in `trajscore.metrics.ecuas_from_confidence`.
        **kwargs
            Passed to `plot`.

        Returns
        -------
        CostCurveDisplay
            The display, drawn.

        Raises
        ------
        ValueError
            As `trajscore.metrics.ecuas_from_confidence`.
        """
        answers = Answers.from_confidence(
            correct, confidence, n_classes=n_classes, sample_weight=sample_weight
        )
        u_max = 1 - 1 / n_classes
        gamma = np.linspace(0, u_max, 401)[1:]
        weight = (n + 1) / u_max**2 * (gamma / u_max) ** (n - 1.0)
        return cls(gamma, np.asarray(answers.cost(gamma).cost), weight, n, answers.ecuas(n)).plot(
            **kwargs
        )

    @classmethod
    def _predict(cls, estimator: Any, X: Any, y: ArrayLike) -> ByName:
        return super()._predict(estimator, X, y) | {"n_classes": len(estimator.classes_)}

    def _draw(self, ax: Any, name: str | None, **style: Any) -> Any:
        # below n = 1 the weight has no bound at 0
        top = 1.1 * self.weight[len(self.weight) // 20 :].max()
        shade_behind(ax, f"weight in ECUAS (grey), n = {self.n:g}", self.gamma, self.weight, top)
        label = f"{name or 'system'}, ECUAS = {self.ecuas:.3f}"
        style = next_style(ax, style, linewidth=1.8, label=label)
        (line,) = ax.plot(self.gamma, self.cost, **style)
        # an endless line leaves the height of the axes to the curves
        ax.axline((0, 0), slope=1, linewidth=1, linestyle=":", color=GREY, label="always reject")
        if not self.cost.any():
            ax.update_datalim([(0, 1)])
        ax.set(
            xlabel="cost of rejecting, relative to that of a wrong answer",
            ylabel="expected cost",
            xlim=(0, self.gamma[-1]),
        )
        ax.autoscale(axis="y")
        return line


class ReliabilityDisplay(PredictionDisplayMixin):
    """Success rate against forecast, in quantile bins that never split a tie.

    The bars are 95% intervals; the diagonal is perfect calibration.

    Parameters
    ----------
    forecast, success_rate : ndarray of shape (n_bins,)
        Mean forecast and share of successes in each bin.
    n_runs : ndarray of shape (n_bins,)
        Runs in each bin.

    Examples
    --------
    >>> from trajscore.plotting import ReliabilityDisplay
    >>> display = ReliabilityDisplay.from_predictions([1, 0], [[0.8], [0.3]], n_bins=2)
    >>> display.forecast
    array([0.3, 0.8])
    """

    forecast: FloatArray
    success_rate: FloatArray
    n_runs: IntArray

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        traces: Any,
        *,
        phi: str = "weighted",
        weights: Weights = "early",
        horizon: Horizon = None,
        n_bins: int | None = None,
        **kwargs: Any,
    ) -> Self:
        """Bin the collapsed traces of complete runs.

        Parameters
        ----------
        y_true : array-like of shape (n_runs,)
            Outcomes; runs with -1 are ignored.
        traces : TrajectoryArray or array-like of shape (n_runs, T_max)
            Forecasts in [0, 1].
        phi, weights, horizon
            As in `trajscore.TraceAggregator`.
        n_bins : int, optional
            Number of bins of equal weight, as those of T-ECE; fewer where ties are large. Default:
            10, or one for every 10 runs where there are fewer than 100.
        **kwargs
            Passed to `plot`.

        Returns
        -------
        ReliabilityDisplay
            The display, drawn.
        """
        X = check_traces(traces)
        y = check_outcomes(y_true, X)
        complete = np.flatnonzero(y != CENSORED)
        check_choice(phi, "phi", AGGREGATORS)
        confidence = collapse(X[complete], phi, as_step_weights(weights, horizon))
        if n_bins is None:
            n_bins = min(10, max(1, len(complete) // 10))
        bins = bins_of(confidence, np.ones(len(complete)), n_bins, "quantile")
        _, used, n_runs = np.unique(bins, return_inverse=True, return_counts=True)
        forecast, success_rate = (
            np.bincount(used, values) / n_runs for values in (confidence, y[complete])
        )
        return cls(forecast, success_rate, n_runs).plot(**kwargs)

    def _draw(self, ax: Any, name: str | None, **style: Any) -> Any:
        ax.plot([0, 1], [0, 1], label="perfectly calibrated", zorder=0, **REFERENCE)
        ax.set(xlabel="forecast of success", ylabel="share of successes", xlim=SHARES, ylim=SHARES)
        ax.set_aspect("equal")
        style = next_style(
            ax, style, marker="o", markersize=4, linewidth=1.2, label=name, elinewidth=0.8
        )
        low, high = wilson_interval(self.success_rate, self.n_runs)
        spread = np.maximum([self.success_rate - low, high - self.success_rate], 0)
        return ax.errorbar(self.forecast, self.success_rate, yerr=spread, **style)
