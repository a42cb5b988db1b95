"""Sets of runs: which runs count, what is known of each, and how they are read."""

import numpy as np
import pandas as pd
import pytest

from refused import must_refuse, not_refused
from trajscore import TrajectoryArray
from trajscore.gates import Gate, RunSet, check

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
    assert (found.ids.tolist(), found.labels.tolist()) == (list(ids), labels)
    rows = ["fedcba".index(name) for name in ids]
    assert found.y.tolist() == Y[rows].tolist()
    assert found.lengths.tolist() == X.lengths[rows].tolist()
    assert found.tasks.tolist() == [TASKS[row] for row in rows]
    assert (found.spent["cost"].tolist(), found.traces["judge"].ids.tolist()) == (rows, list(ids))
    counts = (found.n_runs, found.n_left_out, found.n_unobserved, found.n_tasks)
    assert counts == (len(ids), n_left_out, n_unobserved, 3)
    assert found.n_left_out == sum(found.left_out.values())
    assert "(1 left out (lost by the harness: infrastructure_error); 2 " in repr(found)


def test_outcomes_alone():
    found = RunSet(None, pd.Series([1, 0, 1], index=list("cab")))
    assert (found.predictors, found.has_ids, found.n_tasks) == ([], True, 0)
    assert (found.ids.tolist(), found.y.tolist()) == (["a", "b", "c"], [0, 1, 1])
    assert (found.lengths.tolist(), found.tasks) == ([1, 1, 1], None)
    assert not RunSet(None, [1, 0]).has_ids
    lengths = RunSet({"": X, "judge": X}, Y)  # of a trace without a name only that is read
    assert lengths.predictors == ["judge"]


def test_what_cannot_be_used():
    rows = [
        ({"spent": {"cost": [1, NAN, 1, -np.inf, 1, 1]}}, r"row 3: spent\['cost'\] is -inf"),
        ({"tasks": pd.Series([1] * 6, index=list("abcdef"))}, "row 0: tasks is of run 'a'"),
        ({"spent": {"cost": [1, 2]}}, r"spent\['cost'\] must be one number or 6"),
        ({"spent": [1]}, r"spent must be a dict of numbers by name, got \[1\]"),
        ({"tasks": ["a"]}, "tasks must be 6 labels"), ({"censored": "q_z"}, "censored"),
    ]  # fmt: skip
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
    assert (found.has_ids, found.labels.tolist(), found.lengths.tolist()) == (True, [1, 0], [2, 1])
    assert "solved" in found.notes


def test_nothing_leaves_a_denominator_unsaid(tmp_path):
    gaps = np.where(np.arange(60) % 12 == 0, NAN, np.linspace(0.1, 0.9, 60))  # of 5 runs
    table = {"run": range(60), "step": 1, "judge": gaps, "other": 0.5, "solved": [0, 1] * 30}
    pd.DataFrame(table).to_csv(path := tmp_path / "a.csv", index=False)
    base, reason = RunSet.read(path), "a value of judge is missing"
    assert base.counted == f"60 runs (forecasts of 5 not judged ({reason}))"
    result = check(base, base, Gate("AUROC", "judge", margin=0.2))
    assert base.judged("judge").complete()["judge"].sum() == 55
    assert f"new: {base.counted}." in str(result)
    assert f'"unscored": {{"{reason}": 5}}' in result.to_json()
