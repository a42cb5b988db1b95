"""Estimators go through skops with the types that we name, and no more."""

from importlib import import_module

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from trajscore import (
    ActionSignals,
    DensityRatioEProcess,
    PlattCrossFitCalibrator,
    PrefixForecaster,
    StepConfidence,
    TraceAggregator,
    TracerScorer,
    TracerSignals,
    io,
    tps_scorer,
    trusted_types,
)
from trajscore.calibration import AffineCalibrator, BetaCrossFitCalibrator
from trajscore.datasets import make_trajectories

X, Y = make_trajectories(120, lengths=4, random_state=0, return_X_y=True)
RUNS = [
    io.Run(str(k), [io.Step("user", "Hi."), io.Step("agent", f"Confidence: {k}%")], outcome=k % 2)
    for k in range(10, 16)
]
FITTED = {
    "platt": lambda: PlattCrossFitCalibrator().fit(X, Y),
    "beta": lambda: BetaCrossFitCalibrator().fit(X, Y),
    "affine": lambda: AffineCalibrator().fit(np.log(np.c_[X.steps(1), 1 - X.steps(1)]), Y),
    "pipeline": lambda: make_pipeline(PlattCrossFitCalibrator(), TraceAggregator()).fit(X, Y),
    "prefix": lambda: PrefixForecaster(features="running", pooled=True, end="step").fit(X, Y),
    "search": lambda: GridSearchCV(
        PlattCrossFitCalibrator(), {"C": [1, 2]}, scoring=tps_scorer, cv=2
    ).fit(X, Y),
    "e-process": lambda: DensityRatioEProcess(alpha=0.2).fit(X, Y),
    "signals": lambda: TracerSignals().fit(RUNS),
    "scorer": lambda: TracerScorer().fit(TracerSignals().fit_transform(RUNS)),
    "confidence": lambda: StepConfidence().fit(RUNS),
    "actions": lambda: ActionSignals().fit(RUNS),
}


@pytest.mark.parametrize("name", FITTED)
def test_estimators_come_back(name):
    skops = pytest.importorskip("skops.io")
    fitted = FITTED[name]()
    kept = skops.dumps(fitted)
    again = skops.loads(kept, trusted=trusted_types())
    assert type(again) is type(fitted)
    if name in ("signals", "confidence", "actions"):
        assert again.transform(RUNS) == fitted.transform(RUNS)
    elif name == "affine":
        log_p = np.log(np.c_[X.steps(1), 1 - X.steps(1)])
        assert (again.predict_proba(log_p) == fitted.predict_proba(log_p)).all()
    elif name != "scorer":
        assert again.transform(X) == fitted.transform(X)


def test_names_are_those_of_types_that_are_there():
    for name in trusted_types():
        module, _, thing = name.rpartition(".")
        if module.startswith("trajscore"):
            assert callable(getattr(import_module(module), thing)), name


def test_a_function_is_not_trusted():
    skops = pytest.importorskip("skops.io")
    kept = skops.dumps({"harm": np.save})
    with pytest.raises(Exception, match="numpy"):
        skops.loads(kept, trusted=trusted_types())
