"""What all estimators over trajectories have in common."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import TransformerMixin
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from trajscore.core.array import TrajectoryArray
from trajscore.core.checks import check_trajectories
from trajscore.core.convert import check_columns, is_padded, refuse_log, row_ids
from trajscore.core.values import AnyArray, as_numbers, number_of, refuse_kind, refuse_kinds


class TraceTransformer(TransformerMixin, auto_wrap_output_keys=None):  # type: ignore[call-arg]
    """Mixin of transformers whose output is a TrajectoryArray, not a table."""

    @property
    def _output_channels(self) -> Sequence[str]:
        return ("probability",)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        # scikit-learn would wrap `transform` to turn its output into a DataFrame
        super().__init_subclass__(auto_wrap_output_keys=None, **kwargs)

    def get_feature_names_out(self, input_features: Any = None) -> AnyArray:
        """Return the names of the channels of the output; no parameter is read."""
        return np.array(self._output_channels, dtype=object)

    def set_output(self, *, transform: Any = None) -> Self:
        """Refuse to return tables: the output is a TrajectoryArray."""
        if transform not in (None, "default"):
            raise ValueError(
                f"{type(self).__name__} gives runs of different lengths, not a table, so its "
                f"output cannot be set to {transform!r}; make a table of it by .to_frame()"
            )
        return self


def require_y(estimator: Any, y: Any) -> None:
    """Refuse a fit without outcomes, in scikit-learn's words."""
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None"
        )


def inside_of(estimator: Any) -> Any:
    """Return what a search has found, or a frozen estimator holds; None for anything else."""
    if isinstance(estimator, FrozenEstimator):
        return estimator.estimator
    return getattr(estimator, "best_estimator_", None)


def parts_of(estimator: Any) -> list[Any]:
    """Return an estimator and all that it is made of; of a search, what it has found."""
    inside = inside_of(estimator)
    if inside is not None:
        return parts_of(inside)
    parts = [estimator]
    if hasattr(estimator, "get_params"):
        for name, part in estimator.get_params().items():
            if "__" not in name and hasattr(part, "get_params") and not isinstance(part, type):
                parts += parts_of(part)
    return parts


def censored_of(estimator: Any) -> dict[str, str]:
    """What runs of unobserved outcome are to an estimator and its parts, by the class's name."""
    words = {type(part).__name__: getattr(part, "censored", None) for part in parts_of(estimator)}
    return {name: word for name, word in words.items() if isinstance(word, str)}


def check_estimator_input(
    estimator: Any,
    X: Any,
    *,
    reset: bool,
    single_channel: bool = True,
    **flags: bool,
) -> TrajectoryArray:
    """Check X on behalf of an estimator, and note (`reset`) or compare what it is fitted on.

    The estimator gets ``n_channels_in_`` and ``channels_in_`` and, for padded arrays, what
    scikit-learn's ``validate_data`` sets; the flags are those of `check_trajectories`.
    """
    if not reset:
        check_is_fitted(estimator)
    if _is_plain_table(X):
        # scikit-learn's own checks (feature names and counts) hold for plain arrays; the number
        # of columns of a padded array means nothing, so a container skips them
        values = _validated(estimator, X, reset)
        X = TrajectoryArray.from_padded(values, ids=row_ids(X))
    traces = check_trajectories(X, single_channel=single_channel, **flags)
    track_channels(estimator, traces, reset=reset)
    return traces


def like_input(traces: TrajectoryArray, X: Any) -> Any:
    """Return a transformer's output as X came: for a padded array, a padded array."""
    if _is_plain_table(X):
        return traces.padded(n_steps=np.asarray(X).shape[1])
    return traces


def _is_plain_table(X: Any) -> bool:
    return not isinstance(X, TrajectoryArray) and is_padded(X)


def _validated(estimator: Any, X: Any, reset: bool) -> Any:
    """Check a plain table as scikit-learn does; and dates and masks, at which it does not look."""
    refuse_log(X)
    if isinstance(X, pd.DataFrame):
        check_columns(X)
        refuse_kinds(X)
    elif isinstance(X, np.ma.MaskedArray):
        X = as_numbers(X, "X")
    elif isinstance(X, np.ndarray):
        refuse_kind(X.dtype)
    try:
        return validate_data(estimator, X, reset=reset, dtype=float, ensure_all_finite="allow-nan")
    except (ValueError, TypeError, OverflowError) as error:
        if "features, but" not in str(error):
            kind = TypeError if isinstance(error, TypeError) else ValueError
            raise kind(f"X must be runs of numbers: {error}") from error
        raise ValueError(
            f"{str(error).rstrip('.')}; for runs of other lengths wrap both arrays with "
            f"TrajectoryArray.from_padded"
        ) from error


def track_channels(estimator: Any, traces: TrajectoryArray, *, reset: bool) -> None:
    """Note the channels that an estimator is fitted on or, later, refuse other ones."""
    if reset:
        estimator.n_channels_in_ = traces.n_channels
        estimator.channels_in_ = traces.channels
        return
    if traces.n_channels != estimator.n_channels_in_:
        raise ValueError(
            f"{type(estimator).__name__} was fitted on "
            f"{number_of(estimator.n_channels_in_, 'channel')}, got {traces.n_channels}"
        )
    fitted = estimator.channels_in_
    if fitted is not None and traces.channels is not None and traces.channels != fitted:
        raise ValueError(
            f"{type(estimator).__name__} was fitted on the channels {', '.join(fitted)}, got "
            f"{', '.join(traces.channels)}; pick the same ones, in the same order"
        )
