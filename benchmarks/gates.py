"""How often a gate is wrong: two sets from one population, and how often it sees a drop.

    python benchmarks/gates.py check [--sets 10000] [--seed 0]
    python benchmarks/gates.py grid [--repeats 1000] [--seed 0]
    python benchmarks/gates.py costs [--repeats 1000] [--seed 0]

"check": shares of the verdicts. "grid": thousands of designs at the edge of a gate: rates near 0
and 1, few tasks, trials, tasks that break outright. Bounds are computed for all repeats at once, by
the formulas of `check`, which is held against them first; the worst designs are drawn again, ten
thousand times. "costs": the same of means of costs, beside the bounds by t alone; and what power
is left.
"""

import warnings
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from scipy.special import stdtrit

from shared import dispatch, show
from trajscore import TrajectoryArray
from trajscore.gates import Gate, RunSet, check
from trajscore.gates._change import (
    SKEWNESS_FACTOR,
    UNSEEN_COST,
    UNSEEN_RISE,
    excess,
    two_value_excess,
    unseen_chance,
)

LEVEL = 0.95
MANY = "1 to 8"  # trials a task, drawn for each
TASKS, TRIALS = (20, 30, 60, 200, 500), (1, 2, 8, MANY)
RATES = (0.02, 0.1, 0.5, 0.8, 0.9, 0.95, 0.98, 1.0)


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


def bounds(one: Design, sets: list[tuple]) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper bounds of the change, for each repeat."""
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


def wrong(one: Design, repeats: int, seed: int) -> dict[str, float]:
    """How often the gate whose edge is the truth passes, and fails."""
    rng = np.random.default_rng([seed, *map(ord, str(tuple(one)))])
    low, high = bounds(one, list(drawn(one, repeats, rng)))
    truth = (one.rate if one.kind == "one set" else 0) - one.drop
    return {"wrong pass": (low > truth + 1e-9).mean(), "wrong fail": (high < truth - 1e-9).mean()}


def show_worst(
    shares_of: Callable[..., dict[str, float]], designs: Iterator[tuple], args: Any, n_again: int
) -> None:
    """Print the largest share of each verdict by kind of design, of those drawn again."""
    rows: dict[str, dict[str, float]] = {}
    drawn_once: dict[str, list] = {}
    for name, one in designs:
        drawn_once.setdefault(name, []).append((one, shares_of(one, args.repeats, args.seed)))
    for name, of in drawn_once.items():
        rows[name] = {"designs": len(of)}
        for what in dict.fromkeys(what for _, shares in of for what in shares):
            worst = sorted(of, key=lambda pair, what=what: -pair[1].get(what, 0))[:n_again]
            again = (shares_of(one, 10 * args.repeats, args.seed + 1) for one, _ in worst)
            rows[name][what] = max(shares.get(what, 0) for shares in again)
    show("worst of designs", rows, 4)


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


def grid(args: Any) -> None:
    agree()
    show_worst(wrong, designs(), args, 12)


def agree() -> None:
    """Stop if the bounds of the grid are not those of `check`."""
    for kind, k in product(("one set", "paired", "not paired"), (1, 4, MANY)):
        one = Design(kind, "outright" if k == 1 else "differ", 30, k, 0.9, 0.05)
        sets = list(drawn(one, 1, np.random.default_rng(3)))
        runs = []
        for rates, sizes in sets:
            n = sizes[0].astype(int)
            names = np.repeat(np.arange(30), n) + 100 * len(runs) * (kind == "not paired")
            y = [np.arange(a) < round(a * b) for a, b in zip(n, rates[0], strict=True)]
            y = np.concatenate(y).astype(int)
            X = TrajectoryArray(np.full(len(y), 0.5), np.ones(len(y), dtype=int))
            runs.append(RunSet(X, y, tasks=[f"t{name}" for name in names]))
        gate = Gate(versus=0.5) if kind == "one set" else Gate()
        result = check(runs[-1], runs[0] if len(runs) > 1 else None, gate).gates[0]
        possible = np.clip(np.ravel(bounds(one, sets)), 0 if kind == "one set" else -1, 1)
        expected = possible - (0.5 if kind == "one set" else 0)
        np.testing.assert_allclose([result.low, result.high], expected, atol=1e-9)


def verdicts(args: Any) -> None:
    rows = {}
    for drop, margin in ((0.0, 0.0), (0.0, 0.05), (0.05, 0.0), (0.1, 0.0), (0.15, 0.0)):
        one = Design("paired", "differ", 40, 5, 0.6, drop)
        low, high = bounds(one, list(drawn(one, args.sets, np.random.default_rng(args.seed))))
        failed, passed = (high < -margin).mean(), (low >= -margin).mean()
        shares = {"fail": failed, "pass": passed, "undecided": 1 - failed - passed}
        rows[f"40 x 5, drop of {drop}, margin {margin}"] = shares
    show(f"{args.sets} pairs of sets; shares of verdicts", rows)


# name: kind and parameters; all have mean 1
LAWS = {
    "lognormal 0.5": ("lognormal", 0.5),
    "lognormal 1": ("lognormal", 1.0),
    "Pareto 2.5": ("Pareto", 2.5),
    "Pareto 3": ("Pareto", 3.0),
    **{f"two values, {p:.0%} at {c}": ("two", p, c, 0) for p in (0.05, 0.1, 0.3) for c in (5, 20)},
    **{f"about two values, {p:.0%} at 5": ("two", p, 5, 0.05) for p in (0.05, 0.1, 0.3)},
}
RISE = 1.1  # the margin of the gates is RISE - 1


class CostDesign(NamedTuple):
    """Sets of costs of tasks; those of the new set cost `times` as much as those of the base."""

    kind: str  # "one set", "paired" or "not paired"
    law: str
    n_base: int
    n_new: int
    n_trials: int = 1
    of_task: float = 0.0  # deviation of the logarithm of what a task costs
    times: float = RISE
    base_law: str = ""  # where it differs


def costs_of(law: str, size: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Draw costs with mean 1."""
    kind, *of = LAWS[law] if law in LAWS else ("two", *map(float, law.split()))
    if kind == "lognormal":
        return rng.lognormal(-(of[0] ** 2) / 2, of[0], size)
    if kind == "Pareto":
        return (1 + rng.pareto(of[0], size)) * (of[0] - 1) / of[0]
    p, far, near = of
    mean = 1 + p * (far - 1)
    return np.where(rng.random(size) < p, far, 1) / mean * rng.lognormal(-(near**2) / 2, near, size)


def drawn_costs(one: CostDesign, repeats: int, rng: np.random.Generator) -> list[np.ndarray]:
    sizes = [(repeats, n, one.n_trials) for n in (one.n_base, one.n_new)]
    tasks = [np.exp(one.of_task * rng.normal(size=size[:2]) - one.of_task**2 / 2) for size in sizes]
    if one.kind == "paired":
        tasks[1] = tasks[0]
    laws = one.base_law or one.law, one.law
    base, new = (
        task * costs_of(law, size, rng).mean(axis=2)
        for task, law, size in zip(tasks, laws, sizes, strict=True)
    )
    return [base, one.times * new]


def cost_bounds(
    kind: str, base: np.ndarray, new: np.ndarray, times: float, only_t: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper bounds of the new mean less so many times the base's, for each repeat."""
    base_mean, new_mean = times * base.mean(axis=1), new.mean(axis=1)
    changes = [new - times * base] if kind == "paired" else [new, -times * base]
    changes = [new] if kind == "one set" else changes
    sizes = [change.shape[1] for change in changes]
    errors = [
        (change - change.mean(axis=1, keepdims=True)) / np.sqrt(n * (n - 1))
        for change, n in zip(changes, sizes, strict=True)
    ]
    variances = np.array([(error**2).sum(axis=1) for error in errors])
    total = variances.sum(axis=0)
    varies = (variances > 1e-28).all(axis=0)
    chance = unseen_chance(np.array(sizes), LEVEL)
    with np.errstate(invalid="ignore", divide="ignore"):
        # Welch's, of both sets in their own units
        own = variances / np.array([1, times**2])[: len(sizes), None]
        freedom = own.sum(axis=0) ** 2 / (own**2 / (np.array(sizes) - 1)[:, None]).sum(axis=0)
        freedom = np.where(total > 0, freedom, 1)
        third = sum((error**3).sum(axis=1) for error in errors)
        skewness = SKEWNESS_FACTOR * np.sqrt(freedom + 1) * third / total**1.5
    value = sum(change.mean(axis=1) for change in changes)
    alone = stdtrit(np.array(sizes) - 1, LEVEL)[:, None] * np.sqrt(variances)
    unseen = {
        "one set": (chance[0] * new_mean, chance[0] * UNSEEN_COST * new_mean),
        "paired": (chance[0] * UNSEEN_RISE * base_mean, chance[0] * UNSEEN_RISE * new_mean),
        "not paired": tuple(
            np.hypot(
                np.maximum(chance[0] * a * new_mean, alone[0]),
                np.maximum(chance[-1] * b * base_mean, alone[-1]),
            )
            for a, b in ((1, UNSEEN_COST), (UNSEEN_COST, 1))
        ),
    }[kind]
    reaches = []
    for sign, rare in zip((-1, 1), unseen, strict=True):
        reach = stdtrit(freedom, LEVEL) * np.sqrt(total)
        if not only_t:
            skewed = two_value_excess(
                freedom + 1, (freedom + 1) * total, sign * np.where(varies, skewness, 0), LEVEL
            )
            reach = np.where(varies, np.maximum(np.maximum(reach, skewed), rare), np.inf)
        reaches.append(reach)
    return value - reaches[0], value + reaches[1]


def wrong_costs(one: CostDesign, repeats: int, seed: int) -> dict[str, float]:
    """How often a gate passes and fails wrongly, and passed by t alone."""
    rng = np.random.default_rng([seed, *map(ord, str(tuple(one)))])
    base, new = drawn_costs(one, repeats, rng)
    times, edge = (0.0, one.times) if one.kind == "one set" else (RISE, 0.0)
    low, high = cost_bounds(one.kind, base, new, times)
    by_t = cost_bounds(one.kind, base, new, times, only_t=True)[1]
    shares = {"by t": (by_t < edge - 1e-9).mean(), "wrong pass": (high < edge - 1e-9).mean()}
    return shares | ({"wrong fail": (low > edge + 1e-9).mean()} if one.times == RISE else {})


def cost_designs() -> Iterator[tuple[str, CostDesign]]:
    """Yield designs at the edge of a gate of costs, by what the table calls them."""
    for law, n in product(LAWS, (5, 8, 12, 20, 50, 100)):
        yield "one set", CostDesign("one set", law, n, n)
        yield "one set, 5 trials", CostDesign("one set", law, n, n, 5, 0.5)
        yield "paired", CostDesign("paired", law, n, n)
        yield "paired", CostDesign("paired", law, n, n, 1, 1.0)
        yield "paired, 5 trials", CostDesign("paired", law, n, n, 5, 0.5)
        yield "not paired", CostDesign("not paired", law, n, n)
        yield "not paired, 5 trials", CostDesign("not paired", law, n, n, 5, 0.5)
        yield "not paired, a base of 100", CostDesign("not paired", law, 100, n)
    for kind, n, near in product(("paired", "not paired"), (3, 5, 8, 12, 20, 50), (0, 0.05)):
        # a run in ten, then 23 in a hundred, cost 5.66 times as much as others: 47% more
        laws = [f"{p} 5.66 {near}" for p in (0.1, 0.23)]
        one = CostDesign(kind, laws[1], n, n, times=1.47, base_law=laws[0])
        yield f"{kind}, 47% more", one
        for p, far in ((0.1, 2.0), (0.05, 3.0)):  # only the new set has dear runs
            one = CostDesign(kind, f"{p} {far} {near}", n, n, base_law=f"0 1 {near}")
            yield f"{kind}, dear runs only in the new set", one


def costs(args: Any) -> None:
    agree_on_costs()
    show_worst(wrong_costs, cost_designs(), args, 6)
    show(f"{args.sets} pairs of sets: shares of verdicts, by t alone in brackets", power(args))


def power(args: Any) -> dict[str, dict]:
    """Shares of passes where nothing changed, and of fails where costs rise by half."""
    rows = {}
    kinds = {"not paired": (1, 0.0), "paired": (1, 0.5), "paired, 5 trials": (5, 0.5)}
    for (name, trials), sigma, n in product(kinds.items(), (0.5, 1), (20, 50, 100)):
        rng, row = np.random.default_rng(args.seed), {}
        kind = name.split(",")[0]
        for margin, times in ((0.1, 1.0), (0.25, 1.0), (0.0, 1.5)):
            one = CostDesign(kind, f"lognormal {sigma}", n, n, *trials, times)
            base, new = drawn_costs(one, args.sets, rng)
            cells = []
            for only_t in (False, True):
                low, high = cost_bounds(kind, base, new, 1 + margin, only_t)
                cells.append((low > 0).mean() if times > 1 else (high < 0).mean())
            what = "fail, half more" if times > 1 else f"pass, margin {margin:.0%}"
            row[what] = "{:.3f} ({:.3f})".format(*cells)
        rows[f"{name}, lognormal {sigma}, {n} tasks"] = row
    return rows


def agree_on_costs() -> None:
    """Stop if the bounds of costs are not those of `check`."""
    rng = np.random.default_rng(5)
    for kind in ("one set", "paired", "not paired"):
        base, new = drawn_costs(CostDesign(kind, "lognormal 1", 12, 12), 1, rng)
        n = np.arange(12)
        sets = [
            RunSet(None, np.ones(12), tasks=n + k, spent={"cost": cost[0]})
            for k, cost in ((0, base), (0 if kind == "paired" else 12, new))
        ]
        gate = Gate("cost", versus=1.0) if kind == "one set" else Gate("cost", margin="10%")
        result = check(sets[1], None if kind == "one set" else sets[0], gate).gates[0]
        times = 0.0 if kind == "one set" else RISE
        ends = np.ravel(cost_bounds(kind, base, new, times))
        value = (new.mean(axis=1) - times * base.mean(axis=1))[0]
        expected = ends - value + new.mean() - (1.0 if kind == "one set" else base.mean())
        np.testing.assert_allclose([result.low, result.high], expected, rtol=1e-9)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    commands = {"check": verdicts, "grid": grid, "costs": costs}
    dispatch(__doc__, commands, sets=10_000, repeats=1000, seed=0)
