"""Public class scores of classifiers of text, images and speech."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import log_softmax

from trajscore.datasets._fetch import as_data, retrieve

_URL = "https://raw.githubusercontent.com/luferrer/expected_cost/main/notebooks/data/"
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
    folder = f"{_URL}{name}/"
    paths = [
        retrieve(
            f"{folder}{part}.npy", f"{name}_{part}.npy", sha256, data_home, download_if_missing
        )
        for part, sha256 in zip(_PARTS, _KNOWN.get(name, (None, None)), strict=True)
    ]
    scores, targets = (np.load(path, allow_pickle=False) for path in paths)
    X = log_softmax(scores.astype(np.float64), axis=1)
    y = targets.ravel().astype(np.int64)
    return as_data(
        X,
        y,
        return_X_y,
        DESCR=f"{name}: {X.shape[0]} samples of {X.shape[1]} classes; expected_cost, MIT.",
        filenames=[str(path) for path in paths],
    )
