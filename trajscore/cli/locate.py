"""``trajscore locate``: learn from labelled runs which step of others is the first wrong one."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from trajscore.cli.inputs import (
    add_command,
    add_input_options,
    adder,
    check_table,
    read_inputs,
    write_table,
)
from trajscore.core.type_aliases import FloatArray
from trajscore.core.within_runs import first_step_above, whole_runs
from trajscore.localization import FirstErrorLocator, FirstErrorWindow, compare_locators
from trajscore.metrics.first_error import likeliest_cells, run_totals


def add_parser(commands: Any) -> argparse.ArgumentParser:
    """Add the command."""
    parser, add = add_command(commands, "locate")
    add("labelled", type=Path)
    add("new", type=Path)
    add("--out", type=Path, required=True, metavar="TABLE")
    add_label = adder(parser.add_mutually_exclusive_group(required=True), "locate")
    add_label("--first-error", metavar="COLUMN")
    add_label("--step-label", metavar="COLUMN")
    add_input_options(parser)
    return parser


def run(arguments: argparse.Namespace) -> None:
    """Fit a locator and a window, and write a table with a row for each new run."""
    check_table("--out", arguments.out)
    arguments.outcomes = {}  # they are not what is learnt
    labels = _labels(arguments)
    inputs = read_inputs(arguments.labelled, arguments)
    task = inputs.groups
    locator = FirstErrorLocator()
    P = locator.fit_transform(inputs.container(), labels, task)
    window = FirstErrorWindow().fit(P, labels, task)
    row = compare_locators(labels, {"signals": P}, groups=task, random_state=0).loc["signals"]
    print(
        f"fitted on {(labels >= 0).sum():,} labelled runs, {(labels > 0).sum():,} with a wrong "
        f"step; out of fold {row['difference']:+.2f} nats above the position of a step "
        f"(95% interval {row['low']:+.2f} to {row['high']:+.2f})"
    )
    if not row["beats_position"]:
        print("warning: these runs do not show that the signals say more than the position alone")
    P = locator.transform(read_inputs(arguments.new, arguments).container())
    steps = P.to_frame()
    windows = steps[window.transform(P).cells > 0].groupby("run", sort=False)["step"]
    table = steps.iloc[likeliest_cells(P)].assign(
        window_start=windows.min().array,
        window_end=windows.max().array,
        probability_of_none=1 - run_totals(P),
    )
    write_table(table, arguments.out)
    print(f"wrote {arguments.out}: {len(P):,} runs")


def _labels(arguments: argparse.Namespace) -> FloatArray:
    """Read the first wrong step of each run, 0 where none is wrong, -1 where it is not known."""
    of_runs = arguments.first_error
    words = {**vars(arguments), "scores": [of_runs or arguments.step_label]}
    X = read_inputs(arguments.labelled, argparse.Namespace(**words)).container()
    values = X.cells[:, 0]
    if of_runs:
        return np.nan_to_num(values[X.offsets[:-1]], nan=-1)
    first = first_step_above(X, values == min(np.nanmin(values), 0), np.zeros(len(X)))
    return np.where(whole_runs(X), first, -1)
