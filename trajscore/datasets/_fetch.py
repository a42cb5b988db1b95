"""Download a public file once and check it; the form in which all data sets are returned."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sklearn.datasets import get_data_home
from sklearn.utils import Bunch

from trajscore.core.optional import optional
from trajscore.core.values import as_flag


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
    known = None if sha256 is None else f"sha256:{sha256}"
    return Path(pooch.retrieve(url, known_hash=known, fname=file, path=folder))


def as_data(X: Any, y: Any, return_X_y: bool, **fields: Any) -> Any:
    """Return (X, y), or a Bunch of them and other fields."""
    if as_flag(return_X_y, "return_X_y"):
        return X, y
    return Bunch(data=X, target=y, **fields)
