import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trajscore import DensityRatioEProcess, TrajectoryArray
from trajscore.core.estimator import check_estimator_input
from trajscore.datasets import make_trajectories
from trajscore.monitoring import (
    CalibratedVerifier,
    FixedStepStop,
    RandomStop,
    RawVerifier,
    StoppingRule,
    token_savings,
)
from trajscore.monitoring._savings import _Account, _follow_threshold

SCORES = st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.75, 1.0])
CELLS = st.tuples(SCORES, st.sampled_from([0.0, 1.0, 2.5, 7.0]))
RUNS = st.lists(
    st.tuples(st.lists(CELLS, min_size=1, max_size=6), st.sampled_from([-1, 0, 1, 0.5])),
    min_size=1,
    max_size=8,
)


def stop_each(runs, threshold):
    """Cost spent and outcomes kept where -score > threshold stops a run."""
    spent = kept = 0.0
    for cells, outcome in runs:
        flagged = False
        for score, cost in cells:
            spent += cost
            if -score > threshold:
                flagged = True
                break
        kept += 0 if flagged else outcome
    return spent, kept


@given(RUNS)
def test_the_curve_is_what_a_loop_gives(runs):
    X = TrajectoryArray.from_list([[score for score, _ in cells] for cells, _ in runs])
    cost = TrajectoryArray.from_list([[price for _, price in cells] for cells, _ in runs])
    y = np.array([outcome for _, outcome in runs], dtype=float)
    known = [run for run in runs if run[1] != -1]
    total, best = stop_each(known, np.inf)
    rule = RawVerifier(alpha=[0.1, 0.3]).fit(X)
    if not best or not total:
        with pytest.raises(ValueError, match=r"no run succeeded|all costs are zero"):
            token_savings(rule, X, y, cost=cost)
        return
    savings = token_savings(rule, X, y, cost=cost)
    assert (savings.total_cost, savings.n_runs) == (total, len(known))
    assert savings.n_dropped == len(runs) - len(known)
    assert savings.accuracy == pytest.approx(best / len(known))
    for row in savings.curve.itertuples():
        spent, kept = stop_each(known, row.threshold)
        assert row.cost_share == pytest.approx(spent / total, abs=1e-12)
        assert row.accuracy == pytest.approx(kept / len(known), abs=1e-12)
        assert row.accuracy_share == pytest.approx(kept / best, abs=1e-12)
    # every threshold that matters: in between nothing changes
    records = {v for cells, _ in known for v in np.maximum.accumulate([-s for s, _ in cells])}
    assert savings.curve["threshold"].tolist() == [*sorted(records, reverse=True), -np.inf]
    for alpha, row in savings.at_alpha.iterrows():
        spent, kept = stop_each(known, -alpha)
        assert row["cost_share"] == pytest.approx(spent / total, abs=1e-12)
        assert row["accuracy"] == pytest.approx(kept / len(known), abs=1e-12)


@given(RUNS, st.floats(0, 1))
def test_the_point_is_the_cheapest(runs, share):
    X = TrajectoryArray.from_list([[score for score, _ in cells] for cells, _ in runs])
    y = np.array([outcome for _, outcome in runs], dtype=float)
    if not (y > 0).any():
        return
    savings = token_savings(RawVerifier().fit(X), X, y)
    point = savings.point(share)
    enough = savings.curve[savings.curve["accuracy_share"] >= share - 1e-12]
    assert point.cost_share == enough["cost_share"].min()
    assert point.accuracy_share >= share - 1e-12
    assert savings.curve["cost_share"].is_monotonic_decreasing
    assert savings.curve["accuracy_share"].is_monotonic_decreasing


@pytest.fixture(scope="module")
def runs():
    X, y = make_trajectories(3000, lengths=(2, 9), random_state=1, return_X_y=True)
    return X[:1500], y[:1500], X[1500:], y[1500:]


RULES = [
    DensityRatioEProcess(alpha=[0.05, 0.2]),
    DensityRatioEProcess(alpha=[0.05, 0.2], threshold="conformal", ties="randomized"),
    DensityRatioEProcess(alpha=[0.05, 0.2], threshold="conformal", cross_fit=3),
    DensityRatioEProcess(alpha=[0.05, 0.2], threshold="randomized_ville"),
    CalibratedVerifier(alpha=[0.05, 0.2]),
    FixedStepStop(alpha=[0.05, 0.2]),
    RandomStop(alpha=[0.05, 0.2]),
]


@pytest.mark.parametrize("rule", RULES)
def test_fitted_levels_agree_with_the_report(runs, rule):
    X, y, X_new, y_new = runs
    rule.fit(X, y)
    savings = token_savings(rule, X_new, y_new)
    report = rule.report(X_new, y_new)
    table = savings.at_alpha
    columns = ["threshold", "false_alarm_rate", "false_alarm_rate_low", "false_alarm_rate_high"]
    pd.testing.assert_frame_equal(table[columns], report[columns])
    np.testing.assert_allclose(table["cost_share"], 1 - report["steps_saved_overall"])
    np.testing.assert_allclose(table["accuracy_share"], 1 - report["false_alarm_rate"])
    cost = X_new.with_cells(np.arange(len(X_new.cells)) % 7 + 0.5)
    spent = rule.report(X_new, y_new, cost=cost)
    share = token_savings(rule, X_new, y_new, cost=cost).at_alpha["cost_share"]
    np.testing.assert_allclose(share, 1 - spent["cost_saved_overall"])
    pd.testing.assert_frame_equal(spent[report.columns], report)
    first, last = savings.curve.iloc[0], savings.curve.iloc[-1]
    assert (first["cost_share"], first["accuracy_share"]) == (1, 1)
    assert last["cost_share"] == pytest.approx(len(X_new) / X_new.lengths.sum())
    assert last["accuracy"] == 0


def test_the_order_of_rows_does_not_matter(runs, rng):
    X, y, X_new, y_new = runs
    rule = DensityRatioEProcess().fit(X, y)
    cost = X_new.with_cells(rng.random(len(X_new.cells)))
    order = rng.permutation(len(X_new))
    one = token_savings(rule, X_new, y_new, cost=cost)
    other = token_savings(rule, X_new[order], y_new[order], cost=cost[order])
    pd.testing.assert_frame_equal(one.curve, other.curve, rtol=1e-12)


def test_area_of_known_rules():
    X, y = np.ones((400, 5)), np.arange(400) % 2
    # a perfect verifier at step 1 keeps everything; it ends half of the runs after a fifth
    seen = token_savings(RawVerifier(alpha=0.5).fit(X), X * y[:, None], y)
    assert seen.point(1).cost_share == pytest.approx(0.6)
    assert seen.area == pytest.approx((0.4 * 0.5 + 0.4) / 0.8)
    blind = token_savings(RawVerifier().fit(X), X, y)  # all at step 1, or none
    assert blind.area == 0.5
    late = token_savings(FixedStepStop(step=2).fit(X), X, y)
    assert late.area < 0.5
    assert late.point(1).cost_share == 1
    one_step = token_savings(RawVerifier().fit([[0.5]]), [[0.5], [0.2]], [1, 0])
    assert np.isnan(one_step.area)
    assert repr(blind) == "TokenSavings(area=0.500, n_runs=400)"


def test_errors(runs):
    X, y, X_new, y_new = runs
    rule = CalibratedVerifier().fit(X, y)
    with pytest.raises(ValueError, match="the scores and the costs have 1500 and 1499 runs"):
        token_savings(rule, X_new, y_new, cost=X_new[1:])
    with pytest.raises(
        ValueError, match="row 0 is run 1500 in the scores, but run 1501 in the costs"
    ):
        order = [1, 0, *range(2, 1500)]
        token_savings(rule, X_new, y_new, cost=X_new[order])
    with pytest.raises(ValueError, match=r"the scores and the costs have \d and 2 steps in row \d"):
        token_savings(rule, X_new, y_new, cost=X_new.prefix(2))
    with pytest.raises(ValueError, match="cost -.* is negative"):
        token_savings(rule, X_new, y_new, cost=X_new.with_cells(-X_new.cells))
    with pytest.raises(ValueError, match="all costs are zero"):
        token_savings(rule, X_new, y_new, cost=X_new.with_cells(0 * X_new.cells))
    with pytest.raises(ValueError, match="process must be a fitted stopping rule, got 0.5"):
        token_savings(0.5, X_new, y_new)
    with pytest.raises(ValueError, match="no run succeeded"):
        token_savings(rule, X_new, 0 * y_new)
    with pytest.raises(ValueError, match=r"accuracy_share must lie in \[0, 1\], got 90"):
        token_savings(rule, X_new, y_new).point(90)
    with pytest.raises(ValueError, match="accuracy_share must lie in .*, got 'a'"):
        token_savings(rule, X_new, y_new).point("a")


def test_cost_saved_of_failing_runs():
    X = TrajectoryArray.from_list([[0.9, 0.1, 0.1], [0.9, 0.9], [0.1], [0.2, 0.9]])
    cost = X.with_cells([4.0, 3, 1, 5, 5, 2, 0, 0])
    row = FirstBelow().fit(X).report(X, [0, 0, 0, 1], cost=cost).loc[0.5]
    # flagged after 7 of 8, never, at its last step; of a run without cost nothing is saved
    assert row["cost_saved"] == pytest.approx((1 / 8 + 0 + 0) / 3)
    assert row["cost_saved_overall"] == pytest.approx(1 / 20)
    assert row["steps_saved"] == pytest.approx((1 / 3 + 0 + 0) / 3)
    with pytest.raises(ValueError, match="cost -1 is negative"):
        FirstBelow().fit(X).report(X, [0, 0, 0, 1], cost=X.with_cells(-np.ones(8)))
    free = FirstBelow().fit(X).report(X, [0, 0, 0, 1], cost=X.with_cells(np.zeros(8)))
    assert free["cost_saved"].tolist() == [0]
    assert free["cost_saved_overall"].isna().all()


class FirstBelow(StoppingRule):
    """Flags the first step below one half."""

    def fit(self, X, y=None):
        check_estimator_input(self, X, reset=True)
        self.alphas_ = np.array([0.5])
        return self

    def _statistic(self, X):
        return -X.cells

    def _limits(self, X, alpha):
        return np.full(len(X), -alpha)


@pytest.mark.parametrize(
    ("statistic", "threshold", "saved", "lost"),
    [
        # runs of 3 steps, which succeeds, and 2; a record is a step that exceeds all before it
        ([1, 3, 2, 2, 2], [3, 2, 1, -np.inf], [0, 2, 3, 6], [0, 1, 1, 1]),
        ([2, 2, 2, 2, 2], [2, -np.inf], [0, 6], [0, 1]),
        ([0, 0, 1, 3, 4], [4, 3, 1, 0, -np.inf], [0, 0, 1, 1, 6], [0, 0, 0, 1, 1]),
    ],
)
def test_a_threshold_that_falls_by_hand(statistic, threshold, saved, lost):
    X = TrajectoryArray(np.zeros(5), [3, 2])
    spent = np.array([2.0, 5.0, 7.0, 1.0, 2.0])
    account = _Account(X, np.array([1, 0]), np.array(statistic, dtype=float), spent)
    expected = threshold, saved, lost
    for values, known in zip(_follow_threshold(account), expected, strict=True):
        assert values.tolist() == known
    assert account.total == 9
