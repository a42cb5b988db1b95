"""Files of chats: where the messages of a run are, which records are runs, and their ids."""

import json

import pytest

from known_dialogue import ALL, ASK, FOUND, HI, LOOK, TOLD, YES, agent, said
from trajscore import io

TALK = [ASK, LOOK, FOUND, TOLD]
BOTH = [("user", "Hi"), ("agent", "Yes")]
RUN = {"messages": [HI, YES]}


def scores(*values, **more):
    return {"content": [{"token": f"w{k}", "logprob": v, **more} for k, v in enumerate(values)]}


def one(write, record, **options):
    (run,) = io.read_runs(write("log.json", record), format="openai", **options)
    return run


def test_forms_of_a_file(write):
    run = {"id": "a", "messages": TALK, "success": True, "task": "t", "note": "kept"}
    whole = {
        "object": write("o.json", run), "list": write("l.json", [run]),
        "lines": write("l.jsonl", [run], lines=True), "gz": write("x.jsonl.gz", [run], lines=True),
    }  # fmt: skip
    for name, path in whole.items():
        (found,) = io.read_runs(path)
        assert said(found) == ALL, name
        assert (found.id, found.outcome, found.task) == ("a", 1, "t"), name
        assert found.extra["note"] == "kept", name
    bare = write("m.json", TALK), write("m.jsonl", TALK, lines=True), write("m2.json", [TALK])
    for path in bare:
        assert [said(found) for found in io.read_runs(path)] == [ALL], path.name
    assert [run.id for run in io.read_runs(bare[0])] == ["m"]


# Where the messages of a record are: each is read as the same two turns.
PLACES = [
    {"conversation": [HI, YES]}, {"history": [HI, YES]}, {"messages": json.dumps([HI, YES])},
    {"messages": "x", "state": {"messages": [HI, YES]}}, {"values": [HI, YES], "state": [HI]},
    {"values": {"messages": [HI, YES]}}, {"input": [HI], "output": [YES]},
    {"input": [HI], "output": [HI, YES]}, {"input": "Hi", "output": YES},
    {"input": [HI], "output": "Yes"}, {"inputs": {"messages": [HI]}, "outputs": [HI, YES]},
    {"request": {"messages": [HI]}, "response": {"choices": [{"message": YES}]}},
    {"messages": [HI], "choices": [{"message": YES}]},
    {"messages": [HI, YES], "choices": [{"message": YES}]},
    {"items": [HI, YES]}, {"input": "Hi", "new_items": [YES]},
    {"task_result": {"items": [HI, YES]}}, {"state": {"original_input": "Hi", "session_items":
     [{"type": "message_output_item", "raw_item": YES}]}}, {"llm_context": {"messages": [HI, YES]}},
    {"agent_states": {"a": {"message_buffer": [HI]}, "b": {"message_thread": [HI, YES]}}},
    {"input": [HI], "response": {"object": "response", "output": [YES]}},
    {"object": "response", "input": [HI], "output": [YES]},
    {"request": json.dumps({"messages": [HI]}),
     "response": json.dumps({"choices": [{"message": YES}]})},
    {"other": [HI, YES]}, {"log": json.dumps({"talk": [HI, YES]})}, {"other": [HI, YES], "n": [HI]},
]  # fmt: skip
NOWHERE = [
    {"conversation": [3]}, {"state": {"messages": []}}, {"a": [HI, YES], "b": [HI, YES]}, {"n": 3},
    {"input": "x", "output": "y"}, {"output": {"messages": [3]}}, {"other": [HI]},
    {"chat": "user: Hi\nassistant: Yes"}, {"steps": [{"model_output_message": YES}]},
]  # fmt: skip


def test_where_the_messages_of_a_record_are(write):
    for place in PLACES:
        run = one(write, [{"id": "a", "success": 1} | place])
        got = [(step.actor, step.text.strip()) for step in run.steps]
        assert (got, run.id, run.outcome) == (BOTH, "a", 1), place
    for place in NOWHERE:
        with pytest.raises(ValueError, match=r"log\.json.*message"):
            one(write, [{"id": "a"} | place])


def answer(key, before=None, calls=(), **more):
    """Return a response of OpenAI: words, or calls."""
    item = {"type": "message", "role": "assistant", "content": [{"type": "text", "text": key}]}
    items = [{"type": "function_call", "call_id": key + name, "name": name} for name in calls]
    fields = {"id": key, "object": "response", "previous_response_id": before,
              "usage": {"input_tokens": 2}}  # fmt: skip
    return fields | {"instructions": "Be kind.", "output": items or [item], "text": {}} | more


def test_responses_of_a_run_name_the_one_before(write):
    cut = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    listed = [answer("a", calls="f"), answer("c"), answer("b", "a", **cut)]
    for path in (write("l.json", listed), write("l.jsonl", listed, lines=True)):
        runs = {run.id: run for run in io.read_runs(path)}
        assert said(runs["a"]) == [("system", "Be kind."), ("f", {}, None), ("agent", "b")]
        assert (runs["a"].stop_kind, len(runs["c"])) == ("administrative", 1)
        assert [run.meta["input_tokens"] for run in runs.values()] == [2, 4]
    for record in ({"responses": listed[::2]}, {"raw_responses": listed[::2]}):
        assert len(one(write, [record])) == 2
    talk = {"conversation": {"id": "t"}}
    assert [*map(len, io.read_runs(write("l.json", [answer(k, **talk) for k in "ab"])))] == [2]
    assert said(one(write, answer("a"))) == [("system", "Be kind."), ("agent", "a")]
    with pytest.raises(ValueError, match=r"none names the one before.*\"responses\""):
        io.read_runs(write("l.json", [answer("a", calls="f"), answer("b")]))


# Files, the ids and the outcomes of their runs, and what else they hold.
FILES = [
    ([RUN, RUN | {"id": "b"}], ["log-0", "b"], {}), ([RUN], ["log-0"], {}),
    ({"version": 1, "runs": [RUN | {"id": k} for k in "ab"]}, ["a", "b"], {"version": 1}),
    (RUN, ["log"], {}), (RUN | {"id": "a", "x": [RUN]}, ["a"], {}),
    ({"input": [HI], "output": [YES], "x": [RUN]}, ["log"], {}),
    ({"input": "a.json", "output": "b.json", "results": [RUN, RUN]}, ["log-0", "log-1"],
     {"input": "a.json", "output": "b.json"}), (YES, ["log"], {}),
    ({"conversations": [HI, YES], "n": 1}, ["log"], {}),
]  # fmt: skip


def test_which_records_of_a_file_are_runs(write):
    for content, ids, info in FILES:
        runs = io.read_runs(write("log.json", content))
        got = [run.id for run in runs], next(iter(runs.info.values()), {})
        assert got == (ids, info), content


def test_completions(write):
    choice = {"message": agent("Hi"), "logprobs": scores(-0.5, -1.0), "finish_reason": "stop"}
    other = {"message": agent("Hello"), "logprobs": scores(-3.0)}
    record = {"id": "x", "model": "m", "choices": [choice, other]}
    run = one(write, [record | {"usage": {"n": 2}}])
    (step,) = run.steps
    assert (step.text, step.logprobs, step.tokens) == ("Hi", (-0.5, -1.0), ("w0", "w1"))
    assert step.extra["finish_reason"] == "stop"
    # beside the request; the answer among the messages as well is one turn with its scores
    for messages in ([HI], [HI, agent("Hi")]):
        run = one(write, [record | {"messages": messages}])
        assert [step.text for step in run.steps] == ["Hi", "Hi"]
        assert [step.logprobs for step in run.steps] == [None, (-0.5, -1.0)]
        assert run.steps[1].extra["finish_reason"] == "stop"
        assert "choices" not in run.extra
    # after another answer, other calls, or a tool's result, the choice is a turn of its own
    asked = agent("Hi", tool_calls=[{"id": "1", "function": {"name": "f", "arguments": "{}"}}])
    result = {"role": "tool", "tool_call_id": "1", "content": "ok"}
    for before in ([agent("Well")], [asked], [agent("Hi"), result], [agent("Hi"), HI]):
        steps = one(write, [record | {"messages": [HI, *before]}]).steps
        assert [step.logprobs for step in steps[:-1]] == [None] * (len(steps) - 1), before
        assert steps[-1].logprobs == (-0.5, -1.0)
    same = {"choices": [choice | {"message": asked}]}
    run = one(write, [{"id": "x", "messages": [HI, asked], **same}])
    assert [step.logprobs for step in run.steps] == [None, (-0.5, -1.0)]
    own = agent("Hi", logprobs=scores(-9.0), finish_reason="length")
    (_, step) = one(write, [record | {"messages": [HI, own]}]).steps
    assert (step.logprobs, step.extra["finish_reason"]) == ((-9.0,), "length")
    refusal = {"role": "assistant", "content": None, "refusal": "I cannot."}
    run = one(write, [{"id": "a", "messages": [HI, refusal], "choices": [{"message": refusal}]}])
    assert [step.text for step in run.steps] == ["Hi", "I cannot."]


def test_malformed_runs_are_left_out_and_named(write):
    good = {"id": "good", "messages": [YES]}
    loud = {"content": [{"token": "x", "logprob": 0.2}]}
    with pytest.raises(ValueError, match=r"r\.json, run 'r7' \(index 0\), message 1.*0\.2"):
        io.read_runs(write("r.json", [{"id": "r7", "messages": [YES, agent(logprobs=loud)]}]))
    raws = [
        "x", 3, None, [], {"id": "a"}, {"id": "a", "messages": "x"}, {"id": "a", "messages": {}},
    ]  # fmt: skip
    with pytest.warns(UserWarning, match="7 of 8 runs"):
        assert len(io.read_runs(write("log.json", [good, *raws]))) == 1
    with pytest.raises(ValueError, match="roles='critic=agent'"):
        one(write, [{"role": "critic", "content": "Hm"}])
