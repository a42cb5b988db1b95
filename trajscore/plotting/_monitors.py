"""Evidence over time: of the runs of an e-process, and of a fleet."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from trajscore.core.array import TrajectoryArray
from trajscore.core.checks import check_labels, check_trajectories
from trajscore.core.ids import id_order
from trajscore.core.outcomes import CENSORED, FAILURE, SUCCESS, check_outcomes
from trajscore.core.sample import ended_where_known
from trajscore.core.type_aliases import IntArray
from trajscore.core.values import as_count
from trajscore.core.within_runs import step_numbers
from trajscore.monitoring import FleetMonitor
from trajscore.plotting._display import (
    COLORS,
    REFERENCE,
    DisplayMixin,
    ink,
    next_style,
    plain,
    step_axis,
)


@dataclass(eq=False, repr=False)
class EProcessDisplay(DisplayMixin):
    """Log M of succeeding and failing runs over steps: a sample, medians, and the threshold.

    Where a flag at the end is worth less (``Conformal(end_worth=)``), M is not what is compared
    with the threshold, and none is drawn.

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
        observed = outcome != CENSORED
        log_m = log_m[observed]
        outcome = outcome[observed]
        shown = _drawn_rows(log_m, outcome, n_runs, random_state)
        is_weighted = process.test_.threshold.end_worth is not None
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
            look = {"color": color, "linewidth": 2.4, "label": f"{label}, median", **style}
            lines += ax.plot(table.index, table["median"], zorder=3, **look)
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


_ROWS = 3  # of names of changes, which would overlap in one


@dataclass(eq=False, repr=False)
class FleetDisplay(DisplayMixin):
    """Evidence of each quantity over runs, as far as its alarm, and the changes by name.

    Parameters
    ----------
    evidence : DataFrame indexed by run
        A column for each quantity and predictor: the log e-value as a share of the log threshold of
        an alarm; NaN between an alarm and the next reference.
    changes : list of FleetChange
        Changes that were noticed.

    Examples
    --------
    >>> from trajscore.datasets import make_trajectories
    >>> from trajscore.monitoring import FleetMonitor
    >>> from trajscore.plotting import FleetDisplay
    >>> runs = make_trajectories(3000, random_state=0)
    >>> fleet = FleetMonitor().fit(runs.q[:1000], runs.target[:1000])
    >>> later = runs.q[1000:].with_cells(runs.q[1000:].cells ** 0.3)
    >>> display = FleetDisplay.from_estimator(fleet, later, runs.target[1000:])
    >>> display.changes[0].cause, fleet.n_runs_
    ('forecasts', 0)
    """

    evidence: pd.DataFrame
    changes: list[Any]

    @classmethod
    def from_estimator(
        cls,
        fleet: FleetMonitor,
        X: Any,
        y: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        *,
        n_points: int = 400,
        **kwargs: Any,
    ) -> Self:
        """Let a copy of a monitor follow runs.

        Parameters
        ----------
        fleet : FleetMonitor
            Fitted; it stays as it is.
        X : TrajectoryArray or array-like of shape (n_runs, T_max)
            Runs after those that it has seen.
        y : array-like of shape (n_runs,), optional
            Outcomes; -1 not observed.
        groups : array-like of shape (n_runs,), optional
            Tasks.
        n_points : int, default=400
            Runs at which the evidence is noted, at equal distances.
        **kwargs
            Passed to `plot`.

        Returns
        -------
        FleetDisplay
            The display, drawn.
        """
        as_count(n_points, "n_points")
        traces: TrajectoryArray = check_trajectories(X, allow_missing=True, allow_empty=True)
        outcomes = None if y is None else check_outcomes(y, traces)
        tasks = None if groups is None else check_labels(groups, len(traces))
        copy = deepcopy(fleet)
        rows = {}
        n_chunks = max(n_points, 2 * len(traces) // fleet.n_after)
        bounds = np.unique(np.linspace(0, len(traces), n_chunks + 1).astype(int)).tolist()
        for start, stop in pairwise(bounds):
            thresholds = copy.e_values_["log_threshold"]
            labels = (v if v is None else v[start:stop] for v in (outcomes, tasks))
            alarm = copy.update(traces[start:stop], *labels).alarm
            share = copy.e_values_["log_e_value"] / thresholds
            run = copy.n_runs_
            if copy.changes_ and not copy.changes_[-1].cause:
                share = share * np.nan  # no evidence is gathered
            if alarm:
                run, _, quantity, predictor, log_e, *_ = copy.changes_[-1]
                share[(quantity, predictor)] = log_e / thresholds[(quantity, predictor)]
            rows[run] = share
        evidence = pd.DataFrame(rows).T.rename_axis("run")
        return cls(evidence, list(copy.changes_)).plot(**kwargs)

    def _draw(self, ax: Any, name: str | None, **style: Any) -> list[Any]:
        lines = []
        for column in self.evidence:
            quantity, predictor = column
            label = quantity
            if predictor:
                label = f"{quantity} of {predictor}"
            look = {"linewidth": 1.4, "label": plain(label), **next_style(ax), **style}
            lines += ax.plot(self.evidence.index, self.evidence[column], **look)
        ax.axhline(1, **REFERENCE)
        for k, change in enumerate(self.changes):
            ax.axvspan(change.since, change.alarm, color=ink(), alpha=0.12, linewidth=0)
            words = change.cause or "cause not known yet"
            text = plain(f"{words}\nsince run {change.since:,}, alarm at {change.alarm:,}")
            ax.annotate(
                text, (change.alarm, 1), xytext=(4, 6 + 26 * (k % _ROWS)),
                textcoords="offset points", fontsize="small", color=ink(), va="bottom",
            )  # fmt: skip
        low = self.evidence.min().min()
        high = self.evidence.max().max()
        ax.set(xlabel="run", ylabel="log e-value, as a share of the alarm's")
        room = min(len(self.changes), _ROWS) * 0.3
        ax.set_ylim(min(low, 0) - 0.1, max(high, 1) + room + 0.1)
        return lines
