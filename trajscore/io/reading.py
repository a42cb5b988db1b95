"""Reading a log: files, runs that are left out, what an outcome is, the same for every format."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trajscore.core.outcomes import CENSORED
from trajscore.core.stops import (
    ADMINISTRATIVE,
    COMPLETE,
    EXCLUDED,
    INFORMATIVE,
    Rule,
    mechanism_of,
)
from trajscore.io._choice import Choice, Chooser, turns_say_nothing
from trajscore.io._run import MalformedRunError, Run
from trajscore.io.files import Broken, LogFile, Paths, Place, list_paths
from trajscore.io.registry import Format, find_format, seen_names, tell, told_by
from trajscore.io.runs import LeftOut, Runs, RunStream, warn_of_left_out

_EXPLAINED = (ADMINISTRATIVE, INFORMATIVE)  # a run may well have no outcome then


def read_runs(
    path: Paths,
    *,
    format: str | None = None,  # noqa: A002
    outcome: str | None = None,
    outcome_map: Mapping[Any, float] | str | None = None,
    outcomes: Any = None,
    confidence: str | None = None,
    id: str | Sequence[str] | None = None,  # noqa: A002
    rule: Rule | None = None,
    **options: Any,
) -> Runs:
    """Read a log of any known format.

    Parameters
    ----------
    path : str, Path or iterable of them
        A file (plain or gzipped), or a folder of files of one format.
    format : str, optional
        The name of a format, such as "langfuse" or "openai", or of one that was registered.
        Default: the one that the first fields of the first file tell.
    outcome : str, optional
        The field or score of a run that is its outcome; dots lead into nested objects,
        ``"metadata.passed"``. Default: what the format defines, else one of the usual names
        (outcome, solved, success, resolved, passed, correct, reward ...), also one level deeper. An
        outcome is true, false, -1 (not observed) or a grade in [0, 1].
    outcome_map : mapping of value to outcome or str, optional
        What words mean: ``{"pass": 1, "fail": 0, "timeout": -1}``, or in text
        ``"pass=1,fail=0,timeout=-1"``.
    outcomes : DataFrame, str, Path or mapping of id to outcome, optional
        How the runs ended, in a table with columns of ids, outcomes and maybe stop reasons (a path:
        CSV, Parquet, JSON lines). It goes before what the log says.
    confidence : str, optional
        The field or score of a turn that is the agent's confidence. Default: one of the usual names
        (confidence, judge_probability, score, probability ...).
    id : str or sequence of str, optional
        The field that is the id of a run; several make one of all their values. Default: what the
        format defines, else one of the usual names.
    rule : mapping or callable, optional
        What stop reasons mean, as in `trajscore.core.stops.classify_stops`: say
        ``{"timeout": "administrative"}`` if all runs had the same time on the same machine.
    **options
        ``stop_reason``, the field of a run that says why it ended; ``max_size``, how many bytes a
        compressed file may unpack to (100 times its size or 256 MB, whichever is more); and options
        of the format, those of `read_tau2` and so on.

    Returns
    -------
    Runs
        The runs. Those that cannot be read, and those that a fault of the test bench ended, are in
        ``.left_out``, and one warning counts them. ``.remarks`` says what the log holds that
        was not used.

    Raises
    ------
    ValueError
        If the format is not known, a file breaks off or is no JSON, holds no runs or those of
        another format, none of its runs can be read, a named field is nowhere, an outcome is a word
        that `outcome_map` does not have, or a log-probability is above 0.

    See Also
    --------
    iter_runs : The same, one run at a time.

    Examples
    --------
    >>> import json, tempfile, pathlib
    >>> from trajscore import io
    >>> log = pathlib.Path(tempfile.mkdtemp()) / "chat.json"
    >>> chat = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
    >>> _ = log.write_text(json.dumps([{"messages": chat, "grade": "pass"}]))
    >>> io.read_runs(log, outcome="grade", outcome_map={"pass": 1, "fail": 0})
    <Runs: 1 runs, 1 successes, 0 failures, 0 not observed>
    """
    chosen = {
        "outcome": outcome,
        "outcome_map": outcome_map,
        "outcomes": outcomes,
        "confidence": confidence,
        "id": id,
        "rule": rule,
    }
    return read_as(format, path, **chosen, **options)


def iter_runs(
    path: Paths,
    *,
    format: str | None = None,  # noqa: A002
    **options: Any,
) -> RunStream:
    """Read a log of any known format one run at a time, in the memory of its largest run.

    Parameters
    ----------
    path : str, Path or iterable of them
        As in `read_runs`.
    format : str, optional
        As in `read_runs`.
    **options
        As in `read_runs`: outcome, outcomes, confidence, id, rule and so on.

    Returns
    -------
    iterator of Run
        The runs, in the order of the files. Its attributes ``left_out``, ``remarks`` and ``info``
        are those of `Runs`, so far. Lines of steps must stand together, run by run, or an error
        says where they do not.

    Examples
    --------
    >>> import json, tempfile, pathlib
    >>> from trajscore import io
    >>> log = pathlib.Path(tempfile.mkdtemp()) / "log.json"
    >>> turn = {"role": "assistant", "content": "Hi"}
    >>> _ = log.write_text(json.dumps([{"task_id": 7, "reward": 1.0, "traj": [turn]}]))
    >>> [run.task for run in io.iter_runs(log)]
    ['7']
    """
    return stream_runs(path, format, options, one_by_one=True, warns=True)


def read_as(name: str | None, path: Paths, /, **options: Any) -> Runs:
    """Read a log of one format: the body of ``read_<format>``, whose caller is warned."""
    stream = stream_runs(path, name, options)
    runs = Runs(stream)
    warn_of_left_out(runs.left_out, len(runs), stacklevel=3)
    return runs


def stream_runs(
    path: Paths,
    format: str | Format | None = None,  # noqa: A002
    options: Mapping[str, Any] | None = None,
    *,
    one_by_one: bool = False,
    warns: bool = False,
) -> RunStream:
    """Return the runs of a log as a stream, which says what is left out as data or warns too."""
    places = list_paths(path)
    own = dict(options or {})
    choice = Choice.take(own)
    if not isinstance(format, (str, Format, type(None))):
        raise ValueError(f"format must be the name of a format, got {format!r}")
    limit = choice.max_size
    known = find_format(format) if isinstance(format, str) else format or tell(places, limit)
    named = isinstance(format, str)
    chooser = Chooser(choice)
    reading = _Reading(known, known.check_options(own), chooser, named)
    paths = known.files(places)
    info: dict[str, dict[str, Any]] = {}
    files = [
        LogFile(file, info, len(paths), one_by_one, fields=choice.fields, max_size=limit)
        for file in paths
    ]
    return RunStream(reading.runs(files), info, chooser, warns=warns)


@dataclass(frozen=True)
class _Reading:
    """Reads files in one format, which was named by the user or else told from the files."""

    format: Format
    options: Any
    chooser: Chooser
    named: bool

    @property
    def rule(self) -> Rule | None:
        return self.chooser.choice.rule

    def runs(self, files: list[LogFile]) -> Iterator[Run | LeftOut]:
        left_out, readable = [], False
        for file in files:
            for one in self._runs_of(file):
                readable = readable or isinstance(one, Run) or one.kind == "excluded"
                left_out += [one] if isinstance(one, LeftOut) and not readable else []
                yield one
        if all(file.is_head for file in files):
            raise self._no_runs(files[0])
        self.chooser.check(str(files[0].path))
        if not readable:
            raise ValueError(
                f"no run can be read as the format {self.format.name} (of {len(left_out)} in the "
                f"log): {left_out[0]}"
            )

    def _runs_of(self, file: LogFile) -> Iterator[Run | LeftOut]:
        """Yield the runs of one file; there must be one, and of this format."""
        n_found, fits = 0, False
        for place, raw in self.format.runs(file, self.options):
            one = self._run(raw, place)
            n_found += 1
            fits = fits or isinstance(one, Run) or one.kind == "excluded"
            yield one
        if file.is_head:
            return
        if self.named and not fits:
            self._refuse_other(file)
        if not n_found:
            raise self._no_runs(file)

    def _run(self, raw: Any, place: Place) -> Run | LeftOut:
        run, wrong = None, ""
        try:
            if isinstance(raw, Broken):
                raise MalformedRunError(str(raw))
            run = self.format.run(raw, place, self.options)
            self.chooser.settle(run)
            place.run, place.stop_reason = run.id, run.stop_reason
            self._note_stop(run)
            self.chooser.n_ended += run.outcome != CENSORED or run.stop_kind in _EXPLAINED
            _check_turns(run, raw)
        except MalformedRunError as error:
            wrong = str(error)
        except RecursionError:
            wrong = "it is nested too deeply"
        observed = run is not None and run.outcome != CENSORED
        if not observed and mechanism_of(place.stop_reason, self.rule) == EXCLUDED:
            reason = str(place.stop_reason)
            return LeftOut(str(place.file), place.index, place.run, reason, "excluded")
        if run is None or wrong:
            return LeftOut(str(place.file), place.index, place.run, wrong)
        return run

    def _note_stop(self, run: Run) -> None:
        """Note what the stop reason means, and whether the outcome counts as observed."""
        kind = None if run.stop_reason is None else mechanism_of(run.stop_reason, self.rule)
        cut_runs = getattr(self.options, "cut_runs", self.format.cut_runs)
        if cut_runs == "unobserved" and kind not in (None, COMPLETE):
            run.outcome = CENSORED
        run.stop_kind = kind if run.outcome == CENSORED else COMPLETE

    def _refuse_other(self, file: LogFile) -> None:
        """Refuse a file that looks like another format; name the reader for it."""
        looks = told_by(file.path)
        if looks is not None and looks is not self.format:
            raise ValueError(
                f"{file.path} is no log in the format {self.format.name}: it has no "
                f"{self.format.holds!r}; it looks like {looks.name}, so read it with "
                f"{looks.reader}, or with read_runs"
            )

    def _no_runs(self, file: LogFile) -> ValueError:
        own = self.format.holds
        lacks = f": it has no {own!r}" if file.info and own not in file.info else ""
        return ValueError(
            f"there are no runs in {file.path}{lacks}; leave the file out, or get it again"
        )


def _check_turns(run: Run, raw: Any) -> None:
    """Refuse a run in which the agent has no turn, or nobody says or does anything."""
    agent = [step for step in run.steps if step.actor == "agent"]
    if agent and not turns_say_nothing(agent):
        return
    roles = sorted({str(step.extra["role"]) for step in run.steps if "role" in step.extra})
    hint = seen_names("unknown roles:", roles)
    if agent:
        names = raw if isinstance(raw, Mapping) else raw[0] if isinstance(raw, list) else {}
        hint = seen_names("its fields are", names)
        raise MalformedRunError(
            f"every turn of the agent is empty{hint}: its messages were not found, and no field "
            f"has a usual name of a confidence"
        )
    raise MalformedRunError(f"it has no turn of the agent{hint}")
