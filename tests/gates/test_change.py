"""Estimates, pairs and bounds against what textbooks and brute force say."""

from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import beta, binom, t, ttest_ind, ttest_rel

from known_agent import runs_of
from trajscore import TrajectoryArray, evaluate
from trajscore.core.statistics import MeanOfRuns
from trajscore.gates import Gate, RunSet, check, compare
from trajscore.gates._change import (
    Estimate,
    _shares,
    _welch,
    difference,
    estimate,
    excess,
    level_of_each,
    match,
    paired_estimates,
    runs_to_settle,
)
from trajscore.gates._measures import Key, Measures
from trajscore.inference import runs_needed

BASE, WORSE = runs_of(1), runs_of(2, 0.2)


def by_task(runs):
    return np.array([runs.labels[runs.tasks == one].mean() for one in np.unique(runs.tasks)])


def change(base, new, key):
    matched = match(base, new)
    one, other = paired_estimates(Measures(base)[key], Measures(new)[key], matched)
    return difference(other, one, matched)


def test_with_tasks_in_both_the_interval_is_that_of_a_paired_t_test():
    base, new = runs_of(1, n_tasks=100), runs_of(2, 0.1, n_tasks=100)
    found = compare(base, new, confidence_level=0.95).table.loc[("success", "", "")]
    wanted = ttest_rel(by_task(new), by_task(base))
    low, high = wanted.confidence_interval(0.95)
    assert found["change"] == pytest.approx(new.labels.mean() - base.labels.mean())
    assert [found["change_low"], found["change_high"]] == pytest.approx([low, high])


def test_each_set_has_an_interval_of_its_own_within_its_range():
    base, new = BASE, RunSet(None, np.ones(200), tasks=BASE.tasks)
    found = compare(base, new, confidence_level=0.95).table.loc[("success", "", "")]
    codes = np.unique(BASE.tasks, return_inverse=True)[1]
    low, high = estimate(Measures(base)[Key("success")], codes, 40).bounds(0.975)
    assert 0 < low < found["base"] < high < 1
    assert (found["base_low"], found["base_high"]) == pytest.approx((low, high))
    assert 0.8 < found["new_low"] < found["new_high"] == 1


def test_no_interval_leaves_the_range_of_its_metric():
    base, new = RunSet([[0.5]] * 3, [1, 1, 0]), RunSet([[0.5]] * 2, [1, 0])
    for key, row in compare(base, new).table.iterrows():
        spans = [(row[f"{name}_low"], row[f"{name}_high"]) for name in ("base", "new", "change")]
        if key[0] in ("success", "AUROC"):
            assert all(-1 <= low <= high <= 1 for low, high in spans)
            assert all(low >= 0 for low, _ in spans[:2])
    row = compare(base, new).table.loc[("success", "", "")]
    assert (row["change_low"], row["change_high"]) == (-1, 1)
    for versus, ends in (("baseline", (-1, 1)), (0.25, (-0.25, 0.75))):
        gate = check(new, base, Gate(versus=versus)).gates[0]
        assert (gate.low, gate.high) == ends


def test_predictors_of_one_set_are_named():
    traces = {name: [[0.5], [0.4], [0.3]] for name in ("a", "b", "c")}
    base = RunSet(traces, [1, 0, 1])
    new = RunSet({"b": traces["b"], "d": traces["a"]}, [1, 0, 1])
    text = str(compare(base, new))
    assert "2 predictors only in the base, not compared: 'a', 'c'." in text
    assert "1 predictor only in the new set, not compared: 'd'." in text
    assert "only in" not in str(compare(base, base))


def test_without_tasks_the_interval_is_welchs():
    base, new = runs_of(1, tasks=False), runs_of(2, 0.2, n_trials=3, tasks=False)
    found = compare(base, new)
    assert found.matched.by == ""
    row = found.table.loc[("success", "", "")]
    one = change(base, new, Key("success"))
    wanted = ttest_ind(new.labels, base.labels, equal_var=False)
    assert 2 * t.sf(abs(one.value) / one.std_error, one.freedom) == pytest.approx(wanted.pvalue)
    assert (row["change_low"], row["change_high"]) == pytest.approx(one.bounds(0.95))


def test_tasks_count_the_same_however_many_runs_they_have():
    # the base has tried the first task, at which all runs fail, twenty times
    X = TrajectoryArray(np.full(28, 0.5), np.ones(28, dtype=int))
    base = RunSet(X, [0] * 20 + [1] * 8, tasks=["a"] * 20 + list("bbccddee"))
    new = RunSet(X[:10], [0, 0] + [1] * 8, tasks=list("aabbccddee"))
    row = compare(base, new).table.loc[("success", "", "")]
    assert [row["base"], row["new"], row["change"]] == pytest.approx([0.8, 0.8, 0])


def test_new_and_removed_tasks_are_counted_and_left_out():
    base, new = runs_of(1, n_tasks=10), runs_of(2, n_tasks=12)
    rows = np.flatnonzero(new.tasks != "task 3")
    X = new.judged.traces["judge"][rows]
    new = RunSet(X, new.labels[rows], tasks=new.tasks[rows])
    found = compare(base, new)
    assert (found.matched.n_common, found.matched.n_new, found.matched.n_gone) == (9, 2, 1)
    both = np.isin(base.tasks, new.tasks)
    assert found.table.loc[("success", "", ""), "base"] == pytest.approx(base.labels[both].mean())


def test_runs_are_paired_by_id_only_where_ids_agree_and_say_something():
    X = TrajectoryArray.from_list([[0.5]] * 6, ids=list("fedcba"))
    one = RunSet(X, [1, 0, 1, 1, 0, 1])
    assert match(one, RunSet(X[::-1], [1, 0, 0, 1, 0, 1])).by == "run"
    assert match(one, RunSet(X[:5], [1, 0, 0, 1, 0])).by == ""
    plain = RunSet([[0.5]] * 6, [1, 0, 1, 1, 0, 1])
    assert match(plain, plain).by == ""


def test_pass_k_is_the_share_of_sets_of_k_runs_that_all_succeed():
    for k in (2, 3):
        found = Measures(BASE)[Key(f"pass^{k}")]
        of_tasks = [
            np.mean([min(one) for one in combinations(BASE.labels[BASE.tasks == task], k)])
            for task in np.unique(BASE.tasks)
        ]
        codes = np.unique(BASE.tasks, return_inverse=True)[1]
        one = estimate(found, codes, 40)
        assert one.value == pytest.approx(np.mean(of_tasks))
        assert one.std_error == pytest.approx(np.std(of_tasks, ddof=1) / np.sqrt(40))


def test_tasks_with_too_few_runs_do_not_count_for_pass_k():
    runs = RunSet([[0.5]] * 5, [1, 1, 1, 0, 1], tasks=list("aabbc"))
    codes = np.unique(runs.tasks, return_inverse=True)[1]
    one = estimate(Measures(runs)[Key("pass^2")], codes, 3)
    assert (one.value, one.n_units) == (0.5, 2)
    with pytest.raises(ValueError, match=r"pass\^3: no task has 3 runs; the most is 2"):
        Measures(runs)[Key("pass^3")]
    with pytest.raises(ValueError, match=r"pass\^2 needs the task of each run"):
        Measures(RunSet([[0.5]] * 5, [1, 1, 1, 0, 1]))[Key("pass^2")]


@pytest.mark.parametrize("form", ["as_given", "recalibrated"])
@pytest.mark.parametrize("metric", ["TPS log", "TPS brier", "S-ECE", "AUROC", "T-Brier"])
def test_values_of_one_set_are_those_of_a_report(metric, form):
    X = BASE.judged.traces["judge"]
    report = evaluate(X, BASE.labels, groups=BASE.tasks, intervals="influence")
    row = report.intervals.loc[("judge", form, metric)]
    codes = np.unique(BASE.tasks, return_inverse=True)[1]
    one = estimate(Measures(BASE)[Key(metric, "judge", form)], codes, 40)
    assert one.value == pytest.approx(row["value"])
    if metric != "AUROC":  # on the logit scale there
        assert one.bounds(0.975) == pytest.approx((row["low"], row["high"]), rel=1e-6)
    margin = Key(f"{metric} margin", "judge", form)
    if metric in ("TPS log", "TPS brier", "T-Brier"):
        above = estimate(Measures(BASE)[margin], codes, 40)
        assert above.value == pytest.approx(row["margin"])
        assert above.bounds(0.975)[0] == pytest.approx(row["margin_low"], rel=1e-6)


def test_where_nothing_differs_a_rate_still_has_bounds():
    everywhere = RunSet([[0.5]] * 40, [1] * 40, tasks=[f"t{k}" for k in range(40)])
    one = change(everywhere, everywhere, Key("success"))
    low, high = one.bounds(0.95)
    assert (low, high) == pytest.approx((-(1 - 0.05 ** (1 / 40)), 1 - 0.05 ** (1 / 40)))


def test_one_task_bounds_nothing():
    one = estimate(Measures(BASE)[Key("success")], np.zeros(200, dtype=int), 1)
    assert one.bounds(0.95) == (-np.inf, np.inf)


def an_estimate(errors):
    return Estimate(0.0, errors, 99.0, len(errors))


def test_bounds_hold_at_once_by_the_joint_distribution(rng):
    x = rng.normal(size=200)
    one, other = an_estimate(x), an_estimate(rng.normal(size=200))
    assert level_of_each([one], 0.95) == [0.95]
    assert level_of_each([one, one], 0.95) == pytest.approx([0.95] * 2, abs=0.004)
    apart = 0.95 ** (1 / 2)
    assert level_of_each([one, other], 0.95) == pytest.approx([apart] * 2, abs=0.004)
    # where one is high when the other is low, either exceeds with the sum of the chances
    assert level_of_each([one, an_estimate(-x)], 0.95) == pytest.approx([0.975] * 2, abs=0.003)
    assert level_of_each([], 0.95) == []


def test_gates_that_are_not_normal_take_their_share_of_the_error(rng):
    one, other = an_estimate(rng.normal(size=4000)), an_estimate(rng.normal(size=4000))
    still = an_estimate(np.zeros(4000))
    levels = level_of_each([one, still, other], 0.8)
    assert levels[1] == pytest.approx(1 - 0.2 / 3)
    assert [levels[0], levels[2]] == pytest.approx([(1 - 0.4 / 3) ** (1 / 2)] * 2, abs=0.008)
    alike = level_of_each([one, still, one], 0.8)
    assert [alike[0], alike[2]] == pytest.approx([1 - 0.4 / 3] * 2, abs=0.008)
    assert level_of_each([still, one], 0.8) == pytest.approx([0.9, 0.9])


def test_sets_are_paired_by_two_common_tasks_and_not_by_one():
    base = RunSet(None, [1, 0, 1], tasks=["a", "b", "c"])
    two = match(base, RunSet(None, [1, 0, 0, 1], tasks=["b", "c", "d", "e"]))
    assert (two.by, two.n_common, two.n_new, two.n_gone) == ("task", 2, 2, 1)
    one = match(base, RunSet(None, [1, 0], tasks=["c", "d"]))
    assert (one.by, one.n_common, one.n_new, one.n_gone) == ("", 0, 1, 2)
    assert one.n_units == 8
    assert not set(one.base) & set(one.new)


def test_one_task_of_either_set_bounds_nothing():
    few = RunSet(None, [1, 0, 1], tasks=["a"] * 3)
    more = RunSet(None, [1, 0, 1], tasks=["b", "c", "d"])
    for one in (change(few, more, Key("success")), change(more, few, Key("success"))):
        assert one.bounds(0.95) == (-np.inf, np.inf)
        assert np.isnan(runs_to_settle(one, 0.1, 3, 0.95))
    two = change(RunSet(None, [1, 1, 0], tasks=["e", "f", "f"]), more, Key("success"))
    assert np.isfinite(two.bounds(0.95)).all()


def test_a_change_of_a_calibration_error_is_the_change_back_turned_round():
    key = Key("S-ECE", "judge", "as_given")
    there, back = change(BASE, WORSE, key), change(WORSE, BASE, key)
    low, high = back.bounds(0.95)
    assert there.value == pytest.approx(-back.value)
    assert there.bounds(0.95) == pytest.approx((-high, -low), abs=0.005)  # by drawing


def test_more_units_have_more_degrees_of_freedom():
    one = Estimate(0.0, np.full(10, 0.1), 9.0, 10)
    for more in (1, 4):
        reach = t.ppf(0.95, 10 * more - 1) * one.std_error / np.sqrt(more)
        assert one.reaches(0.95, more) == pytest.approx((reach, reach))


def test_runs_to_settle_are_those_of_the_sample_size():
    one = change(BASE, WORSE, Key("success"))
    sd = np.std(by_task(WORSE) - by_task(BASE), ddof=1)
    tasks = runs_needed(0.05, sd=sd, alpha=0.1)
    assert runs_to_settle(one, 0.05, 200, 0.95) == pytest.approx(5 * tasks, rel=0.03)
    assert runs_to_settle(one, 1e-9, 200, 0.95) == np.inf
    assert np.isnan(runs_to_settle(an_estimate(np.zeros(9)), 0.1, 9, 0.95))


def test_bounds_of_one_side_are_those_of_t_where_no_rate_is_near_0_or_1():
    base, new = runs_of(1, n_tasks=100), runs_of(2, n_tasks=100)
    one = change(base, new, Key("success"))
    reach = t.ppf(0.95, 99) * one.std_error
    assert one.bounds(0.95) == pytest.approx((one.value - reach, one.value + reach))
    cost = change(base, new, Key("cost"))
    reach = t.ppf(0.95, 99) * cost.std_error
    assert cost.bounds(0.95) == pytest.approx((cost.value - reach, cost.value + reach))


def outcomes(n, n_failed, tasks=True, **options):
    """One run a task, of which the first few fail."""
    names = [f"t{k:03d}" for k in range(n)] if tasks else None
    return RunSet(None, np.arange(n) >= n_failed, tasks=names, **options)


@pytest.mark.parametrize("n_failed", [0, 1, 2, 7, 30, 57, 60])
def test_bounds_of_a_rate_are_no_narrower_than_cloppers_and_pearsons(n_failed):
    runs = outcomes(60, n_failed)
    one = estimate(Measures(runs)[Key("success")], np.arange(60), 60)
    low, high = one.bounds(0.95)
    exact = (
        beta.ppf(0.05, 60 - n_failed, n_failed + 1) if n_failed < 60 else 0,
        beta.ppf(0.95, 61 - n_failed, n_failed) if n_failed else 1,
    )
    reach = t.ppf(0.95, 59) * one.std_error
    assert low == pytest.approx(min(one.value - reach, exact[0]))
    assert high == pytest.approx(max(one.value + reach, exact[1]))


def wrong_passes(n, rate):
    """How often a rate is shown to lie above what it is: over all counts, exactly."""
    failed = np.arange(n + 1)
    measures = [Measures(outcomes(n, k))[Key("success")] for k in failed]
    lows = np.array([estimate(one, np.arange(n), n).bounds(0.95)[0] for one in measures])
    return binom.pmf(failed, n, 1 - rate)[lows > rate].sum()


@pytest.mark.parametrize(("n", "rate"), [(60, 0.9499), (30, 0.8999), (20, 0.98), (30, 0.4)])
def test_a_rate_near_1_is_no_more_often_thought_too_high_than_promised(n, rate):
    assert wrong_passes(n, rate) <= 0.05


def test_of_pairs_the_losses_alone_bound_what_may_be_lost():
    for n_failed in (0, 3):
        one = change(outcomes(60, 0), outcomes(60, n_failed), Key("success"))
        low, high = one.bounds(0.9)
        assert low == pytest.approx(-beta.ppf(0.9, n_failed + 1, 60 - n_failed))
        gained = max(1 - 0.1 ** (1 / 60), t.ppf(0.9, 59) * one.std_error)
        assert high == pytest.approx(one.value + gained)


def test_a_share_of_the_base_bounds_losses_as_large_as_the_base():
    new, base = (
        estimate(Measures(outcomes(60, k))[Key("success")], np.arange(60), 60) for k in (1, 0)
    )
    matched = match(outcomes(60, 0), outcomes(60, 1))
    reach = beta.ppf(0.95, 2, 59) - 1 / 60
    for times, scale in ((0.9, 1), (1.2, 1.2)):
        one = difference(new, base, matched, times)
        assert one.value - one.bounds(0.95)[0] == pytest.approx(scale * reach)


def test_of_two_sets_that_are_not_paired_both_may_have_lost():
    base, new = outcomes(60, 59, tasks=False), outcomes(40, 2, tasks=False)
    one = change(base, new, Key("success"))
    lost = 0.95 - beta.ppf(0.05, 38, 3), beta.ppf(0.95, 2, 59) - 1 / 60
    assert one.value - one.bounds(0.95)[0] == pytest.approx(np.hypot(*lost))
    gained = beta.ppf(0.95, 39, 2) - 0.95, 1 / 60 - beta.ppf(0.05, 1, 60)
    welch = t.ppf(0.95, one.freedom) * one.std_error
    assert one.bounds(0.95)[1] - one.value == pytest.approx(max(np.hypot(*gained), welch))
    times = difference(*(
        estimate(Measures(a)[Key("success")], codes, 100)
        for a, codes in ((new, 60 + np.arange(40)), (base, np.arange(60)))
    ), match(base, new), 1.5)  # fmt: skip
    assert times.value - times.bounds(0.95)[0] == pytest.approx(np.hypot(lost[0], 1.5 * lost[1]))


def test_losses_of_two_values_are_bounded_as_failures_of_that_size():
    losses = np.r_[np.full(15, 0.5), np.zeros(25)]
    for more in (1.0, 2.0):
        upper = beta.ppf(0.95, 15 * more + 1, 25 * more)
        wanted = 0.5 * (upper - 15 / 40)
        assert excess(losses, np.ones(40), 0.95, more) == pytest.approx(wanted)
    # a whole task may have broken, however little is lost in each
    small = np.r_[np.full(3, 0.01), np.zeros(37)]
    wanted = (1 - 0.05 ** (1 / 40)) * (1 - small.mean())
    assert excess(small, np.full(40, 1 / 40), 0.95) == pytest.approx(wanted)


def test_units_count_by_their_share_and_those_without_one_do_not(rng):
    losses, shares = rng.random(30), rng.integers(1, 9, 30).astype(float)
    one = excess(losses, shares, 0.95)
    padded = excess(np.r_[losses, 1, 1], np.r_[shares, 0, 0], 0.95)
    assert padded == pytest.approx(one)
    both = excess(np.stack([losses, losses]), np.stack([shares, 2 * shares]), 0.95)
    assert both == pytest.approx(np.stack([one, one]))
    alike = excess(np.zeros((2, 3)), np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 1.0]]), 0.95)
    assert alike == pytest.approx([1 - 0.05 ** (1 / 2), 1 - 0.05 ** (1 / 3)])
    # the two values have the mean, the variance and the skewness of what was seen
    rate = np.average(losses, weights=shares)
    n = shares.sum() ** 2 / (shares**2).sum()
    deviations = shares / shares.sum() * (losses - rate)
    skewness = (deviations**3).sum() * n**2 / ((deviations**2).sum() * n) ** 1.5
    p = brentq(lambda p: (1 - 2 * p) / np.sqrt(p * (1 - p)) - skewness, 1e-9, 1 - 1e-9)
    size = np.sqrt((deviations**2).sum() * n / (p * (1 - p)))
    assert one == pytest.approx(size * (beta.ppf(0.95, n * p + 1, n * (1 - p)) - p))


def test_the_rate_of_a_task_is_that_of_its_runs():
    y = [1, 1, 0, 0, 0, 1]
    runs = RunSet(None, y, tasks=list("aabbbc"))
    codes = np.unique(runs.tasks, return_inverse=True)[1]
    (part,) = estimate(Measures(runs)[Key("success")], codes, 4).parts
    assert part.gains == pytest.approx([1, 0, 1, 0])
    assert part.losses[:3] == pytest.approx([0, 1, 0])
    assert part.shares == pytest.approx([2 / 6, 3 / 6, 1 / 6, 0])
    (part,) = estimate(Measures(runs)[Key("pass^2")], codes, 4).parts
    assert part.gains[:2] == pytest.approx([1, 0])
    assert part.shares == pytest.approx([0.5, 0.5, 0, 0])


def test_runs_to_settle_are_those_whose_bounds_would_settle_it():
    runs = outcomes(60, 3)
    one = estimate(Measures(runs)[Key("success")], np.arange(60), 60)
    for distance, side in ((0.05, 0), (-0.03, 1)):
        n = runs_to_settle(one, distance, 60, 0.95)
        assert n == int(n)
        z = t.ppf(0.8, 1e9)
        lacking = [
            one.reaches(0.95, k / 60)[side] + z * one.std_error * np.sqrt(60 / k) - abs(distance)
            for k in (n - 1, n)
        ]
        assert lacking[0] > 0 >= lacking[1]
    failed = beta.ppf(0.95, 3 * 5 + 1, 57 * 5) - 0.05
    assert one.reaches(0.95, 5.0)[0] == pytest.approx(failed)
    assert runs_to_settle(one, 0.0, 60, 0.95) == np.inf
    assert runs_to_settle(one, 0.9, 60, 0.95) < 10


@pytest.mark.parametrize("kind", ["success", "cost", "AUROC"])
def test_weights_are_those_of_runs_counted_so_often(kind):
    """The change as runs of a task are repeated until all tasks have as many."""
    base, new = runs_of(1, n_tasks=12, n_trials=2), runs_of(2, n_tasks=12, n_trials=2)
    keep = np.r_[0, np.arange(2, 24)]  # one task has lost a run
    X, y, tasks = new.judged.traces["judge"], new.labels, new.tasks
    spent = {"cost": new.spent["cost"][keep]}
    fewer = RunSet(X[keep], y[keep], tasks=tasks[keep], spent=spent)
    twice = np.r_[0, 0, np.arange(2, 24)]
    again = TrajectoryArray.from_list([X[k] for k in twice], channels=("judge",))
    filled = RunSet(again, y[twice], tasks=tasks[twice], spent={"cost": new.spent["cost"][twice]})
    key = Key(kind, "judge", "as_given") if kind == "AUROC" else Key(kind)
    found, wanted = change(base, fewer, key), change(base, filled, key)
    assert found.value == pytest.approx(wanted.value)
    assert found.std_error == pytest.approx(wanted.std_error)


def test_weighted_influences_are_derivatives(rng):
    from trajscore.core import ranking
    from trajscore.core.statistics import CalibrationError, OfTies

    weight, rows = rng.random(20) + 0.5, np.arange(0, 20, 2)
    ties = ranking.TieGroups(rng.integers(0, 5, 10) / 4, np.arange(10) % 2.0)
    for one in (
        MeanOfRuns(rng.normal(size=10), rows),
        OfTies(ties, ranking.auroc, rows),
        OfTies(ties, ranking.aurc, rows),
        CalibrationError(rng.normal(size=(10, 3)), rng.random(10), rows),
    ):
        step = 1e-6 * np.eye(20) * weight
        slopes = (one(weight + step) - one(weight - step)) / 2e-6
        assert one.influence(20, weight) / 20 == pytest.approx(slopes, abs=1e-7)


def test_equal_numbers_have_an_interval_of_no_width():
    X = TrajectoryArray.from_list([[0.5]] * 40)
    y, tasks = np.arange(40) % 2, np.arange(40) % 13
    base, new = (RunSet(X, y, tasks=tasks, spent={"cost": np.full(40, c)}) for c in (0.02, 0.03))
    row = compare(base, new).table.loc[("cost", "", "")]
    assert row["change_low"] == row["change_high"] == row["change"] == pytest.approx(0.01)
    row = compare(base, base).table.loc[("cost", "", "")]
    assert row["change_low"] == row["change_high"] == row["change"] == 0


@pytest.mark.parametrize(
    ("errors", "freedoms", "expected"),
    [
        ((1, 2), (4, 9), 25 / (1 / 4 + 16 / 9)),
        ((3, 3), (7, 7), 14),
        ((0, 2), (4, 9), 9),
        ((1, 0), (4, 9), 4),
        ((0, 0), (4, 9), 4),
    ],
)
def test_welchs_degrees_of_freedom(errors, freedoms, expected):
    new, base = (
        Estimate(0.0, np.array([error]), freedom, 5)
        for error, freedom in zip(errors, freedoms, strict=True)
    )
    assert _welch(new, base) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("losses", "shares", "more", "expected"),
    [
        # a loss of all of a unit, of which none was seen in n, has a chance of 1 - 0.05^(1/n)
        (np.zeros(10), np.full(10, 0.1), 1, 1 - 0.05**0.1),
        (np.zeros(10), np.full(10, 0.1), 2, 1 - 0.05**0.05),
        (np.full(4, 0.4), np.full(4, 0.25), 1, 0.6 * (1 - 0.05**0.25)),
        (np.ones(3), np.full(3, 1 / 3), 1, 0),
        (np.zeros(5), np.array([0.25, 0.25, 0.25, 0.25, 0]), 1, 1 - 0.05**0.25),
        (np.zeros(1), np.ones(1), 1, 0.95),
    ],
)
def test_losses_that_are_all_alike_may_have_missed_another_kind(losses, shares, more, expected):
    assert excess(losses, shares, 0.95, more) == pytest.approx(expected)


def test_sets_whose_numbers_are_of_other_tasks_are_not_compared():
    tasks = list("aabbccdd")
    left, right = (
        RunSet(None, [1, 0] * 4, tasks=tasks, spent={"cost": np.where(known, 1.0, np.nan)})
        for known in (np.arange(8) < 4, np.arange(8) >= 4)
    )
    assert compare(left, right).notes == [
        "Not compared: cost. Why: no task of both sets has the numbers for it."
    ]
    (result,) = check(right, left, Gate("cost")).gates
    assert (result.verdict, result.why) == (
        "unusable", "no task of both sets has the numbers for it",
    )  # fmt: skip


def test_losses_that_differ_by_little_are_those_of_two_values():
    small = np.array([1, 1, 1, 1 - 1e-8])
    wanted = 1e-8 * (beta.ppf(0.95, 4, 1) - 0.75)
    assert excess(small, np.ones(4), 0.95) == pytest.approx(wanted, rel=1e-4)


def test_numbers_much_smaller_than_1_have_errors_of_their_size():
    y, tasks = [1, 0, 1, 0], list("abcd")
    runs = RunSet(None, y, tasks=tasks, spent={"cost": np.array([1, 2, 3, 4]) * 1e-20})
    one = estimate(Measures(runs)[Key("cost")], np.arange(4), 4)
    assert one.value == pytest.approx(2.5e-20)
    assert one.std_error == pytest.approx(np.std([1, 2, 3, 4], ddof=1) / 2 * 1e-20)


def test_a_unit_counts_one_over_its_runs():
    runs = RunSet(None, [1, 0, 1, 1, 0, 1], tasks=list("aaabbd"))
    units = np.array([0, 0, 0, 1, 1, 3])
    assert _shares(Measures(runs)[Key("success")], units, 4) == pytest.approx([1 / 3, 1 / 2, 0, 1])


@pytest.mark.parametrize("times", [1.0, 0.9])
def test_what_a_base_would_add_is_taken_away(times):
    change, other = np.array([0.5, -0.25]), np.array([0.125, 1.0])
    units = np.array([0, 1])
    new = Estimate(0.75, np.array([0.5, 0.25]), 4.0, 5, changes=((change, units),))
    base = Estimate(0.5, np.array([0.125, 0.5]), 9.0, 7, changes=((other, units),))
    paired = match(outcomes(2, 1), outcomes(2, 1))
    one = difference(new, base, paired, times)
    assert one.value == 0.75 - times * 0.5
    assert one.errors.tolist() == [0.5 - times * 0.125, 0.25 - times * 0.5]
    assert (one.freedom, one.n_units, one.means, one.parts) == (4.0, 5, (), ())
    assert [values.tolist() for values, _ in one.changes] == [
        [0.5, -0.25], [-times * 0.125, -times * 1.0]
    ]  # fmt: skip
    apart = difference(new, base, match(outcomes(2, 1, tasks=False), outcomes(3, 1)), times)
    assert (apart.n_units, apart.freedom) == (5, pytest.approx(_welch(new, base)))


@pytest.mark.parametrize(("n_units", "is_bounded"), [(1, False), (2, True)])
def test_two_units_are_needed_for_bounds(n_units, is_bounded):
    one = Estimate(0.25, np.array([0.125, -0.125]), 1.0, n_units)
    reach = t.ppf(0.9, 1) * 0.125 * np.sqrt(2)
    wanted = (0.25 - reach, 0.25 + reach) if is_bounded else (-np.inf, np.inf)
    assert one.bounds(0.9) == pytest.approx(wanted)
    assert np.isnan(runs_to_settle(one, 0.125, 20, 0.9)) != is_bounded
