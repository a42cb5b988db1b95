"""Files: large, cut off, damaged, gzipped, of several values; and what they may do to a reader."""

import gzip
import json
import math
import pickle
import tracemalloc

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trajscore import io

TURN = {"role": "assistant", "content": "Hello"}
SIMULATION = {
    "task_id": "t\u20ac\n", "messages": [TURN, TURN], "termination_reason": "user_stop",
    "reward_info": {"reward": 1.0},
}  # fmt: skip

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("files")


def run_of(value, name="a"):
    return {"id": name, "messages": [TURN], "odd": [value]}


def odd_of(path):
    return [run.extra["odd"][0] for run in io.iter_runs(path, format="openai")]


@settings(max_examples=25)
@given(items=st.lists(values, min_size=1, max_size=4), indent=st.sampled_from([None, 1]))
def test_any_json_is_read_as_the_standard_library_reads_it(folder, items, indent):
    runs = [run_of(item) for item in items]
    text = json.dumps(runs, indent=indent, ensure_ascii=indent is None)
    lines = "".join(json.dumps(run) + "\n" for run in runs)
    for name, content in (("a.json", text), ("a.jsonl", lines), ("b.json", f'{{"runs": {text}}}')):
        path = folder / name
        path.write_text(content, encoding="utf-8", errors="surrogatepass")
        assert odd_of(path) == items, name


def test_values_across_the_pieces_in_which_a_file_is_read(folder):
    """Pieces have 2^18 characters; each kind of value lies across some border of two."""
    path = folder / "long.json"
    items = [
        -1.5e-300, 12345678901234567890, True, None, -math.inf, "\U0001f600", "é\n", {"a": [1]},
    ]  # fmt: skip
    items *= 9
    runs = [run_of(items, "x" * k) for k in range(1, 9)] * 80
    for separator in (",", ",\n\n "):
        path.write_text("[" + separator.join(map(json.dumps, runs)) + "]")
        assert path.stat().st_size > 2 << 18
        assert odd_of(path) == [items] * len(runs)
    for at in range(-9, 9):
        pad = "x" * ((1 << 18) - 12 + at)
        path.write_text(f'[["{pad}", -1.25e-7, 31], {json.dumps(run_of(items))}, 3.5e+2, 1]')
        with pytest.warns(UserWarning, match="3 of 4"):
            assert odd_of(path) == [items]


def test_numbers_and_halves_of_pairs(write):
    turn = '{"role": "assistant", "content": "x", "n": ' + "9" * 200_000 + "}"
    for name, ends in (("a.json", "[]"), ("a.jsonl", ["", "\n"])):
        (run,) = io.read_runs(write(name, f'{ends[0]}{{"id": "a", "messages": [{turn}]}}{ends[1]}'))
        assert run.steps[0].extra["n"] == math.inf
        text = '{"id": "a\\ud83d", "k\\uDE00": "\\ud83d\\ude00", "messages": '
        text = f'{ends[0]}{text}{json.dumps([TURN])}, "d": "\\\\ud83d\\udc00"}}{ends[1]}'
        (run,) = io.read_runs(write(name, text))
        assert (run.id, run.extra) == ("a?", {"k?": "\U0001f600", "d": "\\ud83d?"})
    reward = '{"id": "a", "messages": [{"role": "agent", "content": "x"}], "reward": ' + "9" * 400
    with pytest.raises(ValueError, match="outcome is inf"):
        io.read_runs(write("b.json", f"[{reward}}}]"))


def test_every_cut_is_noticed(folder):
    info = {"a": -12.5e-7, "b": [True, None, math.nan, -math.inf, "\U0001f600"]}
    text = json.dumps({"info": info, "simulations": [SIMULATION] * 2})
    path = folder / "cut.json"
    for cut in range(1, len(text)):
        path.write_text(text[:cut])
        with pytest.raises(ValueError, match=r"cut\.json.*get (the file|it) again"):
            io.read_tau2(path)


def test_a_cut_names_the_run(write, folder):
    text = json.dumps({"simulations": [{"id": str(k)} | SIMULATION for k in range(4)]})
    path = write("log.json", text[: text.rindex('"Hello"') + 3])
    with pytest.raises(ValueError, match=r"log\.json is cut off in the run with index 3; get"):
        io.read_tau2(path)
    stream = io.iter_runs(path, format="tau2")
    assert [next(stream).id for _ in range(3)] == ["0", "1", "2"]
    good = json.dumps({"id": "a", "messages": [TURN]})
    with pytest.raises(ValueError, match=r"is cut off in line 2 \(index 1\)"):
        io.read_runs(write("b.jsonl", f"{good}\n{good[:30]}"), format="openai")


def test_damage_is_told_from_a_cut(write):
    text = json.dumps({"simulations": [SIMULATION] * 3})
    middle = text.index("user_stop", len(text) // 2) + len("user_stop") + 1
    for content, named in [
        (text[:middle] + "?" + text[middle:], r"run with index 1, character \d+"), ("", "is empty"),
        ("  \n", "is empty"), ("hello", "log.json"), ('"a"', "log.json"), ("[1] 2", "character 4"),
        ("[1 2]", "index 1, character 3"), ('[{"a": oops}]', "index 0, character 7"),
        ("[1, tru3, 0, 0, 0, 0, 0, 0, 0, 0]", "index 1, character 4"),
        ('["\\q and more than sixteen characters', "index 0, character 2"),
        ('["\\u00"]', "index 0, character 3"), ('{"a": 1 "b": 2}', "character 8: ',' or '}'"),
        ("{1: 2}", "character 1: a field name"), ('{"a" 2}', "character 5: ':'"),
        ("[1, true.", "index 2, character 8"),
        ('{"a": 1, "a": 2}', "character 12: the key 'a' stands twice"),
        ('[{"a": 1, "a": 2}]', "index 0, character 1: the key 'a' stands twice"),
        ("[" * 100_000, "nested too deeply"),
    ]:  # fmt: skip
        with pytest.raises(ValueError, match=named) as caught:
            io.read_tau2(write("log.json", content))
        assert "cut off" not in str(caught.value), content
        assert "log.json" in str(caught.value), content


def test_tables_whose_rows_are_runs_or_messages(tmp_path):
    runs = pd.DataFrame({"run": ["007", "8"], "success": [True, None], "messages": [[TURN]] * 2})
    texts = runs.assign(messages=json.dumps([TURN]))
    messages = runs.drop(columns="messages").assign(**TURN)
    runs.to_parquet(tmp_path / "a.parquet")
    texts.to_csv(tmp_path / "b.csv.gz", index=False)
    messages.to_csv(tmp_path / "c.tsv", index=False, sep="\t")
    for path in sorted(tmp_path.iterdir()):
        read = [(run.id, run.outcome, len(run)) for run in io.read_runs(path)]
        assert read == [("007", 1, 1), ("8", -1, 1)], path
    for table, named in [
        (runs, "'messages': ast.literal_eval"), (messages.assign(p=0.5), "from_frame"),
        (texts.assign(step=1, verbal=0.5), "from_frame"), (texts[["run", "success"]], "from_frame"),
    ]:  # fmt: skip
        table.to_csv(tmp_path / "d.csv", index=False)
        with pytest.raises(ValueError, match=rf"d\.csv: .*{named}"):
            io.read_runs(tmp_path / "d.csv")


def test_lines_that_are_no_json_are_left_out(write):
    good = json.dumps({"id": "a", "messages": [TURN]})
    twice = good.replace('"id": "a"', '"id": "a", "id": "b"')
    deep = '{"messages": ' + "[" * 100_000 + "]" * 100_000 + "}"
    last = good.replace('"a"', '"c"')
    path = write("a.jsonl", f"{good}\n{{oops\n\n  \n{deep}\n{twice}\n{last}\n")
    with pytest.warns(UserWarning, match="3 of 5 runs could not be read"):
        runs = io.read_runs(path, format="openai")
    assert [run.index for run in runs.left_out] == [1, 2, 3]
    named = ("line 2 is not valid JSON", "line 5 is nested too deeply", "line 6: the key 'id'")
    for left, name in zip(runs.left_out, named, strict=True):
        assert name in left.reason


def test_packed_files(write, tmp_path):
    talks = [[TURN | {"content": f"{k} " * 1000}] for k in range(300)]
    runs = [{"id": str(k)} | SIMULATION | {"messages": talk} for k, talk in enumerate(talks)]
    runs = {"simulations": runs}
    whole = write("log.json.gz", runs)
    assert len(io.read_runs(whole)) == 300
    renamed = whole.rename(tmp_path / "log.json")  # the content tells, not the name
    assert len(io.read_runs(renamed)) == 300
    packed = renamed.read_bytes()
    for name, data, named in [
        ("cut.json.gz", packed[:-20], "is cut off"),
        ("half.json.gz", packed[: len(packed) // 2], r"is cut off in the run with index \d+"),
        ("bad.json.gz", packed[:20] + b"\xff" + packed[21:], "is a damaged gzip file|is not text"),
        ("cut.jsonl.gz", gzip.compress(b'{"id": "a"}\n' * 5000)[:-15], "is cut off"),
    ]:
        (tmp_path / name).write_bytes(data)
        with pytest.raises(ValueError, match=f"{name} ({named})"):
            io.read_runs(tmp_path / name, format="jsonl" if "jsonl" in name else "tau2")


def test_a_packed_file_may_not_hold_any_amount(write):
    text = json.dumps([{"id": "a", "messages": [TURN | {"content": "x" * 100_000}]}])
    path = write("a.json.gz", text)
    assert path.stat().st_size < 1000
    assert len(io.read_runs(path, max_size=len(text))) == 1
    with pytest.raises(ValueError, match=rf"a\.json\.gz unpacks .*{len(text) - 1:,}.*max_size"):
        io.read_runs(path, max_size=len(text) - 1)


def test_files_that_are_no_text(tmp_path):
    path = tmp_path / "log.json"
    path.write_bytes(b'[{"a": "\xff\xfe"}]')
    with pytest.raises(ValueError, match=r"log\.json is not text in UTF-8.*iconv"):
        io.read_runs(path, format="openai")
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps({"simulations": [SIMULATION]}).encode())
    assert len(io.read_tau2(path)) == 1  # a byte order mark is no fault
    for start, named in [
        (b"SQLite format 3\0\xff", "SQLite database; write it as JSON"),
        (pickle.dumps([TURN]), "pd.read_pickle"), (b"PAR1\xff", r"\.parquet"),
    ]:  # fmt: skip
        path.write_bytes(start)
        with pytest.raises(ValueError, match=named):
            io.read_runs(path, format="openai")


ONE, BLANK = '{"messages": [{"role": "assistant", "content": "Hi"}]}\n', "\n"


def test_lines_are_told_by_the_ending_or_the_first_lines(write):
    spread = ONE.replace("{", "{\n", 1)
    for name, text, ids in [
        ("a.json", ONE, ["a"]), ("a.json", ONE + BLANK * 2, ["a"]),
        ("a.json", ONE + ONE, ["a-0", "a-1"]), ("a.json", ONE + BLANK + ONE, ["a-0", "a-1"]),
        ("a.log", ONE + ONE * 2, ["a-0", "a-1", "a-2"]), ("a.json.gz", ONE + ONE, ["a-0", "a-1"]),
        ("a.json", spread, ["a"]),
        ("a.json", spread + spread, ["a-0", "a-1"]),  # as a console prints them
        ("a.jsonl", ONE, ["a-0"]), ("a.b.NDJSON", ONE, ["a.b-0"]),
        ("a.jsonl.gz", ONE + ONE, ["a-0", "a-1"]), ("a.jsonl", spread, ["a"]),
        ("a.jsonl", "[\n" + ONE + "]", ["a-0"]),
    ]:  # fmt: skip
        found = [run.id for run in io.read_runs(write(name, text), format="openai")]
        assert found == ids, (name, text)
    with pytest.raises(ValueError, match="run with index 2"):
        io.read_runs(write("b.json", spread * 2 + "{]"))
    with pytest.raises(ValueError, match="cut off in the run with index 1"):
        io.read_runs(write("c.json", (spread * 2)[:-5]))


def test_several_files_and_folders(write, tmp_path):
    one, two = ({"simulations": [{"id": name} | SIMULATION]} for name in "ab")
    a, b = write("d/a.json", one), write("d/b.JSON", two)
    write("d/notes.txt", "beside them")
    (tmp_path / "d" / "folder.json").mkdir()
    assert [run.id for run in io.read_tau2(tmp_path / "d")] == ["a", "b"]
    assert [run.id for run in io.read_runs([b, a])] == ["b", "a"]
    assert [run.id for run in io.read_runs(path for path in (a, b))] == ["a", "b"]
    assert [run.meta["file"] for run in io.iter_runs(str(a))] == [str(a)]
    for bench in ("a.json", "b.jsonl"):
        write(f"e/{bench}", json.dumps({"task_id": bench, "reward": 1.0, "traj": [TURN]}))
    runs = io.read_runs(tmp_path / "e", format="tau_bench")
    assert [run.task for run in runs] == ["a.json", "b.jsonl"]


def test_paths_that_are_none(tmp_path):
    for path, error, named in [
        (tmp_path / "none.json", FileNotFoundError, "none.json"),
        (tmp_path, FileNotFoundError, r"\.json"), ([], ValueError, "path"),
        (pd.DataFrame({"run_id": [1]}), ValueError, "path .*TrajectoryArray.from_frame"),
    ]:  # fmt: skip
        for read in (io.read_runs, io.read_tau2):
            with pytest.raises(error, match=named):
                read(path)


def test_a_large_file_is_not_held_in_memory(tmp_path):
    path = tmp_path / "large.json"
    turn = {"role": "assistant", "content": "word " * 2000}
    run = json.dumps(SIMULATION | {"messages": [turn] * 4})
    path.write_text(f'{{"simulations": [{", ".join([run] * 200)}]}}')
    size = path.stat().st_size
    tracemalloc.start()
    count = sum(1 for _ in io.iter_runs(path))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == 200
    assert peak < size / 4
