"""JSON that no format recognises is refused: what was found, what is nearest, how to name parts."""

import pytest

from trajscore import io


def refused(path):
    with pytest.raises(ValueError) as caught:
        io.read_runs(path)
    return str(caught.value)


def test_the_nearest_format_and_the_keys_that_are_missing(write):
    said = refused(write("log.json", {"spans": [], "info": {}}))
    for named in ("nearest format is mlflow", "'info', 'spans'", "no 'data'"):
        assert named in said
    for record in (
        {"spans": [], "say": 1}, {"0": {"turn_history": {"actions": ["ls"]}}},
        {"mapping": {"a": {"message": None, "parent": None}}},
        {"trajectory": {"thought_0": "I look", "tool_name_0": "find"}, "answer": "In Paris."},
    ):  # fmt: skip
        said = refused(write("log.jsonl", [record], lines=True))
        assert "the format is not known" in said
        assert "the nearest format" not in said
    with pytest.raises(ValueError, match="'tau'.*did you mean"):
        io.read_runs(write("log.json", {}), format="tau")
    assert "log.json: no JSON object" in refused(write("log.json", [3]))


def test_what_holds_too_little_of_a_run_is_refused(write):
    for item, kind in [
        ({"span_id": 1, "root_span_id": 1, "input": "Hi"}, "spans of a trace"),
        ({"object": "trace.span", "span_data": {}}, "spans of a trace"),
        ({"op_name": "x", "trace_id": 1, "inputs": {}}, "calls of a model"),
        ({"output": [], "usage": {}, "response_id": None}, "answers without the turns"),
        ({"new_agent": 1, "type": 2}, "events of a program"),
        ({"choices": [{"delta": {}}]}, "pieces of answers"),
        ({"type": "response.created", "sequence_number": 0}, "pieces of answers"),
        ({"type": "message_start", "message": {}}, "pieces of answers"),
    ]:
        said = refused(write("log.jsonl", [item], lines=True))
        assert f"holds {kind}" in said
        assert "save the messages" in said
