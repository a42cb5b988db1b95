"""A judge's verdicts and labels from files, by hand."""

import numpy as np
import pandas as pd
import pytest
from trajscore.report._labelled_inputs import has_stop, ids_of, load_labelled

from trajscore.core.errors import ArgumentError
from trajscore.io.fields import Fields

FIELDS = Fields(scores=("value",), stop_reason="why")


@pytest.fixture
def path(tmp_path):
    """Four runs of two steps; the third was stopped before a verdict."""
    rows = pd.DataFrame(
        {
            "run": np.repeat(list("abcd"), 2), "step": [1, 2] * 4,
            "value": np.linspace(0.1, 0.8, 8), "grade": np.repeat([1, 0, np.nan, 1], 2),
            "why": np.repeat(["done", "done", "max_steps", ""], 2),
        }
    )  # fmt: skip
    rows.to_csv(tmp_path / "runs.csv", index=False)
    return tmp_path / "runs.csv"


def labels_in(path, **columns):
    table = pd.DataFrame({"run": ["a", "d"], "outcome": [1, 0], **columns})
    table.to_csv(path.parent / "labels.csv", index=False)
    return path.parent / "labels.csv"


def test_a_verdict_is_no_outcome(path):
    inputs = load_labelled(path, FIELDS, judge="grade", outcome_map=None)
    assert ids_of(inputs).tolist() == ["a", "b", "c", "d"]
    assert inputs.y.tolist() == [-1, -1, -1, -1]
    assert inputs.judge.tolist() == [1, 0, 0, 1]
    np.testing.assert_array_equal(inputs.label_probability, [0, 0, np.nan, 0])
    assert inputs.remarks == ()
    assert has_stop(inputs).tolist() == [True, True, True, False]


def test_labels_with_their_chances(path):
    labels = labels_in(path, label_probability=[0.5, 0.25])
    inputs = load_labelled(path, FIELDS, judge="grade", labels=labels, outcome_map=None)
    assert inputs.y.tolist() == [1, -1, -1, 0]
    assert inputs.judge.tolist() == [1, 0, 0, 1]
    np.testing.assert_array_equal(inputs.label_probability, [0.5, 1, np.nan, 0.25])
    assert inputs.remarks == ()


def test_labels_without_chances_are_equally_likely_among_runs_with_a_verdict(path):
    inputs = load_labelled(path, FIELDS, judge="grade", labels=labels_in(path), outcome_map=None)
    assert inputs.y.tolist() == [1, -1, -1, 0]
    np.testing.assert_allclose(inputs.label_probability, [2 / 3, 2 / 3, np.nan, 2 / 3])
    assert inputs.remarks == ("each run is taken to have been equally likely to be labelled",)


def test_labels_alone(path):
    inputs = load_labelled(path, FIELDS, labels=labels_in(path), outcome_map=None)
    assert inputs.judge is None
    assert inputs.label_probability.tolist() == [0.5] * 4  # two of four
    assert inputs.y.tolist() == [1, -1, -1, 0]
    assert inputs.remarks == ("each run is taken to have been equally likely to be labelled",)


def test_where_every_run_has_a_verdict_chances_are_left_to_the_report(path):
    table = pd.read_csv(path).assign(grade=np.repeat([1, 0, 1, 1], 2))
    table.drop(columns="why").to_csv(path, index=False)
    inputs = load_labelled(
        path, Fields(scores=("value",)), judge="grade", labels=labels_in(path), outcome_map=None
    )
    assert inputs.judge.tolist() == [1, 0, 1, 1]
    assert inputs.label_probability is None
    assert not has_stop(inputs).any()


def test_a_label_of_a_run_that_was_stopped_counts(path):
    labels = labels_in(path, run=["a", "c"], label_probability=[0.5, 0.2])
    inputs = load_labelled(path, FIELDS, judge="grade", labels=labels, outcome_map=None)
    assert inputs.y.tolist() == [1, -1, 0, -1]
    np.testing.assert_array_equal(inputs.label_probability, [0.5, 1, 0.2, 1])


def test_a_run_without_verdict_and_without_stop_is_named(path):
    table = pd.read_csv(path).assign(grade=np.repeat([1, 0, np.nan, np.nan], 2))
    table.to_csv(path, index=False)
    with pytest.raises(ArgumentError, match="judge: run 'd' has no verdict; get one for every run"):
        load_labelled(path, FIELDS, judge="grade", outcome_map=None)


def test_without_judge_and_labels_it_is_a_usual_table(path):
    inputs = load_labelled(path, Fields(scores=("value",), outcome="grade"), outcome_map=None)
    assert inputs.y.tolist() == [1, 0, -1, 1]
    assert inputs.judge is None


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"judge": "grade", "path": None}, "judge needs a table or a log; name it"),
        ({"labels": "labels.csv", "path": None}, "labels needs a table or a log; name it"),
        (
            {"judge": "grade", "fields": Fields(outcome="solved")},
            "judge and outcome= exclude each other; outcomes come from labels=",
        ),
        ({"labels": "x", "outcomes": {"a": 1}}, "labels and outcomes= exclude each other"),
    ],
)
def test_what_excludes_each_other(path, options, said):
    with pytest.raises(ArgumentError, match=said):
        load_labelled(**{"path": path, "outcome_map": None} | options)
