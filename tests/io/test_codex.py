"""Sessions of Codex: its lines in both forms, the tokens of each turn, and how a session ends."""

from known_dialogue import ALL, said, turns
from trajscore import io

META = {"type": "session_meta", "payload": {"id": "s", "cwd": "/a", "cli_version": "1", "x": 2}}
NOTICE = "<environment_context>here"


def item(kind, **fields):
    return {"type": "response_item", "payload": {"type": kind} | fields}


def words(role, text):
    return item("message", role=role, content=[{"type": "text", "text": text}])


def event(kind, **fields):
    return {"type": "event_msg", "payload": {"type": kind} | fields}


def tokens(n):
    return event("token_count", info={"last_token_usage": {"input_tokens": n, "output_tokens": 1}})


HI, YES = words("user", "Hi"), words("assistant", "Yes")
ROLLOUT = [
    META, words("user", NOTICE), {"type": "turn_context", "payload": {"model": "m", "cwd": "/b"}},
    words("user", "Where is order 3?"), event("user_message", message="Where is order 3?"),
    item("reasoning", summary=[{"type": "summary_text", "text": "Hm"}], encrypted_content="x"),
    words("assistant", "I look."),
    item("function_call", name="find", arguments='{"order": 3}', call_id="c1"),
    event("token_count", info=None), tokens(5), item("ghost_snapshot", text="no"),
    item("function_call_output", call_id="c1", output="in Paris"), words("assistant", "In Paris."),
    {"type": "compacted", "payload": {"type": "message", "role": "user", "content": "no"}},
]  # fmt: skip


def read(write, *lines):
    (run,) = io.read_runs(write("rollout-a.jsonl", lines, lines=True), format="codex")
    return run


def test_a_session_and_its_folder(write):
    path = write("sessions/2026/01/01/rollout-2026-s.jsonl", ROLLOUT, lines=True)
    (run,) = io.read_runs(path)
    assert said(run) == [("system", NOTICE), *ALL]
    assert (run.id, run.stop_reason, run.meta["model"]) == ("s", None, "m")
    assert (run.meta["cwd"], run.meta["cli_version"]) == ("/a", "1")
    assert [step.index for step in run.steps] == [1, 2, 6]
    assert run.steps[1].extra["tokens"] == {"input": 5, "output": 1}
    items = [one for one in ROLLOUT if one["type"] == "response_item"]
    older = [META | {"payload": {"id": "s2"}}, *items]
    write("sessions/2026/01/02/rollout-2026-s2.jsonl", older, lines=True)
    side = [{"type": "session_meta", "payload": {"id": "s3", "source": {"subagent": "review"}}}]
    write("sessions/2026/01/02/rollout-2026-s3.jsonl", side + ROLLOUT[1:], lines=True)
    write("sessions/history.jsonl", [{"a": 1}], lines=True)
    runs = io.read_runs(path.parents[3], outcomes={"s": 1, "s2": 0})
    assert [(run.id, run.outcome) for run in runs] == [("s", 1), ("s2", 0)]
    assert said(runs[0]) == said(runs[1])


ENDS = [
    ([], None), ([event("task_complete")], "completed"), ([event("turn_complete")], "completed"),
    ([{"type": "turn.completed"}], "completed"), ([event("agent_message", message="Bye")], None),
    ([event("turn_aborted", reason="interrupted")], "interrupted"),
    ([event("turn_aborted", reason={"a": 1})], "error"), ([event("error")], "error"),
    ([{"type": "turn.failed", "error": {}}], "error"), ([{"type": "error"}], "error"),
    ([{"type": "turn.failed", "payload": {"reason": "x"}}], "x"),
    ([{"type": "turn.completed", "payload": {"a": 1}}], "completed"),
    ([event("error"), event("task_complete")], "completed"),
    # the stop of a turn ends with the next one
    ([event("task_complete"), HI, YES], None), ([event("error"), event("task_started")], None),
    ([{"type": "turn.completed"}, {"type": "turn.started"}], None),
    ([event("task_complete"), words("user", "<turn_aborted>")], "completed"),
]  # fmt: skip


def test_how_a_session_ended(write):
    for lines, reason in ENDS:
        assert read(write, META, HI, YES, *lines).stop_reason == reason, lines


def test_tokens_are_those_of_the_last_turn_before(write):
    run = read(write, META, tokens(1), HI, tokens(2), YES, tokens(3), tokens(4), HI, tokens(9), YES,
               event("token_count", info=None), tokens(5))  # fmt: skip
    counts = [step.extra.get("tokens", {}).get("input") for step in run.steps]
    assert (counts, run.meta["input_tokens"]) == ([None, 3, None, 5], 8)
    first = read(write, YES, tokens(3), words("assistant", "Two"))
    assert [step.extra.get("tokens") for step in first.steps] == [{"input": 3, "output": 1}, None]
    assert first.id == "rollout-a"


def test_instructions_in_the_name_of_the_user(write):
    texts = "  <user_instructions>x", "# AGENTS.md instructions"
    lines = [words("user", text) for text in texts]
    run = read(write, *lines, words("assistant", "<user_instructions>"))
    assert run.extra["system"] == [*texts]
    assert turns(run) == [("agent", "<user_instructions>")]


def test_what_a_program_prints(write):
    ran = {"id": "c", "type": "command_execution", "command": "ls", "aggregated_output": "file"}
    for code, error in ((0, None), (None, None), (1, True), (-9, True)):
        run = read(
            write,
            {"type": "thread.started", "thread_id": "t"},
            {"type": "item.started", "item": ran},
            {"type": "item.completed", "item": {"type": "agent_message", "text": "Hm"}},
            {"type": "item.completed", "item": ran | {"exit_code": code}},
            {"type": "item.completed", "item": {"type": "todo"}},
            {"type": "item.completed", "item": {"type": "agent_message", "text": "A file"}},
            {"type": "turn.completed", "usage": {"input_tokens": 7, "output_tokens": 2}},
        )
        assert (run.id, run.stop_reason) == ("t", "completed")
        assert turns(run) == [("agent", "Hm"), ("agent", ""), ("agent", "A file")]
        (call,) = run.steps[1].tool_calls
        assert (call.name, call.arguments, call.result) == ("shell", "ls", "file")
        assert call.error is error, code
        assert run.steps[2].extra["tokens"] == {"input": 7, "output": 2}


BACK = "thread_rolled_back"
TAKEN_BACK = [
    ([HI, YES, event("task_complete"), event("task_started"), words("user", "b"), YES,
      event(BACK, num_turns=1)], "Hi Yes", "completed", 2),
    ([HI, YES, words("user", "b"), words("user", "c"), event(BACK, num_turns=2),
      words("user", "d"), YES], "Hi Yes d Yes", None, 2),
    ([HI, YES, event(BACK, num_turns=0), event(BACK, num_turns=3), words("user", "e"), YES],
     "e Yes", None, 2),
]  # fmt: skip


def test_turns_that_were_taken_back(write):
    for lines, texts, reason, n in TAKEN_BACK:
        run = read(write, META, words("user", NOTICE), *lines, tokens(4))
        assert " ".join(step.text for step in run.steps) == texts, lines
        assert (run.stop_reason, run.extra["n_left_out"]["taken back"]) == (reason, n), lines


def test_a_fork_has_its_own_meta(public_file):
    ended = [(run.id, run.stop_reason, run.meta["cwd"])
             for run in io.read_runs(public_file("field", "codex_restart"))]  # fmt: skip
    assert ended == [("C", None, "/w/C"), ("P", "completed", "/w/P")]
