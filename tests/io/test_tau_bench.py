"""tau-bench: each field of a trajectory, and which runs the cap cut off."""

import pytest

from trajscore import io

ASK, ANSWER = {"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes"}
STOP = {"role": "user", "content": "Bye ###STOP###"}


def calling(name):
    call = {"id": "c", "function": {"name": name, "arguments": "{}"}}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def trajectory(*messages, **fields):
    own = {"task_id": 7, "trial": 1, "reward": 0.0, "info": {}, "traj": list(messages)}
    return own | fields


def read(write, *messages, max_turns=2, **fields):
    log = write("a.json", [trajectory(*messages, **fields)])
    return io.read_runs(log, format="tau_bench", max_turns=max_turns)[0]


def test_all_fields(write):
    run = read(write, ASK, ANSWER, reward=1.0, user_cost=0.5)
    assert (run.id, run.task, run.trial, run.outcome) == ("7-1", "7", 1, 1)
    assert (run.meta["reward"], run.extra) == (1.0, {"info": {}, "user_cost": 0.5})
    assert [step.text for step in run.steps] == ["Hi", "Yes"]
    assert read(write, ASK, ANSWER, reward=None).outcome == -1
    nameless = read(write, ASK, ANSWER, task_id=None)
    assert (nameless.id, nameless.task) == ("a-0", None)


def test_a_run_at_the_cap_that_has_not_ended_was_cut_off(write):
    for messages, cut in (
        ([ASK, ANSWER, ASK], False), ([ASK, ANSWER, ASK, ANSWER], True),
        ([ASK, ANSWER, ASK, ANSWER, ASK], True), ([ASK, ANSWER, ASK, ANSWER, STOP], False),
        ([ASK, ANSWER, calling("find")], True),
        ([ASK, ANSWER, calling("transfer_to_human_agents")], False),
        ([ASK, ANSWER, ASK, ANSWER, ASK, ANSWER, STOP], False),
    ):  # fmt: skip
        run = read(write, *messages)
        assert (run.stop_reason, run.outcome) == (("max_steps", -1) if cut else (None, 0)), messages
        assert run.stop_kind == ("administrative" if cut else "complete")
        assert read(write, *messages, reward=1.0).outcome == 1
        assert read(write, *messages, max_turns=None).stop_reason is None
    for n, cut in ((29, False), (30, True)):  # the usual cap
        (run,) = io.read_runs(write("a.json", [trajectory(ASK, *[ANSWER] * n)]))
        assert run.stop_reason == ("max_steps" if cut else None)


def test_what_cannot_be_read(write):
    for max_turns in (0, -1, 2.5, True, "3"):
        with pytest.raises(ValueError, match="max_turns must be a whole number"):
            read(write, ASK, ANSWER, max_turns=max_turns)
    bad = {
        "'traj'": trajectory(traj=None), "'x', not a number": trajectory(ANSWER, reward="x"),
        "dict, not a list": trajectory(traj={}), "int": 3,
    }  # fmt: skip
    with pytest.warns(UserWarning, match=r"4 of 5 runs.*\(index 1\)"):
        runs = io.read_runs(write("t.json", [trajectory(ANSWER, reward=1.0), *bad.values()]))
    for k, (words, one) in enumerate(zip(bad, runs.left_out, strict=True), 1):
        assert words in one.reason
        assert one.index == k
    for fields in ({"traj": "id"}, {"traj": 3}, {"trajectory": [{"action": "ls"}]}):
        record = {"task_id": 1, "reward": 1.0} | fields
        with pytest.raises(ValueError, match=r"a\.json"):
            io.read_runs(write("a.json", record), format="tau_bench")
