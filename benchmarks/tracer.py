"""TRACER on public logs, beside what costs nothing: the length of the run.

    python benchmarks/tracer.py LOG [LOG ...] [--more LOG ...] [--embedder char wordllama]

LOG is any log that trajscore.io reads; --more makes a second table. TRACER is shown with its usual
parameters, and tuned by nested cross-validation with the tasks kept together: each run is judged
with parameters found on the runs of other tasks. Intervals are 95% bootstrap intervals over tasks.
benchmarks/tracer_ablation.py says where the figures come from.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import GridSearchCV, StratifiedGroupKFold

from trajscore import TracerScorer, TracerSignals, TrajectoryArray, io
from trajscore.calibration import cross_fit_traces
from trajscore.core.ranking import TieGroups, aurc, auroc
from trajscore.core.statistics import OfTies, all_at_once
from trajscore.core.within_runs import run_numbers
from trajscore.inference import bootstrap
from trajscore.tracer import (
    SAUP,
    ChannelRisk,
    early_warning,
)

BASELINES = {
    "SAUP": SAUP(),
    "mean surprisal": ChannelRisk(),
    "self-reported confidence": ChannelRisk("confidence", kind="confidence"),
    "run length": ChannelRisk(None, kind="count"),
    "tool calls": ChannelRisk("tool_calls", kind="count"),
}
GRID = {
    "alpha": [0, 0.5, 1, 2],
    "beta": [0, 1],
    "gamma": [0, 1],
    "k": [0.1, 0.3, 1.0],
    "w": [0.0, 0.3],
}
MEASURES = ("auroc", "prefix_auroc", "auarc")
REFERENCE = "run length"


class Log(NamedTuple):
    """The runs of a log in the order of their ids, with their outcomes and tasks."""

    runs: list[io.Run]
    y: NDArray[Any]
    task: NDArray[Any]


def load(path: Path) -> Log:
    """Read a log."""
    runs = sorted(io.read_runs(path), key=lambda run: run.id)
    return Log(runs, io.outcomes(runs), io.meta(runs)["task"].to_numpy())


# ------------------------------------------------------------------ risks


def risks_of(log: Log, embedders: list[str]) -> dict[str, TrajectoryArray]:
    """Return the risks to compare; baselines do not depend on the embedder."""
    risks: dict[str, TrajectoryArray] = {}
    for embedder in embedders:
        S = TracerSignals(embedder).fit_transform(log.runs)
        inner = StratifiedGroupKFold(4)
        tuned = {
            "pairwise loss": TracerScorer(tune="pairwise_logistic", tau=0.2),
            "AUROC": GridSearchCV(TracerScorer(), GRID, scoring="roc_auc", cv=inner),
        }
        risks[f"TRACER, {embedder}"] = TracerScorer().fit_transform(S)
        for name, model in tuned.items():
            risk = cross_fit_risks(model, S, log.y, log.task)
            risks[f"TRACER, {embedder}, tuned, {name}"] = risk
    return risks | {name: scorer.fit_transform(S) for name, scorer in BASELINES.items()}


class InDeviations(BaseEstimator):
    """Risk in standard deviations from the mean risk of the runs that a scorer was fitted on.

    Folds may have found other parameters, whose risks are on other scales. Runs without an outcome
    get a risk, but are not fitted on.
    """

    def __init__(self, scorer: Any) -> None:
        self.scorer = scorer

    def fit(self, X: TrajectoryArray, y: NDArray[Any], groups: Any = None) -> Self:
        """Fit the scorer, and take mean and deviation of its risks."""
        known = y != -1
        extra = {"groups": groups[known]} if isinstance(self.scorer, GridSearchCV) else {}
        self.scorer_ = clone(self.scorer).fit(X[known], y[known], **extra)
        risk = self.scorer_.score_samples(X[known])
        self.center_, self.scale_ = np.nanmean(risk), np.nanstd(risk) or 1.0
        return self

    def transform(self, X: TrajectoryArray) -> TrajectoryArray:
        """Return the risk of the run so far."""
        risk = self.scorer_.transform(X).cells.ravel()
        return X.with_cells((risk - self.center_) / self.scale_, channels=("risk",))


def cross_fit_risks(
    scorer: Any, S: TrajectoryArray, y: NDArray[Any], task: NDArray[Any], cv: int = 5
) -> TrajectoryArray:
    """Return the risk of each run by a scorer that was fitted on runs of other tasks."""
    # a splitter balances the outcomes of all runs, the unobserved ones among the failures
    folds = StratifiedGroupKFold(cv)
    return cross_fit_traces(InDeviations(scorer), S, y, groups=task, cv=folds)


# ------------------------------------------------------------------ how risks are judged


def judged_runs(y: NDArray[Any], risk: TrajectoryArray) -> NDArray[np.int64]:
    """Return the runs that have an outcome and a risk."""
    return np.flatnonzero((y != -1) & ~np.isnan(final(risk)))


def final(risk: TrajectoryArray) -> NDArray[np.float64]:
    """Return the risk of each run: that of its last step."""
    return risk.cells[risk.offsets[1:] - 1].ravel()


def measures(y: NDArray[Any], risk: TrajectoryArray) -> dict[str, OfTies]:
    """Return AUROC of runs, AUROC of all their prefixes, and AUARC, as functions of counts."""
    rows = judged_runs(y, risk)
    cells = np.flatnonzero(np.isin(run_numbers(risk), rows) & ~np.isnan(risk.cells.ravel()))
    run = run_numbers(risk)[cells]
    runs = TieGroups(-final(risk)[rows], y[rows].astype(float))
    prefixes = TieGroups(-risk.cells.ravel()[cells], y[run].astype(float))
    return {
        "auroc": OfTies(runs, auroc, rows),
        "prefix_auroc": OfTies(prefixes, auroc, run),
        "auarc": OfTies(runs, lambda failures, successes: 1 - aurc(failures, successes), rows),
    }


def auarc_on_grid(y: NDArray[Any], risk: NDArray[Any], n_points: int = 20) -> float:
    """Area under the accuracy-rejection curve over a coarse grid of coverages.

    The mean accuracy that TRACER's published tables hold: the accuracy among the ceil(c n) least
    risky runs at coverages c = 1/20, ..., 1, by the trapezoidal rule, as the expected value over
    all orders of runs with the same risk. It covers [0.05, 1] only, so a perfect ranking of
    all-successful runs has 0.95.
    """
    _, group, size = np.unique(risk, return_inverse=True, return_counts=True)
    share = np.bincount(group, y) / size
    accepted = np.cumsum(share[np.sort(group)])  # expected number of successes among the first
    kept = -(-np.arange(1, n_points + 1) * len(y) // n_points)
    accuracy = accepted[kept - 1] / kept
    return float(((accuracy[1:] + accuracy[:-1]) / 2).sum() / n_points)


def risk_table(
    risks: Mapping[str, TrajectoryArray], log: Log, n_resamples: int = 1000
) -> pd.DataFrame:
    """Judge risks: do they rank failures above successes, and how early?

    The measures and the differences of AUROC from that of the reference have bootstrap intervals
    over tasks; detection and false alarms are at Youden's threshold of the same runs.
    """
    y, rows = log.y, {}
    functions = {name: measures(y, risk) for name, risk in risks.items()}
    flat = {(name, one): f for name, of in functions.items() for one, f in of.items()}
    statistic = all_at_once(flat)
    shape = (-1, len(risks), len(MEASURES))
    values = statistic(np.ones(len(y))).reshape(shape)[0]
    replicates = bootstrap(
        statistic, len(y), n_resamples=n_resamples, groups=log.task, random_state=0
    ).reshape(shape)
    place = list(risks).index(REFERENCE)
    differences = replicates[..., 0] - replicates[:, [place], 0]
    for k, (name, risk) in enumerate(risks.items()):
        known = judged_runs(y, risk)
        warning = early_warning(y[known], risk[known])
        row = {"n_runs": len(known)}
        for j, measure in enumerate(MEASURES):
            row |= with_interval(measure, values[k, j], replicates[:, k, j])
        row |= with_interval("difference", values[k, 0] - values[place, 0], differences[:, k])
        row["auarc_grid"] = auarc_on_grid(y[known], final(risk)[known])
        row["detected_20"] = warning.detected_within(0.2)
        row["false_alarms"] = warning.false_alarms_within(1.0)
        row["median_time"] = np.nanmedian(warning.failure_times)
        rows[name] = row
    return pd.DataFrame.from_dict(rows, orient="index")


def with_interval(name: str, value: float, replicates: NDArray[Any]) -> dict[str, float]:
    """Return a value and the ends of its 95% percentile interval."""
    low, high = np.nanquantile(replicates, [0.025, 0.975])
    return {name: value, f"{name}_low": low, f"{name}_high": high}


# ------------------------------------------------------------------ what is printed


def show(path: Path, embedders: list[str], n_resamples: int) -> None:
    """Print one log's part of a table."""
    log = load(path)
    counts = [int((log.y == code).sum()) for code in (1, 0, -1)]
    print(
        f"\n== {path.name}: {counts[0]} successes, {counts[1]} failures, {counts[2]} not observed "
        f"(left out), {len(set(log.task))} tasks"
    )
    risks = risks_of(log, embedders)
    absent = [name for name, risk in risks.items() if not len(judged_runs(log.y, risk))]
    risks = {name: risk for name, risk in risks.items() if name not in absent}
    table = risk_table(risks, log, n_resamples)
    shown = pd.DataFrame(index=table.index)
    for name, title in (
        ("auroc", "AUROC"), ("difference", "- run length"), ("prefix_auroc", "prefix AUROC"),
        ("auarc", "AUARC"),
    ):  # fmt: skip
        shown[title] = [
            f"{value:.3f} [{low:.3f}, {high:.3f}]"
            for value, low, high in table[[name, f"{name}_low", f"{name}_high"]].to_numpy()
        ]
    for name, title in (
        ("auarc_grid", "20-point"), ("detected_20", "by 20%"), ("false_alarms", "false alarms"),
        ("median_time", "median time"),
    ):  # fmt: skip
        shown[title] = table[name].map("{:.3f}".format)
    print(shown.to_string())
    if absent:
        print(
            f"not in this log (no token probabilities, no stated confidence): {', '.join(absent)}"
        )


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("logs", nargs="+", type=Path)
    parser.add_argument("--more", nargs="*", type=Path, default=[], help="a second table")
    parser.add_argument("--embedder", nargs="+", default=["char"])
    parser.add_argument("--resamples", type=int, default=2000)
    args = parser.parse_args()
    for title, logs in (("Table 1", args.logs), ("Table 2", args.more)):
        if logs:
            print(f"\n{title}")
        for path in logs:
            show(path, args.embedder, args.resamples)


if __name__ == "__main__":
    main()
