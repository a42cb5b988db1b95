"""What a call of a model was given and answered, in the forms that libraries record it."""

import json

from known_dialogue import HI, YES, said
from trajscore import io

PART = {"text": "Hi"}


def read(write, given, answer, kind="GENERATION"):
    """Read one call of a model, with its input and its output."""
    call = {"id": "1", "type": kind, "input": given, "output": answer}
    last = {"id": "2", "type": "GENERATION", "output": "End"}
    log = {"id": "t", "observations": [call, last], "scores": []}
    *others, end = said(io.read_runs(write("log.json", log), format="langfuse")[0])
    assert end == ("agent", "End")
    return others


GIVEN = [
    "Hi", '"Hi"', [HI], [[HI]], HI, {"messages": [HI]}, {"messages": json.dumps([HI])},
    json.dumps(json.dumps({"messages": [HI]})), {"messages": [["user", "Hi"]]}, [["user", "Hi"]],
    {"input": "Hi", "model": "m"}, {"prompt": [HI]}, {"contents": "Hi"},
    {"contents": [{"role": "user", "parts": [{"text": "H"}, {"text": "i"}]}]},
    {"new_message": {"parts": [PART]}, "user_id": "u", "session_id": "s"}, [PART],
    {"args": ["Hi"], "kwargs": {}}, {"args": [], "kwargs": {"messages": [HI]}}, "user: Hi",
    [{"role": "user", "parts": [{"type": "text", "content": "Hi"}]}],
    [{"role": "user", "gen_ai.event.content": json.dumps(HI), "gen_ai.system": "openai"}],
    [HI, {"role": "tool", "content": {"type": "function", "function": {"name": "f"}}}],
    {"input": {"input": {"input": {"input": HI}}}}, {"input": [{"input": [HI]}]}, [[HI], [YES]],
    {"role": None, "content": "Hi"}, {"content": {"message": HI}},
]  # fmt: skip
NOTHING = [
    "", " ", [], [[]], {"n": 1}, {"content": "role"}, None,
    {"input": {"input": {"input": {"input": {"input": {"input": HI}}}}}},
]  # fmt: skip
ANSWERS = [
    "Yes", YES, {"text": "Yes", "finish_reason": "stop"}, {"content": "Yes"}, {"messages": [YES]},
    {"message": {"role": "Assistant", "content": "Yes"}, "index": 0},
    {"output": [{"type": "message", "role": "assistant", "content": "Yes"}]},
    {"generations": [[{"text": "Yes", "message": None}]]},
    {"candidates": [{"content": {"role": "model", "parts": [{"text": "Yes"}]}}, {"index": 1}]},
    {"candidates": {"content": {"role": "model", "parts": [{"text": "Yes"}]}}},
    {"content": {"role": "model", "parts": [{"text": "Yes"}]}, "finish_reason": "STOP"},
    {"content": {"message": YES}, "usage": {}}, {"choices": [{"text": "Yes"}]},
    {"choices": [{"delta": {"content": "Yes"}, "text": ""}]}, {"choices": [{"message": YES}]},
    {"choices": [{"text": "Yes"}], "role": "user", "content": "?"},
    {"role": None, "content": "Yes"}, {"gen_ai.event.content": json.dumps({"content": "Yes"})},
    {"text": [{"type": "text", "text": "Yes"}]}, {"output_text": "Yes"}, {"answer": "Yes"},
]  # fmt: skip
LOOK, CALL = ("agent", "Look"), ("f", {"n": 3}, None)
MORE = [
    ({"city": "Paris"}, [("agent", '{"city": "Paris"}')]),
    ({"toolCalls": [{"toolName": "f", "args": {"n": 3}}]}, [CALL]),
    ({"text": "Look", "toolCalls": [{"toolName": "f", "args": {"n": 3}}]}, [LOOK, CALL]),
    ({"text": [{"type": "text", "text": "Look"}], "toolCalls":
     [{"toolName": "f", "args": {"n": 3}}]}, [LOOK, CALL]),
    ({"tool_calls": [{"name": "f", "args": {"n": 3}}]}, [CALL]),
    ([{"toolCallId": "c", "toolName": "f", "input": {"n": 3}}], [CALL]),
    ({"content": [{"id": "1", "name": "f", "arguments": '{"n": 3}'}]}, [CALL]),
    ({"role": "assistant", "parts":
     [{"type": "tool_call", "id": "c", "name": "f", "arguments": {"n": 3}}]}, [CALL]),
]  # fmt: skip
HISTORIES = [
    ({"system": "Be kind.", "prompt": "Hi"}, [("system", "Be kind."), ("user", "Hi")]),
    ({"system": "a", "config": {"instructions": "b"}, "prompt": "Hi"},
     [("system", "a"), ("system", "b"), ("user", "Hi")]),
    ({"system": "a", "n": 1}, [("system", "a")]),
    ({"systemInstruction": {"parts": [{"text": "a"}]}, "contents": "Hi"},
     [("system", "a"), ("user", "Hi")]),
    ({"system": [{"text": "a"}, {"text": "b"}, 3], "prompt": "Hi"},
     [("system", "a\nb"), ("user", "Hi")]),
    ({"system": {"text": "a"}, "prompt": "Hi"}, [("system", "a"), ("user", "Hi")]),
    ({"system": 3, "instructions": [3], "prompt": "Hi"}, [("user", "Hi")]),
    ({"config": {"system_instruction": "Be kind."}, "contents":
     [{"role": "user", "parts": [{"text": "Hi"}]},
     {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {"n": 3}}}]},
     {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"y": 2}}}]}]},
     [("system", "Be kind."), ("user", "Hi"), ("f", {"n": 3}, '{"y": 2}')]),
    ("System: Be kind.\nUser: Hi\nthere\nAssistant: Yes?",
     [("system", "Be kind."), ("user", "Hi\nthere"), ("agent", "Yes?")]),
    ([["user", "Hi"], ["assistant", "Yes"]], [("user", "Hi"), ("agent", "Yes")]),
    ([["user", "Hi"], {"role": "assistant", "content": "Yes"}],
     [("user", "user"), ("user", "Hi"), ("agent", "Yes")]),
    (["content='x'", "y"], [("user", "content='x'"), ("user", "y")]), (3, [("user", "3")]),
]  # fmt: skip


def test_what_a_model_is_given_and_what_it_answers(write):
    hi, yes = [("user", "Hi")], [("agent", "Yes")]
    table = [
        *((given, "Yes", [*hi, *yes]) for given in GIVEN),
        *((given, "Yes", yes) for given in NOTHING), *((None, answer, yes) for answer in ANSWERS),
        *(([HI], answer, [*hi, *expected]) for answer, expected in MORE),
        *((given, "So?", [*expected, ("agent", "So?")]) for given, expected in HISTORIES),
    ]  # fmt: skip
    for given, answer, expected in table:
        assert read(write, given, answer) == expected, (given, answer)


def test_only_what_is_surely_a_message_counts_around_calls(write):
    for value in ("continue", {"content": "role"}, {"joke": "x"}, {"prompt": "Hi"}, ["a"], 3):
        assert read(write, value, None, "SPAN") == []
    for value in ([HI], {"messages": [HI]}):
        assert read(write, value, None, "SPAN") == [("user", "Hi")]
