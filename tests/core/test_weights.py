import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trajscore import TrajectoryArray
from trajscore.core.weights import (
    WEIGHT_SCHEDULES,
    RunWeights,
    as_step_weights,
    schedules_of,
    step_weights,
)

# w_t, of the step's number alone; linear_front has none without a horizon
STEP = {
    "early": lambda t: t**-0.5,
    "uniform": np.ones_like,
    "exponential_front": lambda t: 2.0 ** (1 - t),
    "linear_back": lambda t: t,
}
# w_t over a horizon H, as the paper writes them
OVER = {
    "early": lambda t, H: t**-0.5 / (np.arange(1, H + 1) ** -0.5).sum(),
    "uniform": lambda t, H: np.full(len(t), 1 / H),
    "linear_front": lambda t, H: 2 * (H - t + 1) / (H * (H + 1)),
    "exponential_front": lambda t, H: 2.0 ** -(t - 1) / (2 * (1 - 2.0**-H)),
    "linear_back": lambda t, H: 2 * t / (H * (H + 1)),
}
many_lengths = st.lists(st.integers(1, 40), min_size=1, max_size=6)


def of_runs(formula, lengths):
    """Weights of the steps of some runs, run after run."""
    return np.concatenate([formula(np.arange(1.0, T + 1), T) for T in lengths])


def test_names():
    assert set(WEIGHT_SCHEDULES) == set(OVER)
    assert as_step_weights().name == "early"
    assert as_step_weights("uniform", 30).name == "uniform, horizon=30"


@pytest.mark.parametrize("name", STEP)
@given(lengths=many_lengths)
def test_a_weight_depends_on_the_number_of_the_step_alone(name, lengths):
    expected = of_runs(lambda t, _: STEP[name](t), lengths)
    np.testing.assert_allclose(step_weights(lengths, name), expected, rtol=1e-14)


@pytest.mark.parametrize("name", OVER)
@given(lengths=many_lengths, horizon=st.integers(1, 90))
def test_weights_over_a_horizon_add_up_to_one_and_are_zero_beyond_it(name, lengths, horizon):
    expected = of_runs(lambda t, _: OVER[name](t, horizon) * (t <= horizon), lengths)
    np.testing.assert_allclose(step_weights(lengths, name, horizon), expected, rtol=1e-12)
    assert step_weights([horizon + 7], name, horizon).sum() == pytest.approx(1, rel=1e-12)


@pytest.mark.parametrize("name", OVER)
@given(lengths=many_lengths)
def test_weights_over_the_own_horizon_add_up_to_one_in_each_run(name, lengths):
    weights = step_weights(lengths, name, "own")
    np.testing.assert_allclose(weights, of_runs(OVER[name], lengths), rtol=1e-13)
    sums = np.add.reduceat(weights, np.cumsum([0, *lengths[:-1]]))
    np.testing.assert_allclose(sums, 1, rtol=1e-13)
    assert (weights > 0).all()


@pytest.mark.parametrize("horizon", [1, 63, 64, 65, 1000, 10**6])
def test_the_sum_of_early_weights_over_long_horizons(horizon):
    expected = 1 / (np.arange(1, horizon + 1) ** -0.5).sum()
    assert step_weights([1], "early", horizon)[0] == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("name", OVER)
def test_a_run_that_was_cut_keeps_the_first_weights_of_its_own_horizon(name):
    whole = [step_weights([T], name, "own") for T in (7, 5)]
    cut = step_weights([3, 2], name, horizon=[7, 5])
    np.testing.assert_array_equal(cut, np.concatenate([whole[0][:3], whole[1][:2]]))


def falling(step):
    return 7.5 / step


def test_a_function_takes_the_array_of_step_numbers():
    lengths = [4, 1, 9, 4]
    expected = of_runs(lambda t, _: 7.5 / t, lengths)
    np.testing.assert_allclose(step_weights(lengths, falling), expected)
    over = of_runs(lambda t, _: (t <= 3) / t / (1 + 1 / 2 + 1 / 3), lengths)
    np.testing.assert_allclose(step_weights(lengths, falling, 3), over)
    long = of_runs(lambda t, _: 1 / t / sum(1 / k for k in range(1, 13)), lengths)
    np.testing.assert_allclose(step_weights(lengths, falling, 12), long)
    assert as_step_weights(falling, 3).name == "falling, horizon=3"


def test_a_function_over_the_own_horizon_takes_a_number_of_steps():
    def down_to_one(T):
        return 7.5 * np.arange(T, 0, -1)

    def as_a_list(T):
        return [1 / t for t in range(1, T + 1)]

    lengths = [4, 1, 9, 4]
    np.testing.assert_allclose(
        step_weights(lengths, down_to_one, "own"), step_weights(lengths, "linear_front", "own")
    )
    np.testing.assert_allclose(step_weights([2, 1], as_a_list, [3, 1]), [6 / 11, 3 / 11, 1])


def test_a_function_over_the_own_horizon_is_asked_once_for_each():
    asked = []

    def uniform(T):
        asked.append(T)
        return np.ones(T)

    of_both = RunWeights(as_step_weights(uniform, "own"), np.array([3, 2]), [3, 5])
    for _ in range(2):
        of_both.cells()
    assert asked == [3, 5]


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda t: t / t.sum(), "gives step 1 0.0222222 among 9 steps and 0.0666667 among 5"),
        (lambda t: len(t) + 1 - t, "gives step 1 9 among 9 steps and 5 among 5"),
        (lambda t: t.max() - t + 1.0, "a function of a run's length needs horizon='own'"),
        # the same at first
        (lambda t: np.where(t > 2, len(t), 1), "gives step 3 9 among 9 steps and 5 among 5"),
    ],
)
def test_a_function_of_the_number_of_steps_is_refused(function, message):
    with pytest.raises(ValueError, match="weights must depend on the step alone") as error:
        step_weights([4, 9], function)
    assert message in str(error.value)


def test_zeros_are_warned_of_once():
    message = "weights for steps 1 to 3 are zero at step 2: .*Theorem 4.1"
    with pytest.warns(UserWarning, match=message) as seen:
        weights = step_weights([2, 1, 3], lambda t: (t == 1) * 4.0)
    assert weights.tolist() == [4, 0, 4, 4, 0, 0]
    assert len(seen) == 1
    with pytest.warns(UserWarning, match="weights for steps 1 to 5 are zero at step 2") as seen:
        weights = step_weights([2, 1, 3], lambda t: (t == 1) * 4.0, 5)
    assert weights.tolist() == [1, 0, 1, 1, 0, 0]
    assert len(seen) == 1
    with pytest.warns(UserWarning, match="weights for a horizon of 2 are zero at step 2") as seen:
        weights = step_weights([2, 1, 3], lambda T: np.eye(T)[0], [3, 2, 3])
    assert weights.tolist() == [1, 0, 1, 1, 0, 0]
    assert len(seen) == 1


def test_the_first_steps_may_weigh_nothing():
    with pytest.warns(UserWarning, match="weights for steps 1 to 9 are zero at step 1"):
        weights = step_weights([9, 2], lambda t: t >= 8)
    assert weights.tolist() == [*[0] * 7, 1, 1, 0, 0]


@pytest.mark.parametrize("name", ["early", "uniform", falling])
def test_no_runs_have_no_weights(name):
    assert step_weights(np.empty(0, dtype=int), name).tolist() == []


def test_what_runs_weigh():
    X = TrajectoryArray.from_list([[0.5, 0.5, 0.5], [0.5]], horizon=[4, 1])
    y, run_weight = np.array([0.0, 1.0]), np.array([1.0, 3.0])
    early = as_step_weights().of(X)
    three = 1 + 2**-0.5 + 3**-0.5
    np.testing.assert_allclose(early.total, [three, 1])
    np.testing.assert_allclose(early.divisor(), [three, 1])
    assert early.divisor(normalize=False).tolist() == [1, 1]
    assert early.rate(y) == pytest.approx(1 / (three + 1))
    assert early.rate(y, run_weight) == pytest.approx(3 / (three + 3))
    assert early.cells(slice(1, 2)).tolist() == [1]
    own = as_step_weights("linear_front", "own").of(X)
    np.testing.assert_allclose(own.total, [0.4 + 0.3 + 0.2, 1])
    assert own.divisor().tolist() == [1, 1]  # a mean over runs
    assert own.rate(y, run_weight) == 0.75
    np.testing.assert_allclose(own.cells(slice(0, 1)), [0.4, 0.3, 0.2])


def test_several_schedules_over_one_horizon():
    assert [one.schedule for one in schedules_of(None, "own")] == list(WEIGHT_SCHEDULES)
    assert "linear_front" not in [one.schedule for one in schedules_of(None, None)]
    assert [one.name for one in schedules_of([falling, "early"], 4)] == [
        "falling, horizon=4",
        "early, horizon=4",
    ]
    with pytest.raises(ValueError, match="unknown weights 'front'"):
        schedules_of(["front"], None)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ("front", "unknown weights 'front'; use one of early, uniform, .*, or a function of the"),
        ("linear_front", "'linear_front' .* give horizon=30, say, or horizon='own' for the paper"),
        (lambda t: np.ones(len(t) + 1), "weights for steps 1 to 2 must be 2 finite numbers"),
        (np.ones, r"must be 2 finite numbers, none negative, got array\(.*takes the array of step"),
        (lambda t: 1.0, "must be 2 finite numbers, none negative, got 1.0"),
        (lambda t: -t, "none negative"),
        (lambda t: [1.0, np.inf], "2 finite numbers"),
        (lambda t: ["a", "b"], "2 finite numbers"),
        (lambda t: 0 * t, "weights for steps 1 to 2 are all zero; at least one step must count"),
        (np.ones(4) / 4, "unknown weights of type ndarray; use one of"),
        ([0.5, 0.5], "unknown weights of type list"),
        (None, "unknown weights None"),
    ],
)
def test_refused(weights, message):
    with pytest.raises(ValueError, match=message):
        step_weights([2], weights)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda T: np.ones(T + 1), "weights for a horizon of 2 must be 2 finite numbers"),
        (lambda T: -np.ones(T), "none negative"),
        (lambda T: np.zeros(T), "weights for a horizon of 2 are all zero"),
        (lambda T: 1 / np.sqrt(T), "a function takes .* with horizon='own' a number of steps"),
    ],
)
def test_a_function_of_the_own_horizon_is_checked(function, message):
    with pytest.raises(ValueError, match=message):
        step_weights([2], function, "own")


@pytest.mark.parametrize("horizon", [0, -1, 1.5, 3.0, True, "Own", "max", np.nan, np.array(2.5)])
def test_a_horizon_is_a_number_of_steps(horizon):
    with pytest.raises(ValueError, match="horizon must be a number of steps, such as 30, 'own' or"):
        step_weights([2], "uniform", horizon)


def test_a_horizon_may_be_too_large():
    assert step_weights([1], "linear_front", 10**15)[0] == pytest.approx(2e-15)
    with pytest.raises(ValueError, match="is too large; give at most 9007199254740992"):
        step_weights([1], "linear_front", 10**16)


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
        step_weights(lengths, horizon=horizon)


def test_the_largest_horizon():
    assert as_step_weights("uniform", 2**53).horizon == 2**53
    with pytest.raises(ValueError, match=f"horizon={2**53 + 1} is too large; give at most {2**53}"):
        as_step_weights("uniform", 2**53 + 1)


@pytest.mark.parametrize(
    ("lengths", "words"),
    [
        ([1, 3], None),
        ([4, 3], "horizon=3 leaves 1 step of 1 run unscored; give a horizon of 4 to score them"),
        ([3, 7, 4, 1], "horizon=3 leaves 5 steps of 2 runs unscored; give a horizon of 7 to"),
    ],
)
def test_steps_beyond_the_horizon(lengths, words):
    weights, lengths = as_step_weights("uniform", 3), np.array(lengths)
    assert weights.n_unscored(lengths) == np.maximum(lengths - 3, 0).sum()
    if words is None:
        weights.warn_unscored(lengths)
        return
    with pytest.warns(UserWarning, match=words):
        weights.warn_unscored(lengths)


@pytest.mark.parametrize("horizon", [None, "own"])
def test_without_runs_no_function_is_called(horizon):
    def refused(steps):
        raise AssertionError(steps)

    no_runs = as_step_weights(refused, horizon).of(TrajectoryArray([], []))
    assert no_runs.cells().tolist() == []
    assert no_runs.sums(np.empty(0)).tolist() == []
    assert no_runs.total.tolist() == []
    assert no_runs.divisor().tolist() == []
