"""Public logs of agents that write SQL queries and shell commands."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from trajscore.core.array import TrajectoryArray
from trajscore.core.values import check_choice
from trajscore.datasets._fetch import as_data, retrieve

_COMMIT = "c3e46d827cfc9d4c704ec078f7abf9f41e3191d8"
_URL = f"https://raw.githubusercontent.com/princeton-nlp/intercode/{_COMMIT}/data/"
_REACT = "results/bash/gpt-3.5/ic_bash_react_10_turns_fs_"
_TRY_AGAIN = "results/bash/gpt-4/ic_bash_multiturn_gpt-4_10_turns_fs_"
_DATABASES = {
    "sql/spider/ic_spider_dev.json": (
        "68c9ecb0692c80770f46c724cc073ea76be4f301a294caa532c050546948128e"
    )
}
# name: path and SHA-256 of its files
_FILES = {
    "sql_react": {
        "results/sql/gpt-3.5/ic_sql_react_10_turns.json": (
            "cbf8d50c389c946becae1226af41221d9f92378a82faef2d1dfebc69311092d5"
        )
    },
    "sql_try_again": {
        "results/sql/gpt-3.5/ic_sql_multiturn_gpt-3.5_10_turns.json": (
            "c19e6cb7e2fd3e64ff343a4980d59addc9aacded87f3e80a8eb0ac3f9bbedaf5"
        )
    },
    "bash_react": {
        f"{_REACT}1.json": "547f22b47eba648282c001800516191ce2bfc95c14c2681e659895cfe2043585",
        f"{_REACT}2.json": "c67cc3b4216f78e520dd37f068c45d790c4c291a7a5a7959a379eca50f568137",
        f"{_REACT}3.json": "ef3776f3dda2ddbbc1a9ce8ac94ae5682ad0deb4297527e4fcb16b548d4f3fb8",
        f"{_REACT}4.json": "af37d109fafacbb86aa23d123825c15c8fbfee2b6ccb1f39108f1f6b5daf7d0e",
    },
    "bash_try_again": {
        f"{_TRY_AGAIN}1.json": "b7612e3a4733d497506caaf538ccb8c8900b60170de0e05b8dad6501d72004cc",
        f"{_TRY_AGAIN}2.json": "5f7e68b0e31d24fa2e3ffdbc68b2cc00104b59ebc8d210cda6a205efcfc64d15",
        f"{_TRY_AGAIN}3.json": "67108566fa3947f326df370c4cd355a0e37a067ae86d4d36e2f6e8e8587b4be6",
        f"{_TRY_AGAIN}4.json": "f5072705e8decd1a7f76f6d8f04a9dd32ad1c05e2401d49d8eacc48ab77cbf9d",
    },
}


def fetch_intercode(
    name: str,
    *,
    data_home: str | Path | None = None,
    download_if_missing: bool = True,
    return_X_y: bool = False,
) -> Any:
    """Fetch runs of language models in the SQL or the Bash environment of InterCode (MIT licence).

    A run ends when the model submits (ReAct) or succeeds (try again), and after 10 turns at the
    latest (11 where the last one submits).

    Parameters
    ----------
    name : {"sql_react", "sql_try_again", "bash_react", "bash_try_again"}
        GPT-3.5 on 1,034 SQL questions, by ReAct or told its reward after each turn; GPT-3.5 by
        ReAct, or GPT-4 told its reward, on 200 Bash tasks.
    data_home, download_if_missing, return_X_y : str or Path, bool and bool
        As in `fetch_evaluator`.

    Returns
    -------
    Bunch or tuple
        data: TrajectoryArray that says of every turn whether its action was valid (1) or not (0);
        its meta names the task, and as environment the database or file system. target: 1 where
        the run reached the full reward, else 0. DESCR; filenames.

    Raises
    ------
    ValueError, OSError, ImportError
        As `fetch_evaluator`.

    References
    ----------
    Yang et al. (2023), InterCode: Standardizing and Benchmarking Interactive Coding with Execution
    Feedback; logs at github.com/princeton-nlp/intercode, folder data/results.

    Examples
    --------
    >>> from trajscore.datasets import fetch_intercode
    >>> X, y = fetch_intercode("sql_react", return_X_y=True)  # doctest: +SKIP
    """
    check_choice(name, "name", tuple(_FILES))
    questions = _DATABASES if name.startswith("sql") else {}
    paths = [
        retrieve(_URL + path, path.rpartition("/")[2], sha256, data_home, download_if_missing)
        for path, sha256 in {**_FILES[name], **questions}.items()
    ]
    contents = [json.loads(path.read_text(encoding="utf-8")) for path in paths]
    database = {q["query"]: q["db"] for q in contents.pop()} if questions else None
    X, y = _as_runs(contents, database)
    return as_data(
        X,
        y,
        return_X_y,
        DESCR=f"{name}: {len(X)} runs, and which of their actions were valid; InterCode, MIT.",
        filenames=[str(path) for path in paths],
    )


def _as_runs(
    logs: list[dict[str, Any]], database: Mapping[str, str] | None
) -> tuple[TrajectoryArray, Any]:
    """Make runs of logs; each log has one file system, or several databases by query."""
    runs, success, tasks, environments = [], [], [], []
    for number, log in enumerate(logs, start=1):
        for key, run in log.items():
            runs.append(np.asarray(run["turn_history"]["valid_action"], dtype=np.float64))
            success.append(run["summary"]["max_reward"] == 1)
            environment = f"fs_{number}" if database is None else database[run["query"]]
            environments.append(environment)
            tasks.append(f"{environment}/{key}")
    X = TrajectoryArray.from_list(
        runs, ids=tasks, meta={"task": tasks, "environment": environments}
    )
    return X, np.asarray(success, dtype=np.int64)
