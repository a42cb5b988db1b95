"""A report in batches: values of all runs, widths of intervals of a sample."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from judged import evaluate
from known_scores import ShiftedBrier
from refused import must_refuse
from trajscore import TrajectoryArray
from trajscore.streaming import iter_batches

COLUMNS = {"id": "run", "step": "t", "value": ["judge", "verbal"], "outcome": "solved"}


@pytest.fixture
def frame(rng):
    n = 200
    lengths = rng.integers(1, 7, n)
    run = np.repeat(np.arange(n), lengths)
    rate = rng.beta(2, 2, n)
    y = (rng.random(n) < rate).astype(float)
    noise = rng.normal(0, [[0.1], [0.3]], (2, len(run)))
    return pd.DataFrame(
        {
            "run": [f"r{k}" for k in run],
            "t": np.concatenate([np.arange(1, k + 1) for k in lengths]),
            "judge": np.clip(rate[run] + noise[0], 0.01, 0.99),
            "verbal": np.clip(rate[run] + 0.1 + noise[1], 0.01, 0.99).round(2),
            "solved": y[run],
            "task": run // 4,
            "why": rng.choice(["max_steps", "crash", "done"], n)[run],
            "model": rng.choice(["small", "large"], n)[run],
            "chance": rng.random(n)[run],
        }
    )


def batches_of(frame, **options):
    return iter_batches(pa.Table.from_pandas(frame), **COLUMNS, **options)


def in_memory(frame, meta=("task",), **options):
    X, y = TrajectoryArray.from_frame(frame, **COLUMNS, meta=list(meta), missing="allow")
    if options.get("censored") == "chance":
        options["censored"] = X.meta["chance"]
    return evaluate(X, y, **options)


def of_predictors(table):
    return table[table.index.isin(["judge", "verbal"], level="predictor")]


@pytest.mark.parametrize("group", [None, "task"])
def test_all_runs_in_the_sample(frame, group):
    options = {"calibrator": "platt" if group is None else None, "intervals": "influence"}
    report = evaluate(batches_of(frame, group=group), **options)
    groups = None if group is None else frame.groupby("run", sort=False)["task"].first()
    expected = in_memory(frame, groups=groups, **options)
    raw, close = (
        of_predictors(one.intervals.xs("as_given", level="form")) for one in (report, expected)
    )
    np.testing.assert_allclose(raw["value"], close["value"], atol=5e-3)
    np.testing.assert_allclose(raw["margin"], close["margin"], atol=5e-3)
    scores, exact = (one.xs("TPS log", level="metric") for one in (raw, close))
    # of clusters, the few that share a hash count as one
    tolerance = {"rtol": 1e-9} if group is None else {"rtol": 0, "atol": 2e-3}
    np.testing.assert_allclose(scores, exact, **tolerance)
    alive = [one.table.loc[["alive rate", "alive rate, end known"]] for one in (report, expected)]
    pd.testing.assert_frame_equal(*alive, check_dtype=False)
    if group is None:  # calibrated by other halves: the same within what halves are worth
        ours, theirs = (one.table.xs("recalibrated", level="form") for one in (report, expected))
        np.testing.assert_allclose(ours["TPS log"], theirs["TPS log"], atol=0.05)
    assert "drawn by a hash" not in " ".join(report.notes)  # all of them are


def test_the_base_rate_is_scored_as_any_constant_forecast(frame):
    of_forecasts = np.average(frame["solved"], weights=1 / np.sqrt(frame["t"]))
    of_runs = frame.groupby("run")["solved"].first().mean()
    batches = batches_of(frame.assign(judge=of_runs, verbal=of_forecasts))
    report = evaluate(batches, calibrator=None, intervals="influence")
    assert report.facts.base_rate == pytest.approx(of_forecasts)
    base, steps, runs = (
        report.intervals.xs(row, level=["predictor", "form"])
        for row in (("base rate", "constant"), ("verbal", "as_given"), ("judge", "as_given"))
    )
    scores = base.index.str.startswith("TPS")
    columns = ["value", "margin", "low", "high"]
    np.testing.assert_allclose(base.loc[scores, columns], steps.loc[scores, columns], atol=1e-12)
    of_steps = base.index.isin(report.options.step_metrics)
    np.testing.assert_allclose(base["value"][of_steps], steps["value"][of_steps], atol=1e-12)
    np.testing.assert_allclose(base["value"][~of_steps], runs["value"][~of_steps], atol=1e-12)


@pytest.mark.parametrize(
    "weights",
    [
        {"weights": lambda t: 1 / t, "horizon": 3, "phi": "last", "families": ShiftedBrier()},
        {"weights": "linear_front", "horizon": "own"},
    ],
    ids=["last", "as published"],
)
def test_the_same_under_any_weights(frame, weights):
    options = {"families": "log", "calibrator": None, "intervals": "influence", **weights}
    report, expected = evaluate(batches_of(frame), **options), in_memory(frame, **options)
    assert report.facts.base_rate == pytest.approx(expected.facts.base_rate)
    assert report.facts.n_unscored == expected.facts.n_unscored
    columns = report.options.step_metrics
    ours, theirs = (
        one.table.loc[["judge", "verbal", "base rate"]][columns] for one in (report, expected)
    )
    scores = report.options.score_names
    np.testing.assert_allclose(ours[scores], theirs[scores], rtol=1e-9)
    np.testing.assert_allclose(ours.astype(float), theirs.astype(float), atol=1e-2)


def test_of_more_runs_than_the_sample_values_are_of_all(rng):
    n = 24_000  # of which 20,000 are drawn
    q = rng.beta(2, 2, n)
    y = (rng.random(n) < q).astype(int)
    y[: n // 3] = -1
    table = {"run": np.arange(n), "t": np.ones(n, dtype=int), "judge": q.round(4), "y": y}
    table["why"] = np.where(y == -1, "max_steps", "huh")
    columns = {"id": "run", "step": "t", "value": ["judge"], "outcome": "y"}
    batches = iter_batches(pa.table(table), **columns, meta=["why"])
    options = {"calibrator": None, "families": "log", "intervals": "influence"}
    report = evaluate(batches, stop_reason="why", **options)
    assert report.other_choices["unknown"][0] == n - n // 3
    X, y = TrajectoryArray.from_frame(pd.DataFrame(table), **columns)
    expected = evaluate(X, y, **options)
    assert len(report.traces["judge", "as_given"]) == 20_000
    assert report.table["n_runs"].tolist() == [n, n, 20_000, 20_000]
    ours, theirs = (one.intervals.loc["judge"].loc["as_given"] for one in (report, expected))
    np.testing.assert_allclose(ours["value"], theirs["value"], atol=2e-3)
    width = theirs["high"] - theirs["low"]
    ratio = (ours["high"] - ours["low"]) / width
    np.testing.assert_allclose(ratio[["AUROC", "AURC", "T-Brier", "TPS log"]], 1, rtol=0.03)
    assert "24,000 runs, read in batches" in report.notes[0]
    # what is of all runs, and what is of the sample, each with its own number of them
    assert "24,000 runs · 24,000 steps" in str(report)
    assert report.disclosures["base rate"] == expected.disclosures["base rate"]
    seen, text = int((report.runs.y >= 0).sum()), " ".join(str(report).split())
    assert "8,000 runs hit their budget and count as failures" in text
    assert f"the largest of {seen:,} runs with an outcome" in text


@pytest.mark.parametrize(
    "options", [{"missing": "ffill"}, {"censored": "chance"}, {"censored": "drop"}], ids=str
)
def test_what_is_known_of_single_runs(frame, rng, options):
    row = pd.factorize(frame["run"])[0]
    frame.loc[(rng.random(200) < 0.2)[row], "solved"] = np.nan
    frame.loc[rng.random(len(frame)) < 0.02, "judge"] = np.nan
    kept = ["why", "model", "chance"]
    options |= {"by": "model", "calibrator": None, "families": "log", "intervals": "influence"}
    report = evaluate(batches_of(frame, meta=kept), stop_reason="why", **options)
    why = frame.groupby("run", sort=False)["why"].first()
    expected = in_memory(frame, kept, stop_reason=why, **options)
    assert report.facts.n_runs == expected.facts.n_runs < 200
    assert report.options.settings.missing == expected.options.settings.missing
    assert report.facts.n_observed == expected.facts.n_observed
    assert report.excluded.sort_values("reason").values.tolist() == (
        expected.excluded.sort_values("reason").values.tolist()
    )
    assert set(report.notes[1:]) >= {one for one in expected.notes if "were missing" in one}
    assert report.by["n_runs"].equals(expected.by["n_runs"])
    scores = [one.table.xs("as_given", level="form")["TPS log"] for one in (report, expected)]
    pd.testing.assert_series_equal(*scores, rtol=1e-9)


def test_a_calibrator_does_not_see_the_runs_that_it_is_judged_on(frame, rng):
    """A map of noise is never below the base rate on the runs that it was fitted to."""
    few = frame[frame["task"] < 20].assign(solved=lambda table: table["task"] % 2)
    few["judge"], few["verbal"] = rng.random((2, len(few)))
    report = evaluate(batches_of(few), calibrator="platt", families="log", intervals="influence")
    margins = report.intervals["margin"].xs("TPS log", level="metric").loc[["judge", "verbal"]]
    assert (margins.xs("recalibrated", level="form") < -1e-4).all()


def test_intervals_are_named_as_they_were_made(frame):
    """Scores are added up over all runs, and their intervals are not those of the sample."""
    few = frame[frame["task"] < 10]  # so few runs that those of the sample are by bootstrap
    report = evaluate(batches_of(few), calibrator=None, intervals="bootstrap")
    scores = report.interval_methods.loc[[("judge", "as_given", "TPS log")]]
    assert (scores[["value", "margin"]] == "influence").all(axis=None)
    rows = report.intervals.loc[[("judge", "as_given", "TPS log")]]
    np.testing.assert_allclose(rows["value"] - rows["low"], rows["high"] - rows["value"])
    assert "by influence (t quantiles) for some of TPS log" in report.disclosures["intervals"]


def test_runs_of_few_steps_have_a_report(frame):
    """No run has a middle or a late step, so that no metric is of these."""
    short = frame[frame["t"] <= 2]
    options = {"calibrator": None, "families": "log", "intervals": "influence"}
    report, expected = evaluate(batches_of(short), **options), in_memory(short, **options)
    assert report.table.columns.equals(expected.table.columns)
    ours, theirs = (
        of_predictors(one.table).xs("as_given", level="form") for one in (report, expected)
    )
    for metric in ("TPS log", "S-ECE", "S-ECE early"):
        np.testing.assert_allclose(ours[metric], theirs[metric], atol=5e-3)


# ------------------------------------------------------------------ bad input


def test_what_is_not_for_batches(frame):
    batches = batches_of(frame, meta="chance")
    rows = [
        ({"y": [1, 0]}, "leave out y"),
        ({"missing": "all"}, "missing must be"),
        ({"censored": "no"}, "censored: .*'no'"),
        ({"censored": 0.5}, "censored of batches is a column, got float"),
        ({"by": {"x": 3}}, "by of batches is a column, got int"),
        ({"by": "chanc"}, "by: .*'chanc'; did you mean 'chance'"),
        ({"stop_reason": "model"}, "stop_reason: .*'model'"),
        ({"end": "known"}, "end must be"),
    ]
    must_refuse(lambda options: evaluate(batches, **options), rows)


def test_bad_values_name_their_run(frame):
    stray = frame.assign(judge=frame["judge"].where(frame.index != 7, 1.5))
    name = frame["run"][7]
    with pytest.raises(ValueError, match=f"{name}.* 1.5.*Batches hold probabilities"):
        evaluate(batches_of(stray))
    frame["chance"] = np.where(frame["run"] == "r9", 1.5, 0.5)
    frame.loc[frame["run"] == "r9", "solved"] = np.nan
    with pytest.raises(ValueError, match="run 'r9': .* q_z is 1.5"):
        evaluate(batches_of(frame, meta="chance"), censored="chance")
    frame["verbal"] = np.nan
    with pytest.raises(ValueError, match="no run counts"):
        evaluate(batches_of(frame))


def test_a_source_that_is_gone_when_it_is_read_again(frame):
    def batches():
        table = pa.Table.from_pandas(frame)
        reader = pa.RecordBatchReader.from_batches(table.schema, table.to_batches(700))
        return iter_batches(reader, **COLUMNS)

    with pytest.raises(ValueError, match=r"200 runs at first and 0 .*calibrator=None"):
        evaluate(batches(), calibrator="platt", families="log", intervals="influence")
    assert evaluate(batches(), calibrator=None, families="log").facts.n_runs == 200
