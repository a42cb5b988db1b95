"""SWE-agent: each field of a step, prompts, stops, and the reports of an evaluation."""

import pytest

from trajscore import io
from trajscore.io.formats.swe_agent import SWEAgent, _stop
from trajscore.io.registry import Head

STEP = {"thought": "Look", "action": "open a.py", "observation": "x = 1"}

CHAT = [{"role": "user", "content": "Hi"}]


def read(write, *steps, name="out/i/i.traj", **fields):
    log = {"trajectory": list(steps or [STEP]), "info": {}} | fields
    (run,) = io.read_runs(write(name, log))
    return run


@pytest.mark.parametrize(
    ("fields", "recognised"),
    [
        ({"info": None, "trajectory": None}, True), ({"info": {}, "trajectory": [STEP]}, True),
        ({"info": {}, "trajectory": CHAT}, False), ({"trajectory": [STEP]}, False),
        ({"info": None, "trajectory_format": "x"}, True), ({"info": {}}, False),
        ({"info": {"exit_status": "x"}}, True), ({"info": "exit_status"}, False),
        ({"info": {"exit_status": "x"}, "trajectory": CHAT}, False),
    ],
)  # fmt: skip
def test_files_of_the_format(fields, recognised):
    assert SWEAgent().recognise(Head(fields)) == recognised


@pytest.mark.parametrize(
    ("status", "reason"),
    [("submitted", "submitted"), ("submitted (exit_cost)", "exit_cost"), (None, None), (3, None),
     ("not submitted (x) yet", "not submitted (x) yet")],
)  # fmt: skip
def test_stops(status, reason):
    assert _stop({"exit_status": status}) == reason


def test_all_fields_of_a_step(write):
    step = STEP | {"execution_time": 2.5, "state": "{}", "extra_info": {}, "response": "Look!"}
    bare = {"response": "Done", "action": " ", "observation": "end"}
    run = read(write, step, bare)
    first, last = run.steps
    (call,) = first.tool_calls
    assert (first.text, first.index, first.observation) == ("Look", 0, "x = 1")
    assert (call.name, call.arguments, call.result, call.id) == (
        "open", "open a.py", "x = 1", "step 0",
    )  # fmt: skip
    assert first.extra == {"execution_time": 2.5, "state": "{}"}
    assert (last.text, last.tool_calls, last.observation) == ("Done", [], "end")


def test_what_a_run_holds(write):
    stats = {"instance_cost": 0.5, "tokens_sent": 9, "tokens_received": 2}
    run = read(write, info={"model_stats": stats, "exit_status": "submitted", "edited": 1})
    assert (run.id, run.task, run.outcome) == ("i", "i", -1)
    numbers = {name: run.meta[name] for name in ("cost", "input_tokens", "output_tokens")}
    assert numbers == {"cost": 0.5, "input_tokens": 9, "output_tokens": 2}
    assert run.extra["info"] == {"exit_status": "submitted", "edited": 1}
    assert read(write, instance_id="j").id == "j"
    assert read(write, name="k.traj.json").id == "k"


def test_prompts_before_the_first_turn(write):
    history = [
        {"role": "system", "content": "S"}, {"role": "user", "content": "demo", "is_demo": True},
        {"role": "user", "content": "Fix"}, {"role": "assistant", "content": "a"},
        {"role": "user", "content": "late"},
    ]  # fmt: skip
    run = read(write, history=history)
    assert (run.extra["system"], [step.text for step in run.steps]) == (["S"], ["Fix", "Look"])
    assert [step.text for step in read(write, history=["x", *history]).steps] == ["Look"]
    history[2]["role"] = "x"
    assert read(write, history=history).steps[0].actor == "environment"  # which is counted


@pytest.mark.parametrize("report", ["results.json", "report.json", "i/results.json"])
def test_reports_of_an_evaluation(write, report):
    for content, outcome in (
        ({"resolved_ids": ["i"]}, 1), ({"unresolved_ids": ["i"]}, 0), ({"resolved_ids": ["j"]}, -1),
        ({"resolved_ids": 3}, -1),
    ):  # fmt: skip
        write(f"out/{report}", content)
        assert read(write).outcome == outcome


def test_a_report_beside_the_run_goes_first(write):
    write("out/results.json", {"resolved_ids": ["i"]})
    write("out/i/report.json", {"unresolved_ids": ["i"]})
    assert read(write).outcome == 0


def test_a_trajectory_is_a_list(write):
    with pytest.raises(ValueError, match="its trajectory is str, not a list"):
        read(write, trajectory="x")


def test_an_outcome_beside_the_trajectory(write):
    lines = [
        {"instance_id": f"i{k}", "resolved": k == 0, "info": {}, "trajectory": [STEP], "cost": 1}
        for k in range(2)
    ]
    runs = io.read_runs(write("runs.jsonl", lines, lines=True))
    assert io.outcomes(runs).tolist() == [1, 0]
    assert [run.extra["cost"] for run in runs] == [1, 1]


def test_chats_that_are_named_like_trajectories(write):
    chat = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho"}]
    path = write("out/a.traj.json", [{"id": k, "messages": chat, "success": 1} for k in range(2)])
    for place in (path, path.parent):
        assert [(run.id, run.outcome) for run in io.read_runs(place)] == [("0", 1), ("1", 1)]
    mini = {"info": {"exit_status": "submitted"}, "messages": chat}
    path = write("mini/b.traj.json", mini)
    assert io.read_runs(path.parent)[0].stop_reason == "submitted"


@pytest.mark.parametrize(
    ("action", "names"),
    [("ls", ["ls"]), ("cat a b", ["cat"]), (" \n", []), (None, []), (["ls"], [])],
)
def test_the_first_word_of_an_action_is_the_tool(write, action, names):
    (step,) = read(write, STEP | {"action": action}).steps
    calls = [(call.name, call.arguments, call.id) for call in step.tool_calls]
    assert calls == [(name, action, "step 0") for name in names]
    assert step.observation == "x = 1"


def test_reports_stand_at_most_one_folder_above_the_run(write):
    write("results.json", {"resolved_ids": ["i"]})
    write("results/results.json", {"resolved_ids": ["i"]})
    assert read(write, name="a/b/i/i.traj").outcome == -1
    write("a/b/results/results.json", {"resolved": ["i"]})
    assert read(write, name="a/b/i/i.traj").outcome == 1
    write("a/b/i/report.json", {"resolved_ids": [], "empty_patch_ids": ["i"]})
    assert read(write, name="a/b/i/i.traj").outcome == 0


def test_a_trajectory_without_information(write):
    run = read(write, info=None)
    assert (run.stop_reason, run.meta["cost"], run.extra["info"]) == (None, None, {})
