"""Looking again as runs arrive: how often rules are wrong, and what they see.

    python benchmarks/sequential.py [--streams 10000] [--seed 1]

Rules are held against each other on the same streams of differences:

    bets     SequentialComparison: bets that do not adapt, mixed over their size
    Robbins  asymptotic confidence sequence (Waudby-Smith et al. 2024, Time-uniform central limit
             theory), tightest at 100 runs, from run 20 on
    mSPRT    normal mixture with the variance seen so far, prior sd .1, from run 20 on
"""

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


def agents(rate: float, drop: float = 0.0) -> Draw:
    """Success of an agent less that of one worse by `drop`, on tasks of different difficulty."""

    def draw(rng: np.random.Generator, n: int) -> Streams:
        chance = rng.beta(4 * rate, 4 * (1 - rate), (n, N_RUNS))
        worse = np.clip(chance - drop, 0, 1)
        return rng.binomial(1, chance) * 1.0 - rng.binomial(1, worse)

    return draw


def seldom(rng: np.random.Generator, n: int) -> Streams:
    """A gain of .04 in most runs and a loss of .96 in one of 25."""
    return np.where(rng.random((n, N_RUNS)) < 0.04, -0.96, 0.04)


# name: the number of the stream, the stream. Each mean is 0 in the first.
NULLS = {"both .6": (0, agents(0.6)), "seldom much worse": (6, seldom)}
DROPS = {"drop of .1 from .6": (0, agents(0.6, 0.1)), "drop of .1 from .9": (6, agents(0.9, 0.1))}


def _log_bets(streams: Streams) -> np.ndarray:
    """Log of `SequentialComparison.e_value` after each run, of many streams at once."""
    log = np.tile(np.log(_CAPITAL), (len(streams), 1))
    out = np.empty(streams.shape)
    for t in range(streams.shape[1]):
        log += np.log1p(streams[:, t, None] * _SHARES)
        largest = log.max(axis=1)
        out[:, t] = largest + np.log(np.exp(log - largest[:, None]).sum(axis=1))
    return out


def _moments(streams: Streams) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    t = np.arange(1, streams.shape[1] + 1)
    mean = np.cumsum(streams, axis=1) / t
    return t, mean, np.maximum(np.cumsum(streams**2, axis=1) / t - mean**2, 1e-12)


def bets(streams: Streams, alpha: float) -> np.ndarray:
    return _log_bets(streams) >= -math.log(alpha)


def robbins(streams: Streams, alpha: float) -> np.ndarray:
    """Mean less the radius of the asymptotic confidence sequence, one-sided by twice the level."""
    t, mean, variance = _moments(streams)
    of_both = 2 * alpha
    scale = (-2 * math.log(of_both) + math.log(1 - 2 * math.log(of_both))) / 100  # rho squared
    inner = 2 * (t * scale + 1) / (t**2 * scale) * np.log(np.sqrt(t * scale + 1) / of_both)
    return (mean > np.sqrt(variance * inner)) & (t >= 20)


def msprt(streams: Streams, alpha: float) -> np.ndarray:
    """Mixture sequential probability ratio, one-sided by twice the level."""
    t, mean, variance = _moments(streams)
    spread = variance + t * 0.01
    log = 0.5 * np.log(variance / spread) + 0.01 * t**2 * mean**2 / (2 * variance * spread)
    return (log >= -math.log(2 * alpha)) & (mean > 0) & (t >= 20)


RULES = {"bets": bets, "Robbins": robbins, "mSPRT": msprt}


def main() -> None:
    args = options(__doc__, streams=10_000, seed=1)
    warnings.simplefilter("ignore")
    of_class = agents(0.6, 0.1)(np.random.default_rng(args.seed), 3)
    for stream, ours in zip(of_class, _log_bets(of_class), strict=True):
        known = SequentialComparison(1).update(stream, 0 * stream).history()["e_value"]
        np.testing.assert_allclose(np.log(known), ours, atol=1e-9)
    for title, designs in (("never better: says so at all", NULLS), ("better: seen", DROPS)):
        rows = {}
        for name, (k, draw) in designs.items():
            d = draw(np.random.default_rng([args.seed, k]), args.streams)
            rows[name] = {rule: of(d, LEVEL).any(axis=1).mean() for rule, of in RULES.items()}
        show(f"{title} at {LEVEL}; {args.streams:,} streams of {N_RUNS} runs", rows)


if __name__ == "__main__":
    main()
