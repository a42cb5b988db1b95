"""Reading a log: which runs are read, left out or refused, and what their stops mean."""

import warnings

import pytest

from trajscore import io
from trajscore.io import Run, Step, ToolCall
from trajscore.io.reading import _check_turns

TURN = {"role": "assistant", "content": "Hello"}


@pytest.fixture
def chats(write):
    """Write chats of one turn each, with other fields."""

    def write_chats(*fields, name="a.json"):
        return write(name, [{"id": f"r{k}", "messages": [TURN]} | f for k, f in enumerate(fields)])

    return write_chats


# ------------------------------------------------------------------ turns


@pytest.mark.parametrize(
    ("step", "is_empty"),
    [
        (Step("agent", " \n"), True),
        (Step("agent", "a"), False),
        (Step("agent", tool_calls=[ToolCall("f")]), False),
        (Step("agent", logprobs=()), False),
        (Step("agent", confidence=0.0), False),
        (Step("agent", observation=""), True),
        (Step("agent", observation="a"), False),
        (Step("agent", scores={"a": 0}), False),
        (Step("agent", cost=1.0, extra={"a": 1}), True),
    ],
)
def test_empty_turns(step, is_empty):
    assert step.is_empty == is_empty


EMPTY = Step("agent")


@pytest.mark.parametrize(
    ("steps", "raw", "problem"),
    [
        ([], {}, r"it has no turn of the agent$"),
        ([Step("user", "a")], {}, r"it has no turn of the agent$"),
        (
            [Step("environment", "a", extra={"role": role}) for role in "bab"],
            {},
            r"agent \(unknown roles: 'a', 'b'\)$",
        ),
        ([EMPTY, EMPTY], {"a": 1, "b": 2}, r"is empty \(its fields are 'a', 'b'\): it has no"),
        ([EMPTY, Step("user", "a")], [{"a": 1}], r"is empty \(its fields are 'a'\): it has no"),
        ([EMPTY], "text", r"every turn of the agent is empty: it has no messages"),
    ],
)
def test_runs_without_a_turn_of_the_agent(steps, raw, problem):
    with pytest.raises(ValueError, match=problem):
        _check_turns(Run("a", steps), raw)


def test_one_turn_is_enough():
    _check_turns(Run("a", [EMPTY, Step("agent", "a")]), {})


# ------------------------------------------------------------------ stops and outcomes


@pytest.mark.parametrize(
    ("fields", "outcome", "kind"),
    [
        ({"success": True}, 1, "complete"),
        ({"success": False, "stop_reason": "max_steps"}, 0, "complete"),
        ({"stop_reason": "max_steps"}, -1, "administrative"),
        ({"stop_reason": "done"}, -1, "complete"),
        ({"stop_reason": "huh"}, -1, "unknown"),
        ({}, -1, None),
    ],
)
def test_an_observed_outcome_is_complete_and_others_are_as_they_stopped(
    chats, fields, outcome, kind
):
    (run,) = io.read_runs(chats(fields))
    assert (run.outcome, run.stop_kind) == (outcome, kind)


@pytest.mark.parametrize(
    ("reason", "rule", "outcome"),
    [
        ("user_stop", None, 1), ("max_steps", None, -1), ("too_many_errors", None, -1),
        ("huh", None, -1), ("huh", {"huh": "complete"}, 1),
        ("user_stop", {"user_stop": "unknown"}, -1),
    ],
)  # fmt: skip
def test_a_format_may_say_that_cut_runs_have_no_outcome(write, reason, rule, outcome):
    run = {"id": "a", "messages": [TURN], "reward_info": {"reward": 1.0}}
    path = write("a.json", {"info": {}, "simulations": [run | {"termination_reason": reason}]})
    (run,) = io.read_runs(path, rule=rule)
    assert (run.outcome, run.meta["reward"]) == (outcome, 1.0)


def test_a_stop_that_explains_the_missing_outcome_counts_as_one(chats):
    for reason, n_known in (("max_steps", 1), ("refusal", 1), ("huh", 0), ("done", 0)):
        stream = io.iter_runs(chats({"stop_reason": reason}))
        assert len(list(stream)) == 1
        assert stream.findings.tally.n_with_outcome == n_known, reason


# ------------------------------------------------------------------ left out


def test_runs_that_an_infrastructure_error_ended_are_left_out(chats):
    path = chats({}, {"stop_reason": "user_error"}, {"stop_reason": "user_error", "success": 0})
    with pytest.warns(UserWarning, match=r"1 of 3 runs is excluded \(user_error 1\)"):
        runs = io.read_runs(path)
    assert [run.id for run in runs] == ["r0", "r2"]
    (left,) = runs.left_out
    assert (left.index, left.id, left.reason, left.kind) == (1, "r1", "user_error", "excluded")
    assert left.file == str(path)


def test_an_excluded_run_need_not_be_readable(chats):
    path = chats({}, {"stop_reason": "user_error", "messages": []}, {"messages": []})
    with pytest.warns(UserWarning, match="1 of 3 runs could not be read"):
        left = io.read_runs(path).left_out
    assert [(run.kind, run.reason) for run in left] == [
        ("excluded", "user_error"),
        ("malformed", "it has no turn of the agent"),
    ]


def test_lines_that_are_broken_or_nested_too_deeply(write):
    line = '{"messages": [{"role": "assistant", "content": "a"}]}\n'
    deep = '{"messages": ' + "[" * 100_000 + "]" * 100_000 + "}\n"
    path = write("a.jsonl", line + '{"messages": [}\n' + deep + line)
    with pytest.warns(UserWarning, match="2 of 4 runs could not be read"):
        runs = io.read_runs(path)
    assert [run.index for run in runs.left_out] == [1, 2]
    assert "line 2 is not valid JSON" in runs.left_out[0].reason
    assert "nested too deeply" in runs.left_out[1].reason


def test_only_one_by_one_reading_warns_in_the_end(chats):
    stream = io.iter_runs(chats({}, {"messages": []}))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert next(stream).id == "r0"
    with pytest.warns(UserWarning, match="1 of 2 runs could not be read"):
        assert list(stream) == []
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # once
        assert list(stream) == []


# ------------------------------------------------------------------ refused


def test_a_log_of_which_nothing_can_be_read_is_refused(chats):
    path = chats({"messages": []}, {"messages": []})
    problem = r"none of the 2 runs can be read as openai: .*run 'r0' \(index 0\): it has no turn"
    with pytest.raises(ValueError, match=problem):
        io.read_runs(path)


def test_one_readable_or_excluded_run_is_enough(chats, write):
    with pytest.warns(UserWarning, match="1 of 2 runs could not be read"):
        assert len(io.read_runs(chats({"messages": []}, {}))) == 1
    with pytest.warns(UserWarning, match="1 of 1 run is excluded"):
        assert len(io.read_runs(chats({"stop_reason": "user_error"}))) == 0
    bad, good = chats({"messages": []}, name="1.json"), chats({}, name="2.json")
    with pytest.warns(UserWarning, match="1 of 2 runs could not be read"):
        assert len(io.read_runs([bad, good])) == 1


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ({"info": {}, "simulations": []}, r"there are no runs in .*a\.json; leave the file out"),
        ({"info": {}, "tasks": []}, r"no runs in .*a\.json: it has no 'simulations'; leave"),
    ],
)
def test_a_file_without_runs_is_refused(write, content, problem):
    with pytest.raises(ValueError, match=problem):
        io.read_runs(write("a.json", content), format="tau2")


def test_a_file_of_another_format_than_the_named_one_is_refused(write):
    path = write("a.json", [{"messages": [TURN]}])
    problem = r"not in the format tau2: it has no 'simulations'\. It looks like openai; .*openai"
    with pytest.raises(ValueError, match=problem):
        io.read_runs(path, format="tau2")


def test_arguments_that_cannot_be_used(chats):
    path = chats({})
    with pytest.raises(ValueError, match="format must be the name of a format, got 3"):
        io.read_runs(path, format=3)
    with pytest.raises(TypeError, match="no option named 'outcom'"):
        io.read_runs(path, outcom="a")


def test_fields_of_the_file_are_told_by_file(write):
    run = {"id": "a", "messages": [TURN], "termination_reason": "user_stop"}
    paths = [
        write(f"{name}.json", {"info": {"n": name}, "simulations": [run | {"id": name}]})
        for name in "ab"
    ]
    runs = io.read_runs(paths)
    assert [run.id for run in runs] == ["a", "b"]
    assert [runs.info[str(path)]["info"] for path in paths] == [{"n": "a"}, {"n": "b"}]


def test_a_file_that_fits_the_named_format_is_not_said_to_be_another(write):
    run = {"id": "a", "messages": [TURN], "termination_reason": "user_stop"}
    path = write("a.json", {"simulations": [run]})
    assert [run.id for run in io.read_runs(path, format="tau2")] == ["a"]
    listed = write("b.json", [run])
    assert [run.id for run in io.read_runs(listed, format="openai")] == ["a"]
    with pytest.raises(ValueError, match="the file out, or get it again|It looks like"):
        io.read_runs(listed, format="mlflow")
