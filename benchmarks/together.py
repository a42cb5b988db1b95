"""All signals together against the best single one: what is gained on runs held out.

    python benchmarks/together.py [--draws 20] [--data FOLDER] [--sets chess ...]

Of random runs (whole tasks): the best signal out of fold, recalibrated, and `CombinedForecaster`;
margins in nats over the success rate on other runs, unobserved ones as failures; gain of the mean
and the worst draw.
"""

from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from public_sets import SMALL_MODELS, SOURCES
from reproduction.items import RUNS, TABLE
from shared import JUDGED, Table, at_hand, base_rate, options, over, show
from trajscore import ActionSignals, TrajectoryArray
from trajscore.calibration import CombinedForecaster, EnsembleCrossFitCalibrator
from trajscore.core.values import are_probabilities
from trajscore.datasets import fetch_evaluator, load_chess, load_real_runs
from trajscore.metrics import tps_score

OF_BOARD = ("game of 24, GPT-4's values", "InterCode SQL, ReAct", "tau2-bench")


def chess(n_noise: int, folder: Path) -> Table:
    """Bundled games, with channels that tell nothing."""
    X, y = load_chess(return_X_y=True)
    noise = np.random.default_rng(0).normal(size=(len(X.cells), n_noise))
    names = [*X.channels, *(f"noise {k}" for k in range(n_noise))]
    return Table(X.with_cells(np.hstack([X.cells, noise]), channels=names), y, X.ids)


def small_models(model: str | None, task: str, folder: Path) -> Table:
    """Bundled runs of small language models, with seven signals."""
    real = load_real_runs(model=model, task=task)
    return Table(real.data, real.target, real.data.meta["question"].to_numpy())


def judged(name: str, folder: Path) -> Table:
    """A judge's probabilities, and the tokens of each step where they are counted."""
    path = folder / TABLE.format(name)
    table = pd.read_csv(path) if path.exists() else fetch_evaluator(name, as_frame=True).frame
    columns = [name for name in ("judge_probability", "generated_tokens") if name in table]
    X, y = TrajectoryArray.from_frame(table, **RUNS | {"value": columns})
    return Table(X, y, X.ids)


def of_board(name: str, folder: Path) -> Table:
    """Return stated values, or what an agent has done so far: those signals that vary."""
    found = SOURCES[name](None, folder)
    if found.is_log:
        X = ActionSignals().fit_transform(found.X)
        X = X[[name for name in X.channels if np.ptp(X[name].cells)]]
    else:
        X = found.X.with_cells(found.X.cells, channels=["value"])
    return Table(X, np.asarray(found.y), np.asarray(found.group))


SETS = {
    **{name: partial(small_models, *of) for name, of in SMALL_MODELS.items()},
    **{f"both, {task}": partial(small_models, None, task) for task in ("ring", "parcel")},
    **{f"{name}, judge": partial(judged, name) for name in JUDGED[:4]},
    **{name: partial(of_board, name) for name in OF_BOARD},
    "chess": partial(chess, 0),
    **{f"chess, {n} of noise": partial(chess, n) for n in (20, 30)},
}


def margin(y: np.ndarray, traces: TrajectoryArray) -> float:
    """Log score above that of the success rate of these runs."""
    won = np.maximum(y, 0)
    return tps_score(won, traces) - tps_score(won, base_rate(traces, won))


def filled(X: TrajectoryArray) -> TrajectoryArray:
    """Return a signal whose missing values hold the last one, or the median before the first."""
    return X.with_cells(np.nan_to_num(X.ffill().cells, nan=np.nanmedian(X.cells)))


def best_single(table: Table, X: TrajectoryArray) -> tuple[float, str, EnsembleCrossFitCalibrator]:
    """Return the best margin out of fold of a single signal, which it is, and its fitted map."""
    tried = []
    for name in table.X.channels:
        link = "logit" if are_probabilities(filled(X[name]).cells) else "identity"
        single = EnsembleCrossFitCalibrator(link=link, cv=5)
        traces = single.fit_transform(filled(table.X[name]), table.y, groups=table.tasks)
        tried.append((margin(table.y, traces), name, single))
    return max(tried, key=lambda each: each[0])


def drawn(table: Table, size: int, *seed: int) -> tuple[float, float, float]:
    """Fit on random runs; return the single's margin on others, the gain of all, and the share."""
    rng = np.random.default_rng([size, *seed])
    tasks, task = np.unique(table.tasks, return_inverse=True)
    place = rng.permutation(len(tasks))[task]
    is_train = place <= np.sort(place)[size - 1]
    held = rng.permutation(np.flatnonzero(~is_train))[:2000]
    train, (X, y, _) = (Table(*(part[rows] for part in table)) for rows in (is_train, held))
    _, name, single = best_single(train, table.X)
    alone = margin(y, single.transform(filled(X[name])))
    together = CombinedForecaster().fit(train.X, train.y, groups=train.tasks)
    return alone, margin(y, together.transform(X)) - alone, together.share_


def main() -> None:
    args = options(__doc__, draws=20, seed=0, jobs=2, sets=[""])
    rows, names = {}, [name for name in SETS if name.startswith(tuple(args.sets))]
    for name, table in at_hand({name: partial(SETS[name], args.data or Path()) for name in names}):
        for n in [n for n in (60, 120, 300) if n + 40 <= len(table.X)]:
            calls = [(table, n, args.seed, k) for k in range(args.draws)]
            draws = pd.DataFrame(over(drawn, calls, args.jobs), columns=["single", "gain", "share"])
            rows[name, n] = dict(draws.mean(), error=draws["gain"].sem(), worst=draws["gain"].min())
    show("Margins in nats", rows, 4)
    gains = pd.DataFrame(rows).loc["gain"].groupby(level=1)
    show("Gains of sets", gains.agg(["count", "mean", "min"]), 4)


if __name__ == "__main__":
    main()
