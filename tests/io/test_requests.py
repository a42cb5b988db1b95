"""Calls that a proxy or a batch logs, and states that grow: which records are one run."""

import itertools
import json

import pytest

from known_dialogue import ALL, ASK, FOUND, LOOK, TOLD, said
from trajscore import io

TALK = [ASK, LOOK, FOUND, TOLD]
MORE = {"role": "user", "content": "Sum up."}


def request(k, messages, answer, **more):
    """Return a line as a proxy logs it."""
    usage = {"prompt_tokens": 5, "completion_tokens": 2}
    response = {"choices": [{"message": answer}], "usage": usage}
    return {"timestamp": k, "request": {"messages": messages}, "response": response, **more}


def flat(k, messages, answer, **more):
    """Return a call as some keep it, messages and choices side by side."""
    return {"created_at": k, "messages": messages, "choices": [{"message": answer}], **more}


def whole(line=request, **more):
    """Return the two calls of the known dialogue."""
    return [line(1, TALK[:1], LOOK, **more), line(2, TALK[:3], TOLD, **more)]


def texts(write, *lines, name="log.jsonl"):
    """Read lines to the texts of the turns of each run."""
    runs = io.read_runs(write(name, list(lines), lines=name.endswith("l")))
    return [[step.text for step in run.steps] for run in runs]


def test_calls_of_interleaved_sessions(write):
    for line, name in itertools.product((request, flat), ("session_id", "thread_id", "run_id")):
        pairs = [whole(line, **{name: f"s{k}"}) for k in range(3)]
        first, second = zip(*pairs, strict=True)
        runs = io.read_runs(write("log.jsonl", [*second, *first], lines=True))
        assert [said(run) for run in runs] == [ALL] * 3
        assert sorted(run.id for run in runs) == ["s0", "s1", "s2"]
        assert line is flat or runs[0].meta["output_tokens"] == 4
        together = write("log3.jsonl", [call for pair in pairs for call in pair], lines=True)
        assert [said(run) for run in io.iter_runs(together)] == [ALL] * 3
        with pytest.raises(ValueError, match="run 's0'.*after another run"):
            list(io.iter_runs(write("log2.jsonl", [*first, *second], lines=True)))


OTHER = {"role": "assistant", "content": "Which one?"}
LOOKED, END = "I look.", "In Paris."
ONE = [ASK["content"], LOOKED, END]
JOINED = [
    # without an id, calls are one run where one repeats the other
    ([*whole(), request(1, [ASK], OTHER)], [ONE, [ASK["content"], "Which one?"]]),
    ([*whole(flat), flat(1, [ASK], OTHER)], [ONE, [ASK["content"], "Which one?"]]),
    # with a session they need not, unless an outcome or a trial differs
    ([request(1, [ASK], TOLD, session_id="a"), request(2, [MORE], LOOK, session_id="a")],
     [[ASK["content"], END, "Sum up.", LOOKED]]),
    ([request(k, [ASK], TOLD, session_id="a", success=bool(k)) for k in (0, 1)],
     [[ASK["content"], END]] * 2),
    ([request(k, [ASK], TOLD, session_id="a", trial=k) for k in (0, 1)],
     [[ASK["content"], END]] * 2),
    # the id of a record is no session; nor does it part calls that go on
    ([request(1, [ASK], TOLD, id="a"), request(2, [MORE], LOOK, id="a")],
     [[ASK["content"], END], ["Sum up.", LOOKED]]),
    ([flat(k, [ASK], {"role": "assistant", "content": str(k)}, id="t") for k in range(3)],
     [[ASK["content"], str(k)] for k in range(3)]),
    ([call | {"id": f"c{k}"} for k, call in enumerate(whole())], [ONE]),
    ([call | {"id": f"c{k}"} for k, call in enumerate([*whole(), request(1, [ASK, ASK], LOOK)])],
     [ONE, [ASK["content"]] * 2 + [LOOKED]]),
    # calls that ask the same are trials, unless another one asks more
    ([request(k, [ASK], TOLD, session_id="a") for k in (1, 2)], [[ASK["content"], END]] * 2),
    ([request(1, [ASK], TOLD, session_id="a"), {"session_id": "a", "messages": [MORE, LOOK]}],
     [[ASK["content"], END], ["Sum up.", LOOKED]]),
    # durations are no order
    ([{"session_id": "s", "time": time, "request": {"messages": TALK[:k]}, "response":
     {"choices": [{"message": TALK[k]}]}} for k, time in ((1, 3.5), (3, 1.2))], [ONE]),
    # states that grow
    ([{"values": {"messages": TALK[:k]}, "thread_id": name} for k in (1, 2, 3, 4) for name in "ab"],
     [ONE] * 2),
    ([{"values": {"messages": TALK[:k]}, "thread_id": "a"} for k in (4, 2, 3, 1)], [ONE]),
    ([{"messages": one, "thread_id": "a"} for one in (TALK[:1], TALK, [ASK, OTHER])],
     [[ASK["content"], "Which one?"], ONE]),
    ([{"messages": TALK[:k], "thread_id": "a", "success": k == 4} for k in (2, 4)], [ONE[:2], ONE]),
    ([{"messages": TALK[:k], "thread_id": "a", "success": True} for k in (2, 4)], [ONE]),
    ([{"messages": TALK[:k], "thread_id": "a", "trial": k} for k in (2, 4)], [ONE[:2], ONE]),
    *(([{"values": {"messages": TALK}, "thread_id": "a"}, {"values": blank, "thread_id": "a"}],
     [ONE]) for blank in ({"messages": []}, {}, {"channel_values": {"messages": []}})),
    # in the order of their first records
    ([{"messages": [ASK, OTHER], "thread_id": "a"}, {"messages": [MORE, TOLD], "thread_id": "a"},
     {"messages": [ASK, OTHER, MORE], "thread_id": "a"}],
     [[ASK["content"], "Which one?", "Sum up."], ["Sum up.", END]]),
    # answers beside the messages, as text or within what is around them
    *(([{"id": "r", "messages": TALK[:-1], name: answer}], [ONE])
     for name in ("output_message", "output", "completion", "raw") for answer in (TOLD, END)),
    ([{"id": "r", "messages": TALK, "output": END}], [ONE]),
    ([{"id": "r", "request": json.dumps({"messages": TALK[:-1]}),
     "response": json.dumps({"choices": [{"message": TOLD}]})}] * 2, [ONE] * 2),
    ([{"request": {"messages": m}, "response": {"content": END}} for m in ([ASK], [ASK, MORE])],
     [[ASK["content"], END, "Sum up.", END]]),
    ([{"id": "r", "messages": [ASK, LOOK, FOUND], "response": END}], [ONE]),
]  # fmt: skip


def test_which_records_are_one_run(write):
    wrong = []
    for lines, expected in JOINED:
        for name in ("log.jsonl", "log.json"):
            got = texts(write, *lines, name=name)
            wrong += [(name, lines, got)] if got != expected else []
    assert not wrong


def test_states_without_a_thread_are_joined_by_long_ids_of_their_first_messages(write):
    for start, n_runs in (("0000000", 2), ("000000", 4)):
        plain = [{"type": "human", "content": "Hi", "id": f"{start}{k}"} for k in (1, 2)]
        for firsts in (
            plain,
            [{"type": "human", "data": one} for one in plain],
            [{"lc": 1, "id": ["HumanMessage"], "kwargs": one} for one in plain],
        ):
            talks = [[first, TOLD, MORE] for first in firsts]
            states = [{"messages": talk[:n]} for talk in talks for n in (2, 3)]
            got = texts(write, *states, name="log.json")
            assert (len(got), got[-1]) == (n_runs, ["Hi", END, "Sum up."]), firsts


def test_an_answer_that_was_asked_for_again_is_no_turn(write):
    for words in ("In Rome.", ""):
        bad = {"role": "assistant", "content": words}
        logs = [[request(1, TALK[:1], bad), request(2, TALK[:1], LOOK), request(3, TALK[:3], TOLD)]]
        if not words:  # a call that failed, the last but one
            first, last = whole()
            logs += [[first, request(1.5, TALK[:3], bad), last]]
        for lines in logs:
            lines = [line | {"session_id": "s"} for line in lines]
            (run,) = (runs := io.read_runs(write("log.jsonl", lines, lines=True)))
            assert said(run) == ALL
            notes = " ".join(runs.notes)
            assert "1 answer of a model not used" in notes
            assert "3 records" in notes


def test_a_run_has_the_last_value_of_each_field_of_its_calls(write):
    first, last = whole(session_id="s")
    lines = [first | {"success": None, "source": "web"}, last | {"success": True, "source": None}]
    (run,) = io.read_runs(write("log.jsonl", lines, lines=True))
    assert (run.id, run.outcome, run.extra["source"]) == ("s", 1, "web")


def test_results_of_batches_are_a_run_each(write):
    choices = {"choices": [{"message": TOLD, "finish_reason": "stop"}], "usage": {"n": 5}}
    blocks = {"type": "message", "role": "assistant", "content": [{"type": "text", "text": END}]}
    gemini = {"candidates": [{"content": {"role": "model", "parts": [{"text": END}]}}]}
    asked = {"messages": [ASK]}
    parts = {"contents": [{"role": "user", "parts": [{"text": "Where?"}]}]}
    for record, n_turns in (
        ({"id": "b", "response": {"status_code": 200, "body": choices}, "error": None}, 1),
        ({"result": {"type": "succeeded", "message": blocks}}, 1),
        ({"request": parts, "response": gemini}, 2),
        ({"modelInput": asked, "modelOutput": blocks}, 2),
        ({"modelInput": asked, "modelOutput": {"output": {"message": TOLD}}}, 2),
        ({"request_body": asked, "response_body": choices}, 2),
        ({"request": {"body": asked}, "response": {"body": choices}}, 2),
    ):  # fmt: skip
        lines = [{"custom_id": f"r{k}", **record} for k in range(2)]
        failed = {"custom_id": "r3", "result": {"type": "errored", "error": {"message": "no"}}}
        with pytest.warns(UserWarning, match="1 of 3 runs could not be read"):
            runs = io.read_runs(write("log.jsonl", [*lines, failed], lines=True))
        assert [run.id for run in runs] == ["r0", "r1"], record
        assert [len(run.steps) for run in runs] == [n_turns] * 2, record
        assert runs[0].steps[-1].text == END


def test_calls_that_a_record_lists_are_its_run(write):
    calls = [
        {"id": k, "start_time": k, "type": "llm", "input": {"messages": TALK[:n]},
         "output": {"choices": [{"message": TALK[n]}]}, "usage": {"prompt_tokens": 5}}
        for k, n in enumerate((1, 3))
    ]  # fmt: skip
    tool = {"id": 9, "start_time": 0.5, "type": "tool", "input": {"n": 3}, "output": {"a": 1}}
    trace = {"id": "r", "input": {"messages": [ASK]}, "output": {"output": "x"}, "start_time": 0,
             "usage": {}, "feedback_scores": [{"name": "solved", "value": 1}],
             "spans": [calls[0], tool, calls[1]]}  # fmt: skip
    other = trace | {"id": "s", "feedback_scores": [{"name": "solved", "value": 0}]}
    lists = write("a.json", [trace, other]), write("a.jsonl", [trace, other], lines=True)
    for path in (*lists, write("b.json", trace)):
        runs = io.read_runs(path)
        assert [(run.id, run.outcome) for run in runs] == [("r", 1), ("s", 0)][: len(runs)]
        assert all(said(run) == ALL for run in runs)
        assert runs[0].meta["input_tokens"] == 10


def test_states_of_graphs(write):
    config = {"configurable": {"thread_id": "t"}}
    of_server = {"values": {"messages": TALK}, "checkpoint": {"thread_id": "s"}, "next": []}
    saved = {"config": config, "checkpoint": {"channel_values": {"messages": TALK}}, "metadata": {}}
    state = {"values": {"messages": TALK}, "next": [], "config": config, "metadata": {}}
    for record, name in ((of_server, "s"), (saved, "t"), (state, "t")):
        (run,) = io.read_runs(write("state.json", record))
        assert (run.id, said(run)) == (name, ALL)
    history = [state | {"values": {"messages": TALK[:n]} if n else {}} for n in (4, 2, 1, 0)]
    for path in (write("h.json", history), write("h.jsonl", [history], lines=True)):
        (run,) = (runs := io.read_runs(path))
        assert (run.id, said(run), runs.left_out) == ("t", ALL, [])
    new = [{"raw_item": message} for message in TALK[1:]]
    record = {"$schemaVersion": "1", "original_input": ASK["content"], "generated_items": new}
    for path in (write("s.json", record), write("s.jsonl", [record], lines=True)):
        assert said(io.read_runs(path)[0]) == ALL
