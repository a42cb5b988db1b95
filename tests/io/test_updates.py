"""Updates of a graph, as LangGraph streams them: what each node added to the messages."""

import pytest

from trajscore.io._updates import is_update, run_of_updates
from trajscore.io.files import Broken

ASK = {"type": "human", "content": "Where?"}
CALL = {"type": "ai", "content": "", "tool_calls": [{"id": "c1", "name": "f", "args": {}}]}
RESULT = {"type": "tool", "content": "1", "tool_call_id": "c1"}
SAY = {"type": "ai", "content": "There."}


def update(node, *messages):
    return {node: {"messages": list(messages)}}


@pytest.mark.parametrize(
    ("value", "is_one"),
    [
        (update("agent", SAY), True),
        (update("tools", RESULT), True),
        (update("agent", ASK, SAY), False),  # a run begins with the user
        (update("agent", SAY, ASK), True),
        (update("agent"), False),
        ({"agent": None}, False),
        ({"x.before_model": None}, True),
        ({"x.after_agent": None}, True),
        ({"x.after_agents": None}, False),
        ({"x.after_agent": {}}, False),
        ({"x.after_agent": None, "agent": None}, False),
        (update("agent", SAY) | {"x.after_agent": None}, True),
        ({}, False),
        ([update("agent", SAY)], False),
        ({"messages": [SAY]}, False),
        (SAY, False),
    ],
)
def test_which_values_are_updates(value, is_one):
    assert is_update(value) is is_one


def test_updates_are_one_run_in_their_order():
    updates = [
        update("agent", CALL), {"x.after_model": None}, update("tools", RESULT),
        update("agent", SAY), update("summary", SAY),
    ]  # fmt: skip
    assert run_of_updates(updates) == {"messages": [CALL, RESULT, SAY, SAY]}


@pytest.mark.parametrize(
    ("updates", "is_one_run"),
    [
        ([update("agent", CALL), update("agent", SAY)], True),
        ([update("agent", SAY), update("agent", CALL)], False),
        ([update("agent", CALL, RESULT), update("agent", SAY)], True),
        ([update("agent", SAY, CALL), update("agent", SAY)], True),
        ([update("agent", CALL, SAY), update("agent", SAY)], False),
        ([update("agent", SAY), update("review", ASK), update("agent", SAY)], True),
        ([update("agent", SAY), update("review"), update("agent", SAY)], False),
    ],
)
def test_a_node_that_had_ended_and_goes_on_is_another_run(updates, is_one_run):
    run = run_of_updates(updates)
    assert isinstance(run, dict) is is_one_run
    if not is_one_run:
        assert isinstance(run, Broken)
        assert "those of several runs" in str(run)


def test_updates_of_two_nodes_begin_with_the_first_that_says_something():
    assert is_update({"start": None} | update("agent", SAY) | update("review", ASK))
    assert not is_update(update("review", ASK) | update("agent", SAY))
    assert not is_update({"x.before_model": None, "agent": {"messages": []}})
