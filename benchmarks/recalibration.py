"""Raw against recalibrated forecasts: the proper score moves, the ranking hardly; and which map.

    python benchmarks/recalibration.py judged [--data FOLDER]
    python benchmarks/recalibration.py maps   [--data FOLDER]
    python benchmarks/recalibration.py few    [--data FOLDER] [--splits 40] [--seed 24]

"judged": metrics of the HotpotQA and GSM8K judges. "maps": log scores of each map, of those and of
chess. "few": every public table of forecasts, recalibrated from random subsets of 200 runs (or all,
if there are fewer), in random halves.
Every recalibrated trace is out of fold; chess games that were not observed count as failures.
"""

from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import t
from sklearn.model_selection import StratifiedGroupKFold

from reproduction.items import Data
from shared import JUDGES, Table, base_rate, dispatch, public_tables, show
from trajscore import TrajectoryArray, evaluate
from trajscore.calibration import cross_fit_traces
from trajscore.calibration.calibrators import CALIBRATORS
from trajscore.datasets import load_chess
from trajscore.inference import compare_predictors
from trajscore.metrics import tps_samples, tps_score
from trajscore.report import EvaluationOptions

MARGINS = [f"TPS log {one}" for one in ("margin", "over_alive", "over_alive_end")]
SHOWN = [
    *("AUROC", "AURC", "TPS log"),
    *(one + end for one in MARGINS for end in ("", "_low", "_high")),
    *("S-ECE", "S-ECE early", "S-ECE middle", "S-ECE late", "T-ECE"),
]


def compared(X: TrajectoryArray, y: np.ndarray) -> pd.DataFrame:
    """Mean log score of each map out of fold, and its difference to Platt's, simultaneous."""
    traces = {"as given": X}
    traces |= {name: cross_fit_traces(kind(), X, y, cv=2) for name, kind in CALIBRATORS.items()}
    outcomes = np.where(y == -1, 0, y)
    samples = {name: tps_samples(outcomes, trace) for name, trace in traces.items()}
    table = compare_predictors(samples, reference="platt", random_state=0)
    ends = table.set_index("predictor")[["difference", "low", "high"]]
    return pd.DataFrame({"score": pd.DataFrame(samples).mean()}).join(ends)


def few(table: Table, n_runs: int, n_splits: int, seed: int) -> pd.DataFrame:
    """Log score of each map on random subsets, and of the base rate; a row for each subset."""
    X, y, tasks = table
    rows = []
    for k in range(n_splits):
        rng = np.random.default_rng([seed, k])
        order = pd.Series(np.arange(len(X))).groupby(tasks).indices
        whole = [order[task] for task in rng.permutation(list(order))]
        sizes = np.cumsum([len(runs) for runs in whole])
        drawn = np.concatenate(whole[: int(np.searchsorted(sizes, n_runs)) + 1])
        cv = StratifiedGroupKFold(2, shuffle=True, random_state=int(rng.integers(1 << 31)))
        of = X[drawn], y[drawn]
        traces = {
            name: cross_fit_traces(kind(), *of, cv=cv, groups=tasks[drawn])
            for name, kind in CALIBRATORS.items()
        }
        traces["base rate"] = base_rate(*of)
        rows.append({name: tps_score(of[1], one) for name, one in traces.items()})
    return pd.DataFrame(rows)


def few_runs(args: Any) -> None:
    lines = {}
    for name, (X, y, tasks) in public_tables(args.data):
        table = Table(X, np.maximum(y, 0), X.ids if tasks is None else tasks)
        scores = few(table, min(200, len(X)), args.splits, args.seed)
        line = {"platt": f"{(scores['platt'] - scores['base rate']).mean():+.4f}"}
        for other in ("beta", "isotonic", "auto"):
            gain = scores[other] - scores["platt"]
            half = t.ppf(0.975, args.splits - 1) * gain.std() / np.sqrt(args.splits)
            line[other] = f"{gain.mean():+.4f} ± {half:.4f}"
        lines[name] = line
    show(f"200 runs, {args.splits} splits", lines)


def judged(args: Any) -> None:
    for name in JUDGES:
        X, y = Data(args.data).runs(name)
        report = evaluate({"judge": X}, y, options=EvaluationOptions(n_jobs=args.jobs))
        show(name, report.table.reindex(columns=SHOWN).T, 4)


def maps(args: Any) -> None:
    tables = [(name, *Data(args.data).runs(name)) for name in JUDGES]
    games, ended = load_chess(return_X_y=True)
    tables += [(f"chess, {name}", games[name], ended) for name in games.channels]
    for name, X, y in tables:
        show(f"{name}, {len(X)} runs", compared(X, y), 5)


if __name__ == "__main__":
    commands = {"judged": judged, "maps": maps, "few": few_runs}
    dispatch(__doc__, commands, splits=40, seed=24, jobs=2)
