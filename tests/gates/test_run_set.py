"""Sets of runs: which runs count, what is known of each, and how they are read."""

import numpy as np
import pandas as pd
import pytest

from refused import must_refuse, not_refused
from trajscore import TrajectoryArray
from trajscore.gates import RunSet

NAN = np.nan
# an infrastructure error, a crash, a budget, and runs that ended by themselves
Y = np.array([1, 0, -1, -1, -1, 1])
STOPS = np.array(["done", "done", "infrastructure_error", "crash", "max_steps", "done"])
TASKS = ["b", "a", "a", "b", "c", "c"]
X = TrajectoryArray.from_list(
    [[0.9, 0.8], [0.2], [0.5], [0.4, 0.4], [0.3] * 3, [0.7]], ids=list("fedcba")
)


def runs(**options):
    options = {"tasks": TASKS, "stop_reason": STOPS, "spent": {"cost": np.arange(6.0)}} | options
    return RunSet({"judge": X}, Y, **options)


@pytest.mark.parametrize(
    ("censored", "ids", "labels", "n_left_out", "n_unobserved"),
    [("failure", "abcef", [1, 0, 0, 0, 1], 1, 2), ("drop", "aef", [1, 0, 1], 3, 2)],
)
def test_runs_that_count_in_the_order_of_ids(censored, ids, labels, n_left_out, n_unobserved):
    found = runs(censored=censored)
    assert found.ids.tolist() == list(ids)
    assert found.labels.tolist() == labels
    rows = ["fedcba".index(name) for name in ids]
    assert found.y.tolist() == Y[rows].tolist()
    assert found.lengths.tolist() == X.lengths[rows].tolist()
    assert found.tasks.tolist() == [TASKS[row] for row in rows]
    assert found.spent["cost"].tolist() == rows
    assert found.traces["judge"].ids.tolist() == list(ids)
    counts = (found.n_runs, found.n_left_out, found.n_unobserved, found.n_tasks)
    assert counts == (len(ids), n_left_out, n_unobserved, 3)
    assert f"{len(ids)} runs of 3 tasks (1 ended by an infrastructure error" in repr(found)
    assert f"{n_unobserved} without an outcome" in repr(found)


def test_outcomes_alone():
    found = RunSet(None, pd.Series([1, 0, 1], index=list("cab")))
    assert (found.predictors, found.has_ids, found.n_tasks) == ([], True, 0)
    assert (found.ids.tolist(), found.y.tolist()) == (["a", "b", "c"], [0, 1, 1])
    assert found.lengths.tolist() == [1, 1, 1]
    assert found.tasks is None
    assert not RunSet(None, [1, 0]).has_ids
    lengths = RunSet({"": X, "judge": X}, Y)  # of a trace without a name only that is read
    assert lengths.predictors == ["judge"]


def test_what_cannot_be_used():
    rows = [
        ({"spent": [1]}, r"spent must be a dict of numbers by name, got \[1\]"),
        ({"spent": {"cost": [1, 2]}}, r"spent\['cost'\] must be one number or 6"),
        ({"spent": {"cost": [1, NAN, 1, -np.inf, 1, 1]}}, r"row 3: spent\['cost'\] is -inf"),
        ({"tasks": ["a"]}, "tasks must be 6 labels"),
        ({"tasks": pd.Series([1] * 6, index=list("abcdef"))}, "row 0: tasks is of run 'a'"),
        ({"censored": "q_z"}, "censored"),
    ]
    must_refuse(lambda options: runs(**options), rows)
    few = {"stop_reason": ["done", "infrastructure_error"]}
    rows = [
        (None, [1, -1], few, "at least 2 runs, got 1"),
        (None, [-1, -1], {}, "none of the 2 runs has an observed outcome"),
    ]
    assert not not_refused(RunSet, rows)
    assert RunSet(None, [1, 1]).labels.mean() == 1


def test_tables_are_read_with_what_is_known_of_each_run(tmp_path):
    path = tmp_path / "a.csv"
    table = pd.DataFrame(
        {"run": [1, 1, 2], "step": [1, 2, 1], "p": [0.1, 0.2, 0.3], "solved": [1, 1, 0],
         "task_id": list("aab"), "cost": [1.0, 1.0, 3.0]},
    )  # fmt: skip
    table.assign(extra=[1, 2, 1]).to_csv(path, index=False)
    found = RunSet.read(path)
    assert "to use one as a score, pass scores='extra'" in found.notes  # an argument, not an option
    assert (found.n_runs, found.labels.tolist(), found.lengths.tolist()) == (2, [1, 0], [2, 1])
    assert found.has_ids
    assert "solved" in found.notes
