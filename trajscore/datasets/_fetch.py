"""Public data, downloaded once and checked; the form in which all data sets are returned."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import log_softmax
from sklearn.datasets import get_data_home
from sklearn.utils import Bunch

from trajscore.core.array import TrajectoryArray
from trajscore.core.errors import optional
from trajscore.core.values import as_flag, check_choice


def retrieve(
    url: str, file: str, sha256: str | None, data_home: str | Path | None, download_if_missing: bool
) -> Path:
    """Return the path of a file, downloaded if need be; check its SHA-256 where it is known."""
    pooch = optional("pooch", "fetching data needs pooch", "data")
    folder = Path(get_data_home(data_home)) / "trajscore"
    if not download_if_missing and not (folder / file).exists():
        raise OSError(
            f"{folder / file} does not exist; pass download_if_missing=True, or put the file there"
        )
    if not download_if_missing and sha256 and pooch.file_hash(str(folder / file)) != sha256:
        raise ValueError(
            f"{folder / file} is not the published file: its SHA-256 does not start with "
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
_KNOWN: dict[str, tuple[str, str]] = {
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
        for part, sha256 in zip(_PARTS, _KNOWN.get(name, (None, None)), strict=True)
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
