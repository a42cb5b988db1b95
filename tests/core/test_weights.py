import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trajscore.core.weights import WEIGHT_SCHEDULES, get_schedule, schedule_name, step_weights

FORMULAS = {
    "linear_front": lambda t, T: 2 * (T - t + 1) / (T * (T + 1)),
    "uniform": lambda t, T: np.full(len(t), 1 / T),
    "exponential_front": lambda t, T: 2.0 ** -(t - 1) / (2 * (1 - 2.0**-T)),
    "linear_back": lambda t, T: 2 * t / (T * (T + 1)),
}


@pytest.mark.parametrize("name", WEIGHT_SCHEDULES)
@given(lengths=st.lists(st.integers(1, 40), min_size=1, max_size=6))
def test_formulas_and_sum(name, lengths):
    weights = step_weights(lengths, weights=name)
    expected = [FORMULAS[name](np.arange(1.0, T + 1), T) for T in lengths]
    np.testing.assert_allclose(weights, np.concatenate(expected), rtol=1e-14)
    sums = np.add.reduceat(weights, np.cumsum([0, *lengths[:-1]]))
    np.testing.assert_allclose(sums, 1, rtol=1e-13)
    assert (weights > 0).all()


@pytest.mark.parametrize("name", WEIGHT_SCHEDULES)
def test_a_cut_run_keeps_its_first_weights(name):
    np.testing.assert_array_equal(
        step_weights([3, 2], horizon=[7, 5], weights=name),
        np.concatenate([step_weights([7], weights=name)[:3], step_weights([5], weights=name)[:2]]),
    )


def test_callable():
    def falling(T):
        return [1 / t for t in range(1, T + 1)]

    # divided by their sum over the horizon
    expected = [6 / 11, 3 / 11, 1]
    np.testing.assert_allclose(step_weights([2, 1], [3, 1], weights=falling), expected)
    assert schedule_name(falling) == "falling"


def test_a_function_is_a_schedule_whatever_its_sum():
    def scaled(T):
        return 7.5 * np.arange(T, 0, -1)

    lengths = [4, 1, 9, 4]
    np.testing.assert_allclose(
        step_weights(lengths, weights=scaled), step_weights(lengths, weights="linear_front")
    )


def test_zeros_are_warned_of_once():
    def first_only(T):
        return np.eye(T)[0]

    with pytest.warns(UserWarning, match=r"weights\(2\) are zero at step 2: .*Theorem 4.1") as seen:
        weights = step_weights([2, 1, 3], [3, 2, 3], weights=first_only)
    assert weights.tolist() == [1, 0, 1, 1, 0, 0]
    assert len(seen) == 1


def test_a_function_is_asked_once_for_each_horizon():
    asked = []

    def uniform(T):
        asked.append(T)
        return np.ones(T)

    schedule = get_schedule(uniform)
    for _ in range(2):
        schedule.cell_ramp(np.array([0, 3]), np.array([3, 2]), np.array([3.0, 5.0]))
    assert asked == [3, 5]


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ("front", "unknown weights 'front'; use one of linear_front"),
        (lambda T: np.ones(T + 1), r"weights\(2\) must be 2 finite numbers"),
        (lambda T: -np.ones(T), "none negative"),
        (lambda T: np.zeros(T), "all zero"),
        (np.ones(4) / 4, "unknown weights of type ndarray; use one of"),
        ([0.5, 0.5], "unknown weights of type list"),
        (None, "unknown weights None"),
    ],
)
def test_refused(weights, message):
    with pytest.raises(ValueError, match=message):
        step_weights([2], weights=weights)


@pytest.mark.parametrize(
    ("lengths", "horizon", "message"),
    [
        ([3], [2], "row 0: horizon 2 is shorter than the run's 3 steps"),
        ([3], [4, 5], "horizon must be 1 whole numbers"),
        ([3], [4.5], "horizon must be 1 whole numbers"),
        ([1.5], None, "lengths must be whole numbers"),
        (["a"], None, "lengths must be whole numbers"),
        (3, None, "lengths must be whole numbers"),
        ([2, 0], None, "row 1 has no steps"),
        ([-1], None, "row 0 has no steps"),
    ],
)
def test_lengths_and_horizons_are_checked(lengths, horizon, message):
    with pytest.raises(ValueError, match=message):
        step_weights(lengths, horizon)
