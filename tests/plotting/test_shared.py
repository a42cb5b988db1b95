"""What displays share, by hand."""

from dataclasses import dataclass
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex

from trajscore import TrajectoryArray
from trajscore.plotting import (
    DecompositionDisplay,
    EProcessDisplay,
    PowerDisplay,
    TerminationDisplay,
    TracerStripDisplay,
)
from trajscore.plotting._display import (
    SERIES,
    DisplayMixin,
    _brief,
    by_name,
    draw_with_band,
    next_style,
    plain,
    share_axis,
    step_axis,
    wilson_errors,
)
from trajscore.plotting._eprocess import _drawn_rows
from trajscore.plotting._tracer_strip import _row_of


def test_several_are_shown_by_name_and_one_gets_the_given_name():
    assert by_name([1, 2], "judge", "predictors") == {"judge": [1, 2]}
    assert by_name({1: "x", "b": "y"}, "judge", "predictors") == {"1": "x", "b": "y"}
    with pytest.raises(ValueError, match="there are no predictors; give at least one"):
        by_name({}, "judge", "predictors")


@pytest.mark.parametrize(
    ("name", "shown"),
    [("a_b", "a_b"), ("_a", " _a"), ("$1 $2", r"\$1 \$2"), (3, "3"), ("", "")],
)
def test_names_as_they_are(name, shown):
    assert plain(name) == shown


def test_a_curve_takes_the_colour_that_is_used_least():
    _, ax = plt.subplots()
    assert next_style(ax) == {"color": SERIES[0], "linestyle": "-"}
    ax.plot([0], [0], color=SERIES[1])
    ax.plot([0], [0], color="black")  # no colour of ours
    assert next_style(ax)["color"] == SERIES[0]
    for color in SERIES:
        ax.plot([0], [0], color=color.upper())
    assert next_style(ax) == {"color": SERIES[0], "linestyle": "-."}
    ax.plot([0], [0], color=SERIES[0])
    assert next_style(ax)["color"] == SERIES[2]  # the second one is there twice as well


def test_a_band_has_the_colour_of_its_curve():
    _, ax = plt.subplots()
    x, y = np.array([1, 2]), np.array([0.5, 0.7])
    line = draw_with_band(ax, x, y, y - 0.1, y + 0.2, {"color": "red", "label": "mine"})
    np.testing.assert_array_equal(line.get_data(), [x, y])
    assert line.get_label() == "mine"
    (band,) = ax.collections
    assert to_hex(band.get_facecolor()[0]) == to_hex("red")
    assert band.get_alpha() == 0.15
    vertices = band.get_paths()[0].vertices
    for place, ends in ((1, {0.4, 0.7}), (2, {0.6, 0.9})):
        heights = vertices[vertices[:, 0] == place, 1]
        assert {float(heights.min().round(9)), float(heights.max().round(9))} == ends


def test_errors_of_rates_reach_from_the_rate_to_its_interval():
    down, up = wilson_errors(np.array([0.0, 0.5, 1.0]), np.array([10, 10, 10]))
    # Wilson: centre (k + z^2/2) / (n + z^2), half width z sqrt(n p q + z^2/4) / (n + z^2)
    z2 = 1.959963984540054**2
    end = z2 / (10 + z2)
    half = np.sqrt(z2 * (2.5 + z2 / 4)) / (10 + z2)
    assert down == pytest.approx([0, half, end])
    assert up == pytest.approx([end, half, 0])
    assert min(down.min(), up.min()) >= 0


def test_axes_of_shares_and_of_steps():
    _, ax = plt.subplots()
    ax.set(xlim=(3, 4), ylim=(3, 4))
    share_axis(ax, "y")
    assert (ax.get_xlim(), ax.get_ylim()) == ((3, 4), (-0.02, 1.02))
    step_axis(ax)
    assert ax.get_xlabel() == "step"
    assert all(tick == round(tick) for tick in ax.get_xticks())


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({1: 2, "b": 3}, "['1', 'b']"),
        (0.123456, "0.1235"),
        (np.float64(2), "2"),
        (np.zeros((2, 3)), "ndarray of shape (2, 3)"),
        (pd.DataFrame({"a": [1]}), "DataFrame of shape (1, 1)"),
        (np.int64(3), repr(np.int64(3))),
        ("log", "'log'"),
        (None, "None"),
    ],
)
def test_fields_in_a_word_or_two(value, text):
    assert _brief(value) == text


@dataclass(eq=False, repr=False)
class Two(DisplayMixin):
    """A display of two numbers."""

    first: Any
    second: Any

    def _draw(self, ax, name, **style):
        return ax.plot([0, 1], [self.first, self.second], label=name, **style)


def test_a_display_shows_its_numbers():
    display = Two({"<a>": pd.DataFrame({"n": [7]})}, "x<y")
    assert repr(display) == "Two(first=['<a>'], second='x<y')"
    page = display._repr_html_()
    assert "<summary>Two: the numbers behind it</summary>" in page
    assert "<dt>first</dt><dd><dl><dt>&lt;a&gt;</dt><dd><table" in page
    assert "<dt>second</dt><dd><pre>&#x27;x&lt;y&#x27;</pre></dd>" in page


def test_a_display_is_drawn_on_its_own_or_on_given_axes():
    display = Two(1.0, 2.0)
    assert display.plot(name="_mine") is display
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == [" _mine"]
    assert [display.ax_.spines[side].get_visible() for side in ("top", "right", "left")] == [
        False, False, True,
    ]  # fmt: skip
    assert Two(1.0, 2.0).plot().ax_.get_legend() is None
    _, ax = plt.subplots()
    assert Two(1.0, 2.0).plot(ax=ax, name="a", lw=3).line_[0].get_linewidth() == 3
    again = Two(3.0, 4.0).plot(ax=ax, name="a")
    (handle,) = ax.get_legend().legend_handles
    assert len(ax.lines) == 2
    assert again.ax_ is ax
    assert handle.get_color() == ax.lines[0].get_color()


@pytest.mark.parametrize(("n_runs", "shown"), [(0, 0), (1, 1), (4, 2), (5, 3), (100, 6)])
def test_half_of_the_drawn_runs_failed_and_half_succeeded(n_runs, shown):
    X = TrajectoryArray(np.zeros(12), np.ones(12, dtype=int), ids=list("lkjihgfedcba"))
    y = np.array([0, 1] * 6)
    rows = _drawn_rows(X, y, n_runs, 0)
    assert np.bincount(y[rows], minlength=2).tolist() == [shown, shown]
    assert rows.tolist() == sorted(set(rows.tolist()))
    order = np.arange(12)[::-1]
    other = _drawn_rows(X[order], y[order], n_runs, 0)
    assert set(X.ids[rows]) == set(X.ids[order][other])


def test_rows_of_a_run_by_number_and_by_id():
    X = TrajectoryArray(np.zeros(3), [1, 1, 1], ids=["b", "a", "2"])
    assert [_row_of(X, run) for run in (0, 2, "a", "2", np.int64(1))] == [0, 2, 1, 2, 1]
    assert X.ids[_row_of(X, -3)] == "b"
    for run in (3, -4, 1.5, None):
        with pytest.raises(ValueError, match="run must be an id as text, or a row below 3, got"):
            _row_of(X, run)
    with pytest.raises(KeyError, match="no run has the id '0'"):
        _row_of(X, "0")


def test_the_title_of_several_predictors():
    both = {"a": [[0.9], [0.4]], "b": [[0.8], [0.4]]}
    parts = DecompositionDisplay.from_predictions([1, 0], both).plot(name="x")
    assert parts.ax_.get_title() == "x"
    assert parts.figure_.get_size_inches().tolist() == pytest.approx([6.4, 2.7])


def test_what_displays_do_not_take():
    with pytest.raises(TypeError, match="log_m must be a TrajectoryArray, got list"):
        EProcessDisplay([[1.0]], [1], 2.0, 0.1, [0])
    for reports in ([1], pd.DataFrame({"power": [1.0]})):
        with pytest.raises(TypeError, match="reports must be tables of StoppingRule.report, got"):
            PowerDisplay.from_reports(reports)
    with pytest.raises(TypeError, match="audit must be what termination_audit returns, got 3"):
        TerminationDisplay.from_audit(3)
    X = TrajectoryArray([0.1], [1])
    with pytest.raises(ValueError, match="X has no channels; give the signals of TracerSignals"):
        TracerStripDisplay.from_estimator(None, X)
