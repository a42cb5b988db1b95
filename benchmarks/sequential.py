"""Looking again as runs arrive: how often rules are wrong, and what they see.

    python benchmarks/sequential.py [--streams 10000] [--seed 1]

Rules are held against each other on the same streams of differences:

    bets        SequentialComparison: bets that do not adapt, mixed over their size
    plug-in     the same capital with the predictable bets of Waudby-Smith and Ramdas (2024), eq. 26
    plug-in N   the same, tuned to the length of the stream
    Robbins     asymptotic confidence sequence (Waudby-Smith et al. 2024, Time-uniform central limit
                theory), tightest at 100 runs, from run 20 on
    mSPRT       normal mixture with the variance seen so far, prior sd .1, from run 20 on
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable

import numpy as np

from shared import options, show
from trajscore.inference import SequentialComparison
from trajscore.inference._sequential import _CAPITAL, _SHARES

N_RUNS, LEVEL = 400, 0.05
Streams = np.ndarray  # of shape (n_streams, N_RUNS)
Draw = Callable[[np.random.Generator, int], Streams]


# ---------------------------------------------------------------- streams: a less b, run by run


def agents(rate: float, drop: float = 0.0, *, tasks: float = 4.0, trials: int = 1) -> Draw:
    """Success of an agent less that of one worse by `drop`, on tasks of different difficulty."""

    def draw(rng: np.random.Generator, n: int) -> Streams:
        shape = (n, N_RUNS)
        chance = np.full(shape, rate)
        if tasks and 0 < rate < 1:
            chance = rng.beta(tasks * rate, tasks * (1 - rate), shape)
        worse = np.clip(chance - drop, 0, 1)
        return (rng.binomial(trials, chance) - rng.binomial(trials, worse)) / trials

    return draw


def from_run(start: int, draw: Draw) -> Draw:
    """Equal agents at .6 before a run, then another stream."""

    def late(rng: np.random.Generator, n: int) -> Streams:
        streams = agents(0.6)(rng, n)
        streams[:, start:] = draw(rng, n)[:, start:]
        return streams

    return late


def swinging(rng: np.random.Generator, n: int) -> Streams:
    """Means of -.3 and +.3 in turns of 20 runs: the average so far is never above 0."""
    mean = np.where(np.arange(N_RUNS) // 20 % 2, 0.3, -0.3)
    return np.where(rng.random((n, N_RUNS)) < (1 + mean) / 2, 1.0, -1.0)


def seldom(rng: np.random.Generator, n: int) -> Streams:
    """A gain of .04 in most runs and a loss of .96 in one of 25."""
    return np.where(rng.random((n, N_RUNS)) < 0.04, -0.96, 0.04)


# name: the number of the stream, the stream, the smallest difference of a run. Each mean is 0, or
# not above 0 so far.
NULLS: dict[str, tuple[int, Draw, float]] = {
    "both .6": (0, agents(0.6), -1),
    "both .97": (2, agents(0.97), -1),
    "both .6, 5 trials a task, their mean": (5, agents(0.6, trials=5), -1),
    "seldom much worse": (6, seldom, -1),
    "worse by a margin of .03, both near .97": (
        8, lambda r, n: 0.03 - agents(0.97, 0.03, tasks=0)(r, n), -0.97,
    ),
    "success .95, held against .95": (
        9, lambda r, n: (r.random((n, N_RUNS)) < 0.95) - 0.95, -0.95,
    ),
    "means swing, average never above 0": (12, swinging, -1),
}  # fmt: skip
DROPS: dict[str, tuple[int, Draw, float]] = {
    "drop of .1 from .6": (0, agents(0.6, 0.1), -1),
    "the same, tasks alike": (1, agents(0.6, 0.1, tasks=0), -1),
    "drop of .05 from .6": (2, agents(0.6, 0.05), -1),
    "drop of .1 from .6 at run 200": (4, from_run(200, agents(0.6, 0.1)), -1),
    "drop of .1 from .9": (6, agents(0.9, 0.1), -1),
}


# ---------------------------------------------------------------- rules: is the mean above 0?


def _log_bets(streams: Streams, lowest: float) -> np.ndarray:
    """Log of `SequentialComparison.e_value` after each run, of many streams at once."""
    log = np.tile(np.log(_CAPITAL), (len(streams), 1))
    out = np.empty(streams.shape)
    for t in range(streams.shape[1]):
        log += np.log1p(streams[:, t, None] * _SHARES / -lowest)
        largest = log.max(axis=1)
        out[:, t] = largest + np.log(np.exp(log - largest[:, None]).sum(axis=1))
    return out


def _moments(streams: Streams) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    t = np.arange(1, streams.shape[1] + 1)
    mean = np.cumsum(streams, axis=1) / t
    return t, mean, np.maximum(np.cumsum(streams**2, axis=1) / t - mean**2, 1e-12)


def bets(streams: Streams, lowest: float, alpha: float) -> np.ndarray:
    """The rule of the package."""
    return _log_bets(streams, lowest) >= -math.log(alpha)


def plug_in(streams: Streams, lowest: float, alpha: float, n: int | None = None) -> np.ndarray:
    """Predictable bets, each at most .9 of what may be lost."""
    t, mean, _ = _moments(streams)
    deviations = np.cumsum((streams - mean) ** 2, axis=1)
    before = np.concatenate([np.zeros((len(streams), 1)), deviations[:, :-1]], axis=1)
    variance = (0.25 + before) / t
    size = np.sqrt(2 * math.log(1 / alpha) / (variance * (n or t * np.log1p(t))))
    return np.cumsum(np.log1p(np.minimum(size, 0.9 / -lowest) * streams), 1) >= -math.log(alpha)


def robbins(streams: Streams, lowest: float, alpha: float) -> np.ndarray:
    """Mean less the radius of the asymptotic confidence sequence, one-sided by twice the level."""
    t, mean, variance = _moments(streams)
    of_both = 2 * alpha
    scale = (-2 * math.log(of_both) + math.log(1 - 2 * math.log(of_both))) / 100  # rho squared
    inner = 2 * (t * scale + 1) / (t**2 * scale) * np.log(np.sqrt(t * scale + 1) / of_both)
    return (mean > np.sqrt(variance * inner)) & (t >= 20)


def msprt(streams: Streams, lowest: float, alpha: float) -> np.ndarray:
    """Mixture sequential probability ratio, one-sided by twice the level."""
    t, mean, variance = _moments(streams)
    spread = variance + t * 0.01
    log = 0.5 * np.log(variance / spread) + 0.01 * t**2 * mean**2 / (2 * variance * spread)
    return (log >= -math.log(2 * alpha)) & (mean > 0) & (t >= 20)


RULES = {
    "bets": bets,
    "plug-in": plug_in,
    "plug-in N": lambda d, low, alpha: plug_in(d, low, alpha, N_RUNS),
    "Robbins": robbins,
    "mSPRT": msprt,
}


def main() -> None:
    """Print how often each rule ever says that the mean is above 0, within 400 runs."""
    given = options(__doc__, streams=10_000, seed=1)
    warnings.simplefilter("ignore")
    of_class = agents(0.6, 0.1)(np.random.default_rng(given.seed), 3)
    for stream, ours in zip(of_class, _log_bets(of_class, -1), strict=True):
        known = SequentialComparison(1).update(stream, 0 * stream).history()["e_value"]
        np.testing.assert_allclose(np.log(known), ours, atol=1e-9)
    for title, designs, alpha in (
        (f"never better: says so at all, promised {LEVEL}", NULLS, LEVEL),
        (f"better: seen at {LEVEL}, one-sided", DROPS, LEVEL),
        (f"better: seen at {LEVEL}, two-sided", DROPS, LEVEL / 2),
    ):
        rows = {}
        for name, (k, draw, lowest) in designs.items():
            d = draw(np.random.default_rng([given.seed, k]), given.streams)
            said = {rule: of(d, lowest, alpha).any(axis=1).mean() for rule, of in RULES.items()}
            rows[name] = said
        show(f"{title}; {given.streams:,} streams of {N_RUNS} runs", rows)


if __name__ == "__main__":
    main()
