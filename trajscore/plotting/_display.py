"""What all displays share: axes, legend, colours, and where their numbers come from."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pkgutil import resolve_name
from typing import Any, ClassVar, Self, dataclass_transform

import numpy as np
import pandas as pd

from trajscore.core.checks import ended_where_known
from trajscore.core.errors import optional
from trajscore.core.outcomes import check_outcomes
from trajscore.core.values import ArrayLike, ByName

# One palette, for displays and pages: contrast of 3:1 or more on white and on a dark page, and told
# apart with each kind of colour blindness (tests/plotting/test_display.py computes both).
BLUE = "#0077bb"
ORANGE = "#dd6611"
VIOLET = "#aa77ff"
BROWN = "#995522"
PLUM = "#885588"
TAN = "#bb8866"
GREY = "#777777"
SERIES = (BLUE, ORANGE, VIOLET, BROWN, PLUM, TAN)
COLORS = {
    "as_given": ORANGE, "recalibrated": BLUE, "constant": GREY, "success": BLUE, "failure": ORANGE,
}  # fmt: skip
SHADES = ("#f7f4ee", "#f0b880", "#dd6611", "#5e2408")  # from little to much
SHARES = (-0.02, 1.02)  # limits of axes from 0 to 1, with room for markers at both ends
REFERENCE = {"color": GREY, "linewidth": 1, "linestyle": "--"}
_FRAME: ByName = {"edgecolor": "none", "framealpha": 0.85, "fontsize": "small"}
# of a legend: below the label of the axis, in font sizes
_BELOW = {"loc": "upper center", "bbox_to_anchor": (0.5, 0), "borderaxespad": 5}
BEHIND: ByName = {"color": GREY, "alpha": 0.25, "linewidth": 0, "zorder": 0}


@dataclass_transform(eq_default=False)
class DisplayMixin(ABC):
    """A picture of numbers that are its attributes: a display adds these and `_draw`."""

    def __init_subclass__(cls) -> None:
        # compared by identity, and with a `repr` of its own
        dataclass(eq=False, repr=False)(cls)

    _style_of: ClassVar[str] = "lines.Line2D"  # what takes the options that are not ours
    _n_panels: ClassVar[int] = 1  # side by side
    line_: Any
    ax_: Any
    figure_: Any

    def plot(self, *, ax: Any = None, name: str | None = None, **kwargs: Any) -> Self:
        """Draw the picture, or draw it again.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw, beside what is there; default: a new figure.
        name : str, optional
            Label of the curve, or title where several are drawn.
        **kwargs
            Options of the picture, which its class names; all others go to matplotlib.

        Returns
        -------
        Display
            The display, with `line_` (what was drawn, a list where it is several curves or bars),
            `ax_` and `figure_`.

        Raises
        ------
        ImportError
            If matplotlib is not installed and no axes are given.
        """
        self.ax_ = self._new_axes() if ax is None else self._given_axes(ax)
        if name is not None:
            name = plain(name)
        from matplotlib.cbook import normalize_kwargs

        # options of matplotlib have long names from here on: ``lw`` is ``linewidth``
        kind = resolve_name(f"matplotlib.{self._style_of}")
        self.line_ = self._draw(self.ax_, name, **normalize_kwargs(kwargs, kind))
        first = np.ravel(self.ax_)[0]
        self.figure_ = first.get_figure()
        if name and isinstance(self.line_, list):
            first.set_title(name)
        named: ByName = {}  # several displays on the same axes share their references
        for handle, label in zip(*first.get_legend_handles_labels(), strict=True):
            named.setdefault(label, handle)
        if named:
            # where nothing makes room outside the axes, a legend there would be cut off
            place: ByName = {}
            if self.figure_.get_layout_engine() is not None:
                place = {**_BELOW, "ncols": 2 // self._n_panels}
            first.legend(named.values(), named.keys(), **_FRAME, **place)
        return self

    @abstractmethod
    def _draw(self, ax: Any, name: str | None, **style: Any) -> Any:
        """Draw on given axes; what is returned becomes `line_`."""

    def _new_axes(self) -> Any:
        """Make a figure whose labels are not cut off, however it is saved."""
        # matplotlib, which only drawing needs
        pyplot = optional("matplotlib.pyplot", "plots need matplotlib", "plots")
        _, axes = pyplot.subplots(1, self._n_panels, figsize=self._size(), layout="constrained")
        for ax in np.ravel(axes):
            ax.spines[["top", "right"]].set_visible(False)
        return axes if self._n_panels == 1 else tuple(axes)

    def _given_axes(self, ax: Any) -> Any:
        return ax

    def _size(self) -> tuple[float, float] | None:
        """Width and height of a new figure in inches, if not matplotlib's."""
        return None if self._n_panels == 1 else (9, 5)

    def __repr__(self) -> str:
        numbers = (f"{of.name}={_brief(getattr(self, of.name))}" for of in fields(self))  # type: ignore[arg-type]
        return f"{type(self).__name__}({', '.join(numbers)})"


class PredictionDisplayMixin(DisplayMixin):
    """A display with `from_predictions`, and so with `from_estimator`."""

    from_predictions: ClassVar[Any]

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: ArrayLike, **kwargs: Any) -> Self:
        """Judge a fitted estimator by its predictions.

        Parameters
        ----------
        estimator : estimator
            A fitted forecaster, whose ``transform`` gives probabilities; for answers with a
            confidence a classifier, whose ``predict_proba`` does. A pipeline that ends in a
            `trajscore.TraceAggregator` is both.
        X : TrajectoryArray or array-like
            What it predicts from.
        y : array-like of shape (n_runs,)
            Outcomes, or classes.
        **kwargs
            Passed to `from_predictions`; the name is by default that of the estimator's class.

        Returns
        -------
        Display
            The display, drawn.

        Raises
        ------
        TypeError
            If a forecaster has no ``transform``.
        """
        predicted = {"name": type(estimator).__name__, **cls._predict(estimator, X, y)}
        return cls.from_predictions(**{**predicted, **kwargs})

    @classmethod
    def _predict(cls, estimator: Any, X: Any, y: ArrayLike) -> ByName:
        """Return what `from_predictions` takes: by default outcomes and forecasts."""
        if not hasattr(estimator, "transform"):
            raise TypeError(
                f"{type(estimator).__name__} has no method transform; pass its forecasts to "
                f"from_predictions instead"
            )
        ended = ended_where_known(X, check_outcomes(y))
        return {"y_true": y, "traces": estimator.transform(ended)}


class AnswerDisplayMixin(PredictionDisplayMixin):
    """A display of answers that are right or wrong, each with a confidence."""

    @classmethod
    def _predict(cls, estimator: Any, X: Any, y: ArrayLike) -> ByName:
        proba = np.asarray(estimator.predict_proba(X), dtype=float)
        likeliest = np.asarray(estimator.classes_)[proba.argmax(axis=1)]
        return {"correct": likeliest == np.asarray(y), "confidence": proba.max(axis=1)}


def by_name(items: Any, name: str | None, kind: str) -> ByName:
    """Return several of what a display shows by name; one alone gets the name, or its kind."""
    if not isinstance(items, Mapping):
        return {str(name or type(items).__name__): items}
    if not items:
        raise ValueError(f"there are no {kind}; give at least one")
    return {str(key): item for key, item in items.items()}


def plain(text: Any) -> str:
    """Write a name as it is: its dollars start no formula, its underscore hides no curve."""
    shown = str(text).replace("$", r"\$")
    if shown.startswith("_"):
        shown = f" {shown}"
    return shown


def next_style(ax: Any, chosen: ByName, **usual: Any) -> ByName:
    """Return a curve's style: what is chosen, else what is usual, in the colour used least.

    Once all colours are used, with another dash.
    """
    from matplotlib.colors import same_color

    used = Counter(
        color for line in ax.lines for color in SERIES if same_color(line.get_color(), color)
    )
    color = min(SERIES, key=used.__getitem__)
    return {"color": color, "linestyle": "-." if used[color] else "-", **usual, **chosen}


def ink() -> str:
    """Return the colour of text, which dark styles turn over."""
    import matplotlib as mpl

    return str(mpl.rcParams["text.color"])


def step_axes(ax: Any, ylabel: str) -> None:
    """Count steps below the picture, in whole numbers, and name what stands beside it."""
    from matplotlib.ticker import MaxNLocator

    ax.set(xlabel="step", ylabel=ylabel)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))


def draw_with_band(ax: Any, curve: pd.Series, low: Any, high: Any, style: ByName) -> Any:
    """Draw a curve over its index, and its interval as a band of the same colour."""
    (line,) = ax.plot(curve, **style)
    ax.fill_between(curve.index, low, high, color=line.get_color(), alpha=0.15, linewidth=0)
    return line


def shade_behind(ax: Any, label: str, x: Any, y: Any, top: float, **style: Any) -> None:
    """Fill the area under a curve on a scale of its own behind others, once on shared axes."""
    beside = ax.get_shared_x_axes().get_siblings(ax)
    if any(axes.get_label() == _BEHIND for axes in beside):
        return
    behind = ax.twinx()
    behind.fill_between(x, y, **BEHIND, **style)
    behind.set_ylim(0, top)
    behind.set(label=_BEHIND, ylabel=label)
    behind.spines["top"].set_visible(False)
    ax.set_zorder(behind.get_zorder() + 1)
    ax.patch.set_visible(False)


_BEHIND = "<behind>"


def reached_steps(ax: Any, table: Any, min_runs: int) -> Any:
    """Return the rows of steps that enough runs reach; write so where there are none."""
    shown = table[table["n_runs"] >= min_runs]
    if shown.empty:
        text = f"no step is reached by {min_runs} runs"
        ax.text(0.5, 0.5, text, transform=ax.transAxes, ha="center", va="center")
    return shown


def _brief(value: Any) -> str:
    """Describe a field in a word or two."""
    if isinstance(value, Mapping):
        return repr([str(key) for key in value])
    if isinstance(value, float | np.floating):
        return f"{value:.4g}"
    if getattr(value, "shape", ()):
        return f"{type(value).__name__} of shape {value.shape}"
    return repr(value)
