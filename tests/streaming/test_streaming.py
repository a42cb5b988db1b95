"""Batches and accumulators: the same as in memory, whatever the partitions."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import dataset, parquet

from trajscore import PlattCrossFitCalibrator, TrajectoryArray
from trajscore.calibration import (
    BetaCrossFitCalibrator,
    EnsembleCrossFitCalibrator,
    IsotonicCrossFitCalibrator,
)
from trajscore.core.weights import step_weights
from trajscore.inference.influence import influence_interval
from trajscore.metrics import (
    step_calibration_error,
    tps_decomposition,
    tps_samples,
    tps_score,
    trajectory_diagnostics,
)
from trajscore.streaming import (
    CalibrationAccumulator,
    RankingAccumulator,
    TPSAccumulator,
    iter_batches,
)
from trajscore.streaming import batches as reading

COLUMNS = {"id": "run", "step": "t", "value": "p", "outcome": "ok"}


@pytest.fixture
def runs(rng):
    n = 3000
    lengths = rng.integers(1, 9, n)
    rate = np.repeat(rng.beta(2, 2, n), lengths)
    p = np.clip(rate + rng.normal(0, 0.15, len(rate)), 0.001, 0.999)
    y = (rng.random(n) < rate[np.cumsum(lengths) - lengths]).astype(int)
    return TrajectoryArray(p, lengths, ids=[f"r{k}" for k in range(n)]), y


@pytest.fixture
def frame(runs):
    X, y = runs
    table = X.to_frame(id="run", step="t")
    table.columns = ["run", "t", "p"]
    task = np.arange(len(X)) // 5
    return table.assign(ok=np.repeat(y, X.lengths), task=np.repeat(task, X.lengths))


@pytest.fixture
def small_batches(monkeypatch):
    monkeypatch.setattr(reading, "_BATCH_ROWS", 1000)


def folder(path, frame, edges):
    for k, part in enumerate(np.split(np.arange(len(frame)), edges)):
        parquet.write_table(
            pa.Table.from_pandas(frame.iloc[part], preserve_index=False), path / f"{k}.parquet"
        )
    return path


OWN = {"weights": "linear_front", "horizon": "own"}  # the convention of the paper
WAYS = [
    {},
    {"weights": "uniform"},
    {"weights": "exponential_front"},
    {"weights": "linear_back"},
    {"weights": "linear_front", "horizon": 8},
    {"weights": lambda step: 1 / (1 + step / 10)},
    OWN,
    {"weights": "uniform", "horizon": "own"},
]
PIECES = (slice(0, 7), slice(7, 2000), slice(2000, None))


def best_constant(X, y, how):
    """The success rate over forecasts; in the paper over runs."""
    if how.get("horizon") == "own":
        return y.mean()
    weight = step_weights(X.lengths, **how)
    return np.average(np.repeat(y, X.lengths), weights=weight)


@pytest.mark.parametrize("score", ["log", "brier", ("beta", 4, 2), ("log", 1e-2)], ids=str)
@pytest.mark.parametrize("how", WAYS)
def test_scores_of_parts_are_those_of_all(runs, score, how):
    X, y = runs
    rate = best_constant(X, y, how)
    scores = tps_samples(y, X, score=score, **how)
    base = tps_samples(y, X.with_cells(np.full(len(X.cells), rate)), score=score, **how)
    parts = [TPSAccumulator(score, **how).update(y[rows], X[rows]) for rows in PIECES]
    total = parts[2].merge(parts[0]).merge(parts[1])
    assert total.n_runs == len(y)
    assert total.success_rate == pytest.approx(rate, rel=1e-12)
    table = total.compute()
    assert table["base_rate"].item() == pytest.approx(base.mean(), rel=1e-10)
    assert table["value"].item() == pytest.approx(tps_score(y, X, score=score, **how), rel=1e-12)
    for name, samples in {"value": scores, "margin": scores - base}.items():
        low, high = influence_interval(samples.mean(), samples - samples.mean())
        ends = ["low", "high"] if name == "value" else ["margin_low", "margin_high"]
        found = table[[name, *ends]].to_numpy()[0]
        np.testing.assert_allclose(found, [samples.mean(), low, high], rtol=1e-9)


@pytest.mark.parametrize("how", [{}, OWN], ids=str)
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 2, 0)])
def test_parts_are_merged_in_any_order(runs, how, order):
    X, y = runs
    groups = np.array([f"task {k}" for k in np.arange(len(y)) % 40])

    def table(kind, parts):
        made = [kind(**how).update(y[rows], X[rows], groups[rows]) for rows in parts]
        first, *others = made
        for one in others:
            first.merge(one)
        return first.compute()

    for kind, compare in (
        (TPSAccumulator, pd.testing.assert_frame_equal),
        (CalibrationAccumulator, pd.testing.assert_series_equal),
        (RankingAccumulator, pd.testing.assert_frame_equal),
    ):
        whole = table(kind, [slice(None)])
        compare(table(kind, [PIECES[k] for k in order]), whole, rtol=1e-10, atol=1e-12)


def test_steps_that_were_cut_off_have_no_weight_in_the_paper(runs):
    # each run counts alike, and one that was cut off adds the weight of the steps that are seen
    X, y = runs
    cut = X.lengths > 4
    q_z = np.where(cut, 0.3, y)
    seen = X.truncate(np.minimum(X.lengths, 4)).with_horizon(X.lengths)
    total = TPSAccumulator(**OWN).update(q_z, seen)
    weight = step_weights(seen.lengths, "linear_front", X.lengths)
    rate = np.average(np.repeat(q_z, seen.lengths), weights=weight)
    assert total.success_rate == pytest.approx(rate, rel=1e-12)
    table = total.compute()
    assert table["value"].item() == pytest.approx(tps_score(q_z, seen, **OWN), rel=1e-12)
    constant = seen.with_cells(np.full(len(seen.cells), rate))
    base = tps_score(q_z, constant, **OWN)
    assert table["base_rate"].item() == pytest.approx(base, rel=1e-12)


def test_constants_of_parts_are_those_of_all(runs):
    X, y = runs
    constant = X.with_cells(np.full(len(X.cells), 0.3))
    for how in ({}, OWN):
        for kind in (TPSAccumulator, CalibrationAccumulator):
            given = kind(**how).update(y, X)._constant(0.3).compute()
            direct = kind(**how).update(y, constant).compute()
            np.testing.assert_allclose(given, direct, rtol=1e-9, atol=1e-12)


def test_clusters_may_come_in_parts(runs):
    X, y = runs
    groups = np.array([f"task {k}" for k in np.arange(len(y)) % 40])
    parts = [
        TPSAccumulator().update(y[rows], X[rows], groups[rows])
        for rows in (slice(0, 1111), slice(1111, None))
    ]
    found = parts[0].merge(parts[1]).compute()[["value", "low", "high"]].to_numpy()[0]
    scores = tps_samples(y, X)
    ends = influence_interval(scores.mean(), scores - scores.mean(), groups=groups)
    np.testing.assert_allclose(found, [scores.mean(), *ends], rtol=1e-10)
    with pytest.raises(ValueError, match="all updates or in none"):
        parts[0].update(y, X)


@pytest.mark.parametrize("how", WAYS)
def test_calibration_on_the_grid(runs, how):
    X, y = runs
    parts = [CalibrationAccumulator(**how).update(y[k::3], X[k::3]) for k in range(3)]
    counts = parts[1].merge(parts[2]).merge(parts[0])
    for score in ("brier", "log"):
        found = counts.compute(score)
        exact = tps_decomposition(y, X, score=score, **how)
        for part in ("miscalibration", "discrimination", "uncertainty"):
            assert found[part] == pytest.approx(getattr(exact, part), abs=2e-4)
    assert found["S-ECE"] == pytest.approx(step_calibration_error(y, X, **how), abs=5e-4)
    for part in ("early", "middle", "late"):
        error = step_calibration_error(y, X, part=part, **how)
        assert found[f"S-ECE {part}"] == pytest.approx(error, abs=1e-3, nan_ok=True)
        assert np.isnan(error) == (part == "late")  # from step 11 on
    over_steps = np.average(np.repeat(y, X.lengths), weights=step_weights(X.lengths, **how))
    assert found["success_rate"] == pytest.approx(over_steps, rel=1e-12)


@pytest.mark.parametrize("how", WAYS)
def test_maps_fitted_to_counts_are_those_of_the_runs(runs, how):
    # a strong penalty and prior, so that the scale of the weights shows
    X, y = runs
    counts = CalibrationAccumulator(**how).update(y[:900], X[:900]).update(y[900:], X[900:])
    platt = PlattCrossFitCalibrator(C=1e-3, **how)
    gap = counts.fit(platt)(X.cells) - platt.fit(X, y).full_map_(X.cells)
    assert abs(gap).max() < 1e-6
    beta = BetaCrossFitCalibrator(C=1e-3, **how)
    gap = counts.fit(beta)(X.cells) - beta.fit(X, y).full_map_(X.cells)
    assert abs(gap).max() < 1e-5
    for steps in (IsotonicCrossFitCalibrator(**how), EnsembleCrossFitCalibrator(**how)):
        gap = counts.fit(steps)(X.cells) - steps.fit(X, y).full_map_(X.cells)
        assert abs(gap).mean() < 2e-3


def test_maps_need_the_weights_of_the_counts(runs):
    X, y = runs
    counts = CalibrationAccumulator().update(y, X)
    message = "has weights uniform, the accumulator early; give both the same"
    with pytest.raises(ValueError, match=message):
        counts.fit(PlattCrossFitCalibrator(weights="uniform"))
    with pytest.raises(ValueError, match="has weights early, horizon=.own., the accumulator"):
        counts.fit(PlattCrossFitCalibrator(horizon="own"))


@pytest.mark.parametrize("rounded", [False, True])
def test_ranking_lies_in_its_bounds(runs, rounded):
    X, y = runs
    X = X.with_cells(X.cells.round(1 if rounded else 12))
    parts = [RankingAccumulator("last").update(y[k::2], X[k::2]) for k in range(2)]
    found = parts[0].merge(parts[1]).compute()
    exact = trajectory_diagnostics(y, X, phi="last")
    for name in ("AUROC", "AUPRC", "AURC"):
        row = found.loc[name]
        if rounded:  # then ties in a cell are ties, and nothing is lost
            assert row["value"] == pytest.approx(exact[name], rel=1e-12)
        else:
            assert row["least"] <= exact[name] <= row["most"]
            assert row["most"] - row["least"] < 0.02
    assert found.loc["T-ECE", "value"] == pytest.approx(exact["T-ECE"], abs=1e-3)


def test_signals_need_bounds(runs):
    X, y = runs
    signal = X.with_cells(10 * X.cells - 5)
    with pytest.raises(ValueError, match=r"outside \[0, 1\]"):
        RankingAccumulator().update(y, signal)
    found = RankingAccumulator(bounds=(-5, 5)).update(y, signal).compute()
    exact = trajectory_diagnostics(y, signal)
    assert found.loc["AUROC", "least"] <= exact["AUROC"] <= found.loc["AUROC", "most"]


def test_parquet_in_files_that_split_no_run(runs, frame, tmp_path, small_batches):
    X, y = runs
    edges = X.offsets[[5, 700, 701]]
    source = folder(tmp_path, frame, edges)
    (tmp_path / "README.md").write_text("What these files are.")
    (tmp_path / "._part-0.parquet").write_text("of a system")
    (tmp_path / "_temporary").mkdir()
    (tmp_path / "_temporary" / "p.parquet").touch()
    (tmp_path / "empty.parquet").mkdir()
    batches = iter_batches(source, **COLUMNS, group="task")
    assert sum(len(X) for _, X, _ in batches) == len(X)
    assert max(len(X.cells) for _, X, _ in batches) < 2100
    table = batches.reduce(TPSAccumulator()).compute()
    assert table.loc["log", "value"] == pytest.approx(tps_score(y, X), rel=1e-12)


def test_runs_split_over_files_are_refused_or_put_together(runs, frame, tmp_path, small_batches):
    X, y = runs
    mixed = frame.sample(frac=1, random_state=0)
    source = folder(tmp_path, mixed, [1000, 5000])
    with pytest.raises(ValueError, match="pass scattered=True"):
        list(iter_batches(source, **COLUMNS))
    with pytest.raises(ValueError, match="the value is inf") as caught:  # no advice on other rows
        list(iter_batches(pa.Table.from_pandas(frame.assign(p=np.inf)), **COLUMNS))
    assert "scattered" not in str(caught.value)
    found = iter_batches(source, **COLUMNS, scattered=True).reduce(TPSAccumulator())
    assert found.n_runs == len(X)
    assert found.compute().loc["log", "value"] == pytest.approx(tps_score(y, X), rel=1e-12)


def test_a_run_over_two_files_is_one_run(runs, frame, tmp_path, small_batches):
    X, y = runs
    row = int(np.flatnonzero(X.lengths > 4)[3])
    source = folder(tmp_path, frame, [X.offsets[row] + 2])
    found = iter_batches(source, **COLUMNS).reduce(TPSAccumulator())
    assert found.compute().loc["log", "value"] == pytest.approx(tps_score(y, X), rel=1e-12)


def test_any_arrow_source(frame, tmp_path, small_batches):
    table = pa.Table.from_pandas(frame, preserve_index=False)
    parquet.write_table(table, tmp_path / "one.parquet")
    sources = [
        table,
        pa.RecordBatchReader.from_batches(table.schema, table.to_batches(700)),
        dataset.dataset(tmp_path),
        str(tmp_path / "one.parquet"),
    ]
    sources += [one for name in ("polars", "duckdb") if (one := _result(name, table)) is not None]
    found = [iter_batches(one, **COLUMNS).reduce(TPSAccumulator()).compute() for one in sources]
    for one in found[1:]:
        pd.testing.assert_frame_equal(one, found[0], rtol=1e-12)


def _result(name, table):
    try:
        module = __import__(name)
    except ImportError:
        return None
    return module.from_arrow(table)


def test_several_predictors_in_one_pass(runs, frame):
    X, y = runs
    table = pa.Table.from_pandas(frame.assign(q=1 - frame["p"]))
    batches = iter_batches(table, **{**COLUMNS, "value": ["p", "q"]})
    found = batches.reduce({"p": TPSAccumulator(), ("q", "rank"): RankingAccumulator()})
    assert found["p"].compute().loc["log", "value"] == pytest.approx(tps_score(y, X), rel=1e-12)
    assert found["q", "rank"].compute().loc["AUROC", "value"] < 0.5


def test_progress_goes_over_batches(frame, small_batches):
    seen = []

    def progress(batches):
        for batch in batches:
            seen.append(len(batch))
            yield batch

    table = pa.Table.from_pandas(frame)
    list(iter_batches(table, **COLUMNS, progress=progress))
    assert sum(seen) == len(frame)


def test_what_cannot_be_added_up_is_refused_in_words():
    counts = TPSAccumulator().update([1, 0], [[0.9], [0.2]])
    for other in (None, 3, CalibrationAccumulator()):
        with pytest.raises(ValueError, match="other must be a TPSAccumulator"):
            counts.merge(other)
    with pytest.raises(ValueError, match="differ in scores and weights"):
        counts.merge(TPSAccumulator("brier", "uniform"))
    with pytest.raises(ValueError, match="differ in weights"):
        counts.merge(TPSAccumulator(horizon="own"))
    with pytest.raises(ValueError, match="outcomes"):
        counts.update(None, [[0.9]])
    with pytest.raises(ValueError, match="groups must be a label for each run"):
        TPSAccumulator().update([1], [[0.9]], groups="task")
    with pytest.raises(ValueError, match="confidence_level must lie strictly"):
        TPSAccumulator().update([1, 0], [[0.9], [0.4]], groups=["a", "b"]).compute(95)
    for bounds in (3, "log", (0, 1, 2), (0, np.nan), (1, 0)):
        with pytest.raises(ValueError, match="bounds must"):
            RankingAccumulator(bounds=bounds)
    with pytest.raises(ValueError, match="calibrator must be"):
        CalibrationAccumulator().update([1, 0], [[0.9], [0.2]]).fit(None)
    with pytest.raises(ValueError, match="There are no runs yet"):
        RankingAccumulator().compute()
    with pytest.raises(ValueError, match="There are no runs yet"):
        CalibrationAccumulator().compute()
    with pytest.raises(ValueError, match=r"must be text, got 3\.5"):
        iter_batches("runs.parquet", **COLUMNS | {"value": 3.5})
