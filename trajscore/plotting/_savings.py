"""What stopping early saves, and what it costs in accuracy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from numpy.typing import ArrayLike

from trajscore.monitoring import token_savings
from trajscore.monitoring._savings import TokenSavings
from trajscore.plotting._display import (
    REFERENCE,
    DisplayMixin,
    by_name,
    ink,
    next_style,
    plain,
    share_axis,
)
from trajscore.plotting._levels import exceeds_alpha, explain_cross, mark_levels


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
        lines, crossed = [], []
        for key, saving in self.savings.items():
            label = f"{plain(key)}, area {saving.area:.2f}"
            own = {**next_style(ax), "linewidth": 1.6, "label": label, **style}
            lines += ax.plot(saving.curve["cost_share"], saving.curve["accuracy_share"], **own)
            at = saving.at_alpha
            crossed.append(exceeds_alpha(at))
            mark_levels(ax, at["cost_share"], at["accuracy_share"], crossed[-1], own["color"])
        ax.plot([], [], color=ink(), marker="o", markersize=4, linestyle="none", label="levels")
        if any(crossing.any() for crossing in crossed):
            explain_cross(ax)
        ax.set(xlabel="share of cost spent", ylabel="share of accuracy kept")
        share_axis(ax, "x", "y")
        if name:
            ax.set_title(name)
        return lines

    def _legend(self) -> dict[str, Any]:
        return {"loc": "upper left"}
