"""Values that GPT-4 gave to the steps of its own thoughts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from trajscore.core.array import TrajectoryArray
from trajscore.datasets._fetch import as_data, retrieve

_URL = (
    "https://raw.githubusercontent.com/princeton-nlp/tree-of-thought-llm/"
    "ab400345c5ea39d28ea6d7d3be0e417b11113c87/logs/game24/"
)
_FILE = "gpt-4_0.7_propose1_value3_greedy5_start900_end1000.json"
_SHA256 = "e08f019024c99e83e540f8feec99acf619f30b0cf047278a03f62ff45888571b"
_HIGHEST = 60.0  # three times "sure", at 20 each


def fetch_game24(
    *,
    data_home: str | Path | None = None,
    download_if_missing: bool = True,
    return_X_y: bool = False,
) -> Any:
    """Fetch what GPT-4 thought of each step of its solutions of the game of 24 (MIT licence).

    A tree of thoughts takes three steps and an answer. After each, GPT-4 values what it has, and
    the five best paths go on: the paths were selected by these values.

    Parameters
    ----------
    data_home, download_if_missing, return_X_y : str or Path, bool and bool
        As in `fetch_evaluator`.

    Returns
    -------
    Bunch or tuple
        data: TrajectoryArray of the value after each step, over the highest that three votes can
        give; its meta names the puzzle as task. target: 1 where the answer is right, else 0. DESCR;
        filename.

    Raises
    ------
    ValueError, OSError, ImportError
        As `fetch_evaluator`.

    References
    ----------
    Yao et al. (2023), Tree of Thoughts: Deliberate Problem Solving with Large Language Models; logs
    at github.com/princeton-nlp/tree-of-thought-llm, folder logs/game24.

    Examples
    --------
    >>> from trajscore.datasets import fetch_game24
    >>> X, y = fetch_game24(return_X_y=True)  # doctest: +SKIP
    """
    file = retrieve(_URL + _FILE, _FILE, _SHA256, data_home, download_if_missing)
    values, success, task = [], [], []
    for puzzle in json.loads(file.read_text(encoding="utf-8")):
        by_path = [dict(zip(s["new_ys"], s["values"], strict=True)) for s in puzzle["steps"]]
        for answer, info in zip(puzzle["ys"], puzzle["infos"], strict=True):
            lines = answer.splitlines(keepends=True)
            paths = ["".join(lines[: k + 1]) for k in range(len(by_path))]
            values.append([of[path] for of, path in zip(by_path, paths, strict=True)])
            success.append(info["r"])
            task.append(puzzle["idx"])
    cells = np.minimum(np.array(values), _HIGHEST) / _HIGHEST
    X = TrajectoryArray(cells.ravel(), [cells.shape[1]] * len(cells), meta={"task": task})
    return as_data(
        X,
        np.array(success, dtype=np.int64),
        return_X_y,
        DESCR=f"{len(X)} paths through the game of 24, valued by GPT-4; tree of thoughts, MIT.",
        filename=str(file),
    )
