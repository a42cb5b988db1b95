"""scikit-learn's own checks of the scorers of risk, and what applies to those that take runs."""

import pickle

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import estimator_checks, get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

from trajscore import ActionSignals, StepConfidence, TracerScorer, TracerSignals
from trajscore.tracer import SAUP, ChannelRisk, SemanticEntropy


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
        ChannelRisk(),
        ChannelRisk("confidence", kind="confidence"),
        ChannelRisk(None, kind="count"),
        ChannelRisk("tool_calls", kind="count"),
    ]
)
def test_scikit_learn(estimator, check):
    check(estimator)


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


KINDS = [TracerSignals(), ActionSignals(), StepConfidence(), SemanticEntropy()]
each = pytest.mark.parametrize("estimator", KINDS, ids=repr)


@pytest.mark.parametrize("check", WITHOUT_DATA, ids=lambda check: check.__name__)
@each
def test_scikit_learn_without_data(estimator, check):
    check(type(estimator).__name__, estimator)


@each
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
