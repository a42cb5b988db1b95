"""Scorers of forecasters and classifiers, for cross-validation and model selection."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn import get_config
from sklearn.metrics import make_scorer
from sklearn.utils.metadata_routing import MetadataRequest

from trajscore.core.checks import check_sample_weight, check_trajectories, ended_where_known
from trajscore.core.estimator import censored_of
from trajscore.core.ids import check_index
from trajscore.core.outcomes import CENSORED, SUCCESS, as_labels, check_outcomes
from trajscore.core.policy import MIN_RUNS_PER_FOLD
from trajscore.core.score_families import get_family
from trajscore.core.values import (
    AnyArray,
    ArrayLike,
    ByName,
    as_amount,
    as_flag,
    as_numbers,
    number_of,
)
from trajscore.core.weights import OWN, Horizon, Weights, as_step_weights
from trajscore.metrics._ecuas import ecuas_score
from trajscore.metrics.tps import censored_tps_score, tps_score


class TPSScorer:
    """Scores the traces that a forecaster's ``transform`` gives; `censored` None: all observed.

    scikit-learn's own `make_scorer` does so from release 1.9 on only.
    """

    def __init__(
        self, options: ByName, censored: str | None = None, q_z: ArrayLike | None = None
    ) -> None:
        self.options = options
        self.censored = censored
        self.q_z = q_z
        # by which learning curves and other reports label a callable
        self.__name__ = (censored_tps_score if censored else tps_score).__name__
        self.requests: ByName = {"sample_weight": None}
        if censored == "q_z":
            self.requests["q_z"] = None

    def __call__(
        self,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        q_z: ArrayLike | None = None,
    ) -> float:
        """Return the score of a fitted forecaster; a `q_z` given here replaces that of before."""
        codes = check_outcomes(y)
        if self.censored is None:
            _refuse_unobserved(codes)
        labels = as_labels(
            codes, censored=self.censored or "failure", q_z=self.q_z if q_z is None else q_z
        )
        if not labels.observed.all():
            self._check_agreement(estimator)
        scored = labels.is_counted
        self._warn_of_small_fold(int(scored.sum()))
        if not hasattr(estimator, "transform"):
            name = type(estimator).__name__
            raise TypeError(
                f"{name} has no transform, which is to give a forecast a step; score a forecaster, "
                f"such as PrefixForecaster({name}())"
            )
        traces = check_trajectories(estimator.transform(ended_where_known(X, codes)))
        check_index(sample_weight, traces.ids, "sample_weight")
        return censored_tps_score(
            codes[scored],
            traces[scored],
            q_z=labels.value[scored],
            sample_weight=check_sample_weight(sample_weight, len(scored))[scored],
            **self.options,
        )

    def _warn_of_small_fold(self, n_runs: int) -> None:
        """Warn of folds so small that the mean of their scores may prefer the wrong model."""
        if (
            n_runs < MIN_RUNS_PER_FOLD
            and self.options["normalize"]
            and self.options["horizon"] != OWN
        ):
            warnings.warn(
                f"The fold has {number_of(n_runs, 'run')}. The score divides by the weights of a "
                f"fold's steps, so with fewer than {MIN_RUNS_PER_FOLD} runs the mean over folds "
                f"may prefer the wrong model. Use fewer folds, or "
                f"make_{self.__name__}r(normalize=False)",
                stacklevel=3,
            )

    def _check_agreement(self, estimator: Any) -> None:
        """Warn where a forecaster was fitted to other outcomes than it is judged by."""
        for name, censored in censored_of(estimator).items():
            if censored != self.censored:
                warnings.warn(
                    f"{name} was fitted with censored={censored!r}, but the scorer has "
                    f"censored={self.censored!r}. Give both the same",
                    stacklevel=3,
                )

    def set_score_request(self, **requests: bool | str | None) -> Self:
        """Say which metadata the scorer takes, as scikit-learn's scorers do."""
        if not get_config()["enable_metadata_routing"]:
            raise RuntimeError(
                "metadata routing is not enabled; call "
                "sklearn.set_config(enable_metadata_routing=True) first"
            )
        for name in requests:
            if name not in self.requests:
                raise TypeError(
                    f"{self!r} does not take {name!r}; it takes {', '.join(self.requests)}"
                )
        self.requests |= requests
        return self

    def get_metadata_routing(self) -> MetadataRequest:
        """Return what `set_score_request` has set."""
        request = MetadataRequest(owner=type(self).__name__)
        for name, alias in self.requests.items():
            request.score.add_request(param=name, alias=alias)
        return request

    def _accept_sample_weight(self) -> bool:
        # scikit-learn 1.9 asks each scorer of several, where metadata routing is not enabled
        return True

    def __repr__(self) -> str:
        shown = {name: getattr(self, name) for name in ("censored", "q_z")}
        shown = {name: value for name, value in shown.items() if value is not None}
        options = ", ".join(f"{name}={value!r}" for name, value in (self.options | shown).items())
        return f"{type(self).__name__}({options})"


def _refuse_unobserved(codes: AnyArray) -> None:
    unobserved = codes == CENSORED
    if unobserved.any():
        # searches turn the error below into their error_score, and go on
        warnings.warn(
            "tps_scorer gives no score where an outcome is -1 (unobserved), so a search that goes "
            "on chooses by nothing. Use scoring=make_censored_tps_scorer(censored=...), or leave "
            "out the runs without an outcome",
            stacklevel=3,
        )
        raise ValueError(
            f"run {int(np.argmax(unobserved))}: the outcome is -1 (unobserved; "
            f"{int(unobserved.sum())} of {len(codes)} are), and tps_scorer needs observed "
            f"outcomes; use censored_tps_scorer, or make_censored_tps_scorer(censored=...)"
        )


def make_tps_scorer(
    score: Any = "log", weights: Weights = "early", horizon: Horizon = None, normalize: bool = True
) -> TPSScorer:
    """Make a scorer of Trajectory Proper Scores; higher is better.

    Parameters
    ----------
    score, weights, horizon, normalize : score family, step weights and bool
        As in `tps_score`. Where folds have fewer than 20 runs, ``normalize=False`` makes the mean
        over folds as proper as the score; a warning says so.

    Returns
    -------
    callable
        ``scorer(forecaster, X, y)``: scores the traces that the forecaster's ``transform``
        gives. Takes ``sample_weight`` by metadata routing, or directly when routing is off.

    Raises
    ------
    ValueError
        If the score or the weights are unknown. The scorer itself raises it where an outcome is
        -1; searches and cross-validation apply their `error_score` to that, and a warning says so.

    See Also
    --------
    make_censored_tps_scorer : For outcomes that were not all observed.

    Examples
    --------
    >>> import numpy as np
    >>> from trajscore import PlattCrossFitCalibrator, make_tps_scorer
    >>> X, y = np.array([[0.9], [0.8], [0.4], [0.3]]), np.array([1, 1, 0, 0])
    >>> scorer = make_tps_scorer("brier", normalize=False)
    >>> round(scorer(PlattCrossFitCalibrator().fit(X, y), X, y), 3)
    -0.079
    """
    return TPSScorer(_checked(score, weights, horizon, normalize))


def make_censored_tps_scorer(
    score: Any = "log",
    weights: Weights = "early",
    horizon: Horizon = None,
    censored: str = "failure",
    q_z: ArrayLike | None = None,
    normalize: bool = True,
) -> TPSScorer:
    """Make a scorer for runs whose outcome may be -1, not observed; higher is better.

    Parameters
    ----------
    score, weights, horizon : score family and step weights
        As in `tps_score`.
    censored : {"failure", "drop", "q_z"}, default="failure"
        What runs with outcome -1 are: failures (the simple censored score), left out, or the soft
        outcome `q_z` (the exact one). Where the forecaster has another `censored`, a warning names
        both.
    q_z : float, optional
        Continuation-success probability of the runs that were not observed. One for each run goes
        by metadata routing: ``make_censored_tps_scorer(censored="q_z")`` with
        ``.set_score_request(q_z=True)``.
    normalize : bool, default=True
        As in `make_tps_scorer`.

    Returns
    -------
    callable
        ``scorer(forecaster, X, y)``, as that of `make_tps_scorer`.

    Raises
    ------
    ValueError
        If the score, the weights or `censored` are unknown, or `q_z` lies outside [0, 1] or is
        given without ``censored="q_z"``.

    See Also
    --------
    make_tps_scorer : For outcomes that were all observed.

    Examples
    --------
    >>> import numpy as np
    >>> from trajscore import PlattCrossFitCalibrator, make_censored_tps_scorer
    >>> X, y = np.array([[0.9], [0.8], [0.4], [0.3]]), np.array([1, 1, -1, 0])
    >>> scorer = make_censored_tps_scorer("brier", normalize=False)
    >>> round(scorer(PlattCrossFitCalibrator().fit(X, y), X, y), 3)
    -0.079
    """
    options = _checked(score, weights, horizon, normalize)
    y = np.empty(0)
    if q_z is not None:
        values = as_numbers(q_z, "q_z")
        # the q_z of a run may be missing where its outcome was observed
        y = np.atleast_1d(np.where(np.isnan(values) & (values.ndim > 0), SUCCESS, CENSORED))
    as_labels(y, censored=censored, q_z=q_z)
    return TPSScorer(options, censored, q_z)


def _checked(score: Any, weights: Weights, horizon: Horizon, normalize: bool) -> ByName:
    # a wrong name should fail where it is written, not inside a grid search
    get_family(score)
    as_step_weights(weights, horizon)
    normalize = as_flag(normalize, "normalize")
    return {"score": score, "weights": weights, "horizon": horizon, "normalize": normalize}


def make_ecuas_scorer(
    n: float = 1,
    cost: ArrayLike | str | None = None,
    normalize: bool = False,
    labels: ArrayLike | None = None,
) -> Any:
    """Make a scorer of negated ECUAS_n; higher is better.

    Parameters
    ----------
    n, cost, normalize : float, array-like or "log", and bool
        As in `ecuas_score`.
    labels : array-like of shape (n_classes,), optional
        The classes, sorted as in ``classes_`` of the classifier; needed where a fold may have no
        run of one, because a scorer is not told which column is whose.

    Returns
    -------
    callable
        ``scorer(classifier, X, y)``; reads ``predict_proba``, so it also judges pipelines that
        end in a `TraceAggregator`. It raises a ValueError where fewer classes occur than there
        are columns, unless `labels` is given.

    Raises
    ------
    ValueError
        If n < 0.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.model_selection import cross_val_score
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = load_iris(return_X_y=True)
    >>> bool((cross_val_score(GaussianNB(), X, y, scoring=make_ecuas_scorer(n=0)) < 0).all())
    True
    """
    as_amount(n, "n")
    return make_scorer(
        _ecuas_cost,
        response_method="predict_proba",
        greater_is_better=False,
        n=n,
        cost=cost,
        normalize=normalize,
        labels=labels,
    )


def _ecuas_cost(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    **options: Any,
) -> float:
    """Score what a scorer hands over: for two classes, the second column only."""
    P = np.asarray(y_proba, dtype=float)
    if P.ndim == 1:
        P = np.stack([1 - P, P], axis=1)
    n_classes = len(pd.unique(np.asarray(y_true).ravel()))
    if labels is None and n_classes < P.shape[1]:
        raise ValueError(
            f"only {n_classes} of {P.shape[1]} classes occur in this fold, so the columns of "
            f"predict_proba are ambiguous; pass labels= to make_ecuas_scorer, the class of each"
        )
    return ecuas_score(y_true, P, labels=labels, sample_weight=sample_weight, **options)


tps_scorer = make_tps_scorer()
"""Log score with weights 1/sqrt(t)."""

censored_tps_scorer = make_censored_tps_scorer()
"""Simple censored log score (unobserved runs are failures) with weights 1/sqrt(t)."""

ecuas_scorer = make_ecuas_scorer()
"""Negated ECUAS_1 for the 0-1 cost."""
