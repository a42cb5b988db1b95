"""What counting steps is worth: rates among the runs that are still going."""

import numpy as np
import pytest

from followed import followed
from known_scores import steps_of
from trajscore import TrajectoryArray
from trajscore.calibration import AliveRate


@pytest.fixture(scope="module")
def runs():
    """Runs of 1 to 30 steps, of which short ones succeed more often."""
    rng = np.random.default_rng(0)
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


@pytest.mark.parametrize("end", [None, "step"])
def test_rates_are_those_of_the_runs_that_are_still_going(runs, end):
    X, y = runs
    for prior, weight in ((0.5, None), (5.0, None), (5.0, np.arange(300) % 3)):
        going, ended = rates_by_hand(X.lengths, y, prior, end, weight)
        fitted = AliveRate(end=end, prior=prior).fit(X, y, sample_weight=weight)
        for run, n in zip(fitted.transform(X), X.lengths.tolist(), strict=True):
            expected = [going[t] for t in range(1, n + 1)]
            expected[-1] = ended[n] if end else going[n]
            np.testing.assert_allclose(run, expected, rtol=1e-12)
    # of a run that has not ended, and of steps beyond the training runs
    first = X.prefix(1)
    assert fitted.transform(first).cells == pytest.approx(going[1])
    assert fitted.transform(first.padded())[:, 0] == pytest.approx(going[1])
    one_step = fitted.transform(first.with_ended(True)).cells
    assert one_step == pytest.approx(ended[1] if end else going[1])
    long = fitted.transform([[0.5] * 99])[0]
    assert (long[30:] == long[29]).all()


def test_in_fitting_a_budget_stops_no_run_that_it_ends(runs):
    X, y = runs
    over = X.lengths > 5
    cut, codes = X.prefix(5), np.where(over, -1, y)
    fitted = AliveRate(end="step").fit(cut, codes)
    failed_if_cut = np.where(over, 0, y)
    rate = failed_if_cut.mean()
    for t in range(1, 6):
        on = (X.lengths > t) if t < 5 else over
        rate = (failed_if_cut[on].sum() + 5 * rate) / (on.sum() + 5)
    assert fitted.going_[5] == pytest.approx(rate)
    # whichever of the two says who has ended
    same = AliveRate(end="step").fit(cut.with_ended(~over), np.maximum(codes, 0))
    assert same.going_.tolist() == fitted.going_.tolist()
    assert same.ended_.tolist() == fitted.ended_.tolist()


def test_step_weights_tilt_rates_only_where_they_depend_on_the_length(runs):
    X, y = runs
    plain = AliveRate().fit(X, y).transform(X)
    first, T = steps_of(X) < 10, X.lengths
    for weights in ("early", "linear_back", np.sqrt):
        same = AliveRate(weights=weights).fit(X, y).transform(X)
        np.testing.assert_allclose(same.cells[first], plain.cells[first], rtol=1e-12)
    tilted = AliveRate(prior=1e-9, weights="linear_front", horizon="own").fit(X, y).transform(X)
    for t in (1, 2, 5):
        w = np.where(t <= T, 2 * (T - t + 1) / (T * (T + 1)), 0.0)
        expected = np.average(y, weights=w)
        assert tilted.cells[steps_of(X) == t] == pytest.approx(expected, abs=1e-8)
    # steps that weigh nothing have the rate before them
    fitted = AliveRate(weights="linear_front", horizon=6).fit(X, y)
    np.testing.assert_allclose(fitted.going_[:7], AliveRate().fit(X, y).going_[:7])
    np.testing.assert_allclose(fitted.going_[7:], fitted.going_[6])
    # a bin of which little weighs still counts its runs
    few = TrajectoryArray(np.full(4, 0.5), [2, 1, 1], ended=True)
    found = AliveRate(prior=1.0, weights="exponential_front").fit(few, np.array([1, 0, 0]))
    rate = (1 + 1 / 3) / (3 + 1)
    np.testing.assert_allclose(found.going_, [1 / 3, rate, (1 + rate) / (1 + 1)])


@pytest.mark.parametrize("end", [None, "step"])
def test_live_rates_are_those_of_whole_runs_whatever_the_scores(runs, end):
    X, y = runs
    cells = np.stack([X.cells, np.where(steps_of(X) == 2, np.nan, 7.0)], axis=1)
    other = X.with_cells(cells, channels=["a", "b"])
    whole, fitted = AliveRate(end=end).fit(X, y).transform(X), AliveRate(end=end).fit(other, y)
    assert fitted.transform(other).cells.tolist() == whole.cells.tolist()
    assert fitted.transform(other).channels == ("probability",)
    assert followed(fitted, other).tolist() == whole.cells.tolist()


def test_bad_parameters(runs):
    X, y = runs
    codes = np.where(np.arange(300) < 9, -1, y)
    for how, outcomes, words in (
        ({"end": "after"}, codes, "end .*'after'"),
        ({"prior": 0}, codes, "prior .*0"),
        ({"prior": np.inf}, codes, "prior .*inf"),
        ({"censored": "q_z"}, codes, "q_z"),
        ({"weights": "linear_front"}, codes, "horizon="),
        ({"censored": "drop"}, np.full(300, -1), "no training run counts"),
    ):
        with pytest.raises(ValueError, match=words):
            AliveRate(**how).fit(X, outcomes)
