"""Batches and accumulators: the same as in memory, whatever the partitions."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import dataset, parquet

from trajscore import PlattCrossFitCalibrator, TrajectoryArray
from trajscore.calibration import IsotonicCrossFitCalibrator
from trajscore.inference import influence_interval
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
    _batches,
    iter_batches,
)

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
    monkeypatch.setattr(_batches, "_BATCH_ROWS", 1000)


def folder(path, frame, edges):
    for k, part in enumerate(np.split(np.arange(len(frame)), edges)):
        parquet.write_table(
            pa.Table.from_pandas(frame.iloc[part], preserve_index=False), path / f"{k}.parquet"
        )
    return path


@pytest.mark.parametrize("score", ["log", "brier", ("beta", 4, 2), ("log", 1e-2)])
@pytest.mark.parametrize("weights", ["linear_front", "uniform", "exponential_front", "linear_back"])
def test_scores_of_parts_are_those_of_all(runs, score, weights):
    X, y = runs
    parts = [
        TPSAccumulator(score, weights).update(y[rows], X[rows])
        for rows in (slice(0, 7), slice(7, 2000), slice(2000, None))
    ]
    table = parts[2].merge(parts[0]).merge(parts[1]).compute()
    scores = tps_samples(y, X, score=score, weights=weights)
    base = tps_samples(y, X.with_cells(np.full(len(X.cells), y.mean())), score=score)
    for name, samples in {"value": scores, "margin": scores - base}.items():
        low, high = influence_interval(samples.mean(), samples - samples.mean())
        ends = ["low", "high"] if name == "value" else ["margin_low", "margin_high"]
        found = table[[name, *ends]].to_numpy()[0]
        np.testing.assert_allclose(found, [samples.mean(), low, high], rtol=1e-10)


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
    with pytest.raises(ValueError, match="all updates, or in none"):
        parts[0].update(y, X)


def test_calibration_on_the_grid(runs):
    X, y = runs
    parts = [CalibrationAccumulator().update(y[k::3], X[k::3]) for k in range(3)]
    counts = parts[1].merge(parts[2]).merge(parts[0])
    found = counts.compute("brier")
    exact = tps_decomposition(y, X, score="brier")
    for part in ("miscalibration", "discrimination", "uncertainty"):
        assert found[part] == pytest.approx(getattr(exact, part), abs=2e-4)
    assert found["S-ECE"] == pytest.approx(step_calibration_error(y, X), abs=5e-4)
    late = step_calibration_error(y, X, part="late")
    assert found["S-ECE late"] == pytest.approx(late, abs=1e-3)
    platt = PlattCrossFitCalibrator().fit(X, y).full_map_
    assert abs(counts.fit(PlattCrossFitCalibrator())(X.cells) - platt(X.cells)).max() < 1e-6
    isotonic = IsotonicCrossFitCalibrator().fit(X, y).full_map_
    gap = counts.fit(IsotonicCrossFitCalibrator())(X.cells) - isotonic(X.cells)
    assert abs(gap).mean() < 2e-3
    with pytest.raises(ValueError, match="has weights 'uniform'"):
        counts.fit(PlattCrossFitCalibrator(weights="uniform"))


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
        with pytest.raises(ValueError, match="only another TPSAccumulator can be merged"):
            counts.merge(other)
    with pytest.raises(ValueError, match="these differ in scores and weights"):
        counts.merge(TPSAccumulator("brier", "uniform"))
    with pytest.raises(ValueError, match="outcomes"):
        counts.update(None, [[0.9]])
    with pytest.raises(ValueError, match="groups must be 1 labels"):
        TPSAccumulator().update([1], [[0.9]], groups="task")
    with pytest.raises(ValueError, match="confidence_level must lie strictly"):
        TPSAccumulator().update([1, 0], [[0.9], [0.4]], groups=["a", "b"]).compute(95)
    for bounds in (3, "log", (0, 1, 2), (0, np.nan), (1, 0)):
        with pytest.raises(ValueError, match="bounds must"):
            RankingAccumulator(bounds=bounds)
    with pytest.raises(ValueError, match="calibrator must be"):
        CalibrationAccumulator().update([1, 0], [[0.9], [0.2]]).fit(None)
    with pytest.raises(ValueError, match="there are no runs so far"):
        RankingAccumulator().compute()
    with pytest.raises(ValueError, match="there are no runs so far"):
        CalibrationAccumulator().compute()
    with pytest.raises(ValueError, match=r"columns are named by text, got 3\.5"):
        iter_batches("runs.parquet", **COLUMNS | {"value": 3.5})
