"""What `by=` says of groups that do not differ, and of one that does.

    python benchmarks/groups.py [--data DIR] [--repeats 500] [--parts random power]

Random: public runs, all or 300 drawn anew, are cut into six groups at random. A report contradicts
itself where a group with at least 10 runs of each outcome gets another card than the whole. Level:
six groups of 20 to 60 runs, and of clusters, whose true worth is the same but whose noise and
success rates may differ. Power: six such groups, in one of which the forecast is inverted.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit

from trajscore import TrajectoryArray
from trajscore.calibration.calibrators import calibrator_maker
from trajscore.core.parallel import Work
from trajscore.core.weights import as_step_weights
from trajscore.datasets import load_chess
from trajscore.report import IntervalOptions
from trajscore.report._cards import AVOID, RECALIBRATE, USE, card_table, form_of, have_too_few_runs
from trajscore.report._data import Options
from trajscore.report._groups import ERROR_RATE, differ, group_table
from trajscore.report._inputs import load
from trajscore.report._rows import base_rate, predictor_rows
from trajscore.report._runs import check_predictors, choose_runs

OPTIONS = Options(("log",), as_step_weights(), "weighted")
DRAWS = IntervalOptions()
N_GROUPS = 6
Array = NDArray[Any]


def cards_of(
    X: Any, y: Array, labels: Array, clusters: Array | None = None, *, quick: bool = False
) -> tuple[pd.DataFrame, pd.DataFrame | None]:
    """Return the cards of the whole and of its groups, without the rest of a report.

    Quick: no table of groups that are not called different, which have the card of the whole.
    """
    judged = choose_runs(check_predictors(X, y, clusters, None), None, "failure")
    maker = calibrator_maker("platt", OPTIONS.weights)
    rows = predictor_rows(judged, maker, Work(), [])
    rows.append(base_rate(rows[0].traces, judged.runs, OPTIONS.weights))
    cards = card_table(rows, OPTIONS, DRAWS, Work())
    kinds = {"group": labels[judged.runs.source_rows].astype(str).astype(object)}
    if quick:
        chosen = [r for r in rows[:-1] if r.form == form_of(cards, r.predictor)]
        p = differ(chosen, judged.runs, kinds["group"], OPTIONS, DRAWS)
        if p.min() >= ERROR_RATE:
            return cards, None
    return cards, group_table(rows, kinds, cards, OPTIONS, DRAWS, Work())


def contradicts(cards: pd.DataFrame, groups: pd.DataFrame) -> tuple[bool, bool]:
    """Whether a group gets another card than the whole, and whether one decides otherwise."""
    told = groups[~have_too_few_runs(groups)]
    whole = cards["card"].reindex(told.index.get_level_values("predictor")).to_numpy()
    other = (told["card"] != whole).to_numpy()
    decided = told["card"].isin([USE, RECALIBRATE, AVOID]).to_numpy()
    return bool(other.any()), bool((other & decided).any())


def public(folder: Path, only: list[str]) -> dict[str, tuple[Any, Array, Array | None]]:
    """Return public runs: predictors, outcomes, clusters."""
    found: dict[str, tuple[Any, Array, Array | None]] = {}
    chess, y = load_chess(return_X_y=True)
    found["chess"] = ({name: chess[name] for name in chess.channels}, y, None)
    for name in ("hotpotqa", "gsm8k"):
        path = folder / "evaluator" / f"{name}_w_scores_compressed.csv.gz"
        if path.exists():
            X, y = TrajectoryArray.from_frame(
                pd.read_csv(path), id="uq_problem_idx", step="num_steps",
                value="judge_probability", outcome="solved",
            )  # fmt: skip
            found[name] = ({"judge": X}, y, None)
    path = folder / "tau_bench" / "gpt-4o-airline.json"
    if path.exists():
        inputs = load(path)
        X = inputs.predictors
        every = X if isinstance(X, dict) else {"predictor": X}
        found["tau-bench"] = (every, inputs.y, inputs.groups)
    return {name: one for name, one in found.items() if name in only or not only}


def at_random(folder: Path, repeats: int, only: list[str]) -> None:
    """Print how often reports of groups drawn at random contradict themselves."""
    print("random groups: another card than the whole, another decision, groups called different")
    for name, (X, y, clusters) in public(folder, only).items():
        for n in (300, 1500)[: 1 + (len(y) > 1500)]:
            found = []
            for seed in range(repeats):
                rng = np.random.default_rng([seed, n, 7])
                rows = np.sort(rng.choice(len(y), min(n, len(y)), replace=False))
                drawn = {one: trace[rows] for one, trace in X.items()}
                of = None if clusters is None else clusters[rows]
                try:
                    labels = rng.integers(0, N_GROUPS, len(rows))
                    cards, table = cards_of(drawn, y[rows], labels, of, quick=True)
                except ValueError:  # too few of an outcome to calibrate on
                    continue
                found.append((False,) * 3)
                if table is not None:
                    found[-1] = (*contradicts(cards, table), True)
            shares = "  ".join(f"{share:.3f}" for share in np.mean(found, axis=0))
            print(f"{name:<10}{min(n, len(y)):>6} runs  {shares}  of {len(found)}", flush=True)


def groups_of(seed: int, kind: str, inverted: bool) -> tuple[Any, Array, Array, Array | None]:
    """Make six groups of 20 to 60 runs of known worth."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(20, 61, N_GROUPS)
    group = np.repeat(np.arange(N_GROUPS), sizes)
    n, clusters = len(group), None
    if kind == "clusters":  # five runs of a task are alike
        clusters = np.concatenate([1000 * g + np.arange(m) // 5 for g, m in enumerate(sizes)])
        _, code = np.unique(clusters, return_inverse=True)
        base = rng.normal(0, 2.5, code.max() + 1)[code]
    else:
        base = rng.normal(0, 2.5, n)
    if kind == "rates":  # easy and hard groups, the same share of the loss is saved in each
        base = base + np.linspace(-1.0, 1.0, N_GROUPS)[group]
    y = (rng.random(n) < expit(base)).astype(int)
    noise = np.where(group % 2, 0.9, 0.3) if kind == "noise" else 0.5
    said = base + rng.normal(size=n) * noise
    if kind == "skewed":  # a few sure ones, sometimes wrong
        said = np.where(rng.random(n) < 0.15, 6 * np.sign(said), said)
    if inverted:
        said = np.where(group == 0, -said, said)
    return np.clip(expit(said), 1e-6, 1 - 1e-6)[:, None], y, group, clusters


def level_and_power(repeats: int) -> None:
    """Print how often groups are called different that are alike, and that are not."""
    print("\nsix groups of 20 to 60 runs: called different; the inverted one: 'do not use', "
          "not 'use as it is'")  # fmt: skip
    for kind in ("equal", "skewed", "noise", "clusters", "rates"):
        for inverted in (False, True):
            found = []
            for seed in range(repeats):
                X, y, group, clusters = groups_of(seed, kind, inverted)
                cards, table = cards_of(X, y, group, clusters, quick=True)
                card = cards["card"].iloc[0]
                if table is not None:
                    card = table["card"].xs("0", level="group").iloc[0]
                differs = table is not None
                found.append((differs, card == AVOID, card not in (USE, RECALIBRATE)))
            shares = "  ".join(f"{share:.3f}" for share in np.mean(found, axis=0))
            print(f"{kind:<10}{'one inverted' if inverted else 'alike':<14}{shares}", flush=True)


def main() -> None:
    """Print all of it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--repeats", type=int, default=500)
    parts = ["random", "power"]
    parser.add_argument("--parts", nargs="+", choices=parts, default=parts)
    parser.add_argument("--only", nargs="+", default=[], help="names of public sets")
    args = parser.parse_args()
    start = time.perf_counter()
    if "random" in args.parts:
        at_random(args.data, args.repeats, args.only)
    if "power" in args.parts:
        level_and_power(args.repeats)
    print(f"{time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
