"""Rows of a report: predictors as given and recalibrated, and the references."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from trajscore import TrajectoryArray
from trajscore.core.parallel import Work
from trajscore.core.weights import as_step_weights
from trajscore.report._rows import (
    alive_rates,
    base_rate,
    make_rows,
    predictor_rows,
    recalibrated,
)
from trajscore.report._runs import Coverage, Judged

NAN = float("nan")
UNIFORM = as_step_weights("uniform")
LABELS = np.array([1.0, 0, 1, 0])


def judged(**predictors):
    traces = {
        name: TrajectoryArray.from_list(runs, missing="allow") for name, runs in predictors.items()
    }
    return Judged(traces, Coverage(LABELS, LABELS, None, np.arange(4)), {})


RUNS = [[0.5, 0.6, 0.7], [0.2], [0.9], [0.3]]


def test_the_base_rate_over_forecasts_and_over_runs():
    own = judged(a=RUNS)
    row = base_rate(own.traces["a"], own.runs, UNIFORM)
    assert row.key == ("base rate", "constant")
    assert_allclose(row.traces.cells, 4 / 6)
    assert row.rate == 0.5
    assert row.is_probability


@pytest.mark.parametrize(
    ("first", "last", "is_probability"),
    [(0.0, 1.0, True), (-0.01, 1.0, False), (0.0, 1.01, False)],
)
def test_values_beyond_0_and_1_are_not_probabilities(first, last, is_probability):
    own = judged(a=[[first], [0.5], [0.5], [last]])
    seen = []
    (row,) = predictor_rows(own, lambda flag: seen.append(flag), Work(), [])
    assert row.is_probability is is_probability
    assert seen == [is_probability]
    assert row.traces is own.traces["a"]
    assert row.runs is own.runs


def test_each_predictor_has_its_whole_runs():
    own = judged(a=RUNS, b=[[0.5], [NAN], [0.1], [0.3]])
    rows = make_rows(own, None, UNIFORM, Work(), [])
    names = ["a", "b", "base rate", "alive rate", "alive rate, end known"]
    assert [row.predictor for row in rows] == names
    assert rows[1].runs.rows.tolist() == [0, 2, 3]
    assert rows[1].traces.cells.tolist() == [0.5, 0.1, 0.3]


def test_without_a_calibrator_there_is_no_recalibrated_row():
    (row,) = predictor_rows(judged(a=RUNS), None, Work(), [])
    assert (row.key, row.calibrator, row.rate) == (("a", "as_given"), "", None)
    assert recalibrated(row, None) == ([], [])


@pytest.mark.parametrize(("n", "folds"), [(10, set(range(5))), (4, {0, 1})])
def test_counting_steps_takes_five_folds_or_two(n, folds):
    labels = (np.arange(n) % 2).astype(float)
    X = TrajectoryArray(np.full(2 * n, 0.5), np.full(n, 2))
    rows = alive_rates(X, Coverage(labels, labels, None, np.arange(n)))
    assert [row.key for row in rows] == [
        ("alive rate", "as_given"), ("alive rate, end known", "as_given"),
    ]  # fmt: skip
    for row in rows:
        assert set(row.traces.meta["cross_fit_fold"]) == folds
        assert row.is_probability
