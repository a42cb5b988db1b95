"""ATIF, Inspect, and JSON lines with a map of fields."""

import sys
from types import SimpleNamespace as Record

import pytest

from trajscore import io
from trajscore.core.errors import ArgumentError
from trajscore.io.registry import detect_log

ATIF = {
    "schema_version": "ATIF-v1.8",
    "trajectory_id": "tr",
    "agent": {"name": "a", "version": "1", "model_name": "m"},
    "steps": [
        {"step_id": 1, "source": "system", "message": "Rules"},
        {"step_id": 2, "source": "user", "message": [{"type": "text", "text": "Fix it"}]},
        {"step_id": 3, "source": "agent", "message": "Old", "is_copied_context": True},
        {
            "step_id": 4,
            "source": "agent",
            "message": "",
            "reasoning_content": "hm",
            "tool_calls": [
                {"tool_call_id": "c", "function_name": "run", "arguments": {"cmd": "ls"}}
            ],
            "observation": {
                "results": [{"source_call_id": "c", "content": "file"}, {"content": "more"}]
            },
            "metrics": {"logprobs": [-0.1, -2.0], "prompt_tokens": 5, "cost_usd": 0.5},
            "extra": {"confidence": 0.75, "other": 1},
        },
    ],
    "final_metrics": {"total_cost_usd": 2.0},
}
RESULT = {
    "task_name": "task",
    "trial_name": "trial-1",
    "verifier_result": {"rewards": {"reward": 1.0}},
    "exception_info": None,
}


def test_atif(write, tmp_path):
    write("job/t1/agent/trajectory.json", ATIF)
    write("job/t1/result.json", RESULT)
    (run,) = io.read_runs(tmp_path / "job")
    assert (run.id, run.task, run.trial, run.outcome) == ("tr", "task", "trial-1", 1)
    assert run.meta["cost"] == 2.0
    assert run.extra["system"] == ["Rules"]
    assert run.extra["n_copied_steps"] == 1
    user, agent = run.steps
    assert (user.actor, user.text) == ("user", "Fix it")
    assert (agent.logprobs, agent.tokens) == ((-0.1, -2.0), None)
    assert (agent.confidence, agent.cost) == (0.75, 0.5)
    assert agent.tool_calls[0].result == "file"
    assert agent.observation == "file\nmore"
    assert agent.extra["reasoning_content"] == "hm"
    assert agent.extra["metrics"] == {"prompt_tokens": 5}
    assert agent.extra["other"] == 1


def test_atif_cut_runs(write):
    path = write("t/trajectory.json", ATIF)
    write("t/result.json", RESULT | {"exception_info": {"exception_type": "AgentTimeoutError"}})
    (run,) = io.read_runs(path, format="atif")
    assert (run.outcome, run.stop_reason, run.stop_kind) == (-1, "AgentTimeoutError", "unknown")
    assert run.meta["reward"] == 1.0
    assert io.read_runs(path, format="atif", cut_runs="score")[0].outcome == 1
    with pytest.raises(ValueError, match="cut_runs must be"):
        io.read_runs(path, format="atif", cut_runs="drop")


@pytest.mark.parametrize(
    ("fault", "means"),
    [
        ("ContextLengthExceededError", "informative"),
        ("NonZeroAgentExitCodeError", "informative"),
        ("SomethingNewError", "unknown"),
    ],
)
def test_atif_exceptions_of_the_agent(write, fault, means):
    path = write("t/trajectory.json", ATIF)
    write("t/result.json", RESULT | {"exception_info": {"exception_type": fault}})
    (run,) = io.read_runs(path, format="atif")
    assert (run.outcome, run.stop_kind) == (-1, means)


@pytest.mark.parametrize("fault", ["EnvironmentStartTimeoutError", "VerifierTimeoutError"])
def test_atif_faults_of_the_bench_are_excluded(write, fault):
    path = write("t/trajectory.json", ATIF | {"steps": []})  # the agent had no turn
    write("t/result.json", RESULT | {"exception_info": {"exception_type": fault}})
    with pytest.warns(UserWarning, match=rf"1 of 1 run is excluded \({fault} 1\)"):
        runs = io.read_runs(path, format="atif")
    assert [(one.id, one.kind) for one in runs.left_out] == [("tr", "excluded")]


def test_atif_job_folder_without_trajectories(write):
    with pytest.raises(ValueError, match=r"there are no runs in .*result\.json"):
        io.read_runs(write("t/result.json", RESULT), format="atif")


def test_atif_results(write):
    path = write("t/trajectory.json", ATIF)
    assert io.read_runs(path, format="atif")[0].outcome == -1  # nothing says how it ended
    several = RESULT | {"verifier_result": {"rewards": {"a": 1, "b": 0}}}
    given = write("elsewhere.json", several)
    with pytest.raises(ValueError, match=r"run 'tr' \(index 0\): no reward .* choose one of a, b"):
        io.read_runs(path, format="atif", result=given)
    assert io.read_runs(path, format="atif", result=given, reward="b")[0].outcome == 0
    with pytest.raises(FileNotFoundError, match="is not a file"):
        io.read_runs(path, format="atif", result="nowhere.json")
    with pytest.raises(ValueError, match="result is one file for 2"):
        io.read_runs([path, path], format="atif", result=given)


def test_atif_bad_input(write):
    with pytest.raises(ValueError, match="no list of 'steps'"):
        io.read_runs(write("trajectory.json", {"schema_version": "ATIF-v1.8"}), format="atif")
    loud = {"source": "agent", "message": "x", "metrics": {"logprobs": [0.5]}}
    with pytest.raises(ValueError, match=r"run 'q' \(index 0\), message 0: the logprob is 0.5"):
        io.read_runs(
            write("trajectory.json", {"trajectory_id": "q", "steps": [loud]}), format="atif"
        )


# ---------------------------------------------------------------- Inspect


def message(role, content, identifier, **more):
    return Record(role=role, content=content, id=identifier, **more)


def model_event(inputs, output, *, logprobs=None, span_id=None, **more):
    choice = Record(message=output, logprobs=logprobs, stop_reason="stop")
    output = Record(choices=[choice])
    return Record(event="model", input=inputs, output=output, span_id=span_id, **more)


def sample(**more):
    asked = message("user", "1 + 1?", "u")
    call = Record(id="c", function="add", arguments={"x": 1}, type="function")
    first = message("assistant", "", "a1", tool_calls=[call])
    second = message("assistant", "2", "a2", tool_calls=None)
    token = Record(token="2", logprob=-0.25, top_logprobs=[Record(token="2", logprob=-0.25)])
    events = [
        Record(event="span_begin", id="s", parent_id=None, type="scorers"),
        Record(event="span_begin", id="s1", parent_id="s", type=None),
        model_event([message("system", "Be brief", "y"), asked], first),
        Record(event="tool", id="c", function="add", arguments={}, result=2, error=None),
        Record(event="score", intermediate=True, score=Record(value=0.8)),
        model_event([asked, first], second, logprobs=Record(content=[token])),
        model_event([], message("assistant", "fail", "f"), error="refused"),
        model_event([message("user", "Right?", "g")], message("assistant", "C", "h"), span_id="s1"),
        Record(event="score", intermediate=False, score=Record(value="C")),
    ]
    fields = {
        "uuid": "run",
        "id": 7,
        "epoch": 2,
        "events": events,
        "messages": [asked, first, second],
        "scores": {"match": Record(value="C")},
        "limit": None,
        "error": None,
        "target": "2",
    }
    return Record(**fields | more)


@pytest.fixture
def read(monkeypatch, tmp_path):
    """Read samples through a stand-in for the library."""

    def read_samples(*samples, **options):
        head = Record(status="success", eval=Record(task="t", dataset=Record(sample_ids=[7])))
        library = Record(
            read_eval_log=lambda path, header_only: head,
            read_eval_log_samples=lambda path, **_: iter(samples),
        )
        monkeypatch.setitem(sys.modules, "inspect_ai", Record(log=library))
        monkeypatch.setitem(sys.modules, "inspect_ai.log", library)
        (tmp_path / "log.eval").touch()
        return io.read_runs(tmp_path / "log.eval", **options)

    return read_samples


def test_inspect(read):
    runs = read(sample())
    (run,) = runs
    assert (run.id, run.task, run.trial, run.outcome) == ("run", "7", 2, 1)
    assert [(step.actor, step.text) for step in run.steps] == [
        ("user", "1 + 1?"),
        ("agent", ""),
        ("agent", "2"),
    ]
    assert run.extra["system"] == ["Be brief"]
    assert run.extra["target"] == "2"
    assert run.steps[1].tool_calls[0].result == "2"
    assert run.steps[1].confidence == 0.8
    assert run.steps[2].logprobs == (-0.25,)
    assert run.steps[2].top_logprobs == ((("2", -0.25),),)
    assert next(iter(runs.info.values()))["eval"]["task"] == "t"


@pytest.mark.parametrize(
    ("kind", "means"),
    [
        ("message", "administrative"),
        ("token", "administrative"),
        ("time", "administrative"),
        ("context", "informative"),
        ("operator", "informative"),
    ],
)
def test_inspect_limits(read, kind, means):
    cut = sample(limit=Record(type=kind, limit=3))
    (run,) = read(cut)
    assert (run.outcome, run.stop_reason, run.stop_kind) == (-1, kind, means)
    assert run.meta["reward"] == 1.0  # both are kept
    assert read(cut, cut_runs="score")[0].outcome == 1


def test_inspect_marks_the_errors_of_tools(read):
    first = message("assistant", "", "a", tool_calls=[Record(id=k, function="f") for k in "cd"])
    events = [
        model_event([message("user", "Hi", "u")], first),
        Record(event="tool", id="c", function="f", result="ok", error=None),
        Record(event="tool", id="d", function="f", result="", error=Record(message="no such f")),
    ]
    (run,) = read(sample(events=events))
    calls = run.steps[1].tool_calls
    assert [(call.result, call.error) for call in calls] == [("ok", False), ("no such f", True)]


def test_inspect_errors_scores_and_messages(read):
    (run,) = read(sample(error=Record(message="oops"), scores=None))
    assert (run.outcome, run.stop_reason, run.stop_kind) == (-1, "error", "informative")
    assert read(sample(scores={"m": Record(value="I")}))[0].outcome == 0
    two = sample(scores={"a": Record(value={"x": 1, "y": 0}), "b": Record(value=0.5)})
    with pytest.raises(ValueError, match="several scorers; choose one of a, b"):
        read(two)
    assert read(two, scorer="a/x")[0].outcome == 1
    assert read(two, scorer="b")[0].outcome == 0
    with pytest.raises(ValueError, match="no scorer 'c'"):
        read(two, scorer="c")
    with pytest.raises(ValueError, match="choose a part of it"):
        read(two, scorer="a")
    assert len(read(sample(events=[]))[0].steps) == 3


def test_inspect_scorers_by_name(read):
    one = sample(scores={"includes": Record(value="I")})
    assert read(one, outcome="includes")[0].outcome == 0
    with pytest.raises(ValueError, match="did you mean 'scores.includes'"):
        read(one, outcome="include")
    two = sample(scores={"includes": Record(value="C"), "toxicity": Record(value=0.25)})
    assert read(two, outcome="includes")[0].outcome == 1
    assert read(two, outcome="not toxicity")[0].outcome == 0.75
    bad = read(*(sample(scores={"toxicity": Record(value=k)}) for k in (1, 0)))
    assert [run.outcome for run in bad] == [-1, -1]  # whether high is good, only the user knows
    with pytest.raises(ValueError, match="such as outcome='not scores.toxicity'"):
        io.outcomes(bad)


def test_inspect_needs_its_extra(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "inspect_ai", None)
    monkeypatch.setitem(sys.modules, "inspect_ai.log", None)
    with pytest.raises(ImportError, match=r"scikit-trajscore\[inspect\]"):
        io.read_runs(tmp_path, format="inspect")


@pytest.mark.parametrize("listed", [["s"], None])
def test_inspect_for_real(tmp_path, listed):
    log = pytest.importorskip("inspect_ai.log")
    event = pytest.importorskip("inspect_ai.event")
    model = pytest.importorskip("inspect_ai.model")
    user = model.ChatMessageUser(content="1 + 1?", id="u")
    output = model.ModelOutput.from_content("m", "2")
    token = model.Logprob(token="2", logprob=-0.25)
    output.choices[0].logprobs = model.Logprobs(content=[token])
    called = event.ModelEvent(
        model="m",
        input=[user],
        tools=[],
        tool_choice="auto",
        config=model.GenerateConfig(),
        output=output,
    )
    score = pytest.importorskip("inspect_ai.scorer").Score(value="C")
    one = log.EvalSample(
        id="s",
        epoch=1,
        uuid="run",
        input="1 + 1?",
        target="2",
        messages=[user, output.message],
        events=[called],
        scores={"match": score},
    )
    spec = log.EvalSpec(
        created="2026-01-01T00:00:00+00:00",
        task="t",
        dataset=log.EvalDataset(sample_ids=listed),
        model="m",
        config=log.EvalConfig(),
    )
    for name in ("a.eval", "b.json"):
        whole = log.EvalLog(eval=spec, samples=[one], status="success")
        log.write_eval_log(whole, str(tmp_path / name))
        (run,) = io.read_runs(tmp_path / name)
        assert (run.id, run.task, run.outcome) == ("run", "s", 1)
        assert [step.text for step in run.steps] == ["1 + 1?", "2"]
        assert run.steps[1].logprobs == (-0.25,)


# ---------------------------------------------------------------- JSON lines


def test_lines_of_steps_in_any_order(write):
    rows = [
        {"traj_id": "b", "step": 1, "score": 0.4, "success": False, "tool": "x"},
        {"traj_id": "a", "step": 10, "score": 0.9, "success": True},
        {"traj_id": "a", "step": 9, "score": 0.6, "success": True},
        {"traj_id": "b", "step": 2, "score": None, "success": False, "stop_reason": "done"},
    ]
    path = write("steps.jsonl", rows, lines=True)
    runs = io.read_runs(path, format="jsonl")
    assert [run.id for run in runs] == ["b", "a"]
    assert io.outcomes(runs).tolist() == [0, 1]
    assert [[s.confidence for s in run.steps] for run in runs] == [[0.4, None], [0.6, 0.9]]
    assert runs[0].stop_reason == "done"
    assert runs[0].steps[0].extra == {"tool": "x"}
    with pytest.raises(ValueError, match=r"index 3: run 'b' continues .* sort the lines"):
        list(io.iter_runs(path, format="jsonl"))
    rows.sort(key=lambda row: row["traj_id"])
    assert [r.id for r in io.iter_runs(write("s.jsonl", rows, lines=True))] == ["a", "b"]


def test_lines_of_runs(write):
    line = {
        "instance": "i1",
        "trajectory": [
            {"thought": "Look", "action": "ls", "observation": "a.py", "state": "s"},
            {"thought": "Done", "action": "submit", "observation": ""},
        ],
        "info": {"exit_status": "exit_cost", "model_stats": {"cost": 1}},
        "solved": None,
    }
    fields = {"id": "instance", "steps": "trajectory", "text": "thought", "action": "action",
              "stop_reason": "info.exit_status"}  # fmt: skip
    (run,) = io.read_runs(write("runs.jsonl", [line], lines=True), format="jsonl", fields=fields)
    assert (run.id, run.outcome) == ("i1", -1)
    assert (run.stop_reason, run.stop_kind) == ("exit_cost", "administrative")
    assert run.steps[0].text == "Look"
    assert run.steps[0].observation == "a.py"
    (call,) = run.steps[0].tool_calls
    assert (call.name, call.arguments, call.result) == ("action", "ls", "a.py")
    assert run.steps[0].extra == {"state": "s"}
    assert run.extra["info"]["model_stats"] == {"cost": 1}
    (same,) = io.read_runs(write("one.json", line), format="jsonl", fields=fields)
    assert same.steps == run.steps


@pytest.mark.parametrize(
    ("role", "actors"), [(None, ["user", "agent", "agent"]), ("user", ["agent", "agent", "user"])]
)
def test_kinds_of_steps_are_actors_where_no_step_names_one(write, role, actors):
    steps = [
        {"event": f"{kind}_message", "text": str(k), **({"role": role} if role and k == 2 else {})}
        for k, kind in enumerate(["user", "assistant", "agent"])
    ]
    line = {"run": "a", "steps": steps}
    (run,) = io.read_runs(write("log.jsonl", [line], lines=True), format="jsonl")
    assert [step.actor for step in run.steps] == actors


def test_json_lines_bad_input(write):
    with pytest.raises(ValueError, match="no part named 'txt'; did you mean 'text'"):
        io.read_runs("x", format="jsonl", fields={"txt": "a"})
    path = write("a.jsonl", [{"run": 1, "p": 0.5}], lines=True)
    with pytest.raises(ValueError, match="no line has the field 'q' for 'confidence'; .* run, p"):
        io.read_runs(path, format="jsonl", fields={"confidence": "q"})
    with pytest.raises(ValueError, match="index 0 has no usual field of run ids"):
        io.read_runs(write("b.jsonl", [{"p": 0.5}], lines=True), format="jsonl")
    steps = [{"text": "Hi"}]
    for name, value, kind in (("trajectory", 3, "int"), ("x", None, "NoneType")):
        lines = [{"run": 1, "trajectory": steps}, {"run": 2, name: value}]
        log = write("two.jsonl", lines, lines=True)
        field = "steps" if value is None else name
        with pytest.warns(UserWarning, match=f"its '{field}' is {kind}, not a list"):
            io.read_runs(log, format="jsonl")
    with pytest.raises(ValueError, match="line 1 is not valid JSON"):
        io.read_runs(write("c.jsonl", 'oops\n{"run": 1}\n'), format="jsonl")
    with pytest.raises(ValueError, match="index 0 is int"):
        io.read_runs(write("d.jsonl", "1\n"), format="jsonl")


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([{"run": 1, "t": 1}, {"run": 1, "t": 1}], "it has step 1 twice"),
        ([{"run": 1, "t": 1}, {"run": 1}], "some of its lines have no step number"),
        ([{"run": 1, "t": "one"}], "its step should be a number, but line 0 of the run has 'one'"),
        ([{"run": 1, "y": -7}], "expected true, false"),
    ],
)
def test_json_lines_malformed_runs(write, rows, said):
    with pytest.raises(ValueError, match=f"none of the .* runs can be read .*run '1' .*{said}"):
        io.read_runs(write("a.jsonl", rows, lines=True), format="jsonl")
    good = {"run": 2, "p": 0.5}
    with pytest.warns(UserWarning, match="1 of 2 runs could not be read"):
        runs = io.read_runs(
            write("b.jsonl", [*({"p": 0.5} | row for row in rows), good], lines=True),
            format="jsonl",
        )
    assert said in runs.left_out[0].reason


def test_equal_times_are_in_the_order_of_the_log(write):
    said = [("user", "Hi"), ("assistant", "Ho"), ("assistant", "Hm")]
    lines = [{"run_id": "a", "role": who, "content": text, "created_at": 5} for who, text in said]
    (run,) = io.read_runs(write("log.jsonl", lines, lines=True))
    assert [step.text for step in run.steps] == ["Hi", "Ho", "Hm"]


def test_times_as_steps(write):
    said = [("user", "Hi", "00:02"), ("assistant", "Ho", "00:03"), ("assistant", "Hm", "00:03")]
    lines = [
        {"run_id": "a", "role": role, "content": text, "timestamp": f"2026-01-01T00:{time}Z"}
        for role, text, time in [*said[1:], said[0]]
    ]
    (run,) = io.read_runs(write("log.jsonl", lines, lines=True))
    assert [(s.actor, s.text) for s in run.steps] == [
        ("user", "Hi"),
        ("agent", "Ho"),
        ("agent", "Hm"),
    ]


def test_outcomes_by_step_are_asked_about(write):
    def lines(name="log.jsonl"):
        rewards = {"a": [0, 0, 1], "b": [0, 0, 0], "c": [1, 1, 1], "d": [1, 0.5, 0]}
        rows = [
            {"run": run, "step": k, "text": "x", "reward": reward}
            for run, own in rewards.items()
            for k, reward in enumerate(own)
        ]
        return write(name, rows, lines=True)

    words = "'reward' has several values in run 'a', 0, 0, 1 ...; .* outcome='reward.-1'; otherwise"
    with pytest.raises(ValueError, match=words):
        io.read_runs(lines())
    assert io.outcomes(io.read_runs(lines(), outcome="reward.-1")).tolist() == [1, 0, 1, 0]
    table = {"a": 1, "b": 0, "c": 0, "d": 1}
    assert io.outcomes(io.read_runs(lines(), outcomes=table)).tolist() == [1, 0, 0, 1]
    listed = [{"id": k, "messages": [{"role": "assistant", "content": "x"}], "reward": [0, k]}
              for k in range(2)]  # fmt: skip
    with pytest.raises(ValueError, match="'reward' has several values in run '0'"):
        io.read_runs(write("runs.json", listed))
    runs = io.read_runs(write("runs.json", listed), outcome="reward.-1")
    assert io.outcomes(runs).tolist() == [0, 1]


def test_an_id_of_several_models_is_asked_about(write):
    lines = [{"run": 1, "text": f"{k}", "model": model} for k in range(2) for model in "xy"]
    log = write("log.jsonl", lines, lines=True)
    with pytest.raises(ValueError, match="'1' has several values of 'model'; .*id='run' id='mod"):
        io.read_runs(log)
    assert [run.id for run in io.read_runs(log, id=["run", "model"])] == ["1-x", "1-y"]
    assert len(io.read_runs(log, id="run")) == 1


def test_turns_without_scores_are_a_log(write):
    lines = [
        {"run_id": i, "step": k, "text": f"I look at {k}", "success": i % 2}
        for i in range(4)
        for k in range(3)
    ]
    assert detect_log(write("a.jsonl", lines, lines=True)).name == "jsonl"
    for more in ({"p": 0.5}, {"rating": 3}, {"confidence": 0.5}, {"p_success": None}):
        assert detect_log(write("b.jsonl", [more | line for line in lines], lines=True)) is None
    others = [{"run_id": line["run_id"], "step": 1, "thought": line["text"]} for line in lines]
    with pytest.raises(ArgumentError, match="not known.* 'thought'.* fields='text=NAME'"):
        io.read_runs(write("c.jsonl", others, lines=True))
    runs = io.read_runs(write("c.jsonl", others[::3], lines=True), fields="text=thought")
    assert runs[0].steps[0].text == "I look at 0"


def test_durations_are_no_order(write):
    def read(times, **options):
        lines = [{"run": 1, "role": "assistant", "text": f"{t}", "time": t} for t in times]
        runs = io.read_runs(write("log.jsonl", lines, lines=True), **options)
        return [step.text for step in runs[0].steps], runs.notes

    texts, notes = read([1.2, 0.4, 3])
    assert texts == ["1.2", "0.4", "3"]
    assert notes == [
        "1 run with the lines in the order of the file: small times fall, as durations do"
    ]
    assert read([1.2, 0.4, 3], fields={"step": "time"}) == (["0.4", "1.2", "3"], [])
    assert read([0.4, 1.2, 3]) == (["0.4", "1.2", "3"], [])
    assert read([1.7e9, 1.6e9]) == (["1600000000.0", "1700000000.0"], [])


@pytest.mark.parametrize("add", ["", "_message", "Message"])
def test_the_type_of_a_line_says_who_acts(write, add):
    said = [("user", "Hi"), ("assistant", "Ho"), ("pause", "...")]
    lines = [{"run_id": "a", "type": f"{who}{add}", "text": text} for who, text in said]
    call = {"run_id": "a", "type": "tool_call", "name": "f", "arguments": {"n": 3}}
    (run,) = io.read_runs(write("log.jsonl", [*lines, call], lines=True))
    assert [(s.actor, s.text) for s in run.steps] == [
        ("user", "Hi"), ("agent", "Ho"), ("environment", "..."), ("agent", ""),
    ]  # fmt: skip
    assert [(c.name, c.arguments) for c in run.steps[3].tool_calls] == [("f", {"n": 3})]


def test_lines_at_the_start_and_the_end_of_a_run(write):
    """Lines of a logger: those without a step have fields of the run, and are counted."""
    start = {
        "event": "run_started",
        "run_id": "r",
        "timestamp": "2026-01-01T00:00:00Z",
        "task": "a",
    }
    steps = [
        {"event": "step", "run_id": "r", "step": k, "thought": f"I look {k}.", "confidence": 0.5}
        for k in (1, 2)
    ]
    end = {
        "event": "run_finished",
        "run_id": "r",
        "timestamp": "2026-01-01T00:01:00Z",
        "success": 1,
    }
    path = write("log.jsonl", [start, *steps, end], lines=True)
    with pytest.raises(ArgumentError, match="the format is not known"):
        io.read_runs(path)
    (run,) = runs = io.read_runs(path, fields="text=thought")
    assert [(step.text, step.confidence) for step in run.steps] == [
        ("I look 1.", 0.5), ("I look 2.", 0.5),
    ]  # fmt: skip
    assert (run.task, run.outcome) == ("a", 1)
    assert "2 lines without anything that a step holds, taken as fields of the run" in runs.notes


def test_types_that_are_no_actors_leave_steps_to_the_agent(write):
    lines = [{"run_id": "a", "type": kind, "text": kind} for kind in ("assistant", "plan")]
    (run,) = io.read_runs(write("log.jsonl", lines, lines=True))
    assert [step.actor for step in run.steps] == ["agent", "agent"]


def test_named_steps_of_runs_by_the_keys_that_lead_to_them(write):
    steps = [{"thought": "I look it up.", "action": "find[3]", "obs": "in Paris"}]
    runs = {f"task{k}": {"log": steps, "success": k} for k in range(2)}
    path = write("nested.json", {"a": runs, "b": runs})
    with pytest.raises(ArgumentError, match="the format is not known"):
        io.read_runs(path)
    read = io.read_runs(path, fields="steps=log,text=thought,action=action,observation=obs")
    assert [run.id for run in read] == ["a-task0", "a-task1", "b-task0", "b-task1"]
    assert (read[3].outcome, read[3].steps[0].tool_calls[0].result) == (1, "in Paris")


def test_fields_of_json_lines_are_a_mapping_of_names(write):
    path = write("log.jsonl", [{"id": "a", "confidence": 0.5}], lines=True)
    with pytest.raises(ValueError, match=r"fields must be a dict of names by part, got \['a'\]"):
        io.read_runs(path, format="jsonl", fields=["a"])
    with pytest.raises(ValueError, match="fields: no part named 'stp'; did you mean 'step'"):
        io.read_runs(path, format="jsonl", fields={"stp": "a"})


def test_records_without_the_named_steps_are_left_out(write):
    turn = {"text": "Hi", "confidence": 0.5}
    rows = [{"id": "a", "log": {"events": [turn]}}, {"id": "b", "log": {"other": 1}}]
    path = write("log.jsonl", rows, lines=True)
    with pytest.warns(
        UserWarning, match="1 of 2 runs .*run 'b' .*its 'log.events' is NoneType, not"
    ):
        runs = io.read_runs(path, fields={"steps": "log.events"})
    assert [(run.id, run.steps[0].confidence) for run in runs] == [("a", 0.5)]


def test_lines_that_are_no_turns_are_kept_beside_them(write):
    rows = [
        {"run": "a", "step": 1, "role": "system", "text": "Be kind.", "confidence": 0.1},
        {"run": "a", "step": 2, "role": "assistant", "text": "Hi", "confidence": 0.5},
        {"run": "a", "step": 3, "role": "tool", "text": "seen", "observation": "more"},
    ]
    (run,) = io.read_runs(write("log.jsonl", rows, lines=True), format="jsonl")
    assert run.extra["system"] == ["Be kind."]
    assert [(step.text, step.confidence, step.observation) for step in run.steps] == [
        ("Hi", 0.5, "seen")
    ]
