"""What a format of logs is, which formats there are, and which one a file has.

Each format is a class in a file of `io/formats`; nothing here knows one of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Any

from trajscore.core.errors import ArgumentError
from trajscore.core.stops import Mechanism, names_among
from trajscore.core.values import check_known, unknown_name
from trajscore.io._messages import answer_within, held_message, is_chat_list, is_message
from trajscore.io._run import MalformedRunError, Run, as_outcome, leftover
from trajscore.io.fields import SCORES, Names, dig, steps_field, usual_names
from trajscore.io.files import (
    JSON_ENDINGS,
    LINES_ENDINGS,
    TABLE_ENDINGS,
    LogFile,
    Place,
    find_files,
    has_ending,
)
from trajscore.io.outcome_tables import examples
from trajscore.io.unread import is_prose, save_instead
from trajscore.io.vocabulary import FORMATS, WORDS, Record, as_fields, as_list, first_object, parsed

RawRuns = Iterator[tuple[Place, Any]]
"""What `Format.run` reads of each run, with its place."""

_ENDINGS = (*JSON_ENDINGS, *LINES_ENDINGS)
# Lists of which the first item is enough to detect a format.
STREAMED = {*WORDS["streamed"]}
# Messages, or a trajectory of DSPy, as Python writes them.
_OF_PYTHON = re.compile(r"\[\{'.*'(role|content|parts)':|\{'thought_0", re.DOTALL)
_LONGEST_NAME = 23  # of a field that it proposes


@dataclass
class Head:
    """The beginning of a file, see `Format`; `item` is its first item, of any type."""

    fields: dict[str, Any] = field(default_factory=dict)
    listed: bool = False
    whole: bool = False
    item: Any = None


class Format:
    """A format of logs: how to recognise a file of it, and how to make runs of its contents.

    Define a subclass with `recognise` and `run`, and give it to `register`.

    Attributes
    ----------
    name : str
        Name of the format in `read_runs`.
    holds : str
        A field that files of this format have and others do not; for errors.
    lists : tuple of str, default=()
        Fields of a file that list its runs. Without any, a file that is one object is one run.
    stops : dict of str to str, default={}
        What stop reasons mean that only this format has, such as ``{"env_crash": "excluded"}``; all
        others mean what they do in `trajscore.core.stops`.
    endings : tuple of str, default=()
        Endings that only files of this format have, such as ".traj".
    options : dict of str to object, default={}
        The format's own options of `read_runs` with their defaults; `run` finds their values in
        ``place.options``.
    lax : bool, default=False
        Whether other formats are asked first, because many files look like this one. Among equals,
        the format registered last is asked first.

    See Also
    --------
    register : Makes a format known.

    Notes
    -----
    `recognise` gets the beginning of a file: ``head.fields``, a dict of the first fields of its
    object, or of its first item or line; ``head.listed``, whether they are those of an item or
    line; and ``head.whole``, whether there are no more. Override ``runs(self, file)`` for runs
    that are not the items of a list or the lines: it yields ``file.place(index)`` and any
    object for each run. ``file.items()`` yields triples, ``(None, index, value)`` of each line or
    item, ``(key, None, value)`` of each field of an object; the value of a bad line is a text,
    which `runs` yields as it is, so that it is counted as a run that cannot be read.

    Examples
    --------
    >>> from trajscore import io
    >>> class Games(io.Format):
    ...     name, holds = "games", "moves"
    ...
    ...     def recognise(self, head):
    ...         return "moves" in head.fields
    ...
    ...     def run(self, raw, place):
    ...         return io.Run(place.name(raw.get("game")))
    """

    name: str
    holds: str
    lists: Names = ()
    stops: Mapping[str, Mechanism] = MappingProxyType({})
    endings: Names = ()
    options: Mapping[str, Any] = MappingProxyType({})
    lax: bool = False
    _layout: Names = ()  # patterns of the files in the folders that its program makes

    def recognise(self, head: Head) -> bool:
        """Tell whether a file has this format; asked again as more of its fields are read."""
        raise NotImplementedError

    def run(self, raw: Any, place: Place) -> Run:
        """Make a run of what `runs` yielded for it.

        Parameters
        ----------
        raw : object
            What `runs` yielded.
        place : object
            Where the run stands. ``place.name(id)`` returns its id, made from the file's name if
            the log has none; ``place.file`` is the file, ``place.options`` has the options.

        Returns
        -------
        Run
            The run. Its `stop_kind` follows from its stop reason, which decides whether its
            outcome was observed, see `trajscore.core.stops`. Set ``place.stop_reason`` before the
            steps are read, so that a run that the harness lost is counted as such without any.

        Raises
        ------
        ValueError
            If the run cannot be read. What `malformed` returns leaves the run out and counts it;
            any other error ends the reading.
        """
        raise NotImplementedError

    @staticmethod
    def malformed(problem: str) -> ValueError:
        """Return the error to raise for a run that cannot be read, such as "it has no steps"."""
        return MalformedRunError(problem)

    def runs(self, file: LogFile) -> RawRuns:
        """Yield the place of each run, and what `run` reads: an item, a line, or the whole file."""
        whole: dict[str, Any] = {}
        for key, index, value in file.items(self.lists):
            if index is None:
                whole[str(key)] = value
            else:
                yield file.place(index), value
        if self._is_run(whole):
            yield file.place(0), whole
        else:
            file.info.update(whole)

    def _new_run(self, record: Record, name: str, **more: Any) -> Run:
        """Return a run by the fields that words.toml names, and what else is known of it."""
        words = FORMATS[self.name]
        parts = {part: dig(record, path) for part, path in words["run"].items()}
        meta = {part: dig(record, path) for part, path in words["meta"].items()}
        if "reward" in meta:
            parts["outcome"] = as_outcome(meta["reward"])
        return Run(name, meta=meta, extra=leftover(record, words["read"]), **(parts | more))

    def _is_run(self, fields: Record) -> bool:
        """Tell a file that is a single run by the fields that list none."""
        return bool(fields) and not self.lists

    def folder(self, path: Path) -> list[Path]:
        """Return the files of a folder that has this format's layout; an empty list otherwise."""
        paths = {file for pattern in self._layout for file in path.glob(pattern)}
        files = sorted(filter(Path.is_file, paths))
        if files and _format_of(LogFile(files[0])) is self:
            return files
        return []

    def _files(self, place: Path) -> list[Path]:
        """List the files that the path of a file or a folder stands for."""
        return self.folder(place) or find_files(place, (*_ENDINGS, *self.endings))

    def _check_options(self, values: Record) -> Any:
        """Return the options as `run` finds them."""
        names = [*self.options, "format", "fields"]
        for name in values:
            if name not in self.options:
                raise TypeError(f"{self.name}: {unknown_name('option', name, names)}")
        return {**self.options, **values}


_FORMATS: dict[str, Format] = {}


def register(format: type[Format]) -> type[Format]:  # noqa: A002
    """Make a format known to `read_runs`, `iter_runs` and the command line.

    Parameters
    ----------
    format : subclass of Format
        The format; it replaces one of the same name.

    Returns
    -------
    type
        The class itself, so that `register` can decorate it.

    Raises
    ------
    ValueError
        If `format` is not a subclass of Format, or has no name.

    Examples
    --------
    >>> from trajscore import io
    >>> io.register(Games)  # doctest: +SKIP
    """
    if not (isinstance(format, type) and issubclass(format, Format)):
        raise ValueError(f"format must be a subclass of io.Format, got {format!r}")
    for attribute in ("name", "holds"):
        if not isinstance(getattr(format, attribute, None), str):
            raise ValueError(f"{format.__name__}.{attribute} must be text; set it in the class")
    formats = _by_name()
    formats.pop(format.name, None)
    formats[format.name] = format()
    return format


def _by_name() -> dict[str, Format]:
    """Return the formats, by name; those of `io/formats` are imported when one is first needed."""
    import_module("trajscore.io.formats")
    return _FORMATS


def all_formats() -> list[Format]:
    """Return the formats in the order in which they are asked."""
    newest_first = reversed(_by_name().values())
    return sorted(newest_first, key=lambda candidate: candidate.lax)


def log_endings() -> Names:
    """Return how the names of the files of any format end."""
    return (*_ENDINGS, *chain(*(candidate.endings for candidate in _by_name().values())))


def find_format(name: str) -> Format:
    """Return the format of a name."""
    formats = _by_name()
    check_known([name], formats, "registered format", "format")
    return formats[name]


def detect_format(place: Path, max_size: int | None) -> Format:
    """Return the format of a log, from its folder or the first fields of its first file."""
    file, log_format = detect(place, max_size)
    if log_format is None:
        raise unknown_format(file)
    return log_format


def detect(place: Path, max_size: int | None) -> tuple[LogFile, Format | None]:
    """Return the first file of a place, and its format; None if unknown."""
    for candidate in all_formats():
        if files := candidate.folder(place):
            return LogFile(files[0]), candidate
    path, *_ = find_files(place, log_endings())
    file = LogFile(path, max_size=max_size, n_rows=1)
    log_format = _format_of(file)
    if has_ending(path, TABLE_ENDINGS):
        *_, head = heads(file)
        log_format = _format_of_table(head.fields, log_format, path)
    return file, log_format


def _format_of_table(row: Record, log_format: Format | None, path: Path) -> Format | None:
    """Return the format of a table by its first row; None of one with scores of steps."""
    holds_message = is_message(held_message(row))
    scores = [parsed(row[name]) for name in names_among(SCORES, row)]
    has_steps = holds_message or usual_names("step", row) or any(map(as_list, scores))
    if (scores and has_steps) or save_instead(row, 2):
        return None
    for name, cell in row.items():
        if isinstance(cell, str) and _OF_PYTHON.match(cell):
            raise ValueError(
                f"{path}: column {name!r} is Python's text, not JSON; write pd.read_csv(FILE, "
                f"converters={{{name!r}: ast.literal_eval}}).to_json('runs.json', orient='records')"
            )
    is_other = log_format is not None and log_format.name != "jsonl"
    if is_other or holds_message or first_object(row.get(steps_field(row) or "")):
        return log_format
    return None


def is_turn(fields: Record, parts: Iterable[str]) -> bool:
    """Tell an object with one of some parts of a turn, or that holds a message or an answer."""
    has_parts = any(usual_names(part, fields) for part in parts)
    return has_parts or is_message(held_message(fields)) or bool(answer_within(fields))


def unknown_format(file: LogFile) -> ArgumentError:
    """Return the error for a file in no known format, by its first record."""
    *_, head = heads(file)
    record = head.fields
    inner = (first_object(value) or as_fields(value) for value in record.values())
    is_table = has_ending(file.path, TABLE_ENDINGS)
    for part in (record, *inner):
        instead = save_instead(part, 1 + is_table)
        if instead and not is_chat_list(part.get("messages")):
            return ArgumentError(f"{file.path}: it does not hold runs; {instead}", "format")
    if is_table:
        return ArgumentError(
            f"{file.path}: by its first row, it is not a table of runs; for one row a step, use "
            f"TrajectoryArray.from_frame, or trajscore report FILE"
        )
    if not record:
        return ArgumentError(
            f"{file.path}: no JSON object could be read from it; write runs with json.dumps, or "
            f"leave the file out"
        )
    runs = [
        name
        for name, value in record.items()  # by fields of runs, which steps have not
        if any(usual_names(part, first_object(value)) for part in ("task", "steps"))
    ]
    if runs and not head.listed:
        return ArgumentError(
            f"{file.path}: it lists runs under {examples(runs)} beside other fields; save each "
            f"such list in a file of its own, json.dump(d[{runs[0]!r}], file)"
        )
    steps = next((name for name, value in record.items() if as_list(value)), "")
    if len(steps) > _LONGEST_NAME:
        steps = ""
    step = record[steps][0] if steps else record
    fields = as_fields(step)
    texts = [k for k, v in fields.items() if k == "text" or (isinstance(v, str) and is_prose(v))]
    texts += [f"{k}.content" for k, v in fields.items() if is_message(v)]
    text = max(texts, key="text".__eq__, default="NAME")
    named = [f"steps={steps}"] * bool(steps) + [f"text={text}"] * isinstance(step, dict)
    named += [f"action={name}" for name in WORDS["names"]["actions"] if name in fields][:1]
    parts = ",".join(named)
    return ArgumentError(
        f"{file.path}: the format is not known; it has {examples(record)}; leave it out, or "
        f"name its parts, {{argument:fields={parts}}}",
        "format",
    )


def _format_of(file: LogFile) -> Format | None:
    """Return the format of one file, by its ending or its first fields; None if unknown."""
    for candidate in all_formats():
        if candidate.endings and has_ending(file.path, candidate.endings):
            return candidate
    for head in heads(file):
        for candidate in all_formats():
            if candidate.recognise(head):
                return candidate
    return None


def heads(file: LogFile) -> Iterator[Head]:
    """Yield what is known of a file after each of its fields, or the first item of its list."""
    head = Head()
    for key, index, value in file.items(STREAMED):
        if key is None:
            yield Head(dict(as_fields(value)), listed=True, whole=True, item=value)
            return
        if key not in head.fields:
            head.fields[key] = value if index is None else [value]
            yield head
    head.whole = True
    yield head
