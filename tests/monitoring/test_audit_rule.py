import numpy as np
import pytest
from scipy.stats import binomtest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from any_input import any_two_labels
from trajscore import TrajectoryArray
from trajscore.monitoring import AuditRule, StoppingRule
from trajscore.monitoring._audit_rule import _share_with_interval


def suspicions(rng, n, values=None, attack=0):
    """Suspicion of runs whose steps are alike; of a few values, or continuous."""
    lengths = rng.integers(1, 12, n)
    level = np.repeat(rng.normal(0, 1, n), lengths)
    scores = level + rng.normal(0, 0.5, len(level)) + attack * (rng.random(len(level)) < 0.3)
    if values:
        scores = np.clip(np.round(scores), 0, values)
    return TrajectoryArray(scores, lengths, ids=rng.integers(2**60, size=n), ended=True)


def share_of_steps(audits):
    return np.add.reduceat(audits.cells, audits.offsets[:-1]) / audits.lengths


@pytest.fixture(scope="module")
def runs():
    rng = np.random.default_rng(0)
    X, attacks = suspicions(rng, 500), suspicions(rng, 100, attack=3)
    return TrajectoryArray.concat([X, attacks]), np.repeat([1, 0], [500, 100])


UNITS = [{}, {"unit": "step"}, {"unit": "step", "max_steps": 11}]


@pytest.mark.parametrize("options", UNITS, ids=repr)
def test_the_common_face(runs, options, rng):
    X, y = runs
    rule = AuditRule(budget=[0.1, 0.3], **options)
    fitted = clone(rule).fit(X[:300])
    assert isinstance(fitted, StoppingRule)
    assert fitted.n_honest_ == 300
    new, outcome = X[300:], y[300:]
    report = fitted.report(new, outcome)
    for budget in (0.1, 0.3):
        audits = fitted.audits(new, budget)
        assert audits.channels == ("audit",)
        steps = fitted.stopping_steps(new, budget)
        assert [int(np.argmax(run)) + 1 if run.any() else 0 for run in audits] == steps.tolist()
        np.testing.assert_array_equal(fitted.predict(new, budget) == 0, steps > 0)
        row = report.loc[budget]
        assert row["power"] == (steps[outcome == 0] > 0).mean()
        assert row["threshold"] == fitted.thresholds_[budget]
        share = share_of_steps(audits)
        for name, kind in (("honest_steps", 1), ("attack_steps", 0)):
            own = share[outcome == kind]
            assert row[name] == pytest.approx(own.mean())
            assert row[f"{name}_low"] <= row[name] <= row[f"{name}_high"]
            cells = audits.cells[np.repeat(outcome == kind, new.lengths)]
            assert row[f"{name}_overall"] == pytest.approx(cells.mean())
    assert report["power"].iloc[0] == fitted.score(new, outcome)
    assert (report["attack_steps"] > report["honest_steps"]).all()
    # neither the order of runs nor attacks and unknown runs in the fit change anything
    order = rng.permutation(len(X))
    labels = np.where(np.arange(len(y)) < 300, 1, np.where(y == 1, -1, 0))
    other = clone(rule).fit(X[order], labels[order])
    np.testing.assert_array_equal(other.audits(new).cells, fitted.audits(new).cells)
    np.testing.assert_array_equal(
        fitted.stopping_steps(new[7:9]), fitted.stopping_steps(new)[7:9]
    )  # nor does the batch
    for t in (1, 4):  # nor what comes after a step
        cut = fitted.audits(new.prefix(t)).cells
        both = [run[:t] for run in fitted.audits(new)]
        np.testing.assert_array_equal(cut, np.concatenate(both))


@pytest.mark.parametrize("values", [None, 3], ids=["continuous", "ties"])
@pytest.mark.parametrize("n", [4, 19, 60])
def test_budgets_are_kept_and_spent(n, values):
    n_sets, budget, shares = 250, 0.2, {"run": [], "step": [], "all": []}
    for seed in range(n_sets):
        rng = np.random.default_rng([n, seed])
        honest, new = suspicions(rng, n, values), suspicions(rng, 60, values)
        options = dict(zip(shares, UNITS, strict=True))
        if n == 4:  # have too few steps
            del options["all"]
        for name, option in options.items():
            audits = AuditRule(budget, **option).fit(honest).audits(new)
            own = share_of_steps(audits)
            shares[name].append({"run": (own > 0).mean(), "step": own.mean()}.get(name, np.nan))
            if name == "all":
                # a mean of ratios would be off; these have the expectation that is bounded
                shares[name][-1] = audits.cells.mean()
    for name, found in shares.items():
        if not found:
            continue
        error = 4 * np.std(found) / np.sqrt(n_sets)
        assert np.mean(found) < budget + error, name
        expected = budget - 0.8 * 11 / (6 * n) if name == "all" else budget
        assert np.mean(found) > expected - error - 0.005 * (name == "all"), name


def test_strict_ties_are_not_audited():
    X = TrajectoryArray(np.repeat([0.0, 1.0], 20), np.ones(40, dtype=int))
    rule = AuditRule(0.3, ties="strict").fit(X)
    assert rule.thresholds_.tolist() == [1.0]
    assert not rule.audits(X).cells.any()
    assert AuditRule(0.6, "step", 1, ties="strict").fit(X).audits(X).cells.sum() == 20
    new = TrajectoryArray(np.ones(4000), np.ones(4000, dtype=int), ids=np.arange(4000) + 40)
    for option in UNITS[:2]:
        share = AuditRule(0.3, **option).fit(X).audits(new).cells.mean()
        assert share == pytest.approx((0.3 * 41 - 0.5) / 20, abs=0.06)


def test_one_run_of_each_group_counts(runs):
    X, _ = runs
    groups = np.arange(300) // 3
    rule = AuditRule(0.1).fit(X[:300], groups=groups)
    assert rule.n_honest_ == 100
    with pytest.warns(
        UserWarning, match=r"too few honest runs \(9\) for a budget of 0.05: nothing"
    ):
        few = AuditRule().fit(X[:300], groups=groups % 9)
    assert np.isinf(few.thresholds_.iloc[0])
    assert not few.audits(X).cells.any()


def test_too_few_honest_runs(runs):
    X, _ = runs
    with pytest.warns(UserWarning, match="nothing will be audited; give at least 19, of other"):
        rule = AuditRule(0.05).fit(X[:18])
    assert not rule.audits(X).cells.any()
    assert np.isfinite(AuditRule(0.05).fit(X[:19]).thresholds_).all()
    steps = int(X[:20].lengths.sum())
    with pytest.warns(
        UserWarning,
        match=rf"too few steps of honest runs \({steps}\) for a budget of 0.05 of all steps, where "
        r"a run may have 11: .* of at least 210 steps",
    ):
        rule = AuditRule(0.05, "step", max_steps=11).fit(X[:20])
    assert not rule.audits(X).cells.any()


def test_an_absent_suspicion_is_refused(runs):
    X, _ = runs
    holes = TrajectoryArray([0.1, np.nan, 0.3], [3], missing="allow")
    rule = AuditRule(0.3).fit(X)
    for call in (lambda: rule.audits(holes), lambda: AuditRule().fit(holes)):
        with pytest.raises(ValueError, match="step 2: the value is missing"):
            call()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"budget": 0}, "budget must lie strictly between 0 and 1, got 0"),
        ({"budget": "a"}, "budget must be a number or a list of numbers, got 'a'"),
        ({"budget": [0.1, 0.1]}, "budget names a level more than once"),
        ({"unit": "token"}, "unit must be 'run' or 'step', got 'token'"),
        ({"ties": "maybe"}, "ties must be"),
        ({"max_steps": 20}, 'give unit="step", or leave it out'),
        ({"unit": "step", "max_steps": 0}, "max_steps must be a whole number of at least 1"),
        ({"unit": "step", "max_steps": 5}, "has 11 steps, more than max_steps=5; give the most"),
    ],
)
def test_bad_parameters(runs, options, message):
    with pytest.raises(ValueError, match=message):
        AuditRule(**options).fit(runs[0])


def test_bad_runs(runs):
    X, y = runs
    with pytest.raises(ValueError, match="none of the 600 runs is honest; give runs with y = 1"):
        AuditRule().fit(X, 0 * y)
    with pytest.raises(ValueError, match="must be 0 or 1"):
        AuditRule().fit(X, 0.5 * np.ones(600))
    rule = AuditRule(0.1, "step", max_steps=30).fit(X)
    with pytest.raises(ValueError, match="alpha=0.2 was not fitted"):
        rule.audits(X, 0.2)
    longer = TrajectoryArray(np.zeros(31), [31])
    with pytest.warns(UserWarning, match="1 run longer than max_steps=30, for which the budget"):
        rule.audits(longer)


def test_intervals_of_shares_are_those_of_counts_rounded_outwards(runs):
    X, y = runs
    report = AuditRule(0.1, "step").fit(X[:300]).report(X[300:500], y[300:500])
    hits = report["honest_steps"].iloc[0] * 200
    assert hits % 1 > 0
    low = binomtest(int(hits), 200).proportion_ci().low
    high = binomtest(int(hits) + 1, 200).proportion_ci().high
    assert report["honest_steps_low"].iloc[0] == pytest.approx(low)
    assert report["honest_steps_high"].iloc[0] == pytest.approx(high)
    assert np.isnan(report["attack_steps"].iloc[0])  # there is none


@any_two_labels
class Audit(AuditRule):
    pass


def expected_failures(estimator):
    reason = "the uniform of a run belongs to its id, which in a plain array is its row"
    names = ("check_methods_sample_order_invariance", "check_methods_subset_invariance")
    coins = estimator.ties == "randomized" and estimator.max_steps is None
    return dict.fromkeys(names, reason) if coins else {}


@parametrize_with_checks(
    [Audit(0.3, ties="strict"), Audit(0.3, "step"), Audit(0.3, "step", 20)],
    expected_failed_checks=expected_failures,
)
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    ("shares", "fewest", "most"),
    [([0.5, 0.25, 0.0], 0, 1), ([0.5, 0.5], 1, 1), ([1.0, 0.25], 1, 2), ([0.1] * 10, 1, 1),
     ([0.0] * 4, 0, 0), ([1.0], 1, 1)],
)  # fmt: skip
def test_shares_have_the_interval_of_counts_on_either_side(shares, fewest, most):
    n, shares = len(shares), np.array(shares)
    low, high = (binomtest(hits, n).proportion_ci(0.9) for hits in (fewest, most))
    expected = {"x": shares.mean(), "x_low": low.low, "x_high": high.high}
    assert _share_with_interval("x", shares, 0.9) == pytest.approx(expected)


def test_no_share_is_known_of_no_run():
    row = _share_with_interval("x", np.empty(0), 0.9)
    assert np.isnan(row["x"])
    assert (row["x_low"], row["x_high"]) == (0, 1)


def test_the_step_that_is_looked_at_is_drawn_by_the_random_state(runs):
    X, _ = runs
    one, same, other = (
        AuditRule(0.1, "step", random_state=seed).fit(X[:99]).thresholds_.iloc[0]
        for seed in (0, 0, 1)
    )
    assert one == same
    assert one != other


def test_a_run_that_is_too_long_is_named():
    X = TrajectoryArray(np.zeros(12), [2, 6, 4], ids=["a", "b", "c"])
    said = "run b has 6 steps, more than max_steps=5; give the most steps that a run may have"
    with pytest.raises(ValueError, match=said.replace("run b", "run '?b'?")):
        AuditRule(0.5, "step", max_steps=5).fit(X)
