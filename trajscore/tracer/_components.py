"""The components of a step's risk, and how they are put together."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from trajscore.core.array import TrajectoryArray
from trajscore.core.type_aliases import BoolArray, FloatArray
from trajscore.core.values import UNIT_ROUNDING
from trajscore.core.within_runs import last_cells, running_max

SURPRISAL, REPETITION, AGENT_GAP, USER_GAP = "surprisal", "repetition", "agent_gap", "user_gap"
COMPONENTS = (SURPRISAL, REPETITION, AGENT_GAP, USER_GAP)
IS_AGENT, TOOL_CALLS, CONFIDENCE = "is_agent", "tool_calls", "confidence"
CHANNELS = (*COMPONENTS, IS_AGENT, TOOL_CALLS, CONFIDENCE)
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
        return np.asarray(alpha * self.repetition + beta * self.agent_gap + gamma * self.user_gap)

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
    counted = of_actors(X, actors)
    parts = dict.fromkeys(COMPONENTS, np.zeros(len(X.cells)))
    for name, values in _recorded(X).items():
        parts[name] = np.where(counted & ~np.isnan(values), values, 0.0)
    return Components(**parts)


def nothing_yet(X: TrajectoryArray, names: Sequence[str] = COMPONENTS) -> BoolArray:
    """Whether none of these components was recorded up to each cell, whoever acted."""
    recorded = [~np.isnan(values) for name, values in _recorded(X).items() if name in names]
    return running_max(X, np.logical_or.reduce(recorded).astype(np.float64)) == 0


def nothing_recorded(X: TrajectoryArray) -> BoolArray:
    """Whether no component of a run was recorded at any step, whoever acted."""
    return nothing_yet(X)[last_cells(X)]


def channel(X: TrajectoryArray, name: str) -> FloatArray:
    """Return one channel's cells."""
    return X[name].cells.ravel()


def of_actors(X: TrajectoryArray, actors: str) -> BoolArray:
    """Whether each cell is a turn of the chosen actors."""
    if actors == "both":
        return np.ones(len(X.cells), dtype=bool)
    is_agent = channel(X, IS_AGENT) > 0
    return is_agent if actors == "agent" else ~is_agent


def _recorded(X: TrajectoryArray) -> dict[str, FloatArray]:
    """Return the components that there are, NaN in cells where one was not recorded."""
    return {name: channel(X, name) for name in COMPONENTS if name in (X.channels or ())}


def _runs_without(X: TrajectoryArray, values: FloatArray) -> BoolArray:
    return ~np.logical_or.reduceat(~np.isnan(values), X.offsets[:-1])


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
    without = _runs_without(X, channel(X, SURPRISAL))
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
    n_without = int(_runs_without(X, channel(X, SURPRISAL)).sum())
    if 0 < n_without < len(X):
        warnings.warn(
            f"{n_without} of {len(X)} runs have no surprisal. With aggregation='max' their risk is "
            f"on another scale than that of the other runs. Leave these runs out, or the channel "
            f"{SURPRISAL!r}",
            UserWarning,
            stacklevel=3,
        )
