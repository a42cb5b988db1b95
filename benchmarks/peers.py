"""Time beside the nearest packages, on the same data, and exponents of what takes many runs.

    python benchmarks/peers.py rows [--runs 10000] [--code FOLDER]
    python benchmarks/peers.py read --files FILE ...
    python benchmarks/peers.py scaling [--largest 100000]

A ratio above 1 is in our favour. Both sides are called in turn, in one process, and the medians of
CPU seconds of five calls are compared. What is not installed is named and left out; FOLDER holds
the source of e-valuator. "alike" is the same work, with our weights and folds; "bare" is one call
of the other package, which promises less. The values of both sides are held against each other
where both mean the same. Of scaling, seconds and peak memory come from a process for each size.
"""

import gzip
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score

from scale import make_runs
from shared import dispatch, show
from trajscore import DensityRatioEProcess, PlattCrossFitCalibrator, TracerSignals, evaluate, io
from trajscore.calibration import IsotonicCrossFitCalibrator
from trajscore.inference import compare_predictors
from trajscore.metrics import (
    ecuas_from_confidence,
    step_calibration_error,
    tps_decomposition,
    tps_samples,
    trajectory_diagnostics,
)
from trajscore.monitoring import Conformal, FleetMonitor

Call = Callable[[], Any]
_SIZES = (1_000, 10_000, 100_000)
_TURN = "Please find flight {} to Oslo, and tell me what it costs."


def in_turn(*calls: Call, repeats: int = 5) -> list[float]:
    """Return the median CPU seconds of each call; one round before is not counted."""
    seconds: list[list[float]] = [[] for _ in calls]
    for _ in range(repeats + 1):
        for spent, call in zip(seconds, calls, strict=True):
            start = time.process_time()
            call()
            spent.append(time.process_time() - start)
    return [float(np.median(spent[1:])) for spent in seconds]


def row_of(name: str, package: str, ours: Call, theirs: Call, *, same: bool = False) -> dict:
    """Return a row of the table; `same` results must be equal."""
    if same:
        np.testing.assert_allclose(ours(), theirs(), rtol=1e-9, err_msg=name)
    a, b = in_turn(ours, theirs)
    return {"row": name, "beside": package, "ours": a * 1e3, "theirs": b * 1e3, "ratio": b / a}


def calibration_rows(n: int) -> Iterator[dict]:
    """Maps of three fits, with what is out of fold, and scikit-learn's: the same, and one alone."""
    traces, y = make_runs(n, predictors=("judge",))
    X = traces["judge"]
    p, label = X.cells, np.repeat(y, X.lengths)
    weight = 1 / np.sqrt(np.arange(1, len(p) + 1) - np.repeat(X.offsets[:-1], X.lengths))
    z = np.log(p / (1 - p))[:, None]
    fold = np.repeat(np.arange(len(y)) % 2, X.lengths)

    def platt() -> np.ndarray:
        model, out = LogisticRegression(), np.empty(len(p))
        for k in range(2):
            model.fit(z[fold != k], label[fold != k], weight[fold != k])
            out[fold == k] = model.predict_proba(z[fold == k])[:, 1]
        model.fit(z, label, weight)
        return out

    def isotonic() -> np.ndarray:
        model, out = IsotonicRegression(out_of_bounds="clip"), np.empty(len(p))
        for k in range(2):
            model.fit(p[fold != k], label[fold != k], weight[fold != k])
            out[fold == k] = model.predict(p[fold == k])
        model.fit(p, label, weight)
        return out

    ours = {"Platt": PlattCrossFitCalibrator(), "isotonic": IsotonicCrossFitCalibrator()}
    bare = {
        "Platt": lambda: LogisticRegression().fit(z, label),
        "isotonic": lambda: IsotonicRegression().fit(p, label),
    }
    for name, alike in {"Platt": platt, "isotonic": isotonic}.items():
        call = lambda model=ours[name]: model.fit_transform(X, y)  # noqa: E731
        yield row_of(f"{name}, alike", "scikit-learn", call, alike)
        yield row_of(f"{name}, bare", "scikit-learn", call, bare[name])


def metric_rows(n: int) -> Iterator[dict]:
    """Scores of one forecast a run."""
    rng = np.random.default_rng(0)
    p = rng.beta(2, 2, n)
    y = (rng.random(n) < p).astype(int)
    X = p[:, None]
    loss = lambda: -tps_samples(y, X).mean()  # noqa: E731
    yield row_of("log loss", "scikit-learn", loss, lambda: log_loss(y, p), same=True)
    brier = lambda: -tps_samples(y, X, score="brier").mean()  # noqa: E731
    yield row_of("Brier score", "scikit-learn", brier, lambda: brier_score_loss(y, p), same=True)
    five = lambda: trajectory_diagnostics(y, X)  # noqa: E731
    yield row_of("AUROC (ours with four others)", "scikit-learn", five, lambda: roc_auc_score(y, p))
    d = rng.normal(0.1, 1, 2_000)
    pair = {"a": d, "b": np.zeros(len(d))}
    interval = lambda: compare_predictors(pair, random_state=0)  # noqa: E731
    options = {"n_resamples": 10_000, "rng": np.random.default_rng(0)}
    for method in ("BCa", "percentile"):
        yield row_of(
            f"paired mean, studentised, beside {method}", "scipy", interval,
            lambda m=method: stats.bootstrap((d,), np.mean, method=m, batch=500, **options),
        )  # fmt: skip

    def threshold() -> float:
        limit = Conformal()
        limit.fit(p, np.arange(n), 0, np.array([0.1]), 1)
        return limit.log_threshold(0.1)

    level = np.ceil(0.9 * (n + 1)) / n
    quantile = lambda: np.quantile(p, level, method="inverted_cdf")  # noqa: E731
    yield row_of("conformal threshold", "NumPy's quantile", threshold, quantile, same=True)
    yield from installed_rows(y, p)


def installed_rows(y: np.ndarray, p: np.ndarray) -> Iterator[dict]:
    """Rows beside packages that need not be there."""
    X = p[:, None]
    try:
        from netcal.metrics import ECE

        ours = lambda: step_calibration_error(y, X, strategy="uniform")  # noqa: E731
        yield row_of("ECE, 10 bins", "netcal", ours, lambda: ECE(10).measure(p, y), same=True)
    except ImportError as error:
        print(f"netcal is left out: {error}")
    try:
        from model_diagnostics.scoring import LogLoss, decompose

        theirs = lambda: decompose(y, p, scoring_function=LogLoss())  # noqa: E731
        ours = lambda: tps_decomposition(y, X)  # noqa: E731
        yield row_of("parts of the log loss", "model-diagnostics", ours, theirs)
    except ImportError as error:
        print(f"model-diagnostics is left out: {error}")
    try:
        import torch
        from ecuas.metrics.confidences import ConfidenceECUAS

        right, said = torch.tensor(y), torch.tensor(p)
        theirs = lambda: ConfidenceECUAS(n=1)(said, right)  # noqa: E731
        ours = lambda: ecuas_from_confidence(y, p)  # noqa: E731
        yield row_of("ECUAS of a confidence", "ecuas", ours, theirs)
    except ImportError as error:
        print(f"ecuas is left out: {error}")


def process_rows(n: int, code: Path | None) -> Iterator[dict]:
    """The e-process beside its authors' code."""
    sys.path.append(str(code))
    try:
        from evaluator.evaluator import EValuator
    except ImportError as error:
        print(f"e-valuator is left out: {error}")
        return
    traces, y = make_runs(n, predictors=("judge",))
    X = traces["judge"]
    cells, starts = X.cells, np.repeat(X.offsets[:-1], X.lengths)
    so_far = [cells[start : k + 1] for k, start in enumerate(starts)]
    step = np.arange(1, len(cells) + 1) - starts
    run = np.repeat(np.arange(n), X.lengths)
    columns = {"uq_problem_idx": run, "num_steps": step, "solved": y[run]}
    frame = pd.DataFrame(columns | {"judge_probability_series": so_far})
    ours = lambda: DensityRatioEProcess(threshold="pac").fit(X, y)  # noqa: E731
    yield row_of("e-process, fit", "e-valuator", ours, lambda: EValuator().fit(frame))


def rows(args: Any) -> None:
    table = [*calibration_rows(args.runs), *metric_rows(100_000)]
    show_rows([*table, *process_rows(min(args.runs, 3_000), args.code)])


def show_rows(table: list[dict]) -> None:
    show("CPU ms, medians of five in turn", pd.DataFrame(table).set_index("row"), 2)


def read(args: Any) -> None:
    """Time reading a log beside json.load of the same file."""
    table = []
    for name in args.files:
        opened = gzip.open if name.endswith(".gz") else open

        def load(name: str = name, opened: Any = opened) -> list[Any]:
            with opened(name, "rt", encoding="utf-8") as file:
                return list(map(json.loads, file)) if ".jsonl" in name else [json.load(file)]

        table.append(row_of(Path(name).name, "json.load", lambda n=name: io.read_runs(n), load))
    show_rows(table)


def task(name: str, n: int) -> Call:
    """Return what takes so many runs, its input made before."""
    if name == "signals":
        words = np.random.default_rng(0).integers(0, 10**6, (n, 6)).tolist()
        runs = [
            io.Run(str(k), [io.Step(("user", "agent")[j % 2], _TURN.format(w))
                            for j, w in enumerate(row)], outcome=k % 2)
            for k, row in enumerate(words)
        ]  # fmt: skip
        return lambda: TracerSignals().fit_transform(runs)
    traces, y = make_runs(n)
    X = traces["judge"]
    half = n // 2
    fleet = FleetMonitor(random_state=0)
    return {
        "evaluate": lambda: evaluate(traces, y),
        "process": lambda: DensityRatioEProcess(random_state=0).fit(X, y).predict(X),
        "fleet": lambda: fleet.fit(X[:half], y[:half]).update(X[half:], y[half:]),
    }[name]


def one(args: Any) -> None:
    call = task(args.task, args.runs)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    call()
    spent = time.process_time() - start
    print(spent, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)


def scaling(args: Any) -> None:
    table = {}
    sizes = [n for n in _SIZES if n <= args.largest]
    for name in ("evaluate", "fleet", "process", "signals"):
        found = []
        for n in sizes:
            call = [sys.executable, __file__, "one", "--task", name, "--runs", str(n)]
            done = subprocess.run(call, capture_output=True, text=True, check=True)
            found.append([float(part) for part in done.stdout.split()])
        seconds, peak = np.array(found).T
        exponent = np.diff(np.log(seconds)) / np.diff(np.log(sizes))
        table[name] = {f"s, {n:,}": s for n, s in zip(sizes, seconds, strict=True)}
        table[name] |= {f"MB, {n:,}": m for n, m in zip(sizes, peak, strict=True)}
        table[name] |= {f"exponent to {n:,}": e for n, e in zip(sizes[1:], exponent, strict=True)}
    show("CPU seconds, memory beside the runs, exponents", table, 2)


if __name__ == "__main__":
    commands = {"rows": rows, "read": read, "scaling": scaling, "one": one}
    how = {"runs": 10_000, "code": Path, "files": [], "largest": 100_000, "task": "evaluate"}
    dispatch(__doc__, commands, **how)
