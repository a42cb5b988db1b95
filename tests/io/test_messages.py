"""One dialogue as many libraries write it, and every odd message: read to the same turns."""

import json

import numpy as np
import pytest

from known_dialogue import ALL, ASK, FOUND, LOOK, TOLD, agent, said, tool, user
from trajscore import io

ASKED, ORDER = "Where is order 3?", {"order": 3}


def text(words):
    return {"type": "text", "text": words}


def block(words):
    return {"block_type": "text", "text": words}


def lc(name, **fields):
    """Return a message as LangChain's dumps writes it."""
    path = ["langchain", "schema", "messages", name]
    return {"lc": 1, "type": "constructor", "id": path, "kwargs": {"content": "", **fields}}


def pydantic(kind, *parts):
    return {"kind": kind, "parts": [{"part_kind": part, **more} for part, more in parts]}


def adk(role, *parts, **more):
    return {"author": "a", "actions": {}, "content": {"role": role, "parts": list(parts)}} | more


def sdk(**block):
    return {"type": "AssistantMessage", "message_id": "m", "content": [block]}


def step(words, name=None, result=None, **more):
    """Return a step of smolagents' memory."""
    call = {"id": "c1", "type": "function", "function": {"name": name, "arguments": ORDER}}
    fields = {"step_number": 1, "model_output": words, "tool_calls": [call] if name else []}
    return fields | {"observations": result, "error": None, "model_output_message": None} | more


BLOCKS = [
    ASK,
    {"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm."}, text("I look."),
     {"type": "tool_use", "id": "c1", "name": "find", "input": ORDER}]},
    {"role": "user", "content":
     [{"type": "tool_result", "tool_use_id": "c1", "content": "in Paris"}]},
    {"role": "assistant", "content": [text("In Paris.")]},
]  # fmt: skip
ITEMS = [
    {"type": "message", "role": "assistant", "content":
     [{"type": "output_text", "text": "I look."}]},
    {"type": "function_call", "call_id": "c1", "name": "find", "arguments": '{"order": 3}'},
    {"type": "function_call_output", "call_id": "c1", "output": "in Paris"},
    {"type": "message", "role": "assistant", "content":
     [{"type": "output_text", "text": "In Paris."}]},
]  # fmt: skip
FORMS = {
    "openai": [ASK, LOOK, FOUND, TOLD], "anthropic": BLOCKS,
    "responses": [ASK, {"type": "reasoning", "summary": [text("Hm.")]}, *ITEMS],
    "agents sdk": [ASK, *({"type": f"{item['type']}_item", "raw_item": item} for item in ITEMS)],
    "smolagents": [{"task": ASKED, "task_images": None}, step("I look.", "find", "in Paris"),
     step("In Paris.")],
    "smolagents, in words": [ASK, {"role": "assistant", "content": [text("I look.")]},
     {"role": "tool-call", "content": [text("Calling tools:\n[{'id': 'c1', 'type': 'function', "
     "'function': {'name': 'find', 'arguments': {'order': 3}}}]")]}, {"role": "tool-response",
     "content": [text("Observation:\nin Paris")]}, {"role": "assistant", "content": "In Paris."}],
    "langchain": [{"type": "human", "content": ASKED},
     {"type": "ai", "content": "I look.", "tool_calls":
     [{"name": "find", "args": ORDER, "id": "c1", "type": "tool_call"}]},
     {"type": "tool", "content": "in Paris", "tool_call_id": "c1", "name": "find"},
     {"type": "AIMessageChunk", "content": "In Paris."}],
    "langchain, serialised": [lc("HumanMessage", content=ASKED),
     lc("AIMessage", content="I look.", tool_calls=[{"name": "find", "args": ORDER, "id": "c1"}]),
     lc("ToolMessage", content="in Paris", tool_call_id="c1"),
     lc("AIMessageChunk", content="In Paris.")],
    "genai": [{"role": "user", "parts": [{"type": "text", "content": ASKED}]},
     {"role": "assistant", "parts": [{"type": "text", "content": "I look."},
     {"type": "tool_call", "id": "c1", "name": "find", "arguments": ORDER}]},
     {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1",
     "response": "in Paris"}]},
     {"role": "assistant", "parts": [{"type": "text", "content": "In Paris."}]}],
    "google": [{"role": "user", "parts": [{"text": "Where is "}, {"text": "order 3?"}]},
     {"role": "model", "parts": [{"text": "Hm.", "thought": True}, {"text": "I look."},
     {"functionCall": {"id": "c1", "name": "find", "args": ORDER}}]},
     {"role": "user", "parts": [{"functionResponse":
     {"id": "c1", "name": "find", "response": "in Paris"}}]},
     {"role": "model", "parts": [{"text": "In Paris."}]}],
    "google adk": [adk("user", {"text": ASKED}), adk("model", {"text": "I lo"}, partial=True),
     adk("model", {"text": "I look."}, {"function_call": {"name": "find", "args": ORDER}}),
     adk("user", {"function_response": {"name": "find", "response": "in Paris"}}), adk("model")
     | {"content": None}, adk("model", {"text": "In Paris."})],
    "bedrock": [{"role": "user", "content": [{"text": ASKED}]},
     {"role": "assistant", "content": [{"text": "I look."},
     {"toolUse": {"toolUseId": "c1", "name": "find", "input": ORDER}}]},
     {"role": "user", "content": [{"toolResult":
     {"toolUseId": "c1", "content": [{"text": "in Paris"}]}}]},
     {"role": "assistant", "content": [{"text": "In Paris."}]}],
    "pydantic ai": [pydantic("request", ("user-prompt", {"content": ASKED})),
     pydantic("response", ("text", {"content": "I look."}),
     ("tool-call", {"tool_name": "find", "args": '{"order": 3}', "tool_call_id": "c1"})),
     pydantic("request", ("tool-return", {"tool_name": "find", "content": "in Paris",
     "tool_call_id": "c1"})), pydantic("response", ("text", {"content": "In Paris."}))],
    "vercel": [{"role": "user", "content": [text(ASKED)]},
     {"role": "assistant", "content": [text("I look."),
     {"type": "tool-call", "toolCallId": "c1", "toolName": "find", "input": ORDER}]},
     {"role": "tool", "content": [{"type": "tool-result", "toolCallId": "c1", "toolName": "find",
     "output": {"type": "text", "value": "in Paris"}}]},
     {"role": "assistant", "content": "In Paris."}],
    "llama index": [{"role": "user", "blocks": [block(ASKED)]},
     {"role": "assistant", "blocks": [block("I look."), {"block_type": "tool_call",
     "tool_call_id": "c1", "tool_name": "find", "tool_kwargs": ORDER}]},
     {"role": "tool", "additional_kwargs": {"tool_call_id": "c1"}, "blocks": [block("in Paris")]},
     {"role": "assistant", "blocks": [block("In Paris.")]}],
    "agent framework": [{"role": "user", "contents": [text(ASKED)]},
     {"role": "assistant", "contents": [text("I look."), {"type": "function_call", "call_id": "c1",
     "name": "find", "arguments": '{"order": 3}'}]}, {"role": "tool", "contents":
     [{"type": "function_result", "call_id": "c1", "result": "in Paris"}]},
     {"role": "assistant", "contents": [text("In Paris.")]}],
    "agents sdk, stored": [{"id": k, "message_data": json.dumps(item)} for k, item in
     enumerate([ASK, *ITEMS])],
    "llama index, react": [{"role": "user", "blocks": [block(ASKED)]},
     {"role": "assistant", "blocks": [block("I look.\nAction: find\nAction Input: {'order': 3}\n"
     "Observation: in Paris\nThought: In Paris.")]}],
    "claude sdk": [{"type": "UserMessage", "content": ASKED}, sdk(thinking="Hm.", signature="x"),
     sdk(text="I look."), sdk(id="c1", name="find", input=ORDER), {"type": "UserMessage",
     "content": [{"tool_use_id": "c1", "content": "in Paris"}]}, sdk(text="In Paris.")],
    "sharegpt": [{"from": "human", "value": ASKED}, LOOK, FOUND,
     {"from": "gpt", "value": "In Paris."}],
}  # fmt: skip


def test_one_dialogue_as_many_libraries_write_it(write):
    for name, messages in FORMS.items():
        runs = {"as_run": io.as_run(messages)}
        outer = {"messages": lambda own: own, "values": lambda own: {"messages": own}}
        for place, wrap in (outer | {"output": lambda own: own}).items():
            record = {"id": "r", "success": True, place: wrap(messages)}
            (runs[place],) = io.read_runs(write("log.jsonl", [record], lines=True))
        for place, run in runs.items():
            assert said(run) == ALL, (name, place)
            assert "unmatched_results" not in run.extra, (name, place)
        assert {(run.id, run.outcome) for run in runs.values()} == {("r", 1), ("run", -1)}, name
        talks = {k: {"run_id": k, "success": k == "a", "log": messages} for k in "ab"}
        columns = {key: {k: run[key] for k, run in talks.items()} for key in talks["a"]}
        rows = [{"run_id": k, "success": k == "a", "message": m} for k in "ab" for m in messages]
        frame = {key: {k: row[key] for k, row in enumerate(rows, 7)} for key in rows[0]}
        within = {"data": {"runs": [*talks.values()]}}
        for record in (talks, columns, within, within["data"], {"runs": talks}, frame):
            a, b = io.read_runs(write("log.json", record))
            assert (said(a), a.id, a.outcome, said(b)) == (ALL, "a", 1, ALL), (name, record.keys())
        for lines in (rows, [row | row.pop("message") for row in map(dict, rows)]):
            runs = io.read_runs(write("log.jsonl", lines, lines=True))
            assert [(said(run), run.outcome) for run in runs] == [(ALL, 1), (ALL, 0)], name
        assert len(io.read_runs(write("log.json", {"a": messages, "b": messages}))) == 2, name
        for path in (write("log.json", messages), write("l.jsonl", messages, lines=True)):
            assert [said(run) for run in io.read_runs(path)] == [ALL], (name, path.name)


def called(**call):
    return {"role": "assistant", "content": "", "tool_calls": [call]}


def part(**fields):
    return {"role": "assistant", "content": [fields]}


HI, YES = ("user", "Hi"), ("agent", "Yes")
ODD = [
    # roles
    ([{"role": " Assistant", "content": "Yes"}], [YES]),
    ([{"role": "HUMAN", "content": "Hi"}, {"role": "model", "content": "Yes"}], [HI, YES]),
    ([{"role": "developer", "content": "Be kind."}, agent("Yes")], [("system", "Be kind."), YES]),
    ([{"role": "critic", "content": "Hm"}], [("environment", "Hm")]),
    ([agent("", "f"), {"role": "observation", "content": "x"}], [("f", {}, "x")]),
    ([lc("Other", content="Hm")], [("environment", "Hm")]),
    # content
    ([{"role": "user", "text": "Hi"}, {"role": "assistant", "value": "Yes"}], [HI, YES]),
    ([agent(None), agent([]), agent(""), agent("Yes")], [YES]),
    ([agent([text("See"), {"type": "image_url"}, "this"])], [("agent", "See\nthis")]),
    ([agent({"text": "Yes"})], [YES]), ([agent({"value": "x"})], [("agent", '{"value": "x"}')]),
    ([agent(None, refusal="Yes"), agent("", refusal="No")], [YES, ("agent", "No")]),
    ([agent("Yes", refusal="No"), agent(None, refusal=False)], [YES]),
    ([lc("AIMessage", additional_kwargs={"refusal": "Yes", "tool_calls": []})], [YES]),
    # instructions
    ([{"role": "system", "content": one} for one in "aaba"],
     [("system", "a"), ("system", "b"), ("system", "a")]),
    ([pydantic("request", ("user-prompt", {"content": "Hi"})) | {"instructions": "Be kind."}],
     [("system", "Be kind."), HI]),
    ([pydantic("request", ("user-prompt", {"content": "Hi"})) | {"instructions": ["?"]}], [HI]),
    ([pydantic("request", ("system-prompt", {"content": "Be kind."}))], [("system", "Be kind.")]),
    # calls
    ([called(id="c", function={"name": "f", "arguments": '{"x": 1}'})], [("f", {"x": 1}, None)]),
    ([called(tool_call_id=7, name="f", args={"x": 1}), tool("9", "7")], [("f", {"x": 1}, "9")]),
    ([called(function="f", arguments="x = 1")], [("f", "x = 1", None)]),
    ([agent("") | {"tool_calls": '[{"name": "f"}]'}], [("f", {}, None)]),
    ([called(name=["f"]), called(id=0)], [("", {}, None)] * 2),
    ([called(name="f", arguments="[1]"), called(name="f", arguments="{")],
     [("f", "[1]", None), ("f", "{", None)]),
    ([agent("", "g", function_call={"name": "f"})], [("g", {}, None), ("f", {}, None)]),
    ([lc("AIMessage", tool_calls=[{"name": "f"}],
     additional_kwargs={"tool_calls": [{"name": "g"}]})], [("f", {}, None)]),
    ([lc("AIMessage", additional_kwargs={"function_call": {"name": "g"}})], [("g", {}, None)]),
    ([part(type="server_tool_use", name="f", input={"x": 1})], [("f", {"x": 1}, None)]),
    ([part(type="tool_use", name="f") | {"tool_calls": [{"name": "g"}]}], [("g", {}, None)]),
    ([{"toolName": "f", "toolCallId": "c", "input": 3}], [("f", 3, None)]),
    ([{"type": "web_search_call", "id": "w", "query": "q", "results": ["r"]}],
     [("web_search", "q", "r")]),
    ([{"type": "code_interpreter_call", "code": "1+1", "outputs": [{"type": "logs", "logs": "2"}]},
     {"type": "mcp_list_tools", "tools": []}], [("code_interpreter", "1+1", "2")]),
    # items of one turn
    ([ITEMS[0], ITEMS[1], ITEMS[1], ITEMS[0]],
     [("agent", "I look."), *[("find", ORDER, None)] * 2, ("agent", "I look.")]),
    ([{"type": "reasoning", "summary": [text("Hm.")]}, user()], [HI]),
    # results
    ([agent("", "f", "g"), tool("2", "G"), tool("1", "F"), tool("3", "G")],
     [("f", {}, "1"), ("g", {}, "2\n3")]),
    ([agent("", "f", "g", "f"), tool("1"), tool("2", name="f"), tool("3"), tool("4")],
     [("f", {}, "1"), ("g", {}, "3"), ("f", {}, "2")]),
    ([agent("", "f"), agent("", "f"), tool("1")], [("f", {}, None), ("f", {}, "1")]),
    ([agent("", "f"), tool("1", "F"), agent("", "f"), tool("2", "F")],
     [("f", {}, "1"), ("f", {}, "2")]),
    ([agent("", "f", "g"), {"role": "tool", "tool_messages":
     [{"id": "F", "content": "1"}, {"id": "G", "content": "2"}]}],
     [("f", {}, "1"), ("g", {}, "2")]),
    ([{"role": "f", "content": "Hm"}, agent("", "f")], [("environment", "Hm"), ("f", {}, None)]),
    ([agent("", "f"), {"role": ["f"], "content": "Hm"}], [("f", {}, None), ("environment", "Hm")]),
    ([agent("", "f"), part(type="tool-result", toolCallId="F",
     output={"type": "json", "value": 3})], [("f", {}, "3")]),
    ([agent("", "f"), part(type="tool_result", tool_use_id="F", content={"type": "json", "n": 3})],
     [("f", {}, '{"type": "json", "n": 3}')]),
    ([agent("", "f"), part(call_id="F", content="9", name="f")], [("f", {}, "9")]),
    ([agent("", "f"), part(type="web_search_tool_result", tool_use_id="F",
     content=[{"type": "web_search_result"}])], [("f", {}, '{"type": "web_search_result"}')]),
    ([agent("", "f"), part(type="tool_result", tool_use_id="F", result="", output=None)],
     [("f", {}, "")]),
    ([agent("", "f"), {"role": "user", "content":
     [text("and then?"), {"type": "tool_result", "tool_use_id": "F", "content": "late"}]}],
     [("f", {}, "late"), ("user", "and then?")]),
    ([{"role": "user", "content":
     [{"type": "tool_result", "content": "r"}, {"type": "user-prompt", "content": "Hi"}]}], [HI]),
    ([{"role": "assistant", "parts": [{"type": "tool-call", "toolCallId": "c", "toolName": "f"}]}],
     [("f", {}, None)]),
    # completions
    ([{"choices": [{"message": agent("Yes")}, {"message": agent("No")}]}], [YES]),
    ([agent("Yes", choices=[{"message": agent("No")}]), agent("Yes", choices=[3])], [YES, YES]),
    # steps and words of smolagents
    ([step(None, observations="1\n2", tool_calls=agent("", "f", "g")["tool_calls"])],
     [("f", {}, "1"), ("g", {}, "2")]),
    ([step(None, observations="1\n2\n3", tool_calls=agent("", "f", "g")["tool_calls"])],
     [("f", {}, None), ("g", {}, None)]),
    ([step(None, model_output_message=agent("", "f"), error={"message": "E"})], [("f", {}, "E")]),
    ([{"plan": "Ask", "model_output_message": {}}, step("Yes", model_input_messages=
     [{"role": "system", "content": "Be kind."}, user()])],
     [("system", "Be kind."), ("agent", "Ask"), YES]),
    ([agent("", "f"), tool("1", "F"), {"role": "tool-call", "content": "Calling:\nf("},
     {"role": "tool-response", "content": "2"}, {"role": "tool-response", "content": "Error:\n3"}],
     [("f", {}, "1"), ("", "Calling:\nf(", "2")]),
    # what is no message
    ([user("Hi") | {"raw_item": {}, "kwargs": "x", "data": "x", "lc": 1}], [HI]),
]  # fmt: skip


def test_odd_messages():
    for messages, expected in ODD:
        assert said(io.as_run(messages)) == expected, messages


def test_whether_a_call_failed():
    two = agent("", "f", "g")
    blocks = part(type="tool_result", tool_use_id="F", content="1", is_error=True)
    for messages, expected in (
        ([tool("1", "F"), tool("2", "G", error=True)], [None, True]),
        ([tool("1", "F", error=0), tool("2", "G", error=1)], [False, True]),
        ([tool("1", "F"), tool("2", "F", error=True), tool("3", "F", error=False)], [True, None]),
        ([tool("1", "F", error=False), tool("2", "F", error=True)], [False, None]),
        ([tool("1", "F", status="error"), tool("2", "G", status="success")], [True, None]),
        ([tool("1", "F", status="error", error=False)], [False, None]), ([blocks], [True, None]),
        ([part(type="tool_result", tool_use_id="F", content="1", isError=True)], [True, None]),
        ([part(type="tool-error", toolCallId="G", error="1")], [None, True]),
        ([pydantic("request", ("retry-prompt", {"content": "1", "tool_call_id": "F"}))],
         [True, None]),
    ):  # fmt: skip
        run = io.as_run([two, *messages])
        errors = [call.error for step in run.steps for call in step.tool_calls]
        assert errors == expected, messages


def test_a_result_without_its_call_is_seen_by_the_turn_before_it():
    for messages, actor in (
        ([agent("A"), {"role": "critic", "content": "C"}], "environment"),
        ([agent("A"), user()], "agent"),
    ):
        run = io.as_run([*messages, tool("late", "?", name="f", error=True)])
        assert [step.actor for step in run.steps if step.observation == "late"] == [actor]
        assert run.extra["unmatched_results"] == [
            {"index": 2, "id": "?", "name": "f", "content": "late", "error": True}
        ]
    steps = io.as_run(
        [user(), agent("A"), tool("1", requestor="user"), tool("2", requestor="assistant")]
    ).steps
    assert [step.observation for step in steps] == ["1", "2"]
    early = io.as_run([tool("early", ""), agent("A")])
    assert [one["content"] for one in early.extra["unmatched_results"]] == ["early"]
    several = io.as_run([agent("", "f", "g"), tool("2", "G"), tool("1", "F")])
    assert several.steps[0].observation == "2\n1"


def test_numbers_of_a_turn():
    table = [
        ({"confidence": {"value": 0.4}}, 0.4), ({"confidence": {"score": "40%"}}, 0.4),
        ({"confidence": 0.4}, 0.4), ({"confidence": None}, None), ({"confidence": True}, None),
        ({"confidence": float("nan")}, None), ({"confidence": "1"}, 1.0),
    ]  # fmt: skip
    for fields, expected in table:
        (step,) = io.as_run([agent("Hi", **fields)]).steps
        assert step.confidence == (expected and pytest.approx(expected)), fields
    for fields, tokens in (
        ({"usage": {"input_tokens": 3}}, {"input": 3, "output": None}),
        ({"usage_metadata": {"promptTokenCount": 3, "output": 0}}, {"input": 3, "output": 0}),
        ({"usage": {"n": 3}}, None), ({"usage": {"input_tokens": 3}, "tokens": 7}, 7),
    ):  # fmt: skip
        assert io.as_run([agent("Hi", **fields)]).steps[0].extra.get("tokens") == tokens, fields
    counts = ({"input": 3, "output": 2.5}, {"input": 2, "output": True}, 7, {"input": "9"})
    run = io.as_run([agent("Hi", tokens=tokens) for tokens in counts])
    assert run.meta == {"input_tokens": 5, "output_tokens": 2.5}


BAD = [
    ("words", "is str, not an object"), (3, "is int"), ({"content": "Hi"}, "no role"),
    (agent(tool_calls={"a": 1}), "tool calls are dict"),
    (agent(tool_calls=["f"]), "a tool call is str"),
    ({"choices": [{"index": 0}]}, "no role"),
    ({"role": "tool", "tool_messages": ["x"]}, "nested tool result is str"),
    (agent("x", confidence="high"), "confidence is 'high'; write a number"),
    (agent("x", confidence=[0.1]), r"confidence is \[0.1\]"),
    (agent("x", cost=float("-inf")), "cost is -inf"), (agent("x", logprobs="no"), "not a list"),
    (agent("x", logprobs={"content": [{"token": "x", "logprob": 0.2}]}), "0.2"),
    (agent("x", logprobs={"content": [{"token": "x", "logprob": "many"}]}), "'many'"),
    ({"role": "assistant", "prompt": "Yes"}, "'content'.*'prompt'"),
    ({"role": "assistant", "message": "Yes"}, "'message'"),
    (agent("x", logprobs=[{"logprob": -1, "top_logprobs": {"a": 1}}]), "logprob is 1,"),
    (agent("x", logprobs=["x"]), "the logprob is 'x'"), (agent("x", logprobs=7), "are int"),
]  # fmt: skip


def test_messages_that_cannot_be_read_are_named():
    for message, words in BAD:
        with pytest.raises(ValueError, match=rf"message 1\b.*{words}"):
            io.as_run([agent("Yes"), message])
    with pytest.raises(ValueError, match="run 'r'.*message 0"):
        io.as_run([agent("x", logprobs=["x"])], "r")
    for other in ({"content": "Yes"}, {"tool_calls": CALLS}, {"prompt": ""}):
        assert io.as_run([{"role": "assistant", "prompt": "Yes"} | other]).steps
    for words in ("content='x' name='a'", "[{'role': 'user'}] it is", "ModelReply(parts=[])"):
        assert io.as_run([agent(words)]).steps[0].text == words
    for messages in ({"role": "user"}, "Hi"):
        with pytest.raises(ValueError, match="list of messages"):
            io.as_run(messages)


def autogen(kind, content, source="helper", **fields):
    return {"source": source, "type": kind, "content": content, "models_usage": None} | fields


CALLS = [{"id": "c1", "name": "find", "arguments": '{"order": 3}'}]
RESULTS = [{"call_id": "c1", "name": "find", "content": "in Paris", "is_error": True}]
TEAM = [
    autogen("TextMessage", ASKED, "user"), autogen("ThoughtEvent", "Hm"),
    autogen("ToolCallRequestEvent", CALLS, models_usage={"prompt_tokens": 5}),
    autogen("ToolCallExecutionEvent", RESULTS), autogen("ToolCallSummaryMessage", "in Paris"),
    autogen("SelectSpeakerEvent", ["judge"], "manager"), autogen("ThoughtEvent", "So?", "judge"),
    autogen("MultiModalMessage", ["In Paris.", {"data": "aGk="}], "judge"),
    autogen("StructuredMessage[Sure]", {"text": "Yes", "confidence": 0.9}, "judge"),
    autogen("HandoffMessage", "Go on", "user"), autogen("HandoffMessage", "To user", "judge"),
    autogen("StopMessage", "TERMINATE", "judge"),
]  # fmt: skip
SAID = [ASKED, "", "In Paris.", '{"text": "Yes", "confidence": 0.9}', "Go on", "TERMINATE"]


def test_a_team_of_autogen(write, public_file):
    chat = {"id": "r", "messages": TEAM, "success": False}
    (run,) = runs = io.read_runs(write("team.json", chat))
    assert [step.text for step in run.steps] == SAID
    assert [k for k, step in enumerate(run.steps) if step.actor == "user"] == [0, 4]
    (call,) = run.steps[1].tool_calls
    assert (call.arguments, call.result, call.error) == ({"order": 3}, "in Paris", True)
    assert [run.steps[k].extra["reasoning"] for k in (1, 2)] == ["Hm", "So?"]
    assert (run.meta["input_tokens"], run.outcome, runs.notes[0][:10]) == (5, 0, "3 messages")
    for reason, outcome in (
        ("Maximum number of messages 5 reached, current message count: 5", -1), ("Other", 0),
        ("Token usage limit reached, total token count: 9.", -1), ("Stop message received", 0),
    ):  # fmt: skip
        (run,) = io.read_runs(write("team.json", chat | {"stop_reason": reason}))
        assert run.outcome == outcome, reason
    runs = io.read_runs(public_file("field", "autogen.jsonl"))
    assert np.bincount(io.outcomes(runs)).tolist() == [12, 12]
    assert {(len(run), run.steps[1].observation) for run in runs} == {(5, "训练完成")}
