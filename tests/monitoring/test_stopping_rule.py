"""What rules that stop runs early share: decisions, rates, steps and cost saved, by hand."""

import numpy as np
import pytest
from scipy.stats import binomtest

from trajscore import TrajectoryArray
from trajscore.monitoring import StoppingRule
from trajscore.monitoring import _stopping_rule as module


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
X = [[0.1, 0.6, 0.9, 0.2], [0.5, 0.5], [0.9], [0.2, 0.1, 0.7], [0.3, 0.4], [0.9, 0.9]]
Y = [0, 1, 0, 1, 0, -1]
COST = [[1, 1, 2, 4], [1, 1], [5], [2, 2, 2], [0, 0], [9, 9]]


@pytest.mark.parametrize(
    ("alpha", "stops"), [(None, [2, 0, 1, 3, 0, 1]), (0.5, [2, 0, 1, 3, 0, 1]),
                         (0.8, [3, 0, 1, 0, 0, 1]), (0.8 + 1e-14, [3, 0, 1, 0, 0, 1])],
)  # fmt: skip
def test_decisions(alpha, stops):
    assert RULE.stopping_steps(X, alpha).tolist() == stops
    assert RULE.predict(X, alpha).tolist() == [int(stop == 0) for stop in stops]
    margin = np.array([0.9, 0.5, 0.9, 0.7, 0.4, 0.9])
    np.testing.assert_allclose(RULE.decision_function(X, alpha), (alpha or 0.5) - margin)


@pytest.mark.parametrize("alpha", [0.6, 0.5 + 1e-9, "0.5"])
def test_other_levels(alpha):
    with pytest.raises(ValueError, match=r"was not fitted; the fitted levels are 0\.5, 0\.8\."):
        RULE.predict(X, alpha)


@pytest.mark.parametrize(
    ("weight", "power"), [(None, 2 / 3), ([1, 9, 2, 9, 5, 9], 3 / 8), ([0, 1, 0, 1, 1, 1], 0)]
)
def test_power(weight, power):
    assert RULE.score(X, Y, weight) == pytest.approx(power)


@pytest.mark.parametrize(
    ("y", "weight", "message"),
    [
        ([1, 1, 1, 1, 1, -1], None, "no run failed, so power is undefined"),
        (Y, [0, 1, 0, 1, 0, 1], "all failed runs have weight zero, so power is undefined"),
    ],
)
def test_no_power(y, weight, message):
    with pytest.raises(ValueError, match=message):
        RULE.score(X, y, weight)


def test_report():
    table = RULE.report(X, Y, cost=COST)
    first, second = table.loc[0.5], table.loc[0.8]
    ends = binomtest(1, 2).proportion_ci(0.95), binomtest(2, 3).proportion_ci(0.95)
    expected = {
        "n_success": 2, "false_alarm_rate": 1 / 2, "n_failure": 3, "power": 2 / 3,
        "false_alarm_rate_low": ends[0].low, "false_alarm_rate_high": ends[0].high,
        "power_low": ends[1].low, "power_high": ends[1].high, "power_before_end": 1 / 3,
        "power_longer": 1 / 2, "mean_stopping_step": 2, "steps_saved": (2 / 4) / 3,
        "steps_saved_overall": 2 / 12, "cost_saved": (6 / 8) / 3, "cost_saved_overall": 6 / 21,
        "n_dropped": 1,
    }  # fmt: skip
    assert first[list(expected)].to_dict() == pytest.approx(expected)
    assert np.isnan(first["threshold"])
    assert set(table) == {*expected, "threshold"}
    changed = {"false_alarm_rate": 0, "mean_stopping_step": 2, "steps_saved": (1 / 4) / 3,
               "steps_saved_overall": 1 / 12, "cost_saved": (4 / 8) / 3,
               "cost_saved_overall": 4 / 21, "n_dropped": 1}  # fmt: skip
    assert second[list(changed)].to_dict() == pytest.approx(changed)
    assert "cost_saved" not in RULE.report(X, Y)


def test_report_without_flags_or_costs():
    row = RULE.report([[0.1], [0.2, 0.3]], [1, 1], cost=[[0], [0, 0]]).loc[0.5]
    ends = (row["power_low"], row["power_high"])
    assert (row["n_failure"], ends) == (0, (0, 1))
    for name in ("power", "power_longer", "mean_stopping_step", "steps_saved", "cost_saved",
                 "cost_saved_overall"):  # fmt: skip
        assert np.isnan(row[name])
    assert row["steps_saved_overall"] == 0


def test_default_interval_is_of_95_percent():
    ends = binomtest(1, 4).proportion_ci(0.95)
    expected = {"r": 0.25, "r_low": ends.low, "r_high": ends.high}
    assert module.rate_with_interval("r", np.arange(4) == 1) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("y", "cost", "message"),
    [
        ([-1] * 6, None, "none of the 6 runs has an observed outcome, so there are no rates"),
        (Y, [*COST[:5], [9, -2]], "step 2: cost -2 is negative"),
        (Y, COST[:5], "costs"),
    ],
)
def test_bad_reports(y, cost, message):
    with pytest.raises(ValueError, match=message):
        RULE.report(X, y, cost=cost)


@pytest.mark.parametrize("alpha", [0, 1, -0.1, [0.1, 1.0], [], [[0.1]], np.nan])
def test_bad_levels(alpha):
    with pytest.raises(ValueError, match="alpha must lie strictly between 0 and 1, got"):
        module.check_alphas(alpha)


def test_levels():
    assert module.check_alphas(0.1).tolist() == [0.1]
    assert module.check_alphas([0.9, 1e-9]).tolist() == [0.9, 1e-9]
    with pytest.raises(ValueError, match=r"more than once: \[0.1, 0.1\]; name each once"):
        module.check_alphas([0.1, 0.1])
    with pytest.raises(ValueError, match="alpha must be a number or a list of numbers, got 'a'"):
        module.check_alphas("a")
    series = module.by_alpha(RULE, [3, 4], "n")
    assert (series.to_dict(), series.name, series.index.name) == ({0.5: 3, 0.8: 4}, "n", "alpha")


@pytest.mark.parametrize(("longest", "n"), [(1, 2), (2, 1), (3, 0)])
@pytest.mark.parametrize("beyond", ["they extrapolate", ""])
@pytest.mark.filterwarnings("error")
def test_longer_runs(longest, n, beyond):
    runs = TrajectoryArray(np.zeros(6), [1, 2, 3])
    if not n or not beyond:
        module.warn_longer(runs, longest, beyond)
        return
    with pytest.warns(UserWarning, match=f"^{n} runs? longer .* has {longest} steps?; they extrap"):
        module.warn_longer(runs, longest, beyond)


def test_a_cost_a_run_is_refused():
    X = TrajectoryArray([0.5, 0.4, 0.3], [1, 2])
    with pytest.raises(ValueError, match=r"cost has shape \(2,\); give one cost a step, as X.with"):
        module.check_cost(np.ones(2), X)
