"""What the package computes on real data, as one file of numbers; and two such files compared.

    python benchmarks/same_numbers.py write FILE [--data FOLDER] [--only SECTION ...] [--splits 50]
    python benchmarks/same_numbers.py compare BEFORE AFTER [--gone PREFIX ...]

Write a file before you rewrite a part of the package, another after it, and compare the two: every
number is equal to 1e-12, or it is named and the exit status is 1. A number that is in one file only
is named, too; `--gone` says which may be missing. FOLDER is that of benchmarks/reproduce.py with,
in addition, ``tot/`` and ``winprob/``; what is not there is left out, and said. It takes some
minutes: `--only` takes a few of the sections that an unknown name lists.
"""

from __future__ import annotations

import argparse
import json
import math
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from numbers import Number
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from reproduce import PAPERS, Data
from reproduction.items import RUNS
from trajscore import (
    ActionSignals,
    DensityRatioEProcess,
    PlattCrossFitCalibrator,
    PrefixForecaster,
    StepConfidence,
    TraceAggregator,
    TracerScorer,
    TracerSignals,
    TrajectoryArray,
    calibration,
    censoring,
    evaluate,
    gates,
    inference,
    io,
    metrics,
    monitoring,
    streaming,
    tracer,
)
from trajscore.datasets import load_chess, make_trajectories

TOLERANCE = 1e-12
LONG = 60  # longer arrays are summed up
FAMILIES = ("log", "brier", ("beta", 4, 2))
Numbers = Iterator[tuple[str, Any]]


# ------------------------------------------------------------------------------ values as numbers


def flat(value: Any, path: str) -> Numbers:
    """Yield each number of a value with its path; names and sentences are left out."""
    if isinstance(value, Number | np.generic):
        yield path, value.item() if isinstance(value, np.generic) else value
    elif isinstance(value, TrajectoryArray):
        yield from summary(value.cells, path)
    elif isinstance(value, pd.Series | np.ndarray) and len(value) > LONG:
        if value.dtype.kind in "biuf":
            yield from summary(np.asarray(value), path)
    else:
        for key, part in parts(value):
            yield from flat(part, f"{path}/{key}")


def parts(value: Any) -> Iterable[tuple[Any, Any]]:
    """Return what a value holds, each with its key; nothing of a text."""
    if isinstance(value, pd.Series):
        return zip(unique_keys(value.index), value, strict=True)
    if isinstance(value, pd.DataFrame | Mapping):
        return value.items()
    if isinstance(value, list | tuple | np.ndarray):
        return enumerate(value)
    return [(name, getattr(value, name)) for name in getattr(value, "__dataclass_fields__", ())]


def unique_keys(index: pd.Index) -> list[str]:
    """Return the keys of an index as text, numbered where they repeat."""
    keys = [" ".join(map(str, k)) if isinstance(k, tuple) else str(k) for k in index]
    if len(set(keys)) < len(keys):
        return [f"{key} ({k})" for k, key in enumerate(keys)]
    return keys


def summary(values: np.ndarray, path: str) -> Numbers:
    """Yield few numbers that change when any value of a long array does, or its place."""
    values = np.asarray(values, dtype=float).ravel()
    known = values[np.isfinite(values)]
    yield f"{path}/n", len(values)
    yield f"{path}/n_finite", len(known)
    if len(known):
        yield f"{path}/mean", known.mean()
        yield f"{path}/rms", np.sqrt((known**2).mean())
        yield f"{path}/in_order", (known * np.cos(np.arange(len(known)))).mean()


# ------------------------------------------------------------------------------------------ data


class Sets:
    """The data of all sections."""

    def __init__(self, folder: Path | None, splits: int) -> None:
        self.folder = folder
        self.splits = splits

    def path(self, *parts: str) -> Path:
        """Return a path in the folder; a section without its data is left out."""
        path = (self.folder or Path("nowhere")).joinpath(*parts)
        if not path.exists():
            raise FileNotFoundError(path)
        return path

    def chess(self) -> tuple[TrajectoryArray, np.ndarray]:
        """Return the bundled games that came to their end."""
        X, y = load_chess(return_X_y=True)
        return X[y >= 0], y[y >= 0]

    def judged(self, name: str, n_runs: int) -> tuple[TrajectoryArray, np.ndarray]:
        """Return the first runs of a table of the e-valuator paper."""
        X, y = self.table("evaluator", f"{name}_w_scores_compressed.csv.gz", **RUNS)
        return X[:n_runs], y[:n_runs]

    def table(self, *parts: str, **columns: Any) -> tuple[TrajectoryArray, np.ndarray]:
        """Return runs of a CSV file with one row a step."""
        return TrajectoryArray.from_frame(pd.read_csv(self.path(*parts)), **columns)

    def logs(self) -> Iterator[tuple[str, io.Runs]]:
        """Yield each log of the folder with its runs; a log that is refused has no numbers."""
        for pattern in ("tau2/*.json", "tau_bench/*.json", "made_logs/*", "logprobs/*"):
            folder, names = pattern.split("/")
            yield from self.readable(self.path(folder).glob(names))
        traces = self.path("traces").rglob("*.json")
        yield from self.readable(path for path in traces if "chatml" not in path.name)

    def readable(self, paths: Iterable[Path]) -> Iterator[tuple[str, io.Runs]]:
        """Yield each log that is read, by folder and name, with its runs."""
        for path in sorted(paths):
            try:
                runs = io.read_runs(path)
            except ValueError:
                continue
            yield "/".join(path.relative_to(self.folder).parts), runs


# -------------------------------------------------------------------------------------- sections


def reproduction(data: Sets) -> Numbers:
    """All items of the papers: each printed cell, and tables of public data."""
    papers = Data(data.folder, data.splits)
    for name, paper in PAPERS.items():
        for item in paper.items:
            yield f"{name}/{item.name}/items", 1
            for k, cell in enumerate(item.cells(papers) if item.cells else []):
                yield f"{name}/{item.name}/{k} {cell.row} {cell.column}", cell.ours
            if item.instead:
                yield from flat(item.instead(papers), f"{name}/{item.name}/instead")


def scores(data: Sets) -> Numbers:
    """Metrics of traces, in each family and under each schedule."""
    X, y = data.chess()
    for channel in X.channels:
        P = X[channel]
        for family in FAMILIES:
            yield f"tps/{channel}/{family}", metrics.tps_score(y, P, score=family)
            yield from flat(metrics.tps_samples(y, P, score=family), f"samples/{channel}/{family}")
            yield from flat(metrics.step_profile(y, P, score=family), f"profile/{channel}/{family}")
            table = metrics.tps_decomposition(y, P, score=family)
            yield from flat(table, f"decomposition/{channel}/{family}")
        for weights in ("early", "uniform", "exponential_front", "linear_back", "linear_front"):
            own = metrics.tps_score(y, P, weights=weights, horizon="own")
            fixed = metrics.tps_score(y, P, weights=weights, horizon=60)
            yield f"weights/{channel}/{weights}/own", own
            yield f"weights/{channel}/{weights}/60", fixed
        for phi in ("weighted", "last", "mean", "min"):
            yield from flat(metrics.trajectory_diagnostics(y, P, phi=phi), f"run/{channel}/{phi}")
        for part in (None, "early", "middle", "late"):
            yield f"s_ece/{channel}/{part}", metrics.step_calibration_error(y, P, part=part)
        yield from flat(metrics.tps_sensitivity(y, P), f"sensitivity/{channel}")
        yield from flat(metrics.step_profile(y, P), f"profile/{channel}")
    rng = np.random.default_rng(0)
    stopped = np.where(rng.random(len(y)) < 0.2, -1, y)
    q_z = rng.random(len(y))
    P = X[X.channels[0]]
    yield "censored", metrics.censored_tps_score(stopped, P, q_z=q_z)
    yield from flat(
        metrics.tps_samples(np.where(stopped == -1, q_z, stopped), P), "censored_samples"
    )
    proba = rng.dirichlet(np.ones(4), 300)
    answer = rng.integers(0, 4, 300)
    for n in (0, 1, 2):
        yield f"ecuas/{n}", metrics.ecuas_score(answer, proba, n=n)
        yield f"ecuas_normalised/{n}", metrics.ecuas_score(answer, proba, n=n, normalize=True)
        correct = proba.argmax(axis=1) == answer
        yield f"ecuas_confidence/{n}", metrics.ecuas_from_confidence(correct, proba.max(1), n=n)
    yield "aurc", metrics.aurc(correct, proba.max(1))
    answers = metrics.Answers.from_confidence(correct, proba.max(1))
    yield "augrc", answers.metrics()["AUGRC"]
    cost = 1 - np.eye(4)
    decisions = np.column_stack([cost, np.full(4, 0.3)])
    yield "u_max", metrics.Answers.from_decisions([1], [0.1], u_max=decisions).scale.u_max


def calibrators(data: Sets) -> Numbers:
    """Out-of-fold and new traces of each calibrator and forecaster."""
    maps = {
        "platt": PlattCrossFitCalibrator(),
        "platt_own": PlattCrossFitCalibrator(weights="linear_front", horizon="own"),
        "beta": calibration.BetaCrossFitCalibrator(),
        "isotonic": calibration.IsotonicCrossFitCalibrator(),
        "ensemble": calibration.EnsembleCrossFitCalibrator(cv=5),
        "alive": calibration.AliveRate(),
        "prefix": PrefixForecaster(),
        "running": PrefixForecaster(features="running", pooled=True, end="step"),
    }
    X, y = data.chess()
    judged, solved = data.judged("hotpotqa", 1500)
    for name, estimator in maps.items():
        for source, (Z, outcome) in {
            "chess": (X[X.channels[0]], y),
            "hotpotqa": (judged, solved),
        }.items():
            yield from flat(estimator.fit_transform(Z, outcome), f"{name}/{source}/fold")
            yield from flat(estimator.fit(Z, outcome).transform(Z[:100]), f"{name}/{source}/fitted")
    yield from flat(
        calibration.cross_fit_traces(PrefixForecaster(), judged, solved, cv=5), "cross_fit"
    )
    for phi in ("last", "mean", "min", "weighted"):
        yield from flat(TraceAggregator(phi=phi).fit(judged).predict_proba(judged), f"phi/{phi}")


def squared(X: TrajectoryArray) -> TrajectoryArray:
    """Return other forecasts of the same runs."""
    return TrajectoryArray(X.cells**2, X.lengths, ids=X.ids)


def censored(data: Sets) -> Numbers:
    """What is known of runs that were cut off."""
    X, y = data.judged("hotpotqa", 1500)
    rng = np.random.default_rng(1)
    stopped = (rng.random(len(y)) < 0.15) & (X.lengths > 2)
    seen = np.where(stopped, -1, y)
    yield from flat(censoring.tps_bounds(seen, X, 0.1, 0.9), "bounds")
    yield from flat(censoring.break_even_q(seen, X, squared(X)), "break_even")
    hazard = censoring.StopHazard().fit(X, stopped)
    yield "ipcw", censoring.ipcw_tps_score(seen, X, hazard)
    yield "doubly_robust", censoring.doubly_robust_tps_score(seen, X, hazard)
    q_z = np.where(stopped, 0.4, 0.0)
    interval = censoring.censored_tps_interval(seen, X, q_z=q_z, n_resamples=200, random_state=0)
    yield from flat(interval, "interval")
    lengths = np.maximum(1, X.lengths // 2)
    yield from flat(censoring.censoring_shift(y, X, lengths, q_z=0.5), "shift")
    yield from flat(censoring.practice_shift(X, seen), "practice")
    yield from flat(censoring.administrative_stop_test(X, seen, stopped=stopped), "stop_test")
    q = rng.random(300)
    outcome = (rng.random(300) < q).astype(int)
    yield from flat(censoring.conditional_mean_test(outcome, q), "mean_test")
    reason = np.where(stopped, "max_steps", np.where(y == 1, "done", "gave_up"))
    yield from flat(censoring.termination_audit(X, seen, stop_reason=reason), "audit")


def stopping(data: Sets) -> Numbers:
    """Stopping rules on held-out runs, and a live monitor."""
    for name in ("hotpotqa", "gsm8k"):
        X, y = data.judged(name, 3000)
        train, rest = slice(0, 1500), slice(1500, 3000)
        for threshold in ("ville", "pac", "conformal", "pac_marginal", "bonferroni"):
            process = DensityRatioEProcess(threshold=threshold, alpha=0.1, random_state=0)
            process.fit(X[train], y[train])
            yield from flat(process.predict(X[rest]), f"{name}/{threshold}/flags")
            yield from flat(process.transform(X[rest]), f"{name}/{threshold}/log_m")
        rules = {
            "end_worth": DensityRatioEProcess(alpha=0.1, end_worth=0.3, random_state=0),
            "randomized": DensityRatioEProcess(alpha=0.1, ties="randomized", random_state=0),
            "all": DensityRatioEProcess(alpha=0.1, hold_out="runs", random_state=0),
            "ltt": monitoring.LearnThenTestStop(alpha=0.1, random_state=0),
            "raw": monitoring.RawVerifier(alpha=0.1),
            "calibrated": monitoring.CalibratedVerifier(alpha=0.1),
        }
        for kind, rule in rules.items():
            rule.fit(X[train], y[train])
            yield from flat(rule.predict(X[rest]), f"{name}/{kind}/flags")
            yield from flat(
                monitoring.token_savings(rule, X[rest], y[rest]), f"{name}/{kind}/saved"
            )
        table = monitoring.split_report(
            DensityRatioEProcess(alpha=[0.05, 0.2]), X[train], y[train], n_splits=3, random_state=0
        )
        yield from flat(table, f"{name}/splits")
        live = DensityRatioEProcess(alpha=0.1, random_state=0).fit(X[train], y[train])
        yield from flat(live.p_values(X[rest]), f"{name}/p_values")
        monitor = live.monitor()
        for k in range(40):
            for value in X[1500 + k]:
                decision = monitor.update(value, str(k))
            yield f"{name}/live/{k}", decision.log_e_value
        fleet = monitoring.FleetMonitor(random_state=0).fit(X[train], y[train])
        worse = np.where(np.arange(1500) < 500, y[rest], 0)
        fleet.update(X[rest], worse)
        yield from flat(fleet.e_values_, f"{name}/fleet")


def comparisons(data: Sets) -> Numbers:
    """Intervals, tests and numbers of runs; gates."""
    X, y = data.chess()
    samples = {name: metrics.tps_samples(y, X[name]) for name in X.channels}
    values = np.column_stack(list(samples.values()))
    tasks = np.arange(len(y)) // 4
    for kind, groups in {"runs": None, "tasks": tasks}.items():
        options = {"groups": groups, "random_state": 0, "n_resamples": 500}
        yield from flat(inference.compare_predictors(samples, **options), f"compare/{kind}")
        yield from flat(inference.paired_bootstrap(values, **options), f"paired/{kind}")
        yield f"runs_needed/{kind}", inference.runs_needed(0.05, values[:, 0], groups=groups)
    sequence = inference.SequentialComparison(bound=14.0)
    yield from flat(sequence.update(values[:, 0], values[:, -1]).history(), "sequential")
    design = inference.LabelDesign(n_labels=100, random_state=0)
    judge = X[X.channels[0]].to_list()
    judge = np.array([trace[-1] for trace in judge])
    design.fit(X[X.channels[0]], judge=judge)
    yield from flat(design.probabilities_, "labels/probability")
    chosen = np.zeros(len(y), dtype=bool)
    chosen[design.query()] = True
    intervals = inference.label_intervals(
        X[X.channels[0]],
        np.where(chosen, y, -1),
        label_probability=design.probabilities_,
        judge=judge,
    )
    yield from flat(intervals, "labels/intervals")
    half = len(y) // 2
    sets = [gates.RunSet(X[:half], y[:half]), gates.RunSet(X[half:], y[half:])]
    yield from flat(gates.compare(*sets).table, "gates/compare")
    yield from flat(gates.check(sets[1], sets[0]).gates, "gates/check")


def batches(data: Sets) -> Numbers:
    """Accumulators over batches."""
    X, y = data.judged("hotpotqa", 4000)
    accumulators = [
        streaming.TPSAccumulator(),
        streaming.CalibrationAccumulator(),
        streaming.RankingAccumulator(),
    ]
    for accumulator in accumulators:
        for start in range(0, 4000, 700):
            accumulator.update(y[start : start + 700], X[start : start + 700])
        yield from flat(accumulator.compute(), type(accumulator).__name__)


def runs_of_logs(data: Sets) -> Numbers:
    """Runs of logs, their confidences and signals, and the risk that TRACER sees."""
    for name, runs in data.logs():
        yield f"{name}/runs", len(runs)
        yield from summary(np.array([run.outcome for run in runs]), f"{name}/outcomes")
        for what, values in {
            "steps": [len(run.steps) for run in runs],
            "characters": [sum(len(step.text) for step in run.steps) for run in runs],
            "calls": [sum(len(step.tool_calls) for step in run.steps) for run in runs],
            "results": [sum(len(s.observation or "") for s in run.steps) for run in runs],
            "logprobs": [sum(sum(s.logprobs or ()) for s in run.steps) for run in runs],
        }.items():
            yield from summary(np.array(values), f"{name}/{what}")
        table = io.meta(runs)
        yield f"{name}/meta", len(table.columns)
        yield (
            f"{name}/stopped",
            int((table["stop_kind"] == "administrative").sum()) if ("stop_kind" in table) else -1,
        )
        if len(runs) < 20:
            continue
        for kind, transformer in {"tracer": TracerSignals(), "actions": ActionSignals()}.items():
            signals = transformer.fit_transform(runs)
            yield from flat(signals, f"{name}/{kind}")
            if kind == "tracer":
                scorers = {
                    "max": TracerScorer(),
                    "additive": TracerScorer(aggregation="additive", k=0.3, w=0.4),
                    "saup": tracer.SAUP(),
                    "calls": tracer.ChannelRisk("tool_calls", kind="count"),
                    "length": tracer.ChannelRisk(None, kind="count"),
                }
                for risk, scorer in scorers.items():
                    try:
                        risks = scorer.fit(signals).score_samples(signals)
                    except ValueError:
                        continue
                    yield from flat(np.asarray(risks, dtype=float), f"{name}/risk/{risk}")
        try:
            yield from flat(StepConfidence().fit_transform(runs), f"{name}/confidence")
        except ValueError:  # no step of this log states one
            yield f"{name}/confidence/n", 0


def reports(data: Sets) -> Numbers:
    """Reports as JSON: numbers at any depth."""
    yield from of_report(evaluate(*load_chess(return_X_y=True)), "chess_all")
    X, y = data.chess()
    tasks = np.arange(len(y)) // 3
    rng = np.random.default_rng(2)
    stopped = np.where(rng.random(len(y)) < 0.2, -1, y)
    yield from of_report(evaluate(X, y), "chess")
    yield from of_report(evaluate(X, y, groups=tasks, calibrator="platt"), "chess_tasks")
    yield from of_report(evaluate(X, stopped, censored="failure"), "chess_failure")
    yield from of_report(evaluate(X, stopped, censored="drop"), "chess_drop")
    by = pd.Series(np.where(np.arange(len(y)) % 2, "odd", "even"), name="half")
    yield from of_report(evaluate(X, y, by=by), "chess_by")
    yield from of_report(evaluate(X[:60], y[:60]), "chess_60")
    for name in ("hotpotqa", "gsm8k"):
        judged, solved = data.judged(name, 2000)
        yield from of_report(evaluate(judged, solved, monitoring=True), name)
    columns = {"id": "run", "step": "step", "outcome": "solved"}
    for parts in (("tot", "game24_gpt4.csv.gz"), ("winprob", "march_madness.csv.gz")):
        frame = pd.read_csv(data.path(*parts))
        values = [name for name in frame if frame[name].dtype == float]
        if {*columns.values()} <= {*frame.columns}:
            Z, outcome = TrajectoryArray.from_frame(frame, value=values, **columns)
            yield from of_report(evaluate(Z, outcome), parts[0])
    for name, runs in data.logs():
        outcome = np.array([run.outcome for run in runs], dtype=float)
        if len(runs) < 30 or len(set(outcome[outcome >= 0])) < 2:
            continue
        signals = ActionSignals().fit_transform(runs)
        traces = calibration.cross_fit_traces(PrefixForecaster(), signals, outcome)
        yield from of_report(evaluate(traces, outcome, censored="failure"), name)
    X, y = make_trajectories(300, budget=6, random_state=0, return_X_y=True)
    yield from of_report(evaluate(X, y), "made")


def of_report(report: Any, name: str) -> Numbers:
    """Yield the numbers of a report: its tables, and all of its JSON."""
    yield from flat(report.table, f"{name}/table")
    yield from flat(report.intervals, f"{name}/intervals")
    yield from flat(json.loads(report.to_json()), f"{name}/json")


SECTIONS: dict[str, Callable[[Sets], Numbers]] = {
    one.__name__: one
    for one in (
        scores, calibrators, censored, stopping, comparisons, batches, runs_of_logs, reports,
        reproduction,
    )
}  # fmt: skip


# ------------------------------------------------------------------------------ write and compare


def write(path: Path, data: Sets, only: list[str]) -> None:
    """Write the numbers of sections as JSON."""
    numbers: dict[str, float | None] = {}
    for name in only or SECTIONS:
        start = time.perf_counter()
        before = len(numbers)
        try:
            for key, value in SECTIONS[name](data):
                full = f"{name}/{key}"
                if full in numbers:
                    raise ValueError(f"two numbers are called {full}")
                numbers[full] = None if math.isnan(value) else value
        except FileNotFoundError as error:
            print(f"{name}: left out from here on, {error} is not there")
        seconds = time.perf_counter() - start
        print(f"{name}: {len(numbers) - before:,} numbers, {seconds:.0f} s", flush=True)
    path.write_text(json.dumps(numbers, indent=0))


def compare(before: Path, after: Path, gone: list[str]) -> int:
    """Print what differs, and return how many differences nobody has announced."""
    old, new = (json.loads(path.read_text()) for path in (before, after))
    missing = [key for key in old if key not in new and not key.startswith(tuple(gone))]
    added = [key for key in new if key not in old]
    changed = [key for key in old if key in new and not same(old[key], new[key])]
    for key in changed:
        print(f"changed: {key}: {old[key]} -> {new[key]}")
    for title, keys in {"only before": missing, "only after": added}.items():
        for key in keys:
            print(f"{title}: {key}")
    equal = len(old.keys() & new.keys()) - len(changed)
    print(
        f"{equal:,} equal, {len(changed):,} changed, {len(missing):,} only before, "
        f"{len(added):,} only after"
    )
    return len(changed) + len(missing)


def same(one: float | None, other: float | None) -> bool:
    """Whether two numbers are equal to the tolerance, relative where they are above 1."""
    if one is None or other is None or one == other:
        return one == other
    return abs(one - other) <= TOLERANCE * max(1.0, abs(one))


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    writing = commands.add_parser("write")
    writing.add_argument("file", type=Path)
    writing.add_argument("--data", type=Path, help="folder of public data")
    writing.add_argument("--only", nargs="+", choices=SECTIONS, default=[])
    writing.add_argument("--splits", type=int, default=50, help="of the e-valuator paper")
    comparing = commands.add_parser("compare")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    comparing.add_argument("--gone", nargs="+", default=[], help="prefixes of what was deleted")
    arguments = parser.parse_args()
    if arguments.command == "compare":
        raise SystemExit(bool(compare(arguments.before, arguments.after, arguments.gone)))
    warnings.simplefilter("ignore")  # they are about the data, which are the same
    write(arguments.file, Sets(arguments.data, arguments.splits), arguments.only)


if __name__ == "__main__":
    main()
