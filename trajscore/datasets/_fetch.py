"""Download a public file once, and check what came."""

from __future__ import annotations

from pathlib import Path

from sklearn.datasets import get_data_home

from trajscore.core.optional import optional


def retrieve(
    url: str,
    file: str,
    sha256: str | None,
    data_home: str | Path | None,
    download_if_missing: bool,
) -> Path:
    """Return the path of a file, downloaded if need be, whose SHA-256 is the one that is known."""
    pooch = optional("pooch", "fetching data needs pooch", "data")
    folder = Path(get_data_home(data_home)) / "trajscore"
    if not download_if_missing and not (folder / file).exists():
        raise OSError(
            f"{folder / file} does not exist; call with download_if_missing=True, or put it there"
        )
    if not download_if_missing and sha256 and pooch.file_hash(str(folder / file)) != sha256:
        raise ValueError(
            f"{folder / file} is not the published file: its SHA-256 does not start with "
            f"{sha256[:12]}; call with download_if_missing=True to fetch it anew"
        )
    known = None if sha256 is None else f"sha256:{sha256}"
    return Path(pooch.retrieve(url, known_hash=known, fname=file, path=folder))
