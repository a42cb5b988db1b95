"""How things show in a notebook, and a report as a picture."""

import re
import sys

import numpy as np
import pytest

from trajscore import DensityRatioEProcess, TrajectoryArray, evaluate, io
from trajscore.datasets import make_trajectories
from trajscore.report import IntervalOptions

EVIL = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def small():
    X, y = make_trajectories(60, random_state=0, return_X_y=True)
    return evaluate({EVIL: X}, y, intervals=IntervalOptions(20))


def test_a_report_shows_the_first_screen_of_its_page(small):
    shown = small._repr_html_()
    assert 'id="all-numbers"' not in shown
    assert small.to_html().count("<h1>") == shown.count("<h1>") == 1
    assert "Accept from which score?" in shown
    assert "href=" not in shown  # nothing but the first screen is there to go to
    assert "&lt;script&gt;" in shown
    assert "<script>alert" not in shown
    # its style is its own, and stronger than that of a notebook
    style = re.search("<style>(.*?)</style>", shown, re.DOTALL).group(1).strip()
    assert style.startswith(".tsr.tsr{")
    depth = np.cumsum([(mark == "{") - (mark == "}") for mark in style])
    assert (depth[len(".tsr.tsr{") - 1 : -1] > 0).all()
    assert depth[-1] == 0


def test_without_jinja_a_report_shows_its_table(small, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    assert small._repr_html_().startswith("<table")
    with pytest.raises(
        ImportError, match=r"needs Jinja2; run `pip install \"scikit-trajscore\[rep"
    ):
        small.to_html()


def test_a_container_shows_its_first_runs():
    X = TrajectoryArray(
        np.arange(12.0).reshape(6, 2), [1, 3, 2], channels=["a", "b"], ids=[EVIL, "y", "z"],
        meta={"model": ["m", "m", "n"]},
    )  # fmt: skip
    shown = X._repr_html_()
    assert "TrajectoryArray: 3 runs of 1 to 3 steps, channels a, b" in shown
    assert "<script" not in shown
    for word in ("a first", "b last", "model", "ended"):
        assert f"<th>{word}</th>" in shown
    assert TrajectoryArray.from_list([[0.5, 0.7]])._repr_html_().count("<td>") == 4
    assert "0 runs" in X[:0]._repr_html_()
    many = make_trajectories(500, random_state=0).data
    assert many._repr_html_().count("<tr") < 12


def test_runs_of_a_log_show_what_is_known_of_them():
    runs = io.Runs([io.Run(EVIL, [io.Step("agent", "Hi")], outcome=1, task="t")] * 20)
    shown = runs._repr_html_()
    assert "20 runs, 20 successes" in shown
    assert "<script" not in shown
    assert 3 < shown.count("<tr") < 12


def test_a_monitor_shows_its_open_runs():
    X, y = make_trajectories(300, lengths=6, random_state=0, return_X_y=True)
    monitor = DensityRatioEProcess(alpha=0.1).fit(X, y).monitor()
    assert repr(monitor) == "<EProcessMonitor: alpha 0.1, 0 open runs, 0 flagged>"
    monitor.update(0.5, "x")
    assert "1 open run, 0 flagged" in repr(monitor)


def test_a_report_draws_itself(report):
    pytest.importorskip("matplotlib")
    assert report.plot().metric == "TPS log"
    shown = report.plot("S-ECE")
    assert [text.get_text() for text in shown.ax_.get_yticklabels()][-1] in report.predictors
    with pytest.raises(ValueError, match="no metric named 'S-EC'; did you mean 'S-ECE'"):
        report.plot("S-EC")
