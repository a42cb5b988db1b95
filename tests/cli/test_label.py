"""From runs without outcomes to a verdict, in commands."""

import json
import re

import numpy as np
import pandas as pd
import pytest

from trajscore.cli.main import main
from trajscore.datasets import make_trajectories


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Write a table with a judge's verdicts, and return the outcomes."""
    monkeypatch.chdir(tmp_path)
    runs = make_trajectories(400, sharpness=1.5, noise=0.5, base_rate=0.7, random_state=0)
    rng = np.random.default_rng(0)
    judge = np.where(rng.random(400) < 0.15, 1 - runs.target, runs.target)
    frame = runs.data.to_frame()
    frame.assign(grade=np.repeat(judge, runs.data.lengths)).to_csv("runs.csv", index=False)
    return dict(zip(map(str, runs.data.ids), runs.target, strict=True))


def run(capsys, *words):
    code = main(list(map(str, words)))
    out, err = capsys.readouterr()
    return code, " ".join(out.split()), err


def fill(outcomes, path="to_read.csv", rows=slice(None)):
    """Do what somebody who reads does."""
    table = pd.read_csv(path, dtype={"run": str})
    table.loc[table.index[rows], "outcome"] = [outcomes[name] for name in table["run"]][rows]
    table.to_csv(path, index=False)
    return table


LABEL = ("label", "runs.csv", "--judge", "grade", "--out", "to_read.csv")
REPORT = ("report", "runs.csv", "--judge", "grade", "--labels", "to_read.csv", "--resamples", "50")


def test_from_no_outcome_to_a_verdict(files, capsys):
    code, _, err = run(capsys, "report", "runs.csv")
    assert code == 2
    assert "trajscore label chooses runs to read" in err
    code, out, _ = run(capsys, *LABEL, "--n", 80)
    assert code == 0
    assert "wrote to_read.csv: 80 runs to read" in out
    assert out.endswith("trajscore report runs.csv --judge grade --labels to_read.csv")
    table = fill(files)
    assert list(table) == ["run", "outcome", "label_probability"]
    assert len(table) == 80
    code, out, _ = run(capsys, *REPORT)
    assert code == 0
    assert out.startswith("guessed run id")
    assert "Use value, recalibrated." in out or "Use value as it is." in out
    assert "80 of 400 runs are labelled" in out


def test_more_labels_go_into_the_same_file(files, capsys):
    run(capsys, *LABEL, "--n", 50)
    first = fill(files)
    code, out, _ = run(capsys, *LABEL, "--labels", "to_read.csv", "--n", 30)
    assert code == 0
    assert "30 runs to read" in out
    table = pd.read_csv("to_read.csv", dtype={"run": str})
    assert table["outcome"].notna().sum() == 50
    assert len(set(table["run"])) == 80
    assert set(first["run"]) < set(table["run"])
    assert (table["label_probability"][:50] != first["label_probability"]).any()
    fill(files)
    _, out, _ = run(capsys, *REPORT)
    assert "80 of 400 runs are labelled" in out


def test_what_is_not_read_yet_is_counted(files, capsys):
    run(capsys, *LABEL, "--n", 80)
    fill(files, rows=slice(0, 60))
    code, out, _ = run(capsys, *REPORT)
    assert code == 0
    assert "20 of the 80 runs to label have no outcome; the others are taken for a random" in out
    assert "60 of 400 runs are labelled" in out


def test_labels_alone_need_no_judge(files, capsys):
    code, _, _ = run(capsys, "label", "runs.csv", "--n", 80, "--out", "to_read.csv")
    assert code == 0
    fill(files)
    code, out, _ = run(capsys, "report", "runs.csv", "--labels", "to_read.csv", "--score", "value")
    assert code == 0
    assert "80 of 400 runs are labelled" in out
    assert "judge" not in out


def test_the_same_seed_chooses_the_same_runs(files, capsys):
    chosen = []
    for seed in (0, 0, 1):
        run(capsys, *LABEL, "--seed", seed)
        chosen.append(pd.read_csv("to_read.csv")["run"].tolist())
    assert chosen[0] == chosen[1]
    assert chosen[0] != chosen[2]


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ((*LABEL, "--page", "p.html"), "--page shows what was said in a log"),
        (("label", "runs.csv", "--judge", "grad", "--out", "x.csv"), "did you mean 'grade'"),
        (("report", "--judge", "grade"), "--judge needs a table or a log; name it"),
        ((*REPORT, "--outcome", "grade"), "--judge and --outcome exclude each other"),
        ((*LABEL[:-1], "nowhere/x.csv"), "--out: the folder nowhere does not exist"),
        ((*LABEL[:-1], "x.json"), "--out: x.json must end in .csv"),
        ((*LABEL, "--page", "to_read.csv"), "--page: to_read.csv must end in .html"),
        ((*LABEL[:-1], "runs.csv"), "--out: runs.csv holds the runs; name another file"),
        (REPORT, "--labels: no outcome is filled in in to_read.csv; write 1 or 0 in its column"),
        (REPORT[:4], "--judge needs hand labels: trajscore label runs.csv --judge grade --out"),
        ((*REPORT[:3], "grad", *REPORT[4:]), "--judge: no column named 'grad'; did you mean"),
        ((*REPORT[:3], "value", *REPORT[4:]), "if the last one counts, pass --judge value.-1"),
        ((*REPORT[:5], "runs.csv"), "--labels: run '0' has several rows in the table; give the"),
        (("report", "runs.csv", "--outcomes", "to_read.csv"), "give it as --labels to_read.csv"),
        (
            ("label", "runs.csv", "--outcome", "grade", "--out", "x.csv"),
            "--outcome is not used to choose runs to label; leave it out, or if outcomes are known",
        ),
    ],
)
def test_what_cannot_be_done_is_said(files, capsys, words, problem):
    run(capsys, *LABEL)
    code, _, err = run(capsys, *words)
    assert code == 2
    assert problem in err


def test_outcomes_that_are_filled_in_are_not_written_over(files, capsys):
    run(capsys, *LABEL, "--n", 20)
    table = fill(files)
    code, _, err = run(capsys, *LABEL, "--n", 20)
    assert code == 2
    assert "--out: to_read.csv already holds 20 outcomes; add --labels to_read.csv to keep" in err
    pd.testing.assert_frame_equal(pd.read_csv("to_read.csv", dtype={"run": str}), table)


def test_labels_without_chances_were_equally_likely(files, capsys):
    run(capsys, "label", "runs.csv", "--n", 80, "--out", "to_read.csv")
    fill(files).drop(columns="label_probability").to_csv("to_read.csv", index=False)
    words = ("runs.csv", "--labels", "to_read.csv", "--score", "value")
    _, out, _ = run(capsys, "report", *words, "--resamples", "50")
    assert "each run is taken to have been equally likely to be labelled" in out
    assert "80 of 400 runs are labelled" in out
    assert "counted as failures" not in out
    code, _, err = run(capsys, "label", *words, "--out", "more.csv")
    assert code == 2
    assert "80 outcomes, but no column label_probability" in err


def test_labels_of_other_runs_are_refused(files, capsys):
    pd.DataFrame({"run": ["0", "x"], "outcome": [1, 0]}).to_csv("to_read.csv", index=False)
    code, _, err = run(capsys, *REPORT)
    assert code == 2
    assert "--labels holds 1 run missing from the data, such as 'x'; give" in err
    pd.DataFrame({"run": ["x"], "outcome": [1]}).to_csv("to_read.csv", index=False)
    code, _, err = run(capsys, *REPORT)
    assert code == 2
    assert "--labels: none of its run ids ('x') are in the data" in err


def test_a_run_without_a_verdict_is_named(files, capsys):
    frame = pd.read_csv("runs.csv")
    frame.loc[frame["run"] == 7, "grade"] = np.nan
    frame.to_csv("runs.csv", index=False)
    code, _, err = run(capsys, *LABEL)
    assert code == 2
    assert "--judge: run '7' has no verdict" in err


def log_of(n=60):
    """Return a log of chats, half of which a judge calls good, with one that was cut off."""
    turns = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": 'Say "x", <b>'}]
    return [
        {"id": f"r{k}", "messages": turns, "grade": k % 2, "stop_reason": "completed"}
        for k in range(n)
    ]


def test_confidences_of_a_log_without_outcomes_are_judged(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    runs = log_of()
    for k, record in enumerate(runs):
        record["messages"] = [*record["messages"][:1]]
        record["messages"].append({"role": "assistant", "content": f"Confidence: {50 + k % 40}%"})
        del record["grade"]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(record) + "\n" for record in runs))
    _, out, _ = run(capsys, "label", "log.jsonl", "--n", 30, "--out", "to_read.csv")
    assert "verbal: in 100% of the agent's turns wrote" in out
    table = pd.read_csv("to_read.csv")
    table.assign(outcome=np.arange(30) % 2).to_csv("to_read.csv", index=False)
    code, out, _ = run(
        capsys, "report", "log.jsonl", "--labels", "to_read.csv", "--resamples", "50"
    )
    assert code == 0
    assert "verbal: in 100% of the agent's turns" in out
    assert "TRACER" not in out


def test_a_log_is_read_on_a_page(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(one) + "\n" for one in log_of()))
    words = ("label", "log.jsonl", "--judge", "grade", "--n", 30, "--out", "to_read.csv")
    code, out, err = run(capsys, *words, "--page", "to_read.html")
    assert (code, err) == (0, "")
    table = pd.read_csv("to_read.csv")
    assert table["text"].str.contains('assistant: Say "x", <b>').all() or (
        table["text"].str.contains('agent: Say "x", <b>').all()
    )
    page = (tmp_path / "to_read.html").read_text()
    assert len(re.findall("<article", page)) == 30
    assert "Say &#34;x&#34;, &lt;b&gt;" in page
    assert "<b>" not in page.partition("<body")[2].replace("<b></b>", "")
    assert "grade" not in page
    assert "read and label them there" in out
