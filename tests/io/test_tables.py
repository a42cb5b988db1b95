"""Tables: how they are read, which column holds what, and what is said where none does."""

import gzip
import json

import numpy as np
import pandas as pd
import pytest

from trajscore.core.errors import ArgumentError
from trajscore.core.meanings import MOST_NAMED
from trajscore.io import tables
from trajscore.io.fields import Fields
from trajscore.io.tables import (
    _outcome_candidates,
    agent_rows,
    choose_columns,
    constants,
    guess_first_step,
    read_table,
    settings,
    skipped,
    with_fractions,
    with_scales,
    with_times,
)

ROWS = [{"run": "a", "step": 1, "p": 0.5}, {"run": "b", "step": 1, "p": 0.25}]
CSV = "run,step,p\na,1,0.5\nb,1,0.25\n"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("t.csv", CSV),
        ("t.CSV", CSV),
        ("t.csv.gz", CSV),
        ("t.tsv", CSV.replace(",", "\t")),
        ("t.json", json.dumps(ROWS)),
        ("t.jsonl", "".join(json.dumps(row) + "\n" for row in ROWS)),
        ("t.ndjson.gz", "".join(json.dumps(row) + "\n" for row in ROWS)),
    ],
)
def test_one_table_in_any_form(tmp_path, name, text):
    path = tmp_path / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    pd.testing.assert_frame_equal(read_table(path), pd.DataFrame(ROWS))


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("t.csv", "", "t.csv is empty; give a table with a row of column names"),
        ("t.txt", "run,p\na,1\n", "t.txt is not a table; expected the ending .csv"),
        ("t.json", '{"run": "a"}', "it is one object, with the field 'run'; write a list of rows"),
        ("t.json", '[{"run": "a"}, 3]', "row 1 is int, not an object"),
        ("t.jsonl", '{"run": "a"}\noops\n', "line 2 is not valid JSON"),
        ("t.parquet", "PAR", "t.parquet cannot be read as a table"),
    ],
)
def test_what_is_not_a_table(tmp_path, name, text, message):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        read_table(path)
    with pytest.raises(ValueError, match="none.csv does not exist; give the path of a table"):
        read_table(tmp_path / "none.csv")


def test_a_table_of_one_column_is_one():
    frame = pd.DataFrame({"run": ["a"]})
    assert choose_columns(frame.assign(step=1, solved=1, p=0.5), Fields())[0].id == "run"


def frame(**columns):
    columns = {"run": [1, 1, 2, 2], "step": [1, 2, 1, 2], "solved": [1, 1, 0, 0]} | columns
    return pd.DataFrame({name: values for name, values in columns.items() if values is not None})


@pytest.mark.parametrize(
    ("columns", "fields", "scores"),
    [
        ({"p": 0.5, "x": [0.1, 0.2, 0.3, 0.4]}, {}, ("p",)),  # usual names go first
        ({"x": [0.1, 0.2, 0.3, 0.4], "z": [0.0, 1, 1, 0.5]}, {}, ("x", "z")),
        ({"x": [0.1, 0.2, 0.3, np.nan], "flag": [0.0, 1, 1, 0]}, {}, ("x",)),
        ({"x": [0.1, 0.2, 0.3, 0.4], "y2": [0.1, 0.2, 0.3, 1.5]}, {}, ("x",)),
        ({"x": [0.1, 0.2, 0.3, 0.4], "y2": [-0.1, 0.2, 0.3, 0.5]}, {}, ("x",)),
        ({"x": [0.1, 0.2, 0.3, 0.4], "constant": 0.5}, {}, ("x",)),
        ({"x": [0.1, 0.2, 0.3, 0.4], "top_p_rate": [0.1, 0.2, 0.3, 0.4]}, {}, ("x",)),
        ({"x": [0.1, 0.2, 0.3, 0.4], "n": [1, 2, 3, 4]}, {}, ("x",)),
        ({"x": 0.5, "z": 0.5}, {"scores": ("z",), "risks": ("x",)}, ("z", "x")),
        ({"x": 0.5, "z": 0.5}, {"risks": ("x",), "scales": (("z", 10.0),)}, ("x", "z")),
        ({"x": 0.5, "z": 0.5}, {"scores": ("z",), "confidence": "x"}, ("x", "z")),
        ({"x": 0.5, "z": 0.5}, {"scores": ("z", "x"), "confidence": "x"}, ("z", "x")),
    ],
)
def test_which_columns_are_predictors(columns, fields, scores):
    assert choose_columns(frame(**columns), Fields(**fields))[0].scores == scores


def message_of(table, **fields):
    with pytest.raises(ArgumentError) as caught:
        choose_columns(table, Fields(**fields))
    return str(caught.value)


def test_what_is_said_where_no_column_is_a_predictor():
    alone = message_of(frame())
    assert alone.endswith("name the column with scores; the table has: run, step, solved")
    said = message_of(
        frame(judge_of_ten=[1, 10, 3, 0], judge_of_all=[1, 10.5, 3, 0], score_of_one=[1, 0, 1, 0],
              judged_below=[-1, 10, 3, 0], judged_above=[1, 101, 3, 0], n=[1, 10, 3, 0])
    )  # fmt: skip
    assert "; if 10 means certainty in judge_of_ten, pass scales='judge_of_ten=10'" in said
    assert "; if 100 means certainty in judge_of_all, pass scales='judge_of_all=100'" in said
    assert said.count("means certainty") == 2


@pytest.mark.parametrize(
    ("words", "is_candidate"),
    [
        (["pass", "fail"], True),
        (["pass", "passed"], False),
        (["pass", "fail", *map(str.upper, "abcdefghijklmnopqrs"[: MOST_NAMED - 2])], True),
        (["pass", "fail", *map(str.upper, "abcdefghijklmnopqrs"[: MOST_NAMED - 1])], False),
    ],
)
def test_columns_of_few_words_may_be_outcomes(words, is_candidate):
    frame = pd.DataFrame({"verdict": words, "n": range(len(words))})
    assert len(list(_outcome_candidates(frame))) == is_candidate


def test_columns_that_are_not_taken():
    table = frame(
        p=[0.1, 0.2, 0.3, 0.4], temperature=[0.1, 0.7, 0.1, 0.7], cost=[1.5, 2.5, 3.5, 4.5],
        fixed=0.5, fixed_cost=0.25, whole=1, verbal=[5, 7, 10, 0], judge=[50, 70, 10, 0],
        score_flag=[0, 1, 1, 0], other=[5, 7, 10, 0], stop_reason="done",
    )  # fmt: skip
    chosen = choose_columns(table, Fields())[0]
    assert chosen.scores == ("p",)
    assert settings(table, chosen) == ["temperature"]
    assert constants(table, chosen) == {"fixed": 0.5}
    assert skipped(table, chosen) == {"verbal": 10.0, "judge": 100.0}
    assert skipped(table, Fields("run", "step", "solved", scores=("judge",))) == {"verbal": 10.0}
    assert constants(table, Fields("run", "step", "solved", scores=("p", "fixed"))) == {}


def test_scales_and_risks():
    table = frame(
        a=[0, 5, 10, None], b=[0.25, 1, 0, np.nan], c=[-1.0, 0, 3, 0.5], d=["1", "x", 5, 0]
    )
    fields = Fields(scales=(("a", 10.0), ("d", 5.0)), risks=("a", "b", "c"))
    changed = with_scales(table, fields)
    np.testing.assert_allclose(changed["a"], [1, 0.5, 0, np.nan])
    np.testing.assert_allclose(changed["b"], [0.75, 0, 1, np.nan])
    np.testing.assert_allclose(changed["c"], [1, 0, -3, -0.5])  # no chance: only the order counts
    assert changed["d"].tolist() == [0.2, "x", 1, 0]  # the word is refused by run and step later
    assert with_scales(table, Fields()) is table
    for values, row, value in (([1, 2, 11, 12], 2, 11), ([1, -1, 11, 0], 1, -1)):
        with pytest.raises(ArgumentError, match=f"row {row}: column 'a' has {value}.*0 to 10;"):
            with_scales(frame(a=values), Fields(scales=(("a", 10.0),)))


@pytest.mark.parametrize(
    ("name", "values", "steps"),
    [
        ("time", [17.5, 18, 17.5, 99], [0, 1, 0, 2]),
        ("created_at", [1, 2, 1, 2.5], [0, 1, 0, 2]),
        ("ts", [2, 3, 2, 3], [0, 1, 0, 1]),
        ("time", [0, 1, 0, 1], None),  # counts steps
        ("time", [1, 2, 1, 2], None),
        ("time", [2, np.nan, 2, 3], None),
        ("time", [2, np.inf, 2, 3], None),
        ("step", [17.5, 18, 17.5, 99], None),
    ],
)
def test_times_become_an_order(name, values, steps):
    table = frame(**{"step": None, name: values})
    changed, column = with_times(table, name)
    assert column == name
    if steps is None:
        assert changed is table
    else:
        expected = pd.to_datetime(steps, unit="s", utc=True)
        assert changed[name].tolist() == expected.tolist()


def test_without_a_column_of_steps_the_order_of_the_rows_counts():
    table = frame()
    assert with_times(table, None) == (table, None)
    changed, column = with_times(table, "rows")
    assert changed is table
    assert column is None
    named = table.assign(rows=1)
    assert with_times(named, "rows")[1] == "rows"


@pytest.mark.parametrize(
    ("steps", "first"),
    [
        ([0, 1, 0, 1], 0),
        ([1, 2, 1, 2], 1),
        ([0, 1, 1, 2], 1),
        ([1, 0, 2, 0], 0),
        (["0", 1, 0, 1], 0),
    ],
)
def test_steps_count_from_0_where_all_runs_do(steps, first):
    table = frame(step=steps)
    assert guess_first_step(table, Fields("run", "step")) == first
    assert guess_first_step(table.iloc[:0], Fields("run", "step")) == 1
    assert guess_first_step(table, Fields("run", "rows")) == 1
    assert guess_first_step(table, Fields("run")) == 1


def test_lists_do_not_name_runs():
    table = frame(run=[[1], [1], [2], [2]])
    with pytest.raises(ArgumentError, match="column 'run' has a list or an object as a run id"):
        guess_first_step(table, Fields("run", "step"))


def test_times_that_may_be_durations_are_asked_about():
    rows = {"run": [0, 0, 0, 1, 1], "p": [0.5, 0.6, 0.7, 0.8, 0.9], "y": [1, 1, 1, 0, 0]}
    frame = pd.DataFrame(rows | {"time": [0.4, 1.2, 0.3, 0.1, 0.2]})
    words = "goes from 1.2 to 0.3 in rows 1 and 2, .* pass step='rows'; if .* pass step='time'"
    with pytest.raises(ArgumentError, match=words):
        choose_columns(frame, Fields())
    for step in ("time", "rows"):
        assert choose_columns(frame, Fields(step=step))[0].step == step
    for times in ([0.4, 0.8, 0.9, 0.1, 0.2], [1.7e9 + k for k in (2, 1, 3, 5, 4)]):
        assert choose_columns(frame.assign(time=times), Fields())[0].step == "time"


def test_an_id_of_several_models_is_asked_about():
    rows = {"run": [0, 0, 1, 1], "step": [1, 2, 1, 2], "p": [0.5, 0.6, 0.7, 0.8], "y": 1}
    frame = pd.DataFrame(rows | {"model": ["x", "y", "x", "x"]})
    words = "'0' has several values of 'model'; .* pass id='run' id='model'; if not, pass id='run'"
    with pytest.raises(ArgumentError, match=words):
        choose_columns(frame, Fields())
    for named in ("run", ("run", "model")):
        assert choose_columns(frame, Fields(id=named))[0].id == named
    choose_columns(frame.assign(model=["x", None, "y", "y"]), Fields())


def test_rows_of_others_than_the_agent_are_left_out_and_steps_counted_anew():
    table = pd.DataFrame(
        {
            "run": ["a"] * 4 + ["b"] * 2, "step": [1, 2, 3, 4, 5, 6], "p": 0.5,
            "role": ["user", " Assistant", "tool", "assistant", "user", "assistant"],
        }
    )  # fmt: skip
    chosen = Fields(id="run", step="step", scores=("p",))
    rows, notes = agent_rows(table, chosen)
    assert rows["step"].tolist() == [1, 2, 1]
    assert notes == ("3 of 6 rows left out: by column 'role' they are not the agent's",)
    for same in (
        table.assign(role="assistant"), table.assign(role="user"), table.assign(role=None),
        table.drop(columns="role"),
    ):  # fmt: skip
        left, notes = agent_rows(same, chosen)
        assert (left is same, notes) == (True, ())
    unordered, _ = agent_rows(table.drop(columns="step"), Fields(id="run", scores=("p",)))
    assert "step" not in unordered


def test_fractions_of_two_ids_are_not_scores():
    frame = pd.DataFrame(
        {"a": [0.1, 0.1, 0.2], "b": [0.3, 0.4, 0.3], "step": 1, "solved": [1, 0, 1]}
    )
    frame["sure"] = [0.5, 0.25, 0.75]
    assert choose_columns(frame, Fields(id=("a", "b")))[0].scores == ("sure",)


@pytest.mark.parametrize(
    ("text", "p"),
    [
        ("run;step;p;solved\na;1;0,5;1\na;2;,25;1\n", [0.5, 0.25]),
        ("run;step;p;solved\na;1;0.5;1\n", [0.5]),
        ("run\tstep\tp\tsolved\na\t1\t0.5\t1\n", [0.5]),
        ("\ufeffrun|step|p|solved\na|1|0.5|1\n", [0.5]),
        ("run,step,p,solved\na;b,1,0.5,1\n", [0.5]),
        ("run,step,p,solved\na,1,0.5,1\n".replace(",", ";"), [0.5]),
    ],
)
def test_separators(tmp_path, text, p):
    """Spreadsheets write semicolons where commas are for decimals."""
    path = tmp_path / "t.csv"
    path.write_text(text, encoding="utf-8")
    frame = read_table(path)
    assert list(frame.columns) == ["run", "step", "p", "solved"]
    assert frame["p"].tolist() == p


def test_tables_with_a_row_a_run_are_compared():
    frame = pd.DataFrame({"task_id": ["a", "b"], "answer": ["x", "y"], "solved": [1, 0]})
    with pytest.raises(ArgumentError, match="Where a row is a run, .* trajscore compare"):
        choose_columns(frame, Fields(id="task_id"))


def test_ids_that_begin_with_zeros_are_text(tmp_path):
    rows = [("01", "02", "007", "", 0.5), ("1", "03", "8", "", 0.4)]
    path = tmp_path / "t.csv"
    path.write_text(
        "run,step,badge,empty,p\n" + "".join(f"{','.join(map(str, r))}\n" for r in rows)
    )
    frame = read_table(path)
    assert frame["run"].tolist() == ["01", "1"]
    assert frame["step"].tolist() == [2, 3]
    assert frame["badge"].tolist() == ["007", "8"]
    path.write_text("run,p\n10,0.5\n0,0.4\n")
    assert read_table(path)["run"].tolist() == [10, 0]


def test_other_files_are_refused_with_what_to_do(tmp_path):
    for name, hint in (
        ("t.zip", "; unpack it first"),
        ("t.XLSX", "; save the sheet as CSV"),
        ("t.pickle", "; a pickle may run code, write it with to_parquet"),
        ("t.orc", "; write it with to_parquet"),
        ("t.yaml", "; write it as JSON or CSV"),
        ("t.log", "; write it as JSON or CSV"),
        ("t.other", ""),
    ):
        (tmp_path / name).write_text("words")
        with pytest.raises(ValueError) as error:
            read_table(tmp_path / name)
        assert str(error.value).endswith(f".parquet, .jsonl or .json{hint}"), name


def test_a_folder_of_parquet_files_is_one_table(tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    for name, rows in (("b", ROWS[1:]), ("a", ROWS[:1])):
        pd.DataFrame(rows).to_parquet(tmp_path / f"{name}.parquet")
    (tmp_path / "notes.txt").write_text("beside them")
    pd.testing.assert_frame_equal(read_table(tmp_path), pd.DataFrame(ROWS))
    monkeypatch.setattr(tables, "_MOST_ROWS", 2)
    assert len(read_table(tmp_path)) == 2
    monkeypatch.setattr(tables, "_MOST_ROWS", 1)
    with pytest.raises(ValueError, match="cannot be read as a table: it has 2 rows; trajscore rep"):
        read_table(tmp_path)
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(ValueError, match="empty is not a table; expected the ending"):
        read_table(empty)


@pytest.mark.parametrize(
    ("name", "values", "top"),
    [
        ("judge", [0, 10], 10), ("judge", [0, 10.5], 100), ("judge", [0, 100], 100),
        ("judge", [0, 100.5], None), ("judge", [0, 1], None), ("judge", [0, 1.5], 10),
        ("judge", [-1, 5], None), ("judge", ["0", "5"], None), ("depth", [0, 5], None),
        ("judge", [False, True], None),
    ],
)  # fmt: skip
def test_confidences_of_other_scales(name, values, top):
    found = tables.scales_of(pd.DataFrame({name: values}), [name])
    assert found == ({} if top is None else {name: top})


@pytest.mark.parametrize(
    ("values", "fractions"),
    [
        ([0.5, 0.25, 0.5, np.nan], [0.25, 0.5]), ([0.0, 1.0, 0.5], [0, 0.5, 1]), ([0.0, 1.0], []),
        ([0.5, 1.5], []), ([-0.5, 0.5], []), ([1, 0], []), (["0.5", "0.25"], []), ([0.0, 0.0], []),
        ([0.5], [0.5]),
    ],
)  # fmt: skip
def test_distinct_fractions_of_a_column(values, fractions):
    column = pd.Series(values)
    assert tables._fractions(column).tolist() == fractions
    assert tables._holds_fractions(column) is (len(fractions) > 1)


@pytest.mark.parametrize(
    ("names", "usual", "sep"),
    [
        ("a,b", ",", ","),
        ("a;b", ",", ";"),
        ("a\tb", ",", "\t"),
        ("a|b", ",", "|"),
        ("ab", ",", ","),
        ("a;b,c", ",", ","),
        ("a\tb;c", ",", ";"),
        ("a,b", "\t", ","),
        ("a\tb,c", "\t", "\t"),
    ],
)
def test_what_separates_the_columns(names, usual, sep):
    assert tables._separator([names, "1;2,3"], usual) == sep
    assert tables._separator([], usual) == usual


def test_columns_of_ids_with_zeros():
    head = pd.DataFrame({
        "run": ["01", "2"], "case": ["0", "00"], "zip": ["10", None], "score": ["01", "02"],
        "step": ["01", "02"], "f": ["0.5", "0a"],
    })  # fmt: skip
    assert tables._names_with_zeros(head) == ["run", "case"]


def test_shares_of_a_scale():
    shares = tables._numbers(pd.Series(["50%", " 5 % ", "3", 4, None, "x"], dtype=object), 10.0)
    np.testing.assert_allclose(shares, [0.5, 0.05, 0.3, 0.4, np.nan, np.nan])
    np.testing.assert_allclose(tables._numbers(pd.Series([5, 10]), 10.0), [0.5, 1])
    for value, is_one in (("5%", True), (" 5 % ", True), ("5", False), (5, False), ("%5", False)):
        assert tables._is_per_cent(value) is is_one


def test_a_scale_ends_at_its_certainty():
    table = pd.DataFrame({"sure": [0, 5, 10, 11], "doubt": [0, 2, 10, 5]})
    for rows, scale, beyond in ((3, 10.0, None), (4, 10.0, (3, "11")), (4, 11.0, None)):
        fields = Fields(scales=(("sure", scale),))
        if beyond is None:
            scaled = with_scales(table.head(rows), fields)["sure"]
            np.testing.assert_allclose(scaled, table["sure"].head(rows) / scale)
            continue
        row, value = beyond
        with pytest.raises(
            ArgumentError, match=f"row {row}: column 'sure' has {value}, outside 0 to 10"
        ):
            with_scales(table.head(rows), fields)
    with pytest.raises(ArgumentError, match="row 1: column 'sure' has -1, outside 0 to 10;"):
        with_scales(pd.DataFrame({"sure": [1, -1]}), Fields(scales=(("sure", 10.0),)))
    turned = with_scales(table, Fields(scales=(("doubt", 10.0),), risks=("doubt",)))["doubt"]
    np.testing.assert_allclose(turned, [1, 0.8, 0, 0.5])
    beyond = with_scales(table, Fields(risks=("doubt",)))["doubt"]
    assert beyond.tolist() == [0, -2, -10, -5]


def test_the_last_outcome_by_the_column_of_steps_or_the_order_of_the_rows():
    table = pd.DataFrame({"run": list("abab"), "step": [2, 1, 1, 2], "won": [1.0, 0.5, 0.0, 0.25]})
    fields = Fields(id="run", outcome="won.-1")

    def last(frame, names=fields):
        changed, names = tables.with_last_outcome(frame, names)
        return changed["won"].tolist(), names.outcome

    assert last(table) == ([1, 0.25, 1, 0.25], "won")
    assert last(table.drop(columns="step")) == ([0, 0.25, 0, 0.25], "won")
    assert last(table, Fields(outcome="won.-1")) == ([1, 0.25, 1, 0.25], "won")
    assert last(table, Fields(id="run", outcome="won.-1", step="rows")) == (
        [0, 0.25, 0, 0.25],
        "won",
    )
    for same in (
        Fields(id="run", outcome="won"), Fields(id="run", outcome="lost.-1"), Fields(id="run"),
        Fields(id="other", outcome="won.-1"),
    ):  # fmt: skip
        assert tables.with_last_outcome(table, same)[0] is table
    assert (
        tables.with_last_outcome(table.drop(columns="run"), Fields(outcome="won.-1"))[1].outcome
        == "won.-1"
    )


def test_a_packed_table_may_not_hold_any_amount(tmp_path):
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(CSV.encode()))
    assert len(read_table(path, max_size=len(CSV))) == 2
    with pytest.raises(ArgumentError) as error:
        read_table(path, max_size=len(CSV) - 1)
    assert error.value.part == "max_size"


def test_an_id_that_names_no_runs_is_asked_about():
    table = frame(solved=[1, 0, 0, 1], verbal=[0.1, 0.2, 0.3, 0.4])
    with pytest.raises(
        ArgumentError, match="; if id=.*step.* names tasks, give the ids of .* group="
    ):
        choose_columns(table, Fields(id="step", step="rows"))


def test_a_scale_that_fractions_do_not_have():
    table = frame(verbal=[0.1, 0.25, 0.5, 0.8])
    fields = Fields(id="run", step="step", outcome="solved", scales=(("verbal", 100.0),))
    with pytest.raises(ArgumentError, match="holds fractions up to 0.8, which .* 0.8% at most"):
        with_scales(table, fields)
    assert with_scales(frame(verbal=[0, 1, 1, 0]), fields)["verbal"].max() == 0.01


def test_texts_in_per_cent_are_read_where_all_of_a_column_are_numbers():
    table = pd.DataFrame({"p": ["85%", "x"], "q": ["85%", None], "r": ["5", "7"], "s": [1, "9 %"]})
    read, remarks = with_fractions(table, Fields(scales=(("s", 10.0),)))
    assert read["p"].tolist() == ["85%", "x"]
    assert read["q"].tolist()[0] == 0.85
    assert (read["r"].tolist(), read["s"].tolist()) == (["5", "7"], [1, "9 %"])
    assert remarks == ("column 'q': 1 value in per cent, read as fractions",)
    read, remarks = with_fractions(table, Fields())
    assert read["s"].tolist() == [1, 0.09]
    assert with_fractions(table[["r"]], Fields())[0]["r"].tolist() == ["5", "7"]


@pytest.mark.parametrize(("n_before", "is_read"), [(999, True), (1000, False)])
def test_a_column_is_in_per_cent_by_its_first_thousand_rows(n_before, is_read):
    table = pd.DataFrame({"p": ["0.5"] * n_before + ["85%"]})
    read, remarks = with_fractions(table, Fields())
    assert read["p"].iloc[-1] == (0.85 if is_read else "85%")
    assert len(remarks) == is_read


@pytest.mark.parametrize(("n_before", "first"), [(999, "1"), (1000, 1)])
def test_a_column_of_text_is_told_by_its_first_thousand_rows(tmp_path, n_before, first):
    path = tmp_path / "t.csv"
    path.write_text("run,p\n" + "1,0.5\n" * n_before + "007,0.5\n")
    assert read_table(path)["run"].iloc[0] == first


@pytest.mark.parametrize("n_rows", [5_000_000, 5_000_001])
def test_a_folder_may_hold_five_million_rows(monkeypatch, n_rows):
    class Files:
        def count_rows(self):
            return n_rows

        def to_table(self, use_threads):
            return self

        def to_pandas(self):
            return "rows"

    monkeypatch.setattr(tables, "parquet_dataset", lambda path: Files())
    if n_rows == 5_000_000:
        assert tables._of_folder("x") == "rows"
        return
    with pytest.raises(ValueError) as error:
        tables._of_folder("x")
    assert str(error.value) == (
        "it has 5,000,001 rows; trajscore report reads them in batches, or give one file"
    )


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("t.csv", "", "t.csv is empty; give a table with a row of column names"),
        ("t.csv", "run,p\na,0.5\nb,0.5,7,8\n", "t.csv cannot be read as a table: "),
        ("t.md", "user: Hi", "expected the ending .csv, .csv.gz, .tsv, .parquet, .jsonl or .json"),
        ("t.json", "[1]", "t.json cannot be read as a table: row 0 is int, not an object"),
    ],
)
def test_texts_that_cannot_be_read_as_tables(tmp_path, name, text, message):
    (tmp_path / name).write_text(text)
    with pytest.raises(ValueError) as error:
        read_table(tmp_path / name)
    assert message in str(error.value)
    with pytest.raises(ValueError, match=r"none.csv does not exist; give the path of a table"):
        read_table(tmp_path / "none.csv")


def test_decimal_commas_need_semicolons_between_columns(tmp_path):
    path = tmp_path / "t.csv"
    for text, p in (
        ("run;p\na;0,5\nb;1\n", 0.5), ("run;p\na;-1,5\n", -1.5), ("run;p\n0,5;x\n", "x"),
        ("run;p\na;0.5\n", 0.5), ("run;p\na;x 0,5\n", "x 0,5"), ('run,p\na,"0,5"\n', "0,5"),
    ):  # fmt: skip
        path.write_text(text)
        assert read_table(path)["p"].tolist()[0] == p, text


def test_columns_and_which_of_them_were_guessed():
    table = frame(p=[0.1, 0.2, 0.3, 0.4], q=[0.2, 0.3, 0.1, 0.4], group=1, why="x")
    chosen, guessed = choose_columns(table, Fields())
    assert chosen == Fields("run", "step", "solved", scores=("p",))
    assert guessed == {
        "id": ("run",), "step": ("step",), "outcome": ("solved",), "scores": ("p",),
    }  # fmt: skip
    named = Fields("run", "step", "solved", scores=("q",), risks=("p",), group="group")
    chosen, guessed = choose_columns(table, named)
    assert (chosen.scores, chosen.risks, chosen.group, guessed) == (("q", "p"), ("p",), "group", {})
    chosen, guessed = choose_columns(table, Fields(confidence="q", scales=(("p", 1.0),)))
    assert (chosen.scores, sorted(guessed)) == (("q", "p"), ["id", "outcome", "step"])
    assert choose_columns(table, Fields(confidence="q", scores=("q", "p")))[0].scores == ("q", "p")
    stopped = table.rename(columns={"why": "stop_reason"})
    assert choose_columns(stopped, Fields())[1]["stop_reason"] == ("stop_reason",)
    for part in ("scores", "risks", "group", "id", "step", "stop_reason"):
        value = ("none",) if part in ("scores", "risks") else "none"
        with pytest.raises(ArgumentError, match="no column named 'none'") as error:
            choose_columns(table, Fields(**{part: value}))
        assert error.value.part == part
    with pytest.raises(ArgumentError, match="no column named 'none'") as error:
        choose_columns(table, Fields(scales=(("none", 1.0),)))
    assert error.value.part == "scales"


def test_rows_of_the_agent():
    table = frame(role=["user", " Assistant ", "tool", "agent"], p=[0.1, 0.2, 0.3, 0.4])
    fields = Fields("run", "step", "solved", scores=("p",))
    rows, notes = agent_rows(table, fields)
    assert rows.index.tolist() == [1, 3]
    assert rows["step"].tolist() == [1, 1]
    assert notes == ("2 of 4 rows left out: by column 'role' they are not the agent's",)
    assert agent_rows(table, Fields("run", None, "solved", scores=("p",)))[0].index.tolist() == [
        1,
        3,
    ]
    for roles in (["agent"] * 4, ["user"] * 4, ["x", "y", "x", "y"], ["x", "agent", "x", "agent"]):
        same = table.assign(role=roles)
        assert agent_rows(same, fields) == (same, ())
    assert agent_rows(table, Fields("role", "step", "solved"))[1] == ()
    kept, (note,) = agent_rows(table.assign(role=["x", "agent", "user", "system"]), fields)
    assert kept.index.tolist() == [0, 1]
    assert note.startswith("2 of 4 rows")
    assert agent_rows(table.drop(columns="role"), fields)[1] == ()


def test_steps_of_which_one_is_missing_are_numbers():
    table = pd.DataFrame({"run": list("aab"), "step": ["2", "10", None], "won": [0.25, 0.5, 1.0]})
    changed, _ = tables.with_last_outcome(table, Fields(id="run", outcome="won.-1"))
    assert changed["won"].tolist() == [0.5, 0.5, 1.0]
    words = table.assign(step=["b", "a", "c"])
    changed, _ = tables.with_last_outcome(words, Fields(id="run", outcome="won.-1"))
    assert changed["won"].tolist() == [0.25, 0.25, 1.0]


@pytest.mark.parametrize(
    ("values", "scale", "is_refused"),
    [
        ([0.5, 1.0], 100.0, True), ([0.5, 1.5], 100.0, False), ([0.0, 1.0], 100.0, False),
        ([0.5, 1.0], 1.0, False), ([0.5, "x"], 100.0, False), ([0.5, None], 100.0, True),
        ([0.0, 0.0], 100.0, False), (["50%", "0%"], 100.0, False),
    ],
)  # fmt: skip
def test_fractions_that_a_scale_would_make_smaller(values, scale, is_refused):
    table = pd.DataFrame({"p": pd.Series(values)})
    fields = Fields(scales=(("p", scale),))
    if is_refused:
        with pytest.raises(ArgumentError, match="column 'p' holds fractions up to"):
            with_scales(table, fields)
    else:
        assert with_scales(table, fields)["p"].iloc[0] in {v / scale for v in (0, 0.5, 50)}
