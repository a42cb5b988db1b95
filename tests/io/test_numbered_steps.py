"""Steps in numbered fields, as predictions of DSPy hold them."""

import pytest

from trajscore import io
from trajscore.io._numbered_steps import find_steps

STEPS = {
    "thought_0": "I look.", "tool_name_0": "find", "tool_args_0": {"n": 3},
    "observation_0": "Paris",
    "thought_1": "Again.", "tool_name_1": "find", "tool_args_1": {"n": 4},
    "observation_1": "Execution error in find: no such order",
}  # fmt: skip
QUESTION = {"question": "Where?"}
PREDICTION = {"trajectory": STEPS, "reasoning": "As found.", "answer": "In Paris."}


@pytest.mark.parametrize(
    ("record", "n_said"),
    [
        (QUESTION | PREDICTION, 4),
        ({"example": QUESTION, "prediction": PREDICTION}, 4),
        (PREDICTION, 3),
        (STEPS, 2),
    ],
)
def test_a_prediction_is_a_run(write, record, n_said):
    (run,) = io.read_runs(write("log.json", [record | {"success": True}]))
    turns = [("user", "Where?"), ("agent", "I look."), ("agent", "Again."), ("agent", "In Paris.")]
    wanted = turns[:3][-2:] if n_said == 2 else turns[-n_said:]
    assert [(step.actor, step.text) for step in run.steps] == wanted
    calls = [call for step in run.steps for call in step.tool_calls]
    assert [(c.name, c.arguments, c.error) for c in calls] == [
        ("find", {"n": 3}, None), ("find", {"n": 4}, True),
    ]  # fmt: skip
    assert calls[0].result == "Paris"
    assert run.outcome == 1


def test_one_step_of_a_thought_and_a_tool_is_enough(write):
    (run,) = io.read_runs(
        write("log.json", [{"trajectory": {"thought_0": "x", "tool_name_0": "f"}}])
    )
    assert [(step.actor, step.text) for step in run.steps] == [("agent", "x")]


def test_a_trace_around_them_is_a_run(write):
    base = {"trace_id": "t", "openinference.span.kind": "CHAIN"}
    prompt = {"llm.input_messages.0.message.role": "user"}
    prompt |= {"llm.input_messages.0.message.content": "[[ ## question ## ]]"}
    root = {"input.value": {"input_args": QUESTION}, "output.value": PREDICTION}
    call = prompt | {"openinference.span.kind": "LLM", "llm.token_count.prompt": 5}
    spans = [
        {"trace_id": "t", "span_id": "2", "parent_id": "1", "attributes": call},
        {"trace_id": "t", "span_id": "1", "attributes": base | root},
    ]
    (run,) = io.read_runs(write("spans.json", spans))
    assert [step.text for step in run.steps] == ["Where?", "I look.", "Again.", "In Paris."]
    assert run.meta["input_tokens"] == 5


def said(*texts):
    return [{"role": "assistant", "content": text} for text in texts]


def test_which_fields_hold_the_steps():
    steps = {"thought_0": "a", "tool_name_0": None}
    question = {"role": "user", "content": "Q"}
    assert find_steps(steps | {"x": 1}) == (said("a"), {"thought_0", "tool_name_0"})
    record = {"query": "Q", "trajectory": steps, "response": "A", "reasoning": None, "x": 1}
    names = {"trajectory", "query", "response", "reasoning"}
    assert find_steps(record) == ([question, *said("a", "A")], names)
    nested = {"prediction": {"trajectory": steps, "answer": 3}, "example": {"task": "Q"}, "x": 1}
    assert find_steps(nested) == ([question, *said("a", "3")], {"prediction", "example"})
    for other in ({}, {"trajectory": {"thought_0": "a"}}, {"trajectory": [steps]}, {"x": 1}):
        assert find_steps(other) is None


def test_the_question_the_reasoning_and_the_answer():
    def messages(**fields):
        steps = {"thought_0": "a", "tool_name_0": None}
        return find_steps({"trajectory": steps} | fields)[0]

    first = {"role": "user", "content": "T"}
    assert messages(question=3, task="T", problem="P") == [first, *said("a")]
    assert messages(reasoning="so") == said("a")
    assert messages(answer=None, output="O", reasoning="so")[1:] == [
        {"role": "assistant", "content": "O", "reasoning": "so"}
    ]


def test_steps_in_the_order_of_their_numbers_also_incomplete_ones():
    steps = {f"thought_{k}": str(k) for k in (10, 0, 9)} | {"tool_name_0": "f", "thought_x": "?"}
    steps |= {
        "observation_9": "seen",
        "tool_args_11": {"n": 1},
        "observation_0": "Execution error in f: x",
    }
    messages, _ = find_steps(steps)
    call = {"id": "0", "name": "f", "arguments": None}
    assert messages == [
        {"role": "assistant", "content": "0", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "0", "content": "Execution error in f: x", "error": True},
        *said("9"), {"role": "tool", "tool_call_id": "9", "content": "seen"}, *said("10", ""),
    ]  # fmt: skip
