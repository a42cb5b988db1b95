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
from collections.abc import Hashable, Iterator, Mapping
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
# Each id stands in both tables, so that a run whose content is damaged can be named. Slot 0 has the
# number of slots and the owner; a slot without an id is free.
_TABLES = ("runs", "ids")
_COLUMNS = "(slot INTEGER PRIMARY KEY, id BLOB, content BLOB, checksum INTEGER)"
_SYNCHRONOUS = {"normal": "OFF", "full": "FULL"}
_ERRORS = (sqlite3.Error, UnicodeDecodeError)  # the latter of messages on a damaged schema
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
    One process at a time has a file, and one `owner`, an object of JSON. `contents` is what was in
    it, None where that was damaged; the id None stands for ids that were damaged.
    """

    def __init__(self, path: Path, owner: dict[str, Any], durability: str) -> None:
        check_choice(durability, "durability", tuple(_SYNCHRONOUS))
        self.path, self._durability = path.resolve(), durability  # the journal is beside the file
        self._owner = json.dumps({"version": _VERSION, **owner}).encode()
        self._pid = os.getpid()
        self._slots: dict[Hashable, int] = {}
        self._free: list[int] = []
        self._n_slots = 0
        check_file(self.path)
        if not self.path.exists():
            self._create({})
        if not self.path.stat().st_size:  # which SQLite would take for a new file
            raise ValueError(f"{self.path} {_OF_OTHERS}")
        self._open()
        try:
            with _in_words(self.path):
                self.contents = self._read()
                self._begin_to_write()
        except BaseException:
            self.close()
            raise

    def write(self, changes: Mapping[Hashable, bytes | None]) -> None:
        """Set the contents of runs, or remove runs (None): all of them or, if it fails, none."""
        self._check()
        fresh = chain(reversed(self._free), count(self._n_slots + 1))
        slots = {run_id: self._slots.get(run_id) or next(fresh) for run_id in changes}
        n_new = sum(run_id not in self._slots for run_id in changes)
        n_slots = max(self._n_slots, n_new + len(self._slots))
        with _in_words(self.path), self._db:
            self._db.execute("BEGIN")
            if n_slots > self._n_slots:
                self._put_owner(self._db, n_slots)
            for run_id, content in changes.items():
                key = b"" if content is None else json.dumps(run_id).encode()
                _put(self._db, "runs", slots[run_id], key, content or b"")
                if content is None or run_id not in self._slots:
                    _put(self._db, "ids", slots[run_id], key, b"")
        self._writes, self._n_slots = self._count_writes(), n_slots
        del self._free[max(len(self._free) - n_new, 0) :]
        self._slots |= slots
        self._free += [self._slots.pop(run_id) for run_id in changes if changes[run_id] is None]

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
        self._put_owner(self._db, self._n_slots)  # counted by SQLite, so that others notice it
        self._writes = self._count_writes()

    def _read(self) -> dict[Hashable, bytes | None]:
        """Contents of all runs; where a part is damaged, the rest is written anew."""
        owners = [row for table in _TABLES for row in self._sound_rows(table, 0).values()]
        if not owners:
            raise ValueError(f"{self.path} {_OF_OTHERS}")
        if owners[0][1] != self._owner:
            raise ValueError(
                f"{self.path} was written with another fitted process, alpha or version of "
                f"trajscore; use that one, or name another file"
            )
        last = self._n_slots = int(owners[0][0])
        runs, ids = (self._sound_rows(table, last) for table in _TABLES)
        contents: dict[Hashable, bytes | None] = {}
        lost = []
        for slot in range(1, last + 1):
            key, content = runs.get(slot) or ids.get(slot) or (b"null", b"")
            if not key:
                self._free.append(slot)
                continue
            run_id = json.loads(key)
            self._slots[run_id], contents[run_id] = slot, content or None
            if slot not in runs:
                lost.append(run_id)
        if len(runs) + len(ids) < 2 * last + 2 or not self._is_whole():
            self._recover(contents, lost)
        return contents

    def _sound_rows(self, table: str, last: int) -> dict[int, tuple[bytes, bytes]]:
        """Ids and contents by slot, each looked up on its own: one may be behind a damaged page."""
        rows, query = {}, f"SELECT * FROM {table} WHERE slot = ?"
        for slot in range(last + 1):
            with suppress(*_ERRORS):
                for row in self._db.execute(query, (slot,)):
                    if _is_sound(*row):
                        rows[slot] = row[1:3]
        return rows

    def _is_whole(self) -> bool:
        with suppress(*_ERRORS):
            return bool(self._db.execute("PRAGMA quick_check(1)").fetchall() == [(b"ok",)])
        return False

    def _recover(self, contents: Mapping[Hashable, bytes | None], lost: list[Any]) -> None:
        aside = self.path.with_name(f"{self.path.name}.damaged-{secrets.token_hex(2)}")
        shutil.copyfile(self.path, aside)
        self.close()
        self._create(contents)
        self._open()
        names = [repr(run_id) for run_id in lost if run_id is not None]
        names[N_SHOWN:] = ["..."] * (len(names) > N_SHOWN)
        names += [f"{lost.count(None)} whose ids are damaged"] * (None in lost)
        warnings.warn(
            f"{self.path} was damaged; {number_of(len(lost), 'run')} lost: "
            f"{', '.join(names) or 'none'}. Begin lost runs anew with step 1. A copy of the "
            f"damaged file is {aside}",
            UserWarning,
            stacklevel=5,
        )

    # ------------------------------------------------------------------ the file

    def _create(self, contents: Mapping[Hashable, bytes | None]) -> None:
        self._free, self._slots = [], dict(zip(contents, count(1), strict=False))
        self._n_slots = len(contents)
        with self._new_file() as db, db:
            db.execute("BEGIN")
            for table in _TABLES:
                db.execute(f"CREATE TABLE {table} {_COLUMNS}")
            self._put_owner(db, self._n_slots)
            for run_id, slot in self._slots.items():
                key = json.dumps(run_id).encode()
                _put(db, "runs", slot, key, contents[run_id] or b"")
                _put(db, "ids", slot, key, b"")

    def _put_owner(self, db: sqlite3.Connection, n_slots: int) -> None:
        for table in _TABLES:
            _put(db, table, 0, b"%d" % n_slots, self._owner)

    @contextmanager
    def _new_file(self) -> Iterator[sqlite3.Connection]:
        """Have a database that takes the place of the file once it is whole."""
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
            self._write_anew()
            return
        if not is_there:
            raise ValueError(
                f"another file has taken the place of {self.path}; put the old one back, or end "
                f"this monitor"
            )
        if self._count_writes() != self._writes:
            raise ValueError(f"another monitor has written to {self.path}; end this one")

    def _write_anew(self) -> None:
        with self._new_file() as db:
            self._db.backup(db)
        self.close()
        self._open()
        self._begin_to_write()
        warnings.warn(
            f"{self.path} was deleted while a monitor used it; it was written anew, with all open "
            f"runs",
            UserWarning,
            stacklevel=6,
        )

    def _count_writes(self) -> bytes:
        """SQLite's count of changes, which a connection that has the only lock leaves as it is."""
        os.lseek(self._file, 24, os.SEEK_SET)
        return os.read(self._file, 4)


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
def _in_words(path: Path, at_start: bool = False) -> Iterator[None]:
    """Say what SQLite's errors mean, and what to do."""
    try:
        yield
    except _ERRORS as error:
        kind = getattr(error, "sqlite_errorname", "SQLITE_ERROR").split("_")[1]
        if kind in ("BUSY", "LOCKED"):
            raise ValueError(
                f"{path} is in use by another monitor; end that one, or name another file"
            ) from error
        if at_start and kind in ("NOTADB", "CORRUPT"):
            raise ValueError(f"{path} {_OF_OTHERS}") from error
        raise OSError(f"{path}: {error}; {_REMEDIES.get(kind, 'check the disk')}") from error


# --------------------------------------------------------------------------- numbers


def packed(value: Any) -> bytes:
    """Return nested tuples of numbers and arrays as bytes."""
    numbers = array("d")
    _append(value, numbers)
    return numbers.tobytes()


def unpacked(like: Any, content: bytes) -> Any:
    """Return what was packed, or what it begins with, in the types of `like`."""
    numbers = array("d")
    numbers.frombytes(content)
    return _filled(like, iter(numbers))


def _append(value: Any, numbers: array[float]) -> None:
    if isinstance(value, tuple):
        for part in value:
            _append(part, numbers)
    elif isinstance(value, np.ndarray):
        numbers.extend(value.shape)
        numbers.extend(value.ravel().tolist())
    elif value is not None:
        numbers.append(value)


def _filled(like: Any, numbers: Iterator[float]) -> Any:
    if isinstance(like, tuple):
        parts = [_filled(part, numbers) for part in like]
        return type(like)(*parts) if hasattr(like, "_fields") else tuple(parts)
    if isinstance(like, np.ndarray):
        shape = [int(next(numbers)) for _ in like.shape]
        return np.array(list(islice(numbers, prod(shape))), like.dtype).reshape(shape)
    return None if like is None else type(like)(next(numbers))
