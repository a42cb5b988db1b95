"""Metrics that are linear in outcomes of which few are known."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import expit, logit
from trajscore.report._few_label_table import Linear, auroc_metric, cost_metric, label_table
from trajscore.report._few_labels import _with_stopped, success_rate

from trajscore import TrajectoryArray
from trajscore.core import ranking
from trajscore.core.outcomes import CENSORED
from trajscore.inference._labels import FewLabels, OutcomeRatio, rate_of
from trajscore.inference.units import any_units
from trajscore.report._runs import Coverage, Judged, Labelling


def labels_of(outcome, inverse, forecast):
    outcome, inverse, forecast = (np.array(x, dtype=float) for x in (outcome, inverse, forecast))
    return FewLabels(outcome, inverse, forecast, any_units(None, len(outcome)))


SOME = labels_of([1, 0, 0, 1, 0, 0], [2, 0, 2, 3, 0, 0], [0.7, 0.2, 0.4, 0.9, 0.5, 0.6])


def found(value, low, high):
    return SimpleNamespace(
        outcome=np.zeros(10),
        estimate=lambda ratio, level: {"value": value, "low": low, "high": high, "by": level},
    )


@pytest.mark.parametrize(
    ("start", "ends", "shifted"),
    [
        (0.5, (0.1, 0.0, 0.3), (0.6, 0.5, 0.8)),
        (0.5, (0.6, 0.4, 0.8), (0.9, 0.9, 1.3)),  # of 10 runs, nine tenths at most
        (0.5, (-0.6, -0.8, -0.4), (0.1, -0.3, 0.1)),
        (0.0, (0.9, 0.8, 1.0), (0.9, 0.8, 1.0)),
    ],
)
def test_an_interval_of_ranks_stays_between_0_and_1(start, ends, shifted):
    assert Linear(rate_of(10), start).interval(found(*ends), 0.95) == pytest.approx(
        [start + end for end in ends]
    )
    value, low, high = Linear(rate_of(10), start, is_rank=True).interval(found(*ends), 0.95)
    assert value == pytest.approx(shifted[0])
    half = (ends[2] - ends[1]) / 2 / (value * (1 - value))
    assert low == pytest.approx(expit(logit(value) - half))
    assert high == pytest.approx(expit(logit(value) + half))


def test_a_rank_without_an_interval_is_left_as_it_is():
    three = Linear(rate_of(10), 0.5, is_rank=True).interval(found(0.5, np.nan, np.nan), 0.95)
    assert three[0] == 1.0
    assert np.isnan(three[1:]).all()


def test_metrics_are_subtracted_with_what_they_start_from():
    one, two = np.array([1.0, 2, 3]), np.array([0.5, 0.25, 0.125])
    a, b = Linear(OutcomeRatio(one, two, two, one), 0.75, True), Linear(rate_of(3), 0.5)
    above = a - b
    assert (above.start, above.is_rank) == (0.25, False)
    np.testing.assert_array_equal(above.ratio.success, one - 1)
    np.testing.assert_array_equal(above.ratio.failure, two)
    moved = a.moved
    np.testing.assert_array_equal(moved.success, one + 0.75 * two)
    np.testing.assert_array_equal(moved.failure, two + 0.75 * one)
    np.testing.assert_array_equal(moved.success_weight, two)
    np.testing.assert_array_equal(moved.failure_weight, one)


def test_a_cost_is_known_for_either_outcome():
    confidence = np.array([0.2, 0.7])
    metric = cost_metric(lambda p, y: 10 * y + p, confidence)
    assert metric.start == 0
    np.testing.assert_array_equal(metric.ratio.success, [10.2, 10.7])
    np.testing.assert_array_equal(metric.ratio.failure, confidence)
    np.testing.assert_array_equal(metric.ratio.success_weight, [1, 1])


def test_the_auroc_of_pseudo_outcomes_by_pairs():
    confidence = np.array([0.9, 0.3, 0.3, 0.8, 0.1, 0.5])
    pseudo = SOME.forecast + SOME.inverse * (SOME.outcome - SOME.forecast)
    metric = auroc_metric(SOME, confidence)
    higher = confidence[:, None] > confidence[None]
    credit = higher + 0.5 * (confidence[:, None] == confidence[None])
    pairs = pseudo[:, None] * (1 - pseudo)[None] * (1 - np.eye(6))
    assert metric.start == pytest.approx((credit * pairs).sum() / pairs.sum())
    assert metric.is_rank
    # what each outcome adds is the slope of the area, times the number of runs
    values, group = np.unique(confidence, return_inverse=True)

    def area(lost, won):
        sums = (np.bincount(group, own, len(values)) for own in (lost, won))
        return float(ranking.auroc(*sums))

    for k in range(6):
        step = 1e-6 * np.eye(6)[k]
        lost = area(1 - pseudo + step, pseudo) - area(1 - pseudo - step, pseudo)
        won = area(1 - pseudo, pseudo + step) - area(1 - pseudo, pseudo - step)
        assert metric.ratio.failure[k] == pytest.approx(6 * lost / 2e-6, rel=1e-5, abs=1e-7)
        assert metric.ratio.success[k] == pytest.approx(6 * won / 2e-6, rel=1e-5, abs=1e-7)


def judged_of(few, judge, cells, lengths):
    n = len(few.outcome)
    y = np.where(few.labelled, few.outcome, CENSORED).astype(int)
    labelling = Labelling(~few.labelled, None, None if judge is None else np.array(judge))
    runs = Coverage(y, few.forecast, None, np.arange(n), None, labelling, few)
    return Judged({"p": TrajectoryArray(cells, lengths)}, runs, {})


def test_a_judge_is_wrong_by_thirds_of_a_trace():
    y = np.tile([1.0, 0, 1, 0, 1, 0, 1, 1, 0], 20)
    few = labels_of(y, np.ones(180), np.full(180, 0.5))
    judge = np.tile([1.0, 1, 0, 0, 1, 0, 0.5, 1, 1], 20)
    lengths = np.resize([1, 2, 3], 180)
    mean = np.tile([0.1, 0.9, 0.5, 0.2, 0.8, 0.55, 0.3, 0.7, 0.6], 20)
    cells = np.repeat(mean, lengths)
    cells[1:3] += 0.05, -0.05  # the mean of its steps counts
    table = label_table(judged_of(few, judge, cells, lengths), 0.95)
    wrong = np.abs(y - judge)
    expected = {
        "success rate": y.mean(),
        "judge wrong on successes": wrong[y == 1].mean(),
        "judge wrong on failures": wrong[y == 0].mean(),
        "judge wrong where p is low": wrong[mean < 0.4].mean(),
        "judge wrong where p is middling": wrong[(mean > 0.4) & (mean < 0.65)].mean(),
        "judge wrong where p is high": wrong[mean > 0.65].mean(),
    }
    assert table.index.tolist() == list(expected)
    np.testing.assert_allclose(table["value"], list(expected.values()), atol=0.01)
    alone = label_table(judged_of(few, None, cells, lengths), 0.95)
    assert alone.index.tolist() == ["success rate"]
    flat = label_table(judged_of(few, judge, np.full(360, 0.5), lengths), 0.95)
    assert flat.index.tolist()[3:] == ["judge wrong where p is low"]  # the others have no run


def test_without_labels_or_forecasts_nothing_is_said_of_them():
    runs = Coverage(np.array([1, 0]), np.array([1.0, 0.0]), None, np.arange(2))
    traces = {"p": TrajectoryArray([0.5, 0.5], [1, 1])}
    assert label_table(Judged(traces, runs, {}), 0.95) is None
    assert success_rate(runs) == 0.5


def test_runs_that_were_stopped_are_known_to_be_what_they_count_as():
    few = FewLabels(
        np.array([1.0, 0.0]), np.array([2.0, 0.0]), np.array([0.7, 0.4]), any_units(None, 2),
        np.array([1, 0]), np.array([[0.1, 0.2], [0.3, 0.4]]),
    )  # fmt: skip
    known = np.array([0.5, 0.0, 1.0, 0.25, 0.0])
    runs = Coverage(np.full(5, -1), known, None, np.arange(5))
    more = _with_stopped(few, np.array([1, 3]), runs)
    np.testing.assert_array_equal(more.outcome, [0.5, 1, 1, 0, 0])
    np.testing.assert_array_equal(more.inverse, [0, 2, 0, 0, 0])
    np.testing.assert_array_equal(more.forecast, [0.5, 0.7, 1, 0.4, 0])
    np.testing.assert_array_equal(more.fold, [0, 1, 0, 0, 0])
    np.testing.assert_array_equal(more.by_fold, [[0.5, 0.1, 1, 0.2, 0], [0.5, 0.3, 1, 0.4, 0]])
    assert more.units.n_units == 5
    np.testing.assert_array_equal(known, [0.5, 0, 1, 0.25, 0])
