"""How early a risk predicts failure, and what it is worth at each step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from trajscore.calibration.fixed_step import AUROC
from trajscore.plotting._display import (
    BEHIND,
    GREY,
    REFERENCE,
    PredictionDisplayMixin,
    by_name,
    draw_with_band,
    next_style,
    plain,
    share_axis,
    step_axis,
)
from trajscore.tracer import early_warning
from trajscore.tracer._early_warning import EarlyWarning


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
    Shares of a run of N steps are (step - 1) / (N - 1); the paper's figure has step / N, the share
    of the total length. `plot` shades the early part of a run, ``early=0.2``. On one pair of axes,
    ``ax=one``, it draws the shares alone. AUROC at a step is of the runs that are at least that
    long, with its interval: shares of a run are taller for long runs, which fail more often; at one
    step length carries no information.

    Examples
    --------
    >>> from trajscore.plotting import EarlyWarningDisplay
    >>> risks = {"mine": [[0.1, 0.9, 0.9], [0.2, 0.2, 0.8], [0.1, 0.3, 0.4]]}
    >>> display = EarlyWarningDisplay.from_predictions([0, 0, 1], risks)
    >>> display.warnings["mine"].detected_within(0.5)
    0.5
    """

    _n_panels = 2
    warnings: dict[str, EarlyWarning]

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        risks: Any,
        *,
        threshold: float | None = None,
        groups: ArrayLike | None = None,
        **kwargs: Any,
    ) -> Self:
        """Find the times of one or several risks.

        Parameters
        ----------
        risks : TrajectoryArray, array-like of shape (n_runs, T_max) or dict of these
            Risks of the run so far; several by name.
        y_true, threshold, groups
            As in `trajscore.tracer.early_warning`.
        **kwargs
            Passed to `plot`.

        Returns
        -------
        EarlyWarningDisplay
            The display, drawn.
        """
        named = by_name(risks, "risk", "risks")
        warnings = {
            key: early_warning(y_true, risk, threshold=threshold, groups=groups)
            for key, risk in named.items()
        }
        return cls(warnings).plot(**kwargs)

    @classmethod
    def _predict(cls, estimator: Any, X: Any, y: ArrayLike) -> dict[str, Any]:
        # the estimator names its curve, not the picture
        risks = {type(estimator).__name__: estimator.transform(X)}
        return {"y_true": y, "risks": risks, "name": None}

    def _draw(self, ax: Any, name: str | None, *, early: float = 0.2, **style: Any) -> list[Any]:
        left, *right = np.ravel(ax)
        left.axvspan(0, early, **BEHIND)
        lines = []
        for label, warning in self.warnings.items():
            own = {**next_style(left), "linewidth": 1.8, **style}
            progress, detected, alarms = warning.curve()
            share = f"{warning.detected_within(early):.0%} of failures by {early:.0%}"
            own = {"label": f"{plain(label)}: {share}", **own}
            steps: dict[str, Any] = {"drawstyle": "steps-post"}
            lines += left.plot(progress, detected, **own, **steps)
            left.plot(progress, alarms, color=own["color"], **steps, **_DOTTED)
            for panel in right:
                area, low, high = (warning.by_step[name] for name in AUROC)
                dots = {"marker": "o", "markersize": 4, **own, "label": plain(label)}
                draw_with_band(panel, area.index, area, low, high, dots)
        left.plot([], [], color=GREY, label="successful runs: false alarms", **_DOTTED)
        left.set(xlabel="share of the run, (step - 1) / (N - 1)", ylabel="share of runs flagged")
        share_axis(left, "x", "y")
        for panel in right:
            panel.axhline(0.5, zorder=1, **REFERENCE)
            panel.set_ylabel("AUROC of the runs that get there")
            step_axis(panel)
        return lines


_DOTTED = {"linewidth": 1, "linestyle": ":"}
