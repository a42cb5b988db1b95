"""scikit-learn's own checks of the scorers of risk, and what applies to those that take runs."""

import pickle

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.utils import estimator_checks, get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

from trajscore import (
    ActionSignals,
    PlattCrossFitCalibrator,
    StepConfidence,
    TracerScorer,
    TracerSignals,
    TrajectoryArray,
)
from trajscore.testing._estimator_checks import CHECKS
from trajscore.tracer import (
    SAUP,
    MeanSurprisal,
    RunLength,
    SelfReportedConfidence,
    SemanticEntropy,
    ToolCallCount,
)


class AnyLabels(TracerScorer):
    """scikit-learn's checks use labels of their own; code them as outcomes first."""

    def fit(self, X, y=None):
        labels = np.asarray(y)
        if labels.ndim == 1 and len(np.unique(labels)) > 1:
            y = (labels == labels.max()).astype(int)
        return super().fit(X, y)


@parametrize_with_checks(
    [
        TracerScorer(),
        AnyLabels(tune="pairwise_logistic"),
        SAUP(),
        MeanSurprisal(),
        SelfReportedConfidence(),
        RunLength(),
        ToolCallCount(),
    ],
)
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_risk_with_a_calibrator_is_a_forecaster(check):
    if check.__name__ == "check_input_untouched":
        pytest.skip("a pipeline fits its own steps, which count among its parameters")
    calibrator = PlattCrossFitCalibrator(link="identity", increasing=False)
    check(make_pipeline(TracerScorer(k=0.3), calibrator))


@pytest.mark.parametrize(
    ("scorer", "channel"),
    [
        (TracerScorer(k=0.4), "surprisal"),
        (SAUP(), "surprisal"),
        (MeanSurprisal(), "surprisal"),
        (SelfReportedConfidence(), "confidence"),
        (ToolCallCount(), "tool_calls"),
        (RunLength(), "anything"),
    ],
    ids=repr,
)
def test_an_array_holds_the_signal_that_is_read_first(scorer, channel, rng):
    values = rng.random((4, 5))
    values[2, 3:] = np.nan  # padding
    named = TrajectoryArray.from_padded(values)
    named = named.with_cells(named.cells, channels=[channel])
    out = scorer.fit_transform(values)
    assert np.array_equal(np.isnan(out), np.isnan(values))
    assert np.array_equal(clone(scorer).fit_transform(named).padded(), out, equal_nan=True)
    assert np.array_equal(scorer.score_samples(values), scorer.score_samples(named))


# ------------------------------------------------------------------ estimators of runs and texts


WITHOUT_DATA = [
    estimator_checks.check_do_not_raise_errors_in_init_or_set_params,
    estimator_checks.check_estimator_cloneable,
    estimator_checks.check_estimator_repr,
    estimator_checks.check_estimator_tags_renamed,
    estimator_checks.check_get_params_invariance,
    estimator_checks.check_mixin_order,
    estimator_checks.check_no_attributes_set_in_init,
    estimator_checks.check_parameters_default_constructible,
    estimator_checks.check_set_params,
    estimator_checks.check_valid_tag_types,
]


@pytest.mark.parametrize("check", WITHOUT_DATA, ids=lambda check: check.__name__)
@pytest.mark.parametrize(
    "estimator",
    [TracerSignals(), ActionSignals(), StepConfidence(), SemanticEntropy()],
    ids=repr,
)  # fmt: skip
def test_scikit_learn_without_data(estimator, check):
    check(type(estimator).__name__, estimator)


@pytest.mark.parametrize(
    "estimator", [TracerSignals(), ActionSignals(), StepConfidence(), SemanticEntropy()]
)
def test_estimators_of_runs(estimator, talk):
    for run in talk:
        run.steps[-1].extra["samples"] = ["yes", "no", "yes"]
    before, parameters = joblib.hash(talk), estimator.get_params()
    if get_tags(estimator).requires_fit:
        with pytest.raises(NotFittedError):
            estimator.transform(talk)
    fitted = clone(estimator)
    assert fitted.fit(talk) is fitted
    assert fitted.get_params() == parameters
    out = fitted.transform(talk)
    assert out.channels == tuple(fitted.get_feature_names_out())
    assert out.ids.tolist() == [run.id for run in talk]
    assert clone(estimator).fit_transform(talk) == out
    assert pickle.loads(pickle.dumps(fitted)).transform(talk) == out
    assert fitted.fit(talk[:3]).fit(talk).transform(talk) == out  # a second fit forgets the first
    assert np.array_equal(fitted.transform(talk[4:5]).cells, out[[4]].cells, equal_nan=True)
    with pytest.raises(ValueError, match="gives runs of different lengths, not a table"):
        fitted.set_output(transform="pandas")
    assert joblib.hash(talk) == before
