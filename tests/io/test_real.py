"""Public logs, and logs as engineers have them: right, or refused with what helps."""

import numpy as np
import pandas as pd
import pytest

from public_data import MADE_LOGS
from trajscore import StepConfidence, io

# What else is to be said, after the first try was refused.
SCORE, TABLE = {"openai_score.jsonl"}, {"openai_bare.json", "openai_noout.json"}


@pytest.mark.parametrize("part", range(4))
def test_made_logs(public_file, part):
    for name in list(MADE_LOGS)[part::4]:
        path, wanted = public_file("made_logs", name), (21, 19)
        runs = io.read_runs(path)
        if name in SCORE | TABLE:
            with pytest.raises(ValueError, match=r"no run has an outcome.*outcome=.*outcomes="):
                io.outcomes(runs)
        if name in SCORE:
            runs = io.read_runs(path, outcome="score")
        if name in TABLE:
            wanted = (20, 20)
            table = pd.DataFrame({"run_id": [run.id for run in runs], "ok": ["bad", "good"] * 20})
            words = {"outcome": "ok", "outcome_map": "good=1,bad=0"}
            runs = io.read_runs(path, outcomes=table, **words)
        assert len(runs) == 40, name
        assert tuple(np.bincount(io.outcomes(runs))) == wanted, name
        for run in runs:
            actors = [step.actor for step in run.steps]
            assert set(actors) <= {"user", "agent"}, name
            assert actors.count("user") <= 1, name
            assert run.steps[-1].text.startswith("Your order is on its way."), name
        X = StepConfidence(channels=["verbal"]).fit_transform(runs)
        assert (X.lengths >= 2).all(), name
        assert not np.isnan(X.cells).any(), name


def counts(runs):
    y = io.outcomes(runs)
    return len(y), int((y == 1).sum()), int((y == 0).sum()), int((y == -1).sum())


def test_tau_bench(public_file):
    path = public_file("tau_bench", "gpt-4o-airline.json")
    runs = io.read_runs(path)
    # of seven runs with 30 agent messages, two had ended by then
    assert counts(runs) == (200, 84, 111, 5)
    assert {run.stop_reason for run in runs if run.outcome == -1} == {"max_steps"}
    assert counts(io.read_runs(path, format="tau_bench", max_turns=None)) == (200, 84, 116, 0)
    table = io.meta(runs)
    assert table["task"].nunique() == 50
    assert table["run"].is_unique
    assert table["n_agent"].max() == 30
    assert table["n_logprobs"].sum() == 0
    # every call has its result, every message has its place
    assert table["n_tool_calls"].sum() == 1074 + 90
    calls = [call for run in runs for step in run.steps for call in step.tool_calls]
    assert all(call.result is not None and isinstance(call.arguments, dict) for call in calls)
    assert not any("unmatched_results" in run.extra for run in runs)
    assert all(len(run.extra["system"]) == 1 for run in runs)


TAU2 = {
    "toolorchestra_airline_gpt-5_1trial": (50, 28, 22, 0),
    "retail_gpt-4.1": (40, 34, 6, 0),
    "telecom_gpt-4.1": (40, 18, 22, 0),
    "airline_gpt-oss-120b": (50, 19, 26, 5),
}


def test_tau2(public_file):
    logs = {name: io.read_tau2(public_file("tau2", f"{name}.json")) for name in TAU2}
    assert {name: counts(runs) for name, runs in logs.items()} == TAU2
    for name, runs in logs.items():
        assert not runs.left_out
        calls = [call for run in runs for step in run.steps for call in step.tool_calls]
        assert all(call.result is not None for call in calls), name
        assert not any("unmatched_results" in run.extra for run in runs), name
    # stops by a budget are no failures
    table = io.meta(logs["airline_gpt-oss-120b"])
    stopped = table[table["stop_reason"] == "max_steps"]
    assert len(stopped) == 5
    assert (stopped["outcome"] == -1).all()
    assert (stopped["stop_kind"] == "administrative").all()
    assert (stopped["reward"] == 0).all()  # what the file says is kept
    assert (table["max_steps"] == 200).all()
    erring = table["stop_reason"] == "too_many_errors"  # its own doing
    assert table["outcome"][erring].tolist() == [0]
    # users call tools too
    steps = [step for run in logs["telecom_gpt-4.1"] for step in run.steps if step.actor == "user"]
    calling = [step for step in steps if step.tool_calls]
    assert len(calling) == 433
    assert all(step.observation is not None for step in calling)
