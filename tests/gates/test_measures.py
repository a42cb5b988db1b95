"""What can be asked of a set of runs, and what is said of what cannot."""

import numpy as np
import pytest

from trajscore import TrajectoryArray
from trajscore.gates import RunSet, compare
from trajscore.gates._measures import (
    Key,
    Measures,
    is_fraction,
    is_lower_better,
    is_of_runs,
    most_trials,
    names_of,
)


def runs_of(tasks, **options):
    n = len(tasks)
    X = TrajectoryArray(np.linspace(0.1, 0.9, 2 * n), np.full(n, 2), channels=("judge",))
    return RunSet(X, np.arange(n) % 2, tasks=list(tasks), **options)


@pytest.mark.parametrize(
    ("tasks", "most", "names"),
    [
        ("abcd", 1, ["success", "length"]),
        ("aabc", 1, ["success", "length"]),
        ("aabbc", 2, ["success", "pass^2", "length"]),
        ("aabb", 2, ["success", "pass^2", "length"]),
        ("aaabbc", 2, ["success", "pass^2", "length"]),
        ("aaaabbbb", 4, ["success", "pass^2", "length"]),
    ],
)
def test_as_many_trials_as_half_of_the_tasks_have(tasks, most, names):
    runs = runs_of(tasks)
    assert most_trials(runs) == most
    assert names_of(runs) == names
    spent = runs_of(tasks, spent={"cost": np.ones(len(tasks)), "tokens": np.ones(len(tasks))})
    assert names_of(spent) == [*names, "cost", "tokens"]
    alone = RunSet(None, runs.labels)
    assert (most_trials(alone), names_of(alone)) == (1, ["success", "length"])


@pytest.mark.parametrize(
    ("metric", "of_runs", "lower", "fraction"),
    [
        ("success", True, False, True),
        ("length", True, True, False),
        ("cost", True, True, False),
        ("pass^2", True, False, True),
        ("pass^10", True, False, True),
        ("pass^0", False, False, False),
        ("pass^100", False, False, False),
        ("tokens", False, False, False),
        ("AUROC", False, False, True),
        ("S-ECE", False, True, True),
        ("T-Brier margin", False, True, False),
        ("TPS log", False, False, False),
        ("TPS log margin", False, False, False),
    ],
)
def test_what_a_metric_is(metric, of_runs, lower, fraction):
    runs = runs_of("aabb", spent={"cost": np.ones(4)})
    assert is_of_runs(metric, runs) == of_runs
    assert is_lower_better(metric, runs) == lower
    assert is_fraction(metric) == fraction


def test_numbers_of_runs():
    runs = runs_of("aabbc", spent={"cost": [1, np.nan, 2, 6, np.nan], "none": [np.nan] * 5})
    measures = Measures(runs)
    weight = np.array([1.0, 1.0, 1.0, 3.0, 1.0])
    assert measures[Key("success")].statistic(weight) == pytest.approx(4 / 7)
    assert measures[Key("length")].statistic(weight) == 2
    assert measures[Key("cost")].statistic(weight) == pytest.approx((1 + 2 + 18) / 5)
    assert measures[Key("cost")].statistic.rows.tolist() == [0, 2, 3]  # where it is known
    kinds = [(measures[Key(name)].is_rate, measures[Key(name)].of_tasks)
             for name in ("success", "pass^2", "length", "cost")]  # fmt: skip
    assert kinds == [(True, False), (True, True), (False, False), (False, False)]
    with pytest.raises(ValueError, match="no run has a number"):
        measures[Key("none")]


def test_what_cannot_be_asked():
    measures = Measures(runs_of("aabb"))
    with pytest.raises(ValueError, match=r"'pass2'; did you mean 'pass\^2'"):
        measures[Key("pass2")]
    graded = RunSet(None, [0.5, 1, 0, 1], tasks=list("aabb"))
    with pytest.raises(ValueError, match="some outcomes are graded"):
        Measures(graded)[Key("pass^2")]
    with pytest.raises(ValueError, match="no form|has no such form"):
        measures[Key("AUROC", "judge", "other")]
    assert str(Key("AUROC", "judge", "as_given")) == "AUROC of judge, as given"
    assert str(Key("cost")) == "cost"


def compared(base, new):
    table = compare(base, new).table
    return list(dict.fromkeys(table.index.get_level_values("metric")))


def test_what_is_compared_is_what_both_sets_have():
    spent = {"cost": np.arange(20.0), "tokens": np.ones(20)}
    twice, thrice = runs_of("abcdefghij" * 2, spent=spent), runs_of("abcdefg" * 3)
    assert compared(twice, thrice)[:3] == ["success", "pass^2", "length"]
    assert compared(twice, runs_of("abcdefghij" * 2, spent={"cost": np.ones(20)}))[:4] == [
        "success", "pass^2", "length", "cost",
    ]  # fmt: skip
    one_step = RunSet(None, [0, 1] * 10, tasks=list("abcdefghij") * 2)
    assert compared(one_step, one_step) == ["success", "pass^2"]
    assert "length" in compared(one_step, twice)  # where either has more than a step
    assert "AUROC" not in compared(one_step, twice)
    assert "AUROC" in compared(twice, twice)
    single = RunSet(None, [0, 1] * 5, tasks=list("abcdefghij"))
    assert compared(single, one_step) == ["success"]
