"""The e-process of succeeding and of failing runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from trajscore.core.array import TrajectoryArray
from trajscore.core.checks import check_trajectories
from trajscore.core.ids import id_order
from trajscore.core.outcomes import CENSORED, FAILURE, SUCCESS, check_outcomes
from trajscore.core.sample import ended_where_known
from trajscore.core.type_aliases import IntArray
from trajscore.core.within_runs import step_numbers
from trajscore.plotting._display import COLORS, DisplayMixin, ink, step_axis


@dataclass(eq=False, repr=False)
class EProcessDisplay(DisplayMixin):
    """Log M of succeeding and failing runs over steps: a sample, medians, and the threshold.

    Where a flag at the end is worth less (``end_worth``), M is not what is compared with the
    threshold, and none is drawn.

    Parameters
    ----------
    log_m : TrajectoryArray
        log M after every step, of runs whose outcome was observed.
    outcome : ndarray of shape (n_runs,)
        1 success, 0 failure.
    threshold : float
        Threshold on M; not drawn if it is not finite.
    alpha : float
        Its level.
    shown : ndarray of int
        Rows that are drawn one by one.

    Attributes
    ----------
    medians : DataFrame indexed by (outcome, step)
        median of log M among the runs that reach the step, and n_runs.

    Notes
    -----
    `plot` draws no median of steps that fewer than ``min_runs=10`` runs reach.

    References
    ----------
    Sadhuka et al. (2025), E-valuator, arXiv:2512.03109, Appendix 8.2.

    Examples
    --------
    >>> from trajscore import DensityRatioEProcess
    >>> from trajscore.datasets import make_trajectories
    >>> from trajscore.plotting import EProcessDisplay
    >>> X, y = make_trajectories(400, lengths=4, random_state=0, return_X_y=True)
    >>> process = DensityRatioEProcess(alpha=0.2).fit(X[:200], y[:200])
    >>> display = EProcessDisplay.from_estimator(process, X[200:], y[200:])
    >>> display.medians["median"].unstack("outcome").round(1).iloc[-1].tolist()
    [1.1, -1.3]
    """

    log_m: TrajectoryArray
    outcome: IntArray
    threshold: float
    alpha: float
    shown: IntArray
    medians: pd.DataFrame = field(init=False)

    def __post_init__(self) -> None:
        if not isinstance(self.log_m, TrajectoryArray):
            raise TypeError(f"log_m must be a TrajectoryArray, got {type(self.log_m).__name__}")
        self.outcome = check_outcomes(self.outcome, self.log_m, allow_soft=False)
        of_cell = np.repeat(self.outcome, self.log_m.lengths)
        cells = {"outcome": of_cell, "step": step_numbers(self.log_m), "log_m": self.log_m.cells}
        grouped = pd.DataFrame(cells).groupby(["outcome", "step"])["log_m"]
        self.medians = grouped.agg(median="median", n_runs="size")

    @classmethod
    def from_estimator(
        cls,
        process: Any,
        X: Any,
        y: ArrayLike,
        *,
        alpha: float | None = None,
        n_runs: int = 60,
        random_state: Any = 0,
        **kwargs: Any,
    ) -> Self:
        """Compute log M.

        Parameters
        ----------
        process : DensityRatioEProcess
            Fitted.
        X : TrajectoryArray or array-like of shape (n_runs, T_max)
            Scores of runs that were not used in fitting.
        y : array-like of shape (n_runs,)
            Outcomes: 1 success, 0 failure; runs with -1 are left out.
        alpha : float, optional
            One of the fitted levels; default: the first.
        n_runs : int, default=60
            How many runs are drawn one by one, half of them succeeding where there are enough.
        random_state : int, RandomState instance or None, default=0
            Draws these runs.
        **kwargs
            Passed to `plot`.

        Returns
        -------
        EProcessDisplay
            The display, drawn.
        """
        level = process._level(alpha)
        outcome = check_outcomes(y, allow_soft=False)
        transformed = process.transform(ended_where_known(X, outcome))
        log_m = check_trajectories(transformed, single_channel=True)
        known = outcome != CENSORED
        log_m, outcome = log_m[known], outcome[known]
        shown = _drawn_rows(log_m, outcome, n_runs, random_state)
        is_weighted = process.end_worth is not None
        threshold = np.nan if is_weighted else process._shown_threshold(level)
        return cls(log_m, outcome, threshold, level, shown).plot(**kwargs)

    def _draw(self, ax: Any, name: str | None, *, min_runs: int = 10, **style: Any) -> list[Any]:
        lines = []
        for outcome, color, label in (
            (FAILURE, COLORS["failure"], "failing runs"),
            (SUCCESS, COLORS["success"], "succeeding runs"),
        ):
            for row in self.shown[self.outcome[self.shown] == outcome]:
                values = self.log_m[int(row)]
                thin = {"color": color, "linewidth": 0.7, "zorder": 1}
                ax.plot(np.arange(1, len(values) + 1), values, alpha=0.3, **thin)
                ax.plot(len(values), values[-1], marker=".", markersize=3, alpha=0.6, **thin)
            table = self.medians[self.medians.index.get_level_values("outcome") == outcome]
            table = table[table["n_runs"] >= min_runs].droplevel("outcome")
            own = {"color": color, "linewidth": 2.4, "label": f"{label}, median", **style}
            lines += ax.plot(table.index, table["median"], zorder=3, **own)
        if np.isfinite(self.threshold) and self.threshold > 0:
            label = f"threshold, alpha = {self.alpha:g}"
            dashed = {"color": ink(), "linewidth": 1.2, "linestyle": "--", "label": label}
            ax.axhline(np.log(self.threshold), zorder=2, **dashed)
        ax.set_ylabel("log M (above the threshold: flagged)")
        step_axis(ax)
        return lines


def _drawn_rows(X: TrajectoryArray, y: IntArray, n_runs: int, random_state: Any) -> IntArray:
    """Draw rows of both outcomes alike, whatever the order of rows."""
    rng = check_random_state(random_state)
    rows = []
    for outcome in (FAILURE, SUCCESS):
        some = np.flatnonzero(y == outcome)
        some = some[id_order(X.ids[some])]
        rows.append(rng.permutation(some)[: -(-n_runs // 2)])
    return np.sort(np.concatenate(rows))
