"""What a monitor has taken, in a file that outlives the process."""

from __future__ import annotations

import json
import os
import sys
import weakref
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from trajscore.core.storage import remove_parts, replacing

_FORMAT = "trajscore journal 2"
# a file is written anew once it has grown by so many bytes, and to so many times its size
_GROWTH, _TIMES = 1 << 22, 4


class OtherOwnerError(ValueError):
    """The records of a file are not of who reads them."""

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"{path} was written with another process or level; go on with that one, or name "
            f"another file"
        )


class Journal:
    """A file of one line a record, each of them there as soon as `append` returns.

    It survives the end of the process at any moment. A last line that is not whole was never
    answered for, and is cut off. What the disk itself loses, in a power cut, is lost. Only one
    journal at a time has a file, by a lock on a file beside it, which ends with its process. The
    file is made if it is not there; one with another `owner`, an object of JSON, is refused.
    """

    def __init__(self, path: Path, owner: Any) -> None:
        self.path, self._owner = path, json.loads(json.dumps(owner))
        # descriptors: of the lock, then of the file
        self._held = [_lock(path)]
        remove_parts(path)  # of a process that was killed as it wrote, since none other writes now
        self._release = weakref.finalize(self, _close_all, self._held)
        if path.exists():
            self._open()
        else:
            self.rewrite([])

    def read(self) -> list[Any]:
        """All records; the file is cut behind the last whole line."""
        data = self.path.read_bytes()
        whole = data.rfind(b"\n") + 1
        try:
            header, *records = [json.loads(line) for line in data[:whole].splitlines()]
            is_ours = header["format"] == _FORMAT and "owner" in header
        except (ValueError, KeyError, TypeError, RecursionError):
            is_ours = False
        if not is_ours:
            raise ValueError(f"{self.path} is not a trajscore monitor's state; name another file")
        if header["owner"] != self._owner:
            raise OtherOwnerError(self.path)
        if whole < len(data):  # the rest of a line, of a monitor that was killed as it wrote
            os.ftruncate(self._file, whole)
            self._size = whole
        return records

    def append(self, record: Any) -> None:
        """Add a record; where that fails, the file is as it was."""
        line = json.dumps(record).encode() + b"\n"
        try:
            written = os.write(self._file, line)
            if written < len(line):
                raise OSError(f"{self.path}: only a part of a line could be written")
        except OSError:
            os.ftruncate(self._file, self._size)
            raise
        self._size += len(line)

    @property
    def is_long(self) -> bool:
        """Whether it has grown enough to be written anew."""
        return self._size > _GROWTH + _TIMES * self._least

    def rewrite(self, records: Iterable[Any]) -> None:
        """Replace all records, at once."""
        with replacing(self.path) as file:
            for record in ({"format": _FORMAT, "owner": self._owner}, *records):
                file.write(json.dumps(record).encode() + b"\n")
        self._open()

    def shorten(self, records: Iterable[Any]) -> None:
        """Replace all records; where there is no room for that, lines may fit still: try later."""
        try:
            self.rewrite(records)
        except OSError:
            self._least = self._size

    def close(self) -> None:
        """Let go of the file."""
        self._release()

    def _open(self) -> None:
        _close_all(self._held[1:])
        self._file = os.open(self.path, os.O_WRONLY | os.O_APPEND)
        self._held[1:] = [self._file]
        self._size = self._least = os.fstat(self._file).st_size


def _close_all(descriptors: list[int]) -> None:
    while descriptors:
        os.close(descriptors.pop())


def _lock(path: Path) -> int:
    """Lock a file beside a file that may be replaced; return the descriptor that holds the lock."""
    if path.is_dir():
        raise ValueError(f"{path} is a folder; name a file in it")
    if not path.resolve().parent.is_dir():
        raise FileNotFoundError(f"the folder {path.parent} does not exist; create it first")
    file = path.resolve()  # a link is another name of the same file
    beside = file.with_name(f".{file.name}.lock")
    descriptor = os.open(beside, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        raise ValueError(
            f"{path} is in use by another monitor; end that one, or name another file"
        ) from error
    return descriptor
