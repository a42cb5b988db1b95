"""The runs on which a predictor was most wrong, by hand."""

from types import SimpleNamespace

import numpy as np
import pytest

from trajscore import TrajectoryArray
from trajscore.core.weights import as_step_weights
from trajscore.report._data import Options, Source
from trajscore.report._worst_runs import worst_runs

KEY = "judge", "as_given"


def data_of(cells, lengths, y, labels, *, score="brier", weights="uniform", **meta):
    X = TrajectoryArray(cells, lengths, ids=list("abcdefgh"[: len(lengths)]), meta=meta)
    return SimpleNamespace(
        traces={KEY: X},
        labels={KEY: np.array(labels, dtype=float)},
        outcomes={KEY: np.array(y, dtype=float)},
        options=Options((score,), as_step_weights(weights), "weighted"),
        source=Source(outcome="Won"),
    )


@pytest.fixture
def data():
    return data_of(
        [0.9, 0.2, 0.5, 0.1, 0.1, 0.7, 0.6, 0.6, 0.4, 0.4],
        [2, 1, 3, 2, 2],
        [1, 0, 1, -1, 0.5],
        [1, 0, 1, 0, 0.5],
        stop_reason=[None, "max", "done", None, "done"],
        task=["x", None, "y", "z", "z"],
    )


def test_the_largest_loss_comes_first_and_runs_without_an_outcome_last(data):
    table = worst_runs(data, KEY, 9)
    assert table.index.tolist() == [2, 0, 4, 1, 3]
    assert table["id"].tolist() == ["c", "a", "e", "b", "d"]
    # means of squared gaps, to either outcome by half in the run that is graded
    assert table["loss"].tolist() == pytest.approx(
        [(0.81 + 0.81 + 0.09) / 3, (0.01 + 0.64) / 2, (0.36 + 0.16) / 2, 0.25, 0.36]
    )
    assert table["outcome"].tolist() == ["won", "won", "graded 0.5", "failed", "not observed"]
    assert table["label"].tolist() == [1, 1, 0.5, 0, 0]
    assert table["steps"].tolist() == [3, 2, 2, 1, 2]
    assert table["reason"].tolist() == ["done", "", "done", "max", ""]
    assert table["task"].tolist() == ["y", "x", "z", "", "z"]
    assert worst_runs(data, KEY, 2).index.tolist() == [2, 0]
    assert worst_runs(data, KEY, 0).empty


def test_the_flag_is_the_step_that_is_furthest_off_or_moved_most(data):
    table = worst_runs(data, KEY, 9).set_index("id")
    # of c the first step is as far off as any: flagged is where the forecast moved most
    assert table["flag"].to_dict() == {"a": 2, "b": 1, "c": 3, "d": 1, "e": 1}
    assert table["value"].to_dict() == {"a": 0.2, "b": 0.5, "c": 0.7, "d": 0.6, "e": 0.4}
    assert table["first"].to_dict() == {"a": 0.9, "b": 0.5, "c": 0.1, "d": 0.6, "e": 0.4}
    assert table["last"].to_dict() == {"a": 0.2, "b": 0.5, "c": 0.7, "d": 0.6, "e": 0.4}


def test_a_run_that_moved_down_most_is_flagged_there_too():
    data = data_of([0.9, 0.3, 0.5, 0.2, 0.6], [3, 2], [0, 0], [0, 0])
    table = worst_runs(data, KEY, 9).set_index("id")
    assert table["flag"].to_dict() == {"a": 2, "b": 2}
    assert table["reason"].tolist() == ["", ""]  # no column of them


def test_losses_weigh_steps_and_count_from_the_best_score():
    early = data_of([0.5, 0.2], [2], [1], [1], weights="early")
    weight = np.array([1, 1 / np.sqrt(2)])
    own = worst_runs(early, KEY, 1)["loss"].iloc[0]
    assert own == pytest.approx(np.average([0.25, 0.64], weights=weight))
    # the best Beta(4, 2) score of a success is not 0 by definition, but here it is
    beta = data_of([1.0, 0.0], [1, 1], [1, 0], [1, 0], score=("beta", 4, 2))
    assert worst_runs(beta, KEY, 2)["loss"].tolist() == pytest.approx([0, 0])


@pytest.mark.filterwarnings("ignore:weights for steps")
def test_a_run_whose_steps_have_no_weight_loses_what_is_best():
    data = data_of([0.5, 0.3, 0.9], [1, 2], [1, 1], [1, 1], weights=lambda t: (t > 1) * 1.0)
    assert worst_runs(data, KEY, 2).set_index("id")["loss"].to_dict() == pytest.approx(
        {"a": 0.0, "b": 0.01}
    )


def test_the_step_that_is_furthest_off_need_not_be_where_it_moved_most():
    data = data_of([0.5, 0.3, 0.9, 0.5, 0.7, 0.1], [3, 3], [1, 0], [1, 0])
    table = worst_runs(data, KEY, 9).set_index("id")
    assert table["flag"].to_dict() == {"a": 2, "b": 2}
