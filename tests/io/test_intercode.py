"""InterCode: each field of a run."""

import pytest

from trajscore import io
from trajscore.io.formats.intercode import InterCode
from trajscore.io.registry import Head

TURNS = {
    "thoughts": ["I look.", None],
    "actions": ["execute[SELECT 1]", "submit"],
    "observations": ["[(1,)]", "[(1,)]"],
    "rewards": [0, 1.0],
    "valid_action": [True, False],
}
RUN = {
    "environment": "ic_sql", "dataset": "./data/dev.json", "task_id": 4, "query": "Where?",
    "turn_history": TURNS, "summary": {"max_reward": 1.0, "turns_max": 10},
}  # fmt: skip


def read(write, **fields):
    (run,) = io.read_runs(write("a.json", {"4": RUN | fields}))
    return run


@pytest.mark.parametrize(
    ("fields", "recognised"),
    [({"0": RUN}, True), ({"0": {"query": "?"}, "1": RUN}, True), ({"0": 1}, False), ({}, False)],
)
def test_files_of_the_format(fields, recognised):
    assert InterCode().recognise(Head(fields)) == recognised


def test_all_fields(write):
    run = read(write)
    assert (run.id, run.task, run.outcome, run.stop_reason) == ("a-4", "dev-4", 1, "submit")
    assert run.scores == {"max_reward": 1.0}
    assert run.meta["environment"] == "ic_sql"
    assert [(step.actor, step.text) for step in run.steps] == [
        ("user", "Where?"), ("agent", "I look."), ("agent", ""),
    ]  # fmt: skip
    calls = [step.tool_calls[0] for step in run.steps[1:]]
    assert [(call.name, call.arguments, call.result, call.error) for call in calls] == [
        ("execute", "SELECT 1", "[(1,)]", False), ("submit", "submit", "[(1,)]", True),
    ]  # fmt: skip


def test_rewards_of_turns_are_not_seen_by_signals(write):
    run = read(write)
    assert run.extra["rewards"] == [0, 1.0]
    assert all("1.0" not in str(step.extra) and not step.scores for step in run.steps)


def test_bare_commands_are_executed(write):
    turns = {"actions": ["ls -l", "cat a[1].txt"], "observations": ["a", "b"]}
    run = read(write, turn_history=turns, summary={"max_reward": 0.9})
    calls = [step.tool_calls[0] for step in run.steps[1:]]
    assert [(call.name, call.arguments) for call in calls] == [
        ("execute", "ls -l"), ("execute", "cat a[1].txt"),
    ]  # fmt: skip
    assert calls[0].error is None
    assert (run.outcome, run.stop_reason) == (0, "max_turns")


def test_success_ends_a_run_that_tries_again(write):
    assert read(write, turn_history={"actions": ["ls"]}).stop_reason == "success"


def test_lists_of_different_lengths_are_left_out(write):
    log = {"0": RUN, "1": RUN | {"turn_history": TURNS | {"observations": ["a"]}}}
    with pytest.warns(UserWarning, match="turn_history has lists of different lengths"):
        runs = io.read_runs(write("a.json", log))
    assert [run.id for run in runs] == ["a-0"]


def test_a_run_without_turns_is_left_out(write):
    with pytest.raises(ValueError, match="it has no turn of the agent"):
        read(write, turn_history={})
