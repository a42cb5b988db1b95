"""Messages of a conversation that goes on, as objects or as dicts."""

from dataclasses import dataclass, field
from enum import Enum

import pytest

from trajscore import io

CHAT = [
    {"role": "system", "content": "Be kind."},
    {"role": "user", "content": "Where is order 7?"},
    {
        "role": "assistant",
        "content": "I look.",
        "tool_calls": [{"id": "1", "function": {"name": "find", "arguments": '{"order": 7}'}}],
    },
    {"role": "tool", "tool_call_id": "1", "content": "in Oslo"},
    {"role": "assistant", "content": "In Oslo."},
]


class Dumped:
    def __init__(self, fields):
        self.fields = fields

    def model_dump(self):
        return self.fields


@dataclass
class Message:
    role: str
    content: str
    tool_calls: list = field(default_factory=list)
    tool_call_id: str | None = None


def said(run):
    return [
        (step.actor, step.text, [call.result for call in step.tool_calls]) for step in run.steps
    ]


WANTED = [
    ("user", "Where is order 7?", []),
    ("agent", "I look.", ["in Oslo"]),
    ("agent", "In Oslo.", []),
]


@pytest.mark.parametrize("kind", [dict, Dumped, lambda fields: Message(**fields)])
def test_messages_are_read_as_dicts_and_as_objects(kind):
    run = io.as_run([kind(message) for message in CHAT], "run 1")
    assert said(run) == WANTED
    assert (run.id, run.outcome) == ("run 1", -1)
    assert run.extra["system"] == ["Be kind."]


def test_a_role_may_be_of_an_enumeration():
    roles = Enum("MessageRole", {"USER": "user", "ASSISTANT": "assistant"}, type=str)
    run = io.as_run(
        [Dumped(CHAT[1] | {"role": roles.USER}), {"role": roles.ASSISTANT, "content": "Hi"}]
    )
    assert [step.actor for step in run.steps] == ["user", "agent"]


def test_a_call_without_a_result_has_none():
    run = io.as_run(CHAT[:3])
    assert run.steps[-1].tool_calls[0].result is None


def test_what_is_no_message_is_named():
    with pytest.raises(ValueError, match="message 1 is int, not an object"):
        io.as_run([CHAT[1], 7])


@pytest.mark.parametrize("name", ["prompt", "message"])
def test_a_text_under_another_name_is_refused(name):
    with pytest.raises(ValueError, match=f"message 1 has no 'content', but '{name}'; "):
        io.as_run([CHAT[1], {"role": "assistant", name: "I look."}])
    for other in ({"content": "I look."}, {"tool_calls": CHAT[2]["tool_calls"]}, {name: ""}):
        assert io.as_run([{"role": "assistant", name: "I look."} | other]).steps


@pytest.mark.parametrize(
    ("messages", "kind"), [({"messages": CHAT}, "an object that holds it"), ("Hi", "text")]
)
def test_messages_that_are_not_a_list(messages, kind):
    with pytest.raises(ValueError, match=f"must be the list of messages, not {kind}"):
        io.as_run(messages)


def test_an_error_says_where_it_is():
    with pytest.raises(ValueError, match=r"^r, run 'r' \(index 0\), message 1: the logprob is 'x'"):
        io.as_run([CHAT[1], {"role": "assistant", "content": "Hi", "logprobs": ["x"]}], "r")
