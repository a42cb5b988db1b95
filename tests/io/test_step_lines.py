"""JSON lines without a fixed format: a step or a run each, under the names that a user gives."""

import pytest

from trajscore import io


def read(write, rows, **options):
    return io.read_runs(write("log.jsonl", rows, lines=True), **options)


def turns(runs):
    return [(run.id, [(step.actor, step.text) for step in run.steps]) for run in runs]


def test_lines_of_steps_in_any_order(write):
    rows = [
        {"traj_id": "b", "step": 1, "score": 0.4, "success": False, "tool": "x"},
        {"traj_id": "a", "step": 10, "score": 0.9, "success": True},
        {"traj_id": "a", "step": 9, "score": 0.6, "success": True},
        {"traj_id": "b", "step": 2, "score": None, "success": False, "stop_reason": "done"},
    ]
    path = write("steps.jsonl", rows, lines=True)
    runs = io.read_runs(path, format="jsonl")
    assert [(run.id, run.outcome) for run in runs] == [("b", 0), ("a", 1)]
    assert [[s.confidence for s in run.steps] for run in runs] == [[0.4, None], [0.6, 0.9]]
    assert (runs[0].stop_reason, runs[0].steps[0].extra) == ("done", {"tool": "x"})
    with pytest.raises(ValueError, match=r"index 3: run 'b'.*sort the lines"):
        list(io.iter_runs(path, format="jsonl"))
    rows.sort(key=lambda row: row["traj_id"])
    assert [run.id for run in io.iter_runs(write("s.jsonl", rows, lines=True))] == ["a", "b"]


def test_lines_of_runs_under_names_that_the_user_gives(write):
    line = {
        "instance": "i1", "solved": None,
        "trajectory": [{"thought": "Look", "action": "ls", "observation": "a.py", "state": "s"},
         {"thought": "Done", "action": "submit", "observation": ""}],
        "info": {"exit_status": "exit_cost", "model_stats": {"cost": 1}},
    }  # fmt: skip
    fields = {"id": "instance", "steps": "trajectory", "text": "thought", "action": "action",
              "stop_reason": "info.exit_status"}  # fmt: skip
    for path in (write("runs.jsonl", [line], lines=True), write("one.json", line)):
        (run,) = io.read_runs(path, format="jsonl", fields=fields)
        assert (run.id, run.outcome, run.stop_kind) == ("i1", -1, "administrative")
        (call,) = run.steps[0].tool_calls
        assert (call.name, call.arguments, call.result) == ("action", "ls", "a.py")
        assert (run.steps[0].text, run.steps[0].extra) == ("Look", {"state": "s"})
        assert run.extra["info"]["model_stats"] == {"cost": 1}
    steps = [{"thought": "I look.", "action": "find[3]", "obs": "in Paris"}]
    runs = {f"t{k}": {"log": steps, "success": k} for k in range(2)}
    path = write("nested.json", {"a": runs, "b": runs})
    read = io.read_runs(path, fields="steps=log,text=thought,action=action,observation=obs")
    assert [(run.id, run.outcome) for run in read] == [
        ("a-t0", 0), ("a-t1", 1), ("b-t0", 0), ("b-t1", 1),
    ]  # fmt: skip
    assert read[3].steps[0].tool_calls[0].result == "in Paris"


def test_who_acts(write):
    for add in ("", "_message", "Message"):
        kinds = [("user", "Hi"), ("assistant", "Ho"), ("pause", "...")]
        rows = [{"run_id": "a", "type": f"{who}{add}", "text": text} for who, text in kinds]
        rows.append({"run_id": "a", "type": "tool_call", "name": "f", "arguments": {"n": 3}})
        runs = read(write, rows)
        assert turns(runs) == [
            ("a", [("user", "Hi"), ("agent", "Ho"), ("environment", "..."), ("agent", "")])
        ]
        assert [(c.name, c.arguments) for c in runs[0].steps[3].tool_calls] == [("f", {"n": 3})]
    plans = [{"run_id": "a", "type": kind, "text": kind} for kind in ("assistant", "plan")]
    assert turns(read(write, plans)) == [("a", [("agent", "assistant"), ("agent", "plan")])]
    for role, actors in ((None, "user agent agent"), ("user", "agent agent user")):
        steps = [
            {"event": f"{kind}_message", "text": "x"} | ({"role": role} if role and not k else {})
            for k, kind in enumerate(["agent", "assistant", "user"])
        ][::-1]
        (run,) = read(write, [{"run": "a", "steps": steps}], format="jsonl")
        assert " ".join(step.actor for step in run.steps) == actors
    beside = [
        {"run": "a", "step": 1, "role": "system", "text": "Be kind.", "confidence": 0.1},
        {"run": "a", "step": 2, "role": "assistant", "text": "Hi", "confidence": 0.5},
        {"run": "a", "step": 3, "role": "tool", "text": "seen", "observation": "more"},
    ]
    (run,) = read(write, beside, format="jsonl")
    (step,) = run.steps
    assert (run.extra["system"], step.text, step.observation) == (["Be kind."], "Hi", "seen")


def test_the_order_of_lines(write):
    def texts(name, *times, **options):
        rows = [{"run": 1, "role": "assistant", "text": f"{t}", name: t} for t in times]
        runs = read(write, rows, **options)
        return [step.text for step in runs[0].steps], len(runs.notes)

    late, early = "2026-01-01T00:00:03Z", "2026-01-01T00:00:02Z"
    for name, times, options, expected in (
        ("created_at", (5, 5), {}, (["5", "5"], 0)),
        ("timestamp", (late, early), {}, ([early, late], 0)),
        ("time", (1.2, 0.4, 3), {}, (["1.2", "0.4", "3"], 1)),  # durations are no order
        ("time", (1.2, 0.4), {"fields": {"step": "time"}}, (["0.4", "1.2"], 0)),
        ("time", (0.4, 1.2), {}, (["0.4", "1.2"], 0)),
        ("time", (1.7e9, 1.6e9), {}, (["1600000000.0", "1700000000.0"], 0)),
    ):  # fmt: skip
        assert texts(name, *times, **options) == expected, times


BAD = [  # rows, options, and what is named
    ([{"run": 1, "p": 0.5}], {"fields": {"txt": "a"}}, "'txt'.*'text'"),
    ([{"run": 1, "p": 0.5}], {"fields": ["a"]}, r"fields .*\['a'\]"),
    ([{"run": 1, "p": 0.5}], {"fields": {"confidence": "q"}}, "'q' for 'confidence'.* run, p"),
    ([{"p": 0.5}], {}, "index 0 has no usual field of run ids"),
    ([1], {}, "index 0 is int"),
    ([{"run": 1, "t": 1}, {"run": 1, "t": 1}], {}, "run '1'.*step 1 twice"),
    ([{"run": 1, "t": 1}, {"run": 1}], {}, "run '1'.*lines have no step number"),
    ([{"run": 1, "t": "one"}], {}, "run '1'.*line 0 .*'one'"),
    ([{"run": 1, "y": -7}], {}, "run '1'.*expected true, false"),
]


def test_what_cannot_be_read(write):
    for rows, options, words in BAD:
        with pytest.raises(ValueError, match=words):
            read(write, rows, format="jsonl", **options)
    with pytest.raises(ValueError, match="line 1 is not valid JSON"):
        io.read_runs(write("c.jsonl", 'oops\n{"run": 1}\n'), format="jsonl")
    good = {"run": 1, "trajectory": [{"text": "Hi"}]}
    for other, words in (
        ({"run": 2, "trajectory": 3}, "'trajectory' is int"), ({"run": 2}, "'steps' is NoneType"),
    ):  # fmt: skip
        with pytest.warns(UserWarning, match=f"1 of 2 runs.*run '2'.*{words}"):
            read(write, [good, other], format="jsonl")
    rows = [{"id": "a", "log": {"events": [{"text": "Hi", "p": 0.5}]}}, {"id": "b", "log": {}}]
    with pytest.warns(UserWarning, match="1 of 2 runs .*run 'b' .*'log.events'"):
        assert len(read(write, rows, fields={"steps": "log.events"})) == 1
    unnamed = [{"run_id": i, "step": 1, "thought": "Hm", "success": i % 2} for i in range(4)]
    with pytest.raises(ValueError, match=r"log\.jsonl.*'thought'.*fields='text=NAME'"):
        read(write, unnamed)
