"""The bundled data: chess games of a weak engine, and runs of language models."""

from collections import Counter
from importlib import resources
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import entropy

from trajscore.core.array import TrajectoryArray
from trajscore.core.values import check_choice
from trajscore.datasets._fetch import as_data
from trajscore.io import Run, Runs, Step, outcomes, read_runs
from trajscore.tracer import StepConfidence

_DATA = resources.files("trajscore.datasets") / "data"
_CHANNELS = ["engine", "shallow", "material"]


def load_chess(*, return_X_y: bool = False, as_frame: bool = False) -> Any:
    """Load 360 chess games, each move with three forecasts of whether the agent wins.

    A run is a game, a step a move of the agent (White, a weak engine). 67 games were cut at a
    budget of 60 moves: their outcome is -1, and `meta` holds their final outcome.

    Parameters
    ----------
    return_X_y : bool, default=False
        Whether to return ``(X, y)`` instead of a Bunch.
    as_frame : bool, default=False
        Whether the Bunch also holds the long table, as `frame`.

    Returns
    -------
    Bunch or tuple
        data: TrajectoryArray of 360 runs with the channels engine, shallow and material, and
        stop_reason and final_outcome in its meta; target: 1 won, 0 not won, -1 cut;
        feature_names; frame: DataFrame or None; DESCR: how the data were made; filename.

    See Also
    --------
    fetch_evaluator : Larger public tables of agents' runs.

    Examples
    --------
    >>> from trajscore.datasets import load_chess
    >>> X, y = load_chess(return_X_y=True)
    >>> X
    <TrajectoryArray: 360 runs of 1 to 60 steps, channels engine, shallow, material>
    >>> int((y == -1).sum())
    67
    """
    frame, about = _read_table("chess.csv.gz")
    X, y = TrajectoryArray.from_frame(
        frame,
        id="game",
        step="move",
        value=_CHANNELS,
        outcome="outcome",
        meta=["stop_reason", "final_outcome"],
        stop_reason=(),  # its outcomes follow the rule already
    )
    return as_data(
        X,
        y,
        return_X_y,
        feature_names=list(_CHANNELS),
        frame=frame if as_frame else None,
        **about,
    )


def _read_table(name: str) -> tuple[pd.DataFrame, dict[str, str]]:
    """Return a bundled table, and what a Bunch says of its file."""
    with resources.as_file(_DATA / name) as file:
        frame = pd.read_csv(file, compression="gzip")
    descr = (_DATA / "README.md").read_text(encoding="utf-8")
    return frame, {"DESCR": descr, "filename": str(_DATA / name)}


_MODELS = ("gemma3_270m", "smollm2_135m")
_TASKS = ("ring", "parcel")
_OF_THE_LOG = ["token_probability", "entropy_confidence", "verbal"]
_ASKED = ["agreement", "semantic_confidence", "p_true", "p_success"]


def load_real_runs(
    *, model: str | None = None, task: str | None = None, return_X_y: bool = False
) -> Any:
    """Load 2,000 runs of two small language models, with seven confidences at each step.

    Gemma 3 270M and SmolLM2 135M Instruct did 500 tasks of two families each. In "ring" an
    agent follows notes through rooms until it takes a ring, or until its budget of 8 steps is
    spent: then its outcome is -1. In "parcel" it hands a parcel on to 3 to 6 people; the first
    wrong one ends the run, so that counting steps tells much of the outcome.

    Parameters
    ----------
    model : {"gemma3_270m", "smollm2_135m"}, optional
        The model whose runs are returned. Default: both.
    task : {"ring", "parcel"}, optional
        The family of tasks. Default: both.
    return_X_y : bool, default=False
        Whether to return ``(X, y)`` instead of a Bunch.

    Returns
    -------
    Bunch or tuple
        data: TrajectoryArray, one step for each turn of the agent, with the channels
        token_probability, entropy_confidence and verbal (the percent that it states; missing
        where it stated no number) of `trajscore.StepConfidence`, agreement (the share of four
        sampled answers that are the one it gave), semantic_confidence (1 minus their entropy over
        its maximum), p_true and p_success (the share of yes among yes and no at the first token,
        asked whether the step was right, and whether the run will succeed), and with model,
        task, question and stop_reason in its meta; target: 1 success, 0 failure, -1 stopped by
        the budget; q: with task="parcel", a TrajectoryArray of the true chance of success after
        each step, by the model's own probabilities of the answers to come, else None; runs: the
        transcripts with log-probabilities and samples, as `trajscore.io.Runs`; feature_names;
        DESCR: how the runs were made; filename: a chat log,
        which ``trajscore report`` reads.

    See Also
    --------
    load_chess : Forecasts of another kind of agent, with the final outcome of runs that were cut.

    Examples
    --------
    >>> from trajscore.datasets import load_real_runs
    >>> real = load_real_runs(model="smollm2_135m", task="parcel")
    >>> real.data
    <TrajectoryArray: 500 runs of 1 to 6 steps, channels token_probability, ...>
    >>> real.runs[0].steps[1].text
    'Anna'
    >>> real.q[1]
    array([0.367196, 1.      , 1.      , 1.      , 1.      ])
    """
    for value, name, choices in ((model, "model", _MODELS), (task, "task", _TASKS)):
        if value is not None:
            check_choice(value, name, choices)
    path = _DATA / "real_runs.jsonl.gz"
    with resources.as_file(path) as file:
        runs = Runs(
            run
            for run in read_runs(file)
            if model in (None, run.extra["model"]) and task in (None, run.extra["family"])
        )
    q = None
    if task == "parcel":
        with resources.as_file(_DATA / "parcel_truth.npz") as file:
            q = TrajectoryArray.load(file)
        q = q[np.isin(q.ids, [run.id for run in runs])]
    names = [*_OF_THE_LOG, *_ASKED]
    X = StepConfidence(_OF_THE_LOG, scale="fraction").fit_transform(runs)
    asked = [_asked(step) for run in runs for step in run.steps if step.actor == "agent"]
    X = TrajectoryArray(
        np.column_stack([X.cells, asked]),
        X.lengths,
        channels=names,
        ids=[run.id for run in runs],
        meta=pd.DataFrame([_meta(run) for run in runs]),
        missing="allow",
    )
    return as_data(
        X,
        outcomes(runs),
        return_X_y,
        q=q,
        runs=runs,
        feature_names=names,
        DESCR=(_DATA / "README.md").read_text(encoding="utf-8"),
        filename=str(path),
    )


def _asked(step: Step) -> list[float]:
    """Return agreement and certainty of the sampled answers, P(true) and P(success)."""
    counts = Counter(step.extra["samples"])
    n_samples = counts.total()
    action = step.text.split()[0].strip(".,").lower() if step.text.split() else ""
    certainty = 1 - entropy(list(counts.values())) / np.log(n_samples)
    stated = [step.extra.get("p_true"), step.extra.get("p_success")]
    return [counts[action] / n_samples, certainty, *np.array(stated, dtype=float)]


def _meta(run: Run) -> dict[str, Any]:
    return {
        "model": run.extra["model"],
        "task": run.extra["family"],
        "question": run.task,
        "stop_reason": run.stop_reason,
    }


_OF_STEPS = ["log_chars", "code", "error", "hedge", "final", "terminal", "orchestrator"]


def load_who_and_when(*, return_X_y: bool = False) -> Any:
    """Load 184 failed runs of teams of agents, with the step that people found to be decisive.

    A step is a message of an agent. What it says is not here, only numbers of it.

    Parameters
    ----------
    return_X_y : bool, default=False
        Whether to return ``(X, first_error)`` instead of a Bunch.

    Returns
    -------
    Bunch or tuple
        data: TrajectoryArray of 184 runs with the channels log_chars (the logarithm of 1 more than
        the number of characters), code, error, hedge, final (1 where the text has code, or words of
        such a kind), terminal and orchestrator (1 where such an agent speaks), and with question
        in its meta; target: the first wrong step, from 1; feature_names; DESCR: how the data were
        made; filename.

    See Also
    --------
    trajscore.localization.FirstErrorLocator : Learns which step it is.

    Notes
    -----
    In all runs a step is wrong. Labels are noisy: other people, of 43 of these runs, named the same
    step in 35%.

    References
    ----------
    Zhang et al. (2025), Which Agent Causes Task Failures and When?, ICML, arXiv:2505.00212; data at
    github.com/ag2ai/Agents_Failure_Attribution, MIT licence.

    Examples
    --------
    >>> from trajscore.datasets import load_who_and_when
    >>> X, first_error = load_who_and_when(return_X_y=True)
    >>> X["code"]
    <TrajectoryArray: 184 runs of 5 to 130 steps, channels code>
    >>> first_error[:5]
    array([1, 6, 3, 3, 2])
    """
    frame, about = _read_table("who_and_when.csv.gz")
    X = TrajectoryArray.from_frame(
        frame, id="run", step="step", value=_OF_STEPS, meta=["question", "first_error"]
    )
    return as_data(
        X,
        X.meta["first_error"].to_numpy(),
        return_X_y,
        feature_names=list(_OF_STEPS),
        **about,
    )
