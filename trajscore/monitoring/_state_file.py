"""The open runs of a monitor in a SQLite file, which outlives the process.

With a rollback journal, and not a write-ahead log: that keeps the last steps in a second file, and
SQLite leaves them out without a word where that file is damaged or removed.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import sqlite3
import warnings
import weakref
import zlib
from array import array
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from itertools import chain, count, islice
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from trajscore.core.notebook import N_SHOWN
from trajscore.core.storage import replacing
from trajscore.core.values import check_choice, check_file, number_of

_VERSION = 1
# each id stands in both tables, so that a run whose content is damaged can be named; slot 0 is of
# the owner, and a slot without an id is free
_TABLES = ("runs", "ids")
_COLUMNS = "(slot INTEGER PRIMARY KEY, id BLOB, content BLOB, checksum INTEGER)"
_ERRORS = (sqlite3.Error, UnicodeDecodeError)  # in the words of a message on a damaged schema
_SYNCHRONOUS = {"normal": "OFF", "full": "FULL"}
_IN_USE = "is in use by another monitor; end that one, or name another file"
_OF_OTHERS = "is not a trajscore monitor's state, or is damaged as a whole; name another file"
_REMEDIES = {
    "FULL": "make room on the disk",
    "READONLY": "make the file and its folder writable",
    "CANTOPEN": "make the file and its folder writable",
    "CORRUPT": "start the monitor again, which recovers the runs that are not damaged",
}


class StateFile:
    """Contents of runs by their ids, each change there as soon as `write` returns.

    It survives the end of the process at any moment and, with ``durability="full"``, a power cut.
    One process at a time has a file. `contents` is what was in it, None where that was damaged;
    an id None stands for those that were damaged, too.
    """

    def __init__(
        self, path: Path, owner: Any, is_owner: Callable[[Any], bool], durability: str
    ) -> None:
        check_choice(durability, "durability", tuple(_SYNCHRONOUS))
        self.path, self._durability = _plain_file(path), durability
        self._owner = json.dumps({"version": _VERSION, "owner": owner}).encode()
        self._pid = os.getpid()
        self._slots: dict[Hashable, int] = {}
        self._free: list[int] = []
        if not self.path.exists():
            self._create({})
        if not self.path.stat().st_size:  # which SQLite would take for a new file
            raise ValueError(f"{self.path} {_OF_OTHERS}")
        self._open()
        try:
            with _in_words(self.path):
                self.contents = self._read(is_owner)
                self._begin_to_write()
        except BaseException:
            self.close()
            raise

    def write(self, changes: Mapping[Hashable, bytes | None]) -> None:
        """Set the contents of runs, or remove runs (None): all of them or, if it fails, none."""
        self._check()
        fresh = chain(reversed(self._free), count(len(self._slots) + len(self._free) + 1))
        slots = {run_id: self._slots.get(run_id) or next(fresh) for run_id in changes}
        with _in_words(self.path), _transaction(self._db):
            for run_id, content in changes.items():
                key = b"" if content is None else json.dumps(run_id).encode()
                _put(self._db, "runs", slots[run_id], key, content or b"")
                if content is None or run_id not in self._slots:
                    _put(self._db, "ids", slots[run_id], key, b"")
        self._writes = self._count_writes()
        n_new = sum(run_id not in self._slots for run_id in changes)
        del self._free[max(len(self._free) - n_new, 0) :]
        self._slots |= slots
        for run_id, content in changes.items():
            if content is None:
                self._free.append(self._slots.pop(run_id))

    def close(self) -> None:
        """Let go of the file."""
        self._release()

    # ------------------------------------------------------------------ opening

    def _open(self) -> None:
        address = f"{self.path.as_uri()}?mode=rw"
        with _in_words(self.path, at_start=True), ExitStack() as stack:
            self._db = sqlite3.connect(
                address, uri=True, timeout=0, isolation_level=None, check_same_thread=False
            )
            stack.callback(self._db.close)
            self._db.text_factory = bytes
            self._db.execute("PRAGMA locking_mode = EXCLUSIVE")
            self._db.execute("PRAGMA cell_size_check = ON")
            self._db.execute("PRAGMA writable_schema = ON")  # reads a file that was cut
            self._db.execute("BEGIN EXCLUSIVE")  # a lock on the file itself, whatever its name
            self._db.execute("COMMIT")
            stack.pop_all()
        # opened no earlier: to close it drops all locks that the process has on the file
        self._file = os.open(self.path, os.O_RDONLY)
        self._release = weakref.finalize(self, _close, self._db, self._file, self._pid)

    def _begin_to_write(self) -> None:
        self._db.execute("PRAGMA journal_mode = PERSIST")
        self._db.execute(f"PRAGMA synchronous = {_SYNCHRONOUS[self._durability]}")
        with _transaction(self._db):  # counted by SQLite, so that others notice it
            _put(self._db, "runs", 0, b"", self._owner)
        self._writes = self._count_writes()

    def _read(self, is_owner: Callable[[Any], bool]) -> dict[Hashable, bytes | None]:
        """Contents of all runs; what is damaged is put aside, and the rest written anew."""
        last = max(self._last_slot(table) for table in _TABLES)
        runs, ids = (self._sound_rows(table, last) for table in _TABLES)
        self._check_owner(runs.get(0) or ids.get(0), is_owner)
        contents: dict[Hashable, bytes | None] = {}
        lost: list[Any] = []
        for slot in range(1, last + 1):
            key, content = runs.get(slot) or ids.get(slot) or (b"null", b"")
            if not key:
                self._free.append(slot)
                continue
            run_id = json.loads(key)
            self._slots[run_id], contents[run_id] = slot, content or None
            if slot not in runs:
                lost.append(run_id)
        if len(runs) + len(ids) < 2 * last + 2 or not self._is_sound():
            self._recover(contents, lost)
        return contents

    def _check_owner(self, row: tuple[bytes, bytes] | None, is_owner: Callable[..., bool]) -> None:
        if row is None:
            raise ValueError(f"{self.path} {_OF_OTHERS}")
        record = json.loads(row[1])
        if record["version"] != _VERSION:
            raise ValueError(
                f"{self.path} was written by another version of trajscore; go on with that one, or "
                f"name another file"
            )
        if not is_owner(record["owner"]):
            raise ValueError(
                f"{self.path} was written with another process or level; go on with that one, or "
                f"name another file"
            )

    def _last_slot(self, table: str) -> int:
        n_damaged = 0
        with suppress(*_ERRORS):
            for row in self._db.execute(f"SELECT * FROM {table} ORDER BY slot DESC"):
                if _is_sound(*row):
                    return int(row[0]) + n_damaged
                n_damaged += 1
        return 0

    def _sound_rows(self, table: str, last: int) -> dict[int, tuple[bytes, bytes]]:
        """Ids and contents by slot, each looked up on its own: one may be behind a damaged page."""
        rows = {}
        for slot in range(last + 1):
            with suppress(*_ERRORS):
                query = f"SELECT * FROM {table} WHERE slot = ?"
                for row in self._db.execute(query, (slot,)):
                    if _is_sound(*row):
                        rows[slot] = row[1:3]
        return rows

    def _is_sound(self) -> bool:
        try:
            return bool(self._db.execute("PRAGMA quick_check(1)").fetchall() == [(b"ok",)])
        except _ERRORS:
            return False

    def _recover(self, contents: Mapping[Hashable, bytes | None], lost: list[Any]) -> None:
        aside = self.path.with_name(f"{self.path.name}.damaged-{secrets.token_hex(2)}")
        shutil.copyfile(self.path, aside)
        self._create(contents)
        self.close()
        self._open()
        named = [run_id for run_id in lost if run_id is not None]
        some = ", ".join(map(repr, named[:N_SHOWN])) + ", ..." * (len(named) > N_SHOWN)
        unnamed = f"{len(lost) - len(named)} whose ids are damaged" * (len(lost) > len(named))
        names = " and ".join(filter(None, (some, unnamed))) or "none"
        warnings.warn(
            f"{self.path} was damaged; {number_of(len(lost), 'run')} lost: {names}. Begin lost "
            f"runs anew with step 1. A copy of the damaged file is {aside}",
            UserWarning,
            stacklevel=5,
        )

    # ------------------------------------------------------------------ the file

    def _create(self, contents: Mapping[Hashable, bytes | None]) -> None:
        """Write a new file, whole or not at all."""
        rows = enumerate(contents.items(), start=1)
        self._free, self._slots = [], {run_id: slot for slot, (run_id, _) in rows}
        with self._new_file() as db, _transaction(db):
            for table in _TABLES:
                db.execute(f"CREATE TABLE {table} {_COLUMNS}")
                _put(db, table, 0, b"", self._owner)
            for run_id, slot in self._slots.items():
                key = json.dumps(run_id).encode()
                _put(db, "runs", slot, key, contents[run_id] or b"")
                _put(db, "ids", slot, key, b"")

    @contextmanager
    def _new_file(self) -> Iterator[sqlite3.Connection]:
        with (
            _in_words(self.path),
            replacing(self.path) as file,
            closing(sqlite3.connect(file.name, isolation_level=None)) as db,
        ):
            yield db

    def _check(self) -> None:
        """Refuse to write where the file is no longer this monitor's; write it anew if deleted."""
        if not self._release.alive:
            raise ValueError(f"this monitor has closed {self.path}; make another one")
        if os.getpid() != self._pid:
            raise ValueError(
                f"process {self._pid} made this monitor and goes on with {self.path}; make another "
                f"monitor after a fork, with another file"
            )
        try:
            is_there = os.path.samestat(self.path.stat(), os.fstat(self._file))
        except FileNotFoundError:
            with self._new_file() as db:
                self._db.backup(db)
            self.close()
            self._open()
            self._begin_to_write()
            warnings.warn(
                f"{self.path} was deleted while a monitor used it; it was written anew, with all "
                f"open runs",
                UserWarning,
                stacklevel=5,
            )
            return
        if not is_there:
            raise ValueError(
                f"another file has taken the place of {self.path}; put the old one back, or end "
                f"this monitor"
            )
        if self._count_writes() != self._writes:
            raise ValueError(f"another monitor has written to {self.path}; end this one")

    def _count_writes(self) -> bytes:
        """SQLite's count of changes, which a connection that has the only lock leaves as it is."""
        os.lseek(self._file, 24, os.SEEK_SET)
        return os.read(self._file, 4)


def _plain_file(path: Path) -> Path:
    """Return the file that a path or a link stands for, which may have to be made."""
    file = path.resolve()  # the journal is beside it
    if not file.parent.is_dir():
        raise FileNotFoundError(f"the folder {file.parent} does not exist; create it first")
    check_file(file)
    return file


def _close(db: sqlite3.Connection, file: int, pid: int) -> None:
    if os.getpid() == pid:  # a fork would remove the journal of the process that goes on
        with suppress(*_ERRORS):
            if db.execute("PRAGMA journal_mode").fetchone() == (b"persist",):
                db.execute("PRAGMA journal_mode = DELETE")
        os.close(file)
        db.close()


def _put(db: sqlite3.Connection, table: str, slot: int, key: bytes, content: bytes) -> None:
    row = (slot, key, content, _checksum(slot, key, content))
    db.execute(f"REPLACE INTO {table} VALUES (?, ?, ?, ?)", row)


def _checksum(slot: int, key: bytes, content: bytes) -> int:
    return zlib.crc32(b"%d %d " % (slot, len(key)) + key + content)


def _is_sound(slot: Any, key: Any, content: Any, checksum: Any) -> bool:
    types = (int, bytes, bytes)
    is_row = all(map(isinstance, (slot, key, content), types))
    return is_row and _checksum(slot, key, content) == checksum


@contextmanager
def _transaction(db: sqlite3.Connection) -> Iterator[None]:
    db.execute("BEGIN")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        with suppress(*_ERRORS):
            db.execute("ROLLBACK")
        raise


@contextmanager
def _in_words(path: Path, at_start: bool = False) -> Iterator[None]:
    """Say what SQLite's errors mean, and what to do."""
    try:
        yield
    except _ERRORS as error:
        kind = getattr(error, "sqlite_errorname", "SQLITE_ERROR").split("_")[1]
        if kind in ("BUSY", "LOCKED"):
            raise ValueError(f"{path} {_IN_USE}") from error
        if at_start and kind in ("NOTADB", "CORRUPT"):
            raise ValueError(f"{path} {_OF_OTHERS}") from error
        raise OSError(f"{path}: {error}; {_REMEDIES.get(kind, 'check the disk')}") from error


# --------------------------------------------------------------------------- numbers


def packed(value: Any) -> bytes:
    """Return nested tuples of numbers and arrays as bytes."""
    return array("d", _numbers(value)).tobytes()


def unpacked(like: Any, content: bytes) -> Any:
    """Return what was packed, or what it begins with, in the types of `like`."""
    numbers = array("d")
    numbers.frombytes(content)
    return _filled(like, iter(numbers))


def _numbers(value: Any) -> Iterator[float]:
    if isinstance(value, tuple):
        for part in value:
            yield from _numbers(part)
    elif isinstance(value, np.ndarray):
        yield from value.shape
        yield from value.ravel().tolist()
    elif value is not None:
        yield value


def _filled(like: Any, numbers: Iterator[float]) -> Any:
    if isinstance(like, tuple):
        parts = [_filled(part, numbers) for part in like]
        return type(like)(*parts) if hasattr(like, "_fields") else tuple(parts)
    if isinstance(like, np.ndarray):
        shape = [int(next(numbers)) for _ in like.shape]
        return np.array(list(islice(numbers, prod(shape))), like.dtype).reshape(shape)
    return None if like is None else type(like)(next(numbers))
