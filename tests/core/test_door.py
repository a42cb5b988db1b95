"""What comes in: every form of traces, what is given beside them, and estimators that take them."""

import numpy as np
import pandas as pd
import pytest

from refused import must_refuse
from trajscore import (
    PlattCrossFitCalibrator,
    PrefixForecaster,
    StepConfidence,
    TrajectoryArray,
    check_trajectories,
    evaluate,
    gates,
    inference,
    io,
    metrics,
)
from trajscore.report import EvaluationOptions
from trajscore.streaming import TPSAccumulator

NAN = float("nan")
RUNS = [[0.1, 0.2], [0.3]]


def test_all_forms_are_the_same_runs():
    for given in (
        RUNS,
        tuple(RUNS),
        [[0.1, 0.2], [0.3, NAN]],
        np.array([[0.1, 0.2], [0.3, NAN]]),
        pd.DataFrame([[0.1, 0.2], [0.3, None]]),
        pd.DataFrame([[0.1, 0.2], [0.3, None]], columns=["step 1", "step 2"]),
        TrajectoryArray.from_list(RUNS),
        [[[0.1], [0.2]], [[0.3]]],
        TrajectoryArray.from_list([[[0.1], [0.2]], [[0.3]]]),
        np.ma.array([[0.1, 0.2], [0.3, 0.9]], mask=[[False, False], [False, True]]),
        np.array(RUNS, dtype=object),
        pd.Series([[0.1, 0.2], np.array([0.3])]),
    ):
        X = check_trajectories(given, probabilities=True, single_channel=True)
        assert [run.tolist() for run in X] == RUNS
        assert X.cells.ndim == 1
    two = np.array([[[1, 5.0], [NAN, NAN]], [[3, 2], [7, 4]]])
    assert check_trajectories(two).lengths.tolist() == [1, 2]


def test_what_rounding_puts_outside_the_unit_interval_is_0_or_1():
    low, high = -1e-9, float(np.nextafter(np.float32(1), np.float32(2)))
    X = [[low, 0.6], [high, 0.2], [0.5, 0.7], [0.3, 0.4]] * 6
    unit = [[0.0, 0.6], [1.0, 0.2], [0.5, 0.7], [0.3, 0.4]] * 6
    cells, y = np.ravel(unit).tolist(), np.array([1, 0, 1, 0] * 6)
    for given in (X, np.array(X)):
        assert check_trajectories(given, probabilities=True).cells.tolist() == cells
        assert metrics.tps_score(y, given) == metrics.tps_score(y, unit)
        pd.testing.assert_frame_equal(evaluate(given, y).table, evaluate(unit, y).table)
        sums = TPSAccumulator("log").update(y, given).compute()
        pd.testing.assert_frame_equal(sums, TPSAccumulator("log").update(y, unit).compute())
    first = np.array(X)[:, 0]
    answers = metrics.ecuas_from_confidence(y, first)
    own = np.array(unit)[:, 0]
    from_own = metrics.Answers.from_confidence(y, own)
    own[:] = 0.5  # the caller's array stays the caller's
    assert from_own.ecuas() == answers
    assert answers == metrics.ecuas_from_confidence(y, np.array(unit)[:, 0])
    for stated, expected in ((low, 0.0), (high, 1.0), (-1e-5, NAN)):
        run = io.Run("a", [io.Step("agent", "x", confidence=stated)])
        verbal = StepConfidence(scale="fraction" if expected == 1 else "auto").fit_transform([run])
        np.testing.assert_array_equal(verbal["verbal"].cells, [expected])
    # signals are what they are
    for signal in ([[-1e-12, 2.0]], [[-1e-12, 0.5]]):
        assert check_trajectories(signal).cells.tolist() == signal[0]
    for value in (-2e-6, 1 + 2e-6):
        with pytest.raises(ValueError, match=r"run 0 \(row 0\), step 2: forecast .* outside"):
            check_trajectories([[0.5, value]], probabilities=True)


@pytest.mark.parametrize("value", [-1e-9, 1.0000001])
def test_rounding_is_no_error_of_outcomes_and_shares(value):
    near, X = round(value), [[0.4], [0.6], [0.5]]
    assert io.outcomes([io.Run("a", outcome=value)]).tolist() == [near]
    for of in (
        lambda number: metrics.tps_score([number, 1, 0], X),
        lambda number: metrics.censored_tps_score([0, 1, -1], X, q_z=float(number)),
        lambda number: metrics.trajectory_diagnostics([0, 1, 0], [[number], *X[1:]])["T-Brier"],
        lambda number: metrics.ecuas_score([0, 1], [[1 - number, number], [0.5, 0.5]]),
    ):
        assert of(value) == pytest.approx(of(near), abs=1e-5)


def test_bad_traces_name_the_place():
    class Run(list):
        steps, outcome = (), 1

    frame = TrajectoryArray([0.5, 0.4], [1, 1]), np.array([1, 0])
    for X, words in (
        (np.array([["2020-01-01"]], dtype="M8[D]"), "dates"),
        (pd.DataFrame({"1": pd.to_datetime(["2020"])}), "'1' .*dates"),
        (pd.DataFrame({"1": [0.5 + 1j]}), "'1' .*Complex"),
        (pd.DataFrame({1: ["a"]}), "from_frame"),
        (pd.DataFrame({"verbal": [0.5, 0.6], "judge": [0.1, 0.2]}), "'verbal' .*from_frame"),
        ([1, 2], "got 1D.*from_frame.*swap X and y"),
        ([[["a"]]], "'a'"),
        ("runs.csv", "'runs.csv'.*from_frame.*read_runs"),
        (frame, r"X, y = TrajectoryArray\.from_frame"),
        ([Run([0.5])], "ActionSignals"),
        (pd.Series([Run([0.5]), Run([0.5])]), "ActionSignals"),
        ([io.Run("a", [io.Step("agent", "Hi.")], outcome=1)], "ActionSignals"),
        ([[0.1, 0.2], [[0.1, 0.2]]], "rows 0 and 1"),
    ):
        with pytest.raises(ValueError, match=words):
            check_trajectories(X)
        if "Complex" in words or "dates" in words or "durations" in words or "Action" in words:
            with pytest.raises(ValueError, match=words):
                PlattCrossFitCalibrator().fit(X, [1])


def test_values_must_be_there_and_probabilities_where_that_is_asked():
    X = TrajectoryArray([[0.1, NAN], [0.1, 1.2]], [2], channels=["a", "b"], missing="allow")
    rows = [
        (X, {}, "step 1, channel 'b'.*first step"),
        (X.prefix(1), {}, r"channel 'b' .*X\[\['a'\]\]"),
        (X.with_cells([[NAN, NAN]] * 2), {}, "channel 'a'"),
        (TrajectoryArray([0.1, NAN], [2], missing="allow"), {}, "step 2: .*ffill"),
        (X, {"single_channel": True}, r"2 channels \(a, b\).*X\['name'\]"),
        (X, {"probabilities": True, "allow_missing": True}, "step 2, channel 'b': forecast 1.2"),
        (
            TrajectoryArray([NAN, 1.5], [2], missing="allow"),
            {},
            r"run 0 \(row 0\), step 1.*missing",
        ),
    ]
    must_refuse(lambda given, how: check_trajectories(given, **how), rows)
    assert check_trajectories(X, allow_missing=True) is X
    for cells, outside, percent in (
        ([0.0, 1.5], "step 2: forecast 1.5 ", True),
        ([0.0, 100.0], "step 2: forecast 100 ", True),
        ([0.0, 101.0], "step 2: forecast 101 ", False),
        ([-0.5, 50.0], "step 1: forecast -0.5 ", False),
    ):
        with pytest.raises(ValueError, match=rf"'b' \(row 0\), {outside}.*Platt") as error:
            check_trajectories(TrajectoryArray(cells, [2], ids=["b"]), probabilities=True)
        assert ("100" in str(error.value).split("forecast")[1][5:]) == percent
        check_trajectories(TrajectoryArray(cells, [2]))
    check_trajectories([[0.0, 1.0]], probabilities=True)


NAMED = TrajectoryArray.from_list([[0.9], [0.2]], ids=["b", "a"])


def test_what_is_given_of_runs_is_checked():
    rows = [
        ({"sample_weight": [1, -1]}, "row 1: sample_weight is -1"),
        ({"sample_weight": [1]}, r"sample_weight .* 2, .*\(1,\)"),
        ({"sample_weight": [0, 0]}, "sample weights"),
        ({"sample_weight": [1e308, 1e308]}, "sample weights .*inf"),
        ({"sample_weight": ["a", 1]}, "sample_weight"),
        ({"sample_weight": NAMED}, "sample_weight .*TraceAggregator"),
        ({"sample_weight": pd.Series(pd.to_datetime(["2020", "2021"]))}, "sample_weight .*dates"),
        ({"sample_weight": pd.Series([1, 2], index=["a", "b"])}, "row 0: sample_weight .*'a'.*'b'"),
    ]
    must_refuse(lambda how: metrics.tps_score([1, 0], NAMED, **how), rows)
    expected = metrics.tps_score([1, 0], NAMED, sample_weight=[3, 3])
    assert metrics.tps_score([1, 0], NAMED, sample_weight=3) == pytest.approx(expected)
    for weight in ([1e308, 0], pd.Series([1, 0], dtype="Int64"), pd.DataFrame({"w": [1, 0]})["w"]):
        assert metrics.tps_score([1, 0], NAMED, sample_weight=weight) == pytest.approx(np.log(0.9))
    q_z = pd.Series([0.5, 0.25], index=["b", "a"])
    metrics.censored_tps_score([1, -1], NAMED, q_z=q_z)
    with pytest.raises(ValueError, match="row 0: q_z .*'a'.*'b'"):
        metrics.censored_tps_score([1, -1], NAMED, q_z=q_z.sort_index())


def test_groups_name_one_for_each_run():
    def draws(groups, n=4):
        return inference.bootstrap(
            lambda w: w @ np.arange(n), n, groups=groups, n_resamples=5, random_state=0
        )

    expected = draws([1, 0, 1, 0])
    for groups in (["b", "a"] * 2, pd.Series([7, 3] * 2), np.array([1.5, 0.5] * 2)):
        np.testing.assert_array_equal(draws(groups), expected)
    rows = [
        ([1, 2], r"groups .*4 labels.*\(2,\).*from_frame"),
        (["a", None, "b", "b"], "row 1: groups .*1 of 4"),
        (["a", 1, 2, 3], r"groups .*\.astype\(str\)"),
        ("abcd", "groups .*4 labels"),
        ([[1], [1, 2], 3, 4], "groups"),
    ]
    must_refuse(lambda groups: draws(groups), rows)


def test_several_predictors_are_of_the_same_runs():
    y, other = [1, 0], NAMED.with_cells([0.5, 0.4])
    for score in (metrics.tps_score, metrics.tps_decomposition, TPSAccumulator().update):
        with pytest.raises(ValueError, match="one predictor.*'judge', 'verbal'"):
            score(y, {"judge": NAMED, "verbal": other})
    report = evaluate({"judge": NAMED, "verbal": other}, y, calibrator=None)
    both = TrajectoryArray.stack([NAMED, other], channels=["judge", "verbal"])
    by_channel = evaluate(both, y, calibrator=None)
    assert report.table["TPS log"].tolist() == by_channel.table["TPS log"].tolist()
    rows = [
        ({}, "predictor"),
        ({"a": NAMED, "b": [[0.1], [np.inf]]}, "predictor 'b': .*row 1.* inf"),
        ({"a": NAMED, 2: [[0.1], [np.inf]]}, "predictor '2': .*row 1.* inf"),
        ({"a": NAMED, "b": NAMED[:1]}, "predictor 'a' and predictor 'b' .* 2 and 1 runs"),
        ({"a": NAMED, "b": NAMED[::-1]}, "row 0 .*'b' in predictor 'a'.*'a' in predictor 'b'"),
    ]
    must_refuse(lambda X: evaluate(X, y, calibrator=None), rows)
    with pytest.raises(ValueError, match="predictor 'verbal': .* outside"):
        metrics.tps_sensitivity(y, both.with_cells(both.cells * [1, 3]))


def test_arguments_of_other_kinds_are_refused():
    X, y = [[0.9], [0.2]], [1, 0]
    rows = [
        (lambda: evaluate(X, y, options=EvaluationOptions(n_jobs=0)), "n_jobs .*0"),
        (lambda: evaluate(X, y, options=EvaluationOptions(progress=3)), "progress .*3"),
        (lambda: inference.bootstrap(np.sum, 4, random_state="a"), "'a' cannot .*seed"),
        (lambda: inference.bootstrap(np.sum, 4, n_jobs=4097), "n_jobs .*4097"),
        (lambda: gates.RunSet.read(3), "path .*3"),
        (lambda: metrics.ecuas_from_confidence(y, [0.9, 0.2], log_odds="yes"), "log_odds .*'yes'"),
    ]
    must_refuse(lambda work: work(), rows)


Y = [1, 0, 1, 0, 1, 0]
PADDED = np.array([[0.9, 0.8], [0.1, 0.3], [0.7, NAN], [0.4, 0.2], [0.6, 0.7], [0.3, NAN]])


def test_a_padded_array_stays_one():
    calibrator = PlattCrossFitCalibrator
    container = TrajectoryArray.from_padded(PADDED)
    expected = calibrator().fit(container, Y).transform(container)
    for X in (PADDED, pd.DataFrame(PADDED), np.ma.masked_invalid(PADDED), PADDED.tolist()):
        fitted = calibrator().fit(X, Y)
        np.testing.assert_array_equal(fitted.transform(X), expected.padded())
        assert (fitted.n_channels_in_, fitted.channels_in_, fitted.n_features_in_) == (1, None, 2)
        with pytest.raises(ValueError, match="from_padded"):
            fitted.transform(np.full((2, 3), 0.5))
    for X in (container, list(container), pd.Series(list(container))):
        fitted = calibrator().fit(X, Y)
        assert fitted.transform(X).cells.tolist() == expected.cells.tolist()
        assert fitted.transform([[0.1], [0.1, 0.2, 0.3]]).shape == (2, 3)
        assert not hasattr(fitted, "n_features_in_")


def test_the_channels_of_fit_are_asked_for_later():
    X = TrajectoryArray(np.random.default_rng(0).random((20, 2)), [2] * 10, channels=["a", "b"])
    fitted = PrefixForecaster(min_class_count=1).fit(X, [1, 0] * 5)
    assert fitted.channels_in_ == ("a", "b")
    rows = [
        (X["a"], "fitted on 2 channels, got 1"),
        (X[["b", "a"]], "fitted on the channels a, b, got b, a"),
    ]
    must_refuse(lambda other: fitted.transform(other), rows)
    unnamed = PlattCrossFitCalibrator().fit(X["a"].with_cells(np.tile([0.3, 0.6], 10)), [1, 0] * 5)
    assert len(unnamed.transform([[0.5]])) == 1


def test_what_scikit_learn_expects():
    calibrator = PlattCrossFitCalibrator()
    assert calibrator.get_feature_names_out().tolist() == ["probability"]
    with pytest.raises(TypeError, match="runs of numbers"):
        calibrator.fit([[{}, 1], [2, 3]], [1, 0])
