"""What the parts of the page look at: the report, its first screen, and the log."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, pairwise

import numpy as np

from trajscore.core.values import ByName, FloatArray
from trajscore.evaluation.evaluation import Evaluation
from trajscore.evaluation.options import AS_GIVEN, FORMS, TOGETHER, WITH_HISTORY, RowKey
from trajscore.evaluation.recommendation import Interval
from trajscore.evaluation.reliability import WrongRun
from trajscore.io import Run, Step
from trajscore.io.vocabulary import as_fields, is_amount, token_counts
from trajscore.report._first_screen import FirstScreen, first_screen
from trajscore.report.glossary import outcome_of, succeeded, with_interval

_MOSTLY = 0.9  # of the steps have to say what they cost
# So that the page stays below 3 MB; what is cut is said.
_LONGEST_TEXT = 1200
_MOST_TURNS = 80
_MOST_CHARACTERS = 900_000
_QUOTED = 160


@dataclass(frozen=True)
class Drawer:
    """A part of the page that is folded: its title, what is in it, and what its template shows."""

    id: str
    title: str
    about: str
    parts: ByName = field(default_factory=dict)


class View:
    """A report, as the parts of a page ask for it."""

    def __init__(self, data: Evaluation, log: Iterable[Run] = ()) -> None:
        self.data = data
        self.log: Mapping[str, Run] = {str(run.id): run for run in log}

    @cached_property
    def screen(self) -> FirstScreen:
        """The first screen, with what steps cost where the log says it."""
        return first_screen(self.data, self.costs)

    @property
    def won(self) -> str:
        """What a successful run did."""
        return succeeded(self.data)

    def outcome(self, run: WrongRun) -> str:
        """Say how a run ended."""
        return outcome_of(self.data, run.y)

    def margin(self, three: Interval) -> str:
        """Write a margin with its interval; "" where there is none."""
        return with_interval(three, self.data.digits, "+")

    @property
    def shown(self) -> RowKey:
        """Key of the row that pictures and runs are of; of one without a score, as given."""
        drawn = self.screen.drawn
        return (
            self.data.recommendations[drawn[0]].key
            if drawn
            else (self.data.best.predictor, AS_GIVEN)
        )

    def label(self, name: str, form: str) -> str:
        """Name a form of a predictor in pictures: signals together have but one."""
        if not self.data.recommendations[name].best_alone:
            return FORMS[form]
        return TOGETHER if len(self.data.signals_of(name)) > 1 else WITH_HISTORY

    def called(self, name: str) -> str:
        """Name a predictor with the form that is acted on, if it has several."""
        best = self.data.recommendations[name]
        if best.best_alone or not self.data.forms_of(name):
            return name
        return f"{name} {FORMS[best.form]}"

    # ---------------------------------------------------------------- turns of a log

    def turns(self, name: str, n_steps: int) -> list[int]:
        """Return which turn of its log each step of a run is; none if there is no such log."""
        run = self.log.get(name)
        for actors in (("agent",), ("agent", "user")):
            turns = [k for k, step in enumerate(run.steps if run else ()) if step.actor in actors]
            if len(turns) == n_steps:
                return turns
        return []

    def costs(self, key: RowKey) -> dict[str, FloatArray]:
        """Return what each step of a row cost, in tokens and in money, where a log says it."""
        if not self.log:
            return {}
        trace = self.data.traces[key]
        spent = np.full((2, len(trace.cells)), np.nan)
        for name, first, n_steps in zip(trace.ids, trace.offsets, trace.lengths, strict=False):
            turns = self.turns(str(name), n_steps)
            for cell, (start, end) in enumerate(pairwise([*turns, None]), int(first)):
                # a turn, and what others said after it
                spent[:, cell] = _spent(self.log[str(name)].steps[start:end])
        steps = chain.from_iterable(run.steps for run in self.log.values())
        tokens = "tokens read and generated" if any(map(_billed, steps)) else "generated tokens"
        return {
            kind: np.nan_to_num(cost)
            for kind, cost in zip((tokens, "money"), spent, strict=True)
            if np.isfinite(cost).mean() >= _MOSTLY and np.nansum(cost) > 0
        }


def _spent(turns: Sequence[Step]) -> tuple[float, float]:
    """Return the tokens and the money that turns took; NaN where the log does not say it."""
    if not any(step.actor == "agent" for step in turns):
        return 0.0, 0.0  # what users say costs nothing that is counted
    costs = [step.cost for step in turns if step.cost is not None]
    return sum(map(_tokens, turns)) or np.nan, sum(costs) if costs else np.nan


def _tokens(step: Step) -> float:
    """Return the tokens that a turn was billed for, where the log says it; else those it has."""
    billed = _billed(step)
    return float(sum(billed) if billed else len(step.tokens or ()))


def _billed(step: Step) -> list[float]:
    """Return the numbers of tokens that a turn read and generated, where the log has them."""
    counts = as_fields(step.extra.get("tokens")) or token_counts(step.extra.get("usage"))
    return [count for count in counts.values() if is_amount(count)]


# ---------------------------------------------------------------- what was said in a run


def transcripts(view: View, worst: list[WrongRun]) -> dict[str, ByName]:
    """Return the turns of runs of the log, by id, as far as there is room."""
    room = _MOST_CHARACTERS
    shown: dict[str, ByName] = {}
    for wrong in worst:
        run = view.log.get(wrong.id)
        if run is None:
            continue
        turns = run.steps[:_MOST_TURNS]
        room -= sum(len(said_in(step)) + len(cut(step.observation or "")) for step in turns)
        if room < 0:
            break
        step_of = {turn: k + 1 for k, turn in enumerate(view.turns(wrong.id, len(wrong.cells)))}
        shown[wrong.id] = {"run": run, "turns": turns, "step_of": step_of}
    return shown


def said_in(step: Step) -> str:
    """Return what was said in a turn, cut where it is long."""
    return cut(step.text.strip())


def quote(view: View, worst: WrongRun) -> str:
    """Return what was said at the step to look at of a run of the log; "" without wrong."""
    turns = view.turns(worst.id, len(worst.cells))
    if not turns:
        return ""
    step = view.log[worst.id].steps[turns[worst.flag - 1]]
    text = " ".join((step.text.strip() or calls_of(step)).split())
    if len(text) > _QUOTED:
        text = f"{text[:_QUOTED].rsplit(' ', 1)[0]} ..."
    return f"Step {worst.flag}, {step.actor}: \u201c{text}\u201d" if text else ""


def calls_of(step: Step) -> str:
    """Return the calls of a turn, cut where they are long."""
    return cut("\n".join(f"{call.name}({call.arguments})" for call in step.tool_calls))


def cut(text: str) -> str:
    """Cut a long text, and say so."""
    if len(text) <= _LONGEST_TEXT:
        return text
    return f"{text[:_LONGEST_TEXT]} ... ({len(text) - _LONGEST_TEXT:,} characters more)"
