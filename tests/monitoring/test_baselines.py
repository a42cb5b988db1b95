import numpy as np
import pytest
from scipy.stats import binom
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.isotonic import IsotonicRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

from any_input import any_two_labels, as_forecasts
from trajscore import PrefixForecaster, TrajectoryArray
from trajscore.calibration import AliveRate
from trajscore.core.folds import held_out_rows
from trajscore.datasets import make_trajectories
from trajscore.monitoring import (
    CalibratedVerifier,
    FixedStepStop,
    LearnThenTestStop,
    RandomStop,
    RawVerifier,
    StoppingRule,
)
from trajscore.monitoring._thresholds import most_flagged

RULES = [
    RawVerifier(alpha=[0.3, 0.1]),
    CalibratedVerifier(alpha=[0.3, 0.1]),
    FixedStepStop(alpha=[0.3, 0.1]),
    FixedStepStop(step=4),
    RandomStop(alpha=[0.3, 0.1]),
    RandomStop(hazard=0.2),
    LearnThenTestStop(alpha=[0.3, 0.1]),
]


@pytest.fixture(scope="module")
def runs():
    X, y = make_trajectories(2000, lengths=(2, 9), random_state=1, return_X_y=True)
    return X[:1000], y[:1000], X[1000:], y[1000:]


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_the_common_face(runs, rule, rng):
    X, y, X_new, y_new = runs
    fitted = clone(rule).fit(X, y)
    assert isinstance(fitted, StoppingRule)
    report = fitted.report(X_new, y_new)
    for alpha in fitted.alphas_:
        steps = fitted.stopping_steps(X_new, alpha)
        assert ((steps >= 0) & (steps <= X_new.lengths)).all()
        np.testing.assert_array_equal(fitted.predict(X_new, alpha) == 0, steps > 0)
        np.testing.assert_array_equal(fitted.decision_function(X_new, alpha) < 0, steps > 0)
        assert report.loc[alpha, "power"] == (steps[y_new == 0] > 0).mean()
        assert report.loc[alpha, "threshold"] == fitted.thresholds_[alpha]
    assert fitted.score(X_new, y_new) == report["power"].iloc[0]
    # neither the order of training rows nor that of new rows matters, nor does the batch
    order, new = rng.permutation(len(X)), rng.permutation(len(X_new))
    other = clone(rule).fit(X[order], y[order])
    expected = fitted.stopping_steps(X_new)
    np.testing.assert_array_equal(other.stopping_steps(X_new[new]), expected[new])
    np.testing.assert_array_equal(fitted.stopping_steps(X_new[7:9]), expected[7:9])


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_unobserved_outcomes_are_left_out(runs, rule):
    X, y, X_new, _ = runs
    censored = np.where(np.arange(len(y)) % 5 == 0, -1, y)
    one = clone(rule).fit(X, censored)
    other = clone(rule).fit(X[censored >= 0], censored[censored >= 0])
    np.testing.assert_array_equal(one.stopping_steps(X_new), other.stopping_steps(X_new))
    assert getattr(one, "n_dropped_", 200) == 200


def test_verifiers_flag_strictly_below_alpha():
    X = [[0.9, 0.5, 0.2], [0.5, 0.6, 0.5], [0.4, 0.9, 0.9]]
    raw = RawVerifier(alpha=0.5).fit(X)
    assert raw.stopping_steps(X).tolist() == [3, 0, 1]
    with pytest.raises(ValueError, match="lies outside"):
        RawVerifier().fit([[1.5]])
    with pytest.raises(ValueError, match="strictly between 0 and 1"):
        RawVerifier(alpha=1.0).fit(X)
    with pytest.raises(ValueError, match="alpha=0.2 was not fitted"):
        raw.predict(X, alpha=0.2)


def test_calibrated_verifier_is_isotonic_regression(runs):
    X, y, X_new, _ = runs
    rule = CalibratedVerifier(alpha=0.4).fit(X, y)
    isotonic = IsotonicRegression(out_of_bounds="clip").fit(X.cells, np.repeat(y, X.lengths))
    calibrated = X_new.with_cells(isotonic.predict(X_new.cells))
    expected = [next((t for t, p in enumerate(run, 1) if p < 0.4), 0) for run in calibrated]
    assert rule.stopping_steps(X_new).tolist() == expected
    on_log_odds = CalibratedVerifier(alpha=0.4).fit(X.with_cells(5 * X.cells - 9), y)
    steps = on_log_odds.stopping_steps(X_new.with_cells(5 * X_new.cells - 9))
    assert (steps == expected).mean() > 0.99  # rounding at the ends of steps
    with pytest.raises(ValueError, match="has an observed outcome"):
        CalibratedVerifier().fit(X, -np.ones(len(y)))
    with pytest.raises(ValueError, match="run 0: outcome 0.5 must be 0 or 1"):
        CalibratedVerifier().fit(X, 0.5 * np.ones(len(y)))


def test_fixed_step(runs):
    X, y, X_new, _ = runs
    rule = FixedStepStop(step=4).fit(X)
    np.testing.assert_array_equal(rule.stopping_steps(X_new), np.where(X_new.lengths >= 4, 4, 0))
    assert rule.thresholds_.tolist() == [4.0]
    assert (FixedStepStop(step=1).fit(X).stopping_steps(X_new) == 1).all()
    chosen = FixedStepStop(alpha=[0.1, 0.3]).fit(X, y)
    for alpha, step in chosen.thresholds_.items():
        assert (X.lengths[y == 1] >= step).mean() <= alpha  # and the next earlier step flags more
        assert (X.lengths[y == 1] >= step - 1).mean() > alpha
    for step in (0, 1.5, "a", True):
        with pytest.raises(ValueError, match="step must be a whole number of at least 1"):
            FixedStepStop(step=step).fit(X)
    with pytest.raises(ValueError, match="outcomes are needed to choose a step"):
        FixedStepStop().fit(X)


def test_random_stop_has_its_hazard():
    X = TrajectoryArray(np.ones(80_000), np.full(20_000, 4))
    steps = RandomStop(hazard=0.3).fit(X).stopping_steps(X)
    expected = 20_000 * np.array([0.7**4, 0.3, 0.21, 0.147, 0.1029])
    seen = np.bincount(steps, minlength=5)
    assert ((seen - expected) ** 2 / expected).sum() < 18.5  # chi-squared, 4 degrees, p = .001
    other = RandomStop(hazard=0.3, random_state=1).fit(X).stopping_steps(X)
    assert 0.2 < (other == steps).mean() < 0.4
    for hazard in (0, 1, 2, "a"):
        with pytest.raises(ValueError, match="hazard must lie strictly between 0 and 1"):
            RandomStop(hazard=hazard).fit(X)


def test_random_stop_uses_up_its_level(runs):
    X, y, _, _ = runs
    lengths = X.lengths[y == 1]
    for alpha in (0.01, 0.1, 0.5, 0.99):
        rule = RandomStop(alpha=alpha).fit(X, y)
        rate = 1 - (1 - rule.thresholds_[alpha]) ** lengths
        assert (rate.sum() + 1) / (len(lengths) + 1) == pytest.approx(alpha)
    tight = RandomStop(alpha=0.1).fit(X[:9], np.ones(9))  # just enough successes: not one more
    assert tight.thresholds_.tolist() == [0.0]


@pytest.mark.parametrize("rule", [FixedStepStop(), RandomStop()])
def test_too_few_successes_to_choose(runs, rule):
    X, y, _, _ = runs
    with pytest.warns(UserWarning, match=r"too few successes \(10\) at alpha = 0.05.* at least 19"):
        rule.fit(X[:10], np.ones(10))
    assert not rule.stopping_steps(X).any()
    with pytest.raises(ValueError, match="no run succeeded"):
        rule.fit(X, 0 * y)


@pytest.mark.parametrize("rule", [FixedStepStop, RandomStop])
def test_chosen_rules_keep_their_level_in_the_mean(rule, rng):
    rates = []
    for k in range(300):
        lengths = rng.geometric(0.2, 60)
        ids = np.arange(60) + 60 * k  # the coins of a run belong to its id
        X = TrajectoryArray(np.ones(lengths.sum()), lengths, ids=ids)
        fitted = rule(alpha=0.2).fit(X[:30], np.ones(30))
        rates.append((fitted.predict(X[30:]) == 0).mean())
    assert np.mean(rates) <= 0.2 + 3 * np.std(rates) / np.sqrt(300)
    assert np.mean(rates) > 0.1


def test_most_flagged_is_exact():
    for n, rate, delta in [(50, 0.1, 0.1), (200, 0.05, 0.05), (7, 0.5, 0.01)]:
        k = most_flagged(n, rate, delta)
        assert binom.cdf(k, n, rate) <= delta < binom.cdf(k + 1, n, rate)
    assert most_flagged(28, 0.05, 0.2) == -1
    assert most_flagged(32, 0.05, 0.2) == 0


def test_learn_then_test_by_a_loop_over_thresholds(runs):
    X, y, _, _ = runs
    rows = np.arange(0, 1000, 2)
    rule = LearnThenTestStop(alpha=[0.05, 0.3], lost_accuracy=0.08, delta=0.1)
    rule.fit(X, y, calibration=rows)
    train = np.setdiff1d(np.arange(1000), rows)
    F = PrefixForecaster().fit(X[train], y[train]).transform(X[rows])
    lowest = np.array([run.min() for run in F])
    good = y[rows] == 1
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


@pytest.mark.slow
def test_learn_then_test_keeps_both_guarantees(rng):
    """Forecasts with a known law: chances of false alarm and of loss are known for a threshold."""
    rate, alpha, lost, delta = 0.4, 0.15, 0.05, 0.2
    broken = {"continuous": 0, "three values": 0}
    n_sets = 600
    for kind in broken:
        for _ in range(n_sets):
            y = (rng.random(150) < rate).astype(int)
            F = rng.random(150) ** np.where(y == 1, 0.5, 2.0)  # success: P(F < c) = c**2
            if kind == "three values":
                F = np.ceil(3 * F) / 3 - 0.1
            rule = LearnThenTestStop("passthrough", alpha=alpha, lost_accuracy=lost, delta=delta)
            c = rule.fit(F[:, None], y).thresholds_[alpha]
            if kind == "three values":
                flagged = (np.floor(3 * (c + 0.1) - 1e-9) / 3) ** 2
            else:
                flagged = c**2
            broken[kind] += flagged > alpha or rate * flagged > lost
    limit = binom.ppf(0.999, n_sets, delta)
    assert broken["three values"] <= limit
    assert broken["continuous"] <= limit
    assert broken["continuous"] > n_sets * delta / 4  # no more careful than it has to be


def test_learn_then_test_without_the_second_bound(runs):
    X, y, X_new, y_new = runs
    alone = LearnThenTestStop(alpha=0.3, lost_accuracy=None).fit(X, y)
    both = LearnThenTestStop(alpha=0.3, lost_accuracy=0.02).fit(X, y)
    assert both.score(X_new, y_new) < alone.score(X_new, y_new)


def test_learn_then_test_bad_input(runs):
    X, y, X_new, _ = runs
    with pytest.warns(
        UserWarning,
        match=r"too few held-out runs \(20, of which .* succeeded\) at alpha "
        r"= 0.05: no run will be flagged; fit on more runs, of which at least 45 successes and "
        r"45 runs",
    ):
        few = LearnThenTestStop().fit(X[:40], y[:40])
    assert few.thresholds_.tolist() == [0.0]
    shorter = LearnThenTestStop(alpha=0.3).fit(X.prefix(4), y)
    with pytest.warns(
        UserWarning, match="longer than the longest run in fitting, which has 4 steps"
    ):
        assert shorter.predict(X_new).mean() < 1
    forecaster = {"forecaster": AliveRate(), "delta": 0.9, "alpha": 0.5, "lost_accuracy": None}
    with pytest.raises(
        ValueError, match="^runs with an outcome: n_samples = 1; splitting them needs at least 2"
    ):
        LearnThenTestStop(**forecaster).fit([[0.5], [0.4], [0.3]], [1, -1, -1])
    two = LearnThenTestStop(**forecaster).fit([[0.5], [0.4], [0.3]], [1, 1, -1])
    assert two.n_calibration_ == 1
    for name in ("delta", "calibration_fraction", "lost_accuracy"):
        with pytest.raises(ValueError, match=f"{name} must lie strictly between 0 and 1, got 1.5"):
            LearnThenTestStop(**{name: 1.5}).fit(X, y)
    with pytest.raises(ValueError, match="none of the 3 held-out runs succeeded"):
        LearnThenTestStop().fit(X, y, calibration=np.flatnonzero(y == 0)[:3])
    with pytest.raises(ValueError, match="has an observed outcome"):
        LearnThenTestStop().fit(X, -np.ones(len(y)))
    with pytest.raises(ValueError, match="lies outside"):
        LearnThenTestStop("passthrough").fit([[2.0], [0.5]], [1, 0])


def test_rows_held_out_by_hand():
    known = np.array([0, 2, 3])
    assert held_out_rows(known, 5, [3, 1, 2], 0.5, 0).tolist() == [2, 3]
    assert held_out_rows(known, 5, np.arange(5) > 1, 0.5, 0).tolist() == [2, 3]
    assert held_out_rows(known, 5, (np.arange(5) > 1).astype(object), 0.5, 0).tolist() == [2, 3]
    assert held_out_rows(known, 5, np.array([3, 2], dtype=object), 0.5, 0).tolist() == [2, 3]
    for wrong in ([5], [-1], [[0]], [True, False], ["a"], 3):
        with pytest.raises(
            ValueError, match="calibration must be rows of X, from 0 to 4, or a mas"
        ):
            held_out_rows(known, 5, wrong, 0.5, 0)
    for mask in ([0, 0, 1, 1, 0], [0.0, 1.0, 1.0, 0.0, 0.0]):  # not the rows 0 and 1
        with pytest.raises(ValueError, match="names row 0 more than once.* give a mask of bools"):
            held_out_rows(known, 5, mask, 0.5, 0)


def test_a_classifier_is_no_forecaster(runs):
    rule = LearnThenTestStop(HistGradientBoostingClassifier())
    with pytest.raises(ValueError, match=r"wrap a classifier as PrefixForecaster\(HistGradient"):
        rule.fit(*runs[:2])
    with pytest.raises(ValueError, match="an estimator or \"passthrough\", got 'pass'"):
        LearnThenTestStop("pass").fit(*runs[:2])


@any_two_labels
class Calibrated(CalibratedVerifier):
    pass


@any_two_labels
class FixedStep(FixedStepStop):
    pass


@any_two_labels
class Random(RandomStop):
    pass


@any_two_labels
class LearnThenTest(LearnThenTestStop):
    pass


class Raw(RawVerifier):
    """It reads probabilities."""

    def fit(self, X, y=None):
        return super().fit(as_forecasts(X), y)

    def _check(self, X):
        return super()._check(as_forecasts(X))


def expected_failures(estimator):
    if isinstance(estimator, RandomStop):
        reason = "the coin of a run belongs to its id, which in a plain array is its row"
        names = ("check_methods_sample_order_invariance", "check_methods_subset_invariance")
        return dict.fromkeys(names, reason)
    return {}


@parametrize_with_checks(
    [
        Raw(alpha=0.3),
        Calibrated(alpha=0.3),
        FixedStepStop(step=2),
        FixedStep(alpha=0.3),
        RandomStop(hazard=0.2),
        Random(alpha=0.3),
        LearnThenTest(alpha=0.3),
    ],
    expected_failed_checks=expected_failures,
)
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    ("lengths", "alpha", "hazard"),
    [
        ([1] * 19, 0.1, 1 / 19),  # (19 h + 1) / 20 = 0.1
        ([2] * 19, 0.1, 1 - np.sqrt(1 - 1 / 19)),
        ([1] * 19, 0.05, 0),  # the run to come alone uses up the level
        ([1] * 10 + [2] * 10, 0.5, 1.5 - np.sqrt(1.3)),  # (h + 2 h - h^2) / 2 = 9.5 / 20
    ],
)
def test_hazards_by_hand(lengths, alpha, hazard):
    rule = RandomStop(alpha=alpha).fit([[0.5] * n for n in lengths], [1] * len(lengths))
    assert rule.thresholds_[alpha] == pytest.approx(hazard, abs=1e-12)


@pytest.mark.parametrize(("alpha", "step"), [(0.05, 20), (0.1, 19), (0.5, 11), (0.95, 2)])
def test_fixed_steps_by_hand(alpha, step):
    # of runs of 1, ..., 19 steps at most 20 alpha - 1 get to it, the run to come is the other
    runs = [[0.5] * n for n in range(1, 20)]
    assert FixedStepStop(alpha=alpha).fit(runs, [1] * 19).thresholds_[alpha] == step
    with pytest.warns(UserWarning, match=r"too few successes \(18\) .* give at least 19"):
        rule = FixedStepStop(alpha=0.05).fit(runs[1:], [1] * 18)
    assert rule.thresholds_[0.05] == np.inf


@pytest.mark.parametrize("length", range(1, 8))
@pytest.mark.parametrize("n", [19, 27, 31])
def test_hazards_of_runs_of_one_length(n, length):
    # of n runs and the one to come, which counts as flagged, 20% are
    rule = RandomStop(alpha=0.2).fit([[0.5] * length] * n, [1] * n)
    wanted = 1 - (1 - ((n + 1) * 0.2 - 1) / n) ** (1 / length)
    assert rule.thresholds_[0.2] == pytest.approx(wanted, rel=1e-9)
