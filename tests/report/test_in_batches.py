"""A report in batches: values of all runs, widths of intervals of a sample."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from trajscore import TrajectoryArray, evaluate
from trajscore.cli.main import main
from trajscore.core.weights import as_step_weights
from trajscore.report import _in_batches
from trajscore.report._data import Options
from trajscore.report._in_batches import (
    FirstPass,
    HashSample,
    Rules,
    _check_q_z,
    _ends_of_signal,
    _moved,
    batch_rules,
)
from trajscore.streaming import batches as reading
from trajscore.streaming import iter_batches
from trajscore.streaming.batches import Batch

COLUMNS = {"id": "run", "step": "t", "value": ["judge", "verbal"], "outcome": "solved"}


@pytest.fixture
def frame(rng):
    n = 600
    lengths = rng.integers(1, 7, n)
    rate = np.repeat(rng.beta(2, 2, n), lengths)
    y = (rng.random(n) < rate[np.cumsum(lengths) - lengths]).astype(float)
    return pd.DataFrame(
        {
            "run": np.repeat([f"r{k}" for k in range(n)], lengths),
            "t": np.concatenate([np.arange(1, k + 1) for k in lengths]),
            "judge": np.clip(rate + rng.normal(0, 0.1, len(rate)), 0.01, 0.99),
            "verbal": np.clip(rate + rng.normal(0.1, 0.3, len(rate)), 0.01, 0.99).round(2),
            "solved": np.repeat(y, lengths),
            "task": np.repeat(np.arange(n) // 4, lengths),
        }
    )


def in_memory(frame, **kwargs):
    names = {**COLUMNS, "meta": "task", "missing": "allow"}
    X, y = TrajectoryArray.from_frame(frame, **names)
    return evaluate(X, y, **kwargs), X


def of_predictors(table):
    return table[table.index.isin(["judge", "verbal"], level="predictor")]


@pytest.mark.parametrize("group", [None, "task"])
def test_all_runs_in_the_sample(frame, group):
    batches = iter_batches(pa.Table.from_pandas(frame), **COLUMNS, group=group)
    found = evaluate(batches, intervals="influence")  # as those of scores in batches are
    groups = None if group is None else frame.groupby("run", sort=False)["task"].first()
    expected, _ = in_memory(frame, groups=groups, intervals="influence")
    raw, close = (
        of_predictors(one.intervals.xs("as_given", level="form")) for one in (found, expected)
    )
    np.testing.assert_allclose(raw["value"], close["value"], atol=5e-3)
    np.testing.assert_allclose(raw["margin"], close["margin"], atol=5e-3)
    scores = raw.xs("TPS log", level="metric")
    exact = close.xs("TPS log", level="metric")
    # of clusters, the few that share a hash count as one
    tolerance = {"rtol": 1e-9} if group is None else {"rtol": 0, "atol": 2e-3}
    np.testing.assert_allclose(scores, exact, **tolerance)
    # alive rates are of the sample, which is all runs here
    alive = [one.table.loc[["alive rate", "alive rate, end known"]] for one in (found, expected)]
    pd.testing.assert_frame_equal(*alive, check_dtype=False)
    # calibrated by other halves: the same within what halves are worth
    ours, theirs = (one.table.xs("recalibrated", level="form") for one in (found, expected))
    np.testing.assert_allclose(ours["TPS log"], theirs["TPS log"], atol=0.01)
    assert "600 runs" in found.notes[0]


@pytest.mark.parametrize("group", [None, "task"])
def test_the_base_rate_is_scored_as_any_constant_forecast(frame, group):
    of_forecasts = np.average(frame["solved"], weights=1 / np.sqrt(frame["t"]))
    of_runs = frame.groupby("run")["solved"].first().mean()
    assert abs(of_forecasts - of_runs) > 1e-3
    table = pa.Table.from_pandas(frame.assign(judge=of_runs, verbal=of_forecasts))
    report = evaluate(iter_batches(table, **COLUMNS, group=group), calibrator=None)
    assert report.facts.rate == pytest.approx(of_forecasts)
    base, steps, runs = (
        report.intervals.xs(row, level=["predictor", "form"])
        for row in (("base rate", "constant"), ("verbal", "as_given"), ("judge", "as_given"))
    )
    scores = base.index.str.startswith("TPS")
    columns = ["value", "margin", "low", "high"]
    np.testing.assert_allclose(
        base.loc[scores, columns], steps.loc[scores, columns], rtol=1e-12, atol=1e-12
    )
    of_steps = base.index.isin(report.options.step_metrics)
    np.testing.assert_allclose(base["value"][of_steps], steps["value"][of_steps], atol=1e-12)
    np.testing.assert_allclose(base["value"][~of_steps], runs["value"][~of_steps], atol=1e-12)


def test_intervals_of_a_sample_shrink_to_all_runs(frame, monkeypatch):
    monkeypatch.setattr(_in_batches, "SAMPLE_RUNS", 200)
    found = evaluate(iter_batches(pa.Table.from_pandas(frame), **COLUMNS))
    expected, _ = in_memory(frame)
    assert len(next(iter(found.traces.values()))) == 200
    of_sample = found.table["n_runs"] == 200  # but for this all numbers are of all runs
    assert of_sample[of_sample].index.tolist() == [
        ("alive rate", "as_given"),
        ("alive rate, end known", "as_given"),
    ]
    assert (found.table["n_runs"][~of_sample] == 600).all()
    metrics = ["AUROC", "AURC", "T-Brier", "TPS brier"]
    one, other = (
        of_predictors(r.intervals[r.intervals.index.isin(metrics, level="metric")])
        for r in (found, expected)
    )
    ratio = (one["high"] - one["low"]) / (other["high"] - other["low"])
    assert ratio.between(0.7, 1.4).all()
    assert abs(ratio.mean() - 1) < 0.1


@pytest.mark.parametrize(
    "weights",
    [
        {"weights": "uniform"},
        {"weights": "linear_front", "horizon": 4},
        {"weights": lambda t: 1 / t, "horizon": 3},
        {"weights": "linear_front", "horizon": "own"},
    ],
    ids=["uniform", "horizon", "function", "as published"],
)
def test_the_same_under_any_weights(frame, monkeypatch, weights):
    monkeypatch.setattr(_in_batches, "SAMPLE_RUNS", 200)
    options = {**weights, "calibrator": None}
    found = evaluate(iter_batches(pa.Table.from_pandas(frame), **COLUMNS), **options)
    expected, X = in_memory(frame, **options)
    assert found.facts.rate == pytest.approx(expected.facts.rate)
    horizon = weights.get("horizon", "own")
    beyond = 0 if horizon == "own" else int(np.maximum(X.lengths - horizon, 0).sum())
    assert found.facts.n_unscored == expected.facts.n_unscored == beyond
    said = [one.disclosures["weights"] for one in (found, expected)]
    assert (f"{beyond:,} steps beyond the horizon are not scored" in said[0]) == (beyond > 0)
    columns = found.options.step_metrics
    ours, theirs = (
        one.table.loc[["judge", "verbal", "base rate"]][columns] for one in (found, expected)
    )
    scores = found.options.score_names
    np.testing.assert_allclose(ours[scores], theirs[scores], rtol=1e-9)
    np.testing.assert_allclose(ours.astype(float), theirs.astype(float), atol=5e-3)


def test_what_counting_is_worth_is_of_the_sample(frame, monkeypatch):
    monkeypatch.setattr(_in_batches, "SAMPLE_RUNS", 200)
    found = evaluate(iter_batches(pa.Table.from_pandas(frame), **COLUMNS))
    rows = np.isin(frame["run"], found.traces["judge", "as_given"].ids)
    alone, _ = in_memory(frame[rows])
    over = [name for name in alone.table if "over_alive" in name]
    of_both = [
        of_predictors(one.table[over].xs("as_given", level="form")) for one in (found, alone)
    ]
    pd.testing.assert_frame_equal(*of_both)


def test_runs_that_do_not_count(frame):
    frame.loc[frame["run"] == "r3", "solved"] = np.nan
    frame.loc[(frame["run"] == "r5") & (frame["t"] == 1), "verbal"] = np.nan
    batches = iter_batches(pa.Table.from_pandas(frame), **COLUMNS)
    dropped = evaluate(batches, censored="drop", calibrator=None)
    expected, _ = in_memory(frame, censored="drop", calibrator=None)
    assert dropped.facts.n_runs == expected.facts.n_runs == 598
    assert dropped.excluded["n_runs"].tolist() == [1, 1]
    failures = evaluate(batches, calibrator=None)
    assert failures.facts.n_runs == 599
    assert failures.facts.n_censored == 1


def test_the_sample_knows_no_order(rng):
    X = TrajectoryArray(rng.random(900), np.full(300, 3), ids=[f"r{k}" for k in range(300)])
    runs = Batch(rng.integers(0, 2, 300), X, np.arange(300) // 3)
    parts = []
    for order in (np.arange(300), rng.permutation(300)):
        ours, theirs = HashSample(50), HashSample(50)
        for rows in np.array_split(order, 7):
            (ours if rows[0] % 2 else theirs).update(runs.take(rows))
        ours.merge(theirs)
        parts.append(ours.runs())
    assert sorted(parts[0].X.ids) == sorted(parts[1].X.ids)
    kept = set(parts[0].groups.tolist())
    assert len(parts[0].X) == 3 * len(kept)  # whole clusters


def test_what_is_not_for_batches(frame):
    batches = iter_batches(pa.Table.from_pandas(frame), **COLUMNS)
    with pytest.raises(ValueError, match="leave out y"):
        evaluate(batches, [1, 0])
    with pytest.raises(ValueError, match="y is None"):
        evaluate([[0.5]])
    with pytest.raises(ValueError, match="own_runs"):
        evaluate(batches, missing="own_runs")
    for part in ("q_z", "stop_reason", "by"):
        with pytest.raises(ValueError, match=f"{part}: no column named 'model'; there are: none"):
            evaluate(batches, **{part: "model"})
        with pytest.raises(ValueError, match=f"{part} of batches is a column, got ndarray"):
            evaluate(batches, **{part: np.zeros(600)})


def test_a_source_that_is_gone_when_it_is_read_again(frame):
    def batches():
        table = pa.Table.from_pandas(frame)
        reader = pa.RecordBatchReader.from_batches(table.schema, table.to_batches(700))
        return iter_batches(reader, **COLUMNS)

    with pytest.raises(ValueError, match="600 runs at first and 0 when it was read again"):
        evaluate(batches())
    assert evaluate(batches(), calibrator=None).facts.n_runs == 600


def test_a_chance_that_is_none_names_its_run(frame):
    frame["chance"] = np.where(frame["run"] == "r9", 1.5, 0.5)
    frame.loc[frame["run"] == "r9", "solved"] = np.nan
    batches = iter_batches(pa.Table.from_pandas(frame), **COLUMNS, meta="chance")
    with pytest.raises(ValueError, match="run 'r9': its outcome was not observed and q_z is 1.5"):
        evaluate(batches, q_z="chance")


def test_signals_are_ranked_and_calibrated(frame):
    frame["judge"] = 10 * frame["judge"] - 5
    found = evaluate(iter_batches(pa.Table.from_pandas(frame), **COLUMNS))
    expected, _ = in_memory(frame)
    ours, theirs = (one.table.xs("judge") for one in (found, expected))
    assert (ours.isna() == theirs.isna()).all(axis=None)
    ranks = ["AUROC", "AUPRC", "AURC"]
    np.testing.assert_allclose(
        ours.loc["as_given", ranks], theirs.loc["as_given", ranks], atol=1e-3
    )
    scores = ["TPS log", "AUROC", "S-ECE"]
    np.testing.assert_allclose(
        ours.loc["recalibrated", scores], theirs.loc["recalibrated", scores], atol=0.02
    )
    of_both = [one.table.xs("base rate")["TPS log"].iloc[0] for one in (found, expected)]
    assert of_both[0] == pytest.approx(of_both[1], rel=1e-9)


def test_a_stray_value_is_refused_where_it_is(frame, monkeypatch):
    monkeypatch.setattr(_in_batches, "SAMPLE_RUNS", 50)
    sampled = evaluate(iter_batches(pa.Table.from_pandas(frame), **COLUMNS)).traces[
        "judge", "as_given"
    ]
    stray = frame.index[~frame["run"].isin(sampled.ids)][0]
    frame.loc[stray, "judge"] = 1.5
    place = f"run '{frame.loc[stray, 'run']}', step 1"
    with pytest.raises(ValueError, match=rf"{place}: forecast 1\.5 lies outside \[0, 1\]"):
        evaluate(iter_batches(pa.Table.from_pandas(frame), **COLUMNS))


@pytest.mark.parametrize("options", [{}, {"missing": "ffill"}, {"q_z": "chance"}])
def test_what_is_known_of_single_runs(frame, rng, options):
    row = pd.factorize(frame["run"])[0]
    frame["why"] = rng.choice(["max_steps", "crash", "done"], 600)[row]
    frame["model"] = rng.choice(["small", "large"], 600)[row]
    frame["chance"] = rng.random(600)[row]
    frame.loc[(rng.random(600) < 0.2)[row], "solved"] = np.nan
    frame.loc[rng.random(len(frame)) < 0.02, "judge"] = np.nan
    kept = ["why", "model", "chance"]
    batches = iter_batches(pa.Table.from_pandas(frame), **COLUMNS, meta=kept)
    found = evaluate(batches, stop_reason="why", by="model", **options)
    X, y = TrajectoryArray.from_frame(frame, **COLUMNS, meta=kept, missing="allow")
    if "q_z" in options:
        options = {"q_z": X.meta["chance"]}
    expected = evaluate(X, y, stop_reason=X.meta["why"], by="model", **options)
    assert found.facts.n_runs == expected.facts.n_runs < 600
    assert found.facts.n_observed == expected.facts.n_observed
    assert found.excluded.sort_values("reason").values.tolist() == (
        expected.excluded.sort_values("reason").values.tolist()
    )
    assert set(found.notes[1:]) >= {one for one in expected.notes if "not stated" in one}
    assert found.by["n_runs"].equals(expected.by["n_runs"])
    scores = [one.table.xs("as_given", level="form")["TPS log"] for one in (found, expected)]
    pd.testing.assert_series_equal(*scores, rtol=1e-9)


def test_the_command_line_reads_a_folder(frame, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(reading, "_BATCH_ROWS", 1500)
    unseen = frame["task"] < 50
    frame = frame.assign(
        end_reason=np.where(unseen, "crash", "done"), solved=frame["solved"].mask(unseen)
    )
    mixed = frame.sample(frac=1, random_state=0)
    for k, part in enumerate(np.array_split(np.arange(len(frame)), 3)):
        table = pa.Table.from_pandas(mixed.iloc[part], preserve_index=False)
        parquet.write_table(table, tmp_path / f"{k}.parquet")
    scores = ["--score", "judge", "--score", "verbal"]
    columns = ["--id", "run", "--step", "t", "--outcome", "solved", *scores]
    command = ["report", str(tmp_path), *columns]
    main([*command, "--by", "task", "--missing", "ffill"])
    said = capsys.readouterr().out
    assert "guessed stop_reason: 'end_reason'" in said
    assert "putting them together" in said
    assert "400 runs, read in batches" in " ".join(said.split())
    assert main([*command, "--missing", "own_runs"]) == 2
    assert "leave out --missing own_runs" in capsys.readouterr().err
    assert main([*command, "--by", "model"]) == 2
    assert "--by: no column named 'model'" in capsys.readouterr().err


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_runs_of_few_steps_have_a_report(frame, steps):
    """No run has a middle or a late step, so that no metric is of these."""
    short = frame[frame["t"] <= steps]
    found = evaluate(iter_batches(pa.Table.from_pandas(short), **COLUMNS), calibrator=None)
    expected, _ = in_memory(short, calibrator=None)
    assert "S-ECE early" in found.table
    assert found.table.columns.equals(expected.table.columns)
    ours, theirs = (
        of_predictors(one.table).xs("as_given", level="form") for one in (found, expected)
    )
    for metric in ("TPS log", "S-ECE", "S-ECE early"):
        np.testing.assert_allclose(ours[metric], theirs[metric], atol=5e-3)
    assert f"{len(found.labels['judge', 'as_given'])} runs" in found.to_html()


@pytest.mark.parametrize("method", ["auto", "bootstrap"])
def test_intervals_are_named_as_they_were_made(frame, method):
    """Scores are added up over all runs, and their intervals are not those of the sample."""
    few = frame[frame["task"] < 10]  # so few runs that those of the sample are by bootstrap
    found = evaluate(iter_batches(pa.Table.from_pandas(few), **COLUMNS), intervals=method)
    scores = found.interval_methods.index.get_level_values("metric").str.startswith("TPS")
    of_rows = scores & found.interval_methods["margin"].ne("").to_numpy()
    of_rows &= ~found.interval_methods.index.get_level_values("predictor").str.startswith("alive")
    assert of_rows.any()
    assert (found.interval_methods.loc[of_rows, ["value", "margin"]] == "influence").all(axis=None)
    rows = found.intervals[of_rows]
    np.testing.assert_allclose(rows["value"] - rows["low"], rows["high"] - rows["value"])
    said = found.disclosures["intervals"]
    assert "from the influence of each run" in said
    assert ("those of TPS log, TPS brier" in said) == (method == "bootstrap")


@pytest.mark.parametrize("seed", range(3))
def test_a_calibrator_does_not_see_the_runs_that_it_is_judged_on(frame, seed):
    """A map of noise is never below the base rate on the runs that it was fitted to."""
    few = frame[frame["task"] < 20].assign(solved=lambda table: table["task"] % 2)
    few["judge"] = np.random.default_rng(seed).random(len(few))
    batches = iter_batches(pa.Table.from_pandas(few), **COLUMNS)
    found = evaluate(batches, calibrator="platt").intervals["margin"]
    assert found["judge", "recalibrated", "TPS log"] < -1e-4


@pytest.mark.parametrize(
    ("cell", "value", "shrink", "moved"),
    [
        ([2.0, 1.0, 4.0], 5.0, 0.5, [5.0, 4.5, 6.0]),
        ([2.0, 2.0, 2.0], 5.0, 0.1, [5.0, 5.0, 5.0]),
        ([0.5, 0.0, 1.0], 2.0, 0.5, [2.0, 0.0, 2.25]),  # a bound stays one
        ([np.nan, np.nan, np.nan], 2.0, 0.5, [np.nan] * 3),
        ([2.0, np.nan, np.nan], 5.0, 0.5, [5.0, np.nan, np.nan]),
    ],
)
def test_an_interval_is_moved_and_shrunk_around_its_value(cell, value, shrink, moved):
    np.testing.assert_array_equal(_moved(np.array(cell), value, shrink), moved)


def test_values_from_0_to_1_are_probabilities():
    assert _ends_of_signal(np.array([0.0, 0.5, 1.0])) is None
    assert _ends_of_signal(np.array([-0.5, 1.0])) == pytest.approx((-0.5, 1), abs=0.01)
    assert _ends_of_signal(np.array([0.0, 1.5])) == pytest.approx((0, 1.5), abs=0.01)
    assert _ends_of_signal(np.full(3, 2.0)) == (2, 2)
    most = np.append(np.linspace(0, 2, 100_001), 1000.0)  # few outliers do not widen it
    assert _ends_of_signal(most) == pytest.approx((0, 2), abs=0.01)


@pytest.mark.parametrize("bad", [-0.001, 1.001, np.nan])
def test_chances_from_0_to_1(bad):
    ids, every = np.array(["a", "b", "c"]), np.ones(3, dtype=bool)
    _check_q_z(np.array([0.0, 1.0, 0.5]), every, ids)
    q_z = np.array([0.5, bad, 0.5])
    with pytest.raises(ValueError, match="run 'b': its outcome was not observed"):
        _check_q_z(q_z, every, ids)
    _check_q_z(q_z, np.array([True, False, True]), ids)  # of an observed run it is not read


def test_which_runs_of_a_batch_count_and_as_what():
    meta = {"q": [0.2, 0.9, 0.4, 0.5, 0.6], "why": ["max_steps", "done", "max_steps", "crash", ""]}
    cells = np.array([[0.1, 0.2], [0.3, np.nan], [0.5, 0.6], [0.7, 0.8], [0.9, 0.9]])
    X = TrajectoryArray(cells, np.ones(5, int), channels=["a", "b"], meta=meta, missing="allow")
    y = np.array([-1, 1, 1, -1, -1])
    counts, label, excluded = Rules("q_z", q_z="q", stop_reason="why").apply(y, X)
    assert counts.tolist() == [True, False, True, False, False]
    assert label[[0, 2]].tolist() == [0.2, 1]
    assert {why: n for (_, why), n in excluded.items() if n} == {
        "no outcome; stopped by crash, not by a budget": 1,
        "no outcome and no stop reason": 1,
        "a value of b is missing": 1,
    }
    counts, _, excluded = Rules("drop", stop_reason="why").apply(y, X)
    assert counts.tolist() == [False, False, True, False, False]
    assert excluded["all", "the outcome was not observed"] == 1
    counts, label, excluded = Rules().apply(y, X)
    assert counts.tolist() == [True, False, True, True, True]
    assert label[counts].tolist() == [0, 1, 0, 0]
    assert {why: n for (_, why), n in excluded.items() if n} == {"a value of b is missing": 1}


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        ({"q_z": 0.5}, "q_z of batches is a column, got float"),
        ({"stop_reason": ["a"]}, "stop_reason of batches is a column, got list"),
        ({"by": {"x": 3}}, "by of batches is a column, got int"),
        ({"by": "kin"}, "by: no column named 'kin'; did you mean 'kind'"),
        ({"missing": "all"}, "missing"),
        ({"censored": "no"}, "censored"),
    ],
)
def test_columns_that_batches_keep(asked, problem):
    stated = {
        "columns": ["kind", "why", "chance"], "censored": "failure", "missing": "same_runs",
        "q_z": None, "stop_reason": None, "by": None,
    }  # fmt: skip
    with pytest.raises(ValueError, match=problem):
        batch_rules(**(stated | asked))
    rules = batch_rules(**(stated | {"q_z": "chance", "by": {"x": "kind"}, "stop_reason": "why"}))
    assert rules == Rules("q_z", "same_runs", "chance", "why")
    assert batch_rules(**stated) == Rules()


def batch_of(n, start=0, cluster=1):
    ids = [f"r{k}" for k in range(start, start + n)]
    X = TrajectoryArray(np.arange(start, start + n) / 1000, np.ones(n, dtype=int), ids=ids)
    groups = None if cluster == 1 else np.arange(start, start + n) // cluster
    return Batch(np.zeros(n), X, groups)


@pytest.mark.parametrize(("size", "n"), [(10, 10), (9, 9), (1, 1), (50, 10)])
def test_a_sample_holds_the_smallest_hashes(size, n):
    batch = batch_of(10)
    sample = HashSample(size)
    sample.update(batch)
    own = sample.runs()
    assert len(own.y) == n
    smallest = np.argsort(batch.hashes())[:n]
    assert set(own.X.ids) == set(batch.X.ids[smallest])
    assert own.groups is None


def test_a_sample_of_clusters_holds_whole_ones_and_one_at_least():
    sample = HashSample(2)
    for start in (0, 8):
        sample.update(batch_of(8, start, cluster=4))
    own = sample.runs()
    assert len(own.y) == 4
    assert len(set(own.groups.tolist())) == 1


def test_a_pass_over_parts_is_that_over_all():
    options, rules = Options(("log",), as_step_weights(), "weighted"), Rules(missing="ffill")
    whole, first, second = (FirstPass(options, rules, {"a": None}) for _ in range(3))
    rng = np.random.default_rng(0)
    for k in range(6):
        cells = rng.random((40, 1))
        cells[::7] = np.nan
        cells[0] = 0.5
        ids = [f"r{k}-{run}" for run in range(20)]
        X = TrajectoryArray(cells, np.full(20, 2), channels=["a"], ids=ids, missing="allow")
        y = rng.integers(-1, 2, 20)
        for one in (whole, first if k < 3 else second):
            one.update(y, X, None)
    first.merge(second)
    assert first.excluded == whole.excluded
    assert sum(whole.excluded.values()) > 0
    assert first.n_filled == whole.n_filled
    assert whole.n_filled["a"] > 0
    assert first.n_steps == whole.n_steps == 240
    assert first.counts.tolist() == whole.counts.tolist()
    values, expected = (one.of_all()["a"].values() for one in (first, whole))
    assert values == pytest.approx(expected, nan_ok=True)
    halves = [sums.scores.n_runs for sums in whole.rows.values()]
    assert sum(halves) == whole.of_all()["a"].scores.n_runs == whole.counts[0]
    assert min(halves) > 0
    assert set(first.sample.runs().X.ids) == set(whole.sample.runs().X.ids)
    empty = HashSample(5)
    empty.merge(HashSample(5))
    assert empty.parts == []


def test_batches_need_a_run_that_counts(frame):
    frame["verbal"] = np.nan
    batches = iter_batches(pa.Table.from_pandas(frame), **COLUMNS)
    with pytest.raises(ValueError, match="no run counts; give runs with a value of every predic"):
        evaluate(batches)
