"""Simple stopping rules, and what all rules share, by hand."""

import functools

import numpy as np
import pytest
from scipy.stats import binom, binomtest
from sklearn.base import clone
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

from any_input import any_two_labels, as_forecasts, public_classes, reads_forecasts
from refused import must_refuse
from trajscore import PrefixForecaster, TrajectoryArray, monitoring
from trajscore.datasets import make_trajectories
from trajscore.monitoring import CalibratedVerifier, LearnThenTestStop, RawVerifier, StoppingRule

RULES = [k for k in public_classes(monitoring) if StoppingRule in k.__mro__[1:]]


@functools.cache
def runs():
    X, y = make_trajectories(2000, lengths=(2, 9), random_state=1, return_X_y=True)
    return X[:1000], y[:1000], X[1000:], y[1000:]


class AboveLimit(StoppingRule):
    """Flags a run at its first value above alpha."""

    def fit(self, X, y=None):
        self.alphas_ = np.array([0.5, 0.8])
        self.n_channels_in_, self.channels_in_ = 1, None
        return self

    def _statistic(self, X):
        return X.cells.ravel()

    def _limits(self, X, alpha):
        return np.full(len(X), alpha)


RULE = AboveLimit().fit(None)
X6 = [[0.1, 0.6, 0.9, 0.2], [0.5, 0.5], [0.9], [0.2, 0.1, 0.7], [0.3, 0.4], [0.9, 0.9]]
Y6 = [0, 1, 0, 1, 0, -1]
COST = [[1, 1, 2, 4], [1, 1], [5], [2, 2, 2], [0, 0], [9, 9]]


def test_decisions():
    for alpha, stops in [
        (None, [2, 0, 1, 3, 0, 1]),
        (0.5, [2, 0, 1, 3, 0, 1]),
        (0.8 + 1e-14, [3, 0, 1, 0, 0, 1]),
    ]:
        assert RULE.stopping_steps(X6, alpha).tolist() == stops
        assert RULE.predict(X6, alpha).tolist() == [int(stop == 0) for stop in stops]
        margin = np.array([0.9, 0.5, 0.9, 0.7, 0.4, 0.9])
        np.testing.assert_allclose(RULE.decision_function(X6, alpha), (alpha or 0.5) - margin)
    for alpha in (0.6, 0.5 + 1e-9, "0.5", [0.5]):
        with pytest.raises(ValueError, match=r"alpha=.* was not fitted.* 0\.5, 0\.8"):
            RULE.predict(X6, alpha)


def test_power_and_its_weights():
    for weight, power in [(None, 2 / 3), ([1, 9, 2, 9, 5, 9], 3 / 8), ([0, 1, 0, 1, 1, 1], 0)]:
        assert RULE.score(X6, Y6, weight) == pytest.approx(power)
    rows = [
        ([1, 1, 1, 1, 1, -1], None, "no run failed"),
        (Y6, [0, 1, 0, 1, 0, 1], "failed have weight zero"),
    ]
    must_refuse(lambda y, weight: RULE.score(X6, y, weight), rows)


def test_report():
    table = RULE.report(X6, Y6, cost=COST)
    ends = binomtest(1, 2).proportion_ci(0.95), binomtest(2, 3).proportion_ci(0.95)
    first = {
        "n_success": 2, "false_alarm_rate": 1 / 2, "n_failure": 3, "power": 2 / 3,
        "false_alarm_rate_low": ends[0].low, "false_alarm_rate_high": ends[0].high,
        "power_low": ends[1].low, "power_high": ends[1].high, "power_before_end": 1 / 3,
        "power_longer": 1 / 2, "mean_stopping_step": 2, "steps_saved": (2 / 4) / 3,
        "steps_saved_overall": 2 / 12, "cost_saved": (6 / 8) / 3, "cost_saved_overall": 6 / 21,
        "n_dropped": 1,
    }  # fmt: skip
    assert table.loc[0.5, list(first)].to_dict() == pytest.approx(first)
    second = {"false_alarm_rate": 0, "mean_stopping_step": 2, "steps_saved": (1 / 4) / 3,
              "steps_saved_overall": 1 / 12, "cost_saved": (4 / 8) / 3,
              "cost_saved_overall": 4 / 21, "n_dropped": 1}  # fmt: skip
    assert table.loc[0.8, list(second)].to_dict() == pytest.approx(second)
    assert "cost_saved" not in RULE.report(X6, Y6)
    cents = RULE.report(X6, Y6, cost=[[cost / 100 for cost in run] for run in COST])
    assert cents["cost_saved"].tolist() == pytest.approx(table["cost_saved"].tolist())
    assert np.isnan(table["threshold"]).all()  # the rule shows none


def test_report_without_flags_or_costs():
    row = RULE.report([[0.1], [0.2, 0.3]], [1, 1], cost=[[0], [0, 0]]).loc[0.5]
    assert (row["n_failure"], row["power_low"], row["power_high"]) == (0, 0, 1)
    assert row["steps_saved_overall"] == 0
    names = ["power", "power_longer", "mean_stopping_step", "steps_saved", "cost_saved"]
    assert row[[*names, "cost_saved_overall"]].isna().all()
    free = RULE.report(X6, Y6, cost=[[0] * len(run) for run in X6])
    assert free["cost_saved"].tolist() == [0, 0]


def test_bad_reports():
    flat = TrajectoryArray([0.5, 0.4, 0.3], [1, 2])
    rows = [
        (X6, [-1] * 6, None, "none of the 6 runs has an observed outcome"),
        (X6, Y6, [*COST[:5], [9, -2]], "run 5 .*step 2: cost -2 is negative"),
        (X6, Y6, COST[:5], "costs have .*5 runs"),
        (flat, [0, 1], np.ones(2), r"cost has shape \(2,\)"),
    ]
    must_refuse(lambda X, y, cost: RULE.report(X, y, cost=cost), rows)


@pytest.mark.parametrize("kind", RULES)
def test_the_common_face(kind, rng):
    rule = kind(alpha=[0.3, 0.1])
    X, y, X_new, y_new = runs()
    fitted = clone(rule).fit(X, y)
    report = fitted.report(X_new, y_new)
    for alpha in fitted.alphas_:
        steps = fitted.stopping_steps(X_new, alpha)
        assert ((steps >= 0) & (steps <= X_new.lengths)).all()
        np.testing.assert_array_equal(fitted.decision_function(X_new, alpha) < 0, steps > 0)
        assert report.loc[alpha, "power"] == (steps[y_new == 0] > 0).mean()
        assert report.loc[alpha, "threshold"] == fitted.thresholds_[alpha]
    # neither the order of training rows nor that of new rows matters, nor does the batch
    order, new = rng.permutation(len(X)), rng.permutation(len(X_new))
    other = clone(rule).fit(X[order], y[order])
    expected = fitted.stopping_steps(X_new)
    np.testing.assert_array_equal(other.stopping_steps(X_new[new]), expected[new])
    np.testing.assert_array_equal(fitted.stopping_steps(X_new[7:9]), expected[7:9])
    # unobserved outcomes are left out
    censored = np.where(np.arange(len(y)) % 5 == 0, -1, y)
    one = clone(rule).fit(X, censored)
    other = clone(rule).fit(X[censored >= 0], censored[censored >= 0])
    np.testing.assert_array_equal(one.stopping_steps(X_new), other.stopping_steps(X_new))
    assert getattr(one, "n_dropped_", 200) == 200


def test_verifiers_flag_strictly_below_alpha():
    X = [[0.9, 0.5, 0.2], [0.5, 0.6, 0.5], [0.4, 0.9, 0.9]]
    raw = RawVerifier(alpha=0.5).fit(X)
    assert raw.stopping_steps(X).tolist() == [3, 0, 1]
    assert raw.thresholds_[0.5] == 0.5
    with pytest.raises(ValueError, match="1.5 lies outside"):
        RawVerifier().fit([[1.5]])


def test_calibrated_verifier_is_isotonic_regression():
    X, y, X_new, _ = runs()
    rule = CalibratedVerifier(alpha=0.4).fit(X, y)
    isotonic = IsotonicRegression(out_of_bounds="clip").fit(X.cells, np.repeat(y, X.lengths))
    calibrated = X_new.with_cells(isotonic.predict(X_new.cells))
    expected = [next((t for t, p in enumerate(run, 1) if p < 0.4), 0) for run in calibrated]
    assert rule.stopping_steps(X_new).tolist() == expected
    odds = CalibratedVerifier(alpha=0.4).fit(X.with_cells(5 * X.cells - 9), y)
    steps = odds.stopping_steps(X_new.with_cells(5 * X_new.cells - 9))
    assert (steps == expected).mean() > 0.99  # rounding at the ends of steps
    with pytest.raises(ValueError, match="observed outcome"):
        CalibratedVerifier().fit(X, -np.ones(len(y)))
    with pytest.raises(ValueError, match="run 0: outcome 0.5"):
        CalibratedVerifier().fit(X, 0.5 * np.ones(len(y)))


def test_learn_then_test_by_a_loop_over_thresholds():
    X, y, _, _ = runs()
    rows = np.arange(0, 1000, 2)
    rule = LearnThenTestStop(alpha=[0.05, 0.3], lost_accuracy=0.08, delta=0.1)
    rule.fit(X, y, calibration=rows)
    train = np.setdiff1d(np.arange(1000), rows)
    F = PrefixForecaster().fit(X[train], y[train]).transform(X[rows])
    lowest, good = np.array([run.min() for run in F]), y[rows] == 1
    assert (rule.n_calibration_, rule.n_calibration_successes_) == (500, good.sum())
    for alpha in rule.alphas_:
        passed = 0.0
        for threshold in np.sort(np.r_[lowest, 1.0]):  # fixed order, until one is not rejected
            flagged = ((lowest < threshold) & good).sum()
            p = max(binom.cdf(flagged, good.sum(), alpha), binom.cdf(flagged, 500, 0.08))
            if p > 0.1:
                break
            passed = threshold
        # between two values that occur, every threshold flags the same runs
        below = lowest[good & (lowest < rule.thresholds_[alpha])]
        assert len(below) == ((lowest < passed) & good).sum()
        assert rule.thresholds_[alpha] >= passed


def alone(n, **options):
    F = np.linspace(0.2, 0.9, n)[:, None]
    rule = LearnThenTestStop("passthrough", alpha=0.1, lost_accuracy=None, **options)
    return rule.fit(F, np.ones(n, dtype=int)), F


def test_the_threshold_flags_as_many_successes_as_are_allowed():
    for n, allowed in [(22, 0), (37, 0), (38, 1)]:  # 0.9^21 > 0.1 > 0.9^22, and with one of 38
        rule, F = alone(n)
        assert (rule.predict(F) == 0).sum() == allowed
        assert rule.predict([[0.1]]).tolist() == [0]  # what lies below all successes is flagged
    with pytest.warns(UserWarning, match=r"\(21, of which 21 succeeded\).*at least 22 successes"):
        rule, F = alone(21)
    assert rule.predict([[0.0]]).all()


def test_learn_then_test_bad_input():
    X, y, X_new, _ = runs()
    with pytest.warns(UserWarning, match="at least 45 successes and 45 runs"):
        few = LearnThenTestStop().fit(X[:40], y[:40])
    assert few.thresholds_.tolist() == [-np.inf]
    with pytest.warns(UserWarning, match="longer .* 4 steps"):
        LearnThenTestStop(alpha=0.3).fit(X.prefix(4), y).predict(X_new)
    names = ("alpha", "delta", "calibration_fraction", "lost_accuracy")
    rows = [
        *(({name: 1.5}, X, y, f"{name} must (be|lie) .*1.5") for name in names),
        ({"forecaster": "pass"}, X, y, 'forecaster must be .*"passthrough"'),
        ({"forecaster": LogisticRegression()}, X, y, r"PrefixForecaster\(Logi"),
        ({}, [[0.5], [0.4]], [1, -1], "n_samples = 1"),
        ({}, X, -np.ones(len(y)), "observed outcome"),
        ({"forecaster": "passthrough"}, [[2.0], [0.5]], [1, 0], "lies outside"),
    ]
    must_refuse(lambda how, runs_, outcomes: LearnThenTestStop(**how).fit(runs_, outcomes), rows)


def test_rows_held_out_by_hand():
    X, y = [[0.5], [0.6], [0.1], [0.2], [0.7]], [1, -1, 1, 0, 0]
    rule, mask = LearnThenTestStop("passthrough", alpha=0.9, lost_accuracy=None), np.arange(5) > 1
    for rows in ([3, 1, 2], mask, mask.astype(object), np.array([3, 2], dtype=object)):
        assert rule.fit(X, y, calibration=rows).n_calibration_ == 2 + (len(rows) == 5)
    bad = [
        *((rows, "from 0 to 4") for rows in ([5], [-1])),
        *((rows, "calibration must be") for rows in ([[0]], [[1], [1, 2]], [0.5], ["a"], 3)),
        ([True, False], "mask of 5 bools"),
        *((rows, "row more than once") for rows in ([0, 0, 1, 1, 0], [0.0, 1.0, 1.0, 0.0, 0.0])),
        ([3, 4], "none of the 2 held-out runs succeeded"),
    ]
    must_refuse(lambda rows: rule.fit(X, y, calibration=rows), bad)


class _Forecasts:
    """Reads any numbers as forecasts."""

    def fit(self, X, y=None):
        return super().fit(as_forecasts(X), y)

    def _check(self, X):
        return super()._check(as_forecasts(X))


for kind in RULES:  # by names, as checks pickle them
    name, readers = f"Any{kind.__name__}", [_Forecasts] * reads_forecasts(kind())
    globals()[name] = any_two_labels(type(name, (*readers, kind), {"__module__": __name__}))


@parametrize_with_checks([globals()[f"Any{kind.__name__}"](alpha=0.3) for kind in RULES])
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn(estimator, check):
    check(estimator)
