"""Files: large, cut off, damaged, gzipped; and formats told apart."""

import gzip
import io as text_io
import json
import math
import os
import pickle
import tracemalloc
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trajscore import io
from trajscore.cli.main import main
from trajscore.core import storage
from trajscore.io import files
from trajscore.io._json import JsonScanner
from trajscore.io.registry import detect_format

TURN = {"role": "assistant", "content": "Hello"}
SIMULATION = {
    "task_id": "t\u20ac\n",
    "messages": [TURN, TURN],
    "termination_reason": "user_stop",
    "reward_info": {"reward": 1.0},
}

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(items=st.lists(values), chunk=st.integers(1, 40), indent=st.sampled_from([None, 1]))
def test_scanner_agrees_with_json(items, chunk, indent):
    text = json.dumps(items, indent=indent)
    scanner = JsonScanner(text_io.StringIO(text), "x", chunk)
    assert [value for _, _, value in scanner.items(())] == items
    fields = {"before": 1, "list": items, "after": [2]}
    text = json.dumps(fields, indent=indent, ensure_ascii=False)
    found = list(JsonScanner(text_io.StringIO(text), "x", chunk).items({"list"}))
    assert [value for key, index, value in found if index is not None] == items
    assert [(key, value) for key, index, value in found if index is None] == [
        ("before", 1),
        *([] if items else [("list", [])]),
        ("after", [2]),
    ]


@given(number=st.floats(allow_nan=False) | st.integers(), chunk=st.integers(1, 3))
def test_numbers_are_not_split(number, chunk):
    text = json.dumps([number, {"a": number}])
    scanner = JsonScanner(text_io.StringIO(text), "x", chunk)
    assert [value for _, _, value in scanner.items(())] == [number, {"a": number}]


@pytest.mark.parametrize("chunk", [1, 3, 50, 1000])
def test_every_cut_is_noticed(chunk):
    info = {"a": -12.5e-7, "b": [True, None, math.nan, -math.inf]}
    text = json.dumps({"info": info, "simulations": [SIMULATION] * 2})
    for cut in range(len(text)):
        scanner = JsonScanner(text_io.StringIO(text[:cut]), "x", chunk)
        with pytest.raises(ValueError, match="x is cut off|x is empty"):
            list(scanner.items({"simulations"}))


def test_a_cut_names_run_and_message(write):
    text = json.dumps({"simulations": [{"id": str(k)} | SIMULATION for k in range(4)]})
    path = write("log.json", text[: text.rindex('"Hello"') + 3])
    with pytest.raises(
        ValueError, match=r"log\.json is cut off in the run with index 3, message 1"
    ):
        io.read_tau2(path)
    stream = io.iter_runs(path, format="tau2")
    assert [next(stream).id for _ in range(3)] == ["0", "1", "2"]


def test_damage_in_the_middle_is_told_from_a_cut(write):
    text = json.dumps({"simulations": [SIMULATION] * 3})
    middle = text.index("user_stop", len(text) // 2) + len("user_stop") + 1
    path = write("log.json", text[:middle] + "?" + text[middle:])
    with pytest.raises(ValueError, match=r"not valid JSON in the run with index 1, character \d+"):
        io.read_tau2(path)


def test_damage_is_found_without_reading_on(write):
    text = '{"simulations": [{"a" 1}, ' + json.dumps("x" * 3_000_000) + "]}"
    file = text_io.StringIO(text)
    with pytest.raises(ValueError, match="not valid JSON"):
        list(JsonScanner(file, "x").items({"simulations"}))
    assert file.tell() < len(text) / 2


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        ("  \n", "is empty"),
        ("hello", "no JSON list or object|does not hold"),
        ("[1] 2", "something follows"),
        ('[{"a": oops}]', "not valid JSON"),
        ('{"a": 1 "b": 2}', "',' or '}' is expected"),
        ("{1: 2}", "a field name"),
        ('{"a" 2}', "':' is expected"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_no_json(write, text, said):
    with pytest.raises(ValueError, match=said):
        io.read_tau2(write("log.json", text))


def test_lines_that_are_no_json(write):
    good = json.dumps({"id": "a", "messages": [TURN]})
    with pytest.warns(UserWarning, match="line 2 is not valid JSON"):
        runs = io.read_runs(write("a.jsonl", f"{good}\n{{oops\n\n{good}\n"), format="openai")
    assert (len(runs), runs.left_out[0].index) == (2, 1)
    with pytest.raises(ValueError, match=r"is cut off in line 2 \(index 1\), message 0"):
        io.read_runs(write("b.jsonl", f"{good}\n{good[:30]}"), format="openai")


def test_compressed_files(write, tmp_path):
    runs = {"simulations": [{"id": str(k)} | SIMULATION for k in range(300)]}
    whole = write("log.json.gz", runs)
    assert len(io.read_runs(whole)) == 300
    renamed = whole.rename(tmp_path / "log.json")  # the content tells, not the name
    assert len(io.read_runs(renamed)) == 300
    (tmp_path / "cut.json.gz").write_bytes(renamed.read_bytes()[:-20])
    with pytest.raises(ValueError, match=r"cut\.json\.gz is cut off"):
        io.read_tau2(tmp_path / "cut.json.gz")
    lines = gzip.compress(b'{"id": "a"}\n' * 5000)
    (tmp_path / "cut.jsonl.gz").write_bytes(lines[: len(lines) - 15])
    with pytest.raises(ValueError, match="is cut off"):
        io.read_runs(tmp_path / "cut.jsonl.gz", format="jsonl")


def test_a_table_in_place_of_a_path_is_refused():
    with pytest.raises(ValueError, match=r"got a DataFrame; for a table, make X with Trajectory"):
        io.read_runs(pd.DataFrame({"run_id": [1]}))


ONE, BLANK = '{"id": "a"}\n', "\n"


@pytest.mark.parametrize(
    ("name", "text", "lines"),
    [
        ("a.json", ONE, False),  # one object
        ("a.json", ONE + BLANK * 2, False),
        ("a.json", ONE + ONE, True),
        ("a.json", ONE + BLANK + ONE, True),
        ("a.json", ONE + "oops", True),
        ("a.log", ONE + ONE * 2, True),
        ("a.json", "[1]\n[2]\n", False),
        ("a.json", '{\n"id": "a"}\n', False),
        ("a.json", "", False),
        ("a.jsonl", ONE, True),
        ("a.NDJSON", ONE, True),
        ("a.jsonl.gz", ONE, True),
        ("a.json.gz", ONE + ONE, True),
        ("a.jsonl", '{\n"id": "a"}\n', False),
        ("a.jsonl", '[\n{"id": "a"}]\n', False),
        ("a.jsonl", "[1]\n", True),
        ("a.jsonl", "", True),
    ],
)
def test_lines_are_told_by_the_ending_or_the_first_lines(tmp_path, name, text, lines):
    path = tmp_path / name
    data = text.encode()
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    assert files.is_lines(path) == lines


@pytest.mark.parametrize(
    ("name", "stem"),
    [
        ("a.jsonl.gz", "a"), ("a.NDJSON.gz", "a"), ("a.b.json", "a.b"), ("a.json.gz", "a"),
        ("a.parquet", "a"), ("a", "a"), ("a.b", "a"),
    ],
)  # fmt: skip
def test_names_without_endings(name, stem):
    assert files.stem(Path(name)) == stem


def test_the_place_of_a_run_is_named():
    place = files.Place(Path("logs/a.jsonl"), 3)
    assert str(place) == f"{Path('logs/a.jsonl')}, run (index 3)"
    assert place.name(None, "", 0, "b") == "0"
    assert str(place) == f"{Path('logs/a.jsonl')}, run '0' (index 3)"
    assert place.message(2) == f"{place}, message 2"
    assert place.name(None, "") == "a-3"


def test_a_folder_lists_its_own_files_by_name_and_skips_hidden_tables(tmp_path):
    names = ["b.JSON", "a.json", "c.txt", "sub/d.json", "sub/t.parquet", "_tmp/t.parquet",
             ".hidden/t.parquet", "sub/_t.parquet", "sub/.t.parquet", "t.parquet"]  # fmt: skip
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "folder.json").mkdir()
    found = files.find_files(tmp_path, (".json",))
    assert [path.name for path in found] == ["a.json", "b.JSON"]
    assert files.find_files(tmp_path / "c.txt", (".json",)) == [tmp_path / "c.txt"]
    tables = sorted(path.relative_to(tmp_path).as_posix() for path in files.parquet_files(tmp_path))
    assert tables == ["sub/t.parquet", "t.parquet"]
    with pytest.raises(ValueError, match="path is empty; give the path of a log"):
        files.list_paths([])
    assert files.list_paths("a") == files.list_paths(["a"]) == [Path("a")]


@pytest.mark.parametrize(
    ("text", "where"),
    [
        (
            '{"session_id": "s1", "id": "a", "messages": [{"role": "user"}, {"ro',
            "run 's1', message 1",
        ),
        ('{"trajectory_id": "", "id": 7, "messages": [{"role"', "run '7', message 0"),
        ('{"a": 1, "b": "x', "run 'log'"),
    ],
)
def test_a_cut_file_of_one_object_is_named_by_its_fields(tmp_path, text, where):
    path = tmp_path / "log.json"
    path.write_text(text)
    with pytest.raises(ValueError) as caught:
        files.LogFile(path).whole()
    assert f"log.json, {where}: the file is cut off; get it again" in str(caught.value)


def test_a_packed_file_may_hold_just_its_limit(tmp_path):
    path = tmp_path / "a.json.gz"
    path.write_bytes(gzip.compress(b"x" * 1000))
    with files.open_text(path, 1000) as file:
        assert len(file.read()) == 1000
    with pytest.raises(ValueError, match="more than 999 bytes"), files.open_text(path, 999) as file:
        file.read()


def test_files_that_are_no_text(tmp_path):
    path = tmp_path / "log.json"
    path.write_bytes(b'[{"a": "\xff\xfe"}]')
    with pytest.raises(ValueError, match="not text in UTF-8"):
        io.read_runs(path, format="openai")
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps({"simulations": [SIMULATION]}).encode())
    assert len(io.read_tau2(path)) == 1  # a byte order mark is no fault


def test_missing_files(tmp_path):
    with pytest.raises(FileNotFoundError, match="does not exist"):
        io.read_tau2(tmp_path / "none.json")
    with pytest.raises(FileNotFoundError, match="has no .json"):
        io.read_tau2(tmp_path)


def test_several_files(write, tmp_path):
    a = write("d/a.json", {"simulations": [{"id": "a"} | SIMULATION]})
    b = write("d/b.json", {"simulations": [{"id": "b"} | SIMULATION]})
    assert [run.id for run in io.read_tau2(tmp_path / "d")] == ["a", "b"]
    assert [run.id for run in io.read_runs([b, a])] == ["b", "a"]
    assert [run.id for run in io.read_runs(path for path in (a, b))] == ["a", "b"]
    assert [run.meta["file"] for run in io.iter_runs(str(a))] == [str(a)]


def test_a_large_file_is_not_held_in_memory(tmp_path):
    path = tmp_path / "large.json"
    turn = {"role": "assistant", "content": "word " * 2000}
    run = json.dumps(SIMULATION | {"messages": [turn] * 4})
    path.write_text(f'{{"simulations": [{", ".join([run] * 300)}]}}')
    size = path.stat().st_size
    assert size > 11e6
    tracemalloc.start()
    count = sum(1 for _ in io.iter_runs(path))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == 300
    assert peak < size / 6


def test_format_is_named_or_unknown(write):
    path = write("x.json", {"a": 1})
    with pytest.raises(ValueError, match="the format is not known"):
        io.read_runs(path)
    with pytest.raises(ValueError, match="no format named 'tau'; did you mean"):
        io.read_runs(path, format="tau")
    with pytest.raises(ValueError, match="path is empty"):
        io.read_runs([])
    with pytest.raises(ValueError, match="path is empty"):
        io.read_tau2([])
    lines = write("x.jsonl", [{"run_id": 1, "score": 0.5}], lines=True)
    assert detect_format(lines).name == "jsonl"
    assert len(io.read_runs(lines)) == 1
    assert len(list(io.iter_runs(lines, format="jsonl", fields={"id": "run_id"}))) == 1
    assert detect_format(write("i.json", {"version": 2, "eval": {}})).name == "inspect"
    assert detect_format(write("s.json", SIMULATION)).name == "tau2"
    assert detect_format(write("t.json", {"schema_version": "ATIF-v1.8"})).name == "atif"


def test_runs_pickle_and_print(write):
    with pytest.warns(UserWarning, match="it is int"):
        runs = io.read_tau2(write("log.json", {"simulations": [SIMULATION, 1]}))
    again = pickle.loads(pickle.dumps(runs))
    assert again == runs
    assert again.left_out == runs.left_out
    assert repr(runs) == "<Runs: 1 run, 1 success, 0 failures, 0 not observed; 1 malformed>"
    assert len(runs[0]) == 2


def test_tables_of_nothing():
    assert io.outcomes([]).tolist() == []
    assert io.meta([]).columns[0] == "run"


TAU2 = {"info": {}, "simulations": [{"id": "a", "messages": [{"role": "user", "content": "Hi"}]}]}
TAU_BENCH = [{"task_id": 1, "reward": 0.0, "traj": [{"role": "user", "content": "Hi"}]}]


@pytest.mark.filterwarnings("ignore:.*could not be read:UserWarning")
@pytest.mark.parametrize(
    ("reader", "value", "said"),
    [
        ("tau_bench", TAU2, r"log\.json is not in the format tau_bench: it has no 'traj'"),
        ("tau_bench", TAU2, "It looks like tau2; read it with format='tau2'"),
        ("tau2", TAU_BENCH, "it has no 'simulations'. It looks like tau_bench; read it with"),
        ("tau2", {"schema_version": "ATIF-v1.4", "steps": []}, "It looks like atif"),
        ("tau2", {"results": []}, r"there are no runs in .*log\.json: it has no 'simulations'"),
        ("tau2", [], r"there are no runs in .*log\.json; leave the file out"),
        ("tau2", {"simulations": []}, r"there are no runs in .*log\.json"),
        ("tau2", {"info": {}, "tasks": [], "simulations": []}, r"there are no runs in"),
        ("tau_bench", [], r"there are no runs in .*log\.json"),
        ("openai", TAU2, "it has no 'messages'. It looks like tau2; read it with format='tau2'"),
        ("openai", [], r"there are no runs in .*log\.json"),
        ("jsonl", [], r"there are no runs in .*log\.json"),
        ("tau_bench", {"x": 1}, r"there are no runs in .*log\.json"),
    ],
)  # fmt: skip
def test_other_formats_and_files_without_runs(write, reader, value, said):
    path = write("log.json", value)
    with pytest.raises(ValueError, match=said):
        io.read_runs(path, format=reader)


@pytest.mark.parametrize("chunk", [1, 30, 90, 130])
def test_a_cut_file_of_one_run_names_the_run(write, chunk):
    steps = [{"source": "agent", "message": f"m{k}"} for k in range(5)]
    text = json.dumps({"trajectory_id": "t7", "steps": steps})
    path = write("trajectory.json", text[: 26 + chunk])
    count = sum(26 + chunk > text.index(f"m{k}") + 4 for k in range(5))
    said = r"trajectory\.json, run 't7'.*: the file is cut off; get it again, or leave it out"
    with pytest.raises(ValueError, match=said) as error:
        io.read_runs(path, format="atif")
    assert "iter_" not in str(error.value)
    if chunk >= 30:
        assert f", message {count}:" in str(error.value)


def test_texts_that_follow_one_another_are_a_list(write):
    # as the console exporter of OpenTelemetry prints spans
    objects = [{"id": "a", "messages": [{"role": "assistant", "content": "}\n{"}]}, {"id": "b"}]
    objects[1]["messages"] = [{"role": "assistant", "content": "Hi"}]
    text = "".join(json.dumps(one, indent=4) + "\n" for one in objects)
    for name in ("a.json", "a.jsonl", "a.json.gz"):
        runs = io.read_runs(write(name, text))
        assert [run.id for run in runs] == ["a", "b"]
    with pytest.raises(ValueError, match="not valid JSON in the run with index 2"):
        io.read_runs(write("b.json", text + "{]"))
    with pytest.raises(ValueError, match="is cut off in the run with index 1"):
        io.read_runs(write("c.json", text[:-5]))


# ------------------------------------------------- what a file may do to its reader


def test_a_damaged_gzip_file(write, talk):
    path = write("a.json.gz", [{"id": "a", "messages": talk}])
    data = bytearray(path.read_bytes())
    data[20] ^= 0xFF
    path.write_bytes(data)
    with pytest.raises(ValueError, match=r"a\.json\.gz (is a damaged gzip file|is not text)"):
        io.read_runs(path)


TOO_DEEP = "nested too deeply|not valid JSON|no JSON object could be read from it"


@pytest.mark.parametrize("name", ["a.json", "a.jsonl", "a.log"])
@pytest.mark.parametrize("bracket", ["[", '{"a":'])
def test_what_is_nested_too_deeply(tmp_path, name, bracket):
    path = tmp_path / name
    path.write_text(bracket * 50_000 + "\n{}\n")
    with pytest.raises(ValueError, match=rf"{name}.*({TOO_DEEP})"):
        io.read_runs(path)


def test_numbers_of_many_digits(write):
    turn = '{"role": "assistant", "content": "x", "n": ' + "9" * 200_000 + "}"
    (run,) = io.read_runs(write("a.json", f'[{{"id": "a", "messages": [{turn}]}}]'))
    assert run.steps[0].extra["n"] == float("inf")
    (run,) = io.read_runs(write("a.jsonl", f'{{"id": "a", "messages": [{turn}]}}\n'))
    assert run.steps[0].extra["n"] == float("inf")
    reward = '{"id": "a", "messages": [{"role": "agent", "content": "x"}], "reward": ' + "9" * 400
    with pytest.raises(ValueError, match="the outcome is inf; expected"):
        io.read_runs(write("b.json", f"[{reward}}}]"))


def test_halves_of_surrogate_pairs_anywhere(write):
    turn = '{"role": "agent", "content": "x"}'
    text = '{"id": "a\\ud83d", "k\\uDE00": "\\ud83d\\ude00", "messages": [' + turn + "]}"
    for name in ("a.json", "a.jsonl"):
        (run,) = io.read_runs(write(name, f"[{text}]" if name == "a.json" else text + "\n"))
        assert run.id == "a?"
        assert run.extra == {"k?": "\U0001f600"}


def test_a_packed_file_may_not_hold_any_amount(write, monkeypatch):
    talk = [{"role": "assistant", "content": "x" * 100_000}]
    path = write("a.json.gz", [{"id": "a", "messages": talk}])
    assert path.stat().st_size < 1000
    assert len(io.read_runs(path)) == 1
    monkeypatch.setattr(storage, "_LEAST_LIMIT", 10_000)
    monkeypatch.setattr(storage, "_USUAL_RATIO", 10)
    with pytest.raises(ValueError, match=r"gz unpacks to more than 10,000 bytes; .*max_size"):
        io.read_runs(path)
    assert len(io.read_runs(path, max_size=1_000_000)) == 1
    with pytest.raises(ValueError, match="more than 50,000 bytes"):
        io.read_runs(path, max_size=50_000)


def test_a_key_that_stands_twice_is_refused(write):
    good = '{"id": "a", "success": true, "messages": [{"role": "assistant", "content": "x"}]}'
    bad = good.replace('"success": true', '"success": true, "success": false')
    for text in (f"[{good}, {bad}]", f'{{"runs": [], "a": {bad}}}', bad):
        with pytest.raises(ValueError, match="the key 'success' stands twice in one object; keep"):
            io.read_runs(write("a.json", text))
    with pytest.warns(UserWarning, match="1 of 3 runs .*line 2: the key 'success' stands twice"):
        assert len(io.read_runs(write("a.jsonl", f"{good}\n{bad}\n{good}\n"))) == 2


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
@pytest.mark.parametrize("name", ["a.jsonl", "a.json", "a.csv", "a.parquet"])
def test_a_pipe_is_refused(tmp_path, name, capsys):
    os.mkfifo(tmp_path / name)
    assert main(["report", str(tmp_path / name)]) == 2
    assert "is a folder, a pipe or a device; name a file" in capsys.readouterr().err


def test_tables_in_other_codes(tmp_path):
    path = tmp_path / "t.csv"
    for code, name in (("utf-16", "UTF-16"), ("cp1252", "WINDOWS-1252")):
        path.write_bytes("run,né\n".encode(code))
        with (
            pytest.raises(ValueError, match=f"iconv -f {name} -t UTF-8"),
            files.open_text(path) as file,
        ):
            file.read()


def test_a_packed_file_that_is_cut_off(write):
    path = write("a.json.gz", [{"id": k, "text": f"{k} " * 1500} for k in range(200)])
    packed = path.read_bytes()
    path.write_bytes(packed[: len(packed) // 2])
    items = files.LogFile(path).items()
    with pytest.raises(ValueError, match=r"a\.json\.gz is cut off in the run with index \d+"):
        list(items)


@pytest.mark.parametrize(("n_blank", "is_lines"), [(0, True), (1, True), (2, False)])
def test_the_second_line_may_follow_a_blank_one(tmp_path, n_blank, is_lines):
    path = tmp_path / "a.log"
    path.write_text(ONE + BLANK * n_blank + ONE)
    assert files.is_lines(path) is is_lines


def test_lines_are_counted_without_blank_ones(write):
    path = write("a.jsonl", '{"a": 1}\n\n{"a": 2}\n  \n{oops}\n{"a": 3}\n')
    found = list(files.LogFile(path).items())
    assert [(key, index) for key, index, _ in found] == [(None, k) for k in range(4)]
    assert [value for _, _, value in found] == [
        {"a": 1}, {"a": 2},
        "line 5 is not valid JSON (Expecting property name enclosed in double quotes)", {"a": 3},
    ]  # fmt: skip
    assert isinstance(found[2][2], files.Broken)


def test_a_file_and_its_places():
    file = files.LogFile(Path("a.json"))
    assert (file.n_files, file.one_by_one, file.is_head, file.info) == (1, False, False, {})
    file.info["x"] = 1
    place = file.place(3)
    assert (place.index, place.info, place.n_records) == (3, {"x": 1}, 1)
    assert file.others == {"a.json": {"x": 1}}


def test_a_parquet_file_or_a_folder_of_them(tmp_path):
    pytest.importorskip("pyarrow")
    for name in ("b/x.parquet", "b/y.parquet", "b/_z.parquet"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        pd.DataFrame({"n": [1, 2]}).to_parquet(tmp_path / name)
    (tmp_path / "b" / "notes.txt").write_text("words")
    assert files.parquet_dataset(tmp_path / "b" / "x.parquet").count_rows() == 2
    assert files.parquet_dataset(str(tmp_path / "b")).count_rows() == 4
