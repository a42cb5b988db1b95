import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refused import must_refuse
from trajscore import DensityRatioEProcess, TrajectoryArray
from trajscore.datasets import make_trajectories
from trajscore.monitoring import CalibratedVerifier, Conformal, RawVerifier, token_savings

SCORES = st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.75, 1.0])
CELLS = st.tuples(SCORES, st.sampled_from([0.0, 1.0, 2.5, 7.0]))
RUN = st.tuples(st.lists(CELLS, min_size=1, max_size=6), st.sampled_from([-1, 0, 1, 0.5]))
RUNS = st.lists(RUN, min_size=1, max_size=8)


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
    X, y = make_trajectories(1000, lengths=(2, 9), random_state=1, return_X_y=True)
    return X[:500], y[:500], X[500:], y[500:]


THRESHOLDS = ("conformal", Conformal("randomized"), "randomized_ville")
RULES = [DensityRatioEProcess(threshold=one, alpha=[0.05, 0.2]) for one in THRESHOLDS]
RULES += [CalibratedVerifier(alpha=[0.05, 0.2])]


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


def test_area_of_known_rules():
    X, y = np.ones((400, 5)), np.arange(400) % 2
    # a perfect verifier at step 1 keeps everything; it ends half of the runs after a fifth
    seen = token_savings(RawVerifier(alpha=0.5).fit(X), X * y[:, None], y)
    assert seen.point(1).cost_share == pytest.approx(0.6)
    assert seen.area == pytest.approx((0.4 * 0.5 + 0.4) / 0.8)
    blind = token_savings(RawVerifier().fit(X), X, y)  # all at step 1, or none
    assert blind.area == 0.5
    one_step = token_savings(RawVerifier().fit([[0.5]]), [[0.5], [0.2]], [1, 0])
    assert np.isnan(one_step.area)
    assert "0.500" in repr(blind)


def test_bad_input(runs):
    X, y, X_new, y_new = runs
    rule, order = CalibratedVerifier().fit(X, y), [1, 0, *range(2, 500)]
    rows = [
        (y_new, X_new[1:], "costs have 500 and 499 runs"),
        (y_new, X_new[order], "row 0 is run 500 in the scores, but run 501 in the costs"),
        (y_new, X_new.prefix(2), r"costs have \d and 2 steps in row \d"),
        (y_new, X_new.with_cells(-X_new.cells), "step 1: cost -.* is negative"),
        (y_new, X_new.with_cells(0 * X_new.cells), "all costs are zero"),
        (0 * y_new, None, "no run succeeded"),
    ]
    must_refuse(lambda y, cost: token_savings(rule, X_new, y, cost=cost), rows)
    must_refuse(token_savings, [(0.5, X_new, y_new, "process must be .*, got 0.5")])
    rows = [(share, f"accuracy_share must lie .*{share}") for share in (90, "a", -0.1)]
    must_refuse(token_savings(rule, X_new, y_new).point, rows)
