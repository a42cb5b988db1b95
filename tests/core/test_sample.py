import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trajscore import (
    DensityRatioEProcess,
    PlattCrossFitCalibrator,
    PrefixForecaster,
    TrajectoryArray,
    evaluate,
)
from trajscore.core.sample import check_sample, ended_where_known
from trajscore.metrics import (
    censored_tps_samples,
    censored_tps_score,
    step_calibration_error,
    step_profile,
    tps_decomposition,
    tps_samples,
    tps_score,
    trajectory_diagnostics,
)
from trajscore.streaming import TPSAccumulator


@pytest.fixture
def sample():
    X = TrajectoryArray.from_list([[0.1], [0.2, 0.3], [0.4]], ids=["c", "a", "b"])
    return check_sample(
        {"judge": X, "verbal": X.with_cells(1 - X.cells)},
        [1, 0, None],
        groups=["u", "v", "u"],
        sample_weight=[1, 2, 3],
        q_z=0.25,
        several=True,
    )


def test_everything_is_one_for_each_run(sample):
    assert len(sample) == 3
    assert list(sample.traces) == ["judge", "verbal"]
    assert sample.X is sample.traces["judge"]
    assert sample.y.tolist() == [1, 0, -1]
    assert sample.groups.tolist() == [0, 1, 0]
    assert sample.q_z.tolist() == [0.25] * 3


def test_what_is_not_given_is_none_and_weights_are_one():
    sample = check_sample([[0.1], [0.2, 0.3]])
    assert (sample.y, sample.groups, sample.q_z) == (None, None, None)
    assert sample.weight.tolist() == [1, 1]
    assert sample.in_id_order().y is None


@pytest.mark.parametrize("rows", [[2, 0], np.array([True, False, True]), [], [1, 1]])
def test_takes_the_same_rows_of_everything(sample, rows):
    part, index = (
        sample.take(rows),
        np.arange(3)[np.asarray(rows, dtype=bool if len(rows) == 3 else int)],
    )
    assert len(part) == len(index)
    for name, trace in part.traces.items():
        assert trace == sample.traces[name][index]
    for name in ("y", "weight", "groups", "q_z"):
        assert getattr(part, name).tolist() == getattr(sample, name)[index].tolist()


@given(st.permutations(range(3)))
def test_the_order_of_rows_is_forgotten_in_that_of_ids(order):
    X = TrajectoryArray.from_list([[0.1], [0.2, 0.3], [0.4]], ids=["c", "a", "b"])
    y = np.array([1, 0, 0.5])
    given = check_sample(X[list(order)], y[list(order)], sample_weight=1 + y[list(order)])
    ordered = given.in_id_order()
    assert ordered.X.ids.tolist() == ["a", "b", "c"]
    assert ordered.y.tolist() == [0, 0.5, 1]
    assert ordered.weight.tolist() == [1, 1.5, 2]
    assert given.take(given.id_order()).X == ordered.X


@pytest.mark.parametrize(
    ("X", "others", "message"),
    [
        ({}, {"several": True}, "there is no predictor"),
        (
            {"a": [[0.1]], "b": [[1.5]]},
            {"several": True, "probabilities": True},
            "predictor 'b': run 0 .* outside",
        ),
        (
            {"a": [[0.1]], "b": [[0.1], [0.2]]},
            {"several": True},
            "predictor 'a' and predictor 'b' have 1 and 2 runs",
        ),
        ({"a": [[0.1]], "b": [[0.1]]}, {}, r"one predictor, got a dict of predictors \('a', 'b'\)"),
        ({}, {}, r"a dict of predictors \(none\)"),
        ([[0.1]], {"y": [1, 0]}, "2 outcomes for 1 run;"),
        ([[0.1]], {"groups": [None]}, "row 0: groups is missing"),
        ([[0.1]], {"sample_weight": [-1]}, "row 0: sample_weight -1 is negative"),
        ([[0.1]], {"q_z": [0.1, 0.2]}, "q_z must be one number or 1"),
        ([[0.1]], {"q_z": ["a"]}, "q_z must be numbers"),
    ],
)
def test_what_is_wrong_is_said(X, others, message):
    with pytest.raises(ValueError, match=message):
        check_sample(X, **others)


SCORES = (
    tps_score,
    tps_samples,
    censored_tps_score,
    censored_tps_samples,
    tps_decomposition,
    step_calibration_error,
    step_profile,
    trajectory_diagnostics,
)


@pytest.mark.parametrize("of_one", [*SCORES, TPSAccumulator().update])
def test_of_several_predictors_none_is_taken_for_all(of_one):
    with pytest.raises(ValueError, match="expected the traces of one predictor"):
        of_one([1, 0], {"judge": [[0.9], [0.2]], "verbal": [[0.8], [0.4]]})


@pytest.mark.parametrize("score", SCORES)
def test_weights_that_name_the_runs_in_another_order_are_refused(score):
    X = TrajectoryArray.from_list([[0.9], [0.2]], ids=["b", "a"])
    weight = pd.Series([1.0, 2.0], index=["b", "a"])
    score([1, 0], X, sample_weight=weight)
    with pytest.raises(ValueError, match="row 0: sample_weight is of run 'a', X of run 'b'"):
        score([1, 0], X, sample_weight=weight.sort_index())


@pytest.mark.parametrize("score", [censored_tps_score, censored_tps_samples, step_profile])
def test_a_q_z_that_names_the_runs_in_another_order_is_refused(score):
    X = TrajectoryArray.from_list([[0.9], [0.2]], ids=["b", "a"])
    q_z = pd.Series([0.5, 0.25], index=["b", "a"])
    score([1, -1], X, q_z=q_z)
    with pytest.raises(ValueError, match="row 0: q_z is of run 'a', X of run 'b'"):
        score([1, -1], X, q_z=q_z.sort_index())


@pytest.mark.parametrize("ids", [list("bca"), [7, 3, 5]])
def test_a_series_that_names_the_runs_in_another_order_is_refused(ids):
    X = TrajectoryArray.from_list([[0.9], [0.2], [0.4]], ids=ids)
    y = pd.Series([1, 0, 1], index=pd.Index(ids, name="run"))
    for right in (y, y.reset_index(drop=True), y.to_numpy(), y.rename(str), y.set_axis([8, 9, 0])):
        assert check_sample(X, right, groups=right, sample_weight=right).y.tolist() == [1, 0, 1]
    other = y.sort_index()
    for named in ({"y": other}, {"y": y, "groups": other}, {"y": y, "q_z": other}):
        with pytest.raises(ValueError, match=rf"row 0: {[*named][-1]} is of run .*X\.ids"):
            check_sample(X, **named)
    for works in (
        lambda: evaluate(X, y, stop_reason=other),
        lambda: evaluate(X, y, by=other),
        lambda: tps_score(other, X),
        lambda: PlattCrossFitCalibrator().fit(X, other),
        lambda: PrefixForecaster().fit(X, other),
        lambda: DensityRatioEProcess().fit(X, other),
    ):
        with pytest.raises(ValueError, match="bring .* into the order of X"):
            works()


def test_an_index_that_may_be_of_another_table_says_nothing():
    X = TrajectoryArray.from_list([[0.9], [0.2], [0.4]], ids=[2, 0, 1])
    y = pd.Series([1, 0, 1], index=[1, 2, 0])
    assert check_sample(X, y).y.tolist() == [1, 0, 1]
    assert check_sample(X[:2], y[:2].set_axis([0, 2])).y.tolist() == [1, 0]
    with pytest.raises(ValueError, match="row 0: y is of run 1, X of run 2"):
        check_sample(X, y.rename_axis("run"))
    assert check_sample([[0.9], [0.2], [0.4]], y.rename_axis("run")).y.tolist() == [1, 0, 1]


def test_an_index_of_several_levels_is_joined_as_ids_are():
    table = pd.DataFrame({"model": list("abab"), "task": [2, 1, 1, 2], "t": 1, "p": 0.5, "y": 1})
    X = TrajectoryArray.from_frame(table, id=["model", "task"], step="t", value="p")
    y = table.set_index(["model", "task"])["y"]
    assert check_sample(X, y).y.tolist() == [1, 1, 1, 1]
    with pytest.raises(ValueError, match="row 0: y is of run 'a-1', X of run 'a-2'"):
        check_sample(X, y.sort_index())


def test_runs_end_where_they_did_or_an_outcome_is_known():
    X = TrajectoryArray([0.1, 0.2, 0.3, 0.4], [1] * 4, ended=[True, False, False, True])
    ended = ended_where_known(X, np.array([-1, 1, -1, 0]))
    assert ended.ended.tolist() == [True, True, False, True]
    assert ended_where_known(["a log"], np.array([1])) == ["a log"]
