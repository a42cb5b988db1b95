"""Long tables, one row a step in any order."""

import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refused import must_refuse
from trajscore import TrajectoryArray

COLUMNS = {"id": "run", "step": "t", "value": "p"}
DATES = pd.date_range("2020", periods=4)
LARGEST = 2.0**53 - 1


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


def runs_of(X):
    return dict(zip(X.ids.tolist(), [run.tolist() for run in X], strict=True))


def test_reads_runs_outcomes_horizons_and_meta():
    X, y = read(table(), outcome="solved", horizon="budget", meta="task")
    assert runs_of(X) == {"b": [0.1, 0.2], "a": [0.3, 0.4]}
    assert y.tolist() == [1, 0]
    assert X.horizon.tolist() == [5, 2]
    assert X.meta["task"].tolist() == ["x", "y"]
    assert X.ended.all()
    assert (read(table()).horizon, read(table()).ended.any()) == (None, False)
    frame = table(q=[1.0, 2.0, 3.0, 4.0]).rename(columns={"t": 1})
    assert read(frame, step=1, value=["p", "q"], meta=["task", "solved"]).channels == ("p", "q")
    assert read(table().rename(columns={"p": 0}), value=0).channels == ("0",)
    assert read(table(t=[7, 8, 7, 8]), first_step=7) == read(table()) == read(table(), step=None)


@st.composite
def tables(draw):
    """Rows of run, step, value, outcome and note: sorted, or as they come."""
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
    if kind in ("category", "object"):
        frame["run"] = frame["run"].astype(kind)
    if kind == "arrow":
        pa = pytest.importorskip("pyarrow")
        columns = dict(zip(frame, zip(*rows, strict=True), strict=True))
        frame = pa.table({name: list(values) for name, values in columns.items()})
    X, y = read(frame, outcome="solved", meta="why")
    of_run = {row[0]: row for row in rows}
    assert runs_of(X) == {
        name: [p for one, _, p, *_ in sorted(rows, key=lambda r: r[1]) if one == name]
        for name in of_run
    }
    assert X.ids.tolist() == list(of_run)  # as the table first names them
    assert y.tolist() == [row[3] for row in of_run.values()]
    why = [None if pd.isna(one) else one for one in X.meta["why"]]
    assert why == [row[4] for row in of_run.values()]


def test_the_value_of_a_run_may_stand_on_some_of_its_rows():
    for ids, column, values in (
        ("aab", [1, 1, 2], [1, 2]),
        ("aab", ["x", None, None], ["x", None]),
        ("aba", [True, False, True], [True, False]),
        ("abab", ["x", None, None, "y"], ["x", "y"]),
        ("abab", [0.5, None, None, 0.25], [0.5, 0.25]),
    ):
        frame = pd.DataFrame({"run": list(ids), "p": 0.5, "m": column})
        found = read(frame, step=None, meta="m").meta["m"]
        assert found.astype(object).where(found.notna(), None).tolist() == values, column
    rows = [
        ("aab", [1, 2, 3], "'a' .*'m', 1 and 2"),
        ("abab", [1, 2, 1, 3], "'b' .*'m', 2 and 3"),
        ("aba", ["x", None, "y"], "'a' .*'m', 'x' and 'y'"),
        ("aa", [["x"], ["y"]], "column 'm'"),
    ]
    must_refuse(
        lambda ids, column: read(
            pd.DataFrame({"run": list(ids), "p": 0.5, "m": column}), step=None, meta="m"
        ),
        rows,
    )


def test_ids():
    df = table(task=["x", "x", "y", "y"], trial=1, seed="s")
    assert read(df, id=["task", "trial", "seed"]).ids.tolist() == ["x-1-s", "y-1-s"]
    for run, ids in (
        ([7.0, 7.0, -3.0, -3.0], [7, -3]),
        ([LARGEST, LARGEST, 0.0, 0.0], [int(LARGEST), 0]),
        (pd.array([1, 1, 2, 2], dtype="Int64"), [1, 2]),
        (pd.Categorical(["b", "b", "a", "a"], ["a", "b"]), ["b", "a"]),
        ([3, 5, 3, 5], [3, 5]),
        ([3, 3, 2, 2], [3, 2]),
    ):
        assert read(table(run=run), step=None).ids.tolist() == ids, run


def test_steps_in_the_order_of_times():
    said = ["2026-01-01T00:00:09Z", "2026-01-01T00:00:10Z", "2026-01-02T00Z", "2026-01-01T23Z"]
    zone = pd.Series(pd.to_datetime(said, utc=True, format="ISO8601"))
    for times in (said, zone, zone.dt.tz_localize(None)):
        X = read(table(t=times))
        assert runs_of(X) == {"b": [0.1, 0.2], "a": [0.4, 0.3]}
        assert runs_of(read(table(t=times).iloc[[3, 0, 2, 1]])) == runs_of(X)
    for steps in (["2020", "2021-01-02"], ["2020-01-02", ""], ["2020-01-02", "soon"]):
        with pytest.raises(ValueError, match="row .*'t'"):
            read(pd.DataFrame({"run": "a", "t": steps, "p": [0.1, 0.2]}))


def test_missing_values_where_that_is_allowed():
    gaps = table(p=pd.Series([0.5, None, "0.25", 1], dtype=object))
    X = read(gaps, missing="allow")
    np.testing.assert_array_equal(X.cells, [0.5, np.nan, 0.25, 1])
    assert read(gaps, missing="ffill")[0].tolist() == [0.5, 0.5]
    _, y = read(table(solved=[None, 1, None, None]), outcome="solved")
    assert y.tolist() == [1, -1]
    for dtype in (float, object):  # no run has a step
        unstarted = table(run=list("abcd"), t=pd.Series([None] * 4, dtype=dtype), p=None)
        assert read(unstarted, missing="allow").lengths.tolist() == [0] * 4


def test_other_dataframes(monkeypatch):
    pa = pytest.importorskip("pyarrow")
    other = pa.Table.from_pandas(table())
    expected, _ = read(table(), outcome="solved", meta="task")
    assert read(other, outcome="solved", meta="task")[0] == expected
    view = getattr(pa, "string_view", pa.string)()  # as polars hands text out
    for name in ("run", "task"):
        place = other.column_names.index(name)
        other = other.set_column(place, name, other.column(name).cast(view))
    assert read(other, outcome="solved", meta="task")[0] == expected
    gaps = pa.table({"run": ["b", "b", "a"], "p": [0.1, None, 0.3], "task": ["x", None, None]})
    X = read(gaps, step=None, missing="allow", meta="task")
    assert np.isnan(X.cells).tolist() == [False, True, False]
    assert X.meta["task"].isna().tolist() == [False, True]
    with pytest.raises(ValueError, match="row 2.*'run'"):
        read(pa.Table.from_pandas(table(run=["b", "b", None, "a"])))
    monkeypatch.setitem(sys.modules, "pyarrow", None)  # cannot be imported
    with pytest.raises(ImportError, match=r"pip install .*\[data\]"):
        read(other)


def test_something_that_is_no_dataframe():
    for df, words in (([1, 2, 3], "list"), ("x.csv", r"read_csv\('x.csv'\)")):
        with pytest.raises(TypeError, match=words):
            read(df)
    with pytest.raises(TypeError, match=r"no group; .* meta.* X.meta\[NAME\]"):
        read(table(), group="task")


BAD = [
    (table(), {"value": "prob"}, "'prob'"),
    (table(), {"outcome": "sloved"}, "did you mean 'solved'"),
    (table(), {"value": []}, "value"),
    (table().rename(columns={"task": "p"}), {}, "2 columns named 'p'"),
    (table().set_index(["run", "t"]), {}, r"'run' .*df.reset_index\(\)"),
    (table().iloc[:0], {}, "no rows"),
    # steps
    (table(t=[1, 1, 1, 2]), {}, "'b' .*step 1 .*'t'"),
    (table(t=[1, 3, 1, 2]), {}, "'b' .*no step 2 .*'t', only 1 and then 3"),
    (table(run=list("baba"), t=[1, 1, 2, 3]), {}, "'a' .*no step 2"),
    (table(t=[0, 1, 0, 1]), {}, "'b' .*step 0 .*first_step=0"),
    (table(t=[1, 2, 17, 18]), {}, "'a' .*step 17 .*renumber"),
    (table(t=[1, 2.5, 1, 2]), {}, "row 1: step 2.5 .*'t'"),
    (table(t=[1, 2, LARGEST + 1, 2]), {}, r"row 2: step .*2\*\*53"),
    (table(t=["2026-01-01T02:00+02:00", "2026-01-02"] * 2), {}, "'t': row 0 .*row 1 .*step=None"),
    (table(t=["2026-01-01"] * 4), {}, "'b' has step 2026-01-01 .*'t'; .*step=None"),
    (table(t=["2026-01-02", "2026-01-01", *["2026-01-03"] * 2]), {}, "'a' .*2026-01-03"),
    (table(t=pd.to_datetime(["2026-01-01", None, "2026-01-01", "2026-01-02"])), {}, "row 1.*'t'"),
    # values
    (table(p=[0.1, "high", 0.3, 0.4]), {}, "'b', step 2: 'high' .*'p'"),
    (table(p=["0.1", "52%", "0.3", "0.4"]), {}, r"'b', step 2: '52%' .*df\['p'\].*/ 100"),
    (table(p=["0.1", "0,2", "0.3", "0.4"]), {}, r"'b', step 2: '0,2' .*decimal=','"),
    (table(run=list("baba"), t=[1, 1, 2, 2], p=["1", "2", "3", "x"]), {}, "'a', step 2: 'x'"),
    (table(p=[0.1, None, 0.3, 0.4]), {}, r"'b' \(row 0\), step 2.*NaN"),
    (table(p=pd.Series([0.1, 10**400, 0.3, 0.4], dtype=object)), {}, "step 2"),
    (table(p=DATES), {}, "'p' .*dates"),
    (table(p=[0.5 + 1j, 0.1, 0.1, 0.1]), {}, "'p' .*Complex"),
    # ids
    (table(run=["b", "b", 1, 1]), {}, r"'run' .*int, str.*astype\(str\)"),
    (table(run=["b", "b", None, "a"]), {}, r"row 2.*'run'.*ffill\(\)"),
    (table(run=pd.array([None] * 4, dtype="Int64")), {}, "row 0.*'run'"),
    (table(run=[LARGEST + 1] * 4, t=[1, 2, 3, 4]), {}, r"run id 9.*'run'.*astype\(str\)"),
    (table(run=[7.5, 7.5, 3.0, 3.0]), {}, r"7.5 .*'run'.*astype"),
    (table(run=["x-1", "x"] * 2, q=["u", "1-u"] * 2), {"id": ["run", "q"]}, "'run'.*'q'"),
    (table(task=["x", None, "x", "x"]), {"id": ["run", "task"]}, "row 1.*'task'"),
    # horizons and outcomes
    (table(budget=DATES[:1].repeat(4)), {"horizon": "budget"}, "'budget' .*dates"),
    (table(budget=[5, 5, None, None]), {"horizon": "budget"}, "'a': horizon nan .*'budget'"),
    (table(budget=[2.5, 2.5, 2, 2]), {"horizon": "budget"}, r"'b': horizon 2\.5"),
    (table(solved=[1, 0, 0, 0]), {"outcome": "solved"}, "'b' .*'solved', 1 and 0"),
    (table(solved=[[k] for k in range(4)]), {"outcome": "solved", "step": None}, "'solved'"),
    (table(solved=["pass"] * 4), {"outcome": "solved"}, "2 of 2 runs.*outcome_map="),
]  # fmt: skip


def test_bad_tables_get_one_sentence():
    for frame, kwargs, words in BAD:
        with pytest.raises(ValueError, match=words) as caught:
            read(frame, **kwargs)
        assert "\n" not in str(caught.value)
