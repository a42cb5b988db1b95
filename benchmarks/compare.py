"""How often the intervals of `compare_predictors` all hold at once, and how wide they are.

    python benchmarks/compare.py [--simulations 2000] [--seed 0] [--quick]

Five ordinary predictors are compared with a reference that is as good as they are. Most settings
have a sixth, with the reference's scores in all runs but a few. Three rules make intervals of 95%:

new       as the package does: each comparison has a quantile of its own
old       one quantile for all comparisons, that of the largest |t*|; no answer where it is infinite
          or a difference does not vary
t         Student's t with Bonferroni's correction; [0, 0] where a difference does not vary

A row a setting prints, over simulations:

all hold     how often all intervals hold their difference; old: where it has an answer
none         how often old has no answer
width        mean width of the ordinary predictors' intervals, over that of t
sixth holds  how often the sixth's interval holds its difference
its width    median width of the sixth's interval, over the mean width of the others by t
range        how often the new interval of the last predictor rests on the range of scores
wrong        how often p_holm finds a difference at .05 where there is none

--quick makes 100 simulations of each setting, to see that the script runs.
"""

from __future__ import annotations

import argparse
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from scipy.stats import t as student

from trajscore.inference._compare import (
    _are_by_range,
    _holm,
    _intervals,
    _Moments,
    _p_values,
    _pairs,
)
from trajscore.inference.units import Units, draw_counts, resampling_units

Array = NDArray[np.float64]
LEVEL = 0.95
N_ORDINARY = 5
N_RESAMPLES = 1999
REUSED = 20  # simulations that share the draws of the bootstrap
COLUMNS = (
    "new holds", "old holds", "none", "t holds", "new width", "old width", "new sixth", "t sixth",
    "new its width", "old its width", "t its width", "range", "wrong",
)  # fmt: skip


def skewed(rng: np.random.Generator, size: int) -> Array:
    """What the sixth predictor is better by where it differs, .2 on average."""
    return rng.beta(1, 4, size)


def skewed_about_0(rng: np.random.Generator, size: int) -> Array:
    """Often a little better, seldom much worse, and 0 on average."""
    return np.where(rng.random(size) < 0.8, 0.1, -0.4)


def by_1(rng: np.random.Generator, size: int) -> Array:
    """As far as scores can differ, as where they are 0 and 1."""
    return np.ones(size)


@dataclass(frozen=True)
class Setting:
    """How runs and their scores are drawn."""

    n_units: int = 1000
    sizes: tuple[int, int] = (1, 1)  # smallest and largest cluster
    differs: float | None = None  # share of units in which the sixth differs; None: no sixth
    by: Callable[[np.random.Generator, int], Array] = skewed
    mean: float = 0.2  # of `by`
    noise: float = 0.0  # in the other runs, standard deviation of what the sixth differs by
    grid: float = 0.0  # forecasts are rounded to multiples of this

    def units(self) -> Array:
        """Cluster of each run, the same in all simulations."""
        low, high = self.sizes
        sizes = np.random.default_rng(5).integers(low, high + 1, self.n_units)
        return np.repeat(np.arange(self.n_units), sizes)

    def draw(self, rng: np.random.Generator, groups: Array) -> Array:
        """Brier scores of the reference, of the ordinary predictors, and of the sixth."""
        n_runs = len(groups)
        ease = rng.normal(0.5, 1, self.n_units)[groups] + rng.normal(0, 0.7, n_runs)
        success = rng.random(n_runs) < expit(ease)
        # errors of a predictor are alike within a cluster
        noise = rng.normal(0, 0.7, (self.n_units, 1 + N_ORDINARY))[groups]
        noise += rng.normal(0, 0.7, noise.shape)
        forecasts = expit(ease[:, None] + noise)
        if self.grid:
            forecasts = np.round(forecasts / self.grid) * self.grid
        scores = -((forecasts - success[:, None]) ** 2)
        if self.differs is None:
            return scores
        apart = (rng.random(self.n_units) < self.differs) * self.by(rng, self.n_units)
        sixth = scores[:, 0] + apart[groups] + self.noise * rng.normal(size=n_runs)
        return np.column_stack([scores, sixth])

    def truth(self) -> Array:
        """Differences of the mean scores from that of the reference."""
        if self.differs is None:
            return np.zeros(N_ORDINARY)
        return np.append(np.zeros(N_ORDINARY), self.differs * self.mean)


RARE = Setting(differs=0.004)
SETTINGS = {
    "1,000 runs, ordinary predictors": Setting(),
    "1,000 runs, a sixth differs in 1": replace(RARE, differs=0.001),
    "1,000 runs, in 2": replace(RARE, differs=0.002),
    "1,000 runs, in 4": RARE,
    "1,000 runs, in 8": replace(RARE, differs=0.008),
    "1,000 runs, in 16": replace(RARE, differs=0.016),
    "1,000 runs, in 4, 0 on average": replace(RARE, by=skewed_about_0, mean=0.0),
    "1,000 runs, in 16, 0 on average": replace(RARE, differs=0.016, by=skewed_about_0, mean=0.0),
    "1,000 runs, in 4, by 1": replace(RARE, by=by_1, mean=1.0),
    "1,000 runs, in 16, by 1": replace(RARE, differs=0.016, by=by_1, mean=1.0),
    "1,000 runs, in 4, elsewhere .0001": replace(RARE, noise=0.0001),
    "1,000 runs, in 4, elsewhere .001": replace(RARE, noise=0.001),
    "1,000 runs, in none": replace(RARE, differs=0.0),
    "1,000 runs, forecasts 0, .5 and 1": Setting(grid=0.5),
    "30 runs, ordinary predictors": Setting(30),
    "30 runs, a sixth differs in 3": Setting(30, differs=0.1),
    "30 runs, in none": Setting(30, differs=0.0),
    "30 runs, forecasts 0, .5 and 1": Setting(30, grid=0.5),
    "8 clusters of 5": Setting(8, (5, 5)),
    "40 clusters of 1 to 10": Setting(40, (1, 10)),
    "40 clusters, a sixth differs in 4": Setting(40, (1, 10), differs=0.1),
}


class Rule:
    """Intervals by one rule, simulation by simulation."""

    def __init__(self, truth: Array) -> None:
        self._truth = truth
        self._holds: list[Array] = []
        self._widths: list[Array] = []

    def add(self, low: Array, high: Array) -> None:
        """Take the intervals of one simulation; NaN where a rule has no answer."""
        holds = ((low <= self._truth) & (self._truth <= high)).astype(float)
        holds[np.isnan(low)] = np.nan
        self._holds.append(holds)
        self._widths.append(high - low)

    def joint(self) -> float:
        """Share of simulations in which all intervals hold, of those with an answer."""
        return float(np.nanmean(np.array(self._holds).min(axis=1)))

    def no_answer(self) -> float:
        """Share of simulations without intervals."""
        return float(np.isnan(np.array(self._holds)).any(axis=1).mean())

    def sixth(self) -> float:
        """Share of simulations in which the interval of the last predictor holds."""
        return float(np.nanmean(np.array(self._holds)[:, -1]))

    def width(self) -> float:
        """Mean width of the ordinary intervals."""
        return float(np.nanmean(np.array(self._widths)[:, :N_ORDINARY]))

    def sixth_width(self) -> float:
        """Median width of the last interval."""
        return float(np.nanmedian(np.array(self._widths)[:, -1]))


def one_quantile(moments: _Moments, t: Array) -> tuple[Array, Array]:
    """Intervals with the quantile of the largest |t*|; NaN where there are none."""
    rank = math.ceil((len(t) + 1) * LEVEL - 1e-9)
    critical = np.sort(t.max(axis=1))[rank - 1]
    reach = moments.std_error * (critical if np.isfinite(critical) else np.nan)
    return moments.difference - reach, moments.difference + reach


def by_student(moments: _Moments, n_units: int) -> tuple[Array, Array]:
    """Intervals by t, with Bonferroni's correction."""
    tail = (1 - LEVEL) / len(moments.difference) / 2
    reach = moments.std_error * student.ppf(1 - tail, n_units - 1)
    return moments.difference - reach, moments.difference + reach


def simulate(setting: Setting, n_simulations: int, seed: list[int]) -> dict[str, float]:
    """One row of the table."""
    rng, groups, truth = np.random.default_rng(seed), setting.units(), setting.truth()
    units: Units = resampling_units(len(groups), None if setting.sizes == (1, 1) else groups)
    rules = {name: Rule(truth) for name in ("new", "old", "t")}
    wrong, by_range = 0, 0
    for simulation in range(n_simulations):
        values = setting.draw(rng, groups)
        names = list(range(values.shape[1]))
        pairs = _pairs(names, 0)
        moments = _Moments(values, pairs, units)
        if simulation % REUSED == 0:
            counts = draw_counts(N_RESAMPLES, units, rng)
        t = moments.studentised(counts)
        rules["new"].add(*_intervals(moments, t, 1 - LEVEL))
        rules["old"].add(*one_quantile(moments, t))
        rules["t"].add(*by_student(moments, units.n_units))
        wrong += bool((_holm(_p_values(moments, t))[truth == 0] <= 1 - LEVEL).any())
        ranges = [moments.range_of(pair) for pair in range(len(pairs))]
        share = (1 - LEVEL) / len(pairs)
        by_range += bool(_are_by_range(ranges, moments.std_error, t, share)[-1])
    usual = rules["t"].width()
    row = {f"{name} holds": rule.joint() for name, rule in rules.items()}
    row |= {"none": rules["old"].no_answer()}
    row |= {f"{name} width": rules[name].width() / usual for name in ("new", "old")}
    if setting.differs is not None:
        row |= {f"{name} sixth": rules[name].sixth() for name in ("new", "t")}
        row |= {f"{name} its width": rule.sixth_width() / usual for name, rule in rules.items()}
        row |= {"range": by_range / n_simulations}
    return row | {"wrong": wrong / n_simulations}


def main() -> None:
    """Print a row for each setting."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--simulations", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="100 simulations of each setting")
    arguments = parser.parse_args()
    n_simulations = 100 if arguments.quick else arguments.simulations
    warnings.simplefilter("ignore", RuntimeWarning)  # means of nothing, where no rule answers
    deviation = math.sqrt(LEVEL * (1 - LEVEL) / n_simulations)
    print(f"{n_simulations} simulations; standard error {deviation:.3f} at {LEVEL:.2f}")
    print(f"{'':<34}{'all hold':^32}{'width':^16}{'sixth holds':^16}{'its width':^24}")
    print(f"{'':<34}{''.join(f'{column.split()[0]:>8}' for column in COLUMNS)}")
    for k, (name, setting) in enumerate(SETTINGS.items()):
        row = simulate(setting, n_simulations, [arguments.seed, k])
        cells = (f"{row[column]:8.3f}" if column in row else " " * 8 for column in COLUMNS)
        print(f"{name:<34}{''.join(cells)}", flush=True)


if __name__ == "__main__":
    main()
