"""Where in a run a score is earned, and why runs ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from trajscore.censoring.audit import TerminationAudit, termination_audit
from trajscore.core.score_families import family_name
from trajscore.core.stops import ADMINISTRATIVE, COMPLETE, EXCLUDED, INFORMATIVE, UNKNOWN
from trajscore.metrics import step_profile
from trajscore.plotting._display import (
    BEHIND,
    BLUE,
    GREY,
    ORANGE,
    TAN,
    VIOLET,
    DisplayMixin,
    PredictionDisplayMixin,
    axes_behind,
    draw_with_band,
    next_style,
    plain,
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
            observed = shown[shown["n_observed"] >= min_runs]
            dashed = {**style, "linestyle": "--"}
            alone = "observed alone" if name is None else f"{name}, observed alone"
            _curve(ax, observed["score_observed"], observed["std_error_observed"], alone, dashed)
            if shade:
                behind = axes_behind(ax, "share unobserved (grey)")
                if behind is not None:  # once, where several displays share axes
                    share = 1 - shown["n_observed"] / shown["n_runs"]
                    behind.fill_between(share.index, share, step="mid", **BEHIND)
                    behind.set_ylim(0, 1)
        ax.set_ylabel(f"mean {self.score_name} score (higher is better)")
        step_axis(ax)
        return line


def _curve(
    ax: Any, score: pd.Series, std_error: pd.Series, name: str | None, style: dict[str, Any]
) -> Any:
    half = 2 * std_error.fillna(0)
    style = {"label": name, **style}
    return draw_with_band(ax, score.index, score, score - half, score + half, style)


_COLORS = {
    COMPLETE: BLUE,
    ADMINISTRATIVE: TAN,
    INFORMATIVE: ORANGE,
    EXCLUDED: VIOLET,
    UNKNOWN: GREY,
}


@dataclass(eq=False, repr=False)
class TerminationDisplay(DisplayMixin):
    """Runs by the reason for which they ended, coloured by what a censored score may do with them.

    One bar a reason; the successes among its runs are hatched. Options of `plot` are those of bars.

    Parameters
    ----------
    reasons : DataFrame indexed by stop reason
        mechanism, n_runs and n_successes, as `trajscore.censoring.TerminationAudit` has them.

    References
    ----------
    Raghu et al. (2026), Proper Scoring Rules for Agentic Uncertainty Quantification, Table 6.

    Examples
    --------
    >>> from trajscore.plotting import TerminationDisplay
    >>> display = TerminationDisplay.from_predictions([1, 0, -1], ["done", "done", "max_steps"])
    >>> display.reasons["n_runs"].tolist()
    [2, 1]
    """

    _style_of = "patches.Patch"
    reasons: pd.DataFrame

    @classmethod
    def from_audit(cls, audit: TerminationAudit, **kwargs: Any) -> Self:
        """Take the reasons of an audit.

        Parameters
        ----------
        audit : TerminationAudit
            From `trajscore.censoring.termination_audit`.
        **kwargs
            Passed to `plot`.

        Returns
        -------
        TerminationDisplay
            The display, drawn.
        """
        if not hasattr(audit, "reasons"):
            raise TypeError(f"audit must be what termination_audit returns, got {audit!r}")
        by_count = audit.reasons.sort_values("n_runs", ascending=False, kind="stable")
        return cls(by_count).plot(**kwargs)

    @classmethod
    def from_predictions(cls, y_true: ArrayLike, stop_reason: ArrayLike, **kwargs: Any) -> Self:
        """Audit outcomes and stop reasons.

        Parameters
        ----------
        y_true : array-like of shape (n_runs,)
            Outcomes, -1 where not observed.
        stop_reason : array-like of shape (n_runs,)
            Why each run ended.
        **kwargs
            Passed to `plot`.

        Returns
        -------
        TerminationDisplay
            The display, drawn.
        """
        return cls.from_audit(termination_audit(None, y_true, stop_reason), **kwargs)

    def _draw(self, ax: Any, name: str | None, **style: Any) -> list[Any]:
        place = np.arange(len(self.reasons))[::-1]
        runs, solved = (self.reasons[column].to_numpy() for column in ("n_runs", "n_successes"))
        mechanism = self.reasons["mechanism"].astype(str).to_numpy()
        bars = []
        for kind, color in _COLORS.items():
            here = mechanism == kind
            if here.any():
                label = f"{kind} ({runs[here].sum()})"
                look = {"color": color, "height": 0.7, "label": label, **style}
                bars.append(ax.barh(place[here], runs[here], **look))
        ax.barh(place, solved, height=0.7, fill=False, hatch="///", edgecolor="white", linewidth=0)
        for height, n, n_solved in zip(place, runs, solved, strict=True):
            text = f" {n}"
            if n_solved:
                text += f", {n_solved} solved"
            ax.text(n, height, text, va="center", fontsize="small")
        ax.set_yticks(place, [plain(reason) for reason in self.reasons.index])
        ax.set_xlabel("runs")
        ax.margins(x=0.25)
        return bars

    def _size(self) -> tuple[float, float]:
        return 6.4, 1.8 + 0.4 * len(self.reasons)
