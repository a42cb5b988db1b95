import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from trajscore import TracerScorer, TrajectoryArray
from trajscore.plotting import EarlyWarningDisplay, TracerStripDisplay


@pytest.fixture
def signals(rng):
    cells = rng.random((50, 5))
    cells[:, 4] = np.arange(50) % 2
    cells[cells[:, 4] == 0, 1] = np.nan
    names = ["surprisal", "repetition", "agent_gap", "user_gap", "is_agent"]
    return TrajectoryArray(cells, [40, 10], channels=names, ids=["a", "b"], missing="allow")


def test_strip(signals):
    scorer = TracerScorer(k=0.2, beta=2).fit(signals)
    display = TracerStripDisplay.from_estimator(scorer, signals, "b")
    assert display.table["critical"].sum() == 2
    assert display.table["actor"].tolist() == ["user", "agent"] * 5
    assert display.table["repetition"].isna().sum() == 5
    assert display.plot() is display
    assert display.ax_.get_title(loc="left") == "run 'b'"
    frames = sum(patch.get_width() for patch in display.ax_.patches)
    assert frames == 2
    _, ax = plt.subplots()
    assert display.plot(ax=ax, name="mine").ax_ is ax
    alone = signals[["surprisal"]]
    bare = TracerStripDisplay.from_estimator(TracerScorer().fit(alone), alone, -1).plot()
    assert [text.get_text() for text in bare.ax_.get_yticklabels()] == ["surprisal", "step risk"]
    with pytest.raises(KeyError, match="no run has the id 'c'"):
        TracerStripDisplay.from_estimator(scorer, signals, "c")
    with pytest.raises(TypeError, match="X must be the signals of TracerSignals, got ndarray"):
        TracerStripDisplay.from_estimator(scorer, signals.cells)


def test_strip_shows_each_step_from_zero_to_the_largest_value(signals):
    display = TracerStripDisplay.from_estimator(TracerScorer().fit(signals), signals, "b")
    rows = ["surprisal", "repetition", "agent_gap", "user_gap", "risk"]
    drawn = display.line_.get_array()
    shown = drawn.filled(np.nan).reshape(len(rows), -1)  # flat before matplotlib 3.8
    np.testing.assert_array_equal(shown, display.table[rows].to_numpy().T)
    assert display.line_.get_clim() == (0, display.table[rows].max(axis=None))
    assert display.ax_.get_ylim() == (5, 0)
    assert display.ax_.get_xlim() == (0.5, 10.5)
    assert [text.get_text() for text in display.ax_.get_yticklabels()] == [
        "surprisal", "repetition", "agent's gap", "user's gap", "step risk",
    ]  # fmt: skip
    turns = [f"{'AU'[step % 2]}\n{step}" for step in range(1, 11)]
    assert [text.get_text() for text in display.ax_.get_xticklabels()] == turns
    assert "A agent, U user" in display.ax_.get_xlabel()


@pytest.mark.parametrize("largest", [0.0, 0.4])
def test_strip_of_small_values_uses_the_whole_scale(largest):
    table = pd.DataFrame(0.0, index=range(1, 4), columns=["surprisal", "risk"])
    table.loc[2] = largest
    table = table.assign(repetition=np.nan, agent_gap=np.nan, user_gap=np.nan, critical=False)
    display = TracerStripDisplay(table).plot()
    display.figure_.canvas.draw()
    low, high = display.line_.get_clim()
    assert low == 0
    assert high == pytest.approx(largest, abs=1e-6)
    assert high > 0
    assert not display.ax_.patches
    assert display.ax_.get_title(loc="left") == ""
    assert "A agent" not in display.ax_.get_xlabel()


def test_strip_frames_each_critical_episode_and_labels_some_steps_of_long_runs():
    critical = np.isin(np.arange(1, 62), [1, 7, 8, 9, 61])
    table = pd.DataFrame({"risk": np.linspace(0, 1, 61), "critical": critical})
    table = table.assign(surprisal=0.5, repetition=np.nan, agent_gap=np.nan, user_gap=np.nan)
    display = TracerStripDisplay(table, "long").plot()
    frames = [(one.get_x(), one.get_y(), one.get_width(), one.get_height())
              for one in display.ax_.patches]  # fmt: skip
    assert frames == [(0.5, 0, 1, 2), (6.5, 0, 3, 2), (60.5, 0, 1, 2)]
    assert display.ax_.get_xticks().tolist() == list(range(1, 62, 3))
    shorter = TracerStripDisplay(table[:60]).plot()
    assert shorter.ax_.get_xticks().tolist() == list(range(1, 61, 2))
    width, height = display.figure_.get_size_inches()
    assert (width, height) == (14, 2.9)
    assert shorter.figure_.get_size_inches()[1] == height
    assert TracerStripDisplay(table[:10]).plot().figure_.get_size_inches()[0] == pytest.approx(6.8)


def test_early_warning(signals):
    scorer = TracerScorer().fit(signals)
    y = [0, 1]
    display = EarlyWarningDisplay.from_estimator(scorer, signals, y)
    assert list(display.warnings) == ["TracerScorer"]
    several = EarlyWarningDisplay.from_predictions(
        y, {"a": scorer.transform(signals), "b": scorer.transform(signals)}, threshold=0.5
    )
    assert several.plot() is several
    assert len(several.line_) == 2
    half = several.plot(early=0.5)
    assert all("of failures by 50%" in line.get_label() for line in half.line_)
    left, right = several.ax_
    assert left.get_ylim()[1] > 1
    assert "AUROC" in right.get_ylabel()
    _, alone = plt.subplots()
    assert several.plot(ax=alone).ax_ is alone


def test_auroc_by_step_is_drawn(rng):
    y = np.repeat([0, 1], 20)
    risk = rng.random((40, 4)) + (1 - y)[:, None]
    display = EarlyWarningDisplay.from_predictions(y, {"mine": risk, "noise": rng.random((40, 4))})
    mine, noise = display.ax_[1].lines[:2]
    assert mine.get_xdata().tolist() == [1, 2, 3, 4]
    assert mine.get_ydata().tolist() == display.warnings["mine"].by_step["AUROC"].tolist()
    assert mine.get_color() != noise.get_color()
    assert "failed" not in display.ax_[0].get_ylabel()  # false alarms are of successful runs
