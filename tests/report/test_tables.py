"""Tables of an evaluation, of intervals made by hand."""

from types import SimpleNamespace

import numpy as np
import pandas as pd

from trajscore.core.weights import as_step_weights
from trajscore.report._data import LEVELS, Options
from trajscore.report._tables import CLIPS, count_table, excluded_table, gain_table, row_table

OPTIONS = Options(("log", "brier"), as_step_weights(), "weighted")
COLUMNS = [name for level in LEVELS for name in level]


def intervals_of(keys):
    """Intervals whose numbers are all different."""
    index = pd.MultiIndex.from_tuples(keys, names=["predictor", "form", "metric"])
    numbers = np.arange(len(keys) * len(COLUMNS), dtype=float).reshape(len(keys), -1)
    return pd.DataFrame(numbers, index, COLUMNS)


def test_counts():
    rows = [
        SimpleNamespace(key=("a", "as_given"), runs=runs)
        for runs in (np.ones(3, bool), np.array([True, False, False]))
    ]
    for row in rows:
        row.runs = type("Runs", (), {"observed": row.runs, "__len__": lambda _: 3})()
    table = count_table(rows)
    assert table.to_dict("list") == {"n_runs": [3, 3], "n_censored": [0, 2]}
    assert table.index.names == ["predictor", "form"]


def test_rows():
    intervals = intervals_of([("a", "as_given", name) for name in OPTIONS.metrics])
    index = pd.MultiIndex.from_tuples([("a", "as_given")], names=["predictor", "form"])
    counts = pd.DataFrame({"n_runs": [3], "n_censored": [0]}, index)
    table = row_table(counts, OPTIONS, intervals)
    over = [name for level in LEVELS[2:4] for name in level]
    of_scores = [f"{name} {x}" for name in OPTIONS.score_names for x in (*LEVELS[1], *over)]
    of_ranks = [f"AUROC {x}" for x in over]
    assert list(table) == ["n_runs", "n_censored", *OPTIONS.metrics, *of_scores, *of_ranks]
    row = table.iloc[0]
    for name in OPTIONS.metrics:
        assert row[name] == intervals.loc[("a", "as_given", name), "value"]
    for name in (*of_scores, *of_ranks):
        metric, column = name.rsplit(" ", 1)
        assert row[name] == intervals.loc[("a", "as_given", metric), column]


def test_gains():
    keys = [
        ("a", form, name) for form in ("as_given", "recalibrated") for name in ("AUROC", "AURC")
    ]
    intervals = intervals_of([*keys, ("b", "recalibrated", "AUROC")])
    intervals["value"] = [0.5, 0.4, 0.7, 0.3, 0.9]
    over = ["over_as_given", "over_as_given_low", "over_as_given_high"]
    intervals[over] = np.nan
    intervals.loc[("a", "recalibrated", "AUROC"), over] = [0.2, 0.1, 0.4]
    intervals.loc[("a", "recalibrated", "AURC"), over] = [-0.1, -0.3, 0.05]
    table = gain_table(OPTIONS, intervals).round(9)
    assert table.loc[("a", "AUROC")].tolist() == [0.5, 0.7, 0.2, 0.1, 0.4]
    assert table.loc[("a", "AURC")].tolist() == [0.4, 0.3, 0.1, -0.05, 0.3]
    assert list(table) == ["as_given", "recalibrated", "gain", "gain_low", "gain_high"]
    assert len(table) == 2


def test_runs_left_out():
    table = excluded_table({("all", "x"): 2, ("a", "y"): 0, ("b", "z"): 1})
    assert table.to_numpy().tolist() == [["all", "x", 2], ["b", "z", 1]]
    assert list(excluded_table({})) == ["predictor", "reason", "n_runs"]
    assert CLIPS == {"clip_1e-6": 1e-6, "clip_1e-2": 1e-2}
