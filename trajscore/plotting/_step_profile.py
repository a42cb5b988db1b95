"""Where in a run a score is earned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import pandas as pd
from numpy.typing import ArrayLike

from trajscore.core.score_families import family_name
from trajscore.metrics import step_profile
from trajscore.plotting._display import (
    BEHIND,
    PredictionDisplayMixin,
    axes_behind,
    draw_with_band,
    next_style,
    say_empty,
    step_axis,
)


@dataclass(eq=False, repr=False)
class StepProfileDisplay(PredictionDisplayMixin):
    """Mean score at every step, with a band of two standard errors.

    Where outcomes were not observed, a dashed line is the score of the observed runs alone, and the
    grey behind is the share of unobserved runs among those that reach a step: where it is high, the
    score says what these are counted as.

    Parameters
    ----------
    profile : DataFrame
        From `trajscore.metrics.step_profile`.
    score_name : str, default="log"
        Name of the score, for the axis.

    Notes
    -----
    `plot` leaves out steps that fewer than ``min_runs=10`` runs reach; ``shade=False`` leaves out
    the grey, which is drawn once where several displays share axes.

    Examples
    --------
    >>> from trajscore.plotting import StepProfileDisplay
    >>> StepProfileDisplay.from_predictions([1, 0], [[0.8], [0.3]]).profile["n_runs"].tolist()
    [2]
    """

    profile: pd.DataFrame
    score_name: str = "log"

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        traces: Any,
        *,
        score: Any = "log",
        q_z: ArrayLike = 0.0,
        **kwargs: Any,
    ) -> Self:
        """Score each step.

        Parameters
        ----------
        y_true, traces, score, q_z
            As in `trajscore.metrics.step_profile`.
        **kwargs
            Passed to `plot`.

        Returns
        -------
        StepProfileDisplay
            The display, drawn.
        """
        profile = step_profile(y_true, traces, score=score, q_z=q_z)
        return cls(profile, family_name(score)).plot(**kwargs)

    def _draw(
        self, ax: Any, name: str | None, *, min_runs: int = 10, shade: bool = True, **style: Any
    ) -> Any:
        shown = self.profile[self.profile["n_runs"] >= min_runs]
        say_empty(ax, shown, f"no step is reached by {min_runs} runs")
        style = {**next_style(ax), **style}
        line = _curve(ax, shown["score"], shown["std_error"], name, style)
        if (shown["n_observed"] < shown["n_runs"]).any():
            known = shown[shown["n_observed"] >= min_runs]
            dashed = {**style, "linestyle": "--"}
            alone = "observed alone" if name is None else f"{name}, observed alone"
            _curve(ax, known["score_observed"], known["std_error_observed"], alone, dashed)
            if shade:
                _shade_unobserved(ax, 1 - shown["n_observed"] / shown["n_runs"])
        ax.set_ylabel(f"mean {self.score_name} score (higher is better)")
        step_axis(ax)
        return line


def _curve(
    ax: Any, score: pd.Series, std_error: pd.Series, name: str | None, style: dict[str, Any]
) -> Any:
    half = 2 * std_error.fillna(0)
    label = {} if name is None else {"label": name}
    return draw_with_band(ax, score.index, score, score - half, score + half, {**label, **style})


def _shade_unobserved(ax: Any, share: pd.Series) -> None:
    """Draw the share of unobserved runs at each step, once, behind the curves."""
    behind = axes_behind(ax, "share unobserved (grey)")
    if behind is not None:
        behind.fill_between(share.index, share, step="mid", **BEHIND)
        behind.set_ylim(0, 1)
