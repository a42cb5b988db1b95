"""``trajscore report``: a table in; what was guessed, what came out, what is written.

STORE=1 stores what is said now of the bundled chess data.
"""

import inspect
import json
import os
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from known_scores import FAMILIES, OWN, as_text
from trajscore import TrajectoryArray, evaluate, metrics
from trajscore.cli.main import main
from trajscore.datasets import make_trajectories
from trajscore.report import EvaluationOptions
from trajscore.streaming import batches

STORED = Path(__file__).parent / "chess.txt"
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


@pytest.fixture
def frame(tmp_path, monkeypatch):
    """A table of 60 runs, also as runs.csv in this folder."""
    monkeypatch.chdir(tmp_path)
    X, y = make_trajectories(60, lengths=(1, 8), random_state=0, return_X_y=True)
    frame = X.to_frame(id="run_id", step="step", value="confidence")
    frame["solved"] = np.repeat(y, X.lengths)
    frame["noise"] = np.random.default_rng(0).random(len(frame))
    frame.drop(columns="noise").to_csv("runs.csv", index=False)
    return frame


@pytest.fixture
def report(capsys):
    """Run the command on a table or a path; return its code and what it says, as one line."""

    def run(table=None, words="", *, verbose=True):
        if isinstance(table, pd.DataFrame):
            table.to_csv("t.csv", index=False)
            table = "t.csv"
        files = [] if table is None else [str(table)]
        options = ["--verbose"] * verbose + ["--resamples", "10", "--jobs", "1"]
        options += ["--calibrator", "none"] * ("--calibrator" not in words)
        code = main(["report", *files, *options, *words.split()])
        out, err = capsys.readouterr()
        return code, " ".join(out.split()), err

    return run


def test_what_is_written_goes_by_the_ending(frame, report):
    for ending, start in (("html", "<!DOCTYPE html>"), ("json", '{\n "format"'), ("md", "# ")):
        code, out, err = report("runs.csv", f"--out r.{ending}")
        assert (code, err) == (0, "")
        assert f"wrote r.{ending}" in out
        assert Path(f"r.{ending}").read_text().startswith(start)
    assert "--out report.html" in report("runs.csv", "--outcome solved", verbose=False)[1]
    assert "--out report.html" not in report("runs.csv", "--out r.md", verbose=False)[1]
    source = json.loads(Path("r.json").read_text())["source"]
    assert source["name"] == "runs.csv"
    assert source["command"].startswith("trajscore report runs.csv ")
    assert "'run_id'" in source["guesses"]


# ------------------------------------------------------------------ options of what is computed


def test_options_are_those_of_evaluate(frame, report):
    names = {"id": "run_id", "step": "step", "value": "confidence", "outcome": "solved"}
    X, y = TrajectoryArray.from_frame(frame, **names)
    for words, options, end in [
        ("", {}, None),
        ("--weights uniform --phi last --calibrator isotonic", {"weights": "uniform"}, None),
        ("--horizon 9 --end known", {"horizon": 9}, True),
        ("--weights linear_front --horizon own --end unknown", OWN, False),
        *((f"--family {as_text(score)}", {"score": score}, None) for score in FAMILIES),
    ]:
        assert report("runs.csv", f"{words} --out r.json --score confidence")[0] == 0
        found = json.loads(Path("r.json").read_text())
        values = found["predictors"]["confidence"]["forms"]["as_given"]["metrics"]
        name = f"TPS {as_text(options.get('score', 'log'))}"
        assert values[name]["value"] == pytest.approx(metrics.tps_score(y, X, **options)), words
        assert found["options"]["knows_end"]["confidence"] is end, words
        assert ("recalibrated" in found["predictors"]["confidence"]["forms"]) == ("iso" in words)


@pytest.mark.filterwarnings("ignore:horizon=4 leaves")
def test_steps_beyond_a_horizon_are_said(frame, report):
    lengths = frame.groupby("run_id").size()
    _, out, _ = report("runs.csv", "--horizon 4")
    assert f"Not scored: {np.maximum(lengths - 4, 0).sum()} steps beyond --horizon 4" in out


def test_clusters_and_groups(frame, report):
    frame["task_id"] = frame["run_id"] // 3
    frame["model"] = np.where(frame["run_id"] % 2, "small", "large")
    _, out, _ = report(frame, "--by model --out r.json")
    assert "20 clusters of runs by 'task_id'" in out
    assert "by cluster of runs" in out
    groups = json.loads(Path("r.json").read_text())["by"]
    assert {row["group"] for row in groups} == {"small", "large"}
    _, out, _ = report(frame, "--group run_id")
    assert "60 clusters of runs by 'run_id'" in out
    for no_cluster in (1, frame["step"]):
        code, out, _ = report(frame.drop(columns="task_id").assign(task=no_cluster))
        assert code == 0
        assert "clusters" not in out
    assert "did you mean 'model'" in report(frame, "--by modle")[2]


def test_what_gives_the_outcome_away_is_no_guess(frame, report):
    last = ~frame["run_id"].duplicated(keep="last")
    frame["forecast"] = frame["noise"].mask(last, 0.1 + 0.5 * frame["solved"])
    _, out, _ = report(frame)
    assert "scores: column 'confidence'" in out
    assert "Left out: column 'forecast'" in out
    _, out, _ = report(frame, "--score forecast")
    assert "note: forecast: separates successes from failures" in out
    code, _, err = report(frame.drop(columns="confidence"))
    assert code == 2
    assert "'forecast'" in err


@pytest.mark.filterwarnings("default")
def test_monitoring(frame, report, refuses):
    code, out, _ = report("runs.csv", "--monitor --known-share 0.5 --splits 1")
    assert code == 0
    assert "Stopping failing runs early" in out
    cases = [
        ("--splits 2", "--monitor"),
        ("--monitor --known-share 2", "--known-share must"),
        ("--monitor --splits 0", "--splits must"),
    ]
    refuses(cases, "report runs.csv")


def test_a_folder_of_parquet_files_is_judged_in_batches(frame, capsys):
    frame = frame.assign(failed=1 - frame["solved"], model="m").drop(columns="solved")
    named = ["--outcome", "not failed", "--by", "model", "--calibrator", "none"]
    Path("steps").mkdir()
    for k, rows in enumerate((slice(0, 100), slice(100, None))):
        frame.iloc[rows].to_parquet(f"steps/{k}.parquet")
    assert main(["report", "steps", "--resamples", "10", "--out", "r.json", *named]) == 0
    out = capsys.readouterr().out
    assert "run id: column 'run_id'" in out
    assert "not 'failed'" in out
    names = {"id": "run_id", "step": "step", "value": "confidence", "outcome": "not failed"}
    X, y = TrajectoryArray.from_frame(frame, **names)
    (predictor,) = json.loads(Path("r.json").read_text())["predictors"].values()
    value = predictor["forms"]["as_given"]["metrics"]["TPS log"]["value"]
    assert value == pytest.approx(metrics.tps_score(y, X))
    for words in ("--risk noise", "--wide p_", "--map yes=1", "--id step --id run_id", "--by x"):
        assert main(["report", "steps", *words.split(), "--outcome", "not failed"]) == 2
        assert words.split()[0] in capsys.readouterr().err
    leaky = frame.assign(judge=1 - frame["failed"], role="assistant", task=frame["run_id"] // 2)
    unseen = leaky["task"] < 5
    leaky = leaky.assign(end_reason=np.where(unseen, "crash", "done"), chance=leaky["noise"])
    leaky["failed"] = leaky["failed"].mask(unseen)
    for k, rows in enumerate((slice(0, 100), slice(100, None))):
        leaky.iloc[rows].to_parquet(f"steps/{k}.parquet")
    assert main(["report", "steps", "--resamples", "10", "--outcome", "not failed"]) == 0
    out = capsys.readouterr().out
    assert "Left out: column 'judge' separates successes from failures" in out
    assert "clusters of runs by 'task'" in out
    assert "stop reason: column 'end_reason'; scores: column 'confidence'" in out
    assert "2 columns not used (noise, chance)" in out
    leaky.assign(role=["user", "assistant"] * (len(leaky) // 2)).to_parquet("steps/0.parquet")
    for words, said in (([], "not all rows are the agent's"), (["--step", "rows"], "--step")):
        assert main(["report", "steps", "--outcome", "not failed", *words]) == 2
        assert said in capsys.readouterr().err
    talk = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
    log = [{"id": k, "success": k % 2, "messages": talk} for k in range(20)]
    Path("steps/log.json").write_text(json.dumps(log))  # beside which a judge writes its table
    assert main(["report", "steps", "--resamples", "10"]) == 0
    assert "the log has no confidence" in capsys.readouterr().out


def test_rows_of_a_run_that_lie_apart_are_put_together(frame, capsys, monkeypatch):
    monkeypatch.setattr(batches, "BATCH_ROWS", 50)
    Path("steps").mkdir()
    frame.sort_values("step").to_parquet("steps/0.parquet")
    assert main(["report", "steps", "--resamples", "10", "--calibrator", "none"]) == 0
    assert "lie apart: putting them together" in capsys.readouterr().out


# ------------------------------------------------------------------ what cannot be


def test_tables_that_cannot_be_judged(frame, report):
    for table, words, named in [
        (frame, "--score confidnce", "'confidnce'; did you mean 'confidence'"),
        (frame.drop(columns="solved"), "", "--outcome"),
        (frame.assign(solved=1), "", "every observed outcome (60) is 1"),
        (pd.concat([frame, frame]), "", "more than once"),
        (frame.assign(confidence=np.nan), "--score confidence", "a value at every step"),
        (frame.assign(confidence="high"), "--score confidence", "'high' in column 'confidence'"),
        (frame.iloc[:0], "", "no rows"),
        (frame, "--out /nonexistent/r.html", "--out: the folder /nonexistent"),
        (frame, "--out .", "--out: . is a folder"),
        (frame, "--out r.pdf", ".html or .json or .md"),
        (frame, "--resamples 0", "--resamples must"),
        (frame, "--weights linear_front", "--horizon own"),
        (frame, "--embedder char", "--embedder is for logs"),
        (frame.assign(solved="", stop_reason="parse_error"), "", "60 runs (no outcome; stopped"),
    ]:
        code, out, err = report(table, words)
        assert code == 2, words
        assert named in err, words
        assert err.startswith("trajscore: ")
        assert err.count("\n") == 1
        if words.startswith("--out"):
            assert out == ""  # before the work


def test_one_sentence_names_all_that_is_to_be_said(frame, report, capsys):
    words = frame["solved"].map({1: "all passed", 0: "failed"})
    words = words.mask(frame["run_id"] == 0, "Passed")
    table = frame.drop(columns="solved").rename(columns={"run_id": "attempt"})
    code, _, err = report(table.assign(verdict=words, agent="gpt"))
    assert code == 2
    for named in ("--id", "--outcome", "attempt", "verdict"):
        assert named in err
    named = ["--id", "attempt", "--outcome", "verdict"]
    meanings = ["--map", "Passed=1,all passed=1,failed=0"]
    assert main(["report", "t.csv", "--resamples", "10", *named, *meanings]) == 0
    capsys.readouterr()


def test_a_confidence_is_one_field(capsys):
    with pytest.raises(SystemExit):
        main(["report", "a.jsonl", "--confidence", "sure", "--confidence", "judge"])
    assert "--confidence: it is given twice" in capsys.readouterr().err


def test_values_that_an_option_does_not_take(capsys):
    for option, named, *values in [
        ("--jobs", "'two'", "two"), ("--resamples", "whole number", "1.5"),
        ("--first-step", "whole number", "one"), ("--known-share", "number", "half"),
        ("--family", "a > 0", "beta(0,0)"), ("--family", "'", "beta(2)", "logg"),
        ("--horizon", "number of steps", "0", "its own"), ("--end", "'yes'", "yes"),
        ("--weights", "'early_front'", "early_front"),
        ("--scale", "NAME=TOP", "verbal", "=100", "verbal=0", "verbal=x", "verbal=inf"),
        ("--stop", "REASON=KIND", "timeout", "=administrative"),
        ("--stop", "administrative", "a=complete,b=late"), ("--max-size", "4GB", "4PB", "inf"),
        ("--no-such-option", "--no-such-option", "1"),
    ]:  # fmt: skip
        for value in values:
            with pytest.raises(SystemExit) as stop:
                main(["report", option, value])
            err = capsys.readouterr().err
            assert stop.value.code == 2
            assert named in err, (option, value)
            assert option in err
            assert err.count("\n") == 1


@pytest.mark.parametrize("command", ["report", "check", "fit", "forecast", "watch", "judge"])
def test_the_help_fits_one_screen_and_names_how_to_see_the_rest(command, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    said = {}
    for option in ("--help", "--help-all"):
        with pytest.raises(SystemExit):
            main([command, option])
        said[option] = capsys.readouterr().out
    assert said["--help"].count("\n") <= 40
    assert "--max-size" not in said["--help"]
    assert "--max-size BYTES" in said["--help-all"]


def test_the_help_has_the_defaults_of_evaluate(capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["trajscore", "report", "--help-all"])
    with pytest.raises(SystemExit):
        main()
    said = " ".join(capsys.readouterr().out.split())
    both = inspect.signature(evaluate).parameters | inspect.signature(EvaluationOptions).parameters
    defaults = {name: one.default for name, one in both.items()}
    for name in ("weights", "phi", "calibrator", "censored", "missing", "n_resamples"):
        assert f"({defaults[name]})" in said
    assert "examples: trajscore report runs.csv" in said


def test_the_report_of_the_chess_data(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    assert main(["report", "--resamples", "50"]) == 0
    said = capsys.readouterr().out
    if "STORE" in os.environ:
        STORED.write_text(said)
    stored = STORED.read_text()
    assert NUMBER.sub("#", said) == NUMBER.sub("#", stored)
    for now, was in zip(NUMBER.findall(said), NUMBER.findall(stored), strict=True):
        digits = len(was.partition(".")[2])  # of which a release of SciPy may round the last
        nearly = 1.01 * 10.0**-digits if digits else 0
        assert float(now) == pytest.approx(float(was), rel=0, abs=nearly)
