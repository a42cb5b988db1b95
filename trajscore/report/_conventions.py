"""What step weights are to a report: runs that outweigh others, and the published convention."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from trajscore.calibration import AliveRate
from trajscore.core.run_sums import run_sums
from trajscore.core.score_families import digits_of
from trajscore.core.weights import OWN, as_step_weights
from trajscore.inference.mean_intervals import interval_of
from trajscore.report._cards import form_of
from trajscore.report._data import ALIVE, AS_GIVEN, BASE_RATE, CONSTANT, Note, Options
from trajscore.report._rows import Row, out_of_fold

# A run that holds more of the weight than this, and than twice its equal share, is named.
_HEAVY = 0.05
_FEWEST = 20  # runs of a group whose scores are compared with those of others


def weight_notes(
    rows: list[Row], groupings: Mapping[str, NDArray[Any]], options: Options
) -> list[Note]:
    """Warn of a run that holds much of the weight, and of groups of few runs."""
    base = next(row for row in rows if row.key == (BASE_RATE, CONSTANT))
    divisor = options.weights.of(base.traces).divisor()
    share = divisor / divisor.sum()
    heaviest, notes = int(np.argmax(share)), []
    if share[heaviest] > max(_HEAVY, 2 / len(share)):
        facts = {
            "run": base.traces.ids[heaviest],
            "steps": int(base.traces.lengths[heaviest]),
            "share": float(share[heaviest]),
        }
        notes.append(Note("weights", "heavy run", facts))
    for kind, labels in groupings.items():
        sizes = pd.Series(labels).value_counts()
        if n_small := int((sizes < _FEWEST).sum()):
            facts = {"kind": kind, "n": n_small, "n_groups": len(sizes)}
            notes.append(Note("weights", "small groups", facts))
    return notes


def convention_notes(
    rows: list[Row], cards: pd.DataFrame, options: Options, confidence_level: float
) -> list[Note]:
    """Say where the weights of the paper prefer another predictor, and what leaning is worth there.

    None where these are the weights, where predictors are judged on different runs, and where
    neither weights show one of the two to be better.
    """
    if options.weights.horizon == OWN or len(cards) < 2:
        return []
    place = {row.key: row for row in rows}
    chosen = [place[name, form_of(cards, name)] for name in cards.index]
    chosen = [row for row in chosen if row.is_probability]
    alive = place[ALIVE, AS_GIVEN]
    if len(chosen) < 2 or len({id(row.runs) for row in (*chosen, alive)}) > 1:
        return []
    published, score, runs = as_step_weights("linear_front", OWN), options.scores[0], alive.runs
    of_ours, of_theirs = (
        {row.predictor: run_sums(runs.labels, row.traces, score, weights) for row in chosen}
        for weights in (options.weights, published)
    )
    ones = np.ones(len(runs))
    best, other = (
        max(sums, key=lambda name: sums[name].mean(ones)) for sums in (of_ours, of_theirs)
    )
    leads, lows = [], []
    for lead in (of_ours[best] - of_ours[other], of_theirs[other] - of_theirs[best]):
        leads.append(lead.mean(ones))
        errors = lead.samples() - leads[-1]
        lows.append(interval_of(leads[-1], errors, runs.groups, confidence_level)[1])
    if min(leads) <= 0 or max(lows) <= 0:
        return []
    tilted = out_of_fold(AliveRate(weights="linear_front", horizon=OWN), alive.traces, runs)
    leaning = run_sums(runs.labels, tilted, score, published)
    leaning -= run_sums(runs.labels, alive.traces, score, published)
    facts = {
        "best": best,
        "other": other,
        "ours": leads[0],
        "theirs": leads[1],
        "leaning": leaning.mean(ones),
        "digits": digits_of(options.score_names[0]),
        "unit": options.unit,
    }
    return [Note("weights", "conventions", facts)]
