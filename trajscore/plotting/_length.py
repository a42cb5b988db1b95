"""What the length of a run alone predicts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from trajscore.core.checks import check_trajectories
from trajscore.core.equal_length import span, success_by_length
from trajscore.core.outcomes import check_outcomes
from trajscore.plotting._display import (
    GREY,
    PredictionDisplayMixin,
    next_style,
    share_axis,
    wilson_errors,
)


@dataclass(eq=False, repr=False)
class LengthDisplay(PredictionDisplayMixin):
    """Success rate by run length, with 95% intervals, over bars of how many runs there are.

    Parameters
    ----------
    table : DataFrame indexed by bin
        low, high: range of lengths; n_runs, n_observed and success_rate.

    Examples
    --------
    >>> from trajscore.plotting import LengthDisplay
    >>> LengthDisplay.from_predictions([1, 0], [[0.8, 0.9], [0.3, float("nan")]]).table
       low  high  n_runs  n_observed  success_rate
    0    1     1       1           1           0.0
    1    2     2       1           1           1.0
    """

    table: pd.DataFrame

    @classmethod
    def from_predictions(
        cls, y_true: ArrayLike, traces: Any, *, n_bins: int = 10, **kwargs: Any
    ) -> Self:
        """Bin runs by length.

        Parameters
        ----------
        y_true : array-like of shape (n_runs,)
            Outcomes: 1 success, 0 failure, -1 not observed.
        traces : TrajectoryArray or array-like of shape (n_runs, T_max)
            The runs; values are not read.
        n_bins : int, default=10
            Largest number of bins; one for each length where that is enough.
        **kwargs
            Passed to `plot`.

        Returns
        -------
        LengthDisplay
            The display, drawn.
        """
        X = check_trajectories(traces, allow_missing=True)
        y = check_outcomes(y_true, X)
        table = success_by_length(X.lengths, y, n_bins)
        return cls(table).plot(**kwargs)

    def _draw(self, ax: Any, name: str | None, **style: Any) -> Any:
        place = np.arange(len(self.table))
        share = self.table["n_runs"] / self.table["n_runs"].sum()
        bars = {
            "color": GREY,
            "alpha": 0.35,
            "width": 0.9,
            "linewidth": 0,
            "label": "share of runs",
        }
        if bars["label"] not in ax.get_legend_handles_labels()[1]:
            ax.bar(place, share, **bars)
        labels = list(map(span, self.table["low"], self.table["high"]))
        ax.set_xticks(place, labels, rotation=45 if len(labels) > 7 else 0)
        ax.set(xlabel="steps in the run", ylabel="share")
        share_axis(ax, "y")
        seen = (self.table["n_observed"] > 0).to_numpy()
        rate = self.table["success_rate"].to_numpy()[seen]
        spread = wilson_errors(rate, self.table["n_observed"].to_numpy()[seen])
        style = {
            **next_style(ax), "marker": "o", "markersize": 4, "linewidth": 1.2,
            "label": name or "success rate", **style,
        }  # fmt: skip
        return ax.errorbar(place[seen], rate, yerr=spread, **style)
