"""What holds for all displays alike."""

import functools
import io
from copy import copy

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_hex
from matplotlib.text import Text

from trajscore import DensityRatioEProcess, TracerScorer, TrajectoryArray, plotting
from trajscore.datasets import make_trajectories
from trajscore.monitoring import FleetMonitor, RawVerifier

X, Y = make_trajectories(120, lengths=(2, 14), random_state=0, return_X_y=True)
HIDDEN = np.where(np.arange(120) % 5 == 0, -1, Y)
RULE = RawVerifier(alpha=[0.1, 0.5]).fit(X)
FLEET = FleetMonitor().fit(X, Y)
PROCESS = DensityRatioEProcess(alpha=0.3).fit(X, Y)
SIGNALS = TrajectoryArray(np.c_[X.cells, X.cells[::-1]], X.lengths, channels=["risk", "surprisal"])
SCORER = TracerScorer().fit(SIGNALS)
NAMED = "a $1 judge that costs $2"
INTERVALS = pd.DataFrame(
    {"value": [-0.6, -0.5], "low": [-0.7, -0.6], "high": [-0.5, -0.4]},
    index=pd.MultiIndex.from_product(
        [[NAMED], ["as_given", "recalibrated"], ["TPS log"]], names=["predictor", "form", "metric"]
    ),
)
REASONS = np.where(np.arange(120) % 3 == 0, "max_steps", "a_reason_with_a_name_of_many_words")
MAKE = {
    "CostCurveDisplay": lambda d, **k: d.from_predictions(Y, X.steps(1)[:, 0], **k),
    "DecompositionDisplay": lambda d, **k: d.from_predictions(Y, {NAMED: X, "b": X}, **k),
    "EProcessDisplay": lambda d, **k: d.from_estimator(PROCESS, X, Y, n_runs=8, **k),
    "EarlyWarningDisplay": lambda d, **k: d.from_predictions(Y, {NAMED: X}, **k),
    "FirstErrorDisplay": lambda d, **k: d.from_predictions(X.with_cells(X.cells / 20), X, **k),
    "FleetDisplay": lambda d, **k: d.from_estimator(FLEET, X, Y, n_points=20, **k),
    "PowerDisplay": lambda d, **k: d.from_estimator({NAMED: RULE}, X, Y, **k),
    "ReliabilityDisplay": lambda d, **k: d.from_predictions(Y, X, **k),
    "RiskCoverageDisplay": lambda d, **k: d.from_predictions(Y, X.steps(1)[:, 0], **k),
    "SavingsDisplay": lambda d, **k: d.from_estimator({NAMED: RULE}, X, Y, **k),
    "ScoreDisplay": lambda d, **k: d.from_intervals(INTERVALS, "TPS log", **k),
    "StepProfileDisplay": lambda d, **k: d.from_predictions(HIDDEN, X, **k),
    "TerminationDisplay": lambda d, **k: d.from_predictions(Y, REASONS, **k),
    "TracerStripDisplay": lambda d, **k: d.from_estimator(
        SCORER, SIGNALS, int(X.lengths.argmax()), **k
    ),
}
each = pytest.mark.parametrize("name", plotting.__all__)


@functools.cache
def made(name, **options):
    return MAKE[name](getattr(plotting, name), **options)


def labels(ax):
    return [one.get_text() for one in ax.get_legend().get_texts()] if ax.get_legend() else []


@each
def test_is_drawn_on_new_and_on_given_axes_with_options_of_matplotlib(name):
    display = made(name).plot(lw=3)
    first = np.ravel(np.array(display.line_, dtype=object))[0]
    first = first[0] if isinstance(first, tuple) else first
    assert np.ravel(first.get_linewidth())[0] == 3
    with pytest.raises(TypeError, match="aliases"):
        display.plot(lw=3, linewidth=2)
    assert display.plot() is display
    assert display.figure_ is np.ravel(display.ax_)[0].figure
    alone = labels(np.ravel(display.ax_)[0])
    _, ax = plt.subplots()
    ax.set_title("kept")
    display.plot(ax=ax)
    assert display.figure_ is ax.figure
    if name != "TracerStripDisplay":  # its title says which run is shown
        assert ax.get_title() == "kept"
    display.plot(ax=ax)  # two share axes, and of the same names each stands once
    assert labels(np.ravel(display.ax_)[0]) == alone
    display.figure_.canvas.draw()


@each
def test_is_whole_thin_and_says_what_it_holds(name):
    display = made(name).plot()
    display.figure_.canvas.draw()
    for ax in display.figure_.axes:
        legend = ax.get_legend()  # which hides nothing
        assert not (legend and legend.get_window_extent().overlaps(ax.get_window_extent()))
        assert all(line.get_linewidth() <= 2.5 for line in ax.lines)
        filled = [patch for patch in ax.patches if patch.get_fill()]
        filled += [area for area in ax.collections if isinstance(area, PolyCollection)]
        if name != "TerminationDisplay":  # whose bars are drawn as the style says
            assert all(np.ravel(area.get_linewidth())[0] == 0 for area in filled)
    assert repr(display).startswith(f"{name}(")
    assert len(repr(display)) < 300
    # names are no formulas, and a plain savefig cuts nothing off
    figure = display.plot(name="a long name that costs $1 or $2").figure_
    written = [one.get_text() for one in figure.findobj(Text)]
    assert not [one for one in written if "$" in one.replace(r"\$", "")]
    assert any(r"costs \$1 or \$2" in one for one in written)
    figure.savefig(file := io.BytesIO(), dpi=60)
    picture = plt.imread(io.BytesIO(file.getvalue()))[..., :3]
    assert all((one == 1).all() for one in (picture[0], picture[-1], picture[:, 0], picture[:, -1]))


def test_curves_on_shared_axes_differ():
    names = ("CostCurveDisplay", "ReliabilityDisplay", "RiskCoverageDisplay", "StepProfileDisplay")
    for name in names:
        _, ax = plt.subplots()
        drawn = [copy(made(name)).plot(ax=ax, name=f"judge {k}") for k in range(3)]
        lines = [np.ravel(np.array(one.line_, dtype=object))[0] for one in drawn]
        assert len({to_hex(one.get_color()) for one in lines}) == 3, name
        assert len(set(labels(ax))) == len(labels(ax)), name
        own = [one[:7] for one in labels(ax) if one.startswith("judge") and "alone" not in one]
        assert own == ["judge 0", "judge 1", "judge 2"], name
        plt.close("all")


def test_a_name_that_begins_with_an_underscore_is_in_the_legend():
    display = plotting.ReliabilityDisplay.from_predictions(Y, X, name="_score")
    assert [one.strip() for one in labels(display.ax_)] == ["perfectly calibrated", "_score"]


def test_dark_styles_turn_black_lines_over():
    with plt.style.context("dark_background"):
        display = plotting.DecompositionDisplay.from_predictions(Y, X, by="step")
    assert to_hex(display.line_.get_color()) == "#ffffff"
