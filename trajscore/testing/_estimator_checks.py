"""Checks for estimators over trajectories, also for other people's."""

import pickle
from collections.abc import Sequence
from typing import Any

import joblib
import numpy as np
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from trajscore.calibration.look_ahead import find_look_ahead
from trajscore.core.array import TrajectoryArray
from trajscore.core.checks import check_trajectories
from trajscore.core.outcomes import check_outcomes
from trajscore.core.values import AnyArray
from trajscore.datasets import load_chess, make_trajectories
from trajscore.metrics import tps_score

_TOLERANCE = 1e-9


def check_trajectory_estimator(
    estimator: Any, *, channels: Sequence[str] | None = None, probabilities: bool = True
) -> list[str]:
    """Check that an estimator keeps the guarantees that scorers and searches rely on.

    A forecaster is a transformer: ``fit(X, y)`` on a `TrajectoryArray`, then ``transform(X)``
    gives the same runs with one probability a step. Calibrators are forecasters; scorers of risk
    and monitors are the same but for the probabilities. Every check makes its own small data.

    Parameters
    ----------
    estimator : estimator
        An unfitted estimator.
    channels : sequence of str, optional
        Names of the signals that it reads, here with values in [0, 1]. Default: one, unnamed.
    probabilities : bool, default=True
        Whether it is a forecaster. If not, the checks of what a probability is, what outcomes
        may be, and whether it can be scored are left out.

    Returns
    -------
    list of str
        Names of the checks that were passed.

    Raises
    ------
    AssertionError
        If a check fails; the message says which and how.

    Examples
    --------
    >>> from trajscore import PlattCrossFitCalibrator, TracerScorer
    >>> from trajscore.testing import check_trajectory_estimator
    >>> check_trajectory_estimator(PlattCrossFitCalibrator())[:2]
    ['check_runs_kept', 'check_probabilities']
    >>> passed = check_trajectory_estimator(
    ...     TracerScorer(), channels=["surprisal", "repetition"], probabilities=False
    ... )
    >>> len(passed)
    7
    """
    passed = []
    X, y = make_trajectories(
        60, lengths=(3, 6), sharpness=1.5, noise=0.3, random_state=0, return_X_y=True
    )
    X = _in_channels(X, channels)
    for check in CHECKS:
        if check in _OF_FORECASTERS and not probabilities:
            continue
        name = check.__name__
        try:
            check(clone(estimator), X, y)
        except AssertionError as error:
            raise AssertionError(f"{name}: {error}") from error
        except Exception as error:
            raise AssertionError(
                f"{name}: {type(estimator).__name__} raised {type(error).__name__}: {error}"
            ) from error
        passed.append(name)
    return passed


def _games(channels: Sequence[str] | None) -> tuple[TrajectoryArray, AnyArray]:
    """Eighty games of chess, in the channels that an estimator reads."""
    X, y = load_chess(return_X_y=True)
    return _in_channels(X["engine"][:80], channels), y[:80]


def _in_channels(X: TrajectoryArray, channels: Sequence[str] | None) -> TrajectoryArray:
    """Return one signal as it is, or with noisier copies of it beside it."""
    if channels is None:
        return X
    noise = np.random.default_rng(0).random((len(X.cells), len(channels)))
    share = np.linspace(0, 0.5, len(channels))
    cells = (1 - share) * X.cells[:, None] + share * noise
    return X.with_cells(cells, channels=channels)


def _with_ends(X: TrajectoryArray, y: AnyArray) -> TrajectoryArray:
    """Add all that is known of runs in the end: what must not be read before."""
    about = {"outcome": y, "n_steps": X.lengths, "stop_reason": np.where(y == 1, "done", "failed")}
    return TrajectoryArray(
        X.cells, X.lengths, channels=X.channels, ids=[f"run {k}" for k in range(len(X))],
        horizon=X.lengths, meta=about, ended=True,
    )  # fmt: skip


def _require(condition: Any, message: str) -> None:
    if not condition:
        raise AssertionError(message)


def _same(a: Any, b: Any) -> bool:
    first, second = (check_trajectories(out, allow_missing=True) for out in (a, b))
    return np.array_equal(first.offsets, second.offsets) and np.allclose(
        first.cells, second.cells, rtol=0, atol=_TOLERANCE, equal_nan=True
    )


def check_runs_kept(estimator: Any, X: TrajectoryArray, y: AnyArray) -> None:
    """`transform` returns the same runs: ids, lengths and horizons."""
    # horizons differ from lengths
    X = X.truncate(np.maximum(X.lengths - 1, 1)).with_horizon(X.lengths)
    out = estimator.fit(X, y).transform(X)
    _require(isinstance(out, TrajectoryArray), "returned no TrajectoryArray")
    for part in ("ids", "lengths", "horizon"):
        same = np.array_equal(getattr(out, part), getattr(X, part))
        _require(same, f"the {part} of the runs changed")


def check_probabilities(estimator: Any, X: TrajectoryArray, y: AnyArray) -> None:
    """All values lie in [0, 1], one a step."""
    out = estimator.fit(X, y).transform(X)
    _require(out.n_channels == 1, "returned several values a step")
    _require(((out.cells >= 0) & (out.cells <= 1)).all(), "returned values outside [0, 1]")


def check_no_look_ahead(estimator: Any, X: TrajectoryArray, y: AnyArray) -> None:
    """The value at a step depends on the steps so far alone, at the last one on the end, too.

    Whole runs, of which everything is known, and their prefixes, of which nothing else is, must get
    the same values: runs made on the spot, and games of chess.
    """
    for data, outcomes in ((X, y), _games(X.channels)):
        runs = _with_ends(data, outcomes)
        estimator.fit(runs, outcomes)
        for whole in (runs, runs.with_ended(False)):
            values = check_trajectories(estimator.transform(whole), allow_missing=True)
            for k in range(int(X.lengths.max())):  # every prefix of the former
                seen = 1 + (np.arange(len(runs)) + k) % runs.lengths
                look_ahead = find_look_ahead(estimator.transform, whole, values, seen)
                _require(not look_ahead, look_ahead)


def check_row_order(estimator: Any, X: TrajectoryArray, y: AnyArray) -> None:
    """The order of rows does not matter."""
    order = np.random.default_rng(0).permutation(len(X))
    straight = clone(estimator).fit(X, y).transform(X)
    shuffled = clone(estimator).fit(X[order], y[order]).transform(X)
    _require(_same(straight, shuffled), "the fit depends on the order of rows")


def check_rows_alone(estimator: Any, X: TrajectoryArray, y: AnyArray) -> None:
    """A run's values do not depend on the runs beside it."""
    estimator.fit(X, y)
    alone = TrajectoryArray.concat([estimator.transform(X[[row]]) for row in range(5)])
    _require(_same(alone, estimator.transform(X[:5])), "values depend on the other runs")


def check_input_untouched(estimator: Any, X: TrajectoryArray, y: AnyArray) -> None:
    """Neither the data nor the parameters are changed."""
    before, labels = joblib.hash(X), y.copy()
    parameters = joblib.hash(estimator.get_params(deep=False))
    estimator.fit(X, y).transform(X)
    _require(joblib.hash(X) == before, "changed X")
    _require((y == labels).all(), "changed y")
    same = joblib.hash(estimator.get_params(deep=False)) == parameters
    _require(same, "changed its parameters")


def check_persistence(estimator: Any, X: TrajectoryArray, y: AnyArray) -> None:
    """A pickled copy gives the same values."""
    estimator.fit(X, y)
    copy = pickle.loads(pickle.dumps(estimator))
    _require(_same(copy.transform(X), estimator.transform(X)), "a pickled copy gives other values")


def check_refit(estimator: Any, X: TrajectoryArray, y: AnyArray) -> None:
    """A second fit forgets the first."""
    once = clone(estimator).fit(X, y).transform(X)
    twice = estimator.fit(X[::2], y[::2]).fit(X, y).transform(X)
    _require(_same(once, twice), "a second fit remembers the first")


def check_missing_outcomes(estimator: Any, X: TrajectoryArray, y: AnyArray) -> None:
    """Outcomes -1 (not observed) are accepted, and 0, 1, 2 refused."""
    codes = y.copy()
    codes[:6] = -1
    clone(estimator).fit(X, check_outcomes(codes)).transform(X)
    try:
        estimator.fit(X, codes + 1)
    except ValueError:
        return
    raise AssertionError(
        "accepted outcomes 0, 1, 2, in which failure and not observed can no longer be told"
    )


def check_pipeline_scoring(estimator: Any, X: TrajectoryArray, y: AnyArray) -> None:
    """It works as the last step of a pipeline, and its forecasts can be scored."""
    score = tps_score(y, make_pipeline(estimator).fit(X, y).transform(X))
    _require(np.isfinite(score), "its score is not finite")


CHECKS = (
    check_runs_kept,
    check_probabilities,
    check_no_look_ahead,
    check_row_order,
    check_rows_alone,
    check_input_untouched,
    check_persistence,
    check_refit,
    check_missing_outcomes,
    check_pipeline_scoring,
)
"""All checks, in the order in which they run; each takes an unfitted estimator."""

_OF_FORECASTERS = {check_probabilities, check_missing_outcomes, check_pipeline_scoring}
