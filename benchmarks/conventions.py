"""Cards and margins of public logs: under the published weights, and under weights of the step.

    python benchmarks/conventions.py [--logs FOLDER] [--data-home FOLDER] [--markdown]

The published weights are normalised over each run's own length (`weights="linear_front",
horizon="own"`: the default before 0.2.0); "early", 1 / sqrt(t), is the default. One row a
predictor: its card, and what its log score is above that of the best constant, as given and
recalibrated, under either. Then, under step weights, what the recalibrated one is above counting
steps, the end of a run not known and known, with 95% intervals. Notes, and the predictor to use,
follow where they are not the same under both.

Logs are read as `trajscore report` reads them. Chess is bundled; HotpotQA and GSM8K are taken from
the folder evaluator of `--logs` (default: $TRAJSCORE_TEST_DATA), or fetched to `--data-home`; files
of tau-bench and tau2 lie in the folders tau_bench and tau2 of `--logs`. About a minute.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from trajscore import Report, TrajectoryArray, evaluate
from trajscore.datasets import fetch_evaluator, load_chess
from trajscore.report._answer import answer
from trajscore.report._inputs import load

CONVENTIONS: dict[str, dict[str, Any]] = {
    "published": {"weights": "linear_front", "horizon": "own"},
    "step": {},
}
MARGINS = ("card", "as given", "recalibrated")
TABLES = {"HotpotQA": "hotpotqa", "GSM8K": "gsm8k"}
COLUMNS = {"id": "uq_problem_idx", "step": "num_steps", "outcome": "solved"}
FILE = "evaluator/{}_w_scores_compressed.csv.gz"


def sets(logs: Path | None, data_home: Path | None) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each set that is at hand, by name, with what `evaluate` is to know of it."""
    X, y = load_chess(return_X_y=True)
    yield "chess", {"X": X, "y": y}
    for name, table in TABLES.items():
        local = None if logs is None else logs / FILE.format(table)
        try:
            if local is not None and local.exists():
                frame = pd.read_csv(local)
                X, y = TrajectoryArray.from_frame(frame, value="judge_probability", **COLUMNS)
            else:
                X, y = fetch_evaluator(table, data_home=data_home, return_X_y=True)
        except (OSError, ImportError) as error:
            print(f"{name} is not at hand: {error}")
            continue
        yield name, {"X": {"judge": X}, "y": y}
    for folder in ("tau_bench", "tau2"):
        for path in sorted((logs / folder).glob("*.json")) if logs is not None else []:
            found = load(path)
            yield (
                f"{folder}/{path.stem}",
                {
                    "X": found.predictors,
                    "y": found.y,
                    "groups": found.groups,
                    "stop_reason": found.stop_reason,
                },
            )


def margins(report: Report, predictor: str) -> dict[str, str]:
    """Return the card, and what is gained over the best constant."""
    card = report.cards.loc[predictor]
    values = card["card"], _signed(card["as_given"]), _signed(card["recalibrated"])
    return dict(zip(MARGINS, values, strict=True))


def over_counting(report: Report, predictor: str) -> dict[str, str]:
    """Return what the recalibrated predictor gains over counting steps."""
    row = report.table.loc[(predictor, "recalibrated")]
    columns = {"over counting": "TPS log over_alive", "end known": "TPS log over_alive_end"}
    return {
        name: f"{_signed(row[column])} "
        f"[{_signed(row[f'{column}_low'])}, {_signed(row[f'{column}_high'])}]"
        for name, column in columns.items()
    }


def _signed(value: float) -> str:
    return "" if pd.isna(value) else f"{value:+.3f}"


def both(name: str, given: dict[str, Any]) -> tuple[pd.DataFrame, list[str]]:
    """Return the rows of a set, and what is said under one convention alone."""
    reports = {
        how: evaluate(**given, **options, calibrator="platt")
        for how, options in CONVENTIONS.items()
    }
    rows = {
        (name, predictor): {
            f"{column}, {how}": value
            for how, report in reports.items()
            for column, value in margins(report, predictor).items()
        }
        | over_counting(reports["step"], predictor)
        for predictor in reports["step"].cards.index
    }
    told = {how: [answer(report).headline, *report.notes] for how, report in reports.items()}
    return pd.DataFrame(rows).T, [
        f"{name}, {how} weights: {sentence}"
        for how, sentences in told.items()
        for sentence in sentences
        if any(sentence not in others for others in told.values())
    ]


def as_markdown(table: pd.DataFrame) -> str:
    """Return the cards and margins under both conventions; a card that stays is not repeated."""
    before, now = (table[[f"{name}, {how}" for name in MARGINS]] for how in CONVENTIONS)
    titles = ["log", "predictor", "card before", *MARGINS[1:], "card now", *MARGINS[1:]]
    lines = [f"| {' | '.join(titles)} |", "|" + "---|" * len(titles)]
    for key, old in before.iterrows():
        new = list(now.loc[key])
        new[0] = "the same" if new[0] == old.iloc[0] else f"**{new[0]}**"
        lines.append("| " + " | ".join([*key, *old, *new]) + " |")
    return "\n".join(lines)


def main() -> None:
    """Print the table, and what changes."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--logs", type=Path, default=os.environ.get("TRAJSCORE_TEST_DATA"))
    parser.add_argument("--data-home", type=Path, help="folder for downloads")
    parser.add_argument("--markdown", action="store_true", help="print the table of the changelog")
    args = parser.parse_args()
    logs = None if args.logs is None else Path(args.logs)
    found = [both(name, given) for name, given in sets(logs, args.data_home)]
    table = pd.concat([rows for rows, _ in found])
    if args.markdown:
        print(as_markdown(table))
    else:
        print(table.to_string())
    print("\n" + "\n".join(sentence for _, said in found for sentence in said))


if __name__ == "__main__":
    main()
