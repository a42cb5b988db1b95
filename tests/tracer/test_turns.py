"""Runs as flat arrays of turns, tokens and words."""

import numpy as np
import pytest

from trajscore.io import Run, Step, ToolCall
from trajscore.tracer._turns import (
    Words,
    call_text,
    check_runs,
    content_mask,
    content_word,
    mean_of_turns,
    take_tokens,
    take_turns,
)

nan = np.nan


def agent(text="", logprobs=None, tokens=None, **fields):
    return Step("agent", text, logprobs=logprobs, tokens=tokens, **fields)


RUNS = [
    Run("a", [Step("user", "hi"), agent("x", [-1.0, -np.inf, nan]), agent("y"),
              Step("system", "")]),
    Run("b", [agent("z", [-9998.0, -9999.0, -0.5, -0.0], index=4), Step("user", "no")],
        meta={"file": "log.json"}, outcome=1),
]  # fmt: skip


def test_turns():
    turns = take_turns(RUNS, ("agent", "user"), "a reader")
    assert turns.lengths.tolist() == [3, 2]
    assert turns.run_of.tolist() == [0, 0, 0, 1, 1]
    assert turns.is_agent.tolist() == [False, True, True, True, False]
    assert turns.place(2) == "run 'a' (row 0), step 3"
    assert turns.place(3) == "log.json, run 'b' (row 1), step 1 (message 4)"
    users = turns.only(~turns.is_agent, "user")
    assert [step.text for step in users.steps] == ["hi", "no"]
    assert users.lengths.tolist() == [1, 1]
    with pytest.raises(ValueError, match=r"run 'b' \(row 1\) has no turn of the x; leave it out"):
        turns.only(np.array([True, True, True, False, False]), "x")
    cells = turns.container(np.arange(5.0)[:, None], ("c",))
    assert cells.ids.tolist() == ["a", "b"]
    assert cells.ended.tolist() == [False, True]
    assert not {"run", "outcome"} & set(cells.meta)


@pytest.mark.parametrize(
    ("runs", "error", "message"),
    [
        ("log.json", TypeError, "R takes runs, got str; read a log with"),
        (3, TypeError, "R takes runs, got int; read a log with"),
        ([RUNS[0], {}], TypeError, "but row 1 is of type dict"),
        ([], ValueError, "R got an empty list of runs"),
        (np.ones((2, 2)), TypeError, "R reads runs of a log, got ndarray; read a log with"),
        ([Run("a", ["hi"])], TypeError, r"'a': step 1 is text; give io.Step\('agent', 'hi'\)"),
        ([Run("a", [RUNS[0].steps[0], {}])], TypeError, "'a': step 2 is dict; give an io.Step"),
    ],
)
def test_no_runs(runs, error, message):
    with pytest.raises(error, match=message):
        check_runs(runs, "R")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"b": 1, "a": "é"}, 't {"a": "é", "b": 1}'),
        ('{"b":1,"a":[2]}', 't {"a": [2], "b": 1}'),
        ("not json", "t not json"),
        ({1: {"x": 0}, "a": [{2: 0, "b": 1}]}, 't {"1": {"x": 0}, "a": [{"2": 0, "b": 1}]}'),
        ({}, "t {}"),
    ],
)
def test_call_text(arguments, expected):
    assert call_text(ToolCall("t", arguments)) == expected


def test_whole_text():
    calls = [ToolCall("t", {}), ToolCall("u", {})]
    steps = [agent(" a ", tool_calls=calls), agent("", tool_calls=calls[:1]), agent("")]
    turns = take_turns([Run("a", steps)], ("agent",), "a reader")
    assert [turns.whole_text(k) for k in range(3)] == ["a\nt {}\nu {}", "t {}", ""]


def test_tokens():
    turns = take_turns(RUNS, ("agent", "user"), "a reader")
    tokens = take_tokens(turns)
    assert tokens.turns == [1, 3]
    assert tokens.starts.tolist() == [0, 3, 7]
    expected = [-1, -100, nan, -100, nan, -0.5, 0]
    np.testing.assert_array_equal(tokens.logprobs, expected)
    counted = tokens.logprobs <= -0.5
    mean, number = mean_of_turns(np.arange(7.0), counted, tokens)
    np.testing.assert_array_equal(mean, [0.5, 4])
    np.testing.assert_array_equal(number, [2, 2])
    mean, number = mean_of_turns(np.arange(7.0), np.arange(7) < 3, tokens)
    np.testing.assert_array_equal(mean, [1, nan])
    np.testing.assert_array_equal(number, [3, 0])


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        (
            [agent("", [-1.0]), agent("", [-1.0, 0.25])],
            "step 2, token 1: the logprob 0.25 is above",
        ),
        ([agent("", [0.5, -1.0])], "step 1, token 0: the logprob 0.5 is above 0"),
        ([agent("", [-1.0]), agent("", [0.5])], "step 2, token 0: the logprob 0.5 is above 0"),
        ([agent("", [-1.0, -2.0], ["a"])], "step 1: there are 1 tokens for 2 logprobs"),
    ],
)
def test_bad_tokens(steps, message):
    with pytest.raises(ValueError, match=message):
        take_tokens(take_turns([Run("a", steps)], ("agent",), "a reader"))


@pytest.mark.parametrize(
    ("token", "expected"),
    [
        (" Bag,", "bag"), ("THE", None), ("12.5%", None), ("...", None), ("", None), ("a1", "a1"),
        ("\u2019tis", "tis"),
    ],
)  # fmt: skip
def test_content_word(token, expected):
    assert content_word(token, frozenset(["the"])) == expected


def test_table_of_words():
    words = Words(["the"])
    assert words.of("the Red red bag 7") == ["bag", "red"]
    assert words.of("\u65c5\u884c") == ["\u65c5", "\u884c"]
    table = words.table(["red bag", "", "bag car", "the"]).toarray()
    np.testing.assert_array_equal(table, [[1, 1, 0], [0, 0, 0], [1, 0, 1], [0, 0, 0]])
    assert words.table(["", "the"]).shape == (2, 1)


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [(None, [False, True, True, True, False]), (["a", "b", "the", "c", "d"], [0, 1, 0, 1, 0])],
)
def test_tokens_that_count(tokens, expected):
    logprobs = np.array([-0.4, -0.5, -0.6, -7, nan])
    assert content_mask(tokens, logprobs, 0.5, Words(["the"])).tolist() == expected


def test_an_actor_that_is_not_known_is_named():
    with pytest.raises(ValueError, match="actor must be 'agent', .* got 'assistant'"):
        take_turns([Run("a", [Step("assistant", "hi")])], ["agent"], "R")
