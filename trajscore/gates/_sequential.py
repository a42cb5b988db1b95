"""Gates looked at again as runs arrive, with a file that holds what was taken and by what rule."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from trajscore.core.storage import replacing
from trajscore.core.values import as_path, is_count, number_of
from trajscore.core.version import __version__
from trajscore.gates._change import match
from trajscore.gates._check import data_problems, rules_of
from trajscore.gates._gate import (
    BASE_RATE,
    BASELINE,
    BOUND,
    FAIL,
    PASS,
    UNDECIDED,
    UNUSABLE,
    Gate,
    Rules,
    allowed,
)
from trajscore.gates._measures import SUCCESS
from trajscore.gates._result import CheckResult, GateResult, numbers, worst
from trajscore.gates._run_set import RunSet, as_set
from trajscore.inference import SequentialComparison
from trajscore.report._data import ReportData
from trajscore.report.render.as_markdown import escaped

FORMAT, VERSION = "trajscore sequential check", 1
_OF_A_GATE = ("metric", "versus", "margin")
_VERDICTS = {"a": PASS, "b": FAIL, None: UNDECIDED}
_NEXT = {
    PASS: "success is no worse than allowed; this stays so",
    FAIL: "success is worse than allowed; this stays so",
    UNDECIDED: "look again when more runs have arrived",
    UNUSABLE: "the runs are not what the rules ask for; nothing was taken",
}


@dataclass(frozen=True)
class _Task:
    """A task, or a run where no tasks are known, as it was when it was taken."""

    name: str
    look: int
    runs: Mapping[str, float]  # outcomes by id
    baseline: list[float]  # outcomes; none where it is not in the baseline


@dataclass(frozen=True)
class SequentialResult(CheckResult):
    """What `check_sequential` found: a `CheckResult`, and what was taken."""

    look: int = 1  # number of looks so far at which something was taken
    decided_at: list[int | None] = field(default_factory=list)  # look, of each gate
    n_taken: int = 0  # tasks (or runs) so far
    n_taken_now: int = 0  # those of this look
    n_late: int = 0  # runs that arrived after their task was taken, and do not count
    n_unpaired: int = 0  # tasks (or runs) that are not in the baseline; they do not count
    taken_by: str = "task"  # or "run"

    def __str__(self) -> str:
        return "\n".join(_lines(self))

    def to_markdown(self) -> str:
        """Return the lines as a list, as for the summary of a job."""
        lines = "\n".join(f"- {escaped(line)}" for line in _lines(self))
        return f"## {self.verdict.capitalize()}\n\n{lines}\n"


def check_sequential(
    new: RunSet | ReportData,
    baseline: RunSet | ReportData | None = None,
    rules: Rules | Gate | None = None,
    *,
    state: str | Path,
) -> SequentialResult:
    """Hold gates of success against the runs so far, as often as you like while runs arrive.

    Parameters
    ----------
    new : RunSet or Report
        All runs so far, the earlier ones too.
    baseline : RunSet or Report, optional
        Earlier runs, paired with the new ones by task, or by id where there are no tasks.
    rules : Rules or Gate, optional
        What must hold of "success", against the baseline or a number, as for `check`.
    state : str or Path
        The file that holds the rule and what was taken. The first look makes it, and each look
        brings it up to date.

    Returns
    -------
    SequentialResult
        The verdict, of each gate and together. A gate that has passed or failed stays so.

    Raises
    ------
    ValueError
        If the rule is not that of the file, an earlier run is missing or has another outcome, or a
        gate is not of success.

    Notes
    -----
    A task is taken with all its runs when it first appears; runs of it that come later do not
    count. Tasks that appear together are taken in an order that only their names decide. Bets on
    the differences of tasks from the baseline (see `trajscore.inference.SequentialComparison`) then
    show that success is worse than allowed, or that it is not. If tasks arrive in an order that
    does not depend on how they end, the chance that any gate ever fails that holds is at most the
    level; so is the chance that any passes that does not. Several gates share the level equally.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from trajscore.gates import Gate, RunSet, check_sequential
    >>> def runs(n):  # the first n of an agent's runs, of which 9 of 10 succeed
    ...     solved = [k % 10 > 0 for k in range(n)]
    ...     return RunSet([[0.5]] * n, solved, tasks=[f"task {k}" for k in range(n)])
    >>> gate = Gate("success", versus=0.8)
    >>> with TemporaryDirectory() as folder:
    ...     for n in (10, 40, 90):
    ...         result = check_sequential(runs(n), rules=gate, state=Path(folder) / "gate.json")
    ...         print(result.look, result.n_taken, result.verdict)
    1 10 undecided
    2 40 undecided
    3 90 pass
    """
    new = as_set("new", new)
    baseline = None if baseline is None else as_set("baseline", baseline)
    all_rules = rules_of(rules, baseline)
    for gate in all_rules.gates:
        _check_gate(gate, baseline)
    paired = any(gate.versus == BASELINE for gate in all_rules.gates)
    by = _taken_by(new, baseline if paired else None)
    outcomes = _outcomes(new, by)
    reference = _outcomes(baseline, by) if paired and baseline is not None else {}
    # what must stay the same from look to look, as JSON has it
    of_gates = [{name: getattr(gate, name) for name in _OF_A_GATE} for gate in all_rules.gates]
    rule = {"gates": of_gates, "level": all_rules.level, "censored": new.censored, "by": by}
    path = as_path(state, "state")
    before = _read(path, rule)
    for task in before:
        _check_unchanged(task, by, outcomes.get(task.name, {}), _sorted(reference.get(task.name)))
    matched = None if baseline is None else match(baseline, new)
    problems = data_problems(new, matched, all_rules.data)
    look = max((task.look for task in before), default=0)
    names = [] if problems else list(outcomes.keys() - {task.name for task in before})
    # an order in which no outcome can have a say
    names.sort(key=lambda name: hashlib.sha256(name.encode(errors="surrogatepass")).digest())
    look += bool(names)
    now = [_Task(name, look, outcomes[name], _sorted(reference.get(name))) for name in names]
    if now:
        _write(path, rule, before + now)
    taken = before + now
    decided = [_decided(gate, taken, all_rules, by) for gate in all_rules.gates]
    gates = [gate for gate, _ in decided]
    verdict = worst((gate.counts_as for gate in gates), problems)
    return SequentialResult(
        *(verdict, gates, problems, all_rules, new, baseline, matched),
        look=look,
        decided_at=[at for _, at in decided],
        n_taken=len(taken),
        n_taken_now=len(now),
        n_late=sum(len(outcomes[task.name]) - len(task.runs) for task in taken),
        n_unpaired=sum(not task.baseline for task in taken) if paired else 0,
        taken_by=by,
    )


def _check_gate(gate: Gate, baseline: RunSet | None) -> None:
    """Refuse a gate that has no bound which holds at every look."""
    if gate.metric != SUCCESS:
        raise ValueError(
            f"metric is {gate.metric!r}; a sequential check takes 'success' alone. Hold "
            f"{gate.metric} against the runs once, with check"
        )
    if gate.use != BOUND:
        raise ValueError(
            f"use is {gate.use!r}; a sequential check always allows for chance. Leave use out"
        )
    if gate.versus == BASE_RATE or (gate.versus == BASELINE and baseline is None):
        raise ValueError(
            f"versus is {gate.versus!r}; a sequential check needs a baseline, or a number such as "
            f"versus = 0.9"
        )
    low, high = _bound(gate)
    if not low < 0 < high:
        raise ValueError(f"the gate {str(gate)!r} decides nothing: success lies in [0, 1]")


def _bound(gate: Gate) -> tuple[float, float]:
    """Smallest and largest difference of a task from what is allowed."""
    times, margin = allowed(gate)
    low, high = (0.0, 1.0) if gate.versus == BASELINE else (float(gate.versus),) * 2
    return margin - times * high, 1 + margin - times * low


def _taken_by(new: RunSet, baseline: RunSet | None) -> str:
    """What is taken: tasks where they are known, else runs."""
    sets = [new] if baseline is None else [new, baseline]
    if all(runs.tasks is not None for runs in sets):
        return "task"
    if baseline is not None and not all(runs.has_ids for runs in sets):
        raise ValueError(
            "the new runs cannot be paired with the baseline: give both a column of tasks "
            "(--group), or ids of runs, or hold success against a number"
        )
    return "run"


def _outcomes(runs: RunSet, by: str) -> dict[str, dict[str, float]]:
    """Outcomes by task and id; runs that have no ids are numbered within their task."""
    ids = runs.ids.astype(str).tolist()
    tasks = ids if by == "run" or runs.tasks is None else runs.tasks.tolist()
    by_task: dict[str, dict[str, float]] = {}
    for task, run, outcome in zip(tasks, ids, runs.labels.tolist(), strict=True):
        of_task = by_task.setdefault(task, {})
        of_task[str(len(of_task) + 1) if not runs.has_ids else run] = outcome
    return by_task


def _sorted(outcomes: Mapping[str, float] | None) -> list[float]:
    return sorted((outcomes or {}).values())


def _check_unchanged(
    task: _Task, by: str, outcomes: Mapping[str, float], baseline: list[float]
) -> None:
    """Refuse runs that are missing now, or that came to something else."""
    again = "Give all runs so far as they were, or name a new state file"
    for run, before in task.runs.items():
        changed = f"run {task.name!r}" if by == "run" else f"run {run!r} of task {task.name!r}"
        if run not in outcomes:
            raise ValueError(f"{changed} was taken at look {task.look} and is missing now. {again}")
        if outcomes[run] != before:
            raise ValueError(
                f"{changed} had outcome {before:g} at look {task.look} and has {outcomes[run]:g} "
                f"now. {again}"
            )
    if baseline != task.baseline:
        raise ValueError(
            f"the baseline of {by} {task.name!r} is not what it was at look {task.look}. Give the "
            f"same baseline, or name a new state file"
        )


def _decided(
    gate: Gate, taken: list[_Task], rules: Rules, by: str
) -> tuple[GateResult, int | None]:
    """Go through what was taken, in its order, and return at which look the gate was decided."""
    used = [task for task in taken if task.baseline or gate.versus != BASELINE]
    open_as = gate.undecided or rules.undecided
    if not used:
        return GateResult(
            gate, UNDECIDED, open_as, why=f"no {by} of the baseline is there yet"
        ), None
    value = np.array([np.mean(list(task.runs.values())) for task in used])
    paired = gate.versus == BASELINE
    reference = np.array(
        [np.mean(task.baseline) if paired else float(gate.versus) for task in used]
    )
    times, margin = allowed(gate)
    alpha = 2 * rules.level / len(rules.gates)  # half of it on each side
    watch = SequentialComparison(_bound(gate), alpha)
    watch.update(value + margin, times * reference)
    verdict = _VERDICTS[watch.decision]
    counts_as = open_as if verdict == UNDECIDED else verdict
    means = float(value.mean()), float(reference.mean())
    change = means[0] - means[1]
    low, high = (end - watch.mean + change for end in watch.interval)
    at = None if watch.decided_after is None else used[watch.decided_after - 1].look
    return GateResult(gate, verdict, counts_as, *means, change, low, high), at


def _lines(result: SequentialResult) -> list[str]:
    by, level = result.taken_by, result.rules.level
    so_far = f"{result.n_taken} so far, of {result.new.counted}"
    lines = [f"look {result.look}: {number_of(result.n_taken_now, f'new {by}')}, {so_far}"]
    if result.n_late:
        lines.append(
            f"not counted: {number_of(result.n_late, 'run')} of tasks taken at an earlier look"
        )
    if result.n_unpaired:
        lines.append(f"not counted: {number_of(result.n_unpaired, by)} not in the baseline")
    lines += [f"{UNUSABLE:<10} {problem}" for problem in result.problems]
    for gate, at in zip(result.gates, result.decided_at, strict=True):
        since = f"; decided at look {at}" if at else ""
        since += f"; counts as {gate.counts_as}" if gate.counts_as != gate.verdict else ""
        lines.append(f"{gate.verdict:<10} {gate.gate}: {numbers(gate)}{since}")
    shown = worst((gate.verdict for gate in result.gates), result.problems)
    counted = f"not decided yet, counted as {result.verdict}; " * (shown != result.verdict)
    following = _NEXT[shown]
    if shown == UNDECIDED and result.n_taken and result.n_unpaired == result.n_taken:
        following = (
            f"no new {by} is in the baseline; looking again compares runs of the same id or task: "
            f"name the tasks that both have, or check without looking again"
        )
    lines.append(f"{result.verdict.upper()}: {counted}{following}")
    chance = f"{100 * level:g}%"
    lines.append(
        f"However often you look, an agent that is good enough fails with a chance of at most "
        f"{chance}, and one that is not passes with a chance of at most {chance}."
    )
    return lines


def _read(path: Path, rule: dict[str, Any]) -> list[_Task]:
    """Return what was taken so far; refuse a file of another kind or rule."""
    if not path.exists():
        return []
    new_file = "name another file to begin anew"
    try:
        written = json.loads(path.read_text(encoding="utf-8"))
        if written["format"] != FORMAT or written["version"] != VERSION:
            raise ValueError("it has another format")
        old = {name: written["rule"][name] for name in rule}
        taken = [_as_task(item) for item in written["taken"]]
        before, now = (_in_words(item) for item in (old, rule))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(
            f"{path} is not a state file of a sequential check ({error}); {new_file}"
        ) from error
    if old != rule:
        raise ValueError(
            f"{path} was begun with another rule: {before}. Now it is: {now}. A rule must not "
            f"change between looks; use the first one, or {new_file}"
        )
    return taken


def _as_task(record: dict[str, Any]) -> _Task:
    """Read a task back, or raise what its damage leads to."""
    runs = {run: float(outcome) for run, outcome in record["runs"].items()}
    baseline = [float(outcome) for outcome in record["baseline"]]
    if not (runs and isinstance(record["name"], str) and is_count(record["look"])):
        raise ValueError("a task has no name, look or runs")
    return _Task(record["name"], record["look"], runs, baseline)


def _in_words(rule: dict[str, Any]) -> str:
    gates = "; ".join(str(Gate(**gate)) for gate in rule["gates"])
    return f"{gates}; level {rule['level']:g}; --censored {rule['censored']}; by {rule['by']}"


def _write(path: Path, rule: dict[str, Any], taken: list[_Task]) -> None:
    state = {"format": FORMAT, "version": VERSION, "trajscore": __version__, "rule": rule}
    with replacing(path) as file:
        file.write(json.dumps({**state, "taken": [vars(task) for task in taken]}).encode())
