from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from trajscore.inference import compare_predictors
from trajscore.inference._compare import (
    _are_by_range,
    _critical_values,
    _holm,
    _intervals,
    _Moments,
    _n_replicates,
    _p_values,
    _pairs,
    _Range,
)
from trajscore.inference.units import draw_counts, resampling_units


def three(rng, n=60):
    shared = rng.normal(size=n)
    return pd.DataFrame({name: shared + rng.normal(size=n) for name in "abc"})


def critical_values(out):
    return ((out["high"] - out["low"]) / (2 * out["std_error"])).to_numpy()


def with_rare(rng, n_apart, n=1000):
    """Three ordinary predictors, and "rare", which has the scores of "a" in all runs but a few."""
    table = three(rng, n)
    return table.assign(rare=table["a"] + np.where(np.arange(n) < n_apart, 0.2, 0.0))


def slow_moments(d, group_of, stratum_of, drawn):
    """Ratio mean and its variance over drawn clusters, by the book."""
    sums = np.array([d[group_of == g].sum() for g in drawn])
    sizes = np.array([(group_of == g).sum() for g in drawn])
    strata = np.array([stratum_of[group_of == g][0] for g in drawn])
    mean = sums.sum() / sizes.sum()
    residuals = sums - mean * sizes
    variance = 0.0
    for s in np.unique(strata):
        r = residuals[strata == s]
        variance += len(r) * r.var(ddof=1)
    return mean, variance / sizes.sum() ** 2


@pytest.mark.parametrize("stratified", [False, True])
def test_studentised_values_are_those_of_the_book(rng, stratified):
    table = three(rng, 90)
    groups = np.r_[np.arange(20), rng.integers(20, size=70)]
    strata = groups % 3 if stratified else np.zeros(90, dtype=int)
    units = resampling_units(90, groups, strata if stratified else None)
    pairs = _pairs(list(table.columns), None)
    moments = _Moments(table.to_numpy(), pairs, units)
    counts = draw_counts(5, units, rng)
    names = sorted(range(20), key=lambda g: (g % 3, g)) if stratified else list(range(20))
    for k, (i, j) in enumerate(pairs):
        d = (table.iloc[:, i] - table.iloc[:, j]).to_numpy()
        mean, variance = slow_moments(d, groups, strata, names)
        assert moments.std_error[k] == pytest.approx(np.sqrt(variance))
        for row, t in zip(counts, moments.studentised(counts)[:, k], strict=True):
            m, v = slow_moments(d, groups, strata, np.repeat(names, row.astype(int)))
            assert t == pytest.approx(abs(m - mean) / np.sqrt(v))


def test_single_runs_give_the_paired_t_test(rng):
    table = three(rng, 400)
    out = compare_predictors(table, n_resamples=8000, random_state=0)
    assert out[["predictor", "reference"]].to_numpy().tolist() == [
        ["a", "b"], ["a", "c"], ["b", "c"],
    ]  # fmt: skip
    for row in out.itertuples():
        test = stats.ttest_rel(table[row.predictor], table[row.reference])
        assert row.difference / row.std_error == pytest.approx(test.statistic)
        assert row.p_value == pytest.approx(test.pvalue, abs=0.02)
    # wider than one at a time, narrower than Bonferroni
    critical = critical_values(out)
    assert (stats.t.ppf(0.975, 399) < critical).all()
    assert (critical < stats.t.ppf(1 - 0.025 / 3, 399) + 0.05).all()


def test_simultaneous_coverage_over_clusters():
    # 10 differences, unequal clusters: all are held at once in about 95% of repeats
    held = 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        groups = np.r_[np.arange(40), rng.integers(40, size=80)]
        values = rng.normal(size=(40, 5))[groups] + rng.exponential(size=(120, 5))
        out = compare_predictors(
            dict(enumerate(values.T)), groups=groups, n_resamples=399, random_state=seed
        )
        held += ((out["low"] <= 0) & (out["high"] >= 0)).all()
    assert 0.92 <= held / 300 <= 0.98


def test_each_comparison_has_its_own_quantile_at_a_common_level(rng):
    t = np.abs(rng.normal(size=(9999, 4))) * [1, 1, 1, 100]
    critical = _critical_values(t, 0.05)
    outside = t >= critical
    np.testing.assert_array_equal(outside.sum(axis=0), outside.sum(axis=0)[0])
    assert 480 < outside.any(axis=1).sum() <= 500
    np.testing.assert_allclose(_critical_values(t * [1, 1, 1, 7], 0.05), critical * [1, 1, 1, 7])
    # of one comparison, the quantile
    assert _critical_values(t[:, :1], 0.05) == np.sort(t[:, 0])[-500]


@pytest.mark.parametrize("n_apart", [0, 1, 2, 4, 8])
def test_a_predictor_that_seldom_differs_widens_no_other_interval(rng, n_apart):
    table = with_rare(rng, n_apart)
    options = {"reference": "a", "n_resamples": 4999, "random_state": 0}
    out = compare_predictors(table, **options).set_index("predictor")
    without = compare_predictors(table.drop(columns="rare"), **options).set_index("predictor")
    others = without.index
    np.testing.assert_allclose(out.loc[others, "difference"], without["difference"])
    # no wider than one more comparison makes them by Bonferroni's inequality
    more = stats.norm.ppf(1 - 0.025 / 3) / stats.norm.ppf(1 - 0.025 / 2)
    assert (critical_values(out.loc[others]) < 1.03 * more * critical_values(without)).all()
    rare = out.loc["rare"]
    assert np.isfinite(rare[["low", "high"]].astype(float)).all()
    assert rare["low"] < 0 < rare["high"]
    assert rare["low"] <= rare["difference"] <= rare["high"]
    assert rare["p_value"] > 0.01


def test_equal_scores_are_reported(rng):
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
    twins = out.set_index(["predictor", "reference"])
    np.testing.assert_allclose(
        critical_values(twins.loc[[("a", "b")]]), critical_values(twins.loc[[("b", "same")]])
    )


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


def test_few_runs_have_the_range_of_scores():
    out = compare_predictors({"a": [1.0, 2, 3], "b": [3.0, 2, 2]}, random_state=0).iloc[0]
    assert -2 <= out["low"] < out["difference"] < out["high"] <= 2
    assert out["high"] - out["low"] > 3.5


def test_tiny_differences_elsewhere_do_not_make_an_interval_without_bounds(rng):
    table = with_rare(rng, 3)
    table["rare"] += 1e-6 * rng.normal(size=len(table))
    out = compare_predictors(table, reference="a", n_resamples=999, random_state=0)
    assert out["high"].iloc[-1] - out["low"].iloc[-1] < 0.02 * np.ptp(table["a"])


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


def test_holm():
    np.testing.assert_allclose(_holm(np.array([0.01, 0.04, 0.03, 0.005])), [0.03, 0.06, 0.06, 0.02])
    np.testing.assert_allclose(_holm(np.array([0.9, 0.8])), [1, 1])


def test_against_a_reference(rng):
    table = three(rng)
    every = compare_predictors(table, n_resamples=200, random_state=0)
    some = compare_predictors(table, reference="c", n_resamples=200, random_state=0)
    assert some["predictor"].tolist() == ["a", "b"]
    assert (some["reference"] == "c").all()
    np.testing.assert_allclose(some["difference"], every["difference"][1:])
    np.testing.assert_allclose(some["p_value"], every["p_value"][1:])


@pytest.mark.parametrize("n_apart", [0, 3, 60])
def test_same_for_any_threads_form_and_row_order(rng, n_apart):
    table = with_rare(rng, n_apart, 60).round(1)
    groups = pd.Series(rng.integers(12, size=60)).map("task {:02d}".format)
    order = rng.permutation(60)
    options = {"n_resamples": 200, "random_state": 0}
    one = compare_predictors(table, groups=groups, **options)
    as_dict = compare_predictors(
        {name: list(column) for name, column in table.items()}, groups=groups, n_jobs=2, **options
    )
    shuffled = compare_predictors(table.iloc[order], groups=groups.iloc[order], **options)
    pd.testing.assert_frame_equal(one, as_dict, check_exact=True)
    pd.testing.assert_frame_equal(one, shuffled, rtol=1e-9)


def test_strata_sharpen_the_comparison(rng):
    strata = np.repeat(["easy", "hard"], 100)
    a = rng.normal(size=200)
    table = {"a": a, "b": a + np.where(strata == "easy", 2, -1) + rng.normal(size=200)}
    plain = compare_predictors(table, n_resamples=200, random_state=0)
    within = compare_predictors(table, n_resamples=200, random_state=0, strata=strata)
    assert within["std_error"][0] < 0.7 * plain["std_error"][0]
    assert within["difference"][0] == plain["difference"][0]


@pytest.mark.parametrize(
    ("samples", "options", "message"),
    [
        ({"a": [1.0, 2, 3]}, {}, "at least 2 predictors"),
        ({"a": [1.0], "b": [2.0]}, {}, "at least 2 runs"),
        ({"a": [1.0, 2, np.nan], "b": [1.0, 2, 3]}, {}, "row 2: the score of 'a' is missing"),
        ({"a": [1.0, 2, 3], "b": [3.0, 2, 2]}, {"groups": [0, 0, 0]}, "one cluster"),
        ({"a": [1.0, 2, 3], "b": [3.0, 2, 2]}, {"reference": "c"}, "'c' is not one of"),
        ({"a": [1.0, 2, 3], "b": [3.0, 2, 2]}, {"n_resamples": 18}, "at least 19 are needed"),
        (
            {"a": [1.0, 2, 3], "b": [3.0, 2, 2], "c": [0.0, 2, 1]},
            {"n_resamples": 50},
            "too few for 3 comparisons at a level of 0.95; at least 59 are needed",
        ),
        ({"a": [1.0, 2, 3], "b": [3.0, 2, 2]}, {"confidence_level": 95}, "confidence_level"),
        (
            {"a": [1.0, 2, 3], "b": [3.0, 2, 2]},
            {"n_resamples": 99.5},
            "n_resamples must be a whole",
        ),
        ({"a": [1.0, 2, 3], "b": [3.0, 2]}, {}, r"different numbers of scores \('a' 3, 'b' 2\)"),
        ({"a": [1.0, 2, 3], "b": [3.0, 2, "x"]}, {}, "scores of 'b' must be numbers"),
        ({"a": [1.0, 2, 3], "b": [[3.0], [2], [1]]}, {}, r"scores of 'b' have shape \(3, 1\)"),
        (
            {"a": pd.Series([1.0, 2, 3]), "b": pd.Series([3.0, 2, 2], index=[2, 1, 0])},
            {},
            "scores of 'a' and 'b' have different indexes",
        ),
        (pd.DataFrame(np.eye(3), columns=["a", "a", "b"]), {}, "two predictors are called 'a'"),
    ],
)
def test_bad_input(samples, options, message):
    with pytest.raises(ValueError, match=message):
        compare_predictors(samples, random_state=0, **options)


def test_an_array_has_no_names():
    with pytest.raises(TypeError, match="dict or DataFrame"):
        compare_predictors(np.eye(3))


def test_series_are_paired_by_position_with_arrays(rng):
    table = three(rng)
    labels = rng.permutation(60)
    options = {"n_resamples": 200, "random_state": 0}
    mixed = {
        "a": pd.Series(table["a"].to_numpy(), index=labels),
        "b": table["b"].to_numpy(),
        "c": pd.Series(table["c"].to_numpy(), index=labels),
    }
    pd.testing.assert_frame_equal(
        compare_predictors(mixed, **options), compare_predictors(table, **options)
    )


def test_replicates_beyond_a_level_are_counted_without_rounding_errors():
    assert 1000 * (1 - 0.9) < 100  # by a rounding error
    assert [_n_replicates(999, 1 - level) for level in (0.8, 0.9, 0.95)] == [200, 100, 50]
    assert _n_replicates(3, 1.0) == 3


@pytest.mark.parametrize(("n_predictors", "fewest"), [(2, 99), (3, 299)])
def test_fewest_resamples_of_a_level(n_predictors, fewest):
    rng = np.random.default_rng(8)
    scores = {str(k): rng.normal(size=40) for k in range(n_predictors)}
    options = {"confidence_level": 0.99, "random_state": 0}
    compare_predictors(scores, n_resamples=fewest, **options)
    with pytest.raises(ValueError, match=f"is too few for .* at least {fewest} are needed"):
        compare_predictors(scores, n_resamples=fewest - 1, **options)


def test_replicates_that_differ_by_rounding_are_tied():
    rng = np.random.default_rng(2)
    t = rng.integers(1, 6, (200, 3)).astype(float)
    rounded = t * (1 - 1e-12 * rng.random(t.shape))
    for error in (0.05, 0.2, 0.5):
        expected = _critical_values(t, error)
        np.testing.assert_allclose(_critical_values(rounded, error), expected, rtol=1e-9)


# ------------------------------------------------------------------- small inputs by hand


def a_range(usual=0.1, width=1.0, near=0.05, n_far=(1, 2), n_units=10, largest=1.5):
    return _Range(usual, width, near, np.array(n_far), n_units, largest)


def test_an_interval_by_range_by_hand():
    below, above = stats.beta.ppf(1 - 0.04 / 2, [2, 3], [9, 8])
    expected = [0.1 - 0.05 - 1.5 * below * 1.1, 0.1 + 0.05 + 1.5 * above * 0.9]
    np.testing.assert_allclose(a_range().interval(0.04), np.clip(expected, -1, 1))
    # a unit so large that any difference is possible
    np.testing.assert_allclose(a_range(largest=9.0).interval(0.04), [-1, 1])
    below, above = stats.beta.ppf(1 - 0.04 / 2, [1, 2], [200, 199])
    np.testing.assert_allclose(
        a_range(n_far=(0, 1), n_units=200, largest=1.0).interval(0.04),
        [0.05 - 1.1 * below, 0.15 + 0.9 * above],
    )


@pytest.mark.parametrize(
    ("usual", "n_units", "p"),
    [(0.0, 10, 1), (0.5, 3, 1), (0.5, 10, 2 * (5 / 6) ** 10), (-0.5, 10, 2 * (5 / 6) ** 10)],
)
def test_p_value_by_range_by_hand(usual, n_units, p):
    # a share of .5 / (.5 + 1), half as many units
    assert a_range(usual=usual, n_units=n_units, largest=2.0).p_value() == pytest.approx(p)


@pytest.mark.parametrize(
    ("groups", "expected"),
    [
        (None, a_range(0.0, 1.0, 0.2, (1, 1), 5, 1.0)),
        ([0, 0, 1, 1, 2], a_range(0.1, 1.0, 0.0, (1, 1), 3, 1.2)),
    ],
)
def test_range_of_a_pair_by_hand(groups, expected):
    # differences 0, .2, 0, 1, -.25; of groups .1, .5, -.25, of which no other is within 1/3
    table = pd.DataFrame({"a": [0, 0.2, 0, 1, 0.0], "b": [0, 0, 0, 0, 0.25]})
    units = resampling_units(5, groups, None)
    found = _Moments(table.to_numpy(), np.array([[0, 1]]), units).range_of(0)
    assert found.usual == pytest.approx(expected.usual)
    assert found.width == expected.width
    assert found.near == pytest.approx(expected.near)
    assert found.n_far.tolist() == expected.n_far.tolist()
    assert (found.n_units, found.largest) == (expected.n_units, pytest.approx(expected.largest))


def test_the_narrower_interval_is_taken():
    t = np.arange(1.0, 20)[:, None] * [1, 1, 1]
    t[[3, 8], 2] = np.inf  # two of 19 may lie beyond a level of .1, so no quantile is finite
    width = np.ptp(a_range().interval(0.1))
    error = np.array([1.01, 0.99, 1e-9]) * width / 36  # the second largest is 18
    assert _are_by_range([a_range()] * 3, error, t, 0.1).tolist() == [True, False, True]


def test_levels_of_intervals_by_range_and_by_quantile():
    t = np.arange(1.0, 1000)[:, None] * [np.inf, np.inf, 0.001]
    some = SimpleNamespace(
        range_of=lambda pair: a_range(),
        difference=np.array([0.1, 0.1, 0.3]),
        std_error=np.array([0.0, 0.0, 0.01]),
    )
    low, high = _intervals(some, t, 0.2)
    ends = a_range().interval(0.02 / 2)  # a tenth of the level is for the two by range
    critical = _critical_values(t[:, 2:], 0.18)[0]
    np.testing.assert_allclose(low, [ends[0], ends[0], 0.3 - 0.01 * critical])
    np.testing.assert_allclose(high, [ends[1], ends[1], 0.3 + 0.01 * critical])
    some.std_error = np.zeros(3)
    t[:, 2] = np.inf
    low, high = _intervals(some, t, 0.2)
    ends = a_range().interval(0.2 / 3)
    np.testing.assert_allclose([low, high], np.repeat(ends[:, None], 3, axis=1))


def test_at_least_one_replicate_is_inside():
    t = np.array([[2.0], [4], [1], [3]])
    # of four replicates three may be outside
    assert _critical_values(t, 0.9).tolist() == [2]
    assert _critical_values(t, 0.4).tolist() == [3]


def test_p_values_by_hand():
    some = SimpleNamespace(
        difference=np.array([1.0, 0.5]),
        std_error=np.array([1.0, 0.0]),
        is_constant=np.array([False, True]),
        range_of=lambda pair: a_range(usual=0.5, n_units=10, largest=2.0),
    )
    t = np.array([[1 - 1e-12, np.inf], [0.5, np.inf], [2.0, np.inf]])
    np.testing.assert_allclose(_p_values(some, t), [3 / 4, 2 * (5 / 6) ** 10])
    some.range_of = lambda pair: a_range(usual=0.5, n_units=1000, largest=2.0)
    np.testing.assert_allclose(_p_values(some, t), [3 / 4, 1 / 4])
