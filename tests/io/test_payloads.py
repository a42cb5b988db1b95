"""What a call of a model was given and answered, in the forms that libraries record it."""

import json

import pytest

from known_dialogue import said
from trajscore import io

HI, YES = {"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes"}
PART = {"text": "Hi"}


@pytest.fixture
def read(write):
    """Read one call of a model, with its input and its output."""

    def read_call(given, answer, kind="GENERATION"):
        call = {"id": "1", "type": kind, "input": given, "output": answer}
        last = {"id": "2", "type": "GENERATION", "output": "End"}
        log = {"id": "t", "observations": [call, last], "scores": []}
        (run,) = io.read_runs(write("log.json", log), format="langfuse")
        *others, end = said(run)
        assert end == ("agent", "End")
        return others

    return read_call


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
    {"input": {"input": {"input": {"input": HI}}}}, {"input": [{"input": [HI]}]},
    [[HI], [YES]], {"role": None, "content": "Hi"}, {"content": {"message": HI}},
]  # fmt: skip
NOTHING = [
    "", " ", [], [[]], {"n": 1}, {"content": "role"}, None,
    ["content='x'", "role='user' content='a'"], ["ChatMessage(role=<R: 'user'>)"],
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
    ({"text": "Look", "toolCalls": [{"toolName": "f", "args": {"n": 3}}, 3]}, [LOOK, CALL]),
    ({"text": [{"type": "text", "text": "Look"}], "toolCalls": [
        {"toolName": "f", "args": {"n": 3}}]}, [LOOK, CALL]),
    ({"tool_calls": [{"name": "f", "args": {"n": 3}}]}, [CALL]),
    ([{"toolCallId": "c", "toolName": "f", "input": {"n": 3}}], [CALL]),
    ({"content": [{"id": "1", "name": "f", "arguments": '{"n": 3}'}], "thought": "Look"},
     [LOOK, CALL]),
    ({"role": "assistant", "parts": [{"type": "tool_call", "id": ["run", "c"], "name": "f",
                                      "arguments": {"n": 3}}]}, [CALL]),
]  # fmt: skip
HISTORIES = [
    ({"system": "Be kind.", "prompt": "Hi"}, [("system", "Be kind."), ("user", "Hi")]),
    ({"system": "a", "config": {"instructions": "b"}, "prompt": "Hi"}, [("system", "a"), ("system",
     "b"), ("user", "Hi")]),
    ({"system": "a", "n": 1}, [("system", "a")]),
    ({"systemInstruction": {"parts": [{"text": "a"}]}, "contents": "Hi"}, [("system", "a"), ("user",
     "Hi")]),
    ({"system": [{"text": "a"}, {"text": "b"}, 3], "prompt": "Hi"}, [("system", "a\nb"), ("user",
     "Hi")]),
    ({"system": {"text": "a"}, "prompt": "Hi"}, [("system", "a"), ("user", "Hi")]),
    ({"system": 3, "instructions": [3], "prompt": "Hi"}, [("user", "Hi")]),
    ({"config": {"system_instruction": "Be kind."}, "contents": [{"role": "user", "parts":
     [{"text": "Hi"}]}, {"role": "model", "parts": [{"functionCall": {"name": "f", "args":
     {"n": 3}}}]}, {"role": "user", "parts": [{"functionResponse": {"name": "f", "response":
     {"y": 2}}}]}]}, [("system", "Be kind."), ("user", "Hi"), ("f", {"n": 3}, '{"y": 2}')]),
    ("System: Be kind.\nUser: Hi\nthere\nAssistant: Yes?", [("system", "Be kind."), ("user",
     "Hi\nthere"), ("agent", "Yes?")]),
    ([["user", "Hi"], ["assistant", "Yes"]], [("user", "Hi"), ("agent", "Yes")]),
    ([["user", "Hi"], {"role": "assistant", "content": "Yes"}], [("user", "user"), ("user", "Hi"),
     ("agent", "Yes")]),
    (["content='x'", "y"], [("user", "content='x'"), ("user", "y")]), (3, [("user", "3")]),
]  # fmt: skip


def test_what_a_model_is_given_and_what_it_answers(read):
    wrong = []
    hi, yes = [("user", "Hi")], [("agent", "Yes")]
    table = [
        *((given, "Yes", [*hi, *yes]) for given in GIVEN),
        *((given, "Yes", yes) for given in NOTHING),
        *((None, answer, yes) for answer in ANSWERS),
        *(([HI], answer, [*hi, *expected]) for answer, expected in MORE),
        *((given, "So?", [*expected, ("agent", "So?")]) for given, expected in HISTORIES),
    ]
    for given, answer, expected in table:
        got = read(given, answer)
        wrong += [(given, answer, got)] if got != expected else []
    assert not wrong


def test_only_what_is_surely_a_message_counts_around_calls(read):
    for value in ("continue", {"content": "role"}, {"joke": "x"}, {"prompt": "Hi"}, ["a"], 3):
        assert read(value, None, "SPAN") == []
    for value in ([HI], {"messages": [HI]}, {"choices": [{"delta": {"message": HI}}]}):
        assert read(value, None, "SPAN") == [("user", "Hi")]


def test_results_without_identifiers_belong_to_the_turn_before_them(write):
    def call(answer):
        return [
            {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": answer}}]},
        ]

    talk = [{"role": "user", "parts": [PART]}, *call("1"), *call("1"), *call("2")]
    rows = [
        {"traceId": "t", "type": "GENERATION", "id": str(k), "startTime": k,
         "input": {"contents": talk[: 2 * k + 1]},
         "output": {"candidates": [{"content": answer}]}}
        for k, answer in enumerate([*talk[1::2], {"role": "model", "parts": []}])
    ]  # fmt: skip
    (run,) = io.read_runs(write("log.jsonl", rows, lines=True))
    assert [step.actor for step in run.steps] == ["user", *["agent"] * 4]
    assert said(run) == [("user", "Hi"), *(("f", {}, result) for result in "112")]
