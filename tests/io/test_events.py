"""What graphs, workflows and programs report and return: read to the same turns in every form."""

import pytest

import known_dialogue as chat
from known_dialogue import ALL, said, turns
from trajscore import io

ASKED, ORDER, SEEN = "Where is order 3?", {"order": 3}, "in Paris"


def lc(kind, key, content="", **more):
    return {"type": kind, "id": key, "content": content, "additional_kwargs": {}, **more}


CALLED = [{"name": "find", "args": ORDER, "id": "c1"}]
ASK, LOOK = lc("human", "m1", ASKED), lc("ai", "m2", "I look.", tool_calls=CALLED)
FOUND, TOLD = lc("tool", "m3", SEEN, tool_call_id="c1"), lc("ai", "m4", "In Paris.")
STATES = [{"messages": [ASK, LOOK, FOUND, TOLD][: k + 1]} for k in range(4)]
NODES = [{"start": {"messages": [ASK]}}, {"agent": {"messages": LOOK}, "planner": None},
         {"tools": {"messages": [FOUND]}}, {"agent": {"messages": [TOLD]}}]  # fmt: skip
CONFIG = {"configurable": {"thread_id": "t1"}}
SNAPSHOTS = [{"values": state, "next": [], "config": CONFIG, "tasks": []} for state in STATES]
PIECES = [
    ASK, lc("AIMessageChunk", "m2", "I "),
    lc("AIMessageChunk", "m2", "look.", tool_call_chunks=[
        {"index": 0, "name": "find", "id": "c1", "args": '{"ord'}]),
    lc("AIMessageChunk", "m2", tool_call_chunks=[{"index": 0, "args": 'er": 3}'}]), FOUND, TOLD,
]  # fmt: skip


def callback(event, run, *parents, **data):
    return {
        "event": f"on_{event}",
        "run_id": run,
        "parent_ids": parents,
        "data": data,
        "name": "find",
    }


CALLBACKS = [
    callback("chain_start", "r1", input={"messages": [["user", ASKED]]}),
    callback("chat_model_end", "r2", "r1", input={"messages": [[ASK]]}, output=LOOK),
    callback("tool_end", "r3", "r1", input=ORDER, output=FOUND),
    callback("chat_model_end", "r4", "r1", input={"messages": [[ASK, LOOK, FOUND]]}, output=TOLD),
]
TASKS = [{"id": "a", "name": "agent", "input": STATES[0], "triggers": []},
         *({"id": str(k), "name": str(k), "result": {"messages": [message]}, "interrupts": []}
           for k, message in enumerate(STATES[-1]["messages"]))]  # fmt: skip
LOGS = {
    "updates": NODES,
    "modes": [["values", STATES[0]], ["updates", NODES[1]], ["values", STATES[3]]],
    "subgraphs": [[["worker:1"], NODES[1]], [["worker:1"], NODES[2]], [[], {"w": STATES[3]}]],
    "version 2": [{"type": "updates", "ns": [], "data": node} for node in NODES],
    "debug": [{"type": "checkpoint", "payload": snapshot} for snapshot in SNAPSHOTS],
    "tasks": TASKS,
    "history, newest first": SNAPSHOTS[::-1],
    "tuples": [[s["values"], [], CONFIG, {}, "", None, []] for s in SNAPSHOTS],
    "checkpoint": [{"config": CONFIG, "checkpoint": {"channel_values": STATES[3]}}],
    "messages": [[piece, {"langgraph_node": "a", "thread_id": "t1"}] for piece in PIECES],
    "callbacks": CALLBACKS,
}


@pytest.mark.parametrize("name", LOGS)
def test_events_and_states(write, name):
    log = LOGS[name]
    record = {"id": "r", "success": True, "chunks": log}
    (run,) = io.read_runs(write("runs.jsonl", [record], lines=True))
    assert (said(run), run.id, run.outcome) == (ALL, "r", 1)
    assert "unmatched_results" not in run.extra
    for path in (write("log.json", log), write("log.jsonl", log, lines=True)):
        (run,) = io.read_runs(path)
        assert (said(run), run.id) == (ALL, "log")
    assert [said(run) for run in io.read_runs(write("logs.json", [log, log]))] == [ALL, ALL]


def test_lines_of_several_runs(write):
    states = [{**state, "messages": state["messages"]} for state in STATES]
    other = [{"messages": [m | {"id": f"x{m['id']}"} for m in s["messages"]]} for s in STATES]
    runs = io.read_runs(write("states.jsonl", [*states, *other], lines=True))
    assert [said(run) for run in runs] == [ALL, ALL]
    named = [{"thread_id": k, "success": k == "a"} | node for k in "ab" for node in NODES]
    runs = io.read_runs(write("updates.jsonl", named, lines=True))
    assert [(said(run), run.id, run.outcome) for run in runs] == [(ALL, "a", 1), (ALL, "b", 0)]


def test_what_cannot_be_read_says_what_to_save(write):
    answer = {"response": {"role": "assistant", "blocks": []}, "current_agent_name": "a"}
    printed = [callback("chat_model_end", "r", output="content='Hi'")]
    for record, words in (({"answer": 1, **answer}, "stream_events"), ({"is_running": 0}, "memory"),
                          ({"a": NODES, "b": NODES}, "2 lists"), (printed, "prints")):  # fmt: skip
        with pytest.raises(ValueError, match=words) as refusal:
            io.read_runs(write("log.json", record))
        assert len(str(refusal.value)) <= 200


RESULTS = {
    "dspy": {"question": ASKED, "trajectory":
        {"thought_0": "I look.", "tool_name_0": "find", "tool_args_0": ORDER,
         "observation_0": SEEN},
        "answer": "In Paris.", "reasoning": "Hm."},
    "crewai": {"raw": "In Paris.", "tasks_output": [
        {"raw": "In Paris.", "messages": [chat.ASK, chat.LOOK, chat.FOUND]}]},
    "crewai, react": {"tasks_output": [{"raw": "In Paris.", "messages": [chat.ASK, chat.agent(
        'I look.\nAction: find\nAction Input: {"order": 3}\nObservation: in Paris'),
        chat.user("Analyze the tool result.")]}]},
    "pydantic ai": {"output": "In Paris.", "_state": {"message_history": [ASK, LOOK, FOUND, TOLD]}},
}  # fmt: skip


@pytest.mark.parametrize("name", RESULTS)
def test_results_of_programs(write, name):
    for record in (RESULTS[name], {"result": RESULTS[name]}):
        (run,) = io.read_runs(write("runs.jsonl", [record | {"success": True}], lines=True))
        assert (said(run), run.outcome) == (ALL, 1)


def test_why_a_run_stopped(write):
    name, event = {"current_agent_name": "a"}, {"author": "a", "actions": {}}
    failure = {"exception": {"exception_message": "Max iterations of 3 reached!"}}
    stop = {"errorCode": "LlmCallsLimitExceededError"}
    spoken = [{"content": {"role": k, "parts": [{"text": k}]}} for k in ("user", "model")]
    for log, reason in (
        (
            [{"input": [ASK], **name}, {"response": LOOK, **name}, {"data": failure}],
            "max_iterations",
        ),
        ([event | more for more in (*spoken, stop)], stop["errorCode"]),
    ):
        (run,) = io.read_runs(write("log.json", log))
        assert (run.stop_reason, run.stop_kind) == (reason, "administrative")
    assert turns(run) == [("user", "user"), ("agent", "model")]
