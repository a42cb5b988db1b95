import numpy as np
import pytest

from known_scores import FAMILIES
from refused import not_refused
from trajscore import TrajectoryArray
from trajscore.censoring import censoring_shift
from trajscore.core.weights import step_weights
from trajscore.metrics import censored_tps_score, tps_score


def by_hand(y, X, kept, q, score, weights, horizon=None):
    """Prefix swap and tail omission, step by step (Appendix I)."""
    family, swap, tail, before = FAMILIES[score], 0.0, 0.0, 0.0
    weight, weight_of_tail = 0.0, 0.0
    for run, label, n, chance in zip(X, y, kept, q, strict=True):
        success, failure = family.success(run), family.failure(run)
        scored = success if label == 1 else failure
        w = step_weights([len(run)], weights, horizon=horizon)
        swapped = chance * success + (1 - chance) * failure
        weight, before = weight + w[:n].sum(), before + w[:n] @ scored[:n]
        if n < len(run):
            swap += w[:n] @ (swapped - scored)[:n]
            tail += w[n:] @ scored[n:]
            weight_of_tail += w[n:].sum()
    if horizon:  # a mean over runs, of which each lost its tail
        return np.array([swap, -tail]) / len(y)
    # a mean over steps: what the tail is worse by, times its share of the weight
    share = weight_of_tail / (weight + weight_of_tail)
    return np.array([swap / weight, share * (before / weight - tail / weight_of_tail)])


@pytest.mark.parametrize("score", FAMILIES, ids=str)
@pytest.mark.parametrize(
    ("weights", "horizon"),
    [("early", None), ("linear_back", None), ("linear_front", "own"), ("exponential_front", "own")],
)
def test_shift_is_prefix_swap_and_tail_omission(ragged, rng, score, weights, horizon):
    X, y = ragged
    kept, q = rng.integers(1, X.lengths + 1), rng.random(len(y))
    how = {"score": score, "weights": weights, "horizon": horizon}
    table = censoring_shift(y, X, kept, q_z=q, **how)
    for name, here in (("failure", y == 0), ("success", y == 1), ("all", y >= 0)):
        row = table.loc[name]
        parts = by_hand(y[here], X[here], kept[here], q[here], **how)
        found = row[["prefix_swap", "tail_omission"]].to_numpy(dtype=float)
        np.testing.assert_allclose(found, parts, atol=1e-14)
        np.testing.assert_allclose(row["shift"], parts.sum(), atol=1e-14)
        assert (row["n_runs"], row["n_cut"]) == (here.sum(), (kept < X.lengths)[here].sum())
    codes = np.where(kept < X.lengths, -1, y)
    np.testing.assert_allclose(table.loc["all", "complete"], tps_score(y, X, **how))
    censored = censored_tps_score(codes, X.truncate(kept).with_horizon(X.lengths), q_z=q, **how)
    np.testing.assert_allclose(table.loc["all", "censored"], censored)


@pytest.mark.parametrize("own", [False, True])
def test_a_failure_swaps_nothing_and_shy_forecasts_gain(ragged, own):
    X, y = ragged
    how = {"weights": "linear_front", "horizon": "own"} if own else {}
    shy = censoring_shift(y, X.with_cells(np.full(len(X.cells), 0.3)), 2, **how)
    bold = censoring_shift(y, X.with_cells(np.full(len(X.cells), 0.7)), 2, **how)
    for table in (shy, bold):
        assert table.loc["failure", "prefix_swap"] == 0
        # one forecast for all steps is as good in the tail; as published, a tail always costs
        assert (table.loc["failure", "shift"] > 0.01) == own
        assert own or abs(table.loc["failure", "shift"]) < 1e-15
    assert shy.loc["success", "prefix_swap"] > 0 > bold.loc["success", "prefix_swap"]
    true_q = censoring_shift(y, X, 2, q_z=y, **how)
    np.testing.assert_allclose(true_q["prefix_swap"], 0, atol=1e-15)
    whole = censoring_shift(y, X, int(X.lengths.max()), **how)
    assert (whole["shift"] == 0).all()


def test_weights_count_runs_and_an_absent_outcome_has_no_mean(ragged, rng):
    X, y = ragged
    weight = rng.integers(0, 3, len(y))
    rows = np.repeat(np.arange(len(y)), weight)
    means = ["complete", "censored", "shift", "prefix_swap", "tail_omission"]
    weighted = censoring_shift(y, X, 3, sample_weight=weight)[means]
    np.testing.assert_allclose(weighted, censoring_shift(y[rows], X[rows], 3)[means], rtol=1e-12)
    solved = censoring_shift([1, 1], [[0.5, 0.5], [0.5]], 1)
    assert solved.loc["failure", means].isna().all()
    assert solved.loc["all", "shift"] == solved.loc["success", "shift"]


def test_bad_input():
    X, y = TrajectoryArray.from_list([[0.5], [0.6, 0.7]]), [1, 0]
    rows = [
        ([1, -1], X, 1, {}, "run 1: the outcome is not observed"),
        ([1, 0.5], X, 1, {}, "run 1: outcome 0.5"),
        (y, X, 0, {}, "lengths must be a whole number .* got 0"),
        (y, X, [1, 0], {}, "row 1 has no steps"),
        (y, X, [1, 1.5], {}, "lengths must be whole numbers"),
        (y, X, [1, 2, 3], {}, "lengths must be one number or 2, got 3"),
        (y, X, 1, {"q_z": [0, 2]}, "row 1: .* q_z is 2"),
    ]
    assert not not_refused(censoring_shift, rows)
