"""All signals together against the best single one: what is gained on runs held out.

    python benchmarks/together.py [--draws 20] [--data FOLDER] [--seed 0] [--jobs 2]
                                  [--sets chess ...] [--sizes 60 120 300] [--out-of-fold]

For each data set, of some random runs (whole tasks): the best single signal, recalibrated, which is
chosen by its score out of fold; and `CombinedForecaster`. Both are fitted on these runs, and judged
on others, at most 2,000. Margins are log scores (nats) above that of the success rate;
runs that were not observed count as failures. "gain" is what the combination has more, the mean of
the draws with its standard error, and the worst draw. Two sets are chess with channels of noise.
"--out-of-fold" gives the margins out of fold of all runs of each set instead, in seconds.
"""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from public_sets import SMALL_MODELS, SOURCES, Found, intercode_run
from reproduction.items import RUNS, TABLE
from shared import JUDGED, Table, options, over, show
from trajscore import ActionSignals, TrajectoryArray
from trajscore.calibration import (
    CombinedForecaster,
    EnsembleCrossFitCalibrator,
    cross_fit_traces,
)
from trajscore.core.weights import as_step_weights
from trajscore.datasets import fetch_evaluator, load_chess, load_real_runs
from trajscore.io import outcomes
from trajscore.metrics import tps_score

MOST_HELD_OUT = 2000
FEWEST_HELD_OUT = 40
SEVERAL = ["judge_probability", "generated_tokens"]  # those that a table has
GAME24 = {"id": "run_id", "step": "step", "value": "value", "outcome": "solved", "meta": ["task"]}
REQUIRED = {
    "chess": 0.115,
    "Gemma 3 270M, ring": 0.107,
    "SmolLM2 135M, ring": 0.125,
    "both, ring": 0.19,
}


def chess(n_noise: int, folder: Path | None) -> Table:
    """Bundled games, with channels that tell nothing."""
    X, y = load_chess(return_X_y=True)
    noise = np.random.default_rng(0).normal(size=(len(X.cells), n_noise))
    names = [*X.channels, *(f"noise {k}" for k in range(n_noise))]
    return Table(X.with_cells(np.hstack([X.cells, noise]), channels=names), y, X.ids)


def small_models(model: str | None, task: str, folder: Path | None) -> Table:
    """Bundled runs of small language models, with seven signals."""
    real = load_real_runs(model=model, task=task)
    return Table(real.data, real.target, real.data.meta["question"].to_numpy())


def judged(name: str, folder: Path | None) -> Table:
    """A judge's probabilities, and the number of tokens of each step where it is known."""
    if folder is None:
        table = fetch_evaluator(name, as_frame=True).frame
    else:
        table = pd.read_csv(folder / TABLE.format(name))
    columns = [name for name in SEVERAL if name in table]
    X, y = TrajectoryArray.from_frame(table, **RUNS | {"value": columns})
    return Table(X, y, X.ids)


def game24(folder: Path | None) -> Table:
    """GPT-4's values of each step."""
    if folder is None:
        X, y, tasks, _ = SOURCES["game of 24, GPT-4's values"](None, None)
        return Table(X, y, np.asarray(tasks))
    X, y = TrajectoryArray.from_frame(pd.read_csv(folder / "tot/game24_gpt4.csv.gz"), **GAME24)
    return Table(X, y, X.meta["task"].to_numpy())


def acted(name: str, folder: Path | None) -> Table:
    """What an agent has done so far."""
    local = folder and folder / "intercode/sql__gpt-3.5__ic_sql_react_10_turns.json.gz"
    if name.startswith("InterCode") and local:
        logs = json.loads(gzip.decompress(local.read_bytes()))
        runs = [intercode_run(f"{fields['query']}/{key}", fields) for key, fields in logs.items()]
        found = Found(runs, outcomes(runs), [run.task for run in runs])
    else:
        found = SOURCES[name](None, folder)
    X = ActionSignals().fit_transform(found.X)
    varies = np.ptp(X.cells, axis=0) > 0
    names = [name for name, does in zip(X.channels, varies, strict=True) if does]
    return Table(X.with_cells(X.cells[:, varies], channels=names), found.y, np.asarray(found.group))


SETS: dict[str, Callable[[Path | None], Table]] = {
    "chess": partial(chess, 0),
    "chess, 20 of noise": partial(chess, 20),
    "chess, 30 of noise": partial(chess, 30),
    **{name: partial(small_models, *of) for name, of in SMALL_MODELS.items()},
    "both, ring": partial(small_models, None, "ring"),
    "both, parcel": partial(small_models, None, "parcel"),
    **{f"{name}, judge": partial(judged, name) for name in JUDGED[:4]},
    "game of 24": game24,
    **{name: partial(acted, name) for name in ("InterCode SQL, ReAct", "tau2-bench")},
}


def tables(chosen: list[str], folder: Path | None) -> Iterator[tuple[str, Table]]:
    """Yield the sets that are at hand, and name the others."""
    for name in chosen or SETS:
        try:
            yield name, SETS[name](folder)
        except OSError as error:
            print(f"{name} is not at hand: {error}")


def margin(y: np.ndarray, traces: TrajectoryArray) -> float:
    """Log score above that of the success rate of these runs."""
    won = np.maximum(y, 0)
    rate = as_step_weights("early", None).of(traces).rate(won)
    constant = traces.with_cells(np.full(len(traces.cells), rate))
    return tps_score(won, traces) - tps_score(won, constant)


def best_single(table: Table) -> tuple[str, EnsembleCrossFitCalibrator, float]:
    """Return the signal that is best out of fold, its fitted map, and that margin."""
    found = []
    for name in table.X.channels or [None]:
        X = table.X if name is None else table.X[name]
        low, high = X.cells.min(), X.cells.max()
        link = "logit" if low >= 0 and high <= 1 else "identity"
        single = EnsembleCrossFitCalibrator(link=link, cv=5)
        traces = single.fit_transform(X, table.y, groups=table.tasks)
        found.append((name, single, margin(table.y, traces)))
    return max(found, key=lambda each: each[2])


def drawn(table: Table, size: int, *seed: int) -> tuple[float, float, float]:
    """Fit on random runs; return the margins on others of the single and of all, and the share."""
    rng = np.random.default_rng([size, *seed])
    task = np.unique(table.tasks, return_inverse=True)[1]
    place = rng.permutation(task.max() + 1)[task]
    is_train = place <= np.sort(place)[size - 1]
    held = rng.permutation(np.flatnonzero(~is_train))[:MOST_HELD_OUT]
    train = Table(*(part[is_train] for part in table))
    name, single, _ = best_single(train)
    together = CombinedForecaster().fit(train.X, train.y, groups=train.tasks)
    X, y = table.X[held], table.y[held]
    alone = single.transform(X if name is None else X[name])
    return margin(y, alone), margin(y, together.transform(X)), together.share_


def main() -> None:
    """Print margins of the single signal, and what all together gain."""
    args = options(
        __doc__, draws=20, seed=0, jobs=2, sets=[""], sizes=[60, 120, 300], out_of_fold=False
    )
    rows = {}
    for name, table in tables([name for name in args.sets if name], args.data):
        sizes = [n for n in args.sizes if len(table.X) >= n + FEWEST_HELD_OUT]
        start = time.perf_counter()
        for n in [len(table.X)] if args.out_of_fold else sizes:
            if args.out_of_fold:
                fit = cross_fit_traces(CombinedForecaster(), table.X, table.y, groups=table.tasks)
                single, together = best_single(table)[2], margin(table.y, fit)
                row = {"together": together, "gain": together - single}
                row["required"] = REQUIRED.get(name, np.nan)
            else:
                calls = [(table, n, args.seed, k) for k in range(args.draws)]
                alone, both, share = np.transpose(over(drawn, calls, args.jobs))
                single, gain = alone.mean(), both - alone
                error = gain.std(ddof=1) / np.sqrt(len(gain)) if len(gain) > 1 else np.nan
                row = {"gain": gain.mean(), "error": error, "worst": gain.min()}
                row["share"] = share.mean()
            rows[name, n] = {"single": single, **row, "seconds": time.perf_counter() - start}
            print(name, n, *(f"{key} {value:.3f}" for key, value in rows[name, n].items()))
    frame = pd.DataFrame.from_dict(rows, orient="index")
    frame.index = pd.MultiIndex.from_tuples(rows, names=["set", "runs"])
    show("Margins in nats", frame, 4)
    if not args.out_of_fold:
        by_size = frame["gain"].groupby("runs")
        show("Gain, of sets", by_size.agg(["count", "mean", "min"]), 4)


if __name__ == "__main__":
    main()
