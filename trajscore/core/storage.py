"""Files of a container: NumPy's .npz, without pickle, never half a file.

What is loaded equals what was saved, to the last digit and with the same dtypes; a column of
meta of which that cannot be said is refused when it is saved. Which types a saved estimator may
hold stands here, too, and values as JSON has them: it knows no NaN, no infinity and none of NumPy's
scalars, nor does it say which of two values of one key counts. A CSV is written so that a
spreadsheet does not run its cells.
"""

import csv
import json
import math
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import is_dataclass
from importlib import import_module
from inspect import isabstract
from pathlib import Path
from typing import Any, BinaryIO, TypeVar
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator

from trajscore.core.errors import ArgumentError
from trajscore.core.score_families import FAMILIES
from trajscore.core.values import check_file

Loaded = TypeVar("Loaded")

# How much a compressed file may unpack to by default: a number of bytes, or a multiple of its size.
_LEAST_LIMIT = 256_000_000
_USUAL_RATIO = 100


def save(X: Any, path: Path) -> None:
    """Write a container."""
    _check_ending(path)
    names = ("cells", "lengths", "ids", "ended", "channels", "horizon")
    arrays = {name: np.asarray(getattr(X, name)) for name in names if getattr(X, name) is not None}
    arrays["meta"] = np.array(_meta_to_json(X.meta))
    # as np.savez_compressed does, whose older versions leave the archive open where writing fails
    with replacing(path) as file, ZipFile(file, "w", ZIP_DEFLATED) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)


def load(path: Path, build: Callable[..., Loaded], max_size: int | None = None) -> Loaded:
    """Read what `save` wrote, and build a container of its parts."""
    _check_ending(path)
    check_file(path)
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist; give the path of a file that save wrote")
    try:
        check_archive(path, max_size)
        # opened here, because np.load leaves what it cannot read open
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            parts = dict(arrays)
        parts |= {"ids": parts["ids"].astype(object), "meta": _meta_from_json(str(parts["meta"]))}
        return build(**parts, missing="allow")
    except ArgumentError:
        raise
    except Exception as error:  # of NumPy, pandas or zlib: the file is not ours
        raise ValueError(
            f"{path}: not a file that TrajectoryArray.save of this version wrote; read a "
            f"table with TrajectoryArray.from_frame"
        ) from error


def _check_ending(path: Path) -> None:
    if path.suffix != ".npz":
        raise ValueError(f"{path}: the file name must end in .npz")


def check_archive(path: Path, max_size: int | None) -> None:
    """Refuse a zip archive that unpacks to too many bytes."""
    with ZipFile(path) as archive:
        check_size(path, sum(member.file_size for member in archive.infolist()), max_size)


def check_size(path: Path, size: int, max_size: int | None) -> None:
    """Refuse a compressed file whose content has more bytes than `max_size`, or 256 MB."""
    limit = max_size
    if limit is None:  # a small file may unpack to any number
        limit = max(_LEAST_LIMIT, _USUAL_RATIO * path.stat().st_size)
    if size > limit:
        raise ArgumentError(
            f"{path} unpacks to more than {limit:,} bytes; if you trust the file, allow more with "
            f"{{argument}}",
            "max_size",
        )


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Open a file that takes the place of `path` once it is whole and on the disk, not before."""
    target = path.resolve()  # what a link names is replaced, not the link
    if not target.parent.is_dir():
        raise FileNotFoundError(f"the folder {target.parent} does not exist; create it first")
    beside = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:
        if path.exists() and not path.is_file():  # a pipe or a terminal cannot be replaced
            with path.open("wb") as stream:
                yield stream
            return
        with beside.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            shutil.copymode(target, beside)
        beside.replace(target)
    except BaseException as error:
        beside.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno and not error.filename:  # as of a full disk
            error.filename = str(path)
        raise


def _meta_to_json(meta: pd.DataFrame) -> str:
    """Return the columns with their dtypes; refuse the first that would not come back as it is."""
    names = list(meta.columns)
    columns = []
    for j, name in enumerate(names):
        column = meta.iloc[:, j]
        values = [None if value is pd.NA else value for value in column.tolist()]
        columns.append((name, str(column.dtype), values))
        try:
            same = _same(_meta_from_json(json.dumps([columns[-1]]))[name], column)
        except Exception:  # of any kind, by its dtype
            same = False
        if not same or names.count(name) > 1:
            raise ValueError(
                f"column {name!r} of meta ({column.dtype}) would not come back from a file as it "
                f"is; give it a name of its own, and values of one plain type, for example with "
                f".astype(str)"
            )
    return json.dumps(columns)


def _meta_from_json(text: str) -> pd.DataFrame:
    # pandas 2 keeps text as objects and would read "str" as str()
    texts = {"str": pd.Series([""]).dtype}
    return pd.DataFrame(
        {
            name: pd.Series(values, dtype=texts.get(dtype) or pd.api.types.pandas_dtype(dtype))
            for name, dtype, values in json.loads(text)
        }
    )


def _same(first: pd.Series, second: pd.Series) -> bool:
    if str(first.dtype) != str(second.dtype) or not first.equals(second):
        return False
    # `equals` takes a tuple for a list
    return first.dtype != object or list(map(type, first)) == list(map(type, second))


# Classes only, by full names, out of files that hold a public estimator of these packages or its
# parts: a module's prefix would let a file name any function in it. Estimators of other packages
# ask a model or act, and are not trusted; tests hold that these do nothing of the kind.
_ROOMS = ("calibration", "censoring", "localization", "monitoring", "tracer")
_FILES_OF_RECORDS = (
    "calibration.combination", "core.ties", "monitoring._density_ratio", "monitoring._fleet_runs",
    "monitoring.thresholds",
)  # fmt: skip
_OTHERS = (  # scikit-learn's are records of settings, in searches
    "builtins.frozenset",
    "sklearn.calibration._CalibratedClassifier",
    "sklearn.calibration._SigmoidCalibration",
    "sklearn.metrics._scorer._Scorer",
    "sklearn.model_selection._split.GroupKFold",
    "sklearn.model_selection._split.KFold",
    "sklearn.model_selection._split.StratifiedGroupKFold",
    "sklearn.model_selection._split.StratifiedKFold",
    "trajscore.censoring._monte_carlo._with_squares",
    "trajscore.integrations._guard.Guard",
    "trajscore.metrics._scorers.TPSScorer",
    "trajscore.tracer._similarity.CharacterTriples",
)


def trusted_types() -> list[str]:
    """Return the full names of the types that our fitted estimators are made of.

    They keep numbers and settings, and run nothing when they are read: pass them to
    ``skops.io.load(trusted=)``, and to MLflow as ``skops_trusted_types``. scikit-learn's own
    estimators skops trusts by itself. Not here are types of other packages, such as an embedder's,
    and what forests and boosting keep, as scikit-learn does not check the indices of trees.

    Returns
    -------
    list of str
        Names, sorted.

    Examples
    --------
    >>> from trajscore import trusted_types
    >>> "trajscore.calibration._platt.PlattCrossFitCalibrator" in trusted_types()
    True
    """
    rooms = [import_module(f"trajscore.{room}") for room in _ROOMS]
    public = [getattr(room, name) for room in rooms for name in room.__all__]
    homes = {thing.__module__ for thing in public if _is(thing, BaseEstimator)}
    files = map(import_module, homes.union(f"trajscore.{part}" for part in _FILES_OF_RECORDS))
    records = [  # and estimators that a file defines, without bases of others
        kind
        for file in files
        for kind in vars(file).values()
        if _is(kind, object) and kind.__module__ == file.__name__
        if issubclass(kind, BaseEstimator) or is_dataclass(kind) or hasattr(kind, "_fields")
        if not isabstract(kind)
    ]
    names = (f"{kind.__module__}.{kind.__qualname__}" for kind in (*FAMILIES, *records))
    return sorted([*names, *_OTHERS])


def _is(thing: Any, kind: type) -> bool:
    return isinstance(thing, type) and issubclass(thing, kind)


_MAX_DIGITS = 300  # a float of more digits is infinite


def plain(value: Any) -> Any:
    """Return dictionaries, lists and scalars as JSON has them: null for what is not finite."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def parse_integer(digits: str) -> int | float:
    """Return a whole number, ``parse_int`` of readers of JSON; infinity beyond a float."""
    return int(digits) if len(digits) <= _MAX_DIGITS else float(digits)


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON, ``object_pairs_hook`` of its readers, if no key stands twice."""
    fields = dict(pairs)
    if len(fields) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {twice!r} stands twice in one object; keep one of them")
    return fields


# ------------------------------------------------------------------ tables that a spreadsheet opens

_FORMULA = r"('*[=+\-@\t\r])"  # how a text begins that is written with an apostrophe
_STARTS = tuple("'=+-@\t\r")


def to_csv(table: pd.DataFrame) -> str:
    """Write a table without its index; numbers stay as they are.

    >>> print(to_csv(pd.DataFrame({"id": ["=1+1", "'=a", "a=b"], "score": [-0.5, 0.2, 0.1]})))
    "id","score"
    "'=1+1",-0.5
    "''=a",0.2
    "a=b",0.1
    <BLANKLINE>
    """
    table = _replaced(table, _STARTS, f"^{_FORMULA}", r"'\1")
    return table.to_csv(index=False, quoting=csv.QUOTE_NONNUMERIC)


def from_csv(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table that was read, its texts as they were before `to_csv`."""
    return _replaced(table, ("'",), f"^'{_FORMULA}", r"\1")


def _replaced(table: pd.DataFrame, starts: tuple[str, ...], pattern: str, by: str) -> pd.DataFrame:
    """Replace a pattern, which has one of these starts, in texts and in names of columns."""
    for name, cells in table.items():
        if cells.dtype.kind == "O" and cells.astype(str).str.startswith(starts).any():
            table = table.assign(**{str(name): cells.replace(pattern, by, regex=True)})
    return table.rename(columns=lambda name: re.sub(pattern, by, name))
