"""What is wrong with a log, and what of it was not used, in sentences."""

from collections import Counter

import pytest

from trajscore import io
from trajscore.core.errors import ArgumentError
from trajscore.io._findings import Findings
from trajscore.io._selection import Selection
from trajscore.io.fields import Fields
from trajscore.io.tally import Tally


def findings(table=None, fields=None, **tally):
    selection = Selection(fields=fields or Fields(), table=table)
    return Findings(selection, Tally(**({"n_runs": 4} | tally)))


def counts(**values):
    return {name: Counter(each) for name, each in values.items()}


# ------------------------------------------------------------------ names


@pytest.mark.parametrize("part", ["outcome", "confidence", "stop_reason"])
def test_a_named_field_must_be_somewhere(part):
    fields = Fields(**{part: "grade"})
    owner = "turn" if part == "confidence" else "run"
    known = {"values": counts(grades=[1]), "names_of_turns": Counter(["graded"])}
    with pytest.raises(ArgumentError) as caught:
        findings(fields=fields, **known).check_names("a.json")
    assert caught.value.part == part
    assert str(caught.value).startswith(f"a.json: {part}: no field of a {owner} named 'grade'")
    assert ("'graded'" if owner == "turn" else "'grades'") in str(caught.value)
    used = Counter({(part, "grade"): 1})
    findings(fields=fields, used=used).check_names("a.json")
    findings(fields=fields, n_runs=0).check_names("a.json")
    findings(used=used).check_names("a.json")


def test_a_named_outcome_may_be_a_column_of_the_table():
    findings({}, Fields(outcome="grade")).check_names("a.json")
    with pytest.raises(ArgumentError, match="confidence: no turn has a field named .grade."):
        findings({}, Fields(outcome="grade", confidence="grade")).check_names("a.json")


def test_outcomes_that_are_words_are_refused():
    with pytest.raises(ArgumentError, match=r"a\.json: .*3 of 4"):
        findings(words=Counter({"yes": 2, "no": 1})).check_names("a.json")


# ------------------------------------------------------------------ outcomes


@pytest.mark.parametrize("tally", [{"n_with_outcome": 1}, {"n_runs": 0}])
def test_no_problem_with_outcomes(tally):
    assert findings(**tally).outcome_problem() == ""


def test_fields_that_may_be_the_outcome():
    ids = Counter(["a", "b", "c", "d"])
    problem = findings(ids=ids).outcome_problem()
    assert problem.startswith("no run has an outcome; name the field with {argument:outcome}")
    assert "('a', 'b', 'c' ...)" in problem
    few = {"one": [0, 1, 1], "two": [0, 1, 2], "three": [0, 0, 0, 0, 1, 1, 1, 2, 2, 3]}
    problem = findings(ids=ids, values=counts(**few)).outcome_problem()
    assert "(the runs have 'one': 1 2, 0 1; 'two': 0 1, 1 1, 2 1; " in problem
    assert "'three': 0 4, 1 3, 2 2, ...);" in problem


def test_at_most_five_fields_are_named():
    values = counts(**{name: [0, 1] for name in "pqrstu"})
    problem = findings(values=values).outcome_problem()
    assert [name for name in "pqrstu" if f"{name!r}: " in problem] == list("pqrst")


def test_no_id_in_the_table():
    problem = findings({"x": {}, "y": {}}, ids=Counter("ab")).outcome_problem()
    assert "no run id of the log ('a', 'b') is in the table of outcomes ('x', 'y')" in problem
    assert "{argument:id}" in problem


# ------------------------------------------------------------------ ids


@pytest.mark.parametrize(
    ("ids", "start"),
    [
        ("abc", ""),
        ("abbc", "2 runs have the id 'b'; name the field"),
        ("abbbcc", "3 runs have the id 'b', and 1 other ids are shared too; name"),
        ("aabbbcc", "2 runs have the id 'a', and 2 other ids are shared too; name"),
    ],
)
def test_shared_ids(ids, start):
    problem = findings(ids=Counter(ids)).id_problem()
    assert problem.startswith(start)
    assert bool(problem) == bool(start)


# ------------------------------------------------------------------ notes


def test_notes_on_the_table():
    table = {run: {} for run in "abcde"}
    matched = findings(table, n_with_outcome=1, in_table=set("ab")).notes()
    assert [note.split(": ")[-1] for note in matched] == ["3", "2"]
    assert findings(table, in_table=set("ab")).notes() == []  # said as a problem
    assert findings(n_with_outcome=1, in_table=set("ab")).notes() == []


@pytest.mark.parametrize(("n_with_outcome", "n_notes"), [(0, 0), (3, 1)])
def test_outcomes_are_said_to_be_turned_where_there_are_any(n_with_outcome, n_notes):
    notes = findings(fields=Fields(outcome="not toxic"), n_with_outcome=n_with_outcome).notes()
    assert sum("toxic" in note for note in notes) == n_notes


def test_notes_on_scores_that_are_not_used():
    unused = Counter({("step", "c"): 1, ("run", "b"): 2, ("run", "a"): 0})
    assert findings(unused=unused).notes() == [
        "2 scores of runs named 'b' not used; to use them, pass {argument:outcome=b}",
        "1 score of turns named 'c' not used; to use it, pass {argument:confidence=c}",
    ]


@pytest.mark.parametrize(
    ("message", "note"),
    [
        ({"role": "assistant", "content": ""}, "1 turn without any content that is known"),
        ({"role": "user", "content": {"value": "x"}}, "1 turn with content of an unknown form"),
        ({"role": "user", "content": [["x"]]}, "1 turn with content of an unknown form"),
        (
            {"role": "assistant", "content": "x", "tool_calls": [{}]},
            "1 call of a tool without a name",
        ),
        ({"role": "tool", "content": "x"}, "1 result of a tool without its call"),
        (
            {"role": "critic", "content": "x"},
            "1 turn of roles that are not known, such as 'critic'",
        ),
        ({"role": "user", "content": ["x", {"type": "text", "text": "y"}]}, None),
        ({"role": "user", "content": {"text": "x"}}, None),
    ],
)
def test_turns_that_were_not_understood_are_counted(write, message, note):
    turn = {"role": "assistant", "content": "Hello"}
    notes = io.read_runs(write("a.json", [{"messages": [message, turn]}])).notes
    assert [one[: len(note or "")] for one in notes] == [note] * (note is not None)


def test_roles_and_turned_names_that_are_nowhere_are_said_with_those_there_are():
    roles = Selection(roles={"Planer": "agent"})
    names = Tally(n_runs=4, unknown_roles=Counter(Coder=2), names_of_users=Counter(Ann=1))
    with pytest.raises(ArgumentError, match="'Planer'; there are: Coder, Ann"):
        Findings(roles, names).check_names("f")
    names.used["roles", "Planer"] = 1
    Findings(roles, names).check_names("f")
    values = counts(failed=[0, 1])
    for name, hint in (("not filed", "not failed"), ("filed", "failed")):
        with pytest.raises(ArgumentError, match=rf"did you mean '{hint}'\?"):
            findings(fields=Fields(outcome=name), values=values).check_names("f")


def test_sessions_are_asked_about_where_runs_are_the_beginning_of_others():
    sessions = {"meta.session_id": Counter(s=3, t=1)}
    grown = {"wholes": Counter({1: 2}), "beginnings": {1}, "sessions": sessions}
    problem = findings(**grown).problem()
    assert "pass {argument:id=meta.session_id}" in problem
    assert findings(**grown | {"beginnings": set()}).session_problem() == ""
    assert findings(**grown | {"n_runs": 5}).session_problem() == ""  # a run has none
    alone = {"meta.session_id": Counter(dict.fromkeys("abcd", 1))}
    assert findings(**grown | {"sessions": alone}).session_problem() == ""
    named = findings(fields=Fields(id="id"), **grown)
    assert named.session_problem() == ""
    assert any("hold only the beginning" in note for note in named.notes())


@pytest.mark.parametrize(("n_agent", "who"), [(0, "agent"), (3, "?")])
def test_roles_beside_a_known_agent_are_not_guessed(n_agent, who):
    tally = findings(n_turns=n_agent, unknown_roles=Counter(action=4))
    assert f"{{argument:roles=action={who}}}" in tally.role_problem()


def test_an_outcome_that_is_an_object_is_refused_with_its_fields():
    fields = Fields(outcome="grade")
    for inner, hint in (
        (["a", "b"], "name one of its fields (grade.a, grade.b), or give"),
        ([], ""),
    ):
        with pytest.raises(ArgumentError) as caught:
            findings(fields=fields, objects={"grade": inner}).check_names("a.json")
        start = "a.json: outcome: 'grade' is not a single value; "
        assert str(caught.value).startswith(start + (hint or "give a table of run ids"))


def test_two_sides_of_one_conversation_are_asked_about():
    mirrored = [("a", "b"), ("c", "d")]
    said = findings(mirrored=mirrored).side_problem()
    assert said.startswith("runs 'a' and 'b' have the same texts with user and agent exchanged")
    assert "as have 2 pairs of runs in all" in said
    assert findings(mirrored=mirrored).problem() == said
    assert findings().side_problem() == ""


def test_words_that_were_read_as_outcomes_are_said():
    own = findings(texts={"Yes", "no", "pass"})
    assert own.notes() == ["outcome: read 'no' as 0, 'yes' as 1"]
    own.selection = Selection(meanings={"yes": 0, "no": 1})
    assert own.notes() == []
