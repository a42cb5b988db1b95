"""How often a gate is wrong: two sets from one population, and how often it sees a drop.

`--grid` has thousands of designs at the edge of a gate: rates near 0 and 1, few tasks, trials,
tasks that break outright. Bounds are computed for all repeats at once, by the formulas of `check`,
which is held against them first; the worst designs are drawn again, ten thousand times.

python benchmarks/gates.py [--sets 1000] [--grid] [--repeats 1000]
"""

from __future__ import annotations

import argparse
import math
import warnings
from collections.abc import Callable, Iterator
from itertools import product
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import stdtrit

from trajscore import TrajectoryArray
from trajscore.gates import Gate, RunSet, check
from trajscore.gates._change import excess
from trajscore.gates._gate import Rules
from trajscore.inference import runs_needed

N_TASKS, N_TRIALS = 40, 5
Draw = Callable[[np.random.Generator, float], RunSet]


def agent(
    rate: float, n_tasks: int = N_TASKS, n_trials: int = N_TRIALS, tasks_are: str = "named"
) -> Callable[..., RunSet]:
    """An agent whose chance of success differs from task to task; runs have a forecast a step.

    Tasks are "named", so that sets are paired by them; "unnamed", the same in both sets but nobody
    says so; or "other" ones in each set, and not named either.
    """

    def chances(rng: np.random.Generator) -> np.ndarray:
        return rng.beta(4 * rate, 4 * (1 - rate), n_tasks)

    def draw(rng: np.random.Generator, chance: np.ndarray, drop: float = 0.0) -> RunSet:
        if tasks_are == "other":
            chance = chances(rng)
        p = np.clip(chance - drop, 0, 1)
        tasks = np.repeat(np.arange(n_tasks), n_trials)
        y = (rng.random(len(tasks)) < p[tasks]).astype(int)
        lengths = rng.integers(2, 8, len(tasks))
        run = np.repeat(np.arange(len(tasks)), lengths)
        cells = np.clip(0.5 + 0.2 * (y[run] - 0.5) + rng.normal(0, 0.2, len(run)), 0.01, 0.99)
        X = TrajectoryArray(cells, lengths)
        return RunSet(X, y, tasks=tasks if tasks_are == "named" else None)

    draw.chances = chances  # type: ignore[attr-defined]
    return draw


def shares(
    draw: Callable[..., RunSet], n_sets: int, drop: float, rules: Rules | Gate | None, seed: int
) -> dict[str, float]:
    """Shares of the verdicts over pairs of sets, whose tasks are drawn anew each time."""
    counts = {"pass": 0, "fail": 0, "undecided": 0, "unusable": 0}
    for k in range(n_sets):
        rng = np.random.default_rng([seed, k])
        chance = draw.chances(rng)  # type: ignore[attr-defined]
        base, new = draw(rng, chance), draw(rng, chance, drop)
        counts[check(new, base, rules).verdict] += 1
    return {name: n / n_sets for name, n in counts.items()}


def promised(draw: Callable[..., RunSet], n_runs: int, drop: float, seed: int) -> float:
    """Power at which `runs_needed` asks for as many runs, of a one-sided test at 5%."""
    rng = np.random.default_rng([seed, 999_999])
    deviations = []
    for _ in range(200):
        chance = draw.chances(rng)  # type: ignore[attr-defined]
        sets = draw(rng, chance), draw(rng, chance, drop)
        means = [
            np.bincount(np.unique(one.tasks, return_inverse=True)[1], one.labels)
            / np.unique(one.tasks, return_counts=True)[1]
            for one in sets
        ]
        deviations.append(np.var(means[1] - means[0], ddof=1))
    n_units = len(np.unique(sets[0].tasks))
    sd = math.sqrt(np.mean(deviations))

    def excess(power: float) -> float:
        return runs_needed(drop, sd=sd, power=power, alpha=0.1) - n_units - 0.5

    return float(brentq(excess, 0.06, 0.9999))


# --------------------------------------------------------------------- the grid

LEVEL = 0.95
MANY = "1 to 8"  # trials a task, drawn for each
TASKS, TRIALS = (20, 30, 60, 200, 500), (1, 2, 8, MANY)
RATES = (0.02, 0.1, 0.5, 0.8, 0.9, 0.95, 0.98, 1.0)
MODERATE = (0.3, 0.5, 0.7, 0.8)


class Design(NamedTuple):
    """Sets of runs; the new one succeeds by `drop` less often than the base."""

    kind: str  # "one set", "paired" or "not paired"
    tasks: str  # "alike"; "differ" in difficulty; "break": their new runs all fail; see `chances`
    n_tasks: int
    n_trials: int | str
    rate: float
    drop: float = 0.0


def chances(one: Design, size: tuple[int, int], rng: np.random.Generator) -> tuple:
    """Chances of success of tasks in the base and the new set; their means differ by the drop."""
    rate, share = one.rate, one.drop / one.rate
    if one.tasks in ("alike", "break"):
        base = np.full(size, rate)
    elif one.tasks in ("differ", "differ and break"):
        base = np.ones(size) if rate == 1 else rng.beta(4 * rate, 4 * (1 - rate), size)
    else:  # "outright": always or never solved; "both ways": some break, fewer are mended
        base = (rng.random(size) < rate).astype(float)
    if one.tasks in ("alike", "differ"):
        return base, base * (1 - share)
    mended = min(0.04, 1 - rate) if one.tasks == "both ways" else 0.0
    broken = rng.random(size) < share + mended / rate
    return base, np.where(broken, 0, base) + (
        (base == 0) & (rng.random(size) < mended / max(1 - rate, 1e-9)) if mended else 0
    )


def drawn(one: Design, repeats: int, rng: np.random.Generator) -> Iterator[tuple]:
    """Yield the share of successes and the number of trials of each task, for each set."""
    size = (repeats, one.n_tasks)
    base, new = chances(one, size, rng)
    if one.kind == "not paired":
        new = chances(one, size, rng)[1]
    for p in (new,) if one.kind == "one set" else (base, new):
        n = rng.integers(1, 9, size) if one.n_trials == MANY else np.full(size, one.n_trials)
        yield rng.binomial(n, p) / n, n.astype(float)


def bounds(one: Design, sets: list[tuple], old: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper bounds of the change, for each repeat; `old` by t alone."""
    unseen = 1 - (1 - LEVEL) ** (1 / one.n_tasks)  # where nothing varied
    if one.kind == "paired":
        (base, n), (new, _) = sets
        change, shares = new - base, np.ones_like(n)
        value, error, freedom = moments(change, shares)
        parts = [((-change).clip(0), change.clip(0), shares)]
    else:
        of_sets = [moments(*a_set) for a_set in sets]
        parts = [(1 - rate, rate, n) for rate, n in sets[-1:]]
        value, error, freedom = of_sets[-1]
        if len(sets) > 1:
            parts += [(rate, 1 - rate, n) for rate, n in sets[:1]]
            value = value - of_sets[0][0]
            variances = np.array([a_set[1] ** 2 for a_set in of_sets])
            freedoms = np.array([a_set[2] for a_set in of_sets])
            with np.errstate(invalid="ignore"):
                freedom = variances.sum(0) ** 2 / (variances**2 / freedoms).sum(0)
            freedom = np.where(variances.sum(0) > 0, freedom, one.n_tasks - 1)
            error = np.sqrt(variances.sum(0))
    reach = stdtrit(freedom, LEVEL) * error
    if old:
        reach = np.where(error > 0, reach, unseen)
        return value - reach, value + reach
    ends = []
    for side in (0, 1):
        edges = [excess(part[side], part[2], LEVEL) for part in parts]
        ends.append(np.maximum(reach, np.sqrt(sum(edge**2 for edge in edges))))
    return value - ends[0], value + ends[1]


def moments(rates: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean, its standard error and degrees of freedom, from rates of clusters and their sizes."""
    n = rates.shape[1]
    shares = sizes / sizes.sum(axis=1, keepdims=True)
    mean = (shares * rates).sum(axis=1)
    errors = shares * (rates - mean[:, None]) / (1 - shares) * np.sqrt((n - 1) / n)
    error = np.sqrt((errors**2).sum(axis=1))
    return mean, np.where(error > 1e-14, error, 0), 1 / (shares**2).sum(axis=1) - 1


def wrong(one: Design, repeats: int, seed: int) -> tuple[float, ...]:
    """How often the gate whose edge is the truth passes, and fails; and both by t alone."""
    rng = np.random.default_rng([seed, *map(ord, str(tuple(one)))])
    sets, truth = list(drawn(one, repeats, rng)), one.rate if one.kind == "one set" else 0
    found = []
    for old in (False, True):
        low, high = bounds(one, sets, old)
        found += [np.mean(low > truth - one.drop + 1e-9), np.mean(high < truth - one.drop - 1e-9)]
    return tuple(map(float, found))


def verdicts(one: Design, margin: float, repeats: int, seed: int) -> dict[str, float]:
    """Shares of the verdicts of one gate of success against the baseline."""
    low, high = bounds(one, list(drawn(one, repeats, np.random.default_rng(seed))))
    passed, failed = float((low >= -margin).mean()), float((high < -margin).mean())
    return {"pass": passed, "fail": failed, "undecided": 1 - passed - failed}


def seen(one: Design, margin: float, repeats: int, seed: int) -> list[tuple[float, float]]:
    """Power of the rule and of t alone: to pass with a margin, or fail, this far from the edge."""
    rng = np.random.default_rng([seed, one.n_tasks, int(1000 * one.rate)])
    sets = list(drawn(one, repeats, rng))
    truth = one.rate - one.drop if one.kind == "one set" else -one.drop
    passed, failed = [], []
    for old in (False, True):
        low, high = bounds(one, sets, old)
        passed.append(float((low > truth - margin).mean()))
        failed.append(float((high < truth + margin).mean()))
    return list(zip(passed, failed, strict=True))


def designs() -> Iterator[tuple[str, Design]]:
    """Yield all designs at the edge of a gate, by what the table calls them."""
    for n, k, rate in product(TASKS, TRIALS, RATES):
        if rate < 1:
            for tasks in ("alike", "differ", "outright"):
                name = "one set" if k == 1 else "one set, trials"
                yield name, Design("one set", tasks, n, k, rate)
        for drop in (0.0, 0.03, 0.05, 0.1) if rate > 0.1 else ():
            ways = ["alike"] if rate == 1 else ["alike", "differ"]
            for tasks in ways:
                name = "paired" if k == 1 else "paired, trials"
                yield name, Design("paired", tasks, n, k, rate, drop)
                if drop in (0, 0.05):
                    yield "not paired", Design("not paired", tasks, n, k, rate, drop)
            outright = ["break", "differ and break"][: len(ways)] if k != 1 and drop else []
            outright += ["outright", "both ways"] if 0.2 <= rate < 1 else []
            for tasks in outright:
                name = "paired" if k == 1 else "paired, tasks break outright"
                yield name, Design("paired", tasks, n, k, rate, drop)


REVIEWED = {
    "success >= .95 of 60, truth .9499": (Design("one set", "alike", 60, 1, 0.9499), 0.95, 0),
    "success >= .95 of 60, truth .94": (Design("one set", "alike", 60, 1, 0.94), 0.95, 0),
    "success >= .90 of 30, truth .8999": (Design("one set", "alike", 30, 1, 0.8999), 0.9, 0),
    "success >= .05 of 60, truth .05, fails": (Design("one set", "alike", 60, 1, 0.05), 0.05, 1),
    "100 pairs, base always right, margin .03, worse by .03": (
        Design("paired", "alike", 100, 1, 1.0, 0.030001), -0.03, 0,
    ),
    "the same, worse by .035": (Design("paired", "alike", 100, 1, 1.0, 0.035), -0.03, 0),
    "60 tasks x 8, success .98, 5% break, margin .05": (
        Design("paired", "break", 60, 8, 0.98, 0.05), -0.05, 0,
    ),
    "20 tasks x 8, success .98, 5% break, margin .05": (
        Design("paired", "break", 20, 8, 0.98, 0.05), -0.05, 0,
    ),
}  # fmt: skip


def grid(repeats: int, seed: int) -> None:
    """Print the worst wrong passes and fails of each kind of design, and what power it costs."""
    print(f"\nnamed designs, {10 * repeats} repeats: wrong by t alone, and by the rule of check")
    for name, (one, edge, side) in REVIEWED.items():
        found = []
        for old in (True, False):
            rng = np.random.default_rng([seed, 7])
            low, high = bounds(one, list(drawn(one, 10 * repeats, rng)), old)
            found.append((low >= edge, high < edge)[side].mean())
        print(f"{name:<58}{found[0]:8.4f}{found[1]:8.4f}", flush=True)
    first: dict[str, list] = {}
    for name, one in designs():
        few = repeats if one.n_tasks < 500 else max(repeats // 2, 1)
        first.setdefault(name, []).append((one, wrong(one, few, seed)))
    print(f"\n{'worst of designs':<30}{'designs':>8}  wrong pass, wrong fail; by t alone, both")
    for name, rows in first.items():
        worst = []
        for k in range(4):
            rows.sort(key=lambda row: -row[1][k])
            rows_again = rows[: 12 if k < 2 else 1]
            again = [(wrong(one, 10 * repeats, seed + 1)[k], one) for one, _ in rows_again]
            worst.append(max(again))
        print(f"{name:<30}{len(rows):>8}  " + " ".join(f"{value:.4f}" for value, _ in worst))
        for value, one in worst[:2]:
            print(f"    {value:.4f} {tuple(one)}", flush=True)
    print(f"\n{'power at moderate rates':<30} t alone, change, worst change from 60 tasks on")
    for kind in ("one set", "paired", "not paired"):
        rows = []
        for n, k, rate in product(TASKS, TRIALS, MODERATE):
            for gap, tasks in product((0.05, 0.1), ("alike", "differ")):
                one = Design(kind, tasks, n, k, rate)
                rows += [
                    (n, a, b) for a, b in zip(*seen(one, gap, repeats // 4, seed), strict=True)
                ]
        table = np.array(rows)
        change, large = table[:, 1] - table[:, 2], table[:, 0] >= 60
        print(
            f"{kind:<30}{table[:, 2].mean():8.3f}{change.mean():8.3f}{change[large].min():8.3f}"
            + "".join(f"  n={n}: {change[table[:, 0] == n].mean():.3f}" for n in TASKS),
            flush=True,
        )


def agree() -> None:
    """Stop if the bounds of the grid are not those of `check`."""
    for kind, k in product(("one set", "paired", "not paired"), (1, 4, MANY)):
        one = Design(kind, "outright" if k == 1 else "differ", 30, k, 0.9, 0.05)
        sets = list(drawn(one, 1, np.random.default_rng(3)))
        runs = []
        for rates, sizes in sets:
            n = sizes[0].astype(int)
            names = np.repeat(np.arange(30), n) + 100 * len(runs) * (kind == "not paired")
            y = np.concatenate(
                [np.arange(a) < round(a * b) for a, b in zip(n, rates[0], strict=True)]
            )
            X = TrajectoryArray(np.full(len(y), 0.5), np.ones(len(y), dtype=int))
            runs.append(RunSet(X, y.astype(int), tasks=[f"t{name}" for name in names]))
        gate = Gate(versus=0.5) if kind == "one set" else Gate()
        found = check(runs[-1], runs[0] if len(runs) > 1 else None, gate).gates[0]
        wanted = np.ravel(bounds(one, sets)) - (0.5 if kind == "one set" else 0)
        np.testing.assert_allclose([found.low, found.high], wanted, atol=1e-9)


def main() -> None:
    """Print the shares of the verdicts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--grid", action="store_true")
    parser.add_argument("--repeats", type=int, default=1000)
    arguments = parser.parse_args()
    seed = arguments.seed
    warnings.simplefilter("ignore")
    if arguments.grid:
        agree()
        grid(arguments.repeats, seed)
    else:
        of_check(arguments.sets, seed)


def of_check(n: int, seed: int) -> None:
    """Print the shares of the verdicts of `check` itself, of sets of the usual kind."""
    several = Rules(
        (
            Gate(),
            Gate("pass^2"),
            Gate("length"),
            Gate("TPS log margin"),
            Gate("S-ECE", form="recalibrated"),
            Gate("AUROC"),
        )
    )
    near = 1.96 * math.sqrt(0.05 * 0.95 / (10 * n))
    print(f"{10 * n} pairs of sets; shares of verdicts, +- {near:.3f} at .05")
    print(f"{'':<44}{'fail':>7}{'pass':>7}{'open':>7}  promised")

    def show(name: str, found: dict[str, float], power: float | None = None) -> None:
        told = "" if power is None else f"{power:9.3f}"
        numbers = "".join(f"{found[one]:7.3f}" for one in ("fail", "pass", "undecided"))
        print(f"{name:<44}{numbers}{told}", flush=True)

    def alone(name: str, margin: float, power: float | None, *design: object) -> None:
        one = Design("paired", "differ", *design)  # type: ignore[arg-type]
        show(name, verdicts(one, margin, 10 * n, seed), power)

    for rate in (0.6, 0.9, 0.97):
        alone(f"40 x 5, success {rate}, the same", 0, None, 40, 5, rate)
    alone("200 x 1, the same", 0, None, 200, 1, 0.6)
    other = Design("not paired", "differ", 200, 1, 0.6)
    show("200 x 1, of other tasks than the base's", verdicts(other, 0, 10 * n, seed))
    alone("10 x 5, the same", 0, None, 10, 5, 0.6)
    alone("40 x 5, margin 0.05, the same", 0.05, None, 40, 5, 0.6)
    for drop in (0.05, 0.1, 0.15):
        power = promised(agent(0.6), N_TASKS, drop, seed)
        alone(f"40 x 5, drop of {drop}", 0, power, 40, 5, 0.6, drop)
    print(f"by check itself, {n} pairs of sets")
    unnamed = agent(0.6, 200, 1, "unnamed")
    show("200 x 1, tasks not named, the same", shares(unnamed, n, 0.0, None, seed))
    show("40 x 5, six gates, the same", shares(agent(0.6), n, 0.0, several, seed))


if __name__ == "__main__":
    main()
