"""What lets scikit-learn's own checks, with labels and numbers of their own, try our estimators."""

import warnings
from functools import wraps

import numpy as np
import pandas as pd
from scipy.sparse import issparse

from trajscore import TrajectoryArray

_CROSS_FIT = "fit_transform is cross-fitted and so differs from fit().transform(), as documented"
CROSS_FIT_CHECKS = {
    "check_transformer_general": _CROSS_FIT,
    "check_transformer_data_not_an_array": _CROSS_FIT,
}
"""Checks of scikit-learn that estimators fail which are cross-fitted, and why."""


def any_two_labels(kind):
    """Decorate an estimator that is to take any two labels for failure and success."""

    def coded(method):
        @wraps(method)  # checks read the signature
        def with_outcomes(self, X, y=None, *args, **kwargs):
            labels = np.asarray(y)
            kinds = np.unique(labels) if labels.ndim == 1 else []
            if len(kinds) == 2:
                y = (labels == kinds[1]).astype(int)
            return method(self, X, y, *args, **kwargs)

        return with_outcomes

    for name in ("fit", "fit_transform"):
        if hasattr(kind, name):
            setattr(kind, name, coded(getattr(kind, name)))
    return kind


def public_classes(package):
    """Return the public classes of a package, so that a new one is tested as the others are."""
    public = (getattr(package, name) for name in package.__all__)
    return [thing for thing in public if isinstance(thing, type)]


def reads_forecasts(estimator):
    """Whether values outside [0, 1] are refused."""
    with warnings.catch_warnings(action="ignore"):
        try:
            estimator.fit([[3.0, 2.0], [5.0, 1.0], [0.1, 0.2], [0.3, 0.4]], [1, 1, 0, 0])
        except ValueError as error:
            return "[0, 1]" in str(error)
    return False


def as_forecasts(X):
    """Make numbers of any size forecasts in [0, 1], in any form that checks give them."""
    if issparse(X) or isinstance(X, TrajectoryArray):
        return X
    values = X if isinstance(X, pd.DataFrame) else np.asarray(X)
    is_real = isinstance(values, pd.DataFrame) or values.dtype.kind in "iuf"
    return 0.5 + values / (2 + 2 * abs(values)) if is_real else X  # infinity gives NaN
