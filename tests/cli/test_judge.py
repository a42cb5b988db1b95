"""The command that asks a judge, up to the report of its table."""

import json
import re
import signal
import subprocess
import sys
import time

import pandas as pd
import pytest

from known_endpoint import completion, endpoint
from trajscore.cli.main import main

pytest.importorskip("openai")
pytest.importorskip("pyarrow")


def answer(body):
    """Trust runs of an even number more, and the later the more."""
    text = body["messages"][0]["content"]
    number = int(text.partition("bag ")[2].partition("?")[0])
    up = -0.2 - 0.05 * (number % 5) + 0.01 * text.count("agent:")
    return completion("Yes", {"Yes": up, "No": -1.0} if number % 2 else {"Yes": -1.0, "No": up})


@pytest.fixture
def log(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = []
    for k in range(20):
        messages = [{"role": "user", "content": f"Where is bag {k}?"}]
        for t in range(2 + k % 3):
            turn = {"role": "assistant", "content": f"Look {t}.", "self_confidence": 0.5 + k / 100}
            messages += [turn, {"role": "user", "content": "No."}]
        cut = {"outcome": -1, "stop_reason": "max_steps"} if k > 17 else {"outcome": (k // 2) % 2}
        lines.append(json.dumps({"id": f"r{k}", "task": f"={k // 2}", "messages": messages} | cut))
    (tmp_path / "runs.jsonl").write_text("\n".join(lines))
    return tmp_path


def test_from_a_log_to_a_report(log, capsys):
    with endpoint(answer) as asked:
        words = ["judge", "runs.jsonl", "--model", "m", "--base-url", asked.url]
        words += ["--out", "judged.parquet"]
        assert main([*words, "--dry-run"]) == 0
        assert "20 runs, 59 steps: 59 requests, 0 from" in capsys.readouterr().out
        assert not asked.bodies
        assert [path.name for path in log.iterdir()] == ["runs.jsonl"]
        assert main(words) == 0
        out, err = capsys.readouterr()
        assert "59 requests made: 1,180 tokens asked, 59 answered" in out
        assert "trajscore report judged.parquet" in out
        assert err == ""
        assert len(asked.bodies) == 59
        again = ["judged.csv", "--cache", "judged.parquet.cache.sqlite", "--group", "run"]
        assert main([*words[:-1], *again]) == 0
        assert "0 requests, 59 from judged.parquet.cache.sqlite" in capsys.readouterr().out
        assert len(asked.bodies) == 59
    table = pd.read_parquet("judged.parquet")
    written = pd.read_csv("judged.csv")
    assert written["task"].str.startswith("'=").all()  # no formula to a spreadsheet
    pd.testing.assert_frame_equal(written.assign(task=table["task"]), table, check_dtype=False)
    columns = ["run", "step", "task", "stop_reason", "outcome", "self_confidence", "judge"]
    assert list(table.columns) == columns
    last = table.groupby("run", sort=False).last()
    assert last["outcome"].tolist() == [(k // 2) % 2 if k < 18 else -1 for k in range(20)]
    assert last["step"].tolist() == [2 + k % 3 for k in range(20)]
    assert table["self_confidence"].iloc[0] == 0.5
    assert table["judge"].between(0, 1).all()
    assert main(["report", "judged.parquet", "--resamples", "50", "--out", "report.json"]) == 0
    report = json.loads((log / "report.json").read_text())
    assert "judge" in json.dumps(report)
    assert "20 runs" in capsys.readouterr().out


def test_a_number_that_cannot_be_read_is_counted_on_the_screen(log, capsys):
    with endpoint(lambda body: completion("70%" if "bag 1?" not in str(body) else "high")) as asked:
        words = ["judge", "runs.jsonl", "--model", "m", "--base-url", asked.url, "--answer"]
        assert main([*words, "number", "--out", "judged.csv"]) == 0
        out = capsys.readouterr().out
        assert main([*words, "yes_no", "--out", "judged.csv"]) == 2
    err = capsys.readouterr().err
    with endpoint(lambda body: completion("high")) as asked:
        assert main([*words[:5], asked.url, "--answer", "number", "--out", "judged.csv"]) == 2
    assert "no answer of 'm' can be read, so judged.csv is not written" in capsys.readouterr().err
    assert re.search(r"3 of 59 answers.*run 'r1' \(row 1\), step 1 .*'high'", out)
    assert err.strip().endswith("pass --answer number to ask for a number")
    assert pd.read_csv("judged.csv")["judge"].isna().sum() == 3  # the table before is still there


def test_what_it_refuses(log, refuses):
    (log / "table.csv").write_text("run,step,p,outcome\n0,1,0.5,0\n1,1,0.6,1\n")
    plain = (log / "runs.jsonl").read_text().replace("self_confidence", "x")
    (log / "plain.jsonl").write_text(plain)
    cases = [
        ("plain.jsonl --out o.csv --dry-run --score TRACER", "--score: turns of users are steps"),
        ("table.csv --out o.csv", "table.csv is a table", "give a log"),
        ("runs.jsonl --out o.xlsx", "--out: o.xlsx must end in .parquet or .csv"),
        ("runs.jsonl --out none/o.csv", "--out: the folder none does not exist"),
        ("runs.jsonl --out o.csv --concurrency 0", "--concurrency must be a whole"),
        ("runs.jsonl --out o.csv --outcome x", "outcome"),
        ("runs.jsonl --out o.csv --base-url http://a:b@c", "--base-url must not"),
    ]
    refuses(cases, "judge --model m --base-url http://127.0.0.1:9/v1")


@pytest.mark.slow
def test_an_endpoint_that_is_not_there(log, capsys):
    words = ["runs.jsonl", "--model", "m", "--base-url", "http://127.0.0.1:9/v1", "--out", "o.csv"]
    assert main(["judge", *words]) == 2
    match = (
        r"127\.0\.0\.1:9/v1 cannot be reached \(.*refused\); start the server, or check --base-url"
    )
    assert re.search(match, capsys.readouterr().err)


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_stopped_command_goes_on_and_asks_no_answered_question_twice(log, capsys, how):
    answered = []

    def slowly(body):
        time.sleep(0.02)
        answered.append(body["messages"][0]["content"])
        return answer(body)

    with endpoint(slowly) as asked:
        words = ["judge", "runs.jsonl", "--model", "m", "--base-url", asked.url, "--out", "o.csv"]
        words += ["--concurrency", "2"]
        command = [sys.executable, "-m", "trajscore", *words]
        pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
        with subprocess.Popen(command, **pipes) as process:
            while len(answered) < 25:
                time.sleep(0.01)
            process.send_signal(how)
            err = process.communicate()[1].split("\n")
        if how == signal.SIGINT:
            assert process.returncode == 130
            assert "Traceback" not in "".join(err)
            assert err[-2].endswith("the same command goes on where it stopped")
        time.sleep(0.2)
        n_before = len(asked.bodies)
        assert main(words) == 0
    out = capsys.readouterr().out
    n_again = len(asked.bodies) - 59
    assert n_before < 59
    assert 0 <= n_again <= 2  # under way when it was killed, their answers lost
    assert f"{59 - n_before + n_again} requests made" in out
    assert len(set(answered)) == 59
