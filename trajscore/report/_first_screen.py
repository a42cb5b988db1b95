"""The first screen of a report: an answer, what would change it, three actions, a light."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from trajscore.core.outcomes import FAILURE
from trajscore.core.policy import MATERIAL_SAVING
from trajscore.core.values import FloatArray
from trajscore.core.weights import collapse
from trajscore.evaluation.acting import (
    LOST,
    PRICE,
    Accepting,
    Stopping,
    accepting,
    stopping,
)
from trajscore.evaluation.evaluation import Evaluation
from trajscore.evaluation.options import FORMS, RECALIBRATED, RowKey
from trajscore.evaluation.reliability import WrongRun, run_to_read
from trajscore.evaluation.runs import by_reason, number_of_runs
from trajscore.report._disclosures import runs_that_count
from trajscore.report.glossary import (
    RUN_SCORE,
    TEMPLATES,
    Instruction,
    counted_as,
    happened,
    of_hundred,
    outcome_of,
    succeeded,
    whole_of_hundred,
    without_marks,
)
from trajscore.report.recipe import recipes
from trajscore.report.verdicts import of_first_errors, of_stopping, of_window
from trajscore.report.wording import Answer, answer

MOST_DRAWN = 12
"""Predictors beyond this number are in tables, not in pictures."""
_ACCEPT = TEMPLATES["accept"]
_STOP = TEMPLATES["stop"]
_NO_NOTE = Instruction("")


@dataclass(frozen=True)
class FirstScreen:
    """What to do, in sentences, and the numbers that they come from."""

    about: str  # what was judged
    judged: str  # when, and by which version
    answer: Answer
    drawn: list[str]
    shown: str = ""  # the predictor that pictures and actions are of; "" where there is none
    form: str = ""  # what a threshold of a step is held against
    score: str = ""  # and one of a run
    accept: Accepting | None = None
    stops: dict[str, Stopping] = field(default_factory=dict)
    worst: WrongRun | None = None
    accept_rule: str = ""
    accept_note: str = ""
    stop_rule: str = ""
    stop_note: Instruction = _NO_NOTE
    chosen: str = ""  # how both rules were, and what they cost
    step: str = ""  # which one failed
    read_first: str = ""
    code: str = ""
    score_code: str = ""
    stop_code: str = ""


def first_screen(
    data: Evaluation, costs_of: Callable[[RowKey], dict[str, FloatArray]] = lambda key: {}
) -> FirstScreen:
    """Return the first screen; costs are those of each step of a row, beside steps."""
    decided = answer(data)
    about = _about(data)
    judged = f"judged {data.source.created[:10]}, trajscore {data.source.version}"
    varying = [name for name, each in data.recommendations.items() if each.varies]
    drawn = [name for name in varying if data.forms_of(name)][:MOST_DRAWN]
    if not drawn or data.best.has_too_few_runs:
        return FirstScreen(about, judged, decided, drawn)
    traces = data.traces
    curves = {}
    for name in drawn:
        row = data.recommendations[name].key
        curves[name] = stopping(traces[row], data.runs.labels, costs_of(row))
    best = data.recommendations[drawn[0]]
    key = best.key
    worst, has_failed = run_to_read(data, key)
    number_of_run = RUN_SCORE[data.options.settings.phi]
    how = ""
    if not best.best_alone:
        number_of_run += f", {FORMS[key[1]]}"
        how = "recalibrated " * (key[1] == RECALIBRATED)
    form = f"{how}forecast"
    score = f"{how}score"
    number = collapse(traces[key], data.options.settings.phi, data.options.weights)
    accept = accepting(number, data.runs.labels)
    before = decided.before
    rules = [_say_accept(accept, score), _say_stop(curves, drawn[0], form)]
    if before:
        rules = [before + without_marks(rule) for rule in rules]
    stop_note = of_stopping(data)
    return FirstScreen(
        about,
        judged,
        decided,
        drawn,
        shown=drawn[0],
        form=form,
        score=score,
        accept=accept,
        stops=curves,
        worst=worst,
        accept_rule=rules[0],
        accept_note=f"Score: {number_of_run}. Chosen on these runs: new ones cost a little more.",
        stop_rule=rules[1],
        stop_note=stop_note._replace(after=stop_note.after + _say_solved(data, key, form)),
        chosen=(
            f"Both rules are for {drawn[0]}, chosen and measured on these runs: expect somewhat "
            f"less of new ones. A run's score: {number_of_run}. A failure let through counts as "
            f"{PRICE:g} reviews, and at most {LOST:g} of 100 good runs may be stopped."
        ),
        step=(text := of_first_errors(data)) and f"**Which step failed?** {text}",
        read_first=_say_worst(data, worst, form, has_failed),
        **recipes(data, *key),
    )


# -------------------------------------------------------------------- sentences


def _say_accept(curve: Accepting, score: str) -> str:
    """Say what to accept, at the usual price of a failure that is let through."""
    cost = curve.cost(PRICE)
    best = curve.cheapest(PRICE)
    everything = whole_of_hundred(cost[0])
    if best in (0, len(cost) - 1):
        return _ACCEPT["every"].format(do="Review" if best else "Accept", all=everything)
    return _ACCEPT["some"].format(
        score=score,
        threshold=_threshold(curve, best),
        accepted=of_hundred(curve.accepted[best]),
        failing=of_hundred(curve.failing[best] / curve.accepted[best]),
        cost=whole_of_hundred(cost[best]),
        all=everything,
    )


def _say_stop(curves: Mapping[str, Stopping], shown: str, form: str) -> str:
    """Say which runs to stop, where few of the good ones may be lost."""
    at = {name: curve.highest for name, curve in curves.items()}
    saved = {name: curves[name].saved["steps"][k] for name, k in at.items() if k is not None}
    curve = curves[shown]
    best = at[shown]
    if best is not None and of_hundred(saved[shown]) != "0":
        kinds = [kind for kind in curve.saved if kind != "steps"]
        also = [f" ({of_hundred(curve.saved[kind][best])}% of the {kind})" for kind in kinds]
        return _STOP["some"].format(
            forecast=form,
            threshold=_threshold(curve, best),
            saved=of_hundred(saved[shown]),
            bad=of_hundred(curve.bad[best]),
            good=of_hundred(curve.good[best]),
            also="".join(also),
        )
    saved.pop(shown, None)
    most = max(saved, key=lambda name: saved[name], default="")
    text = _STOP["never"].format(predictor=shown)
    if most and of_hundred(saved[most]) != "0":
        text += _STOP["other"].format(predictor=most, saved=of_hundred(saved[most]))
    return text


def _say_solved(data: Evaluation, key: tuple[str, str], form: str) -> str:
    """Say when a run is as good as solved, if that spares some steps; " " before it."""
    trace = data.traces[key]
    curve = stopping(trace.with_cells(1 - trace.cells), 1 - data.runs.labels, {})
    best = curve.highest
    if best is None or curve.saved["steps"][best] < MATERIAL_SAVING:
        return ""
    return (
        f" A run may end as solved once its {form} is above "
        f"{1 - curve.threshold[best]:.{curve.digits}f}: that saves "
        f"{of_hundred(curve.saved['steps'][best])}% of all steps, and takes "
        f"{of_hundred(curve.good[best])}% of the failing runs for solved (--flags success)."
    )


def _threshold(curve: Accepting | Stopping, k: int) -> str:
    return f"{curve.threshold[k]:.{curve.digits}f}"


def _say_worst(data: Evaluation, worst: WrongRun, form: str, has_failed: bool) -> str:
    """Say which run to read first, and at which step."""
    digits = max(2, -int(np.floor(np.log10(max(worst.loss, 1e-4)))))
    task = f", task {worst.task}" if worst.task else ""
    among = number_of_runs(int(data.runs.observed.sum()))
    if has_failed:
        among = f"{number_of_runs(int((data.runs.y == FAILURE).sum()))} that failed"
    elif data.facts.n_censored:
        among += " with an outcome"
    outcome = happened(outcome_of(data, worst.y), "was")
    value = worst.cells[worst.flag - 1]
    return (
        f"Run **{worst.id}**{task}. Its average loss is {worst.loss:.{digits}f}, the largest of "
        f"{among}. At step {worst.flag} the {form} was {value:.0%}; the run {outcome}."
        f" {of_window(data, worst.row)}".rstrip()
    )


def _about(data: Evaluation) -> str:
    """Say what was judged."""
    facts = data.facts
    hidden = ""
    if facts.n_outcomes < facts.n_counted:
        n = facts.n_counted - facts.n_outcomes
        hidden = f", {n:,} without an outcome counted {counted_as(facts.censored, n)}"
    won = succeeded(data)
    if (data.ends["y"] % 1).any():
        won = "mean grade"
    parts = [
        Path(data.source.name).name or "data given in Python",
        runs_that_count(facts),
        f"{facts.n_steps:,} steps",
        f"{of_hundred(facts.base_rate_of_runs)}% {won}{hidden}",
    ]
    if n_left_out := sum(by_reason(data.exclusions, of_scores=False).values()):
        parts.append(f"{n_left_out:,} left out")
    return " · ".join(parts)
