"""Counts over a log: scores that were not used, and fields that may be outcomes."""

import math
from pathlib import Path

import pytest

from trajscore import io
from trajscore.io.files import Place
from trajscore.io.tally import Tally


@pytest.mark.parametrize(
    ("chosen", "unused"), [(None, (1, 2)), ("a", (0, 2)), ("a.b", (0, 2)), ("b", (1, 0))]
)
def test_unused_scores(chosen, unused):
    tally = Tally()
    tally.note_scores("run", ["a", "b"], chosen)
    tally.note_scores("run", ["b"], chosen)
    assert (tally.unused["run", "a"], tally.unused["run", "b"]) == unused
    assert tally.unused["step", "b"] == 0


def noted(*records):
    tally = Tally(n_runs=len(records))
    for record in records:
        tally.note_values(record)
    return tally


@pytest.mark.parametrize(
    ("value", "counts"),
    [
        ("yes", True), ("", False), ("x" * 20, True), ("x" * 21, False), (0, True), (0.5, True),
        (False, True), (math.nan, False), (None, False), ([1], False),
    ],
)  # fmt: skip
def test_values_that_may_be_outcomes(value, counts):
    assert ("a" in noted({"a": value}).values) == counts
    assert ("a.b" in noted({"a": {"b": value}}).values) == counts


@pytest.mark.parametrize(("n_values", "is_candidate"), [(1, True), (8, True), (9, False)])
def test_few_values(n_values, is_candidate):
    tally = noted(*({"a": k % n_values} for k in range(20)))
    assert ("a" in tally.candidates()) == is_candidate
    assert len(tally.values["a"]) == n_values


def test_likeliest_first():
    tally = noted(*({"one": 1, "four": k, "two": k % 2, "three": k % 3} for k in range(4)))
    assert list(tally.candidates()) == ["two", "three", "four", "one"]
    assert tally.candidates()["two"] == {0: 2, 1: 2}
    assert noted({"a": 1}).candidates() == {}  # of a single run
    assert list(noted({"a": 1}, {}).candidates()) == ["a"]


def test_fields_that_runs_share():
    tally = Tally(n_runs=3)
    for session, own in (("s", 1), ("s", 2), ("t", 3)):
        extra = {"props": {"My-Session-Id": session}, "trace_id": own, "model": "m"}
        tally._note_sessions(io.Run("r", [], extra=extra))
    assert tally.session_field() == "props.My-Session-Id"
    assert Tally(n_runs=4, sessions=tally.sessions).session_field() is None


def test_values_within_two_objects():
    record = {"output": {"result": {"won": True, "steps": [1]}, "status": "done"}}
    tally = noted(record, {"output": {"result": {"won": False}, "status": "done"}})
    assert list(tally.candidates()) == ["output.result.won", "output.status"]


@pytest.mark.parametrize(("to", "n"), [("left", 1), ("right", 0)])
def test_calls_with_other_arguments_are_another_beginning(to, n):
    def moves(*targets):
        return [io.Step("agent", tool_calls=[io.ToolCall("move", {"to": to})]) for to in targets]

    tally = Tally()
    place = Place(Path("log.json"), 0)
    tally.note_run(io.Run("short", moves("up", to)), place)
    tally.note_run(io.Run("long", moves("up", "left", "up")), place)
    assert tally.n_beginnings() == n


def test_one_conversation_from_two_sides():
    def run(name, *actors, texts="xy"):
        return io.Run(name, [io.Step(a, text) for a, text in zip(actors, texts, strict=True)])

    tally = Tally()
    for own in (
        run("a", "user", "agent"),
        run("b", "agent", "user"),
        run("c", "user", "agent"),  # the same side again
        run("d", "agent", "user", texts="yx"),
        run("e", "agent", "agent"),
        run("f", "user", "environment"),
    ):
        tally.note_side(own)
    assert tally.mirrored == [("a", "b")]
    late = Tally(n_runs=10_001, sides=tally.sides)
    late.note_side(run("g", "agent", "user"))
    assert late.mirrored == []


def test_what_is_odd_in_a_run_is_counted():
    counted = {
        "replaced_scores": 2, "unknown_events": 3, "unanswered": 4, "without_role": 5,
        "lines_of_run": 6, "durations": 1,
    }  # fmt: skip
    steps = [io.Step("agent", "", [io.ToolCall(""), io.ToolCall("f")]), io.Step("user", " ")]
    steps[1].extra["parts"] = {"x": 1}
    extra = counted | {"n_left_out": {"a": 1, "b": 2}, "unmatched_results": [{}, {}], "retried": 7}
    extra |= {"parent_rings": 2}
    tally = Tally(n_runs=1)
    for _ in range(2):
        tally.note_run(io.Run("r", steps, extra=extra), Place(Path("log.json"), 0, n_records=3))
    twice = counted | {"aside": 3, "result": 2, "turn": 1, "content": 1, "call": 1}
    assert dict(tally.odd) == {name: 2 * n for name, n in twice.items()}
    assert (tally.n_retried, tally.n_parent_rings) == (14, 2)
    assert (tally.n_joined, tally.n_records) == (2, 6)
    tally.note_run(io.Run("s", steps), Place(Path("log.json"), 0))
    assert (tally.n_joined, tally.n_records) == (2, 6)


def test_runs_that_others_begin_with():
    def run(*texts):
        return io.Run("r", [io.Step("agent", text) for text in texts])

    tally = Tally()
    for own in (run("a"), run("a", "b"), run("a", "b"), run("a", "b", "c"), run("b", "c"), run()):
        tally._note_beginnings(own)
    assert tally.n_beginnings() == 2  # a single turn says nothing


def test_names_of_who_begins_and_of_several_users():
    def noted_turns(*turns):
        tally = Tally()
        steps = [io.Step(actor, "x", extra=extra) for actor, extra in turns]
        tally._note_turns(io.Run("r", steps))
        return dict(tally.openers), dict(tally.names_of_users)

    ann, bob, bot = {"name": "Ann"}, {"source": "Bob"}, {"name": "Bot", "role": "x"}
    assert noted_turns(("user", ann), ("agent", {})) == ({"Ann": 1}, {})
    assert noted_turns(("agent", ann), ("user", ann)) == ({}, {})
    assert noted_turns(("environment", {"role": "critic"})) == ({"critic": 1}, {})
    assert noted_turns(("user", {})) == ({"None": 1}, {})
    assert noted_turns(("user", bot)) == ({"Bot": 1}, {"Bot": 1})  # who is no user
    several = ("user", ann), ("user", {"name": "Cy"}), ("user", ann)
    assert noted_turns(*several) == ({"Ann": 1}, {"Ann": 2, "Cy": 1})
    # a source is a name where agents are named, too
    assert noted_turns(("user", bob), ("user", ann)) == ({"Bob": 1}, {})
    named = noted_turns(("user", bob), ("user", ann), ("agent", {"name": "helper"}))
    assert named == ({"Bob": 1}, {"Ann": 1, "Bob": 1})
