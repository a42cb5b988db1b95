"""What all displays share: axes, legend, colours, and where their numbers come from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from trajscore.core.outcomes import check_outcomes
from trajscore.core.sample import ended_where_known
from trajscore.core.type_aliases import BoolArray, FloatArray

COLORS = {"raw": "#c8553d", "calibrated": "#28666e", "constant": "#7a7a7a"}
SERIES = ("#28666e", "#c8553d", "#e0a458", "#5f5aa2", "#7a7a7a", "#3f8f4f")
REFERENCE = {"color": COLORS["constant"], "linewidth": 1, "linestyle": "--"}


class DisplayMixin(ABC):
    """A picture of numbers that are its attributes: a display adds these and `_draw`."""

    line_: Any
    ax_: Any
    figure_: Any

    def plot(self, *, ax: Any = None, name: str | None = None, **kwargs: Any) -> Self:
        """Draw the picture, again if need be.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; default: a new figure.
        name : str, optional
            Label of the curve, or title where several are drawn.
        **kwargs
            Options of the picture, which its class names; all others go to matplotlib.

        Returns
        -------
        Display
            The display, with `line_` (what was drawn), `ax_` and `figure_`.

        Raises
        ------
        ImportError
            If matplotlib is not installed and no axes are given.
        """
        self.ax_ = self._axes(ax)
        self.line_ = self._draw(self.ax_, name, **kwargs)
        first = np.ravel(self.ax_)[0]
        if first.get_legend_handles_labels()[0]:
            first.legend(frameon=False, fontsize="small", **self._legend())
        self.figure_ = first.figure
        return self

    @abstractmethod
    def _draw(self, ax: Any, name: str | None, **style: Any) -> Any:
        """Draw on given axes; what is returned becomes `line_`."""

    def _axes(self, ax: Any) -> Any:
        return pyplot().subplots()[1] if ax is None else ax

    def _legend(self) -> dict[str, Any]:
        """Where the legend goes, if not where matplotlib finds room."""
        return {}


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
        named = {"name": type(estimator).__name__}
        return cls.from_predictions(**{**named, **cls._predict(estimator, X, y), **kwargs})

    @classmethod
    def _predict(cls, estimator: Any, X: Any, y: ArrayLike) -> dict[str, Any]:
        """Return what `from_predictions` takes: by default outcomes and forecasts."""
        if not hasattr(estimator, "transform"):
            raise TypeError(
                f"{type(estimator).__name__} has no transform, which gives a forecaster's "
                f"probabilities; pass forecasts to from_predictions instead"
            )
        ended = ended_where_known(X, check_outcomes(y))
        return {"y_true": y, "traces": estimator.transform(ended)}


class AnswerDisplayMixin(PredictionDisplayMixin):
    """A display of answers that are right or wrong, each with a confidence."""

    @classmethod
    def _predict(cls, estimator: Any, X: Any, y: ArrayLike) -> dict[str, Any]:
        correct, confidence = likeliest_answers(estimator, X, y)
        return {"correct": correct, "confidence": confidence}


def likeliest_answers(estimator: Any, X: Any, y: ArrayLike) -> tuple[BoolArray, FloatArray]:
    """Return whether a classifier's likeliest class is right, and its probability."""
    proba = np.asarray(estimator.predict_proba(X), dtype=np.float64)
    answer = np.asarray(estimator.classes_)[proba.argmax(axis=1)]
    return answer == np.asarray(y), proba.max(axis=1)


def pyplot() -> Any:
    """Import matplotlib, which only drawing needs."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            'plots need matplotlib; run `pip install "scikit-trajscore[plots]"`'
        ) from error
    return plt


def by_name(given: Any, name: str, what: str) -> dict[str, Any]:
    """Return several of what a display shows by name; one alone gets the given name."""
    if not isinstance(given, Mapping):
        return {name: given}
    if not given:
        raise ValueError(f"there are no {what}; give at least one")
    return {str(key): one for key, one in given.items()}


def wilson_interval(
    rate: ArrayLike, n: ArrayLike, z: float = 1.959963984540054
) -> tuple[FloatArray, FloatArray]:
    """Return the ends of a binomial rate's interval (Wilson score), honest with few trials.

    >>> low, high = wilson_interval(0.5, 10)
    >>> print(f"{low:.3f} {high:.3f}")
    0.237 0.763
    """
    p, size = np.asarray(rate, dtype=np.float64), np.asarray(n, dtype=np.float64)
    center = (p + z**2 / (2 * size)) / (1 + z**2 / size)
    half = z * np.sqrt(p * (1 - p) / size + z**2 / (4 * size**2)) / (1 + z**2 / size)
    return np.maximum(center - half, 0.0), np.minimum(center + half, 1.0)


def wilson_errors(rate: FloatArray, n: ArrayLike) -> list[FloatArray]:
    """Return how far a rate's interval reaches down and up, as ``errorbar`` takes it."""
    low, high = wilson_interval(rate, n)
    return [np.maximum(rate - low, 0), np.maximum(high - rate, 0)]
