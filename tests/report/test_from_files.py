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
        code = main(
            [
                "report",
                *map(str, arguments),
                "--verbose",
                "--resamples",
                "10",
                "--family",
                "log",
                "--jobs",
                "1",
            ]
        )
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
    code, out, err = run(
        write_log(tmp_path),
        "--calibrator",
        "none",
        "--family",
        "log",
        "--out",
        tmp_path / "report.html",
    )
    assert (code, err) == (0, "")
    assert "the log has no confidence" in out
    assert re.search("TRACER: [a-z ]+; ", out)
    assert re.search(r"turns: surprisal 0, repetition \d+, agent_gap 0", out)
    assert "12 clusters of runs by 'task'" in out
    assert "24 runs, 23 with an observed outcome" in out
    assert "<html" in (tmp_path / "report.html").read_text()


def test_stated_confidence_is_judged(tmp_path, run):
    path = write_log(tmp_path, "There. Confidence: {p:.2f}")
    code, out, _ = run(path, "--out", tmp_path / "r.json")
    assert code == 0
    assert "verbal: in 100% of the agent's turns" in out
    assert "TRACER" not in out
    found = json.loads((tmp_path / "r.json").read_text())
    assert list(found["predictors"]) == ["verbal"]
    assert found["source"]["name"] == str(path)
    assert found["source"]["command"].startswith("trajscore report")


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
        (["--format", "tau"], "no format named 'tau'"),
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
    assert "; cost: tokens" in out


def test_confidences_whose_scale_is_not_known_are_not_read(tmp_path, run):
    messages = [{"role": "assistant", "content": f"Confidence: {k}"} for k in (1, 2, 3, 4, 5)]
    runs = [{"id": str(k), "messages": [messages[k % 5]], "success": k % 5 > 2} for k in range(40)]
    log = tmp_path / "log.json"
    log.write_text(json.dumps(runs))
    _, out, _ = run(log, "--calibrator", "none")
    assert "40 stated confidences not read" in out
    assert "pass --scale verbal=10" in out
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
    assert "too few runs have it at every turn" in out
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


@pytest.mark.parametrize(
    ("content", "named"),
    [
        ('{"simulations": [{"id": 1, "mess', "results.json"),
        ('{"info": {}, "simulations": []}', "no runs in"),
        ('{"info": {}, "results": []}', "--field"),
        ('{"info": {}, "simulations": [{"id": 1}]}', "none of the 1 runs can be read as tau2"),
    ],
    ids=["broken", "empty", "unknown", "unread"],
)
def test_bad_logs_are_named(tmp_path, run, content, named):
    path = tmp_path / "results.json"
    path.write_text(content)
    code, _, err = run(path)
    assert code == 2
    assert named in err


def test_a_public_log(public_file, run):
    log = public_file("tau2", "airline_gpt-oss-120b.json")
    code, out, _ = run(log, "--score", "tool calls", "--calibrator", "none")
    assert code == 0
    assert "50 runs, 45 with an observed outcome" in out
    assert "5 runs that a budget ended without a success are not observed" in out


# ------------------------------------------------------------------ tables


def test_the_chess_data_without_a_table(run):
    code, out, _ = run("--score", "material", "--calibrator", "none")
    assert code == 0
    assert "bundled chess data" in out
    assert "material: " in out


def test_columns_of_a_table_are_guessed_and_named(tmp_path, run):
    path = write_table(tmp_path, task=np.repeat(np.arange(40) // 2, 2))
    code, out, _ = run(path, "--calibrator", "none")
    assert code == 0
    assert "guessed" in out
    for column in ("'id'", "'step'", "'solved'", "'p'"):
        assert f"column {column}" in out
    assert "20 clusters of runs by 'task'" in out
    known = ["--id", "id", "--step", "step", "--outcome", "solved", "--score", "p"]
    _, out, _ = run(path, *known, "--calibrator", "none")
    assert "guessed" not in out
    frame = pd.read_csv(path)
    frame.assign(step=frame["step"] - 1).to_csv(path, index=False)
    assert "steps are counted from 0" in run(path, "--calibrator", "none")[1]


def test_columns_that_are_no_scores_are_left_out_with_the_reason(tmp_path, run):
    y = np.repeat(np.arange(40) % 2, 2)
    rng = np.random.default_rng(0)
    path = write_table(
        tmp_path, score=y * 0.9, temperature=rng.random(80).round(1), fixed=0.5, percent=1.0,
        stop_reason=np.where(y, "done", "crash"),
    )  # fmt: skip
    _, out, _ = run(path, "--calibrator", "none", "--stop", "cosmic=complete")
    assert re.search(r"Left out: column 'score' separates .* name it with --score", out)
    assert "columns not used (" in out
    assert "temperature" in out
    assert "no run was stopped by 'cosmic'; there are: crash, done" in out
    code, _, err = run(write_table(tmp_path, p=y * 0.9))
    assert code == 2
    assert "'p': separates" in err
    assert "--score" in err
    path = write_table(tmp_path, rating=rng.integers(1, 6, 80))
    options = ["--score", "rating", "--calibrator", "none", "--stop", "x=complete"]
    _, out, _ = run(path, *options)
    assert "name it with --stop-reason" in out
    assert re.search("add --scale rating=5|rating.* values above 1", out)


def test_options_that_are_for_logs_alone_are_refused(tmp_path, run):
    path = write_table(tmp_path)
    for wrong, named in [
        (["--embedder", "char"], "--embedder is for logs"),
        (["--by", "modl"], "no column named 'modl'"),
        (["--score", "q"], "'q'"),
        (["--group", "q"], "'q'"),
    ]:
        code, _, err = run(path, *wrong)
        assert code == 2, wrong
        assert named in err, wrong
    empty = tmp_path / "empty.csv"
    empty.write_text("id,step,p,solved\n")
    code, _, err = run(empty)
    assert code == 2
    assert "no rows" in err


def test_rows_of_the_user_are_no_steps(tmp_path, run):
    rows = [
        {"conversation_id": f"c{k}", "turn": t, "role": ("user", "assistant")[t % 2 == 0],
         "confidence": (k * 7 % 40) / 40 if t % 2 == 0 else None, "success": k % 2}
        for k in range(40) for t in (1, 2, 3, 4)
    ]  # fmt: skip
    table = tmp_path / "rows.csv"
    pd.DataFrame(rows).to_csv(table, index=False)
    _, out, _ = run(table, "--calibrator", "none", "--out", tmp_path / "r.json")
    assert "80 of 160 rows left out: by column 'role' they are not the agent's" in out
    found = json.loads((tmp_path / "r.json").read_text())
    assert found["runs"]["n_runs"] == 40
    assert {row["step"] for row in found["by_step"]} == {1, 2}


def test_a_table_of_a_row_a_run_needs_steps(tmp_path, run):
    frame = pd.DataFrame({"run": range(40), "p": np.linspace(0, 1, 40), "y": np.arange(40) % 2})
    frame.to_csv(tmp_path / "t.csv", index=False)
    code, _, err = run(tmp_path / "t.csv", "--score", "p")
    assert code == 2
    assert "--step" in err
