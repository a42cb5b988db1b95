"""One list of usual names, for tables, chats and JSON lines alike."""

import math

import pandas as pd
import pytest

from trajscore import io
from trajscore.core.errors import ArgumentError
from trajscore.io.fields import (
    USUAL,
    Fields,
    by_keys,
    dig,
    may_be_duration,
    named_values,
    scalar,
    several_runs,
    steps_field,
    usual_names,
    with_key,
)
from trajscore.io.tables import choose_columns

FRAME = {"run": [1, 1, 2], "step": [1, 2, 1], "score": [0.5, 0.25, 0.5], "solved": [1, 1, 0]}


@pytest.mark.parametrize("name", USUAL["id"])
def test_usual_names_of_runs(write, talk, name):
    table = pd.DataFrame(FRAME).rename(columns={"run": name.upper()})
    assert choose_columns(table, Fields())[0].id == name.upper()
    (run,) = io.read_runs(write("a.json", [{name: "r7", "messages": talk}]), format="openai")
    assert run.id == "r7"
    (run,) = io.read_runs(write("a.jsonl", [{name: "r7", "text": "x"}], lines=True), format="jsonl")
    assert run.id == "r7"
    outcome = pd.DataFrame({name: ["r7"], "outcome": [1]})
    (run,) = io.read_runs(
        write("a.json", [{"id": "r7", "messages": talk}]), format="openai", outcomes=outcome
    )
    assert run.outcome == 1


@pytest.mark.parametrize("name", USUAL["outcome"])
def test_usual_names_of_outcomes(write, talk, name):
    table = pd.DataFrame(FRAME).rename(columns={"solved": name})
    assert choose_columns(table, Fields())[0].outcome == name
    (run,) = io.read_runs(
        write("a.json", [{"id": "a", "messages": talk, name: 1}]), format="openai"
    )
    assert run.outcome == 1
    (run,) = io.read_runs(
        write("a.jsonl", [{"run": 1, "text": "x", name: True}], lines=True), format="jsonl"
    )
    assert run.outcome == 1


@pytest.mark.parametrize("name", USUAL["confidence"])
def test_usual_names_of_confidences(write, name):
    table = pd.DataFrame(FRAME).rename(columns={"score": name})
    assert choose_columns(table, Fields())[0].scores == (name,)
    (run,) = io.read_runs(
        write("a.jsonl", [{"run": 1, "text": "x", name: 0.5}], lines=True), format="jsonl"
    )
    assert run.steps[0].confidence == 0.5


def test_the_most_telling_name_counts_and_the_others_are_kept(write):
    assert usual_names("id", ["ID", "Run", "x"]) == ("Run", "ID")  # an id may be that of the row
    row = {"id": 7, "run": "a", "text": "x", "score": 0.5, "confidence": 0.75, "outcome": None}
    (run,) = io.read_runs(write("a.jsonl", [row | {"success": True}], lines=True), format="jsonl")
    assert (run.id, run.outcome) == ("a", 1)  # a field that is empty does not count
    assert run.steps[0].confidence == 0.75
    assert run.steps[0].extra == {"id": 7, "score": 0.5}


def test_what_was_guessed_of_a_table():
    frame = pd.DataFrame(FRAME | {"p": 0.5, "noise": [0.1, 0.2, 0.3], "why": "done"})
    chosen, guessed = choose_columns(frame, Fields(id="run", stop_reason="why"))
    assert guessed == {"step": ("step",), "outcome": ("solved",), "scores": ("score", "p")}
    assert (chosen.id, chosen.stop_reason, chosen.scores) == ("run", "why", ("score", "p"))
    chosen, guessed = choose_columns(frame, Fields(scores=("noise",)))
    assert chosen.scores == ("noise",)
    assert "scores" not in guessed
    fractions = frame.drop(columns=["score", "p"])
    assert choose_columns(fractions, Fields())[1]["scores"] == ("noise",)


@pytest.mark.parametrize(
    ("drop", "fields", "part", "said"),
    [
        ("run", {}, "id", "no column has a usual name for the run id .*name it with id"),
        ("solved", {}, "outcome", "usual name for the outcome .*; name it with outcome"),
        ("score", {}, "scores", "no column looks like a score; name the column with scores"),
        (None, {"id": "rum"}, "id", "id: no column named 'rum'; did you mean 'run'"),
        (None, {"scores": ("scare",)}, "scores", "scores: no column named 'scare'"),
        (None, {"group": "task"}, "group", "group: no column named 'task'"),
    ],
)
def test_errors_carry_the_part_that_would_help(drop, fields, part, said):
    frame = pd.DataFrame(FRAME).drop(columns=drop or [])
    with pytest.raises(ArgumentError, match=said) as error:
        choose_columns(frame, Fields(**fields))
    assert error.value.part == part
    assert f"--{part}" in error.value.in_options({part: f"--{part}"})


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("a", {"b": [{"c": 1}, 2]}), ("a.b.0.c", 1), ("a.b.1", 2), ("a.b.-1", 2), ("a.b.-2.c", 1),
        ("a.b.2", None), ("a.b.-3", None), ("a.b.c", None), ("a.b.0.c.d", None), ("x", None),
        ("x.y", 3), ("n.m", None),
    ],
)  # fmt: skip
def test_paths_into_objects_and_lists(path, value):
    record = {"a": {"b": [{"c": 1}, 2]}, "x.y": 3, "n": None}
    assert dig(record, path) == value


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (3, 3), ({"value": 1, "score": 2}, 1), ({"score": 2, "avg": 3}, 2), ({"avg": 3, "n": 9}, 3),
        ({"mean": 4}, 4), ({"value": {"value": 1}}, None), ({"n": 1}, None), ([1], None),
        ({"value": [1]}, None), (None, None),
    ],
)  # fmt: skip
def test_values_of_judgements(value, expected):
    assert scalar(value) == expected


def test_names_of_one_part_over_others():
    both = Fields(outcome="a", scores=("p",)).over(Fields(outcome="b", id="c", scores=("q",)))
    assert (both.outcome, both.id, both.scores) == ("a", "c", ("p",))
    assert Fields().over(Fields(id="c")).ids == ("c",)
    assert Fields(id=("a", "b")).ids == ("a", "b")
    assert Fields().ids == ()


@pytest.mark.parametrize(
    ("names", "record", "run"),
    [
        ("a.b", {"a": {"b": 3}}, "3"), (("a", "b"), {"a": 1, "b": "x"}, "1-x"),
        (("a", "b"), {"a": 1}, None), (("a", "b"), {"a": 1, "b": ""}, None), (None, {"id": 0}, "0"),
        (None, {"x": 1}, None), ("a", {"a": "", "id": 1}, None),
    ],
)  # fmt: skip
def test_id_of_a_record(names, record, run):
    assert Fields(id=names).id_of(record) == run


def test_names_with_dots_and_signs():
    assert dig({"a": {"b.c": 1, "b": {"d": 2}}}, "a.b.c") == 1
    assert dig({"a": {"b.c": 1, "b": {"d": 2}}}, "a.b.d") == 2
    assert usual_names("step", ["Step #"]) == ("Step #",)
    assert usual_names("outcome", ["Solved?"]) == ("Solved?",)


def test_outcomes_within_two_objects():
    fields = Fields()
    assert fields.value({"test_result": {"report": {"resolved": True}}}, "outcome") is True
    near = {"metadata": {"info": {"reward": 0}}, "scores": {"success": 1}}
    assert fields.value(near, "outcome") == 1
    assert fields.value({"other": {"report": {"resolved": True}}}, "outcome") is None


def test_the_last_of_one_value_is_that_value():
    record = {"a": 3, "b": [], "c": [4, 5], "d": {"-1": 6}}
    paths = ("a.-1", "a.1", "a.-2", "a.0", "b.-1", "b.0", "c.-1", "c.-2", "c.-3", "c.1", "c.2")
    values = [3, None, None, None, None, None, 5, 4, None, 5, None]
    assert [dig(record, path) for path in paths] == values
    assert dig(record, "d.-1") == 6
    assert dig(None, "a") is None


@pytest.mark.parametrize(
    ("name", "value", "may_be"),
    [
        ("time", 5, True), ("created_at", 0, True), ("time", 1e8, False), ("time", 1e8 - 1, True),
        ("ts", -1e8, False), ("ts", 1 - 1e8, True), ("step", 5, False), ("time", "5", False),
        ("time", None, False), ("wait_time", math.nan, False),
    ],
)  # fmt: skip
def test_times_too_small_for_dates(name, value, may_be):
    assert may_be_duration(name, value) is may_be


def test_several_values_in_a_run_are_asked_about():
    start = "run 'r' has several values of 'model' and 'trial'; if each is a run of its own, pass "
    ids = "id='run' id='model' id='trial'; if not, "
    for is_guessed, end in ((True, "pass id='run'"), (False, "number its steps anew")):
        error = several_runs(["model", "trial"], "r", ["run"], is_guessed=is_guessed)
        assert (str(error), error.part) == (start + ids + end, "id")


def test_usual_names_in_any_spelling_the_most_specific_first():
    names = ["Run ID", "traj-id", "runId", 3, None, "id"]
    assert usual_names("id", names) == ("traj-id", "Run ID", "id")  # the first of one spelling
    assert usual_names("action", ["action"]) == ()
    assert usual_names("step", []) == ()


@pytest.mark.parametrize(
    ("fields", "record", "part", "name"),
    [
        ({}, {"outcome": None, "solved": 1}, "outcome", "solved"),
        ({}, {"outcome": None}, "outcome", None),
        ({"outcome": "not failed"}, {"failed": 1}, "outcome", "failed"),
        ({"outcome": "not failed"}, {"not failed": 1}, "outcome", "not failed"),
        ({"outcome": "failed"}, {"metadata": {"failed": 0}}, "outcome", "metadata.failed"),
        ({"outcome": "failed"}, {"info": {"failed": None}, "x": 1}, "outcome", "failed"),
        ({"confidence": "not risk"}, {"extra": {"risk": 0.5}}, "confidence", "extra.risk"),
        ({"task": "not it"}, {"it": 1}, "task", "not it"),
        ({}, {"metadata": {"task_id": 3}}, "task", "metadata.task_id"),
        ({}, {"metadata": {"id": 3}}, "id", None),
        ({}, {"metadata": {"trial": 3}}, "trial", None),
        (
            {},
            {"config": {"configurable": {"thread_id": "t"}}},
            "id",
            "config.configurable.thread_id",
        ),
        ({}, {"checkpoint": {"thread_id": "t"}}, "id", "checkpoint.thread_id"),
        ({}, {"metadata": {"success": [1]}, "scores": {"success": 0}}, "outcome", "scores.success"),
        ({}, {"metadata": {"info": {"meta": {"success": 1}}}}, "outcome", None),
    ],
)
def test_where_a_record_has_a_part(fields, record, part, name):
    own = Fields(**fields)
    assert own.names(record, (part,)) == ({} if name is None else {part: name})
    assert own.values(record, (part, "cost"))["cost"] is None
    expected = None if name is None else dig(record, name)
    assert own.value(record, part) == expected


def test_the_parts_that_a_user_names():
    own = Fields(id="a", steps="s", text="t", cost="c", outcome="o", tokens="n")
    assert own.named_parts == {"steps": "s", "text": "t", "cost": "c"}
    assert Fields().named_parts == {}
    assert Fields(id=("a", "b")).value({"a": 1, "b": 2}, "id") == "1-2"


@pytest.mark.parametrize(
    ("record", "name"),
    [
        ({"steps": [{"a": 1}]}, "steps"), ({"turns": [{}], "x": [{}]}, "turns"),
        ({"x": [{}]}, "x"), ({"x": [{}], "y": [{}]}, None), ({"x": [0.5, 1]}, "x"),
        ({"x": [True]}, None), ({"x": [0.5, True]}, None), ({"x": [{}, 1]}, None),
        ({"x": []}, None), ({"x": ["a"]}, None), ({"x": [{}], "text": "Hi"}, None),
        ({"x": [{}], "step": 1}, None), ({"steps": [{}], "role": "user"}, "steps"),
        ([{}], None), (None, None),
    ],
)  # fmt: skip
def test_the_field_that_lists_steps(record, name):
    assert steps_field(record) == name


def test_records_by_their_ids():
    def is_record(value):
        return value == 1

    assert by_keys({"a": 1, 2: 1}, is_record) == [(("a",), 1), (("2",), 1)]
    assert by_keys({"a": {"b": {"c": 1}}}, is_record) == [(("a", "b", "c"), 1)]
    assert by_keys({"a": [1, 1]}, is_record) == []  # not below an id
    assert by_keys({"m": {"t": [1, 1]}}, is_record) == [(("m", "t", "0"), 1), (("m", "t", "1"), 1)]
    for other in ({"a": 1, "b": 2}, {"a": {"b": 1, "c": 2}}, {}, {"a": {}}, [1], None, 1):
        assert by_keys(other, is_record) == []


def test_ids_of_the_keys_that_lead_to_a_record():
    assert with_key(("a",), {"id": 7}) == {"id": 7}
    assert with_key(("a",), {"x": 7}) == {"id": "a", "x": 7}
    assert with_key(("a", "b"), {"id": 7, "x": 1}) == {"id": "a-b", "x": 1}
    assert with_key(("a", "b", "c"), {"x": 1}) == {"x": 1, "id": "a-b-c"}


@pytest.mark.parametrize(
    ("judgements", "values"),
    [
        ([{"name": "a", "value": 1}, {"key": "b", "score": 0}], {"a": 1, "b": 0}),
        ([{"name": {"name": "a"}, "mean": 2}, {"metric": "c", "avg": 3}], {"a": 2, "c": 3}),
        ([{"name": "a", "value": 1}, {"name": "a", "value": 2}], {"a": 1}),
        ([{"name": "a", "value": 1}, {"value": 2}], {}),
        ([{"name": "a", "value": None}], {}), ([{"name": 3, "value": 1}], {}),
        ([{"name": 3, "key": "b", "value": 1}], {"b": 1}), (["a"], {}), ([], {}), (None, {}),
    ],
)  # fmt: skip
def test_judgements_by_name(judgements, values):
    assert named_values(judgements) == values
