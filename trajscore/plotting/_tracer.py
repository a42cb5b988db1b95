"""TRACER's risks: how early they predict failure, and where one run went wrong."""

from typing import Any, Self

import numpy as np
import pandas as pd

from trajscore.calibration.fixed_step import AUROC
from trajscore.core.array import TrajectoryArray
from trajscore.core.values import (
    ArrayLike,
    BoolArray,
    ByName,
    FloatArray,
    first_true,
    is_count,
    run_label,
)
from trajscore.plotting._display import (
    BEHIND,
    BLUE,
    GREY,
    ORANGE,
    REFERENCE,
    SHADES,
    SHARES,
    DisplayMixin,
    PredictionDisplayMixin,
    by_name,
    draw_with_band,
    ink,
    next_style,
    plain,
    step_axes,
)
from trajscore.tracer import early_warning
from trajscore.tracer.detection import EarlyWarning


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
    def _predict(cls, estimator: Any, X: Any, y: ArrayLike) -> ByName:
        # the estimator names its curve, not the picture
        risks = {type(estimator).__name__: estimator.transform(X)}
        return {"y_true": y, "risks": risks, "name": None}

    def _draw(self, ax: Any, name: str | None, *, early: float = 0.2, **style: Any) -> list[Any]:
        left, *right = np.ravel(ax)
        left.axvspan(0, early, **BEHIND)
        lines = []
        for label, warning in self.warnings.items():
            progress, detected, alarms = warning.curve()
            share = f"{warning.detected_within(early):.0%} of failures by {early:.0%}"
            look = next_style(left, style, linewidth=1.8, label=f"{plain(label)}: {share}")
            steps: ByName = {"drawstyle": "steps-post"}
            lines += left.plot(progress, detected, **look, **steps)
            left.plot(progress, alarms, color=look["color"], **steps, **_DOTTED)
            for panel in right:
                area, low, high = (warning.by_step[name] for name in AUROC)
                dots = {"marker": "o", "markersize": 4, **look, "label": plain(label)}
                draw_with_band(panel, area, low, high, dots)
        left.plot([], [], color=GREY, label="successful runs: false alarms", **_DOTTED)
        left.set(
            xlabel="share of the run, (step - 1) / (N - 1)", ylabel="share of runs flagged",
            xlim=SHARES, ylim=SHARES,
        )  # fmt: skip
        for panel in right:
            panel.axhline(0.5, zorder=1, **REFERENCE)
            step_axes(panel, "AUROC of the runs that get there")
        return lines


_DOTTED = {"linewidth": 1, "linestyle": ":"}


_ROWS = {
    "surprisal": "surprisal",
    "repetition": "repetition",
    "agent_gap": "agent's gap",
    "user_gap": "user's gap",
    "risk": "step risk",
}
_ACTORS = {"agent": "A", "user": "U"}
_ABSENT = "#d9d9d9"


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
        signals, table = (
            steps.to_frame().set_index("step").drop(columns="run")
            for steps in (single, estimator.explain(single))
        )
        names = [name for name in _ROWS if name != "risk"]
        table[names] = table[names].where(signals.reindex(columns=names).notna())
        table["critical"] = table["critical"] > 0
        if "is_agent" in signals:
            table["actor"] = np.where(signals["is_agent"] > 0, "agent", "user")
        return cls(table, run_label(single.ids[0])).plot(**kwargs)

    def _draw(self, ax: Any, name: str | None, **style: Any) -> Any:
        from matplotlib.colors import LinearSegmentedColormap

        rows = self.table[list(_ROWS)].dropna(axis=1, how="all")
        values = np.ma.masked_invalid(rows.to_numpy(dtype=float).T)
        style = {
            "cmap": LinearSegmentedColormap.from_list("risk", SHADES),
            "vmin": 0.0,
            "vmax": max(float(values.max()), 1e-9),
            "edgecolor": "white",
            "linewidth": 1.0,
            **style,
        }
        ax.set_facecolor(_ABSENT)
        steps = np.arange(len(self.table) + 1) + 0.5
        heights = np.arange(len(values) + 1)
        mesh = ax.pcolormesh(steps, heights, values, **style)
        ends = np.flatnonzero(np.diff(self.table["critical"], prepend=False, append=False))
        starts, stops = ends.reshape(-1, 2).T
        ax.bar(
            starts + 0.5, len(values), stops - starts, align="edge", fill=False, clip_on=False,
            zorder=3, edgecolor=ink(), linewidth=1.6,
        )  # fmt: skip
        ax.set_yticks(heights[:-1] + 0.5, [_ROWS[name] for name in rows])
        ax.invert_yaxis()
        shown = np.arange(1, len(self.table) + 1, -(-len(self.table) // 30))
        labels = None
        actors = ""
        if "actor" in self.table:
            letters = self.table["actor"].map(_ACTORS)
            labels = [f"{letters[step]}\n{step}" for step in shown]
            actors = " (A agent, U user)"
        ax.set_xticks(shown, labels)
        ax.set_xlabel(f"step{actors}; framed: critical steps; grey: absent")
        ax.tick_params(axis="x", labelsize="small")
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
        if name is None and self.run_name:
            name = f"run {plain(self.run_name)}"
        ax.set_title(name or "", loc="left", fontsize="medium")
        bar = ax.figure.colorbar(mesh, ax=ax, pad=0.02, fraction=0.05)
        bar.outline.set_visible(False)
        bar.ax.tick_params(labelsize="small")
        return mesh

    def _size(self) -> tuple[float, float]:
        return min(4 + 0.28 * len(self.table), 14), 2.9


class FirstErrorDisplay(DisplayMixin):
    """How probable it is of each step of a run that it is the first wrong one.

    Parameters
    ----------
    probability : ndarray of shape (n_steps,)
        Of each step; the rest is that of no wrong step, and is drawn at 0.
    inside : ndarray of bool of shape (n_steps,)
        Whether each step is in the window.

    See Also
    --------
    trajscore.localization.FirstErrorLocator : The numbers behind it.

    Examples
    --------
    >>> from trajscore import TrajectoryArray
    >>> from trajscore.plotting import FirstErrorDisplay
    >>> P = TrajectoryArray.from_list([[0.1, 0.5, 0.2]])
    >>> display = FirstErrorDisplay.from_predictions(P, P.with_cells(P.cells > 0.1))
    >>> display.inside
    array([False,  True,  True])
    """

    _style_of = "patches.Rectangle"
    probability: FloatArray
    inside: BoolArray

    @classmethod
    def from_predictions(
        cls, P: TrajectoryArray, window: TrajectoryArray, run: Any = 0, **kwargs: Any
    ) -> Self:
        """Show one run.

        Parameters
        ----------
        P : TrajectoryArray
            Probability of each step to be the first wrong one.
        window : TrajectoryArray
            1 for the steps of the window, as `trajscore.localization.FirstErrorWindow` gives it.
        run : int or str, default=0
            Row, or identifier as text.
        **kwargs
            Passed to `plot`.

        Returns
        -------
        FirstErrorDisplay
            The display, drawn.
        """
        row = _row_of(P, run)
        return cls(P[row], window[row] > 0).plot(**kwargs)

    def _draw(self, ax: Any, name: str | None, **style: Any) -> list[Any]:
        kind = np.append(2, self.inside)
        height = np.append(1 - self.probability.sum(), self.probability)
        look = {
            "color": np.array([GREY, BLUE, ORANGE])[kind],
            "label": np.array(["outside", "in the window", "no step is wrong"])[kind],
            "linewidth": 0,
            **style,
        }
        step_axes(ax, "probability of the first wrong step")
        return [ax.bar(range(len(height)), height, **look)]


def _row_of(X: TrajectoryArray, run: Any) -> int:
    if isinstance(run, str):
        row = first_true(X.ids.astype(str) == run)
        if row is None:
            raise KeyError(f"no run has the id {run_label(run)}; see X.ids")
        return row
    if not is_count(run, -len(X)) or run >= len(X):
        raise ValueError(f"run must be an id as text, or a row below {len(X)}, got {run!r}")
    return int(run)
