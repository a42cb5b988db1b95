"""Why runs ended, in a picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from trajscore.censoring._termination_audit import TerminationAudit, termination_audit
from trajscore.core.stops import ADMINISTRATIVE, COMPLETE, EXCLUDED, INFORMATIVE, UNKNOWN
from trajscore.plotting._display import BLUE, GREY, ORANGE, TAN, VIOLET, DisplayMixin, plain

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
                own = {"color": color, "height": 0.7, "label": label, **style}
                bars.append(ax.barh(place[here], runs[here], **own))
        ax.barh(place, solved, height=0.7, fill=False, hatch="///", edgecolor="white", linewidth=0)
        for height, n, n_solved in zip(place, runs, solved, strict=True):
            text = f" {n}" + (f", {n_solved} solved" if n_solved else "")
            ax.text(n, height, text, va="center", fontsize="small")
        ax.set_yticks(place, [plain(reason) for reason in self.reasons.index])
        ax.set_xlabel("runs")
        ax.margins(x=0.25)
        return bars

    def _size(self) -> tuple[float, float]:
        return 6.4, 1.8 + 0.4 * len(self.reasons)

    def _legend(self) -> dict[str, Any]:
        return {"loc": "lower right"}
