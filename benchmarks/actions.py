"""What agents did, beside what costs nothing: the length of the run.

    python benchmarks/actions.py LOG [LOG ...] [--seeds 5] [--shuffles 20] [--resamples 2000]

The logs are taken together: forecasters learn from all of them, and AUROC compares two runs of the
same log only, so that a log in which more runs fail tells nothing. Runs of one task, in whichever
log, stay in one fold; C is chosen by TPS on the training tasks alone, where a row says so. All
values are means over the seeds of the folds. Intervals are 95% bootstrap intervals over tasks, and
those of differences are paired; they take the forecasts as they are, and do not fit anew. At step
t, forecasts after step t are judged on the runs that are at least that long, so that their length
so far tells nothing; at equal length, pairs of runs are as long as one another (beyond 10 steps, to
within a tenth; what length tells of these pairs is what is held against). There, pairs are also of
one fold: what differs between folds at one step is the fit. The control has outcomes that are
shuffled within each log. With --seeds 0 nothing is learned, and what is known without is judged.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedGroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from trajscore import (
    ActionSignals,
    PrefixForecaster,
    TracerScorer,
    TracerSignals,
    TrajectoryArray,
    io,
    tps_scorer,
)
from trajscore.calibration import cross_fit_traces
from trajscore.calibration._cross_fit import folds_of
from trajscore.core import equal_length as equal_length
from trajscore.core.ranking import AurocWithin
from trajscore.core.run_sums import run_sums
from trajscore.core.statistics import MeanOfRuns
from trajscore.core.weights import as_step_weights
from trajscore.core.within_runs import last_cells
from trajscore.inference import bootstrap
from trajscore.metrics import tps_samples
from trajscore.tracer import ChannelRisk

Floats = NDArray[np.float64]

STEPS = (4, 6, 8, 10, 15, 20)
GRID = {"estimator__logisticregression__C": [0.001, 0.01, 0.1, 1.0]}
LENGTH = "run length"
EQUAL, OF_LENGTH = "equal length", "that of length"
Statistic = Callable[[Floats], Floats]


class Logs(NamedTuple):
    """The runs of all logs that have an outcome, with their outcomes, tasks and logs."""

    runs: list[io.Run]
    y: NDArray[Any]
    task: NDArray[Any]
    log: NDArray[Any]


def load(paths: list[Path]) -> Logs:
    """Read logs; the name of the log goes before the ids of its runs."""
    runs, log = [], []
    for place, path in enumerate(paths):
        for run in io.read_runs(path):
            run.id = f"{path.stem}/{run.id}"
            if run.outcome != -1:
                runs.append(run)
                log.append(place)
    task = np.array([str(run.task) for run in runs])
    return Logs(runs, io.outcomes(runs), task, np.array(log))


# ------------------------------------------------------------------ what is judged


def logistic(features: str, end: str | None, C: float | None) -> Any:
    """One logistic regression over all steps; without a `C`, chosen by TPS in training."""
    model = make_pipeline(StandardScaler(), LogisticRegression(C=C or 1.0, max_iter=500))
    forecaster = PrefixForecaster(model, features=features, last=1, pooled=True, end=end)
    if C is not None:
        return forecaster
    return GridSearchCV(forecaster, GRID, scoring=tps_scorer, cv=StratifiedGroupKFold(4))


def learned(logs: Logs) -> dict[str, tuple[Any, TrajectoryArray]]:
    """Return what is learned: forecasters, and the signals that each learns from."""
    so_far = ActionSignals().fit_transform(logs.runs)
    turns = ActionSignals(so_far=False).fit_transform(logs.runs)
    length = ChannelRisk(None, kind="count").fit_transform(so_far)
    risk = tracer_risk(TracerSignals().fit_transform(logs.runs))
    both = so_far.with_cells(
        np.column_stack([so_far.cells, risk.cells]), channels=[*(so_far.channels or ()), "risk"]
    )
    rows = {}
    for end, said in ((None, ""), ("step", ", end known")):
        rows |= {
            f"{LENGTH}, learned{said}": (logistic("last", end, 1.0), length),
            f"actions, C = 1{said}": (logistic("last", end, 1.0), so_far),
            f"actions, C chosen{said}": (logistic("last", end, None), so_far),
            f"actions and TRACER, C = 1{said}": (logistic("last", end, 1.0), both),
            f"running, C = .3{said}": (logistic("running", end, 0.3), turns),
            f"running, C chosen{said}": (logistic("running", end, None), turns),
        }
    return rows


def tracer_risk(signals: TrajectoryArray) -> TrajectoryArray:
    """Return TRACER's risk, 0 before anything is recorded."""
    risk = TracerScorer().fit_transform(signals)
    return risk.with_cells(np.nan_to_num(risk.cells))


def as_they_are(logs: Logs) -> dict[str, TrajectoryArray]:
    """Return risks that are not learned, as confidences."""
    signals = TracerSignals().fit_transform(logs.runs)
    risks = {
        LENGTH: ChannelRisk(None, kind="count"),
        "tool calls": ChannelRisk("tool_calls", kind="count"),
    }
    found = {name: scorer.fit_transform(signals) for name, scorer in risks.items()}
    found["TRACER"] = tracer_risk(signals)
    return {name: risk.with_cells(-risk.cells) for name, risk in found.items()}


def traces_of(rows: Any, logs: Logs, y: NDArray[Any], seed: int) -> dict[str, TrajectoryArray]:
    """Return the forecasts of each run by forecasters that were fitted on other tasks."""
    folds = StratifiedGroupKFold(5, shuffle=True, random_state=seed)
    return {
        name: cross_fit_traces(model, X, y, groups=logs.task, cv=folds)
        for name, (model, X) in rows.items()
    }


# ------------------------------------------------------------------ how it is judged


def within(confidence: Floats, y: NDArray[Any], stratum: NDArray[Any]) -> Statistic:
    """Return AUROC over pairs of one stratum, of the runs that have a confidence."""
    rows = np.flatnonzero(~np.isnan(confidence))
    one = AurocWithin.of(confidence[rows], y[rows].astype(np.float64), stratum[rows])
    return lambda counts: one(counts[..., rows])


def at_step(trace: TrajectoryArray, t: int | None) -> Floats:
    """Return the forecast of each run after step t, missing where it is shorter, or the last."""
    if t is None:
        return trace.cells.ravel()[last_cells(trace)]
    out = np.full(len(trace), np.nan)
    rows, values = equal_length.at_step(trace, t)
    out[rows] = values
    return out


def score_at(trace: TrajectoryArray, y: NDArray[Any], t: int) -> Statistic:
    """Return the mean log score of the forecasts after step t, of the runs that get there."""
    rows, p = equal_length.at_step(trace, t)
    return MeanOfRuns(tps_samples(y[rows], p[:, None]), rows)


def mean_over(functions: list[Statistic]) -> Statistic:
    """Return the mean of several statistics."""
    return lambda counts: np.mean([one(counts) for one in functions], axis=0)


def strata(*parts: NDArray[Any]) -> NDArray[Any]:
    """Number the different combinations."""
    return np.unique(np.stack(parts), axis=1, return_inverse=True)[1].ravel()


def statistics(
    traces: list[TrajectoryArray], y: NDArray[Any], log: NDArray[Any], probabilities: bool
) -> dict[str, Statistic]:
    """Return AUROC at the end, at equal length and at fixed steps and, of probabilities, scores.

    At the end pairs are of one log; elsewhere of one log and one fold: see `cross_fit_traces`.
    """
    both = [strata(log, folds_of(trace)) for trace in traces]
    bins = equal_length.length_bins(traces[0].lengths)
    alike = [strata(bins, stratum) for stratum in both]
    last, minus_length = [at_step(trace, None) for trace in traces], -traces[0].lengths * 1.0
    functions: dict[str, Statistic] = {
        "AUROC": mean_over([within(values, y, log) for values in last]),
        EQUAL: mean_over([within(*one) for one in zip(last, [y] * len(last), alike, strict=True)]),
        OF_LENGTH: mean_over([within(minus_length, y, stratum) for stratum in alike]),
    }
    steps = [t for t in STEPS if t <= traces[0].lengths.max()]
    for t in steps:
        pairs = zip(traces, both, strict=True)
        functions[f"step {t}"] = mean_over([within(at_step(X, t), y, one) for X, one in pairs])
    if probabilities:
        for name, weights in (("TPS", "early"), ("TPS, uniform", "uniform")):
            how = as_step_weights(weights)
            sums = [run_sums(y, trace, "log", how) for trace in traces]
            mean = np.mean([one.total for one in sums], axis=0)
            functions[name] = MeanOfRuns(mean, divisor=sums[0].divisor)
        for t in steps:
            functions[f"TPS at {t}"] = mean_over([score_at(trace, y, t) for trace in traces])
    return functions


def reference(row: str, measure: str) -> tuple[str, str]:
    """Say what a cell is held against: length as it is; for scores, what is learned of it."""
    if measure == EQUAL:
        return row, OF_LENGTH
    if not measure.startswith("TPS"):
        return LENGTH, measure
    return f"{LENGTH}, learned" + (", end known" if row.endswith("end known") else ""), measure


def table(rows: dict[str, Any], logs: Logs, n_resamples: int) -> pd.DataFrame:
    """Return each measure of each row and its difference from the reference, with intervals."""
    cells = [(row, measure) for row, of in rows.items() for measure in of]
    place = {cell: k for k, cell in enumerate(cells)}

    def everything(counts: Floats) -> Floats:
        return np.stack([rows[row][measure](counts) for row, measure in cells], axis=-1)

    value = everything(np.ones(len(logs.y)))
    drawn = bootstrap(
        everything, len(logs.y), n_resamples=n_resamples, groups=logs.task, random_state=0
    )
    out: dict[str, dict[str, Any]] = {row: {} for row in rows}
    for (row, measure), k in place.items():
        base = place[reference(row, measure)]
        low, high = np.nanquantile(drawn[:, k] - drawn[:, base], [0.025, 0.975])
        out[row] |= {
            measure: value[k], f"{measure} -": value[k] - value[base],
            f"{measure} low": low, f"{measure} high": high,
        }  # fmt: skip
    return pd.DataFrame.from_dict(out, orient="index")


# ------------------------------------------------------------------ what is printed


def show(found: pd.DataFrame) -> None:
    """Print a table: values, and differences from run length with their intervals."""
    shown = pd.DataFrame(index=found.index)
    for name in [column[:-2] for column in found if column.endswith(" -")]:
        shown[name] = found[name].map("{:.3f}".format)
        of = found[[f"{name} -", f"{name} low", f"{name} high"]].to_numpy()
        shown[f"{name} - length"] = [f"{d:+.3f} [{low:+.3f}, {high:+.3f}]" for d, low, high in of]
    for start in range(0, shown.shape[1], 6):
        part = shown.iloc[:, start : start + 6].replace(["nan", "+nan [+nan, +nan]"], "")
        print(part.to_string(), end="\n\n")


def control(rows: Any, logs: Logs, n_shuffles: int) -> pd.DataFrame:
    """Return mean and extremes of AUROC with outcomes shuffled within each log."""
    found: dict[str, list[float]] = {name: [] for name in rows}
    for seed in range(n_shuffles):
        rng, y = np.random.default_rng(seed), logs.y.copy()
        for one in np.unique(logs.log):
            y[logs.log == one] = rng.permutation(y[logs.log == one])
        for name, trace in traces_of(rows, logs, y, seed).items():
            judged = within(at_step(trace, None), y, logs.log)
            found[name].append(float(judged(np.ones(len(y)))))
    return pd.DataFrame(found).agg(["mean", "min", "max"]).T


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("logs", nargs="+", type=Path)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--shuffles", type=int, default=20)
    parser.add_argument("--resamples", type=int, default=2000)
    args = parser.parse_args()
    logs = load(args.logs)
    lengths = ActionSignals(["agent_turns"]).fit_transform(logs.runs).lengths
    left = [f"{(lengths >= t).sum()} at step {t}" for t in STEPS]
    print(
        f"{len(logs.y)} runs with an outcome ({int(logs.y.sum())} successes) of "
        f"{len(set(logs.task))} tasks; {', '.join(left)}"
    )
    rows = learned(logs) if args.seeds else {}
    by_seed = [traces_of(rows, logs, logs.y, seed) for seed in range(args.seeds)]
    judged = {
        name: statistics([one], logs.y, logs.log, False) for name, one in as_they_are(logs).items()
    } | {
        name: statistics([traces[name] for traces in by_seed], logs.y, logs.log, True)
        for name in rows
    }
    show(table(judged, logs, args.resamples))
    if args.shuffles and rows:
        fixed = {name: row for name, row in rows.items() if "chosen" not in name}
        print("AUROC with shuffled outcomes")
        print(control(fixed, logs, args.shuffles).round(3).to_string())


if __name__ == "__main__":
    main()
