"""How often a gate is wrong: two sets from one population, and how often it sees a drop.

    python benchmarks/gates.py check [--sets 10000] [--seed 0]
    python benchmarks/gates.py grid [--repeats 1000] [--seed 0]

"check": shares of the verdicts. "grid": thousands of designs at the edge of a gate: rates near 0
and 1, few tasks, trials, tasks that break outright. Bounds are computed for all repeats at once, by
the formulas of `check`, which is held against them first; the worst designs are drawn again, ten
thousand times.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from scipy.special import stdtrit

from shared import dispatch, show
from trajscore import TrajectoryArray
from trajscore.gates import Gate, RunSet, check
from trajscore.gates._change import excess

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


def wrong(one: Design, repeats: int, seed: int) -> tuple[float, float]:
    """How often the gate whose edge is the truth passes, and fails."""
    rng = np.random.default_rng([seed, *map(ord, str(tuple(one)))])
    low, high = bounds(one, list(drawn(one, repeats, rng)))
    truth = (one.rate if one.kind == "one set" else 0) - one.drop
    return float((low > truth + 1e-9).mean()), float((high < truth - 1e-9).mean())


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
    """Print the worst wrong passes and fails of each kind of design."""
    agree()
    repeats, seed, first = args.repeats, args.seed, {}
    for name, one in designs():
        few = repeats if one.n_tasks < 500 else max(repeats // 2, 1)
        first.setdefault(name, []).append((one, wrong(one, few, seed)))
    rows = {}
    for name, drawn_once in first.items():
        rows[name] = {"designs": len(drawn_once)}
        for k, what in enumerate(("wrong pass", "wrong fail")):
            drawn_once.sort(key=lambda row, k=k: -row[1][k])
            again = [(wrong(one, 10 * repeats, seed + 1)[k], one) for one, _ in drawn_once[:12]]
            value, one = max(again, key=lambda row: row[0])
            rows[name] |= {what: value, f"{what}, of": ", ".join(map(str, one[1:]))}
    show("worst of designs", rows, 4)


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
    """Print the shares of the verdicts."""
    rows = {}
    for drop, margin in ((0.0, 0.0), (0.0, 0.05), (0.05, 0.0), (0.1, 0.0), (0.15, 0.0)):
        one = Design("paired", "differ", 40, 5, 0.6, drop)
        low, high = bounds(one, list(drawn(one, args.sets, np.random.default_rng(args.seed))))
        failed, passed = (high < -margin).mean(), (low >= -margin).mean()
        shares = {"fail": failed, "pass": passed, "undecided": 1 - failed - passed}
        rows[f"40 x 5, drop of {drop}, margin {margin}"] = shares
    show(f"{args.sets} pairs of sets; shares of verdicts", rows)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    dispatch(__doc__, {"check": verdicts, "grid": grid}, sets=10_000, repeats=1000, seed=0)
