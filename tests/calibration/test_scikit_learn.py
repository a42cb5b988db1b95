"""scikit-learn's and our own checks, once for each estimator."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from any_input import (
    CROSS_FIT_CHECKS,
    any_two_labels,
    as_forecasts,
    public_classes,
    reads_forecasts,
)
from trajscore import calibration
from trajscore.calibration import (
    AffineCalibrator,
    AliveRate,
    CombinedForecaster,
    EnsembleCrossFitCalibrator,
    PlattCrossFitCalibrator,
    PrefixForecaster,
    TraceAggregator,
)
from trajscore.testing import check_trajectory_estimator


class AnyFeatures(AffineCalibrator):
    """Makes as many columns as there are classes out of the features that checks pass."""

    def fit(self, X, y, sample_weight=None):
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        inner = AffineCalibrator(bias=self.bias).fit(self._project(X, y), y, sample_weight)
        for name in ("scale_", "bias_", "classes_", "n_iter_"):
            setattr(self, name, getattr(inner, name))
        return self

    def _project(self, X, y=None):
        K = len(self.classes_) if y is None else len(np.unique(y))
        return -((X[:, :1] - 3 * np.linspace(-1, 1, K)) ** 2) / 10

    def predict_proba(self, X):
        check_is_fitted(self)
        z = self.scale_ * self._project(validate_data(self, X, reset=False)) + self.bias_
        return np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)

    def transform(self, X):
        return np.log(self.predict_proba(X))

    def predict(self, X):
        chosen = self.predict_proba(X).argmax(axis=1)
        return self.classes_[chosen]


class _Forecasts:
    """Reads any numbers as forecasts."""

    def fit(self, X, y=None, *args, **kwargs):
        return super().fit(as_forecasts(X), y, *args, **kwargs)

    def fit_transform(self, X, y=None, *args, **kwargs):
        return super().fit_transform(as_forecasts(X), y, *args, **kwargs)

    def transform(self, X):
        return super().transform(as_forecasts(X))


@any_two_labels
class AnyPlatt(PlattCrossFitCalibrator):
    pass


CALIBRATORS = [kind for kind in public_classes(calibration) if hasattr(kind, "keyword")]
for kind in (
    *CALIBRATORS,
    AliveRate,
    CombinedForecaster,
    PrefixForecaster,
):  # by names, as checks pickle them
    name, readers = f"Any{kind.__name__}", [_Forecasts] * reads_forecasts(kind())
    globals()[name] = any_two_labels(type(name, (*readers, kind), {"__module__": __name__}))

# converged, so that weights are counts to the checks' tolerance
EXACT = make_pipeline(StandardScaler(), LogisticRegression(tol=1e-12, max_iter=2000))
ANY = [
    AnyFeatures(),
    AnyPlatt(link="identity"),
    *(globals()[f"Any{kind.__name__}"]() for kind in (*CALIBRATORS, AliveRate)),
    globals()["AnyCombinedForecaster"](cv=2),
    globals()["AnyPrefixForecaster"](EXACT, min_class_count=1),
]


def known_failures(estimator):
    if isinstance(estimator, AnyFeatures):
        return {"check_classifiers_train": "the checks' features are no scores of classes"}
    return {} if isinstance(estimator, AliveRate) else CROSS_FIT_CHECKS


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(ANY, expected_failed_checks=known_failures)
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    "estimator",
    [
        *(kind() for kind in CALIBRATORS),
        EnsembleCrossFitCalibrator(cv=3),
        TraceAggregator(),
        PrefixForecaster(features="last", last=2, min_class_count=1),
        PrefixForecaster(features="running", pooled=True, end="after", min_class_count=1),
        AliveRate(end="step"),
        CombinedForecaster(),
        PrefixForecaster(features="running", pooled=True, end="step", min_class_count=1),
    ],
    ids=repr,
)
def test_our_own_checks(estimator):
    assert "check_no_look_ahead" in check_trajectory_estimator(estimator)
    if isinstance(estimator, AliveRate):
        check_trajectory_estimator(estimator, channels=["a", "b"])
