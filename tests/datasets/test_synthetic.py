"""Made runs: lengths, budgets, and how the signal is made of the true forecast."""

import numpy as np
import pytest
from scipy.special import expit, logit, ndtr, ndtri

from trajscore.datasets import make_trajectories
from trajscore.datasets._synthetic import _draw_lengths


def test_lengths():
    rng = np.random.RandomState(0)
    assert _draw_lengths(3, 4, rng).tolist() == [3] * 4
    assert _draw_lengths([1, 2, 5], 3, rng).tolist() == [1, 2, 5]
    drawn = _draw_lengths((2, 4), 3000, rng)
    np.testing.assert_allclose(np.bincount(drawn)[2:], 1000, atol=100)
    assert _draw_lengths((4, 4), 2, rng).tolist() == [4, 4]
    with pytest.raises(ValueError, match=r"smaller length first, got \(4, 2\); pass \(2, 4\)"):
        _draw_lengths((4, 2), 2, rng)
    with pytest.raises(ValueError, match="a number, a pair, or 2 numbers, got 3"):
        _draw_lengths([1, 2, 5], 2, rng)


def test_the_signal_is_the_log_odds_of_the_truth_scaled_and_shifted():
    options = {"lengths": (1, 5), "random_state": 0}
    plain = make_trajectories(50, **options)
    np.testing.assert_allclose(plain.data.cells, plain.q.cells, atol=1e-11)
    made = make_trajectories(50, sharpness=2, bias=-0.5, **options)
    np.testing.assert_array_equal(made.q.cells, plain.q.cells)
    np.testing.assert_allclose(made.data.cells, expit(2 * logit(plain.q.cells) - 0.5), rtol=1e-9)
    noisy = make_trajectories(2000, noise=0.7, **options)
    noise = logit(noisy.data.cells) - logit(noisy.q.cells)
    assert noise.mean() == pytest.approx(0, abs=0.05)
    assert noise.std() == pytest.approx(0.7, abs=0.03)


@pytest.mark.parametrize("information", [0.3, 0.6])
def test_each_step_shows_an_equal_part_of_the_information(information):
    runs = make_trajectories(4000, lengths=4, base_rate=0.3, information=information,
                             random_state=0)  # fmt: skip
    steps = runs.q.cells.reshape(-1, 4)
    seen = ndtri(steps) * np.sqrt(1 - information * np.arange(1, 5) / 4) + ndtri(0.7)
    increments = np.diff(seen, axis=1, prepend=0)
    np.testing.assert_allclose(increments.var(axis=0), information / 4, rtol=0.1)
    np.testing.assert_allclose(np.corrcoef(increments.T), np.eye(4), atol=0.06)
    assert runs.target.mean() == pytest.approx(0.3, abs=0.03)
    last = steps[:, -1]
    for low, high in ((0, 0.2), (0.2, 0.5), (0.5, 1)):
        here = (last >= low) & (last < high)
        assert runs.target[here].mean() == pytest.approx(last[here].mean(), abs=0.05)


def test_a_budget_cuts_runs_whose_outcome_stays_known_elsewhere():
    whole = make_trajectories(60, lengths=(2, 6), random_state=1)
    cut = make_trajectories(60, lengths=(2, 6), budget=4, random_state=1)
    lengths = whole.data.lengths
    assert cut.data.lengths.tolist() == np.minimum(lengths, 4).tolist()
    assert cut.data.horizon.tolist() == lengths.tolist()
    assert cut.data.ended.tolist() == (lengths <= 4).tolist()
    assert cut.target.tolist() == np.where(lengths > 4, -1, whole.target).tolist()
    assert cut.final_outcome.tolist() == whole.target.tolist()
    np.testing.assert_array_equal(cut.q.cells, whole.q.prefix(4).cells)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"base_rate": 1}, "base_rate"), ({"information": 0}, "information"),
        ({"noise": -0.1}, "noise must be a standard deviation of at least 0, got -0.1"),
        ({"bias": np.inf}, "bias must be one finite number, got inf"),
        ({"sharpness": [1, 2]}, r"sharpness must be one finite number, got \[1, 2\]"),
        ({"budget": 0}, "budget"), ({"lengths": 0}, "lengths"), ({"n_runs": 0}, "n_runs"),
    ],
)  # fmt: skip
def test_parameters_out_of_range(options, problem):
    with pytest.raises(ValueError, match=problem):
        make_trajectories(**{"n_runs": 3} | options)


def test_data_alone():
    X, y = make_trajectories(5, random_state=0, return_X_y=True)
    both = make_trajectories(5, random_state=0)
    assert both.data == X
    assert y.tolist() == both.target.tolist()


@pytest.mark.parametrize("lengths", [[1, 2, 3], [4]])
def test_the_truth_is_that_of_the_walk_that_was_drawn(lengths):
    information, rate, n = 0.6, 0.3, len(lengths)
    made = make_trajectories(n, lengths=lengths, base_rate=rate, information=information,
                             random_state=5)  # fmt: skip
    rng, threshold = np.random.RandomState(5), ndtri(1 - rate)
    drawn = rng.standard_normal(sum(lengths)).tolist()
    rest = rng.standard_normal(n) * np.sqrt(1 - information)
    for run, length in enumerate(lengths):
        seen = 0.0
        for step in range(1, length + 1):
            seen += drawn.pop(0) * np.sqrt(information / length)
            left = 1 - information * step / length
            expected = ndtr((seen - threshold) / np.sqrt(left))
            assert made.q[run][step - 1] == pytest.approx(expected, rel=1e-12)
        assert made.target[run] == (seen + rest[run] > threshold)


def test_what_is_made_unasked():
    made = make_trajectories(random_state=3)
    asked = make_trajectories(
        200, lengths=(3, 12), base_rate=0.5, information=0.6, sharpness=1, bias=0, noise=0,
        budget=None, random_state=3, return_X_y=False,
    )  # fmt: skip
    assert (made.data, made.q) == (asked.data, asked.q)
    assert made.target.tolist() == asked.target.tolist() == made.final_outcome.tolist()
    assert (made.data.lengths.min(), made.data.lengths.max(), len(made.data)) == (3, 12, 200)


def test_noise_is_added_to_the_log_odds_that_were_drawn():
    options = {"lengths": [1, 3], "random_state": 4, "sharpness": 2.0, "bias": 0.5}
    plain, noisy = make_trajectories(2, **options), make_trajectories(2, noise=0.7, **options)
    rng = np.random.RandomState(4)
    rng.standard_normal(4 + 2)
    noise = 0.7 * rng.standard_normal(4)
    assert noisy.q == plain.q
    expected = 2 * logit(plain.q.cells) + 0.5 + noise
    np.testing.assert_allclose(logit(noisy.data.cells), expected, rtol=1e-9)


@pytest.mark.parametrize("lengths", [(2, 3, 4), [2, 3, 4], np.array([2, 3, 4])])
def test_a_tuple_of_more_than_two_lengths_is_one_for_each_run(lengths):
    made = make_trajectories(3, lengths=lengths, random_state=0)
    assert made.data.lengths.tolist() == [2, 3, 4]
    with pytest.raises(ValueError, match="a number, a pair, or 2 numbers, got 3"):
        make_trajectories(2, lengths=lengths)


def test_both_ends_of_a_pair_are_drawn():
    drawn = _draw_lengths((1, 2), 50, np.random.RandomState(0))
    assert (sorted(set(drawn.tolist())), drawn.dtype) == ([1, 2], np.int64)


def test_a_budget_may_be_just_the_longest_run():
    options = {"lengths": [2, 4], "random_state": 0}
    for budget, cut in ((5, []), (4, []), (3, [1]), (2, [1]), (1, [0, 1])):
        made = make_trajectories(2, budget=budget, **options)
        assert np.flatnonzero(made.target == -1).tolist() == cut
        assert np.flatnonzero(~made.data.ended).tolist() == cut


def test_a_signal_is_never_certain():
    made = make_trajectories(60, lengths=1, information=1 - 1e-9, random_state=0)
    assert (made.q.cells.min(), made.q.cells.max()) == (0, 1)
    np.testing.assert_allclose(made.data.cells.min(), 1e-12, rtol=1e-6)
    np.testing.assert_allclose(1 - made.data.cells.max(), 1e-12, rtol=1e-3)
