"""Whether the data can be trusted: a light, and the reasons for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from trajscore.calibration.fixed_step import auroc_interval
from trajscore.core.equal_length import FEWEST
from trajscore.core.outcomes import CENSORED
from trajscore.report._answer import (
    counted_as,
    decision,
    is_settled,
    means_without_unobserved,
    stays,
    turned_margins,
)
from trajscore.report._cards import n_rarer
from trajscore.report._data import BASE_RATE, CONSTANT, ReportData
from trajscore.report._disclosures import left_out, sentence
from trajscore.report._left_out import number_of_runs

SOUND, LOOK, PROBLEM = "sound", "check this", "a problem"
_MANY = 0.1  # of the runs: what they count as may decide
_RELATED = 0.1  # of an AUROC above or below chance
_FEWEST_TASKS = 10
_LOOK = ("outside", "risk", "few clusters", "heavy run", "small groups", "sampled")


class DataCheck(NamedTuple):
    """How sound the data are, by the worst reason; all reasons, worst first."""

    level: str
    reasons: list[str]


def data_check(data: ReportData) -> DataCheck:
    """Return what may be wrong with the data."""
    problems, looks = list(_problems(data)), list(_looks(data))
    if problems or looks:
        return DataCheck(PROBLEM if problems else LOOK, problems + looks)
    area = length_auroc(data)[0]
    return DataCheck(
        SOUND, [f"{_observed(data)} Length says little about the outcome (AUROC {area:.2f})."]
    )


def _problems(data: ReportData) -> Iterator[str]:
    """Return what makes the answer doubtful."""
    yield from (sentence(note) for note in data.remarks if note.kind == "leakage")
    if not is_settled(data):
        yield f"{_hidden(data)}, and the answer depends on what they count as."
    for note in data.remarks:
        if note.kind == "few clusters" and note.facts["effective"] < _FEWEST_TASKS:
            yield sentence(note)
    card = data.cards.iloc[0]
    if (rarer := n_rarer(card)) < FEWEST:
        outcome = "failed" if card["success_rate"] > 0.5 else "succeeded"
        yield f"Only {rarer:.0f} of {number_of_runs(int(card['n_runs']))} {outcome}."


def _looks(data: ReportData) -> Iterator[str]:
    """Return what a reader should look at once."""
    facts, turned = data.facts, turned_margins(data)
    if (
        is_settled(data)
        and facts.n_censored
        and (turned or facts.n_censored > _MANY * facts.n_runs)
    ):
        yield _unobserved(data)
    area, low, high = length_auroc(data)
    if (low > 0.5 or high < 0.5) and abs(area - 0.5) > _RELATED:
        side, share = ("shorter", area) if area > 0.5 else ("longer", 1 - area)
        yield (
            f"Length is related to the outcome: of a run that succeeded and one that failed, the "
            f"one that succeeded was {side} in {share:.0%} of pairs."
        )
    for note in data.remarks:
        few = note.kind == "few clusters" and note.facts["effective"] < _FEWEST_TASKS
        if note.kind in _LOOK and not few:
            yield sentence(note)
    if data.excluded["n_runs"].sum() > _MANY * facts.n_runs:
        yield f"{left_out(data)}."


def _unobserved(data: ReportData) -> str:
    """Say how many runs have no outcome, what stopped them, and what they change."""
    key = BASE_RATE, CONSTANT
    hidden = data.outcomes[key] == CENSORED
    meta = data.traces[key].meta
    reasons = meta["stop_reason"][hidden].dropna().unique() if "stop_reason" in meta else []
    why = f", all stopped by {reasons[0]}" if len(reasons) == 1 else ""
    best, _ = decision(data.cards)
    means = means_without_unobserved(data, best) if best else ""
    changes = "; ".join(filter(None, [means, turned_margins(data)]))
    stays_but = f"{stays(data)}{', but ' * bool(changes)}{changes}"
    return f"{_hidden(data)}{why}; counted {counted_as(data)}. Without them {stays_but}."


def _observed(data: ReportData) -> str:
    if not data.facts.n_censored:
        return "Every run has an outcome."
    return f"{_hidden(data)}, counted {counted_as(data)}; the choice stays without them."


def _hidden(data: ReportData) -> str:
    """Say how many runs have no outcome."""
    n = data.facts.n_censored
    return f"{n:,} of {number_of_runs(data.facts.n_runs)} {'has' if n == 1 else 'have'} no outcome"


def length_auroc(data: ReportData) -> tuple[float, float, float]:
    """Return the AUROC of having few steps, of runs with an outcome, and its interval."""
    key = BASE_RATE, CONSTANT
    groups, seen = data.groups.get(key), data.outcomes[key] != CENSORED
    labels, steps = data.labels[key][seen], -data.traces[key].lengths[seen].astype(np.float64)
    units = None if groups is None else np.unique(groups[seen].astype(str), return_inverse=True)[1]
    stratum = np.zeros(len(labels), dtype=np.int64)
    level = data.facts.intervals.confidence_level
    return auroc_interval(steps, labels, stratum, units, level)
