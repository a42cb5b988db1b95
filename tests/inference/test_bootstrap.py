import numpy as np
import pandas as pd
import pytest

from trajscore.inference import _bootstrap, bootstrap, paired_bootstrap
from trajscore.inference._bootstrap import (
    bootstrap_many_means,
    bootstrap_means,
    bootstrap_units,
    check_resamples,
)
from trajscore.inference.bootstrap_intervals import percentile_interval
from trajscore.inference.units import any_units


def test_same_for_any_number_of_threads(rng):
    x = rng.normal(size=50)
    out = [
        bootstrap(lambda c: c @ x, 50, n_resamples=150, random_state=3, n_jobs=n) for n in (1, 2)
    ]
    np.testing.assert_array_equal(*out)
    assert out[0].shape == (150,)


def test_standard_error_is_that_of_a_mean(rng):
    x = rng.normal(size=(400, 2))
    table = paired_bootstrap(x, n_resamples=4000, random_state=0)
    np.testing.assert_allclose(table["std_error"], x.std(axis=0) / 20, rtol=0.06)
    np.testing.assert_allclose(table["mean"], x.mean(axis=0))


def test_differences_are_paired(rng):
    x = rng.normal(size=300)
    table = paired_bootstrap(np.c_[x, x + 1], reference=0, random_state=0, n_resamples=200)
    np.testing.assert_allclose(table.loc[1, ["low", "high"]].astype(float), 1)
    assert (table.loc[0] == 0).all()


def test_clusters_are_drawn_whole(rng):
    # ten copies of each of 40 values: the error is that of 40 runs, not of 400
    x = np.repeat(rng.normal(size=40), 10)
    groups = np.repeat(np.arange(40), 10)
    alone = paired_bootstrap(x[:, None], random_state=0, n_resamples=2000)["std_error"][0]
    whole = paired_bootstrap(x[:, None], random_state=0, n_resamples=2000, groups=groups)
    assert whole["std_error"][0] / alone == pytest.approx(np.sqrt(10), rel=0.1)
    drawn = []
    bootstrap(lambda c: drawn.append(c) or c[:, 0], 400, n_resamples=5, groups=groups)
    blocks = drawn[0].reshape(-1, 40, 10)
    assert (blocks == blocks[..., :1]).all()


def test_coverage_of_the_interval():
    hits = 0
    for seed in range(200):
        x = np.random.default_rng(seed).exponential(size=(60, 1))
        table = paired_bootstrap(x, n_resamples=300, random_state=seed)
        hits += table["low"][0] <= 1 <= table["high"][0]
    assert 0.88 <= hits / 200 <= 0.98


def test_undefined_replicates_are_ignored():
    values = np.array([[1.0, np.nan], [2.0, np.nan], [np.nan, np.nan]])
    low, high = percentile_interval(values, 0.5)
    assert (low[0], high[0]) == (1.25, 1.75)  # quartiles of 1 and 2
    assert np.isnan([low[1], high[1]]).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: paired_bootstrap([[1.0]]), "at least 2 runs"),
        (lambda: paired_bootstrap([[1.0], [np.nan]]), "is missing or infinite"),
        (lambda: paired_bootstrap([[1.0], [2.0]], groups=[1, 1]), "one cluster"),
        (lambda: paired_bootstrap([[1.0], [2.0]], groups=[1]), "one for each run"),
        (lambda: paired_bootstrap([[1.0], [2.0]], n_resamples=1.5), "a whole number.* got 1.5"),
        (lambda: paired_bootstrap([[1.0], [2.0]], confidence_level=95), "confidence_level"),
        (
            lambda: paired_bootstrap([[1.0], [2.0]], n_resamples=2.5),
            "whole number, at least 1 .*, got 2",
        ),
        (
            lambda: paired_bootstrap([[1.0], [2.0]], n_resamples=0),
            "whole number, at least 1 .*, got 0",
        ),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_the_reference_is_a_column_by_its_name_or_place(rng):
    samples = pd.DataFrame(rng.random((20, 3)), columns=list("abc"))
    options = {"n_resamples": 50, "random_state": 0}
    by_name = paired_bootstrap(samples, reference="b", **options)
    np.testing.assert_allclose(by_name["mean"], samples.mean() - samples["b"].mean(), atol=1e-12)
    for place in (1, -2, np.int64(1)):
        pd.testing.assert_frame_equal(
            paired_bootstrap(samples, reference=place, **options), by_name
        )
    for place in (3, -4, "d", 1.0, [1]):
        with pytest.raises(ValueError, match="is not one of the columns .'a', 'b', 'c'."):
            paired_bootstrap(samples, reference=place, **options)
    first = paired_bootstrap(samples, reference=-3, **options)
    assert first["mean"]["a"] == 0


def test_means_of_very_many_are_drawn_like_those_of_few():
    rng = np.random.default_rng(1)
    n = 20_000
    heavy = rng.pareto(1.5, n)  # a few values carry the variance
    samples = np.stack([heavy, heavy + rng.normal(size=n), rng.random(n) < 1e-3], axis=1)
    quick = bootstrap_many_means(samples, n_resamples=4000, random_state=0)
    slow = bootstrap(lambda counts: counts @ samples / n, n, n_resamples=4000, random_state=0)
    scale = slow.std(axis=0)
    np.testing.assert_allclose(quick.std(axis=0), scale, rtol=0.06)
    for share in (0.025, 0.16, 0.5, 0.84, 0.975):
        apart = np.abs(np.quantile(quick, share, axis=0) - np.quantile(slow, share, axis=0))
        assert (apart[:2] < 0.2 * scale[:2]).all()
        assert apart[2] < 1.5 / n  # of a share of runs, one run more or less
    np.testing.assert_allclose(np.corrcoef(quick.T), np.corrcoef(slow.T), atol=0.06)


@pytest.mark.parametrize("n", [1, 10**8])
def test_numbers_of_replicates(n):
    check_resamples(n)


@pytest.mark.parametrize("n", [0, -1, 1.5, 10**8 + 1, "9"])
def test_numbers_of_replicates_that_are_refused(n):
    with pytest.raises(ValueError, match="n_resamples must be a whole number, at least 1 and at"):
        check_resamples(n)


@pytest.mark.parametrize(
    ("most", "sizes"), [(1 << 24, [64, 36]), (40, [8] * 12 + [4]), (3, [1] * 100)]
)
def test_replicates_are_drawn_in_blocks_that_stay_small(monkeypatch, most, sizes):
    monkeypatch.setattr(_bootstrap, "_MOST_COUNTS", most)
    seen = []

    def statistic(counts):
        seen.append(len(counts))
        return counts[:, 0]

    drawn = bootstrap_units(statistic, any_units(None, 5), n_resamples=100, random_state=0)
    assert (seen, drawn.shape) == (sizes, (100,))


def test_means_of_clusters_are_weighted_by_their_runs():
    values, groups = np.array([[1.0, 0], [2, 0], [6, 3], [0, 9]]), np.array([0, 0, 1, 2])
    units = any_units(groups, 4)
    options = {"n_resamples": 20, "random_state": 1}
    counts = bootstrap_units(lambda counts: counts, units, **options)
    weight = counts[:, groups]
    expected = weight @ values / weight.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(bootstrap_means(values, units, **options), expected)


def test_a_statistic_is_a_function():
    with pytest.raises(ValueError, match="statistic must be a function of the count of each run"):
        bootstrap("mean", 5)
