"""The hazard of informative stops, with a classifier whose chance is known."""

import warnings

import numpy as np
import pytest
from scipy.stats import t
from sklearn.base import BaseEstimator, ClassifierMixin

from trajscore import TrajectoryArray
from trajscore.censoring import StopHazard
from trajscore.censoring._hazard import as_mask, refuse_observed, steps_at_risk


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


def test_a_run_that_was_not_stopped_was_not_at_risk_at_its_last_step():
    at_risk, event = steps_at_risk(X, STOPPED)
    assert at_risk.astype(int).tolist() == [1, 1, 1, 1, 0, 0, 1, 1, 1, 1]
    assert event.astype(int).tolist() == [0, 0, 1, 0, 0, 0, 0, 0, 0, 1]


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


def test_a_certain_stop_leaves_the_least_chance():
    hazard = StopHazard(Rate(1.0), cv=2, min_probability=0.25)
    with pytest.warns(UserWarning, match="1 run had a chance of less than 0.25"):
        hazard.fit(X, STOPPED)
    np.testing.assert_allclose(hazard.survival_, [0.25] * 5 + [1] + [0.25] * 4)


def test_where_nobody_was_stopped_the_chance_is_zero():
    hazard = StopHazard(Rate(), cv=2).fit(X, np.zeros(4, dtype=bool))
    assert not hazard.hazard_.any()
    assert (hazard.survival_ == 1).all()


@pytest.mark.parametrize(("least", "warned"), [(0.5, False), (0.51, True)])
def test_small_chances_are_raised_with_a_warning_of_runs_that_were_not_stopped(least, warned):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        hazard = StopHazard(Rate(0.5), cv=2, min_probability=least).fit(X, STOPPED)
    assert hazard.survival_.min() == least
    assert [f"1 run had a chance of less than {least:g}" in str(w.message) for w in caught] == (
        [True] * warned
    )


@pytest.mark.parametrize("chance", [0.0, 1.5, -0.1, "a", np.nan])
def test_bounds_of_the_least_chance(chance):
    with pytest.raises(ValueError, match=r"min_probability must lie in \(0, 1\], got"):
        StopHazard(Rate(), min_probability=chance).fit(X, STOPPED)
    nobody = np.zeros(4, dtype=bool)
    assert (StopHazard(Rate(), cv=2, min_probability=1).fit(X, nobody).survival_ == 1).all()


def test_somebody_must_be_left():
    with pytest.raises(ValueError, match="all 4 runs were stopped"):
        StopHazard(Rate(), cv=2).fit(X, np.ones(4, dtype=bool))
    short = TrajectoryArray(np.full(4, 0.5), np.ones(4, dtype=int))
    with pytest.raises(ValueError, match="every run was stopped as soon as it could be"):
        StopHazard(Rate(), cv=2).fit(short, STOPPED)


@pytest.mark.parametrize("stopped", [[1, 0, 0, 1], [True, False], [[True] * 4], "informative"])
def test_stopped_runs_are_booleans(stopped):
    with pytest.raises(ValueError, match="stopped must be 4 booleans, one for each run; for an"):
        as_mask(stopped, 4)
    assert as_mask(STOPPED.tolist(), 4).tolist() == STOPPED.tolist()


def test_a_stopped_run_has_no_outcome():
    refuse_observed(STOPPED, STOPPED)
    refuse_observed(STOPPED, np.ones(4, dtype=bool))
    with pytest.raises(ValueError, match="row 3: its outcome was observed, so it cannot have been"):
        refuse_observed(STOPPED, np.array([True, False, True, False]))


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
    with pytest.raises(ValueError, match="samples must be 40 contributions"):
        hazard.interval(samples[1:])


def test_few_runs_leave_at_least_one():
    hazard = StopHazard(Rate(0.5), cv=2, min_probability=0.05).fit(X, STOPPED)
    low, high = hazard.interval([1.0, 2.0, 3.0, 4.0], confidence_level=0.9)
    assert high - low == pytest.approx(2 * t.ppf(0.95, 3) * np.sqrt(5 / 4 * 4 / 3 / 4 * 4))
