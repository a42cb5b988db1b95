"""The hazard of informative stops, with a classifier whose chance is known."""

import warnings

import numpy as np
import pytest
from scipy.stats import t
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError

from refused import not_refused
from trajscore import TrajectoryArray
from trajscore.censoring import StopHazard


class Rate(ClassifierMixin, BaseEstimator):
    """Says the share of stops among the steps that it was fitted on, or a chance that is given."""

    def __init__(self, chance=None):
        self.chance = chance

    def fit(self, X, y):
        self.classes_ = np.array([0, 1])
        self.rate_ = y.mean() if self.chance is None else self.chance
        return self

    def predict_proba(self, X):
        return np.tile([1 - self.rate_, self.rate_], (len(X), 1))


X = TrajectoryArray(np.linspace(0.1, 0.9, 10), [3, 2, 1, 4])
STOPPED = np.array([True, False, False, True])


def test_chances_multiply_along_each_run():
    hazard = StopHazard(Rate(0.5), cv=2, min_probability=0.05).fit(X, STOPPED)
    np.testing.assert_allclose(hazard.hazard_, [0.5] * 4 + [0, 0] + [0.5] * 4)
    survival = [0.5, 0.25, 0.125, 0.5, 0.5, 1, 0.5, 0.25, 0.125, 0.0625]
    np.testing.assert_allclose(hazard.survival_, survival)
    assert hazard.history_ == X
    assert hazard.features_.shape == (10, 4)
    assert hazard.stopped_.tolist() == STOPPED.tolist()


def test_the_chance_is_learnt_from_the_other_folds():
    folds = [(np.array([1, 3]), np.array([0, 2])), (np.array([0, 2]), np.array([1, 3]))]
    hazard = StopHazard(Rate(), cv=folds).fit(X, STOPPED)
    # one stop in the 5 steps at risk of runs 1 and 3, and one in the 3 of runs 0 and 2
    np.testing.assert_allclose(hazard.hazard_, [0.2] * 3 + [1 / 3, 0, 0] + [1 / 3] * 4)
    assert len(set(hazard.fold_[[0, 2]])) == len(set(hazard.fold_[[1, 3]])) == 1


def test_an_interval_counts_the_runs_that_were_not_stopped_less_two_for_each_feature():
    n = 40
    runs = TrajectoryArray(np.tile([0.4, 0.6], n), np.full(n, 2))
    stopped = np.arange(n) % 4 == 0
    hazard = StopHazard(Rate(0.1), features=lambda X: X.cells, cv=2).fit(runs, stopped)
    samples = np.sin(np.arange(n))
    low, high = hazard.interval(samples, confidence_level=0.9)
    assert (low + high) / 2 == pytest.approx(samples.mean())
    error = np.sqrt(samples.var() * n / (n - 1) / (30 - 2))
    assert high - low == pytest.approx(2 * t.ppf(0.95, n - 1) * error)
    groups = np.arange(n) // 2
    wide = hazard.interval(np.repeat(samples[:20], 2), groups=groups)
    assert wide[1] - wide[0] > 0
    assert not not_refused(hazard.interval, [(samples[1:], {}, "samples must be 40")])
    assert not not_refused(StopHazard().interval, [(samples, {}, "not fitted")], NotFittedError)


def test_small_chances_are_raised_with_a_warning_of_runs_that_were_not_stopped():
    for least, warned in ((0.5, False), (0.51, True)):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            hazard = StopHazard(Rate(0.5), cv=2, min_probability=least).fit(X, STOPPED)
        assert hazard.survival_.min() == least
        assert ["1 run had a chance of less than 0.51" in str(w.message) for w in caught] == (
            [True] * warned
        )


def test_bad_input():
    for chance in (0.0, 1.5, -0.1, "a", np.nan, None):
        hazard = StopHazard(Rate(), min_probability=chance)
        assert not not_refused(hazard.fit, [(X, STOPPED, {}, "min_probability")])
    short = TrajectoryArray(np.full(4, 0.5), np.ones(4, dtype=int))
    rows = [
        (X, np.ones(4, dtype=bool), {}, "all 4 runs were stopped.* tps_bounds"),
        (short, STOPPED, {}, "as soon as it could be.* tps_bounds"),
        *(
            (X, one, {}, "stopped must be 4 booleans")
            for one in ([1, 0, 0, 1], [True], "informative")
        ),
        (X, STOPPED, {"groups": [1, 1, 1, 1]}, "1 groups of runs"),
    ]
    assert not not_refused(StopHazard(Rate(), cv=2).fit, rows)
    assert not not_refused(StopHazard(cv=1).fit, [(X, STOPPED, {}, "cv must be .*at least 2")])
    assert not not_refused(StopHazard().fit, [(X, STOPPED, {}, "cv = 5 is more than")])
