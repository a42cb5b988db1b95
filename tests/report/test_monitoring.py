import numpy as np
import pandas as pd
import pytest

from trajscore import DensityRatioEProcess, evaluate
from trajscore.datasets import make_trajectories
from trajscore.monitoring import RandomStop, split_report
from trajscore.report import IntervalOptions, MonitoringOptions


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


def test_grades_are_not_taken_for_failures(runs):
    X, y = runs
    grades = np.r_[0.5, y[1:]]
    report = evaluate({"judge": X}, grades, intervals=IntervalOptions(2), monitoring=True)
    assert report.monitoring.empty
    assert report.stopping().empty
    assert report.notes[0] == "judge: not monitored; row 0: outcome 0.5 must be 0 or 1 here"


def test_too_few_successes_show_in_the_table_only(runs):
    X, y = runs  # a warning would be an error
    report = evaluate(
        X[:40], y[:40], intervals=IntervalOptions(2), monitoring=RandomStop(alpha=0.01)
    )
    assert report.monitoring["false_alarm_rate"].eq(0).all()
