"""Simultaneous comparisons, by a slow implementation of the page and by simulation."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from trajscore.inference import bootstrap, compare_predictors


def three(rng, n=60):
    shared = rng.normal(size=n)
    return pd.DataFrame({name: shared + rng.normal(size=n) for name in "abc"})


def with_rare(rng, n_apart, n=1000):
    """Three ordinary predictors, and "rare", which has the scores of "a" in all runs but a few."""
    table = three(rng, n)
    return table.assign(rare=table["a"] + np.where(np.arange(n) < n_apart, 0.2, 0.0))


def moments(d, sizes, drawn):
    """Ratio mean and its variance over drawn clusters, from their sums and sizes."""
    sums, sizes = d[drawn], sizes[drawn]
    mean = sums.sum() / sizes.sum()
    residuals = sums - mean * sizes
    return mean, len(residuals) * residuals.var(ddof=1) / sizes.sum() ** 2


def by_range(scores, d, sizes, error):
    """Ends of an interval that rests on the range of two predictors' scores."""
    means, width, n = d / sizes, np.ptp(scores), len(d)
    usual = np.median(means)
    apart = means - usual
    far = np.abs(apart) > width / n
    near = np.abs(apart[~far]).max(initial=0)
    share = [
        stats.binomtest(int((far & side).sum()), n).proportion_ci(1 - error).high
        * (sizes.max() / sizes.mean())
        for side in (apart < 0, apart > 0)
    ]
    low = usual - near - min(1, share[0]) * (width + usual)
    high = usual + near + min(1, share[1]) * (width - usual)
    return np.clip([low, high], -width, width)


def slowly(table, groups, n_resamples, level):
    """Differences, ends, standard errors and p-values, by loops over pairs and replicates."""
    n, values = len(table), table.to_numpy()
    unit = np.arange(n) if groups is None else groups
    names = np.unique(unit)
    sizes = np.array([(unit == g).sum() for g in names])
    counts = bootstrap(lambda c: c, n, groups=groups, n_resamples=n_resamples, random_state=0)[
        :, [np.flatnonzero(unit == g)[0] for g in names]
    ].astype(int)
    pairs = list(combinations(range(values.shape[1]), 2))
    m = len(pairs)
    t, difference, error_of, sums = np.full((n_resamples, m), np.inf), [], [], []
    for k, (i, j) in enumerate(pairs):
        d = np.array([(values[unit == g, i] - values[unit == g, j]).sum() for g in names])
        mean, variance = moments(d, sizes, np.arange(len(d)))
        is_constant = variance < 1e-24
        difference.append(mean)
        error_of.append(0.0 if is_constant else np.sqrt(variance))
        sums.append(d)
        for b, row in enumerate(counts):
            again, spread = moments(d, sizes, np.repeat(np.arange(len(d)), row))
            if not is_constant and spread > 1e-12 * variance:
                t[b, k] = abs(again - mean) / np.sqrt(spread)
    difference, error_of = np.array(difference), np.array(error_of)

    def ends(k, error):
        return by_range(values[:, pairs[k]], sums[k], sizes, error)

    error = 1 - level
    alone = max(1, int(error / m * (n_resamples + 1) + 1e-9))
    width = 2 * np.sort(t, axis=0)[-alone] * np.where(error_of > 0, error_of, 1)
    rest = np.array([width[k] > np.ptp(ends(k, error / m)) for k in range(m)])
    for_range = error if rest.all() else min(0.1, rest.mean()) * error
    low, high = np.empty(m), np.empty(m)
    if not rest.all():
        some = np.sort(t[:, ~rest], axis=0)
        n_outside = int((error - for_range) * (n_resamples + 1) + 1e-9)
        critical = some[-1]
        for beyond in range(2, n_outside + 2):
            if (t[:, ~rest] >= some[-beyond]).any(axis=1).sum() <= n_outside:
                critical = some[-beyond]
        low[~rest] = difference[~rest] - critical * error_of[~rest]
        high[~rest] = difference[~rest] + critical * error_of[~rest]
    for k in np.flatnonzero(rest):
        low[k], high[k] = ends(k, for_range / rest.sum())
    with np.errstate(divide="ignore", invalid="ignore"):
        size = np.abs(difference) / error_of
    p = (1 + (t >= size * (1 - 1e-9)).sum(axis=0)) / (1 + n_resamples)
    return difference, low, high, error_of, p, rest


@pytest.mark.parametrize("n_apart", [0, 3, 60])
@pytest.mark.parametrize("clustered", ["runs", "clusters"])
def test_all_is_as_written_on_the_page(rng, n_apart, clustered):
    table = with_rare(rng, n_apart, 90)
    groups = None if clustered == "runs" else np.r_[np.arange(24), rng.integers(24, size=66)]
    out = compare_predictors(
        table, groups=groups, n_resamples=150, confidence_level=0.8, random_state=0
    )
    difference, low, high, std_error, p, rest = slowly(table, groups, 150, 0.8)
    assert rest.any() or n_apart
    np.testing.assert_allclose(out["difference"], difference)
    np.testing.assert_allclose(out["std_error"], std_error)
    np.testing.assert_allclose(out["low"], low)
    np.testing.assert_allclose(out["high"], high)
    varies = std_error > 0
    np.testing.assert_allclose(out["p_value"][varies], p[varies])
    assert (out["p_value"][~varies] == 1).all()


def test_simultaneous_coverage_over_clusters():
    # 10 differences, unequal clusters: all are held at once in about 95% of repeats
    held = 0
    for seed in range(150):
        rng = np.random.default_rng(seed)
        groups = np.r_[np.arange(40), rng.integers(40, size=80)]
        values = rng.normal(size=(40, 5))[groups] + rng.exponential(size=(120, 5))
        out = compare_predictors(
            dict(enumerate(values.T)), groups=groups, n_resamples=399, random_state=seed
        )
        held += ((out["low"] <= 0) & (out["high"] >= 0)).all()
    assert 0.9 <= held / 150 <= 0.99


@pytest.mark.parametrize("clustered", [False, True])
def test_intervals_by_range_hold_where_runs_seldom_differ(clustered):
    # a predictor is right where the other is wrong in 1 of 25 runs or clusters
    groups = np.r_[np.arange(50), np.repeat(np.arange(10), 4)] if clustered else None
    n, held = 90 if clustered else 50, 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        apart = rng.random(50) < 0.04
        a = np.r_[0, 1, np.zeros(n - 2)]
        scores = {"a": a, "b": np.maximum(a, apart[groups] if clustered else apart)}
        out = compare_predictors(
            scores, reference="a", groups=groups, n_resamples=99, random_state=0
        ).iloc[0]
        held += out["low"] <= 0.04 * (n - 1) / n <= out["high"]
    assert held >= 94


def test_equal_scores(rng):
    table = three(rng, 500)
    table["same"] = table["a"]
    out = compare_predictors(table, n_resamples=999, random_state=0)
    row = out.set_index(["predictor", "reference"]).loc[("a", "same")]
    assert row[["difference", "std_error"]].tolist() == [0, 0]
    assert row[["p_value", "p_holm"]].tolist() == [1, 1]
    # no run differs: fewer than 6 in 500 do, and none by more than the range of the scores
    share = 1 - 0.0025 ** (1 / 500)
    assert row["high"] == pytest.approx(share * np.ptp(table["a"]))
    assert row["low"] == -row["high"]


@pytest.mark.parametrize(("n", "p"), [(3, 1.0), (30, 0.1), (300, 0.001)])
def test_one_difference_in_all_runs_needs_runs_to_be_believed(n, p):
    a = np.linspace(-1, -0.5, n)
    out = compare_predictors({"a": a, "b": a - 0.1}, n_resamples=999, random_state=0).iloc[0]
    assert out["difference"] == pytest.approx(0.1)
    assert out["std_error"] == 0
    # of the same level as the interval: a share of .1 / (.1 + .6) would make the mean 0
    assert out["p_value"] == pytest.approx(max(min(1, 2 * (6 / 7) ** n), 0.001))
    assert out["p_value"] <= p
    assert (out["low"] > 0) == (out["p_value"] <= 0.05)
    # half as large a share, where one cluster is twice as large as they are on average
    groups = np.r_[np.zeros(2 * n), np.arange(1, n)]
    sizes = np.bincount(groups.astype(int))
    share = (1 / 7) / (sizes.max() / sizes.mean())
    long = np.resize(a, 3 * n - 1)
    out = compare_predictors({"a": long, "b": long - 0.1}, groups=groups, random_state=0).iloc[0]
    assert out["p_value"] == pytest.approx(max(min(1, 2 * (1 - share) ** n), 1 / 10_001))


def test_holm_by_hand(rng):
    out = compare_predictors(three(rng, 200), n_resamples=499, random_state=0)
    p = out["p_value"].to_numpy()
    expected, so_far = np.empty(3), 0.0
    for k, row in enumerate(np.argsort(p)):
        so_far = max(so_far, min(1, (3 - k) * p[row]))
        expected[row] = so_far
    np.testing.assert_allclose(out["p_holm"], expected)
    assert (expected > p).any()
    some = compare_predictors(three(rng, 200)[["c", "a", "b"]], reference="a", random_state=0)
    assert some[["predictor", "reference"]].to_numpy().tolist() == [["c", "a"], ["b", "a"]]


def test_same_for_any_threads_form_and_row_order(rng):
    groups = pd.Series(rng.integers(12, size=60)).map("task {:02d}".format)
    order, options = rng.permutation(60), {"n_resamples": 200, "random_state": 0}
    for n_apart in (0, 3, 60):
        table = with_rare(rng, n_apart, 60).round(1)
        one = compare_predictors(table, groups=groups, **options)
        lists = {name: list(column) for name, column in table.items()}
        lists["a"] = pd.Series(lists["a"], index=order)  # paired by position with arrays
        as_dict = compare_predictors(lists, groups=groups, n_jobs=2, **options)
        shuffled = compare_predictors(table.iloc[order], groups=groups.iloc[order], **options)
        pd.testing.assert_frame_equal(one, as_dict, check_exact=True)
        pd.testing.assert_frame_equal(one, shuffled, rtol=1e-9)


def test_fewest_resamples_of_a_level(rng):
    for n_predictors, fewest in [(2, 99), (3, 299)]:
        scores = {str(k): rng.normal(size=40) for k in range(n_predictors)}
        options = {"confidence_level": 0.99, "random_state": 0}
        compare_predictors(scores, n_resamples=fewest, **options)
        with pytest.raises(ValueError, match=f"n_resamples={fewest - 1} .* at least {fewest} "):
            compare_predictors(scores, n_resamples=fewest - 1, **options)
