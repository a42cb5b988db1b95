"""JSON that no format recognises is refused: what was found, what is nearest, how to name parts."""

import pytest

from trajscore import io


def refused(path):
    with pytest.raises(ValueError) as caught:
        io.read_runs(path)
    return str(caught.value)


def test_the_nearest_format_and_the_keys_that_are_missing(write):
    said = refused(write("log.json", {"spans": [], "info": {}}))
    for named in ("it has 'spans', 'info'", "the nearest is mlflow, but there is no 'data'"):
        assert named in said
    for record in (
        {"0": {"turn_history": {"actions": ["ls"]}}}, {"mapping": {"a": {"message": None}}},
        {"data": {"thought_0": "I look", "tool_name_0": "find"}, "answer": "In Paris."},
        {"span_id": 1, "root_span_id": 1, "input": "Hi"}, {"object": "trace.span", "span_data": {}},
        {"op_name": "x", "trace_id": 1, "inputs": {}}, {"new_agent": 1, "type": 2},
        {"output": [{"type": "message", "role": "assistant", "content": []}], "usage": {}},
        {"a" * 50: 1, "b" * 50: [{"c": 1}], "c" * 50: 1},
        {"type": "response.created", "sequence_number": 0},
    ):  # fmt: skip
        path = write("log.jsonl", [record], lines=True)
        said = refused(path).removeprefix(str(path.parent))
        assert "the format is not known" in said
        assert "name its parts, fields=" in said
        assert len(said) <= 200, said
    with pytest.raises(ValueError, match="'tau'.*did you mean"):
        io.read_runs(write("log.json", {}), format="tau")
    assert "log.json: no JSON object" in refused(write("log.json", [3]))
    with pytest.raises(ValueError, match="holds no message"):
        io.read_runs(write("log.jsonl", [{"choices": [{"delta": {}}]}], lines=True))
