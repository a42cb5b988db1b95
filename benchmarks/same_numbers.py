"""What the package computes on real data, as one file of numbers; and two such files compared.

    python benchmarks/same_numbers.py write FILE [--data FOLDER] [--only SECTION ...] [--splits 50]
    python benchmarks/same_numbers.py compare BEFORE AFTER [--gone PREFIX ...]

Sections: scores, calibrators, censored, stopping, comparisons, batches, runs_of_logs, reports,
reproduction.

Every number is equal to 1e-12, or it is named and the exit status is 1. A number that is in one
file only is named, too; `--gone` says which may be missing. FOLDER is that of
benchmarks/reproduce.py; what is not there is left out, and said. It takes some minutes: `--only`
takes a few of the sections. The largest is the last, the papers' tables.
"""

import contextlib
import json
import math
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import product
from numbers import Number
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from reproduce import PAPERS, Data
from shared import JUDGES, dispatch, ended_chess
from trajscore import (
    ActionSignals,
    DensityRatioEProcess,
    PrefixForecaster,
    StepConfidence,
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

TOLERANCE = 1e-12
LONG = 60  # longer arrays are summed up
FAMILIES = ("log", "brier", ("beta", 4, 2))
Numbers = Iterator[tuple[str, Any]]


def flat(value: Any, path: str) -> Numbers:
    """Yield each number of a value with its path; names and sentences are left out."""
    if isinstance(value, Number | np.generic):
        yield path, float(value)
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
        keys = [
            " ".join(map(str, key)) if isinstance(key, tuple) else str(key) for key in value.index
        ]
        return zip(keys, value, strict=True)
    if isinstance(value, pd.DataFrame | Mapping):
        return value.items()
    if isinstance(value, list | tuple | np.ndarray):
        return enumerate(value)
    return [(name, getattr(value, name)) for name in getattr(value, "__dataclass_fields__", ())]


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


def logs(data: Data) -> Iterator[tuple[str, io.Runs]]:
    """Yield each log of the folder with its runs; a log that is refused has no numbers."""
    folder = data.folder or Path("nowhere")
    if not (folder / "tau2").exists():
        raise FileNotFoundError(folder / "tau2")
    patterns = ("tau2/*.json", "tau_bench/*.json", "made_logs/*", "logprobs/*", "traces/**/*.json")
    for path in (path for pattern in patterns for path in sorted(folder.glob(pattern))):
        try:
            runs = io.read_runs(path)
        except ValueError:
            continue
        yield "/".join(path.relative_to(folder).parts), runs


def reproduction(data: Data) -> Numbers:
    """All items of the papers: each printed cell, and tables of public data."""
    for name, paper in PAPERS.items():
        for item in paper.items:
            yield f"{name}/{item.name}/items", 1
            for k, cell in enumerate(item.found(data)):
                yield f"{name}/{item.name}/{k} {cell.row} {cell.column}", cell.ours
            if item.instead:
                with contextlib.suppress(FileNotFoundError):
                    yield from flat(item.instead(data), f"{name}/{item.name}/instead")


def scores(data: Data) -> Numbers:
    X, y = ended_chess()
    for channel in X.channels:
        P = X[channel]
        for family in FAMILIES:
            yield from flat(metrics.tps_samples(y, P, score=family), f"samples/{channel}/{family}")
            table = metrics.tps_decomposition(y, P, score=family)
            yield from flat(table, f"decomposition/{channel}/{family}")
        for weights, horizon in product(("early", "uniform", "linear_front"), ("own", 60)):
            value = metrics.tps_score(y, P, weights=weights, horizon=horizon)
            yield f"weights/{channel}/{weights}/{horizon}", value
        for phi in ("weighted", "last", "mean", "min"):
            yield from flat(metrics.trajectory_diagnostics(y, P, phi=phi), f"run/{channel}/{phi}")


def calibrators(data: Data) -> Numbers:
    """Out-of-fold and new traces of each calibrator and forecaster."""
    maps = {
        "platt": calibration.PlattCrossFitCalibrator(),
        "platt_own": calibration.PlattCrossFitCalibrator(weights="linear_front", horizon="own"),
        "beta": calibration.BetaCrossFitCalibrator(),
        "isotonic": calibration.IsotonicCrossFitCalibrator(),
        "ensemble": calibration.EnsembleCrossFitCalibrator(cv=5),
        "alive": calibration.AliveRate(),
        "prefix": PrefixForecaster(),
        "running": PrefixForecaster(features="running", pooled=True, end="step"),
    }
    X, y = ended_chess()
    first = [part[:1500] for part in data.runs("hotpotqa")]
    sources = {"chess": (X[X.channels[0]], y), "hotpotqa": first}
    for name, estimator in maps.items():
        for source, (Z, outcome) in sources.items():
            yield from flat(estimator.fit_transform(Z, outcome), f"{name}/{source}/fold")
            yield from flat(estimator.fit(Z, outcome).transform(Z[:100]), f"{name}/{source}/fitted")


def censored(data: Data) -> Numbers:
    """What is known of runs that were cut off."""
    X, y = (part[:1500] for part in data.runs("hotpotqa"))
    rng = np.random.default_rng(1)
    stopped = (rng.random(len(y)) < 0.15) & (X.lengths > 2)
    seen = np.where(stopped, -1, y)
    yield from flat(censoring.tps_bounds(seen, X, 0.1, 0.9), "bounds")
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
    reason = np.where(stopped, "max_steps", np.where(y == 1, "done", "gave_up"))
    yield from flat(censoring.termination_audit(X, seen, stop_reason=reason), "audit")


def stopping(data: Data) -> Numbers:
    thresholds = {
        name: name for name in ("ville", "pac", "conformal", "pac_marginal", "bonferroni")
    }
    thresholds["end_worth"] = monitoring.Conformal(end_worth=0.3)
    thresholds["randomized"] = monitoring.Conformal("randomized")
    rules = {
        name: DensityRatioEProcess(threshold=threshold, alpha=0.1, random_state=0)
        for name, threshold in thresholds.items()
    } | {
        "all": DensityRatioEProcess(alpha=0.1, hold_out="runs", random_state=0),
        "ltt": monitoring.LearnThenTestStop(alpha=0.1, random_state=0),
        "raw": monitoring.RawVerifier(alpha=0.1),
        "calibrated": monitoring.CalibratedVerifier(alpha=0.1),
    }
    for name in JUDGES:
        X, y = data.runs(name)
        train, rest = slice(0, 1500), slice(1500, 3000)
        for kind, rule in rules.items():
            rule.fit(X[train], y[train])
            yield from flat(rule.predict(X[rest]), f"{name}/{kind}/flags")
            saved = monitoring.token_savings(rule, X[rest], y[rest])
            yield from flat(saved, f"{name}/{kind}/saved")
        live = rules["conformal"]
        yield from flat(live.transform(X[rest]), f"{name}/conformal/log_m")
        yield from flat(live.p_values(X[rest]), f"{name}/p_values")
        fleet = monitoring.FleetMonitor(random_state=0).fit(X[train], y[train])
        worse = np.where(np.arange(1500) < 500, y[rest], 0)
        fleet.update(X[rest], worse)
        yield from flat(fleet.e_values_, f"{name}/fleet")


def comparisons(data: Data) -> Numbers:
    X, y = ended_chess()
    samples = {name: metrics.tps_samples(y, X[name]) for name in X.channels}
    values = np.column_stack(list(samples.values()))
    for kind, groups in {"runs": None, "tasks": np.arange(len(y)) // 4}.items():
        options = {"groups": groups, "random_state": 0, "n_resamples": 500}
        yield from flat(inference.compare_predictors(samples, **options), f"compare/{kind}")
        yield from flat(inference.paired_bootstrap(values, **options), f"paired/{kind}")
        yield f"runs_needed/{kind}", inference.runs_needed(0.05, values[:, 0], groups=groups)
    sequence = inference.SequentialComparison(bound=14.0)
    yield from flat(sequence.update(values[:, 0], values[:, -1]).history(), "sequential")
    P = X[X.channels[0]]
    judge = np.array([trace[-1] for trace in P.to_list()])
    design = inference.LabelDesign(n_labels=100, random_state=0).fit(P, judge=judge)
    known = np.full(len(y), -1)
    known[design.query()] = y[design.query()]
    chance = design.probabilities_
    labelled = inference.label_intervals(P, known, label_probability=chance, judge=judge)
    yield from flat(labelled, "labels/intervals")
    half = len(y) // 2
    sets = [gates.RunSet(X[:half], y[:half]), gates.RunSet(X[half:], y[half:])]
    yield from flat(gates.compare(*sets).table, "gates/compare")
    yield from flat(gates.check(sets[1], sets[0]).gates, "gates/check")


def batches(data: Data) -> Numbers:
    X, y = (part[:4000] for part in data.runs("hotpotqa"))
    for kind in ("TPSAccumulator", "CalibrationAccumulator", "RankingAccumulator"):
        accumulator = getattr(streaming, kind)()
        for start in range(0, 4000, 700):
            accumulator.update(y[start : start + 700], X[start : start + 700])
        yield from flat(accumulator.compute(), kind)


def runs_of_logs(data: Data) -> Numbers:
    scorers = {
        "max": TracerScorer(),
        "additive": TracerScorer(aggregation="additive", k=0.3, w=0.4),
        "saup": tracer.SAUP(),
        "length": tracer.ChannelRisk(None, kind="count"),
    }
    for name, runs in logs(data):
        yield from summary(np.array([run.outcome for run in runs]), f"{name}/outcomes")
        for what, values in {
            "steps": [len(run.steps) for run in runs],
            "characters": [sum(len(step.text) for step in run.steps) for run in runs],
            "calls": [sum(len(step.tool_calls) for step in run.steps) for run in runs],
            "logprobs": [sum(sum(s.logprobs or ()) for s in run.steps) for run in runs],
        }.items():
            yield from summary(np.array(values), f"{name}/{what}")
        if len(runs) < 20:
            continue
        signals = TracerSignals().fit_transform(runs)
        yield from flat(signals, f"{name}/tracer")
        yield from flat(ActionSignals().fit_transform(runs), f"{name}/actions")
        for risk, scorer in scorers.items():
            with contextlib.suppress(ValueError):  # a signal that this log does not have
                values = scorer.fit(signals).score_samples(signals)
                yield from flat(np.asarray(values, dtype=float), f"{name}/risk/{risk}")
        with contextlib.suppress(ValueError):  # no step of this log states one
            yield from flat(StepConfidence().fit_transform(runs), f"{name}/confidence")


def reports(data: Data) -> Numbers:
    X, y = ended_chess()
    tasks = np.arange(len(y)) // 3
    rng = np.random.default_rng(2)
    stopped = np.where(rng.random(len(y)) < 0.2, -1, y)
    by = pd.Series(np.where(np.arange(len(y)) % 2, "odd", "even"), name="half")
    yield from of_report(evaluate(X, y), "chess")
    yield from of_report(evaluate(X, y, groups=tasks, calibrator="platt"), "chess_tasks")
    yield from of_report(evaluate(X, stopped, censored="failure"), "chess_failure")
    yield from of_report(evaluate(X, stopped, censored="drop"), "chess_drop")
    yield from of_report(evaluate(X, y, by=by), "chess_by")
    yield from of_report(evaluate(X[:60], y[:60]), "chess_60")
    for name in JUDGES:
        first = (part[:2000] for part in data.runs(name))
        yield from of_report(evaluate(*first, monitoring=True), name)
    for name, runs in logs(data):
        outcome = np.array([run.outcome for run in runs], dtype=float)
        if len(runs) < 30 or len(set(outcome[outcome >= 0])) < 2:
            continue
        signals = ActionSignals().fit_transform(runs)
        traces = calibration.cross_fit_traces(PrefixForecaster(), signals, outcome)
        yield from of_report(evaluate(traces, outcome, censored="failure"), name)


def of_report(report: Any, name: str) -> Numbers:
    """Yield the numbers of a report: its tables, and all of its JSON."""
    yield from flat(report.table, f"{name}/table")
    yield from flat(report.intervals, f"{name}/intervals")
    yield from flat(json.loads(report.to_json()), f"{name}/json")


SECTIONS: dict[str, Callable[[Data], Numbers]] = {
    "scores": scores, "calibrators": calibrators, "censored": censored, "stopping": stopping,
    "comparisons": comparisons, "batches": batches, "runs_of_logs": runs_of_logs,
    "reports": reports, "reproduction": reproduction,
}  # fmt: skip


def write(args: Any) -> None:
    warnings.simplefilter("ignore")  # they are about the data, which are the same
    (path,), data = args.files, Data(args.data, args.splits)
    numbers: dict[str, float | None] = {}
    for name in args.only or SECTIONS:
        start, before = time.perf_counter(), len(numbers)
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
    Path(path).write_text(json.dumps(numbers, indent=0))


def compare(args: Any) -> None:
    """Print what differs; exit with 1 where nobody has announced it."""
    old, new = (json.loads(Path(file).read_text()) for file in args.files)
    missing = [key for key in old if key not in new and not key.startswith(tuple(args.gone))]
    added = [key for key in new if key not in old]
    changed = [key for key in old if key in new and not same(old[key], new[key])]
    for key in changed:
        print(f"changed: {key}: {old[key]} -> {new[key]}")
    for title, keys in {"only before": missing, "only after": added}.items():
        for key in keys:
            print(f"{title}: {key}")
    equal = len(old.keys() & new.keys()) - len(changed)
    print(f"{equal:,} equal, {len(changed):,} changed")
    print(f"{len(missing):,} only before, {len(added):,} only after")
    raise SystemExit(bool(changed or missing))


def same(one: float | None, other: float | None) -> bool:
    """Whether two numbers are equal to the tolerance, relative where they are above 1."""
    if one is None or other is None:
        return one is other
    return math.isclose(one, other, rel_tol=TOLERANCE, abs_tol=TOLERANCE)


if __name__ == "__main__":
    commands = {"write": write, "compare": compare}
    dispatch(__doc__, commands, files=..., only=[], splits=50, gone=[])
