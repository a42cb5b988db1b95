"""One list of usual names, for tables, chats and JSON lines alike."""

import pandas as pd
import pytest

from trajscore import io
from trajscore.core.errors import ArgumentError
from trajscore.io.fields import USUAL, Fields, dig, scalar, usual_names
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
