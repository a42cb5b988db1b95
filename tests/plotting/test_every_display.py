"""What holds for all displays alike."""

import inspect
import io
import re

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_hex
from matplotlib.text import Text

from trajscore import TracerScorer, TrajectoryArray, plotting
from trajscore.datasets import make_trajectories
from trajscore.monitoring import FleetMonitor, RawVerifier
from trajscore.plotting._display import SERIES, next_style, plain

X, Y = make_trajectories(120, lengths=(2, 14), random_state=0, return_X_y=True)
HIDDEN = np.where(np.arange(120) % 5 == 0, -1, Y)
RULE = RawVerifier(alpha=[0.1, 0.5]).fit(X)
FLEET = FleetMonitor().fit(X, Y)
SIGNALS = TrajectoryArray(np.c_[X.cells, X.cells[::-1]], X.lengths, channels=["risk", "surprisal"])
INTERVALS = pd.DataFrame(
    {"value": [-0.6, -0.5], "low": [-0.7, -0.6], "high": [-0.5, -0.4]},
    index=pd.MultiIndex.from_product(
        [["a $1 judge that costs $2"], ["as_given", "recalibrated"], ["TPS log"]],
        names=["predictor", "form", "metric"],
    ),
)


class Process:
    """As much of a fitted e-process as its display asks for."""

    end_worth = None

    def _level(self, alpha):
        return 0.1

    def _shown_threshold(self, level):
        return 10.0

    def transform(self, given):
        return given.with_cells(np.log(given.cells + 1))


named = "a $1 judge that costs $2"
MAKE = {
    "CostCurveDisplay": lambda d, **k: d.from_predictions(Y, X.steps(1)[:, 0], **k),
    "DecompositionDisplay": lambda d, **k: d.from_predictions(Y, {named: X, "b": X}, **k),
    "EProcessDisplay": lambda d, **k: d.from_estimator(Process(), X, Y, **k),
    "EarlyWarningDisplay": lambda d, **k: d.from_predictions(Y, {named: X}, **k),
    "FleetDisplay": lambda d, **k: d.from_estimator(FLEET, X, Y, **k),
    "PowerDisplay": lambda d, **k: d.from_estimator({named: RULE}, X, Y, **k),
    "ReliabilityDisplay": lambda d, **k: d.from_predictions(Y, X, **k),
    "RiskCoverageDisplay": lambda d, **k: d.from_predictions(Y, X.steps(1)[:, 0], **k),
    "SavingsDisplay": lambda d, **k: d.from_estimator({named: RULE}, X, Y, **k),
    "ScoreDisplay": lambda d, **k: d.from_intervals(INTERVALS, "TPS log", **k),
    "StepProfileDisplay": lambda d, **k: d.from_predictions(HIDDEN, X, **k),
    "TerminationDisplay": lambda d, **k: d.from_predictions(
        Y, np.where(np.arange(120) % 3 == 0, "max_steps", "a_reason_with_a_name_of_many_words"), **k
    ),
    "TracerStripDisplay": lambda d, **k: d.from_estimator(
        TracerScorer().fit(SIGNALS), SIGNALS, int(X.lengths.argmax()), **k
    ),
}
NAMES = ["judge 1", "judge 2", "judge 3"]

each = pytest.mark.parametrize("name", plotting.__all__)


def make(display, **options):
    return MAKE[display](getattr(plotting, display), **options)


def labels(ax):
    return [one.get_text() for one in ax.get_legend().get_texts()] if ax.get_legend() else []


@each
def test_draws_on_new_and_on_given_axes(name):
    display = make(name)
    first = np.ravel(display.ax_)[0]
    assert display.figure_ is first.figure
    assert display.line_ is not None
    _, ax = plt.subplots()
    ax.set_title("kept")
    display.plot(ax=ax)
    assert display.figure_ is ax.figure
    if name != "TracerStripDisplay":  # its title says which run is shown
        assert ax.get_title() == "kept"


@each
def test_nothing_is_cut_off_by_a_plain_savefig(name):
    figure = make(name).plot(name="a long name of what is shown").figure_
    figure.savefig(file := io.BytesIO(), dpi=60)
    picture = plt.imread(io.BytesIO(file.getvalue()))[..., :3]
    edge = [picture[0], picture[-1], picture[:, 0], picture[:, -1]]
    assert all((one == 1).all() for one in edge)


@each
def test_short_names_of_options_are_taken(name):
    drawn = make(name, lw=3)
    first = np.ravel(np.array(drawn.line_, dtype=object))[0]
    first = first[0] if isinstance(first, tuple) else first
    assert np.ravel(first.get_linewidth())[0] == 3
    with pytest.raises(TypeError, match="aliases"):
        drawn.plot(lw=3, linewidth=2)


@each
def test_two_share_axes(name):
    display = make(name)
    alone = labels(np.ravel(display.ax_)[0])
    given = display.ax_ if np.ndim(display.ax_) else np.ravel(display.ax_)[0]
    display.plot(ax=given)
    shared = labels(np.ravel(display.ax_)[0])
    assert shared == alone  # of the same name, once
    display.figure_.canvas.draw()


@pytest.mark.parametrize(
    "name", ["CostCurveDisplay", "ReliabilityDisplay", "RiskCoverageDisplay", "StepProfileDisplay"]
)  # fmt: skip
def test_curves_on_shared_axes_differ(name):
    _, ax = plt.subplots()
    made = [make(name).plot(ax=ax, name=one) for one in NAMES]
    lines = [np.ravel(np.array(one.line_, dtype=object))[0] for one in made]
    colors = {to_hex(one.get_color()) for one in lines}
    assert len(colors) == 3
    assert colors <= set(SERIES)
    own = [one for one in labels(ax) if one.startswith("judge") and "alone" not in one]
    assert [one[:7] for one in own] == NAMES
    assert len(set(labels(ax))) == len(labels(ax))


@each
def test_curves_are_thin_and_areas_have_no_edge(name):
    for ax in make(name).figure_.axes:
        assert all(line.get_linewidth() <= 2.5 for line in ax.lines)
        filled = [patch for patch in ax.patches if patch.get_fill()]
        filled += [area for area in ax.collections if isinstance(area, PolyCollection)]
        if name != "TerminationDisplay":  # whose bars are drawn as the style says
            assert all(np.ravel(area.get_linewidth())[0] == 0 for area in filled)


def test_colours_come_again_with_another_dash():
    _, ax = plt.subplots()
    for _ in SERIES:
        ax.plot([0, 1], [0, 1], **next_style(ax))
    assert [line.get_color() for line in ax.lines] == list(SERIES)
    assert next_style(ax) == {"color": SERIES[0], "linestyle": "-."}


@each
def test_says_what_it_holds(name):
    display = make(name)
    assert repr(display).startswith(f"{name}(")
    assert len(repr(display)) < 300
    page = display._repr_html_()
    assert page.startswith("<details>")
    assert "the numbers behind it" in page


@each
def test_names_are_no_formulas(name):
    figure = make(name).plot(name="costs $1 or $2").figure_
    written = [one.get_text() for one in figure.findobj(Text)]
    assert not [one for one in written if "$" in one.replace(r"\$", "")]
    assert any(r"costs \$1 or \$2" in one for one in written)


def test_names_are_not_hidden():
    _, ax = plt.subplots()
    ax.plot([0, 1], label=plain("_score"))
    assert ax.get_legend_handles_labels()[1] == [" _score"]


def test_markers_at_the_ends_are_whole():
    sure = [[0.0], [1.0]] * 20
    display = plotting.ReliabilityDisplay.from_predictions([0, 1] * 20, sure)
    assert display.forecast.tolist() == [0, 1]
    for low, high in (display.ax_.get_xlim(), display.ax_.get_ylim()):
        assert low < 0
        assert high > 1


def test_an_empty_picture_says_why():
    display = plotting.StepProfileDisplay.from_predictions([1, 0], [[0.8], [0.3]])
    assert [one.get_text() for one in display.ax_.texts] == ["no step is reached by 10 runs"]
    (text,) = display.ax_.texts
    assert text.get_position() == (0.5, 0.5)
    assert text.get_transform() == display.ax_.transAxes
    assert (text.get_ha(), text.get_va()) == ("center", "center")


def test_power_splits_one_axes():
    _, ax = plt.subplots()
    display = make("PowerDisplay", ax=ax)
    assert len(display.ax_) == 2
    panels = display.ax_
    assert display.plot(ax=ax).ax_ == panels
    display.figure_.canvas.draw()


def test_dark_styles_turn_black_lines_over():
    with plt.style.context("dark_background"):
        display = plotting.DecompositionDisplay.from_predictions(Y, X, by="step")
    assert to_hex(display.line_.get_color()) == "#ffffff"


@each
def test_options_of_plot_have_the_defaults_that_docstrings_name(name):
    display = getattr(plotting, name)
    drawn = inspect.signature(display._draw).parameters
    for option, default in re.findall(r"``(\w+)=(\w+)``", inspect.getdoc(display)):
        if option in drawn and default.isdigit():
            assert drawn[option].default == int(default)
