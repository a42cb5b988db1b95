"""Do forecasts come true as often as they say?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from trajscore.core.binning import bins_of
from trajscore.core.checks import check_trajectories
from trajscore.core.collapse import AGGREGATORS, collapse
from trajscore.core.outcomes import CENSORED, check_outcomes
from trajscore.core.type_aliases import FloatArray, IntArray
from trajscore.core.values import check_choice
from trajscore.core.weights import Horizon, Weights, as_step_weights
from trajscore.plotting._display import (
    REFERENCE,
    PredictionDisplayMixin,
    next_style,
    share_axis,
    wilson_errors,
)


@dataclass(eq=False, repr=False)
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
        X = check_trajectories(traces, probabilities=True, single_channel=True)
        y = check_outcomes(y_true, X)
        complete = np.flatnonzero(y != CENSORED)
        check_choice(phi, "phi", AGGREGATORS)
        confidence = collapse(X[complete], phi, as_step_weights(weights, horizon))
        if n_bins is None:
            n_bins = min(10, max(1, len(complete) // 10))
        bins = bins_of(confidence, np.ones(len(complete)), n_bins, "quantile")
        counts = np.bincount(bins, minlength=n_bins)
        used = counts > 0
        return cls(
            forecast=np.bincount(bins, confidence, n_bins)[used] / counts[used],
            success_rate=np.bincount(bins, y[complete], n_bins)[used] / counts[used],
            n_runs=counts[used],
        ).plot(**kwargs)

    def _draw(self, ax: Any, name: str | None, **style: Any) -> Any:
        ax.plot([0, 1], [0, 1], label="perfectly calibrated", zorder=0, **REFERENCE)
        ax.set(xlabel="forecast of success", ylabel="share of successes")
        share_axis(ax, "x", "y")
        ax.set_aspect("equal")
        label = {} if name is None else {"label": name}
        own = {**next_style(ax), "marker": "o", "markersize": 4, "linewidth": 1.2, **label}
        spread = wilson_errors(self.success_rate, self.n_runs)
        style = {"elinewidth": 0.8, **own, **style}
        return ax.errorbar(self.forecast, self.success_rate, yerr=spread, **style)
