import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from any_input import any_two_labels
from trajscore import DensityRatioEProcess
from trajscore import TrajectoryArray as Runs
from trajscore.datasets import make_trajectories
from trajscore.inference.mean_intervals import intervals_of_means
from trajscore.inference.units import any_units
from trajscore.monitoring import (
    CalibratedVerifier,
    FixedStepStop,
    RawVerifier,
    StoppingRule,
    TunedStop,
)
from trajscore.monitoring._persistence import load_fitted, save_fitted
from trajscore.monitoring._thresholds import TIE
from trajscore.monitoring._tuned_stop import _Runs


@pytest.fixture(scope="module")
def runs():
    X, y = make_trajectories(2000, lengths=(2, 9), random_state=1, return_X_y=True)
    return X[:800], y[:800], X[800:], y[800:]


@pytest.fixture(scope="module")
def fitted(runs):
    return TunedStop(cv=2).fit(*runs[:2])


def gain_by_hand(stop, X, y, cost, lost, caught):
    """What stopping at these steps gains a run, run by run."""
    gains = []
    for run, (step, outcome) in enumerate(zip(stop, y, strict=True)):
        saved = sum(cost[run][step:]) if step else 0
        gains.append(saved - (lost if outcome else -caught) if step else 0)
    return np.array(gains)


def test_the_common_face(runs, fitted, rng):
    X, y, X_new, y_new = runs
    assert isinstance(fitted, StoppingRule)
    assert fitted.certified_
    assert fitted.alphas_.tolist() == [0.05]
    assert fitted.step_cost_ == pytest.approx(1 / X.lengths.mean())
    assert 0 < fitted.gain_low_ < fitted.gain_
    steps = fitted.stopping_steps(X_new)
    np.testing.assert_array_equal(fitted.predict(X_new) == 0, steps > 0)
    np.testing.assert_array_equal(fitted.decision_function(X_new) < 0, steps > 0)
    cost = X_new.with_cells(np.full(len(X_new.cells), fitted.step_cost_))
    gains = gain_by_hand(steps, X_new, y_new, cost, 3, 1)
    assert fitted.score(X_new, y_new) == pytest.approx(gains.mean())
    weight = rng.random(len(y_new))
    expected = np.average(gains, weights=weight)
    assert fitted.score(X_new, y_new, weight) == pytest.approx(expected)
    assert fitted.report(X_new, y_new)["threshold"].iloc[0] == fitted.best_threshold_
    assert gains.mean() > fitted.gain_low_
    # a flag at the end earns as much as one that saves a mean run
    assert fitted.rule_.end_worth == pytest.approx(1)
    order = rng.permutation(len(X))
    other = clone(fitted).fit(X[order], y[order])
    np.testing.assert_array_equal(other.stopping_steps(X_new), steps)


def test_the_threshold_gains_most_out_of_fold(runs):
    """With a rule that learns nothing, folds do not matter."""
    X, y, _, _ = runs
    prices = {"lost_success": 2.0, "caught_failure": 0.5, "step_cost": 0.2}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        stop = TunedStop(RawVerifier(), **prices).fit(X, y)
    # the half that was not held out is what the bound was not computed on: find it by the gain
    lowest = np.unique(np.concatenate([np.minimum.accumulate(run) for run in X]))
    cost = X.with_cells(np.full(len(X.cells), 0.2))

    def gains(threshold):
        steps = [next((t for t, p in enumerate(run, 1) if p < threshold), 0) for run in X]
        return gain_by_hand(steps, X, y, cost, 2, 0.5)

    limits = np.r_[lowest[::8], 1.1]
    table = np.array([gains(limit) for limit in limits])
    chosen = gains(-stop.best_threshold_)
    held_out = chosen[np.isin(X.ids, stop_ids(stop, X, y))]
    assert held_out.mean() == pytest.approx(stop.gain_)
    own = ~np.isin(X.ids, stop_ids(stop, X, y))
    assert chosen[own].mean() >= table[:, own].mean(axis=1).max() - 1e-9


def stop_ids(stop, X, y):
    """Ids of the half that is held out, drawn as the fit draws it."""
    from sklearn.model_selection import StratifiedKFold

    from trajscore.core.folds import assign_folds

    seed = np.random.RandomState(stop.random_state).randint(2**31)
    order = np.argsort(X.ids)
    halves = StratifiedKFold(2, shuffle=True, random_state=seed)
    return X.ids[order][assign_folds(halves, X.ids[order], y[order]) == 1]


def test_where_nothing_gains_no_run_is_stopped(runs):
    X, y, X_new, y_new = runs
    with pytest.warns(UserWarning, match="at these prices no threshold gains, so no run will be"):
        stop = TunedStop(RawVerifier(), lost_success=1e6, caught_failure=0).fit(
            X.with_cells(np.random.default_rng(0).random(len(X.cells))), y
        )
    assert not stop.certified_
    assert np.isinf(stop.best_threshold_)
    assert (stop.gain_, stop.gain_low_) == (0, 0)
    assert not stop.stopping_steps(X_new).any()
    assert stop.score(X_new, y_new) == 0
    with pytest.warns(UserWarning, match=r"no threshold is shown to gain .* at least with confid"):
        few = TunedStop(cv=2, lost_success=9).fit(X[:60], y[:60])
    assert np.isfinite(few.best_threshold_)
    assert few.gain_low_ <= 0
    assert not few.stopping_steps(X_new).any()


def test_a_large_share_of_successes_is_named(runs):
    with pytest.warns(UserWarning, match=r"stops \d+% of the runs that would succeed; raise lost_"):
        stop = TunedStop(cv=2, lost_success=0.1).fit(*runs[:2])
    assert stop.certified_


def test_few_thresholds_are_used_that_gain_nothing():
    """Scores that say nothing, at prices at which stopping all at once would just not pay."""
    used = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        X = Runs(rng.random(800), np.full(200, 4), ended=True)
        y = (np.arange(200) % 2).astype(int)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            stop = TunedStop(RawVerifier(), lost_success=2.6, cv=2, random_state=seed).fit(X, y)
        used += stop.certified_
    assert used <= 8  # of 60 at 5% nine come once in 1000


def test_costs_of_steps(runs, fitted):
    X, y, X_new, y_new = runs
    tokens = [runs_.with_cells(np.full(len(runs_.cells), 50.0)) for runs_ in (X, X_new)]
    same = TunedStop(cv=2).fit(X, y, cost=tokens[0])
    assert same.step_cost_ == pytest.approx(fitted.step_cost_ / 50)
    np.testing.assert_array_equal(same.stopping_steps(X_new), fitted.stopping_steps(X_new))
    assert same.score(X_new, y_new, cost=tokens[1]) == pytest.approx(fitted.score(X_new, y_new))
    free = TunedStop(cv=2, step_cost=0).fit(X, y)
    assert free.rule_.end_worth is None
    gains = gain_by_hand(free.stopping_steps(X_new), X_new, y_new, X_new.with_cells(
        np.zeros(len(X_new.cells))), 3, 1)  # fmt: skip
    assert free.score(X_new, y_new) == pytest.approx(gains.mean())


def test_groups_are_held_out_together(runs):
    X, y, _, _ = runs
    stop = TunedStop(cv=2).fit(X, y, groups=np.arange(800) // 4)
    alone = TunedStop(cv=2).fit(X, y, groups=np.arange(800))
    assert stop.gain_ != alone.gain_
    # runs that are given four times are four times as many, but tell no more
    X4 = Runs.concat([X[:200]] * 4)
    X4 = Runs(X4.cells, X4.lengths, ids=np.arange(800), ended=True)
    four = TunedStop(cv=2, lost_success=8)
    groups = np.tile(np.arange(200), 4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        together = four.fit(X4, np.tile(y[:200], 4), groups=groups)
    assert not together.certified_


def test_live_as_in_a_batch(runs, fitted, tmp_path):
    _, _, X_new, _ = runs
    shown = X_new[:40]
    stops = fitted.stopping_steps(shown)
    assert (stops > 0).any()
    monitor = fitted.monitor(state=tmp_path / "state")
    for row, run_id in enumerate(shown.ids.tolist()):
        for t, score in enumerate(shown[row].tolist(), start=1):
            decision = monitor.update(score, run_id, done=t == shown.lengths[row])
            assert decision.flagged == (0 < stops[row] <= t)
    monitor.close()
    _, p_values, steps = fitted.test_.decide(shown, 0.05)
    np.testing.assert_array_equal(steps, stops)
    assert ((p_values > 0) & (p_values <= 1)).all()
    with pytest.raises(ValueError, match="CalibratedVerifier has no live form; take rule=Dens"):
        TunedStop(CalibratedVerifier(), lost_success=4).fit(*runs[:2]).monitor()


def test_it_comes_back_from_a_file(runs, fitted, tmp_path):
    pytest.importorskip("skops")
    save_fitted(fitted, tmp_path / "t.skops")
    again = load_fitted(tmp_path / "t.skops", TunedStop)
    np.testing.assert_array_equal(again.stopping_steps(runs[2]), fitted.stopping_steps(runs[2]))
    monitor = again.monitor()
    assert monitor.update(0.4, "a").log_threshold == pytest.approx(fitted.best_threshold_)


def test_unobserved_outcomes_are_left_out(runs):
    X, y, X_new, y_new = runs
    censored = np.where(np.arange(len(y)) % 5 == 0, -1, y)
    one = TunedStop(cv=2).fit(X, censored)
    other = TunedStop(cv=2).fit(X[censored >= 0], censored[censored >= 0])
    assert one.n_dropped_ == 160
    np.testing.assert_array_equal(one.stopping_steps(X_new), other.stopping_steps(X_new))
    hidden = np.where(np.arange(len(y_new)) < 100, -1, y_new)
    assert one.score(X_new, hidden) == pytest.approx(one.score(X_new[100:], y_new[100:]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lost_success": -1}, "lost_success must be a finite number >= 0, got -1"),
        ({"caught_failure": "a"}, "caught_failure must be a finite number >= 0, got 'a'"),
        ({"step_cost": np.inf}, "step_cost must be a finite number >= 0, got inf"),
        ({"certify": 1}, "certify must lie strictly between 0 and 1, got 1"),
        ({"certify": 0.5}, "certify must be below 0.5, got 0.5"),
        ({"cv": 1}, "cv must be a whole number of at least 2"),
        ({"rule": "last"}, "rule must be a stopping rule, got 'last'"),
    ],
)
def test_bad_parameters(runs, options, message):
    with pytest.raises(ValueError, match=message):
        TunedStop(**options).fit(*runs[:2])


def test_bad_runs(runs, fitted):
    X, y, X_new, _ = runs
    few = np.where(np.cumsum(y) > 3, 0, y)
    for rule, least in ((None, 8), (RawVerifier(), 4)):
        with pytest.raises(
            ValueError, match=f"the runs have 3 successes .* needs at least {least}"
        ):
            TunedStop(rule).fit(X, few)
    with pytest.raises(ValueError, match="all costs are zero; leave cost out"):
        TunedStop().fit(X, y, cost=X.with_cells(0 * X.cells))
    with pytest.raises(ValueError, match="no run with an outcome has a weight"):
        fitted.score(X_new[:3], [-1, 0, 1], [1, 0, 0])


@any_two_labels
class Tuned(TunedStop):
    pass


@parametrize_with_checks(
    [Tuned(CalibratedVerifier(), cv=2), Tuned(FixedStepStop(step=1), cv=2)],
    expected_failed_checks=lambda _: {"check_fit2d_1feature": "of its 10 runs too few succeed"},
)
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings("ignore:what gains most")
def test_a_process_of_ones_own(runs):
    X, y, X_new, _ = runs
    rule = DensityRatioEProcess(alpha=[0.1, 0.3], end_worth=0.3)
    stop = TunedStop(rule, cv=2).fit(X, y)
    assert stop.rule_.alpha == [0.1, 0.3]
    assert stop.test_.alphas == (0.05,)
    assert (stop.stopping_steps(X_new) > 0).any()


@pytest.mark.parametrize("certify", [0.05, 0.2])
def test_a_gain_is_certified_by_its_one_sided_bound(runs, certify):
    X, y, _, _ = runs
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        stop = TunedStop(RawVerifier(), cv=2, certify=certify, lost_success=2).fit(X, y)
        limit = stop.best_threshold_
        stop._certify(limit, _Runs(X, y, X.with_cells(np.ones(len(X.cells))), None))
    statistic = stop.rule_._statistic(X)
    above = [np.flatnonzero(run > limit + TIE) for run in X.with_cells(statistic)]
    steps = np.array([found[0] + 1 if len(found) else 0 for found in above])
    cost = [np.full(len(run), stop.step_cost_) for run in X]
    gains = gain_by_hand(steps, X, y, cost, 2, stop.caught_failure)
    price = 2 + stop.caught_failure
    change = np.where(steps > 0, np.where(y == 1, price, -price), 0) / len(y)
    mean, low, _ = intervals_of_means(
        gains[:, None], [change], any_units(None, len(y)), 1 - 2 * certify
    )
    assert (stop.gain_, stop.gain_low_) == pytest.approx((gains.mean(), low[0]))
    assert mean[0] == pytest.approx(gains.mean())


OF_NONE = "at these prices no threshold gains, so no run will be flagged"
OF_FEW = (
    "no threshold is shown to gain at these prices, so no run will be flagged: the best one gains "
    "0.125 a run, and -0.25 at least with confidence 0.9. Give more runs"
)
OF_MANY = (
    "what gains most at these prices stops 21% of the runs that would succeed; raise lost_success "
    "if a success is worth more"
)


@pytest.mark.parametrize(
    ("limit", "is_certified", "stopped", "said"),
    [
        (np.inf, False, 0.0, OF_NONE),
        (1.0, False, 0.5, OF_FEW),
        (1.0, True, 0.21, OF_MANY),
        (1.0, True, 0.2, None),
        (1.0, True, 0.0, None),
    ],
)
def test_what_is_said_of_a_threshold(limit, is_certified, stopped, said):
    stop = TunedStop(certify=0.1)
    stop.certified_, stop.gain_, stop.gain_low_ = is_certified, 0.125, -0.25
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        stop._warn(limit, stopped)
    assert [str(one.message) for one in caught] == ([] if said is None else [said])
