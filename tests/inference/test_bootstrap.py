"""Bootstrap replicates, and their percentile and BCa intervals."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from trajscore.inference import bootstrap, paired_bootstrap

pytestmark = pytest.mark.filterwarnings("ignore:intervals of the mean of:UserWarning")


def drawn(n, **options):
    """How often each run was drawn in each replicate."""
    return bootstrap(lambda counts: counts, n, **{"n_resamples": 150, "random_state": 3} | options)


def expanded(sizes, level):
    """Level of a bootstrap interval as wide as one of t, for few clusters (Hesterberg 2015)."""
    sizes, n = np.asarray(sizes), len(sizes)
    t = stats.t.ppf((1 + level) / 2, sizes.sum() ** 2 / (sizes**2).sum() - 1)
    return 2 * stats.norm.cdf(np.sqrt(n / (n - 1)) * t) - 1


def left_out(x, groups):
    """Jackknife influence of each cluster on the mean, by leaving it out."""
    values = np.array([x[groups != g].mean() for g in np.unique(groups)])
    return (len(values) - 1) / len(values) * (values.mean() - values)


def bca(replicates, x, influence, level):
    """The interval of Efron and Tibshirani (1993), chapter 14."""
    a = (influence**3).sum() / (6 * (influence**2).sum() ** 1.5)
    z0 = stats.norm.ppf((replicates < x.mean()).mean())
    z = z0 + stats.norm.ppf([(1 - level) / 2, (1 + level) / 2])
    return np.quantile(replicates, stats.norm.cdf(z0 + z / (1 - a * z)))


def test_replicates_do_not_depend_on_threads(rng):
    counts = drawn(50)
    np.testing.assert_array_equal(counts, drawn(50, n_jobs=2))
    assert counts.shape == (150, 50)
    assert (counts.sum(axis=1) == 50).all()
    assert (drawn(50, random_state=4) != counts).any()
    assert len(np.unique(counts, axis=0)) == 150


def test_clusters_are_drawn_whole_in_the_order_of_their_names(rng):
    groups = rng.permutation(np.repeat(list("edcba"), 4))
    counts = drawn(20, groups=groups)
    by_name = np.stack([counts[:, groups == g] for g in "abcde"], axis=1)
    assert (by_name == by_name[..., :1]).all()
    np.testing.assert_array_equal(by_name[..., 0], drawn(5))


def test_bca_is_that_of_scipy(rng):
    x = rng.exponential(size=40)
    ours = paired_bootstrap(
        x[:, None], method="bca", n_resamples=40_000, confidence_level=0.9, random_state=0
    )
    theirs = stats.bootstrap(
        (x,), np.mean, n_resamples=40_000, method="BCa",
        confidence_level=expanded(np.ones(40), 0.9), random_state=np.random.default_rng(1),
    ).confidence_interval  # fmt: skip
    np.testing.assert_allclose(ours.loc[0, ["low", "high"]].astype(float), theirs, rtol=0.01)


@pytest.mark.parametrize("method", ["percentile", "bca"])
def test_intervals_of_clusters_are_those_of_the_book(rng, method):
    x = rng.exponential(size=(90, 2))
    groups = np.r_[np.arange(20), rng.integers(20, size=70)]
    options = {"groups": groups, "n_resamples": 500, "random_state": 4}
    table = paired_bootstrap(x, method=method, confidence_level=0.9, **options)
    counts = drawn(90, **options)
    replicates = counts @ x / counts.sum(axis=1, keepdims=True)
    level = expanded(np.bincount(groups), 0.9)
    for k in range(2):
        ends = np.quantile(replicates[:, k], [(1 - level) / 2, (1 + level) / 2])
        if method == "bca":
            ends = bca(replicates[:, k], x[:, k], left_out(x[:, k], groups), level)
        np.testing.assert_allclose(table.loc[k, ["low", "high"]].astype(float), ends)
    np.testing.assert_allclose(table["mean"], x.mean(axis=0))
    np.testing.assert_allclose(table["std_error"], replicates.std(axis=0, ddof=1))


def test_differences_are_paired_with_the_reference(rng):
    samples = pd.DataFrame(rng.random((20, 3)), columns=list("abc"))
    options = {"n_resamples": 50, "random_state": 0}
    by_name = paired_bootstrap(samples, reference="b", **options)
    np.testing.assert_allclose(by_name["mean"], samples.mean() - samples["b"].mean(), atol=1e-12)
    assert (by_name.loc["b"] == 0).all()
    plain = paired_bootstrap(samples.to_numpy(), reference=1, **options)
    np.testing.assert_array_equal(plain, by_name)
    for place in (1, "d", 1.0, [1]):
        with pytest.raises(ValueError, match="reference .*'a', 'b', 'c'"):
            paired_bootstrap(samples, reference=place, **options)


@pytest.mark.parametrize("method", ["percentile", "bca"])
def test_row_order_does_not_matter(rng, method):
    x = rng.normal(size=(80, 3))
    groups = rng.integers(15, size=80)
    order = rng.permutation(80)
    options = {"n_resamples": 300, "reference": 0, "random_state": 2, "method": method}
    for given in ({}, {"groups": groups}):
        one, other = (
            paired_bootstrap(x[rows], **{k: v[rows] for k, v in given.items()}, **options)
            for rows in (np.arange(80), order)
        )
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


def test_a_constant_has_no_width_and_one_sided_replicates_no_bca(rng):
    x = np.c_[rng.normal(size=30), np.full(30, 0.1)]
    table = paired_bootstrap(x, method="bca", n_resamples=100, random_state=0)
    np.testing.assert_allclose(table.loc[1, ["mean", "low", "high"]].astype(float), 0.1)
    two = paired_bootstrap([[1.0], [4.0]], method="bca", n_resamples=2, random_state=0)
    assert np.isnan(two.loc[0, ["low", "high"]].astype(float)).all()
    ties = paired_bootstrap([[0.0], [1.0]] * 2, method="bca", n_resamples=999, random_state=0)
    assert (ties.loc[0, ["low", "high"]] == [0, 1]).all()  # those at the mean count half
    two = paired_bootstrap([[0.0], [1.0]], confidence_level=0.99999, random_state=0)
    assert (two.loc[0, ["low", "high"]] == [0, 1]).all()  # of 1 degree of freedom


FEW = [(0.02, 1), (0.05, 1), (0.1, 1), (0.05, 5), (0.1, 5), (0.5, 5)]


@pytest.mark.parametrize("method", ["percentile", "bca"])
@pytest.mark.parametrize(
    ("rate", "per_task"),
    [(0.5, 1), (0.02, 5), *(pytest.param(*each, marks=pytest.mark.slow) for each in FEW)],
)
def test_means_of_few_runs_are_covered(rate, per_task, method):
    # each column is a sample of 20 tasks, all runs of a task end alike
    failed = np.random.default_rng(7).random((20, 400)) < rate
    y = 1 - np.repeat(failed, per_task, axis=0)
    groups = np.repeat(np.arange(20), per_task) if per_task > 1 else None
    forecast = np.linspace(0.7, 1.3, 20).repeat(per_task)[:, None] * (1 - rate)
    forecast = np.minimum(forecast, 0.99)

    def log_scores(y):
        return np.log(np.where(y == 1, forecast, 1 - forecast))

    def coverage(samples, truth, other=None):
        how = {"groups": groups, "n_resamples": 400, "random_state": 0, "method": method}
        table = paired_bootstrap(samples, other=other, **how)
        return ((table["low"] <= truth + 1e-9) & (table["high"] >= truth - 1e-9)).mean()

    assert coverage(y, 1 - rate) > 0.93  # .34 to .9 by the bootstrap alone
    good, bad = (log_scores(np.full(y.shape, of)).mean() for of in (1, 0))
    truth = (1 - rate) * good + rate * bad
    assert coverage(log_scores(y), truth, other=log_scores(1 - y)) > 0.93


def test_losses_that_did_not_happen():
    scores, other = np.full((40, 1), -0.1), np.full((40, 1), -2.1)
    with pytest.warns(UserWarning, match="40 runs .* pass other="):
        assert paired_bootstrap(scores, random_state=0).loc[0, "low"] == pytest.approx(-0.1)
    table = paired_bootstrap(scores, other=other, random_state=0)
    # Clopper and Pearson's bound at one side of 5%
    assert table.loc[0, "low"] == pytest.approx(-0.1 - 2 * (1 - 0.05 ** (1 / 40)))
    assert table.loc[0, "high"] == pytest.approx(-0.1)
    both, turned = np.hstack([scores, scores - 1]), np.hstack([other, other - 3])
    margin = paired_bootstrap(both, other=turned, reference=1, random_state=0)
    assert margin.loc[0, "high"] == pytest.approx(1 + 2 * (1 - 0.05 ** (1 / 40)))
    assert (margin.loc[1, ["low", "high"]] == 0).all()
