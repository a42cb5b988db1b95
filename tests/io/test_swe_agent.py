"""SWE-agent: each field of a step, prompts, stops, and the reports of an evaluation."""

import pytest

from known_dialogue import ALL, ASK, FOUND, LOOK, TOLD, agent, said, user
from trajscore import io

STEP = {"thought": "Look", "action": "open a.py", "observation": "x = 1"}
CHAT = [ASK, TOLD]


def read(write, *steps, name="out/i/i.traj", **fields):
    log = {"trajectory": list(steps or [STEP]), "info": {}} | fields
    (run,) = io.read_runs(write(name, log))
    return run


def test_a_folder_with_its_results(write):
    history = [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "A demonstration", "is_demo": True},
        {"role": "user", "content": "Fix it."}, {"role": "assistant", "content": "Look"},
        {"role": "user", "content": "late"},
    ]  # fmt: skip
    steps = [
        {"thought": "Look", "response": "Look!", "action": "open a.py\n", "observation": "x = 1"},
        {"thought": "Done", "action": "", "observation": None, "state": "{}"},
    ]
    for name, status in (("i1", "submitted"), ("i2", "submitted (exit_cost)"), ("i3", None)):
        log = {"trajectory": steps, "history": history, "info": {"exit_status": status}}
        path = write(f"out/{name}/{name}.traj", log)
    write("out/results.json", {"resolved_ids": ["i1"], "unresolved_ids": ["i2"]})
    runs = io.read_runs(path.parents[1])
    assert [(run.id, run.outcome, run.stop_reason) for run in runs] == [
        ("i1", 1, "submitted"), ("i2", -1, "exit_cost"), ("i3", -1, None),
    ]  # fmt: skip
    assert said(runs[0]) == [
        ("system", "Be kind."), ("user", "Fix it."), ("agent", "Look"),
        ("open", "open a.py\n", "x = 1"), ("agent", "Done"),
    ]  # fmt: skip
    mini = {"info": {"exit_status": "LimitsExceeded"}, "messages": [ASK, LOOK, FOUND, TOLD]}
    for form in ({}, {"trajectory_format": "mini-swe-agent-1"}):
        (run,) = io.read_runs(write("mini/i1.traj.json", mini | form).parent)
        assert (said(run), run.id, run.outcome) == (ALL, "i1", -1)
        assert run.stop_kind == "administrative"


def test_mini_swe_agent_where_actions_and_results_are_texts(write):
    scored = {"message": agent("Look"), "logprobs": [{"token": "L", "logprob": -0.5}]}
    said_so = {"actions": [{"command": "ls"}], "cost": 0.25, "response": {"choices": [scored]}}
    messages = [
        user("Fix it."), agent("Look", extra=said_so), user("<returncode>0</returncode> a.py"),
        agent("Well"), user("Give one command"), {"role": "exit", "content": "LimitsExceeded"},
    ]  # fmt: skip
    mini = {"info": {"exit_status": "LimitsExceeded"}, "messages": messages}
    (run,) = io.read_runs(write("i1.traj.json", mini | {"trajectory_format": "mini-swe-agent-1.1"}))
    look = run.steps[1]
    assert said(run) == [
        ("user", "Fix it."), ("agent", "Look"),
        ("bash", {"command": "ls"}, "<returncode>0</returncode> a.py"),
        ("agent", "Well"), ("user", "Give one command"),
    ]  # fmt: skip
    assert (look.cost, look.logprobs, run.stop_kind) == (0.25, (-0.5,), "administrative")


def test_reports_of_an_evaluation(write):
    for report in ("out/results.json", "out/report.json", "out/results/results.json"):
        for content, outcome in (
            ({"resolved_ids": ["i"]}, 1), ({"unresolved_ids": ["i"]}, 0), ({"resolved": ["i"]}, 1),
            ({"empty_patch_ids": ["i"]}, 0), ({"resolved_ids": ["j"]}, -1),
            ({"resolved_ids": 3}, -1),
        ):  # fmt: skip
            write(report, content)
            assert read(write).outcome == outcome, (report, content)
    write("out/results.json", {"resolved_ids": ["i"]})
    write("out/i/report.json", {"resolved_ids": [], "unresolved_ids": ["i"]})
    assert read(write).outcome == 0  # beside the run goes first
    write("results.json", {"resolved_ids": ["i"]})
    assert read(write, name="a/b/i/i.traj").outcome == -1  # too far up
    row = {"info": {}, "trajectory": [STEP]}
    lines = [row | {"instance_id": f"i{k}", "resolved": k == 0} for k in range(2)]
    runs = io.read_runs(write("runs.jsonl", lines, lines=True))
    assert io.outcomes(runs).tolist() == [1, 0]


def test_what_is_not_of_the_format_or_cannot_be_read(write):
    with pytest.raises(ValueError, match=r"run 'i'.*its trajectory is str, not a list"):
        read(write, trajectory="x")
    chats = [{"id": k, "messages": CHAT, "success": 1} for k in range(2)]
    path = write("chats/a.traj.json", chats)
    for place in (path, path.parent):
        assert [run.id for run in io.read_runs(place)] == ["0", "1"]
    for log in ({"trajectory": [STEP]}, {"info": {}}, {"info": "exit_status"}):
        with pytest.raises(ValueError, match=r"x\.json"):
            io.read_runs(write("x.json", log))
