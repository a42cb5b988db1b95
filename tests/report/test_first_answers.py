"""What a new user with 150 runs of 50 tasks is told first, of six such files."""

import json
from functools import cache

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

from trajscore.cli.main import main

NO, YES, OPEN = "no", "yes", "not known yet"


def support_runs(seed, confidence, judge, *, n_budget=12, task="task"):
    """Runs of a support agent: a stated confidence, a judge's score, 40% failures."""
    rng = np.random.default_rng(seed)
    tasks = np.repeat(np.arange(50), 3)
    y = rng.normal(0, 0.8, 50)[tasks] + rng.logistic(size=150) > -0.5
    steps = rng.integers(4, 18, 150)
    stopped = rng.permutation(np.flatnonzero(~y))[:n_budget]
    reason = np.full(150, "completed", dtype=object)
    reason[stopped], steps[stopped] = "max_steps", 18
    run = np.repeat(np.arange(150), steps)
    t = np.concatenate([np.arange(1, n + 1) for n in steps])
    known = np.where(y, 1, -1)[run] * np.sqrt(t / 6)

    def stated(worth, bias):
        of_runs = rng.normal(0, 0.8, 150)[run]
        return expit(bias + worth * known + of_runs + rng.normal(0, 0.5, len(run))).round(2)

    table = pd.DataFrame({
        "run_id": run, "step": t, "confidence": stated(confidence, 1.3),
        "judge_score": stated(judge, 0.3), "solved": y[run].astype(float),
        "stop_reason": reason[run], "task": tasks[run],
    })  # fmt: skip
    table.loc[table["stop_reason"] == "max_steps", "solved"] = None
    return table.rename(columns={"task": task})


FILES = {
    "weak, tasks": (support_runs(1, 0.15, 0.1), ["--group", "task"], [NO, OPEN]),
    "weak, no tasks": (support_runs(1, 0.15, 0.1, task="nr"), [], [NO, OPEN]),
    "strong": (support_runs(2, 1.3, 0.2), ["--group", "task"], [NO, YES]),
    "judge strong": (support_runs(3, 0.2, 1.0), ["--group", "task"], [YES, OPEN]),
    "no budget": (support_runs(4, 0.5, 0.2, n_budget=0), ["--group", "task"], [NO, YES]),
    "nothing": (support_runs(5, 0.0, 0.0), ["--group", "task"], [NO, OPEN]),
}


@pytest.fixture(scope="module")
def answer_of(tmp_path_factory):
    @cache
    def told(name):
        table, options, _ = FILES[name]
        folder = tmp_path_factory.mktemp("first")
        table.to_csv(folder / "runs.csv", index=False)
        scores = ["--score", "confidence", "--score", "judge_score", "--family", "log"]
        out = folder / "report.json"
        main(["report", str(folder / "runs.csv"), *scores, *options, "--out", str(out)])
        return json.loads(out.read_text())["answer"]

    return told


SLOW = ("weak, no tasks", "no budget", "nothing")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in FILES]
)
def test_what_is_shown_leads(answer_of, name):
    table, _, shown = FILES[name]
    answer = answer_of(name)
    assert [each["answer"] for each in answer["statements"]] == shown
    first, second = (each["question"] for each in answer["statements"])
    assert {"word" in first, "word" in second} == {True, False}
    if OPEN not in shown:
        assert "word" in first
    assert answer["headline"].startswith(first)
    assert answer["data"]["level"] == "sound"
    has_budget = (table["stop_reason"] == "max_steps").any()
    assert (answer["budget"] or "").startswith("12 runs hit their budget (max_steps)") == has_budget
    needs = [each["text"] for each in answer["statements"] if each["answer"] == OPEN]
    assert all("more runs" in text for text in needs)


@pytest.mark.slow
def test_tasks_do_not_change_what_is_said_to_happen(answer_of):
    first, second = (answer_of(name)["statements"][0]["text"] for name in list(FILES)[:2])
    assert first == second
    assert "on average), " in first
