"""Public results of language models that play games."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from trajscore.core.array import TrajectoryArray
from trajscore.core.values import check_choice
from trajscore.datasets._fetch import as_data, of_archive, retrieve

_COMMIT = "989931c5f7acb66ace99d423a480fd537d74e749"
_URL = f"https://github.com/balrog-ai/experiments/archive/{_COMMIT}.tar.gz"
_FILE = f"balrog-experiments-{_COMMIT[:12]}.tar.gz"
# SHA-256 of paths and contents
_RESULTS = {
    "babaisai": "fc042c05d73b052de31db0033616136686bfbbc1086c957aefc6a185c8e9722e",
    "babyai": "dfd3a817ffc692f5014c53b9b20109adb109ed306ff9216fc59dfd3eb629f9a2",
    "minihack": "7bcfaccbfd077b5a849c82e4dae5fdd8f904342257de22b8a2dabaf059f46948",
    "textworld": "406936a3a5216184cd373dff2c1e20b1bcecf31f8066610fde90a25ea8a4e925",
}


def fetch_balrog(
    name: str,
    *,
    data_home: str | Path | None = None,
    download_if_missing: bool = True,
    return_X_y: bool = False,
) -> Any:
    """Fetch how long 16 language models played a game of the BALROG benchmark, and who won.

    The results state no licence: they are fetched, and may not be passed on. All games come in one
    archive, of about 80 MB.

    Parameters
    ----------
    name : {"babaisai", "babyai", "minihack", "textworld"}
        Which game.
    data_home, download_if_missing, return_X_y : str or Path, bool and bool
        As in `fetch_evaluator`.

    Returns
    -------
    Bunch or tuple
        data: TrajectoryArray of step numbers, 1, 2, ..., as these results hold no more about a
        step; its meta names the agent, the task, and the progression in [0, 1].
        target: 1 where the progression is 1, else 0. DESCR; filename.

    Raises
    ------
    ValueError, OSError, ImportError
        As `fetch_evaluator`.

    Notes
    -----
    Where only git reaches GitHub, make the archive from a clone of the repository, at the path that
    the error under ``download_if_missing=False`` names::

        git archive --prefix=experiments/ -o PATH 989931c5f7ac submissions/LLM

    References
    ----------
    Paglieri et al. (2024), BALROG: Benchmarking Agentic LLM and VLM Reasoning On Games; results at
    github.com/balrog-ai/experiments.

    Examples
    --------
    >>> from trajscore.datasets import fetch_balrog
    >>> X, y = fetch_balrog("babyai", return_X_y=True)  # doctest: +SKIP
    """
    check_choice(name, "name", tuple(_RESULTS))
    path = retrieve(_URL, _FILE, None, data_home, download_if_missing)
    runs = rf"[^/]*/submissions/LLM/([^/]+/{name}/.*_run_\d+)\.json"
    results = of_archive(path, runs, _RESULTS[name], f"results of {name}")
    X, y = _as_runs({file: json.loads(content) for file, content in results.items()})
    return as_data(
        X,
        y,
        return_X_y,
        DESCR=f"{name}: {len(X)} runs of 16 language models and their lengths; BALROG, no licence.",
        filename=str(path),
    )


def _as_runs(results: dict[str, dict[str, Any]]) -> tuple[TrajectoryArray, Any]:
    """Make runs of results, and their outcomes."""
    lengths = np.array([run["num_steps"] for run in results.values()])
    progression = np.array([run["progression"] for run in results.values()], dtype=np.float64)
    steps = np.concatenate([np.arange(1.0, length + 1) for length in lengths])
    meta = {
        "agent": [file.partition("/")[0] for file in results],
        "task": [run["task"] for run in results.values()],
        "progression": progression,
    }
    X = TrajectoryArray(steps, lengths, ids=list(results), meta=meta)
    return X, (progression == 1).astype(np.int64)
