"""What a file holds, and what a report would do with it, before any work is done."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trajscore import io
from trajscore.core.array import TrajectoryArray
from trajscore.core.errors import ArgumentError
from trajscore.core.meanings import bare_name
from trajscore.core.outcomes import CENSORED, FAILURE, SUCCESS, differ
from trajscore.core.stops import mechanism_of, recorded_stops
from trajscore.core.values import number_of
from trajscore.io.fields import ROWS, USUAL_FIELDS, Fields
from trajscore.io.reading import stream_runs
from trajscore.io.registry import Format
from trajscore.io.runs import count_left_out
from trajscore.io.tables import read_table
from trajscore.io.wide_tables import as_long
from trajscore.report._from_log import FromLog, find_confidences
from trajscore.report._inputs import (
    FromTable,
    format_of,
    load,
    scores_not_used,
    stops_not_met,
)
from trajscore.report._left_out import without_values
from trajscore.report._missing import whole_runs
from trajscore.report._runs import counted, outcome_problem

_WIDTH = 80
_MOST = 12  # names or values that a line shows


@dataclass
class Description:
    """Facts of a log or a table; numbers and words only, so that it is JSON as it is."""

    file: str
    kind: str
    n_runs: int | None = None  # not known of a table that cannot be read as one of runs
    n_rows: int | None = None
    outcome: dict[str, Any] = field(default_factory=dict)  # from where, and how many of each
    stops: dict[str, dict[str, Any]] = field(default_factory=dict)
    steps: dict[str, Any] = field(default_factory=dict)
    tools: dict[str, int] = field(default_factory=dict)
    tasks: int | None = None
    confidences: dict[str, float] = field(default_factory=dict)
    columns: dict[str, Any] = field(default_factory=dict)  # of a table: what each is taken for
    fields: dict[str, list[str]] = field(default_factory=dict)  # of a log: what is kept besides
    not_used: list[str] = field(default_factory=list)
    left_out: dict[str, int] = field(default_factory=dict)
    report: str = ""
    proposed: list[str] | None = None  # options that mend what is refused; None if not known

    def refuse(self, error: ValueError | str, options: dict[str, str]) -> None:
        """Say why a report would be refused, and which options would help."""
        if not isinstance(error, ArgumentError):
            error = ArgumentError(str(error))
        self.report = f"would be refused: {error.in_options(options)}"
        proposed = error.proposal(options)
        asked = {options.get("roles"), options.get("fields")} & set(proposed)
        asks = asked or any("=?" in word for word in proposed)
        self.proposed = None if asks else proposed or None  # what only a person knows

    def as_dict(self) -> dict[str, Any]:
        """Return the facts that there are."""
        return {name: value for name, value in asdict(self).items() if value not in (None, {}, [])}

    def __str__(self) -> str:
        return "\n".join(
            textwrap.fill(
                f"{title}: {text}", _WIDTH, subsequent_indent="    ", break_on_hyphens=False
            )
            for title, text in self._lines()
        )

    def _lines(self) -> Iterator[tuple[str, str]]:
        counts = [number_of(self.n_rows, "row")] if self.n_rows else []
        counts += [] if self.n_runs is None else [number_of(self.n_runs, "run")]
        stops = (f"{r} {stop['runs']} ({stop['kind']})" for r, stop in self.stops.items())
        shares = (f"{name} at {share:.0%} of turns" for name, share in self.confidences.items())
        calls = (f"{name or 'without a name'} {count}" for name, count in self.tools.items())
        tasks = f"{self.tasks}, whose runs a report takes together" if self.tasks else ""
        lines = [
            (self.file, ", ".join([self.kind, *counts])),
            ("columns", "; ".join(f"{part}: {text}" for part, text in self.columns.items())),
            ("outcome", _outcome(self.outcome)),
            ("stop reasons", ", ".join(stops)),
            ("steps" if self.n_rows else "turns", _steps(self.steps)),
            ("calls of tools", ", ".join(calls)),
            ("tasks", tasks),
            ("confidences", ", ".join(shares)),
            *((self._title(owner), _few(names)) for owner, names in self.fields.items()),
            *(("note", text) for text in self.not_used),
            *(("left out", f"{number_of(n, 'run')}: {why}") for why, n in self.left_out.items()),
            ("a report", self.report),
        ]
        return ((title, text) for title, text in lines if text)

    def _title(self, owner: str) -> str:
        """Return the heading of fields that have no line of their own."""
        if owner != "the table":
            return f"other fields of {owner}"
        return "other columns" if self.columns else "columns"


def describe(
    path: Path,
    fields: Fields = USUAL_FIELDS,
    *,
    format: str | None = None,  # noqa: A002
    options: dict[str, str] | None = None,
    **asked: Any,
) -> Description:
    """Describe a log or a table; the arguments are those of `load`.

    What a report would refuse is said in the words of `options`, those of a command line.
    """
    try:
        known = format_of(path, format, fields, asked.get("max_size"))
    except ArgumentError as error:
        description = Description(str(path), "in no format that is known")
        description.refuse(error, options or {})
        return description
    if known is None:
        return _of_table(path, fields, options or {}, asked)
    return _of_log(path, known, fields, options or {}, asked)


# ------------------------------------------------------------------ logs


def _of_log(
    path: Path, known: Format, fields: Fields, options: dict[str, str], asked: dict[str, Any]
) -> Description:
    named = {name: getattr(fields, name) for name in ("id", "outcome", "confidence", "stop_reason")}
    of_reading = {
        name: asked.get(name) for name in ("outcome_map", "outcomes", "rule", "max_size", "roles")
    }
    of_format = {"fields": fields.named_parts} if fields.named_parts else {}
    description = Description(str(path), f"a log in the format {known.name}")
    try:
        stream = stream_runs(path, known, named | of_reading | of_format)
    except ArgumentError as error:  # an outcome whose meaning is not clear
        description.refuse(error, options)
        return description
    runs: list[io.Run] = []
    findings = stream.findings
    refused: ArgumentError | str = ""
    try:
        runs.extend(stream)
    except ArgumentError as error:  # an outcome that is a word, a name that is nowhere
        if not findings.tally.n_runs:
            description.refuse(error, options)
            return description
        refused = error
    description.n_runs = findings.tally.n_runs
    y = np.array([run.outcome for run in runs])
    used = [name for (part, name), n in findings.tally.used.items() if part == "outcome" and n]
    source = used or (["the format"] if (y != CENSORED).any() else [])
    description.outcome = {"from": source} | _how_many(y.tolist())
    counts = Counter(run.stop_reason for run in runs if run.stop_reason is not None)
    kinds = {run.stop_reason: run.stop_kind for run in runs}
    description.stops = {
        str(reason): {"runs": count, "kind": str(kinds[reason])}
        for reason, count in counts.most_common(_MOST)
    }
    description.steps = _steps_of(runs)
    description.tools = _common(
        call.name for run in runs for s in run.steps for call in s.tool_calls
    )
    tasks = {run.task for run in runs}
    description.tasks = len(tasks) if None not in tasks and len(tasks) > 1 else None
    description.fields = _fields_of(runs)
    unmet = stops_not_met(asked.get("rule"), runs, stream.left_out)
    remarks = (*findings.notes(), *unmet, *scores_not_used(runs))
    description.not_used = [ArgumentError(item).in_options(options) for item in remarks]
    description.left_out = dict(Counter(item.reason for item in stream.left_out).most_common(_MOST))
    _, stopped = counted(y, *recorded_stops(io.meta(runs))) if runs else (None, {})
    description.left_out |= {why: n for (_, why), n in stopped.items()}
    origin = FromLog(len(runs), stream.left_out)
    if runs:
        find_confidences(runs, y, origin, scale=dict(fields.scales).get("verbal", "auto"))
        description.not_used += [ArgumentError(text).in_options(options) for text in origin.unused]
        description.confidences = origin.coverage | origin.too_rare
    problem = refused or ("" if runs else count_left_out(stream.left_out, 0))
    if problem := problem or findings.problem() or _outcome_problem(y):
        description.refuse(problem, options)
    else:
        description.report, description.proposed = _what_is_judged(origin), []
    return description


def _what_is_judged(origin: FromLog) -> str:
    if origin.coverage:
        rare = f"; too few runs have all of {', '.join(origin.too_rare)}" if origin.too_rare else ""
        return f"would judge {', '.join(origin.coverage)}{rare}"
    why = "it has no confidence"
    if origin.too_rare:
        why = f"too few runs have a confidence at every turn ({', '.join(origin.too_rare)})"
    return f"would judge the log by minus TRACER's risk, as {why}"


def _how_many(y: Iterable[float]) -> dict[str, int]:
    names = {SUCCESS: "successes", FAILURE: "failures", CENSORED: "not observed"}
    counts = Counter(names.get(outcome, "graded") for outcome in y)  # type: ignore[call-overload]
    return {name: counts[name] for name in (*names.values(), "graded") if counts[name]}


def _steps_of(runs: list[io.Run]) -> dict[str, Any]:
    agent = [sum(step.actor == "agent" for step in run.steps) for run in runs]
    if not agent:
        return {}
    user = sum(step.actor == "user" for run in runs for step in run.steps)
    return {"agent": sum(agent), "user": user} | _spread(agent)


def _spread(steps: Any) -> dict[str, Any]:
    """Return how many steps runs have."""
    return {"least": int(min(steps)), "median": float(np.median(steps)), "most": int(max(steps))}


def _fields_of(runs: list[io.Run]) -> dict[str, list[str]]:
    of_runs = _common(name for run in runs for name in (*run.extra, *run.scores))
    agent = (step for run in runs for step in run.steps if step.actor == "agent")
    of_turns = _common(name for step in agent for name in (*step.extra, *step.scores))
    fields = {"runs": list(of_runs), "turns": list(of_turns)}
    return {owner: names for owner, names in fields.items() if names}


def _common(names: Iterable[str]) -> dict[str, int]:
    return dict(Counter(map(str, names)).most_common(_MOST))


# ------------------------------------------------------------------ tables


def _of_table(
    path: Path, fields: Fields, options: dict[str, str], asked: dict[str, Any]
) -> Description:
    frame = read_table(path, asked.get("max_size"))
    description = Description(str(path), "a table", n_rows=len(frame))
    if not len(frame):
        description.kind = "a table that has column names and no rows"
    description.fields = {"the table": [str(name) for name in frame.columns]}
    try:
        inputs = load(path, fields, **asked)
    except ValueError as error:
        description.refuse(error, options)
        return description
    origin, X = inputs.origin, inputs.predictors
    assert isinstance(origin, FromTable)
    assert isinstance(X, TrajectoryArray)
    frame = as_long(frame, fields)[0]
    chosen, channels = origin.chosen, X.channels or ()
    parts = {
        "id": ", ".join(chosen.ids),
        "step": "the order of the rows" if chosen.step in (None, ROWS) else chosen.step,
        "outcome": chosen.outcome,
        "stop reason": chosen.stop_reason,
        "predictors": ", ".join(channels),
        "clusters": inputs.group,
    }
    guessed = {"stop_reason": "stop reason", "scores": "predictors"}
    guesses = {guessed.get(part, part) for part in origin.guessed}
    description.columns = {
        part: f"{text} (guessed)" if part in guesses else text
        for part, text in parts.items()
        if text
    }
    description.n_runs, description.tasks = len(inputs.y), inputs.n_groups or None
    description.outcome = {"from": [str(chosen.outcome)]} | _how_many(inputs.y.tolist())
    description.steps = {"agent": int(X.lengths.sum())} | _spread(X.lengths)
    if chosen.stop_reason is not None:
        once = frame.groupby([frame[name] for name in chosen.ids])[chosen.stop_reason].first()
        description.stops = {
            str(reason): {"runs": int(count), "kind": mechanism_of(reason, asked.get("rule"))}
            for reason, count in once.value_counts().head(_MOST).items()
        }
    outcome = bare_name(str(chosen.outcome), frame.columns)
    taken = {*chosen.ids, chosen.step, outcome, chosen.stop_reason, inputs.group, *channels}
    others = [str(name) for name in frame.columns if name not in taken]
    description.fields = {"the table": others} if others else {}
    description.not_used = list(origin.not_used)
    whole = {name: whole_runs(X[name]) for name in channels}
    _, stopped = counted(inputs.y, *recorded_stops(X.meta, inputs.stop_reason))
    description.left_out = {why: n for (_, why), n in stopped.items()}
    description.left_out |= {
        without_values([name]): int((~rows).sum()) for name, rows in whole.items() if not rows.all()
    }
    judged = [name for name, of_runs in whole.items() if differ(inputs.y[of_runs])]
    description.report, description.proposed = f"would judge {', '.join(judged)}", []
    if problem := _outcome_problem(inputs.y):
        description.refuse(problem, options)
    elif not judged:
        description.refuse("no predictor has enough runs without missing values", {})
    return description


# ------------------------------------------------------------------ sentences


def _outcome_problem(y: NDArray[Any]) -> str:
    """Say why these outcomes cannot be evaluated, and where others may be; "" if they can."""
    problem = outcome_problem(y)
    if problem and len(y) > 1 and (y != CENSORED).any():
        problem += (
            "; if another field holds the outcome, name it with {argument:outcome}, or give a "
            "table of run ids and outcomes with {argument:outcomes}"
        )
    return problem


def _few(names: list[str]) -> str:
    more = f" and {len(names) - _MOST} more" if len(names) > _MOST else ""
    return ", ".join(names[:_MOST]) + more


def _outcome(outcome: dict[str, Any]) -> str:
    if not outcome:
        return ""
    words = {"successes": "success", "failures": "failure"}
    counts = ", ".join(
        number_of(n, words[name]) if name in words else f"{n:,} {name}"
        for name, n in outcome.items()
        if name != "from"
    )
    source = f" (from {', '.join(outcome['from'])})" if outcome["from"] else ""
    return f"{counts or 'none'}{source}"


def _steps(steps: dict[str, Any]) -> str:
    if not steps:
        return ""
    user = f", {steps['user']} of the user" if steps.get("user") else ""
    spread = f"{steps['least']} to {steps['most']} a run, {steps['median']:g} at the median"
    if steps["least"] == steps["most"]:
        spread = f"{steps['most']} in each run"
    whose = " of the agent" if "user" in steps else ""
    return f"{steps['agent']}{whose} ({spread}){user}"
