"""What graphs, workflows and programs report and return: read to the same turns in every form."""

import json

import pytest

import known_dialogue as chat
from known_dialogue import ALL, said
from trajscore import io

ASKED, ORDER, CONFIG = "Where is order 3?", {"order": 3}, {"configurable": {"thread_id": "t1"}}
CALLED = [{"name": "find", "args": ORDER, "id": "c1"}]


def lc(kind, key, content="", **more):
    return {"type": kind, "id": key, "content": content, "additional_kwargs": {}, **more}


def callback(event, *parents, **data):
    about = {"run_id": "r", "parent_ids": parents, "name": "find"}
    return about | {"event": f"on_{event}", "data": data}


def at(key, above=None):
    keys = {"config": key, "parent_config": above}
    return {name: {"configurable": {"checkpoint_id": k}} for name, k in keys.items()}


# fmt: off
ASK, LOOK = lc("human", "m1", ASKED), lc("ai", "m2", "I look.", tool_calls=CALLED)
FOUND, TOLD = lc("tool", "m3", "in Paris", tool_call_id="c1"), lc("ai", "m4", "In Paris.")
TALK = [ASK, LOOK, FOUND, TOLD]
CHAT = [chat.ASK, chat.LOOK, chat.FOUND, chat.TOLD]
STATES = [{"messages": TALK[: k + 1]} for k in range(4)]
NODES = [{"a": {"messages": LOOK if message is LOOK else [message]}, "b": None} for message in TALK]
SNAPSHOTS = [{"values": state, "next": [], "config": CONFIG, "tasks": []} for state in STATES]
PIECES = [
    ASK, *(lc("AIMessageChunk", "m2", word) for word in ("I ", "look.")),
    *(lc("AIMessageChunk", "m2", tool_call_chunks=[{"index": 0, "args": half} | more])
      for half, more in (('{"ord', {"name": "find", "id": "c1"}), ('er": 3}', {}))), FOUND, TOLD,
]
LOGS = {
    "updates": NODES,
    "modes": [["values", STATES[0]], ["updates", NODES[1]], ["values", STATES[3]]],
    "subgraphs": [[["worker:1"], NODES[1]], [["worker:1"], NODES[2]], [[], {"w": STATES[3]}]],
    "version 2": [{"type": "updates", "ns": [], "data": node} for node in NODES],
    "debug": [{"type": "checkpoint", "payload": snapshot} for snapshot in SNAPSHOTS],
    "tasks": [{"id": "0", "name": "a", "input": STATES[0], "triggers": []},
              *({"id": message["id"], "name": "a", "result": {"messages": [message]},
                 "interrupts": []} for message in TALK)],
    "history, newest first": SNAPSHOTS[::-1],
    "tuples": [[s["values"], [], CONFIG, {}, "", None, []] for s in SNAPSHOTS],
    "history, gone back": [SNAPSHOTS[3] | at("4", "1"), SNAPSHOTS[1] | at("1"),
                           {"values": {"messages": [ASK, TOLD]}, "next": []} | at("2", "1")],
    "lines": [{"run_id": "log", "chunk": state} for state in (STATES[0], *STATES)],
    "checkpoint": [{"config": CONFIG, "checkpoint": {"channel_values": STATES[3]}}],
    "messages": [[piece, {"langgraph_node": "a", "thread_id": "t1"}] for piece in PIECES],
    "callbacks": [
        callback("chain_start", input={"messages": [["user", ASKED]]}),
        callback("chat_model_end", "r", input={"messages": [[ASK]]}, output=LOOK),
        callback("tool_end", "r", input=ORDER, output=FOUND),
        callback("chat_model_end", "r", input={"messages": [[ASK, LOOK, FOUND]]}, output=TOLD)],
}
RESULTS = {
    "dspy": {"question": ASKED, "trajectory": {
        "thought_0": "I look.", "tool_name_0": "find", "tool_args_0": ORDER,
        "observation_0": "in Paris"}, "answer": "In Paris.", "reasoning": "Hm."},
    "dspy, evaluated": {"example": {"question": ASKED, "answer": "?", "gold": "?"}, "prediction": {
        "history": [{"thought": "I look.", "tool_name": "find", "tool_args": ORDER,
                     "observation": "in Paris"}], "answer": "In Paris."}},
    "dspy, spread": {"question": ASKED, "thought_0": "I look.", "tool_name_0": "find",
        "tool_args_0": ORDER, "observation_0": "in Paris", "answer": "In Paris."},
    "crewai, a task": {"raw": "In Paris.", "description": "", "messages": [
        chat.ASK, chat.LOOK, chat.FOUND]},
    "autogen, streamed": {"messages": [*CHAT, {"messages": CHAT, "stop_reason": None}]},
    "crewai": {"tasks_output": [
        {"raw": "In Paris.", "messages": [chat.ASK, chat.LOOK, chat.FOUND]}]},
    "crewai, react": {"tasks_output": [{"raw": "In Paris.", "messages": [chat.ASK, chat.agent(
        'I look.\nAction: find\nAction Input: {"order": 3}\nObservation: in Paris\n\n\nYou ONLY '
        'have access to the following tools: f\nAction Input: x\nObservation: y'),
        chat.user("Analyze the tool result.")]}]},
    "pydantic ai": {"output": "In Paris.", "_state": {"message_history": TALK}},
}
# fmt: on


@pytest.mark.parametrize("name", LOGS)
def test_events_and_states(write, name):
    log = LOGS[name]
    record = {"id": "r", "success": True, "chunks": log}
    (run,) = io.read_runs(write("runs.jsonl", [record], lines=True))
    assert (said(run), run.id, run.outcome) == (ALL, "r", 1)
    for path in (write("log.json", log), write("log.jsonl", log, lines=True)):
        assert [(said(run), run.id) for run in io.read_runs(path)] == [(ALL, "log")]
    assert [said(run) for run in io.read_runs(write("logs.json", [log, log]))] == [ALL, ALL]


def test_runs_of_one_file(write):
    runs = [{"run_id": k, "success": k == "a", "log": NODES} for k in "ab"]
    texts = [run | {"log": json.dumps(NODES)} for run in runs]
    columns = {name: {k: run[name] for k, run in enumerate(runs)} for name in runs[0]}
    for form in (runs, texts, {"runs": runs}, {"schema": {"n": 1}, "data": runs}, columns,
                 dict(enumerate(runs))):  # fmt: skip
        found = io.read_runs(write("log.json", form))
        assert [(said(run), run.id, run.outcome) for run in found] == [(ALL, "a", 1), (ALL, "b", 0)]


@pytest.mark.parametrize("name", RESULTS)
def test_results_of_programs(write, name):
    for record in (RESULTS[name], {"result": RESULTS[name]}):
        (run,) = io.read_runs(write("runs.jsonl", [record | {"success": True}], lines=True))
        assert (said(run), run.outcome) == (ALL, 1)


def test_lines_of_several_runs(write):
    other = [{"messages": [m | {"id": f"x{m['id']}"} for m in s["messages"]]} for s in STATES]
    runs = io.read_runs(write("states.jsonl", [*STATES, *other], lines=True))
    assert [said(run) for run in runs] == [ALL, ALL]
    named = [{"thread_id": k, "success": k == "a"} | node for k in "ab" for node in NODES]
    runs = io.read_runs(write("updates.jsonl", named, lines=True))
    assert [(said(run), run.id, run.outcome) for run in runs] == [(ALL, "a", 1), (ALL, "b", 0)]


def test_what_is_refused_or_stopped(write):
    name, event = {"current_agent_name": "a"}, {"author": "a", "actions": {}}
    printed = [callback("chat_model_end", output="content='Hi'")]
    for record, words in (({"answer": 1, "response": LOOK, **name}, "stream_events"),
                          ({"is_running": 0}, "memory"), (printed, "prints"),
                          ({"r": {"status": "started", "task_name": None}}, "kickoff"),
                          ({"log": [{"messages": 0, "model_type": 0}]}, "toDict"),
                          ({"messages": [chat.user("[[ ## trajectory ## ]]")], "model_type": "",
                            "outputs": ["x"]}, "toDict"),
                          ([chat.user("\nCurrent Task: x")], "kickoff"),
                          ([{"run_id": 1, "role": "user", "content": "x"}, {"run_id": 1, "index": 0,
                            "type": "content_block_start"}], "get_final_message"),
                          ({"columns": [], "index": [], "data": [[1]]}, "'records'"),
                          ({"ids": ["a"], "conversations": [NODES]}, "on a line, with its id"),
                          ({"log": [{"tool_name": 1, "tool_id": 1, "tool_output": {}}]}, "stream"),
                          ({"a": NODES, "b": NODES}, "2 lists")):  # fmt: skip
        with pytest.raises(ValueError, match=words) as refusal:
            io.read_runs(write("log.json", record))
        assert len(str(refusal.value)) <= 200
    failure = {"data": {"exception": {"exception_message": "Max iterations of 3 reached!"}}}
    stop = {"errorCode": "LlmCallsLimitExceededError"}
    spoken = [{"content": {"role": k, "parts": [{"text": k}]}} for k in ("user", "model")]
    for log, reason in (
        ([{"input": [ASK], **name}, {"response": LOOK, **name}, failure], "max_iterations"),
        ([event | more for more in (*spoken, stop)], stop["errorCode"]),
    ):
        (run,) = io.read_runs(write("log.json", log))
        assert (run.stop_reason, run.stop_kind) == (reason, "administrative")
