"""How early a risk tells of failure, and what it tells at each step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from trajscore.plotting._display import (
    REFERENCE,
    SERIES,
    PredictionDisplayMixin,
    by_name,
    pyplot,
)
from trajscore.tracer._early_warning import EarlyWarning, early_warning


@dataclass(eq=False, repr=False)
class EarlyWarningDisplay(PredictionDisplayMixin):
    """Share of failed and of successful runs flagged as runs go on, and AUROC at each step.

    Parameters
    ----------
    warnings : dict of str to EarlyWarning
        For each name, when its risk reached the threshold.

    Attributes
    ----------
    line_, ax_, figure_
        Set by `plot`; `line_` is the list of the curves of detection, `ax_` both axes, or the one
        that was given.

    See Also
    --------
    trajscore.tracer.early_warning : The numbers behind it.

    Notes
    -----
    `plot` shades the early part of a run, ``early=0.2``. On one pair of axes, ``ax=one``, it draws
    the shares alone. AUROC at a step is of the runs that are at least that long, with its interval:
    shares of a run are taller for long runs, which fail more often, and here length tells nothing.

    Examples
    --------
    >>> from trajscore.plotting import EarlyWarningDisplay
    >>> risks = {"mine": [[0.1, 0.9, 0.9], [0.2, 0.2, 0.8], [0.1, 0.3, 0.4]]}
    >>> display = EarlyWarningDisplay.from_predictions([0, 0, 1], risks)
    >>> display.warnings["mine"].detected_within(0.5)
    0.5
    """

    warnings: dict[str, EarlyWarning]

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        risks: Any,
        *,
        threshold: float | None = None,
        groups: ArrayLike | None = None,
        definition: str = "paper",
        **kwargs: Any,
    ) -> Self:
        """Find the times of one or several risks.

        Parameters
        ----------
        risks : TrajectoryArray, array-like of shape (n_runs, T_max) or dict of these
            Risks of the run so far; several by name.
        y_true, threshold, groups, definition
            As in `trajscore.tracer.early_warning`.
        **kwargs
            Passed to `plot`.

        Returns
        -------
        EarlyWarningDisplay
            The display, drawn.
        """
        named = by_name(risks, "risk", "risks")
        options: dict[str, Any] = {
            "threshold": threshold, "groups": groups, "definition": definition,
        }  # fmt: skip
        warnings = {key: early_warning(y_true, risk, **options) for key, risk in named.items()}
        return cls(warnings).plot(**kwargs)

    @classmethod
    def _predict(cls, estimator: Any, X: Any, y: ArrayLike) -> dict[str, Any]:
        # the estimator names its curve, not the picture
        risks = {type(estimator).__name__: estimator.transform(X)}
        return {"y_true": y, "risks": risks, "name": None}

    def _draw(self, ax: Any, name: str | None, *, early: float = 0.2, **style: Any) -> list[Any]:
        left, *right = np.ravel(ax)
        left.axvspan(0, early, color="#f3ead9", zorder=0, linewidth=0)
        lines = []
        for place, (label, warning) in enumerate(self.warnings.items()):
            color = {"color": SERIES[place % len(SERIES)], "linewidth": 1.8, **style}
            progress, detected, alarms = warning.curve()
            by = f"{label}: {warning.detected_within(early):.0%} of failures by {early:.0%}"
            own = {"drawstyle": "steps-post", "label": by, **color}
            lines += left.plot(progress, detected, **own)
            left.plot(progress, alarms, color=own["color"], drawstyle="steps-post", **_DOTTED)
            for panel in right:
                _draw_steps(panel, warning.by_step, {"label": label, **color})
        left.plot([], [], color="black", label="successful runs: false alarms", **_DOTTED)
        left.set(
            xlim=(0, 1),
            ylim=(0, 1.02),
            xlabel="share of the run",
            ylabel="share of runs flagged",
            title=name or "",
        )
        for panel in right:
            panel.axhline(0.5, label="coin", zorder=1, **REFERENCE)
            panel.set(xlabel="step", ylabel="AUROC of the runs that get there")
            panel.legend(frameon=False, fontsize="small")
        for panel in (left, *right):
            panel.spines[["top", "right"]].set_visible(False)
        return lines

    def _axes(self, ax: Any) -> Any:
        if ax is None:
            _, ax = pyplot().subplots(1, 2, figsize=(9, 4), layout="constrained")
        return ax


def _draw_steps(ax: Any, table: pd.DataFrame, style: dict[str, Any]) -> None:
    (line,) = ax.plot(table.index, table["AUROC"], **{"marker": "o", "markersize": 4, **style})
    band = {"color": line.get_color(), "alpha": 0.15, "linewidth": 0}
    ax.fill_between(table.index, table["AUROC_low"], table["AUROC_high"], **band)
    ax.xaxis.get_major_locator().set_params(integer=True)


_DOTTED = {"linewidth": 1, "linestyle": ":"}
