"""What is named, noted or refused of a log: outcomes, confidences, roles, scores, texts."""

import pytest

from known_dialogue import CALL
from refused import refused
from trajscore import io


def has(text, *parts):
    return [part for part in parts if part not in text] == []


def test_words_are_not_guessed(log):
    path = log({"result": "Pass"}, {"result": "fail"}, {"result": "timeout"}, {"result": "huh"})
    said = refused(path, outcome="result")
    assert has(said, "4 of 4", "'Pass': 1", "'fail': 0", "'timeout': -1", "'huh': '?'")
    meanings = {"pass": 1, "fail": 0, "timeout": -1, "huh": 0.5}
    for given in ("pass=1,fail=0,timeout=-1,huh=0.5", meanings):
        runs = io.read_runs(path, outcome="result", outcome_map=given)
        assert io.outcomes(runs).tolist() == [1, 0, -1, 0.5]
    for given, named in (("fail=no", "'fail' means 'no'"), ("pass=1,fail", "'fail'"), (3, "3")):
        assert has(refused(path, outcome="result", outcome_map=given), "outcome_map", named)
    runs = io.read_runs(log({"reward": 2.0}, {"reward": 1}), outcome_map={2: 1, 1: 0})
    assert io.outcomes(runs).tolist() == [1, 0]
    runs = io.read_runs(log({"outcome": "Yes"}, {"outcome": "no"}, {"outcome": "1"}))
    assert runs.notes == ["outcome: read 'no' as 0, 'yes' as 1"]
    said = refused(log({"failed": "late"}), outcome="not failed")
    assert has(said, "outcome='failed'", "outcome_map=")


def test_a_field_that_is_nowhere_is_named_with_those_there_are(log):
    path = log({"success": True, "judge": {"grade": 0.25}}, {"success": True})
    runs = io.read_runs(path, outcome="judge.grade")
    assert io.outcomes(runs).tolist() == [0.25, -1]
    for part in ("outcome", "stop_reason"):
        assert has(refused(path, **{part: "nowhere"}), part, "success, judge.grade", "a.json")
    assert has(refused(path, outcome="grade"), "did you mean 'judge.grade'")
    assert has(refused(log({}), outcome="x"), "'x'", "leave outcome out")
    assert has(refused(log({}), stop_reason="x"), "'x'", "leave stop_reason out")
    assert has(refused(log({}), confidence="x"), "'x'", "leave confidence out")
    assert has(refused(log({"failed": 1}), outcome="filed"), "did you mean 'failed'")
    assert has(refused(log({"failed": 1}), outcome="not filed"), "did you mean 'not failed'")
    said = refused(log({"grade": {"x": 1, "y": 2}}), outcome="grade")
    assert has(said, "did you mean 'grade.y'")
    # the column may be in the table alone
    path, table = log({}, {}), {"r0": 1, "r1": 0}
    assert io.outcomes(io.read_runs(path, outcomes=table, outcome="g")).tolist() == [1, 0]
    assert "confidence: " in refused(path, outcomes=table, outcome="g", confidence="g")


def test_several_outcomes_of_a_run(log):
    path = log({"grade": [1, 0, 1]}, {"grade": [0, 0]})
    assert has(refused(path, outcome="grade"), "'grade'", "'r0'", "outcome='grade.-1'")
    assert io.outcomes(io.read_runs(path, outcome="grade.-1")).tolist() == [1, 0]
    for grade in ([1, "x"], [], ["x"]):
        assert "several values" not in refused(log({"grade": grade}), outcome="grade")


def test_confidences_of_turns(write):
    for fields, name, confidence in [
        ({"confidence": 0.5}, None, 0.5), ({"score": "70%"}, None, 0.7),
        ({"score": "70%", "confidence": 0.2}, None, 0.2),
        ({"confidence": 0.5, "judge": {"p": 0.1}}, "judge.p", 0.1),
        ({"confidence": 0.5, "judge": None}, "confidence", 0.5),
        ({"scores": {"sure": {"value": 0.4, "comment": "x"}}}, "sure", 0.4),
        ({"metadata": {"score": " 0.5 "}}, None, 0.5), ({"score": True}, None, None),
        ({"score": "high"}, None, None), ({"score": "-inf"}, None, None),
        ({"risk": 0.25}, "not risk", 0.75), ({"risk": 0.25}, "risk", 0.25), ({}, None, None),
    ]:  # fmt: skip
        turn = {"role": "assistant", "content": "x"} | fields
        user = {"role": "user", "content": "y", "score": 0.5}
        (run,) = io.read_runs(write("a.json", [{"id": "a", "messages": [user, turn]}]),
                              confidence=name)  # fmt: skip
        assert [step.confidence for step in run.steps] == [None, confidence], (fields, name)
    turn = {"role": "assistant", "content": "x", "judge": {"p": 0.25}, "risk": 0.5}
    path = write("a.json", [{"id": "a", "messages": [turn, {**turn, "judge": None}]}])
    (run,) = io.read_runs(path, confidence="judge.p")
    assert [step.confidence for step in run.steps] == [0.25, None]
    assert has(refused(path, confidence="jugde"), "confidence", "'jugde'", "did you mean 'judge'")
    assert has(io.read_runs(path, confidence="risk").notes[0], "confidence='not risk'")


TEAM = [
    {"role": "human", "content": "Book it."},
    {"role": "Planner (thought)", "content": "Ask the web."},
    {"role": "WebSurfer", "content": "I look. Confidence: 70%"},
    {"role": "assistant", "name": "Terminal", "content": "exit code 0"},
]


def test_outcomes_that_disagree_are_counted(write):
    turns = [{"role": "assistant", "content": "x"}]
    pairs = [(True, False), (True, 1), (False, 0.5), (True, None), (True, "fine")]
    runs = [
        {"id": k, "messages": turns, "success": success, "passed": passed}
        for k, (success, passed) in enumerate(pairs)
    ]
    log = write("log.json", runs)
    disagree = "1 run with two outcomes that disagree; name the field with outcome="
    assert io.read_runs(log).notes == [disagree]
    assert io.read_runs(log, outcome="success").notes == []


def test_confidences_that_are_not_numbers_are_counted(write):
    turns = [{"role": "assistant", "content": "x", "sure": sure} for sure in ("high", 0.5, None)]
    log = write("log.json", [{"id": "a", "messages": turns}])
    read = io.read_runs(log, confidence="sure")
    assert [step.confidence for step in read[0].steps] == [None, 0.5, None]
    assert read.notes == ["1 confidence without a number, not read"]
    log = write("log.json", [{"id": "a", "messages": turns[:1]}])
    with pytest.raises(ValueError, match="no turn has a number in its field 'sure'"):
        io.read_runs(log, confidence="sure")


def test_roles_that_only_the_user_knows(write):
    path = write("team.json", [{"id": str(k), "messages": TEAM} for k in range(3)])
    named = "6 turns of roles", "3 of the agent", "roles='Planner (thought)=agent'"
    assert has(refused(path), *named)
    roles = {"Planner (thought)": "agent", "WebSurfer": "agent", "Terminal": "environment"}
    runs = io.read_runs(path, roles=roles)
    assert io.read_runs(path, roles=",".join(map("=".join, roles.items()))) == runs
    assert [step.actor for step in runs[0].steps] == ["user", "agent", "agent", "environment"]
    assert runs.notes == []
    nobody = write("nobody.json", [{"messages": TEAM[:2]}])
    assert "roles='Planner (thought)=agent'" in refused(nobody)
    assert has(refused(path, roles={"Surfer": "agent"}), "roles", "'Surfer'", "WebSurfer")
    for given in (["agent"], {"WebSurfer": "boss"}, 3):
        assert has(refused(path, roles=given), "roles", "agent, user or environment")


def test_users_of_several_names_are_asked_about(write):
    group = [
        {"role": "user", "name": "Expert", "content": "I look it up."},
        {"role": "user", "name": "Terminal", "content": "exit code 0"},
        {"role": "assistant", "name": "Planner", "content": "Done."},
    ]
    path = write("group.json", [{"id": str(k), "messages": group} for k in range(3)])
    assert has(refused(path), "6 turns of users", "'Expert', 'Terminal'", "roles=")
    runs = io.read_runs(path, roles={"Expert": "agent", "Terminal": "environment"})
    assert [step.actor for step in runs[0].steps] == ["agent", "environment", "agent"]
    assert runs.notes == []
    named = refused(path, roles={"Expert": "user", "Planner": "agent"})
    assert has(named, "3 turns", "roles='Terminal=agent")
    alone = write("alone.json", [{"messages": [group[0], group[2]]}])
    assert io.read_runs(alone).notes == []
    agent = write("agent.json", [{"messages": [{**group[0], "name": "Assistant"}, group[2]]}])
    assert "or an agent's" in refused(agent)


def test_what_was_not_understood_is_counted(write):
    turn = {"role": "assistant", "content": "Hello"}
    for message, note in [
        ({"role": "assistant", "content": ""}, "1 turn without any content"),
        ({"role": "user", "content": {"value": "x"}}, "1 turn with content of an unknown form"),
        ({"role": "user", "content": [["x"]]}, "1 turn with content of an unknown form"),
        ({"role": "assistant", "content": "x", "tool_calls": [{}]}, "1 call of a tool without"),
        ({"role": "tool", "content": "x"}, "1 result of a tool without its call"),
        ({"role": "critic", "content": "x"}, "1 turn of roles that are not known"),
        ({"role": "user", "content": ["x", {"type": "text", "text": "y"}]}, None),
        ({"role": "user", "content": {"text": "x"}}, None),
    ]:
        notes = io.read_runs(write("a.json", [{"messages": [message, turn]}])).notes
        assert [one[: len(note or "")] for one in notes] == [note] * (note is not None), message
    twice = [{"messages": [{"role": "critic", "content": "x"}, turn | {"content": ""}, turn]}] * 2
    notes = "; ".join(io.read_runs(write("b.json", twice)).notes)
    assert has(notes, "2 turns without any content", "2 turns of roles", "roles='critic=agent'")


def test_texts_that_no_turn_holds_are_asked_about(write):
    def turn(role, words, **more):
        return {"role": role, "body": [{"words": words}]} | more

    turns = [turn("user", "Where is it?"), turn("assistant", "I look it up.", tool_calls=[CALL])]
    path = write("log.json", [{"id": str(k), "messages": turns} for k in range(2)])
    assert has(refused(path), "'messages.body.words'", "fields='steps=messages,text=NAME'")
    runs = io.read_runs(path, fields="steps=messages,text=body.0.words")
    assert [step.text for step in runs[0].steps] == ["Where is it?", "I look it up."]


def test_ids_that_several_runs_share(log):
    for ids, named in (
        ("abc", ()), ("abbc", ("2 runs", "'b'", "id=")), ("abbcc", ("'b'", "1 other ids", "id=")),
    ):  # fmt: skip
        runs = [{"id": name, "n": k} for k, name in enumerate(ids)]
        if named:
            assert has(refused(log(*runs)), "have the id", *named)
        else:
            assert len(io.read_runs(log(*runs))) == len(ids)


def test_runs_with_the_task_and_the_trial_of_another_are_counted(write):
    turn = [{"role": "assistant", "content": "Hi"}]
    pairs = [("a", 0), ("a", 1), ("a", 0), ("b", [0]), ("a", 0), ("b", None), ("b", None)]
    chats = [{"id": str(k), "messages": turn, "task": task, "trial": trial, "success": True}
             for k, (task, trial) in enumerate(pairs)]  # fmt: skip
    runs = io.read_runs(write("chats.jsonl", chats, lines=True))
    assert (len(runs), [note[:6] for note in runs.notes if "trial" in note]) == (7, ["2 runs"])
    chats = [chats[0], chats[2] | {"stop_reason": "infrastructure_error"}]
    with pytest.warns(UserWarning, match="left out"):
        assert not io.read_runs(write("lost.jsonl", chats, lines=True)).notes
