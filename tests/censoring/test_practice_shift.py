import numpy as np
import pandas as pd
import pytest

from refused import not_refused
from trajscore import PlattCrossFitCalibrator, PrefixForecaster, TrajectoryArray
from trajscore.calibration import cross_fit_traces
from trajscore.censoring import practice_shift, termination_audit
from trajscore.inference import bootstrap
from trajscore.metrics import censored_tps_score, tps_score

SHIFTS = {"log": "+0.1623", "brier": "+0.0797", "beta(2,4)": "+0.00057"}
RAMPS = {
    "early": lambda t: 1 / np.sqrt(t),
    "uniform": np.ones_like,
    "exponential_front": lambda t: 0.5 ** (t - 1),
    "linear_back": lambda t: t,
}
QUICK = {"calibrator": None, "n_resamples": 20}


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


@pytest.fixture(scope="module", params=[None, "own"], ids=["by step", "as published"])
def shift(webshop, request):
    scores = ["log", "brier", ("beta", 2, 4)]
    options = {"scores": scores, "calibrator": None, "n_resamples": 100, "horizon": request.param}
    found = practice_shift(*webshop, **options)
    return found, request.param


def test_webshop_base_rate(webshop, shift):
    X, y = webshop
    shift, horizon = shift
    assert (shift.n_complete, shift.n_censored, shift.n_excluded) == (163, 145, 192)
    assert round(shift.censoring_rate, 4) == 0.4708
    assert list(shift.shifts()) == [*SHIFTS]
    if horizon:  # as printed, whatever the weights
        for score, printed in SHIFTS.items():
            for value in shift.shifts().loc["base rate", score]:
                assert f"{value:+.{len(printed) - 3}f}" == printed
        return
    # that over forecasts
    weight = np.concatenate([1 / np.sqrt(np.arange(1, n + 1)) for n in X.lengths])
    label = np.repeat(y, X.lengths)
    scored, complete = np.repeat(np.arange(500) < 308, X.lengths), label >= 0
    rate = np.average(label[scored] == 1, weights=weight[scored])
    of_complete = np.average(label[complete], weights=weight[complete])
    entropy = [p * np.log(rate) + (1 - p) * np.log(1 - rate) for p in (of_complete, rate)]
    row = shift.table.loc[("base rate", "log", "early")]
    np.testing.assert_allclose(row[["complete", "extended"]].astype(float), entropy)


def test_every_figure_is_what_the_scores_say(webshop, shift):
    X, y = webshop
    shift, horizon = shift
    kept, complete, table = np.arange(500) < 308, np.arange(500) < 163, shift.table
    names = [*RAMPS, "linear_front"] if horizon else [*RAMPS]
    assert sorted(table.index.unique("weights")) == sorted(names)
    for weights in names:
        options = {"score": "brier", "weights": weights, "horizon": horizon}
        F, row = X["bold"], table.loc[("bold", "brier", weights)]
        base = table.loc[("base rate", "brier", weights)]
        np.testing.assert_allclose(row["complete"], tps_score(y[complete], F[complete], **options))
        np.testing.assert_allclose(row["extended"], censored_tps_score(y[kept], F[kept], **options))
        for name in ("complete", "extended"):
            assert row[f"margin_{name}"] == row[name] - base[name]
        # a shift is the share of weight that was cut times the gap
        share = 145 / 308  # a run weighs as much as any other
        if not horizon:
            D = np.array([RAMPS[weights](np.arange(1.0, n + 1)).sum() for n in X.lengths[:308]])
            share = D[163:].sum() / D.sum()
        assert shift.censored_weight[weights] == pytest.approx(share)
        gap = censored_tps_score(y[163:308], F[163:308], **options) - row["complete"]
        np.testing.assert_allclose(row["shift"], share * gap, rtol=1e-12)
    np.testing.assert_allclose(table["shift"], table["extended"] - table["complete"])
    change = table["margin_extended"] - table["margin_complete"]
    np.testing.assert_allclose(table["margin_shift"], change, atol=1e-15)


def test_signs_margins_and_ranks(shift):
    table, shift = shift[0].table, shift[0]
    signs, margins = shift.signs(), shift.margins()
    assert (signs.loc["shy"].iloc[1:] == "+").all()
    assert (signs.loc["bold"].iloc[1:] == "-").all()
    assert signs.loc["bold", "mean forecast"] > 0.5 > signs.loc["shy", "mean forecast"]
    # of the complete runs most succeed and bold forecasts win; with all runs they lose
    flips = table.loc["bold"]
    assert (flips["rank_complete"] == 1).all()
    assert (flips["rank_extended"] == 3).all()
    assert flips["rank_flip"].all()
    assert flips["sign_flip"].all()
    assert not table.loc["base rate", "sign_flip"].any()
    same = table["rank_complete"] == table["rank_extended"]
    assert table["rank_flip"].equals(~same)
    # a shrinkage is the share of a margin that is lost, where it keeps its sign
    assert margins.loc["bold", "shrinkage"].isna().all()
    assert "base rate" not in margins.index.get_level_values("predictor")
    kept = margins[~margins["sign_flip"]]
    assert len(kept)
    lost = (kept["margin_complete"] - kept["margin_extended"]) / kept["margin_complete"]
    np.testing.assert_allclose(kept["shrinkage"], lost)


def test_intervals_are_of_runs_that_are_drawn(webshop):
    X, y = webshop
    X, y = X[:308], y[:308]
    groups = np.where(y >= 0, 1000, 0) + np.arange(308) // 20
    options = {"n_resamples": 60, "random_state": 3}
    how = {"scores": ["brier"], "weights": ["uniform"], "calibrator": None}
    rate = X.lengths[:118].sum() / X.lengths.sum()
    flat = X["shy"].with_cells(np.full(len(X.cells), rate))

    def shifts(F, counts):
        how = {"score": "brier", "weights": "uniform"}
        return [
            censored_tps_score(y, F, sample_weight=v, **how)
            - tps_score(y[:163], F[:163], sample_weight=v[:163], **how)
            for v in counts
        ]

    for of_groups in (None, groups):
        row = practice_shift(X, y, groups=of_groups, **how, **options).table.loc["shy"].iloc[0]
        drawn = bootstrap(
            lambda counts: np.transpose([shifts(X["shy"], counts), shifts(flat, counts)]),
            308, groups=of_groups, **options,
        )  # fmt: skip
        ends = np.quantile(drawn[:, 0], [0.025, 0.975])
        np.testing.assert_allclose(row[["shift_low", "shift_high"]].astype(float), ends)
        ends = np.quantile(drawn[:, 0] - drawn[:, 1], [0.025, 0.975])
        found = row[["margin_shift_low", "margin_shift_high"]].astype(float)
        np.testing.assert_allclose(found, ends)


def test_how_the_censored_runs_differ(webshop):
    X, y = webshop
    lengths, complete = X.lengths[:308], y[:308] >= 0
    shift = practice_shift(X, y, calibrator=None, n_resamples=100)
    row = shift.selection.loc["number of steps"]
    assert row["complete"] == lengths[complete].mean()
    assert (row["censored"], row["difference"]) == (30, 30 - row["complete"])

    def gap_of(counts):
        sums = counts * lengths
        return sums[:, ~complete].sum(axis=1) / counts[:, ~complete].sum(axis=1) - (
            sums[:, complete].sum(axis=1) / counts[:, complete].sum(axis=1)
        )

    draws = bootstrap(gap_of, 308, n_resamples=100, random_state=0)
    np.testing.assert_allclose(row[["low", "high"]], np.quantile(draws, [0.025, 0.975]))
    weight = [1 / np.sqrt(np.arange(1, n + 1)) for n in lengths]
    mean = np.array([np.average(F, weights=w) for F, w in zip(X["shy"], weight, strict=False)])
    gap = mean[~complete].mean() - mean[complete].mean()
    np.testing.assert_allclose(shift.selection.loc["shy", "difference"], gap, atol=1e-12)
    np.testing.assert_allclose(shift.mean_forecast["shy"], mean.mean())
    assert list(shift.selection.index) == ["number of steps", "shy", "bold"]


def test_which_runs_enter(webshop):
    X, y = webshop
    loose = practice_shift(X, y, scored=termination_audit(X, y).scored("administrative"), **QUICK)
    assert (loose.n_censored, loose.n_excluded) == (337, 0)
    strict = practice_shift(X, y, scored=termination_audit(X, y).scored(), **QUICK)
    by_meta = practice_shift(X, y, **QUICK)
    pd.testing.assert_frame_equal(strict.table, by_meta.table)
    # those that do not enter change nothing, nor is their q_z read
    q = np.where(np.arange(500) < 308, 0.3, np.nan)
    kept = practice_shift(X[:308], y[:308], q_z=0.3, **QUICK).table
    pd.testing.assert_frame_equal(practice_shift(X, y, q_z=q, **QUICK).table, kept)
    # the kinds of stops in the log decide
    kinds = np.repeat(["complete", "administrative", "informative"], [163, 145, 192])
    meta = {"stop_reason": np.repeat(["done", "timeout", "max_steps"], [163, 145, 192])}
    noted = TrajectoryArray(
        X.cells, X.lengths, channels=X.channels, meta=meta | {"stop_kind": kinds}
    )
    found = practice_shift(noted, y, **QUICK)
    assert (found.n_censored, found.n_excluded) == (145, 192)
    reasons = {"stop_reason": ["done", "done", "max_steps", "solar flare"]}
    X = TrajectoryArray([0.5, 0.6, 0.7, 0.2], np.ones(4, int), meta=reasons)
    with pytest.warns(UserWarning, match="solar.flare"):
        assert practice_shift({"p": X}, [1, 0, -1, -1], **QUICK).n_excluded == 1


@pytest.mark.parametrize("horizon", [None, "own"])
def test_calibrated_for_each_schedule_or_once(webshop, horizon):
    X, y = (one[:308] for one in webshop)
    names = ["early", "linear_back"]
    own = PlattCrossFitCalibrator(weights="uniform", horizon=horizon, cv=3)
    options = {"n_resamples": 5, "horizon": horizon, "scores": ["log"], "weights": names}
    for calibrator in ("platt", own):
        found = practice_shift(X[["shy"]], y, calibrator=calibrator, **options).table
        for weights in names:
            fitted = own
            if calibrator == "platt":
                fitted = PlattCrossFitCalibrator(weights=weights, horizon=horizon)
            F = cross_fit_traces(fitted, X["shy"], y, cv=fitted.cv)
            expected = censored_tps_score(y, F, weights=weights, horizon=horizon)
            np.testing.assert_allclose(found.loc[("shy", "log", weights), "extended"], expected)


def test_calibrators_hear_of_groups_and_q_z(webshop, rng):
    task = np.arange(120) // 6
    chance = rng.random(20)[task]
    cells = np.clip(np.repeat(chance, 4) + 0.1 * rng.normal(size=480), 0.01, 0.99)
    X = TrajectoryArray(cells, np.full(120, 4))
    y = np.where(rng.random(120) < 0.3, -1, rng.random(120) < chance)
    for q_z in (None, 0.9):
        own = PlattCrossFitCalibrator(censored="failure" if q_z is None else "q_z")
        options = {"groups": task, "q_z": q_z, "n_resamples": 10, "weights": ["early"]}
        mine = practice_shift({"a": X}, y, calibrator=own, **options).table
        pd.testing.assert_frame_equal(mine, practice_shift({"a": X}, y, **options).table)
        apart = practice_shift({"a": X}, y, **options | {"groups": None}).table
        assert not np.allclose(mine["extended"], apart["extended"])
    # a forecaster of one's own is fitted on other runs
    own = PrefixForecaster(features="last", pooled=True)
    found = practice_shift({"a": X}, y, calibrator=own, n_resamples=10)
    expected = practice_shift(
        {"a": cross_fit_traces(own, X, y)}, y, calibrator=None, n_resamples=10
    )
    pd.testing.assert_frame_equal(found.table, expected.table)
    # a signal that points the other way is worth nothing; one of certainty is a probability too
    X, y = webshop
    signal = X["bold"].with_cells(np.repeat(np.where(y == 1, -3.0, 2.0), X.lengths))
    table = practice_shift({"against": signal}, y, n_resamples=5).table
    assert (table.loc["against", "margin_complete"] < 0.01).all()
    odds = np.where(X["bold"].cells > 0.94, 1.0, X["bold"].cells)
    sure, nearly = (
        practice_shift({"a": X["bold"].with_cells(one)}, y, n_resamples=2).table["shift"]
        for one in (odds, np.minimum(odds, 1 - 1e-9))
    )
    np.testing.assert_allclose(sure, nearly, rtol=1e-6)


def test_q_z_is_used_throughout(webshop):
    X, y = webshop
    steps = X.lengths[:308]
    by_step = (steps[:118].sum() + 0.3 * 30 * 145) / steps.sum()
    for horizon, rate in ((None, by_step), ("own", (118 + 0.3 * 145) / 308)):
        options = {"q_z": np.full(500, 0.3), "horizon": horizon, "weights": ["uniform"]}
        found = practice_shift(X, y, **options, **QUICK).table
        base = found.loc[("base rate", "log", "uniform"), "extended"]
        np.testing.assert_allclose(base, rate * np.log(rate) + (1 - rate) * np.log(1 - rate))


def test_order_of_rows_jobs_and_seeds(webshop, rng):
    X, y = webshop
    order, how = rng.permutation(500), {"calibrator": None, "n_resamples": 130}
    first = practice_shift(X, y, **how).table
    again = practice_shift(X[order], y[order], n_jobs=2, **how).table
    np.testing.assert_allclose(again["shift"], first["shift"], rtol=1e-10)
    np.testing.assert_allclose(again["shift_low"], first["shift_low"], rtol=1e-8)
    named = {"random_state": 0, "scores": ("log", "brier", ("beta", 4, 2))}
    pd.testing.assert_frame_equal(practice_shift(X, y, **how, **named).table, first)
    other = practice_shift(X, y, random_state=1, **how).table
    assert not first["shift_low"].equals(other["shift_low"])


def test_bad_input():
    X, y = TrajectoryArray.from_list([[0.5], [0.6], [0.7]], ids=["a", "b", "c"]), [1, 0, -1]
    rows = [
        (X, [-1, -1, -1], {}, "none of the 3 runs"),
        (X, [1, 0, 1], {}, "all 3 runs .* observed"),
        (X, y, {"q_z": 1.2}, "row 2: .* q_z is 1.2"),
        (X, y, {"q_z": [0.1, 0.2]}, "q_z must be one number or 3"),
        (X, y, {"groups": [1, 1, 1]}, "one cluster"),
        (X, y, {"groups": [1, 2]}, "groups must be 3 labels"),
        (X, y, {"scored": [1, 1, 1]}, "scored must be 3 booleans"),
        (X, y, {"calibrator": "isotone"}, "calibrator must be"),
        ({}, y, {}, "no predictor"),
        ({"base rate": X}, y, {}, "'base rate' .* rename"),
        ({"number of steps": X}, y, {}, "'number of steps' .* rename"),
        ({"a": X, "b": X[::-1]}, y, {}, "row 0 is run 'a' in predictor 'a', but run 'c' in"),
        ({"a": X.with_cells(X.cells + 1)}, y, {}, "predictor 'a': .* lies outside"),
    ]
    assert not not_refused(lambda X, y, **how: practice_shift(X, y, **QUICK | how), rows)
