import numpy as np
import pandas as pd
import pytest
from scipy import stats

from trajscore.inference import bootstrap, paired_bootstrap
from trajscore.inference.bootstrap_intervals import bca_interval, stratum_influence
from trajscore.inference.units import Units


def mean_of(x):
    return lambda counts: counts @ x / counts.sum(axis=1)


def test_bca_is_that_of_scipy(rng):
    x = rng.exponential(size=40)
    ours = paired_bootstrap(
        x[:, None], method="bca", n_resamples=40_000, confidence_level=0.9, random_state=0
    )
    # at the level that makes up for the 40 runs, of whose variance replicates have 39/40
    expanded = 2 * stats.norm.cdf(np.sqrt(40 / 39) * stats.t.ppf(0.95, 39)) - 1
    theirs = stats.bootstrap(
        (x,), np.mean, n_resamples=40_000, method="BCa", confidence_level=expanded,
        random_state=np.random.default_rng(1),
    ).confidence_interval  # fmt: skip
    np.testing.assert_allclose(ours.loc[0, ["low", "high"]].astype(float), theirs, rtol=0.01)


def test_bca_errs_on_both_sides_alike_for_a_skewed_mean(rng):
    x = rng.exponential(size=(25, 2000))  # each column is a repeat
    above, missed = {}, {}
    for method in ("percentile", "bca"):
        table = paired_bootstrap(x, n_resamples=2000, random_state=0, method=method)
        above[method] = (table["high"] < 1).mean()
        missed[method] = above[method] + (table["low"] > 1).mean()
    assert above["bca"] < 0.8 * above["percentile"]
    assert missed["bca"] < missed["percentile"] < 0.12


def left_out(x, groups, strata):
    """Jackknife influence of each cluster on the mean, by leaving it out."""
    kept = {g: x[groups != g].mean() for g in np.unique(groups)}
    parts = []
    for s in np.unique(strata):
        values = np.array([kept[g] for g in np.unique(groups[strata == s])])
        parts.append((len(values) - 1) / len(values) * (values.mean() - values))
    return np.concatenate(parts)


def test_paired_bca_is_that_of_the_book(rng):
    x = rng.exponential(size=90)
    groups = rng.integers(20, size=90)
    strata = groups % 3
    options = {"groups": groups, "strata": strata, "n_resamples": 500, "random_state": 4}
    table = paired_bootstrap(x[:, None], method="bca", **options).loc[0]
    replicates = bootstrap(mean_of(x), 90, **options)
    influence = left_out(x, groups, strata)
    assert influence.shape == (20,)
    a = (influence**3).sum() / (6 * (influence**2).sum() ** 1.5)
    z0 = stats.norm.ppf((replicates < x.mean()).mean())
    sizes = np.bincount(groups)
    t = stats.t.ppf([0.025, 0.975], 90**2 / (sizes**2).sum() - 3)  # expanded, for 3 strata
    z = z0 + np.sqrt(20 / 17) * t
    ends = np.quantile(replicates, stats.norm.cdf(z0 + z / (1 - a * z)))
    np.testing.assert_allclose([table["low"], table["high"]], ends, rtol=1e-10)


def test_stratified_draws_keep_the_strata(rng):
    strata = rng.choice(["x", "y", "z"], size=60)
    counts = bootstrap(lambda c: c, 60, n_resamples=70, strata=strata, random_state=0)
    for name in "xyz":
        assert (counts[:, strata == name].sum(axis=1) == (strata == name).sum()).all()
    assert (counts.std(axis=0) > 0).all()


def test_stratified_standard_error_leaves_out_what_strata_explain(rng):
    strata = np.repeat([0, 1], [100, 300])
    x = rng.normal(size=400) + 5 * strata
    table = paired_bootstrap(x[:, None], n_resamples=4000, strata=strata, random_state=0)
    within = np.sqrt(sum((strata == s).sum() * x[strata == s].var() for s in (0, 1))) / 400
    assert table["std_error"][0] == pytest.approx(within, rel=0.05)
    assert x.std() / 20 > 2 * within


@pytest.mark.parametrize("method", ["percentile", "bca"])
def test_row_order_and_threads_do_not_matter_for_named_clusters(rng, method):
    x = rng.normal(size=(80, 3))
    groups = rng.integers(15, size=80)
    strata = np.where(groups < 6, "hard", "easy")
    order = rng.permutation(80)
    one, other = (
        paired_bootstrap(
            x[rows], groups=groups[rows], strata=strata[rows], n_resamples=300, reference=0,
            random_state=2, n_jobs=n_jobs, method=method,
        )
        for rows, n_jobs in ((np.arange(80), 1), (order, 2))
    )  # fmt: skip
    np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


def test_cluster_means_are_those_of_runs(rng):
    # sums over clusters give what weighting the runs gives
    x = rng.normal(size=(50, 2))
    groups = rng.integers(12, size=50)
    table = paired_bootstrap(x, groups=groups, n_resamples=200, random_state=1)
    slow = bootstrap(
        lambda c: c @ x / c.sum(axis=1, keepdims=True), 50,
        groups=groups, n_resamples=200, random_state=1,
    )  # fmt: skip
    np.testing.assert_allclose(table["std_error"], slow.std(axis=0, ddof=1), rtol=1e-10)


def test_a_constant_has_no_width(rng):
    x = np.c_[rng.normal(size=30), np.full(30, 0.1)]
    table = paired_bootstrap(x, method="bca", n_resamples=100, random_state=0)
    np.testing.assert_allclose(table.loc[1, ["mean", "low", "high"]].astype(float), 0.1)


def test_no_interval_where_all_replicates_lie_on_one_side():
    replicates = np.column_stack([np.arange(10.0), np.full(10, np.nan), -np.arange(10.0)])
    ends = bca_interval(replicates, np.array([-1.0, 0.0, 1.0]), np.zeros(3))
    assert np.isnan(ends).all()


def test_bca_by_hand():
    # of 8 replicates 2 lie below the estimate and 2 on it, which count half: z0 of 3/8
    replicates = np.array([0.0, 1, 2, 2, 3, 5, 8, 9, np.nan])[:, None]
    z0, a = stats.norm.ppf(3 / 8), 0.1
    z = stats.norm.ppf([0.1, 0.9])
    levels = stats.norm.cdf(z0 + (z0 + z) / (1 - a * (z0 + z)))
    low, high = bca_interval(replicates, np.array([2.0]), np.array([a]), 0.8)
    expected = np.quantile(replicates[:8, 0], levels)
    np.testing.assert_allclose([low[0], high[0]], expected)
    two = np.column_stack([replicates, 10 * replicates])
    low, high = bca_interval(two, np.array([2.0, 20.0]), np.array([a, a]), 0.8)
    np.testing.assert_allclose([low, high], [[expected[0], 10 * expected[0]],
                                             [expected[1], 10 * expected[1]]])  # fmt: skip


def test_influences_are_by_stratum():
    units = Units(None, (slice(0, 2), slice(2, 5)))
    left_out = np.array([[1.0], [3.0], [0.0], [6.0], [3.0]])
    found = stratum_influence(left_out, units)
    # the mean of the stratum less each, times 1 - 1/n
    np.testing.assert_allclose(found[:, 0], [0.5, -0.5, 2, -2, 0])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: paired_bootstrap(x, method="basic"), "method must be"),
        (
            lambda x: paired_bootstrap(x, n_resamples=0),
            "n_resamples must be a whole number, at least 1",
        ),
        (lambda x: paired_bootstrap(x, strata=[0, 0, 0, 1]), "stratum 1 has one run or cluster"),
        (
            lambda x: paired_bootstrap(x, strata=[0, 0, 1]),
            "strata must be 4 labels, one for each run",
        ),
        (
            lambda x: paired_bootstrap(x, strata=[0, 1, 1, 1], groups=[0, 0, 1, 2]),
            "row 0: its cluster lies in more than one stratum|row 1: its cluster",
        ),
        (lambda x: paired_bootstrap(x, method="bca", groups=[7] * 4), "one cluster"),
        (lambda x: paired_bootstrap(x, method="bca", confidence_level=2), "confidence_level"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call(np.array([[1.0], [2.0], [4.0], [3.0]]))


def test_paired_bootstrap_names_columns_and_what_is_wrong():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(40, 2)), columns=["a", "b"])
    named = paired_bootstrap(table, reference="a", n_resamples=200, random_state=0)
    assert named.index.tolist() == ["a", "b"]
    plain = paired_bootstrap(table.to_numpy(), reference=0, n_resamples=200, random_state=0)
    np.testing.assert_array_equal(named, plain)
    shuffled = table.sample(frac=1, random_state=1)
    again = paired_bootstrap(shuffled, reference="a", n_resamples=200, random_state=0)
    np.testing.assert_allclose(named, again, atol=1e-12)
    with pytest.raises(ValueError, match="reference 'c' is not one of the columns"):
        paired_bootstrap(table, reference="c")
    with pytest.raises(ValueError, match=r"got shape \(40,\)"):
        paired_bootstrap(table["a"])
    table.loc[3, "b"] = np.nan
    with pytest.raises(ValueError, match="row 3: the score of 'b' is missing"):
        paired_bootstrap(table)


@pytest.mark.parametrize("method", ["percentile", "bca"])
def test_few_clusters_widen_the_bootstrap(method):
    rng = np.random.default_rng(5)
    groups, n_repeats = np.repeat(np.arange(8), 5), 1000
    x = rng.normal(size=(8, n_repeats))[groups] + rng.normal(size=(40, n_repeats))
    table = paired_bootstrap(x, groups=groups, n_resamples=2000, random_state=0, method=method)
    assert ((table["low"] <= 0) & (table["high"] >= 0)).mean() > 0.93  # 0.88 by plain percentiles
