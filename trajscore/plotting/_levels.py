"""The fitted levels of a stopping rule as points, with a cross where a rate is too high."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from trajscore.core.type_aliases import BoolArray
from trajscore.plotting._display import ink


def exceeds_alpha(table: pd.DataFrame) -> BoolArray:
    """Tell at which levels more good runs are flagged than chance explains."""
    return np.asarray(table["false_alarm_rate_low"].to_numpy() > table.index.to_numpy())


def mark_levels(ax: Any, x: Any, y: Any, crossed: BoolArray, color: str) -> None:
    """Draw a point for each level, a cross where it is crossed out."""
    place, height = np.asarray(x), np.asarray(y)
    common = {"linestyle": "none", "color": color, "zorder": 4}
    ax.plot(place[~crossed], height[~crossed], marker="o", markersize=4, **common)
    ax.plot(place[crossed], height[crossed], **_CROSS, **common)


def explain_cross(ax: Any) -> None:
    """Add the cross to the legend."""
    ax.plot([], [], color=ink(), label="false-alarm rate above alpha", linestyle="none", **_CROSS)


_CROSS = {"marker": "x", "markersize": 6, "markeredgewidth": 1.8}
