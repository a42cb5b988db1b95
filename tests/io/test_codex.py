"""Sessions of Codex: its lines in both forms, the tokens of each turn, and how a session ends."""

import pytest

from trajscore import io
from trajscore.io.files import LogFile
from trajscore.io.formats.codex import Codex, _messages, _payload, _tokens
from trajscore.io.registry import Head

META = {"type": "session_meta", "payload": {"id": "s", "cwd": "/a", "cli_version": "1", "x": 2}}


def item(kind, **fields):
    return {"type": "response_item", "payload": {"type": kind} | fields}


def said(role, text):
    return item("message", role=role, content=[{"type": "text", "text": text}])


def event(kind, **fields):
    return {"type": "event_msg", "payload": {"type": kind} | fields}


def tokens(n):
    return event("token_count", info={"last_token_usage": {"input_tokens": n, "output_tokens": 1}})


@pytest.fixture
def read(write):
    """Read one session of some lines."""

    def read_one(*lines):
        (run,) = io.read_runs(write("rollout-a.jsonl", lines, lines=True), format="codex")
        return run

    return read_one


def test_a_session_is_the_first_and_only_run_of_its_file(write):
    lines = [META, said("user", "Hi")]
    with pytest.raises(ValueError, match=r"run 's' \(index 0\): it has no turn of the agent"):
        io.read_runs(write("rollout-a.jsonl", lines, lines=True), format="codex")


@pytest.mark.parametrize(
    ("fields", "recognised"),
    [
        (META, True),
        ({"type": "compacted", "payload": {}}, True),
        ({"type": "session_meta", "payload": "x"}, False),
        ({"type": "other", "payload": {}}, False),
        ({"id": 1, "timestamp": 2, "instructions": None}, True),
        ({"id": 1, "timestamp": 2}, False),
        ({"type": "thread.started", "thread_id": "t"}, True),
        ({"type": "thread.started"}, False),
        ({"thread_id": "t"}, False),
    ],
)
def test_first_lines(fields, recognised):
    assert Codex().recognise(Head(fields, listed=True)) == recognised
    assert not Codex().recognise(Head(fields))


def test_a_folder_of_sessions_without_those_of_subagents(write, tmp_path):
    lines = [META, said("user", "Hi"), said("assistant", "Yes")]
    side = [
        {"type": "session_meta", "payload": {"id": "u", "source": {"subagent": "r"}}},
        *lines[1:],
    ]
    write("log/2026/01/rollout-1.jsonl", lines, lines=True)
    write("log/2026/02/rollout-2.jsonl", side, lines=True)
    write("log/history.jsonl", [{"a": 1}], lines=True)
    assert [run.id for run in io.read_runs(tmp_path / "log")] == ["s"]
    own = [{"type": "session_meta", "payload": {"id": "v", "source": "cli"}}, *lines[1:]]
    assert [run.id for run in io.read_runs(write("v.jsonl", own, lines=True))] == ["v"]


def test_what_a_session_holds(read):
    run = read(
        META, {"type": "turn_context", "payload": {"model": "m", "cwd": "/b"}},
        said("user", "<environment_context>x"), said("user", "# AGENTS.md instructions"),
        said("user", "Hi"), said("assistant", "Yes"), event("agent_message", message="Yes"),
        {"type": "compacted", "payload": {"type": "message", "role": "user", "content": "no"}},
    )  # fmt: skip
    assert (run.id, run.stop_reason) == ("s", None)
    meta = {name: run.meta[name] for name in ("cwd", "cli_version", "model")}
    assert meta == {"cwd": "/a", "cli_version": "1", "model": "m"}
    assert [(step.actor, step.text, step.index) for step in run.steps] == [
        ("user", "Hi", 4), ("agent", "Yes", 5),
    ]  # fmt: skip
    assert run.extra["system"] == ["<environment_context>x", "# AGENTS.md instructions"]
    assert read(*([said("user", "Hi"), said("assistant", "Yes")])).id == "rollout-a"


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ([], None),
        ([event("task_complete")], "completed"),
        ([event("turn_complete")], "completed"),
        ([{"type": "turn.completed"}], "completed"),
        ([event("turn_aborted", reason="interrupted")], "interrupted"),
        ([event("turn_aborted", reason={"a": 1})], "error"),
        ([{"type": "turn.failed", "error": {}}], "error"),
        ([{"type": "turn.failed", "payload": {"reason": "x"}}], "x"),
        ([{"type": "turn.completed", "payload": {"a": 1}}], "completed"),
        ([event("error")], "error"),
        ([event("error"), event("task_complete")], "completed"),
    ],
)
def test_stops(read, lines, reason):
    assert read(META, said("user", "Hi"), said("assistant", "Yes"), *lines).stop_reason == reason


def test_tokens_go_to_the_turn_before_them_once(read):
    run = read(
        META, tokens(1), said("user", "Hi"), tokens(2), said("assistant", "One"), tokens(3),
        tokens(4), said("assistant", "Two"), event("token_count", info=None), tokens(5),
    )  # fmt: skip
    assert [step.extra.get("tokens") for step in run.steps] == [
        None, {"input": 3, "output": 1}, {"input": 5, "output": 1},
    ]  # fmt: skip
    assert (run.meta["input_tokens"], run.meta["output_tokens"]) == (8, 2)


def test_calls_and_results(read):
    run = read(
        META, said("user", "Look"),
        item("function_call", call_id="c", name="shell", arguments='{"x": 1}'),
        item("function_call_output", call_id="c", output="file"),
        item("ghost_snapshot", text="no"), said("assistant", "A file"),
    )  # fmt: skip
    (call,) = (call for step in run.steps for call in step.tool_calls)
    assert (call.name, call.arguments, call.result) == ("shell", {"x": 1}, "file")
    assert run.steps[-1].text == "A file"
    assert len(run.steps) == 3


def test_what_a_program_prints(read):
    ran = {"id": "c", "type": "command_execution", "command": "ls", "aggregated_output": "file"}
    run = read(
        {"type": "thread.started", "thread_id": "t"},
        {"type": "item.started", "item": ran},
        {"type": "item.completed", "item": ran | {"exit_code": 0}},
        {"type": "item.completed", "item": {"type": "agent_message", "text": "A file"}},
        {"type": "turn.completed", "usage": {"input_tokens": 7, "output_tokens": 2}},
    )
    assert (run.id, run.stop_reason) == ("t", "completed")
    assert [step.text for step in run.steps] == ["", "A file"]
    (call,) = run.steps[0].tool_calls
    assert (call.name, call.arguments, call.result, call.error) == ("shell", "ls", "file", None)
    assert run.steps[1].extra["tokens"] == {"input": 7, "output": 2}


@pytest.mark.parametrize(("code", "error"), [(0, None), (None, None), (1, True), (-1, True)])
def test_errors_of_commands(code, error):
    call, result = _messages({"type": "command_execution", "id": "c", "exit_code": code})
    assert result["error"] is error
    assert call["tool_calls"][0]["id"] == result["tool_call_id"] == "c"


@pytest.mark.parametrize(
    ("kind", "n"),
    [("message", 1), ("reasoning", 1), ("web_search_call", 1), ("x_call_output", 1), ("todo", 0),
     (None, 0)],
)  # fmt: skip
def test_items_that_are_messages(kind, n):
    assert len(_messages({"type": kind})) == n


def test_only_instructions_in_the_name_of_the_user_are_the_systems():
    text = [{"type": "text", "text": "  <user_instructions>x"}]
    for role, reads_as in (("user", "system"), ("assistant", "assistant")):
        (message,) = _messages({"type": "message", "role": role, "content": text})
        assert message["role"] == reads_as


def test_envelopes():
    assert _payload({"payload": {"a": 1}, "item": {"b": 2}}) == {"a": 1}
    assert _payload({"item": {"b": 2}}) == {"b": 2}
    assert _payload({"payload": "x"}) == {"payload": "x"}
    assert _tokens({"usage": {"input_tokens": 1}})["input"] == 1
    assert _tokens({"info": {"last_token_usage": {"input_tokens": 2}}, "usage": {}})["input"] == 2
    assert _tokens({"info": {}}) == _tokens({}) == {}


def test_values_that_are_no_lines_are_runs_that_cannot_be_read(write):
    for name, content, expected in (
        ("a.json", {"a": 1}, [(0, 1)]), ("b.jsonl", "3\n4\n", [(0, 3), (1, 4)]),
    ):  # fmt: skip
        file = LogFile(write(name, content))
        assert [(place.index, line) for place, line in Codex().runs(file, None)] == expected


def test_tokens_after_the_first_line(read):
    run = read(said("assistant", "One"), tokens(3), said("assistant", "Two"))
    assert [(step.index, step.extra.get("tokens")) for step in run.steps] == [
        (0, {"input": 3, "output": 1}), (2, None),
    ]  # fmt: skip
