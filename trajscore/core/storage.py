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
_VALUE, _META, _HEADER = "value:", "meta:", b"trajscore"
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
    _check_meta(meta, path.suffix)
    with replacing(path) as file:
        form.write(parts, meta, file)


def load(path: Path, build: Callable[..., Loaded], max_size: int | None = None) -> Loaded:
    """Read what `save` wrote, and build a container of its parts."""
    form = _format(path)
    check_file(path)
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist; give the path of a file that save wrote")
    try:
        if form.unpacked_size(path) > (unpacked_limit(path) if max_size is None else max_size):
            raise too_large(path, max_size)
        return build(**form.read(path), missing="allow")
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


def _check_meta(meta: pd.DataFrame, ending: str) -> None:
    """Refuse the first column that would not come back as it is."""
    texts = [str(name) for name in meta.columns]
    for j, name in enumerate(meta.columns):
        if not isinstance(name, (str, int)) or texts.count(texts[j]) > 1:
            raise ValueError(
                f"column {name!r} of meta cannot be saved under that name; give the columns "
                f"different names that are text or whole numbers"
            )
        column = meta.iloc[:, j]
        try:
            same = _same(_FORMATS[ending].there_and_back(column), column)
        except _ERRORS:
            same = False
        if not same:
            raise ValueError(
                f"column {name!r} of meta ({column.dtype}) would not come back from a {ending} "
                f"file as it is; make its values of one plain type, for example with .astype(str), "
                f"or try {next(other for other in _FORMATS if other != ending)}"
            )


def _same(first: pd.Series, second: pd.Series) -> bool:
    if str(first.dtype) != str(second.dtype) or not first.equals(second):
        return False
    # `equals` takes a tuple for a list
    return first.dtype != object or list(map(type, first)) == list(map(type, second))


# ---------------------------------------------------------------- .npz


def _write_npz(parts: Parts, meta: pd.DataFrame, file: BinaryIO) -> None:
    arrays: dict[str, Any] = {
        "cells": parts["cells"],
        "lengths": np.diff(parts["offsets"]),
        "ids": parts["ids"],
        "ended": parts["ended"],
        "n_steps": np.int64(parts["n_steps"]),
        "meta": np.array(json.dumps([(name, *_to_json(meta[name])) for name in meta])),
    }
    for name in ("channels", "horizon"):
        if parts[name] is not None:
            arrays[name] = np.array(parts[name])
    # as np.savez_compressed does, whose older versions leave the archive open where writing fails
    with ZipFile(file, "w", ZIP_DEFLATED) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asarray(array), allow_pickle=False)


def _npz_size(path: Path) -> int:
    with ZipFile(path) as archive:
        return sum(member.file_size for member in archive.infolist())


def _read_npz(path: Path) -> Parts:
    # opened here, because np.load leaves what it cannot read open
    with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
        meta = {name: _from_json(*column) for name, *column in json.loads(str(arrays["meta"]))}
        channels = arrays["channels"].tolist() if "channels" in arrays else None
        return {
            **{name: arrays[name] for name in ("cells", "lengths", "ended")},
            "horizon": arrays.get("horizon"),
            "channels": channels,
            "ids": arrays["ids"].astype(object),
            "meta": pd.DataFrame(meta) if meta else None,
            "n_steps": int(arrays["n_steps"]),
        }


def _to_json(column: pd.Series) -> tuple[str, Any]:
    """Return the name of a column's dtype and its values as JSON holds them, exactly."""
    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        categories = _to_json(pd.Series(dtype.categories))
        return "category", [column.cat.codes.tolist(), categories, bool(dtype.ordered)]
    if isinstance(dtype, pd.DatetimeTZDtype):
        column = column.dt.tz_convert("UTC").dt.tz_localize(None)
    if column.dtype.kind in "mM" and isinstance(column.dtype, np.dtype):
        return str(dtype), column.to_numpy().view(np.int64).tolist()
    values = [None if value is pd.NA else value for value in column.tolist()]
    return str(dtype), values


def _from_json(name: str, values: Any) -> pd.Series:
    if name == "category":
        codes, categories, ordered = values
        known = pd.Index(_from_json(*categories))
        return pd.Series(pd.Categorical.from_codes(codes, known, ordered=ordered))
    if name == "str":  # pandas 2 keeps text as objects and would read this name as str()
        return pd.Series(values, dtype=pd.Series([""]).dtype)
    dtype: Any = pd.api.types.pandas_dtype(name)
    if isinstance(dtype, pd.DatetimeTZDtype):
        times = pd.Series(np.array(values, dtype=np.int64).view(f"M8[{dtype.unit}]"))
        return times.dt.tz_localize("UTC").dt.tz_convert(dtype.tz)
    if dtype.kind in "mM" and isinstance(dtype, np.dtype):
        return pd.Series(np.array(values, dtype=np.int64).view(dtype))
    return pd.Series(values, dtype=dtype)


# ---------------------------------------------------------------- Parquet


def _write_container(parts: Parts, meta: pd.DataFrame, file: BinaryIO) -> None:
    lengths, cells, channels = np.diff(parts["offsets"]), parts["cells"], parts["channels"]
    rows = np.repeat(np.arange(len(lengths)), lengths)
    columns = cells.reshape(len(cells), len(channels or [""])).T
    table = {
        "row": rows,
        "id": parts["ids"][rows],
        **({} if parts["horizon"] is None else {"horizon": parts["horizon"][rows]}),
        "ended": parts["ended"][rows],
        **{_VALUE + name: column for name, column in zip(channels or [""], columns, strict=True)},
        **{_META + str(name): column.array.take(rows) for name, column in meta.items()},
    }
    header = {
        "n_steps": parts["n_steps"],
        "channels": channels,
        "flat": cells.ndim == 1,
        "meta": list(meta.columns),
        "nan": [name for name, column in meta.items() if _marks_by_nan(column)],
    }
    _write_parquet(pd.DataFrame(table), file, header)


def _read_container(path: Path) -> Parts:
    frame, header = _read_parquet(path)
    if frame["row"].max() >= len(frame):  # as a damaged file may say
        raise ValueError("a run number is out of range")
    lengths = np.bincount(frame["row"])
    first = frame.iloc[np.cumsum(lengths) - lengths].reset_index(drop=True)
    channels = header["channels"]
    cells = frame[[_VALUE + name for name in channels or [""]]].to_numpy(dtype=np.float64)
    meta = first[[_META + str(name) for name in header["meta"]]].set_axis(header["meta"], axis=1)
    for name in header["nan"]:
        meta[name] = meta[name].where(meta[name].notna(), np.nan)
    return {
        "cells": cells[:, 0] if header["flat"] else cells,
        "lengths": lengths,
        "channels": channels,
        "ids": first["id"].to_numpy(dtype=object),
        "horizon": first["horizon"].to_numpy() if "horizon" in first else None,
        "ended": first["ended"].to_numpy(),
        "meta": meta,
        "n_steps": int(header["n_steps"]),
    }


def _marks_by_nan(column: pd.Series) -> bool:
    """Whether objects (text, in pandas 2) have NaN for missing, which Parquet makes None."""
    return column.dtype == object and any(
        isinstance(value, float) for value in column[column.isna()]
    )


def _write_parquet(frame: pd.DataFrame, target: Any, header: dict[str, Any]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.Table.from_pandas(frame, preserve_index=False)
    metadata = {**(table.schema.metadata or {}), _HEADER: json.dumps(header).encode()}
    pq.write_table(table.replace_schema_metadata(metadata), target)


def _parquet_size(path: Path) -> int:
    import pyarrow.parquet as pq

    metadata = pq.read_metadata(path)
    return int(8 * metadata.num_rows * metadata.num_columns)


def _read_parquet(source: Any) -> tuple[pd.DataFrame, dict[str, Any]]:
    import pyarrow.parquet as pq

    table = pq.read_table(source)
    return table.to_pandas(), json.loads(table.schema.metadata[_HEADER])


def _through_parquet(column: pd.Series) -> pd.Series:
    buffer = io.BytesIO()
    _write_parquet(pd.DataFrame({"column": column}), buffer, {})
    buffer.seek(0)
    back = _read_parquet(buffer)[0]["column"]
    return back.where(back.notna(), np.nan) if _marks_by_nan(column) else back


# ---------------------------------------------------------------- both


class _Format(NamedTuple):
    write: Callable[[Parts, pd.DataFrame, BinaryIO], None]
    unpacked_size: Callable[[Path], int]
    read: Callable[[Path], Parts]
    there_and_back: Callable[[pd.Series], pd.Series]


_FORMATS = {
    ".npz": _Format(
        _write_npz,
        _npz_size,
        _read_npz,
        lambda column: _from_json(*json.loads(json.dumps(_to_json(column)))),
    ),
    ".parquet": _Format(_write_container, _parquet_size, _read_container, _through_parquet),
}


def _format(path: Path) -> _Format:
    if path.suffix not in _FORMATS:
        raise ValueError(f"{path}: the file name must end in .npz or .parquet")
    if path.suffix == ".parquet":
        optional("pyarrow", "Parquet files need pyarrow", "data")
    return _FORMATS[path.suffix]
