"""What a monitor has taken, in a file that outlives the process."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from trajscore.core.storage import replacing

_FORMAT = "trajscore journal 1"
# a file is written anew once it has grown by so many bytes, and to so many times its size
_GROWTH, _TIMES = 1 << 22, 4


class Journal:
    """A file of one line a record, each of them there as soon as `append` returns.

    It survives the end of the process at any moment. A last line that is not whole was never
    answered for, and is cut off. What the disk itself loses, in a power cut, is lost.

    Parameters
    ----------
    path : Path
        The file; made if it is not there.
    owner : object
        What JSON knows of who writes it; a file of another owner is refused.
    """

    def __init__(self, path: Path, owner: Any) -> None:
        self.path, self._owner = path, json.loads(json.dumps(owner))
        if path.exists():
            self._open()
        else:
            self.rewrite([])

    def read(self) -> list[Any]:
        """All records; the file is cut behind the last whole line."""
        data = self.path.read_bytes()
        whole = data.rfind(b"\n") + 1
        if whole < len(data):
            os.ftruncate(self._file, whole)
            self._size = whole
        try:
            header, *records = [json.loads(line) for line in data[:whole].splitlines()]
            is_ours = header["format"] == _FORMAT
        except (ValueError, KeyError, TypeError, RecursionError):
            is_ours = False
        if not is_ours:
            raise ValueError(f"{self.path} is no state of a trajscore monitor; name another file")
        if header["owner"] != self._owner:
            raise ValueError(
                f"{self.path} was written with another process or level; go on with that one, or "
                f"name another file"
            )
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
            for one in ({"format": _FORMAT, "owner": self._owner}, *records):
                file.write(json.dumps(one).encode() + b"\n")
        self.close()
        self._open()

    def close(self) -> None:
        """Let go of the file."""
        if hasattr(self, "_file"):
            os.close(self._file)
            del self._file

    def _open(self) -> None:
        self._file = os.open(self.path, os.O_WRONLY | os.O_APPEND)
        self._size = self._least = os.fstat(self._file).st_size
