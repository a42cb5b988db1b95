"""Formats whose records, such as spans or events, make up runs: by their trace, or by their list."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from trajscore.io._conversation import Conversation
from trajscore.io._run import MalformedRunError, Run, as_object, as_objects, leftover
from trajscore.io._spans import Span, add_spans
from trajscore.io.fields import dig
from trajscore.io.files import LogFile, Place, stem
from trajscore.io.registry import Format, Head, RawRuns
from trajscore.io.vocabulary import SESSION, Record, as_fields

_SHARED = ""  # key of what the files of a log share

Groups = dict[Any, tuple[Path, list[Any]]]


class TraceFormat(Format):
    """A format of records that may stand apart, in one file or several."""

    mark = ""  # a field of every record

    def trace_of(self, record: Any) -> Any:
        """Return the name of the trace that a record belongs to."""
        raise NotImplementedError

    def session_of(self, record: Record) -> Any:
        """Return the session that a record names, or None."""
        raise NotImplementedError

    def spans(self, records: list[Record], run: Run) -> Iterable[Span]:
        """Return the spans of a trace, and give the run what its records say of it."""
        raise NotImplementedError

    def run(self, raw: Any, place: Place, options: Any) -> Run:
        records = as_objects(raw)
        run = Run(place.name(*map(self.trace_of, records)))
        session = self._session(records)
        if session is not None:
            run.meta |= {"session": session}
        return add_spans(Conversation(place), self.spans(records, run), run)

    def _session(self, records: Iterable[Any]) -> Any:
        """Return the session of a trace, or None."""
        sessions = map(self.session_of, map(as_fields, records))
        return next((session for session in sessions if session is not None), None)

    def _is_run(self, fields: Record) -> bool:
        return self.mark in fields

    def records(self, file: LogFile) -> Iterator[tuple[Any, Any]]:
        """Yield the records that a file lists, or the one that it is, each with its trace."""
        for _, record in super().runs(file, None):
            yield self.trace_of(record), record

    def runs(self, file: LogFile, options: Any) -> RawRuns:
        """Yield the records of each trace, once the last file has been read."""
        yield from self.grouped(file, self.records(file))

    def grouped(self, file: LogFile, records: Iterator[tuple[Any, Any]]) -> RawRuns:
        """Yield the records of each trace; of each session, where it is the id of a run."""
        shared = file.others.setdefault(_SHARED, {"groups": {}, "n_files": 0})
        groups: Groups = shared["groups"]
        n_records = 0
        for index, (name, record) in enumerate(records):
            n_records += 1
            if isinstance(record, Mapping):
                groups.setdefault(name, (file.path, []))[1].append(record)
            else:
                yield file.place(index), record
        shared["n_files"] += 1
        if shared["n_files"] < file.n_files:
            file.is_head = n_records > 0  # its runs come with the last file
            return
        del file.others[_SHARED]
        if file.fields.id in SESSION:
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


_OF_RUN = ("outcome", "task", "trial")  # which may stand in each event


class EventFormat(Format):
    """A format of runs that are lists of events: in a file, in a field, or lines of one run."""

    def is_event(self, value: Any) -> bool:
        """Tell an event of this format."""
        raise NotImplementedError

    def is_log(self, value: Any) -> bool:
        """Tell the events of a run, by the first of them."""
        return isinstance(value, list) and bool(value) and self.is_event(value[0])

    def run_of(self, event: Any) -> Any:
        """Return the name of the run that an event is of, or None."""
        raise NotImplementedError

    def read(self, events: list[Any], place: Place, run: Run) -> Run:
        """Put what the events tell into their run."""
        raise NotImplementedError

    def recognise(self, head: Head) -> bool:
        if not head.whole:
            return False
        is_one = any(test(value) for test in (self.is_event, self.is_log) for value in (head.item, head.fields))
        return is_one or bool(self._logs(head.fields))

    def _logs(self, fields: Record) -> list[str]:
        """Return the fields that list the events of a run."""
        return [name for name, value in fields.items() if self.is_log(value)]

    def runs(self, file: LogFile, options: Any) -> RawRuns:
        fields: dict[str, Any] = {}
        groups: dict[Any, list[Any]] = {}
        name = None
        for key, index, item in file.items():
            if index is None:
                fields[str(key)] = item
            elif groups or self.is_event(item):
                own = None if file.fields.ids else self.run_of(item)
                name = own or file.fields.id_of(as_fields(item)) or name
                groups.setdefault(name, []).append(item)
            else:
                yield file.place(index), item
        logs = self._logs(fields)
        if self.is_event(fields):
            yield file.place(0), {"id": stem(file.path), "events": [fields]}
        elif len(logs) == 1:
            yield file.place(0), {"id": stem(file.path)} | fields
        else:
            groups |= {log: fields[log] for log in logs}
        for index, (name, events) in enumerate(groups.items()):
            is_file = name is None or (len(groups) == 1 and not fields and not file.fields.ids)
            record: dict[str, Any] = {"id": stem(file.path) if is_file else name, "events": events}
            last = as_fields(events[-1])
            names = file.fields.names(last, _OF_RUN).values()
            yield file.place(index), record | {path: dig(last, path) for path in names}

    def run(self, raw: Any, place: Place, options: Any) -> Run:
        raw = as_object({"events": raw} if isinstance(raw, list) else raw)
        name = place.name(place.fields.id_of(raw))
        logs = self._logs(raw)
        if not logs:
            raise MalformedRunError(f"it has no events of {self.name}")
        task, trial = place.fields.values(raw, ("task", "trial")).values()
        used = {logs[0], *place.fields.names(raw, ("id", "task", "trial")).values()}
        run = Run(name, task=task, trial=trial, extra=leftover(raw, used))
        return self.read(raw[logs[0]], place, run)
