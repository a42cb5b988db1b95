"""Evidence over time, of e-processes and of a fleet; what stopping rules flag and save."""

from collections.abc import Iterable
from copy import deepcopy
from dataclasses import field
from itertools import pairwise
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.utils import check_random_state

from trajscore.core.array import TrajectoryArray
from trajscore.core.checks import check_labels, check_trajectories
from trajscore.core.ids import id_order
from trajscore.core.outcomes import FAILURE, SUCCESS, check_outcomes
from trajscore.core.values import ArrayLike, BoolArray, ByName, IntArray, as_count
from trajscore.core.within_runs import step_numbers
from trajscore.monitoring import FleetMonitor, token_savings
from trajscore.monitoring._evaluation import TokenSavings
from trajscore.plotting._display import (
    COLORS,
    REFERENCE,
    SHARES,
    DisplayMixin,
    by_name,
    draw_with_band,
    ink,
    next_style,
    plain,
    step_axes,
)


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
        traces, outcome, *_ = process._observed(X, y, None, allow_soft=False)
        order = id_order(traces.ids)  # so that the order of rows cannot matter
        random = check_random_state(random_state)
        shown = [
            random.permutation(order[outcome[order] == k])[: -(-n_runs // 2)]
            for k in (FAILURE, SUCCESS)
        ]
        threshold = process._shown_threshold(level)
        if process.test_.threshold.end_worth is not None:
            threshold = np.nan
        log_m = traces.with_cells(process.test_.log_m(traces), channels=("log_e_value",))
        return cls(log_m, outcome, threshold, level, np.sort(np.concatenate(shown))).plot(**kwargs)

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
            table = self.medians.query("outcome == @outcome and n_runs >= @min_runs")
            table = table.droplevel("outcome")
            look = {"color": color, "linewidth": 2.4, "label": f"{label}, median", **style}
            lines += ax.plot(table["median"], zorder=3, **look)
        if np.isfinite(self.threshold) and self.threshold > 0:
            ax.axhline(
                np.log(self.threshold), color=ink(), linewidth=1.2, linestyle="--", zorder=2,
                label=f"threshold, alpha = {self.alpha:g}",
            )  # fmt: skip
        step_axes(ax, "log M (above the threshold: flagged)")
        return lines


_ROWS = 3  # of names of changes, which would overlap in one


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
            status = copy.update(traces[start:stop], *labels)
            share = copy.e_values_["log_e_value"] / thresholds
            run = copy.n_runs_
            if copy.changes_ and not status.cause:
                share = share * np.nan  # no evidence is gathered
            if status.alarm:
                run, _, *process, log_e = copy.changes_[-1][:5]
                share[tuple(process)] = log_e / thresholds[tuple(process)]
            rows[run] = share
        evidence = pd.DataFrame(rows).T.rename_axis("run")
        return cls(evidence, list(copy.changes_)).plot(**kwargs)

    def _draw(self, ax: Any, name: str | None, **style: Any) -> list[Any]:
        lines = []
        for (quantity, predictor), values in self.evidence.items():
            label = quantity
            if predictor:
                label = f"{quantity} of {predictor}"
            look = next_style(ax, style, linewidth=1.4, label=plain(label))
            lines += ax.plot(values, **look)
        ax.axhline(1, **REFERENCE)
        for k, change in enumerate(self.changes):
            ax.axvspan(change.since, change.alarm, color=ink(), alpha=0.12, linewidth=0)
            cause = plain(change.cause or "cause not known yet")
            text = f"{cause}\nsince run {change.since:,}, alarm at {change.alarm:,}"
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


class PowerDisplay(DisplayMixin):
    """False-alarm rate on the left and power on the right against alpha, with their intervals.

    A cross marks a false-alarm rate above alpha by more than chance: its interval does not reach
    down to alpha.

    Parameters
    ----------
    reports : dict of str to DataFrame
        Of each rule, by name, as from the ``report`` of a stopping rule.

    Attributes
    ----------
    line_, ax_, figure_
        Set by `plot`, whose `ax` may be a pair, or one axes that is split in two; `line_` lists
        the lines of the left panel, then those of the right one; `ax_` is the pair.

    References
    ----------
    Sadhuka et al. (2025), E-valuator, arXiv:2512.03109, Figure 2.

    Examples
    --------
    >>> from trajscore.monitoring import RawVerifier
    >>> from trajscore.plotting import PowerDisplay
    >>> X, y = [[0.9, 0.8], [0.2, 0.3]], [1, 0]
    >>> rule = RawVerifier(alpha=[0.1, 0.5]).fit(X)
    >>> PowerDisplay.from_reports({"raw": rule.report(X, y)}).reports["raw"]["power"].tolist()
    [0.0, 1.0]
    """

    _n_panels = 2
    reports: dict[str, pd.DataFrame]

    @classmethod
    def from_reports(cls, reports: Any, *, name: str = "stopping rule", **kwargs: Any) -> Self:
        """Take the tables of one or several rules.

        Parameters
        ----------
        reports : DataFrame or mapping of name to DataFrame
            From ``report``.
        name : str, default="stopping rule"
            Name of a single rule.
        **kwargs
            Passed to `plot`.

        Returns
        -------
        PowerDisplay
            The display, drawn.
        """
        tables = by_name(reports, name, "reports")
        for table in tables.values():
            if not isinstance(table, pd.DataFrame) or "false_alarm_rate" not in table:
                raise TypeError(f"reports must be tables of StoppingRule.report, got {table!r}")
        # by rising level, to be joined by lines
        return cls({key: table.sort_index() for key, table in tables.items()}).plot(**kwargs)

    @classmethod
    def from_estimator(
        cls, process: Any, X: Any, y: ArrayLike, *, name: str | None = None, **kwargs: Any
    ) -> Self:
        """Report on one or several fitted rules.

        Parameters
        ----------
        process : StoppingRule or mapping of name to StoppingRule
            Fitted.
        X, y
            As in ``report`` of a stopping rule.
        name : str, optional
            Name of a single rule; default: that of its class.
        **kwargs
            Passed to `plot`.

        Returns
        -------
        PowerDisplay
            The display, drawn.
        """
        rules = by_name(process, name, "stopping rules")
        return cls.from_reports({key: rule.report(X, y) for key, rule in rules.items()}, **kwargs)

    def _draw(self, ax: Any, name: str | None, **style: Any) -> list[Any]:
        left, right = ax
        largest = max(float(table.index.max()) for table in self.reports.values())
        left.plot([0, largest], [0, largest], label="alpha", zorder=1, **REFERENCE)
        lines = []
        for panel, rate in ((left, "false_alarm_rate"), (right, "power")):
            for key, table in self.reports.items():
                look = next_style(panel, style, label=plain(key), linewidth=1.6)
                low = table[f"{rate}_low"]
                high = table[f"{rate}_high"]
                line = draw_with_band(panel, table[rate], low, high, look)
                crossed = _exceeds_alpha(table) & (panel is left)
                _mark_levels(panel, table.index, table[rate], crossed, line.get_color())
                lines.append(line)
            panel.set(xlabel="alpha", xlim=(-0.02 * largest, 1.04 * largest))
            panel.locator_params(axis="x", nbins=5)
        _explain_crosses(left, self.reports.values())
        left.set(ylabel="false-alarm rate (succeeding runs flagged)")
        left.set_ylim(bottom=-0.02 * left.get_ylim()[1])
        right.set(ylabel="power (failing runs flagged)", ylim=SHARES)
        return lines

    def _given_axes(self, ax: Any) -> Any:
        if np.ndim(ax):
            return tuple(np.ravel(ax))
        if not ax.child_axes:
            ax.set_axis_off()
            for left in (0, 0.57):
                ax.inset_axes([left, 0, 0.43, 1])
        return tuple(ax.child_axes[:2])


class SavingsDisplay(DisplayMixin):
    """Accuracy kept against cost spent, as stopping rules' thresholds move.

    The fitted levels are points; a cross where the false-alarm rate is above alpha by more than
    chance: where its 95% interval does not reach down to alpha. The dashed line flags a random
    share of runs at their first step.

    Parameters
    ----------
    savings : dict of str to TokenSavings
        Of each rule, by name, as from `trajscore.monitoring.token_savings`.

    References
    ----------
    Sadhuka et al. (2025), E-valuator, arXiv:2512.03109, Figure 3.

    Examples
    --------
    >>> from trajscore.monitoring import RawVerifier
    >>> from trajscore.plotting import SavingsDisplay
    >>> X, y = [[0.9, 0.8], [0.2, 0.3]], [1, 0]
    >>> display = SavingsDisplay.from_estimator(RawVerifier().fit(X), X, y)
    >>> display.savings["RawVerifier"].curve["cost_share"].tolist()
    [1.0, 0.75, 0.75, 0.5]
    """

    savings: dict[str, TokenSavings]

    @classmethod
    def from_estimator(
        cls,
        process: Any,
        X: Any,
        y: ArrayLike,
        *,
        cost: Any = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Weigh savings against losses for one or several rules.

        Parameters
        ----------
        process : StoppingRule or mapping of name to StoppingRule
            Fitted.
        X, y, cost
            As in `trajscore.monitoring.token_savings`.
        name : str, optional
            Name of a single rule; default: that of its class.
        **kwargs
            Passed to `plot`.

        Returns
        -------
        SavingsDisplay
            The display, drawn.
        """
        rules = by_name(process, name, "stopping rules")
        savings = {key: token_savings(rule, X, y, cost=cost) for key, rule in rules.items()}
        return cls(savings).plot(**kwargs)

    def _draw(self, ax: Any, name: str | None, **style: Any) -> list[Any]:
        ends = next(iter(self.savings.values())).curve["cost_share"].iloc[[-1, 0]]
        ax.plot(ends, [0, 1], label="random runs at step 1", zorder=1, **REFERENCE)
        lines = []
        for key, saving in self.savings.items():
            label = f"{plain(key)}, area {saving.area:.2f}"
            look = next_style(ax, style, linewidth=1.6, label=label)
            lines += ax.plot(saving.curve["cost_share"], saving.curve["accuracy_share"], **look)
            at = saving.at_alpha
            _mark_levels(
                ax, at["cost_share"], at["accuracy_share"], _exceeds_alpha(at), look["color"]
            )
        ax.plot([], [], color=ink(), label="levels", **_POINT)
        _explain_crosses(ax, [saving.at_alpha for saving in self.savings.values()])
        ax.set(
            xlabel="share of cost spent", ylabel="share of accuracy kept", xlim=SHARES, ylim=SHARES
        )
        return lines


def _exceeds_alpha(table: pd.DataFrame) -> BoolArray:
    """Tell at which levels more good runs are flagged than chance explains."""
    return table["false_alarm_rate_low"].to_numpy() > table.index.to_numpy()


def _mark_levels(ax: Any, x: Any, y: Any, crossed: BoolArray, color: str) -> None:
    """Draw a point for each level, a cross where it is crossed out."""
    for chosen, marker in ((~crossed, _POINT), (crossed, _CROSS)):
        ax.plot(np.asarray(x)[chosen], np.asarray(y)[chosen], color=color, zorder=4, **marker)


def _explain_crosses(ax: Any, tables: Iterable[pd.DataFrame]) -> None:
    """Add the cross to the legend where there is one."""
    if any(_exceeds_alpha(table).any() for table in tables):
        ax.plot([], [], color=ink(), label="false-alarm rate above alpha", **_CROSS)


_POINT: ByName = {"marker": "o", "markersize": 4, "linestyle": "none"}
_CROSS: ByName = {"marker": "x", "markersize": 6, "markeredgewidth": 1.8, "linestyle": "none"}
