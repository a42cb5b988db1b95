"""Accumulators: the same as in memory, whatever the parts, and by hand on few runs."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t

from known_intervals import numeric_influence, t_interval
from known_scores import OWN, WAYS, ShiftedBrier
from trajscore import PlattCrossFitCalibrator, TrajectoryArray
from trajscore.calibration import (
    BetaCrossFitCalibrator,
    EnsembleCrossFitCalibrator,
    IsotonicCrossFitCalibrator,
)
from trajscore.core.weights import step_weights
from trajscore.metrics import (
    step_calibration_error,
    tps_decomposition,
    tps_samples,
    tps_score,
    trajectory_diagnostics,
)
from trajscore.streaming import CalibrationAccumulator, RankingAccumulator, TPSAccumulator

ALL = [TPSAccumulator, CalibrationAccumulator, RankingAccumulator]
PIECES = (slice(0, 7), slice(7, 1000), slice(1000, None))


@pytest.fixture(scope="module")
def runs():
    rng, n = np.random.default_rng(0), 1500
    lengths = rng.integers(1, 9, n)
    rate = np.repeat(rng.beta(2, 2, n), lengths)
    p = np.clip(rate + rng.normal(0, 0.15, len(rate)), 0.001, 0.999)
    y = (rng.random(n) < rate[np.cumsum(lengths) - lengths]).astype(int)
    return TrajectoryArray(p, lengths), y


TASKS = np.array([f"task {k}" for k in np.arange(1500) % 40])


@pytest.mark.parametrize("how", WAYS)
def test_scores_of_parts_are_those_of_all(runs, how):
    X, y = runs
    scores = ["log", "brier", ("beta", 4, 2), ("log", 1e-2)]
    parts = [TPSAccumulator(scores, **how).update(y[rows], X[rows]) for rows in PIECES]
    total = parts[2].merge(parts[0]).merge(parts[1])
    rate = np.average(np.repeat(y, X.lengths), weights=step_weights(X.lengths, **how))
    assert total.n_runs == len(y)
    assert total.success_rate == pytest.approx(rate, rel=1e-12)
    table = total.compute()
    assert table["n_runs"].tolist() == [1500] * 4
    for (_, row), score in zip(table.iterrows(), scores, strict=True):
        assert row["value"] == pytest.approx(tps_score(y, X, score=score, **how), rel=1e-12)
        of_runs = tps_samples(y, X, score=score, **how)
        constant = X.with_cells(np.full(len(X.cells), rate))
        base = tps_samples(y, constant, score=score, **how)
        assert row["base_rate"] == pytest.approx(base.mean(), rel=1e-10)
        for name, samples, ends in (
            ("value", of_runs, ["low", "high"]),
            ("margin", of_runs - base, ["margin_low", "margin_high"]),
        ):
            low, high = t_interval(samples.mean(), samples)
            found = row[[name, *ends]].to_numpy(float)
            np.testing.assert_allclose(found, [samples.mean(), low, high], rtol=1e-9)


def test_clusters_may_come_in_parts(runs):
    X, y = runs
    pieces = [TPSAccumulator().update(y[rows], X[rows], TASKS[rows]) for rows in PIECES]
    found = pieces[0].merge(pieces[1]).merge(pieces[2]).compute(0.9)
    # by what each task adds to the sum: a jackknife over tasks
    psi = tps_samples(y, X) - tps_score(y, X)
    size, total = (np.array([part[task == TASKS].sum() for task in set(TASKS)])
                   for part in (np.ones(1500), psi))  # fmt: skip
    left_out = np.sqrt(39 / 40) * total / (1500 - size)
    freedom = 1500**2 / (size**2).sum() - 1
    half = t.ppf(0.95, freedom) * np.sqrt((left_out**2).sum())
    row = found.loc["log", ["value", "low", "high"]].to_numpy(float)
    np.testing.assert_allclose(row, tps_score(y, X) + np.array([0, -half, half]), rtol=1e-10)
    plain = TPSAccumulator().update(y, X)
    for work in (
        lambda: pieces[0].update(y, X),
        lambda: plain.update(y, X, TASKS),
        lambda: plain.merge(pieces[0]),
    ):
        with pytest.raises(ValueError, match="groups.*none"):
            work()
    empty = TPSAccumulator().merge(pieces[0]).merge(TPSAccumulator())
    pd.testing.assert_frame_equal(empty.compute(0.9), found)
    assert empty.merge(pieces[0]).n_runs == 3000


def test_steps_that_were_cut_off_have_no_weight_in_the_paper(runs):
    # each run counts alike, and one that was cut off adds the weight of the steps that are seen
    X, y = runs
    q_z = np.where(X.lengths > 4, 0.3, y)
    seen = X.truncate(np.minimum(X.lengths, 4)).with_horizon(X.lengths)
    total = TPSAccumulator(**OWN).update(q_z, seen)
    weight = step_weights(seen.lengths, "linear_front", X.lengths)
    rate = np.average(np.repeat(q_z, seen.lengths), weights=weight)
    assert total.success_rate == pytest.approx(rate, rel=1e-12)
    row = total.compute().loc["log"]
    assert row["value"] == pytest.approx(tps_score(q_z, seen, **OWN), rel=1e-12)
    constant = tps_score(q_z, seen.with_cells(np.full(len(seen.cells), rate)), **OWN)
    assert row["base_rate"] == pytest.approx(constant, rel=1e-12)


@pytest.mark.parametrize("how", WAYS)
def test_calibration_on_the_grid(runs, how):
    X, y = runs
    parts = [CalibrationAccumulator(**how).update(y[k::3], X[k::3]) for k in range(3)]
    counts = parts[1].merge(parts[2]).merge(parts[0])
    for score in ("brier", "log"):
        found, exact = counts.compute(score), tps_decomposition(y, X, score=score, **how)
        for part in ("miscalibration", "discrimination", "uncertainty"):
            assert found[part] == pytest.approx(getattr(exact, part), abs=2e-4)
    assert found["S-ECE"] == pytest.approx(step_calibration_error(y, X, **how), abs=1e-3)
    for part in ("early", "middle", "late"):
        error = step_calibration_error(y, X, part=part, **how)
        assert found[f"S-ECE {part}"] == pytest.approx(error, abs=2e-3, nan_ok=True)
    rate = np.average(np.repeat(y, X.lengths), weights=step_weights(X.lengths, **how))
    assert found["success_rate"] == pytest.approx(rate, rel=1e-12)
    # maps fitted to counts; a strong penalty, so that the scale of the weights shows
    for kind, gap in ((PlattCrossFitCalibrator, 1e-6), (BetaCrossFitCalibrator, 1e-5)):
        calibrator = kind(C=1e-3, **how)
        exact = calibrator.fit(X, y).full_map_(X.cells)
        np.testing.assert_allclose(counts.fit(calibrator)(X.cells), exact, atol=gap)
    for steps in (IsotonicCrossFitCalibrator(**how), EnsembleCrossFitCalibrator(**how)):
        gap = counts.fit(steps)(X.cells) - steps.fit(X, y).full_map_(X.cells)
        assert abs(gap).mean() < 3e-3


# one step a run: forecasts of 0.2 come true in 1 of 4 runs, those of 0.8 in 2 of 4
EIGHT = TrajectoryArray([0.2] * 4 + [0.8] * 4, [1] * 8)
WON = np.array([1, 0, 0, 0, 1, 1, 0, 0])


def test_calibration_by_hand():
    counts = CalibrationAccumulator().update(WON, EIGHT)
    for n_bins, error in ((1, abs(3 / 8 - 0.5)), (2, 0.175), (10, 0.175)):
        errors = counts.compute(n_bins=n_bins)
        assert errors["S-ECE"] == pytest.approx(error)
        assert errors["S-ECE early"] == pytest.approx(error)
        assert np.isnan(errors[["S-ECE middle", "S-ECE late"]]).all()
    parts = counts.compute("brier")
    assert parts["miscalibration"] == pytest.approx((0.05**2 + 0.3**2) / 2)
    assert parts["discrimination"] == pytest.approx(0.125**2)
    assert parts["uncertainty"] == pytest.approx(3 / 8 * 5 / 8)
    assert parts["success_rate"] == 3 / 8
    # grades are parts of both outcomes
    half = CalibrationAccumulator().update([0.5], EIGHT[:1]).compute("brier")
    assert (half["success_rate"], half["uncertainty"]) == (0.5, 0.25)
    assert half["S-ECE"] == pytest.approx(0.3)
    ends = np.array([0.2, 0.8])
    isotonic = IsotonicCrossFitCalibrator()
    exact = isotonic.fit(EIGHT, WON).full_map_(ends)
    np.testing.assert_allclose(counts.fit(isotonic)(ends), exact, atol=1e-9)
    signal = EIGHT.with_cells(100 * EIGHT.cells)
    wide = CalibrationAccumulator(bounds=(0, 100)).update(WON, signal)
    np.testing.assert_allclose(wide.fit(isotonic)(100 * ends), exact, atol=1e-9)
    # values of one cell are pooled at their mean, or at those of each outcome
    near = EIGHT.with_cells(EIGHT.cells + np.tile([0.0, 1e-9], 4))
    close = CalibrationAccumulator().update(WON, near)
    np.testing.assert_allclose(close.fit(isotonic).values, ends + 5e-10, rtol=1e-12)
    platt = PlattCrossFitCalibrator()
    center = platt.fit(near, WON).full_map_.center
    assert close.fit(platt).center == pytest.approx(center, rel=1e-12)


def test_steps_of_each_part_of_a_run():
    X, y = TrajectoryArray(np.linspace(0.05, 0.95, 24), [12, 12]), [1, 0]
    found = CalibrationAccumulator().update(y, X).compute()
    for part in ("early", "middle", "late"):
        exact = step_calibration_error(y, X, part=part)
        assert found[f"S-ECE {part}"] == pytest.approx(exact, abs=1e-12)


SIX = TrajectoryArray([0.9, 0.9, 0.1, 0.6, 0.6, 0.3], np.ones(6, dtype=int))
OUTCOMES = np.array([1, 0, 0, 1, 1, 0])


def ranked(y=OUTCOMES, X=SIX, **how):
    return RankingAccumulator(**how).update(y, X)


def test_ranking_lies_in_its_bounds(runs):
    X, y = runs
    for digits in (1, 12):
        rounded = X.with_cells(X.cells.round(digits))
        parts = [ranked(y[k::2], rounded[k::2], phi="last") for k in range(2)]
        found = parts[0].merge(parts[1]).compute()
        exact = trajectory_diagnostics(y, rounded, phi="last")
        for name in ("AUROC", "AUPRC", "AURC"):
            row = found.loc[name]
            assert row["least"] <= row["value"] <= row["most"]
            if digits == 1:  # then ties in a cell are ties, and nothing is lost
                assert row["value"] == pytest.approx(exact[name], rel=1e-12)
            else:
                assert row["least"] <= exact[name] <= row["most"] < row["least"] + 0.02
        assert found.loc["T-ECE", "value"] == pytest.approx(exact["T-ECE"], abs=1e-3)
    for phi in ("last", "mean", "min", "weighted"):
        for how in ({}, {"weights": "uniform"}):
            value = ranked(y, X.with_cells(X.cells.round(1)), phi=phi, **how).compute()["value"]
            exact = trajectory_diagnostics(y, X.with_cells(X.cells.round(1)), phi=phi, **how)
            assert value["AUROC"] == pytest.approx(exact["AUROC"], abs=1e-4)


def test_ranking_by_hand():
    # of 9 pairs 6 are in order, 1 is tied and 2 are not
    row = ranked().compute().loc["AUROC"]
    assert row[["value", "least", "most"]].tolist() == pytest.approx([6.5 / 9, 6 / 9, 7 / 9])
    for name in ("AUPRC", "AURC"):  # the failure at 0.9 ranks below or above the success there
        moved = [SIX.with_cells(SIX.cells + d * np.eye(6)[1]) for d in (-1e-9, 1e-9)]
        values = sorted(trajectory_diagnostics(OUTCOMES, X)[name] for X in moved)
        assert ranked().compute().loc[name, ["least", "most"]].tolist() == pytest.approx(values)
    # in memory the failures of one cell may have distinct values, and then rank one by one
    near = np.append(np.full(50, 0.29999), np.linspace(0.30000, 0.30001, 150))[:, None]
    row = ranked(np.arange(200) < 50, near).compute().loc["AUPRC"]
    exact = trajectory_diagnostics(np.arange(200) < 50, near)["AUPRC"]
    assert row["least"] == pytest.approx(exact, rel=1e-12)
    assert row["least"] < row["value"]
    few = TrajectoryArray([0.2, 0.2, 0.8, 0.8], np.ones(4, dtype=int))
    error = ranked([1, 0, 0, 0], few).compute().loc["T-ECE"]
    assert error["value"] == pytest.approx((0.6 + 1.6) / 4)
    assert error.drop("value").isna().all()
    signal = ranked(X=SIX.with_cells(100 * SIX.cells - 50), bounds=(-50, 50)).compute()
    pd.testing.assert_series_equal(signal["value"], ranked().compute()["value"].drop("T-ECE"))
    for outcome, auprc, aurc in ((0, 1, 1), (1, np.nan, 0)):
        X = TrajectoryArray([0.9, 0.2], [1, 1])
        found = ranked([outcome] * 2, X).compute()["value"]
        expected = [np.nan, auprc, aurc, (abs(outcome - 0.9) + abs(outcome - 0.2)) / 2]
        np.testing.assert_allclose(found, expected, atol=1e-6)
    grades = ranked([0.25, 1, 0], SIX[:3]).compute()["value"]
    exact = trajectory_diagnostics([0.25, 1, 0], SIX[:3])
    np.testing.assert_allclose(grades, exact[grades.index], atol=1e-6)


def test_values_beyond_the_ends_fall_into_the_outermost_cells():
    X = TrajectoryArray([-9.0, -1, 1, 2.999, 3, 9], [1] * 6)
    y = [0, 1, 0, 1, 0, 1]
    found = ranked(y, X, bounds=(-1, 3)).compute().loc["AUROC"]
    clipped = X.with_cells(np.clip(X.cells, -1, 2.99999))
    exact = trajectory_diagnostics(y, clipped.with_cells(np.minimum(clipped.cells, 2.99996)))
    assert found["least"] <= exact["AUROC"] <= found["most"]
    assert found["least"] < found["most"]
    flat = ranked(y, X, bounds=(2, 2)).compute().loc["AUROC"]
    assert flat["least"] <= 0.5 <= flat["most"]
    sure = ranked([0, 1, 1], TrajectoryArray([0.0, 1.0, 1 - 1e-9], [1] * 3)).compute()
    assert sure.loc["AUROC", ["least", "value", "most"]].tolist() == [1, 1, 1]


def test_intervals_of_ranks_are_delongs():
    rng = np.random.default_rng(0)
    y, p = rng.integers(0, 2, 80), rng.random(80).round(2)
    found = ranked(y, TrajectoryArray(p, np.ones(80, dtype=int))).compute()
    influence = numeric_influence(
        lambda w: trajectory_diagnostics(y, p[:, None], sample_weight=w)[:3], 80
    )
    for (name, row), psi in zip(found[:3].iterrows(), influence.T, strict=True):
        ends = t_interval(row["value"], psi, on_logit=True)
        np.testing.assert_allclose(row[["low", "high"]], ends, rtol=0.02, err_msg=name)
    narrow = ranked(y, TrajectoryArray(p, np.ones(80, dtype=int))).compute(0.8).loc["AUROC"]
    assert found.loc["AUROC", "low"] < narrow["low"] < narrow["high"] < found.loc["AUROC", "high"]


@pytest.mark.parametrize("kind", ALL)
def test_parts_are_merged_in_any_order(runs, kind):
    X, y = runs

    def computed(parts, **how):
        first, *others = [kind(**how).update(y[rows], X[rows], TASKS[rows]) for rows in parts]
        for one in others:
            assert first.merge(one) is first
        return first.compute()

    for how in ({}, OWN):
        whole = computed([slice(None)], **how)
        for order in ((0, 1, 2), (2, 0, 1)):
            found = computed([PIECES[k] for k in order], **how)
            np.testing.assert_allclose(found, whole, rtol=1e-10, atol=1e-12)


def test_what_cannot_be_added_up_is_refused():
    X = TrajectoryArray([0.9, 0.2, 0.6], [1, 1, 1])
    for kind in ALL:
        one = kind().update([1, 0, 0.5], X)
        assert one.update([], TrajectoryArray([], [])) is one.merge(kind()) is one
        for work, words in (
            (lambda kind=kind: kind().update([1, -1, 0], X), "outcome"),
            (lambda kind=kind: kind().update([1, 0, 0], X.with_cells(2 * X.cells)), r"\[0, 1\]"),
            (lambda kind=kind: kind().update([1, 0, 0], TrajectoryArray.stack([X, X])), "channels"),
            (lambda kind=kind: kind().update(None, X), "outcomes"),
            (lambda one=one: one.merge(3), f"other .*{kind.__name__}.* int"),
            (lambda one=one: one.merge(kind(weights="uniform")), "weights"),  # noqa: B023
            (lambda one=one: one.merge(kind(horizon="own")), "weights"),  # noqa: B023
            (lambda kind=kind: kind().compute(), "runs"),
        ):
            with pytest.raises(ValueError, match=words):
                work()
    counts = CalibrationAccumulator().update(WON, EIGHT)
    won = CalibrationAccumulator().update([1, 1], [[0.5]] * 2)
    for work, words in (
        (lambda: TPSAccumulator().update([1], X[:1]).compute(), "2 runs, got 1"),
        (lambda: TPSAccumulator().merge(TPSAccumulator("brier")), "scores"),
        (lambda: TPSAccumulator("log").merge(TPSAccumulator(ShiftedBrier())), "scores"),
        (lambda: TPSAccumulator().update([1], X[:1], groups="task"), "groups"),
        (lambda: RankingAccumulator().merge(RankingAccumulator("last")), "phi"),
        (lambda: RankingAccumulator("max"), "phi"),
        (lambda: counts.merge(CalibrationAccumulator(bounds=(0, 1))), "grid"),
        (lambda: counts.compute(n_bins=0), "n_bins"),
        (lambda: counts.fit("a"), "calibrator .*'a'"),
        (lambda: counts.fit(PlattCrossFitCalibrator(weights="uniform")), "uniform.*early"),
        (lambda: counts.fit(PlattCrossFitCalibrator(horizon="own")), "own"),
        (lambda: won.fit(PlattCrossFitCalibrator()), "both"),
    ):
        with pytest.raises(ValueError, match=words):
            work()
    for bounds in (3, "log", (0, 1, 2), (0, np.nan), ("a", 1), (1, 0)):
        with pytest.raises(ValueError, match="bounds"):
            RankingAccumulator(bounds=bounds)
