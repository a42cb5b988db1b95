import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trajscore import TrajectoryArray
from trajscore.core import frame as frame_module
from trajscore.core.frame import parse_numbers, select_columns

COLUMNS = {"id": "run", "step": "t", "value": "p"}


DATES = pd.date_range("2020", periods=4)


def table(**changes):
    columns = {
        "run": ["b", "b", "a", "a"],
        "t": [1, 2, 1, 2],
        "p": [0.1, 0.2, 0.3, 0.4],
        "solved": [True, True, False, False],
        "task": ["x", "x", "y", "y"],
        "budget": [5, 5, 2, 2],
    }
    return pd.DataFrame({**columns, **changes})


def read(frame, **kwargs):
    return TrajectoryArray.from_frame(frame, **{**COLUMNS, **kwargs})


def test_reads_runs_outcomes_horizons_and_meta():
    X, y = read(table(), outcome="solved", horizon="budget", meta="task")
    assert X.ids.tolist() == ["b", "a"]
    assert [run.tolist() for run in X] == [[0.1, 0.2], [0.3, 0.4]]
    assert y.tolist() == [1, 0]
    assert X.horizon.tolist() == [5, 2]
    assert read(table()).horizon is None
    assert X.meta["task"].tolist() == ["x", "y"]


@given(st.permutations(range(4)))
def test_any_row_order(order):
    X = read(table().iloc[order])
    assert {one: run.tolist() for one, run in zip(X.ids, X, strict=True)} == {
        "b": [0.1, 0.2],
        "a": [0.3, 0.4],
    }


def test_a_list_of_values_gives_channels():
    X = read(table(q=[1.0, 2.0, 3.0, 4.0]), value=["p", "q"])
    assert X.channels == ("p", "q")


def test_other_dataframes():
    pytest.importorskip("narwhals")
    X, y = read(pa.Table.from_pandas(table()), outcome="solved")
    assert read(table(), outcome="solved")[0] == X
    assert y.tolist() == [1, 0]


def test_outcomes_that_were_not_observed():
    _, y = read(table(solved=[1.0, 1.0, np.nan, np.nan]), outcome="solved")
    assert y.tolist() == [1, -1]


@pytest.mark.parametrize(
    ("frame", "kwargs", "message"),
    [
        (table(), {"value": "prob"}, "no column named 'prob'"),
        (table(), {"outcome": "sloved"}, "did you mean 'solved'"),
        (table(t=[1, 1, 1, 2]), {}, "run 'b' has step 1 more than once"),
        (table(t=[1, 3, 1, 2]), {}, "run 'b' has no step 2 .* add the missing steps"),
        (table(t=[1, 2, 1, 3]), {}, "run 'a' has no step 2 .* only 1 and then 3"),
        (table(t=[1, 2, 1, 1]), {}, "run 'a' has step 1 more than once"),
        (table(t=[0, 1, 0, 1]), {}, "run 'b' starts at step 0 .* pass first_step=0"),
        (table(t=[17, 18, 17, 18]), {}, "starts at step 17 .* pass first_step=17"),
        (table(t=[1, 2, 17, 18]), {}, "run 'a' starts at step 17 .* renumber"),
        (table(t=[1, 2.5, 1, 2]), {}, "row 1: step 2.5 .* not a whole number"),
        (table(t=[1, None, 1, 2]), {}, "row 1: step nan"),
        (table(solved=[1, 0, 0, 0]), {"outcome": "solved"}, "run 'b' has two values .*'solved'"),
        (table(solved=["pass"] * 4), {"outcome": "solved"}, "the outcome is a word in 2 of 2 runs"),
        (table(p=[0.1, "high", 0.3, 0.4]), {}, "run 'b', step 2: 'high' in column 'p'"),
        (table(p=[0.1, None, 0.3, 0.4]), {}, r"run 'b' \(row 0\), step 2: the value is NaN"),
        (table(p=[0.1, np.inf, 0.3, 0.4]), {}, "step 2: the value is inf"),
        (table(run=["b", "b", 1, 1]), {}, "mixes or holds run ids of type int, str"),
        (table(run=["b", "b", None, "a"]), {}, "row 2: column 'run' is empty or NA"),
        (
            table(run=pd.array([1, 1, None, 2], dtype="Int64")),
            {},
            "row 2: column 'run' is empty or NA",
        ),
        (table().set_index(["run", "t"]), {}, r"'run' is in the index, .* give df.reset_index\(\)"),
        (table().iloc[:0], {}, "the table has no rows"),
        (table(p=DATES), {}, "column 'p' must hold real numbers, but dates .* are not numbers"),
        (table(p=DATES - DATES[0]), {}, "column 'p' must .* durations"),
        (table(p=DATES.tz_localize("UTC")), {}, "column 'p' must .* dates"),
        (table(p=[0.5 + 1j, 0.1, 0.1, 0.1]), {}, "column 'p' must .* Complex data not supported"),
        (table(t=[1, 1e20, 1, 2]), {}, r"row 1: step 1e\+20 .* whole number below 2\*\*53"),
        (table(run=[2.0**53] * 4, t=[1, 2, 3, 4]), {}, "run id 9.0.* is too large for a float"),
        (
            table(run=[2**63 + 1] * 4, t=[1, 2, 3, 4]),
            {},
            r"identifier 9223372036854775809 .*\.astype\(str\)",
        ),
        (table(run=[1e20, 1e20, 1.0, 1.0]), {}, r"run id 1e\+20 in column 'run' .*astype\(str\)"),
        (table(run=[np.inf, np.inf, 1.0, 1.0]), {}, "run ids of type float"),
        (table(), {"value": []}, "value is empty"),
        (table().rename(columns={"task": "p"}), {}, "2 columns named 'p'"),
        (table(budget=DATES[:1].repeat(4)), {"horizon": "budget"}, "column 'budget' must .* dates"),
        (table(budget=[5, 5, None, None]), {"horizon": "budget"}, "run 'a': horizon nan"),
        (table(budget=[2.5, 2.5, 2, 2]), {"horizon": "budget"}, r"run 'b': horizon 2\.5"),
    ],
)
def test_bad_tables_get_one_sentence(frame, kwargs, message):
    with pytest.raises(ValueError, match=message) as caught:
        read(frame, **kwargs)
    assert "\n" not in str(caught.value)


def test_first_step_zero_when_said():
    assert read(table(t=[0, 1, 0, 1]), first_step=0) == read(table())


def test_missing_values_when_allowed():
    X = read(table(p=[0.1, None, 0.3, 0.4]), missing="allow")
    assert np.isnan(X[0][1])
    held = read(table(p=[0.1, None, 0.3, 0.4]), missing="ffill")
    assert held[0].tolist() == [0.1, 0.1]


def test_something_that_is_no_dataframe():
    pytest.importorskip("narwhals")
    with pytest.raises(TypeError, match="expected a dataframe"):
        read([1, 2, 3])


def test_columns_named_by_numbers():
    frame = table().rename(columns={"p": 0, "t": 1})
    one = read(frame, step=1, value=0)
    assert (one.channels, one.cells.tolist()) == (("0",), read(table()).cells.tolist())
    assert read(frame, step=1, value=[0]).channels == ("0",)


# ------------------------------------------------------- ids of two columns, times, words


def test_ids_of_several_columns():
    df = table().assign(task=["x", "x", "y", "y"], trial=[1, 1, 1, 1])
    X = TrajectoryArray.from_frame(df, id=["task", "trial"], step="t", value="p")
    assert list(X.ids) == ["x-1", "y-1"]
    odd = pd.DataFrame({"a": ["x-1", "x"], "b": ["2", "1-2"], "t": 1, "p": 0.5})
    with pytest.raises(ValueError, match="two runs have the same id when the columns 'a' and 'b'"):
        TrajectoryArray.from_frame(odd, id=["a", "b"], step="t", value="p")
    with pytest.raises(ValueError, match="row 0: column 'a' is empty"):
        TrajectoryArray.from_frame(odd.assign(a=None), id=["a", "b"], step="t", value="p")


@pytest.mark.parametrize("kind", ["text", "times", "zone"])
def test_steps_in_the_order_of_times(kind):
    said = ["2026-01-01T00:00:09Z", "2026-01-01T00:00:10Z", "2026-01-02", "2026-01-01T23:00:00Z"]
    times = pd.Series(said) if kind == "text" else pd.to_datetime(said, utc=True, format="ISO8601")
    df = table(t=times.tz_localize(None) if kind == "times" else times)
    X = read(df)
    assert [one.tolist() for one in X] == [[0.1, 0.2], [0.4, 0.3]]
    backwards = read(df.iloc[::-1])
    assert [one.tolist() for one in backwards] == [[0.4, 0.3], [0.1, 0.2]]


def test_times_that_are_the_same_are_refused():
    with pytest.raises(ValueError, match="run 'b' has two rows with the same time .* step=None"):
        read(table(t=["2026-01-01"] * 4))
    with pytest.raises(ValueError, match="row 1: column 't' has no time"):
        read(table(t=pd.to_datetime(["2026-01-01", None, "2026-01-01", "2026-01-02"])))


def test_steps_in_the_order_of_rows():
    df = table()
    assert TrajectoryArray.from_frame(df, id="run", step=None, value="p") == read(df)


def test_an_outcome_may_stand_on_one_row_of_a_run():
    _, y = read(table(solved=[None, 1, 0, None]), outcome="solved")
    assert y.tolist() == [1, 0]
    _, y = read(table(solved=[None, None, None, 0]), outcome="solved")
    assert y.tolist() == [-1, 0]


def test_words_of_outcomes_mean_what_one_says():
    df = table(solved=["Pass", "Pass", "timeout", None])
    with pytest.raises(
        ValueError, match=r"word in 2 of 2 .*outcome_map=\{'Pass': 1, 'timeout': -1\}"
    ):
        read(df, outcome="solved")
    for meanings in ("pass=1,timeout=-1", {"pass": 1, "timeout": -1}):
        _, y = read(df, outcome="solved", outcome_map=meanings)
        assert y.tolist() == [1, -1]
    _, y = read(table(solved=[5, 5, 1, 1]), outcome="solved", outcome_map={5: 1, 1: 0})
    assert y.tolist() == [1, 0]


@st.composite
def tables(draw):
    lengths = draw(st.lists(st.integers(1, 4), min_size=1, max_size=6))
    text = draw(st.booleans())
    names = draw(st.permutations(range(100)))[: len(lengths)]
    rows = [
        (f"r{name}" if text else name, t, name + t / 10, name % 2, None if name % 3 else "a")
        for name, length in zip(names, lengths, strict=True)
        for t in range(1, length + 1)
    ]
    order = draw(st.permutations(range(len(rows)))) if draw(st.booleans()) else range(len(rows))
    return [rows[k] for k in order]


@settings(max_examples=40)
@given(tables(), st.sampled_from(["pandas", "object", "category", "arrow"]))
def test_is_a_loop_over_rows(rows, kind):
    frame = pd.DataFrame(rows, columns=["run", "t", "p", "solved", "why"])
    if kind != "pandas":
        frame["run"] = frame["run"].astype("category" if kind == "category" else object)
    columns = dict(zip(frame, zip(*rows, strict=True), strict=True))
    source = pa.table({k: list(v) for k, v in columns.items()}) if kind == "arrow" else frame
    X, y = read(source, outcome="solved", meta="why")
    ids = list(dict.fromkeys(row[0] for row in rows))
    assert X.ids.tolist() == ids
    for name, run in zip(ids, X, strict=True):
        assert run.tolist() == [
            p for one, _, p, *_ in sorted(rows, key=lambda r: r[1]) if one == name
        ]
    of_run = {row[0]: row for row in rows}
    assert y.tolist() == [of_run[name][3] for name in ids]
    assert [None if pd.isna(one) else one for one in X.meta["why"]] == [
        of_run[name][4] for name in ids
    ]


def test_arrow_tables_with_missing_values():
    gaps = table(
        solved=[True, True, None, None], p=[0.1, None, 0.3, 0.4], task=["x", "x", None, None]
    )
    source = pa.Table.from_pandas(gaps)
    X, y = read(source, outcome="solved", missing="allow", meta="task")
    assert y.tolist() == [1, -1]
    assert np.isnan(X[0][1])
    assert X.meta["task"].isna().tolist() == [False, True]
    with pytest.raises(ValueError, match="row 2: column 'run' is empty"):
        read(pa.Table.from_pandas(table(run=["b", "b", None, "a"])))
    with pytest.raises(ValueError, match="row 2: column 'run' is empty"):
        read(table(run=pd.Series(["b", "b", pd.NA, "a"], dtype=object)))


def test_objects_in_a_column_of_runs_are_refused():
    frame = table(solved=[{"x": 1}] * 4)
    with pytest.raises(ValueError, match="column 'solved' holds a list or an object"):
        TrajectoryArray.from_frame(frame, id="run", step="t", value="p", outcome="solved")


@pytest.mark.parametrize(
    "part", [slice(None), slice(1, None), slice(None, None, 2), slice(None, None, -1)]
)
def test_rows_count_by_their_place_whatever_the_index(part):
    columns = {"p": [0.1, 0.2, 0.3, 0.4], "other": "x"}
    for index in (None, [4, 4, 4, 4], list("abcd")):
        frame = pd.DataFrame(columns, index=index).iloc[part]
        chosen = select_columns(frame, ["p", "p"])
        assert chosen.index.tolist() == list(range(len(frame)))
        assert chosen["p"].tolist() == columns["p"][part]
        assert list(chosen) == ["p"]


def test_strings_as_polars_hands_them_out():
    pa = pytest.importorskip("pyarrow")
    if not hasattr(pa, "string_view"):
        pytest.skip("this pyarrow has no such strings")
    rows = pa.table({"run": ["a", "a", "b"], "p": [0.5, 0.6, 0.7], "ok": ["yes", "yes", "no"]})
    for name in ("run", "ok"):
        column = rows.column_names.index(name)
        rows = rows.set_column(column, name, rows.column(name).cast(pa.string_view()))
    X, y = TrajectoryArray.from_frame(rows, id="run", step=None, value="p", outcome="ok")
    assert (X.ids.tolist(), y.tolist()) == (["a", "b"], [1, 0])


def test_a_lazy_frame_must_be_collected():
    class LazyFrame:
        columns = ("run", "p")

    pytest.importorskip("narwhals")
    with pytest.raises(TypeError, match=r"got LazyFrame; give what its \.collect\(\) returns"):
        TrajectoryArray.from_frame(LazyFrame(), id="run", step=None, value="p")


def test_values_of_any_type_may_be_missing_where_that_is_allowed():
    values = pd.Series([0.5, None, "0.25"], dtype=object)
    frame = pd.DataFrame({"run": ["a", "a", "b"], "step": [1, 2, 1], "p": values})
    columns = {"id": "run", "step": "step", "value": "p"}
    X = TrajectoryArray.from_frame(frame, **columns, missing="allow")
    np.testing.assert_array_equal(X.cells, [0.5, np.nan, 0.25])
    for text, remedy in {"high": "correct it or", "52%": "write fractions: df['p'].str"}.items():
        frame.loc[1, "p"] = text
        with pytest.raises(ValueError) as caught:
            TrajectoryArray.from_frame(frame, **columns, missing="allow")
        refused = f"run 'a', step 2: '{text}' in column 'p' is not a number; {remedy}"
        assert str(caught.value).startswith(refused)


def test_whole_numbers_of_steps_are_exact():
    large = 2**60 + 1
    X = read(table(t=[large + 1, large, large, large + 1]), first_step=large)
    assert [run.tolist() for run in X] == [[0.2, 0.1], [0.3, 0.4]]
    floats = table(t=[2.0**53 - 2, 2.0**53 - 1, 2.0**53 - 2, 2.0**53 - 1])
    assert len(read(floats, first_step=2**53 - 2)) == 2


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (1.5, "1.5 in column 'C' is not a whole number; R"),
        (np.nan, "nan in column 'C' is not a whole number; R"),
        (2.0**53, "9007199254740992.0 in column 'C' is not a whole number below 2**53; R"),
        (-(2.0**53), "-9007199254740992.0 in column 'C' is not a whole number below 2**53; R"),
    ],
)
def test_steps_and_horizons_that_are_not_whole(value, words):
    remedy = "number the steps of each run 1, 2, 3, ..."
    with pytest.raises(ValueError) as error:
        read(table(t=[1, 2, value, 2]))
    assert str(error.value) == f"row 2: step {words}".replace("'C'", "'t'").replace("R", remedy)
    remedy = "give the number of steps over which the run is weighted"
    with pytest.raises(ValueError) as error:
        read(table(budget=[5, 5, value, value]), horizon="budget")
    expected = f"run 'a': horizon {words}".replace("'C'", "'budget'").replace("R", remedy)
    assert str(error.value) == expected


def test_numbers_beyond_floats():
    largest = int(sys.float_info.max)
    cells = pd.Series([10**400, -(10**400), largest, -5, "x", None, 0.25], dtype=object)
    expected = [np.inf, -np.inf, largest, -5, np.nan, np.nan, 0.25]
    np.testing.assert_array_equal(parse_numbers(cells), np.array(expected, dtype=float))


@pytest.mark.parametrize(
    ("steps", "are_times"),
    [
        (["2020-01-02", "2020-01-01"], True),
        (["2020", "2021-01-02"], False),  # a number, and no step
        (["2021-01-02", "2020"], False),
        (["2020-01-02", ""], False),
        (["2020-01-02", "soon"], False),
    ],
)
def test_steps_are_times_where_all_are(steps, are_times):
    frame = pd.DataFrame({"run": "a", "t": steps, "p": [0.1, 0.2]})
    if are_times:
        assert read(frame)[0].tolist() == [0.2, 0.1]
        return
    with pytest.raises(ValueError, match="in column 't' is not a whole number; number the steps"):
        read(frame)


def test_rows_that_lie_apart_are_named_by_their_run():
    apart = {"run": ["b", "a", "b", "a"], "t": [1, 1, 2, 2]}
    X = read(table(**apart))
    assert {one: run.tolist() for one, run in zip(X.ids, X, strict=True)} == {
        "b": [0.1, 0.3],
        "a": [0.2, 0.4],
    }
    with pytest.raises(ValueError, match="run 'a', step 2: 'x' in column 'p' is not a number"):
        read(table(**apart, p=["0.1", "0.2", "0.3", "x"]))


def test_whole_numbers_that_are_floats_are_ids():
    X = read(table(run=[7.0, 7.0, -3.0, -3.0]))
    assert (X.ids.tolist(), X.ids.dtype) == ([7, -3], np.int64)
    assert read(table(run=[2.0**53 - 1] * 2 + [0.0] * 2)).ids.tolist() == [2**53 - 1, 0]
    with pytest.raises(ValueError, match="run ids of type float; make them all whole numbers or"):
        read(table(run=[7.5, 7.5, 3.0, 3.0]))


def test_a_column_of_lists_has_no_value_for_a_run():
    with pytest.raises(ValueError, match="column 'task' holds a list or an object; give one value"):
        read(table(t=[1, 2, 1, 2], task=[["x"], ["y"], ["y"], ["y"]]), meta="task")


def test_dataframes_without_pyarrow_or_narwhals(monkeypatch):
    pytest.importorskip("narwhals")
    other, expected = pa.Table.from_pandas(table()), read(table(), meta="task")
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "pyarrow", None)  # cannot be imported
        assert frame_module._arrow_table(other) is None
    monkeypatch.setattr(frame_module, "_arrow_table", lambda df: None)
    columns = select_columns(other, ["t", "p", "t"])
    assert columns.columns.tolist() == ["t", "p"]
    assert columns["t"].tolist() == [1, 2, 1, 2]
    assert read(other, meta="task") == expected
    with pytest.raises(ValueError, match="no column named 'q'"):
        select_columns(other, ["q"])
    monkeypatch.setitem(sys.modules, "narwhals", None)
    words = "a Table is read with narwhals; run `pip install narwhals`, or pass a pandas DataFrame"
    with pytest.raises(ImportError, match=words):
        select_columns(other, ["t"])


@pytest.mark.parametrize(
    ("ids", "codes", "different"),
    [
        ([1, 3, 5], [0, 1, 2], [1, 3, 5]),
        ([1, 3, 3], [0, 1, 1], [1, 3]),
        ([1, 3, 2, 3], [0, 1, 2, 1], [1, 3, 2]),
        ([4, 4], [0, 0], [4]),
        (["b", "a", "b"], [0, 1, 0], ["b", "a"]),
    ],
)
def test_ids_are_numbered_as_they_come(ids, codes, different):
    numbers, found = frame_module._factorized(pd.Series(ids), "run", np.arange(len(ids)))
    assert numbers.tolist() == codes
    assert np.asarray(found).tolist() == different


# ------------------------------------------------------------------ which row is which step


def layout_of(ids):
    return frame_module._layout(pd.Series(list(ids)), "run")


@pytest.mark.parametrize(
    ("ids", "first", "lengths", "codes"),
    [
        ("aabbbc", [0, 2, 5], [2, 3, 1], None),
        ("a", [0], [1], None),
        ("aba", [0, 1], [2, 1], [0, 1, 0]),
        ("bbaab", [0, 2], [3, 2], [0, 0, 1, 1, 0]),
        ("abcab", [0, 1, 2], [2, 2, 1], [0, 1, 2, 0, 1]),
    ],
)
def test_rows_of_runs(ids, first, lengths, codes):
    layout = layout_of(ids)
    names = list(dict.fromkeys(ids))
    assert layout.ids.tolist() == names
    assert layout.first.tolist() == first
    assert layout.lengths.tolist() == lengths
    assert (None if layout.codes is None else layout.codes.tolist()) == codes
    assert [layout.run(row) for row in range(len(ids))] == list(ids)
    assert layout.codes_of_rows().tolist() == [names.index(one) for one in ids]
    assert layout.spread(np.arange(10, 10 + len(names))).tolist() == [
        10 + names.index(one) for one in ids
    ]


@pytest.mark.parametrize(
    ("ids", "steps", "order"),
    [
        ("aabbbc", [1, 2, 1, 2, 3, 1], None),
        ("aaa", [1, 2, 3], None),
        ("a", [1], None),
        ("abc", [1, 1, 1], None),
        ("aabbbc", [2, 1, 1, 2, 3, 1], [1, 0, 2, 3, 4, 5]),
        ("aabbbc", [1, 2, 3, 2, 1, 1], [0, 1, 4, 3, 2, 5]),
        ("aba", [2, 1, 1], [2, 0, 1]),
        ("aba", [1, 1, 2], [0, 2, 1]),
        ("bbaab", [3, 1, 2, 1, 2], [1, 4, 0, 3, 2]),
    ],
)
@pytest.mark.parametrize("first_step", [0, 1, 7])
def test_the_order_by_run_and_step(ids, steps, order, first_step, monkeypatch):
    monkeypatch.setattr(frame_module, "_check_steps", None)  # each row has its place
    found = layout_of(ids).order(np.array(steps) - 1 + first_step, first_step, "t")
    assert (None if found is None else found.tolist()) == order


@pytest.mark.parametrize(
    ("ids", "steps", "message"),
    [
        ("aab", [1, 3, 1], "run 'a' has no step 2 in column 't', only 1 and then 3; add the"),
        ("aaa", [1, 2, 5], "run 'a' has no step 3 in column 't', only 2 and then 5; add the"),
        ("abb", [1, 1, 3], "run 'b' has no step 2 in column 't', only 1 and then 3; add the"),
        ("abba", [1, 1, 2, 3], "run 'a' has no step 2 in column 't', only 1 and then 3; add the"),
        ("abb", [1, 1, 1], "run 'b' has step 1 more than once in column 't'; keep one row for"),
        ("aaa", [1, 2, 2], "run 'a' has step 2 more than once in column 't'; keep one row for"),
        ("aba", [2, 1, 2], "run 'a' has step 2 more than once in column 't'; keep one row for"),
        ("abb", [1, 2, 3], "run 'b' starts at step 2 in column 't', not at 1; renumber the steps"),
        ("aab", [0, 1, 1], "run 'a' starts at step 0 in column 't', not at 1; renumber the steps"),
        ("aab", [0, 1, 0], "run 'a' starts at step 0 in column 't', not at 1; if that is how you"),
        ("ab", [3, 3], "run 'a' starts at step 3 in column 't', not at 1; if that is how you"),
    ],
)
def test_steps_that_are_missing_or_repeated(ids, steps, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        layout_of(ids).order(np.array(steps), 1, "t")


@pytest.mark.parametrize(
    ("ids", "days", "steps"),
    [
        ("aabab", [5, 3, 9, 7, 1], [2, 1, 2, 3, 1]),
        ("aab", [5, 3, 1], [2, 1, 1]),
        ("ab", [1, 1], [1, 1]),
        ("aabb", [1, 2, 2, 3], [1, 2, 1, 2]),
    ],
)
def test_steps_by_time(ids, days, steps):
    frame = pd.DataFrame({"t": pd.to_datetime([f"2025-01-0{day}" for day in days])})
    assert frame_module._count_steps(layout_of(ids), frame, "t").tolist() == steps
    as_rows = [ids[: row + 1].count(one) for row, one in enumerate(ids)]
    assert frame_module._count_steps(layout_of(ids), frame, None).tolist() == as_rows


@pytest.mark.parametrize(("days", "row"), [([1, 4, 1, 4, 5], 1), ([2, 4, 1, 5, 2], 0)])
def test_two_rows_of_one_time(days, row):
    frame = pd.DataFrame({"t": [f"2025-01-0{day}" for day in days]})
    words = f"run {'ab'[row]!r} has two rows with the same time in column 't', 2025-01-0{days[row]}"
    with pytest.raises(ValueError, match=words):
        frame_module._count_steps(layout_of("abcba"), frame, "t")


# ------------------------------------------------------------------ one value a run


@pytest.mark.parametrize(
    ("ids", "column", "values"),
    [
        ("aab", [1, 1, 2], [1, 2]),
        ("aab", [None, 1, 2], [1, 2]),
        ("aab", ["x", None, None], ["x", None]),
        ("aba", [True, False, True], [True, False]),
        ("abab", [1, 2, 1, 2], [1, 2]),
        ("abab", ["x", None, None, "y"], ["x", "y"]),
        ("abab", [None, None, "x", None], ["x", None]),
        ("abab", [0.5, None, None, 0.25], [0.5, 0.25]),
        ("ab", [2, 2], [2, 2]),
    ],
)
def test_the_value_of_each_run(ids, column, values):
    found = frame_module._one_per_run(pd.Series(column), "m", layout_of(ids))
    assert found.astype(object).where(found.notna(), None).tolist() == values
    assert found.index.tolist() == list(range(len(values)))


@pytest.mark.parametrize(
    ("ids", "column", "message"),
    [
        ("aab", [1, 2, 3], "run 'a' has two values in column 'm', 1 and 2; a run has one"),
        ("abb", [1, 2, 3], "run 'b' has two values in column 'm', 2 and 3; a run has one"),
        ("abab", [1, 2, 1, 3], "run 'b' has two values in column 'm', 2 and 3; a run has one"),
        ("aba", ["x", None, "y"], "run 'a' has two values in column 'm', 'x' and 'y'; a run has"),
        ("aaa", [None, "x", "y"], "run 'a' has two values in column 'm', 'x' and 'y'; a run has"),
    ],
)
def test_two_values_of_a_run(ids, column, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        frame_module._one_per_run(pd.Series(column), "m", layout_of(ids))


# ------------------------------------------------------------------ whole numbers


NAN = float("nan")
LARGEST = 2.0**53 - 1


def test_whole_numbers_up_to_the_largest_that_a_float_tells_from_its_neighbours():
    numbers = np.array([LARGEST, -LARGEST, 0.0])
    ids = numbers.astype(object)
    assert frame_module._whole_ids(numbers, ids, "run").tolist() == [2**53 - 1, 1 - 2**53, 0]
    assert frame_module._step_numbers(pd.Series(numbers), "t").tolist() == [2**53 - 1, 1 - 2**53, 0]
    for value in (2.0**53, -(2.0**53)):
        with pytest.raises(ValueError, match=f"run id {value} in column 'run' is too large"):
            frame_module._whole_ids(np.array([1.0, value]), ids, "run")
        with pytest.raises(
            ValueError, match=r"^row 1: step .* is not a whole number below 2\*\*53"
        ):
            frame_module._step_numbers(pd.Series([1.0, value]), "t")
    with pytest.raises(ValueError, match=r"^row 2: step 0.5 in column 't' is not a whole number; "):
        frame_module._step_numbers(pd.Series([1.0, 2.0, 0.5]), "t")
    for not_whole in (np.array([1.0, 0.5]), np.array([np.inf, 1.0]), np.array([np.nan])):
        same = not_whole.astype(object)
        assert frame_module._whole_ids(not_whole, same, "run") is same


@pytest.mark.parametrize(
    ("column", "changes"),
    [
        (pd.Series([1.0, 1.0, NAN, NAN]), [False, True, True]),
        (pd.Series(["a", "a", "b"], dtype=object), [False, True]),
        (pd.Series(["a", "a", None], dtype=object), [True, True]),
        (pd.Series([1, 1, None, 2], dtype="Int64"), [False, True, True]),
        (pd.Series([None, None], dtype="Int64"), [False]),
        (pd.Series([3, 3, 1]), [False, True]),
        (pd.Series([3]), []),
        (pd.Series([NAN, NAN]), [True]),
    ],
)
def test_where_a_column_changes(column, changes):
    found = frame_module._changes(column)
    assert found.tolist() == changes
    assert found.dtype == bool


def test_ids_of_three_columns_are_joined_by_dashes():
    frame = pd.DataFrame({"a": ["x", "y"], "b": [1, 2], "c": ["u", "v"]})
    assert frame_module.joined_ids(frame, ["a", "b", "c"]).tolist() == ["x-1-u", "y-2-v"]
    assert frame_module.joined_ids(frame, ["c", "a"]).tolist() == ["u-x", "v-y"]
    assert frame_module.joined_ids(frame, ["b"]).tolist() == [1, 2]
    for name in frame:
        gap = frame.astype(object)
        gap.loc[1, name] = None
        with pytest.raises(ValueError, match=f"^row 1: column {name!r} is empty or NA; every step"):
            frame_module.joined_ids(gap, ["a", "b", "c"])
    same = pd.DataFrame({"a": ["x-1", "x"], "b": ["u", "1-u"]})
    with pytest.raises(ValueError, match="^two runs have the same id when the columns 'a' and 'b'"):
        frame_module.joined_ids(same, ["a", "b"])


@pytest.mark.parametrize(
    ("column", "are_times"),
    [
        (["2025-01-01", "2025-01-02"], True),
        (["2025-01-01", "later"], False),
        (["2025-01-01", None], False),
        (["2025-01-01", "3"], False),
        (["1", "2"], False),
        ([1, 2], False),
        ([1.0, NAN], False),
        (pd.to_datetime(["2025-01-01", None]), True),
    ],
)
def test_columns_of_times(column, are_times):
    assert frame_module._are_times(pd.Series(column)) is are_times


def test_numbers_beyond_floats_are_infinite():
    cells = [10**400, -(10**400), "x", 2, "1.5", 10**308, None, int(sys.float_info.max)]
    found = parse_numbers(pd.Series(cells, dtype=object))
    expected = [np.inf, -np.inf, NAN, 2, 1.5, 1e308, NAN, sys.float_info.max]
    np.testing.assert_array_equal(found.to_numpy(dtype=float), expected)


@pytest.mark.parametrize("index", [range(1, 3), range(0, 4, 2), range(1, -1, -1), [0, 1]])
def test_only_a_plain_index_is_kept(index, monkeypatch):
    frame = pd.DataFrame({"p": [0.5, 0.6], "q": [1, 2]}, index=index)
    assert select_columns(frame, ["p", "p"]).index.tolist() == [0, 1]
    monkeypatch.setattr(pd.DataFrame, "reset_index", None)
    plain = select_columns(frame.set_axis(pd.RangeIndex(2)), ["q", "p"])
    assert plain.to_numpy().tolist() == [[1, 0.5], [2, 0.6]]
    with pytest.raises(TypeError):
        select_columns(frame, ["p"])
