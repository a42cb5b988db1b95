"""Raw against recalibrated forecasts: the proper score moves, the ranking hardly; and which map.

    python benchmarks/recalibration.py [TABLE.csv.gz ...]
    python benchmarks/recalibration.py --few [N_SPLITS]

Without arguments, the public HotpotQA and GSM8K tables are fetched. The bundled chess games come
last, where runs that were not observed count as failures. Every recalibrated trace is out of fold.

With --few, every public table of forecasts is recalibrated from random subsets of 200 and of 1,000
runs (or all, if there are fewer), in random halves. Two tables are read in $TRAJSCORE_TEST_DATA.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import softmax
from scipy.stats import t
from sklearn.model_selection import StratifiedGroupKFold

from trajscore import PlattCrossFitCalibrator, TrajectoryArray, evaluate
from trajscore.calibration import (
    BetaCrossFitCalibrator,
    EnsembleCrossFitCalibrator,
    IsotonicCrossFitCalibrator,
    cross_fit_traces,
)
from trajscore.core.weights import as_step_weights
from trajscore.datasets import fetch_evaluator, fetch_expected_cost, load_chess
from trajscore.inference import compare_predictors
from trajscore.metrics import tps_decomposition, tps_samples, tps_score
from trajscore.report import EvaluationOptions

SCORES = {"log": "log", "Brier": "brier", "beta(2,4)": ("beta", 2, 4)}
MARGINS = [f"TPS log {one}" for one in ("margin", "over_alive", "over_alive_end")]
SHOWN = [
    *("AUROC", "AURC", "TPS log"),
    *(one + end for one in MARGINS for end in ("", "_low", "_high")),
    *("S-ECE", "S-ECE early", "S-ECE middle", "S-ECE late", "T-ECE"),
]
CALIBRATORS = {
    "Platt": PlattCrossFitCalibrator(),
    "beta": BetaCrossFitCalibrator(),
    "isotonic": IsotonicCrossFitCalibrator(),
    "ensemble": EnsembleCrossFitCalibrator(),
}


def compared(X: TrajectoryArray, y: np.ndarray) -> pd.DataFrame:
    """Mean score of each map out of fold, and its difference to Platt's, paired, simultaneous."""
    traces = {"as given": X}
    traces |= {name: cross_fit_traces(one, X, y, cv=2) for name, one in CALIBRATORS.items()}
    tables = {}
    for title, score in SCORES.items():
        samples = {
            name: tps_samples(np.where(y == -1, 0, y), trace, score=score)
            for name, trace in traces.items()
        }
        table = compare_predictors(samples, reference="Platt", random_state=0)
        table = table.set_index("predictor")[["difference", "low", "high"]]
        table.insert(0, "score", pd.DataFrame(samples).mean())
        table.loc["Platt", "score"] = samples["Platt"].mean()
        tables[title] = table
    return pd.concat(tables)


Table = tuple[TrajectoryArray, np.ndarray, np.ndarray]


def tables() -> Iterator[tuple[str, Table]]:
    """Yield every public table of forecasts with its outcomes and tasks."""
    for name in ("hotpotqa", "gsm8k", "math", "mmlupro", "chessgames"):
        X, y = fetch_evaluator(name, return_X_y=True)
        yield name, (X, y, np.arange(len(X)))
    games, ended = load_chess(return_X_y=True)
    for name in games.channels:
        yield f"chess, {name}", (games[name], np.maximum(ended, 0), np.arange(len(games)))
    folder = Path(os.environ.get("TRAJSCORE_TEST_DATA", "."))
    for name, file, columns in (
        ("basketball", "winprob/march_madness", ["game", "win_probability", "won", "game"]),
        ("game of 24", "tot/game24_gpt4", ["run_id", "value", "solved", "task"]),
    ):
        if (folder / f"{file}.csv.gz").exists():
            frame = pd.read_csv(folder / f"{file}.csv.gz")
            run, value, outcome, task = columns
            X, y = TrajectoryArray.from_frame(
                frame, id=run, step="step", value=value, outcome=outcome
            )
            yield name, (X, y, frame.groupby(run)[task].first().reindex(X.ids).to_numpy())
    for name in ("agnews_gpt2", "sst2_gpt2", "pneumoniamnist_resnet50", "cifar10_resnet-20"):
        log_p, label = fetch_expected_cost(name, return_X_y=True)
        p = softmax(log_p, axis=1)
        X = TrajectoryArray(p.max(axis=1), np.ones(len(p), dtype=int))
        yield name, (X, (p.argmax(axis=1) == label).astype(int), np.arange(len(p)))


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
            name: cross_fit_traces(one, *of, cv=cv, groups=tasks[drawn])
            for name, one in CALIBRATORS.items()
        }
        rate = as_step_weights("early", None).of(of[0]).rate(of[1])
        traces["base rate"] = of[0].with_cells(np.full(len(of[0].cells), rate))
        rows.append({name: tps_score(of[1], one) for name, one in traces.items()})
    return pd.DataFrame(rows)


def few_runs(n_splits: int, seed: int = 24) -> pd.DataFrame:
    """What maps gain over Platt's, with 95% intervals over the splits."""
    lines = {}
    for name, table in tables():
        for n_runs in sorted({min(n, len(table[0])) for n in (200, 1000)}):
            scores = few(table, n_runs, n_splits, seed)
            line = {"Platt": f"{(scores['Platt'] - scores['base rate']).mean():+.4f}"}
            for other in ("beta", "isotonic", "ensemble"):
                gain = scores[other] - scores["Platt"]
                half = t.ppf(0.975, n_splits - 1) * gain.std() / np.sqrt(n_splits)
                line[other] = f"{gain.mean():+.4f} ± {half:.4f}"
            lines[name, n_runs] = line
            print(name, n_runs, *line.values(), sep="  ", flush=True)
    return pd.DataFrame(lines).T


def main() -> None:
    """Print one table for each data set, and which map is best."""
    if sys.argv[1:2] == ["--few"]:
        print(few_runs(int((*sys.argv[2:], 40)[0])).to_string())
        return
    if len(sys.argv) > 1:
        sets = {
            Path(path).name: TrajectoryArray.from_frame(
                pd.read_csv(path), id="uq_problem_idx", step="num_steps",
                value="judge_probability", outcome="solved",
            )
            for path in sys.argv[1:]
        }  # fmt: skip
    else:
        sets = {name: fetch_evaluator(name, return_X_y=True) for name in ("hotpotqa", "gsm8k")}
    for name, (X, y) in sets.items():
        report = evaluate({"judge": X}, y, options=EvaluationOptions(n_jobs=2))
        print(
            f"== {name}\n{report}\n\n{report.table.reindex(columns=SHOWN).round(4).T.to_string()}\n"
        )
        forms = [("judge", form) for form in ("as_given", "recalibrated")]
        parts = {
            form: asdict(tps_decomposition(report.labels[form], report.traces[form]))
            for form in forms
        }
        print(f"{pd.DataFrame(parts).round(4).T.to_string()}\n")
        value = report.intervals["value"].unstack("form").loc["judge"]
        gain = value["recalibrated"] - value["as_given"]
        print(gain.round(4).rename("recalibrated - as given").to_string())
    games, ended = load_chess(return_X_y=True)
    sets |= {f"chess, {name}": (games[name], ended) for name in games.channels}
    for name, (X, y) in sets.items():
        print(f"\n== {name}, {len(X)} runs\n{compared(X, y).round(5).to_string()}")


if __name__ == "__main__":
    main()
