"""JSON that no format recognises is refused: what was found, what is nearest, how to name parts."""

from pathlib import Path

import pytest

from trajscore import io
from trajscore.core.errors import ArgumentError
from trajscore.io._unknown import refuse_partial, unknown_json

FORMATS = {"a": ("spans", "x", "y"), "b": ("runs", "z")}
TURNS = [{"author": "bot", "say": f"Step {k} of the plan."} for k in range(3)]


def refused(record, problem=""):
    return str(unknown_json(Path("log.json"), record, FORMATS, problem))


def test_a_refusal_says_what_was_found_and_how_to_name_the_parts():
    text = refused({"id": 1, "events": TURNS})
    assert text.startswith("log.json: the format is not known; ")
    assert "has the fields 'id', 'events'" in text
    assert "as format (a, b), or" in text
    assert "fields='steps=events,text=NAME', where an item of 'events' has 'author', 'say'" in text
    assert refused({"say": "x"}).endswith("fields='text=NAME'")
    assert refused({"n": 1}, "it is empty").startswith("log.json: it is empty; ")


def test_the_nearest_format_and_the_keys_that_are_missing():
    assert "nearest format is a, for 'spans', 'x', but there is no 'y'" in refused(
        {"spans": 1, "x": 2}
    )
    assert "nearest format is b, for 'runs', 'z'." in refused({"runs": 1, "z": 2})
    assert "nearest" not in refused({"spans": 1})


def test_a_file_without_objects():
    assert "no JSON object could be read" in refused({})


@pytest.mark.parametrize(
    "lines",
    [
        [{"id": k, "events": TURNS} for k in range(2)],
        [{"0": {"turn_history": {"actions": ["ls"]}}}],
        [{"trajectory": {"thought_0": "I look", "tool_name_0": "find"}, "answer": "In Paris."}],
        [{"mapping": {"a": {"message": None, "parent": None}}}],
        [{"agent": {"messages": [{"role": "assistant", "content": "Hi there."}]}}],
    ],
)
def test_other_json_is_refused(write, lines):
    with pytest.raises(ArgumentError, match="the format is not known"):
        io.read_runs(write("log.jsonl", lines, lines=True))


@pytest.mark.parametrize(
    ("item", "kind"),
    [
        ({"span_id": 1, "root_span_id": 1, "input": "Hi"}, "spans of a trace"),
        ({"object": "trace.span", "span_data": {}}, "spans of a trace"),
        ({"op_name": "x", "trace_id": 1, "inputs": {}}, "calls of a model"),
        ({"output": [], "usage": {}, "response_id": None}, "answers without the turns"),
        ({"new_agent": 1, "type": 2}, "events of a program"),
        ({"choices": [{"delta": {}}]}, "pieces of answers"),
        ({"type": "response.created", "sequence_number": 0}, "pieces of answers"),
        ({"type": "message_start", "message": {}}, "pieces of answers"),
    ],
)
def test_what_holds_too_little_of_a_run_is_refused(write, item, kind):
    with pytest.raises(ValueError, match=f"holds {kind}.*save the messages of each whole run"):
        io.read_runs(write("log.jsonl", [item], lines=True))


@pytest.mark.parametrize("item", [3, [], {}, {"choices": [{"message": {}}]}, {"messages": []}])
def test_what_may_be_a_run_is_not_refused(item):
    refuse_partial(Path("log.json"), item)
