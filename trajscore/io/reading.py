"""Reading a log: its files, its runs, and which runs are left out, the same for every format."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from trajscore.core.errors import ArgumentError
from trajscore.core.outcomes import CENSORED, words_of
from trajscore.core.stops import (
    ADMINISTRATIVE,
    COMPLETE,
    EXCLUDED,
    INFORMATIVE,
    UNKNOWN,
    Mechanism,
    Rule,
    mechanism_of,
    settled,
)
from trajscore.core.values import number_of
from trajscore.io._findings import Findings
from trajscore.io._run import Actor, MalformedRunError, Run
from trajscore.io._selection import Selection
from trajscore.io.files import Broken, LogFile, Paths, Place, list_paths
from trajscore.io.outcome_tables import examples
from trajscore.io.registry import Format, RawRuns, detect_format, find_format
from trajscore.io.runs import LeftOut, Runs, RunStream, check_runs, warn_of_left_out
from trajscore.io.unread import count_unread, refusals

_OF_ERRORS = {"error", "errors", "exception", "traceback"}
_IN_SENTENCES = (ArgumentError, MalformedRunError, RecursionError, ImportError, OSError)
_EXPLAINED = (ADMINISTRATIVE, INFORMATIVE)  # stops that explain why there is no outcome


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
    roles: Mapping[str, Actor] | str | None = None,
    **options: Any,
) -> Runs:
    """Read a log of any known format.

    Parameters
    ----------
    path : str, Path or iterable of them
        A file (plain or gzipped), or a folder of files of one format. Each row of a CSV
        or Parquet file is a record, as a line of JSON is; a table with one row a step is refused.
    format : str, optional
        The name of a format, such as "langfuse" or "openai", or of one that was registered.
        Default: the format is detected from the first fields of the first file.
    outcome : str, optional
        The field or score of a run that is its outcome; dots lead into nested objects,
        ``"metadata.passed"``. Default: what the format defines, else one of the usual names
        (outcome, solved, success, resolved, passed, correct, reward ...), also one level deeper. An
        outcome is true, false, -1 (not observed) or a grade in [0, 1]. Where a high value is a
        failure, write ``"not failed"``; names that sound so are refused without it.
    outcome_map : mapping of value to outcome or str, optional
        Outcomes of words: ``{"pass": 1, "fail": 0, "timeout": -1}``, or as text
        ``"pass=1,fail=0,timeout=-1"``.
    outcomes : DataFrame, str, Path or mapping of id to outcome, optional
        A table of ids, outcomes and optionally stop reasons (a path: CSV, Parquet, JSON lines,
        or a JSON object of outcomes by id). It takes precedence over the log.
    confidence : str, optional
        The field or score of a turn that is the agent's confidence; ``"not risk"`` is 1 minus it.
        Default: one of the usual names (confidence, judge_probability, score, probability ...).
    id : str or sequence of str, optional
        The field that is the id of a run; several make one of all their values. Default: what the
        format defines, else one of the usual names.
    rule : mapping, str or callable, optional
        What stop reasons mean, such as ``{"timeout": "administrative"}`` or as text
        ``"timeout=administrative"``, if all runs had the same time on the same machine; or a
        function of a reason. Default: what the usual ones mean.
    roles : mapping of str to {"agent", "user", "environment"} or str, optional
        Who acts under a role, or under a name beside the role, that is not a usual one:
        ``{"WebSurfer": "agent"}``, or as text ``"WebSurfer=agent"``. Default: unknown roles are the
        environment.
    **options
        ``stop_reason``, the field of a run that says why it ended; ``max_size``, how many bytes a
        compressed file may unpack to (default: 100 times its size, at least 256 MB); and options of
        the format, which the page of the format explains: ``fields`` of "jsonl", ``max_turns`` of
        "tau_bench".

    Returns
    -------
    Runs
        The runs. Those that cannot be read, and those that an infrastructure error ended, are in
        ``.left_out``, and one warning counts them. ``.notes`` says what of the log was not used.

    Raises
    ------
    ValueError
        If the format is not known; a file is cut off, is not JSON, or holds no runs of the format;
        no run can be read; several runs share an id; it is not known who is the agent; a named
        field is nowhere; an outcome is a word that `outcome_map` does not have; or a
        log-probability is above 0.

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
    <Runs: 1 run, 1 success, 0 failures, 0 not observed>
    """
    return read_as(
        format, path, outcome=outcome, outcome_map=outcome_map, outcomes=outcomes,
        confidence=confidence, id=id, rule=rule, roles=roles, **options,
    )  # fmt: skip


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
        The runs, in the order of the files. Its attributes ``left_out``, ``notes`` and ``info``
        are those of `Runs`, so far. Where each line is a step, the lines of a run must stand
        together; otherwise an error names the line.

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
    return stream_runs(path, format, options, one_by_one=True)


def read_tau2(path: Paths, **options: Any) -> Runs:
    """Read result files of tau2-bench.

    The file gives reward 0 to every run that neither the agent nor the user ended. The stop reason
    is therefore read first: what a budget of steps ended without a success has outcome -1.

    Parameters
    ----------
    path : str, Path or iterable of them
        As in `read_runs`; or a folder with ``results.json`` and ``simulations/*.json``.
    **options
        As in `read_runs`: outcome, outcomes, confidence, id, rule and so on.

    Returns
    -------
    Runs
        One run a simulation, without those that an infrastructure error ended (user_error,
        infrastructure_error, unexpected_error).

    Notes
    -----
    ``agent_stop`` and ``user_stop`` are observed: success if the reward is 1 up to 1e-6.
    ``max_steps`` is administrative; the budget ``info.max_steps`` counts steps of the orchestrator,
    not turns of the agent. Say with ``rule`` what a ``timeout`` means. In logs of agent-tracer, the
    self-assessed confidence of a turn is its stated confidence.

    Examples
    --------
    >>> import json, tempfile, pathlib
    >>> from trajscore import io
    >>> log = pathlib.Path(tempfile.mkdtemp()) / "results.json"
    >>> turn = {"role": "assistant", "content": "Hello"}
    >>> run = {"task_id": "7", "messages": [turn], "reward_info": {"reward": 0.0}}
    >>> ended = [run | {"id": "a", "termination_reason": "user_stop"},
    ...          run | {"id": "b", "termination_reason": "max_steps"}]
    >>> _ = log.write_text(json.dumps({"simulations": ended}))
    >>> io.outcomes(io.read_tau2(log))
    array([ 0, -1])
    """
    return read_as("tau2", path, **options)


def read_as(name: str | None, path: Paths, /, **options: Any) -> Runs:
    """Read a log of one format, or of any; the caller's caller is warned."""
    stream = stream_runs(path, name, options)
    was_enabled = gc.isenabled()
    gc.disable()  # runs have no cycles, and looking for them would visit all again and again
    try:
        runs = Runs(stream)
    finally:
        if was_enabled:
            gc.enable()
    warn_of_left_out(runs.left_out, len(runs), stacklevel=3)
    return runs


def stream_runs(
    path: Paths,
    format: str | Format | None,  # noqa: A002
    options: Mapping[str, Any],
    *,
    one_by_one: bool = False,
) -> RunStream:
    """Return the runs of a log as a stream; one by one, it warns of those that are left out."""
    places = list_paths(path)
    of_format = dict(options)
    info: dict[str, dict[str, Any]] = {}
    with refusals(places[0]):
        selection = Selection.take(of_format)
        if not isinstance(format, (str, Format, type(None))):
            raise ValueError(f"format must be the name of a format, got {format!r}")
        limit = selection.max_size
        names_parts = bool(selection.fields.named_parts or selection.fields.step)
        if format is None and names_parts:
            format = "jsonl"  # noqa: A001
        log_format = find_format(format) if isinstance(format, str) else format
        log_format = log_format or detect_format(places[0], limit)
        if names_parts and log_format.name != "jsonl":
            raise ArgumentError(
                f"{{argument}} names the parts of JSON in no known format, and the format is "
                f"{log_format.name}; leave one of them out",
                "fields",
            )
        if log_format.stops and not callable(selection.rule):
            selection = replace(selection, rule={**log_format.stops, **(selection.rule or {})})
        findings = Findings(selection)
        chosen = log_format._check_options(of_format)
        paths = [path for place in places for path in log_format._files(place)]
        files = [
            LogFile(
                file,
                info,
                len(paths),
                one_by_one,
                fields=selection.fields,
                max_size=limit,
                options=chosen,
            )
            for file in paths
        ]
    reading = _Reading(log_format, findings)
    return RunStream(reading.runs(files), info, findings, places[0], one_by_one)


@dataclass(frozen=True)
class _Reading:
    """Reads files of one format."""

    format: Format
    findings: Findings

    def runs(self, files: list[LogFile]) -> Iterator[Run | LeftOut]:
        unreadable: list[LeftOut] = []
        any_readable = False
        for file in files:
            with refusals(file.path):
                n_runs = 0
                for place, raw in self._raw_runs(file):
                    run = self._run(raw, place)
                    n_runs += 1
                    if isinstance(run, Run):
                        any_readable |= not run.ended_before_start
                    elif run.kind == "excluded":
                        any_readable = True
                    else:
                        unreadable.append(run)
                    yield run
                if not n_runs and not file.is_head:
                    raise self._no_runs(file)
        with refusals(files[0].path):
            if all(file.is_head for file in files):
                raise self._no_runs(files[0])
            self.findings.check_names(str(files[0].path))
            if not any_readable:
                raise self._none_readable(unreadable, files[0])

    def _raw_runs(self, file: LogFile) -> RawRuns:
        with self._failures(file.path, file.path):
            yield from self.format.runs(file)

    @contextmanager
    def _failures(self, file: Path, where: Path | Place) -> Iterator[None]:
        """Say where the reader of the format fails, unless its error is such a sentence."""
        try:
            yield
        except Exception as error:
            if isinstance(error, _IN_SENTENCES) or str(file) in str(error):
                raise
            kind = type(error).__name__
            raise ValueError(
                f"{where}: the reader of format {self.format.name!r} fails: {kind} {error}"
            ) from error

    def _none_readable(self, runs: list[LeftOut], file: LogFile) -> ValueError:
        if problem := self.findings.role_problem():
            return ArgumentError(f"{file.path}: {problem}", "roles")
        if not runs:
            n = number_of(self.findings.tally.odd["unstarted"], "run")
            return ArgumentError(
                f"{file.path}: read as {self.format.name}, none of the {n} has a turn of the "
                f"agent; if turns have names of their own, give them with {{argument}}",
                "fields",
                "steps=NAME,text=NAME",
            )
        first = runs[0]
        which = str(first).removeprefix(f"{first.file}, ")
        return ValueError(
            f"{first.file}: none of the {len(runs)} runs can be read as {self.format.name}: {which}"
        )

    def _run(self, raw: Any, place: Place) -> Run | LeftOut:
        run = None
        problem = ""
        selection = self.findings.selection
        tally = self.findings.tally
        try:
            if isinstance(raw, Broken):
                raise MalformedRunError(str(raw))
            with self._failures(place.file, place):
                run = self.format.run(raw, place)
                check_runs([run])
            run.meta = {"file": str(place.file)} | run.meta
            selection.apply(run, tally)
            tally.note_run(run)
            unread, unread_logprobs = count_unread(raw, run)
            tally.unread += unread
            tally.unread_logprobs += unread_logprobs
            place.run = run.id
            place.stop_reason = run.stop_reason
            self._settle(run)
            if run.ended_before_start:
                texts = [k for k in unread if "." in k and not words_of(k) & _OF_ERRORS]
                if texts:
                    raise MalformedRunError(
                        f"it has no turn of the agent, and its texts in {examples(texts)} are not "
                        f"read"
                    )
                tally.odd["unstarted"] += 1
                tally.unstarted[run.id] = place.index
            else:
                _check_turns(run)
            if None not in (run.task, run.trial) and run.stop_kind != EXCLUDED:
                tally.trials[run.task, str(run.trial)] += 1
            tally.n_with_outcome += run.outcome != CENSORED or run.stop_kind in _EXPLAINED
        except MalformedRunError as error:
            problem = str(error)
        except RecursionError:
            problem = "it is nested too deeply"
        where = (str(place.file), place.index, place.run)
        if self._kind(place.stop_reason) == EXCLUDED:
            return LeftOut(*where, str(place.stop_reason), "excluded", None if problem else run)
        if run is None or problem:
            return LeftOut(*where, problem)
        tally.ids[run.id] += 1
        return run

    def _settle(self, run: Run) -> None:
        """Apply the rule of `trajscore.core.stops` to a run."""
        kind = self._kind(run.stop_reason)
        settled_outcome = settled(run.outcome, kind)
        is_odd = kind == UNKNOWN and run.outcome != CENSORED
        if is_odd or settled_outcome != run.outcome:  # at the end of a budget
            self.findings.tally.stops[str(kind), str(run.stop_reason)] += 1
        run.outcome = settled_outcome
        is_settled = run.outcome != CENSORED and kind not in (EXCLUDED, UNKNOWN)
        run.stop_kind = COMPLETE if is_settled else kind

    def _kind(self, reason: str | None) -> Mechanism | None:
        if reason is None:
            return None
        return mechanism_of(reason, self.findings.selection.rule)

    def _no_runs(self, file: LogFile) -> ValueError:
        why = ""
        if file.info:
            why = f": nothing under {self.format.holds!r} is one"
        return ValueError(
            f"there are no runs in {file.path}{why}; leave the file out, or get it again"
        )


def _check_turns(run: Run) -> None:
    """Refuse a run in which the agent has no turn, or only empty ones."""
    agent = [step for step in run.steps if step.actor == "agent"]
    if not agent:
        roles = sorted({str(step.extra["role"]) for step in run.steps if "role" in step.extra})
        unknown = ""
        if roles:
            unknown = f" (unknown roles: {examples(roles)})"
        raise MalformedRunError(f"it has no turn of the agent{unknown}")
    if all(step.is_empty for step in agent):
        raise MalformedRunError("no turn of the agent has a text, a call or a confidence")
