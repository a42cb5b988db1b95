"""The open runs of a monitor in a SQLite file, which outlives the process.

With a rollback journal, and not a write-ahead log: that keeps the last steps in a second file, and
SQLite leaves them out without a word where that file is damaged or removed.
"""

import json
import os
import sqlite3
import warnings
import weakref
import zlib
from collections.abc import Hashable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from operator import methodcaller
from pathlib import Path
from typing import Any

import numpy as np

from trajscore.core.storage import replacing
from trajscore.core.values import check_choice, check_file

_VERSION = 4
# The first row has the owner; each other one a run, in the order in which runs were opened.
_TABLE = "runs (id BLOB PRIMARY KEY, content BLOB, checksum INTEGER)"
_PUT = """INSERT INTO runs VALUES (?, ?, ?) ON CONFLICT (id)
    DO UPDATE SET content = excluded.content, checksum = excluded.checksum"""
# OFF leaves what was written to the operating system, which outlives the process
_SYNCHRONOUS = {"normal": "OFF", "full": "FULL"}
_ERRORS = (sqlite3.Error, UnicodeDecodeError)  # the latter of messages on a damaged schema
_OF_OTHERS = "is not a trajscore monitor's state, or is damaged as a whole; name another file"
_DAMAGED = "is damaged; name another file, and begin the runs that are open anew with step 1"
_REMEDIES = {
    "FULL": "make room on the disk",
    "READONLY": "make the file and its folder writable",
    "CANTOPEN": "make the file and its folder writable",
    "CORRUPT": "start the monitor again, with another file",
}


class StateFile:
    """Contents of runs by their ids, each change there as soon as `write` returns.

    Contents are nested tuples of numbers and arrays, as JSON, which has every digit. Each survives
    the end of the process at any moment and, with ``durability="full"``, a power cut. One process
    at a time has a file, and one `owner`, an object of JSON. `contents` is what was in it; a file
    that is damaged anywhere is refused.
    """

    def __init__(self, path: Path, owner: dict[str, Any], durability: str) -> None:
        check_choice(durability, "durability", tuple(_SYNCHRONOUS))
        self.path = path.resolve()  # the journal is beside the file
        self._durability = durability
        self._owner = json.dumps({"version": _VERSION, **owner}).encode()
        self._pid = os.getpid()
        check_file(self.path)
        if not self.path.exists():
            with self._new_file() as db, db:
                db.execute(f"CREATE TABLE {_TABLE}")
                self._put(db, b"", self._owner)
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

    def write(self, changes: Mapping[Hashable, Any]) -> None:
        """Set the contents of runs, or remove runs (None): all of them or, if it fails, none."""
        self._check()
        with _in_words(self.path), self._db:
            self._db.execute("BEGIN")
            for run_id, content in changes.items():
                key = json.dumps(run_id).encode()
                if content is None:
                    self._db.execute("DELETE FROM runs WHERE id = ?", (key,))
                else:
                    packed = json.dumps(content, default=methodcaller("tolist")).encode()
                    self._put(self._db, key, packed)
        self._writes = self._count_writes()

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
            self._db.execute("BEGIN EXCLUSIVE")  # a lock on the file itself, whatever its name
            self._db.execute("COMMIT")
            stack.pop_all()
        # opened no earlier: to close it drops all locks that the process has on the file
        self._descriptor = os.open(self.path, os.O_RDONLY)
        # lets go of the file
        self.close = weakref.finalize(self, _close, self._db, self._descriptor, self._pid)

    def _begin_to_write(self) -> None:
        self._db.execute("PRAGMA journal_mode = PERSIST")
        self._db.execute(f"PRAGMA synchronous = {_SYNCHRONOUS[self._durability]}")
        self._put(self._db, b"", self._owner)  # counted by SQLite, so that others notice it
        self._writes = self._count_writes()

    def _read(self) -> dict[Hashable, Any]:
        """Contents of all runs."""
        try:
            rows = self._db.execute(
                "SELECT id, content, checksum FROM runs ORDER BY rowid"
            ).fetchall()
            is_whole = self._db.execute("PRAGMA integrity_check(1)").fetchall() == [(b"ok",)]
        except _ERRORS as error:
            raise ValueError(f"{self.path} {_OF_OTHERS}") from error
        if not is_whole or not all(map(_is_sound, rows)):
            raise ValueError(f"{self.path} {_DAMAGED}")
        if not rows or rows[0][1] != self._owner:
            raise ValueError(
                f"{self.path} was written with another fitted process, alpha or version of "
                f"trajscore; use that one, or name another file"
            )
        return {json.loads(key): json.loads(content) for key, content, _ in rows[1:]}

    # ------------------------------------------------------------------ the file

    @contextmanager
    def _new_file(self) -> Iterator[sqlite3.Connection]:
        """Have a database that takes the place of the file once it is whole."""
        with (
            _in_words(self.path),
            replacing(self.path) as file,
            closing(sqlite3.connect(file.name, isolation_level=None)) as db,
        ):
            yield db

    @staticmethod
    def _put(db: sqlite3.Connection, key: bytes, content: bytes) -> None:
        db.execute(_PUT, (key, content, _checksum(key, content)))

    def _check(self) -> None:
        """Refuse to write where the file is no longer this monitor's; write it anew if deleted."""
        if not self.close.alive:
            raise ValueError(f"this monitor has closed {self.path}; make another one")
        if os.getpid() != self._pid:
            raise ValueError(
                f"process {self._pid} made this monitor and goes on with {self.path}; make another "
                f"monitor after a fork, with another file"
            )
        try:
            is_there = os.path.samestat(self.path.stat(), os.fstat(self._descriptor))
        except FileNotFoundError:
            with self._new_file() as db:
                self._db.backup(db)
            self.close()
            self._open()
            self._begin_to_write()
            warnings.warn(
                f"{self.path} was deleted while a monitor used it; it was written anew, with all "
                f"open runs",
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
        os.lseek(self._descriptor, 24, os.SEEK_SET)
        return os.read(self._descriptor, 4)


def _close(db: sqlite3.Connection, file: int, pid: int) -> None:
    if os.getpid() == pid:  # a fork would remove the journal of the process that goes on
        with suppress(*_ERRORS):
            if db.execute("PRAGMA journal_mode").fetchone() == (b"persist",):
                db.execute("PRAGMA journal_mode = DELETE")
        os.close(file)
        db.close()


def _checksum(key: bytes, content: bytes) -> int:
    return zlib.crc32(b"%d " % len(key) + key + content)


def _is_sound(row: tuple[Any, ...]) -> bool:
    key, content, checksum = row
    is_bytes = isinstance(key, bytes) and isinstance(content, bytes)
    return is_bytes and _checksum(key, content) == checksum


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


def in_types(like: Any, value: Any) -> Any:
    """Return what was read in the types of `like`; an empty array there if one was empty."""
    if isinstance(like, tuple):
        parts = list(map(in_types, like, value))
        return type(like)(*parts) if hasattr(like, "_fields") else tuple(parts)
    if isinstance(like, np.ndarray):
        array = np.array(value, like.dtype)
        return array if array.size else like
    return None if like is None else type(like)(value)
