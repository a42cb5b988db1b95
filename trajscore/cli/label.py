"""``trajscore label``: which runs to read, where outcomes have to be found by hand."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from trajscore.cli.inputs import (
    TABLE,
    add_input_options,
    add_judge,
    check_folder,
    labelled,
    whole_number,
)
from trajscore.core.outcomes import CENSORED
from trajscore.core.sample import channels_by_name
from trajscore.core.storage import replacing
from trajscore.core.type_aliases import IntArray
from trajscore.core.values import as_random_state, number_of
from trajscore.inference import LabelDesign
from trajscore.inference._label_design import TARGETS
from trajscore.io.outcome_tables import LABEL_PROBABILITY
from trajscore.io.tables import read_table
from trajscore.report._inputs import Inputs
from trajscore.report._labelled_inputs import ids_of, load_labelled
from trajscore.report.page.to_label import page_to_label, transcript

_EXAMPLES = """examples:
  trajscore label runs.json --judge grade --n 100 --out to_read.csv --page to_read.html
  trajscore report runs.json --judge grade --labels to_read.csv --out report.html
  trajscore label runs.json --judge grade --labels to_read.csv --n 50 --out more.csv
"""


def add_parser(commands: Any) -> argparse.ArgumentParser:
    """Add the command."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "label",
        help="choose which runs to read and label by hand",
        description="Choose runs to label by hand, where the outcomes of few or none are known.\n"
        "Fill in the column outcome (1 success, 0 failure) of the file that this writes, and\n"
        "give it to trajscore report as --labels. A judge's verdicts are left out of the file,\n"
        "so that they do not sway the reader.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("table", type=Path, metavar="RUNS", help=TABLE)
    add("--n", dest="n_labels", type=whole_number, default=100, help="number of runs (100)")
    add("--out", type=Path, required=True, metavar="FILE.csv", help="file to fill in")
    add(
        "--page",
        type=Path,
        metavar="FILE.html",
        help="page to read the runs of a log and label them by clicks; it saves FILE.csv anew",
    )
    add(
        "--target",
        choices=TARGETS,
        default="margin",
        help="what is to be known best: a score's margin over the base rate, the score, or the "
        "success rate (%(default)s)",
    )
    add("--seed", dest="random_state", metavar="N", type=whole_number, default=0, help="seed (0)")
    add_judge(parser)
    add_input_options(parser)
    return parser


def run(arguments: argparse.Namespace) -> None:
    """Write the runs to read, those with labels first."""
    for option, ending in (("out", ".csv"), ("page", ".html")):
        if (path := getattr(arguments, option)) is not None:
            check_folder(f"--{option}", path, ending)
    _check_out(arguments)
    inputs = load_labelled(arguments.table, **labelled(arguments), to_draw=True, needs_scores=False)
    if str(inputs):
        print(f"{inputs}\n")
    if arguments.page is not None and not inputs.log:
        raise ValueError("--page shows what was said in a log; a table has none, leave --page out")
    name, trace = next(iter(channels_by_name(inputs.predictors).items()))
    target = arguments.target
    if np.isnan(trace.cells).any():
        trace, target = trace.with_cells(np.zeros(len(trace.cells))), "rate"
        print(f"{name} has no value at some steps, so runs are chosen for the success rate")
    y, judge, probability = inputs.y, inputs.judge, inputs.label_probability
    design = LabelDesign(arguments.n_labels, target, random_state=arguments.random_state)
    # runs that were stopped have no outcome to be read
    drawn = np.flatnonzero(
        np.ones(len(y), dtype=bool) if probability is None else ~np.isnan(probability)
    )
    judge, groups, probability = (
        None if values is None else np.asarray(values)[drawn]
        for values in (judge, inputs.groups, probability)
    )
    design.fit(trace[drawn], y[drawn], judge=judge, groups=groups, label_probability=probability)
    if n_stopped := len(y) - len(drawn):
        print(f"{number_of(n_stopped, 'run')} stopped before the end: not to be read")
    table = to_read(inputs, drawn, design, arguments.random_state)
    with replacing(arguments.out) as file:
        file.write(table.to_csv(index=False).encode())
    n_new = int(table["outcome"].isna().sum())
    print(f"wrote {arguments.out}: {number_of(n_new, 'run')} to read")
    if arguments.page is not None:
        page = page_to_label(table, inputs.log, arguments.out.name)
        with replacing(arguments.page) as file:
            file.write(page.encode())
        print(f"wrote {arguments.page}: read and label them there, and save {arguments.out.name}")
    print(f"next: fill in its column outcome (1 success, 0 failure), then\n  {_next(arguments)}")


def _check_out(arguments: argparse.Namespace) -> None:
    """Refuse to write over the runs, or over outcomes that are filled in and were not given."""
    out, labels = arguments.out, arguments.labels
    if out.resolve() == arguments.table.resolve():
        raise ValueError(f"--out: {out} holds the runs; name another file")
    if not out.exists() or (labels is not None and labels.resolve() == out.resolve()):
        return
    table = read_table(out)
    if "outcome" in table and (n := int(table["outcome"].notna().sum())):
        raise ValueError(
            f"--out: {out} already holds {number_of(n, 'outcome')}; add --labels {out} to keep "
            f"them and draw more, or name another file"
        )


def to_read(inputs: Inputs, drawn: IntArray, design: LabelDesign, seed: int) -> pd.DataFrame:
    """Return the runs with labels, and then those to read, in random order, with their texts."""
    known = np.flatnonzero(inputs.y[drawn] != CENSORED)
    places = np.concatenate([known, as_random_state(seed).permutation(design.query())])
    rows = drawn[places]
    outcome = pd.Series(inputs.y[rows], dtype="Int64").mask(inputs.y[rows] == CENSORED)
    table = pd.DataFrame(
        {
            "run": ids_of(inputs)[rows],
            "outcome": outcome,
            LABEL_PROBABILITY: design.probabilities_[places],
        }
    )
    if inputs.log:
        texts = {str(run.id): transcript(run) for run in inputs.log}
        table["text"] = [texts.get(str(name), "") for name in table["run"]]
    return table


def _next(arguments: argparse.Namespace) -> str:
    """Return the command that judges with the labels."""
    words, dropped = iter(arguments.argv[1:]), ("--n", "--out", "--page", "--target", "--seed")
    shown: list[str] = []
    for word in words:
        option, _, value = word.partition("=")
        if option in (*dropped, "--labels"):
            if not value:
                next(words, None)
            continue
        shown.append(word)
    return shlex.join(["trajscore", "report", *shown, "--labels", str(arguments.out)])
