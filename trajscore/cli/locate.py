"""``trajscore locate``: learn from labelled runs which step of others is the first wrong one."""

import argparse
from pathlib import Path

import numpy as np

from trajscore.cli.inputs import READING, read_inputs, write_table
from trajscore.core.array import TrajectoryArray
from trajscore.core.values import number_of
from trajscore.loading.tables import Inputs
from trajscore.localization import FirstErrorLocator, FirstErrorWindow, compare_locators
from trajscore.localization._evidence import steps_to_read

OPTIONS = READING


def run(arguments: argparse.Namespace) -> None:
    """Fit a locator and a window, and write a table with a row for each new run."""
    arguments.outcomes = {}  # they are not what is learnt
    inputs, X = _read(arguments.labelled, arguments)
    arguments.first_error = arguments.step_label = None  # of new runs it is not known
    labels = inputs.first_error
    if labels is None:
        raise ValueError("one of --first-error and --step-label is required")
    task = inputs.groups
    locator = FirstErrorLocator()
    P = locator.fit_transform(X, labels, task)
    window = FirstErrorWindow().fit(P, labels, task)
    row = compare_locators(labels, {"signals": P}, groups=task, random_state=0).loc["signals"]
    print(
        f"fitted on {(labels >= 0).sum():,} labelled runs, {(labels > 0).sum():,} with a wrong "
        f"step; out of fold {row['difference']:+.2f} nats above the position of a step "
        f"(95% interval {row['low']:+.2f} to {row['high']:+.2f})"
    )
    if not row["beats_position"]:
        print("warning: these runs do not show that the signals say more than the position alone")
    inputs, X = _read(arguments.new, arguments)
    P = locator.transform(X)
    table = steps_to_read(P, window)
    if inputs.table_steps is not None:
        steps = ["step", "window_start", "window_end"]
        cells = P.offsets[:-1, None] + table[steps] - 1
        table[steps] = inputs.table_steps.cells[cells].astype(int)
    write_table(table, arguments.out)
    print(f"wrote {arguments.out}: {len(P):,} runs")


def _read(path: Path, arguments: argparse.Namespace) -> tuple[Inputs, TrajectoryArray]:
    """Read runs and their signals; count the values that are missing."""
    inputs = read_inputs(path, arguments)
    X = inputs.container()
    if n := int(np.isnan(X.cells).sum()):
        print(
            f"{path}: {number_of(n, 'missing value')}, taken as the mean of the signal in the "
            f"labelled runs"
        )
    return inputs, X
