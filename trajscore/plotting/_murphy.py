"""At which thresholds a forecast earns its score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import pandas as pd
from numpy.typing import ArrayLike

from trajscore.core.weights import Horizon, Weights
from trajscore.metrics import murphy_curve
from trajscore.plotting._display import (
    REFERENCE,
    PredictionDisplayMixin,
    by_name,
    next_style,
    plain,
)


@dataclass(eq=False, repr=False)
class MurphyDisplay(PredictionDisplayMixin):
    """Elementary score over thresholds, against the base rate and the recalibrated forecast.

    What a single predictor loses by miscalibration is shaded; the upper edge is the recalibrated
    forecast.

    Parameters
    ----------
    curves : DataFrame indexed by (predictor, threshold)
        score, miscalibration, discrimination and uncertainty, as from
        `trajscore.metrics.murphy_curve`.

    See Also
    --------
    DecompositionDisplay : The parts of a whole score.

    Examples
    --------
    >>> from trajscore.plotting import MurphyDisplay
    >>> display = MurphyDisplay.from_predictions([1, 0], [[0.9], [0.4]], thresholds=[0.2, 0.5])
    >>> display.curves["score"].tolist()
    [-0.1, 0.0]
    """

    curves: pd.DataFrame

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        traces: Any,
        *,
        thresholds: ArrayLike | None = None,
        weights: Weights = "early",
        horizon: Horizon = None,
        sample_weight: ArrayLike | None = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Score one or several predictors at each threshold.

        Parameters
        ----------
        traces : TrajectoryArray, array-like of shape (n_runs, T_max) or mapping of these
            Forecasts in [0, 1]; several predictors by name.
        y_true, thresholds, weights, horizon, sample_weight
            As in `trajscore.metrics.murphy_curve`.
        name : str, optional
            Name of a single predictor.
        **kwargs
            Passed to `plot`.

        Returns
        -------
        MurphyDisplay
            The display, drawn.
        """
        how: dict[str, Any] = {"thresholds": thresholds, "weights": weights, "horizon": horizon}
        curves = {
            key: murphy_curve(y_true, X, **how, sample_weight=sample_weight)
            for key, X in by_name(traces, name or "forecast", "predictors").items()
        }
        return cls(pd.concat(curves, names=["predictor"])).plot(**kwargs)

    def _draw(self, ax: Any, name: str | None, **style: Any) -> list[Any]:
        predictors = list(dict.fromkeys(self.curves.index.get_level_values("predictor")))
        curves = [
            self.curves.xs(predictor, level="predictor").sort_index() for predictor in predictors
        ]
        constant = -curves[0]["uncertainty"]
        ax.plot(constant.index, constant, label="base rate", **REFERENCE)
        labels = [plain(predictor) for predictor in predictors]
        if name and len(curves) > 1:
            ax.set_title(name)
        elif name:
            labels = [name]
        lines = []
        for label, curve in zip(labels, curves, strict=True):
            own = {**next_style(ax), "linewidth": 1.5, "label": label, **style}
            lines += ax.plot(curve.index, curve["score"], **own)
        if len(curves) == 1:
            _shade_miscalibration(ax, curves[0], lines[0].get_color())
        ax.set(
            xlabel="threshold above which a run goes on",
            ylabel="mean elementary score (higher is better)",
            xlim=(0, 1),
        )
        return lines


def _shade_miscalibration(ax: Any, curve: pd.DataFrame, color: str) -> None:
    recalibrated = curve["score"] + curve["miscalibration"]
    shade = {"color": color, "alpha": 0.25, "linewidth": 0, "label": "lost by miscalibration"}
    ax.fill_between(curve.index, curve["score"], recalibrated, **shade)
