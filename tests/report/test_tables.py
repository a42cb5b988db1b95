"""Tables of an evaluation, of intervals made by hand."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from trajscore import TrajectoryArray
from trajscore.core.weights import as_step_weights
from trajscore.report._data import LEVELS, Options
from trajscore.report._rows import Row
from trajscore.report._runs import Coverage
from trajscore.report._tables import (
    CLIPS,
    count_table,
    excluded_table,
    gain_table,
    row_table,
    sensitivity_table,
)

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


@pytest.mark.parametrize("clip", [1e-6, 1e-2])
def test_margins_with_other_clips(clip):
    labels = np.array([1.0, 0, 1, 0])
    runs = Coverage(labels, labels, None, np.arange(4))
    cells = np.array([0.5, 1.0, 0.001, 0.2, 0.6, 0.0, 0.995, 0.3])
    X = TrajectoryArray(cells, [2, 3, 1, 2])
    row = Row("a", "as_given", X, runs, True)
    other = [Row("b", "as_given", X, runs, False), Row("c", "as_given", X, runs, True)]
    options = Options((("log", clip), "brier"), as_step_weights("uniform"), "weighted")
    cards = pd.DataFrame({"as_given": [0.25, 0.5]}, ["a", "b"])
    table = sensitivity_table([row, *other], cards, cards + 1, options)
    assert table.index.tolist() == [("a", "as_given")]  # of cards, and a probability
    (found,) = table.to_dict("records")
    n_clipped = {1e-6: 2, 1e-2: 4}[clip]
    assert (found["margin"], found["observed_only"], found["clipped"]) == (
        0.25, 1.25, n_clipped / 8,
    )  # fmt: skip
    label = np.repeat(labels, [2, 3, 1, 2])
    rate = label.mean()
    for name, value in CLIPS.items():
        p = np.clip(cells, value, 1 - value)
        score = np.where(label == 1, np.log(p / rate), np.log((1 - p) / (1 - rate)))
        expected = 0.25 if value == clip else score.mean()
        assert found[name] == pytest.approx(expected), name
    assert "observed_only" not in sensitivity_table([row], cards, None, options)
