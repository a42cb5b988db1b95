"""What all scorers of risk share: their base, and the components of a step's risk."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from trajscore.core.array import TrajectoryArray
from trajscore.core.estimator import TraceTransformer, check_estimator_input, like_input
from trajscore.core.type_aliases import BoolArray, FloatArray
from trajscore.core.values import UNIT_ROUNDING, as_amount, undefined_is_nan
from trajscore.core.within_runs import last_cells, running_max, running_sum
from trajscore.io import Run

SURPRISAL = "surprisal"
COMPONENTS: tuple[str, ...] = (SURPRISAL, "repetition", "agent_gap", "user_gap")
IS_AGENT = "is_agent"
CHANNELS = (*COMPONENTS, IS_AGENT, "tool_calls", "confidence")
AGGREGATIONS = ("max", "additive", "multiplicative", "separate")
ACTORS = ("both", "agent", "user")


@dataclass(frozen=True)
class Components:
    """U_t, D_a(t), D_o^A(t) and D_o^U(t) of each step, 0 where absent; arrays of one shape."""

    surprisal: FloatArray
    repetition: FloatArray
    agent_gap: FloatArray
    user_gap: FloatArray

    def penalty(self, alpha: Any, beta: Any, gamma: Any) -> FloatArray:
        """Return alpha D_a + beta D_o^A + gamma D_o^U; weights may be arrays to broadcast."""
        return alpha * self.repetition + beta * self.agent_gap + gamma * self.user_gap

    def risk(self, alpha: Any, beta: Any, gamma: Any, aggregation: str) -> FloatArray:
        """Return the risk of each step; for "separate" there is no single one."""
        if aggregation == "max":
            of_agent = np.maximum(alpha * self.repetition, beta * self.agent_gap)
            return np.maximum(np.maximum(self.surprisal, of_agent), gamma * self.user_gap)
        penalty = self.penalty(alpha, beta, gamma)
        if aggregation == "additive":
            return self.surprisal + penalty
        return self.surprisal * (1 + penalty)


def components_of(X: TrajectoryArray, actors: str) -> Components:
    """Return the components of each cell, 0 in turns of actors other than the chosen ones."""
    counted = np.ones(len(X.cells), dtype=bool)
    if actors != "both":
        counted = (channel(X, IS_AGENT) > 0) == (actors == "agent")
    parts = dict.fromkeys(COMPONENTS, np.zeros(len(X.cells)))
    for name, values in _recorded(X).items():
        parts[name] = np.where(counted & ~np.isnan(values), values, 0.0)
    return Components(**parts)


def nothing_yet(X: TrajectoryArray, names: Sequence[str] = COMPONENTS) -> BoolArray:
    """Whether none of these components was recorded up to each cell, whoever acted."""
    recorded = [~np.isnan(values) for name, values in _recorded(X).items() if name in names]
    return running_max(X, np.logical_or.reduce(recorded).astype(float)) == 0


def nothing_recorded(X: TrajectoryArray, names: Sequence[str] = COMPONENTS) -> BoolArray:
    """Whether none of these components of a run was recorded at any step, whoever acted."""
    return nothing_yet(X, names)[last_cells(X)]


def channel(X: TrajectoryArray, name: str) -> FloatArray:
    """Return one channel's cells."""
    return X[name].cells.ravel()


def _recorded(X: TrajectoryArray) -> dict[str, FloatArray]:
    """Return the components that there are, NaN in cells where one was not recorded."""
    return {name: channel(X, name) for name in COMPONENTS if name in (X.channels or ())}


# ------------------------------------------------------------------ checks at the door


def check_channel(X: TrajectoryArray, name: str, reader: str) -> None:
    """Refuse signals without a channel that is read."""
    if name not in (X.channels or ()):
        raise ValueError(
            f"{reader} needs the channel {name!r}; X has {', '.join(X.channels or ())}"
        )


def check_components(X: TrajectoryArray, reader: str) -> None:
    """Refuse signals without any component, and negative ones, in scikit-learn's words."""
    parts = _recorded(X)
    if not parts:
        raise ValueError(
            f"{reader} needs at least one of the channels {', '.join(COMPONENTS)}; X has "
            f"{', '.join(X.channels or ())}"
        )
    for name, values in parts.items():
        negative = values < -UNIT_ROUNDING
        if negative.any():
            cell = int(np.argmax(negative))
            raise ValueError(
                f"Negative values in data: {X.place(cell)}, channel {name!r} has {values[cell]:g}; "
                f"components of risk are 0 or more"
            )


def check_surprisal(X: TrajectoryArray, reader: str) -> None:
    """Refuse a run without any surprisal where the risk is a multiple of it."""
    check_channel(X, SURPRISAL, reader)
    without = nothing_recorded(X, [SURPRISAL])
    if without.any():
        place = X.place(int(X.offsets[:-1][without][0])).split(", step")[0]  # the run alone
        raise ValueError(
            f"{place}: {reader} multiplies surprisal, and the run has no token "
            f"log-probabilities; use another aggregation, or leave such runs out"
        )


def warn_of_some_surprisal(X: TrajectoryArray) -> None:
    """Warn where some runs have a surprisal and others have none: their scales differ."""
    if SURPRISAL not in (X.channels or ()):
        return
    n_without = int(nothing_recorded(X, [SURPRISAL]).sum())
    if 0 < n_without < len(X):
        warnings.warn(
            f"{n_without} of {len(X)} runs have no surprisal. With aggregation='max' their risk is "
            f"on another scale than that of the other runs. Leave these runs out, or the channel "
            f"{SURPRISAL!r}",
            stacklevel=3,
        )


class RiskScorer(TraceTransformer, BaseEstimator):
    """Base of the scorers: a trace of risk by `transform`, one number a run by `score_samples`.

    A subclass gives `_trace`, which returns the risk of the run so far at every cell, and in
    `_check_parameters` and `_check_signals` what it asks for; by default the channel that it reads.
    """

    _output_channels = ("risk",)
    _reads: str | None = None
    """The channel that is read, and that the values of a plain array are taken for."""

    def _check_parameters(self) -> None:
        """Refuse parameters that cannot be used."""

    def _check_signals(self, signals: TrajectoryArray) -> None:
        if self._reads is not None:
            check_channel(signals, self._reads, type(self).__name__)

    def _trace(self, signals: TrajectoryArray) -> FloatArray:
        raise NotImplementedError

    def _run_risk(self, signals: TrajectoryArray) -> FloatArray:
        return self._trace(signals)[last_cells(signals)]

    def _signals(self, X: Any, *, reset: bool) -> TrajectoryArray:
        """Check parameters and input, once for each call."""
        self._check_parameters()
        if isinstance(X, (list, tuple)) and len(X) and isinstance(X[0], Run):
            raise ValueError(
                f"{type(self).__name__} reads the channels that TracerSignals makes of runs, got "
                f"runs; pass TracerSignals().fit_transform(runs)"
            )
        signals = check_estimator_input(
            self, X, reset=reset, single_channel=False, allow_missing=True
        )
        if signals.channels is None:
            signals = signals.with_cells(signals.cells, channels=(self._reads or "value",))
        self._check_signals(signals)
        return signals

    def fit(self, X: Any, y: ArrayLike | None = None) -> Self:
        """Check parameters and data; nothing is learned.

        Parameters
        ----------
        X : TrajectoryArray or array-like of shape (n_runs, T_max)
            The signals of `TracerSignals`. One unnamed value a step is taken for the signal that
            the scorer reads first.
        y : array-like of shape (n_runs,), optional
            Not used; for scikit-learn's sake.

        Returns
        -------
        estimator
            The fitted scorer.
        """
        self._signals(X, reset=True)
        return self

    def transform(self, X: Any) -> Any:
        """Return the risk of the run so far, at every step.

        Parameters
        ----------
        X : TrajectoryArray or array-like of shape (n_runs, T_max)
            The signals.

        Returns
        -------
        TrajectoryArray or ndarray of shape (n_runs, T_max)
            One channel, "risk"; higher means failure is more likely. NaN where the scorer has
            seen nothing that it reads. An array if `X` is one.
        """
        signals = self._signals(X, reset=False)
        return like_input(signals.with_cells(self._trace(signals), channels=("risk",)), X)

    def score_samples(self, X: Any) -> FloatArray:
        """Return the risk of each run.

        Parameters
        ----------
        X : TrajectoryArray or array-like of shape (n_runs, T_max)
            The signals.

        Returns
        -------
        ndarray of shape (n_runs,)
            Higher means failure is more likely: the last value of `transform`; NaN for a run in
            which the scorer has seen nothing that it reads.
        """
        return self._run_risk(self._signals(X, reset=False))

    def decision_function(self, X: Any) -> FloatArray:
        """Return minus the risk of each run, which is higher where success is more likely."""
        return -self.score_samples(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # of others than classifiers, scorers read decision_function of these only, up to 1.8
        tags.estimator_type = "outlier_detector"
        return tags


class ComponentScorer(RiskScorer):
    """Base of the scorers that weigh the components of TRACER's risk."""

    _reads = SURPRISAL

    def _check_parameters(self) -> None:
        for name in ("alpha", "beta", "gamma"):
            as_amount(getattr(self, name), name)

    def _check_signals(self, signals: TrajectoryArray) -> None:
        check_components(signals, type(self).__name__)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        return tags


def running_mean(X: TrajectoryArray, values: FloatArray) -> FloatArray:
    """Return the mean of the values so far that are not missing; NaN where all are."""
    there = ~np.isnan(values)
    number = running_sum(X, there.astype(float))
    with undefined_is_nan():
        return running_sum(X, np.where(there, values, 0.0)) / number
