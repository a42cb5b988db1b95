"""Numbers with their intervals in cells, of tables made by hand."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from made_cards import card, data_of
from trajscore import TrajectoryArray, evaluate
from trajscore.datasets import make_trajectories
from trajscore.report._cards import AVOID, USE
from trajscore.report._data import MonitoringOptions
from trajscore.report.render.tables import (
    _left_out,
    _lengths,
    _sensitivity,
    _stops,
    _values,
    group_cells,
    step_cells,
    stopping_cells,
    tables_of,
)

NAN = float("nan")


def test_cells_of_steps():
    rows = [
        ("b", "as_given", 1, 2000, 0.6, 0.5, 0.7),
        ("a", "as_given", 1, 1500, 0.55, NAN, NAN),
        ("a", "as_given", 2, 30, NAN, NAN, NAN),
        ("a", "recalibrated", 1, 9999, 0.9, 0.9, 0.9),
    ]
    columns = ["predictor", "form", "step", "n_runs", "AUROC", "AUROC_low", "AUROC_high"]
    table = pd.DataFrame(rows, columns=columns).set_index(columns[:3])
    data = SimpleNamespace(by_step=table, predictors=["b", "a", "c"])
    expected = pd.DataFrame(
        {
            "runs": ["2,000", "30"],
            "b": ["0.600 [0.500, 0.700]", ""],
            "a": ["0.550 [no interval]", ""],
        },
        index=[1, 2],
    )
    pd.testing.assert_frame_equal(step_cells(data), expected, check_names=False)
    assert step_cells(SimpleNamespace(by_step=table[:0], predictors=[])).empty


def test_cells_of_groups():
    index = pd.MultiIndex.from_tuples(
        [("task", "x", "a"), ("task", "y", "a")], names=["by", "group", "predictor"]
    )
    numbers = {"n_runs": [1200, 40], "success_rate": [0.255, 0.5], "card": ["use", "avoid"]}
    for name, value in (("as_given", NAN), ("recalibrated", 0.1)):
        numbers |= {f"{name}{end}": [value, value] for end in ("", "_low", "_high")}
    data = SimpleNamespace(by=pd.DataFrame(numbers, index), score_name="TPS log")
    cells, n_left_out = group_cells(data, "task")
    assert n_left_out == 0
    assert cells.loc[("x", "a")].to_dict() == {
        "runs": "1,200",
        "success": "26%",
        "what to do": "use",
        "as given": "",
        "recalibrated": "+0.100 [+0.100, +0.100]",
    }


def test_cells_of_stopping():
    numbers = {
        "n_success": [12.4, 1], "n_failure": [7.6, 2], "mean_stopping_step": [3.25, NAN],
        "steps_saved": [0.1234, NAN], "cost_saved": [0.5, NAN],
    }  # fmt: skip
    for name in ("false_alarm_rate", "power", "power_before_end"):
        numbers |= {name: [0.1, NAN], f"{name}_low": [NAN, NAN], f"{name}_high": [0.2, NAN]}
    numbers["power_low"] = [0.05, NAN]
    facts = SimpleNamespace(monitoring=MonitoringOptions())
    data = SimpleNamespace(monitoring=pd.DataFrame(numbers), facts=facts)
    assert stopping_cells(data).to_dict("list") == {
        "good, bad runs": ["12, 8", "1, 2"],
        "false alarms": ["0.100", ""],
        "power": ["0.100 [0.050, 0.200]", ""],
        "before the end": ["0.100", ""],
        "stops at step": ["3.2", ""],
        "steps saved": ["12.3%", ""],
        "cost saved": ["50.0%", ""],
    }
    without = SimpleNamespace(monitoring=data.monitoring.drop(columns="cost_saved"), facts=facts)
    assert "cost saved" not in stopping_cells(without)
    for table in (None, data.monitoring[:0]):
        assert stopping_cells(SimpleNamespace(monitoring=table, facts=facts)).empty


@pytest.mark.parametrize("n_predictors", [1, 2, 3])
def test_pairs_are_a_table_from_two_predictors_on(n_predictors):
    runs, rng = make_trajectories(60, random_state=0), np.random.default_rng(0)
    X = {
        name: runs.data.with_cells(rng.random(len(runs.data.cells)))
        for name in "abc"[:n_predictors]
    }
    text = evaluate(X, runs.target, intervals="influence", calibrator=None).to_text(verbose=True)
    assert ("Every pair" in text) == (n_predictors > 1)


def test_shares_of_forecasts_at_the_ends():
    runs = make_trajectories(60, random_state=0)
    cells = runs.q.cells.copy()
    cells[:5], cells[5:12] = 0.0, 1.0
    report = evaluate({"judge": runs.q.with_cells(cells)}, runs.target)
    (values,) = [table for table in tables_of(report) if table.title == "The values as given"]
    assert values.frame.loc["judge", "exactly 0 or 1"] == f"{12 / len(cells):.1%}"


BASE = "base rate", "constant"


def ended(reasons, y, lengths=None):
    n = len(y)
    lengths = np.ones(n, int) if lengths is None else np.array(lengths)
    X = TrajectoryArray(np.zeros(lengths.sum()), lengths, meta={"stop_reason": reasons})
    return SimpleNamespace(traces={BASE: X}, outcomes={BASE: np.array(y)})


def test_success_by_why_runs_ended():
    data = ended(["done", "done", "max", None, "done", "max"], [1, 0, -1, -1, 1, 0])
    assert _stops(data).frame.to_dict("index") == {
        "done": {"runs": "3", "with an outcome": "3", "success": "67%"},
        "max": {"runs": "2", "with an outcome": "1", "success": "0%"},
        "(none)": {"runs": "1", "with an outcome": "0", "success": ""},
    }
    many = ended([f"reason {k}" for k in range(14)], np.zeros(14))
    assert len(_stops(many).frame) == 12
    data.traces[BASE] = TrajectoryArray(np.zeros(6), np.ones(6, int))
    assert _stops(data).frame.empty


def test_success_by_number_of_steps():
    data = ended([None] * 6, [1, 0, 1, 1, -1, -1], [1, 1, 2, 2, 2, 3])
    assert _lengths(data).frame.to_dict("index") == {
        "1": {"runs": "2", "success": "50%"}, "2": {"runs": "3", "success": "100%"},
        "3": {"runs": "1", "success": ""},
    }  # fmt: skip


def test_the_values_of_probabilities_and_signals():
    cells = {"judge": [0.0, 0.25, 0.25, 1.0, 0.5], "risk": [-1.0, 2.0, 0.5, 2.0, 2.0]}
    traces = {
        (name, "as_given"): TrajectoryArray(values, [2, 3], missing="allow")
        for name, values in cells.items()
    }
    data = data_of({"judge": card(USE), "risk": card(AVOID)}, traces=traces)
    data.table.loc[("judge", "as_given"), "TPS log"] = -0.5
    rows = _values(data).frame.to_dict("index")
    assert rows == {
        "judge": {
            "lowest": "0.000", "median": "0.250", "highest": "1.000", "values": "5",
            "distinct values": "4", "exactly 0 or 1": "40.0%", "read as": "probability",
        },
        "risk": {
            "lowest": "-1.000", "median": "2.000", "highest": "2.000", "values": "5",
            "distinct values": "3", "exactly 0 or 1": "", "read as": "signal",
        },
    }  # fmt: skip


def test_margins_of_observed_runs_alone():
    index = pd.MultiIndex.from_tuples(
        [("b", "as_given"), ("a", "recalibrated"), ("a", "as_given")], names=["predictor", "form"]
    )
    table = pd.DataFrame({"margin": [0.1, -0.0004, NAN], "observed_only": [0.2, NAN, 0.1]}, index)
    data = data_of({"a": card(USE), "b": card(AVOID)}, sensitivity=table)
    found = _sensitivity(data).frame
    assert found.to_dict("index") == {
        ("a", "recalibrated"): {"all runs": "+0.000", "observed alone": ""},
        ("b", "as given"): {"all runs": "+0.100", "observed alone": "+0.200"},
    }
    data.sensitivity = table.drop(columns="observed_only")
    assert _sensitivity(data).frame.empty


def test_runs_left_out():
    excluded = pd.DataFrame({"predictor": ["a"], "reason": ["why"], "n_runs": [1200]})
    frame = _left_out(SimpleNamespace(excluded=excluded)).frame
    assert frame.to_dict("index") == {("a", "why"): {"runs": "1,200"}}
