"""Random laws of length, history and outcome together, whose true chances are known exactly.

A run is in one of a few states at each step, moves between them, ends after a step with a chance
that depends on step and state, and succeeds with another that does too. So its length depends on
its outcome, at random in strength and in direction.

`benchmarks/proper.py` draws its laws here too.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from trajscore import TrajectoryArray

OwnWeights = Callable[[np.ndarray, np.ndarray], np.ndarray]


def linear_front(step, length):
    """Weigh steps as the paper does: falling in a line to the end, over the run's own length."""
    return 2 * (length + 1 - step) / (length * (length + 1))


@dataclass(frozen=True)
class Runs:
    """Runs drawn from a law: state and step of each cell, one run after the other."""

    lengths: np.ndarray
    states: np.ndarray
    steps: np.ndarray  # from 1
    y: np.ndarray

    @property
    def at_end(self):
        """Whether each cell is the last one of its run."""
        return self.steps == np.repeat(self.lengths, self.lengths)

    def container(self, values):
        """Make a container of one value a cell."""
        return TrajectoryArray(values, self.lengths)


@dataclass(frozen=True)
class JointLaw:
    """A law of runs over a few states k, of chances; `stop` and `success` by step and state."""

    start: np.ndarray
    move: np.ndarray  # to the next state, by the present one, of a run that goes on
    stop: np.ndarray  # after this step; 1 at the last step
    success: np.ndarray  # of a run that ends there

    def _of_length(self, here):
        """Sum up what happens at each step and state over its future, of shape (t, k, u)."""
        longest, n_states = self.stop.shape
        chances = np.zeros((longest, n_states, longest))
        for t in reversed(range(longest)):
            if t + 1 < longest:
                chances[t] = (1 - self.stop[t])[:, None] * (self.move @ chances[t + 1])
            chances[t, :, t] = here[t]
        return chances

    @cached_property
    def ends(self):
        """P(T = u | state k at step t, still running), of shape (t, k, u)."""
        return self._of_length(self.stop)

    @cached_property
    def wins(self):
        """P(T = u, Y = 1 | state k at step t, still running), of shape (t, k, u)."""
        return self._of_length(self.stop * self.success)

    def chances(self, weights: OwnWeights | None = None, *, end: bool | None = None):
        """Best forecast of each step and state: E[w_t(T) Y | H_t] / E[w_t(T) | H_t].

        Without `weights`, w_t(T) of arrays of steps and of lengths, it is q_t, the truth. `end`
        says whether the step is the last one of its run, where that is known. NaN: no run is there.
        """
        longest = len(self.stop)
        step, length = np.arange(1, longest + 1)[:, None], np.arange(1, longest + 1)[None]
        kept = length >= step
        if end is not None:
            kept = length == step if end else length > step
        weight = kept * (1.0 if weights is None else weights(step, np.maximum(length, step)))
        with np.errstate(invalid="ignore"):
            return np.einsum("tku,tu->tk", self.wins, weight) / np.einsum(
                "tku,tu->tk", self.ends, weight
            )

    def sample(self, n_runs: int, rng: np.random.Generator) -> Runs:
        """Draw runs."""
        longest, n_states = self.stop.shape
        states = np.empty((n_runs, longest), dtype=np.int64)
        lengths, wins = np.empty(n_runs, dtype=np.int64), np.empty(n_runs, dtype=np.int64)
        going = np.arange(n_runs)
        state = rng.choice(n_states, n_runs, p=self.start)
        move = np.cumsum(self.move, axis=1)[:, :-1]
        for t in range(longest):
            states[going, t] = state
            stops = rng.random(len(going)) < self.stop[t, state]
            lengths[going[stops]] = t + 1
            wins[going[stops]] = rng.random(int(stops.sum())) < self.success[t, state[stops]]
            going, state = going[~stops], state[~stops]
            state = (rng.random(len(going))[:, None] > move[state]).sum(axis=1)
        kept = np.arange(longest) < lengths[:, None]
        steps = np.broadcast_to(np.arange(1, longest + 1), kept.shape)[kept]
        return Runs(lengths, states[kept], steps, wins)

    def forecast(self, runs: Runs, weights: OwnWeights | None = None, *, knows_end: bool = False):
        """State the chances of `chances` for each cell of the runs, flat."""
        here = runs.steps - 1, runs.states
        if not knows_end:
            return self.chances(weights)[here]
        ended, going = (self.chances(weights, end=end)[here] for end in (True, False))
        return np.where(runs.at_end, ended, going)

    def forecasts(self, runs: Runs, weights: OwnWeights = linear_front, *, knows_end: bool = False):
        """Return the truth and forecasts that are not the truth, as containers, by name.

        The tilted one gives in to `weights`, w_t(T); up and down have log-odds moved by .3,
        sharpened and flattened log-odds times 1.25 and .8.
        """
        truth = self.forecast(runs, knows_end=knows_end)
        odds = np.log(truth) - np.log1p(-truth)
        rivals = {"up": odds + 0.3, "down": odds - 0.3}
        rivals |= {"sharpened": 1.25 * odds, "flattened": 0.8 * odds}
        flat = {"truth": truth, "tilted": self.forecast(runs, weights, knows_end=knows_end)}
        flat |= {name: 1 / (1 + np.exp(-rival)) for name, rival in rivals.items()}
        return {name: runs.container(values) for name, values in flat.items()}


def short_runs_succeed() -> JointLaw:
    """Return a law of at most 30 steps: short runs succeed, in state 1 more of them; long fail."""
    step = np.arange(1, 31)[:, None]
    stop = 1 / (1 + np.exp(2 - 0.05 * step - np.array([0.0, 1.0])))
    stop[-1] = 1.0
    success = 1 / (1 + np.exp(0.4 * step - np.array([1.0, 4.0])))
    return JointLaw(np.array([0.6, 0.4]), np.array([[0.9, 0.1], [0.2, 0.8]]), stop, success)


def draw_law(rng: np.random.Generator) -> JointLaw:
    """Draw a law: 2 to 5 states, at most 4 to 30 steps."""
    n_states, longest = int(rng.integers(2, 6)), int(rng.integers(4, 31))
    late = np.linspace(0, 1, longest)[:, None]  # how far a step is towards the last one

    def chance(spread, mean):
        level = mean + spread * rng.normal(size=n_states) + rng.normal() * late
        wiggle = 0.3 * rng.normal(size=(longest, n_states))
        return 1 / (1 + np.exp(-np.clip(level + wiggle, -4, 4)))

    stop = chance(1.0, np.log(2 / longest))
    stop[-1] = 1.0
    stays = rng.uniform(0.3, 0.95)
    move = (1 - stays) * rng.dirichlet(np.ones(n_states), n_states) + stays * np.eye(n_states)
    return JointLaw(rng.dirichlet(np.ones(n_states)), move, stop, chance(1.5, rng.normal()))
