"""Calls that a proxy logs, and states that grow: which records are one run."""

import json
from pathlib import Path

import pytest

from trajscore import io
from trajscore.io import _requests as requests
from trajscore.io._requests import awaits_answer, is_call, of_batch
from trajscore.io.fields import Fields
from trajscore.io.files import Place

ASK = {"role": "user", "content": "Where is order 3?"}
CALL = {"id": "c1", "type": "function", "function": {"name": "find", "arguments": '{"n": 3}'}}
LOOK = {"role": "assistant", "content": "I look.", "tool_calls": [CALL]}
FOUND = {"role": "tool", "tool_call_id": "c1", "content": "in Paris"}
SAY = {"role": "assistant", "content": "In Paris."}
TALK = [ASK, LOOK, FOUND, SAY]


def request(k, messages, answer, **more):
    """Return a line as a proxy logs it."""
    usage = {"prompt_tokens": 5, "completion_tokens": 2}
    response = {"choices": [{"message": answer}], "usage": usage}
    return {"timestamp": k, "request": {"messages": messages}, "response": response, **more}


def flat(k, messages, answer, **more):
    """Return a call as some keep it, messages and choices side by side."""
    return {"created_at": k, "messages": messages, "choices": [{"message": answer}], **more}


def check(runs, n=1):
    assert len(runs) == n
    for run in runs:
        assert [(step.actor, step.text) for step in run.steps] == [
            ("user", "Where is order 3?"),
            ("agent", "I look."),
            ("agent", "In Paris."),
        ]
        (call,) = run.steps[1].tool_calls
        assert (call.name, call.arguments, call.result) == ("find", {"n": 3}, "in Paris")


@pytest.mark.parametrize("line", [request, flat])
@pytest.mark.parametrize("name", ["session_id", "thread_id", "run_id"])
def test_calls_of_interleaved_sessions(write, line, name):
    first = [line(k, TALK[:1], LOOK, **{name: f"s{k}"}) for k in range(3)]
    second = [line(9 - k, TALK[:3], SAY, **{name: f"s{k}"}) for k in range(3)]
    runs = io.read_runs(write("log.jsonl", [*second, *first], lines=True))  # by time, not by line
    check(runs, 3)
    assert sorted(run.id for run in runs) == ["s0", "s1", "s2"]
    assert line is flat or runs[0].meta["output_tokens"] == 4
    mixed = write("log2.jsonl", [*first, *second], lines=True)
    with pytest.raises(ValueError, match="run 's0' continues after another run"):
        list(io.iter_runs(mixed))
    together = [line for pair in zip(first, second, strict=True) for line in pair]
    check(list(io.iter_runs(write("log3.jsonl", together, lines=True))), 3)


@pytest.mark.parametrize("line", [request, flat])
def test_calls_without_a_session_are_joined_where_one_repeats_the_other(write, line):
    other = {"role": "assistant", "content": "Which one?"}
    lines = [line(1, TALK[:1], LOOK), line(2, [ASK], other), line(3, TALK[:3], SAY)]
    first, second = io.read_runs(write("log.jsonl", lines, lines=True))
    check([first])
    assert [step.text for step in second.steps] == ["Where is order 3?", "Which one?"]


def test_calls_of_one_session_need_not_repeat_each_other(write):
    lines = [
        request(1, [ASK], SAY, session_id="a"),
        request(2, [{"role": "user", "content": "Sum up."}], LOOK, session_id="a"),
    ]
    (run,) = io.read_runs(write("log.jsonl", lines, lines=True))
    assert [step.text for step in run.steps] == [ASK["content"], "In Paris.", "Sum up.", "I look."]


def test_a_call_and_a_conversation_of_one_session_are_runs(write):
    other = {"session_id": "a", "messages": [{"role": "user", "content": "Hi"}, LOOK]}
    lines = [request(1, [ASK], SAY, session_id="a"), other]
    runs = io.read_runs(write("log.jsonl", lines, lines=True))
    assert [[step.text for step in run.steps] for run in runs] == [
        [ASK["content"], "In Paris."], ["Hi", "I look."],
    ]  # fmt: skip


def test_calls_with_outcomes_or_trials_of_their_own_are_runs(write):
    for more in ({"success": True}, {"trial": 1}):
        (name,) = more
        lines = [request(k, [ASK], SAY, session_id="a", **{name: k}) for k in (0, 1)]
        runs = io.read_runs(write("log.jsonl", lines, lines=True))
        assert [run.id for run in runs] == ["a", "a"]


def test_trials_of_one_task_are_runs(write):
    lines = [flat(k, [ASK], {"role": "assistant", "content": str(k)}, id="t") for k in range(4)]
    assert len(io.read_runs(write("log.jsonl", lines, lines=True))) == 4


@pytest.mark.parametrize("order", [1, -1])
def test_states_of_one_thread_that_grow(write, order):
    states = [
        {"values": {"messages": TALK[:k]}, "thread_id": name} for k in (1, 2, 3, 4) for name in "ab"
    ][::order]
    runs = io.read_runs(write("log.json", states))
    check(runs, 2)
    assert {run.id for run in runs} == {"a", "b"}


@pytest.mark.parametrize("answer", ["In Rome.", ""])
@pytest.mark.parametrize("end", [False, True])
def test_an_answer_that_was_asked_for_again_is_no_turn(write, answer, end):
    bad = {"role": "assistant", "content": answer}
    lines = [request(1, TALK[:1], bad), request(2, TALK[:1], LOOK), request(3, TALK[:3], SAY)]
    if end and not answer:  # a call that failed, the last but one
        lines = [lines[1], request(2.5, TALK[:3], bad), lines[2]]
    lines = [{**line, "session_id": "s"} for line in lines]
    runs = io.read_runs(write("log.jsonl", lines, lines=True))
    check(runs)
    assert runs.notes[0].startswith("1 answer of a model not used: it was asked the same again")
    assert runs.notes[1].startswith("3 records of the log joined into 1 run")


def test_runs_that_others_begin_with_are_said(write):
    lines = [{"messages": TALK[:k], "request": f"r{k}"} for k in (2, 4)]
    (note,) = io.read_runs(write("log.jsonl", lines, lines=True)).notes
    assert "1 run of 2 hold only the beginning of another run" in note


def test_states_that_part_are_runs(write):
    other = [ASK, {"role": "assistant", "content": "No."}]
    states = [{"messages": one, "thread_id": "a"} for one in (TALK[:1], TALK, other)]
    runs = io.read_runs(write("log.json", states))
    assert sorted(len(run.steps) for run in runs) == [2, 3]


@pytest.mark.parametrize("raw", ["x", 3, None, [], {"id": "a"}, {"id": "a", "messages": "x"}])
def test_records_that_cannot_be_read_are_left_out(write, raw):
    lines = [{"id": "a", "messages": TALK}, raw, raw]
    with pytest.warns(UserWarning, match="of 3 runs"):
        check(io.read_runs(write("log.json", lines)))


ANSWER = {"role": "assistant", "content": "In Rome."}
CHOICES = {"choices": [{"message": ANSWER, "finish_reason": "stop"}], "usage": {"prompt_tokens": 5}}
ANTHROPIC = {
    "type": "message",
    "role": "assistant",
    "content": [{"type": "text", "text": "In Rome."}],
}
GEMINI = {"candidates": [{"content": {"role": "model", "parts": [{"text": "In Rome."}]}}]}
ASKED = {"messages": [ASK]}


@pytest.mark.parametrize(
    ("record", "n_turns"),
    [
        ({"id": "b1", "response": {"status_code": 200, "body": CHOICES}, "error": None}, 1),
        ({"result": {"type": "succeeded", "message": ANTHROPIC}}, 1),
        ({"request": {"contents": [{"role": "user", "parts": [{"text": "Where?"}]}]},
          "response": GEMINI}, 2),
        ({"modelInput": ASKED, "modelOutput": ANTHROPIC}, 2),
        ({"modelInput": ASKED, "modelOutput": {"output": {"message": ANSWER}}}, 2),
        ({"request_body": ASKED, "response_body": CHOICES}, 2),
        ({"request": {"body": ASKED}, "response": {"body": CHOICES}}, 2),
    ],
)  # fmt: skip
def test_results_of_batches_are_a_run_each(write, record, n_turns):
    lines = [{"custom_id": f"r{k}", **record} for k in range(3)]
    failed = {"custom_id": "r3", "result": {"type": "errored", "error": {"message": "no"}}}
    with pytest.warns(UserWarning, match="1 of 4 runs could not be read"):
        runs = io.read_runs(write("log.jsonl", [*lines, failed], lines=True))
    assert [run.id for run in runs] == ["r0", "r1", "r2"]
    assert [len(run.steps) for run in runs] == [n_turns] * 3
    assert {run.steps[-1].text for run in runs} == {"In Rome."}


@pytest.mark.parametrize(
    "value",
    [None, {}, {"body": {}}, {"body": {"x": 1}}, {"output": "x"}, {"candidates": ["x"]}, 3],
)
def test_other_records_are_not_of_a_batch(value):
    assert of_batch({"id": 1, "response": value}) is None
    assert of_batch(value) is None


def test_durations_of_calls_are_not_their_order(write):
    lines = [
        {"session_id": "s", "time": time, "request": {"messages": TALK[:k]},
         "response": {"choices": [{"message": TALK[k]}]}}
        for k, time in ((1, 3.5), (3, 1.2))
    ]  # fmt: skip
    check(io.read_runs(write("log.jsonl", lines, lines=True)))


def texts_of(runs):
    return [[step.text for step in run.steps] for run in runs]


def test_calls_whose_answers_name_no_role_are_joined_by_their_first_turn(write):
    more = {"role": "user", "content": "And order 4?"}
    lines = [
        {"request": {"messages": messages}, "response": {"content": "In Paris."}}
        for messages in ([ASK], [ASK, more])
    ]
    runs = io.read_runs(write("log.jsonl", lines, lines=True))
    assert len(runs) == 1
    assert "2 records of the log joined into 1 run" in runs.notes[0]


@pytest.mark.parametrize(("start", "n_runs"), [("000000", 4), ("0000000", 2)])
@pytest.mark.parametrize("wrapper", [None, "kwargs", "data"])
def test_states_are_joined_by_long_ids_of_their_first_messages(write, start, n_runs, wrapper):
    def with_id(message, k):
        kind = {"user": "human", "assistant": "ai"}[message["role"]]
        fields = {"id": f"{start}{k}", "type": kind, "content": message["content"]}
        if wrapper == "kwargs":  # as LangChain's dumps writes it
            name = {"human": "HumanMessage", "ai": "AIMessage"}[kind]
            path = ["langchain", "schema", "messages", name]
            return {"lc": 1, "type": "constructor", "id": path, "kwargs": fields}
        return fields if wrapper is None else {"type": kind, wrapper: fields}

    states = [
        {"values": {"messages": [with_id(message, k) for message in messages]}}
        for k in (1, 2)
        for messages in ([ASK, SAY], [ASK, SAY, ASK, SAY])
    ]
    runs = io.read_runs(write("log.json", states))
    assert len(runs) == n_runs
    if n_runs == 2:
        assert texts_of(runs) == [[ASK["content"], SAY["content"]] * 2] * 2


@pytest.mark.parametrize(
    "blank", [{"messages": []}, {}, {"channel_values": {"messages": []}}, {"channel_values": {}}]
)
def test_a_state_before_the_first_message_is_no_run(write, blank):
    states = [
        {"values": {"messages": TALK}, "thread_id": "a"}, {"values": blank, "thread_id": "a"}
    ]  # fmt: skip
    check(io.read_runs(write("log.json", states)))


def test_a_run_has_the_last_value_of_each_field_of_its_calls(write):
    lines = [
        request(1, TALK[:1], LOOK, session_id="s", success=None, source="web"),
        request(2, TALK[:3], SAY, session_id="s", success=True, source=None),
    ]
    (run,) = io.read_runs(write("log.jsonl", lines, lines=True))
    assert (run.id, run.outcome) == ("s", 1)
    assert run.extra["source"] == "web"


def test_calls_of_states_that_differ_in_outcome_are_runs(write):
    states = [
        {"messages": TALK[:k], "thread_id": "a", "success": k == 4} for k in (2, 4)
    ]  # fmt: skip
    assert len(io.read_runs(write("log.json", states))) == 2
    states = [{"messages": TALK[:k], "thread_id": "a", "success": True} for k in (2, 4)]
    check(io.read_runs(write("log.json", states)))
    states = [{"messages": TALK[:k], "thread_id": "a", "trial": k} for k in (2, 4)]
    assert len(io.read_runs(write("log.json", states))) == 2


def test_calls_that_ask_the_same_are_trials_unless_another_asks_more(write):
    again = [request(k, [ASK], SAY, session_id="a") for k in (1, 2)]
    assert (
        texts_of(io.read_runs(write("log.jsonl", again, lines=True)))
        == [[ASK["content"], SAY["content"]]] * 2
    )
    more = request(3, [*TALK[:1], {"role": "user", "content": "Sum up."}], LOOK, session_id="a")
    assert len(io.read_runs(write("log2.jsonl", [*again, more], lines=True))) == 1


def test_an_id_of_a_record_does_not_join_calls_that_differ(write):
    lines = [
        request(1, [ASK], SAY, id="a"),
        request(2, [{"role": "user", "content": "Sum up."}], LOOK, id="a"),
    ]
    assert len(io.read_runs(write("log.jsonl", lines, lines=True))) == 2


def test_the_order_of_runs_is_that_of_their_first_records(write):
    late = {"role": "user", "content": "Late"}
    states = [
        {"messages": [ASK], "thread_id": "a"},
        {"messages": [late, SAY], "thread_id": "a"},
        {"messages": [ASK, LOOK], "thread_id": "a"},
    ]
    assert texts_of(io.read_runs(write("log.json", states))) == [
        [ASK["content"], LOOK["content"]], ["Late", SAY["content"]],
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("record", "is_one", "awaits"),
    [
        (flat(1, [ASK], SAY), True, False),
        (request(1, [ASK], SAY), True, False),
        ({"messages": [ASK], "response": "In Paris."}, True, True),
        ({"messages": [ASK, SAY], "response": "In Paris."}, True, False),
        ({"messages": [ASK], "response": ""}, False, False),
        ({"messages": [], "response": "In Paris."}, False, False),
        ({"messages": [ASK]}, False, False),
        ([ASK], False, False),
    ],
)
def test_which_records_are_calls_and_which_have_the_answer_elsewhere(record, is_one, awaits):
    assert (is_call(record), awaits_answer(record)) == (is_one, awaits)


def test_calls_that_a_record_lists_are_its_run(write):
    """A trace with its spans, beside its own input and output."""
    calls = [
        {"id": k, "start_time": k, "type": "llm", "input": {"messages": TALK[:n]},
         "output": {"choices": [{"message": TALK[n]}]}, "usage": {"prompt_tokens": 5}}
        for k, n in enumerate((1, 3))
    ]  # fmt: skip
    tool = {
        "id": 9,
        "start_time": 0.5,
        "type": "tool",
        "input": {"n": 3},
        "output": {"at": "Paris"},
    }
    trace = {"id": "r", "name": "agent", "input": {"messages": [ASK]}, "output": {"output": "x"},
             "start_time": 0, "usage": {}, "feedback_scores": [{"name": "solved", "value": 1}],
             "spans": [calls[0], tool, calls[1]]}  # fmt: skip
    other = trace | {"id": "s", "feedback_scores": [{"name": "solved", "value": 0}]}
    lists = write("a.json", [trace, other]), write("a.jsonl", [trace, other], lines=True)
    for path in (*lists, write("b.json", trace)):
        runs = io.read_runs(path)
        assert [(run.id, run.outcome) for run in runs] == [("r", 1), ("s", 0)][: len(runs)]
        check(runs, len(runs))
        assert runs[0].meta["input_tokens"] == 10
    nameless = [{k: v for k, v in record.items() if k != "id"} for record in (trace, other)]
    assert len(io.read_runs(write("c.json", nameless))) == 2


def test_answers_beside_messages(write):
    for name in ("output_message", "output", "completion", "raw"):
        for answer in (SAY, SAY["content"]):
            record = {"id": "r", "messages": TALK[:-1], name: answer}
            check(io.read_runs(write("a.json", [record])))
    check(io.read_runs(write("a.json", [{"id": "r", "messages": TALK, "output": "In Paris."}])))


def test_requests_and_answers_as_text(write):
    answer = json.dumps({"choices": [{"message": SAY}]})
    record = {"id": "r", "request": json.dumps({"messages": TALK[:-1]}), "response": answer}
    check(io.read_runs(write("a.jsonl", [record, record | {"id": "s"}], lines=True)), 2)


def test_logs_of_bodies_with_sessions(write):
    lines = [
        {"requestId": f"{s}{n}", "timestamp": n, "meta": {"session": s},
         "input": {"inputBodyJson": {"messages": [ASK | {"content": f"Hi {s}"}, *TALK[1:n]]}},
         "output": {"outputBodyJson": {"output": {"message": TALK[n]}}}}
        for s in "ab"
        for n in (1, 3)
    ]  # fmt: skip
    path = write("a.jsonl", lines, lines=True)
    runs = io.read_runs(path, id="meta.session")
    assert [(run.id, len(run.steps)) for run in runs] == [("a", 3), ("b", 3)]
    assert len(io.read_runs(path)) == 4


def test_runs_in_lists_below_models_and_tasks(write):
    runs = {"gpt": {"t1": [{"success": True, "messages": TALK}] * 2}, "claude": {"t1": []}}
    runs["claude"]["t1"] = [{"success": False, "messages": TALK}]
    read = io.read_runs(write("a.json", runs))
    check(read, 3)
    assert [run.id for run in read] == ["gpt-t1-0", "gpt-t1-1", "claude-t1-0"]
    assert [run.outcome for run in read] == [1, 1, 0]


def test_ids_of_calls_are_not_those_of_runs(write):
    """Calls with ids of their own that continue each other are one run; those that do not, two."""
    answers = {k: {"choices": [{"message": TALK[k]}]} for k in (1, 3)}
    calls = [
        {"id": f"c{k}", "input": {"messages": TALK[:k]}, "output": answer}
        for k, answer in answers.items()
    ]
    check(io.read_runs(write("a.jsonl", calls, lines=True)))
    other = {"id": "d1", "input": {"messages": [ASK, ASK]}, "output": answers[1]}
    assert len(io.read_runs(write("b.jsonl", [*calls, other], lines=True))) == 2
    alike = [call | {"id": f"e{k}"} for k, call in enumerate(calls[:1] * 3)]
    assert [run.id for run in io.read_runs(write("c.jsonl", alike, lines=True))] == [
        "e0",
        "e1",
        "e2",
    ]


def test_messages_as_text_under_another_name(write):
    record = {"id": "r", "user_input": json.dumps(TALK), "accuracy": 0.5}
    check(io.read_runs(write("a.jsonl", [record], lines=True)))


def test_the_answer_of_a_crew_counts(write):
    """CrewAI keeps the last answer beside the messages of its task."""
    nudge = {"role": "user", "content": "Analyze the tool result."}
    task = {"description": "Find it", "raw": SAY["content"], "messages": [ASK, LOOK, FOUND, nudge]}
    output = {"raw": SAY["content"], "tasks_output": [task], "token_usage": {"total_tokens": 3}}
    whole = [ASK, LOOK, FOUND, SAY]
    check(io.read_runs(write("a.json", {**output, "tasks_output": [task | {"messages": whole}]})))
    for log in ([output], output, task):
        (run,) = io.read_runs(write("a.json", log))
        texts = [(step.actor, step.text) for step in run.steps]
        assert texts[-1] == ("agent", SAY["content"])
        assert [actor for actor, _ in texts] == ["user", "agent", "user", "agent"]


@pytest.mark.parametrize(
    ("record", "sides"),
    [
        ({"input": "a", "output": "b"}, ("a", "b")), ({"input": "a", "output": ""}, (None, None)),
        ({"input": [], "output": "b"}, (None, None)), ({"output": "b"}, (None, None)),
        ({"prompt": "a", "response": "b", "completion": "c"}, ("a", "c")),
        ({"input": "a", "output": "b", "inputs": 1, "outputs": 2}, (1, 2)),
        ({"messages": [ASK], "choices": [1]}, ([ASK], {"choices": [1]})),
        ({"messages": [ASK], "choices": []}, (None, None)), ({}, (None, None)),
    ],
)  # fmt: skip
def test_the_two_sides_of_a_call(record, sides):
    assert requests.sides_of(record) == sides


def test_items_by_their_ids():
    items = [(k, name) for k, name in enumerate("abaab")]

    def name_of(item):
        return item[1]

    def numbers(one_by_one):
        groups = requests.by_id(iter(items), name_of, one_by_one=one_by_one)
        return [(name, [k for k, _ in own]) for name, own in groups]

    assert numbers(one_by_one=False) == [("a", [0, 2, 3]), ("b", [1, 4])]
    assert numbers(one_by_one=True) == [("a", [0]), ("b", [1]), ("a", [2, 3]), ("b", [4])]
    assert list(requests.by_id([], name_of, one_by_one=False)) == []


@pytest.mark.parametrize(
    ("message", "name"),
    [
        ({"id": "x" * 8}, "x" * 8), ({"id": "x" * 7}, None), ({"id": 12345678}, None), ({}, None),
        ({"kwargs": {"id": "x" * 8}}, "x" * 8), ({"data": {"id": "x" * 8}, "id": "y" * 8}, "x" * 8),
        ({"kwargs": {}, "id": "y" * 8}, "y" * 8),
    ],
)  # fmt: skip
def test_long_ids_of_first_messages(message, name):
    assert requests._first_id({"messages": [{**ASK, **message}, {**ASK, "id": "z" * 9}]}) == name
    assert requests._first_id([message]) is requests._first_id({"messages": []}) is None


def test_an_answer_that_the_conversation_ends_with():
    for messages, answer, ends in (
        ([ASK, {"content": "x"}], "x", True), ([{"content": "x"}, ASK], "x", False),
        ([ASK], [ASK], False), ([], "x", False), ("x", "x", False), ([{"content": ""}], "", True),
        (["x"], "x", False),
    ):  # fmt: skip
        assert requests._ends_with(messages, answer) is ends, (messages, answer)


def test_records_that_differ_in_outcome_or_trial():
    for records, differ in (
        ([{"outcome": 1}, {"outcome": 0}], True), ([{"outcome": 1}, {"outcome": None}, {}], False),
        ([{"trial": 1}, {"trial": "1"}], False), ([{"trial": 1}, {"trial": 2}], True),
        ([{"outcome": {"value": 1}}, {"outcome": 1}], False),
        ([], False),
    ):  # fmt: skip
        assert requests._differ(records, Fields()) is differ


def test_each_beginning_of_a_conversation_has_a_hash():
    one, other = requests._hashes("abc"), requests._hashes("abd")
    assert (one[:2], len(one), len(set(one))) == (other[:2], 3, 3)
    assert one[2] != other[2]
    assert requests._hashes("b") != [one[1]]
    assert requests._hashes("") == []


def test_requests_and_answers_out_of_what_is_around_them():
    inner = {"x": 1}
    for depth, found in ((0, True), (3, True), (4, False)):
        value = inner
        for _ in range(depth):
            value = {"body": value, "n": 1}
        assert (requests._body(value) == inner) is found
    assert requests._body({"output": inner, "message": {"y": 2}}) == {"y": 2}
    assert requests._body({"body": {}, "z": 3}) == {"body": {}, "z": 3}
    assert requests._body("x") == {}


def test_the_beginning_of_a_call_goes_to_the_first_answer():
    first, other = flat(1, [ASK], LOOK), flat(1, [ASK], SAY)
    start = requests._start(first)
    assert [turn[0] for turn in start] == ["user", "agent"]
    assert start == requests._start(flat(2, [ASK, LOOK, FOUND], SAY))
    assert start != requests._start(other)
    assert [turn[0] for turn in requests._turns(flat(2, [ASK, LOOK, FOUND], SAY))] == [
        "user", "agent", "agent",
    ]  # fmt: skip
    assert len(requests._turns({"messages": [ASK, SAY]})) == 2
    assert requests._turns({"x": 1}) == ()


def test_the_records_of_a_run_stand_where_the_first_does():
    def runs(*records):
        items = [(Place(Path("a.jsonl"), k), record) for k, record in enumerate(records)]
        found = requests._runs_of(items, Fields())
        return [(place.index, place.n_records, raw) for place, raw in found]

    calls = flat(1, TALK[:1], LOOK, session_id="a"), flat(2, TALK[:3], SAY, session_id="a")
    assert runs(*calls) == [(0, 2, list(calls))]
    states = [{"messages": TALK[:k], "thread_id": "a"} for k in (2, 4)]
    assert runs(*states) == [(1, 2, states[1])]
    assert runs(*states[::-1]) == [(0, 2, states[1])]
    mixed = calls[0], states[1]
    assert runs(*mixed) == [(1, 2, states[1])]
    alike = [states[0], dict(states[0])]
    assert runs(*alike) == [(0, 1, states[0]), (1, 1, states[0])]
    blank = {"values": {"messages": []}, "thread_id": "a"}
    assert runs(blank, states[0]) == [(1, 1, states[0])]
    assert runs(blank, blank) == [(0, 1, blank), (1, 1, blank)]


def test_records_that_differ_from_the_last_of_a_run_are_another():
    states = [
        {"messages": TALK[:1], "thread_id": "a"},
        {"messages": TALK[:2], "thread_id": "a", "success": True},
        {"messages": TALK, "thread_id": "a", "success": False},
    ]
    items = [(Place(Path("a.jsonl"), k), state) for k, state in enumerate(states)]
    found = [raw for _, raw in requests._runs_of(items, Fields())]
    assert found == states[1:]


def test_a_turn_that_ends_with_results_awaits_its_answer():
    parts = [
        {"type": "tool-call", "toolCallId": "c1", "toolName": "f", "input": {}},
        {"type": "tool-result", "toolCallId": "c1", "output": "1"},
    ]
    turn = {"role": "assistant", "content": parts}
    assert awaits_answer({"messages": [ASK, turn], "response": "In Paris."})
    turn = {"role": "assistant", "content": parts[:1]}
    assert not awaits_answer({"messages": [ASK, turn], "response": "In Paris."})


@pytest.mark.parametrize(
    ("record", "batch"),
    [
        ({"custom_id": "r", "key": "k", "response": {"body": CHOICES}},
         {"custom_id": "r", "key": "k", "id": "r", "usage": {"prompt_tokens": 5}}),
        ({"key": "k", "id": "i", "response": {"body": CHOICES}, "x": 1},
         {"key": "k", "id": "k", "usage": {"prompt_tokens": 5}, "x": 1}),
        ({"response": {"body": CHOICES}}, {"id": None, "usage": {"prompt_tokens": 5}}),
        ({"id": "i", "response": GEMINI}, {"id": "i", "usage": None}),
        ({"id": "i", "response": {"candidates": [{"x": 1}, {"content": "x"}]}},
         {"id": "i", "usage": None}),
        ({"id": "i", "response": {"candidates": [{"x": 1}]}}, None),
        ({"id": "i", "response": GEMINI, "messages": [ASK]}, None),
    ],
)  # fmt: skip
def test_records_of_a_batch_keep_their_other_fields(record, batch):
    found = of_batch(record)
    if batch is None:
        assert found is None
        return
    messages = found.pop("messages")
    assert found == batch
    assert len(messages) >= 1 or "x" in str(record)


def test_calls_that_a_record_lists_have_its_fields():
    call = {"id": "c", "input": {"messages": [ASK]}, "output": {"choices": [{"message": SAY}]}}
    record = {"run_id": "r", "success": 1, "time": 5, "note": "x", "spans": [call, {"n": 1}, 3]}
    (found,) = requests.listed_calls(record)
    assert found == call | {"run_id": "r", "success": 1, "note": "x"}
    blank = call | {"note": None, "success": 0, "kind": "llm"}
    (found,) = requests.listed_calls(record | {"spans": [blank]})
    assert found == call | {"run_id": "r", "success": 1, "note": "x", "kind": "llm"}
    assert len(requests.listed_calls({"a": [1], "spans": [call, call]})) == 2
    tool = {"input": {"n": 3}, "output": "x"}
    for other in ({"spans": [tool]}, {"messages": [call]}, {"spans": call}, [call], None, {}):
        assert requests.listed_calls(other) is None


def test_the_fields_of_events_of_a_run():
    calls = requests.Calls([{"a": 1, "b": 2}, {"a": None, "b": 3, "c": 4}])
    assert calls.fields() == {"a": 1, "b": 3, "c": 4}
