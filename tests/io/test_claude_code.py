"""Sessions of Claude Code: which lines are turns, which are left out, and how they end."""

import pytest

from trajscore import io
from trajscore.io.files import LogFile
from trajscore.io.formats.claude_code import ClaudeCode, _is_request
from trajscore.io.registry import Head


def line(kind, content, uuid=None, above=None, **fields):
    of_message = {name: fields.pop(name) for name in ("id", "model", "usage") if name in fields}
    message = {"role": kind, "content": content} | of_message
    own = {"type": kind, "sessionId": "s", "message": message}
    return own | {"uuid": uuid, "parentUuid": above} | fields


def user(content="Hi", *args, **fields):
    return line("user", content, *args, **fields)


def agent(content="Yes", *args, **fields):
    return line("assistant", content, *args, **fields)


def stopped(reason):
    message = {"role": "assistant", "content": "x", "stop_reason": reason}
    return {"type": "assistant", "sessionId": "s", "message": message}


@pytest.fixture
def read(write):
    """Read one session of some lines."""

    def read_one(*lines):
        (run,) = io.read_runs(write("a.jsonl", lines, lines=True), format="claude_code")
        return run

    return read_one


def texts(run):
    return [(step.actor, step.text) for step in run.steps]


@pytest.mark.parametrize(
    ("fields", "recognised"),
    [
        ({"type": "user", "sessionId": "s"}, True),
        ({"type": "queue-operation", "sessionId": "s"}, True),
        ({"type": "system", "session_id": "s"}, True),
        ({"type": "result", "session_id": "s"}, True),
        ({"type": "message", "session_id": "s"}, False),
        ({"type": "summary", "leafUuid": "u"}, True),
        ({"type": "file-history-snapshot", "snapshot": {}}, True),
        ({"type": "summary"}, False),
        ({"type": "user", "leafUuid": "u"}, False),
        ({"type": 3, "sessionId": "s"}, False),
    ],
)
def test_first_lines(fields, recognised):
    assert ClaudeCode().recognise(Head(fields, listed=True)) == recognised
    assert not ClaudeCode().recognise(Head(fields, listed=False))


def test_folders_of_projects(write, tmp_path):
    for project, name in (("p", "2"), ("p", "1"), ("q", "3")):
        lines = [line | {"sessionId": name} for line in (user(), agent())]
        write(f"log/{project}/{name}.jsonl", lines, lines=True)
    assert [run.id for run in io.read_runs(tmp_path / "log")] == ["1", "2", "3"]
    write("other/p/1.jsonl", [{"a": 1}], lines=True)
    assert ClaudeCode().folder(tmp_path / "other") == []
    write("log/direct.jsonl", [user()], lines=True)
    assert ClaudeCode().folder(tmp_path / "log") == []
    assert ClaudeCode().folder(tmp_path / "log" / "direct.jsonl") == []


def test_sessions_of_one_file(write):
    lines = [
        user("a"), user("b", sessionId="t"), agent("A"), agent("B", sessionId="t"),
        user("c", sessionId="side", isSidechain=True),
        agent("C", sessionId="side", parent_tool_use_id="u"),
        {"type": "summary", "leafUuid": "u"},
    ]  # fmt: skip
    runs = io.read_runs(write("a.jsonl", lines, lines=True))
    assert [(run.id, [step.text for step in run.steps]) for run in runs] == [
        ("s", ["a", "A"]), ("t", ["b", "B"]),
    ]  # fmt: skip


def test_a_file_of_a_subagent_is_not_a_run(write):
    side = write("side.jsonl", [user(isSidechain=True), agent(isSidechain=True)], lines=True)
    whole = write("whole.jsonl", [user(), agent()], lines=True)
    assert [run.id for run in io.read_runs([side, whole])] == ["s"]
    with pytest.raises(ValueError, match="there are no runs in .*side"):
        io.read_runs(side)


# ------------------------------------------------------------------ turns


def test_lines_of_one_answer_are_one_turn(read):
    use = {"type": "tool_use", "id": "c", "name": "ls", "input": {"x": 1}}
    result = {"type": "tool_result", "tool_use_id": "c", "content": "file"}
    run = read(
        user("Look"),
        agent([{"type": "text", "text": "I look"}], id="m", model="one"),
        agent([use], id="m", model="one", costUSD=0.5),
        user([result]),
        agent("A file", model="two"),
    )
    assert texts(run) == [("user", "Look"), ("agent", "I look"), ("agent", "A file")]
    (call,) = run.steps[1].tool_calls
    assert (call.name, call.arguments, call.result) == ("ls", {"x": 1}, "file")
    assert run.steps[1].cost == 0.5
    assert run.meta["model"] == "two"
    assert "n_left_out" not in run.extra


def test_what_is_left_out_is_counted(read):
    run = read(
        user("<command-name>/clear</command-name>"), user("<local-command-stdout>x"),
        user("<bash-input>ls"), user("meta", isMeta=True), user("sum", isCompactSummary=True),
        agent("<bash-ic", isApiErrorMessage=True),
        user("side", isSidechain=True), agent("side", parent_tool_use_id="u"),
        user("see <command-name>"), agent("<bash-script> it is"),
    )  # fmt: skip
    assert texts(run) == [("user", "see <command-name>"), ("agent", "<bash-script> it is")]
    assert run.extra["n_left_out"] == {"put in": 6, "subagent": 2}


def test_lines_of_other_types_and_without_a_session(write):
    lines = [user("q", "1"), {**agent("a b", "2", "1"), "type": ["assistant"]}]
    runs = io.read_runs(write("s.jsonl", [*lines, agent("c", "3", "2")], lines=True))
    assert texts(runs[0]) == [("user", "q"), ("agent", "c")]
    assert runs.notes == ["1 text not read, in 'message.content'"]
    lines = [user("q", "1"), agent("a b", "2", "1")]
    lines[1].pop("sessionId")
    (run,) = io.read_runs(write("t.jsonl", lines, lines=True))
    assert texts(run) == [("user", "q"), ("agent", "a b")]


def test_turns_that_the_user_took_back(read):
    run = read(
        user("q", "1"),
        agent("a", "2", "1"),
        user("old", "3", "2"),
        agent("to old", "4", "3"),
        user("also", "5", "4"),
        user("new", "6", "2"),
        agent("to new", "7", "6"),
    )
    assert [step.text for step in run.steps] == ["q", "a", "new", "to new"]
    assert run.extra["n_left_out"] == {"taken back": 3}


def test_results_beside_each_other_are_not_taken_back(read):
    use = [{"type": "tool_use", "id": key, "name": "ls", "input": {}} for key in "cd"]
    results = [{"type": "tool_result", "tool_use_id": key, "content": key} for key in "cd"]
    answers = [user([one], one["content"], "2") for one in results]
    run = read(user("q", "1"), agent(use, "2", "1"), *answers)
    assert [call.result for call in run.steps[1].tool_calls] == ["c", "d"]
    assert "n_left_out" not in run.extra


def test_repeated_lines_count_once(read):
    run = read(user("q", "1"), agent("a", "2", "1"), user("q", "1"), agent("a", "2", "1"))
    assert [step.text for step in run.steps] == ["q", "a"]
    assert "n_left_out" not in run.extra
    nameless = read(user("q"), agent("a"), user("q"), agent("a"))
    assert [step.text for step in nameless.steps] == ["q", "a", "q", "a"]


# ------------------------------------------------------------------ numbers and ends


def test_tokens_are_those_of_the_last_line_of_an_answer(read):
    usage = {
        "input_tokens": 1, "cache_creation_input_tokens": 10, "cache_read_input_tokens": 100,
        "output_tokens": 7,
    }  # fmt: skip
    run = read(
        user(),
        agent("a", id="m", usage=usage | {"output_tokens": 2}),
        agent("b", id="m", usage=usage),
        agent("c", id="n", usage={"input_tokens": 5, "output_tokens": None}),
        agent("d", id="o"),
    )
    assert [step.extra.get("tokens") for step in run.steps[1:]] == [
        {"input": 111, "output": 7}, {"input": 5, "output": 0}, None,
    ]  # fmt: skip
    assert (run.meta["input_tokens"], run.meta["output_tokens"]) == (116, 7)


def test_where_a_session_ran(read):
    first, last = {"cwd": "/a", "version": "1"}, {"cwd": "/b", "gitBranch": ""}
    run = read(user(**first), agent(**last))
    assert (run.meta["cwd"], run.meta["version"]) == ("/b", "1")
    assert "gitBranch" not in run.meta
    assert "model" not in run.meta


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ([stopped("end_turn")], "end_turn"),
        ([stopped("tool_use")], None),
        ([stopped(None)], None),
        ([stopped("max_tokens"), user("go on")], None),
        ([stopped("end_turn"), user("[Request interrupted by user for tool use]")], "interrupted"),
        ([stopped("end_turn"), {"type": "result", "subtype": "success"}], "success"),
        ([stopped("end_turn"), {"type": "result", "subtype": "error_max_turns"}], "max_turns"),
        ([agent(), {"type": "result", "subtype": "error_during_execution"}], "error"),
        ([stopped("end_turn"), {"type": "result"}], None),
    ],
)
def test_stops(read, lines, reason):
    run = read(user(), *({"sessionId": "s"} | each for each in lines))
    assert run.stop_reason == reason


def test_the_last_line_has_cost_and_turns(read):
    end = {"type": "result", "session_id": "s", "total_cost_usd": 0.25, "num_turns": 3}
    run = read(user(), agent(), end)
    assert (run.meta["cost"], run.meta["num_turns"]) == (0.25, 3)


def test_values_that_are_no_lines_are_runs_that_cannot_be_read(write):
    for name, content, expected in (
        ("a.json", {"a": 1}, [(0, 1)]), ("b.jsonl", "3\n4\n", [(0, 3), (1, 4)]),
    ):  # fmt: skip
        file = LogFile(write(name, content))
        assert [(place.index, line) for place, line in ClaudeCode().runs(file, None)] == expected


def test_lines_before_the_first_session_are_of_none(write):
    first = {name: value for name, value in user("before").items() if name != "sessionId"}
    (run,) = io.read_runs(
        write("a.jsonl", [first, user(), agent()], lines=True), format="claude_code"
    )
    assert (run.id, texts(run)) == ("s", [("user", "Hi"), ("agent", "Yes")])


def test_the_last_model_is_that_of_the_run(read):
    assert read(user(), *(agent(model=name) for name in "abc")).meta["model"] == "c"


@pytest.mark.parametrize(
    ("of", "is_request"),
    [
        (user(), True), (agent(), False), ({"type": "user"}, False),
        ({"type": "user", "message": "Hi"}, False), (user(isMeta=True), False),
        (user(isSidechain=True), False), (user(isSidechain=False), True),
        (user([{"type": "text", "text": "x"}]), True), (user(None), True),
        (user([{"type": "text", "text": "x"}, {"type": "tool_result"}]), False),
    ],
)  # fmt: skip
def test_requests_of_the_user(of, is_request):
    assert _is_request(of) is is_request


def test_a_folder_without_sessions(tmp_path):
    (tmp_path / "project").mkdir()
    assert ClaudeCode().folder(tmp_path) == []
