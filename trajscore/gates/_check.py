"""Gates held against a set of runs: pass, fail or undecided, by bounds that hold at once."""

import json
from collections import Counter
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import numpy as np

from trajscore import __version__
from trajscore.core.errors import CannotMeasureError, visible
from trajscore.core.storage import plain
from trajscore.core.ties import ROUNDING
from trajscore.core.values import number_of
from trajscore.gates._change import (
    Amount,
    Estimate,
    difference,
    estimates,
    level_of_each,
    runs_to_settle,
)
from trajscore.gates._compare import (
    UNKNOWN_RUNS,
    WITHOUT_TASKS,
    interval,
    more_runs,
    pairing,
)
from trajscore.gates._gate import BASELINE, Gate, Rules, Verdict, read_gates
from trajscore.gates._run_set import (
    Matching,
    RunSet,
    check_run_set,
    is_lower_better,
    is_rate,
    key_of,
    match,
    measures_of,
    within_range,
)

EXIT_CODES = {Verdict.UNUSABLE: 2, Verdict.FAIL: 1, Verdict.UNDECIDED: 3, Verdict.PASS: 0}


@dataclass(frozen=True)
class GateResult:
    """Verdict and numbers of one gate."""

    gate: Gate
    verdict: Verdict
    value: float = np.nan  # of the new set
    reference: float = np.nan  # of the baseline, or the number in the gate
    change: float = np.nan
    # bounds of the change; each holds for all gates at once with a chance of 1 - level
    low: float = np.nan
    high: float = np.nan
    allowed: float = np.nan  # how much worse it may be; below 0, how much better it has to be
    # in each set, in total, to decide the gate with a chance of 0.8 if the change is what was seen;
    # inf for more than a million, NaN where it is decided or cannot be said
    runs_needed: float = np.nan
    why: str = ""  # a gate is unusable, or undecided although no number of runs is known to do


@dataclass(frozen=True)
class CheckResult:
    """What `check` found.

    Attributes
    ----------
    verdict : {"pass", "fail", "undecided", "unusable"}
        The worst of all gates, where undecided ones count as the rules say.
    passed, exit_code : bool, int
        Whether it is "pass"; 0 pass, 1 fail, 2 unusable, 3 undecided.
    gates : list of GateResult
        What came of each gate.
    rules : Rules
        What was asked for.
    new, baseline : RunSet
        The sets; the baseline may be None.
    matched : Matching or None
        How they are paired.
    """

    gates: list[GateResult]
    rules: Rules
    new: RunSet = field(repr=False)
    baseline: RunSet | None = field(repr=False)
    matched: Matching | None = field(repr=False)

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of all gates."""
        counted_as = {Verdict.UNDECIDED: Verdict(self.rules.undecided)}
        verdicts = [counted_as.get(gate.verdict, gate.verdict) for gate in self.gates]
        return min(verdicts, key=list(Verdict).index)

    @property
    def passed(self) -> bool:
        """Whether all gates count as passed."""
        return self.verdict == Verdict.PASS

    @property
    def exit_code(self) -> int:
        """0 pass, 1 fail, 2 unusable, 3 undecided."""
        return EXIT_CODES[self.verdict]

    def __str__(self) -> str:
        if self.baseline and self.matched:
            lines = [pairing(self.baseline, self.new, self.matched)]
        else:
            lines = [f"{self.new.counted}, success {self.new.success_rate:.3f}"]
            if self.new.tasks is None:
                lines[0] += f"; {WITHOUT_TASKS}"
        lines += [f"{gate.verdict:<10} {self._numbers(gate)}" for gate in self.gates]
        counts = Counter(gate.verdict for gate in self.gates)
        summary = ", ".join(
            f"{counts[verdict]} {verdict}" for verdict in reversed(Verdict) if counts[verdict]
        )
        lines.append(f"{self.verdict.upper()}: {summary}")
        has_intervals = any(gate.low < gate.high for gate in self.gates)
        if has_intervals:
            chance = f"{100 * (1 - self.rules.level):.4g}%"
            lines[-1] += f"; each end of an interval holds with a chance of {chance}"
            if len(self.gates) > 1:
                lines[-1] += ", for all gates at once"
        if self.verdict == Verdict.UNDECIDED:
            lines.append("To settle this, collect more runs or allow a wider margin.")
        if has_intervals:
            lines.append(
                "These bounds are for one look at the runs. To look again as runs arrive, use "
                "inference.SequentialComparison."
            )
        not_passed = [gate for gate in self.gates if gate.verdict != Verdict.PASS]
        lines += [in_words(gate, self.new) for gate in not_passed or self.gates]
        return visible("\n".join(lines))

    def to_json(self) -> str:
        """Return the verdict, each gate with its numbers, and how the sets are paired."""
        matched = self.matched
        gates = [asdict(result) for result in self.gates]
        return json.dumps(
            {
                "format": "trajscore check",
                "version": 1,
                "trajscore": __version__,
                "verdict": self.verdict,
                "exit_code": self.exit_code,
                "level": self.rules.level,
                "gates": plain([result.pop("gate") | result for result in gates]),
                "paired_by": matched and matched.by,
                "n_paired": matched and matched.n_common,
                "n_runs": self.new.n_runs,
                "n_left_out": self.new.n_left_out,
                "n_unobserved": self.new.n_unobserved,
            },
            allow_nan=False,
        )

    def _numbers(self, result: GateResult) -> str:
        """Write a gate with its numbers, if there are any."""
        if result.verdict == Verdict.UNUSABLE:
            return str(result.gate)
        text = (
            f"{result.gate}: {result.reference:.4g} -> {result.value:.4g}, "
            f"change {result.change:+.3g}"
        )
        if result.low < result.high:
            text += f" {interval(result.low, result.high)}"
        is_open = result.verdict == Verdict.UNDECIDED
        if is_open and self.rules.undecided != Verdict.UNDECIDED:
            text += f"; counts as {self.rules.undecided}"
        return text


@dataclass(frozen=True)
class _Question:
    """A gate with its numbers, whose bounds are not known yet."""

    result: GateResult
    compared: Estimate  # the metric itself, or less that of the baseline times a factor
    sign: float  # 1 where more is better, else -1


def check(
    new: RunSet,
    baseline: RunSet | None = None,
    rules: Rules | Gate | str | Path | None = None,
) -> CheckResult:
    """Hold gates against a set of runs, and an earlier set.

    Parameters
    ----------
    new : RunSet
        The runs to be judged.
    baseline : RunSet, optional
        Earlier ones.
    rules : str, Path or Gate, optional
        What must hold: the TOML file of gates, or one gate. The file has ``[[gate]]`` tables with
        the parameters of `Gate`; and for all of them ``level`` (0.05), ``undecided``, and
        ``least_runs`` that there must be. Default: success is no worse than the
        baseline's.

    Returns
    -------
    CheckResult
        The verdict, of each gate and together; ``str`` of it lists the numbers behind it.

    Raises
    ------
    ValueError
        If there are fewer runs than `rules` ask for.

    Notes
    -----
    A gate fails where the bounds show that it does not hold: if all hold, the chance that any fails
    is at most the level, 0.05. It passes where they show that it does, with the same chance to pass
    wrongly. What is between is undecided. Bounds are one-sided and hold for all gates at once, from
    the joint distribution of their errors over tasks, for one look at the runs; how sets are
    paired, and what bounds of rates allow for, `compare` says.

    References
    ----------
    Hothorn, Bretz and Westfall (2008), Simultaneous Inference in General Parametric Models.

    Examples
    --------
    >>> import numpy as np
    >>> from trajscore.datasets import make_trajectories
    >>> from trajscore.gates import Gate, RunSet, check
    >>> X, y = make_trajectories(400, random_state=0, return_X_y=True)
    >>> tasks = np.arange(200) % 40
    >>> base, new = (RunSet(X[rows], y[rows], tasks=tasks) for rows in np.split(np.arange(400), 2))
    >>> result = check(new, base, Gate(margin=0.15))
    >>> print(result.verdict)
    pass
    >>> print(str(result).splitlines()[-1])  # doctest: +NORMALIZE_WHITESPACE
    Success is not shown to have changed: 50.5% before, 53.0% now;
    a drop of more than 15 points is ruled out
    """
    check_run_set("new", new)
    sets = [new]
    if baseline is not None:
        check_run_set("baseline", baseline)
        sets.insert(0, baseline)
    matched = match(sets[0], new)
    if rules is None or isinstance(rules, Gate):
        rules = Rules((rules or Gate(),))
    elif not isinstance(rules, Rules):
        rules = read_gates(rules)
    if new.n_runs < rules.least_runs:
        raise ValueError(
            f"new has {number_of(new.n_runs, 'run')}, and least_runs = {rules.least_runs}"
        )
    asked: list[_Question | GateResult] = []
    for gate in rules.gates:
        try:
            asked.append(_question(gate, sets, matched))
        except CannotMeasureError as error:
            asked.append(GateResult(gate, Verdict.UNUSABLE, why=str(error)))
    questions = [each for each in asked if isinstance(each, _Question)]
    # turned so that more is better
    turned = [replace(q.compared, errors=q.sign * q.compared.errors) for q in questions]
    levels = iter(level_of_each(turned, 1 - rules.level))
    gates = [
        _decide(each, next(levels), new.n_runs) if isinstance(each, _Question) else each
        for each in asked
    ]
    return CheckResult(gates, rules, new, baseline, matched if baseline else None)


def _question(gate: Gate, sets: list[RunSet], matched: Matching) -> _Question:
    """Return a gate with its numbers, of the baseline (if there is any) and the new set."""
    new = sets[-1]
    key = key_of(new, gate.metric, gate.predictor, gate.form)
    sign = -1.0 if is_lower_better(key.metric, new) else 1.0
    if gate.versus != BASELINE:
        sets = [new]
    elif len(sets) < 2:
        raise CannotMeasureError(
            "the gate needs a baseline; give one (--baseline), or set versus to a number"
        )
    *base, compared = estimates(measures_of(sets, key, gate.most), matched)
    value = compared.value
    reference = base[0].value if base else float(gate.versus)
    allowed = gate.size
    times = 1.0
    if gate.share is not None:
        if compared.bins:
            raise CannotMeasureError(
                f"a calibration error takes no share as margin, got {gate.margin!r}"
            )
        allowed *= abs(reference)
        times -= sign * float(np.sign(reference)) * gate.share
    if base:
        compared = difference(compared, base[0], matched, times)
    change = value - reference
    result = GateResult(gate, Verdict.UNDECIDED, value, reference, change, allowed=allowed)
    return _Question(result, compared, sign)


def _decide(question: _Question, level: float, n_runs: int) -> GateResult:
    """Return the verdict on a gate by bounds of this level."""
    result = question.result
    compared = question.compared
    low, high = (end - compared.value + result.change for end in compared.bounds(level))
    room, *rooms = (question.sign * end + result.allowed for end in (result.change, low, high))
    verdict = Verdict.UNDECIDED
    needed = np.nan
    why = ""
    if min(rooms) >= -ROUNDING:
        verdict = Verdict.PASS
    elif max(rooms) < 0:
        verdict = Verdict.FAIL
    elif compared.varies:
        # how far the metric lies, in its own direction, from where the gate would just hold
        needed = runs_to_settle(compared, question.sign * room, n_runs, level)
        if np.isnan(needed):
            why = UNKNOWN_RUNS
    else:  # no number of runs like these would settle it
        why = "equal numbers do not show how much they vary; collect more runs"
        if any(isinstance(part, Amount) for part, _ in compared.parts):
            why += ", or set most, the most that a run can take"
    least = -1.0
    most = 1.0
    if result.gate.versus != BASELINE:
        least = -result.reference
        most -= result.reference
    low, high = within_range(result.gate.metric, low, high, least, most)
    return replace(result, verdict=verdict, low=low, high=high, runs_needed=needed, why=why)


# ------------------------------------------------------------------ words


def in_words(result: GateResult, new: RunSet) -> str:
    """Say what the runs show of a gate, to a reader who knows neither gates nor intervals."""
    gate = result.gate
    name = gate.name[:1].upper() + gate.name[1:]
    if result.verdict == Verdict.UNUSABLE:
        return f"{name} cannot be checked: {result.why}"
    is_cost = is_lower_better(gate.metric, new)
    versus = _versus_baseline if gate.versus == BASELINE else _versus_number
    return f"{name} {versus(result, new, is_cost)}"


def _versus_number(result: GateResult, new: RunSet, is_cost: bool) -> str:
    """Say on which side of a number a metric is."""
    gate = result.gate
    side, other_side = ("at most", "above") if is_cost else ("at least", "below")
    limit = float(gate.versus) + (gate.size if is_cost else -gate.size)
    shown = {
        Verdict.PASS: f"is shown to be {side}",
        Verdict.FAIL: f"is shown to be {other_side}",
        Verdict.UNDECIDED: "may be above or below",
    }[result.verdict]
    text = f"{shown} {_number(gate, limit)}: it is {_number(gate, result.value)} in these runs"
    if result.verdict == Verdict.UNDECIDED:
        text += f"; {result.why or more_runs(result.runs_needed, new) + ' would settle it'}"
    return text


def _versus_baseline(result: GateResult, new: RunSet, is_cost: bool) -> str:
    """Say how a metric changed, and what of it is shown or ruled out."""
    gate = result.gate
    change = "is not shown to have changed"
    if has_changed := not result.low <= 0 <= result.high:
        change = f"{'rose' if result.change > 0 else 'fell'} beyond chance"
    before = _number(gate, result.reference)
    text = f"{change}: {before} before, {_number(gate, result.value)} now"
    is_open = result.verdict == Verdict.UNDECIDED
    if result.why:
        return f"{text}; {result.why}"
    if has_changed and not gate.size and not is_open:
        return text
    worse, better = ("a rise", "a drop") if is_cost else ("a drop", "a rise")
    claim = worse
    if gate.size > 0:
        claim = f"{worse} of more than {_margin(gate)}"
    elif gate.size < 0:
        claim = f"{better} of at least {_margin(gate)}"
    loss = result.change if is_cost else -result.change
    is_shown = (loss <= result.allowed) == (gate.size < 0)
    text += f"; {claim} is {'shown' if is_shown else 'ruled out'}"
    if is_open:
        text += f" only with {more_runs(result.runs_needed, new)} of each version"
    return text


def _number(gate: Gate, value: float) -> str:
    """Write a value of the metric of a gate."""
    return f"{value:.1%}" if is_rate(gate.metric) else f"{value:.4g}"


def _margin(gate: Gate) -> str:
    """Write how much a metric may change, without its sign."""
    size = abs(gate.size)
    if gate.share is not None:
        return f"{100 * size:g}% of the baseline"
    if is_rate(gate.metric):
        return f"{100 * size:g} point{'s' * (size != 0.01)}"
    return f"{size:g}"
