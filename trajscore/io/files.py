"""From a path to the values in its files: JSON, JSON lines or a table, one file or many."""

import gzip
import io
import json
import re
import zlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import Any, TextIO

import pandas as pd

from trajscore.core.errors import ArgumentError, optional
from trajscore.core.storage import check_size, from_csv
from trajscore.core.values import as_path, check_file, is_iterable, run_label
from trajscore.io._json import Item, JsonScanner, read_value
from trajscore.io._run import as_object
from trajscore.io.fields import USUAL_FIELDS, Fields, usual_names
from trajscore.io.vocabulary import Record, as_fields, as_list, first_object, parsed

Paths = str | PathLike[str] | Iterable[str | PathLike[str]]
JSON_ENDINGS = (".json", ".json.gz")
LINES_ENDINGS = (".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz")
_OF_FOLDER = "messages.json"  # the messages of a run in a folder of its own
TABLE_ENDINGS = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet")
_GZIP = b"\x1f\x8b"
_ENCODINGS = {b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}  # by byte-order mark
_BINARY = {  # by what they begin with
    b"SQLite format 3": "an SQLite database; write it as JSON",
    b"PAR1": "a Parquet file; give it a name that ends in .parquet",
    b"\x80": "a pickle, which can run code; if you trust it, write "
    "pd.DataFrame(pd.read_pickle(FILE)).to_json('runs.json', orient='records')",
}
_FIRST_ROWS = 1000  # of a table, that are searched for ids such as 007
_MOST_ROWS = 5_000_000
_HEAD = 1 << 16
_LONG_HEAD = 1 << 18
_BETWEEN = re.compile(r"\}[ \t\r]*\n\s*\{")

# Reading ahead would cost memory and save no time: adding up is slower than reading.
NO_READAHEAD: Any = {"batch_readahead": 0, "fragment_readahead": 0, "use_threads": False}


class Broken(str):
    """The problem with one line of a file of JSON lines."""


@dataclass(slots=True)
class Place:
    """Where a run stands, and what is known of it so far."""

    file: Path
    index: int
    info: Record = field(default_factory=dict)  # of the file, belonging to no single run
    run: str | None = None  # its id
    stop_reason: str | None = None  # set before the steps, which an excluded run need not have
    fields: Fields = USUAL_FIELDS  # names that the user gave
    options: Any = None  # of the format

    def name(self, *ids: Any) -> str:
        """Set and return the run's id: the first that is not empty, else from the file's name."""
        usable = (str(run) for run in ids if run not in (None, ""))
        self.run = next(usable, None) or f"{stem(self.file)}-{self.index}"
        return self.run

    def __str__(self) -> str:
        name = "run" if self.run is None else f"run {run_label(self.run)}"
        return f"{self.file}, {name} (index {self.index})"


@dataclass(slots=True)
class LogFile:
    """One file of a log."""

    path: Path
    others: dict[str, dict[str, Any]] = field(default_factory=dict)  # `info` of all files
    n_files: int = 1
    one_by_one: bool = False  # whether runs are wanted as they come, not the whole file
    is_head: bool = False  # set by a format where a file need not hold runs of its own
    fields: Fields = USUAL_FIELDS
    max_size: int | None = None
    n_rows: int | None = None  # of a table, where not all are wanted
    options: Any = None  # of the format

    @property
    def info(self) -> dict[str, Any]:
        """Fields of the file that belong to no single run."""
        return self.others.setdefault(str(self.path), {})

    def place(self, index: int) -> Place:
        """Return the place of a run."""
        return Place(self.path, index, self.info, fields=self.fields, options=self.options)

    def items(self, streamed: Collection[str] = ()) -> Iterator[Item]:
        """Yield items as `JsonScanner.items`; lines are items of a list, bad ones are `Broken`."""
        first = ""
        if has_ending(self.path, TABLE_ENDINGS):
            table = read_table(self.path, self.max_size, self.n_rows)
            for index, row in enumerate(_records(table)):
                yield None, index, row
            return
        with open_text(self.path, self.max_size) as file:
            if has_ending(self.path, LINES_ENDINGS):
                first = file.readline()
                if first.strip() not in ("{", "["):
                    lines = enumerate(chain([first], file), start=1)
                    filled = ((number, line) for number, line in lines if line.strip())
                    for index, (number, line) in enumerate(filled):
                        yield None, index, _line(self.path, index, number, line)
                    return
            head = first + file.read(_LONG_HEAD)
            scanner = JsonScanner(file, str(self.path), head)
            if _BETWEEN.search(head):  # of one text, commas separate the objects
                yield from scanner.texts()
            else:
                yield from _rows(scanner.items(streamed))

    def whole(self) -> dict[str, Any]:
        """Read a file that holds one JSON object, such as one run."""
        return {key: value for key, _, value in self.items() if key is not None}


def _rows(items: Iterator[Item]) -> Iterator[Item]:
    """Yield items as they are, but the rows of an object of numbered columns, as of a frame."""
    columns = dict[str, Record]()
    for key, index, value in items:
        if key is None or not next(iter(as_fields(value)), "").isdigit():
            for name, column in columns.items():
                yield name, None, column
            yield key, index, value
            yield from items
            return
        columns[key] = value
    for k, row in enumerate(rows_of(columns).values()):
        yield None, k, row


def rows_of(columns: Record) -> dict[str, Record]:
    """Return the rows of columns that are objects, as of a frame, by their names."""
    fields = {name: as_fields(column) for name, column in columns.items()}
    rows = dict.fromkeys(chain(*fields.values()))
    return {row: {name: column.get(row) for name, column in fields.items()} for row in rows}


def _records(table: pd.DataFrame) -> Iterator[Record]:
    """Yield the rows of a table as lines of JSON have them, objects in JSON text as objects."""
    text = table.to_json(orient="records", date_format="iso", double_precision=15)
    for row in json.loads(text):
        for name, cell in row.items():
            value = parsed(cell)
            if first_object(value) or not as_list(value):
                row[name] = value
        yield row


def list_paths(path: Paths) -> list[Path]:
    """Return one path or several as a list, which is not empty."""
    if hasattr(path, "columns"):
        raise ValueError(
            f"path must be the path of a log, got a {type(path).__name__}; for a table, make X "
            f"with TrajectoryArray.from_frame"
        )
    if isinstance(path, (str, PathLike)) or not is_iterable(path):
        return [as_path(path)]
    places = [as_path(place) for place in path]
    if not places:
        raise ValueError("path is empty; give the path of a log")
    return places


def find_files(place: Path, endings: Sequence[str]) -> list[Path]:
    """List the files that a path stands for, itself or those of the folder, in order of name."""
    if place.is_dir():
        files = sorted(p for p in place.iterdir() if p.is_file() and has_ending(p, endings))
        files = files or sorted(place.glob(f"*/{_OF_FOLDER}"))
        if not files:
            raise FileNotFoundError(
                f"the folder {place} itself has no {endings[0]} file, or other log; give the one "
                f"that has them, or a list of files"
            )
        return files
    if not place.exists():
        raise FileNotFoundError(f"{place} does not exist; give the path of a log file")
    check_file(place)  # it is read more than once
    return [place]


def parquet_files(folder: Path) -> Iterator[Path]:
    """Yield a folder's Parquet files, but for hidden, temporary and checkpoint files."""
    for path in folder.rglob("*.parquet"):
        parts = path.relative_to(folder).parts
        if path.is_file() and not any(part.startswith(("_", ".")) for part in parts):
            yield path


def parquet_dataset(path: str | Path) -> Any:
    """Open a Parquet file, or a folder in which there may be other files as well."""
    dataset = optional("pyarrow.dataset", "reading Parquet needs pyarrow", "data")
    files = sorted(map(str, parquet_files(Path(path))))  # empty where the path is a file
    return dataset.dataset(files or str(path), format="parquet")


def has_ending(path: Path, endings: Sequence[str]) -> bool:
    """Tell whether a file's name has one of several endings."""
    return path.name.lower().endswith(tuple(endings))


def stem(path: Path) -> str:
    """Return a file's name without its endings; that of its folder, if that is a run."""
    if path.name == _OF_FOLDER:
        return path.parent.name
    return re.sub(r"\.[^.]+(\.gz)?$", "", path.name)


class _Unpacked(gzip.GzipFile):
    """The content of a compressed file, up to a size, as a small file may unpack to any size."""

    def __init__(self, file: Any, path: Path, max_size: int | None) -> None:
        super().__init__(fileobj=file)
        self._path = path
        self._max_size = max_size

    def read(self, size: int | None = -1) -> bytes:
        data = super().read(size)
        check_size(self._path, self.tell(), self._max_size)
        return data


@contextmanager
def open_text(path: Path, max_size: int | None, newline: str | None = None) -> Iterator[TextIO]:
    """Open a text file, gzipped or not; `max_size` limits how many bytes it may unpack to."""
    try:
        with path.open("rb") as file:
            binary: Any = file
            start = binary.read(2)
            binary.seek(0)
            if start == _GZIP:
                binary = io.BufferedReader(_Unpacked(binary, path, max_size), _HEAD)
            with io.TextIOWrapper(binary, encoding="utf-8-sig", newline=newline) as text:
                yield text
    except UnicodeDecodeError as error:
        refuse_binary(path)
        raise ValueError(
            f"{path} is not text in UTF-8 ({error.reason}); convert it with iconv -f "
            f"{_ENCODINGS.get(start, 'latin1')} -t UTF-8, where -f names its encoding"
        ) from error
    except EOFError as error:
        raise ValueError(f"{path} is cut off; get the compressed file again") from error
    except (gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"{path} is a damaged gzip file ({error}); get it again") from error


def refuse_binary(path: Path) -> None:
    """Refuse a database, in which agents keep sessions, and other files by what they begin with."""
    with path.open("rb") as file:
        start = file.read(20)
    for mark, kind in _BINARY.items():
        if start.startswith(mark):
            raise ValueError(f"{path} is {kind}")


def _line(path: Path, index: int, number: int, line: str) -> Any:
    try:
        return read_value(line)
    except RecursionError:
        return Broken(f"line {number} is nested too deeply")
    except json.JSONDecodeError as error:
        if line.endswith("\n"):
            return Broken(f"line {number} is not valid JSON ({error.msg})")
        raise ValueError(
            f"{path} is cut off in line {number} (index {index}); get the file again, or keep the "
            f"lines before the cut (head -n {number - 1}), as trajscore.io.iter_runs does"
        ) from error
    except ValueError as error:
        return Broken(f"line {number}: {error}")


# ------------------------------------------------------------------ tables


def read_table(path: Path, max_size: int | None, n_rows: int | None = None) -> pd.DataFrame:
    """Read a CSV (also gzipped), Parquet, JSON or JSON-lines file; of the first two, some rows."""
    if not path.exists():
        raise ValueError(f"{path} does not exist; give the path of a table")
    if not path.is_dir():
        check_file(path)
        if not path.stat().st_size:
            raise ValueError(f"{path} is empty; give a table with a row of column names")
    name = path.name.lower().removesuffix(".gz")
    try:
        if name.endswith((".csv", ".tsv")):
            return _read_csv(path, "\t" if name.endswith(".tsv") else ",", max_size, n_rows)
        if name.endswith((".json", ".jsonl", ".ndjson")):
            return pd.DataFrame(list(_json_rows(path, max_size)))
        if name.endswith(".parquet") or (path.is_dir() and next(parquet_files(path), None)):
            return _read_parquet(path, max_size, n_rows)
    except ArgumentError:
        raise
    except (ValueError, OSError, OverflowError, RecursionError, TypeError) as error:
        problem = str(error).strip()
        if not problem.startswith(f"{path} "):
            problem = f"{path} cannot be read as a table: {problem}"
        raise ValueError(problem) from error
    raise ValueError(f"{path} is not a table; write it as .csv, .csv.gz, .tsv, .parquet or .jsonl")


def _read_csv(path: Path, usual: str, max_size: int | None, n_rows: int | None) -> pd.DataFrame:
    with open_text(path, max_size, newline="") as file:
        first = file.readline()
    sep = next((sep for sep in usual + ";\t|," if sep in first), usual)

    def read(**how: Any) -> pd.DataFrame:
        with open_text(path, max_size, newline="") as file:
            return pd.read_csv(file, sep=sep, **how)

    texts = _names_with_zeros(read(nrows=n_rows or _FIRST_ROWS, dtype=str))
    return from_csv(read(dtype=dict.fromkeys(texts, str), low_memory=False, nrows=n_rows))


def _names_with_zeros(head: pd.DataFrame) -> list[str]:
    """Return the columns of ids such as 007, which as numbers would be those of others."""
    parts = ("step", "outcome", "confidence", "cost", "tokens")  # that are numbers
    others = head.drop(columns=[name for part in parts for name in usual_names(part, head)])
    return [name for name, cells in others.items() if cells.str.fullmatch(r"0\d+", na=False).any()]


def _json_rows(path: Path, max_size: int | None) -> Iterator[Record]:
    """Yield the objects of a list in JSON, or of JSON lines."""
    for key, index, row in LogFile(path, max_size=max_size).items():
        if isinstance(row, Broken):
            raise ValueError(row)
        if index is not None:
            yield as_object(row, f"row {index} is")
        elif isinstance(row, (list, dict)):
            raise ValueError(f"it is one object, with the field {key!r}; write one row a line")
        else:  # an outcome by its id
            yield {"id": key, "outcome": row}


def _read_parquet(path: Path, max_size: int | None, n_rows: int | None) -> pd.DataFrame:
    """Read a file, or a folder of files that memory can hold."""
    rows = parquet_dataset(path)
    for file in rows.get_fragments():
        has = file.metadata
        size = sum(has.row_group(k).total_byte_size for k in range(has.num_row_groups))
        # a value that is repeated takes no room in a file, but 8 bytes in memory
        check_size(Path(file.path), max(size, 8 * has.num_rows * has.num_columns), max_size)
    n_all = rows.count_rows()
    if path.is_dir() and n_all > _MOST_ROWS:
        raise ValueError(
            f"it has {n_all:,} rows; trajscore report reads them in batches, or give one file"
        )
    frame = rows.head(n_rows or n_all, **NO_READAHEAD).to_pandas()
    if any(frame.index.names):
        frame = frame.reset_index()
    return frame
