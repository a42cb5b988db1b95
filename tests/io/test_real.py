"""Public logs: known numbers of runs, successes and budget stops."""

from trajscore import io


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
