"""OpenHands: events of both versions, calls of one answer, errors, stops, and reports beside."""

import pytest

from known_dialogue import said
from trajscore import io


def words(text):
    return [{"type": "text", "text": text}]


def acts(key, text="", answer="r1", **more):
    call = {"id": key, "name": "find", "arguments": f'{{"k": "{key}"}}'}
    return {"kind": "ActionEvent", "source": "agent", "thought": words(text), "tool_call_id": key,
            "tool_name": "find", "tool_call": call, "llm_response_id": answer} | more  # fmt: skip


NOW = [
    {"kind": "SystemPromptEvent", "source": "agent", "system_prompt": words("Be kind.")[0]},
    {"kind": "MessageEvent", "source": "user", "llm_message": {"role": "user",
     "content": words("Hi")}},
    {"kind": "ConversationStateUpdateEvent", "source": "environment", "key": "a", "value": "b c"},
    acts("1", "Look", confidence=0.7), acts("2"),
    {"kind": "ObservationEvent", "tool_call_id": "1", "observation": {"content": words("Paris")}},
    {"kind": "AgentErrorEvent", "source": "agent", "tool_call_id": "2", "error": "no such order"},
    acts("3", "Done", "r2"),
]  # fmt: skip


def acted(key, text, answer="r1"):
    return {"id": int(key), "source": "agent", "action": "run", "message": f"Running {key} now",
            "args": {"k": key, "thought": text}, "tool_call_metadata": {"function_name": "find",
            "tool_call_id": key, "model_response": {"id": answer, "choices": [{"message":
            {"role": "assistant", "content": text}, "logprobs": {"content":
            [{"token": "a", "logprob": -0.5}]}}]}}}  # fmt: skip


def saw(text, cause, **more):
    return {"observation": "run", "content": text, "cause": cause, "extras": {},
            "tool_call_metadata": {"tool_call_id": str(cause)}} | more  # fmt: skip


BEFORE = [
    {"id": 8, "source": "agent", "action": "system", "args": {"content": "Be kind."}},
    {"id": 9, "source": "user", "action": "message", "args": {"content": "Hi"}},
    {"id": 7, "source": "user", "action": "recall", "args": {"query": "Hi"}},
    acted("1", "Look"), saw("Paris", 1), acted("2", ""), saw("no such order", 2, success=False),
    {"observation": "agent_state_changed", "content": "", "extras": {}}, acted("3", "Done", "r2"),
]  # fmt: skip
BOTH = [("system", "Be kind."), ("user", "Hi"), ("agent", "Look"), ("find", {"k": "1"}, "Paris"),
        ("find", {"k": "2"}, "no such order"), ("agent", "Done"),
        ("find", {"k": "3"}, None)]  # fmt: skip


@pytest.mark.parametrize("history", [NOW, BEFORE], ids=["version 1", "before"])
def test_a_history(write, history):
    result = {"instance_id": "i", "attempt": 2, "test_result": {}, "history": history,
              "metrics": {"accumulated_cost": 0.5}}  # fmt: skip
    write("a/output.report.json", {"resolved_ids": ["i"], "unresolved_ids": ["j"]})
    again = result | {"instance_id": "j"}
    lost = again | {"history": [], "error": "RuntimeError: evicted"}
    path = write("a/output.jsonl", [result, lost, again], lines=True)
    with pytest.warns(UserWarning, match="run again"):
        runs = io.read_runs(path)
    assert [(run.id, run.outcome, run.trial) for run in runs] == [("i", 1, 2), ("j", 0, 2)]
    look = runs[0].steps[1]
    assert said(runs[0]) == BOTH
    assert [call.error for call in look.tool_calls] == [False, True]
    assert (look.confidence, look.logprobs) == ((0.7, None) if history is NOW else (None, (-0.5,)))
    assert runs[0].meta["cost"] == 0.5
    for name, events in (("b.json", history), ("c.json", [{"trajectory": history}])):
        assert said(io.read_runs(write(name, events))[0]) == BOTH


def test_pairs_and_budgets(write):
    pairs = [[BEFORE[1], {"observation": "null", "content": "", "extras": {}}],
             [acted("1", "Look") | {"tool_call_metadata": None}, {"observation": "run",
              "content": "Paris", "extras": {}}]]  # fmt: skip
    result = {"instance_id": "i", "test_result": {"report": {"resolved": False}}, "history": pairs}
    over = {"error": "RuntimeError: Agent reached maximum iteration. Current iteration: 9"}
    (run,) = io.read_runs(write("a.jsonl", [result | over], lines=True))
    assert said(run) == [*BOTH[1:3], ("run", {"k": "1"}, "Paris")]
    assert (run.outcome, run.stop_reason, run.stop_kind) == (-1, "max_iterations", "administrative")
    stop = {"kind": "ConversationErrorEvent", "source": "environment",
            "code": "MaxIterationsReached", "detail": "at last"}  # fmt: skip
    (run,) = io.read_runs(write("b.jsonl", [result | {"history": [*NOW, stop]}], lines=True))
    assert (run.outcome, run.stop_reason) == (-1, "MaxIterationsReached")
