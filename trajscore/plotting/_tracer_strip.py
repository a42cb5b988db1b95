"""Where a run went wrong, step by step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd

from trajscore.core.array import TrajectoryArray
from trajscore.core.values import is_count, run_label
from trajscore.plotting._display import SHADES, DisplayMixin, ink, plain

_ROWS = {
    "surprisal": "surprisal",
    "repetition": "repetition",
    "agent_gap": "agent's gap",
    "user_gap": "user's gap",
    "risk": "step risk",
}
_ACTORS = {"agent": "A", "user": "U"}
_ABSENT = "#d9d9d9"


@dataclass(eq=False, repr=False)
class TracerStripDisplay(DisplayMixin):
    """One run as a strip of its components, with the critical episode framed.

    Parameters
    ----------
    table : DataFrame indexed by step
        surprisal, repetition, agent_gap, user_gap (NaN where absent), risk, critical, and, where
        known, actor.
    run_name : str, default=""
        Name of the run, for the title.

    See Also
    --------
    trajscore.TracerScorer.explain : The numbers behind it.

    Examples
    --------
    >>> from trajscore import TracerScorer, TrajectoryArray
    >>> from trajscore.plotting import TracerStripDisplay
    >>> S = TrajectoryArray([[0.2, 0.0], [0.5, 0.9]], [2], channels=["surprisal", "repetition"])
    >>> TracerStripDisplay.from_estimator(TracerScorer().fit(S), S).table[["risk", "critical"]]
          risk  critical
    step
    1      0.2     False
    2      0.9      True
    """

    _style_of = "collections.QuadMesh"
    table: pd.DataFrame
    run_name: str = ""

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: TrajectoryArray, run: Any = 0, **kwargs: Any
    ) -> Self:
        """Explain one run with a fitted scorer.

        Parameters
        ----------
        estimator : TracerScorer
            A fitted scorer.
        X : TrajectoryArray
            The signals of `trajscore.TracerSignals`.
        run : int or str, default=0
            Row, or identifier as text.
        **kwargs
            Passed to `plot`.

        Returns
        -------
        TracerStripDisplay
            The display, drawn.
        """
        if not isinstance(X, TrajectoryArray):
            raise TypeError(f"X must be the signals of TracerSignals, got {type(X).__name__}")
        single = X[[_row_of(X, run)]]
        if not single.channels:
            raise ValueError("X has no channels; give the signals of TracerSignals")
        explained = estimator.explain(single)
        signals = pd.DataFrame(single.cells, columns=list(single.channels or ()))
        table = pd.DataFrame(explained.cells, columns=list(explained.channels or ()))
        for name in set(_ROWS) - {"risk"}:
            here = name in signals
            table[name] = table[name].where(signals[name].notna()) if here else np.nan
        table["critical"] = table["critical"] > 0
        if "is_agent" in signals:
            table["actor"] = np.where(signals["is_agent"] > 0, "agent", "user")
        table.index = pd.RangeIndex(1, len(table) + 1, name="step")
        return cls(table, run_label(single.ids[0])).plot(**kwargs)

    def _draw(self, ax: Any, name: str | None, **style: Any) -> Any:
        from matplotlib.colors import LinearSegmentedColormap

        rows = [name for name in _ROWS if self.table[name].notna().any()]
        values = np.ma.masked_invalid(self.table[rows].to_numpy(dtype=np.float64).T)
        style = {
            "cmap": LinearSegmentedColormap.from_list("risk", SHADES),
            "vmin": 0.0,
            "vmax": max(float(values.max()), 1e-9),
            "edgecolor": "white",
            "linewidth": 1.0,
            **style,
        }
        ax.set_facecolor(_ABSENT)
        steps, heights = np.arange(len(self.table) + 1) + 0.5, np.arange(len(rows) + 1)
        mesh = ax.pcolormesh(steps, heights, values, **style)
        self._frame_critical(ax, len(rows))
        ax.set_yticks(np.arange(len(rows)) + 0.5, [_ROWS[name] for name in rows])
        ax.invert_yaxis()
        self._label_steps(ax)
        ax.tick_params(length=0)
        for spine in ax.spines.values():
            spine.set_visible(False)
        title = f"run {plain(self.run_name)}" if self.run_name else ""
        ax.set_title(title if name is None else name, loc="left", fontsize="medium")
        bar = ax.figure.colorbar(mesh, ax=ax, pad=0.02, fraction=0.05)
        bar.outline.set_visible(False)
        bar.ax.tick_params(labelsize="small")
        return mesh

    def _size(self) -> tuple[float, float]:
        return min(4 + 0.28 * len(self.table), 14), 2.9

    def _frame_critical(self, ax: Any, n_rows: int) -> None:
        from matplotlib.patches import Rectangle

        marked = self.table["critical"].to_numpy(dtype=bool)
        bounds = np.flatnonzero(np.diff(np.concatenate([[False], marked, [False]]).astype(int)))
        black: dict[str, Any] = {"fill": False, "clip_on": False, "zorder": 3, "edgecolor": ink()}
        for start, stop in bounds.reshape(-1, 2):
            frame = Rectangle((start + 0.5, 0), stop - start, n_rows, linewidth=1.6, **black)
            ax.add_patch(frame)

    def _label_steps(self, ax: Any) -> None:
        n_steps = len(self.table)
        shown = np.arange(1, n_steps + 1, -(-n_steps // 30))
        if "actor" in self.table:
            letters = self.table["actor"].map(_ACTORS).to_numpy()
            ax.set_xticks(shown, [f"{letters[step - 1]}\n{step}" for step in shown])
            ax.set_xlabel("step (A agent, U user); framed: critical steps; grey: absent")
        else:
            ax.set_xticks(shown)
            ax.set_xlabel("step; framed: critical steps; grey: absent")
        ax.tick_params(axis="x", labelsize="small")


def _row_of(X: TrajectoryArray, run: Any) -> int:
    if isinstance(run, str):
        rows = np.flatnonzero(X.ids.astype(str) == run)
        if not len(rows):
            raise KeyError(f"no run has the id {run_label(run)}; see X.ids")
        return int(rows[0])
    if not is_count(run, -len(X)) or run >= len(X):
        raise ValueError(f"run must be an id as text, or a row below {len(X)}, got {run!r}")
    return int(run)
