"""`trajscore report` on tables and on logs of runs: what is found in them, and what is said."""

import json
import re

import numpy as np
import pandas as pd
import pytest

from trajscore.cli.main import main


@pytest.fixture
def run(capsys):
    """Run the command; return its code, and its output and errors in one line each."""

    def report(*arguments):
        usual = ["--verbose", "--resamples", "10", "--family", "log", "--jobs", "1"]
        code = main(["report", *map(str, arguments), *usual])
        out, err = (" ".join(text.split()) for text in capsys.readouterr())
        return code, out, err

    return report


def write_log(folder, words="It is there", n=24, usage=None, **others):
    """A log of a user and an agent, whose turns say `words`."""
    rng = np.random.default_rng(0)
    runs = []
    for k in range(n):
        turns = []
        for _ in range(int(rng.integers(1, 5))):
            said = {"role": "assistant", "content": words.format(p=rng.random())} | (usage or {})
            turns += [{"role": "user", "content": f"Where is bag {k}?"}, said]
        runs.append(
            {"id": f"s{k:02d}", "task_id": f"t{k // 2}", "messages": turns,
             "termination_reason": "max_steps" if k == 5 else "user_stop",
             "reward_info": {"reward": float(k % 3 == 0)}}
        )  # fmt: skip
    path = folder / "results.json"
    path.write_text(json.dumps({"info": {}, "simulations": runs} | others))
    return path


def write_table(folder, n=40, **columns):
    """A table of runs of two steps, as pandas writes it."""
    run = np.repeat(np.arange(n), 2)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"id": run, "step": np.tile([1, 2], n), "p": rng.random(2 * n).round(3), "solved": run % 2}
    )
    path = folder / "table.csv"
    frame.assign(**columns).to_csv(path, index=False)
    return path


# ------------------------------------------------------------------ logs


def test_without_confidence_the_situation_is_judged(tmp_path, run):
    out_file = tmp_path / "report.html"
    code, out, err = run(write_log(tmp_path), "--calibrator", "none", "--out", out_file)
    assert (code, err) == (0, "")
    assert "the log has no confidence" in out
    assert re.search("TRACER: [a-z ]+; ", out)
    assert re.search(r"turns: surprisal 0, repetition \d+, agent_gap 0", out)
    assert "12 clusters of runs by 'task'" in out
    assert "24 runs, 23 with an observed outcome" in out
    assert "<html" in (tmp_path / "report.html").read_text()


def test_predictors_and_clusters_of_a_log_are_chosen_by_name(tmp_path, run):
    path = write_log(tmp_path)
    _, out, _ = run(path, "--score", "tool calls", "--group", "run", "--calibrator", "none")
    assert "24 clusters of runs by 'run'" in out
    assert re.search("tool calls: [a-z ]+; ", out)
    for wrong, named in [
        (["--score", "TRACR"], "did you mean 'TRACER'"),
        (["--group", "tusk"], "did you mean 'task'"),
        (["--by", "tusk"], "did you mean 'task'"),
        (["--step", "x"], "--step is for tables"),
        (["--risk", "x"], "--risk is for tables"),
        (["--stop-reason", "x"], "--stop-reason: no field of a run named 'x'"),
        (["--format", "tau"], "no registered format named 'tau'"),
        (["--scale", "tokens=5"], "no predictor with a scale named 'tokens'"),
        (["--format", "openai", "--field", "text=content"], "--field names the parts of JSON"),
    ]:
        code, _, err = run(path, *wrong)
        assert code == 2, wrong
        assert named in err, wrong


def test_tokens_saved_of_a_log(tmp_path, run):
    log = write_log(tmp_path, n=40, usage={"usage": {"completion_tokens": 10}})
    options = ["--monitor", "--splits", "1", "--score", "tool calls", "--calibrator", "none"]
    code, out, _ = run(log, *options, "--out", tmp_path / "r.html")
    assert code == 0
    assert "; cost: generated tokens" in out


def test_confidences_whose_scale_is_not_known_are_not_read(tmp_path, run):
    turn = {"role": "assistant", "judge": 0.5}
    messages = [{**turn, "content": f"Confidence: {k}"} for k in (1, 2, 3, 4, 5)]
    runs = [{"id": str(k), "messages": [messages[k % 5]], "success": k % 5 > 2} for k in range(40)]
    log = tmp_path / "log.json"
    log.write_text(json.dumps(runs))
    _, out, _ = run(log, "--calibrator", "none")
    assert "40 stated confidences not read" in out
    assert "pass --scale verbal=10" in out
    assert "to judge field 'judge' of turns, pass --confidence judge" in out
    _, out, _ = run(log, "--scale", "verbal=5", "--calibrator", "none")
    assert "verbal: in 100% of the agent's turns" in out
    runs[0]["messages"] = [{"role": "assistant", "content": "Confidence: 40"}]
    log.write_text(json.dumps(runs))
    assert "39 stated confidences not read; pass --scale verbal=100" in run(log)[1]


def test_a_confidence_needs_whole_runs_of_both_outcomes(tmp_path, run):
    def turn(k, t):
        has = t == 0 or k % 2 == 0  # of runs that fail, the second turn has none
        return {"role": "assistant", "content": f"Confidence: 0.{1 + k % 9}" if has else "x"}

    runs = [
        {"id": str(k), "messages": [turn(k, 0), turn(k, 1)], "success": k % 2 == 0}
        for k in range(40)
    ]
    log = tmp_path / "log.json"
    log.write_text(json.dumps(runs))
    _, out, _ = run(log, "--calibrator", "none")
    assert "no confidence covers enough turns" in out
    assert "in 75% of the agent's turns" in out
    _, out, _ = run(log, "--missing", "ffill", "--calibrator", "none")
    assert "verbal: in 75% of the agent's turns" in out


def test_what_is_left_out_is_said(tmp_path, run):
    path = write_log(tmp_path)
    raw = json.loads(path.read_text())
    raw["simulations"][1]["messages"] = [{"role": "user", "content": "Hello?"}]
    raw["simulations"][2] = {"id": "broken", "termination_reason": "user_stop"}
    raw["simulations"][7]["termination_reason"] = "too_many_errors"
    path.write_text(json.dumps(raw))
    options = ["--score", "tool calls", "--calibrator", "none"]
    code, out, _ = run(path, *options, "--stop", "max_steps=administrative,cosmic=complete")
    assert code == 0
    assert "1 of 24 runs could not be read" in out
    assert "1 run ended before the agent's first turn" in out
    assert "no run was stopped by 'cosmic'; there are: " in out


# ------------------------------------------------------------------ tables


def test_columns_of_a_table_are_guessed_and_named(tmp_path, run):
    path = write_table(tmp_path, task=np.repeat(np.arange(40) // 2, 2))
    code, out, _ = run(path, "--calibrator", "none")
    assert code == 0
    assert "guessed" in out
    for column in ("'id'", "'step'", "'solved'", "'p'"):
        assert f"column {column}" in out
    assert "20 clusters of runs by 'task'" in out
    again = write_table(tmp_path, task=np.repeat(np.arange(40) // 2, 2), trial=0)
    assert "20 runs with the task and the trial of another" in run(again)[1]
    known = ["--id", "id", "--step", "step", "--outcome", "solved", "--score", "p"]
    _, out, _ = run(path, *known, "--calibrator", "none")
    assert "guessed" not in out


def test_columns_that_are_no_scores_are_left_out_with_the_reason(tmp_path, run):
    y = np.repeat(np.arange(40) % 2, 2)
    rng = np.random.default_rng(0)
    path = write_table(
        tmp_path, score=y * 0.9, temperature=rng.random(80).round(1), fixed=0.5, percent=1.0,
        stop_reason=np.where(y, "done", "crash"),
    )  # fmt: skip
    _, out, _ = run(path, "--calibrator", "none", "--stop", "cosmic=complete")
    assert re.search(r"Left out: column 'score' separates .* name it with --score", out)
    assert re.search(r"columns not used \(.*temperature", out)
    assert "no run was stopped by 'cosmic'; there are: crash, done" in out
    code, _, err = run(write_table(tmp_path, p=y * 0.9))
    assert (code, "'p': separates" in err, "--score" in err) == (2, True, True)
    path = write_table(tmp_path, rating=rng.integers(1, 6, 80))
    options = ["--score", "rating", "--calibrator", "none", "--stop", "x=complete"]
    _, out, _ = run(path, *options)
    assert "name it with --stop-reason" in out
    assert re.search("add --scale rating=5|rating.* values above 1", out)


def test_an_outlier_is_named_and_does_not_decide(tmp_path, run):
    rng = np.random.default_rng(0)
    score = (50 + 20 * np.repeat(np.arange(60) % 2, 2) + rng.normal(0, 15, 120)).round(1)
    margins = []
    for value in (score[15], 9.2e124):
        path = write_table(tmp_path, n=60, p=np.where(np.arange(120) == 15, value, score))
        code, out, _ = run(path, "--out", tmp_path / "report.json")
        assert code == 0
        assert "--scale p=100" in out
        numbers = json.loads((tmp_path / "report.json").read_text())
        margins.append(numbers["sensitivity"][0]["margin"])
    assert margins[1] == pytest.approx(margins[0], abs=0.01)
    assert "p: run 7, step 2: 9.2e+124 lies far outside the others" in out
    assert any("9.2e+124" in note for note in numbers["notes"])
    code, _, err = run(path, "--scale", "p=100")
    assert code == 2
    assert "row 15: column 'p' has 9.2e+124" in err


def test_the_outlier_of_a_real_log(public_file, run):
    code, out, _ = run(public_file("field", "huge.csv"))
    assert code == 0
    assert "+0.194" in out  # as with 92 in its place
    assert "run 7, step 2: 9.2e+124" in out
