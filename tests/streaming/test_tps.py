"""Scores in one pass: sums of moments, clusters and what is refused, against runs in memory."""

import numpy as np
import pytest
from scipy.stats import t

from trajscore.inference.units import left_out_factor, n_equal
from trajscore.streaming import TPSAccumulator
from trajscore.streaming import _tps as module

X = [[0.9, 0.8], [0.3], [0.6, 0.7, 0.2], [0.5]]
Y = np.array([1, 0, 1, 0])


def brier(forecasts):
    """Mean score of each run, with equal weights of its steps."""
    return np.array([-np.mean((p - y) ** 2) for p, y in zip(forecasts, Y, strict=True)])


@pytest.fixture
def uniform():
    return TPSAccumulator(["brier", "log"], weights="uniform", horizon="own")


def test_table(uniform):
    table = uniform.update(Y[:1], X[:1]).update(Y[1:], X[1:]).compute(0.9)
    assert list(table.index) == ["brier", "log"]
    lengths = np.array([2, 1, 3, 1])
    arrays = [np.array(run) for run in X]
    scores = brier(arrays)
    row = table.loc["brier"]
    rate = uniform.success_rate
    assert rate == pytest.approx(0.5)
    base = brier([np.full(n, rate) for n in lengths])
    quantile = t.ppf(0.95, 3)
    for name, values, ends in (
        ("value", scores, ("low", "high")),
        ("margin", scores - base, ("margin_low", "margin_high")),
    ):
        half = quantile * values.std(ddof=1) / 2
        assert row[name] == pytest.approx(values.mean())
        assert row[list(ends)].tolist() == pytest.approx(
            [values.mean() - half, values.mean() + half]
        )
    assert row["base_rate"] == pytest.approx(base.mean())
    assert row["n_runs"] == uniform.n_runs == 4


def test_clusters(uniform):
    groups = np.array(["a", "b", "a", "c"])
    arrays = [np.array(run) for run in X]
    influence = brier(arrays) - brier(arrays).mean()
    parts = uniform.update(Y[:2], X[:2], groups[:2]).update(Y[2:], X[2:], groups[2:])
    row = parts.compute().loc["brier"]
    sizes = np.array([2.0, 1, 1])
    sums = np.array([influence[0] + influence[2], influence[1], influence[3]])
    error = np.sqrt(np.sum((left_out_factor(sizes) * sums) ** 2)) / 4
    half = t.ppf(0.975, n_equal(sizes) - 1) * error
    assert row["high"] - row["value"] == pytest.approx(half)
    assert row["value"] - row["low"] == pytest.approx(half)


@pytest.mark.parametrize("n_runs", [0, 1])
def test_too_few_runs(uniform, n_runs):
    if n_runs:
        uniform.update(Y[:1], X[:1])
    with pytest.raises(ValueError, match=f"needs at least 2 runs, got {n_runs}; add more"):
        uniform.compute()


def test_groups_in_all_updates_or_none(uniform):
    uniform.update(Y, X, ["a"] * 4)
    with pytest.raises(ValueError, match="groups must be given in all updates or in none"):
        uniform.update(Y, X)
    plain = TPSAccumulator("brier").update(Y, X)
    with pytest.raises(ValueError, match="groups must be given in all updates or in none"):
        plain.update(Y, X, ["a"] * 4)
    clustered = TPSAccumulator("brier").update(Y, X, ["a"] * 4)
    with pytest.raises(ValueError, match="Only one of the two accumulators has clusters"):
        plain.merge(clustered)
    empty = TPSAccumulator("brier").merge(clustered).merge(TPSAccumulator("brier"))
    np.testing.assert_array_equal(empty.by_cluster, clustered.by_cluster)
    twice = empty.merge(clustered)
    assert twice.by_cluster[:, -1].sum() == twice.n_runs == 8


def test_score_of_a_constant():
    assert module._constant_scores("brier", 0.3) == pytest.approx((-0.49, -0.09))
    groups = ["a", "b", "a", "c"]
    runs = TPSAccumulator(["log", "brier"]).update(Y, X, groups)
    flat = [[0.3] * len(run) for run in X]
    expected = TPSAccumulator(["log", "brier"]).update(Y, flat, groups)
    constant = runs._constant(0.3)
    np.testing.assert_allclose(constant.moments, expected.moments)
    np.testing.assert_allclose(constant.by_cluster, expected.by_cluster)
    assert runs.compute().loc["log", "value"] != constant.compute().loc["log", "value"]
