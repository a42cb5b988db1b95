"""Gates held against a set of runs: pass, fail or undecided, by bounds that hold at once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from trajscore.core.ties import ROUNDING
from trajscore.core.values import number_of
from trajscore.gates._change import (
    Estimate,
    Matching,
    difference,
    estimate,
    level_of_each,
    match,
    paired_estimates,
    runs_to_settle,
)
from trajscore.gates._gate import (
    BASELINE,
    FAIL,
    PASS,
    UNDECIDED,
    UNUSABLE,
    Gate,
    Rules,
    factor_and_margin,
    read_gates,
)
from trajscore.gates._measures import (
    Measures,
    is_lower_better,
    refuse_without_variation,
    with_most,
    within_range,
)
from trajscore.gates._result import CheckResult, GateResult
from trajscore.gates._run_set import RunSet, check_run_set
from trajscore.gates._unseen import Amount


@dataclass(frozen=True)
class _Question:
    """A gate with its numbers: it holds where `room` of what is compared is 0 or more."""

    gate: Gate
    value: float
    reference: float
    compared: Estimate  # the metric itself, or less that of the baseline times a factor
    sign: float  # 1 where more is better, else -1
    margin: float
    offset: float = 0.0  # the number that the metric itself is held against

    def room(self, value: float) -> float:
        return self.sign * (value - self.offset) + self.margin


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
    >>> check(new, base).verdict, check(new, base, Gate(margin=0.15)).verdict
    ('undecided', 'pass')
    """
    check_run_set("new", new)
    if baseline is not None:
        check_run_set("baseline", baseline)
    all_rules = _rules(rules)
    least = all_rules.least_runs
    if new.n_runs < least:
        raise ValueError(f"new has {number_of(new.n_runs, 'run')}, and least_runs = {least}")
    matched = None if baseline is None else match(baseline, new)
    measures = Measures(new), None if baseline is None else Measures(baseline)
    questions: dict[int, _Question] = {}
    results: dict[int, GateResult] = {}
    for place, gate in enumerate(all_rules.gates):
        try:
            questions[place] = _question(gate, *measures, matched)
        except ValueError as error:
            results[place] = GateResult(gate, UNUSABLE, why=str(error))
    # turned so that more is better
    turned = [replace(q.compared, errors=q.sign * q.compared.errors) for q in questions.values()]
    levels = level_of_each(turned, 1 - all_rules.level)
    for (place, question), level in zip(questions.items(), levels, strict=True):
        results[place] = _decided(question, level, new.n_runs)
    gates = [results[place] for place in sorted(results)]
    return CheckResult(gates, all_rules, new, baseline, matched)


def _rules(rules: Rules | Gate | str | Path | None) -> Rules:
    if isinstance(rules, Gate):
        return Rules((rules,))
    if rules is None:
        return Rules()
    return rules if isinstance(rules, Rules) else read_gates(rules)


def _question(
    gate: Gate, new: Measures, baseline: Measures | None, matched: Matching | None
) -> _Question:
    key, runs = new.key(gate.metric, gate.predictor, gate.form), new.runs
    refuse_without_variation(key, new, baseline if gate.versus == BASELINE else None)
    sign = -1.0 if is_lower_better(key.metric, runs) else 1.0
    if gate.versus == BASELINE:
        if baseline is None or matched is None:
            raise ValueError("the gate needs a baseline; give one, or set versus to a number")
        of_base, of_new = (with_most(each[key], gate.most) for each in (baseline, new))
        base, value = paired_estimates(of_base, of_new, matched)
        return _above_baseline(gate, value, base, matched, sign)
    units = np.unique(runs.ids if runs.tasks is None else runs.tasks, return_inverse=True)[1]
    value = estimate(with_most(new[key], gate.most), units, int(units.max()) + 1)
    offset = float(gate.versus)
    return _Question(gate, value.value, offset, value, sign, float(gate.margin), offset)


def _above_baseline(
    gate: Gate, value: Estimate, base: Estimate, matched: Matching, sign: float
) -> _Question:
    if gate.share is not None and value.means:
        raise ValueError(f"a calibration error takes no share as margin, got {gate.margin!r}")
    factor, margin = factor_and_margin(gate, sign * float(np.sign(base.value)))
    compared = difference(value, base, matched, factor)
    return _Question(gate, value.value, base.value, compared, sign, margin)


def _decided(question: _Question, level: float, n_runs: int) -> GateResult:
    gate, compared = question.gate, question.compared
    ends = compared.bounds(level)
    least_room, most_room = sorted(question.room(end) for end in ends)
    verdict = PASS if least_room >= -ROUNDING else FAIL if most_room < 0 else UNDECIDED
    needed = np.nan
    if verdict == UNDECIDED:
        # how far the metric lies, in its own direction, from where the gate would just hold
        distance = question.sign * question.room(compared.value)
        needed = runs_to_settle(compared, distance, n_runs, level)
    change = question.value - question.reference
    low, high = (end - compared.value + change for end in ends)
    known = question.reference
    least, most = (-1.0, 1.0) if gate.versus == BASELINE else (-known, 1 - known)
    low, high = within_range(gate.metric, low, high, least, most)
    numbers = (question.value, question.reference, change, low, high, needed)
    return GateResult(gate, verdict, *numbers, why=_why_unknown(compared, verdict))


def _why_unknown(compared: Estimate, verdict: str) -> str:
    """Say why no number of runs like these would settle it."""
    if verdict != UNDECIDED or compared.varies:
        return ""
    has_most = any(isinstance(part, Amount) for part in compared.parts)
    most = ", or set most, the most that a run can take" if has_most else ""
    return f"equal numbers do not show how much they vary; collect more runs{most}"
