"""What a format of logs is, which ones there are, and how one of them is read.

A format registers itself in a file of its own in `io/formats`, of which `tau_bench.py` is the
shortest; nothing here knows one of them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, get_args

from trajscore.core.errors import ArgumentError
from trajscore.core.values import check_choice, unknown_name
from trajscore.io._run import CutRuns, Run
from trajscore.io.files import (
    JSON_ENDINGS,
    LINES_ENDINGS,
    LogFile,
    Paths,
    Place,
    find_files,
    has_ending,
    list_paths,
)

_SHOWN = 12  # names in an error
_ENDINGS = (*JSON_ENDINGS, *LINES_ENDINGS)
# Lists of which the first item is enough to tell a format.
STREAMED = frozenset({"simulations", "samples", "steps", "messages", "traj", "ticks"})


@dataclass
class NoOptions:
    """The options of a format that has none."""


@dataclass
class CutOptions:
    """The option of formats that may score a run which did not come to its own end."""

    cut_runs: CutRuns = "unobserved"

    def __post_init__(self) -> None:
        check_choice(self.cut_runs, "cut_runs", get_args(CutRuns))


def each_item(file: LogFile, options: Any) -> Iterator[tuple[Place, Any]]:
    """Take each item of a list, or each line, for a run; or the file's one object."""
    fields: dict[str, Any] = {}
    for key, index, value in file.items():
        if index is None:
            fields[str(key)] = value
        else:
            yield file.place(index), value
    if fields:
        yield file.place(0), fields


@dataclass
class Head:
    """The beginning of a file, see `Format`; `item` is its first item, which may be no object."""

    fields: dict[str, Any] = field(default_factory=dict)
    listed: bool = False
    whole: bool = False
    item: Any = None


@dataclass(frozen=True, eq=False)
class Format:
    """A format of logs: how a file of it is told from others, and how its runs are read.

    Parameters
    ----------
    name : str
        What `read_runs` calls it.
    holds : str
        The field that a file of this format has and others have not; for errors.
    recognise : callable
        Takes the beginning of a file, an object with the attributes ``fields`` (a dict of the first
        fields of the file's object, or of its first item or line), ``listed`` (whether they are an
        item's or line's), and ``whole`` (whether there are no more); returns whether the file has
        this format. It is asked again as more fields are read.
    run : callable
        Takes what `runs` found for a run, its place, and the options; returns a `Run`, or raises a
        `MalformedRunError`. ``place.name(id)`` returns the run's id, made from the file's name if
        the log has none; ``place.file`` is the file. The kind of the stop need not be said: it
        follows from the stop reason by `trajscore.core.stops.mechanism_of`.
    runs : callable, optional
        Takes a file (with its ``path`` and ``items``) and the options; yields a place
        (``file.place(index)``) and anything that `run` can read, for each run. Default: each item
        of a list, each line of JSON lines, or else the file as a whole is a run.
    options : dataclass, optional
        The format's own options of `read_runs`, with their defaults and checks; an instance is what
        `runs` and `run` are given. Default: there are none.
    endings : tuple of str, default=()
        Endings that only files of this format have, such as ".traj".
    folder : callable, optional
        Takes a path; returns the files of a folder that is laid out as this format's folders are,
        else an empty list. Default: the files of a folder are those with the endings of JSON, of
        JSON lines and of this format.
    cut_runs : {"unobserved", "score"}, default="unobserved"
        What is the outcome of a run that did not come to its own end: not observed, or what the log
        says. An option ``cut_runs`` goes before.
    lax : bool, default=False
        Whether other formats are to be asked first, because much looks like this one. Among equals,
        the one that was registered last is asked first.

    See Also
    --------
    register : Makes a format known.

    Examples
    --------
    >>> from trajscore import io
    >>> mine = io.Format("mine", holds="moves", recognise=lambda head: "moves" in head.fields,
    ...                  run=lambda raw, place, options: io.Run(place.name(raw.get("game"))))
    """

    name: str
    holds: str
    recognise: Callable[[Head], bool]
    run: Callable[[Any, Place, Any], Run]
    runs: Callable[[LogFile, Any], Iterator[tuple[Place, Any]]] = each_item
    options: type[Any] = NoOptions
    endings: tuple[str, ...] = ()
    folder: Callable[[Path], list[Path]] | None = None
    cut_runs: CutRuns = "unobserved"
    lax: bool = False

    def files(self, path: Paths) -> list[Path]:
        """List the files that a path, a folder or several paths stand for."""
        found: list[Path] = []
        for place in list_paths(path):
            laid_out = self.folder(place) if self.folder else []
            found += laid_out or find_files(place, (*_ENDINGS, *self.endings))
        return found

    @property
    def reader(self) -> str:
        """What reads this format: some have a function of their own."""
        own = f"read_{self.name}"
        known = hasattr(sys.modules.get(self.run.__module__), own)
        return own if known else f"read_runs(path, format={self.name!r})"

    def check_options(self, given: Mapping[str, Any]) -> Any:
        """Return the options as the format's functions take them."""
        known = [one.name for one in fields(self.options)]
        for name in given:
            if name not in known:
                raise TypeError(f"{self.name}: {unknown_name('option', name, known)}")
        return self.options(**given)


_FORMATS: dict[str, Format] = {}


def register(format: Format) -> None:  # noqa: A002
    """Make a format known to `read_runs`, `iter_runs` and the command line.

    Parameters
    ----------
    format : Format
        The format; one of the same name is replaced.

    Examples
    --------
    >>> from trajscore import io
    >>> io.register(mine)  # doctest: +SKIP
    """
    _FORMATS.pop(format.name, None)
    _FORMATS[format.name] = format


def _asked() -> list[Format]:
    """Return the formats in the order in which they are asked."""
    newest_first = list(_FORMATS.values())[::-1]
    return sorted(newest_first, key=lambda one: one.lax)


def find_format(name: str) -> Format:
    """Return the format of a name."""
    if name not in _FORMATS:
        raise ValueError(unknown_name("format", name, list(_FORMATS)))
    return _FORMATS[name]


def tell(path: Paths, max_size: int | None = None) -> Format:
    """Tell the format of a log from the first fields of its first file, or from its folder."""
    place = list_paths(path)[0]
    for one in _asked():
        if one.folder and one.folder(place):
            return one
    file = find_files(place, (*_ENDINGS, *own_endings()))[0]
    found = told_by(file, max_size)
    if found is None:
        *_, head = _heads(LogFile(file, max_size=max_size))
        seen = seen_names("its fields are", head.fields)
        raise ArgumentError(
            f"{file}: the format is not known{seen}; name it by {{argument}}, one of "
            f"{', '.join(_FORMATS)}, or give read_jsonl a map of its fields",
            "format",
        )
    return found


def first_record(path: Path, max_size: int | None = None) -> dict[str, Any]:
    """Return the fields of the first item or line of a file, or of its object."""
    *_, head = _heads(LogFile(path, max_size=max_size))
    return head.fields


def own_endings() -> tuple[str, ...]:
    """Return the endings that only files of one format have."""
    return tuple(ending for one in _FORMATS.values() for ending in one.endings)


def told_by(file: Path, max_size: int | None = None) -> Format | None:
    for one in _asked():
        if one.endings and has_ending(file, one.endings):
            return one
    for head in _heads(LogFile(file, max_size=max_size)):
        for one in _asked():
            if one.recognise(head):
                return one
    return None


def _heads(file: LogFile) -> Iterator[Head]:
    """Yield what is known of a file after each of its fields; of a list, its first item."""
    head = Head()
    for key, _, value in file.items(STREAMED):
        if key is None:
            is_object = isinstance(value, dict)
            yield Head(value if is_object else {}, listed=True, whole=True, item=value)
            return
        if key not in head.fields:
            head.fields[key] = value
            yield head
    head.whole = True
    yield head


def seen_names(words: str, names: Iterable[Any]) -> str:
    """Put the first names that were seen into brackets, for an error; nothing without any."""
    shown = ", ".join(map(repr, list(names)[:_SHOWN]))
    return f" ({words} {shown})" if shown else ""
