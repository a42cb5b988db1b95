"""Formats: of one's own, who is asked first, and what is said of JSON that none recognises."""

import json

import pytest

from refused import refused
from trajscore import io
from trajscore.cli.main import main

GAME = {"game": "g", "moves": ["e4", "e5"], "result": 1}


class Games(io.Format):
    name, holds = "games", "moves"

    def recognise(self, head):
        return {"moves", "result"} <= head.fields.keys()

    def run(self, raw, place):
        if not raw["moves"]:
            raise self.malformed("nobody moved")
        steps = [io.Step("agent", move) for move in raw["moves"]]
        return io.Run(place.name(raw.get("game")), steps, raw["result"], raw.get("stop"))


def like_games(**attributes):
    """Make a format that differs from the games in some attributes."""
    return type("Variant", (Games,), attributes)


@pytest.fixture
def register():
    """Register formats; afterwards none of them recognises a file."""
    names = set()

    def register_one(format):  # noqa: A002
        assert io.register(format) is format
        names.add(format.name)

    yield register_one
    for name in names:
        io.register(like_games(name=name, recognise=lambda *_: False))


def test_a_format_of_ones_own(register, write):
    register(Games)
    listed = write("a.json", [GAME, {**GAME, "game": None}])
    assert [run.id for run in io.read_runs(listed)] == ["g", "a-1"]
    assert [run.meta for run in io.read_runs(listed)] == [{"file": str(listed)}] * 2
    lines = write("b.jsonl", [GAME, {**GAME, "game": "h"}], lines=True)
    assert [run.id for run in io.read_runs(lines)] == ["g", "h"]
    single = write("c.json", {"moves": ["e4"], "result": 0})
    assert [(run.id, run.outcome) for run in io.iter_runs(single)] == [("c-0", 0)]
    assert len(io.read_runs(single, format="games")) == 1
    with pytest.raises(ValueError, match=r"no runs in .*a\.json"):
        io.read_runs(write("a.json", []), format="games")
    with pytest.raises(ValueError, match="read as tau2: .*no termination_reason"):
        io.read_tau2(write("d.json", [GAME]))


def test_what_a_format_of_ones_own_leaves_out(register, write):
    def run(self, raw, place):
        if raw["game"] == "deep":
            raise RecursionError
        return Games.run(self, raw, place)

    register(like_games(run=run))
    stopped = {**GAME, "stop": "infrastructure_error"}
    games = [GAME, {**GAME, "moves": []}, stopped, {**GAME, "game": "deep"}]
    with pytest.warns(UserWarning, match=r"2 of 4 runs .*1 of 4 runs is left out"):
        runs = io.read_runs(write("a.json", games))
    assert [(one.index, one.reason, one.kind) for one in runs.left_out] == [
        (1, "nobody moved", "malformed"),
        (2, "infrastructure_error", "excluded"),
        (3, "it is nested too deeply", "malformed"),
    ]


def test_errors_of_a_reader_say_where_it_fails(register, write, capsys):
    path = write("a.json", GAME)
    for run, named in [
        (lambda *_: {}["job"], "KeyError 'job'"), (lambda *_: int("x"), "ValueError invalid"),
        (lambda *_: None, "got None"), (lambda *_: io.Run("a", [], "won"), "the outcome is 'won'"),
    ]:  # fmt: skip
        register(like_games(run=run))
        assert main(["report", str(path)]) == 2
        error = capsys.readouterr().err
        assert f"{path.name}, run (index 0): the reader of format 'games' fails: " in error
        assert named in error


def test_the_last_one_registered_is_asked_first(register, write):
    path = write("a.jsonl", [GAME | {"id": 1, "messages": []}], lines=True)
    register(Games)
    other = io.Run("o", [io.Step("agent", "x")])
    register(like_games(name="other", run=lambda *_: other))
    assert [run.id for run in io.read_runs(path)] == ["o"]
    register(Games)
    assert [run.id for run in io.read_runs(path)] == ["g"]
    register(like_games(lax=True))
    assert [run.id for run in io.read_runs(path)] == ["o"]


def test_options_of_ones_own(register, write):
    def named(_, raw, place):
        return io.Run(place.options["name"], [io.Step("agent", "x")])

    register(like_games(run=named, options={"name": "x"}))
    path = write("a.json", GAME)
    assert io.read_runs(path)[0].id == "x"
    assert io.read_runs(path, name="y")[0].id == "y"
    with pytest.raises(TypeError, match="games.*'nam'.*'name'"):
        io.read_runs(path, nam="y")


def test_a_score_that_a_run_has_not_is_not_counted(register, write):
    step = io.Step("agent", "x")
    register(like_games(run=lambda _, raw, *__: io.Run(raw["game"], [step], scores=raw["scores"])))
    games = [{**GAME, "scores": {"solved": 1}}, {**GAME, "game": "h", "scores": {"solved": None}}]
    runs = io.read_runs(write("a.json", games))
    assert ([run.outcome for run in runs], runs.notes) == ([1, -1], [])


def test_what_is_not_a_format_is_refused(register):
    with pytest.raises(ValueError, match="format must be a subclass of io.Format"):
        io.register("games")
    with pytest.raises(ValueError, match="Variant.name"):
        io.register(type("Variant", (io.Format,), {"holds": "moves"}))
    for call in (lambda: io.Format().recognise(None), lambda: io.Format().run({}, None)):
        with pytest.raises(NotImplementedError):
            call()


TEXT = "One two three."
CHAT = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes. Confidence: 60%"}]


def is_log(path, capsys):
    """Tell whether the commands read a file as a log: tables have no option for roles."""
    main(["report", str(path), "--role", "nobody=agent"])
    said = capsys.readouterr().err
    assert said.startswith("trajscore: ")
    return None if "format is not known" in said else "is a table" not in said


def test_logs_and_tables_in_json(write, capsys):
    row = {"id": "a", "step": 1, "p": 0.5}
    for record, expected in [
        ({"messages": CHAT}, True), ({"id": "a", "steps": [{"text": TEXT}]}, True),
        ({"id": "a", "steps": [{"text": TEXT, "confidence": 0.5}]}, False),
        ({"id": "a", "confidence": 0.5, "steps": [{"text": TEXT}]}, False),
        ({"id": "a", "steps": [{"p": 0.5}]}, False), ({"id": "a", "steps": [0.5, 0.25]}, False),
        (row, False), ({"id": "a", "step": 1, "text": TEXT}, True), (row | {"text": TEXT}, False),
        ({"run": "a", "step": 1, "role": "assistant", "content": "Hi", "n": 0.5}, True),
        ({"run": "a", "step": 1, "role": "assistant", "content": "Hi", "p": 0.5}, False),
        ({"id": "a", "text": TEXT, "observation": "x"}, True),
        ({"key": 1, "values": [0.1, 0.2]}, False),
        ({"key": 1, "values": [0.1], "about": {"a": {"b": "some words"}}}, None),
        ({"key": 1, "about": {"a": "b"}, "step": 1, "certain": 0.5}, None),
        ({"key": 1, "about": {"a": "b"}, "step": 1, "cost": 0.5}, None),
        ({"key": 1, "about": {"a": "b"}, "confidence": 1}, False),
        ({"key": 1, "a": [1, "x"]}, None), ({"key": 1, "a": [1, 0.5, None], "b": []}, False),
        ({"id": "a", "p": {"x": 1}, "q": {"x": 1}}, False),
        ({"id": "a", "text": {"x": 1}, "n": 1}, True),
    ]:  # fmt: skip
        path = write("a.jsonl", [record] * 2, lines=True)
        assert is_log(path, capsys) == expected, record


def test_folders_of_logs_and_tables(write, tables, tmp_path, capsys):
    write("parts/a.parquet", "PAR")
    write("parts/b.json", [{"messages": CHAT}])
    assert is_log(tmp_path / "parts", capsys)  # a log, with tables beside it
    write("t.csv", "run,step\n1,1\n")
    assert not is_log(tmp_path / "t.csv", capsys)
    cell = json.dumps(CHAT).replace('"', '""')
    assert is_log(write("r.csv", f'id,messages\n1,"{cell}"\n'), capsys)
    lines = [{"thread_id": k, **one, "success": k % 2} for k in range(4) for one in CHAT]
    path = write("log.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    runs = tables.runs(path)
    assert (runs.outcomes, runs.lengths) == ([0, 1] * 2, [1] * 4)


def test_what_is_refused_with_how_to_name_its_parts(write):
    assert "it has 'spans', 'info'" in refused(write("log.json", {"spans": [], "info": {}}))
    for record in (
        {"0": {"turn_history": {"actions": ["ls"]}}}, {"mapping": {"a": {"message": None}}},
        {"span_id": 1, "root_span_id": 1, "input": "Hi"},
        {"op_name": "x", "trace_id": 1, "inputs": {}},
        {"output": [{"type": "message", "role": "assistant", "content": []}], "usage": {}},
        {"a" * 50: 1, "b" * 50: [{"c": 1}], "c" * 50: 1},
        {"type": "response.created", "sequence_number": 0},
    ):  # fmt: skip
        path = write("log.jsonl", [record], lines=True)
        said = refused(path).removeprefix(str(path.parent))
        assert "the format is not known" in said
        assert "name its parts, fields=" in said
        assert len(said) <= 200, said
    with pytest.raises(ValueError, match="'tau'.*did you mean"):
        io.read_runs(write("log.json", {}), format="tau")
    assert "log.json: no JSON object" in refused(write("log.json", [3]))
    with pytest.raises(ValueError, match="no turn of the agent has"):
        io.read_runs(write("log.jsonl", [{"choices": [{"delta": {}}]}], lines=True))


FOLDER = "a folder with a long name/" * 6
UNNAMED = {"id": "run-" * 20, "messages": [{"role": "assistant", "content": "Hi"}]}
LONG = {f"{name}_of_a_long_name_in_this_log": 1 for name in ("grade", "verdict", "reward")}
SPAN = {"traceId": "t", "spanId": "s", "name": "n", "attributes": {"gen_ai.operation.name": "chat"}}
REFUSED = [
    ("a.json", "", {}), ("a.json", "[{", {}), ("a.json", "3", {}), ("a.json", "\xe9", {}),
    ("a.json", [], {}), ("a.csv", "a,b\n1,2\n", {}), ("a.jsonl", '{"a": 1}\n{"b', {}),
    ("a.json", [UNNAMED], {"format": "tau2"}), ("a.json", [UNNAMED], {"format": "atif"}),
    ("a.json", [UNNAMED], {"format": "otel"}), ("a.json", [{"messages": []}], {}),
    ("a.json", [UNNAMED | LONG], {"outcome": "x"}), ("a.json", [UNNAMED], {"confidence": "x" * 90}),
    ("a.json", [UNNAMED], {"stop_reason": "x"}), ("a.json", [UNNAMED], {"roles": "x=agent"}),
    ("a.json", [UNNAMED | {"outcome": [1, 0, 1]}], {"outcome": "outcome"}),
    ("a.json", [UNNAMED | {"verdict": f"word {k}" * 9} for k in range(20)], {"outcome": "verdict"}),
    ("a.json", [UNNAMED | {"outcome": "x" * 1000}], {}),
    ("a.json", [UNNAMED | {"passed": 7, "failed": 2}], {}), ("a.json", [UNNAMED], {"id": "x" * 99}),
    ("a.json", [{"messages": [{"role": f"somebody else {k}"} for k in range(9)]}], {}),
    ("a.json", [{"messages": [UNNAMED["messages"][0] | {"logprobs": [1.5]}]}], {}),
    ("a.json", [SPAN], {}), ("a.jsonl", "[1]\n" * 9, {"fields": {"text": "x"}}),
    ("a.jsonl", '{"a": 1}\n' * 9, {"fields": {"text": "x"}}),
    ("a.json", {"simulations": [{"id": "a"}], "info": 1}, {}),
    ("a.json", {"eval": 1, "x" * 99: 2}, {}),
    ("a.traj", {"info": 3}, {}), ("a.json", {"steps": 3, "agent": {}}, {}),
    ("a.json", {f"{name} of a long name": [1] for name in "abcdef"}, {}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "log", "options"), REFUSED)
def test_a_refusal_is_one_short_sentence_that_names_the_file_once(write, name, log, options):
    path = write(FOLDER + name, log)
    if log == "\xe9":
        path.write_bytes(b'["\xe9"]')
    said = refused(path, **options)
    assert len(said) <= 200
    assert said.count(name) == 1, said
    assert "\n" not in said
    assert "{arg" not in said
    assert len(said) > 60


def test_a_log_without_outcomes_is_refused_in_one_short_sentence(write):
    path = write("a.json", [UNNAMED | dict.fromkeys(LONG, k) | {"id": str(k)} for k in (0, 1)])
    for options in ({}, {"outcomes": {"other " * 20: 1}}):
        with pytest.raises(ValueError, match=r"no run has an outcome") as caught:
            io.outcomes(io.read_runs(path, **options))
        assert len(str(caught.value)) <= 200, str(caught.value)
