"""Records of one run that stand apart, in one file or several, brought together."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from trajscore.io.files import LogFile, Place

_SHARED = ""  # in what the files of a log know of one another
# Names of what several traces of one conversation share, for an id.
SESSIONS = ("session", "sessionId", "session_id", "session.id", "gen_ai.conversation.id")

Groups = dict[Any, tuple[Path, list[Any]]]


def gather(
    file: LogFile,
    records: Iterable[tuple[Any, Any]],
    session_of: Callable[[list[Any]], Any] = lambda records: None,
) -> Iterator[tuple[Place, Any]]:
    """Take records with the names of their runs; yield all runs once the last file is through.

    Where the user takes the session for the id, the traces of one session are one run.
    """
    shared = file.others.setdefault(_SHARED, {"groups": {}, "n_files": 0})
    groups: Groups = shared["groups"]
    n_found = 0
    for index, (name, record) in enumerate(records):
        n_found += 1
        if isinstance(record, Mapping):
            groups.setdefault(name, (file.path, []))[1].append(record)
        else:
            yield file.place(index), record
    shared["n_files"] += 1
    if shared["n_files"] < file.n_files:
        file.is_head = n_found > 0  # its runs come with the last file
        return
    del file.others[_SHARED]
    if file.fields.id in SESSIONS:
        groups = _by_session(groups, session_of)
    for index, (path, found) in enumerate(groups.values()):
        yield replace(file.place(index), file=path), found


def _by_session(groups: Groups, session_of: Callable[[list[Any]], Any]) -> Groups:
    joined: Groups = {}
    for name, (path, records) in groups.items():
        session = session_of(records)
        own = ("trace", name) if session is None else ("session", str(session))
        joined.setdefault(own, (path, []))[1].extend(records)
    return joined


def records_of(
    file: LogFile, lists: Collection[str], mark: str, run_of: Callable[[Any], Any]
) -> Iterator[tuple[Any, Any]]:
    """Yield what a file lists, or the one object with a mark that it is, with the run of each."""
    own: dict[str, Any] = {}
    for key, index, value in file.items(lists):
        if index is None:
            own[str(key)] = value
        else:
            yield run_of(value), value
    if mark in own:
        yield run_of(own), own
