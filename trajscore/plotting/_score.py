"""Raw against calibrated, predictor by predictor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd

from trajscore.plotting._display import COLORS, REFERENCE, DisplayMixin, plain


@dataclass(eq=False, repr=False)
class ScoreDisplay(DisplayMixin):
    """A metric of predictors, as given and recalibrated, with intervals and the base rate.

    Parameters
    ----------
    table : DataFrame indexed by (predictor, form)
        value, low and high.
    metric : str
        Name of the metric, for the axis.
    reference : float, optional
        Value of the base rate.

    Examples
    --------
    >>> import pandas as pd
    >>> from trajscore.plotting import ScoreDisplay
    >>> index = pd.MultiIndex.from_tuples([("judge", "as_given")], names=["predictor", "form"])
    >>> table = pd.DataFrame({"value": [-0.6], "low": [-0.7], "high": [-0.5]}, index=index)
    >>> ScoreDisplay(table, "TPS log").metric
    'TPS log'
    """

    table: pd.DataFrame
    metric: str
    reference: float | None = None

    @classmethod
    def from_intervals(cls, intervals: pd.DataFrame, metric: str, **kwargs: Any) -> Self:
        """Take one metric out of a report's intervals.

        Parameters
        ----------
        intervals : DataFrame indexed by (predictor, form, metric)
            As in `trajscore.report.Report`.
        metric : str
            The metric.
        **kwargs
            Passed to `plot`.

        Returns
        -------
        ScoreDisplay
            The display, drawn.
        """
        table = intervals.xs(metric, level="metric")
        constant = table.index.get_level_values("form") == "constant"
        reference = float(table["value"][constant].iloc[0]) if constant.any() else None
        return cls(table[~constant], metric, reference).plot(**kwargs)

    def _draw(self, ax: Any, name: str | None, **style: Any) -> list[Any]:
        predictors = list(dict.fromkeys(self.table.index.get_level_values("predictor")))
        height = {
            predictor: len(predictors) - 1 - place for place, predictor in enumerate(predictors)
        }
        drawn = []
        for form, shift in (("as_given", 0.14), ("recalibrated", -0.14)):
            rows = self.table[self.table.index.get_level_values("form") == form]
            if rows.empty:
                continue
            place = [
                height[predictor] + shift for predictor in rows.index.get_level_values("predictor")
            ]
            spread = np.array([rows["value"] - rows["low"], rows["high"] - rows["value"]])
            own = {
                "fmt": "o", "markersize": 5, "color": COLORS[form], "linewidth": 1.5,
                "label": form.replace("_", " "), **style,
            }  # fmt: skip
            drawn.append(ax.errorbar(rows["value"], place, xerr=np.maximum(spread, 0), **own))
        if self.reference is not None:
            ax.axvline(self.reference, label="base rate", **REFERENCE)
        ax.set_yticks(range(len(predictors)), [plain(predictor) for predictor in predictors[::-1]])
        ax.set(xlabel=self.metric, ylim=(-0.6, len(predictors) - 0.4))
        return drawn

    def _size(self) -> tuple[float, float]:
        return 6.4, 1.4 + 0.3 * len(self.table)
