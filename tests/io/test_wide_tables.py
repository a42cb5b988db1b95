"""Tables with one row a run, as tables with one row a step."""

import numpy as np
import pandas as pd
import pytest

from trajscore.core.errors import ArgumentError
from trajscore.io.fields import Fields
from trajscore.io.tables import ROWS
from trajscore.io.wide_tables import _as_list, _has_row_a_run, _score_name, _split, as_long

NAN = np.nan


def table(**columns):
    return pd.DataFrame({"run": ["a", "b"], **columns})


P = {"p_1": [0.1, 0.4], "p_2": [0.2, NAN], "p_3": [0.3, NAN]}


def test_columns_become_rows_up_to_the_last_value_of_each_run():
    q = {"s1_q": [1, 2], "s2_q": [3, 4]}
    long, fields, remarks = as_long(table(**P, **q, solved=[1, 0]), Fields(wide=("p_", "s*_q")))
    assert long["run"].tolist() == ["a", "a", "a", "b", "b"]
    assert long["p"].tolist()[:4] == [0.1, 0.2, 0.3, 0.4]
    assert long["p"].isna().tolist() == [False] * 4 + [True]
    assert long["q"].fillna(-1).tolist() == [1, 3, -1, 2, 4]
    assert long["solved"].tolist() == [1, 1, 1, 0, 0]
    assert (fields.scores, fields.step, fields.wide) == (("p", "q"), ROWS, ())
    assert remarks == (
        "steps: columns p_1 to p_3 and s1_q to s2_q",
        "missing: 2 values before the last step of a run",
    )


def test_runs_without_a_value_are_left_out_and_counted():
    gone = {name: [NAN, *values[1:]] for name, values in P.items()}
    long, _, remarks = as_long(table(**gone), Fields(wide=("p_",)))
    assert long["run"].tolist() == ["b"]
    assert remarks[1:] == ("Left out: 1 run without a value in columns p_1 to p_3",)


@pytest.mark.parametrize(
    "named",
    [{"scores": ("x",)}, {"risks": ("p",)}, {"scales": (("p", 10.0),)}, {"confidence": "x"}],
)
def test_scores_that_are_named_are_not_named_again(named):
    _, fields, _ = as_long(table(**P), Fields(wide=("p_",), **named))
    assert fields.scores == named.get("scores", ())


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"q_1": [1, 2]}, r"no columns are named 'p_' with numbers from 1 on$"),
        ({"p_1": [1, 2], "p_3": 0}, "columns p_1 and p_3, but none with the number 2; add it"),
        ({"run": ["a", "a"], "p_1": [1, 2]}, "run ids occur twice; leave it out"),
    ],
)
def test_columns_that_cannot_be_steps(columns, message):
    with pytest.raises(ArgumentError, match=message):
        as_long(table().assign(**columns), Fields(wide=("p_",)))


def test_lists_become_rows():
    lists = {"p": [[0.1, 0.2], "[0.3, NaN]".replace("NaN", "nan")], "q": [(1, 2), np.array([3, 4])]}
    long, fields, remarks = as_long(table(**lists), Fields())
    assert long["run"].tolist() == ["a", "a", "b", "b"]
    assert long["p"].fillna(-1).tolist() == [0.1, 0.2, 0.3, -1]
    assert long["q"].tolist() == [1, 2, 3, 4]
    assert (fields.step, remarks) == (ROWS, ("steps: the lists p, q",))
    alone, _, remarks = as_long(table(**lists | {"q": [[1], []]}), Fields(scores=("p",)))
    assert len(alone) == 4
    assert remarks == ("steps: the list p",)
    with pytest.raises(ArgumentError, match="columns 'p', 'q' hold lists of different lengths"):
        as_long(table(**lists | {"q": [[1], [2, 3]]}), Fields())
    _, _, remarks = as_long(table(p=[[0.5], []]), Fields())
    assert remarks == ("steps: the list p", "Left out: 1 run without a value in the list p")


@pytest.mark.parametrize(
    "column", [["x", "[1]"], [["a"], ["b"]], [[True], [False]], [[], []], [None, None], [1, 2]]
)
def test_columns_that_hold_no_lists(column):
    frame = table(p=column)
    assert as_long(frame, Fields())[0] is frame


def test_lists_of_objects_become_columns():
    steps = [[{"t": 1, "p": 0.1, "solved": 0}, {"t": 2, "p": 0.2, "solved": 1}], [{"t": 1}]]
    long, fields, _ = as_long(table(log=steps, solved=[1, 0], p=[7, 8]), Fields())
    assert long["log.p"].fillna(-1).tolist() == [0.1, 0.2, -1]
    assert long["p"].tolist() == [7, 7, 8]
    assert long["solved"].tolist() == [1, 1, 0]
    assert long["log.solved"].fillna(-1).tolist() == [0, 1, -1]
    assert fields.step == "t"


def test_runs_without_ids_are_numbered():
    for frame in (table(**P), table(p=[[0.5], [0.5]])):
        wide = ("p_",) if "p_1" in frame else ()
        long, fields, _ = as_long(frame.drop(columns="run"), Fields(wide=wide))
        assert (fields.id, sorted(set(long["run"]))) == ("run", [0, 1])


def test_two_columns_of_one_name_are_told_apart():
    frame = table(a1_p=[1, 2], a2_p=[3, 4], b1_p=[5, 6], b2_p=[7, 8])
    _, fields, _ = as_long(frame, Fields(wide=("a*_p", "b*_p")))
    assert fields.scores == ("p", "confidence")


def test_all_that_is_left_out_is_counted():
    values = {"p_1": [NAN, NAN, 0.5], "p_2": [NAN, NAN, NAN]}
    frame = pd.DataFrame({"run": list("abc"), **values})
    _, _, remarks = as_long(frame, Fields(wide=("p_",)))
    assert remarks[1:] == ("Left out: 2 runs without a value in columns p_1 to p_2",)
    gap = {"p_1": [NAN, 0.1], "p_2": [0.2, 0.3]}
    long, _, remarks = as_long(table(**gap), Fields(wide=("p_",)))
    assert long["p"].isna().tolist() == [True, False, False, False]
    assert remarks[1:] == ("missing: 1 value before the last step of a run",)


def test_a_table_that_has_a_row_a_step_stays_as_it_is():
    frame = pd.DataFrame({"run": ["a", "a"], "p": [[0.1], [0.2]]})
    assert as_long(frame, Fields())[0] is frame
    frame = table(p=[[0.1, 0.2], [0.3]])
    assert as_long(frame, Fields(step="run"))[0] is frame
    assert len(as_long(frame, Fields())[0]) == 3


@pytest.mark.parametrize(
    ("column", "n_rows"),
    [
        (["[0.1, None]", "[0.2]"], 3),
        (["[0.1, nan]", None], 2),
        ([[0.1, None], [None]], 3),
        (["[0.1, 0.2", "[0.3]"], None),
        (["0.1, 0.2]", "[0.3]"], None),
        (["[0.1; 0.2]", "[0.3]"], None),
        ([[0.1, "x"], [0.2]], None),
        ([[{"p": 1}, 2], [3]], None),
        ([[{"p": 1}], [{"p": 2}, {"p": 3}]], 3),
        ([[None], [None]], None),
    ],
)
def test_which_columns_hold_lists(column, n_rows):
    frame = table(p=column)
    long, _, remarks = as_long(frame, Fields())
    assert (long is frame) == (n_rows is None)
    assert len(long) == (n_rows or 2)
    if None in column:
        assert remarks[1:] == ("Left out: 1 run without a value in the list p",)


def test_columns_of_objects_keep_their_names_unless_the_run_has_them():
    steps = [[{"id": 1, "q": 0.1, "success": 1}], [{"id": 2, "q": 0.2, "success": 0}]]
    long, _, _ = as_long(table(log=steps), Fields())
    assert {"run", "log.id", "q", "success"} <= set(long.columns)
    long, _, _ = as_long(table(log=steps, solved=[1, 0]), Fields())
    assert "log.success" in long


@pytest.mark.parametrize(
    ("columns", "name"),
    [("Sure (step {})", "Sure"), ("step {}: sure", "sure"), ("turn_{}", "confidence")],
)
def test_names_of_predictors(columns, name):
    prefix = columns.replace("{}", "*") if not columns.endswith("{}") else columns[:-2]
    frame = table(**{columns.format(k): [0.1, 0.2] for k in (1, 2, 3)})
    assert as_long(frame, Fields(wide=(prefix,)))[1].scores == (name,)


def test_lists_of_numbers_as_text():
    long, _, remarks = as_long(table(p=["[0.5, 0.25, 1.0]", "[0.5]"], solved=[1, 0]), Fields())
    assert (long["p"].tolist(), remarks) == ([0.5, 0.25, 1.0, 0.5], ("steps: the list p",))


@pytest.mark.parametrize("text", ["2026 03 01", "1.5", "v1.2 beta", "3.5 GB"])
def test_texts_that_are_no_lists(text):
    frame = table(p=[text, text], solved=[1, 0])
    assert as_long(frame, Fields())[0] is frame


@pytest.mark.parametrize("column", [[[0.5], 3], ["[0.5]", 0.25], [[0.5], "x"], [{"a": 1}, [0.5]]])
def test_columns_of_lists_and_other_values_stay(column):
    frame = table(p=column)
    assert as_long(frame, Fields())[0] is frame


@pytest.mark.parametrize(
    ("columns", "fields", "has"),
    [
        ({"a": [1, 2]}, Fields(id="a"), True), ({"a": [1, 1]}, Fields(id="a"), False),
        ({"a": [1, 2], "b": [1, 1]}, Fields(id="b"), False), ({"x": [1, 1]}, Fields(), True),
        ({"run": [1, 1]}, Fields(), False), ({"run": [1, 2]}, Fields(), True),
        ({"a": [1, 1], "b": [1, 2]}, Fields(id=("a", "b")), True),
        ({"a": [1]}, Fields(id="b"), False),
    ],
)  # fmt: skip
def test_tables_with_a_row_a_run(columns, fields, has):
    assert _has_row_a_run(pd.DataFrame(columns), fields) is has


@pytest.mark.parametrize("other", ["observation", "tool_calls", "logprobs"])
def test_lists_that_are_other_parts_of_steps_are_no_scores(other):
    frame = table(**{other: [[0.5, 0.25], [0.5]]})
    assert as_long(frame, Fields())[0] is frame
    long, _, remarks = as_long(frame.assign(p=frame[other]), Fields())
    assert remarks == ("steps: the list p",)
    assert long["p"].tolist() == [0.5, 0.25, 0.5]


def test_lists_of_outcomes_alone_are_those_of_several_samples():
    frame = table(solved=[[1, 0], [1, 1]])
    assert as_long(frame, Fields())[0] is frame
    long, _, _ = as_long(frame.assign(p=[[0.1, 0.2], [0.3, 0.4]]), Fields())
    assert long["solved"].tolist() == [1, 0, 1, 1]


@pytest.mark.parametrize(
    ("name", "split"),
    [
        ("p_1", ("p_", 1)), ("s12_p", ("s*_p", 12)), ("p", ("p", None)), ("7", ("", 7)),
        ("a1b2", ("a1b", 2)), ("a1b2c", ("a1b*c", 2)), ("p_007", ("p_", 7)), ("", ("", None)),
    ],
)  # fmt: skip
def test_what_a_column_begins_with_and_its_number(name, split):
    assert _split(name) == split


@pytest.mark.parametrize(
    ("value", "items"),
    [
        ([1], [1]), ((1, 2), [1, 2]), ("[1, null]", [1, None]), ("[nan, None]", [None, None]),
        ("0.5 0.25", ["0.5 0.25"]), ("[0.5;0.25]", ["[0.5;0.25]"]), ("[a]", ["[a]"]), (None, []),
        (3, []), ("[-1.5e-3]", [-0.0015]), ({"a": 1}, []),
    ],
)  # fmt: skip
def test_items_of_a_list_in_any_form(value, items):
    assert _as_list(value) == items


def test_columns_of_several_prefixes_are_those_of_the_longest():
    frame = table(p1=[0.1, 0.2], p2=[0.3, NAN], q1=[0.5, NAN])
    long, fields, remarks = as_long(frame, Fields(wide=("q", "p")))
    assert long.fillna(-1).to_dict("list") == {
        "run": ["a", "a", "b"], "q": [0.5, -1, -1], "p": [0.1, 0.3, 0.2],
    }  # fmt: skip
    assert fields.scores == ("q", "p")
    assert remarks == (
        "steps: columns q1 to q1 and p1 to p2",
        "missing: 2 values before the last step of a run",
    )


@pytest.mark.parametrize(
    ("prefix", "taken", "name"),
    [
        ("p_", [], "p"), ("s*_p", [], "p"), ("s*", [], "s"), ("step_", [], "confidence"),
        ("my step *", [], "my"), ("Turn", [], "confidence"), ("p_", ["p"], "confidence"),
        ("turned_", [], "turned"), ("(p)#:", [], "p"), ("", [], "confidence"),
        ("a*b*", [], "a*b"),
    ],
)  # fmt: skip
def test_names_of_the_scores_in_columns(prefix, taken, name):
    assert _score_name(prefix, taken) == name
