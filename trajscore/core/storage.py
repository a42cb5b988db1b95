"""Files of a container: NumPy's .npz or Parquet, both without pickle, never half a file.

What is loaded equals what was saved, to the last digit and with the same dtypes; a column of
meta of which that cannot be said is refused when it is saved.
"""

from __future__ import annotations

import io
import json
import os
import secrets
import shutil
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeVar
from zipfile import ZIP_DEFLATED, BadZipFile, ZipFile

import numpy as np
import pandas as pd

from trajscore.core.convert import Parts
from trajscore.core.errors import ArgumentError
from trajscore.core.optional import optional
from trajscore.core.values import check_file

Loaded = TypeVar("Loaded")

# How much a compressed file may unpack to by default: a number of bytes, or a multiple of its size.
_LEAST_LIMIT = 256_000_000
_USUAL_RATIO = 100
_META, _HEADER = "meta:", b"trajscore"
# what NumPy, pandas and pyarrow raise about files and values that are not theirs
_ERRORS = (
    *(ValueError, TypeError, KeyError, IndexError, OverflowError, NotImplementedError),
    *(AttributeError, EOFError, OSError, BadZipFile, zlib.error),
)


def save(parts: Parts, path: Path) -> None:
    """Write the parts of a container in the format that the ending of `path` names."""
    form = _format(path)
    meta = parts["meta"]
    meta = pd.DataFrame(index=range(len(parts["ids"]))) if meta is None else meta
    _check_meta(meta, path)
    with replacing(path) as file:
        form.write(parts, meta, file)


def load(path: Path, build: Callable[..., Loaded], max_size: int | None = None) -> Loaded:
    """Read what `save` wrote, and build a container of its parts."""
    form = _format(path)
    check_file(path)
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist; give the path of a file that save wrote")
    try:
        with path.open("rb") as file:
            if form.unpacked_size(file) > (unpacked_limit(path) if max_size is None else max_size):
                raise too_large(path, max_size)
            file.seek(0)
            return build(**form.read(file), missing="allow")
    except ArgumentError:
        raise
    except _ERRORS as error:
        raise ValueError(
            f"{path}: not a file that TrajectoryArray.save of this version wrote; read a "
            f"table with TrajectoryArray.from_frame"
        ) from error


def unpacked_limit(path: Path) -> int:
    """Return how many bytes a compressed file may unpack to, as a small one may to any number."""
    return max(_LEAST_LIMIT, _USUAL_RATIO * path.stat().st_size)


def too_large(path: Path, max_size: int | None) -> ArgumentError:
    """Return the error of a file that would take more."""
    limit = unpacked_limit(path) if max_size is None else max_size
    return ArgumentError(
        f"{path} unpacks to more than {limit:,} bytes; if you trust the file, allow more with "
        f"{{argument}}",
        "max_size",
    )


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Open a file that takes the place of `path` once it is whole and on the disk, not before."""
    if path.exists() and not path.is_file():  # a pipe or a terminal cannot be replaced
        with path.open("wb") as stream:
            yield stream
        return
    path = path.resolve()  # what a link names is replaced, not the link
    if not path.parent.is_dir():
        raise FileNotFoundError(f"the folder {path.parent} does not exist; create it first")
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with beside.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            shutil.copymode(path, beside)
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def _check_meta(meta: pd.DataFrame, path: Path) -> None:
    """Refuse the first column that would not come back as it is."""
    texts, ending = [str(name) for name in meta.columns], path.suffix
    for j, name in enumerate(meta.columns):
        if not isinstance(name, (str, int)) or texts.count(texts[j]) > 1:
            raise ValueError(
                f"column {name!r} of meta cannot be saved under that name; give the columns "
                f"different names that are text or whole numbers"
            )
        column = meta.iloc[:, j]
        try:
            same = _same(_there_and_back(column, _format(path)), column)
        except _ERRORS:
            same = False
        if not same:
            raise ValueError(
                f"column {name!r} of meta ({column.dtype}) would not come back from a {ending} "
                f"file as it is; make its values of one plain type, for example with .astype(str), "
                f"or try {next(other for other in _FORMATS if other != ending)}"
            )


def _there_and_back(column: pd.Series, form: _Format) -> pd.Series:
    """Write a column as the meta of runs of one step, and read it."""
    n, buffer = len(column), io.BytesIO()
    parts = {"cells": np.zeros(n), "offsets": np.arange(n + 1), "ids": np.arange(n)}
    nothing = {"ended": np.zeros(n, dtype=bool), "channels": None, "horizon": None}
    form.write(parts | nothing, column.to_frame(), buffer)
    buffer.seek(0)
    return form.read(buffer)["meta"].iloc[:, 0]


def _same(first: pd.Series, second: pd.Series) -> bool:
    """Whether columns are equal; in one of objects a missing value may be None or NaN."""
    if str(first.dtype) != str(second.dtype) or not first.equals(second):
        return False
    # `equals` takes a tuple for a list
    kinds = [list(map(type, column.dropna())) for column in (first, second)]
    return first.dtype != object or kinds[0] == kinds[1]


# ---------------------------------------------------------------- .npz


def _write_npz(parts: Parts, meta: pd.DataFrame, file: BinaryIO) -> None:
    names = ("cells", "ids", "ended", "channels", "horizon")
    arrays = {name: np.asarray(parts[name]) for name in names if parts[name] is not None}
    arrays["lengths"] = np.diff(parts["offsets"])
    arrays["meta"] = np.array(json.dumps([(name, *_to_json(meta[name])) for name in meta]))
    # as np.savez_compressed does, whose older versions leave the archive open where writing fails
    with ZipFile(file, "w", ZIP_DEFLATED) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)


def _npz_size(file: BinaryIO) -> int:
    with ZipFile(file) as archive:
        return sum(member.file_size for member in archive.infolist())


def _read_npz(file: BinaryIO) -> Parts:
    with np.load(file, allow_pickle=False) as arrays:
        parts = dict(arrays)
    meta = {
        name: pd.Series(values, dtype=_dtype(dtype))
        for name, dtype, values in json.loads(str(parts["meta"]))
    }
    return parts | {
        "ids": parts["ids"].astype(object),
        "meta": pd.DataFrame(meta) if meta else None,
    }


def _to_json(column: pd.Series) -> tuple[str, list[Any]]:
    """Return the name of a column's dtype and its values as JSON holds them, exactly."""
    return str(column.dtype), [None if value is pd.NA else value for value in column.tolist()]


def _dtype(name: str) -> Any:
    # pandas 2 keeps text as objects and would read this name as str()
    return pd.Series([""]).dtype if name == "str" else pd.api.types.pandas_dtype(name)


# ---------------------------------------------------------------- Parquet


def _write_parquet(parts: Parts, meta: pd.DataFrame, file: BinaryIO) -> None:
    """Write one row a run; the cells of a run are a list."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    cells = parts["cells"]
    runs = {name: parts[name] for name in ("ids", "ended", "horizon") if parts[name] is not None}
    columns = {_META + str(name): column for name, column in meta.items()}
    table = pa.Table.from_pandas(pd.DataFrame(runs | columns), preserve_index=False)
    flat = pa.array(cells.ravel())
    ends = pa.array(parts["offsets"] * (cells.size // max(1, len(cells))))
    table = table.append_column("cells", pa.LargeListArray.from_arrays(ends, flat))
    header = {
        "channels": parts["channels"],
        "width": cells.shape[1:],
        "meta": list(meta.columns),
    }
    metadata = {**(table.schema.metadata or {}), _HEADER: json.dumps(header).encode()}
    pq.write_table(table.replace_schema_metadata(metadata), file)


def _parquet_size(file: BinaryIO) -> int:
    import pyarrow.parquet as pq

    found = pq.read_metadata(file)
    groups = [found.row_group(k) for k in range(found.num_row_groups)]
    return sum(8 * group.column(k).num_values for group in groups for k in range(found.num_columns))


def _read_parquet(file: BinaryIO) -> Parts:
    import pyarrow.parquet as pq

    table = pq.read_table(file)
    header = json.loads(table.schema.metadata[_HEADER])
    runs = table["cells"].combine_chunks()
    frame = table.drop(["cells"]).to_pandas()
    meta = frame[[_META + str(name) for name in header["meta"]]].set_axis(header["meta"], axis=1)
    return {
        "cells": runs.flatten().to_numpy(zero_copy_only=False).reshape(-1, *header["width"]),
        "lengths": np.diff(runs.offsets) // (header["width"] or [1])[0],
        "channels": header["channels"],
        "ids": frame["ids"].to_numpy(dtype=object),
        "horizon": frame["horizon"].to_numpy() if "horizon" in frame else None,
        "ended": frame["ended"].to_numpy(),
        "meta": meta,
    }


# ---------------------------------------------------------------- both


class _Format(NamedTuple):
    write: Callable[[Parts, pd.DataFrame, BinaryIO], None]
    unpacked_size: Callable[[BinaryIO], int]
    read: Callable[[BinaryIO], Parts]


_FORMATS = {
    ".npz": _Format(_write_npz, _npz_size, _read_npz),
    ".parquet": _Format(_write_parquet, _parquet_size, _read_parquet),
}


def _format(path: Path) -> _Format:
    if path.suffix not in _FORMATS:
        raise ValueError(f"{path}: the file name must end in .npz or .parquet")
    if path.suffix == ".parquet":
        optional("pyarrow", "Parquet files need pyarrow", "data")
    return _FORMATS[path.suffix]
