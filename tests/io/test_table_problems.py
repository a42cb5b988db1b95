"""What of tables is asked about, or refused with the words that mend it."""

import numpy as np
import pandas as pd
import pytest

from trajscore.core.errors import ArgumentError
from trajscore.io._table_problems import (
    _own_of_runs,
    _run_of_several,
    ids_of_tasks,
    is_row_a_run,
    refuse_codes,
    refuse_codes_of,
    refuse_dates,
    refuse_durations,
    refuse_lines_above,
    refuse_lists,
    refuse_names_in_rows,
    refuse_objects,
    refuse_several,
    refuse_shared_names,
    refuse_words,
)
from trajscore.io.fields import Fields
from trajscore.io.tables import choose_columns, read_table, with_last_outcome, with_times

TABLE = pd.DataFrame(
    {"run": ["a", "a", "b", "b"], "step": [1, 2, 1, 2], "p": [0.5, 0.25, 0.75, 1.0],
     "solved": [1, 1, 0, 0]}
)  # fmt: skip


@pytest.mark.parametrize("first", ["31.03.2026", "3/31/2026 09:00", "31-03-26"])
def test_dates_of_which_day_and_month_may_be_either(first):
    table = pd.DataFrame({"timestamp": [first, "01.04.2026"]})
    with pytest.raises(ArgumentError, match=r"'timestamp'\], dayfirst=True") as error:
        with_times(table, "timestamp")
    assert first in str(error.value)
    mended = pd.to_datetime(table["timestamp"].iloc[1:], dayfirst=True).to_frame()
    assert with_times(mended, "timestamp")[1] == "timestamp"
    assert with_times(pd.DataFrame({"timestamp": ["2026-03-31"]}), "timestamp")[1] == "timestamp"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (["low", "high", "low", "medium"], "holds words such as 'low', 'high', 'medium'"),
        ([0.5, -1, 0.25, -1.0], "is -1 in 2 rows, and between 0 and 1 in the others"),
    ],
)
def test_scores_that_are_words_or_codes(values, message):
    with pytest.raises(ArgumentError, match=message):
        choose_columns(TABLE.assign(p=values), Fields())


@pytest.mark.parametrize("values", [[-0.5, -1, 0.25, 1], [np.nan, 0.5, 0.25, 1], [-1, -1, 1, 1]])
def test_scores_that_may_be_what_they_are(values):
    chosen, _ = choose_columns(TABLE.assign(p=values), Fields())
    assert chosen.scores == ("p",)
    assert choose_columns(TABLE.assign(p=[0.5, -1.0, 0, 0]), Fields(scores=("p",)))[0].scores


@pytest.mark.parametrize("above", ["Runs of May\n", "Runs,,,\nby,Kim,,\n\n", "# one\n# two\n"])
def test_lines_above_the_names_of_columns(tmp_path, above):
    path = tmp_path / "t.csv"
    path.write_text(above + TABLE.to_csv(index=False))
    line = above.count("\n") + 1
    with pytest.raises(ValueError, match=rf"stand in line {line}; .* tail -n \+{line} FILE"):
        read_table(path)
    path.write_text("".join(path.read_text().splitlines(keepends=True)[line - 1 :]))
    assert read_table(path).equals(TABLE)


def test_outcomes_that_are_lists():
    with pytest.raises(ValueError, match=r"df.explode\(\['solved', ...\]\)"):
        choose_columns(TABLE.assign(solved=[[1, 0]] * 4), Fields())


@pytest.mark.parametrize("order", [[0, 1, 2, 3], [3, 1, 2, 0]])
def test_the_last_outcome_of_a_run(order):
    table = TABLE.assign(solved=[0, 1, 0.5, 0]).iloc[order]
    with pytest.raises(ArgumentError, match=r"solved.-1'; if their sum does"):
        choose_columns(table, Fields())
    last, names = with_last_outcome(table, Fields(outcome="solved.-1"))
    assert names.outcome == "solved"
    assert last.sort_index()["solved"].tolist() == [1, 1, 0, 0]


def test_several_trials_under_an_id():
    table = TABLE.assign(seed=[0, 1, 0, 0])
    with pytest.raises(ArgumentError, match="id='run' id='seed'"):
        choose_columns(table, Fields())
    assert choose_columns(table, Fields(id="run"))[0].id == "run"  # as each step stands once
    with pytest.raises(ArgumentError, match="id='run' id='seed'"):
        choose_columns(table.assign(step=1), Fields(id="run"))


@pytest.mark.parametrize("names", ["run,step,p,p,solved", "run,,,p,p"])
def test_names_that_stand_twice(tmp_path, names):
    path = tmp_path / "t.csv"
    path.write_text(f"{names}\na,1,0.5,0.5,1\n")
    with pytest.raises(ValueError, match=r"2 of its columns are named 'p'.*'_'\.join"):
        read_table(path)


def test_names_of_values_in_a_column():
    table = TABLE.melt(["run", "step"], var_name="metric")
    with pytest.raises(ValueError, match="holds names of values") as error:
        choose_columns(table, Fields())
    code = str(error.value).partition("in pandas: ")[2]
    words = {"answer": ["y", "x"], "task": "a", "n": [1, 2]}
    refuse_names_in_rows(pd.DataFrame(words))
    refuse_names_in_rows(TABLE.assign(what=[["success"], "confidence", "success", "success"]))
    df = eval(code.partition("df = ")[2], {"df": table})
    assert choose_columns(df, Fields())[0].outcome == "solved"
    assert df["p"].tolist() == TABLE["p"].tolist()


def test_decimal_commas():
    table = TABLE.assign(confidence=["0,5", "0,25", ",75", "1,0"])
    with pytest.raises(ArgumentError, match="numbers with decimal commas such as '0,5'") as error:
        choose_columns(table, Fields())
    assert ".str.replace(',', '.').astype(float)" in str(error.value)


def test_times_that_fall_within_a_run_are_asked_about():
    table = pd.DataFrame({"run": ["a", "a", "b", "b"], "time": [1.5, 3, 2, 4], "t": [2, 1, 4, 3]})
    refuse_durations(table, ("time",), ["run"])  # it falls between two runs only
    refuse_durations(table, ("t",), ["run"])  # not named like a time
    refuse_durations(table, (), ["run"])
    refuse_durations(table.assign(time=["b", "a", "b", "a"]), ("time",), ["run"])
    with pytest.raises(ArgumentError) as error:
        refuse_durations(table.assign(time=[1.5, 3, 2, 0.25]), ("time",), ["run"])
    assert str(error.value) == (
        "column 'time' goes from 2 to 0.25 in rows 2 and 3, so it may be how long each step took. "
        "If the rows are in order, pass step='rows'; if it is a clock, pass step='time'"
    )
    refuse_durations(table.assign(time=[2e8, 3e8, 3e8, 2e8]), ("time",), ["run"])  # dates
    refuse_durations(table.assign(time=[3, 3, 3, 3]), ("time",), ["run"])


def test_tables_with_a_row_a_run():
    for column, is_one in (
        ({"run": [1, 2]}, True), ({"run": [1, 1]}, False), ({"run": [1, "1"]}, False),
        ({"task": ["a", "a"]}, False), ({"run": [1, 2], "task": ["a", "a"]}, True),
        ({"x": [1, 1]}, True),
    ):  # fmt: skip
        assert is_row_a_run(pd.DataFrame(column)) is is_one


def test_tasks_and_trials_are_proposed_as_ids():
    table = pd.DataFrame({"task": [1, 1, 2], "trial": [1, 2, 1], "step": [1, 1, 1]})
    assert ids_of_tasks(table) == "{argument:id=task} {argument:id=trial}"
    assert ids_of_tasks(table.assign(step=[1, 2, 1], trial=1)) == "{argument:id=task}"
    assert ids_of_tasks(table.assign(trial=1)) == ""  # a step stands twice
    assert (
        ids_of_tasks(table.drop(columns="task")) == ids_of_tasks(table.drop(columns="step")) == ""
    )


def test_the_first_run_with_several_values():
    table = pd.DataFrame({"run": ["b", "b", "a", "a"], "k": [1, 1, 2, 2], "model": list("xxyz")})
    assert _run_of_several(table, ["run"], "model") == "a"
    assert _run_of_several(table, ["run", "k"], "model") == "a-2"
    assert _run_of_several(table, ["run"], "k") == ""
    assert _run_of_several(table.assign(model=[[1]] * 4), ["run"], "model") == ""


def test_codes_in_columns_of_steps():
    table = pd.DataFrame({"p_1": [0.5, 0.0], "p_2": [1.0, -1.0], "p_3": [-1.0, np.nan]})
    names = {"p": list(table)}
    with pytest.raises(ArgumentError, match="columns p_1 to p_3 are -1 in 2 cells, and between 0"):
        refuse_codes_of(table, names)
    refuse_codes_of(table.replace(-1, 0.5), names)
    refuse_codes_of(table.replace(1.0, 1.5), names)
    refuse_codes_of(table.replace(0.0, -0.5), names)


@pytest.mark.parametrize(
    ("values", "n"),
    [
        ([-1, 0.5, 1], 1),
        ([-1, 0.0, -1], 2),
        ([-1, 1.5, 1], 0),
        ([-1, -0.5, 1], 0),
        ([0.5, 1, 0], 0),
    ],
)
def test_codes_among_fractions(values, n):
    table = pd.DataFrame({"p": np.array(values, float)})
    if n:
        with pytest.raises(ArgumentError, match=f"'p' is -1 in {n} row.*between 0 and 1 in the"):
            refuse_codes(table, ("p",))
    else:
        refuse_codes(table, ("p",))
    refuse_codes(pd.DataFrame({"p": [-1, 0, 1]}), ("p",))  # whole numbers


def test_times_are_durations_by_the_largest_of_them():
    table = pd.DataFrame({"run": ["a"] * 3, "time": [2e8, 5.0, 2e8]})
    refuse_durations(table, ("time",), ["run"])
    with pytest.raises(ArgumentError, match="goes from 3 to 1 in rows 0 and 1"):
        refuse_durations(table.assign(time=[3, 1, 2]), ("time",), ["run"])
    two = pd.DataFrame({"task": [1, 1, 1], "run": [1, 2, 2], "time": [3, 2, 1]})
    with pytest.raises(ArgumentError, match="goes from 2 to 1 in rows 1 and 2"):
        refuse_durations(two, ("time",), ["task", "run"])
    refuse_durations(two.assign(time=[3, 1, 2]), ("time",), ["task", "run"])


@pytest.mark.parametrize(
    ("values", "is_list"),
    [([[1], 0], True), ([None, {"a": 1}], True), ([1, 0], False), (["x", None], False)],
)
def test_one_list_among_outcomes_is_enough(values, is_list):
    table = pd.DataFrame({"solved": pd.Series(values), "won": [[1], [2]]})
    if is_list:
        with pytest.raises(ValueError, match="solved"):
            refuse_objects(table, None)
    else:
        refuse_objects(table, None)
    with pytest.raises(ValueError, match="won"):
        refuse_objects(table, "won")
    with pytest.raises(ValueError, match="won"):
        refuse_objects(table, "not won")
    refuse_objects(table, "other")
    refuse_objects(pd.DataFrame({"x": [[1]]}), None)


@pytest.mark.parametrize(
    ("head", "line"),
    [
        (["run,step,p"], None), (["# x", "run,step,p"], 2), (["# x", "", " run , \"step\" "], 3),
        (["x", "run,p_1"], None), (["x", "run,solved"], 2), (["x", "step,score"], 2),
        (["run,step", "run,step"], None), (["x", "run,id"], None), ([], None),
        (["x", "task,solved"], 2), (["x", "run;step"], None),
    ],
)  # fmt: skip
def test_which_line_has_the_names_of_columns(head, line):
    if line is None:
        refuse_lines_above(head, ",")
        return
    with pytest.raises(ValueError) as error:
        refuse_lines_above(head, ",")
    assert str(error.value) == (
        f"the names of its columns seem to stand in line {line}; delete the lines above, "
        f"tail -n +{line} FILE > table.csv, and give table.csv"
    )


@pytest.mark.parametrize(
    ("line", "name", "n"),
    [
        ("a,b,a", "a", 2), ("a,b,b,a,b", "b", 3), ("a,,,b", None, 0), ('"a,b",a', None, 0),
        ('"a,b","a,b"', "a,b", 2), ("", None, 0), ("a;a", None, 0),
    ],
)  # fmt: skip
def test_columns_that_share_a_name(line, name, n):
    head = [line, "x,x"]
    if name is None:
        refuse_shared_names(head, ",")
        refuse_shared_names([], ",")
        return
    with pytest.raises(ValueError, match=rf"^{n} of its columns are named '{name}'; give each"):
        refuse_shared_names(head, ",")


def test_names_of_values_are_told_by_their_rows():
    rows = {"run": ["a", "a"], "metric": ["success", "confidence"], "n": [1, 2], "value": [1, 0.5]}
    table = pd.DataFrame(rows)
    with pytest.raises(ValueError) as error:
        refuse_names_in_rows(table.drop(columns="n"))
    assert str(error.value) == (
        "column 'metric' holds names of values, such as 'success'; write a column for each of "
        "them, in pandas: df = df.pivot_table(index=['run'], columns='metric', "
        "values='value').reset_index()"
    )
    refuse_names_in_rows(table)  # no two rows have the same other values
    refuse_names_in_rows(table.drop(columns="n").assign(metric="success"))
    refuse_names_in_rows(table[["run", "metric"]])
    refuse_names_in_rows(table[["metric", "value"]])
    refuse_names_in_rows(table.drop(columns="n").assign(run=["a", "b"]))


def test_own_columns_of_runs():
    table = pd.DataFrame({"run": ["a", "a"], "model": ["x", "y"], "seed": [1, 1], "n": [1, 2]})
    assert _own_of_runs(table, ["run"]) == ["model"]
    assert _own_of_runs(table, ["run", "model"]) == []
    assert _own_of_runs(table.assign(seed=[1, 2]), ["run"]) == ["model", "seed"]
    for is_guessed, step, is_refused in (
        (True, "n", True), (False, "n", False), (False, "seed", True), (False, "rows", False),
        (True, "rows", True),
    ):  # fmt: skip
        if is_refused:
            with pytest.raises(ArgumentError, match="run 'a' has several values of 'model'"):
                refuse_several(table, ["run"], step, is_guessed=is_guessed)
        else:
            refuse_several(table, ["run"], step, is_guessed=is_guessed)
    refuse_several(table.assign(model="x"), ["run"], "seed", is_guessed=True)


def test_outcomes_with_a_value_a_step_are_asked_about():
    table = TABLE.assign(solved=[1, 1, 0.5, 0])
    ask = "if id='run' names tasks, give the ids of runs instead, and group='run'; "
    for is_guessed in (True, False):
        with pytest.raises(ArgumentError) as error:
            refuse_lists(table, ["run"], "solved", is_guessed=is_guessed)
        assert str(error.value) == (
            "column 'solved' has several values in run 'b', 0.5, 0.0 ...; "
            f"{'' if is_guessed else ask}if the last one counts, pass "
            "outcome='solved.-1'; if their sum does, add a column, in pandas: df['total'] = "
            "df.groupby(['run'])['solved'].transform('sum'); otherwise correct the rows, or name "
            "another column with outcome"
        )
    refuse_lists(TABLE, ["run"], "solved")
    refuse_lists(TABLE, ["run"], "other")
    many = pd.DataFrame({"run": ["a"] * 5, "solved": [1, 0, 1, 0, 0]})
    with pytest.raises(ArgumentError, match=r"in run 'a', 1, 0 \.\.\.; if"):
        refuse_lists(many, ["run"], "not solved")


@pytest.mark.parametrize(
    ("values", "start"),
    [
        (["low", "high", None, "low"], "column 'p' holds words such as 'low', 'high'. Write"),
        (["a", "b", "c", "d"], "column 'p' holds words such as 'a', 'b', 'c'. Write a number"),
        (["0,5", ",25", "1,0", "0,5"], "column 'p' holds numbers with decimal commas such as"),
        (["0,5", "x", "1,0", "0,5"], "column 'p' holds words such as '0,5', 'x', '1,0'. Write"),
        (["0.5", "x", "y", "z"], None), ([None] * 4, None), ([0.5, 1, 0, 1], None),
    ],
)  # fmt: skip
def test_scores_of_words(values, start):
    table = TABLE.assign(p=pd.Series(values))
    refuse_words(table, ())
    if start is None:
        refuse_words(table, ("step", "p"))
        return
    with pytest.raises(ArgumentError) as error:
        refuse_words(table, ("step", "p"))
    assert str(error.value).startswith(start)


@pytest.mark.parametrize(
    ("values", "odd"),
    [
        (["2026-03-31", "31.03.26 09:00"], "31.03.26 09:00"), (["1/2/2026", "x"], "1/2/2026"),
        ([None, "01-02-2026T10:00"], None), (["2026-03-31", None], None), ([1.5, 2.5], None),
        (["10:20:30", "123/4/2026"], None), (["1.2.26x", "1.2.3"], None),
    ],
)  # fmt: skip
def test_which_dates_may_be_either(values, odd):
    column = pd.Series(values, name="when")
    if odd is None:
        refuse_dates(column)
        return
    with pytest.raises(ArgumentError, match=f"^column 'when' has '{odd}', in which day and month"):
        refuse_dates(column)


def test_the_most_specific_name_of_tasks_and_steps_is_proposed():
    table = pd.DataFrame({"task_id": [1, 2], "task": [1, 1], "step_idx": [1, 1], "step": [1, 1]})
    assert ids_of_tasks(table) == "{argument:id=task_id}"
    assert ids_of_tasks(table.assign(task_id=1, step=[1, 2])) == ""
    assert ids_of_tasks(table.assign(task_id=1, step_idx=[1, 2])) == "{argument:id=task_id}"
    assert is_row_a_run(pd.DataFrame({"run_id": [1, 2], "id": [1, 1]}))
    assert not is_row_a_run(pd.DataFrame({"run_id": [1, 1], "id": [1, 2]}))
