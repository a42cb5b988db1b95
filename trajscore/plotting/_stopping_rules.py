"""What stopping rules flag, whether they keep their level, and what they save."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from trajscore.core.type_aliases import BoolArray
from trajscore.monitoring import token_savings
from trajscore.monitoring._evaluation import TokenSavings
from trajscore.plotting._display import (
    REFERENCE,
    DisplayMixin,
    by_name,
    draw_with_band,
    ink,
    next_style,
    plain,
    share_axis,
)


@dataclass(eq=False, repr=False)
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
        rules = by_name(process, name or type(process).__name__, "stopping rules")
        return cls.from_reports({key: rule.report(X, y) for key, rule in rules.items()}, **kwargs)

    def _draw(self, ax: Any, name: str | None, **style: Any) -> list[Any]:
        left, right = ax
        largest = max(float(table.index.max()) for table in self.reports.values())
        left.plot([0, largest], [0, largest], label="alpha", zorder=1, **REFERENCE)
        lines = []
        for panel, rate in ((left, "false_alarm_rate"), (right, "power")):
            for key, table in self.reports.items():
                look = {**next_style(panel), "label": plain(key), "linewidth": 1.6, **style}
                low = table[f"{rate}_low"]
                high = table[f"{rate}_high"]
                line = draw_with_band(panel, table.index, table[rate], low, high, look)
                crossed = _exceeds_alpha(table) & np.array(rate == "false_alarm_rate")
                _mark_levels(panel, table.index, table[rate], crossed, line.get_color())
                lines.append(line)
            panel.set(xlabel="alpha", xlim=(-0.02 * largest, 1.04 * largest))
            panel.locator_params(axis="x", nbins=5)
        if any(_exceeds_alpha(table).any() for table in self.reports.values()):
            _explain_cross(left)
        left.set(ylabel="false-alarm rate (succeeding runs flagged)")
        left.set_ylim(bottom=-0.02 * left.get_ylim()[1])
        right.set_ylabel("power (failing runs flagged)")
        share_axis(right, "y")
        return lines

    def _given_axes(self, ax: Any) -> Any:
        if np.ndim(ax):
            return tuple(np.ravel(ax))
        if not ax.child_axes:
            ax.set_axis_off()
            for left in (0, 0.57):
                ax.inset_axes([left, 0, 0.43, 1])
        return tuple(ax.child_axes[:2])


@dataclass(eq=False, repr=False)
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
        rules = by_name(process, name or type(process).__name__, "stopping rules")
        savings = {key: token_savings(rule, X, y, cost=cost) for key, rule in rules.items()}
        return cls(savings).plot(**kwargs)

    def _draw(self, ax: Any, name: str | None, **style: Any) -> list[Any]:
        ends = next(iter(self.savings.values())).curve["cost_share"].iloc[[-1, 0]]
        ax.plot(ends, [0, 1], label="random runs at step 1", zorder=1, **REFERENCE)
        lines = []
        crossed = []
        for key, saving in self.savings.items():
            label = f"{plain(key)}, area {saving.area:.2f}"
            look = {**next_style(ax), "linewidth": 1.6, "label": label, **style}
            lines += ax.plot(saving.curve["cost_share"], saving.curve["accuracy_share"], **look)
            at = saving.at_alpha
            crossed.append(_exceeds_alpha(at))
            _mark_levels(ax, at["cost_share"], at["accuracy_share"], crossed[-1], look["color"])
        ax.plot([], [], color=ink(), marker="o", markersize=4, linestyle="none", label="levels")
        if any(crossing.any() for crossing in crossed):
            _explain_cross(ax)
        ax.set(xlabel="share of cost spent", ylabel="share of accuracy kept")
        share_axis(ax, "x", "y")
        return lines


def _exceeds_alpha(table: pd.DataFrame) -> BoolArray:
    """Tell at which levels more good runs are flagged than chance explains."""
    return table["false_alarm_rate_low"].to_numpy() > table.index.to_numpy()


def _mark_levels(ax: Any, x: Any, y: Any, crossed: BoolArray, color: str) -> None:
    """Draw a point for each level, a cross where it is crossed out."""
    place = np.asarray(x)
    height = np.asarray(y)
    common = {"linestyle": "none", "color": color, "zorder": 4}
    ax.plot(place[~crossed], height[~crossed], marker="o", markersize=4, **common)
    ax.plot(place[crossed], height[crossed], **_CROSS, **common)


def _explain_cross(ax: Any) -> None:
    """Add the cross to the legend."""
    ax.plot([], [], color=ink(), label="false-alarm rate above alpha", linestyle="none", **_CROSS)


_CROSS = {"marker": "x", "markersize": 6, "markeredgewidth": 1.8}
