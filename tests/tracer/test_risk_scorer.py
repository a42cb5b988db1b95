"""What all scorers of risk share, in a scorer that returns the running mean."""

import numpy as np
import pytest

from trajscore import TrajectoryArray
from trajscore.io import Run
from trajscore.tracer._risk_scorer import RiskScorer, running_mean

NAN = np.nan


class Mean(RiskScorer):
    _reads = "surprisal"

    def _trace(self, signals):
        return running_mean(signals, signals["surprisal"].cells)


CELLS = [1.0, 3.0, NAN, NAN, 2.0, NAN]
X = TrajectoryArray(CELLS, [3, 2, 1], channels=("surprisal",), missing="allow")


def test_running_mean_of_what_is_not_missing():
    found = running_mean(X, X.cells)
    np.testing.assert_array_equal(found, [1, 2, 2, NAN, 2, NAN])
    two = X.with_cells(np.zeros((6, 2)), channels=("a", "b"))
    assert len(running_mean(two, np.ones(6))) == 6


def test_a_trace_and_a_number_a_run():
    scorer = Mean().fit(X)
    risk = scorer.transform(X)
    assert risk.channels == ("risk",)
    np.testing.assert_array_equal(risk.cells, [1, 2, 2, NAN, 2, NAN])
    assert risk.lengths.tolist() == [3, 2, 1]
    np.testing.assert_array_equal(scorer.score_samples(X), [2, 2, NAN])
    np.testing.assert_array_equal(scorer.decision_function(X), [-2, -2, NAN])
    assert list(scorer.get_feature_names_out()) == ["risk"]


def test_one_value_a_step_is_taken_for_the_signal_that_is_read():
    plain = np.array([[1.0, 3.0], [5.0, NAN]])
    scorer = Mean().fit(plain)
    risk = scorer.transform(plain)
    np.testing.assert_array_equal(risk, [[1, 2], [5, NAN]])
    np.testing.assert_array_equal(scorer.score_samples(plain), [2, 5])


def test_a_channel_that_is_read_must_be_there():
    with pytest.raises(ValueError, match="surprisal"):
        Mean().fit(X.with_cells(X.cells, channels=("repetition",)))


def test_a_scorer_that_reads_nothing_in_particular_takes_any_channel():
    class Any(Mean):
        _reads = None

        def _trace(self, signals):
            assert signals.channels == ("value",)
            return signals.cells

    np.testing.assert_array_equal(Any().fit([[1.0]]).score_samples([[1.0]]), [1])


def test_parameters_are_checked_at_each_call():
    class Refuses(Mean):
        def _check_parameters(self):
            raise ValueError("k must be positive")

    for method in ("fit", "transform", "score_samples", "decision_function"):
        with pytest.raises(ValueError, match="k must be positive"):
            getattr(Refuses(), method)(X)


def test_runs_are_not_signals():
    for runs in ([Run("a")], (Run("a"), Run("b"))):
        with pytest.raises(ValueError, match="Mean reads the channels .*, got runs; pass"):
            Mean().fit(runs)


def test_other_signals_than_in_fit_are_refused():
    two = X.with_cells(np.zeros((6, 2)), channels=("surprisal", "repetition"))
    with pytest.raises(ValueError, match="channel"):
        Mean().fit(X).transform(two)


def test_scorers_of_scikit_learn_read_the_decision():
    assert Mean().__sklearn_tags__().estimator_type == "outlier_detector"


def test_a_base_has_no_trace():
    with pytest.raises(NotImplementedError):
        RiskScorer().fit([[1.0]]).transform([[1.0]])
