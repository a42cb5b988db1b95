"""What counting steps is worth: rates among the runs that are still going."""

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from any_input import any_two_labels
from trajscore import TrajectoryArray
from trajscore.calibration import AliveRate, cross_fit_traces
from trajscore.calibration.forecaster import Chain, live_form
from trajscore.datasets import make_trajectories
from trajscore.metrics import tps_score
from trajscore.testing._estimator_checks import check_trajectory_estimator


@pytest.fixture
def runs(rng):
    """Runs of 1 to 30 steps, of which short ones succeed more often."""
    lengths = rng.integers(1, 31, 300)
    y = (rng.random(300) < np.exp(-lengths / 8)).astype(int)
    return TrajectoryArray(rng.random(lengths.sum()), lengths, ended=True), y


# steps 1 to 9 each have a rate, later ones share it with those that are up to a tenth longer
BINS = [range(t, t + 1) for t in range(1, 10)]
BINS += [range(10, 12), range(12, 14), range(14, 16), range(16, 18), range(18, 20), range(20, 23)]
BINS += [range(23, 26), range(26, 29), range(29, 32)]


def rates_by_hand(lengths, y, prior=5.0, end=None, weight=None):
    """Rates at steps 1, 2, ..., of runs that go on and of runs that end there."""
    weight = np.ones(len(y)) if weight is None else weight
    rate, longest = np.average(y, weights=weight), lengths.max()
    going, ended = {}, {}
    for steps in BINS:
        there = [t for t in steps if t <= longest]
        if not there:
            break
        alive = [lengths > t if end else lengths >= t for t in there]
        n = np.mean([weight[rows].sum() for rows in alive])
        won = np.mean([(weight * y)[rows].sum() for rows in alive])
        rate = (won + prior * rate) / (n + prior)
        last = np.isin(lengths, there)
        at_end = ((weight * y)[last].sum() + prior * rate) / (weight[last].sum() + prior)
        going |= dict.fromkeys(there, rate)
        ended |= dict.fromkeys(there, at_end)
    return going, ended


def steps_of(X):
    return np.concatenate([np.arange(1, n + 1) for n in X.lengths])


@pytest.mark.parametrize("prior", [0.5, 5.0])
def test_is_the_success_rate_of_the_runs_that_are_still_going(runs, prior):
    X, y = runs
    going, _ = rates_by_hand(X.lengths, y, prior)
    F = AliveRate(prior=prior).fit(X, y).transform(X)
    np.testing.assert_allclose(F.cells, [going[t] for t in steps_of(X)], rtol=1e-12)
    # at the first steps, where runs are many, that is all there is to it
    plain = AliveRate(prior=1e-9).fit(X, y).transform(X)
    for t in (1, 4, 9):
        rate = y[X.lengths >= t].mean()
        np.testing.assert_allclose(plain.cells[steps_of(X) == t], rate, atol=1e-9)


@pytest.mark.parametrize("prior", [0.5, 5.0])
def test_where_the_end_is_known_runs_that_end_have_a_rate_of_their_own(runs, prior):
    X, y = runs
    going, ended = rates_by_hand(X.lengths, y, prior, end="step")
    F = AliveRate(end="step", prior=prior).fit(X, y).transform(X)
    for row in range(len(X)):
        n = int(X.lengths[row])
        expected = [going[t] for t in range(1, n)] + [ended[n]]
        np.testing.assert_allclose(F[row], expected, rtol=1e-12)


def test_a_run_that_has_not_ended_gets_the_rate_of_those_that_go_on(runs):
    X, y = runs
    fitted = AliveRate(end="step").fit(X, y)
    going, ended = rates_by_hand(X.lengths, y, end="step")
    first = X.prefix(1)
    assert fitted.transform(first).cells == pytest.approx(going[1])
    assert fitted.transform(first.padded())[:, 0] == pytest.approx(going[1])
    assert fitted.transform(first.with_ended(True)).cells == pytest.approx(ended[1])


def test_in_fitting_a_budget_stops_no_run_that_it_ends(runs):
    X, y = runs
    over = X.lengths > 5
    cut, codes = X.prefix(5), np.where(over, -1, y)
    fitted = AliveRate(end="step").fit(cut, codes)
    rate = failed_if_cut = np.where(over, 0, y).mean()
    for t in range(1, 6):
        on = (X.lengths > t) if t < 5 else over
        rate = (np.where(over, 0, y)[on].sum() + 5 * rate) / (on.sum() + 5)
    assert fitted.going_[5] == pytest.approx(rate)
    assert rate < failed_if_cut
    # whichever of the two says who has ended
    same = AliveRate(end="step").fit(cut.with_ended(~over), np.maximum(codes, 0))
    assert same.going_.tolist() == fitted.going_.tolist()
    assert same.ended_.tolist() == fitted.ended_.tolist()


def test_weights_of_runs_are_so_many_runs(runs, rng):
    X, y = runs
    weight = rng.integers(0, 3, len(y))
    rows = np.repeat(np.arange(len(y)), weight)
    longest = X.lengths[weight > 0].max()
    for end in (None, "step"):
        weighted = AliveRate(end=end).fit(X, y, sample_weight=weight)
        repeated = AliveRate(end=end).fit(X[rows], y[rows])
        short = X[X.lengths <= longest]
        np.testing.assert_allclose(
            weighted.transform(short).cells, repeated.transform(short).cells, rtol=1e-12
        )
        going, _ = rates_by_hand(X.lengths, y, end=end, weight=weight)
        np.testing.assert_allclose(weighted.going_[1:10], [going[t] for t in range(1, 10)])


def test_steps_beyond_the_training_runs_have_the_last_rate(runs):
    X, y = runs
    F = AliveRate().fit(X, y).transform([[0.5] * 99])[0]
    assert (F[30:] == F[29]).all()
    assert F[29] < F[8]


def test_step_weights_tilt_rates_only_where_they_depend_on_the_length(runs):
    X, y = runs
    plain = AliveRate().fit(X, y).transform(X)
    for weights in ("early", "linear_back", np.sqrt):
        same = AliveRate(weights=weights).fit(X, y).transform(X)
        np.testing.assert_allclose(same.cells, plain.cells, atol=0.01)
        first = steps_of(X) < 10
        np.testing.assert_allclose(same.cells[first], plain.cells[first], rtol=1e-12)
    tilted = AliveRate(prior=1e-9, weights="linear_front", horizon="own").fit(X, y).transform(X)
    T = X.lengths
    for t in (1, 2, 5):
        w = np.where(t <= T, 2 * (T - t + 1) / (T * (T + 1)), 0.0)
        expected = np.average(y, weights=w)
        assert tilted.cells[steps_of(X) == t] == pytest.approx(expected, abs=1e-8)
        assert expected > y[t <= T].mean() + 0.01  # towards how short runs end


def test_steps_that_weigh_nothing_have_the_rate_before_them(runs):
    X, y = runs
    fitted = AliveRate(weights="linear_front", horizon=6).fit(X, y)
    np.testing.assert_allclose(fitted.going_[:7], AliveRate().fit(X, y).going_[:7])
    np.testing.assert_allclose(fitted.going_[7:], fitted.going_[6])


@pytest.mark.parametrize("end", [None, "step"])
def test_live_rates_are_those_of_whole_runs(runs, end):
    X, y = runs
    fitted = AliveRate(end=end).fit(X, y)
    live, whole = live_form(fitted, 1), fitted.transform(X)
    assert isinstance(live, Chain)
    state, rows = live.begin(len(X)), np.arange(len(X))
    for t in range(1, int(X.lengths.max()) + 1):
        ends = X.lengths[rows] == t
        scores = [X[int(row)][t - 1] for row in rows]
        state, p = live.advance(state, np.array(scores)[:, None], ends)
        assert p.tolist() == [whole[int(row)][t - 1] for row in rows]
        rows = rows[~ends]


def test_scores_are_not_read_and_may_be_missing_or_many(runs):
    X, y = runs
    F = AliveRate().fit(X, y).transform(X)
    cells = np.stack([X.cells, np.where(steps_of(X) == 2, np.nan, 7.0)], axis=1)
    other = X.with_cells(cells, channels=["a", "b"])
    fitted = AliveRate().fit(other, y)
    found = fitted.transform(other)
    assert found.cells.tolist() == F.cells.tolist()
    assert found.channels == F.channels == ("probability",)
    _, p = fitted.advance(fitted.begin(2), [[np.nan, 7.0], [0.5, np.nan]])
    assert p.tolist() == [F.cells[0]] * 2


def test_what_censored_runs_are(runs):
    X, y = runs
    codes = np.where(np.arange(300) < 60, -1, y)
    failures = AliveRate().fit(X, codes)
    zeros = AliveRate().fit(X, np.maximum(codes, 0))
    assert failures.going_.tolist() == zeros.going_.tolist()
    dropped, rest = AliveRate(censored="drop").fit(X, codes), AliveRate().fit(X[60:], y[60:])
    shared = min(len(dropped.going_), len(rest.going_))
    np.testing.assert_allclose(dropped.going_[:shared], rest.going_[:shared])
    half = AliveRate().fit(X, np.where(y == 1, 0.5, 0.0)).going_
    np.testing.assert_allclose(half, AliveRate().fit(X, y).going_ / 2)


def test_out_of_fold_it_beats_the_constant_where_length_tells(rng):
    y = np.arange(400) % 2
    lengths = np.where(y == 1, rng.integers(1, 11, 400), rng.integers(5, 20, 400))
    X = TrajectoryArray(np.full(lengths.sum(), 0.5), lengths, ended=True)
    alive, with_end = (cross_fit_traces(AliveRate(end=end), X, y) for end in (None, "step"))
    base = np.average(np.repeat(y, lengths), weights=1 / np.sqrt(steps_of(X)))
    constant = tps_score(y, X.with_cells(np.full(len(X.cells), base)))
    assert constant + 0.05 < tps_score(y, alive) < tps_score(y, with_end) - 0.02
    order = rng.permutation(400)
    again = cross_fit_traces(AliveRate(), X[order], y[order])
    assert again.cells.tolist() == alive[order].cells.tolist()


def test_no_success_is_no_certain_failure():
    F = AliveRate().fit([[0.5, 0.5]] * 4, [0, 0, 0, 0]).transform([[0.5, 0.5]])
    assert (F == 1e-6).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"end": "after"}, "end must be 'step' or None, got 'after'"),
        ({"prior": 0}, "prior must be a positive number of runs, got 0"),
        ({"prior": np.inf}, "prior must be a positive number of runs, got inf"),
        ({"censored": "q_z"}, "q_z"),
        ({"weights": "linear_front"}, "give horizon=30"),
    ],
)
def test_bad_parameters(runs, options, message):
    X, y = runs
    with pytest.raises(ValueError, match=message):
        AliveRate(**options).fit(X, np.where(np.arange(300) < 9, -1, y))


def test_runs_of_which_none_counts(runs):
    X, y = runs
    with pytest.raises(ValueError, match="no training run counts"):
        AliveRate(censored="drop").fit(X, np.where(y == 1, -1, y), sample_weight=y)
    with pytest.raises(ValueError, match="no training run counts"):
        AliveRate(censored="drop").fit(X, np.full(300, -1))


@pytest.mark.parametrize("end", [None, "step"])
def test_public_checks(end):
    assert len(check_trajectory_estimator(AliveRate(end=end))) == 10
    check_trajectory_estimator(AliveRate(end=end), channels=["a", "b"])


@any_two_labels
class AnyAliveRate(AliveRate):
    pass


@parametrize_with_checks([AnyAliveRate()])
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn(estimator, check):
    check(estimator)


def test_lengths_alone_are_what_it_knows():
    X, y = make_trajectories(200, lengths=5, random_state=0, return_X_y=True)
    np.testing.assert_allclose(AliveRate().fit(X, y).transform(X).cells, y.mean())


def test_a_bin_of_which_little_weighs_still_counts_its_runs():
    X = TrajectoryArray(np.full(4, 0.5), [2, 1, 1], ended=True)
    weights = "exponential_front"  # 1/2 at step 2
    found = AliveRate(prior=1.0, weights=weights).fit(X, np.array([1, 0, 0]))
    first = (1 + 1 / 3) / (3 + 1)
    np.testing.assert_allclose(found.going_, [1 / 3, first, (1 + first) / (1 + 1)])  # 0 has no runs
