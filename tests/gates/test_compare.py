"""Comparisons: which rows they have, and what they say, from tables made by hand."""

import numpy as np
import pandas as pd
import pytest

from known_agent import runs_of
from trajscore.gates import Gate, RunSet, check, compare
from trajscore.gates._change import match
from trajscore.gates._compare import Comparison, interval, more_runs, pairing
from trajscore.gates._measures import Key

RUNS = RunSet(None, [1, 0, 1, 1], tasks=list("abab"))
NAMES = ["base", "new", "change", "change_low", "change_high", "runs_needed"]


def compared(*rows, **options):
    """A comparison of (metric, numbers); intervals of both sets are their values."""
    index = pd.MultiIndex.from_tuples([(row[0], "", "") for row in rows], names=Key._fields)
    table = pd.DataFrame([row[1:] for row in rows], columns=NAMES, index=index)
    for name in ("base", "new"):
        table[f"{name}_low"] = table[f"{name}_high"] = table[name]
    options = {"notes": [], "confidence_level": 0.9} | options
    return Comparison(table=table, matched=match(RUNS, RUNS), base=RUNS, new=RUNS, **options)


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        (("success", 0.5, 0.75, 0.25, 0.1, 0.4, np.nan),
         "success rose from 0.5 to 0.75 ([+0.1, +0.4]): better."),
        (("success", 0.75, 0.5, -0.25, -0.4, -0.1, np.nan),
         "success fell from 0.75 to 0.5 ([-0.4, -0.1]): worse."),
        (("cost", 1.0, 2.0, 1.0, 0.5, 1.5, np.nan),
         "cost rose from 1 to 2 ([+0.5, +1.5]): worse."),
        (("cost", 2.0, 1.0, -1.0, -1.5, -0.5, np.nan),
         "cost fell from 2 to 1 ([-1.5, -0.5]): better."),
        (("length", 4.0, 5.0, 1.0, 0.5, 1.5, np.nan), "length rose from 4 to 5 ([+0.5, +1.5])."),
    ],
)  # fmt: skip
def test_changes_that_are_shown(row, sentence):
    new = RunSet(None, [1, 0, 1, 1], tasks=list("abab"), spent={"cost": np.ones(4)})
    found = compared(row)
    found = Comparison(found.table, found.matched, [], 0.9, RUNS, new)
    assert found.changes() == [sentence]


def test_changes_that_are_not_shown_say_how_many_runs_would():
    found = compared(
        ("success", 0.5, 0.6, 0.1, 0.0, 0.2, 340.0),
        ("pass^2", 0.5, 0.4, -0.1, -0.2, 0.0, np.inf),
        ("length", 4.0, 5.0, 1.0, 0.5, 1.5, np.nan),
        ("pass^3", 0.5, 0.5 + 1e-15, 1e-15, 1e-16, 2e-15, np.nan),
    )
    assert found.changes() == [
        "length rose from 4 to 5 ([+0.5, +1.5]).",
        "No change shown:",
        "  success +0.1: about 400 more runs in each set would settle it",
        "  pass^2 -0.1: more than a million runs in each set would settle it",
    ]
    assert compared(("success", 0.5, 0.5, 0.0, 0.0, 0.0, np.nan)).changes() == []


def test_text_of_a_comparison():
    found = compared(
        ("success", 0.5, 0.75, 0.25, 0.1, 0.4, np.nan), notes=["A note."], confidence_level=0.8
    )
    head, gap, names, row, end, change, note, chance = str(found).split("\n")
    assert head == pairing(RUNS, RUNS, found.matched)
    assert gap == end == ""
    assert names.split() == ["base", "new", "change"]
    assert row.split("  ")[0] == "success"
    assert "0.5 [0.5, 0.5]" in row
    assert "0.25 [+0.1, +0.4]" in row
    assert change.startswith("success rose")
    assert note == "A note."
    assert chance.startswith(
        "Each interval holds with a chance of 80%, each of its ends with 90%, as"
    )
    assert "be shown" not in chance  # all is known


def test_how_sets_are_paired_in_words():
    other = RunSet(None, [1, 0, 1, 1, 0], tasks=list("abcda"))
    assert pairing(RUNS, other, match(RUNS, other)) == (
        "base: 4 runs of 2 tasks; new: 5 runs of 4 tasks. Paired by task: 2 in both, 2 only in the "
        "new set, 0 only in the base."
    )
    plain = RunSet(None, [1, 0, 1])
    assert pairing(plain, plain, match(plain, plain)).endswith(
        "Not paired: they have neither tasks nor ids of runs in common."
    )


def test_numbers_in_words():
    assert interval(-0.12345, 1234.5) == "[-0.123, +1.23e+03]"
    assert interval(0.1, 0.2, "") == "[0.1, 0.2]"
    new = RunSet(None, [1, 0, 1])
    assert more_runs(4.0, new) == "about 1 more run in each set would settle it"
    assert more_runs(2.0, new) == "about 1 more run in each set would settle it"
    assert more_runs(12_345.0, new) == "about 20,000 more runs in each set would settle it"
    assert more_runs(np.inf, new) == "more than a million runs in each set would settle it"
    assert more_runs(np.nan, new) == "it is not known how many more runs would settle it"


# ------------------------------------------------------------------ rows


def metrics(base, new=None):
    return list(compare(base, base if new is None else new).table.index)


def test_rows_are_what_both_sets_have():
    tasks, y = np.repeat(np.arange(6), 4), np.tile([1, 0, 1], 8)
    spent = {"cost": np.ones(24), "tokens": np.ones(24)}
    full = RunSet({"a": np.linspace(0.1, 0.9, 24)[:, None]}, y, tasks=tasks, spent=spent)
    of_runs = ["success", "pass^2", "pass^3", "pass^4", "cost", "tokens"]
    of_a = [
        ("TPS log margin", "a", "as_given"), ("S-ECE", "a", "as_given"),
        ("TPS log margin", "a", "recalibrated"), ("S-ECE", "a", "recalibrated"),
        ("AUROC", "a", "as_given"),
    ]  # fmt: skip
    assert metrics(full) == [(name, "", "") for name in of_runs] + of_a
    other = RunSet({"b": np.full((12, 2), 0.5)}, y[:12], tasks=np.repeat(np.arange(6), 2),
                   spent={"tokens": np.ones(12)})  # fmt: skip
    assert [name for name, *_ in metrics(full, other)] == ["success", "pass^2", "length", "tokens"]


def test_at_most_eight_trials():
    tasks = np.repeat(np.arange(3), 10)
    runs = RunSet(None, np.tile([1, 0, 1], 10), tasks=tasks)
    assert metrics(runs)[-1][0] == "pass^8"


def test_what_cannot_be_compared_is_noted_once():
    one = RunSet({"a": np.full((8, 1), 0.5)}, np.ones(8, dtype=int), tasks=np.arange(8) // 2)
    found = compare(one, one)
    assert found.notes
    assert len(set(found.notes)) == len(found.notes)
    assert all(note.startswith("Not compared: TPS log margin of a") for note in found.notes)


def test_intervals_and_runs_needed():
    base, new = runs_of(1, n_tasks=12), runs_of(2, 0.3, n_tasks=12)
    table = compare(base, new).table
    wide = compare(base, new, confidence_level=0.98).table
    for name in ("base", "new", "change"):
        ends = table[f"{name}_low"], table[f"{name}_high"]
        assert (ends[0] <= table[name]).all()
        assert (table[name] <= ends[1]).all()
        assert (wide[f"{name}_low"] <= ends[0] + 1e-12).all()
        assert (wide[f"{name}_high"] >= ends[1] - 1e-12).all()
    np.testing.assert_allclose(table["change"], table["new"] - table["base"])
    held = (table["change_low"] <= 0) & (table["change_high"] >= 0)
    assert (table["runs_needed"].notna() <= held).all()
    errors = table.xs("S-ECE", level="metric")
    assert (errors[["base_low", "new_low"]] >= 0).all(axis=None)
    assert (errors[["base_high", "new_high"]] <= 1).all(axis=None)
    gate = check(new, base, Gate()).gates[0]
    row = table.loc[("success", "", "")]
    assert (gate.low, gate.high) == (row["change_low"], row["change_high"])
    with pytest.raises(ValueError, match="confidence_level"):
        compare(base, new, confidence_level=90)
