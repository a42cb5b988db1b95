"""What is the outcome, the confidence, the stop and the id: found, named, or refused."""

import pandas as pd
import pytest

from trajscore import io
from trajscore.core.errors import ArgumentError
from trajscore.io._selection import Selection, _check_roles, as_confidence
from trajscore.io.fields import Fields
from trajscore.io.outcome_tables import read_outcomes
from trajscore.io.tally import Tally


@pytest.fixture
def log(write, talk):
    """Write chats with some fields."""

    def write_log(*runs, name="a.json"):
        return write(name, [{"id": f"r{k}", "messages": talk} | run for k, run in enumerate(runs)])

    return write_log


@pytest.mark.parametrize(
    "said",
    [
        lambda value: {"resolved": value},
        lambda value: {"isSuccess": value},
        lambda value: {"metadata": {"passed": value}},
        lambda value: {"scores": {"correctness": {"value": value, "comment": "so so"}}},
        lambda value: {
            "feedback": [{"name": "tone", "score": 0.5}, {"name": "correct", "score": value}]
        },
    ],
)
def test_usual_names_also_one_level_deeper(log, said):
    assert io.outcomes(io.read_runs(log(said(True), said(0)))).tolist() == [1, 0]


def test_a_named_field_goes_before_usual_ones(log):
    path = log({"success": True, "judge": {"grade": 0.25}}, {"success": True})
    runs = io.read_runs(path, outcome="judge.grade")
    assert io.outcomes(runs).tolist() == [0.25, -1]
    assert runs[0].meta["reward"] == 0.25
    for part in ("outcome", "stop_reason"):
        with pytest.raises(ValueError, match=f"{part}: no .* there are: success, judge.grade"):
            io.read_runs(path, **{part: "nowhere"})
    with pytest.raises(ValueError, match="outcome: no field of a run named 'grade'; did you mean"):
        io.read_runs(path, outcome="grade")
    nothing = "no run has a field named 'x', and there is no other to name; give a table of run ids"
    with pytest.raises(ValueError, match=nothing):
        io.read_runs(log({}, {}), outcome="x")


def test_words_are_not_guessed(log):
    path = log({"result": "Pass"}, {"result": "fail"}, {"result": "timeout"}, {"result": "huh"})
    with pytest.raises(ValueError, match=r"word in 4 of 4 .* outcome_map=\{'Pass': 1, 'fail': 0, "):
        io.read_runs(path, outcome="result")
    meanings = {"pass": 1, "fail": 0, "timeout": -1, "huh": 0.5}
    for given in ("pass=1,fail=0,timeout=-1,huh=0.5", meanings):
        runs = io.read_runs(path, outcome="result", outcome_map=given)
        assert io.outcomes(runs).tolist() == [1, 0, -1, 0.5]
    with pytest.raises(ValueError, match="'fail' means 'no'"):
        io.read_runs(path, outcome="result", outcome_map="fail=no")
    with pytest.raises(ValueError, match="'fail' is not a pair"):
        io.read_runs(path, outcome="result", outcome_map="pass=1,fail")


def test_numbers_may_be_mapped_too(log):
    runs = io.read_runs(log({"reward": 2.0}, {"reward": 1}), outcome_map={2: 1, 1: 0})
    assert io.outcomes(runs).tolist() == [1, 0]


def test_a_log_without_outcomes_is_refused_where_they_are_needed(log):
    runs = io.read_runs(log({"score": 1.0, "n": 7}, {"score": 0.0, "n": 8}))
    with pytest.raises(
        ValueError, match=r"no run has an outcome \(the runs have 'score': 1.0 1, 0.0"
    ):
        io.outcomes(runs)
    assert io.outcomes(list(runs)).tolist() == [-1, -1]
    cut = {"stop_reason": "max_steps"}
    assert io.outcomes(io.read_runs(log(cut, cut))).tolist() == [-1, -1]


def test_a_table_of_outcomes(log, tmp_path):
    path = log({"success": True, "session": "a"}, {"session": "b"}, {"session": "c"})
    table = pd.DataFrame({"run_id": ["r0", "r1", "x"], "passed": [0, 1, 1]})
    table.to_csv(tmp_path / "t.csv", index=False)
    runs = io.read_runs(path, outcomes=tmp_path / "t.csv")
    assert io.outcomes(runs).tolist() == [0, 1, -1]
    assert runs.notes == [
        "rows of the table of outcomes whose run is not in the log: 1",
        "runs of the log that are not in the table of outcomes: 1",
    ]
    runs = io.read_runs(path, outcomes={"b": "yes"}, id="session", outcome_map={"yes": 1})
    assert [(run.id, run.outcome) for run in runs] == [("a", -1), ("b", 1), ("c", -1)]


def test_a_table_of_other_runs_is_refused(log):
    runs = io.read_runs(log({}, {}), outcomes={"x": 1})
    with pytest.raises(
        ValueError, match=r"no run id of the log .*'r0', 'r1'.* table of outcomes \('x'\).* with id"
    ):
        io.outcomes(runs)


def test_composite_ids(log):
    path = log({"task": "t", "trial": 1, "success": 1}, {"task": "t", "trial": 2, "success": 0})
    runs = io.read_runs(path, id=["task", "trial"])
    assert [(run.id, run.task, run.trial) for run in runs] == [("t-1", "t", 1), ("t-2", "t", 2)]
    table = pd.DataFrame({"task": ["t", "t"], "trial": [1, 2], "outcome": [0, 1]})
    runs = io.read_runs(path, id=["task", "trial"], outcomes=table)
    assert io.outcomes(runs).tolist() == [0, 1]


def test_confidences_by_name(write):
    turn = {"role": "assistant", "content": "x", "judge": {"p": 0.25}, "metadata": {"score": "75%"}}
    path = write("a.json", [{"id": "a", "messages": [turn, {**turn, "judge": None}], "success": 1}])
    assert [step.confidence for step in io.read_runs(path)[0].steps] == [0.75, 0.75]
    steps = io.read_runs(path, confidence="judge.p")[0].steps
    assert [step.confidence for step in steps] == [0.25, None]
    with pytest.raises(ValueError, match="confidence: no field of a turn named 'jugde'; did"):
        io.read_runs(path, confidence="jugde")
    plain = {"role": "assistant", "content": "x"}
    path = write("b.json", [{"id": "a", "messages": [plain], "success": 1}])
    with pytest.raises(ValueError, match="no turn has a field named 'x'.* leave confidence out"):
        io.read_runs(path, confidence="x")


def test_a_confidence_of_which_high_values_are_bad(write):
    turn = {"role": "assistant", "content": "x", "risk": 0.25}
    path = write("a.json", [{"id": "a", "messages": [turn], "success": 1}])
    turned = io.read_runs(path, confidence="not risk")
    assert turned[0].steps[0].confidence == 0.75
    assert turned.notes == ["confidence: 1 minus 'risk'"]
    plain = io.read_runs(path, confidence="risk")
    assert plain[0].steps[0].confidence == 0.25
    assert "if it stands for failure, pass confidence='not risk'" in plain.notes[0]


def test_what_is_not_used_is_counted(register_scored, write):
    path = write("a.scored", {"x": 1})
    runs = io.read_runs(path)
    assert (runs[0].outcome, runs[0].steps[0].confidence) == (1, None)
    assert runs.notes == [
        "1 score of runs named 'toxicity' not used; to use it, pass outcome='not toxicity'",
        "1 score of turns named 'sure' not used; to use it, pass confidence='sure'",
    ]
    runs = io.read_runs(path, confidence="sure", outcome="not toxicity")
    assert (runs[0].outcome, runs[0].steps[0].confidence) == (0.5, 0.75)
    assert runs.notes == [
        "outcome: not 'toxicity', so 1 counts as failure",
        "1 score of runs named 'passed' not used; to use it, pass outcome='passed'",
    ]


@pytest.fixture
def register_scored(monkeypatch):
    from trajscore.io import registry

    def run(self, raw, place, options):
        turn = io.Step("agent", "x", scores={"sure": 0.75})
        return io.Run("a", [turn], scores={"passed": True, "toxicity": 0.5})

    monkeypatch.setattr(registry, "_FORMATS", dict(registry._FORMATS))
    attributes = {"name": "scored", "holds": "x", "endings": (".scored",), "run": run}
    io.register(type("Scored", (io.Format,), attributes | {"recognise": lambda *_: False}))


def test_the_stop_reason_by_name(log):
    path = log({"why": {"end": "Max Turns"}, "success": None}, {"success": 1})
    runs = io.read_runs(path, stop_reason="why.end")
    assert [(run.outcome, run.stop_kind) for run in runs] == [
        (-1, "administrative"),
        (1, "complete"),
    ]


def test_what_is_not_understood_is_refused(write):
    rows = [{"id": k, "verbal": 0.5, "label": 1} for k in "ab"]
    with pytest.raises(ValueError, match=r"has the fields 'id', 'verbal', 'label'"):
        io.read_runs(write("a.json", rows))


# ------------------------------------------------------------------ one run at a time


def applied(run, table=None, **fields):
    """Choose the parts of a run, and return the counts."""
    tally = Tally()
    selection = Selection(fields=Fields(**fields), table=table)
    selection.apply(run, tally)
    return tally


def agent(**fields):
    return io.Step("agent", "Hi", **fields)


@pytest.mark.parametrize(
    ("step", "name", "confidence"),
    [
        ({"confidence": 0.5}, None, 0.5),
        ({"confidence": 0.5, "scores": {"judge": 0.1}}, "judge", 0.1),
        ({"confidence": 0.5}, "judge", None),
        ({"confidence": 0.5}, "confidence", 0.5),
        ({"confidence": 0.5, "extra": {"confidence": 0.2}}, "confidence", 0.2),
        ({"extra": {"score": "70%"}}, None, 0.7),
        ({"extra": {"score": "70%", "confidence": 0.2}}, None, 0.2),
        ({"extra": {"a": {"b": 0.3}}}, "a.b", 0.3),
        ({"scores": {"judge": {"value": 0.4, "comment": "x"}}}, "judge", 0.4),
        ({"extra": {"score": True}}, None, None),
        ({}, None, None),
    ],
)
def test_confidence_of_a_turn(step, name, confidence):
    turn = agent(**step)
    tally = applied(io.Run("a", [turn]), confidence=name)
    assert turn.confidence == confidence
    chosen = sum(tally.used.values())
    stays = name is None and step.get("confidence") is not None
    assert chosen == (confidence is not None and not stays)


def test_only_turns_of_the_agent_have_a_confidence():
    turns = [io.Step(actor, "Hi", extra={"score": 0.5}) for actor in ("user", "environment")]
    applied(io.Run("a", turns))
    assert [turn.confidence for turn in turns] == [None, None]
    assert turns[0].extra == {"score": 0.5}


def test_what_is_used_is_not_kept_twice():
    run = io.Run("a", [agent(extra={"score": 0.5, "note": 1})], extra={
        "solved": True, "stop_reason": "done", "note": 2,
    })  # fmt: skip
    applied(run)
    assert (run.extra, run.steps[0].extra) == ({"note": 2}, {"note": 1})
    assert (run.outcome, run.stop_reason, run.meta["reward"]) == (1, "done", True)


@pytest.mark.parametrize(
    ("run", "name", "outcome"),
    [
        (io.Run("a", outcome=1, extra={"solved": False}), None, 1),
        (io.Run("a", outcome=1, extra={"grade": 0.25}), "grade", 0.25),
        (io.Run("a", outcome=1), "grade", -1),
        (io.Run("a", meta={"reward": None}, extra={"solved": True}), None, -1),
        (io.Run("a", scores={"solved": False}), None, 0),
        (io.Run("a", meta={"cost": 1}), "cost", 1),
    ],
)
def test_outcome_of_a_run(run, name, outcome):
    applied(run, outcome=name)
    assert run.outcome == outcome


def test_a_table_goes_before_the_log():
    run = io.Run("a", outcome=1, stop_reason="done", extra={"solved": True})
    table = read_outcomes(
        pd.DataFrame({"id": ["a"], "outcome": [0], "stop_reason": ["crash"]}), Fields()
    )
    tally = applied(run, table)
    assert (run.outcome, run.stop_reason, run.meta["reward"]) == (0, "crash", 0)
    assert (tally.in_table, tally.used["outcome", "the table"]) == ({"a"}, 1)
    other = io.Run("b", outcome=1, stop_reason="done")
    tally = applied(other, table)
    assert (other.outcome, other.stop_reason) == (-1, "done")
    assert (tally.in_table, tally.used["outcome", "the table"]) == (set(), 0)


@pytest.mark.parametrize(
    ("own", "extra", "name", "reason"),
    [
        (None, {"exit_status": "cut"}, None, "cut"),
        ("done", {"exit_status": "cut"}, None, "done"),
        ("done", {"exit_status": "cut"}, "exit_status", "cut"),
        ("done", {"exit_status": ""}, "exit_status", "done"),
        (None, {"info": {"exit_status": 3}}, None, "3"),
        (None, {}, None, None),
    ],
)
def test_stop_reason_of_a_run(own, extra, name, reason):
    run = io.Run("a", stop_reason=own, extra=extra)
    tally = applied(run, stop_reason=name)
    assert run.stop_reason == reason
    assert sum(tally.used.values()) == (reason is not None and reason != own)


def test_id_of_a_run():
    run = io.Run("a", task="t", trial=2, extra={"session": "s"})
    tally = applied(run, id=("task", "trial", "session"))
    assert (run.id, tally.ids) == ("t-2-s", {"t-2-s": 1})
    assert list(tally.used.values()) == [1]
    with pytest.raises(ValueError, match="it has no value of the id field 'x'"):
        applied(io.Run("a"), id="x")
    assert applied(io.Run("a")).ids == {"a": 1}


@pytest.mark.parametrize(
    ("value", "number"),
    [("70%", 0.7), (" 0.5 ", 0.5), (1, 1.0), (True, None), (None, None), ("high", None),
     (float("nan"), None), ("150 %", 1.5), (float("inf"), None), ("-inf", None), ("1e999%", None)],
)  # fmt: skip
def test_confidences(value, number):
    assert as_confidence(value) == number


TEAM = [
    {"role": "human", "content": "Book it."},
    {"role": "Planner (thought)", "content": "Ask the web."},
    {"role": "WebSurfer", "content": "I look. Confidence: 70%"},
    {"role": "assistant", "name": "Terminal", "content": "exit code 0"},
]


def test_roles_that_only_the_user_knows(write):
    log = write("team.json", [{"id": str(k), "messages": TEAM} for k in range(3)])
    runs = io.read_runs(log)
    assert "3 turns of the agent and 6 of roles that are not known" in runs.notes[0]
    roles = {"Planner (thought)": "agent", "WebSurfer": "agent", "Terminal": "environment"}
    text = ",".join(map("=".join, roles.items()))
    assert io.read_runs(log, roles=text) == (runs := io.read_runs(log, roles=roles))
    assert [step.actor for step in runs[0].steps] == ["user", "agent", "agent", "environment"]
    assert runs.notes == []
    nobody = write("nobody.json", [{"messages": TEAM[:2]}])
    with pytest.raises(ValueError, match=r"with roles='Planner \(thought\)=agent'"):
        io.read_runs(nobody)
    with pytest.raises(ValueError, match="roles.*no role named 'Surfer'|'Surfer'"):
        io.read_runs(log, roles={"Surfer": "agent"})
    with pytest.raises(ValueError, match="must say for each role"):
        io.read_runs(log, roles=["agent"])
    with pytest.raises(ValueError, match="whether it is agent, user or environment"):
        io.read_runs(log, roles={"WebSurfer": "boss"})


GROUP = [
    {"role": "user", "name": "Expert", "content": "I look it up."},
    {"role": "user", "name": "Terminal", "content": "exit code 0"},
    {"role": "assistant", "name": "Planner", "content": "Done."},
]


def test_users_of_several_names_are_asked_about(write):
    log = write("group.json", [{"id": str(k), "messages": GROUP} for k in range(3)])
    (note,) = io.read_runs(log).notes
    assert "6 turns of the user have the names of several users" in note
    assert "('Expert', 'Terminal')" in note
    (run, *_) = runs = io.read_runs(log, roles={"Expert": "agent", "Terminal": "environment"})
    assert [step.actor for step in run.steps] == ["agent", "environment", "agent"]
    assert runs.notes == []
    alone = write("alone.json", [{"messages": [GROUP[0], GROUP[2]]}])
    assert io.read_runs(alone).notes == []
    agent = write("agent.json", [{"messages": [{**GROUP[0], "name": "Assistant"}, GROUP[2]]}])
    assert "or of an agent" in io.read_runs(agent).notes[0]


def test_counts_of_tests_are_no_outcome(log):
    counts = [{"passed": 3, "failed": 0}, {"passed": 1, "failed": 2}]
    for prefix in ("", "results."):
        path = log(*({"results": c} if prefix else c for c in counts))
        with pytest.raises(ValueError, match=f"'{prefix}passed' and '{prefix}failed' are") as error:
            io.read_runs(path)
        assert f"outcome='{prefix}failed' outcome_map='0=1,1=0,2=0'" in str(error.value)
        runs = io.read_runs(path, outcome=f"{prefix}failed", outcome_map="0=1,2=0")
        assert io.outcomes(runs).tolist() == [1, 0]
        assert io.outcomes(io.read_runs(path, outcomes={"r0": 1, "r1": 0})).tolist() == [1, 0]
    with pytest.raises(ValueError, match="'passed' is 3 in a run, which is not a grade"):
        io.read_runs(log({"passed": 1}, {"passed": "3"}))
    single = [{"passed": 1, "failed": 0}, {"passed": 0, "failed": 1}, {"passed": True, "failed": 4}]
    single.append({"passed": 1, "failed": []})
    assert io.outcomes(io.read_runs(log(*single))).tolist() == [1, 0, 1, 1]


def test_people_in_group_chats_of_autogen_are_users(write):
    talk = [{"type": "TextMessage", "source": name, "content": name} for name in ("admin", "Coder")]
    (run,) = io.read_runs(write("group.json", [{"id": "a", "messages": talk}]))
    assert [step.actor for step in run.steps] == ["user", "agent"]


@pytest.mark.parametrize("part", ["outcome", "confidence", "stop_reason", "id"])
def test_names_of_fields_are_text(log, part):
    with pytest.raises(ValueError, match=f"{part} must be the name of a field, got 3"):
        io.read_runs(log({}), **{part: 3})
    if part == "id":
        with pytest.raises(ValueError, match="id must be the name of a field, got None"):
            io.read_runs(log({}), id=["id", None])


def test_an_outcome_that_is_an_object_is_noted_with_its_fields():
    run = io.Run("a", extra={"grade": {"x": 1, "y": 2}})
    tally = applied(run, outcome="grade")
    assert (run.outcome, tally.objects) == (-1, {"grade": ["x", "y"]})
    assert applied(io.Run("a", extra={"grade": {"value": 1}}), outcome="grade").objects == {}


@pytest.mark.parametrize(
    ("roles", "read"),
    [
        (None, {}), ({}, {}), ("A=agent,B=user", {"A": "agent", "B": "user"}),
        ({"a": "agent", "b": "user", "c": "environment"},) * 2,
        ({"a": "agent", "b": "agent"},) * 2, ({"a": "tool"}, None), ({"a": "agent", "b": ""}, None),
        (["agent"], None), (3, None),
    ],
)  # fmt: skip
def test_who_acts_under_which_role(roles, read):
    if read is not None:
        assert _check_roles(roles) == read
        return
    with pytest.raises(
        ArgumentError, match="roles must say for each role whether it is agent, user"
    ):
        _check_roles(roles)


def test_the_first_name_of_a_turn_that_the_user_gave_says_who_acts():
    selection = Selection(roles={"critic": "agent", "Ann": "user", "flow": "environment"})
    steps = [
        io.Step("environment", "1", extra={"role": "critic", "name": "Ann"}),
        io.Step("agent", "2", extra={"name": "Ann"}),
        io.Step("user", "3", extra={"source": "flow"}),
        io.Step("environment", "4", extra={"role": "other"}),
        io.Step("environment", "5"),
        io.Step("agent", "6"),
    ]
    tally = Tally()
    selection.apply(io.Run("r", steps), tally)
    actors = ["agent", "user", "environment", "environment", "environment", "agent"]
    assert [step.actor for step in steps] == actors
    assert (tally.n_turns, dict(tally.unknown_roles)) == (2, {"other": 1})
    assert tally.used["roles", "critic"] == tally.used["roles", "Ann"] == 1


@pytest.mark.parametrize(
    ("record", "name", "value", "counts"),
    [
        ({"passed": 3, "failed": 0}, "passed", 3, {("passed", "failed"): {(3, 0)}}),
        ({"passed": 1, "failed": 0}, "passed", 1, {("passed", "failed"): {(1, 0)}}),
        ({"passed": 0, "failed": 2}, "passed", 0, {("passed", "failed"): {(0, 2)}}),
        ({"passed": -1, "failed": 2}, "passed", -1, {("passed", "failed"): {(-1, 2)}}),
        ({"passed": 0.5, "failed": 2}, "passed", 0.5, {}),
        ({"passed": True, "failed": 2}, "passed", True, {}),
        ({"passed": "many", "failed": 2}, "passed", "many", {}),
        ({"passed": 3, "other": 2}, "passed", 3, {("passed", None): {(3, None)}}),
        ({"a": {"passed": 3, "failed": 1}, "failed": 9}, "a.passed", 3,
         {("a.passed", "a.failed"): {(3, 1)}}),
        ({"a.passed": 3, "a": {"failed": 1}}, "a.passed", 3, {("a.passed", None): {(3, None)}}),
        ({"passed": 3, "failed": {"value": 2}}, "passed", 3, {("passed", "failed"): {(3, 2)}}),
    ],
)  # fmt: skip
def test_numbers_that_may_be_counts_are_noted_with_their_opposites(record, name, value, counts):
    tally = Tally()
    Selection()._note_counts(record, name, value, tally)
    assert tally.counts == counts


def test_numbers_with_a_meaning_have_no_opposite():
    tally = Tally()
    record = {"passed": 3, "failed": 1}
    Selection(meanings={"3": 1.0})._note_counts(record, "passed", 3, tally)
    assert tally.counts == {("passed", None): {(1.0, None)}}


def test_outcomes_of_a_table_are_no_counts_of_the_log():
    table = read_outcomes({"a": 1}, Fields())
    assert applied(io.Run("a", extra={"passed": 3}), table).counts == {}
    assert applied(io.Run("a", extra={"passed": 1})).counts == {("passed", None): {(1, None)}}
    assert applied(io.Run("a"), outcome="passed").counts == {}


@pytest.mark.parametrize(
    ("value", "outcome"), [(0.25, 0.75), (1, 0), (0, 1), (True, 0), (None, -1), (-1, -1)]
)
def test_an_outcome_of_which_high_values_are_failures(value, outcome):
    run = io.Run("a", extra={"toxicity": value})
    applied(run, outcome="not toxicity")
    assert run.outcome == outcome
    table = read_outcomes(
        pd.DataFrame({"id": ["a"], "toxicity": [value]}), Fields(outcome="not toxicity")
    )
    run = io.Run("a")
    applied(run, table, outcome="not toxicity")
    assert run.outcome == outcome


@pytest.mark.parametrize(
    ("value", "lists"),
    [
        ([1, 0], {"grade": ("a", [1, 0])}), ([1, "x"], {}), ([], {}), (1, {}), ({"x": [1]}, {}),
        (["x", 1], {}),
    ],
)  # fmt: skip
def test_lists_of_outcomes_are_noted_with_their_run(value, lists):
    tally = Tally()
    selection = Selection(fields=Fields(outcome="grade"))
    selection.apply(io.Run("a", extra={"grade": value}), tally)
    selection.apply(io.Run("b", extra={"grade": [0, 0]}), tally)
    assert tally.lists == (lists or {"grade": ("b", [0, 0])})


def test_which_fields_of_runs_are_counted_as_possible_outcomes():
    def values(outcome=None, stop_reason=None, **extra):
        run = io.Run("a", meta={"reward": 5, "cost": 2}, extra=extra, scores={"s": 0.5})
        counted = applied(run, outcome=outcome, stop_reason=stop_reason).values
        return {name: dict(counts) for name, counts in counted.items()}

    assert values(n=7) == {"n": {7: 1}, "s": {0.5: 1}}
    assert values("n", n=1) == {"reward": {5: 1}, "n": {1: 1}, "s": {0.5: 1}}
    assert values("none", n=7) == {"reward": {5: 1}, "n": {7: 1}, "s": {0.5: 1}}
    assert values(stop_reason="end", n=7) == {"reward": {5: 1}, "n": {7: 1}, "s": {0.5: 1}}
    run = io.Run("a", extra={"solved": 1, "n": 7})
    assert applied(run).values == {}
    assert run.outcome == 1


def test_fields_of_turns_are_counted_where_the_confidence_is_named():
    turn = agent(confidence=0.5, scores={"sure": 0.5}, extra={"p": 0.25})
    assert applied(io.Run("a", [turn]), confidence="p").names_of_turns == {
        "confidence": 1, "p": 1, "sure": 1,
    }  # fmt: skip
    bare = agent(extra={"p": 0.25})
    assert applied(io.Run("a", [bare]), confidence="p").names_of_turns == {"p": 1}
    assert applied(io.Run("a", [agent(extra={"p": 0.25})])).names_of_turns == {}


def test_judgements_in_a_list_become_fields_of_a_run():
    run = io.Run("a", extra={"scores": [{"name": "solved", "value": 1}], "labels": ["x"]})
    applied(run)
    assert (run.outcome, run.extra["labels"]) == (1, ["x"])
    assert applied(io.Run("a")).n_runs == 1


def test_names_in_the_mapping_of_fields_are_those_of_all_formats():
    options = {"fields": {"outcome": "o", "id": "i", "text": "t"}, "id": "j", "other": 1}
    selection = Selection.take(options)
    assert (selection.fields.outcome, selection.fields.id) == ("o", "j")
    assert options == {"fields": {"text": "t"}, "other": 1}
    options = {"fields": "text=t", "id": ["a", "b"], "max_size": 3, "roles": {"x": "user"}}
    selection = Selection.take(options)
    assert (selection.fields, options) == (Fields(id=("a", "b")), {"fields": "text=t"})
    assert (selection.max_size, selection.roles, selection.table) == (3, {"x": "user"}, None)
