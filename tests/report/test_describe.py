"""What a file holds: each fact of a log and of a table, and what a report would do with it."""

import json

import numpy as np
import pandas as pd
import pytest

from trajscore.io.fields import Fields
from trajscore.report._describe import (
    Description,
    _common,
    _few,
    _how_many,
    _outcome,
    _outcome_problem,
    _spread,
    _steps,
    describe,
)

ASK = {"role": "user", "content": "Hi"}


def turn(confidence=70, *tools):
    calls = [{"id": str(k), "function": {"name": name}} for k, name in enumerate(tools)]
    text = "" if confidence is None else f"Confidence: {confidence}%"
    return {"role": "assistant", "content": text, "tool_calls": calls}


@pytest.fixture
def log(tmp_path):
    """Describe chats, each a list of messages with other fields."""

    def describe_log(*runs, **options):
        path = tmp_path / "log.jsonl"
        rows = [
            {"id": k, "messages": messages} | fields for k, (messages, fields) in enumerate(runs)
        ]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return describe(path, **options)

    return describe_log


@pytest.fixture
def table(tmp_path):
    """Describe a table of columns."""

    def describe_table(columns, **options):
        path = tmp_path / "t.csv"
        pd.DataFrame(columns).to_csv(path, index=False)
        return describe(path, **options)

    return describe_table


# ------------------------------------------------------------------ logs


def test_a_log_is_described_in_the_format_that_is_named(log):
    told = ([ASK, turn(70)], {"id": "a"})
    assert log(told, format="jsonl").kind == "a log in the format jsonl"
    assert log(told).kind == "a log in the format openai"
    assert log(told, fields=Fields(steps="messages")).kind == "a log in the format jsonl"


def test_facts_of_a_log(log):
    found = log(
        ([ASK, turn(70, "f", "g")], {"success": True, "task_id": "a", "note": 1}),
        ([turn(60, "f"), ASK, turn(80), turn(90)], {"success": False, "task_id": "b"}),
        ([turn()], {"success": 0.5, "task_id": "a", "stop_reason": "done"}),
        ([turn()], {"task_id": "a", "stop_reason": "max_steps", "note": 2}),
    )
    assert found.kind == "a log in the format openai"
    assert (found.n_runs, found.n_rows, found.tasks) == (4, None, 2)
    assert found.outcome == {
        "from": ["success"], "successes": 1, "failures": 1, "not observed": 1, "graded": 1,
    }  # fmt: skip
    assert found.stops == {
        "done": {"runs": 1, "kind": "complete"},
        "max_steps": {"runs": 1, "kind": "administrative"},
    }
    assert found.steps == {"agent": 6, "user": 2, "least": 1, "median": 1.0, "most": 3}
    assert found.tools == {"f": 2, "g": 1}
    assert found.confidences == {"verbal": 1.0}
    assert found.fields["runs"] == ["note"]
    assert found.report == "would judge verbal"
    assert found.left_out == {}


@pytest.mark.parametrize(
    ("tasks", "n_tasks"), [("aab", 2), ("abc", 3), ("aaa", None), ([None, "a", "b"], None)]
)
def test_tasks_are_told_where_all_runs_have_one_and_there_are_several(log, tasks, n_tasks):
    runs = [([turn()], {"success": k % 2, "task_id": task}) for k, task in enumerate(tasks)]
    assert log(*runs).tasks == n_tasks


def test_without_a_confidence_the_risk_of_tracer_would_be_judged(log):
    no, yes = [turn(None, "f")], [turn(), turn()]
    runs = [(no, {"success": k % 2}) for k in range(4)]
    assert log(*runs).report == (
        "would judge the log by minus TRACER's risk, as it has no confidence"
    )
    one = log(*runs, (yes, {"success": 1}))
    assert one.report.endswith("as too few runs have a confidence at every turn (verbal)")
    assert one.confidences == {"verbal": pytest.approx(2 / 6)}


def test_runs_of_one_outcome_would_be_refused(log):
    one = log(([turn()], {"success": True}), ([turn()], {"success": True}))
    assert one.report.startswith("would be refused: all 2 observed runs are successes")
    none = log(([turn()], {"note": 1}), ([turn()], {"note": 2}))
    assert none.report.startswith("would be refused: no run has an outcome (the runs have 'note'")
    assert none.outcome == {"from": [], "not observed": 2}


def test_what_is_wrong_is_said_in_the_words_of_options(log):
    runs = [([turn()], {"verdict": word}) for word in ("good", "bad")]
    found = log(*runs, fields=Fields(outcome="verdict"), options={"outcome_map": "--map"})
    assert found.report.startswith("would be refused: ")
    assert "--map good=1,bad=0" in found.report
    assert found.n_runs == 2
    plain = log(*runs, fields=Fields(outcome="verdict"))
    assert "outcome_map={'good': 1, 'bad': 0}" in plain.report


def test_runs_that_share_an_id_would_be_refused(log):
    shared = {"id": "x", "success": 1}
    found = log(([turn()], shared), ([turn()], shared | {"success": 0}))
    assert "would be refused: 2 runs have the id 'x'" in found.report


def test_runs_that_are_left_out_are_counted_by_reason(log):
    crash, fault = {"stop_reason": "crash"}, {"stop_reason": "user_error"}
    found = log(
        ([turn()], {"success": 1}), ([turn()], {"success": 0}), ([turn()], crash), ("x", {}),
        ([turn()], fault), ([turn()], fault),
    )  # fmt: skip
    assert found.left_out == {
        "user_error": 2,
        "its messages are str, not a list": 1,
        "no outcome; stopped by crash, not by a budget": 1,
    }
    assert found.n_runs == 5  # those that could be read


def test_only_runs_that_are_left_out(log):
    found = log(([turn()], {"stop_reason": "user_error"}))
    assert found.report.startswith("would be refused: 1 of 1 run is excluded")
    assert (found.steps, found.outcome) == ({}, {"from": []})


# ------------------------------------------------------------------ tables


def columns(**more):
    runs = np.repeat(np.arange(4), [1, 2, 3, 2])
    steps = np.concatenate([np.arange(1, n + 1) for n in (1, 2, 3, 2)])
    return {"run": runs, "step": steps, "p": 0.1 + 0.1 * runs, "solved": runs % 2} | more


def test_facts_of_a_table(table):
    stops = np.array(["done", "done", "max", "crash"])[columns()["run"]]
    found = table(columns(why=stops, task=columns()["run"] // 2), fields=Fields(stop_reason="why"))
    assert (found.kind, found.n_rows, found.n_runs, found.tasks) == ("a table", 8, 4, 2)
    assert found.columns == {
        "id": "run (guessed)", "step": "step (guessed)", "outcome": "solved (guessed)",
        "stop reason": "why", "predictors": "p (guessed)", "clusters": "task",
    }  # fmt: skip
    assert found.outcome == {"from": ["solved"], "successes": 2, "failures": 2}
    assert found.steps == {"agent": 8, "least": 1, "median": 2.0, "most": 3}
    assert {reason: stop["runs"] for reason, stop in found.stops.items()} == {
        "done": 2, "max": 1, "crash": 1,
    }  # fmt: skip
    assert found.report == "would judge p"
    assert (found.fields, found.left_out) == ({}, {})


def test_columns_that_are_not_taken(table):
    found = table(columns(note=list("abcdefgh")), fields=Fields(id="run", scores=("p",)))
    assert found.fields == {"the table": ["note"]}
    assert found.columns["id"] == "run"
    assert found.columns["predictors"] == "p"
    assert "clusters" not in found.columns


def test_runs_without_some_values(table):
    p, q = columns()["p"].copy(), columns()["p"].copy()
    p[0], q[1:] = np.nan, np.nan
    found = table(columns(p=p, q=q), fields=Fields(scores=("p", "q")))
    assert found.left_out == {"a value of p is missing": 1, "a value of q is missing": 3}
    assert found.report == "would judge p"
    p[:] = np.nan
    none = table(columns(p=p), fields=Fields(scores=("p",)))
    assert none.report == "would be refused: no predictor has enough runs without missing values"


def test_runs_that_no_budget_stopped(table):
    solved = np.where(columns()["run"] == 3, -1, columns()["solved"])
    why = np.where(columns()["run"] == 3, "crash", "done")
    found = table(columns(solved=solved, stop_reason=why))
    assert found.left_out == {"no outcome; stopped by crash, not by a budget": 1}
    assert found.outcome["not observed"] == 1


def test_a_table_that_would_be_refused(table):
    found = table({"a": [1, 2], "b": [1, 2]})
    assert found.report.startswith("would be refused: ")
    assert (found.n_rows, found.n_runs) == (2, None)
    assert found.fields == {"the table": ["a", "b"]}
    same = table(columns(solved=1))
    assert same.report.startswith("would be refused: all 4 observed runs are successes")


# ------------------------------------------------------------------ sentences


def test_lines_that_say_something():
    found = Description("a.csv", "a table", n_rows=1, n_runs=2, report="would judge p")
    assert str(found) == "a.csv: a table, 1 row, 2 runs\na report: would judge p"
    assert found.as_dict() == {
        "file": "a.csv", "kind": "a table", "n_rows": 1, "n_runs": 2, "report": "would judge p",
    }  # fmt: skip
    full = Description(
        "a", "a log", tasks=2, tools={"": 1, "f": 2}, confidences={"c": 0.256},
        stops={"x": {"runs": 3, "kind": "complete"}}, left_out={"why": 1, "other": 2},
        not_used=["n"], fields={"runs": ["r"]}, columns={"id": "run", "step": "t"},
        steps={"agent": 1, "user": 0, "least": 1, "median": 1.5, "most": 1},
    )  # fmt: skip
    assert str(full).splitlines() == [
        "a: a log",
        "columns: id: run; step: t",
        "stop reasons: x 3 (complete)",
        "turns: 1 of the agent (1 in each run)",
        "calls of tools: without a name 1, f 2",
        "tasks: 2, whose runs a report takes together",
        "confidences: c at 26% of turns",
        "other fields of runs: r",
        "note: n",
        "left out: 1 run: why",
        "left out: 2 runs: other",
    ]


def test_lines_are_at_most_80_characters_wide():
    lines = str(Description("a", "b", not_used=["word " * 40])).splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[1].startswith("note: word")
    assert lines[2].startswith("    word")


def test_numbers_in_words():
    names = list("abcdefghijklm")
    assert _few(names[:12]) == "a, b, c, d, e, f, g, h, i, j, k, l"
    assert _few(names) == "a, b, c, d, e, f, g, h, i, j, k, l and 1 more"
    assert _common([*names, "m"]) == {"m": 2} | dict.fromkeys(names[:11], 1)
    assert _how_many([1, 0, -1, 0.5, 1]) == {
        "successes": 2, "failures": 1, "not observed": 1, "graded": 1,
    }  # fmt: skip
    assert _spread([4, 1, 2, 2]) == {"least": 1, "median": 2.0, "most": 4}
    assert _outcome({}) == _steps({}) == ""
    assert _outcome({"from": [], "failures": 2}) == "2 failures"
    assert _outcome({"from": ["a", "b"]}) == "none (from a, b)"
    steps = {"agent": 3, "user": 2, "least": 1, "median": 1.5, "most": 2}
    assert _steps(steps) == "3 of the agent (1 to 2 a run, 1.5 at the median), 2 of the user"
    del steps["user"]
    assert _steps(steps) == "3 (1 to 2 a run, 1.5 at the median)"


ELSEWHERE = "; if another field holds the outcome, name it with {argument:outcome}, or give a table"


@pytest.mark.parametrize(
    ("y", "problem", "may_be_elsewhere"),
    [
        ([1, 0], "", False),
        ([1], "evaluation needs at least 2 runs, got 1", False),
        ([], "evaluation needs at least 2 runs, got 0", False),
        ([-1, -1], "none of the 2 runs has an observed outcome", False),
        ([1, 1], "all 2 observed runs are successes; an evaluation needs both outcomes", True),
        ([0, -1], "the only observed run is a failure, and 1 run without an outcome", True),
    ],
)
def test_where_outcomes_may_be(y, problem, may_be_elsewhere):
    said = _outcome_problem(np.array(y))
    assert said.startswith(problem)
    assert (ELSEWHERE in said) is may_be_elsewhere
    assert bool(said) is bool(problem)
