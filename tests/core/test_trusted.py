"""Estimators go through skops with the types that we name, and no more."""

import io as files
from copy import deepcopy
from importlib import import_module
from types import ModuleType

import joblib
import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from any_input import public_classes
from trajscore import (
    PlattCrossFitCalibrator,
    TraceAggregator,
    censoring,
    io,
    localization,
    tps_scorer,
    tracer,
    trusted_types,
)
from trajscore import calibration as c
from trajscore import monitoring as m
from trajscore.datasets import make_trajectories

X, Y = make_trajectories(120, lengths=(3, 6), random_state=0, return_X_y=True)
LOG_P = np.log(np.c_[X.steps(1), 1 - X.steps(1)])
SHARES = X.with_cells(X.cells / 6)
STOPPED = (X.lengths < X.lengths.max()) & (np.arange(120) % 4 == 0)
HI, SAMPLED = io.Step("user", "Hi."), {"samples": ["a", "b"]}
RUNS = [
    io.Run(str(k), [HI, io.Step("agent", f"Confidence: {k}%", extra=SAMPLED)], outcome=k % 2)
    for k in range(10, 16)
]
SIGNALS = tracer.TracerSignals().fit_transform(RUNS)
ON_RUNS = (
    tracer.ActionSignals,
    tracer.SemanticEntropy,
    tracer.StepConfidence,
    tracer.TracerSignals,
)
ON_SIGNALS = (tracer.SAUP, tracer.ChannelRisk, tracer.TracerScorer)
FITTED = {
    "pipeline": lambda: make_pipeline(PlattCrossFitCalibrator(), TraceAggregator()).fit(X, Y),
    "search": lambda: GridSearchCV(
        PlattCrossFitCalibrator(), {"C": [1, 2]}, scoring=tps_scorer, cv=2
    ).fit(X, Y),
    "features": lambda: c.PrefixForecaster(features="running", pooled=True, end="step").fit(X, Y),
    m.LearnThenTestStop: lambda: m.LearnThenTestStop(alpha=0.3, lost_accuracy=None).fit(X, Y),
    "several levels": lambda: m.CalibratedVerifier(alpha=[0.1, 0.2]).fit(X, Y),
    c.AffineCalibrator: lambda: c.AffineCalibrator().fit(LOG_P, Y),
    censoring.ContinuationModel: lambda: censoring.ContinuationModel().fit(
        X, np.where(STOPPED, -1, Y), predictor=X.with_cells(np.round(X.cells))
    ),
    censoring.MonteCarloContinuation: lambda: censoring.MonteCarloContinuation().fit(
        X, [[1, 0, 1, 1, 0]] * len(X)
    ),
    localization.FirstErrorWindow: lambda: localization.FirstErrorWindow().fit(SHARES, Y),
    censoring.StopHazard: lambda: censoring.StopHazard().fit(X, STOPPED),
    **{kind: lambda kind=kind: kind().fit(RUNS) for kind in ON_RUNS},
    **{kind: lambda kind=kind: kind().fit(SIGNALS) for kind in ON_SIGNALS},
}


def public_estimators():
    classes = {
        kind for one in (c, censoring, localization, m, tracer) for kind in public_classes(one)
    }
    kinds = [one for one in classes if issubclass(one, BaseEstimator)]
    return sorted(set(kinds) - {m.StoppingRule}, key=lambda one: one.__name__)  # a base class


def told(fitted):
    """Return all that an estimator tells of what it may see."""
    given = {
        **dict.fromkeys(ON_RUNS, RUNS), **dict.fromkeys(ON_SIGNALS, SIGNALS),
        c.AffineCalibrator: LOG_P, localization.FirstErrorWindow: SHARES,
    }.get(type(fitted), X)  # fmt: skip
    ways = ("transform", "predict_proba", "score_samples", "predict", "stopping_steps")
    numbers = [getattr(fitted, way)(given) for way in ways if hasattr(fitted, way)]
    if isinstance(fitted, censoring.StopHazard):
        score = censoring.ipcw_tps_score(np.where(STOPPED, -1, Y), X, fitted)
        numbers += [fitted.hazard_, fitted.history_, score]
    if isinstance(fitted, m.FleetMonitor):
        later = deepcopy(fitted)
        later.update(X, 1 - Y)
        numbers += [later.e_values_]
    return [one.padded() if hasattr(one, "padded") else np.asarray(one) for one in numbers]


def test_every_public_estimator_comes_back():
    skops = pytest.importorskip("skops.io")
    for kind in [*FITTED, *(one for one in public_estimators() if one not in FITTED)]:
        fitted = FITTED.get(kind, lambda kind=kind: kind().fit(X, Y))()
        expected = told(fitted)
        assert expected
        kept = files.BytesIO()
        joblib.dump(fitted, kept)
        kept.seek(0)
        for again in (skops.loads(skops.dumps(fitted), trusted=trusted_types()), joblib.load(kept)):
            assert type(again) is type(fitted)
            for one, other in zip(told(again), expected, strict=True):
                np.testing.assert_array_equal(one, other, err_msg=str(kind))


FUNCTIONS = {"_with_squares"}
ACTS = {"http", "io", "os", "shutil", "socket", "sqlite3", "subprocess", "threading", "urllib"}


def test_what_is_trusted_keeps_numbers_and_does_nothing():
    ours = [name.rpartition(".") for name in trusted_types() if name.startswith("trajscore.")]
    kinds = [getattr(import_module(file), name) for file, _, name in ours]
    assert {one.__name__ for one in kinds if not isinstance(one, type)} == FUNCTIONS
    names = {name for _, _, name in ours}
    assert names > {"BetaScore", "PlattMap", "PacMarginal", "FittedTest", "TPSScorer", "Guard"}
    assert not names & {"StepJudge", "EProcessMonitor", "CustomScore", "Threshold", "StoppingRule"}
    for kind in set(kinds) - {one for one in kinds if one.__name__ in FUNCTIONS}:
        # nothing runs when it is restored, but what scikit-learn does for estimators
        assert not {"__setstate__", "__reduce__", "__reduce_ex__", "__del__"} & set(vars(kind))
        assert "__new__" not in vars(kind) or issubclass(kind, tuple)
    for file, _, _ in ours:  # nor does its file have what could open, send or start something
        names = vars(import_module(file)).values()
        used = {one.__name__.partition(".")[0] for one in names if isinstance(one, ModuleType)}
        assert not used & ACTS, file


def test_a_function_is_not_trusted():
    skops = pytest.importorskip("skops.io")
    kept = skops.dumps({"harm": np.save})
    with pytest.raises(Exception, match="numpy"):
        skops.loads(kept, trusted=trusted_types())
