"""The gate through which every trajectory enters; `outcomes.check_outcomes` is the one for y."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from trajscore.trajectories import TrajectoryArray


def check_trajectories(
    X: Any,
    *,
    probabilities: bool = False,
    single_channel: bool = False,
    allow_missing: bool = False,
) -> TrajectoryArray:
    """Return any accepted form of trajectories as a TrajectoryArray.

    Parameters
    ----------
    X : TrajectoryArray, array-like of shape (n_runs, T_max[, n_channels]) or list of runs
        In a plain array or DataFrame, one row is a run and trailing NaN is padding.
    probabilities : bool, default=False
        Whether all values must lie in [0, 1].
    single_channel : bool, default=False
        Whether there must be one value a step.
    allow_missing : bool, default=False
        Whether values may be missing (NaN) in a TrajectoryArray made with ``missing="allow"``.

    Returns
    -------
    TrajectoryArray
        The runs.

    Raises
    ------
    ValueError
        If a value is missing, infinite or outside [0, 1] where it must not be, or a run is
        empty; the message names the run, the step and the remedy.

    Examples
    --------
    >>> import numpy as np
    >>> check_trajectories([[0.9, 0.8], [0.4, np.nan]])
    <TrajectoryArray: 2 runs of 1 to 2 steps>
    """
    traces = X if isinstance(X, TrajectoryArray) else _from_plain(X)
    if single_channel and traces.n_channels > 1:
        raise ValueError(
            f"expected one value a step, got {traces.n_channels} channels "
            f"({', '.join(traces.channels or ())}); pick one with X['name']"
        )
    if single_channel and traces.cells.ndim == 2:
        traces = traces.with_cells(traces.cells[:, 0], channels=traces.channels)
    _check_cells(traces, probabilities, allow_missing)
    return traces


def _check_cells(traces: TrajectoryArray, probabilities: bool, allow_missing: bool) -> None:
    low, high = traces.value_range()
    if low >= (0 if probabilities else -np.inf) and high <= (1 if probabilities else np.inf):
        return
    cells = traces.cells
    if np.isnan(low) and not allow_missing:
        raise ValueError(
            f"{_first(traces, np.isnan(cells))}: the value is missing; drop the run or fill it in"
        )
    outside = (cells < 0) | (cells > 1)
    if probabilities and outside.any():
        raise ValueError(
            f"{_first(traces, outside)}: forecast {cells[outside][0]:g} lies outside [0, 1]; "
            f"turn the signal into probabilities first, for example with "
            f'PlattCrossFitCalibrator(link="identity")'
        )


def _first(traces: TrajectoryArray, bad: np.ndarray) -> str:
    flat = bad.reshape(len(bad), -1)
    cell = int(np.argmax(flat.any(axis=1)))
    place = traces.place(cell)
    if traces.n_channels > 1 and traces.channels:
        place += f", channel {traces.channels[int(np.argmax(flat[cell]))]!r}"
    return place


def _from_plain(X: Any) -> TrajectoryArray:
    if isinstance(X, pd.DataFrame):
        try:
            values = X.to_numpy(dtype=np.float64, na_value=np.nan)
            return TrajectoryArray.from_padded(values, ids=_index_ids(X))
        except (TypeError, ValueError) as error:
            if "could not convert" not in str(error) and "float()" not in str(error):
                raise
            raise ValueError(
                "a DataFrame given as trajectories must hold one run a row and one step a column; "
                "for a long table with one row a step use TrajectoryArray.from_frame"
            ) from error
    if isinstance(X, (list, tuple)) and _is_ragged(X):
        return TrajectoryArray.from_list(X)
    return TrajectoryArray.from_padded(X)


def _index_ids(X: Any) -> Any:
    """Row labels of a DataFrame, where they can identify runs."""
    if not isinstance(X, pd.DataFrame) or not X.index.is_unique:
        return None
    kind = pd.api.types.infer_dtype(X.index)
    return X.index.to_numpy() if kind in ("integer", "string") else None


def _is_ragged(X: Any) -> bool:
    sizes = {len(run) if hasattr(run, "__len__") else -1 for run in X}
    return -1 not in sizes and len(sizes) > 1


def check_sample_weight(sample_weight: Any, n_runs: int) -> np.ndarray:
    """Return one finite weight a run, none negative, not all zero.

    Parameters
    ----------
    sample_weight : array-like of shape (n_runs,) or None
        Weights; None stands for ones.
    n_runs : int
        How many there must be.

    Returns
    -------
    ndarray of shape (n_runs,)
        The weights.

    Raises
    ------
    ValueError
        If there is another number of them, or one is negative or not finite.
    """
    if sample_weight is None:
        return np.ones(n_runs)
    if np.isscalar(sample_weight):
        return np.full(n_runs, float(sample_weight))  # type: ignore[arg-type]
    weights = check_array(
        sample_weight, ensure_2d=False, dtype=np.float64, input_name="sample_weight"
    )
    if weights.shape != (n_runs,):
        raise ValueError(
            f"sample_weight.shape == {weights.shape}, expected {(n_runs,)}: give one for each run"
        )
    if (weights < 0).any():
        row = int(np.argmax(weights < 0))
        raise ValueError(f"row {row}: sample_weight {weights[row]:g} is negative")
    if not weights.any():
        raise ValueError("all sample weights are zero; at least one run must count")
    return weights


def check_estimator_input(
    estimator: Any, X: Any, *, reset: bool, probabilities: bool = False, single_channel: bool = True
) -> TrajectoryArray:
    """Check X on behalf of an estimator and keep track of what it was fitted on.

    Parameters
    ----------
    estimator : BaseEstimator
        The estimator; gets ``n_channels_in_`` and ``channels_in_`` (and, for plain arrays, what
        scikit-learn's ``validate_data`` sets).
    X : TrajectoryArray or array-like
        As in `check_trajectories`.
    reset : bool
        True in fit, False afterwards.
    probabilities, single_channel : bool
        As in `check_trajectories`.

    Returns
    -------
    TrajectoryArray
        The runs.
    """
    if not reset:
        check_is_fitted(estimator)
    if _is_plain_2d(X):
        # scikit-learn's own checks (feature names and counts) hold for plain arrays; the number
        # of columns of a padded array means nothing, so a container skips them
        ids = _index_ids(X)
        X = _validated(estimator, X, reset)
        X = X if ids is None else TrajectoryArray.from_padded(X, ids=ids)
    traces = check_trajectories(X, probabilities=probabilities, single_channel=single_channel)
    track_channels(estimator, traces, reset=reset)
    return traces


def track_channels(estimator: Any, traces: TrajectoryArray, *, reset: bool) -> None:
    """Note the channels that an estimator was fitted on, or refuse other ones.

    Parameters
    ----------
    estimator : BaseEstimator
        The estimator; gets ``n_channels_in_`` and ``channels_in_``.
    traces : TrajectoryArray
        Checked input.
    reset : bool
        True in fit, False afterwards.

    Raises
    ------
    ValueError
        If the estimator was fitted on another number of channels, or on others.
    """
    if reset:
        estimator.n_channels_in_ = traces.n_channels
        estimator.channels_in_ = traces.channels
        return
    if traces.n_channels != estimator.n_channels_in_:
        raise ValueError(
            f"{type(estimator).__name__} was fitted on {estimator.n_channels_in_} channels, got "
            f"{traces.n_channels}"
        )
    fitted = estimator.channels_in_
    if fitted is not None and traces.channels is not None and traces.channels != fitted:
        raise ValueError(
            f"{type(estimator).__name__} was fitted on the channels {', '.join(fitted)}, got "
            f"{', '.join(traces.channels)}; pick the same ones, in the same order"
        )


def _validated(estimator: Any, X: Any, reset: bool) -> Any:
    try:
        return validate_data(
            estimator, X, reset=reset, dtype=np.float64, ensure_all_finite="allow-nan"
        )
    except ValueError as error:
        if "features, but" not in str(error):
            raise
        raise ValueError(
            f"{str(error).rstrip('.')}; for runs of other lengths wrap both arrays with "
            f"TrajectoryArray.from_padded"
        ) from error


def like_input(traces: TrajectoryArray, X: Any) -> Any:
    """Return traces in the form in which X came: a plain array stays a (NaN-padded) array.

    Parameters
    ----------
    traces : TrajectoryArray
        The result of a transformer.
    X : TrajectoryArray or array-like
        Its input.

    Returns
    -------
    TrajectoryArray or ndarray of shape (n_runs, T_max)
        The result.
    """
    return traces.padded() if _is_plain_2d(X) else traces


def _is_plain_2d(X: Any) -> bool:
    if isinstance(X, TrajectoryArray):
        return False
    if isinstance(X, (list, tuple)):
        return not _is_ragged(X)
    return getattr(X, "ndim", 2) <= 2
