"""The first screen of a report: an answer, what would change it, three actions, a light."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from trajscore.core.collapse import collapse
from trajscore.core.type_aliases import FloatArray
from trajscore.report._acting import (
    LOST,
    PRICE,
    Accepting,
    Stopping,
    accepting,
    price_text,
    stopping,
)
from trajscore.report._answer import Answer, answer, is_settled, succeeded
from trajscore.report._cards import (
    RECALIBRATE,
    USE,
    form_of,
    forms_of,
    have_too_few_runs,
    ranked,
    varies,
)
from trajscore.report._data import BASE_RATE, CONSTANT, FORMS, RECALIBRATED, ReportData
from trajscore.report._data_check import DataCheck, data_check
from trajscore.report._runs import number_of_runs
from trajscore.report._sentences import SENTENCES, say
from trajscore.report._verdict import of_stopping, over_counting
from trajscore.report._worst_runs import worst_runs

MOST_DRAWN = 12
"""Predictors beyond this number are in tables, not in pictures."""
ACCEPT, STOP = SENTENCES["accept"], SENTENCES["stop"]
"""What the page says, for any price and any loss; its script fills in the same sentences."""
_VERBS = ("won", "passed", "succeeded", "failed")


@dataclass(frozen=True)
class FirstScreen:
    """What to do, in sentences, and the numbers that they come from."""

    about: str
    answer: Answer
    check: DataCheck
    shown: str = ""  # the predictor that pictures and actions are of; "" where there is none
    drawn: list[str] = field(default_factory=list)
    doubt: str = ""  # what comes before the rules
    form: str = ""  # what a threshold of a step is held against
    accept: Accepting | None = None
    stops: dict[str, Stopping] = field(default_factory=dict)
    worst: pd.Series | None = None
    accept_notes: list[str] = field(default_factory=list)
    stop_notes: list[str] = field(default_factory=list)
    worst_sentence: str = ""

    @property
    def score(self) -> str:
        """What a threshold for accepting is on."""
        return self.form.replace("forecast", "score")

    @property
    def accept_sentence(self) -> str:
        """What to accept where a failure costs what is usual."""
        if self.accept is None:
            return ""
        return self.doubted(say_accept(self.accept, PRICE, self.score))

    @property
    def stop_sentence(self) -> str:
        """Which runs to stop where as many good ones may be lost as is usual."""
        if not self.stops:
            return ""
        return self.doubted(say_stop(self.stops, self.shown, LOST, self.form))

    def doubted(self, rule: str) -> str:
        """Put a doubt before a rule, if there is one."""
        return f"{self.doubt}{without_marks(rule)}" if self.doubt else rule

    @property
    def data_sentence(self) -> str:
        """The light, with its first reason."""
        return f"Data: {self.check.level}. {self.check.reasons[0]}"


def first_screen(
    data: ReportData, costs: Mapping[str, Mapping[str, FloatArray]] | None = None
) -> FirstScreen:
    """Return the first screen; costs are those of each step, of predictors, beside steps."""
    decided, check = answer(data), data_check(data)
    about = _about(data)
    varying = [name for name in ranked(data.cards) if varies(data.cards.loc[name])]
    drawn = [name for name in varying if forms_of(data, name)][:MOST_DRAWN]
    if not drawn or have_too_few_runs(data.cards).all():
        return FirstScreen(about, decided, check, drawn=drawn)
    shown = drawn[0]
    curves = {}
    for name in drawn:
        key = acted_on(data, name)
        own = (costs or {}).get(name, {})
        curves[name] = stopping(data.traces[key], data.labels[key], own)
    key = acted_on(data, shown)
    worst = worst_runs(data, key, 1).iloc[0]
    form = "recalibrated forecast" if key[1] == RECALIBRATED else "forecast"
    words = {"what": SENTENCES["score_of"][data.options.phi], "form": FORMS[key[1]]}
    return FirstScreen(
        about,
        decided,
        check,
        shown,
        drawn,
        _doubt(data, decided.action),
        form,
        accepting(collapsed(data, key), data.labels[key]),
        curves,
        worst,
        [say("score", words), *_counting_does_better(data, shown)],
        [_guarantee(data)],
        _say_worst(data, worst, form),
    )  # fmt: skip


# -------------------------------------------------------------------- forms


def acted_on(data: ReportData, name: str) -> tuple[str, str]:
    """Return the key of the form that a card speaks for, if it is a probability."""
    form, forms = form_of(data.cards, name), forms_of(data, name)
    return name, form if form in forms else forms[0]


def collapsed(data: ReportData, key: tuple[str, str]) -> FloatArray:
    """Return one number a run."""
    return collapse(data.traces[key], data.options.phi, data.options.weights)


# -------------------------------------------------------------------- sentences


def filled(template: str, **values: Any) -> str:
    """Put values into a sentence."""
    return re.sub(r"\{(\w+)\}", lambda match: str(values[match[1]]), template)


def say_accept(curve: Accepting, price: float, form: str = "score") -> str:
    """Say what to accept where a failure that is let through costs this number of reviews."""
    cost, best = curve.cost(price), curve.cheapest(price)
    everything = price_text(cost[0])
    if best == len(cost) - 1:
        return filled(ACCEPT["none"], all=everything)
    if best == 0:
        return filled(ACCEPT["all"], all=everything)
    share = curve.accepted[best]
    text = filled(
        ACCEPT["some"], f=form, t=_threshold(curve, best), a=of_hundred(share),
        w=_failed(curve, best), c=price_text(cost[best]), all=everything,
    )  # fmt: skip
    low, high = (_threshold(curve, k) for k in curve.as_cheap(price))
    return text if low == high else f"{text} {filled(ACCEPT['range'], low=low, high=high)}"


def say_stop(
    curves: Mapping[str, Stopping], shown: str, lost: float, form: str = "forecast"
) -> str:
    """Say which runs to stop where at most this number of 100 good runs may be lost."""
    curve = curves[shown]
    best = curve.highest(lost / 100)
    if best is not None and of_hundred(curve.saved["steps"][best]) != "0":
        return filled(
            STOP["some"], f=form, t=_threshold(curve, best),
            s=of_hundred(curve.saved["steps"][best]),
            b=of_hundred(curve.bad[best]), g=of_hundred(curve.good[best]),
            also="".join(f" ({of_hundred(saved[best])}% of the {kind})"
                         for kind, saved in curve.saved.items() if kind != "steps"),
        )  # fmt: skip
    if best is not None or not len(curve.threshold):
        text = filled(STOP["never"], p=shown)
    else:
        values = {"t": _threshold(curve, 0), "g": of_hundred(curve.good[0])}
        text = filled(STOP["not"], p=shown, **values)
    others = {name: own.highest(lost / 100) for name, own in curves.items() if name != shown}
    saved = {name: curves[name].saved["steps"][k] for name, k in others.items() if k is not None}
    most = max(saved, key=lambda name: saved[name], default="")
    if most and of_hundred(saved[most]) != "0":
        text += filled(STOP["other"], q=most, s=of_hundred(saved[most]))
    return text


def of_hundred(share: float) -> str:
    """Write a share as a number of 100; small ones with a decimal."""
    value = 100 * float(share)
    if 0 < value < 1:
        return f"{np.floor(10 * value + 0.5 + 1e-9) / 10:g}"
    return f"{np.floor(value + 0.5 + 1e-9):.0f}"


def without_marks(text: str) -> str:
    """Take the marks of bold words off a sentence."""
    return text.replace("**", "")


def _failed(curve: Accepting, k: int) -> str:
    """Say how many of the accepted runs failed; where none did, of how many."""
    if curve.failing[k] > 0:
        return filled(ACCEPT["failed"], w=of_hundred(curve.failing[k] / curve.accepted[k]))
    return filled(ACCEPT["never"], n=f"{curve.n_runs * curve.accepted[k]:.0f}")


def _threshold(curve: Accepting | Stopping, k: int) -> str:
    return f"{curve.threshold[k]:.{curve.digits}f}"


def _say_worst(data: ReportData, worst: pd.Series, form: str) -> str:
    digits = max(2, -int(np.floor(np.log10(max(worst["loss"], 1e-4)))))
    facts = {
        "id": worst["id"], "task": f", task {worst['task']}" * bool(worst["task"]),
        "loss": f"{worst['loss']:.{digits}f}", "n": number_of_runs(data.facts.n_observed),
        "seen": " with an outcome" * bool(data.facts.n_censored), "step": worst["flag"],
        "form": form, "value": worst["value"], "outcome": worst["outcome"],
        "was": "" if worst["outcome"] in _VERBS else "was ",
    }  # fmt: skip
    return say("worst", facts)


def _doubt(data: ReportData, action: str) -> str:
    """Return what comes before the rules where they may not hold."""
    if action not in (USE, RECALIBRATE):
        return say("doubt", {})
    if is_settled(data):
        return ""
    return say("doubt_unobserved", {"hidden": number_of_runs(data.facts.n_censored)})


def _counting_does_better(data: ReportData, name: str) -> list[str]:
    """Say that a threshold on the steps of ended runs would do better."""
    behind = over_counting(data, name)
    better = behind is not None and behind[0][2] < 0
    return [say("counting_better", {})] * better


def _guarantee(data: ReportData) -> str:
    """Say what a stopping rule did on other runs, or how to ask for it."""
    ask = "--monitor" if data.source.command else "monitoring=True"
    is_known = data.monitoring is not None
    rule = of_stopping(data) if is_known else ""
    return say("guarantee", {"known": is_known, "stopping": rule, "ask": ask})


def _about(data: ReportData) -> str:
    """Say what was judged, when, and by which version."""
    facts, source = data.facts, data.source
    n_steps = int(data.traces[BASE_RATE, CONSTANT].lengths.sum())
    hidden = f" of {facts.n_observed:,} observed" if facts.n_censored else ""
    parts = [
        Path(source.name).name or "data given in Python",
        number_of_runs(facts.n_runs),
        f"{n_steps:,} steps",
        f"{facts.success_rate:.0%} {succeeded(data)}{hidden}",
        f"judged {source.created[:10]}, trajscore {source.version}",
    ]
    return " · ".join(parts)
