"""Lines and tables of a terminal."""

import pandas as pd
import pytest

from trajscore.report.render.layout import in_blocks, lines, short_names, width


@pytest.mark.parametrize(
    ("columns", "used"), [("30", 72), ("72", 72), ("90", 90), ("100", 100), ("200", 100)]
)
def test_width(monkeypatch, columns, used):
    monkeypatch.setenv("COLUMNS", columns)
    assert width() == used


def test_width_where_there_is_no_terminal(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setattr("sys.__stdout__", None)
    assert width() == 80


def test_lines(monkeypatch):
    monkeypatch.setenv("COLUMNS", "72")
    first, second, third = lines(["a" * 40 + " " + "b" * 32, "c"]).split("\n")
    assert (first, second, third) == ("a" * 40, "    " + "b" * 32, "c")
    assert lines(["a" * 40 + " " + "b" * 31]).count("\n") == 0
    assert lines(["x" * 150]) == "x" * 150
    assert lines([]) == ""


@pytest.mark.parametrize(
    ("cell", "n_blocks"),
    [(31, 1), (32, 2)],  # twice 2 + 31, and 6 for the labels
)
def test_blocks(monkeypatch, cell, n_blocks):
    monkeypatch.setenv("COLUMNS", "72")
    table = pd.DataFrame({"p": ["x" * cell], "q": ["x" * cell]}, index=["labels"])
    blocks = in_blocks(table).split("\n\n")
    assert len(blocks) == n_blocks
    assert all("labels" in block for block in blocks)
    long_heads = pd.DataFrame([["x", "x"]], ["labels"], ["p" * cell, "q" * cell])
    assert len(in_blocks(long_heads).split("\n\n")) == n_blocks
    one = pd.DataFrame({"p": ["x" * 90], "q": ["y"], "r": ["z"]}, index=["a"])
    assert len(in_blocks(one).split("\n\n")) == 2


def test_short_names():
    assert short_names(["a" * 20]) == {"a" * 20: "a" * 20}
    name = "abcdefghijklmnopqrstu"
    assert short_names([name, "b", name]) == {name: "abcdefghijklmnopq...", "b": "b"}
    ends = ["x" * 17 + "1234", "x" * 17 + "5678"]
    assert list(short_names(ends).values()) == ["xxxxxxx...xxxxxx1234", "xxxxxxx...xxxxxx5678"]
    middles = [f"{'x' * 17}{k}{'y' * 17}" for k in range(2)]
    assert short_names(middles) == {name: name for name in middles}


@pytest.mark.parametrize(("cell", "heads"), [(31, ["pq", "rs"]), (32, ["p", "q", "r", "s"])])
def test_each_block_has_as_much_room(monkeypatch, cell, heads):
    monkeypatch.setenv("COLUMNS", "72")
    table = pd.DataFrame([["x" * cell] * 4], ["labels"], list("pqrs"))
    blocks = in_blocks(table).split("\n\n")
    assert ["".join(block.split("\n")[0].split()) for block in blocks] == heads
