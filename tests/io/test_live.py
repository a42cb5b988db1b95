"""Messages of a conversation that goes on: objects or dicts, their content and their scores."""

import math
from dataclasses import dataclass, field, replace
from enum import Enum

import pytest

from known_dialogue import ALL, ASK, FOUND, LOOK, TOLD, said
from trajscore import DensityRatioEProcess, StepConfidence, io
from trajscore.integrations import Guard

CHAT = [{"role": "system", "content": "Be kind."}, ASK, LOOK, FOUND, TOLD]


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


def agent(**fields):
    """Return the step of one message of the agent."""
    (step,) = io.as_run([{"role": "assistant", "content": "x"} | fields]).steps
    return step


def test_messages_are_read_as_dicts_and_as_objects():
    for kind in (dict, Dumped, lambda fields: Message(**fields)):
        run = io.as_run([kind(message) for message in CHAT], "run 1")
        assert (said(run), run.id, run.outcome) == ([("system", "Be kind."), *ALL], "run 1", -1)
    assert io.as_run(CHAT[:3]).steps[-1].tool_calls[0].result is None
    roles = Enum("MessageRole", {"USER": "user", "ASSISTANT": "assistant"}, type=str)
    run = io.as_run([{"role": role, "content": "Hi"} for role in roles])
    assert [step.actor for step in run.steps] == ["user", "agent"]


LISTED = [
    {"token": "a", "logprob": -0.5, "top_logprobs": [{"token": "b", "logprob": -1}, {}, "x"]},
    {"token": "c", "logprob": None},
    {"token": "d", "logprob": -0.0, "top_logprobs": {"e": -2, "f": -9999}},
]
COLUMNS = {"token_logprobs": [-1, -2, -3], "tokens": ["a", "b", "c"], "top_logprobs": [{"x": -1}]}


def test_log_probabilities_in_all_forms():
    nan = math.nan
    for raw, tokens, logprobs, top in [
        (LISTED, ("a", "c", "d"), (-0.5, nan, 0), ((("b", -1),), (), (("e", -2),))),
        ({"content": LISTED[:1]}, ("a",), (-0.5,), ((("b", -1),),)),
        (COLUMNS, ("a", "b", "c"), (-1, -2, -3), ((("x", -1),), (), ())),
        ({"token_logprobs": [-1, -2], "tokens": ["a"]}, None, (-1, -2), None),
        ([-1, -2.5], None, (-1, -2.5), None),
        ({"content": [-1.5]}, None, (-1.5,), None),
        ([{"token": "a", "logprob": -1}, {"logprob": -2}], None, (-1, -2), None),
        ([{"token": 3, "logprob": -1}], ("3",), (-1,), None),
        ([{"logprob": -1, "top_logprobs": [{"logprob": -2}]}], None, (-1,), ((("", -2),),)),
        ([-math.inf, -9999, -9998, -1e6], None, (-math.inf, nan, -9998, nan), None),
        ([0.0, 0.0], None, (0, 0), None), ([1e-7, 0.0], None, (0, 0), None),  # what rounds to 0
        ([{"logprob": 1.2e-7}, -0.0], None, (0, 0), None),
    ]:  # fmt: skip
        step = agent(logprobs=raw)
        assert step.logprobs == pytest.approx(logprobs, nan_ok=True), raw
        assert (step.tokens, step.top_logprobs) == (tokens, top), raw


def test_log_probabilities_that_were_not_recorded():
    nothing = [None, [], {}, {"content": None}, {"token_logprobs": None}, [None]]
    for raw in [*nothing, [-9999.0], [-10000, None], [math.nan]]:
        step = agent(logprobs=raw)
        assert (step.tokens, step.logprobs, step.top_logprobs) == (None, None, None), raw
    assert agent(logprobs=[-9998.9]).logprobs == (-9998.9,)


def test_zeros_of_one_conversation_mean_what_they_mean_in_the_log():
    def chat(k, n):  # of which each fourth has only sure turns
        logprobs = [[0.0, -0.7 * (k % 4 > 0) * ((k + j) % 3)] for j in range(n)]
        return [{"role": "assistant", "content": "a b", "logprobs": own} for own in logprobs]

    runs = [replace(io.as_run(chat(k, 4), f"r{k}"), outcome=k % 2) for k in range(120)]
    guard = Guard(StepConfidence(["token_probability"]), DensityRatioEProcess(alpha=0.3)).fit(runs)
    assert StepConfidence().fit_transform(runs[:1]).cells[:, 1].tolist() == pytest.approx(
        [math.nan] * 4, nan_ok=True
    )  # alone it is a log without any
    for run, looks in zip(runs[:8], guard.looks(runs[:8]), strict=True):
        evidence = [look.log_e_value for look in looks]
        k = int(run.id[1:])
        live = [guard.look(chat(k, n), run.id, done=n == 4) for n in range(1, 5)]
        assert [look.log_e_value for look in live] == pytest.approx(evidence, rel=1e-9)
