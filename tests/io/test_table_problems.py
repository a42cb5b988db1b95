"""What of tables is asked about, or refused with the words that mend it."""

import numpy as np
import pandas as pd
import pytest

from trajscore.core.errors import ArgumentError
from trajscore.io._table_problems import (
    _own_of_runs,
    _run_of_several,
    refuse_codes,
    refuse_dates,
    refuse_durations,
    refuse_lists,
    refuse_objects,
    refuse_several,
)
from trajscore.io.fields import Fields
from trajscore.io.tables import choose_columns, with_last_outcome, with_times

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


def test_the_first_run_with_several_values():
    table = pd.DataFrame({"run": ["b", "b", "a", "a"], "k": [1, 1, 2, 2], "model": list("xxyz")})
    assert _run_of_several(table, ["run"], "model") == "a"
    assert _run_of_several(table, ["run", "k"], "model") == "a-2"
    assert _run_of_several(table, ["run"], "k") == ""
    assert _run_of_several(table.assign(model=[[1]] * 4), ["run"], "model") == ""


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
