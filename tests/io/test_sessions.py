"""Files that agents themselves keep, in the shapes that they are documented in or were seen in."""

import json

import pytest

from known_dialogue import ALL, ASK, FOUND, LOOK, TOLD, said
from trajscore import io

# ------------------------------------------------------------------ Claude Code


def claude(kind, name, above, message, **fields):
    return {
        "type": kind,
        "uuid": name,
        "parentUuid": above,
        "sessionId": fields.pop("session", "s1"),
        "isSidechain": fields.pop("side", False),
        "cwd": "/work",
        "message": message,
        **fields,
    }


def answered(name, *content, **fields):
    usage = {"input_tokens": 3, "cache_read_input_tokens": 4, "output_tokens": 2}
    message = {"id": name, "role": "assistant", "model": "m", "content": list(content)}
    return message | {"stop_reason": None, "usage": usage} | fields


USE = {"type": "tool_use", "id": "c1", "name": "find", "input": {"order": 3}}
RESULT = {"type": "tool_result", "tool_use_id": "c1", "content": "in Paris"}
SESSION = [
    {"type": "summary", "summary": "Order 3", "leafUuid": "6"},
    claude("user", "1", None, {"role": "user", "content": "<command-name>/clear</command-name>"}),
    claude("user", "1b", None, {"role": "user", "content": "Where is ordr 3?"}, isMeta=True),
    claude("user", "2", "1", {"role": "user", "content": "Where is ordr 3?"}),
    claude("assistant", "2a", "2", answered("m0", {"type": "text", "text": "What?"})),
    claude("user", "2b", "1", {"role": "user", "content": "Where is order 3?"}),
    claude("assistant", "3", "2b", answered("m1", {"type": "text", "text": "I look."})),
    claude("assistant", "4", "3", answered("m1", USE, stop_reason="tool_use")),
    claude("user", "x", "4", {"role": "user", "content": "Look for it"}, side=True),
    claude("assistant", "y", "x", answered("mx", {"type": "text", "text": "Here"}), side=True),
    claude("user", "5", "4", {"role": "user", "content": [RESULT]}, toolUseResult={"x": 1}),
    claude("assistant", "6", "5", answered("m2", {"type": "text", "text": "In Paris."},
                                           stop_reason="end_turn")),
]  # fmt: skip


def test_claude_code(write):
    (run,) = runs = io.read_runs(write("s1.jsonl", SESSION, lines=True))
    assert said(run) == ALL
    assert [note[:10] for note in runs.notes] == ["6 messages"]  # that are left out
    assert (run.id, run.stop_reason, run.stop_kind) == ("s1", "end_turn", "complete")
    assert (run.meta["input_tokens"], run.meta["output_tokens"]) == (14, 4)
    assert run.extra["n_left_out"] == {"put in": 2, "taken back": 2, "subagent": 2}


def test_a_folder_of_claude_code_is_one_data_set(write):
    other = [{**line, "sessionId": "s2"} for line in SESSION if "sessionId" in line]
    write("logs/agent-1.jsonl", [line for line in SESSION if line.get("isSidechain")], lines=True)
    write("logs/s1.jsonl", SESSION, lines=True)
    write("logs/s2.jsonl", other, lines=True)
    path = write("logs/s3.jsonl", SESSION[:1], lines=True)
    table = write("outcomes.csv", "id,outcome\ns1,1\ns2,0\n")
    runs = io.read_runs(path.parent, outcomes=table)
    assert [(run.id, run.outcome) for run in runs] == [("s1", 1), ("s2", 0)]
    write("projects/-work-a/s1.jsonl", SESSION, lines=True)
    path = write("projects/-work-b/s2.jsonl", other, lines=True)
    assert [run.id for run in io.read_runs(path.parent.parent)] == ["s1", "s2"]


def test_claude_code_that_prints_its_messages(write):
    lines = [{"type": "system", "subtype": "init", "session_id": "s1", "cwd": "/work"}]
    for line in SESSION[5:]:
        side = "c0" if line["isSidechain"] else None
        inner = {"type": line["type"], "message": line["message"], "parent_tool_use_id": side}
        lines.append(inner | {"session_id": "s1"})
    end = {"type": "result", "subtype": "error_max_turns", "total_cost_usd": 0.5, "num_turns": 2}
    (run,) = io.read_runs(write("out.jsonl", [*lines, {**end, "session_id": "s1"}], lines=True))
    assert said(run) == ALL
    assert (run.stop_reason, run.stop_kind, run.meta["cost"]) == (
        "max_turns", "administrative", 0.5,
    )  # fmt: skip


# ------------------------------------------------------------------ Codex


def rollout(kind, payload):
    return {"timestamp": "2026-01-01T00:00:00Z", "type": kind, "payload": payload}


def item(kind, **fields):
    return rollout("response_item", {"type": kind, **fields})


def words(role, text):
    kind = "output_text" if role == "assistant" else "input_text"
    return item("message", role=role, content=[{"type": kind, "text": text}])


ROLLOUT = [
    rollout("session_meta", {"id": "s1", "cwd": "/work", "cli_version": "1"}),
    words("user", "<environment_context>here</environment_context>"),
    rollout("turn_context", {"model": "m"}),
    words("user", "Where is order 3?"),
    rollout("event_msg", {"type": "user_message", "message": "Where is order 3?"}),
    item("reasoning", summary=[{"type": "summary_text", "text": "Hm"}], encrypted_content="x"),
    words("assistant", "I look."),
    item("function_call", name="find", arguments='{"order": 3}', call_id="c1"),
    rollout("event_msg", {"type": "token_count", "info": None}),
    rollout(
        "event_msg",
        {
            "type": "token_count",
            "info": {"last_token_usage": {"input_tokens": 5, "output_tokens": 2}},
        },
    ),
    item("function_call_output", call_id="c1", output="in Paris"),
    words("assistant", "In Paris."),
    rollout("event_msg", {"type": "task_complete", "last_agent_message": "In Paris."}),
]


def test_codex(write):
    path = write("sessions/2026/01/01/rollout-2026-s1.jsonl", ROLLOUT, lines=True)
    (run,) = io.read_runs(path)
    assert said(run) == [("system", "<environment_context>here</environment_context>"), *ALL]
    assert (run.id, run.stop_reason, run.meta["model"]) == ("s1", "completed", "m")
    assert run.steps[1].extra["tokens"] == {"input": 5, "output": 2}
    older = [{"id": "s2", "timestamp": "2026", "instructions": None}]
    older += [line["payload"] for line in ROLLOUT if line["type"] == "response_item"]
    write("sessions/2026/01/02/rollout-2026-s2.jsonl", older, lines=True)
    sub = [rollout("session_meta", {"id": "s3", "source": {"subagent": "review"}}), *ROLLOUT[1:]]
    write("sessions/2026/01/02/rollout-2026-s3.jsonl", sub, lines=True)
    runs = io.read_runs(path.parents[3], outcomes={"s1": 1, "s2": 0})
    assert [(run.id, run.outcome) for run in runs] == [("s1", 1), ("s2", 0)]
    assert said(runs[0]) == said(runs[1])


@pytest.mark.parametrize("more", [{}, {"git": None}])
def test_the_first_line_of_an_older_session_of_codex_tells_it(write, more):
    items = [line["payload"] for line in ROLLOUT if line["type"] == "response_item"]
    head = {"id": "s2", "timestamp": "2026", "instructions": None}
    (run,) = io.read_runs(write("rollout-s2.jsonl", [{**head, **more}, *items], lines=True))
    assert (run.id, run.stop_reason, said(run)[1:]) == ("s2", None, ALL)
    del head["instructions"]
    with pytest.raises(ValueError, match="the format is not known"):
        io.read_runs(write("other.jsonl", [head, *items], lines=True))


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        ({"type": "turn_aborted", "reason": "interrupted"}, "interrupted"),
        ({"type": "turn_aborted", "reason": {"code": 3}}, "error"),
        ({"type": "error", "message": "lost"}, "error"),
        ({"type": "turn_complete"}, "completed"),
        ({"type": "agent_message", "message": "Bye"}, None),
    ],
)
def test_how_a_session_of_codex_ended(write, event, reason):
    lines = [*ROLLOUT[:-1], rollout("event_msg", event)]
    (run,) = io.read_runs(write("rollout-s1.jsonl", lines, lines=True))
    assert (run.stop_reason, said(run)[1:]) == (reason, ALL)
    assert (run.meta["cwd"], run.meta["cli_version"]) == ("/work", "1")


@pytest.mark.parametrize(
    ("end", "reason"),
    [
        ({"type": "turn.failed", "error": {"message": "lost"}}, "error"),
        ({"type": "error"}, "error"),
    ],
)
def test_how_printed_events_of_codex_ended(write, end, reason):
    answer = {"type": "item.completed", "item": {"type": "agent_message", "text": "Hm"}}
    lines = [{"type": "thread.started", "thread_id": "s1"}, answer, end]
    (run,) = io.read_runs(write("out.jsonl", lines, lines=True))
    assert (run.id, run.stop_reason, [step.text for step in run.steps]) == ("s1", reason, ["Hm"])


def test_tokens_of_codex_are_those_of_the_last_turn_before(write):
    def count(tokens):
        info = {"last_token_usage": {"input_tokens": tokens}}
        return rollout("event_msg", {"type": "token_count", "info": info})

    lines = [
        ROLLOUT[0],
        count(100),  # of no turn
        words("user", "Hi"),
        words("assistant", "Yes?"),
        count(5),
        count(50),  # once more for the same turn
        words("user", "Bye"),
        count(500),
        words("assistant", "Bye"),
        count(7),
    ]
    (run,) = io.read_runs(write("rollout-s1.jsonl", lines, lines=True))
    tokens = [step.extra.get("tokens", {}).get("input") for step in run.steps]
    assert tokens == [None, 5, None, 7]
    assert run.meta["input_tokens"] == 12


@pytest.mark.parametrize(("code", "error"), [(0, None), (None, None), (1, True), (-9, True)])
def test_a_command_of_codex_has_failed_where_its_exit_code_says_so(write, code, error):
    shell = {"id": "i1", "type": "command_execution", "command": "ls", "aggregated_output": "a.py"}
    lines = [
        {"type": "thread.started", "thread_id": "s1"},
        {"type": "item.completed", "item": {**shell, "exit_code": code}},
    ]
    (run,) = io.read_runs(write("out.jsonl", lines, lines=True))
    (call,) = run.steps[0].tool_calls
    assert (call.name, call.arguments, call.result, call.error) == ("shell", "ls", "a.py", error)


def test_a_bad_line_of_codex_is_left_out_and_named(write):
    lines = [json.dumps(line) for line in ROLLOUT]
    lines.insert(3, '{"type": ')
    path = write("sessions/2026/01/01/rollout-2026-s1.jsonl", "\n".join(lines))
    with pytest.warns(UserWarning, match=r"\(index 3\): line 4 is not valid JSON"):
        (run,) = io.read_runs(path)
    assert run.id == "s1"


def test_codex_that_prints_its_events(write):
    shell = {"id": "i1", "type": "command_execution", "command": "ls", "status": "completed"}
    shell |= {"aggregated_output": "a.py", "exit_code": 1}
    lines = [
        {"type": "thread.started", "thread_id": "s1"},
        {"type": "item.started", "item": {**shell, "aggregated_output": ""}},
        {"type": "item.completed", "item": {"id": "i0", "type": "agent_message", "text": "Hm"}},
        {"type": "item.completed", "item": shell},
        {"type": "item.completed", "item": {"id": "i2", "type": "agent_message", "text": "Done"}},
        {"type": "turn.completed", "usage": {"input_tokens": 5, "output_tokens": 2}},
    ]
    (run,) = io.read_runs(write("out.jsonl", lines, lines=True))
    assert [step.text for step in run.steps] == ["Hm", "", "Done"]
    (call,) = run.steps[1].tool_calls
    assert (call.name, call.arguments, call.result, call.error) == ("shell", "ls", "a.py", True)
    assert (run.id, run.stop_reason, run.meta["output_tokens"]) == ("s1", "completed", 2)


# ------------------------------------------------------------------ SWE-agent


def test_swe_agent(write):
    history = [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "A demonstration", "is_demo": True},
        {"role": "user", "content": "Fix it."},
        {"role": "assistant", "content": "Look\n```\nopen a.py\n```"},
    ]
    steps = [
        {"thought": "Look", "response": "Look!", "action": "open a.py\n", "observation": "x = 1"},
        {"thought": "Done", "action": "", "observation": None, "state": "{}"},
    ]
    for name, status in (("i1", "submitted"), ("i2", "submitted (exit_cost)"), ("i3", None)):
        info = {"exit_status": status, "model_stats": {"instance_cost": 0.5, "tokens_sent": 9}}
        log = {"trajectory": steps, "history": history, "info": info, "environment": "e"}
        path = write(f"out/{name}/{name}.traj", log)
    write("out/results.json", {"resolved_ids": ["i1"], "unresolved_ids": ["i2"]})
    runs = io.read_runs(path.parents[1])
    assert [(run.id, run.outcome, run.stop_reason) for run in runs] == [
        ("i1", 1, "submitted"),
        ("i2", 0, "exit_cost"),
        ("i3", -1, None),
    ]
    assert said(runs[0]) == [
        ("system", "Be kind."),
        ("user", "Fix it."),
        ("agent", "Look"),
        ("open", "open a.py\n", "x = 1"),
        ("agent", "Done"),
    ]
    assert (runs[0].meta["cost"], runs[0].meta["input_tokens"]) == (0.5, 9)
    write("out/i3/report.json", {"resolved_ids": ["i3"]})  # beside the run
    assert [run.outcome for run in io.read_runs(path.parents[1])] == [1, 0, 1]


def test_mini_swe_agent(write):
    log = {
        "info": {"exit_status": "LimitsExceeded", "submission": ""},
        "messages": [{"role": "system", "content": "Be kind."}, ASK, LOOK, FOUND, TOLD],
        "trajectory_format": "mini-swe-agent-1",
    }
    (run,) = io.read_runs(write("i1.traj.json", log))
    assert said(run) == [("system", "Be kind."), *ALL]
    assert (run.id, run.outcome, run.stop_kind) == ("i1", -1, "administrative")


# ------------------------------------------------------------------ ATIF, with Harbor


def test_harbor_with_several_steps_and_files_that_go_on(write):
    def turn(text, **fields):
        return {"source": "agent", "message": text, **fields}

    def verdict(name, reward, error=None):
        exception = {"exception_type": error} if error else None
        rewards = {"verifier_result": {"rewards": {"reward": reward}}, "exception_info": exception}
        return {"step_name": name, **rewards}

    result = {
        "trial_name": "t1",
        "task_name": "task",
        "verifier_result": {"rewards": {"reward": 0.5}},
    }
    steps = [verdict("one", 1), verdict("two", 0, "ContextWindowExceededError")]
    write("job/t1/result.json", {**result, "step_results": steps})
    head = {"schema_version": "ATIF-v1.8", "session_id": "s"}
    copied = turn("a", is_copied_context=True)
    folder = "job/t1/steps/one/agent"
    goes_on = {**head, "steps": [turn("a")], "continued_trajectory_ref": "trajectory.cont-1.json"}
    write(f"{folder}/trajectory.json", goes_on)
    write(f"{folder}/trajectory.cont-1.json", {**head, "steps": [copied, turn("b")]})
    summary = {**head, "steps": [turn("To sum up")]}
    write(f"{folder}/trajectory.summarization-1-summary.json", summary)
    path = write("job/t1/steps/two/agent/trajectory.json", {**head, "steps": [turn("c")]})
    runs = io.read_runs(path.parents[5], format="atif")
    assert [(run.id, run.task, run.outcome, run.stop_reason) for run in runs] == [
        ("t1/one", "task/one", 1, None),
        ("t1/two", "task/two", -1, "ContextWindowExceededError"),
    ]
    assert [step.text for step in runs[0].steps] == ["a", "b"]
    write("job/t1/agent/trajectory.json", {**head, "steps": [turn("c")]})
    write("job/t1/result.json", {**result, "verifier_result": None, "step_results": steps[:1]})
    assert io.read_runs(path.parents[3] / "agent", format="atif")[0].outcome == 1


def test_results_of_an_observation_that_are_no_list(write):
    turn = {"source": "agent", "message": "x", "observation": {"results": 3}}
    log = {"schema_version": "ATIF-v1.8", "session_id": "s", "steps": [turn]}
    with pytest.raises(ValueError, match="the results of its observation are int, not a list"):
        io.read_runs(write("log.json", log))


# ------------------------------------------------------------------ Gemini CLI


def test_gemini_cli(write):
    common = {"timestamp": "2026-01-01T00:00:00Z"}
    result = {"functionResponse": {"id": "c1", "name": "ls", "response": {"output": "a.txt"}}}
    call = {
        "id": "c1",
        "name": "ls",
        "args": {"path": "."},
        "result": [result],
        "status": "success",
    }
    messages = [
        {"id": "1", "type": "user", "content": "List the files"},
        {"id": "2", "type": "gemini", "content": "", "toolCalls": [call], "thoughts": ["Hm"],
         "tokens": {"input": 10, "output": 5}},
        {"id": "3", "type": "info", "content": "Model changed"},
        {"id": "4", "type": "gemini", "content": [{"text": "There is a.txt"}]},
    ]  # fmt: skip
    log = {"sessionId": "s", "projectHash": "h", "messages": [m | common for m in messages]}
    (run,) = io.read_runs(write("session-1.json", log))
    assert [(step.actor, step.text) for step in run.steps] == [
        ("user", "List the files"), ("agent", ""), ("environment", "Model changed"),
        ("agent", "There is a.txt"),
    ]  # fmt: skip
    (made,) = run.steps[1].tool_calls
    assert (made.name, made.arguments, made.result) == ("ls", {"path": "."}, '{"output": "a.txt"}')
    assert (run.id, run.meta["input_tokens"], run.steps[1].extra["thoughts"]) == ("s", 10, ["Hm"])
