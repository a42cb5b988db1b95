"""The public sets of the board: runs, their outcomes, and what the folds and clusters are."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import public_sets
from trajscore import TrajectoryArray, io
from trajscore.datasets import fetch_evaluator, load_real_runs

Names = NDArray[Any]
HORIZON = 30  # the last step that counts
MOST_RUNS = 750  # of a log


@dataclass(frozen=True)
class RunsOfASet:
    """Runs of a public set: a log, or the values stated at each step.

    Nothing is known of a run but its steps: ids are numbers, and outcome, stop, task and agent are
    taken out of it. `group` is what folds and clusters keep together, `identity` what else is known
    of a run before its first step, if anything is.
    """

    name: str
    X: Any  # list of io.Run, or TrajectoryArray of one value a step
    y: NDArray[np.int64]
    group: Names
    identity: Names | None = None

    @property
    def is_log(self) -> bool:
        """Whether the steps are turns, and not values."""
        return not isinstance(self.X, TrajectoryArray)


def make_set(name: str, X: Any, y: Any, group: Any, identity: Any = None) -> RunsOfASet:
    """Leave out runs without an outcome, and take away all that is not one of the first steps."""
    outcomes, groups = np.asarray(y), np.asarray(group).astype(str)
    rows = np.flatnonzero(np.isin(outcomes, (0, 1)))
    if isinstance(X, TrajectoryArray):
        chosen = X[rows].truncate(np.minimum(X[rows].lengths, HORIZON))
        steps: Any = TrajectoryArray(chosen.cells, chosen.lengths)
    else:
        rows = evenly(rows, groups[rows])
        steps = [io.Run(str(k), turns_of(X[row])[:HORIZON]) for k, row in enumerate(rows)]
    known = None if identity is None else np.asarray(identity).astype(str)[rows]
    return RunsOfASet(name, steps, outcomes[rows].astype(np.int64), groups[rows], known)


def turns_of(run: io.Run) -> list[io.Step]:
    """Return the turns of agent and user, which are the steps of all entries."""
    return [step for step in run.steps if step.actor in ("agent", "user")]


def evenly(rows: NDArray[np.int64], group: Names) -> NDArray[np.int64]:
    """Draw runs where there are many, as many of each group as can be."""
    if len(rows) <= MOST_RUNS:
        return rows
    drawn = np.random.default_rng(0).permutation(len(rows))
    place = pd.Series(drawn).groupby(group[drawn], sort=False).cumcount().to_numpy()
    return rows[np.sort(drawn[np.argsort(place, kind="stable")][:MOST_RUNS])]


# ------------------------------------------------------------------ logs


def tau_bench(name: str, data_home: Path | None, folder: Path | None) -> RunsOfASet:
    """Runs of gpt-4o at airline tasks; grouped by task."""
    runs = list(io.read_runs(public_sets.tau_bench_log(data_home)))
    return make_set(name, runs, io.outcomes(runs), [run.task for run in runs])


def tau2(name: str, data_home: Path | None, folder: Path | None) -> RunsOfASet:
    """Results of tau2-bench in a folder; grouped by domain and task, identity is the file."""
    if folder is None or not (folder / "tau2").is_dir():
        raise OSError("put results of tau2-bench into a folder tau2 of --logs")
    runs = list(io.read_runs(folder / "tau2"))
    files = [Path(run.meta["file"]).stem for run in runs]
    domain = [re.search("airline|retail|telecom|$", file)[0] for file in files]
    group = [f"{of} {run.task}" for of, run in zip(domain, runs, strict=True)]
    return make_set(name, runs, io.outcomes(runs), group, files)


def multi_swe_bench(name: str, data_home: Path | None, folder: Path | None) -> RunsOfASet:
    """Runs of five models at Java issues; grouped by issue, identity is the model."""
    runs = list(io.read_runs(public_sets.unpacked_log("multi_swe_bench", data_home)))
    model = [Path(run.meta["file"]).parent.parent.name for run in runs]
    return make_set(name, runs, io.outcomes(runs), [run.task for run in runs], model)


def intercode(which: str, name: str, data_home: Path | None, folder: Path | None) -> RunsOfASet:
    """Turns of an agent; SQL is grouped by database, Bash by task, with the file system known."""
    runs = public_sets.intercode(which, data_home)
    environment, task = [run.meta["environment"] for run in runs], [run.task for run in runs]
    if which.startswith("sql"):
        return make_set(name, runs, io.outcomes(runs), environment)
    return make_set(name, runs, io.outcomes(runs), task, environment)


def balrog(which: str, name: str, data_home: Path | None, folder: Path | None) -> RunsOfASet:
    """Moves of language models in games; folds by agent or by task, whichever are more."""
    episodes = public_sets.balrog(which, data_home)
    moves = public_sets.balrog_moves(which, data_home)
    by, other = sorted(("agent", "task"), key=lambda column: -episodes[column].nunique())
    episodes = episodes[[bool(moves.get(episode)) for episode in episodes.index]]
    runs = [io.Run(episode, moves[episode]) for episode in episodes.index]
    return make_set(name, runs, episodes["won"], episodes[by], episodes[other])


def real_runs(
    model: str, task: str, name: str, data_home: Path | None, folder: Path | None
) -> RunsOfASet:
    """Bundled runs of a small language model, with log-probabilities; grouped by task."""
    real = load_real_runs(model=model, task=task)
    return make_set(name, list(real.runs), real.target, real.data.meta["question"])


# ------------------------------------------------------------------ stated values


def token_probability(
    model: str, task: str, name: str, data_home: Path | None, folder: Path | None
) -> RunsOfASet:
    """Mean probability of the tokens of each turn of the bundled runs; grouped by task."""
    X, y = load_real_runs(model=model, task=task, return_X_y=True)
    return make_set(name, X["token_probability"], y, X.meta["question"])


def evaluator(which: str, name: str, data_home: Path | None, folder: Path | None) -> RunsOfASet:
    """Probabilities that a judge states; each question is a group."""
    X, y = fetch_evaluator(which, data_home=data_home, return_X_y=True)
    return make_set(name, X, y, X.ids)


def game24(name: str, data_home: Path | None, folder: Path | None) -> RunsOfASet:
    """GPT-4's values of the paths of a tree of thoughts; grouped by puzzle."""
    X, y = public_sets.game24(data_home)
    return make_set(name, X, y, X.meta["task"])


def win_probability(name: str, data_home: Path | None, folder: Path | None) -> RunsOfASet:
    """Win probabilities during basketball games, each a group: the control that is calibrated."""
    X, y = public_sets.win_probability(data_home)
    return make_set(name, X, y, X.ids)


Source = Callable[[str, Path | None, Path | None], RunsOfASet]
SOURCES: dict[str, Source] = {
    "tau-bench airline": tau_bench,
    "tau2-bench": tau2,
    "InterCode SQL, ReAct": partial(intercode, "sql_react"),
    "InterCode SQL, try again": partial(intercode, "sql_try_again"),
    "InterCode Bash, ReAct": partial(intercode, "bash_react"),
    "InterCode Bash, try again": partial(intercode, "bash_try_again"),
    "multi-SWE-bench Java": multi_swe_bench,
    "BALROG BabaIsAI": partial(balrog, "babaisai"),
    "BALROG BabyAI": partial(balrog, "babyai"),
    "BALROG MiniHack": partial(balrog, "minihack"),
    "BALROG TextWorld": partial(balrog, "textworld"),
    "Gemma 3 270M, ring": partial(real_runs, "gemma3_270m", "ring"),
    "Gemma 3 270M, parcel": partial(real_runs, "gemma3_270m", "parcel"),
    "SmolLM2 135M, ring": partial(real_runs, "smollm2_135m", "ring"),
    "SmolLM2 135M, parcel": partial(real_runs, "smollm2_135m", "parcel"),
    "HotpotQA, judge": partial(evaluator, "hotpotqa"),
    "GSM8K, judge": partial(evaluator, "gsm8k"),
    "MATH, judge": partial(evaluator, "math"),
    "MMLU-Pro, judge": partial(evaluator, "mmlupro"),
    "game of 24, GPT-4's values": game24,
    "Gemma 3 270M, ring: tokens": partial(token_probability, "gemma3_270m", "ring"),
    "Gemma 3 270M, parcel: tokens": partial(token_probability, "gemma3_270m", "parcel"),
    "SmolLM2 135M, ring: tokens": partial(token_probability, "smollm2_135m", "ring"),
    "SmolLM2 135M, parcel: tokens": partial(token_probability, "smollm2_135m", "parcel"),
    "basketball, win probabilities": win_probability,
}
