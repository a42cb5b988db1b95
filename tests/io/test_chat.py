"""Chat messages: tau-bench and OpenAI form, and everything odd that they may hold."""

import json
import math

import numpy as np
import pandas as pd
import pytest

from trajscore import io
from trajscore.io.files import LogFile
from trajscore.io.formats.chat import _records, is_chat
from trajscore.io.registry import Head

ASK = {"role": "user", "content": "Hi"}


@pytest.mark.parametrize(
    ("fields", "recognised"),
    [
        (ASK, True), (ASK | {"id": 1}, True), (ASK | {"run_id": 1}, False),
        ({"values": {}, "next": [], "metadata": {}}, True), ({"values": {}, "next": []}, False),
        ({"values": {}, "next": [], "metadata": {}, "config": {}}, True),
    ],
)  # fmt: skip
def test_files_of_the_format(fields, recognised):
    assert is_chat(Head(fields, whole=True)) == recognised
    assert not is_chat(Head(fields))


def one(write, messages, **options):
    (run,) = io.read_runs(write("chat.json", messages), format="openai", **options)
    return run


def agent(content="Yes", **more):
    return {"role": "assistant", "content": content, **more}


def scores(*values, top=None):
    entries = [{"token": f"w{k}", "logprob": value} for k, value in enumerate(values)]
    if top is not None:
        for entry in entries:
            entry["top_logprobs"] = top
    return {"content": entries}


def test_turns_calls_and_observations(write, talk):
    run = one(write, talk)
    assert [(step.actor, step.text, step.index) for step in run.steps] == [
        ("user", "Where is my bag?", 1),
        ("agent", "", 2),
        ("agent", "In Paris.", 4),
    ]
    (call,) = run.steps[1].tool_calls
    assert (call.name, call.arguments, call.id, call.result) == ("find", {"x": 1}, "c1", "Paris")
    assert run.steps[1].observation == "Paris"
    assert run.extra["system"] == ["Be kind."]
    assert (run.id, run.outcome, run.stop_kind) == ("chat", -1, None)


@pytest.mark.parametrize("form", ["list", "lines", "object", "runs", "run lines", "gz", "lists"])
def test_forms_of_a_file(write, talk, form):
    run = {"id": "a", "messages": talk, "success": True, "task": "t", "note": "kept"}
    path = {
        "list": lambda: write("a.json", talk),
        "lines": lambda: write("a.jsonl", talk, lines=True),
        "object": lambda: write("x.json", run),
        "runs": lambda: write("x.json", [run]),
        "run lines": lambda: write("x.jsonl", [run], lines=True),
        "gz": lambda: write("x.jsonl.gz", [run], lines=True),
        "lists": lambda: write("a.json", [talk]),
    }[form]()
    (found,) = io.read_runs(path)
    assert len(found.steps) == 3
    if form not in ("list", "lines", "lists"):
        assert (found.id, found.outcome, found.task) == ("a", 1, "t")
        assert found.extra["note"] == "kept"


def test_completions(write):
    choice = {"message": agent("Hi"), "logprobs": scores(-0.5, -1.0), "finish_reason": "stop"}
    other = {"message": agent("Hello")}
    run = one(write, [{"id": "x", "model": "m", "choices": [choice, other], "usage": {"n": 2}}])
    step = run.steps[0]
    assert (step.text, step.logprobs, step.tokens) == ("Hi", (-0.5, -1.0), ("w0", "w1"))
    assert step.extra["finish_reason"] == "stop"
    assert step.extra["usage"] == {"n": 2}
    assert step.extra["other_choices"] == [other]
    assert run.meta["n_other_choices"] == 1


def test_a_request_with_its_response(write):
    request = [{"role": "user", "content": "Hello?"}]
    choice = {"message": agent("Hi"), "logprobs": scores(-0.5), "finish_reason": "stop"}
    other = {"message": agent("Hello"), "logprobs": scores(-3.0)}
    record = {"id": "x", "model": "m", "messages": request, "choices": [choice, other]}
    (run,) = io.read_runs(write("log.jsonl", [record], lines=True), format="openai")
    assert [(step.actor, step.text) for step in run.steps] == [("user", "Hello?"), ("agent", "Hi")]
    assert run.steps[1].logprobs == (-0.5,)
    assert run.steps[1].extra["other_choices"] == [other]
    assert io.meta([run])["n_other_choices"].tolist() == [1]
    assert "choices" not in run.extra
    # a log that has the answer among the messages as well: one turn, with its log-probabilities
    twice = record | {"messages": [*request, agent("Hi")]}
    (run,) = io.read_runs(write("log.jsonl", [twice], lines=True), format="openai")
    assert [step.text for step in run.steps] == ["Hello?", "Hi"]
    assert run.steps[1].logprobs == (-0.5,)
    assert run.steps[1].extra["finish_reason"] == "stop"
    # choices beside the answer do not replace it
    beside = agent("Hi", choices=[{"message": agent("Bye"), "logprobs": None}])
    (run,) = io.read_runs(
        write("log.json", [{"id": 1, "messages": [*request, beside]}]), format="openai"
    )
    assert [step.text for step in run.steps] == ["Hello?", "Hi"]
    # after another answer, or a tool's result, the choice is a turn of its own
    asked = agent("Hi", tool_calls=[{"id": "1", "function": {"name": "f", "arguments": "{}"}}])
    result = {"role": "tool", "tool_call_id": "1", "content": "ok"}
    for before in ([agent("Well")], [asked], [agent("Hi"), result]):
        (run,) = io.read_runs(
            write("log.json", [record | {"messages": request + before}]), format="openai"
        )
        assert [step.logprobs for step in run.steps] == [None, None, (-0.5,)]


def test_grades_are_kept_and_other_outcomes_refused_by_name(write, talk):
    runs = [{"id": k, "messages": talk, "outcome": y} for k, y in enumerate((0.9, -2, -1, 1.0, -3))]
    with pytest.warns(UserWarning, match=r"2 of 5 runs .*outcome is -2; expected"):
        found = io.read_runs(write("log.json", runs), format="openai")
    assert io.outcomes(found).tolist() == [0.9, -1, 1]
    assert [one.id for one in found.left_out] == ["1", "4"]
    assert "1 success, 0 failures, 1 graded, 1 not observed" in repr(found)
    assert "outcome 0.9" in repr(found[0])
    lines = [{"run": k, "outcome": y, "text": "x"} for k, y in enumerate((0.25, -2))]
    with pytest.warns(UserWarning, match="outcome is -2; expected"):
        found = io.read_runs(write("steps.jsonl", lines, lines=True), format="jsonl")
    assert io.outcomes(found).tolist() == [0.25]
    assert io.outcomes([io.Run("a", outcome=0.9), io.Run("b", outcome=0)]).tolist() == [0.9, 0]
    assert io.outcomes([io.Run("a", outcome=1), io.Run("b")]).dtype == np.int64
    for wrong in (3, 2, -0.5, "solved"):
        with pytest.raises(ValueError, match="run 'b': the outcome is .*; use 1 for success"):
            io.outcomes([io.Run("a"), io.Run("b", outcome=wrong)])


@pytest.mark.parametrize("form", ["frame", "csv", "mapping"])
def test_outcomes_from_a_table(write, talk, tmp_path, form):
    runs = [{"id": name, "messages": talk} for name in ("a", "b", "c")]
    frame = pd.DataFrame({"id": ["b", "a"], "outcome": [0, 1], "stop_reason": ["done", None]})
    frame.to_csv(tmp_path / "t.csv", index=False)
    table = {"frame": frame, "csv": tmp_path / "t.csv", "mapping": {"a": True, "b": 0.0}}[form]
    found = io.read_runs(write("runs.json", runs), format="openai", outcomes=table)
    assert io.outcomes(found).tolist() == [1, 0, -1]
    assert found[1].stop_reason == (None if form == "mapping" else "done")


def test_bad_tables(write, talk):
    path = write("a.json", talk)
    with pytest.raises(ValueError, match="no column of run ids"):
        io.read_runs(path, format="openai", outcomes=pd.DataFrame({"name": ["a"]}))
    with pytest.raises(ValueError, match="run 'a' has several rows"):
        io.read_runs(
            path, format="openai", outcomes=pd.DataFrame({"id": ["a", "a"], "outcome": [1, 0]})
        )


def test_budget_in_a_table(write, talk):
    run = {"id": "a", "messages": talk, "stop_reason": "Max Steps"}
    (found,) = io.read_runs(write("a.json", [run]), format="openai")
    assert (found.outcome, found.stop_kind) == (-1, "administrative")


# ---------------------------------------------------------------- odd messages


def test_messages_without_text(write):
    run = one(write, [agent(None), agent(""), {"role": "assistant"}, agent([]), agent("x")])
    assert [step.text for step in run.steps] == ["", "", "", "", "x"]


def test_content_in_parts(write):
    picture = {"type": "image_url", "image_url": {"url": "data:x"}}
    parts = [{"type": "text", "text": "See"}, picture, "this"]
    run = one(write, [agent(parts), agent([{"type": "text", "text": "ok"}])])
    assert run.steps[0].text == "See\nthis"
    assert run.steps[0].extra["parts"] == parts
    assert run.steps[1].text == "ok"
    assert "parts" not in run.steps[1].extra


def test_results_without_a_call(write):
    early = {"role": "tool", "tool_call_id": "z", "content": "lost"}
    late = {"role": "tool", "tool_call_id": "z", "content": "found"}
    run = one(write, [early, agent(), late])
    assert [(u["index"], u["content"]) for u in run.extra["unmatched_results"]] == [
        (0, "lost"),
        (2, "found"),
    ]
    assert run.steps[0].observation == "found"  # the turn before it saw it


def test_the_error_of_a_tool_is_the_flag_of_its_result(write):
    flags = [None, True, False, 1, 0]
    calls = [{"id": str(k), "function": {"name": "f"}} for k in range(5)]
    results = [
        {"role": "tool", "tool_call_id": str(k), "content": "x"}
        | ({} if flag is None else {"error": flag})
        for k, flag in enumerate(flags)
    ]
    run = one(write, [agent(None, tool_calls=calls), *results])
    errors = [call.error for call in run.steps[0].tool_calls]
    assert errors == flags
    assert [type(error) for error in errors[1:]] == [bool] * 4
    # where a call has two results, the first that has a flag decides
    again = [{"role": "tool", "tool_call_id": str(k), "content": "y", "error": True} for k in "02"]
    run = one(write, [agent(None, tool_calls=calls), *results, *again])
    assert [call.error for call in run.steps[0].tool_calls] == [True, True, False, True, False]


def test_calls_without_a_result(write, talk):
    run = one(write, [*talk[:3], talk[4]])
    assert run.steps[1].tool_calls[0].result is None
    assert run.steps[1].observation is None


def test_results_without_identifiers_come_in_order(write):
    calls = [{"function": {"name": name, "arguments": "not json"}} for name in ("f", "g")]
    results = [{"role": "tool", "content": "1"}, {"role": "function", "name": "g", "content": "2"}]
    run = one(write, [agent(None, tool_calls=calls), *results])
    assert [(c.arguments, c.result) for c in run.steps[0].tool_calls] == [
        ("not json", "1"),
        ("not json", "2"),
    ]


def test_older_function_call(write):
    run = one(write, [agent(None, function_call={"name": "f", "arguments": "{}"})])
    assert run.steps[0].tool_calls[0].name == "f"


def test_reused_call_identifiers(write):
    def turn(result):
        call = {"id": "call_0", "function": {"name": "f", "arguments": "{}"}}
        answer = {"role": "tool", "tool_call_id": "call_0", "content": result}
        return [agent(None, tool_calls=[call]), answer]

    run = one(write, [*turn("a"), *turn("b")])
    assert [step.observation for step in run.steps] == ["a", "b"]


def test_unknown_roles_are_kept_apart(write):
    run = one(write, [agent(), {"role": "critic", "content": "Hm"}])
    assert run.steps[1].actor == "environment"
    assert run.steps[1].extra["role"] == "critic"
    with pytest.raises(ValueError, match="and 1 of roles.*roles='critic=agent'"):
        io.read_runs(write("b.json", [{"role": "critic", "content": "Hm"}]), format="openai")


def test_other_scripts_and_surrogates(write):
    text = "ありがとう 🙂 مرحبا \u202f"
    path = write("chat.json", json.dumps([agent(text)], ensure_ascii=False))
    escaped = write("esc.json", json.dumps([agent(text)], ensure_ascii=True))
    assert io.read_runs(path, format="openai")[0].steps[0].text == text
    assert io.read_runs(escaped, format="openai")[0].steps[0].text == text
    half = write("half.json", '[{"role": "assistant", "content": "bag \\ud83d lost"}]')
    assert io.read_runs(half, format="openai")[0].steps[0].text == "bag ? lost"


def test_a_megabyte_in_one_message(write):
    text = "agent says … " * 100_000
    run = one(write, [agent(text), agent("end")])
    assert run.steps[0].text == text
    assert len(repr(run.steps[0])) < 100


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("words", "message 1 is str"),
        ({"content": "x"}, "message 1 has no role"),
        (agent(tool_calls={"a": 1}), "tool calls are dict, not a list"),
        (agent(tool_calls=["f"]), "a tool call is str"),
        (agent(confidence="high"), "confidence is 'high', not a number"),
        (agent(logprobs="no"), "not a list"),
    ],
)
def test_malformed_messages(write, message, said):
    bad = {"id": "bad", "messages": [agent(), message]}
    good = {"id": "good", "messages": [agent()]}
    with pytest.warns(UserWarning, match=r"1 of 2 runs.*run 'bad' \(index 0\)"):
        runs = io.read_runs(write("runs.json", [bad, good]), format="openai")
    assert [run.id for run in runs] == ["good"]
    assert said in runs.left_out[0].reason


# ---------------------------------------------------------------- log-probabilities


def test_infinite_logprobs_are_kept(write):
    run = one(write, [agent(logprobs=scores(-math.inf, "-inf"))])  # -Infinity, and as text
    assert run.steps[0].logprobs == (-math.inf, -math.inf)


def test_positive_logprobs_are_an_error_with_a_place(write):
    runs = [{"id": "ok", "messages": [agent()]},
            {"id": "r7", "messages": [agent(), agent(logprobs=scores(-1.0, 0.2))]}]  # fmt: skip
    path = write("runs.json", runs)
    with pytest.raises(ValueError, match=r"runs\.json, run 'r7' \(index 1\), message 1.*0\.2"):
        io.read_runs(path, format="openai")
    with pytest.raises(ValueError, match="'many', not a number"):
        one(write, [agent(logprobs=scores("many"))])
    with pytest.raises(ValueError, match="at most 0"):
        one(write, [agent(logprobs=scores(-1.0, top=[{"token": "x", "logprob": 1.0}]))])


@pytest.mark.parametrize(
    "found",
    [None, {}, {"content": None}, {"content": []}, scores(-9999.0), scores(0.0, 0), scores(None)],
)
def test_missing_logprobs_are_missing(write, found):
    step = one(write, [agent(logprobs=found)]).steps[0]
    assert (step.logprobs, step.tokens, step.top_logprobs) == (None, None, None)


def test_one_missing_token(write):
    step = one(write, [agent(logprobs=scores(-9999.0, -1.0, None))]).steps[0]
    np.testing.assert_array_equal(step.logprobs, [np.nan, -1.0, np.nan])


def test_top_logprobs(write):
    top = [{"token": "a", "logprob": -0.1}, {"token": "b", "logprob": -9999.0}]
    step = one(write, [agent(logprobs=scores(-0.1, top=top))]).steps[0]
    assert step.top_logprobs == ((("a", -0.1),),)
    assert one(write, [agent(logprobs=scores(-0.1))]).steps[0].top_logprobs is None
    assert one(write, [agent(logprobs=scores(-0.1, top=[]))]).steps[0].top_logprobs is None


def test_older_completion_form(write):
    old = {"tokens": ["a", "b"], "token_logprobs": [None, -2.0], "top_logprobs": [None, {"b": -2}]}
    step = one(write, [agent(logprobs=old)]).steps[0]
    assert step.tokens == ("a", "b")
    assert step.top_logprobs == ((), (("b", -2.0),))


def test_coverage_is_counted(write):
    run = one(write, [agent(logprobs=scores(-1.0), confidence=0.5), agent(), agent()])
    table = io.meta([run])
    assert table.loc[0, ["n_agent", "n_logprobs", "n_top_logprobs", "n_confidence"]].tolist() == [
        3,
        1,
        0,
        1,
    ]


# ---------------------------------------------------------------- tau-bench


def trajectory(messages, reward, **more):
    return {"task_id": 3, "trial": 1, "reward": reward, "info": {"x": 1}, "traj": messages, **more}


def test_tau_bench_cap(write):
    turn = [agent(), {"role": "user", "content": "go on"}]
    stop = [agent(), {"role": "user", "content": "Bye ###STOP###"}]
    call = {"id": "1", "function": {"name": "transfer_to_human_agents", "arguments": "{}"}}
    handed = [agent(None, tool_calls=[call]), {"role": "tool", "tool_call_id": "1", "content": ""}]
    runs = io.read_runs(
        write(
            "t.json",
            [
                trajectory(turn * 3, 0.0),
                trajectory(turn * 2 + stop, 0.0),
                trajectory(turn * 2 + handed, 0.0),
                trajectory(turn * 3, 1.0),
                trajectory(turn * 2, 0.0),
            ],
        ),
        format="tau_bench",
        max_turns=3,
    )
    assert io.outcomes(runs).tolist() == [-1, 0, 0, 1, 0]
    assert runs[0].stop_kind == "administrative"
    assert (runs[0].id, runs[0].task, runs[0].trial) == ("3-1", "3", 1)
    assert runs[0].extra == {"info": {"x": 1}}


def test_tau_bench_malformed(write):
    good = trajectory([agent()], 1.0)
    bad = [trajectory(None, 1.0), trajectory([agent()], "x"), trajectory({}, 0.0), 3]
    with pytest.warns(UserWarning, match=r"4 of 5 runs.*; and 1 more"):
        runs = io.read_runs(write("t.json", [good, *bad]), format="tau_bench")
    assert len(runs) == 1
    assert [one.index for one in runs.left_out] == [1, 2, 3, 4]
    assert len(io.read_runs(write("single.json", good), format="tau_bench")) == 1
    for max_turns in (0, 2.5, "30", True):
        with pytest.raises(ValueError, match="max_turns must be a whole number, at least 1"):
            io.read_runs(write("single.json", good), format="tau_bench", max_turns=max_turns)


# ---------------------------------------------------------------- which records are runs

YES = {"role": "assistant", "content": "Yes"}
TALK = [ASK, YES]
RUN = {"messages": TALK}
PRINTED = "content='x' additional_kwargs={}"


@pytest.mark.parametrize(
    ("fields", "more", "recognised"),
    [
        ({"choices": 3}, {}, True), ({"messages": 3}, {}, True), ({"x": 1}, {}, False),
        ({"runs": [RUN]}, {}, True), ({"runs": [RUN]}, {"listed": True}, False),
        ({"steps": ASK}, {}, True), ({"steps": RUN}, {}, True), ({"steps": {"x": 1}}, {}, False),
        ({"samples": RUN, "steps": 3}, {}, True), ({"samples": ASK}, {}, True),
        ({"spans": [{"input": [ASK], "output": "x"}]}, {"listed": True}, True),
        ({"other": {"x": 1}, "n": RUN}, {}, False),
        ({"prompt": "Hi", "completion": "Ho"}, {}, True),
        ({"prompt": "Hi", "completion": "Ho", "step": 1}, {}, False),
        ({"input": [ASK], "output": "x", "step": 1}, {}, True),
        ({}, {"item": [ASK]}, True), ({}, {"item": PRINTED}, True), ({}, {"item": "x"}, False),
    ],
)  # fmt: skip
def test_files_of_chats(fields, more, recognised):
    assert is_chat(Head(fields, whole=True, **more)) is recognised


def log_of(*messages, **more):
    return [(0, {"id": "log", "messages": list(messages)} | more)]


@pytest.mark.parametrize(
    ("content", "records", "info"),
    [
        (TALK, log_of(*TALK), {}),
        ([TALK, TALK], [(0, TALK), (1, TALK)], {}),
        (RUN, log_of(*TALK), {}),
        (RUN | {"id": "a"}, [(0, RUN | {"id": "a"})], {}),
        ({"runs": [RUN], "n": 1}, [(0, RUN)], {"n": 1}),
        ({"runs": [], "n": 1}, [], {"runs": [], "n": 1}),
        ({"data": TALK}, [(0, ASK), (1, YES)], {}),
        ({"conversations": TALK, "n": 1}, log_of(*TALK, n=1), {}),
        (ASK, log_of(ASK, **ASK), {}),
        ([RUN, ASK], [(0, RUN), *log_of(ASK)], {}),
        ([ASK, RUN], log_of(ASK, RUN), {}),
        ({"x": TALK, "n": 1}, [(0, {"id": "log", "x": TALK, "n": 1})], {}),
        ({"a": RUN, "b": RUN}, [(0, {"id": "a"} | RUN), (1, {"id": "b"} | RUN)], {}),
        (
            {"input": TALK, "output": [YES], "x": [RUN]},
            [(0, {"id": "log", "input": TALK, "output": [YES], "x": [RUN]})],
            {},
        ),
        ({"input": [ASK], "output": "x", "o": {}, "results": [RUN]}, [(0, RUN)], {"output": "x"}),
        (RUN | {"x": [RUN]}, log_of(*TALK, x=[RUN]), {}),
        ([[{"messages": []}, RUN]], [(0, {"messages": []}), (0, RUN)], {}),
        ([[{"x": 1}, RUN]], [(0, {"x": 1}), (0, RUN)], {}),
        ([[ASK, RUN]], [(0, ASK), (0, RUN)], {}),
        ([[[ASK], [ASK]]], [(0, [[ASK], [ASK]])], {}),
        (
            {"spans": [{"input": [ASK], "output": "x"}]},
            [(0, [{"input": [ASK], "output": "x"}])],
            {},
        ),
        ([[{"x": 1}, {"x": 2}, RUN]], [(0, [{"x": 1}, {"x": 2}, RUN])], {}),
    ],
)
def test_the_records_of_a_file(write, content, records, info):
    file = LogFile(write("log.json", content))
    found = [(place.index, record) for place, record in _records(file)]
    assert (found, file.info) == (records, info)


@pytest.mark.parametrize(
    ("name", "lines", "n_runs"),
    [("session_id", False, 2), ("run_id", True, 2), ("run_id", False, 1), ("x", True, 1)],
)
def test_messages_that_name_their_conversation(write, name, lines, n_runs):
    messages = [message | {name: key} for key in "ab" for message in TALK]
    path = write("log.jsonl" if lines else "log.json", messages, lines=lines)
    found = [(place.index, record["id"]) for place, record in _records(LogFile(path))]
    assert found == ([(0, "a"), (1, "b")] if n_runs == 2 else [(0, "log")])


def test_messages_are_several_conversations_only_if_each_begins_as_one(write):
    for messages, names in (
        ([YES | {"session_id": key} for key in "ab"], ["log"]),
        ([ASK | {"session_id": "a"}, YES | {"session_id": "b"}], ["log"]),
        ([ASK | {"session_id": "a"}, YES | {"session_id": "a"}], ["log"]),
        ([ASK | {"session_id": "a"}, YES], ["log"]),
        ([ASK | {"session_id": 1}, {"role": "system", "session_id": "b"}], ["1", "b"]),
    ):
        path = write("log.json", messages)
        assert [record["id"] for _, record in _records(LogFile(path))] == names


@pytest.mark.parametrize(
    ("more", "meta"),
    [
        ({}, {}),
        ({"usage": {"input_tokens": 3}}, {"input_tokens": 3}),
        ({"context": {"usage": {"input_tokens": 3}}}, {"input_tokens": 3}),
        (
            {"usage": {"input_tokens": 3}, "context": {"usage": {"input_tokens": 4}}},
            {"input_tokens": 3},
        ),
        ({"usage": {"input_tokens": 3}, "choices": []}, {}),
    ],
)  # fmt: skip
def test_tokens_of_a_whole_run(write, more, meta):
    (run,) = io.read_runs(write("log.json", [{"id": "a", "messages": TALK} | more]))
    assert {name: n for name, n in run.meta.items() if name.endswith("_tokens")} == meta


def test_tokens_of_a_run_of_which_a_turn_has_other_choices(write):
    choices = {"choices": [{"message": YES}, {"message": YES}]}
    record = {"id": "a", "messages": [ASK, choices], "usage": {"input_tokens": 3}}
    (run,) = io.read_runs(write("log.json", [record]), format="openai")
    assert (run.meta["n_other_choices"], run.meta["input_tokens"]) == (1, 3)


def test_tokens_of_turns_go_before_those_of_the_run(write):
    told = {"id": "a", "messages": [ASK, YES | {"tokens": {"output": 7}}]}
    (run,) = io.read_runs(write("log.json", [told | {"usage": {"input_tokens": 3}}]))
    assert (run.meta["output_tokens"], "input_tokens" in run.meta) == (7, False)


def test_the_state_of_a_run_is_its_stop_reason_only_beside_steps(write):
    step = {"model_output_message": {"role": "assistant", "content": "Yes"}, "tool_calls": []}
    for record, reason in (
        ({"steps": [step], "state": "success"}, "success"),
        ({"steps": [step], "state": {"x": 1}}, None),
        ({"messages": TALK, "state": "success"}, None),
    ):
        (run,) = io.read_runs(write("log.json", [{"id": "a"} | record]), format="openai")
        assert run.stop_reason == reason


def test_the_path_of_an_id_is_kept_with_the_run(write):
    (run,) = io.read_runs(write("log.json", [{"of": {"run": "a"}, "messages": TALK}]), id="of.run")
    assert (run.id, run.extra["of.run"]) == ("a", "a")
    (run,) = io.read_runs(write("log.json", [{"run": "a", "messages": TALK}]), id="run")
    assert run.extra == {"run": "a"}
