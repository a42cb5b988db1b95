"""Out-of-fold traces of any forecaster, and what calibrators that cross-fit have in common."""

from __future__ import annotations

import string
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator, clone
from sklearn.utils import ClassifierTags

from trajscore.calibration.forecaster import (
    Forecaster,
    check_forecaster,
    check_refitted,
    fit_arguments,
)
from trajscore.calibration.look_ahead import sample_look_ahead, warn_of_look_ahead
from trajscore.calibration.training import CalibrationSample, TrainingRuns
from trajscore.core.array import TrajectoryArray
from trajscore.core.checks import (
    Sample,
    check_groups,
    check_sample,
    check_sample_weight,
    check_trajectories,
)
from trajscore.core.convert import as_table
from trajscore.core.errors import TooFewRunsError
from trajscore.core.estimator import censored_of, like_input, require_y
from trajscore.core.folds import check_folds, out_of_fold
from trajscore.core.ids import pair_codes
from trajscore.core.outcomes import CENSORED, CENSORED_AS, as_labels, check_outcomes
from trajscore.core.parallel import one_blas_thread
from trajscore.core.ties import OrdinaryRange
from trajscore.core.values import (
    AnyArray,
    ArrayLike,
    BoolArray,
    FloatArray,
    IntArray,
    check_choice,
    check_jobs,
)
from trajscore.core.weights import Horizon, Weights, as_step_weights
from trajscore.io import Run, meta, outcomes

Map = Callable[[FloatArray], FloatArray]

_FOLD = "cross_fit_fold"
"""Column of the meta of traces that were made out of fold: the fold that each run was held out in.

What differs between folds is the fit, not the run: folds whose training runs fail more often hold
runs that fail less often. So who compares runs at one step compares those of one fold.
"""


def folds_of(traces: TrajectoryArray) -> IntArray:
    """Return the fold that each run was held out in; 0 where none is known."""
    if _FOLD in traces.meta:
        return traces.meta[_FOLD].to_numpy()
    return np.zeros(len(traces), dtype=np.int64)


def with_folds(traces: TrajectoryArray, fold: IntArray) -> TrajectoryArray:
    """Note the folds, within those of an earlier cross-fitting."""
    combined = {_FOLD: pair_codes(folds_of(traces), fold)}
    return traces._replace(meta=traces.meta.assign(**combined))


def cross_fit_traces(
    forecaster: Any,
    X: Any,
    y: ArrayLike,
    *,
    groups: ArrayLike | None = None,
    cv: Any = 5,
    sample_weight: ArrayLike | None = None,
    q_z: ArrayLike | None = None,
    n_jobs: int | None = None,
) -> Any:
    """Return the trace of each run by a forecaster that was fitted on other runs.

    Parameters
    ----------
    forecaster : estimator
        Anything whose ``transform`` gives one number a step: a forecaster, a pipeline that ends in
        one or in a `TraceAggregator`, or a search, which is then run anew for each fold, on its
        training runs. A calibrator that cross-fits by itself gives what its ``fit_transform`` with
        this `cv` gives.
    X : TrajectoryArray, array-like of shape (n_runs, T_max) or list of Run
        Signals, one or more a step. Or the runs of a log, for a pipeline that starts with what
        reads them, such as `trajscore.ActionSignals`: it is fitted on the training runs, too. Of
        these runs, those with an outcome in the log have ended.
    y : array-like of shape (n_runs,)
        Outcomes: 1 success, 0 failure, -1 not observed, or a grade in [0, 1]. What -1 stands for,
        in fits and folds, says the forecaster by its `censored`.
    groups : array-like of shape (n_runs,), optional
        Runs of one group (say, trials of one task) stay in one fold. Passed on to fits that take
        groups, and to the folds of a search that read them.
    cv : int, splitter or list of (train, test), default=5
        Folds: every run is held out once, and trained on otherwise.
    sample_weight : array-like of shape (n_runs,), optional
        Weight of each run, passed on to fits that take weights.
    q_z : float or array-like of shape (n_runs,), optional
        Soft outcomes of the runs with outcome -1, passed on to fits with ``censored="q_z"``.
    n_jobs : int, optional
        Folds are fitted in parallel; the result does not depend on it.

    Returns
    -------
    TrajectoryArray, or NaN-padded ndarray where X was a plain array
        The same runs in the same order; those of a log with their ids, the columns of
        `trajscore.io.meta`, and the steps that the pipeline makes of them. The column
        "cross_fit_fold" of its meta says in which fold each run was held out: forecasts of one step
        are compared within these.

    Raises
    ------
    ValueError
        If `forecaster` cannot be fitted anew (a class, a ``FrozenEstimator``, "prefit"), has no
        ``transform``, or does not give one number for each step; if weights are given and no fit
        takes them; or if there are too few runs or groups.

    Warns
    -----
    UserWarning
        If a value depends on anything but the steps so far. Of the first fold, up to 20 runs are
        cut at some step and forecast again, without ids, horizon, meta and `ended`; the warning
        names the first run and step at which the forecast is another one, and what it depends on.

    See Also
    --------
    trajscore.PlattCrossFitCalibrator : Cross-fits by itself, in ``fit_transform``.

    Examples
    --------
    >>> from trajscore import PrefixForecaster
    >>> from trajscore.calibration import cross_fit_traces
    >>> from trajscore.datasets import make_trajectories
    >>> X, y = make_trajectories(400, lengths=4, random_state=0, return_X_y=True)
    >>> cross_fit_traces(PrefixForecaster(), X, y)
    <TrajectoryArray: 400 runs of 4 steps, channels probability>

    Runs of a log go through a pipeline that reads them. `trajscore.evaluate` judges the traces:

    >>> from sklearn.pipeline import make_pipeline
    >>> from trajscore import ActionSignals, io
    >>> hello, sorry = (io.Step("agent", text) for text in ("Hello!", "I cannot do that."))
    >>> runs = [io.Run(f"run {k}", [hello, [hello, sorry][k % 2]]) for k in range(30)]
    >>> refuses = make_pipeline(ActionSignals(["errors", "refusals"]), PrefixForecaster())
    >>> traces = cross_fit_traces(refuses, runs, [1 - k % 2 for k in range(30)])
    >>> traces[:2].to_frame().round(1)
         run  step  probability
    0  run 0     1          0.5
    1  run 0     2          0.9
    2  run 1     1          0.5
    3  run 1     2          0.1
    """
    check_forecaster(forecaster)
    runs = _runs_of_log(X)
    if isinstance(forecaster, CrossFitCalibrator):
        if forecaster.censored != "q_z":
            q_z = None
        calibrator = clone(forecaster).set_params(cv=cv)
        return calibrator.fit_transform(X, y, sample_weight, groups, q_z)
    sample = check_sample(
        X if runs is None else _one_step_each(runs),
        y,
        groups=groups,
        sample_weight=sample_weight,
        q_z=q_z,
        allow_missing=True,
    )
    traces = cross_fit_sample(
        forecaster, sample, cv, runs=runs, n_jobs=n_jobs, is_weighted=sample_weight is not None
    )
    if runs is None:
        return like_input(traces, X)
    return traces


def _runs_of_log(X: Any) -> list[Run] | None:
    """Return the runs of a log as a list; None for traces in any form."""
    is_flat = isinstance(X, (list, tuple, pd.Series, np.ndarray)) and getattr(X, "ndim", 1) == 1
    if is_flat and len(X) and isinstance(next(iter(X)), Run):
        return list(X)
    return None


def _one_step_each(runs: Sequence[Run]) -> TrajectoryArray:
    """Return all that is known of runs of a log before a pipeline makes steps of them."""
    table = meta(runs)
    return TrajectoryArray(
        np.zeros(len(runs)),
        np.ones(len(runs), dtype=np.int64),
        ids=table["run"],
        meta=table.drop(columns=["run", "outcome"]),
        ended=outcomes(runs) != CENSORED,
    )


def cross_fit_sample(
    forecaster: Any,
    sample: Sample,
    cv: Any = 5,
    *,
    runs: Sequence[Run] | None = None,
    n_jobs: int | None = None,
    is_weighted: bool = False,
) -> TrajectoryArray:
    """Return out-of-fold traces of checked runs.

    A calibrator that cross-fits has its own `cv`; its `maps_` are fitted in place, but no map for
    new runs. Others are given `runs`, the same ones as in a log, in place of their traces.
    """
    check_refitted(forecaster)
    traces = sample.X
    codes = np.asarray(sample.y)
    metadata = {"groups": sample.groups, "q_z": sample.q_z, "sample_weight": sample.weight}
    if isinstance(forecaster, CrossFitCalibrator):
        arguments = fit_arguments(forecaster, metadata)
        checked = forecaster._training_runs(traces, codes, **arguments)
        return forecaster._fit_checked(checked, for_new_runs=False)
    if not is_weighted:
        del metadata["sample_weight"]
    # the folds of what the forecaster takes unobserved runs for
    censored = next(iter(censored_of(forecaster).values()), "failure")
    labels = as_labels(codes, censored=censored, q_z=sample.q_z if censored == "q_z" else None)
    training = TrainingRuns(traces, labels, labels.is_counted * sample.weight, sample.groups)
    fold = training.folds(cv)
    order = sample.id_order()  # of the runs in each fit, so that the order of rows cannot matter

    def select(rows: IntArray) -> Any:
        if runs is None:
            return traces[rows]
        return [runs[row] for row in rows]

    def job(train: BoolArray) -> tuple[Any, ...]:
        rows = order[train[order]]
        of_runs = {name: v[rows] for name, v in metadata.items() if v is not None}
        return forecaster, select(rows), codes[rows], of_runs

    jobs = [(*training, select(rows)) for rows, training in out_of_fold(fold, job)]
    check_jobs(n_jobs)
    parts, look_ahead = zip(
        *Parallel(n_jobs=n_jobs)(
            delayed(_fitted_trace)(*arguments, k == 0) for k, arguments in enumerate(jobs)
        ),
        strict=True,
    )
    warn_of_look_ahead(forecaster, look_ahead[0])
    # of a log, each run has the steps that the pipeline made of it
    in_order = TrajectoryArray.concat(parts)[np.argsort(np.argsort(fold, kind="stable"))]
    out = traces._replace(
        cells=in_order.cells, offsets=in_order.offsets, channels=parts[0].channels
    )
    return with_folds(out, fold)


def _fitted_trace(
    forecaster: Any,
    X: Any,
    y: AnyArray,
    metadata: dict[str, AnyArray],
    held_out: Any,
    is_checked: bool,
) -> tuple[TrajectoryArray, str]:
    """Fit on some runs and return the traces of others, and whether a sample looks ahead."""
    fitted = clone(forecaster).fit(X, y, **fit_arguments(forecaster, metadata))
    out = check_trajectories(fitted.transform(held_out), allow_missing=True)
    is_log = not isinstance(held_out, TrajectoryArray)
    n_steps = out.lengths if is_log else held_out.lengths
    if out.n_channels != 1 or len(out) != len(held_out) or (out.lengths != n_steps).any():
        raise ValueError(
            f"the transform of {type(forecaster).__name__} must give one number for each step of "
            f"each run"
        )
    if not is_log:
        out = held_out.with_cells(out.cells.ravel(), channels=out.channels)
    look_ahead = sample_look_ahead(fitted.transform, held_out, out) if is_checked else ""
    return out, look_ahead


class LearnedForecaster(Forecaster, BaseEstimator):
    """Base of forecasters that learn from outcomes.

    A subclass says how in `fit`, whose `groups` only ``fit_transform`` reads.
    """

    censored: str

    # unless `set_fit_request` says otherwise: groups stay whole here as in scikit-learn's splitters
    # of groups, and q_z is for the scorer
    __metadata_request__fit = {"groups": True, "q_z": False}  # noqa: RUF012

    def fit_transform(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        q_z: ArrayLike | None = None,
    ) -> Any:
        """Fit on all runs, and return the forecasts of each run by a fit on other runs.

        So what follows in a pipeline, such as a calibrator, is fitted on forecasts as good as those
        of new runs. The forecasts of ``fit(X, y).transform(X)`` are others: they are those of the
        fit on all runs, which has seen the outcomes of these runs (scheme of scikit-learn's
        ``TargetEncoder``).

        Parameters
        ----------
        X, y, sample_weight, q_z : array-like
            As in `fit`.
        groups : array-like of shape (n_runs,), optional
            Runs of one group (say, trials of one task) stay in one fold: of five, or of the `cv`
            of a calibrator.

        Returns
        -------
        TrajectoryArray, or NaN-padded ndarray where X was a plain array
            Out-of-fold forecasts of the training runs, as by `cross_fit_traces`. A channel keeps
            its name; one without a name is called "probability".

        Raises
        ------
        ValueError
            As in `fit`, or if there are too few runs, outcomes or groups for the folds.
        """
        return self._fit_transform(X, y, sample_weight=sample_weight, groups=groups, q_z=q_z)

    def _fit_transform(self, X: Any, y: Any, **metadata: Any) -> Any:
        self.fit(X, y, **fit_arguments(self, metadata))
        return cross_fit_traces(self, X, y, **metadata)

    def _training_runs(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        q_z: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> TrainingRuns:
        """Check parameters and runs of a fit, of which some must count."""
        require_y(self, y)
        self._check_parameters()
        traces = self._check_runs(X, reset=True)
        labels = as_labels(check_outcomes(y, traces), censored=self.censored, q_z=q_z)
        weight = labels.is_counted * check_sample_weight(sample_weight, len(traces))
        if not weight.any():
            raise TooFewRunsError("no training run counts; give runs with an observed outcome")
        if groups is not None:
            groups = check_groups(groups, len(traces))
        self.n_censored_ = int((~labels.observed).sum())
        self.n_dropped_ = int((weight == 0).sum())
        return TrainingRuns(traces, labels, weight, groups)

    def _without_outliers(self, training: TrainingRuns) -> TrainingRuns:
        """Note the range of the ordinary scores of runs that count; outliers become its ends."""
        X = training.X
        counted = np.repeat(training.weight > 0, X.lengths)
        self._range = OrdinaryRange.of(as_table(X.cells)[counted])
        return training._replace(X=X.with_cells(self._range.nearest(X.cells)))

    def _check_parameters(self) -> None:
        """Refuse parameters that no runs can be fitted with; a subclass adds its own."""
        check_choice(self.censored, "censored", CENSORED_AS)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.classifier_tags = ClassifierTags(multi_class=False)  # outcomes are binary
        return tags


class CrossFitForecaster(LearnedForecaster):
    """Base of those whose fit gives out-of-fold forecasts as well, as `_fit_transform` says."""

    def __init__(
        self,
        cv: Any = 2,
        weights: Weights = "early",
        horizon: Horizon = None,
        censored: str = "failure",
    ) -> None:
        self.cv = cv
        self.weights = weights
        self.horizon = horizon
        self.censored = censored

    def _check_parameters(self) -> None:
        super()._check_parameters()
        as_step_weights(self.weights, self.horizon)
        check_folds(self.cv)

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        q_z: ArrayLike | None = None,
    ) -> Self:
        """Fit to all runs, and to the folds of a cross-fit.

        Parameters
        ----------
        X : TrajectoryArray or array-like of shape (n_runs, T_max)
            What `transform` takes: signals, one or more a step.
        y : array-like of shape (n_runs,)
            Outcomes: 1 success, 0 failure, -1 not observed, or a grade in [0, 1].
        sample_weight : array-like of shape (n_runs,), optional
            Weight of each run; 0 leaves it out, 2 counts it twice.
        groups : array-like of shape (n_runs,), optional
            Runs of one group (say, trials of one task) stay in one fold.
        q_z : float or array-like of shape (n_runs,), optional
            Soft outcomes of the runs with outcome -1, for ``censored="q_z"``.

        Returns
        -------
        estimator
            The fitted forecaster.

        Raises
        ------
        ValueError
            If a parameter, a value or an outcome cannot be used; if there is not one
            outcome, weight, group and `q_z` for each run; or if there are too few runs, outcomes
            or groups for the folds.
        """
        self.fit_transform(X, y, sample_weight, groups, q_z)
        return self


class CrossFitCalibrator(CrossFitForecaster):
    """Base of calibrators: one map of a signal's values to probabilities, fitted over all steps.

    A subclass has the parameters `cv`, `weights`, `horizon` and `censored`, and says in `_fit_map`
    how a map is fitted to a `CalibrationSample`; cross-fitting, weights, unobserved outcomes and
    the form of the output follow. A map is called with values and returns probabilities, which rise
    (or all fall) with the values; its numbers, such as ``slope``, become the columns of `summary`.
    """

    keyword: ClassVar[str] = ""  # calibrator="platt", --calibrator platt
    _for_signals: ClassVar[dict[str, Any]] = {}  # parameters for signals outside [0, 1]
    _is_stepwise: ClassVar[bool] = False  # whether its maps may jump between two near values

    @abstractmethod
    def _fit_map(self, sample: CalibrationSample) -> Map:
        """Fit one map; both outcomes have weight."""

    def _advance(
        self, state: Any, scores: FloatArray, done: BoolArray | None
    ) -> tuple[None, FloatArray]:
        return None, self.full_map_(scores[:, 0])

    def summary(self) -> pd.DataFrame:
        """Say what happened in the fit, one row a map.

        Returns
        -------
        DataFrame indexed by map name
            The map's numbers, and its probabilities at the two ends of the training values of
            positive weight: low, high. As maps are monotone, all others lie between them.
        """
        rows = []
        for name, fitted in {**self.maps_, "all": self.full_map_}.items():
            numbers = {of: v for of, v in vars(fitted).items() if isinstance(v, (int, float))}
            low, high = sorted(fitted(np.concatenate(self._range[:2])))
            rows.append({"map": name, **numbers, "low": low, "high": high})
        return pd.DataFrame(rows).set_index("map")

    def _fit_transform(self, X: Any, y: Any, **metadata: Any) -> Any:
        training = self._training_runs(X, y, **metadata)
        return like_input(self._fit_checked(training), X)

    @one_blas_thread
    def _fit_checked(self, training: TrainingRuns, for_new_runs: bool = True) -> TrajectoryArray:
        """Fit the maps to checked runs, and return their out-of-fold traces."""
        fold = training.folds(self.cv)
        training = self._without_outliers(training)
        traces = training.X
        rows = training.rows
        steps = training.steps(as_step_weights(self.weights, self.horizon))

        def fit(train: BoolArray) -> Map:
            part = steps.of(train[rows]).scaled()
            which = "all runs" if train.all() else "all runs of a fold"
            for weight, kind in ((part.success, "failures"), (part.failure, "successes")):
                if not weight.any():
                    raise TooFewRunsError(
                        f"{which} are {kind}; calibration needs successes and failures in every "
                        f"fold: give more runs, or a smaller cv"
                    )
            return self._fit_map(part.sample(part.X.cells))

        if for_new_runs:
            self.full_map_ = fit(np.ones(len(traces), dtype=bool))
        maps = []
        calibrated = np.empty(len(traces.cells))
        cell_fold = np.repeat(fold, traces.lengths)
        for k, (_, fitted) in enumerate(out_of_fold(fold, fit)):
            held_out = cell_fold == k
            maps.append(fitted)
            calibrated[held_out] = fitted(traces.cells[held_out])
        letters = string.ascii_uppercase
        names = [*letters, *(f"fold{k + 1}" for k in range(len(letters), len(maps)))]
        if len(maps) == 2:  # a map is named after the fold that it is fitted on (Appendix D)
            maps.reverse()
        self.maps_ = dict(zip(names, maps, strict=False))
        counted = calibrated[np.repeat(training.weight > 0, traces.lengths)]
        self.calibrated_range_ = float(counted.min()), float(counted.max())
        return with_folds(traces.with_cells(calibrated, self._output_channels), fold)
