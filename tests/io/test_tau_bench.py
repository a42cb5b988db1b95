"""tau-bench: each field of a trajectory, and which runs the cap cut off."""

import pytest

from trajscore import io
from trajscore.io.formats.tau_bench import TauBench
from trajscore.io.registry import Head

ASK, ANSWER = {"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes"}
STOP = {"role": "user", "content": "Bye ###STOP###"}


def calling(name):
    call = {"id": "c", "function": {"name": name, "arguments": "{}"}}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def read(write, *messages, max_turns=2, **fields):
    run = {"task_id": 7, "trial": 1, "reward": 0.0, "info": {}, "traj": list(messages)} | fields
    (found,) = io.read_runs(write("a.json", [run]), format="tau_bench", max_turns=max_turns)
    return found


def test_all_fields(write):
    run = read(write, ASK, ANSWER, reward=1.0, user_cost=0.5)
    assert (run.id, run.task, run.trial, run.outcome) == ("7-1", "7", 1, 1)
    assert (run.meta["reward"], run.extra) == (1.0, {"info": {}, "user_cost": 0.5})
    assert [step.text for step in run.steps] == ["Hi", "Yes"]
    assert read(write, ASK, ANSWER, reward=None).outcome == -1
    assert read(write, ASK, ANSWER, task_id=None).id == "a-0"
    assert read(write, ASK, ANSWER, task_id=None).task is None


@pytest.mark.parametrize(
    ("messages", "cut"),
    [
        ([ASK, ANSWER, ASK], False),
        ([ASK, ANSWER, ASK, ANSWER], True),
        ([ASK, ANSWER, ASK, ANSWER, ASK], True),
        ([ASK, ANSWER, ASK, ANSWER, STOP], False),
        ([ASK, ANSWER, calling("find")], True),
        ([ASK, ANSWER, calling("transfer_to_human_agents")], False),
        ([ASK, ANSWER, ASK, ANSWER, ASK, ANSWER, STOP], False),
    ],
)
def test_a_run_at_the_cap_that_has_not_ended_was_cut_off(write, messages, cut):
    run = read(write, *messages)
    assert (run.stop_reason, run.outcome) == (("max_steps", -1) if cut else (None, 0))
    assert read(write, *messages, reward=1.0).outcome == 1
    assert read(write, *messages, max_turns=None).stop_reason is None


def test_a_fork_that_names_the_messages_trajectory(write):
    run = {"task_id": 7, "trial": 1, "reward": 1.0, "info": {}, "trajectory": [ASK, ANSWER]}
    for runs in ([run], run):
        (read_run,) = io.read_runs(write("a.json", runs))
        assert (read_run.id, read_run.outcome, read_run.extra) == ("7-1", 1, {"info": {}})
        assert [step.text for step in read_run.steps] == ["Hi", "Yes"]


@pytest.mark.parametrize("max_turns", [0, -1, 2.5, True, "3"])
def test_the_cap_is_a_number_of_turns(write, max_turns):
    with pytest.raises(ValueError, match="max_turns must be a whole number, at least 1, or None"):
        read(write, ASK, ANSWER, max_turns=max_turns)
    assert read(write, ASK, ANSWER, max_turns=1).stop_reason == "max_steps"


def test_the_usual_cap_is_of_thirty_turns(write):
    for n, cut in ((29, False), (30, True)):
        run = {"task_id": 7, "reward": 0.0, "traj": [ASK, *[ANSWER] * n]}
        (found,) = io.read_runs(write("a.json", [run]))
        assert (found.id, found.stop_reason) == ("7-0", "max_steps" if cut else None)


def test_fields_of_a_file_without_a_run(write):
    turn = {"task_id": 1, "reward": 1.0, "traj": "id of a trajectory"}
    with pytest.raises(ValueError, match="there are no runs in .*; leave the file out"):
        io.read_runs(write("a.json", turn), format="tau_bench")
    with pytest.warns(UserWarning, match="it has no 'traj'"):
        runs = io.read_runs(
            write("b.json", [{"task_id": 1, "reward": 1.0}, turn | {"traj": [ASK, ANSWER]}]),
            format="tau_bench",
        )
    assert len(runs) == 1


@pytest.mark.parametrize(
    ("fields", "recognised"),
    [
        ({"traj": []}, True),
        ({"traj": None}, True),
        ({"traj": "id"}, False),
        ({"traj": 3}, False),
        ({"traj": 0.5}, False),
        ({"task_id": 1, "reward": 1}, False),
        ({}, False),
        ({"task_id": 1, "reward": 1, "trajectory": [ASK]}, True),
        ({"task_id": 1, "reward": 1, "trajectory": [ASK], "x": 1}, True),
        ({"task_id": 1, "reward": 1, "trajectory": [{"action": "ls"}]}, False),
        ({"task_id": 1, "trajectory": [ASK]}, False),
    ],
)
def test_files_of_the_format(fields, recognised):
    assert TauBench().recognise(Head(fields)) == recognised
