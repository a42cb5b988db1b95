import matplotlib.pyplot as plt
import numpy as np
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
