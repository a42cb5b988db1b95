"""Usual and named fields, alike for tables, chats and JSON lines."""

import pytest

from trajscore import io


@pytest.fixture
def chats(log):
    """Read chats with other fields."""
    return lambda *runs, **options: io.read_runs(log(*runs), **options)


def test_the_most_telling_name_counts_and_the_others_are_kept(lines):
    row = {"id": 7, "Run": "a", "text": "x", "score": 0.5, "confidence": 0.75, "outcome": None}
    (run,) = lines(row | {"success": True})
    assert (run.id, run.outcome) == ("a", 1)  # a field that is empty does not count
    assert run.steps[0].confidence == 0.75
    assert run.steps[0].extra == {"id": 7, "score": 0.5}


def test_where_an_outcome_may_stand(chats):
    for fields, named, outcome in [
        ({"isSuccess": True}, None, 1), ({"metadata": {"passed": 0}}, None, 0),
        ({"scores": {"correctness": {"value": 1, "comment": "so so"}}}, None, 1),
        ({"scores": [{"name": "correct", "value": 1}]}, None, -1),
        ({"scores": [{"name": "correct", "value": 1}]}, "scores.0", 1),
        ({"test_result": {"report": {"resolved": True}}}, None, 1),
        ({"metadata": {"info": {"reward": 0}}, "scores": {"success": 1}}, None, 1),
        ({"metadata": {"info": {"meta": {"success": 1}}}}, None, -1),
        ({"other": {"report": {"resolved": True}}}, None, -1),
        ({"metadata": {"success": [1]}, "scores": {"success": 0}}, None, 0),
        ({"success": True, "judge": {"grade": 0.25}}, "judge.grade", 0.25),
        ({"judge": {"grade": {"avg": 0.25, "n": 4}}}, "judge.grade", 0.25),
        ({"info": {"grade": 0.25}}, "grade", 0.25), ({"a": {"b.c": 1}}, "a.b.c", 1),
        ({"a.b": 1, "a": {"b": 0}}, "a.b", 1), ({"a": [{"b": 0}, {"b": 1}]}, "a.-1.b", 1),
        ({"a": [{"b": 0}, {"b": 1}]}, "a.0.b", 0), ({"a": [0, 1]}, "a.1", 1),
        ({"a": 1}, "a.-1", 1),  # the last of one value is that value
        ({"failed": 1}, "not failed", 0), ({"failed": 0.25}, "not failed", 0.75),
        ({"failed": -1}, "not failed", -1), ({"not failed": 1}, "not failed", 1),
    ]:  # fmt: skip
        (run,) = chats(fields, outcome=named)
        assert run.outcome == outcome, (fields, named)
    for path in ("a.2", "a.-3", "a.b", "b.c"):
        with pytest.raises(ValueError, match="outcome"):
            chats({"a": [0, 1]}, outcome=path)


def test_what_an_outcome_may_be(chats):
    values = [True, 0, -1, None, 0.5, "1", " Yes", "no", "x", 2, [1], {"value": 1}]
    outcomes = [1, 0, -1, -1, 0.5, 1, 1, 0, None, None, None, 1]
    for value, outcome in zip(values, outcomes, strict=True):
        if outcome is None:
            with pytest.raises(ValueError, match="outcome"):
                chats({"outcome": value}, {"outcome": 1})
            continue
        run, *_ = chats({"outcome": value}, {"outcome": 1})
        assert run.outcome == outcome, value


def test_stop_reasons(chats):
    for fields, named, reason in [
        ({"exit_status": "cut"}, None, "cut"),
        ({"stop_reason": "done", "exit_status": "cut"}, None, "done"),
        ({"stop_reason": "done", "exit_status": "cut"}, "exit_status", "cut"),
        ({"info": {"exit_status": 3}}, None, "3"), ({"stop_reason": ""}, None, None),
        ({"why": {"end": "Max Turns"}}, "why.end", "Max Turns"), ({}, None, None),
    ]:  # fmt: skip
        (run,) = chats(fields, stop_reason=named)
        assert run.stop_reason == reason, (fields, named)


def test_ids_of_several_fields(chats, lines):
    runs = chats({"task": "t", "trial": 1}, {"task": "t", "trial": 2}, id=["task", "trial"])
    assert [(run.id, run.task, run.trial) for run in runs] == [("t-1", "t", 1), ("t-2", "t", 2)]
    assert [run.id for run in chats({"session": {"n": 3}}, id="session.n")] == ["3"]
    rows = [{"task": k, "trial": 1, "text": "x"} for k in "aab"]
    assert [run.id for run in lines(*rows, id=["task", "trial"])] == ["a-1", "b-1"]
    for fields in ({"task": "t"}, {"task": "t", "trial": ""}):
        with pytest.warns(UserWarning, match="trial"):
            runs = chats(fields, {"task": "t", "trial": 1}, id=["task", "trial"])
        assert len(runs.left_out) == 1


def test_names_of_fields_are_text(chats):
    for part in ("outcome", "confidence", "stop_reason", "id"):
        with pytest.raises(ValueError, match=part):
            chats({}, **{part: 3})
    with pytest.raises(ValueError, match="id"):
        chats({}, id=["id", None])
    with pytest.raises(TypeError, match="'outcom'"):
        chats({}, outcom="a")
    with pytest.raises(ValueError, match="format"):
        chats({}, format=3)
