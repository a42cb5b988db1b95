"""Formats whose records, such as spans, make up runs by the trace that they name."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from trajscore.io._run import Run, as_objects, leftover
from trajscore.io._spans import Span, add_spans
from trajscore.io.fields import dig
from trajscore.io.files import LogFile, Place
from trajscore.io.registry import Format, RawRuns
from trajscore.io.vocabulary import FORMATS, SPANS, Record, as_fields, first

_SHARED = ""  # key of what the files of a log share

Groups = dict[Any, tuple[Path, list[Any]]]


class TraceFormat(Format):
    """A format of records that may stand apart, in one file or several."""

    mark = ""  # a field of every record

    def trace_of(self, record: Any) -> Any:
        """Return the name of the trace that a record belongs to."""
        return str(first(as_fields(record), ("trace_id", "id")))

    def session_of(self, record: Record) -> Any:
        """Return the session that a record names, or None."""
        values = {path: dig(record, path) for path in FORMATS[self.name]["session"]}
        return first(values, values)

    def spans(self, records: list[Record], run: Run) -> Iterable[Span]:
        """Return the spans of a trace, and give the run what its records say of it."""
        raise NotImplementedError

    def run(self, raw: Any, place: Place) -> Run:
        records = as_objects(raw)
        run = Run(place.name(*map(self.trace_of, records)))
        run.meta = leftover({"session": self._session(records)})
        return add_spans(place, self.spans(records, run), run)

    def _session(self, records: Iterable[Any]) -> Any:
        """Return the session of a trace, or None."""
        sessions = map(self.session_of, map(as_fields, records))
        return next((session for session in sessions if session is not None), None)

    def _is_run(self, fields: Record) -> bool:
        return self.mark in fields

    def records(self, file: LogFile) -> Iterator[tuple[Any, Any]]:
        """Yield the records that a file lists, or the one that it is, each with its trace."""
        for _, record in super().runs(file):
            yield self.trace_of(record), record

    def runs(self, file: LogFile) -> RawRuns:
        """Yield the records of each trace, once the last file has been read."""
        yield from self.grouped(file, self.records(file))

    def grouped(self, file: LogFile, records: Iterator[tuple[Any, Any]]) -> RawRuns:
        """Yield the records of each trace; of each session, where it is the id of a run."""
        shared = file.others.setdefault(_SHARED, {"groups": {}, "n_files": 0})
        groups: Groups = shared["groups"]
        n_records = 0
        for index, (name, record) in enumerate(records):
            n_records += 1
            if isinstance(record, dict):
                groups.setdefault(name, (file.path, []))[1].append(record)
            else:
                yield file.place(index), record
        shared["n_files"] += 1
        if shared["n_files"] < file.n_files:
            file.is_head = n_records > 0  # its runs come with the last file
            return
        del file.others[_SHARED]
        if file.fields.id in SPANS["session"]:
            groups = self._by_session(groups)
        for index, (path, group) in enumerate(groups.values()):
            yield replace(file.place(index), file=path), group

    def _by_session(self, groups: Groups) -> Groups:
        sessions: Groups = {}
        for name, (path, records) in groups.items():
            session = self._session(records)
            key = ("trace", name) if session is None else ("session", str(session))
            sessions.setdefault(key, (path, []))[1].extend(records)
        return sessions
