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


def test_words_that_were_read_as_outcomes_are_said():
    own = findings(texts={"Yes", "no", "pass"})
    assert own.notes() == ["outcome: read 'no' as 0, 'yes' as 1"]
    own.selection = Selection(meanings={"yes": 0, "no": 1})
    assert own.notes() == []


# ------------------------------------------------------------------ whole sentences


def test_users_whose_roles_are_given_are_not_asked_about():
    names = Tally(names_of_users=Counter(Ann=2, Bob=1))
    assert Findings(Selection(roles={"Ann": "user", "Bob": "agent"}), names).role_problem() == ""
    one = Findings(Selection(roles={"Ann": "user"}), names).role_problem()
    assert one.startswith("1 turn of the user have the names of several users, or of an agent ")
    assert one.endswith("for example with {argument:roles=Bob=agent}")


ODD = {
    "turn": "1 turn without any content that is known",
    "content": "1 turn with content of an unknown form, kept as JSON",
    "call": "1 call of a tool without a name",
    "unanswered": "1 call of a model without an answer, which is not a turn",
    "aside": "1 message of subagents, other branches or the program, or taken back, not used",
    "replaced_scores": "1 score with another value than one of the same name; the last counts",
    "durations": "1 run with the lines in the order of the file: small times fall, as durations do",
    "lines_of_run": "1 line without anything that a step holds, taken as fields of the run",
    "without_role": "1 turn without a role, where others have one, taken as the agent's",
    "result": "1 result of a tool without its call, kept with the turn before it",
}


@pytest.mark.parametrize(
    ("tally", "notes"),
    [
        (
            {"tables": ["a.csv", "b.csv"]},
            [
                (
                    "2 tables beside the logs not read, such as a.csv; if it holds outcomes, pass "
                    "{argument:outcomes=a.csv}"
                )
            ],
        ),
        (
            {"n_parent_rings": 1},
            [
                (
                    "spans of 1 trace are each other's parents; the first of them in time is taken "
                    "as the outermost"
                )
            ],
        ),
        (
            {"n_retried": 2},
            [
                (
                    "2 answers of a model not used: it was asked the same again, and the "
                    "conversation goes on from the other answer"
                )
            ],
        ),
        (
            {"n_joined": 1, "n_records": 3},
            [
                (
                    "3 records of the log joined into 1 run: calls of a model in one session, "
                    "events of one run, or states that grow"
                )
            ],
        ),
        ({"unread": Counter(a=3, b=2, c=2, d=1)}, ["8 texts not read, in 'a', 'b', 'c'"]),
        (
            {"unknown_roles": Counter(x=1, y=2)},
            [
                (
                    "3 turns of roles that are not known, such as 'y', taken as the environment's; "
                    "if it is an agent's, pass {argument:roles=y=agent}"
                )
            ],
        ),
        ({"odd": Counter(dict.fromkeys(ODD, 1))}, list(ODD.values())),
        ({"odd": Counter(turn=2)}, ["2 turns without any content that is known"]),
        (
            {"wholes": Counter({1: 2}), "beginnings": {1}},
            [
                (
                    "2 runs of 4 hold only the beginning of another run; if they are calls or "
                    "states of one run, name what these share with {argument:id}"
                )
            ],
        ),
        ({"wholes": Counter({1: 2}), "beginnings": {2}}, []),
    ],
)
def test_what_was_not_used_is_noted(tally, notes):
    assert findings(**tally).notes() == notes


@pytest.mark.parametrize(
    ("fields", "notes"),
    [
        ({"confidence": "not sure"}, ["confidence: 1 minus 'sure'"]),
        (
            {"confidence": "risk"},
            [
                (
                    "confidence: high 'risk' stands for success; if it stands for failure, pass "
                    "{argument:confidence=not risk}"
                )
            ],
        ),
        ({"confidence": "p"}, []),
        ({"outcome": "not failed"}, ["outcome: not 'failed', so 1 counts as failure"]),
        ({"outcome": "done"}, []),
    ],
)
def test_how_named_fields_were_read(fields, notes):
    assert findings(fields=Fields(**fields), n_with_outcome=1).notes() == notes


def refusal(**tally):
    with pytest.raises(ArgumentError) as caught:
        findings(**tally).check_names("a.json")
    return str(caught.value), caught.value.part


@pytest.mark.parametrize(
    ("outcome", "hint"),
    [
        (None, "outcome_map={'yes': 1}"),
        ("done", "outcome_map={'yes': 1}"),
        ("not failed", "outcome='failed' outcome_map={'yes': 0}"),
    ],
)
def test_words_are_refused_with_what_they_may_mean(outcome, hint):
    words = "say what each word means (1 success, 0 failure, -1 not observed) with"
    assert refusal(words=Counter(yes=2), fields=Fields(outcome=outcome)) == (
        f"a.json: the outcome is a word in 2 of 4 runs; {words} {hint}",
        "outcome_map",
    )


@pytest.mark.parametrize("values", [[1, 2], [1, 2, 3, 4]])
def test_several_outcomes_of_a_run_are_refused(values):
    shown = ", ".join(map(str, values[:3]))
    assert refusal(lists={"o": ("r1", values)}) == (
        (
            f"a.json: the outcome 'o' has several values in run 'r1', {shown} ...; if the last one "
            f"counts, pass outcome='o.-1'; otherwise name another field with outcome, or give a "
            f"table of run ids and outcomes with outcomes="
        ),
        "outcome",
    )


def test_counts_of_tests_are_refused():
    counted = {("passed", "failed"): {(3, 1)}}
    assert refusal(counts=counted)[0].startswith("a.json: 'passed' and 'failed' are 3 and 1 in")
    findings(counts={("passed", "failed"): {(1, 0)}}).check_names("a.json")


@pytest.mark.parametrize(
    ("part", "name", "problem"),
    [
        ("outcome", "g", ("no run has a field named 'g', and there is no other to name; give a "
         "table of run ids and outcomes with outcomes=")),
        ("confidence", "g", ("no turn has a field named 'g', and there is no other to name; leave "
         "confidence out, to use log-probabilities or what turns state in words")),
        ("stop_reason", "g", ("no run has a field named 'g', and there is no other to name; leave "
         "stop_reason out")),
    ],
)  # fmt: skip
def test_a_named_field_is_nowhere_and_there_is_no_other(part, name, problem):
    fields = Fields(**{part: name})
    assert refusal(fields=fields) == (f"a.json: {part}: {problem}", part)
    # an object of runs says nothing of confidences and stop reasons
    objects = {name: ["a"]}
    expected = part != "outcome"
    assert (refusal(fields=fields, objects=objects)[0] == f"a.json: {part}: {problem}") is expected


@pytest.mark.parametrize(
    ("part", "name", "known"),
    [
        ("outcome", "g", "of a run named 'g'; there are: failed, x"),
        ("outcome", "not g", "of a run named 'not g'; there are: not failed, x"),
        ("stop_reason", "not g", "of a run named 'not g'; there are: failed, x"),
        ("confidence", "not g", "of a turn named 'not g'; there are: not error, x"),
    ],
)
def test_a_named_field_is_nowhere_and_others_are_named(part, name, known):
    found = {"values": counts(failed=[1], x=[1]), "names_of_turns": Counter(error=1, x=1)}
    told, _ = refusal(fields=Fields(**{part: name}), **found)
    assert told == f"a.json: {part}: no field {known}"


def test_no_run_has_an_outcome():
    ids = Counter("ab")
    end = "or give a table of run ids ('a', 'b' ...) and outcomes with {argument:outcomes}"
    assert findings(ids=ids).outcome_problem() == (
        f"no run has an outcome; name the field with {{argument:outcome}}, {end}"
    )
    values = counts(success=[0, 1], other=[1, 1])
    assert findings(ids=ids, values=values).outcome_problem() == (
        "no run has an outcome (the runs have 'success': 0 1, 1 1; 'other': 1 2); name the field "
        f"with {{argument:outcome}}, such as {{argument:outcome=success}}, {end}"
    )
    assert findings({}).outcome_problem() == findings({"x": {}}, n_with_outcome=1).problem() == ""
