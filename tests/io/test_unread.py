"""Texts of a record that its run does not hold are counted."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from trajscore import io
from trajscore.io import Run, Step, ToolCall
from trajscore.io._unread import is_prose, unread_texts

CALL = {"id": "c", "type": "function", "function": {"name": "find", "arguments": '{"q": "a b"}'}}


def run(**fields):
    call = ToolCall("find", {"q": "the red one"}, result="in the box")
    turns = [Step("user", "Where is it?"), Step("agent", "I look there.", [call])]
    return Run("r", turns, task="Find the ball", **fields)


@pytest.mark.parametrize(
    ("raw", "unread"),
    [
        ({"a": "Where is it?", "b": "the red one", "c": "in the box", "d": "Find the ball"}, {}),
        ({"x": "I look elsewhere."}, {"x": 1}),
        ({"x": ["One more.", "One more.", {"y": "Two more."}]}, {"x": 1, "x.y": 1}),
        ({"x": json.dumps({"y": "One more."})}, {"x.y": 1}),
        ({"x": "look there"}, {}),  # a part of a turn
        ({"x": "agent: I look there. Then I go."}, {}),  # holds a turn
        ({"x": "2026-01-01 10:00:00", "y": "single", "z": 3, "w": None}, {}),
        ({"7f3a": {"x": "One more."}}, {"x": 1}),  # an id is not a field
        ({"attributes": [{"key": "a.b", "value": {"s": "One more."}}]}, {"attributes.a.b.s": 1}),
        ({"attributes": [{"key": "tool.description", "value": "One more."}]}, {}),
        ({"description": "Finds a thing.", "tools": [{"x": "One more."}]}, {}),
        ({"description": '["One more."]'}, {"description": 1}),
        ({"isSidechain": True, "x": "One more."}, {}),
        ({"isSidechain": False, "x": "One more."}, {"x": 1}),
        ("not a record", {"": 1}),
    ],
)
def test_texts_that_no_part_of_the_run_holds(raw, unread):
    assert unread_texts(raw, run()) == Counter(unread)


def test_the_other_fields_of_a_turn_without_words_hold_only_thoughts():
    raw = {"x": "One more.", "reasoning": "I think so."}
    silent, spoken = (Run("r", [Step("agent", text, extra=raw)]) for text in ("", "Hi."))
    assert unread_texts(raw, silent) == {"x": 1}
    assert unread_texts(raw, spoken) == {}
    assert unread_texts(raw, Run("r", [Step("user", "", extra=raw)])) == {}
    assert unread_texts({"input": "An odd one"}, Run("r", [Step("agent", extra={"input": "An"})]))


@pytest.mark.parametrize(
    ("text", "words"),
    [("I look.", True), ("look", False), ("look 3", False), ("2026-01-01 10:00", False)],
)
def test_prose_has_several_words(text, words):
    assert is_prose(text) is words
    assert not is_prose("1 " * 50 + "late words")


@pytest.mark.parametrize("name", ["x", "9", "step"])
def test_words_under_a_name_nobody_knows_are_counted(write, name):
    said = {"role": "assistant", "content": None, "tool_calls": [CALL], name: "I look there."}
    chat = [{"role": "user", "content": "Where is it?"}, said]
    chat += [{"role": "tool", "tool_call_id": "c", "content": "in the box"}]
    field = "messages" if name == "9" else f"messages.{name}"
    assert io.read_runs(write("a.json", [{"messages": chat}])).notes == [
        f"1 text not read, in '{field}'"
    ]
    said["content"] = said.pop(name)
    assert io.read_runs(write("b.json", [{"messages": chat}])).notes == []


def test_spans_of_unknown_kinds_are_counted(write):
    messages = [[{"role": who, "content": f"{who} says"}] for who in ("user", "assistant")]
    names = ("gen_ai.input.messages", "gen_ai.output.messages")
    values = dict(zip(names, map(json.dumps, messages), strict=True))
    spans = [
        {"trace_id": "t", "span_id": str(k), "attributes": {"gen_ai.operation.name": kind} | values}
        for k, kind in enumerate(("chat", "dream"))
    ]
    assert io.read_runs(write("a.json", spans)).notes == []
    spans[1]["attributes"] = {"gen_ai.operation.name": "dream", "gen_ai.x": "One more."}
    notes = io.read_runs(write("b.json", spans)).notes
    assert notes == ["1 text not read, in 'attributes.gen_ai.x'"]


def test_messages_among_the_fields_of_a_run_are_not_read(write):
    talk = [{"role": "user", "content": "Where is it?"}, {"role": "assistant", "content": "Here."}]
    more = {"reply": json.dumps([{"message": {"role": "assistant", "content": "One more."}}])}
    runs = io.read_runs(write("a.json", [{"messages": talk, "note": "Not a turn."} | more]))
    assert runs.notes == ["1 text not read, in 'reply.message.content'"]


def test_the_beginning_of_a_text_says_whether_it_is_words():
    assert is_prose("1" * 39 + "a word")
    assert not is_prose("1" * 40 + "a word")
    assert is_prose("1 " * 18 + "a b")
    assert not is_prose("1 " * 19 + "a b")
    assert not is_prose("word 1")


@pytest.mark.parametrize(
    ("raw", "unread"),
    [
        ({"config": "One more."}, {}), ({"config": ["One more."]}, {}),
        ({"description": "One more."}, {}), ({"description": ["One more."]}, {"description": 1}),
        ({"description": '{"x": "One more."}'}, {"description.x": 1}),
        ({"x": 3, "y": None, "z": [1, True]}, {}), ({"a1": {"x": "One more."}}, {"x": 1}),
        ([["One more."], "Two more."], {"": 2}), ({"isMeta": 1, "x": "One more."}, {}),
        ({"key": "x", "value": "One more."}, {"x": 1}),
        ({"key": "x", "value": "One more.", "y": 1}, {"value": 1}),
        ({"x": "  look there  "}, {}), ({"x": "the red one"}, {}), ({"x": "find it"}, {"x": 1}),
        ({"x": "Find the"}, {}), ({"x": "the red one, in a box"}, {"x": 1}),
    ],
)  # fmt: skip
def test_where_texts_are_looked_for(raw, unread):
    assert unread_texts(raw, run()) == Counter(unread)


@pytest.mark.parametrize(
    ("step", "n"),
    [
        (Step("agent", "", extra={"x": "One more."}), 1),
        (Step("agent", " \n", extra={"x": "One more."}), 1),
        (Step("agent", "Hi.", extra={"x": "One more."}), 0),
        (Step("user", "", extra={"x": "One more."}), 0),
        (Step("agent", "", extra={"parts": "One more."}), 0),
        (Step("agent", "", extra={"my thought": "One more."}), 0),
        (Step("agent", "Hi.", extra={"input": "One more."}), 1),
        (Step("agent", "Hi.", extra={"tokens": "One more."}), 1),
        (Step("agent", "Hi.", extra={"finish_reason": "One more."}), 1),
        (Step("agent", "", observation="One more."), 0),
        (Step("agent", "", scores={"x": ("One more.", 1)}), 0),
        (Step("agent", "", [ToolCall("One more.")]), 0),
        (Step("agent", "", [ToolCall("f", {"x": ["One more."]})]), 0),
        (Step("agent", "", [ToolCall("f", result="One more.")]), 0),
        (Step("agent", "", [ToolCall("f", extra={"x": "One more."})]), 0),
    ],
)
def test_what_turns_hold_is_read(step, n):
    assert unread_texts({"x": "One more."}, Run("r", [step])).total() == n


@pytest.mark.parametrize(
    "fields",
    [
        {"task": "One more."}, {"stop_reason": "One more."}, {"meta": {"x": "One more."}},
        {"scores": {"x": "One more."}}, {"extra": {"x": ["One more."]}},
        {"extra": {"x": '["One more."]'}},
    ],
)  # fmt: skip
def test_what_fields_of_a_run_hold_is_read(fields):
    assert unread_texts({"x": "One more."}, Run("r", **fields)) == {}
    assert unread_texts({"x": "Two more."}, Run("r", **fields)) == {"x": 1}
    assert unread_texts({"x": "One more."}, Run("One more.")) == {}


def test_a_single_word_of_a_turn_does_not_stand_for_a_text():
    own = Run("r", [Step("agent", "more", observation="two")])
    assert unread_texts({"x": "One more.", "y": "Two more, two."}, own) == {"x": 1, "y": 1}
    assert unread_texts({"x": "One more. And so on."}, Run("r", [Step("agent", "One more.")])) == {}
    seen = Run("r", [Step("agent", "", observation="One more.")])
    assert unread_texts({"x": "One more. And so on."}, seen) == {}
