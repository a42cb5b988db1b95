"""Reading a log: which runs are read, left out or refused, and what their stops mean."""

import json
import pickle
import warnings
from functools import partial

import pytest

from trajscore import io

TURN = {"role": "assistant", "content": "Hello"}


def test_an_observed_outcome_is_complete_and_others_are_as_they_stopped(log):
    for fields, outcome, kind in [
        ({"success": True}, 1, "complete"), ({}, -1, None),
        ({"success": True, "stop_reason": "max_steps"}, 1, "complete"),
        ({"success": False, "stop_reason": "max_steps"}, -1, "administrative"),
        ({"success": False, "stop_reason": "crash"}, 0, "complete"),
        ({"success": False, "stop_reason": "huh"}, 0, "unknown"),
        ({"stop_reason": "max_steps"}, -1, "administrative"),
        ({"stop_reason": "done"}, -1, "complete"), ({"stop_reason": "huh"}, -1, "unknown"),
    ]:  # fmt: skip
        (run,) = io.read_runs(log(fields))
        assert (run.outcome, run.stop_kind) == (outcome, kind), fields


def test_rewards_of_minus_one_are_noted(log):
    (note,) = io.read_runs(path := log({"reward": -1}, {"reward": 1})).notes
    assert "pass outcome_map='1=1,-1=0'" in note
    assert [run.outcome for run in io.read_runs(path, outcome_map="-1=0")] == [0, 1]


def test_runs_that_an_infrastructure_error_ended_are_left_out(log):
    path = log({}, {"stop_reason": "user_error"}, {"stop_reason": "user_error", "success": 0})
    with pytest.warns(UserWarning, match=r"2 of 3 runs are left out, as .* \(user_error 2\)"):
        runs = io.read_runs(path)
    assert [run.id for run in runs] == ["r0"]
    left, _ = runs.left_out
    assert (left.index, left.id, left.reason, left.kind) == (1, "r1", "user_error", "excluded")
    assert left.file == str(path)


def test_what_is_no_run_is_left_out_with_its_place(write):
    good = {"id": "a", "messages": [TURN]}
    for bad, named in [
        ({"messages": []}, "no turn of the agent"),
        ({"messages": [{"role": "user", "content": "Hi"}]}, "no turn of the agent"),
        ({"messages": [{"role": "b", "content": "Hi"}]}, "unknown roles: 'b'"),
        ({"x": 1, "messages": [TURN | {"content": " "}]}, "no turn of the agent has a text"),
        ([{"role": "assistant"}], "no turn of the agent has a text"),
        ({"messages": [TURN | {"logprobs": "abc"}]}, "message 0: its logprobs"), (3, "int"),
    ]:  # fmt: skip
        path = write("a.json", [good, bad])
        with pytest.warns(UserWarning, match=r"1 of 2 runs .*a\.json, run .*\(index 1\)"):
            (left,) = io.read_runs(path, format="openai").left_out
        assert named in left.reason, bad
        assert (left.index, left.kind) == (1, "malformed")
    with pytest.raises(ValueError, match="outcome_map"):
        io.read_runs(write("a.json", [good, {"messages": [TURN], "reward": 2, "id": "r"}]))


def test_a_warning_counts_all_and_names_some(write):
    runs = [{"id": str(k), "messages": [TURN]} for k in range(3)]
    bad = [{"id": f"b{k}", "messages": []} for k in range(4)]
    excluded = [{"stop_reason": "user_error", "messages": []}] * 2
    with pytest.warns(UserWarning, match="4 of 9 runs") as caught:
        io.read_runs(write("a.json", [*runs, *excluded, *bad]))
    said = str(caught[0].message)
    assert "2 of 9 runs are left out, as the harness lost them" in said
    assert [f"'b{k}'" in said for k in range(4)] == [True] * 3 + [False]
    assert "3 more" in said


def test_reading_one_by_one_warns_once_in_the_end(log):
    path = log({}, {"messages": []}, {})
    stream = io.iter_runs(path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert next(stream).id == "r0"
        assert stream.left_out == []
    with pytest.warns(UserWarning, match="1 of 3 runs could not be read"):
        assert [run.id for run in stream] == ["r2"]
    assert [one.id for one in stream.left_out] == ["r1"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert list(stream) == []


def test_warnings_point_to_the_line_that_reads(log):
    path = log({}, {"messages": []})
    named = partial(io.read_runs, format="openai")
    for read in (named, io.read_runs, lambda path: list(io.iter_runs(path))):
        with pytest.warns(UserWarning, match="1 of 2 runs") as caught:
            read(path)
        assert caught[0].filename == __file__


def test_a_log_of_which_nothing_can_be_read_is_refused(log):
    bad = {"messages": []}
    with pytest.raises(ValueError, match=r"none of the 2 runs .*openai: .*'r0' \(index 0\)"):
        io.read_runs(log(bad, bad))
    with pytest.warns(UserWarning, match="1 of 2 runs could not be read"):
        assert len(io.read_runs(log(bad, {}))) == 1
    with pytest.warns(UserWarning, match="1 of 1 run is left out"):
        assert len(io.read_runs(log({"stop_reason": "user_error"}))) == 0
    with pytest.warns(UserWarning, match="1 of 2 runs could not be read"):
        assert len(io.read_runs([log(bad, name="1.json"), log({}, name="2.json")])) == 1


def test_fields_of_the_file_are_told_by_file(write):
    run = {"id": "a", "messages": [TURN], "termination_reason": "user_stop"}
    paths = [
        write(f"{name}.json", {"info": {"n": name}, "simulations": [run | {"id": name}]})
        for name in "ab"
    ]
    runs = io.read_runs(paths)
    assert [run.id for run in runs] == ["a", "b"]
    assert [runs.info[str(path)]["info"] for path in paths] == [{"n": "a"}, {"n": "b"}]


def test_a_table_of_runs(write):
    turns = [
        io.Step("user", "Hi"),
        io.Step("agent", "Yes", [io.ToolCall("f"), io.ToolCall("g")], logprobs=(-1.0,)),
        io.Step("agent", "No", confidence=0.5, top_logprobs=((("a", -1.0),),)),
        io.Step("environment", "x", [io.ToolCall("h")], logprobs=(-1.0,), confidence=0.5),
    ]
    run = io.Run("a", turns, 0.5, "done", "complete", 7, 2, {"cost": 0.25, "task": "other"})
    (row,) = io.meta(run).to_dict("records")
    assert row == {
        "run": "a", "task": "7", "trial": 2, "outcome": 0.5, "stop_reason": "done",
        "stop_kind": "complete", "n_steps": 4, "n_agent": 2, "n_user": 1, "n_tool_calls": 3,
        "n_logprobs": 1, "n_top_logprobs": 1, "n_confidence": 1, "cost": 0.25,
    }  # fmt: skip
    assert io.outcomes(run).tolist() == [0.5]
    assert io.outcomes([]).tolist() == []
    assert list(io.meta([])) == list(row)[:-1]


def test_what_runs_show(log):
    with pytest.warns(UserWarning, match="1 of 4"):
        runs = io.read_runs(log({"success": 1}, {"success": 0.5}, {}, {"messages": []}))
    for named in ("3 runs", "1 success", "0 failures", "1 graded", "1 not observed", "1 malformed"):
        assert named in repr(runs)
    again = pickle.loads(pickle.dumps(runs))
    assert (again, again.left_out) == (runs, runs.left_out)
    assert (io.Runs().left_out, io.Runs().info, io.Runs().notes) == ([], {}, [])
    call = io.ToolCall("find")
    step = io.Step("agent", "x" * 41, [call], logprobs=(), confidence=0.25)
    for named in ("agent", "x" * 37 + "...", "find", "0.25"):
        assert named in repr(step)
    assert "x" * 40 in repr(io.Step("agent", "x" * 40))
    for outcome, named in ((1, "success"), (0, "failure"), (-1, "not observed"), (0.5, "0.5")):
        shown = repr(io.Run("a", [step], outcome, "cut"))
        assert all(word in shown for word in ("'a'", "1 step", named, "cut"))
    assert len(io.Run("a", [step] * 2)) == 2


@pytest.mark.parametrize("runs", [3, None, io.Run("a")])
def test_what_is_not_runs_is_refused(runs):
    with pytest.raises(ValueError, match="^runs must be"):
        io.Runs(runs)
    for reader in (io.outcomes, io.meta) if not isinstance(runs, io.Run) else ():
        with pytest.raises(ValueError, match="^runs must be"):
            reader(runs)


def test_values_that_are_not_outcomes():
    for outcome in (2, -0.5, "pass", 1.5):
        with pytest.raises(ValueError, match=f"run 'a': the outcome is {outcome!r}"):
            io.outcomes([io.Run("b", outcome=1), io.Run("a", outcome=outcome)])
    almost = [io.Run("a", outcome=1 + 1e-7), io.Run("b", outcome=1), io.Run("c")]
    assert io.outcomes(almost[1:]).tolist() == [1, -1]


def test_texts_that_no_run_holds_are_counted_by_their_fields(write):
    words, more = "some words here", [{"role": "user", "content": "and other words"}]
    attribute = {"key": "note", "value": words}
    for of_result, of_run, unread in [
        ({"note": words}, {}, "messages.note"),
        ({"n": json.dumps({"a": words})}, {}, "messages.n.a"),
        ({"list": [attribute, attribute]}, {}, "messages.list.note"),
        ({"1": {"a.0.b": words}}, {}, "messages.a.b"), ({}, {"x": more}, "x.content"),
        ({}, {"x": json.dumps({"y": more})}, "x.y.content"), ({}, {"x": json.dumps([words])}, None),
        ({"comment": words}, {}, None), ({"note": "Hello there"}, {}, None),
        ({"isMeta": True, "note": words}, {}, None), ({"when": "2025-01-01 10:00:00"}, {}, None),
        ({"content": {"a": f"{words}\n{words}"}}, {}, None),
        ({"note": words}, {"x": words}, None), ({"tools": {"note": words}}, {}, None),
    ]:  # fmt: skip
        turns = [TURN | {"content": "Hello there"}, {"role": "tool", "content": "1"} | of_result]
        runs = io.read_runs(
            write("a.json", [{"id": "a", "success": 1, "messages": turns} | of_run])
        )
        notes = [note for note in runs.notes if "not read" in note]
        assert notes == [f"1 text not read, in {unread!r}"] * (unread is not None), of_result
    for turn, n in (({"note": words}, 0), ({"note": words, "content": ""}, 1),
                    ({"thought": words, "content": ""}, 0)):  # fmt: skip
        turn = TURN | {"tool_calls": [{"name": "f"}]} | turn
        notes = io.read_runs(write("b.json", [{"messages": [turn]}])).notes
        assert sum("text not read, in 'messages.note'" in note for note in notes) == n, turn
