"""What a file holds is said before any work is done."""

import json

import numpy as np
import pandas as pd
import pytest

from trajscore.cli import describe as cli_describe
from trajscore.cli.main import main

TURN = {"role": "assistant", "content": "Confidence: 70%", "mood": "good"}


@pytest.fixture
def describe(tmp_path, capsys):
    """Describe some runs, a table or text."""

    def describe_one(data, *options, name="log.jsonl"):
        path = tmp_path / name
        if isinstance(data, pd.DataFrame):
            data.to_csv(path, index=False)
        else:
            path.write_text("".join(json.dumps(one) + "\n" for one in data))
        code = main(["describe", str(path), *options])
        out, err = capsys.readouterr()
        assert all(len(line) <= 80 for line in out.splitlines() if str(tmp_path) not in line)
        return code, out.replace("\n    ", " "), err

    return describe_one


def chats(**fields):
    call = {"id": "c", "function": {"name": "look", "arguments": "{}"}}
    return [
        {"id": k, "messages": [{"role": "user", "content": "Hi"}, {**TURN, "tool_calls": [call]}]}
        | {name: values[k] for name, values in fields.items()}
        for k in range(2)
    ]


def test_a_log(describe):
    code, out, _ = describe(chats(success=[1, 0], note="ab", stop_reason=["done", "max_turns"]))
    assert code == 0
    for said in (
        "a log in the format openai, 2 runs",
        "outcome: 1 success, 1 failure (from success)",
        "stop reasons: done 1 (complete), max_turns 1 (complete)",
        "turns: 2 of the agent (1 in each run), 2 of the user",
        "calls of tools: look 2",
        "confidences: verbal at 100% of turns",
        "other fields of runs: note",
        "other fields of turns: mood",
        "a report: would judge verbal",
    ):
        assert said in out


def test_what_a_report_would_refuse(describe):
    code, out, _ = describe(chats(verdict=["good", "bad"]))
    assert code == 0
    assert "outcome: 2 not observed\n" in out
    assert "would be refused: no run has an outcome (the runs have 'verdict': good 1, bad 1)" in out
    code, out, _ = describe(chats(verdict=["good", "bad"]), "--outcome", "verdict")
    assert code == 0
    assert "not observed) with --map good=1,bad=0" in out
    mapped = ["--outcome", "verdict", "--map", "good=1,bad=0"]
    _, out, _ = describe(chats(verdict=["good", "bad"]), *mapped)
    assert "outcome: 1 success, 1 failure (from verdict)" in out
    both = "would be refused: all 2 observed runs are successes; an evaluation needs both outcomes"
    code, out, _ = describe(chats(success=[1, 1]))
    assert both in out
    table = pd.DataFrame({"id": [1, 2], "step": 1, "p": [0.5, 0.6], "solved": 1})
    _, out, _ = describe(table, name="t.csv")
    assert both in out
    _, out, _ = describe(chats(score=[0.6, 0.9]), "--outcome", "score")
    assert "a report: would judge verbal" in out
    code, out, _ = describe([{"x": "a"}])
    assert code == 0
    assert "would be refused: no column has a usual name for the run id" in out
    code, out, _ = describe([{"x": [{"n": 1}]}])
    assert (code, "in no format that is known" in out) == (0, True)
    assert "the format is not known (the fields of the JSON are 'x'); if its 'x' are runs" in out
    assert "next:" not in out


def test_the_next_command(describe, tmp_path):
    log = tmp_path / "log.jsonl"
    _, out, _ = describe(chats(success=[1, 0]), "--id", "id")
    assert out.endswith(f"\nnext: trajscore report {log} --id id\n")
    _, out, _ = describe(chats(verdict=["good", "bad"]), "--outcome", "verdict")
    assert f"\nnext: trajscore report {log} --outcome verdict --map good=1,bad=0\n" in out
    _, out, _ = describe(chats(failed=[1, 0]), "--outcome=x", "--outcome", "failed", "--id", "id")
    assert f"\nnext: trajscore report {log} --id id --outcome 'not failed'\n" in out
    _, out, _ = describe(chats(verdict=["blue", "bad"]), "--outcome", "verdict")
    assert "next:" not in out  # what blue means only a person knows
    steps = [{"author": "bot", "say": "Step one of the plan."}]
    _, out, _ = describe([{"trace": {"nodes": steps}}])
    assert "--field steps=trace.nodes,text=say,actor=author" in out
    assert "next:" not in out  # it may be something else that they say
    _, out, _ = describe(chats(success=[1, 0]), "--json")
    assert json.loads(out)["next"] == f"trajscore report {log}"


def test_facts_as_json(describe):
    _, out, _ = describe(chats(success=[1, 0]), "--json")
    facts = json.loads(out)
    assert facts["n_runs"] == 2
    assert facts["outcome"] == {"from": ["success"], "successes": 1, "failures": 1}
    assert facts["confidences"] == {"verbal": 1.0}


def test_runs_that_are_left_out(describe):
    _, out, _ = describe([*chats(success=[1, 0]), {"id": "x", "messages": "no"}])
    assert "left out: 1 run: its messages are str, not a list" in out


def test_a_table(describe):
    runs = np.repeat(np.arange(4), 2)
    table = pd.DataFrame(
        {"run": runs, "step": [1, 2] * 4, "p": 0.5 + runs / 10, "solved": runs % 2, "why": "done"}
    )
    table["verbal"], table["task"] = 70, runs // 2
    _, out, _ = describe(table, "--stop-reason", "why", name="t.csv")
    for said in (
        "a table, 8 rows, 4 runs",
        "columns: id: run (guessed); step: step (guessed); outcome: solved (guessed)",
        "stop reason: why; predictors: p (guessed); clusters: task",
        "outcome: 2 successes, 2 failures (from solved)",
        "stop reasons: done 4 (complete)",
        "steps: 8 (2 in each run)",
        "tasks: 2",
        "other columns: verbal",
        "add --scale verbal=100",
        "a report: would judge p",
    ):
        assert said in out


def test_a_table_that_would_be_refused_or_lacks_values(describe):
    runs = np.repeat(np.arange(4), 2)
    table = pd.DataFrame({"run": runs, "step": [1, 2] * 4, "solved": runs % 2})
    _, out, _ = describe(table.assign(judge=70 + runs), name="t.csv")
    assert "t.csv: a table, 8 rows\n" in out
    assert "if 100 means certainty in judge, pass --scale judge=100" in " ".join(out.split())
    mixed = [0.1, 0.2, "high", 0.3, 0.4, 0.5, 0.6, 0.7]
    _, out, _ = describe(table.assign(seen=mixed), name="t.csv")
    assert "column 'seen' has 'high' in row 2, but fractions elsewhere; correct it" in out
    _, out, _ = describe(table.assign(judge=np.nan), "--score", "judge", name="t.csv")
    assert "would be refused: no predictor has enough runs without missing values" in out
    lacking = [np.nan, 0.2, 0.3, np.nan, 0.4, 0.5, 0.6, 0.7]
    _, out, _ = describe(table.assign(judge=lacking), name="t.csv")
    assert "left out: 2 runs: a value of judge is missing" in out


def test_a_table_without_rows(describe):
    code, out, _ = describe(pd.DataFrame(columns=["run", "step", "p", "solved"]), name="t.csv")
    assert code == 0
    assert (
        "t.csv: a table that has column names and no rows\ncolumns: run, step, p, solved\n" in out
    )
    assert "would be refused: the table has no rows; give at least one step of one run" in out


def test_what_cannot_be_read_at_all(describe):
    code, _, err = describe(pd.DataFrame(), name="t.csv")
    assert (code, err.count("\n")) == (2, 1)


def steps_of_runs():
    rows = [(f"r{k}", t, k / 9, k % 2) for k in range(8) for t in (1, 2)]
    return pd.DataFrame(rows, columns=["run_id", "step", "confidence", "success"])


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "data").mkdir()
    return tmp_path / "data"


def test_a_folder_of_parquet_files(folder, capsys):
    pytest.importorskip("pyarrow")
    frame = steps_of_runs()
    frame[:8].to_parquet(folder / "a.parquet")
    frame[8:].to_parquet(folder / "b.parquet")
    assert main(["describe", str(folder)]) == 0
    out = capsys.readouterr().out.replace("\n    ", " ")
    assert "a table, 16 rows, 8 runs" in out
    assert f"next: trajscore report {folder}\n" in out


def test_tables_beside_logs_are_said(folder, capsys):
    steps_of_runs().to_csv(folder / "a.csv")
    (folder / "log.json").write_text(json.dumps(chats(success=[1, 0])))
    assert main(["describe", str(folder)]) == 0
    assert "1 table beside the logs not read" in capsys.readouterr().out.replace("\n    ", " ")


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("a.csv", "tables are read one at a time, give {folder}/a.csv"),
        ("in/b.json", "its folder in has, give {folder}/in"),
        ("a.txt", " file\n"),
        ("a.md", "for f in {folder}/a.md; do jq -R -s -c --arg id "),
    ],
)
def test_a_folder_without_logs(folder, capsys, name, hint):
    (folder / "in").mkdir()
    (folder / name).write_text("x")
    assert main(["describe", str(folder)]) == 2
    assert hint.format(folder=folder) in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "hint"), [("a.zip", "unpack it"), ("a.xlsx", "as CSV"), ("a.pkl", "to_parquet")]
)
def test_files_that_are_not_read(folder, capsys, name, hint):
    (folder / name).write_bytes(b"x")
    assert main(["describe", str(folder / name)]) == 2
    assert hint in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "proposed", "after"),
    [
        (["log"], None, None),
        (["log"], [], "report log"),
        (["log", "--id", "run"], [], "report log --id run"),
        (["log"], ["--scale", "x=100"], "report log --scale x=100"),
        # what was asked for already did not help
        (["log", "--scale", "x=10"], ["--scale", "x=100"], None),
        (["log", "--id", "x=100"], ["--scale", "x=100"], "report log --id x=100 --scale x=100"),
        (["log", "--map", "a=1"], ["--map", "a=1,b=0"], "report log --map a=1,b=0"),
        (["log", "--outcome=x", "--id", "a"], ["--outcome", "y"], "report log --id a --outcome y"),
    ],
)  # fmt: skip
def test_a_command_is_proposed_that_may_help(monkeypatch, capsys, words, proposed, after):
    class Made:
        def __init__(self):
            self.proposed = proposed

        def as_dict(self):
            return {"n_runs": 2, "proposed": proposed}

        def __str__(self):
            return "2 runs"

    monkeypatch.setattr(cli_describe, "describe", lambda *_, **__: Made())
    assert main(["describe", *words]) == 0
    said = capsys.readouterr().out
    assert said == ("2 runs\n" if after is None else f"2 runs\nnext: trajscore {after}\n")
    assert main(["describe", *words, "--json"]) == 0
    facts = {"n_runs": 2} if after is None else {"n_runs": 2, "next": f"trajscore {after}"}
    assert json.loads(capsys.readouterr().out) == facts
