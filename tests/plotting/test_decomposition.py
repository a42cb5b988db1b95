import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from trajscore import PlattCrossFitCalibrator
from trajscore.metrics import aggregate, murphy_curve, tps_decomposition, tps_score
from trajscore.plotting import DecompositionDisplay, MurphyDisplay, ReliabilityDisplay


def drawn(display):
    assert display.plot() is display
    assert display.figure_ is display.ax_.figure
    assert display.line_ is not None
    _, ax = plt.subplots()
    assert display.plot(ax=ax, name="mine").ax_ is ax
    assert "mine" in [ax.get_title(), *ax.get_legend_handles_labels()[1]]
    display.figure_.canvas.draw()


def test_decomposition_of_one_and_of_several(runs):
    X, y = runs
    one = DecompositionDisplay.from_predictions(y, X, score="brier", name="judge")
    parts = tps_decomposition(y, X, score="brier")
    assert one.table.index.tolist() == ["judge"]
    assert one.table.loc["judge"].to_dict() == vars(parts)
    drawn(one)
    flat = X.with_cells(np.full(len(X.cells), 0.5))
    both = DecompositionDisplay.from_predictions(y, {"judge": X, "coin": flat}, score="brier")
    assert both.table.loc["coin", "discrimination"] == 0
    drawn(both)
    assert [label.get_text() for label in both.ax_.get_yticklabels()] == ["judge", "coin"]
    np.testing.assert_array_equal(both.line_.get_xdata(), both.table["score"])
    ends = [end for bar in both.ax_.patches for end in (bar.get_x(), bar.get_x() + bar.get_width())]
    left, right = both.ax_.get_xlim()  # room for a number at the right
    assert left < min(ends) < max(ends) < right
    assert right - left < 1.3 * np.ptp(ends)


def test_decomposition_of_nothing_but_a_constant():
    drawn(DecompositionDisplay.from_predictions([1, 0], [[0.5], [0.5]], score="brier"))


def test_decomposition_by_step(runs):
    X, y = runs
    display = DecompositionDisplay.from_predictions(y, X, by="step")
    pd.testing.assert_frame_equal(display.table, tps_decomposition(y, X, by="step"))
    drawn(display)
    shown = display.line_.get_xdata()
    assert (display.table.loc[shown, "n_runs"] >= 10).all()
    display.plot(min_runs=1000)
    with pytest.raises(ValueError, match='by="step" shows one predictor, got 2'):
        DecompositionDisplay.from_predictions(y, {"a": X, "b": X}, by="step")


def test_murphy(runs):
    X, y = runs
    one = MurphyDisplay.from_predictions(y, X, name="judge")
    pd.testing.assert_frame_equal(one.curves.loc["judge"], murphy_curve(y, X))
    drawn(one)
    two = MurphyDisplay.from_predictions(y, {"a": X, "b": X}, thresholds=[0.5, 0.2])
    drawn(two)
    assert [line.get_label() for line in two.line_] == ["a", "b"]
    np.testing.assert_array_equal(two.line_[0].get_xdata(), [0.2, 0.5])


@pytest.mark.parametrize("display", [DecompositionDisplay, MurphyDisplay])
def test_from_estimator(runs, display):
    X, y = runs
    calibrator = PlattCrossFitCalibrator().fit(X, y)
    made = display.from_estimator(calibrator, X, y)
    same = display.from_predictions(y, calibrator.transform(X), name="PlattCrossFitCalibrator")
    made_table, same_table = (getattr(d, "table", getattr(d, "curves", None)) for d in (made, same))
    pd.testing.assert_frame_equal(made_table, same_table)
    drawn(display.from_estimator(calibrator, X, y, name="platt"))
    with pytest.raises(TypeError, match="object has no method transform"):
        display.from_estimator(object(), X, y)
    with pytest.raises(ValueError, match="no predictors"):
        display.from_predictions(y, {})


@pytest.mark.parametrize(
    "weights",
    [
        {},
        {"weights": "uniform"},
        {"weights": "linear_front", "horizon": 9},
        {"weights": "linear_front", "horizon": "own"},
    ],
    ids=["early", "uniform", "horizon", "as published"],
)
def test_weights_are_those_of_the_metrics(runs, weights):
    X, y = runs
    X = X.prefix(9)
    parts = DecompositionDisplay.from_predictions(y, X, score="brier", **weights).table
    found = parts.loc["forecast"].to_dict()
    assert found == vars(tps_decomposition(y, X, score="brier", **weights))
    assert found["score"] == pytest.approx(tps_score(y, X, score="brier", **weights))
    curves = MurphyDisplay.from_predictions(y, X, **weights).curves
    pd.testing.assert_frame_equal(curves.loc["forecast"], murphy_curve(y, X, **weights))
    display = ReliabilityDisplay.from_predictions(y, X, n_bins=5, **weights)
    confidence = aggregate(X, **weights)
    assert display.n_runs @ display.forecast == pytest.approx(confidence.sum())
    with pytest.raises(ValueError, match="'linear_front' fall to zero over a number of steps"):
        MurphyDisplay.from_predictions(y, X, weights="linear_front")
