from typing import ClassVar

import numpy as np
import pandas as pd
import pytest

from trajscore import DensityRatioEProcess, TrajectoryArray, evaluate
from trajscore.datasets import make_trajectories
from trajscore.io import Run, Step
from trajscore.monitoring import RandomStop, split_report
from trajscore.report import IntervalOptions, MonitoringOptions
from trajscore.report._monitoring import tokens_of


@pytest.fixture(scope="module")
def runs():
    return make_trajectories(120, lengths=4, random_state=0, return_X_y=True)


@pytest.mark.parametrize("wrong", ["yes", 1, None])
def test_what_is_no_rule(runs, wrong):
    with pytest.raises(ValueError, match="monitoring must be True, False, a stopping rule"):
        evaluate(*runs, intervals=IntervalOptions(2), monitoring=wrong)


def test_the_table_is_that_of_the_splits(runs):
    X, y = runs
    rule = DensityRatioEProcess(alpha=0.2)
    options = MonitoringOptions(rule, known_share=0.5, n_splits=3)
    report = evaluate({"judge": X}, y, intervals=IntervalOptions(2), monitoring=options)
    expected = split_report(rule, X, y, known_share=0.5, n_splits=3)
    pd.testing.assert_frame_equal(report.monitoring.loc["judge"], expected)
    assert "fitted on 50% of the complete runs" in report.disclosures["monitoring"]
    assert "means over 3 random splits" in report.disclosures["monitoring"]
    assert "before the end" in report.stopping()


class Sees(RandomStop):
    """Notes the values that it is fitted on."""

    values: ClassVar[list] = []

    def fit(self, X, y=None):
        self.values.append(X.cells)
        return super().fit(X, y)


def test_the_alive_rate_is_followed_as_minus_the_number_of_steps(runs):
    X, y = runs
    options = MonitoringOptions(Sees(alpha=0.2), n_splits=1)
    evaluate({"judge": X}, y, intervals=IntervalOptions(2), monitoring=options)
    assert set(Sees.values[-1]) == {-1, -2, -3, -4}


def test_grades_are_not_taken_for_failures(runs):
    X, y = runs
    grades = np.r_[0.5, y[1:]]
    report = evaluate({"judge": X}, grades, intervals=IntervalOptions(2), monitoring=True)
    assert report.monitoring.empty
    assert report.stopping().empty
    assert (
        report.notes[0]
        == "judge: not monitored; run 0: outcome 0.5 must be 0 or 1; leave out graded runs"
    )


def test_too_few_successes_show_in_the_table_only(runs):
    X, y = runs  # a warning would be an error
    report = evaluate(
        X[:40], y[:40], intervals=IntervalOptions(2), monitoring=RandomStop(alpha=0.01)
    )
    assert report.monitoring["false_alarm_rate"].eq(0).all()


def test_cost_follows_its_runs(runs, rng):
    X, y = runs
    rule = RandomStop(alpha=0.2)
    tokens = TrajectoryArray(rng.random(len(X.cells)), X.lengths, ids=X.ids, channels=["tokens"])
    options = MonitoringOptions(rule, n_splits=3, cost=tokens[rng.permutation(len(y))])
    seen = np.where(np.arange(len(y)) % 9 == 0, -1, y)
    report = evaluate({"judge": X}, seen, intervals=IntervalOptions(2), monitoring=options)
    known = seen >= 0
    expected = split_report(rule, X[known], y[known], n_splits=3, cost=tokens[known])
    pd.testing.assert_frame_equal(report.monitoring.loc["judge"], expected)
    share = expected["cost_saved"].iloc[0]
    assert report.stopping()["tokens saved"].iloc[0] == f"{share:.1%}"
    assert "tokens saved: the same share of its own tokens" in report.disclosures["monitoring"]
    few = MonitoringOptions(rule, n_splits=3, cost=tokens[:50])
    report = evaluate({"judge": X}, y, intervals=IntervalOptions(2), monitoring=few)
    assert report.monitoring.empty
    assert any("the costs hold no run" in note for note in report.notes)


def test_tokens_of_a_log():
    def turn(actor, tokens=None):
        usage = {} if tokens is None else {"usage": {"completion_tokens": tokens}}
        return Step(actor, "hm", extra=usage)

    log = [
        Run("a", [turn("agent"), turn("user", 9), turn("agent", 5)]),
        Run("b", [turn("user"), turn("agent", 7)]),
    ]
    both = TrajectoryArray(np.zeros(5), [3, 2], ids=["a", "b"])
    # the opening of a is a set text
    assert tokens_of(log, {"one": both}).cells.tolist() == [0, 0, 5, 0, 7]
    alone = TrajectoryArray(np.zeros(3), [2, 1], ids=["a", "b"])
    assert tokens_of(log, alone).cells.tolist() == [0, 5, 7]
    assert tokens_of(log, alone[[1]]) is None  # of other runs
    log[0].steps.append(turn("agent"))
    assert tokens_of(log, TrajectoryArray(np.zeros(6), [4, 2], ids=["a", "b"])) is None
