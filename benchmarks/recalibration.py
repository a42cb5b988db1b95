"""Raw against recalibrated forecasts: the proper score moves, the ranking hardly; and which map.

    python benchmarks/recalibration.py [TABLE.csv.gz ...]

Without arguments, the public HotpotQA and GSM8K tables are fetched. The bundled chess games come
last, where runs that were not observed count as failures. Every recalibrated trace is out of fold.
"""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pandas as pd

from trajscore import PlattCrossFitCalibrator, TrajectoryArray, evaluate
from trajscore.calibration import (
    BetaCrossFitCalibrator,
    IsotonicCrossFitCalibrator,
    cross_fit_traces,
)
from trajscore.datasets import fetch_evaluator, load_chess
from trajscore.inference import compare_predictors
from trajscore.metrics import censored_tps_samples, tps_decomposition

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
}


def compared(X: TrajectoryArray, y: np.ndarray) -> pd.DataFrame:
    """Mean score of each map out of fold, and its difference to Platt's, paired, simultaneous."""
    traces = {"raw": X}
    traces |= {name: cross_fit_traces(one, X, y, cv=2) for name, one in CALIBRATORS.items()}
    tables = {}
    for title, score in SCORES.items():
        samples = {
            name: censored_tps_samples(y, trace, score=score) for name, trace in traces.items()
        }
        table = compare_predictors(samples, reference="Platt", random_state=0)
        table = table.set_index("predictor")[["difference", "low", "high"]]
        table.insert(0, "score", pd.DataFrame(samples).mean())
        table.loc["Platt", "score"] = samples["Platt"].mean()
        tables[title] = table
    return pd.concat(tables)


def main() -> None:
    """Print one table for each data set, and which map is best."""
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
        report = evaluate({"judge": X}, y, n_jobs=2)
        print(
            f"== {name}\n{report}\n\n{report.table.reindex(columns=SHOWN).round(4).T.to_string()}\n"
        )
        forms = [("judge", form) for form in ("raw", "calibrated")]
        parts = {
            form: asdict(tps_decomposition(report.labels[form], report.traces[form]))
            for form in forms
        }
        print(f"{pd.DataFrame(parts).round(4).T.to_string()}\n")
        value = report.intervals["value"].unstack("form").loc["judge"]
        print((value["calibrated"] - value["raw"]).round(4).rename("calibrated - raw").to_string())
    games, ended = load_chess(return_X_y=True)
    sets |= {f"chess, {name}": (games[name], ended) for name in games.channels}
    for name, (X, y) in sets.items():
        print(f"\n== {name}, {len(X)} runs\n{compared(X, y).round(5).to_string()}")


if __name__ == "__main__":
    main()
