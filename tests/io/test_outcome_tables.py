"""Tables of outcomes: their columns, and how they are joined to runs."""

import math

import pandas as pd
import pytest

from trajscore import TrajectoryArray, io
from trajscore.core.errors import ArgumentError
from trajscore.io.fields import Fields
from trajscore.io.outcome_tables import (
    _column,
    _id_columns,
    examples,
    join_outcomes,
    read_outcomes,
    unmatched,
)

TABLE = pd.DataFrame(
    {
        "run_id": [1, 2, 3],
        "session": ["x", "y", "z"],
        "solved": [1.0, 0.0, math.nan],
        "grade": [0.5, 0.25, 0.75],
        "stop_reason": ["done", None, "max_steps"],
    }
)


def test_no_table_and_a_mapping():
    assert read_outcomes(None, Fields()) is None
    assert read_outcomes({1: 1, "b": "pass"}, Fields()) == {
        "1": {"outcome": 1},
        "b": {"outcome": "pass"},
    }


@pytest.mark.parametrize("suffix", [None, "csv", "jsonl"])
def test_usual_columns(tmp_path, suffix):
    source = TABLE
    if suffix == "csv":
        source = tmp_path / "t.csv"
        TABLE.to_csv(source, index=False)
    elif suffix == "jsonl":
        source = str(tmp_path / "t.jsonl")
        TABLE.to_json(source, orient="records", lines=True)
    assert read_outcomes(source, Fields()) == {
        "1": {"outcome": 1, "stop_reason": "done"},
        "2": {"outcome": 0},
        "3": {"stop_reason": "max_steps"},
    }


@pytest.mark.parametrize(
    ("names", "ids", "outcomes"),
    [
        (Fields(outcome="grade"), ["1", "2", "3"], [0.5, 0.25, 0.75]),
        (Fields(id="session"), ["x", "y", "z"], [1, 0, None]),
        (Fields(id=("session", "run_id")), ["x-1", "y-2", "z-3"], [1, 0, None]),
        (Fields(id="of the log"), ["1", "2", "3"], [1, 0, None]),
        (Fields(id=("session", "of the log")), ["1", "2", "3"], [1, 0, None]),
    ],
)
def test_named_columns(names, ids, outcomes):
    table = read_outcomes(TABLE, names)
    assert list(table) == ids
    assert [row.get("outcome") for row in table.values()] == outcomes


@pytest.mark.parametrize(
    ("name", "reasons"),
    [("session", ["x", "y", "z"]), ("of the log", ["done", None, "max_steps"])],
)
def test_a_named_stop_reason(name, reasons):
    table = read_outcomes(TABLE, Fields(stop_reason=name))
    assert [row.get("stop_reason") for row in table.values()] == reasons
    without = read_outcomes(TABLE.drop(columns="stop_reason"), Fields())
    assert all("stop_reason" not in row for row in without.values())


@pytest.mark.parametrize(
    ("table", "names", "argument", "problem"),
    [
        (TABLE.iloc[[0, 1, 1]], Fields(), "outcomes", "run '2' has several rows"),
        (TABLE.drop(columns="run_id"), Fields(), "outcomes", r"\(session, solved, grade, stop"),
        (TABLE, Fields(outcome="grades"), "outcome", "no column named 'grades'"),
        (TABLE[["run_id", "grade"]], Fields(), "outcome", r"of its columns \(run_id, grade\)"),
    ],
)
def test_tables_that_cannot_be_used(table, names, argument, problem):
    with pytest.raises(ArgumentError, match=problem) as caught:
        read_outcomes(table, names)
    assert caught.value.part == argument


# ------------------------------------------------------------------ joining


LONG = pd.DataFrame({"run": ["1", "1", "2", "9"], "step": [1, 2, 1, 1], "solved": 0})


def test_outcomes_are_joined_by_id():
    frame, names, notes = join_outcomes(LONG, Fields(step="step"), TABLE)
    assert frame[names.outcome].tolist()[:3] == [1, 1, 0]
    assert frame[names.outcome].isna().tolist() == [False, False, False, True]
    assert frame["solved"].tolist() == [0] * 4
    assert names.step == "step"
    assert notes == (
        "rows of the table of outcomes whose run is not in the log: 1",
        "runs of the log that are not in the table of outcomes: 1",
    )
    assert list(LONG) == ["run", "step", "solved"]  # as it was


def test_without_a_table_nothing_changes():
    frame, names, notes = join_outcomes(LONG, Fields(), None)
    assert (frame is LONG, names, notes) == (True, Fields(), ())


def test_a_table_of_all_runs_leaves_no_note():
    assert join_outcomes(LONG, Fields(), {"1": 1, "2": 0, "9": 0})[2] == ()


def test_a_table_of_other_runs_is_refused():
    outcomes = dict.fromkeys("abcd", 1)
    with pytest.raises(ArgumentError, match=r"\('1', '1', '2'\) is in .* \('a', 'b', 'c'\)"):
        join_outcomes(LONG, Fields(), outcomes)


@pytest.mark.parametrize(("n_rows", "n_runs", "counts"), [(0, 0, []), (2, 0, [2]), (1, 3, [1, 3])])
def test_notes_on_both(n_rows, n_runs, counts):
    assert [int(note.split(": ")[1]) for note in unmatched(n_rows, n_runs)] == counts


def test_examples():
    assert examples(["a", 1]) == "'a', 1"
    assert examples(dict.fromkeys("abcd")) == "'a', 'b', 'c'"


def test_outcomes_whose_high_values_are_failures():
    table = pd.DataFrame({"run_id": ["a", "b", "c"], "failed": [1, 0, -1]})
    named = read_outcomes(table, Fields(outcome="not failed"))
    assert named.is_turned
    assert not read_outcomes(table.rename(columns={"failed": "ok"}), Fields(outcome="ok")).is_turned
    frame, fields, notes = join_outcomes(
        pd.DataFrame({"run_id": ["a", "b", "c"], "p": 0.5}), Fields(outcome="not failed"), table
    )
    assert notes == ("outcome: not 'failed', so 1 counts as failure",)
    _, y = TrajectoryArray.from_frame(
        frame, id="run_id", step=None, value="p", outcome=fields.outcome
    )
    assert y.tolist() == [0, 1, -1]
    with pytest.raises(ArgumentError, match="with outcome, such as outcome='not failed'"):
        read_outcomes(table[:2], Fields())


def test_outcomes_of_a_log_whose_high_values_are_failures(write, talk):
    path = write("a.json", [{"id": k, "messages": talk} for k in "abc"])
    table = pd.DataFrame({"run_id": ["a", "b", "c"], "failed": [1, 0, -1]})
    runs = io.read_runs(path, outcomes=table, outcome="not failed")
    assert [run.outcome for run in runs] == [0, 1, -1]
    assert runs.notes == ["outcome: not 'failed', so 1 counts as failure"]


def test_runs_and_rows_without_a_counterpart_are_counted():
    with pytest.raises(ArgumentError) as error:
        join_outcomes(LONG, Fields(), {"x": 1})
    assert str(error.value) == (
        "outcomes: no run id of the table ('1', '1', '2') is in the table of outcomes ('x'); name "
        "the column of run ids that both have with id="
    )
    assert error.value.part == "outcomes"
    assert join_outcomes(LONG, Fields(), {"9": 1})[2] == (
        "runs of the log that are not in the table of outcomes: 2",
    )
    assert join_outcomes(LONG, Fields(), {"1": 1, "2": 0, "9": 0, "x": 1, "y": 1})[2] == (
        "rows of the table of outcomes whose run is not in the log: 2",
    )


@pytest.mark.parametrize(
    ("names", "columns"),
    [
        (Fields(), ["run_id"]), (Fields(id="session"), ["session"]),
        (Fields(id="none"), ["run_id"]),
        (Fields(id=("session", "grade")), ["session", "grade"]),
        (Fields(id=("session", "none")), ["run_id"]),
    ],
)  # fmt: skip
def test_columns_of_the_id(names, columns):
    assert _id_columns(TABLE, names) == columns


@pytest.mark.parametrize(
    ("names", "part", "column"),
    [
        (Fields(), "outcome", "solved"), (Fields(outcome="grade"), "outcome", "grade"),
        (Fields(outcome="not grade"), "outcome", "grade"), (Fields(), "stop_reason", "stop_reason"),
        (Fields(stop_reason="session"), "stop_reason", "session"),
        (Fields(stop_reason="none"), "stop_reason", "stop_reason"),
    ],
)  # fmt: skip
def test_columns_of_a_part(names, part, column):
    assert _column(TABLE, names, part) == column
    assert _column(TABLE[["run_id"]], Fields(), "stop_reason") is None
    with pytest.raises(ArgumentError) as error:
        _column(TABLE[["run_id"]].assign(verdict=["pass", "fail", "pass"]), Fields(), "outcome")
    assert str(error.value).startswith(
        "the table of outcomes has no column of outcomes; name one of its columns (run_id, "
        "verdict) with outcome, such as outcome='verdict'"
    )
