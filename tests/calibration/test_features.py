"""Features of runs so far: each statistic, by hand, with scores that were not recorded."""

import numpy as np
import pytest

from trajscore import TrajectoryArray
from trajscore.calibration._features import PrefixFeatures

nan = np.nan
# two channels; the second run ends after its second step and starts with a score not recorded
X = TrajectoryArray(
    [[0.5, 2.0], [0.2, 5.0], [0.8, -1.0], [nan, -1.0], [0.4, nan]], [3, 2], missing="allow"
)
FIRST = X.cells[:3]


def features(kind, last=2, pooled=True, X=X):
    return PrefixFeatures(kind, last, pooled).at_all_steps(X)


def test_summary():
    rows = features("summary")
    # of each channel: mean, minimum, maximum, last value, last change; then the step
    expected = [
        [0.5, 0.5, 0.5, 0.5, 0, 2, 2, 2, 2, 0, 1],
        [0.35, 0.2, 0.5, 0.2, -0.3, 3.5, 2, 5, 5, 3, 2],
        [0.5, 0.2, 0.8, 0.8, 0.6, 2, -1, 5, -1, -6, 3],
        [nan, nan, nan, nan, nan, -1, -1, -1, -1, 0, 1],
        [0.4, 0.4, 0.4, 0.4, 0, -1, -1, -1, -1, 0, 2],
    ]
    np.testing.assert_allclose(rows, expected, atol=1e-15)


def test_running():
    rows = features("running")

    def statistics(scores):
        """Of the recorded scores of both channels, channel by channel within each statistic."""
        columns = [column[~np.isnan(column)] for column in np.transpose(scores)]
        p = [np.clip(column, 1e-4, 1 - 1e-4) for column in columns]
        log_odds = [np.log(part / (1 - part)).mean() for part in p]
        of = (lambda a: a[-1], np.mean, np.min, np.max, lambda a: a[max(len(a) - 2, 0)])
        core = [f(a) for f in of for a in columns] + log_odds
        return np.array(core + [a.std() for a in columns] + [a[0] for a in columns])

    for row, scores in zip(rows, [FIRST[:1], FIRST[:2], FIRST], strict=False):
        core, t = statistics(scores), len(scores)
        step = [*np.eye(9)[t - 1], np.log(t)]
        np.testing.assert_allclose(row, [*core, *(core * np.log(t)), *step], atol=1e-12)
    late = statistics([[0.4, -1.0]])
    assert np.isnan(rows[3, 0:32:2]).all()
    np.testing.assert_allclose(rows[3, 1:16:2], late[1::2], atol=1e-12)
    np.testing.assert_allclose(rows[4, :16], late, atol=1e-12)


def test_steps_from_the_ninth_on_share_an_indicator():
    rows = features("running", X=TrajectoryArray(np.full(10, 0.5), [10]))
    np.testing.assert_array_equal(rows[7:, 16:25], np.eye(9)[[7, 8, 8]])
    np.testing.assert_allclose(rows[:, 25], np.log(np.arange(1, 11)))
    np.testing.assert_array_equal(rows[:, 6], 0)  # the spread of equal scores


def test_last_scores_newest_first():
    one = TrajectoryArray([1.0, 2.0, 3.0, 4.0], [4])
    np.testing.assert_array_equal(
        features("last", X=one), [[1, 1, 1], [2, 1, 2], [3, 2, 3], [4, 3, 4]]
    )
    rows = features("last")  # of each channel the newest, then the one before it
    np.testing.assert_array_equal(rows[2], [0.8, 0.2, -1, 5, 3])
    np.testing.assert_array_equal(rows[4], [0.4, nan, nan, -1, 2])


@pytest.mark.parametrize(("kind", "n_seen"), [("prefix", 3), ("last", 2), ("summary", 0)])
def test_rows_of_one_step(kind, n_seen):
    features = PrefixFeatures(kind, 2, pooled=False)
    seen = features.begin(1, 2)
    for t, scores in enumerate(FIRST, start=1):
        seen = features.push(seen, scores[None], t)
    rows = features.rows(seen, 3)
    expected = [0.5, 0.2, 0.8, 0.8, 0.6, 2, -1, 5, -1, -6]
    np.testing.assert_allclose(rows, [FIRST[-n_seen:].ravel() if n_seen else expected])


def test_used_cells_only():
    used = np.array([True, False, True, False, True])
    rows = PrefixFeatures("summary", 1, pooled=True).at_all_steps(X, used)
    np.testing.assert_array_equal(rows, features("summary")[used])


def test_a_function_sees_all_runs_so_far():
    rows = features(lambda seen: np.nansum(seen, axis=(1, 2)))
    np.testing.assert_allclose(rows, [[2.5, 1], [7.7, 2], [7.5, 3], [-1, 1], [-0.6, 2]])
    two = features(lambda seen: seen[:, -1])
    np.testing.assert_array_equal(two, np.column_stack([X.cells, [1, 2, 3, 1, 2]]))


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda seen: seen, r"returned shape \(2, 1, 2\) for 2 runs after step 1"),
        (lambda seen: seen[:1, 0], r"returned shape \(1, 2\) for 2 runs after step 1"),
        (lambda seen: seen[:, :, 0], "returned 1 at step 1 and 2 at step 2"),
    ],
)
def test_shapes_of_a_function(function, message):
    with pytest.raises(ValueError, match=message):
        features(function)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("best", 1, False), "features must be prefix, last, summary, running or a function, got"),
        (("last", 0, False), "last must be a whole number >= 1, got 0"),
        (("last", 1.5, False), "last must be a whole number >= 1, got 1.5"),
        (("prefix", 1, True), "pooled=True needs as many features at every step; use"),
        (("prefix", 1, False), None),
        (("summary", 1, True), None),
        ((np.mean, 1, True), None),
    ],
)
def test_check(options, message):
    if message is None:
        PrefixFeatures(*options).check()
        return
    with pytest.raises(ValueError, match=message):
        PrefixFeatures(*options).check()
