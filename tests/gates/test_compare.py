"""Changes from one set of runs to another, against textbooks and slow formulas."""

import functools
import re
from bisect import bisect_left
from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import expit, logit
from scipy.stats import beta, norm, t

from judged import evaluate
from known_agent import runs_of
from trajscore import TrajectoryArray
from trajscore.gates import Gate, RunSet, check, compare

BASE, WORSE = runs_of(1), runs_of(2, 0.2)
ENDS = ["change", "change_low", "change_high"]


@functools.cache
def table_of(base, new, level):
    return compare(base, new, confidence_level=level).table


def row_of(base, new, metric="success", level=0.9):
    predictor = "judge" if metric[0].isupper() else ""
    return table_of(base, new, level).loc[(metric, predictor, "as_given" if predictor else "")]


def outcomes(n, n_failed, tasks=True, **options):
    """One run a task, of which the first few fail."""
    names = [f"t{k:03d}" for k in range(n)] if tasks else None
    return RunSet(None, np.arange(n) >= n_failed, tasks=names, **options)


def bound_of_two_values(variance, skewness, n, level):
    """How far a mean of two values with these moments may lie above what was seen."""
    p = brentq(lambda p: (1 - 2 * p) / np.sqrt(p * (1 - p)) - skewness, 1e-12, 1 - 1e-12)
    size = np.sqrt(variance / (p * (1 - p)))
    return size * (beta.ppf(level, n * p + 1, n * (1 - p)) - p)


def excess(losses, shares, level, more=1.0):
    """How far a mean of losses may lie above what was seen, by two values of the same moments."""
    weights = shares / shares.sum()
    n, n_units, mean = 1 / (weights**2).sum(), np.count_nonzero(shares), weights @ losses
    unseen = (1 - (1 - level) ** (1 / (more * n_units))) * (1 - mean)
    if np.ptp(losses[shares > 0]) < 1e-12:
        return unseen
    d = weights * (losses - mean)
    second, skewness = n * (d**2).sum(), n**2 * (d**3).sum() / (n * (d**2).sum()) ** 1.5
    return max(bound_of_two_values(second, skewness, more * n, level), unseen)


def skewed(errors, level, n, more=1.0):
    """How far a mean with these errors may lie above what was seen, by its tripled skewness."""
    error = np.sqrt((errors**2).sum())
    skewness = 3 * np.sqrt(n) * (errors**3).sum() / error**3
    return bound_of_two_values(n * error**2, skewness, more * n, level)


class Paired:
    """The change of a rate or mean from numbers of the same tasks."""

    def __init__(self, base, new, is_rate, times=1.0):
        self.d, self.n, self.is_rate = new - times * base, len(base), is_rate
        self.value, self.error = self.d.mean(), self.d.std(ddof=1) / np.sqrt(len(base))
        self.losses, self.scale = new - base, max(1.0, times)
        self.rises = 2 * times * base.mean(), 2 * new.mean()

    def reaches(self, level, more=1.0):
        reach = self.error * t.ppf(level, self.n * more - 1) / np.sqrt(more) if self.error else 0.0
        if not self.is_rate:
            errors = (self.d - self.value) / np.sqrt(self.n * (self.n - 1))
            chance = 1 - (1 - level) ** (1 / (self.n * more))
            return tuple(
                max(reach, chance * rise, skewed(sign * errors, level, self.n, more))
                for sign, rise in zip((-1, 1), self.rises, strict=True)
            )
        shares = np.ones(self.n)
        return tuple(
            max(reach, self.scale * excess((sign * self.losses).clip(0), shares, level, more))
            for sign in (-1, 1)
        )

    def ends(self, level):
        below, above = self.reaches(level)
        return self.value - below, self.value + above

    def tasks_needed(self, distance, level):
        side = int(distance < 0)

        def is_enough(k):
            more = k / self.n
            miss = norm.ppf(0.8) * self.error / np.sqrt(more)
            return self.reaches(level, more)[side] + miss <= abs(distance)

        return 2 + bisect_left(range(2, 5000), 1, key=is_enough)


def of_tasks(runs, values, k=None):
    groups = [values[runs.tasks == one] for one in np.unique(runs.tasks)]
    if k is None:
        return np.array([group.mean() for group in groups])
    return np.array([np.mean([min(one) for one in combinations(group, k)]) for group in groups])


@pytest.mark.parametrize(("n_tasks", "drop"), [(40, 0.0), (12, 0.3), (100, 0.1)])
def test_paired_changes_are_those_of_the_slow_formulas(n_tasks, drop):
    base, new = runs_of(1, n_tasks=n_tasks), runs_of(2, drop, n_tasks=n_tasks)
    for metric, is_rate in [("success", True), ("pass^2", True), ("pass^5", True),
                            ("length", False), ("cost", False)]:  # fmt: skip
        k = int(metric[-1]) if metric.startswith("pass") else None
        of = {"length": lambda one: one.lengths, "cost": lambda one: one.spent["cost"]}
        of_runs = of.get(metric, lambda one: one.labels)
        numbers = [of_tasks(one, of_runs(one), k) for one in (base, new)]
        slow, row = Paired(*numbers, is_rate), row_of(base, new, metric)
        assert row[["base", "new"]].tolist() == pytest.approx([one.mean() for one in numbers])
        expected = [slow.value, *slow.ends(0.95)]
        assert row[ENDS].tolist() == pytest.approx(expected, rel=1e-6), metric
        if row["change_low"] <= 0 <= row["change_high"] and np.isfinite(row["runs_needed"]):
            tasks = slow.tasks_needed(slow.value, 0.95)
            assert row["runs_needed"] == pytest.approx(5 * tasks), metric


def test_tasks_count_the_same_however_many_runs_they_have():
    # the base has tried the first task, at which all runs fail, twenty times
    X = TrajectoryArray(np.full(28, 0.5), np.ones(28, dtype=int))
    base = RunSet(X, [0] * 20 + [1] * 8, tasks=["a"] * 20 + list("bbccddee"))
    new = RunSet(X[:10], [0, 0] + [1] * 8, tasks=list("aabbccddee"))
    assert row_of(base, new)[["base", "new", "change"]].tolist() == pytest.approx([0.8, 0.8, 0])


@pytest.mark.parametrize("metric", ["success", "cost", "AUROC"])
def test_weights_are_those_of_runs_counted_so_often(metric):
    """The change as runs of a task are repeated until all tasks have as many."""
    base, new = runs_of(1, n_tasks=12, n_trials=2), runs_of(2, n_tasks=12, n_trials=2)
    X = new.traces["judge"]

    def some(rows):
        cells = TrajectoryArray.from_list([X[k] for k in rows], channels=("judge",))
        spent = {"cost": new.spent["cost"][rows]}
        return RunSet(cells, new.labels[rows], tasks=new.tasks[rows], spent=spent)

    rest = np.arange(2, 24)
    found, wanted = (row_of(base, some(np.r_[rows, rest]), metric) for rows in ([0], [0, 0]))
    for name in ["new", *ENDS]:
        assert found[name] == pytest.approx(wanted[name])


def test_new_and_removed_tasks_are_counted_and_left_out():
    base, new = runs_of(1, n_tasks=10), runs_of(2, n_tasks=12)
    rows = np.flatnonzero(new.tasks != "task 3")
    new = RunSet(new.traces["judge"][rows], new.labels[rows], tasks=new.tasks[rows])
    found = compare(base, new)
    assert "task: 9 in both, 2 only in the new set, 1 only in the base" in str(found)
    both = np.isin(base.tasks, new.tasks)
    assert found.table.loc[("success", "", ""), "base"] == pytest.approx(base.labels[both].mean())


def test_sets_are_paired_by_two_common_tasks_or_all_ids():
    X = TrajectoryArray.from_list([[0.5]] * 6, ids=list("fedcba"))
    one, y = RunSet(X, [1, 0, 1, 1, 0, 1]), [1, 0, 0, 1, 0, 1]
    base = RunSet(None, [1, 0, 1], tasks=["a", "b", "c"])
    plain = RunSet([[0.5]] * 6, y)
    for left, right, how in [
        (RunSet(None, [1] * 5, tasks=list("abdef")), RunSet(None, y, tasks=list("abghij")), "Few "),
        (base, RunSet(None, [1, 0, 0, 1], tasks=["b", "c", "d", "e"]), "by task: 2 in both, 2 "),
        (one, RunSet(X[::-1], y), "by run: 6 in both, 0 only in the new set, 0 only"),
        (base, RunSet(None, [1, 0], tasks=["c", "d"]), "Not paired"), (plain, plain, "Not paired"),
        (one, RunSet(X[:5], y[:5]), "Not paired"),
    ]:  # fmt: skip
        assert how in str(compare(left, right))
    first = str(compare(base, RunSet(None, [1, 0], tasks=["c", "d"]))).splitlines()[0]
    assert re.match("Not paired: .* fewer than two tasks in common.*'a'.*'c'.*--group", first)
    assert "--group" in str(compare(plain, RunSet([[0.5]] * 2, [1, 0]))).splitlines()[0]


def apart(new, base, level=0.95):
    """Ends of the change of a rate between two independent sets of units."""
    parts = [one.var(ddof=1) / len(one) for one in (new, base)]
    freedom = sum(parts) ** 2 / (parts[0] ** 2 / (len(new) - 1) + parts[1] ** 2 / (len(base) - 1))
    reach = t.ppf(level, freedom) * np.sqrt(sum(parts))
    shares = np.ones(len(new)), np.ones(len(base))
    lost = excess(1 - new, shares[0], level), excess(base, shares[1], level)
    gained = excess(new, shares[0], level), excess(1 - base, shares[1], level)
    value = new.mean() - base.mean()
    return [value - max(reach, np.hypot(*lost)), value + max(reach, np.hypot(*gained))]


def test_without_pairs_the_interval_is_welchs():
    base, new = runs_of(1, tasks=False), runs_of(2, 0.2, n_trials=3, tasks=False)
    found = row_of(base, new, level=0.9)
    assert found[ENDS[1:]].tolist() == pytest.approx(apart(new.labels, base.labels))
    # of a cost with 5 means above the mean unseen, each of the other set at least 0
    costs = [np.random.default_rng(n).lognormal(0, 0.2, n) for n in (300, 40)]
    first, then = (RunSet(None, np.ones(len(c)), spent={"cost": c}) for c in costs)
    found, (of_base, of_new) = row_of(first, then, "cost"), costs
    chance = 1 - 0.05 ** (1 / 300), 1 - 0.05 ** (1 / 40)
    seen = t.ppf(0.95, 299) * of_base.std(ddof=1) / np.sqrt(300)
    unseen = np.hypot(max(chance[0] * of_base.mean(), seen), 4 * chance[1] * of_new.mean())
    assert found["change_high"] - found["change"] == pytest.approx(unseen)
    # tasks that no other set has are clusters
    base, new = runs_of(1, n_tasks=20), runs_of(2, 0.1, n_tasks=20)
    other = RunSet(new.traces["judge"], new.labels, tasks=[f"x{one}" for one in new.tasks])
    expected = apart(of_tasks(new, new.labels), of_tasks(base, base.labels))
    assert row_of(base, other)[ENDS[1:]].tolist() == pytest.approx(expected)
    base, new = outcomes(60, 59, tasks=False), outcomes(40, 2, tasks=False)  # both may have lost
    expected = apart(new.labels, base.labels)
    assert row_of(base, new)[ENDS[1:]].tolist() == pytest.approx(expected)
    still = row_of(outcomes(60, 0, tasks=False), outcomes(40, 0, tasks=False))
    expected = [0.05 ** (1 / 40) - 1, 1 - 0.05 ** (1 / 60)]
    assert still[ENDS[1:]].tolist() == pytest.approx(expected)


def test_tasks_of_unequal_size_that_do_not_settle_it_need_more_runs():
    sizes, is_success = [30, 30, *[1] * 38], np.random.default_rng(0).random((2, 98)) < 0.5
    tasks = np.repeat(np.arange(40), sizes)
    base, new = (RunSet(None, y, tasks=tasks + 40 * k) for k, y in enumerate(is_success))
    row = row_of(base, new)
    assert row["change_low"] < 0 < row["change_high"]
    assert row["runs_needed"] > 98


@pytest.mark.parametrize("n_failed", [0, 1, 2, 7, 30, 57, 60])
def test_bounds_of_a_rate_are_no_narrower_than_cloppers_and_pearsons(n_failed):
    one = check(outcomes(60, n_failed), rules=Gate(versus=0.5)).gates[0]
    rate = 1 - n_failed / 60
    exact = (
        beta.ppf(0.05, 60 - n_failed, n_failed + 1) if n_failed < 60 else 0,
        beta.ppf(0.95, 61 - n_failed, n_failed) if n_failed else 1,
    )
    reach = t.ppf(0.95, 59) * np.sqrt(rate * (1 - rate) / 59)
    assert 0.5 + one.low == pytest.approx(max(0, min(rate - reach, exact[0])))
    assert 0.5 + one.high == pytest.approx(min(1, max(rate + reach, exact[1])))


def test_each_set_has_an_interval_of_its_own_within_its_range():
    found = row_of(BASE, RunSet(None, np.ones(200), tasks=BASE.tasks), level=0.95)
    rates = of_tasks(BASE, BASE.labels)
    reach, ones = t.ppf(0.975, 39) * rates.std(ddof=1) / np.sqrt(40), np.ones(40)
    below, above = (max(reach, excess(one, ones, 0.975)) for one in (1 - rates, rates))
    ends = rates.mean() - below, rates.mean() + above
    assert found[["base_low", "base_high"]].tolist() == pytest.approx(ends)
    assert found[["new_low", "new_high"]].tolist() == pytest.approx([0.025 ** (1 / 40), 1])
    few, more = (RunSet(None, [1, 0, 1], tasks=list(names)) for names in ("aaa", "bcd"))
    base, new = RunSet([[0.5]] * 3, [1, 1, 0]), RunSet([[0.5]] * 2, [1, 0])
    for pair in ((base, new), (few, more), (more, few)):  # one task of either set bounds nothing
        assert row_of(*pair)[ENDS[1:]].tolist() == [-1, 1]


def test_pass_k_needs_k_runs_of_a_task():
    runs = RunSet(None, [1, 1, 1, 0, 1], tasks=list("aabbc"))
    one = check(runs, rules=Gate("pass^2", versus=0.5)).gates[0]
    assert one.value == 0.5  # of two tasks
    for new, metric, problem in [
        (RunSet(None, [0.5, 1, 0, 1], tasks=list("aabb")), "pass^2", "graded"),
        (runs, "pass^3", "no task has 3 runs; the most is 2"),
        (RunSet(None, [1, 0]), "pass^2", "needs the task"),
    ]:  # fmt: skip
        (result,) = check(new, rules=Gate(metric, versus=0.5)).gates
        assert result.verdict == "unusable"
        assert problem in result.why


def test_pass_k_of_a_public_log_is_as_published(public_file):
    runs = RunSet.read(public_file("tau_bench", "gpt-4o-airline.json"))
    table = compare(runs, runs).table["base"].droplevel(["predictor", "form"])
    found = [round(table[name], 3) for name in ("success", "pass^2", "pass^3", "pass^4")]
    assert found == [0.42, 0.273, 0.22, 0.2]


def test_numbers_of_forecasts_are_those_of_a_report_and_changes_turn_round():
    report = evaluate(BASE.traces["judge"], BASE.labels, groups=BASE.tasks, intervals="influence")
    table = compare(BASE, WORSE, confidence_level=0.95).table
    for form in ("as_given", "recalibrated"):
        score = report.intervals.loc[("judge", form, "TPS log")]
        found = table.loc[("TPS log margin", "judge", form)]
        assert found["base"] == pytest.approx(score["margin"])
        assert found["base_low"] == pytest.approx(score["margin_low"], rel=1e-6)
        error = report.intervals.loc[("judge", form, "S-ECE"), ["value", "low", "high"]]
        found = table.loc[("S-ECE", "judge", form), ["base", "base_low", "base_high"]]
        assert found.tolist() == pytest.approx(error.tolist(), rel=1e-6)
    ranks = report.intervals.loc[("judge", "as_given", "AUROC"), "value"]
    assert table.loc[("AUROC", "judge", "as_given"), "base"] == pytest.approx(ranks)
    there, back = row_of(BASE, WORSE, "S-ECE"), row_of(WORSE, BASE, "S-ECE")
    assert there["change"] == pytest.approx(-back["change"])
    turned = [-back["change_high"], -back["change_low"]]
    assert there[ENDS[1:]].tolist() == pytest.approx(turned, abs=0.005)  # by drawing
    assert np.isnan(check(runs_of(3), BASE, Gate("S-ECE")).gates[0].runs_needed)


def test_equal_costs_bound_nothing():
    same = RunSet(None, BASE.labels, tasks=BASE.tasks, spent={"cost": np.full(200, 0.02)})
    assert row_of(same, same, "cost")[ENDS].tolist() == [0, -np.inf, np.inf]
    cost = BASE.spent["cost"] * (1 + 1e-14)  # what rounding changes is no change
    again = RunSet(None, BASE.labels, tasks=BASE.tasks, spent={"cost": cost})
    first = RunSet(None, BASE.labels, tasks=BASE.tasks, spent=BASE.spent)
    assert not any("cost" in one for one in compare(first, again).changes())


def test_numbers_count_where_they_are_known():
    tasks, y = list("aabbccdd"), [1, 0] * 4
    left, right, some = (
        RunSet(None, y, tasks=tasks, spent={"cost": np.where(known, np.arange(8.0), np.nan)})
        for known in (np.arange(8) < 4, np.arange(8) >= 4, np.arange(8) % 3 > 0)
    )
    (note,) = compare(left, right).notes
    assert "cost" in note
    assert "no task of both sets" in note
    (result,) = check(right, left, Gate("cost")).gates
    assert result.verdict == "unusable"
    row = row_of(some, left, "cost")  # of the tasks a, 1 against 0.5, and b, 2 against 2.5
    assert row[["base", "new"]].tolist() == [1.5, 1.5]
    nothing = RunSet(None, y, tasks=tasks, spent={"cost": [np.nan] * 8})
    assert "no run" in check(nothing, rules=Gate("cost", versus=1.0)).gates[0].why


def test_rows_are_what_both_sets_have():
    tasks, y = np.repeat(np.arange(6), 4), np.tile([1, 0, 1], 8)
    spent = {"cost": np.ones(24), "tokens": np.ones(24)}
    full = RunSet({"a": np.linspace(0.1, 0.9, 24)[:, None]}, y, tasks=tasks, spent=spent)
    other = RunSet({"b": np.full((12, 2), 0.5)}, y[:12], tasks=np.repeat(np.arange(6), 2),
                   spent={"tokens": np.ones(12)})  # fmt: skip
    alone = RunSet(None, [0, 1] * 5, tasks=list("abcdefghij"))
    many = RunSet(None, np.tile([1, 0, 1], 10), tasks=np.repeat(np.arange(3), 10))
    half = RunSet(None, [0, 1, 1, 0], tasks=list("aabc"))
    passes = [f"pass^{k}" for k in range(2, 9)]
    forecasts = ["TPS log margin", "S-ECE"] * 2 + ["AUROC"]
    for base, new, metrics in [
        (full, full, ["success", *passes[:3], "cost", "tokens", *forecasts]),
        (full, other, ["success", "pass^2", "length", "tokens"]),
        (alone, alone, ["success"]),
        (many, many, ["success", *passes]),
        (half, half, ["success"]),
    ]:
        assert list(compare(base, new).table.index.get_level_values("metric")) == metrics
    same = RunSet(
        {"a": np.linspace(0, 1, 8)[:, None]}, np.ones(8, dtype=int), tasks=np.arange(8) // 2
    )
    (note,) = compare(same, same).notes
    assert "same outcome" in note
    text = str(compare(RunSet({"a": [[0.5]] * 3, "c": [[0.4]] * 3}, [1, 0, 1]),
                       RunSet({"b": [[0.5]] * 3}, [1, 0, 1])))  # fmt: skip
    assert "2 predictors only in the base, not compared: 'a', 'c'" in text
    assert "1 predictor only in the new set, not compared: 'b'" in text


def judged_runs(seed, rate, knows_rate=False, noise=0.0):
    """Runs, and a judge with the same evidence at any rate, calibrated at .4 or at that rate."""
    rng = np.random.default_rng(seed)
    y = rng.random(800) < rate
    log_odds = logit(rate if knows_rate else 0.4) + (y - 0.5) + rng.normal(size=800)
    return RunSet({"judge": expit(log_odds + rng.normal(0, noise, 800))[:, None]}, y)


@pytest.mark.parametrize("knows_rate", [False, True])
def test_an_unchanged_judge_is_not_accused_where_success_rose(knows_rate):
    new = [judged_runs(seed + 99, 0.8, knows_rate, noise=2 * (seed == 8)) for seed in range(9)]
    results = [compare(judged_runs(seed, 0.4), runs) for seed, runs in enumerate(new)]
    *n_worse, n_noisier = (str(result).count(": worse.") for result in results)
    assert sum(n_worse) <= 5  # of 40 numbers
    assert n_noisier >= 3
    assert ("TPS log margin", "judge", "as_given") in results[0].confounded
    assert "come from the success rate alone" in str(results[0])


def test_changes_in_words():
    found = compare(BASE, WORSE)
    said, open_ = "\n".join(found.changes()).split("No change shown:")
    assert "success fell from" in said
    assert said.count(": worse.") == (found.table["change_high"] < 0).sum() or "cost" in said
    assert "more runs in each set would settle it" in open_
    back = compare(WORSE, BASE).changes()
    assert any(one.startswith("success rose") and one.endswith(": better.") for one in back)
    assert any(one.startswith("cost fell") and one.endswith(": better.") for one in back)
    assert any(one.startswith("cost rose") and one.endswith(": worse.") for one in found.changes())
    assert re.search("90%.*95%", str(found))
    for level in (1, 90):
        with pytest.raises(ValueError, match="confidence_level"):
            compare(BASE, WORSE, confidence_level=level)
    with pytest.raises(ValueError, match="base .*RunSet.* list"):
        compare([1], BASE)
