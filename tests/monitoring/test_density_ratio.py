"""The density ratio and the sequential test made of it, by hand."""

import re
from dataclasses import replace

import numpy as np
import pytest

from trajscore import TrajectoryArray
from trajscore.calibration import PrefixForecaster
from trajscore.monitoring._density_ratio import LARGEST_SCORE, DensityRatio, FittedTest, Fold
from trajscore.monitoring._thresholds import TIE, one_id, run_uniforms

X = TrajectoryArray(
    [0.5, 0.2, 0.8, 0.9, 0.1], [3, 2], ids=["a", "b"], ended=np.array([True, False])
)
LOG_M = np.log((1 - X.cells.ravel()) / X.cells.ravel()) + 0.7
PLAIN = DensityRatio(None, 0.7, going=(-0.25,))
FOLDS = tuple(Fold(PLAIN, np.array(maxima)) for maxima in ([0.0, 1.0, 2.0], [1.5, 2.5]))
TEST = FittedTest(
    PLAIN, (0.1,), (None,), (), randomized_end=False, seed=3, n_channels=1, channels=None,
    longest=3, fitted_range=((0.2, 0.8),),
)  # fmt: skip


def test_log_m():
    np.testing.assert_allclose(PLAIN.log_m(X), LOG_M[:, None].reshape(PLAIN.log_m(X).shape))
    far = np.log((1 - 1e-6) / 1e-6)
    np.testing.assert_allclose(PLAIN.of_forecasts(np.array([0, 1])), [far + 0.7, -far + 0.7])


def test_only_the_end_of_a_run_does_not_wait():
    expected = LOG_M - [0.25, 0.25, 0, 0.25, 0.25]
    np.testing.assert_allclose(PLAIN.monitored_values(X).ravel(), expected)
    np.testing.assert_allclose(PLAIN.largest(X), [expected[1], expected[4]])
    assert len(PLAIN.largest(X[:0])) == 0


def test_what_a_flag_is_worth():
    """The failing runs b, c and d have 4, 2 and 1 steps; of which the last tells no share."""
    cells, y = np.full(8, 0.5), np.array([1, 0, 0, 0])
    runs = TrajectoryArray(cells, [1, 4, 2, 1], ids=["a", "b", "c", "d"], ended=True)
    left = [np.array([0.75 + 0.5, 0.5, 0.25, 0, 0]), np.array([2, 1, 1, 0, 0])]  # going on
    overall = (2 + 0.5) / (4 + 1)
    known = DensityRatio.fit(None, runs, y, wait=0.1, end_worth=0.3)
    assert (known.end, known.at_end) == ("step", pytest.approx(np.log(0.3)))
    expected = np.log((left[0] + 10 * overall) / (left[1] + 10) + 0.3) - 0.1
    np.testing.assert_allclose(known.going, expected)
    n = np.array([3, 2, 1, 1, 0])  # a run may end with the step, for all that is known
    overall = (2 + 0.5) / (7 + 1)
    unknown = DensityRatio.fit("passthrough", runs, y, end_worth=0)
    np.testing.assert_allclose(unknown.going, np.log((left[0] + 10 * overall) / (n + 10)))
    assert -800 < unknown.at_end < -700
    log_m = known.log_m(runs)
    added = np.array([known.at_end, *known.going[:3], known.at_end, known.going[0]])
    values = known.monitored_values(runs)
    np.testing.assert_allclose(values[:6], log_m[:6] + added)
    # where the end is not known with the step, the last step counts as any other
    added = np.array(unknown.going)[[0, 0, 1, 2, 3, 0, 1, 0]]
    np.testing.assert_allclose(unknown.monitored_values(runs), unknown.log_m(runs) + added)
    longer = TrajectoryArray(np.full(9, 0.5), [9], ended=False)
    added = unknown.monitored_values(longer) - unknown.log_m(longer)
    np.testing.assert_allclose(added[4:], np.log(overall))


def test_fit():
    with pytest.raises(ValueError, match=r"\(n_samples = 2\) have the same outcome; it needs"):
        DensityRatio.fit("passthrough", X, np.array([1, 1]))
    fitted = DensityRatio.fit("passthrough", X[[0, 1, 0, 0]], np.array([1, 0, 1, 1]))
    assert fitted == (None, pytest.approx(np.log(3)), (0.0,), 0.0)
    assert fitted.end is None
    assert DensityRatio.fit(None, X, np.array([1, 0])).end == "step"


@pytest.mark.parametrize(("largest", "count"), [(-1, 3), (1.0, 2), (1.1, 1), (2.0, 1), (2.1, 0)])
def test_count(largest, count):
    assert FOLDS[0].count(largest) == count


@pytest.mark.parametrize("randomized_end", [False, True])
@pytest.mark.parametrize("folds", [(), FOLDS])
def test_step_by_step_as_in_a_batch(folds, randomized_end):
    test = replace(TEST, folds=folds, randomized_end=randomized_end)
    values = PLAIN.monitored_values(X).ravel()
    if folds:
        largest = np.concatenate([np.maximum.accumulate(part) for part in (values[:3], values[3:])])
        counts = [sum(m >= v for fold in folds for m in fold.maxima) for v in largest]
        expected = -1.0 - np.array(counts)
    else:
        drawn = np.log(run_uniforms(one_id("a"), 3)[0]) if randomized_end else 0
        expected = values - [0, 0, drawn, 0, 0]
    np.testing.assert_allclose(test.statistic(X).ravel(), expected)
    cells = iter(range(5))
    for run, run_id, ended in ((X[0], "a", True), (X[1], "b", False)):
        progress = test.begin()
        assert progress.largest == (-np.inf,) * (1 + len(folds))
        scores = np.ravel(run)
        for t, score in enumerate(scores, start=1):
            done, cell = ended and t == len(scores), next(cells)
            progress, log_m, statistic = test.advance(
                progress, np.array([score]), run_id, t, done=done
            )
            assert log_m == pytest.approx(LOG_M[cell])
            assert statistic == pytest.approx(expected[cell])


@pytest.mark.parametrize(
    ("fitted", "expected"),
    [((0.2, 0.8), (-0.4, 1.4)), ((0, 0), (-1, 1)), ((5, 5), (0, 10)), ((-3, -3), (-6, 0)),
     ((0.5, 0.5), (-0.5, 1.5))],
)  # fmt: skip
def test_expected_range(fitted, expected):
    test = replace(TEST, fitted_range=(fitted,))
    assert test.expected_range == [pytest.approx(expected)]


def test_range_warning():
    named = replace(TEST, n_channels=2, channels=("p", "q"), fitted_range=((0, 1), (2, 4)))
    assert named.range_warning(np.array([[-1.0, 0], [2, 6]])) == ""
    said = "score 6.5 of 'q' is out of range: training scores go from 2 to 4. Check that it is on"
    assert named.range_warning(np.array([[2, 6], [0, 6.5], [9, 9]])).startswith(said)
    plain = TEST.range_warning(np.array([0.5, -0.5]))
    assert plain.startswith("score -0.5 is out of range: training scores go from 0.2 to 0.8.")


@pytest.mark.parametrize(
    ("forecaster", "words"),
    [
        (None, ""),
        (PrefixForecaster(), "after that step their forecasts stay as they are"),
        (PrefixForecaster(features="summary", pooled=True), "their forecasts extrapolate"),
    ],
)
def test_beyond_the_longest_run(forecaster, words):
    assert replace(TEST, ratio=DensityRatio(forecaster, 0.0)).beyond.endswith(words)
    assert bool(words) == bool(replace(TEST, ratio=DensityRatio(forecaster, 0.0)).beyond)


def test_end_after_the_last_step_counts_twice(rng):
    runs = TrajectoryArray(rng.random(40), np.full(20, 2), ended=np.full(20, True))
    forecaster = PrefixForecaster(features="running", pooled=True, end="after")
    ratio = DensityRatio.fit(forecaster, runs, np.arange(20) % 2, wait=0.1)
    going, ended = ratio.log_m(runs.with_ended(False)), ratio.log_m(runs)
    expected = np.where(np.arange(40) % 2, np.maximum(going - 0.1, ended), going - 0.1)
    np.testing.assert_allclose(ratio.monitored_values(runs).ravel(), expected.ravel())


@pytest.mark.parametrize(("largest", "count"), [(TIE, 2), (2 * TIE, 1), (0.0, 2), (-TIE, 2)])
def test_ties_count_as_at_least_as_bad(largest, count):
    assert Fold(PLAIN, np.array([-1.0, 0.0, 1.0])).count(largest) == count


@pytest.mark.parametrize("sign", [1, -1])
def test_scores_may_be_as_large_as_the_largest(sign):
    class Half:
        def transform(self, X):
            return X.with_cells(np.full(len(X.cells), 0.5))

    ratio = DensityRatio(Half(), 0.7)
    runs = TrajectoryArray(np.array([1.0, sign * LARGEST_SCORE]), [2], ids=["a"])
    assert ratio.log_m(runs).tolist() == [0.7, 0.7]
    larger = np.nextafter(LARGEST_SCORE, np.inf) * sign
    said = f"run 'a' (row 0), step 2: the score {larger:g} is not a finite number up to 1e+150"
    with pytest.raises(ValueError, match=re.escape(said)):
        ratio.log_m(TrajectoryArray(np.array([1.0, larger]), [2], ids=["a"]))
