"""JSON that no format recognises is refused: what was found, what is nearest, how to name parts."""

import pytest

from refused import refused
from trajscore import io


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


FOLDER = "a folder with a long name/" * 6
CHAT = {"id": "run-" * 20, "messages": [{"role": "assistant", "content": "Hi"}]}
LONG = {f"{name}_of_a_long_name_in_this_log": 1 for name in ("grade", "verdict", "reward")}
SPAN = {"traceId": "t", "spanId": "s", "name": "n", "attributes": {"gen_ai.operation.name": "chat"}}
REFUSED = [
    ("a.json", "", {}), ("a.json", "[{", {}), ("a.json", "3", {}), ("a.json", "\xe9", {}),
    ("a.json", [], {}), ("a.csv", "a,b\n1,2\n", {}), ("a.jsonl", '{"a": 1}\n{"b', {}),
    ("a.json", [CHAT], {"format": "tau2"}), ("a.json", [CHAT], {"format": "atif"}),
    ("a.json", [CHAT], {"format": "otel"}), ("a.json", [{"messages": []}], {}),
    ("a.json", [CHAT | LONG], {"outcome": "x"}), ("a.json", [CHAT], {"confidence": "x" * 90}),
    ("a.json", [CHAT], {"stop_reason": "x"}), ("a.json", [CHAT], {"roles": "x=agent"}),
    ("a.json", [CHAT | {"outcome": [1, 0, 1]}], {"outcome": "outcome"}),
    ("a.json", [CHAT | {"verdict": f"word {k}" * 9} for k in range(20)], {"outcome": "verdict"}),
    ("a.json", [CHAT | {"outcome": "x" * 1000}], {}),
    ("a.json", [CHAT | {"passed": 7, "failed": 2}], {}), ("a.json", [CHAT], {"id": "x" * 99}),
    ("a.json", [{"messages": [{"role": f"somebody else {k}"} for k in range(9)]}], {}),
    ("a.json", [{"messages": [CHAT["messages"][0] | {"logprobs": [1.5]}]}], {}),
    ("a.json", [SPAN], {}), ("a.jsonl", "[1]\n" * 9, {"fields": {"text": "x"}}),
    ("a.jsonl", '{"a": 1}\n' * 9, {"fields": {"text": "x"}}),
    ("a.json", {"simulations": [{"id": "a"}], "info": 1}, {}),
    ("a.json", {"eval": 1, "x" * 99: 2}, {}),
    ("a.traj", {"info": 3}, {}), ("a.json", {"steps": 3, "agent": {}}, {}),
    ("a.json", {f"{name} of a long name": [1] for name in "abcdef"}, {}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "log", "options"), REFUSED)
def test_a_refusal_is_one_short_sentence_that_names_the_file_once(write, name, log, options):
    path = write(FOLDER + name, log)
    if log == "\xe9":
        path.write_bytes(b'["\xe9"]')
    said = refused(path, **options)
    assert len(said) <= 200
    assert said.count(name) == 1, said
    assert "\n" not in said
    assert "{arg" not in said
    assert len(said) > 60


def test_a_log_without_outcomes_is_refused_in_one_short_sentence(write):
    path = write("a.json", [CHAT | dict.fromkeys(LONG, k) | {"id": str(k)} for k in (0, 1)])
    for options in ({}, {"outcomes": {"other " * 20: 1}}):
        with pytest.raises(ValueError, match=r"no run has an outcome") as caught:
            io.outcomes(io.read_runs(path, **options))
        assert len(str(caught.value)) <= 200, str(caught.value)
