"""The registry of formats: who is asked, what is told, and formats of one's own."""

import json
from dataclasses import dataclass
from functools import partial

import pytest

from trajscore import io
from trajscore.io import registry
from trajscore.io.registry import detect_log, name_list


@pytest.fixture
def register(monkeypatch):
    """Register formats for one test."""
    monkeypatch.setattr(registry, "_FORMATS", dict(registry._FORMATS))
    return io.register


def recognise(head):
    return {"moves", "result"} <= head.fields.keys()


def run(raw, place, options):
    name = place.name(raw.get("game"))
    if not raw["moves"]:
        raise ValueError("nobody moved")
    steps = [io.Step("agent", move) for move in raw["moves"]]
    return io.Run(name, steps, raw["result"], stop_reason=raw.get("stop"))


class Games(io.Format):
    name, holds = "games", "moves"

    def recognise(self, head):
        return recognise(head)

    def run(self, raw, place, options):
        return run(raw, place, options)


def like_games(**attributes):
    """Make a format that differs from the games in some attributes."""
    return type("Variant", (Games,), attributes)


GAME = {"game": "g", "moves": ["e4", "e5"], "result": 1}


def test_a_format_of_ones_own(register, write):
    register(Games)
    listed = write("a.json", [GAME, {**GAME, "game": None}])
    assert [run.id for run in io.read_runs(listed)] == ["g", "a-1"]
    assert [run.meta for run in io.read_runs(listed)] == [{"file": str(listed)}] * 2
    assert [run.id for run in io.read_runs(write("b.jsonl", [GAME, GAME], lines=True))] == ["g"] * 2
    single = write("c.json", {"moves": ["e4"], "result": 0})
    assert [(run.id, run.outcome) for run in io.iter_runs(single)] == [("c-0", 0)]
    assert len(io.read_runs(single, format="games")) == 1


def test_what_a_format_of_ones_own_leaves_out(register, write):
    register(Games)
    games = [GAME, {**GAME, "moves": []}, {**GAME, "stop": "infrastructure_error"}]
    with pytest.warns(UserWarning, match=r"1 of 3 runs could not be read .*1 of 3 runs is excl"):
        runs = io.read_runs(write("a.json", games))
    assert [(one.index, one.reason, one.kind) for one in runs.left_out] == [
        (1, "nobody moved", "malformed"),
        (2, "infrastructure_error", "excluded"),
    ]


def test_outcomes_of_runs_that_were_cut_off(register, write):
    path = write("a.json", [GAME | {"stop": "max_steps"}, GAME | {"stop": "done"}, GAME])
    register(Games)
    assert [(run.outcome, run.stop_kind) for run in io.read_runs(path)] == [
        (-1, "administrative"),
        (1, "complete"),
        (1, "complete"),
    ]
    register(like_games(cut_runs="score"))
    assert [(run.outcome, run.stop_kind) for run in io.read_runs(path)] == [(1, "complete")] * 3


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


def test_endings_and_folders_of_ones_own(register, write, tmp_path):
    register(like_games(recognise=lambda *_: False, endings=(".chess",)))
    write("d/a.chess", GAME)
    write("d/b.txt", "not of this format")
    assert [run.id for run in io.read_runs(tmp_path / "d")] == ["g"]
    write("club/games/x.json", GAME)

    def club(_, place):
        return sorted((place / "games").glob("*.json"))

    register(like_games(name="club", recognise=lambda *_: False, folder=club))
    assert [run.id for run in io.read_runs(tmp_path / "club")] == ["g"]
    assert [run.id for run in io.iter_runs([tmp_path / "club"] * 2)] == ["g", "g"]


def test_options_of_ones_own(register, write):
    @dataclass
    class Options:
        name: str = "x"

    def named(_, raw, place, options):
        return io.Run(options.name, [io.Step("agent", "x")])

    register(like_games(run=named, options=Options))
    path = write("a.json", GAME)
    assert io.read_runs(path)[0].id == "x"
    assert io.read_runs(path, name="y")[0].id == "y"
    with pytest.raises(TypeError, match="games: no option named 'nam'; did you mean 'name'"):
        io.read_runs(path, nam="y")


def test_the_hint_comes_from_the_registry(register, write):
    register(Games)
    path = write("a.json", [GAME])
    said = r"it has no 'simulations'. It looks like games; read it with format='games'"
    with pytest.raises(ValueError, match=said):
        io.read_tau2(path)


def test_what_is_not_a_format_is_refused(register):
    with pytest.raises(ValueError, match="must be a subclass of io.Format, got 'games'"):
        register("games")
    with pytest.raises(ValueError, match="Variant.name must be text"):
        register(type("Variant", (io.Format,), {"holds": "moves"}))


def test_no_runs(register, write):
    register(Games)
    with pytest.raises(ValueError, match=r"there are no runs in .*a\.json; leave the file out"):
        io.read_runs(write("a.json", []), format="games")


def test_a_format_is_found_once(monkeypatch, write, talk):
    looked = []
    found = registry.format_of_file
    monkeypatch.setattr(
        registry, "format_of_file", lambda file, limit: looked.append(file) or found(file)
    )
    path = write("a.json", [{"id": "a", "messages": talk}] * 3)
    assert len(io.read_runs(path)) == 3
    assert looked == [path]
    io.read_runs(path, format="openai")
    assert looked == [path]


def test_what_is_read_one_by_one_is_counted_too(write, talk):
    runs = [{"id": "a", "messages": talk}, {"id": "b"}, {"id": "c", "messages": talk}]
    stream = io.iter_runs(write("a.json", runs))
    assert next(stream).id == "a"
    with pytest.warns(UserWarning, match=r"1 of 3 runs could not be read .*run 'b' \(index 1\)"):
        assert [run.id for run in stream] == ["c"]
    assert [one.id for one in stream.left_out] == ["b"]


def test_warnings_point_to_the_line_that_reads(write, talk):
    path = write("a.json", [{"id": "a", "messages": talk}, {"id": "b"}])
    for read in (
        partial(io.read_runs, format="openai"),
        io.read_runs,
        lambda path: list(io.iter_runs(path)),
    ):
        with pytest.warns(UserWarning, match="1 of 2 runs") as caught:
            read(path)
        assert caught[0].filename == __file__


def test_all_formats_read_a_folder(write, tmp_path):
    for name in ("a.json", "b.jsonl"):
        value = {"task_id": name, "reward": 1.0, "traj": [{"role": "assistant", "content": "x"}]}
        write(f"d/{name}", json.dumps(value))
    assert [run.task for run in io.read_runs(tmp_path / "d", format="tau_bench")] == [
        "a.json",
        "b.jsonl",
    ]


@pytest.mark.parametrize(
    ("more", "is_table"),
    [
        ({"values": [0.1, 0.2]}, True),
        ({"values": [0.1], "about": {"a": {"b": "some words"}}}, False),
        ({"about": {"a": "b"}, "step": 1, "certain": 0.5}, True),
        ({"about": {"a": "b"}, "step": 1, "cost": 0.5}, False),
        ({"about": {"a": "b"}, "confidence": 1}, True),
    ],
)
def test_rows_of_tables_and_other_json(write, more, is_table):
    """JSON with objects and without scores is no table, though it has times."""
    path = write("a.jsonl", [{"key": 1, "model": "m", **more}], lines=True)
    if is_table:
        assert registry.detect_log(path) is None
    else:
        with pytest.raises(ValueError, match="the format is not known"):
            registry.detect_log(path)


def test_folders_and_files_that_are_tables(tmp_path, register):
    (tmp_path / "t.csv").write_text("a\n1\n")
    assert detect_log(tmp_path / "t.csv") is None
    assert detect_log(tmp_path / "none.csv") is None
    scout = tmp_path / "scout"
    scout.mkdir()
    (scout / "transcripts_1.parquet").touch()
    assert detect_log(scout).name == "scout"
    parts = tmp_path / "parts"
    parts.mkdir()
    (parts / "a.parquet").touch()
    assert detect_log(parts) is None
    chat = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes"}]
    (parts / "b.json").write_text(json.dumps([{"messages": chat}]))
    assert detect_log(parts).name == "openai"  # a log, with tables beside it
    register(like_games(endings=(".game",)))
    (parts / "b.json").rename(parts / "b.game")
    assert detect_log(parts).name == detect_log(parts / "b.game").name == "games"


def test_a_database_is_not_a_table(tmp_path):
    path = tmp_path / "sessions.db"
    path.write_bytes(b"SQLite format 3\0")
    with pytest.raises(ValueError, match="is an SQLite database; write its sessions as JSON"):
        detect_log(path)


def test_what_a_format_has_to_define():
    for call in (lambda: io.Format().recognise(None), lambda: io.Format().run({}, None, None)):
        with pytest.raises(NotImplementedError):
            call()


def test_what_is_known_of_a_file_after_each_of_its_fields(write):
    def heads(name, value):
        return [
            (dict(head.fields), head.listed, head.whole, head.item)
            for head in registry._heads(registry.LogFile(write(name, value)))
        ]

    assert heads("a.json", [{"x": 1}, {"y": 2}]) == [({"x": 1}, True, True, {"x": 1})]
    assert heads("a.json", [[1], {"y": 2}]) == [({}, True, True, [1])]
    whole = {"x": 1, "samples": [7, 8], "z": 3}
    first = {"x": 1, "samples": 7, "z": 3}
    found = heads("b.json", whole)
    assert [(len(fields), whole) for fields, _, whole, _ in found] == [
        (1, False), (2, False), (3, False), (3, True),
    ]  # fmt: skip
    assert found[-1] == (first, False, True, None)


def test_names_in_an_error():
    assert name_list("its fields are", []) == ""
    assert name_list("its fields are", ["a", 1]) == " (its fields are 'a', 1)"
    assert name_list("x", range(13)) == f" (x {', '.join(map(str, range(12)))})"


def test_a_run_that_is_nested_too_deeply_is_left_out(register, write):
    def run(self, raw, place, options):
        if raw["game"] == "deep":
            raise RecursionError
        return io.Run(place.name(raw["game"]), [io.Step("agent", "e4")], 1)

    register(like_games(run=run))
    with pytest.warns(UserWarning, match=r"run 'None'|index 1.*it is nested too deeply"):
        runs = io.read_runs(write("a.json", [GAME, GAME | {"game": "deep"}]))
    assert [run.id for run in runs] == ["g"]
    assert [(left.index, left.reason) for left in runs.left_out] == [(1, "it is nested too deeply")]


@pytest.mark.parametrize(
    ("step", "recognised"),
    [
        ({"text": "One two."}, True), ({"say": "One two three."}, False),
        ({"say": "One two three.", "confidence": 0.5}, True), ({"p": 0.5}, True), (0.5, True),
    ],
)  # fmt: skip
def test_steps_with_a_text_under_another_name_are_not_json_lines(step, recognised):
    head = registry.Head({"id": "a", "steps": [step]}, listed=True, whole=True)
    assert registry.find_format("jsonl").recognise(head) is recognised
    assert not registry.find_format("jsonl").recognise(registry.Head(head.fields))
    assert not registry.find_format("jsonl").recognise(registry.Head({"steps": [step]}, whole=True))


USER, AGENT = {"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes"}
SIMULATION = {"id": "s", "messages": [USER, AGENT], "termination_reason": "user_stop"}


@pytest.mark.parametrize(
    ("name", "value", "n"),
    [
        ("openai", [USER, AGENT], 1), ("openai", {"messages": [USER]}, 1),
        ("openai", [[USER]] * 3, 3),
        ("openai", [{"agent": {"messages": [AGENT]}}], 1),
        ("openai", {"a": [USER], "b": [AGENT]}, 2),
        ("openai", {"runs": [{"messages": [USER]}] * 2}, 2),
        ("tau2", SIMULATION, 1), ("tau2", {"simulations": [SIMULATION] * 2}, 2),
        ("tau_bench", {"traj": [USER]}, 1), ("tau_bench", [{"traj": [USER]}] * 2, 2),
        ("atif", {"schema_version": "ATIF-1", "steps": []}, 1), ("mlflow", {"spans": []}, 1),
        ("codex", [{"type": "session_meta", "payload": {}}] * 2, 1),
        ("claude_code", [{"type": "user", "sessionId": name} for name in "aab"], 2),
        ("jsonl", [{"id": name, "p": 0.5} for name in "aab"], 2),
        ("jsonl", [{"id": name, "steps": [{"p": 0.5}]} for name in "aab"], 3),
        ("langfuse", [{"id": name, "observations": []} for name in "ab"], 2),
        ("langsmith", [{"id": name, "run_type": "llm"} for name in "ab"], 2),
        ("otel", [{"trace_id": name, "span_id": "1", "attributes": {}} for name in "aba"], 2),
    ],
)  # fmt: skip
def test_places_of_runs_count_from_0(write, name, value, n):
    lines = isinstance(value, list) and isinstance(value[0], dict)
    path = write("a.jsonl" if lines else "a.json", value, lines=lines)
    known = registry.find_format(name)
    runs = known.runs(registry.LogFile(path), known._check_options({}))
    assert [(place.index, place.file) for place, _ in runs] == [(k, path) for k in range(n)]


TEXT = "One two three."
SIDES = {
    "chat_a": [{"role": "user", "content": "Hi"}],
    "chat_b": [{"role": "user", "content": "Ho"}],
}


@pytest.mark.parametrize(
    ("record", "name"),
    [
        ({"id": "a", "steps": [{"text": TEXT}]}, "jsonl"),
        ({"id": "a", "steps": [{"text": TEXT, "confidence": 0.5}]}, None),
        ({"id": "a", "confidence": 0.5, "steps": [{"text": TEXT}]}, None),
        ({"id": "a", "steps": [{"p": 0.5}]}, None),
        ({"id": "a", "steps": [0.5, 0.25]}, None),
        ({"id": "a", "step": 1, "p": 0.5}, None),
        ({"id": "a", "step": 1, "text": TEXT}, "jsonl"),
        ({"id": "a", "step": 1, "text": TEXT, "p": 0.5}, None),
        ({"messages": SIDES["chat_a"]}, "openai"),
    ],
)
def test_logs_and_tables_in_json_lines(write, record, name):
    path = write("a.jsonl", [record] * 2, lines=True)
    known = detect_log(path)
    assert (known and known.name) == name


@pytest.mark.parametrize(
    ("record", "may_be"),
    [
        ({}, True), ({"a": 1, "b": "x", "c": None}, True), ({"a": [1, 0.5, None]}, True),
        ({"a": ["x"]}, False), ({"a": [1, "x"]}, False), ({"a": {}}, False), ({"a": []}, True),
        ({"a": [1], "b": ["x"]}, False), ({"a": ["x"], "confidence": 1}, True),
        ({"a": ["x"], "step": 1, "b": 0.5}, True), ({"a": ["x"], "b": 0.5}, False),
        ({"a": ["x"], "step": 1, "b": 5}, False), ({"a": ["x"], "step": 1, "cost": 0.5}, False),
        ({"a": ["x"], "step": 0.5}, False),
    ],
)  # fmt: skip
def test_records_that_may_be_rows(record, may_be):
    assert registry._may_be_row(record) is may_be


@pytest.mark.parametrize(
    ("record", "name"),
    [
        ({"run_id": "a", "step": 1, "role": "assistant", "content": "Hi", "n": 0.5}, "jsonl"),
        ({"run_id": "a", "step": 1, "role": "assistant", "content": "Hi", "p": 0.5}, None),
        ({"run_id": "a", "step": 1, "n": 0.5}, None),
    ],
)
def test_messages_on_lines_of_their_own_are_a_log(write, record, name):
    known = detect_log(write("a.jsonl", [record] * 2, lines=True))
    assert (known and known.name) == name
