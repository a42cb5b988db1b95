import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from trajscore import DensityRatioEProcess
from trajscore.datasets import make_trajectories
from trajscore.monitoring import FixedStepStop, RawVerifier, token_savings
from trajscore.plotting import EProcessDisplay, PowerDisplay, SavingsDisplay


@pytest.fixture(scope="module")
def fitted():
    X, y = make_trajectories(1200, lengths=(2, 7), random_state=0, return_X_y=True)
    alpha = [0.1, 0.6, 0.2]
    rules = {
        "e-process": DensityRatioEProcess(alpha=alpha).fit(X[:600], y[:600]),
        "raw": RawVerifier(alpha=alpha).fit(X[:600]),
    }
    return rules, X[600:], y[600:]


def labels(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_savings(fitted):
    rules, X, y = fitted
    cost = X.with_cells(1 + X.cells)
    display = SavingsDisplay.from_estimator(rules, X, y, cost=cost)
    expected = token_savings(rules["raw"], X, y, cost=cost)
    pd.testing.assert_frame_equal(display.savings["raw"].curve, expected.curve)
    _, ax = plt.subplots()
    assert display.plot(ax=ax, name="mine").ax_ is ax
    assert ax.get_title() == "mine"
    np.testing.assert_array_equal(display.line_[1].get_xdata(), expected.curve["cost_share"])
    assert f"raw, area {expected.area:.2f}" in labels(ax)
    assert "false-alarm rate above alpha" in labels(ax)  # of the raw verifier
    display.figure_.canvas.draw()
    one = SavingsDisplay.from_estimator(rules["e-process"], X, y).plot(color="red")
    assert list(one.savings) == ["DensityRatioEProcess"]
    assert one.line_[0].get_color() == "red"
    assert "false-alarm rate above alpha" not in labels(one.ax_)
    with pytest.raises(ValueError, match="no stopping rules"):
        SavingsDisplay.from_estimator({}, X, y)


def test_e_process(fitted):
    rules, X, y = fitted
    process = rules["e-process"]
    y = np.where(np.arange(len(y)) % 7 == 0, -1, y)
    display = EProcessDisplay.from_estimator(process, X, y, alpha=0.2, n_runs=20)
    assert len(display.shown) == 20
    assert display.outcome[display.shown].sum() == 10
    assert (np.diff(display.shown) > 0).all()
    odd = EProcessDisplay.from_estimator(process, X, y, alpha=0.2, n_runs=5)
    assert np.bincount(odd.outcome[odd.shown]).tolist() == [3, 3]  # at least half of either
    log_m = process.transform(X[y == 0]).steps(3)
    assert display.medians.loc[(0, 3), "median"] == np.median(log_m[:, 2])
    assert display.medians.loc[(0, 3), "n_runs"] == len(log_m)
    drawn = display.plot(name="mine")
    assert drawn.ax_.get_title() == "mine"
    assert labels(drawn.ax_)[-1] == "threshold, alpha = 0.2"
    assert len(drawn.line_) == 2
    drawn.figure_.canvas.draw()
    assert len(display.plot(min_runs=10**6).line_[0].get_xdata()) == 0
    rows = np.random.default_rng(0).permutation(len(X))
    other = EProcessDisplay.from_estimator(process, X[rows], y[rows], alpha=0.2, n_runs=20)
    assert set(other.log_m[other.shown].ids) == set(display.log_m[display.shown].ids)


def test_e_process_without_a_finite_threshold(fitted):
    _, X, y = fitted
    crossed = DensityRatioEProcess(threshold="conformal", cross_fit=2).fit(X, y)
    display = EProcessDisplay.from_estimator(crossed, X, y, n_runs=5000).plot()
    assert len(display.shown) == len(X)
    assert not any("threshold" in label for label in labels(display.ax_))
    weighted = DensityRatioEProcess(alpha=0.3, end_worth=0.3).fit(X, y)
    display = EProcessDisplay.from_estimator(weighted, X, y).plot()
    assert not any("threshold" in label for label in labels(display.ax_))


def test_power(fitted):
    rules, X, y = fitted
    display = PowerDisplay.from_estimator(rules, X, y)
    same = PowerDisplay.from_reports({key: one.report(X, y) for key, one in rules.items()})
    for key, table in same.reports.items():
        assert table.index.tolist() == [0.1, 0.2, 0.6]  # sorted, to be joined by lines
        pd.testing.assert_frame_equal(display.reports[key], table)
    drawn = display.plot(name="mine")
    left, right = drawn.ax_
    assert left.figure is right.figure is drawn.figure_
    assert drawn.figure_._suptitle.get_text() == "mine"
    np.testing.assert_array_equal(drawn.line_[3].get_ydata(), same.reports["raw"]["power"])
    assert labels(left) == ["alpha", "e-process", "raw", "false-alarm rate above alpha"]
    drawn.figure_.canvas.draw()
    _, axes = plt.subplots(2)
    one = PowerDisplay.from_reports(same.reports["e-process"], name="mine").plot(ax=axes)
    assert one.ax_ == tuple(axes)
    assert labels(axes[0]) == ["alpha", "mine"]
    single = PowerDisplay.from_estimator(FixedStepStop(step=3).fit(X), X, y)
    assert list(single.reports) == ["FixedStepStop"]
    single.plot().figure_.canvas.draw()
    with pytest.raises(ValueError, match="no reports"):
        PowerDisplay.from_reports({})
