"""Sessions of Claude Code: which lines are turns, which are left out, and how they end."""

import pytest

from known_dialogue import ALL, ASK, TOLD, said
from trajscore import io


def line(kind, content, uuid=None, above=None, **fields):
    names = ("id", "model", "usage", "stop_reason")
    of_message = {name: fields.pop(name) for name in names if name in fields}
    message = {"role": kind, "content": content} | of_message
    own = {"type": kind, "sessionId": "s", "message": message}
    return own | {"uuid": uuid, "parentUuid": above} | fields


def user(content="Hi", *args, **fields):
    return line("user", content, *args, **fields)


def agent(content="Yes", *args, **fields):
    return line("assistant", content, *args, **fields)


def read(write, *lines):
    (run,) = io.read_runs(write("a.jsonl", lines, lines=True), format="claude_code")
    return run


def texts(run):
    return " ".join(step.text for step in run.steps)


USE = {"type": "tool_use", "id": "c1", "name": "find", "input": {"order": 3}}
RESULT = {"type": "tool_result", "tool_use_id": "c1", "content": "in Paris"}
SESSION = [
    {"type": "summary", "summary": "Order 3", "leafUuid": "6"},
    user("<command-name>/clear</command-name>", "1"),
    user("Where is ordr 3?", "1b", isMeta=True),
    user("Where is ordr 3?", "2", "1"),
    agent([{"type": "text", "text": "What?"}], "2a", "2", id="m0"),
    user(ASK["content"], "2b", "1"),  # instead of 2
    agent([{"type": "text", "text": "I look."}], "3", "2b", id="m1"),
    agent([USE], "4", "3", id="m1", stop_reason="tool_use"),
    user("Look for it", "x", "4", isSidechain=True),
    agent("Here", "y", "x", isSidechain=True),
    user([RESULT], "5", "4", toolUseResult={"x": 1}),
    agent([{"type": "text", "text": TOLD["content"]}], "6", "5", id="m2", stop_reason="end_turn"),
]  # fmt: skip


def test_a_session_as_it_is_kept_and_as_it_is_printed(write):
    (run,) = runs = io.read_runs(write("s.jsonl", SESSION, lines=True))
    assert (said(run), run.id) == (ALL, "s")
    assert (run.stop_reason, run.stop_kind) == ("end_turn", "complete")
    assert run.extra["n_left_out"] == {"put in": 2, "taken back": 2, "subagent": 2}
    assert [note[:10] for note in runs.notes] == ["6 messages"]
    printed = [{"type": "system", "subtype": "init", "session_id": "s", "cwd": "/work"}]
    for one in SESSION[5:]:
        side = "c0" if one.get("isSidechain") else None
        inner = {"type": one["type"], "message": one["message"], "parent_tool_use_id": side}
        printed.append(inner | {"session_id": "s"})
    end = {"type": "result", "subtype": "error_max_turns", "total_cost_usd": 0.5, "num_turns": 2}
    (run,) = io.read_runs(write("out.jsonl", [*printed, end | {"session_id": "s"}], lines=True))
    assert (said(run), run.stop_reason, run.stop_kind) == (ALL, "max_turns", "administrative")
    assert (run.meta["cost"], run.meta["num_turns"], run.meta.get("cwd")) == (0.5, 2, "/work")


def test_files_and_folders(write):
    other = [{**one, "sessionId": "t"} for one in SESSION if "sessionId" in one]
    write("logs/agent-1.jsonl", [one for one in SESSION if one.get("isSidechain")], lines=True)
    write("logs/1.jsonl", SESSION, lines=True)
    write("logs/2.jsonl", other, lines=True)
    path = write("logs/3.jsonl", SESSION[:1], lines=True)
    table = write("outcomes.csv", "id,outcome\ns,1\nt,0\n")
    runs = io.read_runs(path.parent, outcomes=table)
    assert [(run.id, run.outcome) for run in runs] == [("s", 1), ("t", 0)]
    write("projects/-work-a/s.jsonl", SESSION, lines=True)
    path = write("projects/-work-b/t.jsonl", other, lines=True)
    assert [run.id for run in io.read_runs(path.parents[1])] == ["s", "t"]
    side = write("side.jsonl", [user(isSidechain=True), agent(isSidechain=True)], lines=True)
    with pytest.raises(ValueError, match=r"no runs in .*side\.jsonl"):
        io.read_runs(side)
    several = [user("a"), user("b", sessionId="t"), agent("A"), agent("B", sessionId="t")]
    several += [user("c", sessionId="side", isSidechain=True), SESSION[0]]
    runs = io.read_runs(write("several.jsonl", several, lines=True))
    assert [(run.id, texts(run)) for run in runs] == [("s", "a A"), ("t", "b B")]
    for first in (
        {"type": "message", "session_id": "s"}, {"type": "summary"}, {"type": 3, "sessionId": "s"},
        {"type": "user", "leafUuid": "u"},
    ):  # fmt: skip
        with pytest.raises(ValueError, match=r"first\.jsonl"):
            io.read_runs(write("first.jsonl", [first], lines=True))


LS = [{"type": "tool_use", "id": "c2", "name": "ls", "input": {}}]
LINES = [
    # of several lines with one identifier, one turn
    ([user("q"), agent([{"type": "text", "text": "a"}], id="m"), agent([USE], id="m"),
     user([RESULT]), agent("b")], "q a b", {}),
    # lines that the program writes, and those of subagents
    ([user("<command-name>/clear"), user("<local-command-stdout>x"), user("<bash-input>ls"),
     user("meta", isMeta=True), user("sum", isCompactSummary=True),
     agent("<bash-ic", isApiErrorMessage=True), user("side", isSidechain=True),
     agent("side", parent_tool_use_id="u"), user("see <command-name>"), agent("<bash-script>")],
     "see <command-name> <bash-script>", {"put in": 6, "subagent": 2}),
    # what the user took back
    ([user("q", "1"), agent("a", "2", "1"), user("old", "3", "2"), agent("to old", "4", "3"),
     user("also", "5", "4"), user("new", "6", "2"), agent("to new", "7", "6")], "q a new to new",
     {"taken back": 3}),
    ([user("q", "1"), agent([USE, *LS], "2", "1"), user([RESULT], "3", "2"),
     user([RESULT | {"tool_use_id": "c2"}], "4", "2")], "q ", {}),
    # lines that stand twice
    ([user("q", "1"), agent("a", "2", "1"), user("q", "1"), agent("a", "2", "1")], "q a", {}),
    ([user("q"), agent("a"), user("q"), agent("a")], "q a q a", {}),
    # of other types, and without a session
    ([user("q", "1"), {**agent("a", "2", "1"), "type": ["assistant"]}, agent("c", "3", "2")], "q c",
     {}),
    ([user("q", "1"), agent("a", "2", "1") | {"sessionId": None}], "q a", {}),
    ([user("before") | {"sessionId": None}, user("q"), agent("a")], "q a", {}),
]  # fmt: skip


def test_which_lines_are_turns(write):
    for lines, expected, left_out in LINES:
        run = read(write, *lines)
        assert (texts(run), run.extra.get("n_left_out", {})) == (expected, left_out), lines


STOPPED = agent("x", stop_reason="end_turn")
STOPS = [
    ([STOPPED], "end_turn"), ([agent("x", stop_reason="tool_use")], None), ([agent("x")], None),
    ([agent("x", stop_reason="max_tokens"), user("go on")], None),
    ([STOPPED, user("[Request interrupted by user for tool use]")], "interrupted"),
    ([STOPPED, {"type": "result", "subtype": "success"}], "success"),
    ([STOPPED, {"type": "result", "subtype": "error_max_turns"}], "max_turns"),
    ([agent(), {"type": "result", "subtype": "error_during_execution"}], "error"),
    ([STOPPED, {"type": "result"}], None),
]  # fmt: skip


def test_how_a_session_ended(write):
    for lines, reason in STOPS:
        run = read(write, user(), *({"sessionId": "s"} | one for one in lines))
        assert run.stop_reason == reason, lines


def text(words, name, **fields):
    return agent([{"type": "text", "text": words}], id=name, **fields)


REPEATED = [
    # of one identifier several answers, which a line of the user ends
    ([user("q"), agent([USE], id="m"), user([RESULT]), agent("a", id="m")], ["q", "", "a"], 0),
    # a block that grew, and a call of the same request after a result
    ([user("q"), text("I", "m"), text("I look", "m"), text("Or", "m")], ["q", "I look\nOr"], 1),
    ([user("q"), agent([USE], id="m", requestId="r"), user([RESULT]),
      agent([LS[0]], id="m", requestId="r"), agent([USE], id="m", requestId="r")], ["q", ""], 1),
    # a history under new uuids, and what is said twice
    ([user("q", "1"), agent("a", "2", "1", id="m"), user("q", "3"), agent("a", "4", "3", id="m"),
      user("q2", "5", "2")], ["q", "a", "q2"], 2),
    ([user([{"type": "text", "text": q}]) for q in ("q", "q?")] + [text("a", "m")],
     ["q", "q?", "a"], 0),
    ([user("q"), text("a", "m1"), user("q"), text("a", "m2"), text("a", None)],
     ["q", "a", "q", "a", "a"], 0),
]  # fmt: skip


def test_blocks_that_are_repeated_stand_once(write):
    for lines, expected, n_repeated in REPEATED:
        run = read(write, *lines)
        assert [step.text for step in run.steps] == expected, lines
        assert run.extra.get("repeated", 0) == n_repeated, lines


def test_sessions_of_the_field(public_file):
    for name, n_turns, n_calls, tokens in (
        ("same_id", 6, 4, 150), ("A2", 3, 1, 184), ("B", 5, 1, 276), ("V", 2, 1, 2),
    ):  # fmt: skip
        (run,) = io.read_runs(public_file("field", "claude_code", f"{name}.jsonl"))
        calls = [call.result == step.observation for step in run.steps for call in step.tool_calls]
        assert (len(run), calls, run.meta["input_tokens"]) == (n_turns, [True] * n_calls, tokens)
