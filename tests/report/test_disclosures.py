"""Sentences about the evaluation and about single predictors, of facts made by hand."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from trajscore.core.weights import as_step_weights
from trajscore.report._data import Facts, IntervalOptions, Note, Options
from trajscore.report._disclosures import (
    _calibration,
    _censoring,
    _clipping,
    _intervals,
    _step_weights,
    _weights,
    identification,
    left_out,
    level_of_margins,
    population,
    sentence,
)

FACTS = {
    "n_runs": 2000, "n_observed": 2000, "success_rate": 0.5, "censored": "failure", "rate": 0.5,
    "n_beyond": 0, "n_unscored": 0, "knows_end": {}, "is_clustered": False,
    "intervals": IntervalOptions(), "calibrators": None, "monitoring": None,
}  # fmt: skip


def facts(**others):
    return Facts(**(FACTS | others))


@pytest.mark.parametrize(
    ("kind", "told", "words"),
    [
        ("outside", {"place": "row 3", "value": 1.5, "n": 1}, "row 3: 1.5 lies outside [0, 1]; "),
        (
            "outside",
            {"place": "row 3", "value": 1.5, "n": 2},
            "row 3: 1.5 lies outside [0, 1] (the first of 2 such values); correct it if this is",
        ),
        ("filled", {"share": 0.1234}, "12.3% of its values were missing; the value before was"),
        ("risk", {"auroc": 0.12345}, "its AUROC is 0.123: high values go with failure. If it is"),
        (
            "few clusters",
            {"n": 9, "effective": 8.5},
            (
                "there are 9 clusters of runs, equivalent to 8.5 equally large ones. Intervals "
                "from fewer than 15 may be too narrow"
            ),
        ),
        (
            "few clusters",
            {"n": 9, "effective": 8.6},
            "there are 9 clusters of runs. Intervals from fewer than 15 may be too narrow",
        ),
        (
            "heavy run",
            {"run": "'r'", "steps": 1200, "share": 0.256},
            "run 'r' (1,200 steps) has 26% of the weight of all forecasts and moves every score.",
        ),
        (
            "small groups",
            {"kind": "task", "n": 1, "n_groups": 4},
            "1 of 4 groups by task has fewer than 20 runs.",
        ),
        (
            "small groups",
            {"kind": "task", "n": 2, "n_groups": 4},
            "2 of 4 groups by task have fewer than 20 runs.",
        ),
        ("constant maps", {"maps": ["A"]}, "in one of the two cross-fitting folds no increasing"),
        ("constant maps", {"maps": ["A", "B"]}, "in both cross-fitting folds no increasing map"),
        ("too few runs", {}, "left out; it has too few complete runs of both outcomes."),
        ("sampled", {"n": 1500, "n_runs": 20000}, "values and margins are of 20,000 runs, read in"),
    ],
)
def test_notes(kind, told, words):
    assert sentence(Note("judge", kind, told)).startswith(f"judge: {words}")


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({}, "2,000 runs, all with an observed outcome"),
        ({"n_runs": 1, "n_observed": 1}, "1 run, all with an observed outcome"),
        (
            {"censored": "drop"},
            "2,000 runs with an observed outcome; those without one are left out",
        ),
        (
            {"n_observed": 500},
            "2,000 runs; the 1,500 without an observed outcome count as failures",
        ),
        (
            {"n_observed": 1999, "censored": "q_z"},
            "2,000 runs; the 1 without an observed outcome count as their q_z of a success",
        ),
    ],
)
def test_population(told, words):
    assert population(facts(**told)) == words


@pytest.mark.parametrize(
    ("told", "start"),
    [
        ({}, "none: every outcome was observed"),
        ({"censored": "drop"}, "runs without an observed outcome are left out of every number"),
        ({"n_observed": 500}, "1,500 of 2,000 runs not observed, counted as failures (the simple"),
        (
            {"n_observed": 500, "censored": "q_z"},
            "1,500 of 2,000 runs not observed, each counts q_z as a success and 1 - q_z as a",
        ),
    ],
)
def test_censoring(told, start):
    assert _censoring(facts(**told)).startswith(start)


@pytest.mark.parametrize(
    ("calibrators", "words"),
    [
        (None, "none"),
        ({}, "none could be fitted"),
        ({"a": "Platt()", "b": "Platt()"}, "Platt(), out of fold"),
        (
            {"a": "Platt()", "b": "Beta()", "c": "Platt()"},
            "Platt() for a, c; Beta() for b; all out of fold",
        ),
    ],
)
def test_calibration(calibrators, words):
    assert _calibration(calibrators) == words


def test_the_ensemble_is_explained():
    found = _calibration({"a": "EnsembleCrossFitCalibrator()", "b": "Platt()"})
    assert "; all out of fold; the ensemble is the mean, in log-odds, of Platt's" in found


def test_what_was_left_out():
    columns = ["predictor", "reason", "n_runs"]
    rows = [("all", "x", 1), ("judge", "y", 2000), ("all", "z", 1), ("all", "w", 3)]
    data = SimpleNamespace(excluded=pd.DataFrame(rows, columns=columns))
    full = "Left out: 2,000 runs (of judge: y); 3 runs (w); 1 run (x); 1 run (z)"
    assert left_out(data) == left_out(data, 4) == full
    words = "Left out: 2,000 runs (of judge: y); 3 runs (w); 1 run (x); 1 run for other reasons"
    assert left_out(data, 3) == words
    assert left_out(data, 1).endswith("(of judge: y); 5 runs for other reasons")
    assert left_out(SimpleNamespace(excluded=pd.DataFrame([], columns=columns))) == (
        "Left out: no run"
    )


@pytest.mark.parametrize(
    ("n", "level", "words"),
    [(1, 0.95, "95%"), (2, 0.95, "95% for all 2 predictors at once"), (1, 0.999, "99.9%")],
)
def test_level_of_margins(n, level, words):
    data = SimpleNamespace(
        cards=range(n),
        score_name="TPS log",
        facts=facts(intervals=IntervalOptions(confidence_level=level)),
    )
    assert level_of_margins(data) == f"intervals of TPS log margins hold at {words}"


def test_identification():
    source = SimpleNamespace(name="a.csv", created="", version="1.0", command="trajscore a.csv")
    found = identification(SimpleNamespace(source=source))
    assert found == "a.csv, trajscore 1.0, trajscore a.csv"


@pytest.mark.parametrize(
    ("rate", "unscored", "words"),
    [
        (0.5, 0, ""),
        (0.5004, 0, ""),
        (0.4996, 0, ""),
        (0.5, 1200, "; 1,200 steps beyond the horizon are not scored"),
        (
            0.25,
            0,
            (
                "; the best constant is the success rate over forecasts, 0.250, where the rate "
                "over runs is 0.500"
            ),
        ),
        (
            0.75,
            0,
            (
                "; the best constant is the success rate over forecasts, 0.750, where the rate "
                "over runs is 0.500"
            ),
        ),
    ],
)
@pytest.mark.parametrize(
    ("schedule", "counts"), [("early", "1/sqrt(t)"), ("uniform", "its uniform weight")]
)
def test_step_weights(rate, unscored, words, schedule, counts):
    data = SimpleNamespace(
        options=Options(("log",), as_step_weights(schedule), "weighted"),
        facts=facts(rate=rate, n_unscored=unscored),
        labels={("base rate", "constant"): np.array([0.0, 1.0])},
    )
    text = f"the forecast at step t counts {counts}, whatever the length of its run, and a score "
    found = _step_weights(data)
    assert found.endswith(f"{text}is divided by the weight of all forecasts{words}")


@pytest.mark.parametrize(
    ("scores", "words"),
    [
        (("brier",), []),
        (
            ("log", "brier"),
            [("12.3% of the forecasts of a as given are clipped (its margin would be +0.250 with a "
             "clip of 1e-2)")],
        ),
        (("brier", "log"), ["12.3% of the forecasts of a as given are clipped"]),
    ],
)  # fmt: skip
def test_clipping(scores, words):
    index = pd.MultiIndex.from_tuples([("a", "as_given"), ("b", "recalibrated")])
    table = pd.DataFrame({"clipped": [0.1234, 0], "clip_1e-2": [0.25, 0.5]}, index)
    options = Options(scores, as_step_weights(), "weighted")
    found = _clipping(SimpleNamespace(options=options, sensitivity=table))
    assert found[1:] == words
    assert [text.startswith("log scores in nats, forecasts clipped to [1e-6, 1 - 1e-6]")
            for text in found[:1]] == [True] * ("log" in scores)  # fmt: skip


@pytest.mark.parametrize(
    ("method", "made", "words", "not_words"),
    [
        ("auto", ["influence", "influence"], "from the influence of each run", "bootstrap"),
        ("auto", ["bootstrap", "influence"], "which is so for some of TPS log", "S-ECE"),
        ("influence", ["influence"] * 2, "from the influence of each run", "bootstrap"),
        ("bootstrap", ["bootstrap"] * 2, "bootstrap (BCa, 70 replicates)", "influence"),
        ("bootstrap", ["bootstrap", "influence"], "those of S-ECE from the", "those of TPS"),
    ],
)
def test_how_intervals_were_made(method, made, words, not_words):
    index = pd.MultiIndex.from_tuples(
        [("a", "as_given", "TPS log"), ("a", "as_given", "S-ECE")],
        names=["predictor", "form", "metric"],
    )
    methods = pd.DataFrame({"value": made, "margin": made}, index=index)
    ends = pd.DataFrame({"margin": [0.1, 0.1], "margin_low": [0.0, 0.0]}, index=index)
    draws = IntervalOptions(70, method=method)
    data = SimpleNamespace(
        facts=facts(intervals=draws),
        interval_methods=methods,
        intervals=ends,
        score_name="TPS log",
        cards=pd.DataFrame(index=["a"]),
        options=Options(("log",), as_step_weights(), "weighted"),
    )
    said = _intervals(data)
    assert words in said
    assert not_words not in said


@pytest.mark.parametrize(
    ("n_beyond", "error", "words"),
    [
        (0, 0.0, ""),
        (0, 1e-9, ""),
        (0, 0.0125, "the base rate, the mean over runs, has an S-ECE of 0.013"),
        (1, 0.0, "; 1 run with an observed outcome have a horizon beyond their end, so that"),
        (2, 0.5, "; 2 runs with an observed outcome have a horizon beyond their end, so that"),
    ],
)
def test_weights_of_each_run_of_its_own(n_beyond, error, words):
    key = pd.MultiIndex.from_tuples([("base rate", "constant")])
    data = SimpleNamespace(
        options=Options(("log",), as_step_weights("uniform", "own"), "weighted"),
        facts=facts(n_beyond=n_beyond),
        table=pd.DataFrame({"S-ECE": [error]}, index=key),
    )
    said = _weights(data)
    start = "uniform, adding up to one over each run's own horizon (the convention of the paper, "
    assert said.startswith(start)
    assert words in said
    assert ("horizon beyond their end" in said) == (n_beyond > 0)
    assert ("has an S-ECE of" in said) == (error > 1e-8)


@pytest.mark.parametrize(
    ("is_clustered", "margins", "lows", "words", "has_none"),
    [
        (True, [0.1, 0.1], [0.0, 0.0], "fewer than 30 clusters (or a quarter of all", False),
        (False, [0.1, 0.1], [0.0, np.nan], "fewer than 30 runs (or a quarter of all", False),
        (False, [0.1, 0.1], [np.nan, 0.0], "; paired by run; wide enough", True),
        (True, [np.nan, 0.1], [np.nan, 0.0], "; paired by cluster of runs; wide enough", False),
    ],
)
def test_differences_without_an_interval(is_clustered, margins, lows, words, has_none):
    names = ["predictor", "form", "metric"]
    keys = [("a", "as_given", "TPS log"), ("a", "as_given", "S-ECE")]
    index = pd.MultiIndex.from_tuples(keys, names=names)
    made = ["bootstrap", "influence"]
    data = SimpleNamespace(
        facts=facts(is_clustered=is_clustered),
        interval_methods=pd.DataFrame({"value": made, "margin": ["", ""]}, index=index),
        intervals=pd.DataFrame({"margin": margins, "margin_low": lows}, index=index),
        score_name="TPS log",
        cards=pd.DataFrame(index=["a"]),
        options=Options(("log",), as_step_weights(), "weighted"),
    )
    said = _intervals(data)
    assert words in said
    assert said.startswith("95%, from the influence of each run on a metric, with t quantiles; by ")
    assert ("differences with fewer than 5 runs of an outcome have none" in said) == has_none
