"""Runs, steps and calls: how they are shown, and which outcomes and grades they take."""

import math

import numpy as np
import pytest

from trajscore.io import Run, Step, ToolCall
from trajscore.io._run import as_grade, as_object, as_objects, as_outcome, check_list, leftover


@pytest.mark.parametrize(
    ("step", "shown"),
    [
        (Step("user", None), "<Step: user, ''>"),
        (Step("agent", "x" * 40), f"<Step: agent, '{'x' * 40}'>"),
        (Step("agent", "x" * 41), f"<Step: agent, '{'x' * 37}...'>"),
        (
            Step("agent", "", [ToolCall("f"), ToolCall("g")], logprobs=(), confidence=0.25),
            "<Step: agent, '', calls f, calls g, 0 logprobs, confidence 0.25>",
        ),
    ],
)
def test_a_step_shows_what_it_has(step, shown):
    assert repr(step) == shown


@pytest.mark.parametrize(
    ("outcome", "shown"),
    [(1, "success"), (0, "failure"), (-1, "not observed"), (0.5, "outcome 0.5")],
)
def test_a_run_shows_how_it_ended(outcome, shown):
    assert repr(Run("a", [Step("user")], outcome)) == f"<Run 'a': 1 step, {shown}>"
    assert repr(Run("a", outcome=outcome, stop_reason="max")).endswith(f"{shown}, max>")


def test_the_task_of_a_run_is_text():
    assert [Run("a", task=task).task for task in (7, "7", None)] == ["7", "7", None]


def test_length_of_a_run():
    assert [len(Run("a", [Step("user")] * k)) for k in range(3)] == [0, 1, 2]


@pytest.mark.parametrize(
    ("reward", "outcome"),
    [
        (1, 1), (0, 0), (True, 1), (np.bool_(False), 0), (np.float32(1), 1), (None, -1),
        (math.nan, -1), (0.5, 0), (-1, 0), (2, 0), (1 - 1e-7, 1), (1 + 1e-7, 1), (1 - 1e-5, 0),
        (1 + 1e-5, 0),
    ],
)  # fmt: skip
def test_rewards_of_a_format(reward, outcome):
    assert as_outcome(reward) == outcome


def test_other_rewards_are_refused():
    with pytest.raises(ValueError, match="its reward is '1', not a number; see"):
        as_outcome("1", "; see")


@pytest.mark.parametrize(
    ("value", "grade"),
    [
        (1, 1), (0, 0), (-1, -1), (0.25, 0.25), (True, 1), (False, 0), (None, -1), (math.nan, -1),
        (1 + 1e-7, 1), (1.5, None), (-0.5, None), (-2, None), ("1", None), ([1], None),
    ],
)  # fmt: skip
def test_grades_of_a_named_outcome(value, grade):
    assert as_grade(value) == grade


def test_records_must_be_objects():
    assert as_object({"a": 1}) == {"a": 1}
    assert as_objects([{"a": 1}, {}]) == [{"a": 1}, {}]
    with pytest.raises(ValueError, match="it is int, not an object"):
        as_object(3)
    with pytest.raises(ValueError, match="it is str, not an object"):
        as_objects([{}, "x"])
    for raw, kind in (([], "an empty list"), ({}, "dict")):
        with pytest.raises(ValueError, match=f"it is {kind}, not a list of objects"):
            as_objects(raw)


def test_a_part_of_a_run_is_an_object_or_a_list():
    part, listed = {"a": 1}, [1]
    assert as_object(part, "tick 0 is") is part
    assert check_list(listed, "its spans are") is listed
    with pytest.raises(ValueError, match="^tick 0 is list, not an object$"):
        as_object(listed, "tick 0 is")
    with pytest.raises(ValueError, match="^its spans are dict, not a list$"):
        check_list(part, "its spans are")


def test_fields_that_are_left():
    assert leftover({"a": 1, "b": 0, "c": None, "d": False}, {"a"}) == {"b": 0, "d": False}


@pytest.mark.parametrize(
    ("less", "outcome"), [(0.9e-6, 1), (1.1e-6, 0), (-0.9e-6, 1), (-1.1e-6, 0)]
)
def test_a_reward_is_1_up_to_a_millionth(less, outcome):
    assert as_outcome(1 - less) == outcome
    assert as_grade(1 - less) == (1 if outcome else None if less < 0 else 1 - less)


def test_fields_of_a_new_run_and_step():
    assert (Run("a").outcome, Run("a").stop_kind, Run("a").steps) == (-1, None, [])
    step = Step("agent")
    assert (step.text, step.tool_calls, step.is_empty) == ("", [], True)
    assert not Step("agent", logprobs=()).is_empty
