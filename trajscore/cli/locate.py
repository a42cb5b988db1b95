"""``trajscore locate``: learn from labelled runs which step of others is the first wrong one."""

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
    check_table(arguments.out)
    arguments.outcomes = {}  # they are not what is learnt
    words = {**vars(arguments), "scores": [arguments.first_error or arguments.step_label]}
    marks = read_inputs(arguments.labelled, argparse.Namespace(**words)).container()
    values = marks.cells[:, 0]
    if arguments.first_error:
        labels: Any = np.nan_to_num(values[marks.offsets[:-1]], nan=-1)
    else:
        is_wrong = values == min(np.nanmin(values), 0)
        labels = first_step_above(marks, is_wrong, np.zeros(len(marks)))
        labels[~whole_runs(marks)] = -1
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
