"""TrajectoryArray files: NumPy's .npz or Parquet, both without pickle."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from trajscore.trajectories import TrajectoryArray

_VALUE, _META = "value:", "meta:"


def save(X: TrajectoryArray, path: Path) -> None:
    """Write `X` in the format that the ending of `path` names."""
    if path.suffix == ".npz":
        _save_npz(X, path)
    elif path.suffix == ".parquet":
        _save_parquet(X, path)
    else:
        raise ValueError(f"{path}: the file name must end in .npz or .parquet")


def load(cls: Any, path: Path) -> Any:
    """Read what `save` wrote."""
    if path.suffix == ".npz":
        return _load_npz(cls, path)
    if path.suffix == ".parquet":
        return _load_parquet(cls, path)
    raise ValueError(f"{path}: the file name must end in .npz or .parquet")


def _save_npz(X: TrajectoryArray, path: Path) -> None:
    parts: dict[str, Any] = {
        "cells": X.cells,
        "lengths": X.lengths,
        "horizon": X.horizon,
        "ids": X.ids,
        "n_steps": np.int64(X.shape[1]),
    }
    if X.channels is not None:
        parts["channels"] = np.array(X.channels)
    if len(X.meta.columns):
        parts["meta"] = np.array(X.meta.to_json(orient="table", index=False))
    np.savez_compressed(path, **parts)


def _load_npz(cls: Any, path: Path) -> TrajectoryArray:
    with np.load(path, allow_pickle=False) as parts:
        meta = None
        if "meta" in parts:
            meta = pd.read_json(io.StringIO(str(parts["meta"])), orient="table")
        X = cls(
            parts["cells"],
            parts["lengths"],
            channels=[str(name) for name in parts["channels"]] if "channels" in parts else None,
            ids=parts["ids"].astype(object),
            horizon=parts["horizon"],
            meta=meta,
            missing="allow",
        )
        return X._replace(n_steps=int(parts["n_steps"]))


def _need_pyarrow() -> None:
    try:
        import pyarrow as pa  # noqa: F401
    except ImportError as error:
        raise ImportError(
            'Parquet files need pyarrow; run `pip install "scikit-trajscore[data]"`'
        ) from error


def _save_parquet(X: TrajectoryArray, path: Path) -> None:
    _need_pyarrow()
    lengths = X.lengths
    cells = X.cells.reshape(len(X.cells), -1)
    names = X.channels or ("",)
    table = {
        "row": np.repeat(np.arange(len(X)), lengths),
        "id": np.repeat(X.ids, lengths),
        "horizon": np.repeat(X.horizon, lengths),
        "n_steps": np.full(len(cells), X.shape[1]),
        **{_VALUE + name: cells[:, j] for j, name in enumerate(names)},
    }
    frame = pd.DataFrame(table)
    for name, column in X.meta.items():
        frame[_META + str(name)] = column.take(frame["row"]).to_numpy()
    try:
        frame.to_parquet(path, index=False)
    except (TypeError, ValueError) as error:  # pyarrow's own errors are of these kinds
        raise ValueError(
            f"{path}: a column of meta does not fit into Parquet ({error.args[-1]}); make its "
            f"values of one type, or save as .npz"
        ) from error


def _load_parquet(cls: Any, path: Path) -> TrajectoryArray:
    _need_pyarrow()
    frame = pd.read_parquet(path)
    lengths = np.bincount(frame["row"])
    first = frame.iloc[np.concatenate([[0], np.cumsum(lengths)[:-1]])].reset_index(drop=True)
    columns = [name for name in frame.columns if name.startswith(_VALUE)]
    channels = [name.removeprefix(_VALUE) for name in columns]
    cells = frame[columns].to_numpy(dtype=np.float64)
    meta = first.filter(regex="^" + _META)
    X = cls(
        cells[:, 0] if channels == [""] else cells,
        lengths,
        channels=None if channels == [""] else channels,
        ids=first["id"].to_numpy(dtype=object),
        horizon=first["horizon"].to_numpy(),
        meta=meta.rename(columns=lambda name: name.removeprefix(_META))
        if len(meta.columns)
        else None,
        missing="allow",
    )
    return X._replace(n_steps=int(frame["n_steps"].iloc[0]))
