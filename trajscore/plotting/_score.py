"""Scores: as given and recalibrated, split in their parts, and by step; and why runs ended."""

from typing import Any, Literal, Self

import numpy as np
import pandas as pd

from trajscore.censoring.audit import TerminationAudit, termination_audit
from trajscore.core.score_families import family_name
from trajscore.core.stops import ADMINISTRATIVE, COMPLETE, EXCLUDED, INFORMATIVE, UNKNOWN
from trajscore.core.values import ArrayLike, ByName
from trajscore.core.weights import Horizon, Weights
from trajscore.metrics import step_profile, tps_decomposition
from trajscore.plotting._display import (
    BLUE,
    COLORS,
    GREY,
    ORANGE,
    REFERENCE,
    TAN,
    VIOLET,
    DisplayMixin,
    PredictionDisplayMixin,
    by_name,
    draw_with_band,
    ink,
    next_style,
    plain,
    reached_steps,
    shade_behind,
    step_axes,
)


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
        predictors = self.table.index.unique("predictor")[::-1]  # from below
        drawn = []
        for form, shift in (("as_given", 0.14), ("recalibrated", -0.14)):
            rows = self.table.query("form == @form")
            if rows.empty:
                continue
            place = predictors.get_indexer(rows.index.get_level_values("predictor")) + shift
            spread = np.maximum([rows["value"] - rows["low"], rows["high"] - rows["value"]], 0)
            look = {
                "fmt": "o", "markersize": 5, "color": COLORS[form], "linewidth": 1.5,
                "label": form.replace("_", " "), **style,
            }  # fmt: skip
            drawn.append(ax.errorbar(rows["value"], place, xerr=spread, **look))
        if self.reference is not None:
            ax.axvline(self.reference, label="base rate", **REFERENCE)
        ax.set_yticks(range(len(predictors)), [plain(predictor) for predictor in predictors])
        ax.set(xlabel=self.metric, ylim=(-0.6, len(predictors) - 0.4))
        return drawn

    def _size(self) -> tuple[float, float]:
        return 6.4, 1.4 + 0.3 * len(self.table)


class DecompositionDisplay(PredictionDisplayMixin):
    """What forecasts gain over the base rate by discrimination, and lose by miscalibration.

    Parameters
    ----------
    table : DataFrame indexed by predictor or by step
        score, miscalibration, discrimination and uncertainty; indexed by step also n_runs, as
        from `trajscore.metrics.tps_decomposition`.
    score_name : str, default="log"
        Name of the score, for the axis.

    Notes
    -----
    `plot` leaves out steps that fewer than ``min_runs=10`` runs reach.

    Examples
    --------
    >>> from trajscore.plotting import DecompositionDisplay
    >>> judges = {"sharp": [[0.9], [0.2]], "vague": [[0.5], [0.5]]}
    >>> display = DecompositionDisplay.from_predictions([1, 0], judges, score="brier")
    >>> display.table
               score  miscalibration  discrimination  uncertainty
    predictor
    sharp     -0.025           0.025            0.25         0.25
    vague     -0.250           0.000            0.00         0.25
    """

    table: pd.DataFrame
    score_name: str = "log"

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        traces: Any,
        *,
        score: Any = "log",
        weights: Weights = "early",
        horizon: Horizon = None,
        by: Literal["pooled", "step"] = "pooled",
        sample_weight: ArrayLike | None = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Split the score of one or several predictors.

        Parameters
        ----------
        traces : TrajectoryArray, array-like of shape (n_runs, T_max) or mapping of these
            Forecasts in [0, 1]; several predictors by name.
        by : {"pooled", "step"}, default="pooled"
            All steps together, or each step of a single predictor.
        y_true, score, weights, horizon, sample_weight
            As in `trajscore.metrics.tps_decomposition`.
        name : str, optional
            Name of a single predictor.
        **kwargs
            Passed to `plot`.

        Returns
        -------
        DecompositionDisplay
            The display, drawn.
        """
        named = by_name(traces, name or "forecast", "predictors")
        if by == "step" and len(named) > 1:
            raise ValueError(
                f'by="step" shows one predictor, got {len(named)}; make a display for each'
            )
        how: ByName = {
            "score": score, "weights": weights, "horizon": horizon, "sample_weight": sample_weight
        }  # fmt: skip
        parts: Any = [tps_decomposition(y_true, X, by=by, **how) for X in named.values()]
        table = parts[0]
        if by == "pooled":
            table = pd.DataFrame(parts, index=pd.Index(named, name="predictor"))
        return cls(table, family_name(score)).plot(**kwargs)

    @property
    def _by_step(self) -> bool:
        return self.table.index.name == "step"

    def _draw(self, ax: Any, name: str | None, *, min_runs: int = 10, **style: Any) -> Any:
        label = f"mean {self.score_name} score (higher is better)"
        if name:
            ax.set_title(name)
        if not self._by_step:
            ax.set(xlabel=label)
            return _draw_rows(ax, self.table, style)
        line = _draw_steps(ax, reached_steps(ax, self.table, min_runs), style)
        step_axes(ax, label)
        return line

    def _size(self) -> tuple[float, float] | None:
        return None if self._by_step else (6.4, 1.6 + 0.55 * len(self.table))


def _draw_steps(ax: Any, table: pd.DataFrame, style: ByName) -> Any:
    constant = -table["uncertainty"]
    recalibrated = constant + table["discrimination"]
    ax.fill_between(
        table.index, constant, recalibrated,
        color=BLUE, alpha=0.25, linewidth=0, label="gained by discrimination",
    )  # fmt: skip
    ax.fill_between(
        table.index, table["score"], recalibrated, facecolor="none", edgecolor=ORANGE,
        hatch="////", linewidth=0, alpha=0.6, label="lost by miscalibration",
    )  # fmt: skip
    ax.plot(recalibrated, color=BLUE, linewidth=1.4, label="recalibrated")
    ax.plot(constant, label="base rate", **REFERENCE)
    style = {"color": ink(), "linewidth": 1.8, "label": "score", **style}
    (line,) = ax.plot(table["score"], **style)
    return line


def _draw_rows(ax: Any, table: pd.DataFrame, style: ByName) -> Any:
    place = np.arange(len(table))[::-1]
    columns = ["score", "miscalibration", "discrimination", "uncertainty"]
    score, lost, gained, uncertainty = table[columns].to_numpy().T
    upper = place + 0.17
    lower = place - 0.17
    bars = {"height": 0.3, "linewidth": 0}
    gains = ax.barh(upper, gained, left=-uncertainty, color=BLUE, label="discrimination", **bars)
    losses = ax.barh(lower, lost, left=score, color=ORANGE, label="miscalibration", **bars)
    ax.vlines(-uncertainty, place - 0.5, place + 0.5, label="base rate", **REFERENCE)
    dots = {"marker": "D", "markersize": 5, "color": ink(), "linestyle": "none", "label": "score"}
    (line,) = ax.plot(score, lower, **{**dots, **style})
    # as many decimals as show three digits of the smaller of the two largest parts
    largest = [part.max() for part in (gained, lost) if part.max() > 1e-6]
    digits = 2 - int(np.floor(np.log10(min(largest, default=0.1))))
    for drawn, changes in ((gains, gained), (losses, -lost)):
        texts = [f"{change:+.{digits}f}".replace("-", "\N{MINUS SIGN}") for change in changes]
        ax.bar_label(drawn, texts, padding=8, fontsize="small")
    low = min(score.min(), -uncertainty.max())
    high = (gained - uncertainty).max()
    span = (high - low) or 1e-3
    ax.set_yticks(place, [plain(key) for key in table.index])
    ax.set(xlim=(low - 0.06 * span, high + 0.2 * span), ylim=(-0.5, len(table) - 0.5))
    return line


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
        shown = reached_steps(ax, self.profile, min_runs)
        style = next_style(ax, style, label=name)
        line = _curve(ax, shown["score"], shown["std_error"], style)
        if (shown["n_observed"] < shown["n_runs"]).any():
            observed = shown[shown["n_observed"] >= min_runs]
            alone = "observed alone" if name is None else f"{name}, observed alone"
            dashed = {**style, "linestyle": "--", "label": alone}
            _curve(ax, observed["score_observed"], observed["std_error_observed"], dashed)
            if shade:
                share = 1 - shown["n_observed"] / shown["n_runs"]
                shade_behind(ax, "share unobserved (grey)", share.index, share, 1, step="mid")
        step_axes(ax, f"mean {self.score_name} score (higher is better)")
        return line


def _curve(ax: Any, score: pd.Series, std_error: pd.Series, style: ByName) -> Any:
    half = 2 * std_error.fillna(0)
    return draw_with_band(ax, score, score - half, score + half, style)


_COLORS = {
    COMPLETE: BLUE,
    ADMINISTRATIVE: TAN,
    INFORMATIVE: ORANGE,
    EXCLUDED: VIOLET,
    UNKNOWN: GREY,
}


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
        return cls(audit.reasons).plot(**kwargs)

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
            text = f" {n}" + f", {n_solved} solved" * bool(n_solved)
            ax.text(n, height, text, va="center", fontsize="small")
        ax.set_yticks(place, [plain(reason) for reason in self.reasons.index])
        ax.set_xlabel("runs")
        ax.margins(x=0.25)
        return bars

    def _size(self) -> tuple[float, float]:
        return 6.4, 1.8 + 0.4 * len(self.reasons)
