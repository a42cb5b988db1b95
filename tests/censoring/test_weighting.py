"""The hazard of informative stops, and scores that weigh with it."""

import warnings

import numpy as np
import pytest
from scipy import stats
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.exceptions import NotFittedError

from refused import not_refused
from trajscore import TrajectoryArray
from trajscore.censoring import StopHazard, doubly_robust_tps_score, ipcw_tps_score
from trajscore.metrics import censored_tps_score, tps_samples, tps_score

OWN = {"weights": "linear_front", "horizon": "own"}


def hazard_of(X, stopped, **options):
    return StopHazard(**{"cv": 2, **options}).fit(X, stopped)


def survival_by_hand(hazard):
    """Chance of no stop at any step of each run, from those at the steps."""
    ends = np.cumsum(hazard.history_.lengths)[:-1]
    return np.array([np.prod(1 - steps) for steps in np.split(hazard.hazard_, ends)])


def sums_of_each(y, X, stopped):
    """Sum of w_t S of each run, 0 where it was stopped, and of w_t; by the Brier score."""
    N, D = np.zeros((2, len(X)))
    for k, (run, outcome) in enumerate(zip(X, y, strict=True)):
        w = 1 / np.sqrt(np.arange(1, len(run) + 1))
        N[k], D[k] = 0.0 if stopped[k] else -(w @ (run - outcome) ** 2), w.sum()
    return N, D


class Largest(RegressorMixin, BaseEstimator):
    """Predicts more than any target; so what is left of it is the largest target."""

    def fit(self, X, y):
        self.fitted_ = True
        return self

    def predict(self, X):
        return np.full(len(X), 1e9)


@pytest.fixture
def outlived(monitored):
    """Runs of which nobody outlives one that was stopped, and their hazard."""
    _, X, y, stopped = monitored(400, 4)
    X = TrajectoryArray(np.r_[X.cells, np.full(14, 0.3)], np.r_[X.lengths, 14])
    y, stopped = np.r_[y, -1], np.r_[stopped, True]
    return X, y, stopped, hazard_of(X, stopped, classifier=DummyClassifier(strategy="prior"))


MODELS = [(DummyRegressor(), np.mean), (Largest(), np.max)]


def augmented(X, stopped, g, hazard, of_targets):
    """Inverse weights times g, and what was to be expected where a stop came, or did not."""
    models = [scores_to_come(X, stopped, g, hazard.fold_ != k, of_targets) for k in range(2)]
    expected = np.where(stopped, 0.0, g / survival_by_hand(hazard))
    for i in range(len(X)):
        own = np.arange(X.offsets[i], X.offsets[i + 1])
        stay = np.cumprod(1 - hazard.hazard_[own])
        for t in range(len(own) - 1 + stopped[i]):
            surprise = (t == len(own) - 1) - hazard.hazard_[own[t]]
            expected[i] += surprise / stay[t] * models[hazard.fold_[i]][t]
    return expected


def scores_to_come(X, stopped, g, train, of_targets):
    """Expected score of a run that goes on after each step, from runs of `train` that went on."""
    rows = np.flatnonzero(train)
    longest = X.lengths.max()
    value = np.full((len(X), longest), np.nan)
    whole = rows[~stopped[rows]]
    value[whole, X.lengths[whole] - 1] = g[whole]
    out = np.full(longest, np.nan)
    for t in range(longest - 1, -1, -1):
        at_risk = rows[X.lengths[rows] - 1 + stopped[rows] > t]
        went_on = at_risk[X.lengths[at_risk] - 1 > t]
        # where none went on: the mean score of those that were not stopped
        out[t] = of_targets(value[went_on, t + 1]) if len(went_on) else g[whole].mean()
        value[at_risk, t] = out[t]
    return out


class Recorder(DummyRegressor):
    seen = []  # noqa: RUF012

    def fit(self, X, y):
        self.seen.append(X)
        return super().fit(X, y)


@pytest.mark.parametrize("own", [False, True])
def test_the_models_of_score_and_steps_know_what_the_steps_so_far_score(monitored, own):
    _, X, y, stopped = monitored(100, 5)
    hazard = hazard_of(X, stopped)
    Recorder.seen.clear()
    how = OWN if own else {}
    doubly_robust_tps_score(y, X, hazard, regressor=Recorder(), score="brier", **how)
    step = np.concatenate([np.arange(1, n + 1) for n in X.lengths])
    # weights that tell the end of a run are left out, and means do not tell the number of steps
    each = np.column_stack([-((X.cells - 1) ** 2), -(X.cells**2)])
    each *= 1 if own else 1 / np.sqrt(step)[:, None]
    so_far = np.concatenate([np.cumsum(run, axis=0) for run in np.split(each, X.offsets[1:-1])])
    if own:
        so_far = so_far / step[:, None]
    expected = X.cells * so_far[:, 0] + (1 - X.cells) * so_far[:, 1]
    now = X.cells * each[:, 0] + (1 - X.cells) * each[:, 1]
    so_far = np.column_stack([so_far, expected, now])
    known = np.column_stack([hazard.features_, so_far])
    fold = np.repeat(hazard.fold_, X.lengths)
    goes_on = step < np.repeat(X.lengths, X.lengths)
    at_risk = goes_on | np.repeat(stopped, X.lengths)
    expected = [
        known[goes_on & (fold != k) & (step == t)]
        for k in range(2)
        for t in np.unique(step[at_risk])[::-1]
    ]
    # a model of the score and, with weights by step, one of what the steps to come weigh
    expected = [rows for rows in expected if len(rows)] * (1 if own else 2)
    assert len(Recorder.seen) == len(expected)
    for found, rows in zip(Recorder.seen, expected, strict=True):
        np.testing.assert_allclose(found, rows, rtol=1e-12)


def test_ipcw_weighs_scores_and_steps_and_its_contributions_are_its_influence(monitored):
    _, X, y, stopped = monitored(400, 3)
    hazard = hazard_of(X, stopped, min_probability=1e-6)
    inverse = np.where(stopped, 0.0, 1 / survival_by_hand(hazard))
    own = tps_samples(np.where(stopped, 0, y), X, score="brier", **OWN)
    for how, (N, D) in (({}, sums_of_each(y, X, stopped)), (OWN, (own, np.ones(400)))):
        value, samples = ipcw_tps_score(y, X, hazard, score="brier", return_samples=True, **how)

        def ratio(count, N=N, D=D):
            return np.sum(count * inverse * N) / np.sum(count * inverse * D)

        assert value == pytest.approx(ratio(np.ones(400)), rel=1e-12)
        assert samples.mean() == pytest.approx(value)
        # one more run of a kind moves the score by (contribution - score) / n
        more = [ratio(1 + 1e-6 * (np.arange(400) == k)) for k in range(400)]
        np.testing.assert_allclose(samples - value, 400e6 * (np.array(more) - value), atol=1e-4)
        weight = np.arange(400) % 3
        found, samples = ipcw_tps_score(
            y, X, hazard, score="brier", sample_weight=weight, return_samples=True, **how
        )
        assert found == pytest.approx(ratio(weight), rel=1e-12)
        assert np.average(samples, weights=weight) == pytest.approx(found)


@pytest.mark.parametrize(("regressor", "of_targets"), MODELS)
def test_doubly_robust_contributions_are_those_of_the_book(outlived, regressor, of_targets):
    X, y, stopped, hazard = outlived
    options = {"regressor": regressor, "score": "brier", "return_samples": True}
    value, samples = doubly_robust_tps_score(y, X, hazard, **options)
    N, D = (augmented(X, stopped, g, hazard, of_targets) for g in sums_of_each(y, X, stopped))
    np.testing.assert_allclose(value, N.mean() / D.mean(), rtol=1e-9)
    np.testing.assert_allclose(samples, value + (N - value * D) / D.mean(), rtol=1e-9)
    # as published, a mean over runs
    _, samples = doubly_robust_tps_score(y, X, hazard, **options, **OWN)
    g = np.where(stopped, 0, tps_samples(np.where(stopped, 0, y), X, score="brier", **OWN))
    np.testing.assert_allclose(samples, augmented(X, stopped, g, hazard, of_targets), rtol=1e-9)


def test_no_stop_no_repair_and_row_order_does_not_matter(monitored, rng):
    runs, X, y, stopped = monitored(400, 1)
    order, nobody = rng.permutation(400), np.zeros(400, dtype=bool)
    longer = TrajectoryArray(X.cells, X.lengths, horizon=np.where(stopped, X.lengths, X.horizon))
    hazard, shuffled = hazard_of(X, stopped), hazard_of(X[order], stopped[order])
    by_task = StopHazard(cv=2).fit(X, stopped, groups=np.arange(400) // 4)
    assert np.ptp(by_task.fold_.reshape(-1, 4), axis=1).max() == 0
    for score in (ipcw_tps_score, doubly_robust_tps_score):
        truth = tps_score(runs.final_outcome, runs.data)
        assert score(runs.final_outcome, runs.data) == truth
        assert score(runs.final_outcome, runs.data, hazard_of(runs.data, nobody)) == truth
        plain = score(y, X, hazard)
        np.testing.assert_allclose(score(y[order], X[order], shuffled), plain, rtol=1e-6)
        np.testing.assert_allclose(score(y, X, by_task), plain, atol=0.03)
        # the horizon of a stopped run is not read
        assert score(y, longer, hazard, **OWN) == score(y, X, hazard, **OWN)


def test_budget_stops_keep_their_q(monitored, rng):
    _, X, y, stopped = monitored(400, 2)
    codes = np.where(~stopped & (rng.random(400) < 0.2), -1, y)
    budget, q = (codes == -1) & ~stopped, rng.random(400)
    hazard = hazard_of(X, stopped)
    for score in (ipcw_tps_score, doubly_robust_tps_score):
        same = score(codes, X, hazard, q_z=np.where(budget, y, np.nan))
        np.testing.assert_allclose(same, score(y, X, hazard), rtol=1e-12)
        assert score(codes, X, hazard) == score(codes, X, hazard, q_z=0)
    inverse = np.where(stopped, 0.0, 1 / survival_by_hand(hazard))
    expected = censored_tps_score(codes, X, q_z=q, sample_weight=inverse)
    np.testing.assert_allclose(ipcw_tps_score(codes, X, hazard, q_z=q), expected, rtol=1e-9)


def test_bad_input():
    X, y = np.random.default_rng(0).random((60, 3)), np.where(np.arange(60) < 9, -1, 1)
    y[-1] = 0
    hazard = StopHazard(cv=2).fit(X, np.arange(60) < 5)
    named = TrajectoryArray.from_padded(X).with_horizon(None)
    named = TrajectoryArray(named.cells, named.lengths, ids=[f"r{k}" for k in range(60)])
    turned = StopHazard(cv=2).fit(named[::-1], np.arange(60) < 5)
    late = StopHazard(cv=2).fit(X, np.arange(60) == 30)
    rows = [
        (y, X, hazard, {"q_z": [0.1, 0.2]}, "q_z must be one number or 60"),
        (y, X, hazard, {"q_z": 2}, "row 5: .* q_z is 2"),
        (y, X, hazard, {"return_samples": 2}, "return_samples"),
        (y, X[:, :2], hazard, {}, "history of hazard and traces have 3 and 2 steps"),
        (y, X, late, {}, "row 30: its outcome was observed"),
        (y, named, turned, {}, "row 0 is run 'r59' in the history of hazard, but run 'r0'"),
        (-np.ones(60), X, {}, "all 60 runs were stopped"),
    ]
    for score in (ipcw_tps_score, doubly_robust_tps_score):
        assert not not_refused(score, rows)
        assert not not_refused(score, [(y, X, StopHazard(), {}, "not fitted")], NotFittedError)


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
    assert high - low == pytest.approx(2 * stats.t.ppf(0.95, n - 1) * error)
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


def test_bad_input_of_a_hazard():
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
