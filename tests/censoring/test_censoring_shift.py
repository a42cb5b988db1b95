import numpy as np
import pytest

from trajscore import TrajectoryArray
from trajscore.censoring import censoring_shift
from trajscore.core.weights import WEIGHT_SCHEDULES, step_weights
from trajscore.metrics import censored_tps_score, tps_score
from trajscore.metrics._proper_scores import get_family

FAMILIES = ["log", "brier", ("beta", 2, 4)]
# outcomes are known here of runs that were cut off
pytestmark = pytest.mark.filterwarnings("ignore:row .* the outcome was observed after:UserWarning")


def by_hand(y, X, kept, q, score, weights):
    """Mean prefix swap and tail omission, step by step (Appendix I)."""
    family, swap, tail = get_family(score), 0.0, 0.0
    for run, label, n, chance in zip(X, y, kept, q, strict=True):
        success, failure = family.success(run), family.failure(run)
        own = success if label == 1 else failure
        w = step_weights([len(run)], weights=weights)
        swapped = chance * success + (1 - chance) * failure
        if n < len(run):
            swap += w[:n] @ (swapped - own)[:n]
            tail -= w[n:] @ own[n:]
    return np.array([swap, tail]) / len(y)


@pytest.mark.parametrize("score", FAMILIES, ids=str)
@pytest.mark.parametrize("weights", WEIGHT_SCHEDULES)
def test_shift_is_prefix_swap_and_tail_omission(ragged, rng, score, weights):
    X, y = ragged
    kept, q = rng.integers(1, X.lengths + 1), rng.random(len(y))
    options = {"q_z": q, "score": score, "weights": weights}
    table = censoring_shift(y, X, kept, **options)
    for name, here in (("failure", y == 0), ("success", y == 1), ("all", y >= 0)):
        row = table.loc[name]
        parts = by_hand(y[here], X[here], kept[here], q[here], score, weights)
        found = row[["prefix_swap", "tail_omission"]].to_numpy(dtype=float)
        np.testing.assert_allclose(found, parts, atol=1e-14)
        np.testing.assert_allclose(row["shift"], parts.sum(), atol=1e-14)
        assert (row["n_runs"], row["n_cut"]) == (here.sum(), (kept < X.lengths)[here].sum())
    cut = kept < X.lengths
    codes = np.where(cut, -1, y)
    whole = tps_score(y, X, score=score, weights=weights)
    np.testing.assert_allclose(table.loc["all", "complete"], whole)
    short = X.truncate(kept).with_horizon(X.lengths)
    np.testing.assert_allclose(
        table.loc["all", "censored"], censored_tps_score(codes, short, **options)
    )
    assert (table["tail_omission"] >= 0).all()


def test_a_failure_swaps_nothing_and_shy_forecasts_gain(ragged):
    X, y = ragged
    shy = censoring_shift(y, X.with_cells(np.full(len(X.cells), 0.3)), 2)
    bold = censoring_shift(y, X.with_cells(np.full(len(X.cells), 0.7)), 2)
    for table in (shy, bold):
        assert table.loc["failure", "prefix_swap"] == 0
        assert table.loc["failure", "shift"] > 0
    assert shy.loc["success", "prefix_swap"] > 0 > bold.loc["success", "prefix_swap"]
    true_q = censoring_shift(y, X, 2, q_z=y)
    np.testing.assert_allclose(true_q["prefix_swap"], 0, atol=1e-15)
    whole = censoring_shift(y, X, int(X.lengths.max()))
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


@pytest.mark.parametrize(
    ("y", "lengths", "options", "match"),
    [
        ([1, -1], 1, {}, "row 1: the outcome is not observed"),
        ([1, 0.5], 1, {}, "row 1: outcome 0.5 must be 0 or 1"),
        ([1, 0], 0, {}, "lengths must be a whole number of at least 1, got 0"),
        ([1, 0], [1, 0], {}, "row 1 has no steps"),
        ([1, 0], [1, 1.5], {}, "lengths must be whole numbers, one for each run"),
        ([1, 0], [1, 2, 3], {}, "lengths must be one number or 2"),
        ([1, 0], 1, {"q_z": [0, 2]}, "row 1: .* q_z is 2"),
    ],
)
def test_bad_input_gets_one_sentence(y, lengths, options, match):
    X = TrajectoryArray.from_list([[0.5], [0.6, 0.7]])
    with pytest.raises(ValueError, match=match):
        censoring_shift(y, X, lengths, **options)
