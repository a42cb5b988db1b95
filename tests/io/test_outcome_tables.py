"""Tables of outcomes, beside a log and beside a table of steps."""

import pandas as pd
import pytest

from checked_tables import steps, write_table
from trajscore import io

TABLE = pd.DataFrame(
    {"run_id": [1, 2, 3], "session": ["x", "y", "z"], "solved": [1.0, 0.0, None],
     "grade": [0.5, 0.25, 0.75], "stop_reason": ["done", None, "max_steps"]}
)  # fmt: skip


@pytest.fixture
def log(write, talk):
    return write("a.json", [{"id": k, "messages": talk, "success": 1} for k in (1, 2, 3)])


def test_a_table_goes_before_the_log_in_any_form(log, tmp_path):
    TABLE.to_json(tmp_path / "t.jsonl", orient="records", lines=True)
    for source in (
        TABLE, write_table(tmp_path / "t.csv", TABLE), str(tmp_path / "t.jsonl"),
    ):  # fmt: skip
        runs = io.read_runs(log, outcomes=source)
        assert [run.outcome for run in runs] == [1, 0, -1]
        assert [run.stop_reason for run in runs] == ["done", None, "max_steps"]
        assert runs.notes == []
    runs = io.read_runs(log, outcomes={1: 0, "2": "pass"}, outcome_map="pass=1")
    assert [run.outcome for run in runs] == [0, 1, -1]
    assert io.outcomes(io.read_runs(log, outcomes={})).tolist() == [-1] * 3


def test_named_columns(write, talk):
    runs = [
        {"id": k, "session": s, "messages": talk} for k, s in zip((1, 2, 3), "xyz", strict=True)
    ]
    log = write("a.json", runs)
    read = io.read_runs(log, outcomes=TABLE, outcome="grade")
    assert io.outcomes(read).tolist() == [0.5, 0.25, -1]  # the last at max_steps
    read = io.read_runs(log, outcomes=TABLE, id="session")
    assert [(run.id, run.outcome) for run in read] == [("x", 1), ("y", 0), ("z", -1)]
    table = TABLE.rename(columns={"run_id": "id"})
    read = io.read_runs(log, outcomes=table, id=["session", "id"])
    assert [(run.id, run.outcome) for run in read] == [("x-1", 1), ("y-2", 0), ("z-3", -1)]
    table = TABLE.assign(run_id=["x-1", "y-2", "z-3"]).drop(columns="session")
    read = io.read_runs(log, outcomes=table, id=["session", "id"])  # its own name of the id
    assert io.outcomes(read).tolist() == [1, 0, -1]
    table = TABLE.rename(columns={"stop_reason": "why"})
    why = io.read_runs(write("b.json", [r | {"why": "x"} for r in runs]), outcomes=table,
                       stop_reason="why")  # fmt: skip
    assert [run.stop_reason for run in why] == ["done", "x", "max_steps"]


def test_tables_that_cannot_be_used(log, write):
    words = TABLE[["run_id"]].assign(verdict=["pass", "fail", "pass"])
    counts = TABLE.assign(passed=[3, 1, 0], failed=[0, 2, 3]).drop(columns="solved")
    for table, names, named in [
        (TABLE.iloc[[0, 1, 1]], {}, ("run '2'", "outcomes")),
        (TABLE.drop(columns="run_id"), {}, ("session, solved, grade", "'id'")),
        (TABLE, {"outcome": "grades"}, ("'grades'", "'grade'")),
        (TABLE[["run_id", "grade"]], {}, ("run_id, grade", "outcome")),
        (words, {}, ("run_id, verdict", "outcome")),
        (TABLE[["run_id"]].assign(failed=[1, 0, 1]), {}, ("run_id, failed", "outcome")),
        (counts, {}, ("outcome is 3", "outcome_map=")),
        (TABLE.assign(run_id=list("uvw")), {}, ("'1', '2', '3'", "'u', 'v', 'w'", "id=")),
    ]:
        with pytest.raises(ValueError, match="outcome") as caught:
            io.outcomes(io.read_runs(log, outcomes=table, **names))
        assert [one for one in named if one not in str(caught.value)] == []
    for text, named in (('{"run": []}', "o.json .*'run'"), ("[1]", "o.json .*row 0")):
        with pytest.raises(ValueError, match=named):
            io.read_runs(log, outcomes=write("o.json", text))


def test_rows_and_runs_without_a_counterpart_are_counted(log):
    for table, numbers in (({"1": 1, "2": 0, "3": 0}, []), ({"1": 1, "x": 1}, [1, 2]),
                           ({"1": 1, "2": 0, "3": 0, "x": 0, "y": 1}, [2])):  # fmt: skip
        notes = io.read_runs(log, outcomes=table).notes
        assert [int(note.rpartition(": ")[2]) for note in notes] == numbers


def test_high_values_may_be_failures(log, tmp_path, tables):
    table = pd.DataFrame({"run_id": [1, 2, 3], "failed": [1, 0.25, -1]})
    runs = io.read_runs(log, outcomes=table, outcome="not failed")
    assert [run.outcome for run in runs] == [0, 0.75, -1]
    assert any("not 'failed'" in note for note in runs.notes)
    path = write_table(tmp_path / "o.csv", pd.DataFrame({"run": list("ab"), "failed": [1, 0]}))
    options = ("--outcomes", str(path), "--outcome", "not failed")
    read = tables.read(steps(solved=None), *options)
    assert read.outcomes == [0, 1]
    assert "not 'failed'" in read.said


def test_outcomes_beside_a_table_of_steps(tmp_path, tables):
    other = pd.DataFrame({"id": ["a", "x"], "passed": ["y", "n"]})
    options = ("--outcomes", str(write_table(tmp_path / "o.csv", other)), "--map", "y=1,n=0")
    runs = tables.read(steps(), *options)  # the other table goes before
    assert (runs.ids, runs.outcomes) == (["a", "b"], [1, -1])
    assert runs.said.count("table of outcomes") == 2
    said = tables.refuse(steps(run=list("uuvv")), *options)
    for named in ("'u', 'u', 'v'", "'a', 'x'", "--id"):
        assert named in said
