"""What a notebook shows of a container of runs."""

import re

import pytest

from trajscore import TrajectoryArray


@pytest.mark.parametrize(("n_runs", "n_shown"), [(1, 1), (7, 7), (8, 8), (9, 8), (30, 8)])
def test_the_first_runs_are_shown(n_runs, n_shown):
    X = TrajectoryArray.from_list([[k / 100, 0.5, k / 50] for k in range(n_runs)])
    text = X._repr_html_()
    assert text.count("<tr") - 1 - (">run<" in text) == n_shown
    count = "1 run" if n_runs == 1 else f"{n_runs} runs"
    assert text.startswith(f"<div><p>TrajectoryArray: {count} of 3 steps</p><table")


def test_each_run_is_shown_by_its_ends():
    X = TrajectoryArray.from_list([[0.1, 0.9], [0.4]], ids=["a", "b"])
    cells = re.findall(r"<td>(.*?)</td>", X._repr_html_())
    assert cells == ["2", "False", "0.1", "0.9", "1", "False", "0.4", "0.4"]
    both = TrajectoryArray([[0.1, 1], [0.9, 2], [0.4, 3]], [2, 1], channels=["p", "q"])
    text = both._repr_html_()
    names = [name for name in re.findall(r"<th>(.*?)</th>", text) if " " in name]
    assert names == ["p first", "p last", "q first", "q last"]
    assert re.findall(r"<td>(.*?)</td>", text)[2:6] == ["0.1", "0.9", "1", "2"]


def test_names_are_escaped_and_no_runs_have_no_table():
    X = TrajectoryArray.from_list([[0.1]], ids=["<b>"])
    assert "&lt;b&gt;" in X._repr_html_()
    assert "<table" not in TrajectoryArray.from_list([])._repr_html_()


@pytest.mark.parametrize(("n_meta", "is_cut"), [(8, False), (9, True)])
def test_at_most_twelve_columns_are_shown(n_meta, is_cut):
    meta = {f"m{k}": ["x"] for k in range(n_meta)}
    text = TrajectoryArray.from_list([[0.123456, 100.0]], meta=meta)._repr_html_()
    assert ("<th>...</th>" in text) is is_cut
    assert re.findall(r"<td>(.*?)</td>", text)[:4] == ["2", "False", "0.123", "100"]
    assert '<table class="dataframe">' in text
