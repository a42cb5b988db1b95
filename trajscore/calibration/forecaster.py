"""What a forecaster is: whole runs, step by step, what its fit is told, and the last step."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy import count_nonzero  # of few values in a fifth of the time of `any`
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import check_cv
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import get_routing_for_object
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from trajscore.core.array import TrajectoryArray
from trajscore.core.convert import as_table
from trajscore.core.estimator import TraceTransformer, check_estimator_input, inside_of, like_input
from trajscore.core.outcomes import check_outcomes
from trajscore.core.ties import OrdinaryRange
from trajscore.core.values import (
    ArrayLike,
    BoolArray,
    ByName,
    FloatArray,
    IntArray,
    check_choice,
    outside_unit,
    to_unit,
)
from trajscore.core.weights import AGGREGATORS, Horizon, Weights, as_step_weights, collapse
from trajscore.core.within_runs import cells_by_step

ANY_SCORES = {"probabilities": False, "single_channel": False, "allow_missing": True}
"""Scores of any channels, in any unit, which may be missing: what many forecasters read."""


class Forecaster(TraceTransformer, ABC):
    """Base of transformers to forecasts that are followed live as they are in a batch.

    A subclass says in `_begin` and `_advance` how forecasts follow from scores step by step;
    `transform` goes through the steps of all runs at once by the same two.
    """

    n_channels_in_: int
    # what scores must be, whatever X is: arguments of `check_trajectories`
    _reads: ClassVar[dict[str, bool]] = {"probabilities": False, "single_channel": True}
    _range = OrdinaryRange()  # of the scores in fitting: outliers count as its ends

    def _begin(self, n: int) -> Any:
        """State of `n` runs before their first step; None where nothing is remembered."""
        return None

    @abstractmethod
    def _advance(
        self, state: Any, scores: FloatArray, done: BoolArray | None
    ) -> tuple[Any, FloatArray]:
        """State and forecasts after scores of shape (n_runs, n_channels); changes no state.

        Runs that are `done` may stay in it: they are left out of every array afterwards.
        """

    def _takes_missing(self) -> bool:
        """Whether scores may be missing."""
        return self._reads.get("allow_missing", False)

    def _check_runs(self, X: Any, *, reset: bool) -> TrajectoryArray:
        return check_estimator_input(self, X, reset=reset, **self._reads)

    def transform(self, X: Any) -> Any:
        """Forecast success after every step.

        Parameters
        ----------
        X : TrajectoryArray or array-like of shape (n_runs, T_max)
            Scores, in the channels of the training data.

        Returns
        -------
        TrajectoryArray, or NaN-padded ndarray where X was a plain array
            Probabilities in [1e-6, 1 - 1e-6].

        Raises
        ------
        NotFittedError
            If `fit` has not been called.
        ValueError
            If the scores are in other channels than those of the training data, infinite, missing
            where `fit` refuses missing ones, or outside [0, 1] where they must be forecasts; the
            message names the run and the step.
        """
        traces = self._check_runs(X, reset=False)
        p = self._forecasts(traces.with_cells(self._range.nearest(traces.cells)))
        check_finite(p, traces)
        return like_input(traces.with_cells(p, channels=self._output_channels), X)

    @property
    def _output_channels(self) -> Sequence[str]:
        """That of a single input, which keeps its name."""
        named = getattr(self, "channels_in_", None)
        if named is None or len(named) > 1:
            return super()._output_channels
        return named

    def _forecasts(self, X: TrajectoryArray) -> FloatArray:
        """Forecast of every cell."""
        scores = as_table(X.cells)
        out = np.empty(len(X.cells))
        state = self._begin(len(X))
        if state is None:  # then every cell is one of its own
            return self._advance(None, scores, None)[1]
        for here, ends in cells_by_step(X):
            state, out[here] = self._advance(state, scores[here], ends)
            state = without(state, ends)
        return out

    def begin(self, n: int = 1) -> Any:
        """Return the state of `n` new runs before their first step, for `advance`."""
        check_is_fitted(self)
        return self._begin(n)

    def advance(
        self, state: Any, scores: ArrayLike, done: ArrayLike | None = None
    ) -> tuple[Any, FloatArray]:
        """Forecast success after one more step of runs that are under way.

        Forecasts are those of `transform` on the whole runs. The state is not changed, so that a
        step can be taken back by keeping the old one.

        Parameters
        ----------
        state : object
            Of the runs, by `begin` or the last `advance`.
        scores : array-like of shape (n,) or (n, n_channels)
            The step's scores.
        done : array-like of bool of shape (n,), optional
            Runs that end with this step; the new state is without them.

        Returns
        -------
        state : object
            For the next step.
        p : ndarray of shape (n,)
            Forecasts.

        Raises
        ------
        ValueError
            If there is another number of scores a run, or one is infinite, missing where `fit`
            refuses missing ones, or outside [0, 1] where it must be a forecast.

        Examples
        --------
        >>> from trajscore import PrefixForecaster
        >>> from trajscore.datasets import make_trajectories
        >>> X, y = make_trajectories(400, lengths=4, random_state=0, return_X_y=True)
        >>> forecaster = PrefixForecaster().fit(X, y)
        >>> state, live = forecaster.begin(), []
        >>> for score in X[0]:
        ...     state, p = forecaster.advance(state, [score])
        ...     live += p.tolist()
        >>> bool(abs(forecaster.transform(X)[0] - live).max() < 1e-12)
        True
        """
        values = np.asarray(scores, dtype=float)
        if values.ndim == 1:
            values = values[:, None]
        if values.ndim != 2 or values.shape[1] != self.n_channels_in_:
            raise ValueError(
                f"scores must have shape (n_runs, {self.n_channels_in_}), got {values.shape}"
            )
        refused = np.isinf(values) if self._takes_missing() else ~np.isfinite(values)
        if refused.any():
            raise ValueError("a score is missing or infinite; send finite numbers")
        if self._reads["probabilities"]:
            outside = outside_unit(values)
            values = to_unit(values)
            if outside.any():
                raise ValueError(
                    f"forecast {values[outside][0]:g} lies outside [0, 1]; send a probability of "
                    f"success"
                )
        if done is not None:
            done = np.asarray(done, dtype=bool)
        after, p = self._advance(state, self._range.nearest(values), done)
        check_finite(p)
        return without(after, done), p


def without(state: Any, done: BoolArray | None) -> Any:
    """Forget runs that have ended, in every array of a state."""
    if done is None or not count_nonzero(done):
        return state
    if isinstance(state, tuple):
        parts = [without(part, done) for part in state]
        return type(state)(*parts) if hasattr(state, "_fields") else tuple(parts)
    return state[~done] if isinstance(state, np.ndarray) else state


def states_by_step(
    X: TrajectoryArray, state: Any, push: Callable[[Any, FloatArray], Any]
) -> Iterator[tuple[IntArray, Any]]:
    """Yield for each step its cells, and the state of their runs with the values of the step."""
    values = as_table(X.cells)
    for here, ends in cells_by_step(X):
        state = push(state, values[here])
        yield here, state
        state = without(state, ends)


def check_finite(p: FloatArray, X: TrajectoryArray | None = None) -> None:
    """Refuse forecasts that are not finite, as of scores whose squares are not."""
    is_finite = np.isfinite(p)
    if not is_finite.all():
        place = ""
        if X is not None:
            place = f"{X.place(int(np.argmin(is_finite)))}: "
        raise ValueError(
            f"{place}the forecast is not a finite number; give scores on the scale used in fitting"
        )


@dataclass
class Chain:
    """Forecasters, each of the forecasts of the one before; of none, scores are the forecasts."""

    forecasters: Sequence[Forecaster]

    def begin(self, n: int = 1) -> tuple[Any, ...]:
        """Return the state of n runs before their first step."""
        return tuple(forecaster.begin(n) for forecaster in self.forecasters)

    def advance(self, state: Any, scores: Any, done: Any = None) -> tuple[Any, FloatArray]:
        """Return the state after a step, and its forecasts."""
        values = np.asarray(scores, dtype=float)
        states = []
        for forecaster, before in zip(self.forecasters, state, strict=True):
            after, p = forecaster.advance(before, values, done)
            states.append(after)
            values = p[:, None]
        return tuple(states), values[:, 0]


@dataclass
class Replay:
    """Any other forecaster: all scores so far go through its ``transform`` again at each step."""

    forecaster: Any
    n_channels: int
    channels: tuple[str, ...] | None

    def begin(self, n: int = 1) -> FloatArray:
        """Return the state of n runs before their first step."""
        return np.empty((n, 0, self.n_channels))

    def advance(self, state: Any, scores: Any, done: Any = None) -> tuple[Any, FloatArray]:
        """Return the state after a step, and its forecasts."""
        seen = np.concatenate([state, np.asarray(scores, dtype=float)[:, None]], axis=1)
        n, t, n_channels = seen.shape
        cells = seen.reshape(n * t, n_channels)
        if n_channels == 1:  # as `check_trajectories` has them
            cells = cells[:, 0]
        ended = np.zeros(n, dtype=bool) if done is None else np.asarray(done)
        X = TrajectoryArray(cells, [t] * n, channels=self.channels, ended=ended, missing="allow")
        return seen[~ended], self.forecaster.transform(X).cells.reshape(n, t)[:, -1]


Live = Chain | Replay
"""What can be followed step by step."""


def live_form(forecaster: Any, n_channels: int, channels: tuple[str, ...] | None) -> Live:
    """Return what follows runs step by step as a fitted forecaster does; None takes scores as p."""
    steps = steps_of(forecaster)
    if all(isinstance(step, Forecaster) for step in steps):
        return Chain(steps)
    return Replay(forecaster, n_channels, channels)


def steps_of(forecaster: Any) -> list[Any]:
    """Return the estimators that scores go through, one after the other."""
    if forecaster is None or is_passthrough(forecaster):
        return []
    if isinstance(forecaster, Pipeline):
        return [part for _, step in forecaster.steps for part in steps_of(step)]
    inside = inside_of(forecaster)
    return [forecaster] if inside is None else steps_of(inside)


def is_passthrough(forecaster: Any) -> bool:
    """Tell whether scores are taken as forecasts."""
    return isinstance(forecaster, str) and forecaster == "passthrough"


def check_forecaster(forecaster: Any, argument: str = "forecaster") -> None:
    """Refuse, by its name, what cannot be fitted or gives no trace."""
    name = type(forecaster).__name__
    if isinstance(forecaster, type):
        name = forecaster.__name__
        raise ValueError(f"{argument} must be an estimator, got a class; write {name}()")
    if not hasattr(forecaster, "fit"):
        raise ValueError(f"{argument} must be an estimator, got {forecaster!r}")
    if not hasattr(forecaster, "transform"):
        remedy = ""
        if hasattr(forecaster, "predict_proba"):
            remedy = f"; wrap a classifier as PrefixForecaster({name}())"
        raise ValueError(
            f"{argument} must have a transform that returns forecasts, and {name} has none{remedy}"
        )


def check_refitted(forecaster: Any) -> None:
    """Refuse, by its name, what a fit on other runs would not make anew."""
    name = type(forecaster).__name__
    if not hasattr(forecaster, "get_params"):
        raise ValueError(
            f"{name} cannot be fitted anew for each fold, for it has no get_params; derive it from "
            f"sklearn.base.BaseEstimator"
        )
    for part, value in {name: forecaster, **forecaster.get_params()}.items():
        prefit = (isinstance(value, str) and value == "prefit") or (
            part.endswith("prefit") and value is True
        )
        if prefit or isinstance(value, FrozenEstimator):
            if part != name:
                name = f"{name} with {part}={value!r}"
            raise ValueError(
                f"{name} is not fitted anew for each fold, so its traces would not be out "
                f"of fold; give the estimator itself, or take the transform of runs that it has "
                f"not seen"
            )


def fit_arguments(estimator: Any, metadata: ByName) -> ByName:
    """Return those of groups, sample_weight and q_z that are given and that a fit takes.

    Weights that are given must be taken.
    """
    metadata = {name: values for name, values in metadata.items() if values is not None}
    arguments = _arguments(estimator, metadata)
    if "sample_weight" in metadata and not any(
        name.endswith("sample_weight") for name in arguments
    ):
        raise ValueError(
            f"sample_weight is given, or soft outcomes need it, but no fit of "
            f"{type(estimator).__name__} takes it; leave it out, or with metadata routing request "
            f"it by set_fit_request(sample_weight=True)"
        )
    return arguments


def _arguments(estimator: Any, metadata: ByName) -> ByName:
    is_search = {"estimator", "cv", "scoring"} <= set(estimator.get_params(deep=False))
    if not (is_search or isinstance(estimator, Pipeline)):
        soft = getattr(estimator, "censored", "q_z") == "q_z"
        named = (name for name in metadata if has_fit_parameter(estimator, name))
        return {name: metadata[name] for name in named if name != "q_z" or soft}
    if get_config()["enable_metadata_routing"]:  # then the user says who gets what
        wanted = get_routing_for_object(estimator).consumes("fit", metadata)
        return {name: value for name, value in metadata.items() if name in wanted}
    if is_search:
        inner = {name: value for name, value in metadata.items() if name != "groups"}
        arguments = _arguments(estimator.estimator, inner)
        # groups are for the folds, where these read them
        for name in get_routing_for_object(check_cv(estimator.cv)).consumes("split", metadata):
            arguments[name] = metadata[name]
        return arguments
    return {
        f"{step}__{name}": value
        for step, part in estimator.steps
        if hasattr(part, "fit")
        for name, value in _arguments(part, metadata).items()
    }


class TraceAggregator(ClassifierMixin, Forecaster, BaseEstimator):
    """Pass a trace on through `transform`, and collapse it in `predict_proba`.

    As the last step of a pipeline it lets scorers of traces (`tps_scorer`, which reads
    ``transform``) and scikit-learn's own (``"roc_auc"``, ``"neg_brier_score"``, which read
    ``predict_proba``) judge the same pipeline in one ``cross_validate``.

    Parameters
    ----------
    phi : {"last", "mean", "min", "weighted"}, default="last"
        How a trace is collapsed.
    weights, horizon : str or callable, and int, "own" or None
        Step weights as in `trajscore.metrics.tps_score`, read for ``phi="weighted"``.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        ``[0, 1]``: failure, success.
    n_channels_in_ : int
        Always 1.

    See Also
    --------
    trajscore.calibration.cross_fit_traces : Out-of-fold traces, where ``cross_val_predict`` gives
        none.

    Examples
    --------
    >>> from trajscore import TraceAggregator
    >>> model = TraceAggregator(phi="mean").fit([[0.9, 0.7]], [1])
    >>> model.predict_proba([[0.9, 0.7], [0.2, 0.2]]).round(2)
    array([[0.2, 0.8],
           [0.8, 0.2]])
    """

    _reads = {"probabilities": True, "single_channel": True}  # noqa: RUF012

    def __init__(
        self, phi: str = "last", weights: Weights = "early", horizon: Horizon = None
    ) -> None:
        self.phi = phi
        self.weights = weights
        self.horizon = horizon

    def fit(self, X: Any, y: ArrayLike | None = None) -> Self:
        """Check parameters and data; nothing is learned.

        Parameters
        ----------
        X : TrajectoryArray or array-like of shape (n_runs, T_max)
            Forecasts in [0, 1], one a step.
        y : array-like of shape (n_runs,), optional
            Outcomes: 1 success, 0 failure, -1 not observed, or a grade in [0, 1].

        Returns
        -------
        TraceAggregator
            The fitted aggregator.

        Raises
        ------
        ValueError
            If `phi` or `weights` is unknown, a value is missing or outside [0, 1], or there is
            not one outcome for each run; the message names the run and the step.
        """
        check_choice(self.phi, "phi", AGGREGATORS)
        as_step_weights(self.weights, self.horizon)
        traces = self._check_runs(X, reset=True)
        if y is not None:
            check_outcomes(y, traces)
        self.classes_ = np.array([0, 1])
        return self

    def _advance(
        self, state: Any, scores: FloatArray, done: BoolArray | None
    ) -> tuple[None, FloatArray]:
        return None, scores[:, 0]

    def transform(self, X: Any) -> Any:
        """Return the traces as they are, in the form of X."""
        return like_input(self._check_runs(X, reset=False), X)

    def predict_proba(self, X: Any) -> FloatArray:
        """Collapse each trace to probabilities of failure and success, columns as in `classes_`."""
        traces = self._check_runs(X, reset=False)
        success = collapse(traces, self.phi, as_step_weights(self.weights, self.horizon))
        return np.stack([1 - success, success], axis=1)

    def predict(self, X: Any) -> IntArray:
        """Predict success (1) where its probability is at least one half, else failure (0)."""
        success = self.predict_proba(X)[:, 1]
        return self.classes_[(success >= 0.5).astype(np.int64)]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.poor_score = True
        tags.target_tags.required = False
        return tags
