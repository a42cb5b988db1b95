"""What of tables is asked about, or refused with the words that mend it."""

import numpy as np
import pandas as pd
import pytest

from trajscore.core.errors import ArgumentError
from trajscore.io._table_problems import (
    _run_of_several,
    ids_of_tasks,
    is_row_a_run,
    refuse_codes,
    refuse_codes_of,
    refuse_durations,
    refuse_names_in_rows,
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
