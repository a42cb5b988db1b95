"""Public tables of agents' runs with a judge's probability at every step."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from trajscore.core.array import TrajectoryArray
from trajscore.core.values import check_choice
from trajscore.datasets._fetch import as_data, retrieve

_URL = "https://raw.githubusercontent.com/shuvom-s/e-valuator/main/data/"
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
    path = retrieve(_URL + file, file, _FILES[name], data_home, download_if_missing)
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
