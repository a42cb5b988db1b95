"""All signals together against the best single one: what is gained on runs held out.

    python benchmarks/together.py [--draws 20] [--data FOLDER] [--sets chess ...] [--out-of-fold]
    python benchmarks/together.py --adds [--draws 100]

Of random runs (whole tasks): the best signal out of fold, recalibrated, and `CombinedForecaster`;
margins in nats over the success rate on other runs, unobserved ones as failures; gain of the mean
and the worst draw. Or out of fold on all runs, where the single signal is the best in hindsight. Or
whether what a report says that each signal adds holds on other runs, in simulation.
"""

from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from public_sets import SMALL_MODELS, SOURCES
from reproduction.items import RUNS, TABLE
from shared import JUDGED, Table, at_hand, base_rate, options, over, show
from trajscore import ActionSignals, TrajectoryArray, evaluate
from trajscore.calibration import CombinedForecaster, EnsembleCrossFitCalibrator, cross_fit_traces
from trajscore.core.values import are_probabilities
from trajscore.datasets import fetch_evaluator, load_chess, load_real_runs
from trajscore.metrics import tps_score
from trajscore.report import EvaluationOptions

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


def made(n: int, *seed: int) -> Table:
    """Runs with two signals, of which each knows something, a copy of one, and two of noise."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    lengths = rng.integers(1, 7, n)
    known = np.repeat(2.0 * y - 1, lengths)[:, None] * [0.5, 0.3, 0.0, 0.0]
    cells = known + rng.normal(size=known.shape)
    cells = np.column_stack([cells, cells[:, 0] + rng.normal(0, 0.3, len(cells))])
    return Table(TrajectoryArray(cells, lengths, channels=list("ABCDE")), y, np.arange(n))


def adds(n: int, *seed: int) -> dict[str, float]:
    """Hold what a report says that signals add against what their forecasts do on other runs."""
    train, (X, y, _) = made(n, *seed), made(20_000, *seed, 1)
    report = evaluate(train.X, train.y, options=EvaluationOptions(families="log"))
    table, matters = report.signals, report.cards["matters"].iloc[0]

    def truth(signals: list[str]) -> float:
        pick = signals if len(signals) > 1 else signals[0]
        return margin(y, CombinedForecaster().fit(train.X[pick], train.y).transform(X[pick]))

    names = list(table.index)
    whole, few = truth(names), list(table.index[table["order"] > 0])
    loss = np.array([whole - truth([other for other in names if other != name]) for name in names])
    alone = np.array([truth([name]) for name in names])

    def covered(name: str, true: np.ndarray, slack: float) -> float:
        low, high = table[f"{name}_low"] - slack, table[f"{name}_high"] + slack
        return float(((low <= true) & (true <= high)).mean())

    return {
        "losses covered": covered("loss", loss, 0.0),
        "to a tenth of what matters": covered("loss", loss, matters / 10),
        "alone covered": covered("with_history", alone, 0.0),
        "the same, to a tenth": covered("with_history", alone, matters / 10),
        "no false loss": float((loss[table["loss_low"] > 0] > 0).all()),
        "few suffice": float(not few or whole - truth(few) < matters),
        "few are named": float(bool(few)),
    }


def main() -> None:
    args = options(__doc__, draws=20, seed=0, jobs=2, sets=[""], out_of_fold=False, adds=False)
    if args.adds:
        of_sizes = {}
        for n in (100, 300, 1000):
            calls = [(n, args.seed, k) for k in range(args.draws)]
            of_sizes[n] = pd.DataFrame(over(adds, calls, args.jobs)).mean()
        show("What signals add", of_sizes, 3)
        return
    rows, names = {}, [name for name in SETS if name.startswith(tuple(args.sets))]
    for name, table in at_hand({name: partial(SETS[name], args.data or Path()) for name in names}):
        if args.out_of_fold:
            traces = cross_fit_traces(CombinedForecaster(), table.X, table.y, groups=table.tasks)
            single = best_single(table, table.X)[0]
            rows[name, len(table.X)] = {"single": single, "together": margin(table.y, traces)}
            continue
        for n in [n for n in (60, 120, 300) if n + 40 <= len(table.X)]:
            calls = [(table, n, args.seed, k) for k in range(args.draws)]
            draws = pd.DataFrame(over(drawn, calls, args.jobs), columns=["single", "gain", "share"])
            rows[name, n] = dict(draws.mean(), error=draws["gain"].sem(), worst=draws["gain"].min())
    show("Margins in nats", rows, 4)
    if not args.out_of_fold:
        gains = pd.DataFrame(rows).loc["gain"].groupby(level=1)
        show("Gains of sets", gains.agg(["count", "mean", "min"]), 4)


if __name__ == "__main__":
    main()
