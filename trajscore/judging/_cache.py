"""Answers of a judge in a SQLite file, each there as soon as it came."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

from trajscore.core.values import check_file

_COLUMNS = "(key TEXT PRIMARY KEY, probability REAL, text TEXT, asked INTEGER, answered INTEGER)"


class Answer(NamedTuple):
    """An answer: its probability and its text, and the tokens that it took; None where missing."""

    probability: float | None
    text: str
    prompt_tokens: int | None
    answer_tokens: int | None


def key_of(*asked: str) -> str:
    """Name a request by all that is asked, without keeping its text."""
    return hashlib.sha256(json.dumps(asked).encode()).hexdigest()


class Cache:
    """Answers by their keys, in a file, or in memory for a path of None."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._lock = Lock()
        with self._usable():
            if path is not None:
                check_file(path)
            self._db = sqlite3.connect(
                path or ":memory:", timeout=60, isolation_level=None, check_same_thread=False
            )
        self._run(f"CREATE TABLE IF NOT EXISTS judge_answers {_COLUMNS}")

    @contextmanager
    def _usable(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, ValueError) as error:
            raise ValueError(
                f"cache {self._path} cannot be used ({error}); name another file"
            ) from None

    def __contains__(self, key: str) -> bool:
        return self._run("SELECT 1 FROM judge_answers WHERE key = ?", key) is not None

    def __getitem__(self, key: str) -> Answer:
        return Answer(*self._run("SELECT * FROM judge_answers WHERE key = ?", key)[1:])

    def __setitem__(self, key: str, answer: Answer) -> None:
        self._run("INSERT OR REPLACE INTO judge_answers VALUES (?, ?, ?, ?, ?)", key, *answer)

    def _run(self, statement: str, *values: object) -> Any:
        with self._lock, self._usable():
            return self._db.execute(statement, values).fetchone()

    def close(self) -> None:
        """Let go of the file."""
        self._db.close()
