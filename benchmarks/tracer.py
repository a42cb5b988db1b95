"""TRACER and actions on public logs, beside what costs nothing: the length of the run.

    python benchmarks/tracer.py risk        LOG [LOG ...] [--resamples 2000]
    python benchmarks/tracer.py definitions LOG [LOG ...] [--shuffles 20]
    python benchmarks/tracer.py actions     LOG [LOG ...] [--seeds 5] [--shuffles 20]

LOG is any log that trajscore.io reads. AUROC compares two runs of the same log only. Intervals are
95% bootstrap intervals over tasks; those of differences are paired, and take forecasts as they are.

"risk": AUROC of TRACER with its usual parameters in each log, and tuned on the runs of other tasks.

"definitions": the same by whose definition of the signals is taken, and the largest AUROC over a
grid of parameters on the runs that it was looked for on: with outcomes, and with shuffled ones.

"actions": forecasters learn from all logs together, out of fold by task; means over the seeds of
the folds. At step t pairs are of one fold, as what differs between folds at one step is the fit.
TPS is held against the forecast that is learned from length. The control has outcomes that are
shuffled within each log.
"""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import mannwhitneyu
from sklearn.base import BaseEstimator, clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import ParameterGrid, StratifiedGroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from reproduction.agent_tracer import AgentTracerSignals
from reproduction.tracer import last_value
from shared import dispatch, show
from trajscore import (
    ActionSignals,
    PrefixForecaster,
    TracerScorer,
    TracerSignals,
    TrajectoryArray,
    io,
)
from trajscore.calibration import cross_fit_traces
from trajscore.core.ranking import auroc_within
from trajscore.core.statistics import MeanOfRuns
from trajscore.core.weights import as_step_weights, run_sums
from trajscore.inference import bootstrap
from trajscore.tracer import ChannelRisk

Floats = NDArray[np.float64]
Statistic = Callable[[Floats], Floats]

STEPS = (4, 6, 10, 20)
LENGTH = "run length"
END_KNOWN = ", end known"
DEFINITIONS = {
    "trajscore": TracerSignals,
    "paper": partial(TracerSignals, definition="paper"),
    "agent-tracer": AgentTracerSignals,
}
WEIGHTS = (0.0, 0.5, 1.0, 2.0, 4.0)
GRID = ParameterGrid({
    "alpha": WEIGHTS, "beta": WEIGHTS, "gamma": WEIGHTS,
    "k": (0.05, 0.1, 0.2, 0.3, 0.5, 1.0), "w": (0.0, 0.1, 0.3),
})  # fmt: skip


class Logs(NamedTuple):
    """Runs with their outcomes, tasks and logs."""

    runs: list[io.Run]
    y: NDArray[Any]
    task: NDArray[Any]
    log: NDArray[Any]

    @classmethod
    def read(cls, paths: Sequence[str], unobserved: bool = True) -> Self:
        """Read logs; the name of the log goes before the ids of its runs."""
        runs, log = [], []
        for place, path in enumerate(map(Path, paths)):
            for run in io.read_runs(path):
                run.id = f"{path.stem}/{run.id}"
                if unobserved or run.outcome != -1:
                    runs.append(run)
                    log.append(place)
        task = np.array([str(run.task) for run in runs])
        return cls(runs, io.outcomes(runs), task, np.array(log))


def within(confidence: Floats, y: NDArray[Any], stratum: NDArray[Any]) -> Statistic:
    """Return AUROC over pairs of one stratum, of the runs with a confidence and an outcome."""
    rows = np.flatnonzero(~np.isnan(confidence) & (y != -1))
    success = y.astype(np.float64)

    def of_counts(counts: Floats) -> float:
        drawn = np.repeat(rows, counts[rows].astype(np.int64))
        return auroc_within(confidence[drawn], success[drawn], stratum[drawn])[0]

    return lambda counts: np.apply_along_axis(of_counts, -1, counts)


def values_at(trace: TrajectoryArray, t: int) -> Floats:
    """Return the value of each run after step t, missing where it is shorter."""
    return trace.padded().reshape(len(trace), -1)[:, t - 1]


def after_step(trace: TrajectoryArray, y: NDArray[Any], log: NDArray[Any], t: int) -> Statistic:
    """Return AUROC after step t over pairs of one log and one fold."""
    parts = {"log": log, "fold": np.asarray(trace.meta.get("cross_fit_fold", 0))}
    one_fold = pd.DataFrame(parts).groupby(["log", "fold"]).ngroup().to_numpy()
    return within(values_at(trace, t), y, one_fold)


def table(rows: dict[str, dict[str, Statistic]], logs: Logs, n_resamples: int) -> pd.DataFrame:
    """Return each measure of each row, and its difference from that of length with an interval."""
    cells = [(row, measure) for row, of in rows.items() for measure in of]

    def everything(counts: Floats) -> Floats:
        return np.stack([rows[row][measure](counts) for row, measure in cells], axis=-1)

    value = everything(np.ones(len(logs.y)))
    drawn = bootstrap(
        everything, len(logs.y), n_resamples=n_resamples, groups=logs.task, random_state=0
    )
    out: dict[str, dict[str, str]] = {row: {} for row in rows}
    for k, (row, measure) in enumerate(cells):
        learned = f"{LENGTH}, learned" + END_KNOWN * row.endswith(END_KNOWN)
        base = cells.index((learned if measure == "TPS" else LENGTH, measure))
        out[row][measure] = with_interval(value[k], drawn[:, k], "{:.3f}")
        difference = with_interval(value[k] - value[base], drawn[:, k] - drawn[:, base], "{:+.3f}")
        out[row][f"{measure} - length"] = difference
    return pd.DataFrame.from_dict(out, orient="index")


def with_interval(value: float, replicates: Floats, form: str) -> str:
    """Write a value and the ends of its 95% percentile interval."""
    low, high = np.nanquantile(replicates, [0.025, 0.975])
    return f"{form} [{form}, {form}]".format(value, low, high)


class InDeviations(BaseEstimator):
    """Risk in standard deviations of that of the fitted runs: folds have risks on other scales."""

    def __init__(self, scorer: Any) -> None:
        self.scorer = scorer

    def fit(self, X: TrajectoryArray, y: NDArray[Any]) -> Self:
        known = y != -1
        self.scorer_ = clone(self.scorer).fit(X[known], y[known])
        risk = self.scorer_.score_samples(X[known])
        self.center_, self.scale_ = np.nanmean(risk), np.nanstd(risk) or 1.0
        return self

    def transform(self, X: TrajectoryArray) -> TrajectoryArray:
        risk = self.scorer_.transform(X).cells.ravel()
        return X.with_cells((risk - self.center_) / self.scale_, channels=("risk",))


def risk(args: Any) -> None:
    tuned = InDeviations(TracerScorer(tune="pairwise_logistic", tau=0.2))
    for path in args.logs:
        logs = Logs.read([path])
        S = TracerSignals().fit_transform(logs.runs)
        risks = {
            "TRACER": TracerScorer().fit_transform(S),
            # a splitter balances the outcomes of all runs, the unobserved ones among the failures
            "TRACER, tuned": cross_fit_traces(
                tuned, S, logs.y, groups=logs.task, cv=StratifiedGroupKFold(5)
            ),
            LENGTH: ChannelRisk(None, kind="count").fit_transform(S),
        }
        rows = {
            name: {"AUROC": within(-last_value(of), logs.y, logs.log)} for name, of in risks.items()
        }
        known = int((logs.y != -1).sum())
        title = (
            f"{path}: {known} runs with an outcome of {len(logs.y)}, {len(set(logs.task))} tasks"
        )
        show(title, table(rows, logs, args.resamples))


def auroc(y: NDArray[Any], risk: Floats) -> Floats:
    """Return AUROC of each row of risks, of shape (..., n_runs)."""
    failed, won = risk[..., y == 0], risk[..., y != 0]
    pairs = mannwhitneyu(failed, won, axis=-1, method="asymptotic").statistic
    return pairs / (failed.shape[-1] * won.shape[-1])


def definitions(args: Any) -> None:
    for path in args.logs:
        runs = sorted(io.read_runs(path), key=lambda run: run.id)
        runs = [run for run in runs if run.outcome != -1]
        y, row = io.outcomes(runs), {}
        for name, make in DEFINITIONS.items():
            S = make().fit_transform(runs)
            row[name] = float(auroc(y, TracerScorer().fit(S).score_samples(S)))
        S = TracerSignals().fit_transform(runs)
        risks = np.array([TracerScorer(**one).fit(S).score_samples(S) for one in GRID])
        rng = np.random.default_rng(0)
        shuffled = [auroc(rng.permutation(y), risks).max() for _ in range(args.shuffles)]
        row |= {"largest": auroc(y, risks).max(), "shuffled": np.mean(shuffled)}
        show(f"{path}: {len(y)} runs with an outcome; AUROC, largest of {len(risks)}", {"": row})


def learned(logs: Logs) -> dict[str, tuple[Any, TrajectoryArray]]:
    """Return what is learned: forecasters, and the signals that each learns from."""
    actions = ActionSignals().fit_transform(logs.runs)
    length = ChannelRisk(None, kind="count").fit_transform(actions)
    rows = {}
    for end, said in ((None, ""), ("step", END_KNOWN)):
        model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=500))
        forecaster = PrefixForecaster(model, features="last", last=1, pooled=True, end=end)
        rows |= {f"{LENGTH}, learned{said}": (forecaster, length)}
        rows |= {f"actions{said}": (forecaster, actions)}
    return rows


def as_they_are(logs: Logs) -> dict[str, TrajectoryArray]:
    """Return risks that are not learned, as confidences."""
    signals = TracerSignals().fit_transform(logs.runs)
    length = ChannelRisk(None, kind="count").fit_transform(signals)
    tracer = TracerScorer().fit_transform(signals)
    # nothing recorded is no risk
    return {
        LENGTH: length.with_cells(-length.cells),
        "TRACER": tracer.with_cells(-np.nan_to_num(tracer.cells)),
    }


def traces_of(rows: Any, logs: Logs, y: NDArray[Any], seed: int) -> dict[str, TrajectoryArray]:
    """Return the forecasts of each run by forecasters that were fitted on other tasks."""
    folds = StratifiedGroupKFold(5, shuffle=True, random_state=seed)
    return {
        name: cross_fit_traces(model, X, y, groups=logs.task, cv=folds)
        for name, (model, X) in rows.items()
    }


def measures(traces: list[TrajectoryArray], logs: Logs) -> dict[str, Statistic]:
    """Return AUROC at the end and at fixed steps."""
    _, y, _, log = logs
    of = {"AUROC": [within(last_value(trace), y, log) for trace in traces]}
    of |= {f"step {t}": [after_step(trace, y, log, t) for trace in traces] for t in STEPS}

    def mean_of(statistics: list[Statistic]) -> Statistic:
        return lambda counts: np.mean([one(counts) for one in statistics], axis=0)

    return {name: mean_of(statistics) for name, statistics in of.items()}


def actions(args: Any) -> None:
    logs = Logs.read(args.logs, unobserved=False)
    _, y, task, log = logs
    rows = learned(logs)
    by_seed = [traces_of(rows, logs, y, seed) for seed in range(args.seeds)]
    judged = {name: measures([one], logs) for name, one in as_they_are(logs).items()}
    for name in rows:
        traces = [of[name] for of in by_seed]
        sums = [run_sums(y, trace, "log", as_step_weights()) for trace in traces]
        total = np.mean([one.total for one in sums], axis=0)
        judged[name] = measures(traces, logs) | {"TPS": MeanOfRuns(total, divisor=sums[0].divisor)}
    lengths = traces[0].lengths
    left = ", ".join(f"{(lengths >= t).sum()} at step {t}" for t in STEPS)
    title = f"{len(y)} runs ({int(y.sum())} successes) of {len(set(task))} tasks; {left}"
    show(title, table(judged, logs, args.resamples).T)
    aurocs = []
    for seed in range(args.shuffles):
        rng, mixed = np.random.default_rng(seed), y.copy()
        for one in np.unique(log):
            mixed[log == one] = rng.permutation(mixed[log == one])
        for name, trace in traces_of(rows, logs, mixed, seed).items():
            of = {
                "at the end": within(last_value(trace), mixed, log),
                "step 15, of one fold": after_step(trace, mixed, log, 15),
                "step 15, all pairs": within(values_at(trace, 15), mixed, log),
            }
            values = {measure: float(one(np.ones(len(y)))) for measure, one in of.items()}
            aurocs.append({"": name} | values)
    if aurocs:
        every = pd.DataFrame(aurocs).groupby("", sort=False).agg(["mean", "min", "max"])
        show("AUROC with shuffled outcomes", every)


if __name__ == "__main__":
    commands = {"risk": risk, "definitions": definitions, "actions": actions}
    dispatch(__doc__, commands, logs=..., seeds=5, shuffles=20, resamples=2000)
