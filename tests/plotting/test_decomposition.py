import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from trajscore import PlattCrossFitCalibrator
from trajscore.core.collapse import aggregate
from trajscore.metrics import tps_decomposition, tps_score
from trajscore.plotting import DecompositionDisplay, ReliabilityDisplay


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


def parts_of(names, miscalibration, discrimination, uncertainty=0.25):
    table = pd.DataFrame(
        {"miscalibration": miscalibration, "discrimination": discrimination}, index=names
    )
    table["uncertainty"] = uncertainty
    table.insert(
        0, "score", table["discrimination"] - table["miscalibration"] - table["uncertainty"]
    )
    return table


def bars_of(container):
    return [(bar.get_x(), bar.get_x() + bar.get_width(), bar.get_y() + bar.get_height() / 2)
            for bar in container]  # fmt: skip


def test_bars_lead_from_the_base_rate_to_the_best_map_and_back_to_the_score():
    table = parts_of(["judge", "coin"], [0.05, 0.01], [0.1, 0.0])
    display = DecompositionDisplay(table, "Brier").plot()
    ax = display.ax_
    gained, lost = ax.containers
    np.testing.assert_allclose(bars_of(gained), [(-0.25, -0.15, 1.17), (-0.25, -0.25, 0.17)])
    np.testing.assert_allclose(bars_of(lost), [(-0.2, -0.15, 0.83), (-0.26, -0.25, -0.17)])
    np.testing.assert_allclose(display.line_.get_ydata(), [0.83, -0.17])
    numbers = [(text.get_text().replace("\N{MINUS SIGN}", "-"), *text.xy) for text in ax.texts]
    assert [text for text, *_ in numbers] == ["+0.1000", "+0.0000", "-0.0500", "-0.0100"]
    np.testing.assert_allclose(
        [place for _, *place in numbers],
        [(-0.15, 1.17), (-0.25, 0.17), (-0.15, 0.83), (-0.25, -0.17)],
    )
    (constant,) = ax.collections
    np.testing.assert_allclose(
        constant.get_segments(), [[(-0.25, 0.5), (-0.25, 1.5)], [(-0.25, -0.5), (-0.25, 0.5)]]
    )
    np.testing.assert_allclose(ax.get_xlim(), (-0.26 - 0.06 * 0.11, -0.15 + 0.2 * 0.11))
    assert ax.get_ylim() == (-0.5, 1.5)
    assert ax.get_xlabel() == "mean Brier score (higher is better)"
    assert display.figure_.get_size_inches().tolist() == [6.4, 2.7]


@pytest.mark.parametrize(
    ("lost", "gained", "texts"),
    [
        ([0.2, 0.01], [0.5, 0.02], ["+0.500", "+0.020", "-0.200", "-0.010"]),
        ([0.002], [0.5], ["+0.50000", "-0.00200"]),
        ([0.0], [0.05], ["+0.0500", "-0.0000"]),  # a part that is 0 everywhere needs no digits
        ([0.0], [0.0], ["+0.000", "-0.000"]),
    ],
)
def test_as_many_decimals_as_show_three_digits_of_each_part(lost, gained, texts):
    names = [f"judge {k}" for k in range(len(lost))]
    display = DecompositionDisplay(parts_of(names, lost, gained)).plot()
    found = [text.get_text().replace("\N{MINUS SIGN}", "-") for text in display.ax_.texts]
    assert found == texts


def test_decomposition_of_nothing_but_a_constant():
    display = DecompositionDisplay.from_predictions([1, 0], [[0.5], [0.5]], score="brier")
    drawn(display)
    left, right = display.ax_.get_xlim()  # around the only value
    assert left < -0.25 < right
    assert right - left < 0.01


def test_decomposition_by_step(runs):
    X, y = runs
    display = DecompositionDisplay.from_predictions(y, X, by="step")
    pd.testing.assert_frame_equal(display.table, tps_decomposition(y, X, by="step"))
    drawn(display)
    shown = display.line_.get_xdata()
    assert (display.table.loc[shown, "n_runs"] >= 10).all()
    assert shown.tolist() == display.table.index[display.table["n_runs"] >= 10].tolist()
    table = display.table.loc[shown]
    constant, best = -table["uncertainty"], table["discrimination"] - table["uncertainty"]
    display.plot(ax=plt.figure().add_subplot())
    lines = {line.get_label(): line.get_ydata() for line in display.ax_.lines}
    assert list(lines) == ["recalibrated", "base rate", "score"]
    np.testing.assert_allclose(lines["recalibrated"], best)
    np.testing.assert_allclose(lines["base rate"], constant)
    np.testing.assert_allclose(lines["score"], table["score"])
    areas = {area.get_label(): area.get_datalim(display.ax_.transData)
             for area in display.ax_.collections}  # fmt: skip
    gained, lost = areas["gained by discrimination"], areas["lost by miscalibration"]
    assert (gained.y0, gained.y1) == pytest.approx((constant.min(), best.max()))
    assert (lost.y0, lost.y1) == pytest.approx((table["score"].min(), best.max()))
    assert display.ax_.get_xlabel() == "step"
    assert display.ax_.get_ylabel() == "mean log score (higher is better)"
    assert not display.ax_.texts
    most = int(display.table["n_runs"].max())
    assert len(display.plot(min_runs=most).line_.get_xdata()) >= 1
    empty = display.plot(min_runs=most + 1)
    assert len(empty.line_.get_xdata()) == 0
    (text,) = empty.ax_.texts
    assert text.get_text() == f"no step is reached by {most + 1} runs"
    with pytest.raises(ValueError, match='by="step" shows one predictor, got 2'):
        DecompositionDisplay.from_predictions(y, {"a": X, "b": X}, by="step")


def test_from_estimator(runs):
    X, y = runs
    display = DecompositionDisplay
    calibrator = PlattCrossFitCalibrator().fit(X, y)
    made = display.from_estimator(calibrator, X, y)
    same = display.from_predictions(y, calibrator.transform(X), name="PlattCrossFitCalibrator")
    pd.testing.assert_frame_equal(made.table, same.table)
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
    display = ReliabilityDisplay.from_predictions(y, X, n_bins=5, **weights)
    confidence = aggregate(X, **weights)
    assert display.n_runs @ display.forecast == pytest.approx(confidence.sum())
    with pytest.raises(ValueError, match="'linear_front' fall to zero over a number of steps"):
        DecompositionDisplay.from_predictions(y, X, weights="linear_front")
