"""Whether the data can be trusted: a light, and the reasons for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

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
from trajscore.report._runs import number_of_runs
from trajscore.report._sentences import say

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
    facts = {"all": not data.facts.n_censored, "area": length_auroc(data)[0]}
    return DataCheck(SOUND, [say("sound", _hidden(data) | facts)])


def _problems(data: ReportData) -> Iterator[str]:
    """Return what makes the answer doubtful."""
    yield from (sentence(note) for note in data.remarks if note.kind == "leakage")
    if not is_settled(data):
        yield say("depends", _hidden(data))
    for note in data.remarks:
        if note.kind == "few clusters" and note.facts["effective"] < _FEWEST_TASKS:
            yield sentence(note)
    card = data.cards.iloc[0]
    if (rarer := n_rarer(card)) < FEWEST:
        outcome = "failed" if card["success_rate"] > 0.5 else "succeeded"
        facts = {"rarer": f"{rarer:.0f}", "outcome": outcome}
        yield say("rare", facts | {"runs": number_of_runs(int(card["n_runs"]))})


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
        yield say("length", {"shorter": area > 0.5, "share": max(area, 1 - area)})
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
    facts = {"why": why, "stays": stays(data), "changes": f", but {changes}" if changes else ""}
    return say("counted", _hidden(data) | facts)


def _hidden(data: ReportData) -> dict[str, Any]:
    """Return how many runs have no outcome, in words."""
    n = data.facts.n_censored
    facts = {"n": f"{n:,}", "runs": number_of_runs(data.facts.n_runs)}
    hidden = say("hidden", facts | {"have": "has" if n == 1 else "have"})
    return {"hidden": hidden, "counted_as": counted_as(data)}


def length_auroc(data: ReportData) -> tuple[float, float, float]:
    """Return the AUROC of having few steps, of runs with an outcome, and its interval."""
    key = BASE_RATE, CONSTANT
    groups, seen = data.groups.get(key), data.outcomes[key] != CENSORED
    labels, steps = data.labels[key][seen], -data.traces[key].lengths[seen].astype(np.float64)
    units = None if groups is None else np.unique(groups[seen].astype(str), return_inverse=True)[1]
    stratum = np.zeros(len(labels), dtype=np.int64)
    level = data.facts.intervals.confidence_level
    return auroc_interval(steps, labels, stratum, units, level)
