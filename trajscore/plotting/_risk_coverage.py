"""How many errors remain among the answers that are accepted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from trajscore.core.type_aliases import FloatArray
from trajscore.metrics import aurc, risk_coverage_curve
from trajscore.plotting._display import GREY, AnswerDisplayMixin, next_style, share_axis


@dataclass(eq=False, repr=False)
class RiskCoverageDisplay(AnswerDisplayMixin):
    """Error rate among accepted answers against the share accepted.

    Beside it stand the curves of no and of a perfect ranking. Several predictors may share axes.

    Parameters
    ----------
    coverage, risk : ndarray of shape (n_thresholds,)
        From `risk_coverage_curve`.
    aurc : float
        Area under the curve.
    best : ndarray of shape (n_points,)
        Risk of a perfect ranking over equal steps of coverage.

    Examples
    --------
    >>> from trajscore.plotting import RiskCoverageDisplay
    >>> display = RiskCoverageDisplay.from_predictions([1, 0, 1], [0.9, 0.2, 0.6])
    >>> display.risk.round(3)
    array([0.   , 0.   , 0.333])
    """

    coverage: FloatArray
    risk: FloatArray
    aurc: float
    best: FloatArray

    @classmethod
    def from_predictions(
        cls,
        correct: ArrayLike,
        confidence: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        **kwargs: Any,
    ) -> Self:
        """Compute the curve.

        Parameters
        ----------
        correct, confidence, sample_weight
            As in `trajscore.metrics.risk_coverage_curve`.
        **kwargs
            Passed to `plot`.

        Returns
        -------
        RiskCoverageDisplay
            The display, drawn.
        """
        coverage, risk, _ = risk_coverage_curve(correct, confidence, sample_weight=sample_weight)
        area = aurc(correct, confidence, sample_weight=sample_weight)
        share = _equal_steps(200)
        best = np.maximum(share - (1 - risk[-1]), 0) / share
        return cls(coverage, risk, area, best).plot(**kwargs)

    def _draw(self, ax: Any, name: str | None, **style: Any) -> Any:
        label = f"{name or 'AURC'}{' AURC' if name else ''} = {self.aurc:.3f}"
        # a threshold accepts whole groups of ties, so the curve moves in steps
        own = {**next_style(ax), "linewidth": 1.6, "drawstyle": "steps-pre", "label": label}
        (line,) = ax.plot(self.coverage, self.risk, **{**own, **style})
        grey = {"color": GREY, "linewidth": 1, "zorder": 0}
        ax.axhline(self.risk[-1], linestyle="--", label="no ranking", **grey)
        share = _equal_steps(len(self.best))
        ax.plot(share, self.best, linestyle=":", label="perfect ranking", **grey)
        ax.set(xlabel="coverage (share accepted)", ylabel="risk (share wrong)")
        share_axis(ax, "x")
        return line


def _equal_steps(n: int) -> FloatArray:
    return np.linspace(0, 1, n + 1)[1:]
