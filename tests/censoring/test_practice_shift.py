from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from trajscore import PlattCrossFitCalibrator, PrefixForecaster, TrajectoryArray
from trajscore.calibration import cross_fit_traces
from trajscore.censoring import practice_shift, termination_audit
from trajscore.censoring._practice_shift import PracticeShift, _Figures, _gap, _table
from trajscore.core.weights import WEIGHT_SCHEDULES
from trajscore.inference import bootstrap
from trajscore.metrics import censored_tps_score, tps_score

STEP_WEIGHTS = [name for name in WEIGHT_SCHEDULES if name != "linear_front"]  # needs a horizon
CONVENTIONS = [(None, STEP_WEIGHTS), ("own", WEIGHT_SCHEDULES)]
SHIFTS = {"log": "+0.1623", "brier": "+0.0797", "beta(2,4)": "+0.00057"}


@pytest.fixture(scope="module")
def webshop():
    """Counts and lengths of the paper's WebShop runs, with made-up signals."""
    rng = np.random.default_rng(0)
    y = np.r_[np.ones(118), np.zeros(45), -np.ones(145 + 192)]
    reason = np.repeat(["done", "max_steps", "parse_error"], [163, 145, 192])
    lengths = np.r_[rng.integers(4, 17, 163), np.full(145, 30), rng.integers(3, 30, 192)]
    low, high = rng.uniform(0.1, 0.5, lengths.sum()), rng.uniform(0.6, 0.95, lengths.sum())
    meta = {"stop_reason": reason}
    X = TrajectoryArray(np.column_stack([low, high]), lengths, channels=["shy", "bold"], meta=meta)
    return X, y


def uncalibrated(webshop, **options):
    families = ["log", "brier", ("beta", 2, 4)]
    return practice_shift(*webshop, scores=families, calibrator=None, n_resamples=300, **options)


@pytest.fixture(scope="module")
def shift(webshop):
    return uncalibrated(webshop)


@pytest.fixture(scope="module")
def published(webshop):
    return uncalibrated(webshop, horizon="own")


def test_webshop_base_rate_as_published(published):
    assert (published.n_complete, published.n_censored, published.n_excluded) == (163, 145, 192)
    for weights in WEIGHT_SCHEDULES:
        for score, expected in SHIFTS.items():
            value = published.table.loc[("base rate", score, weights), "shift"]
            assert f"{value:+.{len(expected) - 3}f}" == expected
    assert published.shifts().shape == (15, 3)


def test_webshop_base_rate_is_that_over_forecasts(webshop, shift):
    X, y = webshop
    weight = np.concatenate([1 / np.sqrt(np.arange(1, n + 1)) for n in X.lengths])
    label = np.repeat(y, X.lengths)
    scored, complete = np.repeat(np.arange(500) < 308, X.lengths), label >= 0
    rate = np.average(label[scored] == 1, weights=weight[scored])
    of_complete = np.average(label[complete], weights=weight[complete])
    entropy = [p * np.log(rate) + (1 - p) * np.log(1 - rate) for p in (of_complete, rate)]
    row = shift.table.loc[("base rate", "log", "early")]
    np.testing.assert_allclose(row[["complete", "extended"]].astype(float), entropy)
    assert shift.shifts().shape == (12, 3)


@pytest.mark.parametrize(("horizon", "names"), CONVENTIONS)
def test_every_figure_is_what_the_scores_say(webshop, shift, published, horizon, names):
    X, y = webshop
    shift = published if horizon else shift
    kept = np.arange(500) < 308
    complete = np.arange(500) < 163
    for weights in names:
        row = shift.table.loc[("bold", "brier", weights)]
        F = X["bold"]
        options = {"score": "brier", "weights": weights, "horizon": horizon}
        np.testing.assert_allclose(row["complete"], tps_score(y[complete], F[complete], **options))
        np.testing.assert_allclose(row["extended"], censored_tps_score(y[kept], F[kept], **options))
        base = shift.table.loc[("base rate", "brier", weights)]
        assert row["margin_extended"] == row["extended"] - base["extended"]
    table = shift.table
    np.testing.assert_allclose(table["shift"], table["extended"] - table["complete"])
    np.testing.assert_allclose(
        table["margin_shift"], table["margin_extended"] - table["margin_complete"], atol=1e-15
    )
    assert (table["shift_low"] <= table["shift"]).all()
    assert (table["shift"] <= table["shift_high"]).all()


def test_a_signal_that_points_the_other_way_is_worth_nothing(webshop):
    X, y = webshop
    signal = X["bold"].with_cells(np.repeat(np.where(y == 1, -3.0, 2.0), X.lengths))
    table = practice_shift({"against": signal}, y, n_resamples=20).table
    assert (table.loc["against", "margin_complete"] < 0.01).all()


@pytest.mark.parametrize(("horizon", "names"), CONVENTIONS)
def test_a_shift_is_the_share_of_weight_that_was_cut_times_the_gap(
    webshop, shift, published, horizon, names
):
    X, y = webshop
    shift = published if horizon else shift
    cut = (np.arange(500) >= 163) & (np.arange(500) < 308)
    for weights in names:
        if horizon:
            share = 145 / 308  # a run weighs as much as any other
        else:
            ramp = {"early": lambda t: 1 / np.sqrt(t), "uniform": np.ones_like}
            ramp |= {"exponential_front": lambda t: 0.5 ** (t - 1), "linear_back": lambda t: t}
            D = np.array([ramp[weights](np.arange(1.0, n + 1)).sum() for n in X.lengths[:308]])
            share = D[cut[:308]].sum() / D.sum()
        assert shift.censored_weight[weights] == pytest.approx(share)
        options = {"score": "brier", "weights": weights, "horizon": horizon}
        row = shift.table.loc[("bold", "brier", weights)]
        gap = censored_tps_score(y[cut], X["bold"][cut], **options) - row["complete"]
        np.testing.assert_allclose(row["shift"], share * gap, rtol=1e-12)


@pytest.mark.parametrize(("horizon", "names"), CONVENTIONS)
def test_signs_margins_and_ranks(shift, published, horizon, names):
    shift = published if horizon else shift
    signs = shift.signs()
    assert (signs.loc["shy", list(names)] == "+").all()
    assert (signs.loc["bold", list(names)] == "-").all()
    assert signs.loc["bold", "mean forecast"] > 0.5 > signs.loc["shy", "mean forecast"]
    # of the complete runs most succeed and bold forecasts win; with all runs they lose
    flips = shift.table.loc["bold"]
    assert (flips["rank_complete"] == 1).all()
    assert (flips["rank_extended"] == 3).all()
    assert flips["rank_flip"].all()
    assert flips["sign_flip"].all()
    margins = shift.margins()
    assert margins.loc["bold", "shrinkage"].isna().all()
    assert "base rate" not in margins.index.get_level_values("predictor")


def test_sensitivity_to_parse_errors_is_one_argument_away(webshop):
    scored = termination_audit(*webshop).scored("administrative")
    loose = practice_shift(*webshop, scored=scored, n_resamples=50)
    assert (loose.n_censored, loose.n_excluded) == (337, 0)
    strict = practice_shift(*webshop, scored=termination_audit(*webshop).scored(), n_resamples=50)
    by_meta = practice_shift(*webshop, n_resamples=50)
    pd.testing.assert_frame_equal(strict.table, by_meta.table)
    assert (strict.n_censored, strict.n_excluded) == (145, 192)


@pytest.mark.parametrize(("horizon", "names"), CONVENTIONS)
def test_calibrated_for_each_schedule_or_once(webshop, horizon, names):
    X, y = webshop
    X, y = X[:308], y[:308]
    matched = practice_shift(X, y, n_resamples=5, horizon=horizon)
    own = PlattCrossFitCalibrator(weights="uniform", horizon=horizon)
    once = practice_shift(X, y, n_resamples=5, horizon=horizon, calibrator=own)
    for weights in names:
        for found, fitted in ((matched, weights), (once, "uniform")):
            F = PlattCrossFitCalibrator(weights=fitted, horizon=horizon, censored="failure")
            F = F.fit_transform(X["shy"], y)
            expected = censored_tps_score(y, F, weights=weights, horizon=horizon)
            row = found.table.loc[("shy", "log", weights)]
            np.testing.assert_allclose(row["extended"], expected)


def test_how_the_censored_runs_differ(webshop, shift):
    X, y = webshop
    lengths, complete = X.lengths[:308], y[:308] >= 0
    row = shift.selection.loc["number of steps"]
    assert row["complete"] == lengths[complete].mean()
    assert row["censored"] == 30
    assert row["difference"] == 30 - row["complete"]
    spread = lengths[complete].std() / np.sqrt(163)
    np.testing.assert_allclose(row["high"] - row["low"], 2 * 1.96 * spread, rtol=0.2)
    assert row["low"] < row["difference"] < row["high"]

    def gap_of(counts):
        sums = counts * lengths
        return sums[:, ~complete].sum(axis=1) / counts[:, ~complete].sum(axis=1) - (
            sums[:, complete].sum(axis=1) / counts[:, complete].sum(axis=1)
        )

    draws = bootstrap(gap_of, 308, n_resamples=300, random_state=0)
    np.testing.assert_allclose(row[["low", "high"]], np.quantile(draws, [0.025, 0.975]))
    weight = [1 / np.sqrt(np.arange(1, n + 1)) for n in lengths]
    mean = np.array([np.average(F, weights=w) for F, w in zip(X["shy"], weight, strict=False)])
    row = shift.selection.loc["shy"]
    gap = mean[~complete].mean() - mean[complete].mean()
    np.testing.assert_allclose(row["difference"], gap, atol=1e-12)
    np.testing.assert_allclose(shift.mean_forecast["shy"], mean.mean())
    assert list(shift.selection.index) == ["number of steps", "shy", "bold"]
    assert round(shift.censoring_rate, 4) == 0.4708


def test_q_z_is_used_throughout(webshop):
    X, y = webshop
    q = np.full(500, 0.3)
    found = practice_shift(X, y, q_z=q, n_resamples=50)
    base = found.table.loc[("base rate", "log", "uniform"), "extended"]
    steps = X.lengths[:308]
    rate = (steps[:118].sum() + 0.3 * 30 * 145) / steps.sum()
    np.testing.assert_allclose(base, rate * np.log(rate) + (1 - rate) * np.log(1 - rate))
    found = practice_shift(X, y, q_z=q, n_resamples=50, weights=["uniform"], horizon="own")
    base = found.table.loc[("base rate", "log", "uniform"), "extended"]
    rate = (118 + 0.3 * 145) / 308
    np.testing.assert_allclose(base, rate * np.log(rate) + (1 - rate) * np.log(1 - rate))


def test_same_for_any_order_of_rows_and_n_jobs(webshop, rng):
    X, y = webshop
    first = practice_shift(X, y, n_resamples=130)
    order = rng.permutation(500)
    again = practice_shift(X[order], y[order], n_resamples=130, n_jobs=2)
    np.testing.assert_allclose(again.table["shift"], first.table["shift"], rtol=1e-10)
    np.testing.assert_allclose(again.table["shift_low"], first.table["shift_low"], rtol=1e-8)


def test_forecasts_of_certainty_are_probabilities_too(webshop):
    X, y = webshop
    odds = np.where(X["bold"].cells > 0.94, 1.0, X["bold"].cells)
    sure = X["bold"].with_cells(odds)
    nearly = sure.with_cells(np.minimum(odds, 1 - 1e-9))
    tables = [practice_shift(one, y, n_resamples=2).table["shift"] for one in (sure, nearly)]
    np.testing.assert_allclose(*tables, rtol=1e-6)


def test_clusters_widen_the_interval(webshop):
    X, y = webshop
    groups = np.where(y >= 0, 1000, 0) + np.arange(500) // 40
    plain = practice_shift(X, y, calibrator=None, n_resamples=200).table
    clustered = practice_shift(X, y, calibrator=None, n_resamples=200, groups=groups).table
    width = [t["shift_high"] - t["shift_low"] for t in (plain, clustered)]
    assert (width[1] > width[0]).mean() > 0.9


@pytest.mark.parametrize(
    ("y", "options", "match"),
    [
        ([-1, -1, -1], {}, "none of the 3 runs .* has an observed outcome"),
        ([1, 0, 1], {}, "all 3 runs .* were observed"),
        ([1, 0, -1], {"q_z": 1.2}, "row 2: .* q_z is 1.2"),
        ([1, 0, -1], {"q_z": [0, 0, np.nan]}, "row 2: .* q_z is nan"),
        ([1, 0, -1], {"groups": [1, 1, 1]}, "all runs are of one cluster"),
        ([1, 0, -1], {"scored": [1, 1, 1]}, "scored must be 3 booleans"),
        ([1, 0, -1], {"calibrator": "isotone"}, "calibrator must be 'auto', 'platt'"),
        ([1, 0, -1], {"scored": [True, True]}, "scored must be 3 booleans"),
    ],
)
def test_bad_input_gets_one_sentence(y, options, match):
    X = [[0.5], [0.6], [0.7]]
    with pytest.raises(ValueError, match=match):
        practice_shift({"p": X}, y, **{"calibrator": None, **options})


@pytest.mark.parametrize(
    ("X", "match"),
    [
        ({}, "there is no predictor"),
        ({"base rate": [[0.5]]}, "rename the predictor"),
        (
            {"a": [[0.5], [0.5]], "b": [[0.5, 0.5], [0.5, 0.5]]},
            "predictor 'a' and predictor 'b' have 1 and 2 steps in row 0",
        ),
        ({"a": [[1.5], [0.5]]}, "predictor 'a': .* lies outside"),
    ],
)
def test_bad_predictors(X, match):
    with pytest.raises(ValueError, match=match):
        practice_shift(X, [1, -1], calibrator=None)


def test_unknown_stop_reasons_are_named():
    reasons = ["done", "done", "max_steps", "solar flare"]
    X = TrajectoryArray([0.5, 0.6, 0.7, 0.2], np.ones(4, int), meta={"stop_reason": reasons})
    with pytest.warns(UserWarning, match="'solar flare'|'solar_flare'"):
        found = practice_shift({"p": X}, [1, 0, -1, -1], calibrator=None, n_resamples=20)
    assert found.n_excluded == 1


def test_stop_kinds_of_the_log_decide_and_a_rule_overrides_them(webshop):
    X, y = webshop
    kinds = np.repeat(["complete", "administrative", "informative"], [163, 145, 192])
    reasons = np.repeat(["done", "timeout", "max_steps"], [163, 145, 192])
    meta = {"stop_reason": reasons, "stop_kind": kinds}
    noted = TrajectoryArray(X.cells, X.lengths, channels=X.channels, meta=meta)
    found = practice_shift(noted, y, calibrator=None, n_resamples=20)
    assert (found.n_censored, found.n_excluded) == (145, 192)
    rule = {"timeout": "informative"}
    scored = termination_audit(noted, y, rule=rule).scored()
    found = practice_shift(noted, y, scored=scored, calibrator=None, n_resamples=20)
    assert (found.n_censored, found.n_excluded) == (192, 145)


@pytest.mark.parametrize("q_z", [None, 0.9])
def test_a_calibrator_of_ones_own_hears_of_groups_and_q_z(rng, q_z):
    task = np.arange(120) // 6
    chance = rng.random(20)[task]
    cells = np.clip(np.repeat(chance, 4) + 0.1 * rng.normal(size=480), 0.01, 0.99)
    X = TrajectoryArray(cells, np.full(120, 4))
    y = np.where(rng.random(120) < 0.3, -1, rng.random(120) < chance)
    own = PlattCrossFitCalibrator(censored="failure" if q_z is None else "q_z")
    options = {"groups": task, "q_z": q_z, "n_resamples": 10}
    options["weights"] = ["early"]
    mine = practice_shift({"a": X}, y, calibrator=own, **options).table
    pd.testing.assert_frame_equal(mine, practice_shift({"a": X}, y, **options).table)
    apart = practice_shift({"a": X}, y, **options | {"groups": None}).table
    assert not np.allclose(mine["extended"], apart["extended"])


def test_a_forecaster_of_ones_own_is_fitted_on_other_runs(webshop):
    X, y = webshop
    X, y = X["shy"][:308], np.maximum(y[:308], 0)
    some = np.where(np.arange(308) % 5 == 0, -1, y)
    own = PrefixForecaster(features="last", pooled=True)
    options = {"scored": np.full(308, True), "n_resamples": 10}
    found = practice_shift({"a": X}, some, calibrator=own, **options)
    traces = {"a": cross_fit_traces(own, X, some)}
    expected = practice_shift(traces, some, calibrator=None, **options)
    pd.testing.assert_frame_equal(found.table, expected.table)


def test_runs_that_do_not_enter_change_nothing(webshop):
    X, y = webshop
    q = np.where(np.arange(500) < 308, 0.3, np.nan)  # nor is their q_z read
    kept = practice_shift(X[:308], y[:308], q_z=0.3, n_resamples=20).table
    pd.testing.assert_frame_equal(practice_shift(X, y, q_z=q, n_resamples=20).table, kept)


def test_predictors_groups_and_q_z_go_with_the_runs():
    X = TrajectoryArray.from_list([[0.5], [0.6], [0.7]], ids=["a", "b", "c"])
    y = [1, 0, -1]
    with pytest.raises(
        ValueError, match="row 0 is run 'a' in predictor 'a', but run 'c' in predictor 'b'"
    ):
        practice_shift({"a": X, "b": X[::-1]}, y, calibrator=None)
    with pytest.raises(ValueError, match="groups must be 3 labels"):
        practice_shift(X, y, calibrator=None, groups=[1, 2, 3, 4])
    with pytest.raises(ValueError, match="q_z must be one number or 3"):
        practice_shift(X, y, calibrator=None, q_z=[0.1, 0.2, 0.3, 0.4])


@pytest.mark.parametrize(
    ("shifts", "sign"),
    [
        ((0.1, 0.2), "+"),
        ((-0.1, -0.2), "-"),
        ((0.1, -0.2), "+/-"),
        ((0.1, 0.0), "+/-"),
        ((0.0, -0.1), "+/-"),
        ((0.0, 0.0), "+/-"),
    ],
)
def test_a_sign_is_one_on_which_all_families_agree(shifts, sign):
    rows = pd.MultiIndex.from_product(
        [("a", "base rate"), ("log", "brier"), ("early",)], names=["predictor", "score", "weights"]
    )
    table = pd.DataFrame({"shift": [*shifts, 0.5, -0.5]}, index=rows)
    mean = pd.Series({"a": 0.25})
    shift = PracticeShift(table, 3, 1, 0, pd.Series(dtype=float), mean, pd.DataFrame())
    expected = pd.DataFrame({"mean forecast": [0.25], "early": [sign]}, index=["a"])
    pd.testing.assert_frame_equal(shift.signs(), expected, check_names=False)
    assert shift.censoring_rate == 0.25


def test_a_table_by_hand():
    names = [("a", "b", "base rate"), ("log", "brier"), ("early",)]
    index = pd.MultiIndex.from_product(names, names=["predictor", "score", "weights"])
    complete = [0.3, -0.1, 0.2, 0.0, 0.1, 0.0]  # log, brier of a, of b, of the base rate
    extended = [0.1, 0.1, 0.4, 0.0, 0.1, 0.0]
    values = np.array([complete, extended, *np.arange(24.0).reshape(4, 6)])
    table = _table(index, values, values - 1, values + 1)
    assert table["complete"].tolist() == complete
    assert table["margin_shift"].tolist() == values[5].tolist()
    assert table["shift_low"].tolist() == (values[2] - 1).tolist()
    assert table["margin_extended_high"].tolist() == (values[4] + 1).tolist()
    assert "extended_low" not in table
    ranks = table[["rank_complete", "rank_extended"]].xs("log", level="score").to_numpy()
    assert ranks[:, 0].argsort().tolist() == [0, 1, 2]  # the best is first
    assert ranks[1, 1] < ranks[0, 1] == ranks[2, 1]
    # the margin of a changes its sign in brier, and in log it is lost
    assert table["sign_flip"].tolist() == [False, True, False, False, False, False]
    flips = table["rank_complete"] != table["rank_extended"]
    assert table["rank_flip"].tolist() == flips.tolist()
    assert table["rank_flip"].any()


def test_figures_by_hand():
    def sums(total):
        return SimpleNamespace(total=np.array(total), divisor=np.array([1.0, 2.0, 1.0]))

    complete = np.array([True, True, False])
    figures = _Figures([sums([3.0, 3, 4]), sums([1.0, 1, 1])], complete, 2)
    found = figures(np.array([[1.0, 1, 1], [0, 2, 1], [0, 0, 3]]))
    assert found.shape == (3, 6, 2)
    means = [[6 / 3, 10 / 4], [6 / 4, 10 / 5], [np.nan, 4]]
    rates = [[2 / 3, 3 / 4], [2 / 4, 3 / 5], [np.nan, 1]]
    for row, (a, base) in enumerate(zip(means, rates, strict=True)):
        margins = np.subtract(a, base)
        np.testing.assert_allclose(found[row, :3, 0], [*a, a[1] - a[0]])
        np.testing.assert_allclose(found[row, :3, 1], [*base, base[1] - base[0]])
        np.testing.assert_allclose(found[row, 3:, 0], [*margins, margins[1] - margins[0]])
        np.testing.assert_allclose(found[row, 3:, 1], np.multiply(base, 0)[[0, 1, 0]])


def test_means_of_both_kinds_of_runs():
    known = np.array([[1.0, 10], [3, 30], [8, 0]])
    complete = np.array([True, True, False])
    found = _gap(known, complete, np.array([[1.0, 1, 1], [3, 1, 2], [1, 0, 0]]))
    np.testing.assert_allclose(found[0], [[2, 20], [8, 0], [6, -20]])
    np.testing.assert_allclose(found[1], [[1.5, 15], [8, 0], [6.5, -15]])
    assert np.isnan(found[2, 1:]).all()


def test_shrinkage_is_the_share_of_a_margin_that_is_lost(shift):
    margins = shift.margins()
    same = margins[~margins["sign_flip"] & (margins["margin_complete"] != 0)]
    assert len(same)
    lost = (same["margin_complete"] - same["margin_extended"]) / same["margin_complete"]
    np.testing.assert_allclose(same["shrinkage"], lost)


def test_defaults_are_the_families_and_schedules_of_the_tables():
    X, y = TrajectoryArray(np.linspace(0.1, 0.9, 12), [2] * 6), [1, 0, -1, 1, 0, -1]
    small = {"calibrator": None, "n_resamples": 5}
    table = practice_shift({"a": X}, y, **small).table
    assert table.index.unique("score").tolist() == ["log", "brier", "beta(4,2)"]
    named = practice_shift({"a": X}, y, scores=("log", "brier", ("beta", 4, 2)), **small)
    pd.testing.assert_frame_equal(table, named.table)
    seeded = practice_shift({"a": X}, y, random_state=0, **small)
    pd.testing.assert_frame_equal(table, seeded.table)  # of a seed unless another is given
    other = practice_shift({"a": X}, y, random_state=1, **small)
    assert not table["shift_low"].equals(other.table["shift_low"])


@pytest.mark.parametrize("calibrator", ["platt", PlattCrossFitCalibrator(cv=3, C=0.5)])
def test_a_name_is_fitted_for_each_schedule_and_a_forecaster_once(calibrator):
    rng = np.random.default_rng(0)
    X, y = TrajectoryArray(rng.random(160), [4] * 40), np.resize([1, 0, -1, 1], 40)
    found = practice_shift(
        {"a": X}, y, calibrator=calibrator, weights=["uniform", "linear_back"], n_resamples=2,
        scores=["brier"],
    )  # fmt: skip
    failed = np.maximum(y, 0)
    for weights in ("uniform", "linear_back"):
        fitted = calibrator
        if calibrator == "platt":
            fitted = PlattCrossFitCalibrator(weights=weights)
        forecasts = cross_fit_traces(fitted, X, y, cv=fitted.cv)
        expected = tps_score(failed, forecasts, score="brier", weights=weights)
        row = found.table.xs(("a", weights), level=("predictor", "weights"))
        assert row["extended"].to_numpy() == pytest.approx([expected])
