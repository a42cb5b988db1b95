"""What stopping early on a predictor would do, on runs that the rule was not fitted on."""

from dataclasses import replace
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest

from judged import evaluate
from refused import must_refuse
from trajscore import DensityRatioEProcess, TrajectoryArray
from trajscore.datasets import make_trajectories
from trajscore.monitoring import CalibratedVerifier, split_report
from trajscore.report import MonitoringOptions


@pytest.fixture(scope="module")
def runs():
    return make_trajectories(120, lengths=4, random_state=0, return_X_y=True)


@pytest.fixture(scope="module")
def monitored(runs, fast):
    X, y = runs
    rule = DensityRatioEProcess(alpha=[0.2, 0.4])
    options = MonitoringOptions(rule, known_share=0.5, n_splits=3)
    return evaluate({"judge": X}, y, monitoring=options, **fast)


def test_the_table_is_that_of_the_splits(runs, monitored):
    X, y = runs
    rule = monitored.facts.monitoring.rule
    expected = split_report(rule, X, y, known_share=0.5, n_splits=3)
    pd.testing.assert_frame_equal(monitored.monitoring.loc["judge"], expected)
    steps = X.with_cells(-1.0 * np.tile([1, 2, 3, 4], 120))  # minus the number of steps
    expected = split_report(rule, steps, y, known_share=0.5, n_splits=3)
    pd.testing.assert_frame_equal(monitored.monitoring.loc["alive rate"], expected)
    assert monitored.monitoring.index.names == ["predictor", "alpha"]
    for words in ("DensityRatioEProcess", "fitted on 50%", "3 random splits"):
        assert words in monitored.disclosures["monitoring"]


def test_the_table_is_written_for_people(monitored):
    page = monitored.to_html()
    assert len(monitored.monitoring) == 4
    for _, row in monitored.monitoring.iterrows():
        assert f'<td class="number">{row["steps_saved"]:.1%}</td>' in page
        assert f'<td class="number">{row["power"]:.3f}' in page
    assert "stopping failing runs early" in monitored.to_text(verbose=True).lower()
    unasked = replace(monitored, monitoring=None).to_text(verbose=True)
    assert "stopping failing runs early" not in unasked.lower()


class Sees(CalibratedVerifier):
    """Notes on how many runs it is fitted."""

    sizes: ClassVar[list] = []

    def fit(self, X, y=None):
        self.sizes.append(len(X))
        return super().fit(X, y)


def test_a_rule_alone_is_an_option(runs, fast):
    X, y = runs
    report = evaluate(X, y, monitoring=Sees(alpha=0.2), **fast)
    assert set(Sees.sizes) == {96}  # 80% of the runs
    assert len(Sees.sizes) == 40  # twenty splits, of the predictor and of the steps
    options = MonitoringOptions(n_splits=1)
    groups = np.arange(80) // 2
    usual = evaluate(X[:80], y[:80], groups=groups, monitoring=options, **fast)
    assert sorted(usual.monitoring.loc["forecast"].index) == [0.05, 0.1, 0.2]
    assert report.monitoring.loc["forecast"].index.tolist() == [0.2]


def test_cost_follows_its_runs(runs, rng, fast):
    X, y = runs
    rule = CalibratedVerifier(alpha=0.2)
    tokens = TrajectoryArray(rng.random(len(X.cells)), X.lengths, ids=X.ids, channels=["tokens"])
    options = MonitoringOptions(rule, n_splits=3, cost=tokens[rng.permutation(len(y))])
    seen = np.where(np.arange(len(y)) % 9 == 0, -1, y)
    report = evaluate({"judge": X}, seen, monitoring=options, **fast)
    known = seen >= 0
    expected = split_report(rule, X[known], y[known], n_splits=3, cost=tokens[known])
    pd.testing.assert_frame_equal(report.monitoring.loc["judge"], expected)
    share = expected["cost_saved"].iloc[0]
    assert f'<td class="number">{share:.1%}</td>' in report.to_html()
    assert "cost: tokens" in report.disclosures["monitoring"]
    few = MonitoringOptions(rule, n_splits=3, cost=tokens[:50])
    report = evaluate({"judge": X}, y, monitoring=few, **fast)
    assert report.monitoring.empty
    assert any("not monitored; the costs hold no run" in note for note in report.notes)


def test_grades_are_not_taken_for_failures(runs, fast):
    X, y = runs
    report = evaluate({"judge": X}, np.r_[0.5, y[1:]], monitoring=True, **fast)
    assert report.monitoring.empty
    assert "judge: not monitored; run 0: outcome 0.5" in report.notes[0]


def test_what_is_no_rule(runs):
    rows = [
        ("yes", "monitoring must be .* got 'yes'"),
        (1, "monitoring must be .* got 1"),
        (MonitoringOptions(known_share=80), "known_share.* got 80"),
        (MonitoringOptions(n_splits=0), "n_splits"),
    ]
    must_refuse(lambda wrong: evaluate(*runs, monitoring=wrong), rows)
