import numpy as np
import pandas as pd
import pytest
from scipy import stats

from trajscore.inference import compare_predictors
from trajscore.inference._compare import _holm, _Moments, _pairs
from trajscore.inference._units import draw_counts, resampling_units


def three(rng, n=60):
    shared = rng.normal(size=n)
    return pd.DataFrame({name: shared + rng.normal(size=n) for name in "abc"})


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
    critical = ((out["high"] - out["low"]) / (2 * out["std_error"])).to_numpy()
    np.testing.assert_allclose(critical, critical[0])
    assert stats.t.ppf(0.975, 399) < critical[0] < stats.t.ppf(1 - 0.025 / 3, 399) + 0.05


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


def test_same_for_any_threads_form_and_row_order(rng):
    table = three(rng)
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
        ({"a": [1.0, 2, 3], "b": [1.1, 2.1, 3.1]}, {}, "between 'a' and 'b' does not vary"),
        ({"a": [1.0, 2, 3], "b": [3.0, 2, 2]}, {}, "3 runs or clusters.*too few"),
        ({"a": [1.0, 2, 3], "b": [3.0, 2, 2]}, {"groups": [0, 0, 0]}, "one cluster"),
        ({"a": [1.0, 2, 3], "b": [3.0, 2, 2]}, {"reference": "c"}, "'c' is none of"),
        ({"a": [1.0, 2, 3], "b": [3.0, 2, 2]}, {"n_resamples": 18}, "at least 19 are needed"),
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
