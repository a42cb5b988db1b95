import matplotlib.pyplot as plt
import numpy as np
import pytest

from trajscore import evaluate
from trajscore.datasets import make_trajectories
from trajscore.metrics import step_profile
from trajscore.plotting import LengthDisplay, ReliabilityDisplay, ScoreDisplay, StepProfileDisplay
from trajscore.plotting._base import wilson_interval


@pytest.fixture
def runs():
    return make_trajectories(120, random_state=0, return_X_y=True)


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def drawn(display):
    assert display.plot() is display
    assert display.figure_ is display.ax_.figure
    assert display.line_ is not None
    _, ax = plt.subplots()
    assert display.plot(ax=ax, name="mine").ax_ is ax


def test_reliability(runs):
    X, y = runs
    display = ReliabilityDisplay.from_predictions(y, X, phi="last")
    assert display.n_runs.sum() == 120
    assert display.n_runs @ display.success_rate == pytest.approx(y.sum())
    assert (np.diff(display.forecast) > 0).all()
    drawn(display)


def test_reliability_never_splits_ties_and_passes_over_unobserved_runs():
    display = ReliabilityDisplay.from_predictions([1, 0, 1, -1], [[0.5]] * 4)
    assert display.n_runs.tolist() == [3]


def test_step_profile(runs):
    X, y = runs
    display = StepProfileDisplay.from_predictions(y, X, score="brier")
    assert display.profile.equals(step_profile(y, X, score="brier"))
    drawn(display)
    shown = display.line_.get_xdata()
    assert (display.profile.loc[shown, "n_runs"] >= 10).all()


def test_length(runs):
    X, y = runs
    display = LengthDisplay.from_predictions(y, X)
    assert display.table["n_runs"].sum() == 120
    row = display.table.iloc[0]
    here = (X.lengths >= row["low"]) & (X.lengths <= row["high"])
    assert row["success_rate"] == pytest.approx(y[here].mean())
    drawn(display)
    many = LengthDisplay.from_predictions(y, X, n_bins=3)
    assert len(many.table) <= 3
    assert many.table["n_runs"].sum() == 120


def test_length_with_a_bin_that_was_never_observed():
    display = LengthDisplay.from_predictions([1, 0, -1], [[0.5], [0.5], [0.5, 0.5]])
    assert display.table["n_observed"].tolist() == [2, 0]
    drawn(display)


def test_scores(runs):
    X, y = runs
    report = evaluate(X, y, n_resamples=20)
    display = ScoreDisplay.from_intervals(report.intervals, "TPS log")
    assert display.reference == report.table.loc[("base rate", "constant"), "TPS log"]
    drawn(display)
    assert len(display.line_) == 2


def test_wilson_interval_contains_the_rate():
    for n in (1, 7, 1000):
        rate = np.linspace(0, 1, n + 1)
        low, high = wilson_interval(rate, n)
        assert (low >= 0).all()
        assert (high <= 1).all()
        assert (low <= rate + 1e-12).all()
        assert (high >= rate - 1e-12).all()
