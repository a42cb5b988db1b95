"""Tables with one row a step: how they are read, and which column holds what."""

import gzip
import json
import os

import numpy as np
import pandas as pd
import pytest

from checked_tables import steps, write_table

CSV = "run,step,p,solved\na,1,0.5,1\nb,1,0.25,0\n"
ROWS = [{"run": "a", "step": 1, "p": 0.5, "solved": 1}]
ROWS += [{"run": "b", "step": 1, "p": 0.25, "solved": 0}]


def test_one_table_in_any_form(tables):
    lines = "".join(json.dumps(row) + "\n" for row in ROWS)
    for name, text in {
        "t.csv": CSV, "t.CSV": CSV, "t.csv.gz": CSV, "t.tsv": CSV.replace(",", "\t"),
        "t.json": json.dumps(ROWS), "t.jsonl": lines, "t.ndjson.gz": lines,
        "t.parquet": pd.DataFrame(ROWS), "index.csv": pd.DataFrame(ROWS).to_csv(),
        "ids.csv": CSV[3:], "ids.parquet": pd.DataFrame(ROWS).set_index("run"),
    }.items():  # fmt: skip
        runs = tables.read(text, name=name)
        assert (runs.ids, runs.outcomes) == (["a", "b"], [1, 0]), name
        assert (runs.predictors, "not used" in runs.said) == ({"p": [0.5, 0.25]}, False), name


def test_a_folder_of_parquet_files_is_one_table(tables, tmp_path):
    for k, row in enumerate(ROWS):
        write_table(tmp_path / "d" / f"sub{k}" / "t.parquet", pd.DataFrame([row]))
    for hidden in ("_t.parquet", ".t.parquet", "_tmp/t.parquet"):
        write_table(tmp_path / "d" / hidden, pd.DataFrame([{**ROWS[0], "run": "hidden"}]))
    (tmp_path / "d" / "notes.txt").write_text("beside them")
    assert tables.runs(tmp_path / "d").ids == ["a", "b"]


def test_what_separates_columns(tables):
    for text, p in [
        *((CSV.replace(",", sep), [0.5, 0.25]) for sep in ";\t|"),
        ("\ufeff" + CSV, [0.5, 0.25]),
        (CSV.replace("a,", "a;b,"), [0.5, 0.25]),
    ]:
        assert list(tables.read(text).predictors.values()) == [p], text


def test_ids_that_begin_with_zeros_are_text(tables):
    rows = "run,step,p,solved\n01,01,0.5,1\n1,01,0.5,0\n10,01,0.5,0\n"
    assert tables.read(rows).ids == ["01", "1", "10"]
    assert tables.read(rows.replace("\n01,", "\n0,")).ids == [0, 1, 10]


def test_files_that_are_not_tables(tables, tmp_path):
    for name, data, named in [
        ("t.csv", "", "is empty"),
        ("t.csv", "run,p\na,0.5\nb,0.5,7,8\n", "cannot be read as a table"),
        ("t.csv", "run,step,p,solved\n", "has no rows"),
        ("t.txt", "words", "write it as .csv, .csv.gz, .tsv, .parquet or .jsonl"),
        ("t.XLSX", "words", "is not a table"), ("t.json", '{"run": "a"}', "'run'"),
        ("t.json", '[{"run": "a"}, 3]', "row 1"), ("t.json", "[1]", "row 0"),
        ("t.jsonl", '{"run": "a", "step": 1}\noops\n', "line 2"), ("t.parquet", "PAR", "t.parquet"),
        ("t.csv", "run,né\n".encode("utf-16"), "iconv -f UTF-16 -t UTF-8"),
        ("t.csv", "run,né\n".encode("cp1252"), "t.csv is not text in UTF-8"),
        ("t.csv.gz", gzip.compress(CSV.encode() * 200)[:40], "t.csv.gz is cut off"),
        ("t.db", b"SQLite format 3\0", "is an SQLite database"),
    ]:  # fmt: skip
        path = tmp_path / name
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        said = tables.refusal(path)
        assert named in said, (name, data)
        assert name in said or "no rows" in named, (name, data)
    crew = [{"timestamp": 1, "task_name": None, "task": "x", "agent": "y", "status": "started"}]
    assert "save what kickoff() returns" in tables.refuse(crew, name="t.jsonl")
    assert "there are: class_name, p" in tables.refuse(
        [{"class_name": "x", "p": 1}], name="t.jsonl"
    )
    assert "none.csv does not exist" in tables.refusal(tmp_path / "none.csv")
    (tmp_path / "empty").mkdir()
    assert "empty" in tables.refusal(tmp_path / "empty")


def test_a_packed_table_may_not_hold_any_amount(tables):
    assert len(tables.read(CSV, "--max-size", str(len(CSV)), name="t.csv.gz").ids) == 2
    said = tables.refuse(CSV, "--max-size", str(len(CSV) - 1), name="t.csv.gz")
    assert "t.csv.gz unpacks to more" in said
    assert "--max-size" in said


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
def test_a_pipe_is_refused(tables, tmp_path):
    for name in ("a.jsonl", "a.json", "a.csv", "a.parquet"):
        os.mkfifo(tmp_path / name)
        assert "a pipe" in tables.refusal(tmp_path / name), name


def test_which_columns_are_predictors(tables):
    vary = [0.1, 0.2, 0.3, 0.4]
    for columns, options, expected in [
        ({"p": 0.5, "x": vary}, "", ["p"]),
        ({"judge": 0.5, "x": vary, "Confidence": vary, "score": [1, 5, 3, 2]}, "",
         ["judge", "Confidence", "score"]),
        ({"grade": 0.5, "judge_score": vary, "llm_judge": vary, "quality": [1, 5, 3, 2]}, "",
         ["grade", "judge_score", "llm_judge", "quality"]),
        ({"x": 0.5, "z": 0.5}, "--score z --risk x", ["z", "x"]),
        ({"x": 0.5, "z": 5}, "--risk x --scale z=10", ["x", "z"]),
        ({"x": 0.5, "z": 0.5}, "--score z --confidence x", ["z", "x"]),
        ({"verbal": [20, 60, 90, 50], "judge": vary}, "--scale verbal=100", ["verbal", "judge"]),
        ({"judge": vary, "repetition": [np.nan, 0.5, np.nan, 0.25]}, "", ["judge"]),
        ({"x": 0.5, "z": 0.5}, "--score z --score x --confidence x", ["z", "x"]),
    ]:  # fmt: skip
        table = steps(**{"p": None} | columns)
        found = list(tables.read(table, *options.split()).predictors)
        assert sorted(found) == sorted(expected), (columns, options)
    said = tables.read(steps(x=vary, n=[1, 2, 3, 4], cost=vary, word="w")).said
    assert "3 columns not used (x, n, word); to use one as a score, pass --score x" in said
    said = tables.refuse(steps(p=None, x=vary, n=[1, 2, 3, 4]))
    assert "no column has a usual name of a score" in said
    assert "--score; columns of numbers are: x, n" in said
    said = tables.read(steps(p=[1, 55, 80, 3])).said
    assert "'p' has values above 1, which are judged as they are" in said
    assert "--scale p=100" in said


def test_parts_without_a_usual_name_are_asked_for(tables):
    said = tables.refuse(steps(run=None, step=None, solved=None, verdict=0))
    for words in ("--id", "--step", "rows", "--outcome", "--wide", "there are: p, verdict"):
        assert words in said
    for option, value in (
        ("--id", "rum"), ("--step", "stap"), ("--outcome", "solvd"), ("--score", "q"),
        ("--risk", "q"), ("--scale", "q=10"), ("--group", "task"), ("--stop-reason", "why"),
        ("--confidence", "q"),
    ):  # fmt: skip
        said = tables.refuse(steps(), option, value)
        assert f"no column named {value.split('=')[0]!r}" in said, option
        assert option in said or option == "--confidence"
    assert "did you mean 'run'" in tables.refuse(steps(), "--id", "rum")


def test_two_columns_that_may_be_one_part_are_asked_about(tables):
    for option, table in (
        ("--outcome", steps(reward=[0, 0, 1, 1])),
        ("--id", steps(session_id=["a", "a", "b", "b"])),
    ):
        names = ("solved", "reward") if option == "--outcome" else ("session_id", "run")
        said = tables.refuse(table)
        assert all(repr(name) in said for name in names)
        assert option in said
        assert tables.read(table, option, names[1]).ids == ["a", "b"]
    assert tables.read(steps(timestamp=1)).lengths == [2, 2]  # a number goes before a clock


def test_ids_that_are_lists_or_of_several_runs(tables):
    assert "'run'" in tables.refuse([{**ROWS[0], "run": [1]}] * 2, name="t.jsonl")
    said = tables.refuse(steps(model=["x", "y", "x", "x"]))
    assert "'a' has several values of 'model'" in said
    assert "--id run --id model" in said
    assert tables.read(steps(model=["x", "y", "x", "x"]), "--id", "run").ids == ["a", "b"]
    assert tables.read(steps(model=["x", None, "y", "y"])).ids == ["a", "b"]


def test_tasks_of_several_kinds_are_tasks_and_lists_are_none(tables):
    rows = [{"run": f"r{k}", "judge": 0.1 * k, "success": k % 2} for k in range(8)]
    mixed = [row | {"scenario": ["x", 3][k // 2 % 2]} for k, row in enumerate(rows)]
    assert tables.read(mixed, name="a.jsonl").tasks == ["x", "x", "3", "3"] * 2
    listed = [row | {"task": [k // 2]} for k, row in enumerate(rows)]
    assert tables.read(listed, name="b.jsonl").tasks is None


def test_scales_and_risks(tables):
    table = steps(
        a=[0, 5, 10, 2], b=[0.25, 1, 0, 0.5], c=[-1.0, 0, 3, 0.5], d=["50%", "5 %", None, "4"]
    )
    options = ["--scale", "a=10", "--scale", "d=100", "--risk", "a", "--risk", "b", "--risk", "c"]
    runs = tables.read(table, *options)
    assert runs.predictors["a"] == [1, 0.5, 0, 0.8]
    assert runs.predictors["b"] == [0.75, 0, 1, 0.5]
    assert runs.predictors["c"] == [1, 0, -3, -0.5]  # no chance: only the order counts
    np.testing.assert_allclose(np.array(runs.predictors["d"], float), [0.5, 0.05, np.nan, 0.04])
    for values, named in (
        ([1, 2, 11, 12], "row 2: column 'a' has 11"),
        ([1, -1, 11, 0], "row 1: column 'a' has -1"),
    ):
        said = tables.refuse(steps(a=values), "--scale", "a=10")
        assert named in said
        assert "--scale" in said
    for values in ([0.5, 1.5, 1, 0], [0, 1, 1, 0], ["50%", "0%", "1%", "1%"]):
        runs = tables.read(steps(a=values), "--scale", "a=100")
        assert max(runs.predictors["a"]) <= 0.5
    mixed = steps(a=["50%", "0.25", "1%", "0.5"])
    assert "pass --scale a=1" in tables.refuse(mixed, "--score", "a")
    assert max(tables.read(mixed, "--scale", "a=1").predictors["a"]) == 0.5


def test_words_among_numbers(tables):
    assert "'0,5' in column 'p' is not a number" in tables.refuse("run;step;p;solved\na;1;0,5;1\n")
    for options in ("", "--scale p=100", "--risk p"):
        said = tables.refuse(
            steps(p=["0.5", "n.k.", "0.5", "0.1"]), "--confidence", "p", *options.split()
        )
        assert "run 'a', step 2: 'n.k.' in column 'p'" in said, options
    assert "'85%', not a number; pass --scale p=100" in tables.refuse(
        steps(p=["85%", None, "1%", "1%"])
    )


def test_times_give_the_order_and_nothing_else(tables):
    p = [0.1, 0.2, 0.3, 0.4]
    for name, times, order in [
        ("timestamp", ["2026-01-01T00:00:05+00:00", "2026-01-01T00:00:01+00:00"], [1, 0]),
        ("created_at", [1767225605.5, 1767225601.25], [1, 0]), ("ts", [1, 2], [0, 1]),
        ("step", [2, 1], [1, 0]), ("ts", [17.5, 18], [0, 1]),
    ]:  # fmt: skip
        runs = tables.read(steps(**{"step": None, "p": p, name: times * 2}))
        expected = [p[k] for k in (*order, *(2 + k for k in order))]
        assert runs.predictors["p"] == expected, (name, times)
    runs = tables.read(steps(p=p, step=[9, 9, 9, 9]), "--step", "rows")
    assert runs.predictors["p"] == p
    assert "--step rows" in tables.refuse(steps(step=["2026-01-01"] * 4))
    assert "--step" in tables.refuse(steps(step=None, time=[1.5, 0.3] * 2))  # maybe durations
    assert "31.03.2026" in tables.refuse(steps(step=None, timestamp=["31.03.2026"] * 4))
    unstarted = steps(step=[1700000007, 1700000009, 1700000007, None], p=[0.1, 0.2, 0.3, None])
    assert tables.read(unstarted.assign(run=list("aabc"))).lengths == [2, 1, 0]
    gap = steps(step=None, timestamp=pd.array([1005, None, 2000, 2001], dtype="Int64"))
    assert "row 1" in tables.refuse(gap, name="t.parquet")


def test_steps_count_from_0_where_all_runs_do(tables):
    assert "counted from 0" in tables.read(steps(step=[0, 1, 0, 1])).said
    assert "counted from" not in tables.read(steps()).said
    assert "--first-step 17" in tables.refuse(steps(step=[17, 18, 17, 18]))
    assert tables.read(steps(step=[17, 18, 17, 18]), "--first-step", "17").lengths == [2, 2]
    assert "step" in tables.refuse(steps(step=[0, 1, 1, 2]))


def test_rows_of_others_than_the_agent_are_left_out(tables):
    table = steps(role=["user", " Assistant ", "tool", "agent"])
    runs = tables.read(table)
    assert (runs.lengths, runs.predictors["p"]) == ([1, 1], [0.25, 0.8])
    assert "2 of 4 rows" in runs.said
    assert tables.read(table, "--step", "rows").lengths == [1, 1]
    for roles in ("agent", "user", "x", ["x", "agent", "x", "agent"]):
        assert tables.read(table.assign(role=roles)).lengths == [2, 2], roles
    assert "user" in tables.read(table, "--group", "role", "--id", "role", "--step", "rows").ids


def test_words_need_a_map(tables):
    words = ["pass", "pass", "timeout", "timeout"]
    said = tables.refuse(steps(solved=words), "--map", "pass=1")
    assert "--map pass=1,timeout=-1" in said
    assert "--map 'pass=1,timeout=?'" not in said
    runs = tables.read(steps(solved=words), "--map", "pass=1", "--map", "timeout=-1")
    assert runs.outcomes == [1, -1]
    said = tables.refuse(steps(solved=["good", "good", "meh", "meh"]), "--map", "good=1,mhe=0")
    assert "--map 'good=1,meh=?'" in said  # without the misspelt word
    verdicts = steps(solved=None, result=["PASS", "PASS", "FAIL", "FAIL"])
    assert "--map PASS=1,FAIL=0" in tables.refuse(verdicts)
    assert tables.read(verdicts, "--map", "PASS=1,FAIL=0").outcomes == [1, 0]
    for tool in ([5, 5, 7, 7], ["Oslo", "PASS", "FAIL", "FAIL"]):  # what it answered
        assert "--outcome" in tables.refuse(verdicts.assign(result=tool))
    runs = tables.read(steps(solved=["Yes", "Yes", "no", "no"]))
    assert runs.outcomes == [1, 0]
    assert "'no' as 0, 'yes' as 1" in runs.said


def test_outcomes_whose_high_values_are_failures(tables):
    table = steps(solved=None, failed=[1, 1, 0, 0])
    assert "--outcome 'not failed'" in tables.refuse(table, "--outcome", "failed")
    runs = tables.read(table, "--outcome", "not failed")
    assert runs.outcomes == [0, 1]
    assert "not 'failed'" in runs.said


def test_outcomes_that_are_not_one_number_a_run(tables):
    rows = [{**row, "solved": [1, 0]} for row in ROWS]
    rows += [{**row, "step": 2} for row in rows]
    for options in ((), ("--outcome", "solved")):
        said = tables.refuse(rows, *options, name="t.jsonl")
        assert "df.explode(['solved'" in said
    said = tables.refuse(steps(solved=[3, 3, 1, 1]))
    assert "run 'a': outcome 3 lies outside [0, 1]" in said
    said = tables.refuse(steps(solved=[0, 1, 0.5, 0]))
    assert "run 'a' has two values in column 'solved', 0.0 and 1.0" in said
    assert tables.read(steps(solved=[np.nan, 1, np.nan, 0])).outcomes == [1, 0]


def test_stop_reasons(tables):
    table = steps(solved=[1, 1, np.nan, np.nan], why=["done", "done", "Max Steps", "Max Steps"])
    runs = tables.read(table, "--stop-reason", "why")
    assert (runs.outcomes, runs.stop_reason) == ([1, -1], ["done", "Max Steps"])
    rule = ("--stop", "max_steps=informative,stepz=excluded")
    runs = tables.read(table, "--stop-reason", "why", *rule)
    assert runs.stop_kind[1] == "informative"
    assert "--stop stepz=excluded: no run was stopped by" in runs.said
    assert "done, max_steps" in runs.said
    assert "--stop-reason" in tables.read(steps(), *rule).said
