"""Real runs, bundled or downloaded once and checked, in the form of all data sets."""

from collections import Counter
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import log_softmax
from scipy.stats import entropy
from sklearn.utils import Bunch

from trajscore.core.array import TrajectoryArray
from trajscore.core.errors import optional
from trajscore.core.values import as_flag, check_choice
from trajscore.io import Runs, Step, outcomes, read_runs
from trajscore.tracer import StepConfidence


def retrieve(
    url: str, file: str, sha256: str | None, data_home: str | Path | None, download_if_missing: bool
) -> Path:
    """Return the path of a file, downloaded if need be; check its SHA-256 where it is known."""
    from sklearn.datasets import get_data_home

    pooch = optional("pooch", "fetching data needs pooch", "data")
    folder = Path(get_data_home(data_home)) / "trajscore"
    path = folder / file
    if not download_if_missing:
        if not path.exists():
            raise OSError(
                f"{path} does not exist; pass download_if_missing=True, or put the file there"
            )
        if sha256 and pooch.file_hash(str(path)) != sha256:
            raise ValueError(
                f"{path} is not the published file: its SHA-256 does not start with "
                f"{sha256[:12]}; pass download_if_missing=True to fetch it again"
            )
    if sha256 is not None:
        sha256 = f"sha256:{sha256}"
    return Path(pooch.retrieve(url, known_hash=sha256, fname=file, path=folder))


def as_data(X: Any, y: Any, return_X_y: bool, **fields: Any) -> Any:
    """Return (X, y), or a Bunch of them and other fields."""
    if as_flag(return_X_y, "return_X_y"):
        return X, y
    return Bunch(data=X, target=y, **fields)


_EVALUATOR = "https://raw.githubusercontent.com/shuvom-s/e-valuator/main/data/"
_FILES = {
    "chessgames": "d5c36622a2832378ad55e6270cc9094b1c88c9d959a943a54aa0f2c534920d93",
    "gsm8k": "136e22f05e72149379932137546bc129311a87befc33786fc65a3985606da275",
    "hotpotqa": "bbb84df8d771482d2de96b93bbb548444620ef65b98116030958c68e91cba094",
    "math": "fa6a3939a5d184693a5011e5b26e583f645d438464833175573380964758b5dd",
    "mmlupro": "08af8bb519910daa205947a19ae7e1745da999e642589e0a520c416dc682174f",
}


def fetch_evaluator(
    name: str,
    *,
    data_home: str | Path | None = None,
    download_if_missing: bool = True,
    return_X_y: bool = False,
    as_frame: bool = False,
) -> Any:
    """Fetch one of the five tables of the e-valuator paper (MIT licence).

    Parameters
    ----------
    name : {"chessgames", "gsm8k", "hotpotqa", "math", "mmlupro"}
        Which table.
    data_home : str or Path, optional
        Folder for downloads. Default: scikit-learn's data home.
    download_if_missing : bool, default=True
        Whether to download what is not there.
    return_X_y : bool, default=False
        Whether to return ``(X, y)`` instead of a Bunch.
    as_frame : bool, default=False
        Whether the Bunch also holds the long table, as `frame`.

    Returns
    -------
    Bunch or tuple
        data: TrajectoryArray of a judge's probability at every step; target: 1 solved, 0 not;
        frame: DataFrame or None; DESCR; filename.

    Raises
    ------
    ValueError
        If the name is unknown, or the file's SHA-256 is not the published one.
    OSError
        If the file is missing and `download_if_missing` is False.
    ImportError
        If pooch is not installed.

    References
    ----------
    Sadhuka et al., E-valuator; tables at github.com/shuvom-s/e-valuator, folder data.

    Examples
    --------
    >>> from trajscore.datasets import fetch_evaluator
    >>> X, y = fetch_evaluator("hotpotqa", return_X_y=True)  # doctest: +SKIP
    """
    check_choice(name, "name", tuple(_FILES))
    file = f"{name}_w_scores_compressed.csv.gz"
    path = retrieve(_EVALUATOR + file, file, _FILES[name], data_home, download_if_missing)
    frame = pd.read_csv(path)
    X, y = TrajectoryArray.from_frame(
        frame, id="uq_problem_idx", step="num_steps", value="judge_probability", outcome="solved"
    )
    return as_data(
        X,
        y,
        return_X_y,
        frame=frame if as_frame else None,
        DESCR=f"{name}: {len(X)} runs scored at every step by a judge; e-valuator paper, MIT.",
        filename=str(path),
    )


_EXPECTED_COST = "https://raw.githubusercontent.com/luferrer/expected_cost/main/notebooks/data/"
_PARTS = ("scores", "targets")
# SHA-256 of scores.npy and targets.npy, where they are known
_CHECKSUMS: dict[str, tuple[str, str]] = {
    "agnews_gpt2": (
        "df9eb254784786bce6e03719aa24f0f6cd8d1473b2319cc1583df40e1ee4bdb7",
        "ec3f5d3b4daa0ae72bafacac524aa103caf3373604b79299b34019fe589c2b4d",
    ),
    "cifar10_resnet-20": (
        "885787701a30e8d15c1108c40f4dccce9714d54c3a94583b33b16b6bf63999fa",
        "66f9a58d50e4ddc50e1fc698ea759325fedd091ae85b67ddf9d092ac5eabb65c",
    ),
    "pneumoniamnist_resnet50": (
        "8f4b8dbc75044a54b5bd53ef6ead8b249e51ef12ae376bcefc6923599df99fa7",
        "b4fd412d25a92b7f3d6d01ed063609627464fca4f52d66d6ce6c493cdf99d130",
    ),
    "sst2_gpt2": (
        "61e13c77c2f444c7ad1d6b3d15aee0ea0a9ad03e0194fac7ccb8234b04a4b47e",
        "bc20fd4f02577ac1dbb1ec5ce895dc988242ac54b8a19d61dd3f67d7a2497cb4",
    ),
}


def fetch_expected_cost(
    name: str,
    *,
    data_home: str | Path | None = None,
    download_if_missing: bool = True,
    return_X_y: bool = False,
) -> Any:
    """Fetch log-probabilities and classes of one public score set (MIT licence).

    Parameters
    ----------
    name : str
        Folder of the set, as "sst2_gpt2", "agnews_gpt2", "cifar10_resnet-20" or
        "pneumoniamnist_resnet50".
    data_home, download_if_missing, return_X_y : str or Path, bool and bool
        As in `fetch_evaluator`.

    Returns
    -------
    Bunch or tuple
        data: ndarray of shape (n_samples, n_classes), log-probabilities in float64 (log_softmax
        of the scores); target: ndarray of int, the classes; DESCR; filenames.

    Raises
    ------
    ValueError, OSError, ImportError
        As `fetch_evaluator`.

    References
    ----------
    github.com/luferrer/expected_cost, folder notebooks/data; used by Estienne et al. (2026).

    Examples
    --------
    >>> from trajscore.datasets import fetch_expected_cost
    >>> X, y = fetch_expected_cost("sst2_gpt2", return_X_y=True)  # doctest: +SKIP
    """
    if not isinstance(name, str) or not name or "/" in name or name.startswith("."):
        raise ValueError(f"{name!r} is not the name of a score set; use, say, 'sst2_gpt2'")
    folder = f"{_EXPECTED_COST}{name}/"
    paths = [
        retrieve(
            f"{folder}{part}.npy", f"{name}_{part}.npy", sha256, data_home, download_if_missing
        )
        for part, sha256 in zip(_PARTS, _CHECKSUMS.get(name, (None, None)), strict=True)
    ]
    scores, targets = (np.load(path, allow_pickle=False) for path in paths)
    X = log_softmax(scores.astype(float), axis=1)
    y = targets.ravel().astype(np.int64)
    return as_data(
        X,
        y,
        return_X_y,
        DESCR=f"{name}: {X.shape[0]} samples of {X.shape[1]} classes; expected_cost, MIT.",
        filenames=[str(path) for path in paths],
    )


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
        meta={
            "model": [run.extra["model"] for run in runs],
            "task": [run.extra["family"] for run in runs],
            "question": [run.task for run in runs],
            "stop_reason": [run.stop_reason for run in runs],
        },
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
