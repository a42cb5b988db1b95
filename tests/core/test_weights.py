"""What each step counts, against the formulas of the paper."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from refused import must_refuse
from trajscore.core.weights import StepWeights, step_weights


def of_runs(formula, lengths):
    """Weights of the steps of some runs, run after run."""
    return np.concatenate([formula(np.arange(1.0, T + 1), T) for T in lengths])


@pytest.mark.parametrize("horizon", [1, 63, 64, 65, 1000, 10**6])
def test_the_sum_of_early_weights_over_long_horizons(horizon):
    expected = 1 / (np.arange(1, horizon + 1) ** -0.5).sum()
    assert step_weights([1], "early", horizon)[0] == pytest.approx(expected, rel=1e-12)
    assert step_weights([1], "early", [horizon])[0] == pytest.approx(expected, rel=1e-12)


def test_a_function_takes_the_array_of_step_numbers():
    def falling(step):
        return 7.5 / step

    lengths = [4, 1, 9, 4]
    assert_allclose(step_weights(lengths, falling), of_runs(lambda t, _: 7.5 / t, lengths))
    for H in (3, 12):
        total = sum(1 / k for k in range(1, H + 1))
        over = of_runs(lambda t, _, H=H, total=total: (t <= H) / t / total, lengths)
        assert_allclose(step_weights(lengths, falling, H), over)
    for nothing in ("early", falling):
        assert step_weights(np.empty(0, dtype=int), nothing).tolist() == []


def test_a_function_over_the_own_horizon():
    weights = step_weights([2, 1, 2], lambda t: 1 / t, [3, 1, 3])
    assert_allclose(weights, [6 / 11, 3 / 11, 1, 6 / 11, 3 / 11])
    words = "zero over a horizon of 1"
    with pytest.raises(ValueError, match=words), pytest.warns(UserWarning, match="step 1"):
        step_weights([1, 2], lambda t: 1.0 * (t > 1), "own")


def test_zeros_are_warned_of_once():
    for function, horizon, place, expected in (
        (lambda t: (t == 1) * 4.0, None, "steps 1 to 3.*step 2", [4, 0, 4, 4, 0, 0]),
        (lambda t: (t == 1) * 4.0, 5, "steps 1 to 5.*step 2", [1, 0, 1, 1, 0, 0]),
        (lambda t: 1.0 * (t == 1), "own", "steps 1 to 3.*step 2", [1, 0, 1, 1, 0, 0]),
        (lambda t: 1.0 * (t > 1), None, "steps 1 to 3.*step 1", [0, 1, 0, 0, 1, 1]),
    ):
        with pytest.warns(UserWarning, match=place) as seen:
            weights = step_weights([2, 1, 3], function, horizon)
        assert (weights.tolist(), len(seen)) == (expected, 1)


BAD = [
    ([2], "front", None, "'front'.*early, uniform"),
    ([2], [0.5, 0.5], None, "0.5, 0.5"),
    ([2], "linear_front", None, "'linear_front'.*horizon='own'"),
    ([2], lambda t: np.ones(len(t) + 1), None, "steps 1 to 2 .* 2 finite"),
    ([2], lambda t: -t, None, "negative"),
    ([2], lambda t: [1.0, np.inf], None, "finite"),
    ([2], lambda t: 0 * t, None, "steps 1 to 2 .*zero"),
    ([2], lambda t: np.ones(3), "own", "steps 1 to 2 "),
    # functions of the number of steps
    ([4, 9], lambda t: t / t.sum(), None, r"step 1 0\.022.* 9 steps .* 5"),
    ([4], lambda t: np.where(t == 2, 1 / len(t), 1), None, "step 2 0.25 among 4 steps and 0.5 am"),
    ([4, 9], lambda t: np.where(t > 2, len(t), 1), None, "step 3 9 among 9 steps and 5 among 5"),
    *(([2], "uniform", h, "horizon") for h in (0, -1, 1.5, True, "Own", np.nan, np.array(2.5))),
    ([2], StepWeights("early"), 2, "horizon=2 .*leave horizon out, or pass weights='early'"),
    ([2], StepWeights("uniform", 2), "own", "horizon='own' .*weights='uniform'"),
    ([1], "linear_front", 10_000_001, "horizon .*up to 10,000,000"),
    ([3], "uniform", [2], "row 0: horizon 2 "),
    ([3], "uniform", [4, 5], "horizon must be 1"),
    ([1.5], "early", None, "lengths"),
    ([2, 0], "early", None, "row 1"),
    ([[1], [1, 2]], "early", None, "lengths"),
]


def test_bad_weights_and_horizons():
    must_refuse(lambda lengths, weights, horizon: step_weights(lengths, weights, horizon), BAD)
    assert step_weights([1], "linear_front", 10_000_000)[0] == pytest.approx(2e-7)
