"""Affine calibration of log-probabilities."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import issparse
from scipy.special import log_softmax, softmax
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from trajscore.core.checks import check_sample_weight
from trajscore.core.values import (
    AnyArray,
    ArrayLike,
    FloatArray,
    IntArray,
    are_probabilities,
    as_array,
    as_flag,
    as_numbers,
)


class AffineCalibrator(ClassifierMixin, TransformerMixin, BaseEstimator):
    """Calibrate log-probabilities by softmax(a log s + b), fitted by log-loss.

    The scale a is one number, the bias b one for each class (or none: temperature scaling). The
    fit is not penalised.

    Parameters
    ----------
    bias : bool, default=True
        Whether to fit a bias for each class.

    Attributes
    ----------
    scale_ : float
        Fitted a.
    bias_ : ndarray of shape (n_classes,)
        Fitted b, of mean zero; zeros without bias.
    classes_ : ndarray of shape (n_classes,)
        Class of each column.
    n_iter_ : int
        Iterations of the optimiser.

    References
    ----------
    Estienne et al. (2026), ECUAS_n, arXiv:2605.20490, Section 4.1.

    Examples
    --------
    >>> import numpy as np
    >>> log_s = np.log([[0.99, 0.01], [0.99, 0.01], [0.01, 0.99], [0.99, 0.01]])
    >>> calibrator = AffineCalibrator(bias=False).fit(log_s, [0, 0, 1, 1])
    >>> calibrator.predict_proba(log_s)[:1].round(2)
    array([[0.75, 0.25]])
    """

    def __init__(self, bias: bool = True) -> None:
        self.bias = bias

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit scale and bias to convergence.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_classes)
            Log-probabilities (or logits: a constant of the row does not matter), one column a
            class, in the order of the sorted classes.
        y : array-like of shape (n_samples,)
            Class of each sample.
        sample_weight : array-like of shape (n_samples,), optional
            Weight of each sample.

        Returns
        -------
        AffineCalibrator
            The fitted calibrator.

        Raises
        ------
        ValueError
            If there are not as many classes in `y`, with some weight each, as columns in `X`, fewer
            than two columns, a value that is not finite, or `bias` is not a bool.

        Warns
        -----
        ConvergenceWarning
            If the classes are perfectly separable, so that there is no optimum, or the optimiser
            stops short of it.
        UserWarning
            If `X` looks like probabilities instead of their logarithms.
        """
        bias = as_flag(self.bias, "bias")
        if y is not None:
            y = as_array(y, "y")
        scores, labels = _validated(self, X, y=y)
        check_classification_targets(labels)
        if are_probabilities(scores) and np.allclose(scores.sum(axis=1), 1, rtol=0, atol=1e-4):
            warnings.warn(
                "X looks like probabilities, which are calibrated as if they were "
                "log-probabilities; pass their logarithms",
                UserWarning,
                stacklevel=2,
            )
        weight = check_sample_weight(sample_weight, len(scores))
        scores, labels, weight = (each[weight > 0] for each in (scores, labels, weight))
        self.classes_, codes = np.unique(labels, return_inverse=True)
        n_columns = scores.shape[1]
        if len(self.classes_) != n_columns or n_columns < 2:
            raise ValueError(
                f"y has {len(self.classes_)} classes and X {n_columns} columns; give two columns "
                f"or more, each with samples of its class that have some weight"
            )
        # large margins are tamed for the optimiser only; the scale is put back below
        spread = float(np.std(scores - scores.mean(axis=1, keepdims=True))) or 1.0
        scaled = (scores - scores.max(axis=1, keepdims=True)) / spread
        start = np.append(spread, np.zeros(n_columns))
        optimum = _least_log_loss(scaled, codes, weight / weight.sum(), start, bias)
        self.scale_ = float(optimum.x[0] / spread)
        self.bias_ = optimum.x[1:] - optimum.x[1:].mean()
        self.n_iter_ = int(optimum.nit)
        _warn_unless_converged(self.scale_ * scores + self.bias_, codes, optimum)
        return self

    def transform(self, X: ArrayLike) -> FloatArray:
        """Return calibrated log-probabilities, columns as in `classes_`."""
        return log_softmax(self._affine(X), axis=1)

    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Return calibrated probabilities, the exponential of `transform`."""
        return softmax(self._affine(X), axis=1)

    def predict(self, X: ArrayLike) -> AnyArray:
        """Return the most probable class of each sample."""
        return self.classes_[self._affine(X).argmax(axis=1)]

    def get_feature_names_out(self, input_features: Any = None) -> AnyArray:
        """Return ``log_p_CLASS`` for each column of `transform`; no parameter is read."""
        check_is_fitted(self)
        return np.array([f"log_p_{label}" for label in self.classes_], dtype=object)

    def _affine(self, X: ArrayLike) -> FloatArray:
        check_is_fitted(self)
        return self.scale_ * _validated(self, X, reset=False) + self.bias_


def _validated(calibrator: AffineCalibrator, X: Any, **options: Any) -> Any:
    """Return X, and y if it is given, as scikit-learn does; of X, all are finite numbers."""
    if not issparse(X):
        numbers = as_numbers(X, "log-probabilities")
        if not (hasattr(X, "columns") and numbers.size):  # a table keeps its names
            X = numbers
    validated = validate_data(calibrator, X, dtype=float, ensure_all_finite=False, **options)
    scores = validated[0] if "y" in options else validated
    bad = ~np.isfinite(scores)
    if bad.any():
        row, column = np.argwhere(bad)[0]
        raise ValueError(
            f"row {row}: the log-probability of column {column} is {scores[row, column]:g}, and "
            f"NaN or infinity cannot be calibrated; leave the row out, or floor probabilities "
            f"before taking logarithms"
        )
    return validated


def _least_log_loss(
    scores: FloatArray, codes: IntArray, weight: FloatArray, start: FloatArray, bias: bool
) -> Any:
    """Minimise the log-loss of softmax(a s + b) over (a, b_1, ..., b_K)."""
    rows = np.arange(len(scores))

    def loss(parameters: FloatArray) -> tuple[float, FloatArray]:
        z = log_softmax(parameters[0] * scores + parameters[1:], axis=1)
        residual = np.exp(z) * weight[:, None]
        residual[rows, codes] -= weight
        # without a bias it stays at its start, 0, where it has no gradient
        gradient = np.append((residual * scores).sum(), residual.sum(axis=0) * bias)
        return -float(weight @ z[rows, codes]), gradient

    return minimize(loss, start, jac=True, method="BFGS", options={"gtol": 1e-9, "maxiter": 2000})


def _warn_unless_converged(z: FloatArray, codes: IntArray, optimum: Any) -> None:
    # By how much each sample's class is ahead of the next, in log-probability. Where no sample is
    # worse off as all parameters grow and some are better off, they grow for ever; ties are 0 up to
    # rounding.
    is_own = codes[:, None] == np.arange(z.shape[1])
    margins = z[is_own] - np.where(is_own, -np.inf, z).max(axis=1)
    if margins.max() > 0 and margins.min() >= -1e-9 * margins.max():
        problem = (
            "the classes are perfectly separable, so that no scale is large enough and calibrated "
            "probabilities go to 0 and 1; calibrate on more samples, or floor the probabilities"
        )
    elif not optimum.success and np.abs(optimum.jac).max() > 1e-6:
        problem = (
            f"the fit has stopped before its optimum, with a gradient of "
            f"{np.abs(optimum.jac).max():.2g} ({optimum.message}); check X for very large values"
        )
    else:
        return
    warnings.warn(problem, ConvergenceWarning, stacklevel=3)
