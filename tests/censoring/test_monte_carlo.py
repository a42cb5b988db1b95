import numpy as np
import pandas as pd
import pytest
from scipy.stats import beta

from known_scores import FAMILIES, censored_tps_samples
from refused import not_refused
from trajscore import TrajectoryArray
from trajscore.censoring import MonteCarloContinuation
from trajscore.metrics import censored_tps_score, tps_samples, tps_score


@pytest.fixture
def branches(rng):
    return [rng.integers(-1, 2, rng.integers(0, 12)) for _ in range(100)]


@pytest.mark.parametrize("score", FAMILIES, ids=str)
@pytest.mark.parametrize("how", [{}, {"weights": "linear_front", "horizon": "own"}], ids=str)
def test_branch_identity(branches, rng, score, how):
    lengths = rng.integers(1, 8, 100)
    X = TrajectoryArray(rng.uniform(0.05, 0.95, lengths.sum()), lengths)
    audit = MonteCarloContinuation(min_branches=3).fit(X, branches)
    np.testing.assert_array_equal(audit.n_valid_, [(b >= 0).sum() for b in branches])
    np.testing.assert_array_equal(audit.n_unresolved_, [(b < 0).sum() for b in branches])
    np.testing.assert_array_equal(np.isnan(audit.q_z_), audit.n_valid_ < 3)
    table = audit.summary(X, score=score, n_resamples=50, **how)
    kept = np.flatnonzero(audit.audited_)
    q = audit.predict(X)[kept]
    made = [branches[k][branches[k] >= 0] for k in kept]
    unobserved, sums = -np.ones(len(kept)), {"score": score, "normalize": False, **how}
    over_branches = [
        tps_samples(valid, X[np.full(len(valid), k)], **sums).mean()
        for k, valid in zip(kept, made, strict=True)
    ]
    exact = censored_tps_samples(unobserved, X[kept], q_z=q, **sums)
    np.testing.assert_allclose(exact, over_branches, rtol=0, atol=1e-14)
    # each branch stands for its share of the run
    rows = np.repeat(kept, [len(valid) for valid in made])
    share = np.concatenate([np.full(len(valid), 1 / len(valid)) for valid in made])
    of_all = tps_score(np.concatenate(made), X[rows], score=score, sample_weight=share, **how)
    exact = censored_tps_score(unobserved, X[kept], q_z=q, score=score, **how)
    np.testing.assert_allclose(exact, of_all, rtol=1e-12)
    np.testing.assert_allclose(table.loc["exact score", "value"], exact, rtol=1e-13)
    simple = censored_tps_score(unobserved, X[kept], score=score, **how)
    np.testing.assert_allclose(table.loc["simple score", "value"], simple, rtol=1e-13)
    np.testing.assert_allclose(table.loc["exact - simple", "value"], exact - simple, rtol=1e-10)
    assert table.loc["exact - simple", "low"] < table.loc["exact - simple", "high"]


def test_branches_are_read_by_position():
    X = [[0.9]] * 3
    table = np.array([[1, 1, 1], [0, 0, 0], [1, 0, 1]])
    expected = MonteCarloContinuation(min_branches=1).fit(X, table).q_z_
    lists = [list(row) for row in table]
    for branches in (
        pd.DataFrame(table, index=[2, 0, 1]),
        pd.Series(lists, index=[2, 1, 0]),
        pd.Series(lists, index=list("abc")),
        pd.DataFrame(table).astype("Int64"),
        tuple(lists),
    ):
        found = MonteCarloContinuation(min_branches=1).fit(X, branches).q_z_
        np.testing.assert_array_equal(found, expected)
    gaps = MonteCarloContinuation(min_branches=1).fit(X, pd.DataFrame([[1, None], [0, 1], [-1, 0]]))
    np.testing.assert_array_equal(gaps.n_valid_, [1, 2, 1])


def test_ends_of_the_interval_are_kept_where_all_continuations_agree():
    X = TrajectoryArray(np.full(3, 0.5), np.ones(3, dtype=int))
    made = np.repeat([[0.0], [1.0], [0.0]], 5, axis=1)
    made[2, 0] = 1
    audit = MonteCarloContinuation(confidence_level=0.9).fit(X, made)
    one_sided = beta.ppf([0.05, 0.95], 0.5, 5.5)[1]
    assert (audit.low_[0], audit.high_[1]) == (0, 1)
    np.testing.assert_allclose([1 - audit.low_[1], audit.high_[0]], one_sided)
    ends = [audit.low_[2], audit.high_[2]]
    np.testing.assert_allclose(ends, beta.ppf([0.05, 0.95], 1.5, 4.5))


def test_a_summary_by_hand():
    X = TrajectoryArray(np.array([0.2, 0.6, 0.9, 0.4]), [1, 1, 1, 1])
    made = [[1, 0], [0, 0, -1], None, [1, 1, 1, 0]]  # shares 1/2, 0, none and 3/4
    table = (
        MonteCarloContinuation(min_branches=1)
        .fit(X, made)
        .summary(X, score="brier", n_resamples=20)["value"]
    )
    assert table.loc[:"unresolved branches per run"].tolist() == [3, 3, pytest.approx(8 / 3), 1 / 3]
    assert table["mean q_Z"] == pytest.approx(1.25 / 3)
    assert table["median q_Z"] == 0.5
    assert table["share q_Z = 0"] == pytest.approx(1 / 3)
    assert table["share q_Z > 0.5"] == pytest.approx(1 / 3)  # one half is not above it
    failed, won = -np.array([0.04, 0.36, 0.16]), -np.array([0.64, 0.16, 0.36])
    exact = failed + np.array([0.5, 0, 0.75]) * (won - failed)
    assert table["simple score"] == pytest.approx(failed.mean())
    assert table["exact score"] == pytest.approx(exact.mean())
    assert table["exact - simple"] == pytest.approx((exact - failed).mean())

    # one run has no interval
    alone = MonteCarloContinuation(min_branches=1).fit(X[:1], made[:1]).summary(X[:1])
    assert alone["value"].notna().all()
    assert alone[["low", "high"]].isna().all(axis=None)


def test_rows_in_any_order_and_intervals_that_cover(rng):
    q = rng.uniform(0.02, 0.98, 1000)
    made = (rng.random((1000, 10)) < q[:, None]).astype(float)
    made[0, 3:] = np.nan
    X = TrajectoryArray(
        np.full(1000, 0.5), np.ones(1000, dtype=int), ids=list(map(str, range(1000)))
    )
    audit = MonteCarloContinuation().fit(X, made)
    np.testing.assert_allclose(audit.q_z_[1:], made.mean(axis=1)[1:])
    assert np.isnan([audit.q_z_[0], audit.low_[0], audit.high_[0]]).all()
    assert 0.93 < ((audit.low_ <= q) & (q <= audit.high_))[1:].mean() < 0.98
    np.testing.assert_array_equal(audit.predict(X[::-1]), audit.q_z_[::-1])
    # a run without enough branches gets no number
    rows = [([-1] * 1000, X, {"q_z": audit.predict(X)}, "row 0: .* q_z is nan")]
    assert not not_refused(censored_tps_score, rows)


def test_bad_input():
    X = [[0.5], [0.5]]
    for options, words in (
        ({"min_branches": 0}, "min_branches"),
        ({"confidence_level": 1}, "confidence_level"),
        ({}, "no run has 5 valid continuations.* min_branches"),
    ):
        rows = [(X, [[1], [1]], {}, words)]
        assert not not_refused(MonteCarloContinuation(**options).fit, rows)
    rows = [
        (X, 3, {}, "branches must be a sequence .* got 3"),
        (X, np.array(1.0), {}, "branches must be a sequence"),
        (X, {0: [1], 1: [0]}, {}, "branches must be a sequence"),
        (X, pd.DataFrame([["a"], ["b"]]), {}, "branches must be numbers"),
        (X, [[1]], {}, "branches must have 2 entries.* got 1"),
        (X, [None, ["solved"]], {}, "run 1: outcomes of continuations must be numbers"),
        (X, [[1], [0.5]], {}, "run 1: a continuation has outcome 0.5"),
    ]
    assert not not_refused(MonteCarloContinuation(min_branches=1).fit, rows)
