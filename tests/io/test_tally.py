"""Counts over a log: scores that were not used, and fields that may be outcomes."""

import math
from collections import Counter
from pathlib import Path

import pytest

from trajscore import io
from trajscore.io.files import Place
from trajscore.io.tally import Tally, name_of


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


def test_what_is_odd_in_a_run_is_counted():
    counted = {
        "replaced_scores": 2, "unanswered": 4, "without_role": 5,
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


def test_fields_are_looked_for_within_two_objects_and_no_deeper():
    assert list(noted({"a": {"b": {"c": 1}}}).values) == ["a.b.c"]
    assert noted({"a": {"b": {"c": {"d": 1}}}}).values == {}
    assert dict(noted({"a": {"b": {"c": {"value": 1}}}}).values["a.b.c"]) == {1: 1}
    assert list(noted({"a": {"value": 1, "b": 2}}).values) == ["a"]  # one value, and no object
    assert list(noted({1: {2: 3}}).values) == ["1.2"]


def test_values_are_counted_up_to_the_first_too_many():
    tally = noted(*({"a": k} for k in (*range(9), 0, 9, 10)))
    assert tally.values["a"] == Counter(range(9))
    assert noted(*({"a": k % 8} for k in range(16))).values["a"] == Counter([*range(8)] * 2)


def test_a_value_that_all_of_several_runs_share_may_be_an_outcome():
    assert list(noted({"a": 1}, {"a": 1}).candidates()) == ["a"]
    assert noted({"a": 1}).candidates() == {}
    assert list(noted({"a": 1}, {"b": 2}).candidates()) == ["a", "b"]
    tally = noted(*({"a": k, "b": k % 2, "c": 1} for k in range(2)))
    assert list(tally.candidates()) == ["a", "b", "c"]


def test_records_of_a_run_are_counted_where_it_has_several():
    tally = Tally()
    for n_records in (1, 2, 5):
        tally.note_run(io.Run("a"), Place(Path("log.json"), 0, n_records=n_records))
    assert (tally.n_joined, tally.n_records) == (2, 7)


@pytest.mark.parametrize(
    ("extra", "n"), [({}, 1), ({"n_left_out": {}}, 0), ({"retried": 1}, 0), ({"unanswered": 1}, 1)]
)
def test_texts_that_a_run_does_not_hold_are_counted_unless_some_were_left_out(extra, n):
    tally = Tally()
    for _ in range(2):
        tally.note_unread({"x": "One more."}, io.Run("a", extra=extra))
    assert tally.unread == Counter({"x": 2 * n} if n else {})


@pytest.mark.parametrize(
    ("extra", "is_source", "name"),
    [
        ({"name": "n", "source": "s", "role": "r"}, True, "n"),
        ({"source": "s", "role": "r"}, True, "s"),
        ({"source": "s", "role": "r"}, False, "r"),
        ({"source": "s"}, False, None),
        ({"role": 3}, True, "3"),
        ({}, True, None),
    ],
)
def test_the_name_of_a_turn(extra, is_source, name):
    assert name_of(io.Step("user", extra=extra), is_source) == name


def test_nothing_is_counted_at_first():
    assert not any(vars(Tally()).values())


def test_turns_calls_and_contents_with_a_flaw_are_counted():
    tally = Tally()
    steps = [
        io.Step("agent", "a", extra={"parts": {"x": 1}}), io.Step("user", "b"), io.Step("user", ""),
        io.Step("agent", "", [io.ToolCall("f"), io.ToolCall(""), io.ToolCall("")]),
    ]  # fmt: skip
    tally._note_turns(io.Run("a", steps))
    assert tally.odd == Counter({"turn": 1, "content": 1, "call": 2})
