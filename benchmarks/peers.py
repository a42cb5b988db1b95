"""CPU time beside the nearest packages on the same data, and what grows with the number of runs.

    python benchmarks/peers.py rows [--runs 10000] [--code FOLDER]     # of e-valuator
    python benchmarks/peers.py read --files FILE ...                   # beside json.load
    python benchmarks/peers.py scaling [--runs 100000]

A ratio above 1 is in our favour: both are called in turn in one process, and medians of five calls
compared. "alike" does the same with the other package: folds, weights, intervals; "bare" does less.
What is not installed is named and left out. Memory is what a process for each size needs more.
"""

import gzip
import json
import resource
import sys
import time
from collections.abc import Callable
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats
from sklearn.dummy import DummyRegressor
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, log_loss

from scale import make_runs
from shared import at_hand, dispatch, show
from trajscore import DensityRatioEProcess, PlattCrossFitCalibrator, TracerSignals, evaluate, io
from trajscore import metrics as m
from trajscore.calibration import IsotonicCrossFitCalibrator
from trajscore.inference import compare_predictors
from trajscore.monitoring import Conformal, FleetMonitor

Call = Callable[[], Any]
RNG = np.random.default_rng(0)
P = RNG.beta(2, 2, 100_000)
WON = (RNG.random(len(P)) < P).astype(int)
COLUMN = P[:, None]
D = RNG.normal(0.1, 1, 2_000)
RANK = int(np.ceil(0.9 * (len(P) + 1))) - 1


def row(mine: Call, other: Call, *, same: bool = False) -> dict[str, float]:
    """Return a row of the table; `same` results must be equal."""
    if same:
        np.testing.assert_allclose(mine(), other(), rtol=1e-9)
    seconds = np.empty((6, 2))
    for of_round in seconds:  # the first is not counted
        for side, call in enumerate((mine, other)):
            start = time.process_time()
            call()
            of_round[side] = 1e3 * (time.process_time() - start)
    a, b = np.median(seconds[1:], axis=0)
    return {"ours": a, "theirs": b, "ratio": b / a}


class Steps:
    """Runs with a forecast at each step, flat."""

    def __init__(self, n: int) -> None:
        traces, self.y = make_runs(n, predictors=("judge",))
        self.X = traces["judge"]
        self.first = np.repeat(self.X.offsets[:-1], self.X.lengths)
        self.step = np.arange(len(self.first)) - self.first + 1
        self.run = np.repeat(np.arange(n), self.X.lengths)
        self.label = self.y[self.run]
        self.z = np.log(self.X.cells / (1 - self.X.cells))[:, None]

    def three_fits(self, model: Any) -> None:
        """Fit to each half and to all, with weights; forecast each half by the other."""
        for k in (0, 1, 2):
            train = self.run % 2 != k
            model.fit(self.z[train], self.label[train], self.step[train] ** -0.5)
            if k < 2:
                getattr(model, "predict_proba", model.predict)(self.z[~train])

    def calibrators(self, name: str, own: Any, model: Any, bare: Any) -> dict[str, Any]:
        calls = {
            f"{name}, alike (scikit-learn)": lambda: self.three_fits(model),
            f"{name}, bare (scikit-learn)": lambda: bare.fit(self.z, self.label),
        }
        return {k: row(lambda: own.fit_transform(self.X, self.y), v) for k, v in calls.items()}

    def process(self, code: Path | None) -> dict[str, float]:
        sys.path.append(str(code))
        from evaluator.evaluator import EValuator

        so_far = [self.X.cells[start : k + 1] for k, start in enumerate(self.first)]
        columns = {"uq_problem_idx": self.run, "num_steps": self.step, "solved": self.label}
        frame = pd.DataFrame(columns | {"judge_probability_series": so_far})
        ours = DensityRatioEProcess(threshold="pac")
        return row(lambda: ours.fit(self.X, self.y), lambda: EValuator().fit(frame))


def mean(statistic: Callable[..., Any]) -> dict[str, float]:
    pair = {"a": D, "b": np.zeros(len(D))}
    options: Any = {"n_resamples": 10_000, "batch": 500}
    mine = lambda: compare_predictors(pair, random_state=0)  # noqa: E731
    return row(mine, lambda: stats.bootstrap((D,), statistic, **options))


def threshold() -> float:
    limit = Conformal()
    limit.fit(P, np.arange(len(P)), np.array([0.1]))
    return limit.log_threshold(0.1)


def conformal() -> dict[str, float]:
    from mapie.regression import SplitConformalRegressor

    zero = DummyRegressor(strategy="constant", constant=0.0).fit(COLUMN, P)

    new = partial(SplitConformalRegressor, zero, confidence_level=0.9, prefit=True)
    other = lambda: new().conformalize(COLUMN, P).predict_interval(COLUMN[:1])[1]  # noqa: E731
    np.testing.assert_allclose(threshold(), other()[0, 1, 0], rtol=1e-9)
    return row(threshold, other)


def ece() -> dict[str, float]:
    from netcal.metrics import ECE

    mine = lambda: m.step_calibration_error(WON, COLUMN, strategy="uniform")  # noqa: E731
    return row(mine, lambda: ECE(10).measure(P, WON), same=True)


def parts() -> dict[str, float]:
    from model_diagnostics.scoring import LogLoss, decompose

    other = lambda: decompose(WON, P, scoring_function=LogLoss())  # noqa: E731
    return row(lambda: m.tps_decomposition(WON, COLUMN), other)


def ecuas() -> dict[str, float]:
    import torch
    from ecuas.confidences import ConfidenceECUAS

    right, said = torch.tensor(WON), torch.tensor(P)
    mine = lambda: m.ecuas_from_confidence(WON, P)  # noqa: E731
    return row(mine, lambda: ConfidenceECUAS(n=1)(said, right))


def score(name: str, other: Callable[..., float]) -> dict[str, float]:
    mine = lambda: -m.tps_samples(WON, COLUMN, score=name).mean()  # noqa: E731
    return row(mine, lambda: other(WON, P), same=True)


def rows(args: Any) -> None:
    steps = Steps(args.runs)
    isotonic = IsotonicRegression(out_of_bounds="clip")
    newton = LogisticRegression(solver="newton-cholesky", tol=1e-10)
    table = steps.calibrators("Platt", PlattCrossFitCalibrator(), newton, LogisticRegression())
    table |= steps.calibrators("isotonic", IsotonicCrossFitCalibrator(), isotonic, isotonic)
    sources: dict[str, Callable[[], dict[str, float]]] = {
        "log loss (scikit-learn)": lambda: score("log", log_loss),
        "Brier score (scikit-learn)": lambda: score("brier", brier_score_loss),
        "paired mean, alike (scipy)": lambda: mean(lambda x, axis: x.mean(axis) / x.std(axis)),
        "paired mean, bare: BCa (scipy)": lambda: mean(np.mean),
        "threshold, alike (MAPIE)": conformal,
        "threshold, bare (NumPy)": lambda: row(threshold, lambda: np.partition(P, RANK)[RANK]),
        "ECE (netcal)": ece,
        "parts of the log loss (model-diagnostics)": parts,
        "ECUAS of a confidence (ecuas)": ecuas,
        "e-process, fit (e-valuator)": lambda: steps.process(args.code),
    }
    show("CPU ms", table | dict(at_hand(sources)), 2)


def load(name: str) -> Any:
    opened: Any = gzip.open if name.endswith(".gz") else open
    with opened(name, "rt", encoding="utf-8") as file:
        return list(map(json.loads, file)) if ".jsonl" in name else json.load(file)


def read(args: Any) -> None:
    table = {
        Path(name).name: row(lambda n=name: io.read_runs(n), lambda n=name: load(n))
        for name in args.files
    }
    show("CPU ms", table, 2)


def grown(name: str, n: int) -> tuple[float, float]:
    """Return CPU seconds for so many runs, and by how many MB the memory grew."""
    traces, y = make_runs(n)
    X, half, fleet = traces["judge"], n // 2, FleetMonitor(random_state=0)
    orders = np.random.default_rng(0).integers(0, 10**6, (n, 6)).tolist()
    tasks = {
        "evaluate": lambda: evaluate(traces, y),
        "process": lambda: DensityRatioEProcess(random_state=0).fit(X, y).predict(X),
        "fleet": lambda: fleet.fit(X[:half], y[:half]).update(X[half:], y[half:]),
        "signals, with their runs": lambda: TracerSignals().fit_transform(
            [
                io.Run(str(k), [io.Step("agent", f"I look for order {o} in Oslo.") for o in each])
                for k, each in enumerate(orders)
            ]
        ),
    }
    before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    tasks[name]()
    seconds = time.process_time() - start
    return seconds, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024


def scaling(args: Any) -> None:
    sizes = [n for n in (1_000, 10_000, 100_000) if n <= args.runs]
    for name in ("evaluate", "process", "fleet", "signals, with their runs"):
        found = []
        for n in sizes:
            with get_context("spawn").Pool(1) as pool:
                found.append(pool.apply(grown, (name, n)))
        seconds, grew = np.array(found).T
        slope = np.append(np.nan, np.diff(np.log(seconds)) / np.diff(np.log(sizes)))
        columns = {"CPU s": seconds, "MB": grew, "exponent": slope}
        show(name, pd.DataFrame(columns, index=sizes), 2)


if __name__ == "__main__":
    commands = {"rows": rows, "read": read, "scaling": scaling}
    dispatch(__doc__, commands, runs=10_000, code=Path, files=[])
