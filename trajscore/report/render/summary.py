"""What a report comes to, on one screen of a terminal."""

from __future__ import annotations

import pandas as pd

from trajscore.core.values import number_of
from trajscore.evaluation.evaluation import Evaluation
from trajscore.evaluation.options import AS_GIVEN, FORMS
from trajscore.evaluation.recommendation import RECALIBRATE, TOO_FEW, ranked, varies
from trajscore.report._disclosures import left_out
from trajscore.report._first_screen import FirstScreen, first_screen, without_marks
from trajscore.report.numbers import fixed
from trajscore.report.render.layout import in_blocks, lines, short_names
from trajscore.report.verdicts import card_reason, of_groups, of_stopping
from trajscore.report.wording import base_rate

_MOST_ROWS, _MOST_NOTES, _MOST_REASONS = 10, 2, 4


def to_summary(data: Evaluation) -> str:
    """Return the first screen: answer, a line a predictor, actions, what to know."""
    names, screen = ranked(data.cards), first_screen(data)
    parts = [
        lines(screen.answer.lines),
        "\n".join([_table(data, names[:_MOST_ROWS]), lines(_about(data, names))]),
        lines([*_actions(screen), *_warnings(data, screen)]),
    ]
    return "\n\n".join(parts)


def _actions(screen: FirstScreen) -> list[str]:
    """Say which runs to accept, to stop, and to read."""
    if not (texts := screen.texts):
        return []
    whose = "" if screen.answer.predictor == screen.shown else f"{screen.shown}: "
    sentences = [
        f"{whose}{texts['accept']}",
        f"{whose}{texts['stop']}",
        texts["thresholds"],
        f"Read first: {texts['worst']}",
    ]
    return list(map(without_marks, sentences))


def _table(data: Evaluation, names: list[str]) -> str:
    short, digits = short_names(names), data.digits
    cards = data.cards.loc[names]
    columns = {"what to do": list(cards["card"])}
    if (cards["card"] == TOO_FEW).any():
        columns["more runs"] = [f"{n:,}" if n else "" for n in cards["n_needed"]]
    for form, words in FORMS.items():
        columns[words] = [
            "" if pd.isna(margin) else fixed(margin, digits, "+") for margin in cards[form]
        ]
    columns["AUROC"] = [f"{data.table.loc[(name, AS_GIVEN), 'AUROC']:.3f}" for name in names]
    return in_blocks(pd.DataFrame(columns, index=[short[name] for name in names]))


def _about(data: Evaluation, names: list[str]) -> list[str]:
    sentences = []
    if more := names[_MOST_ROWS:]:
        rest = data.cards.loc[more, "card"].value_counts()
        actions = ", ".join(f"{action} {n}" for action, n in rest.items())
        sentences.append(f"and {number_of(len(more), 'more predictor')}: {actions}")
    unit = data.options.unit and f", in{data.options.unit}"
    base = f"always saying {base_rate(data)}, the success rate of steps"
    sentences.append(f"Margins of {data.score_name}, the score, over {base}{unit}.")
    cards = data.cards.loc[names[:_MOST_ROWS]]
    sentences += [f"{name} {card_reason(card, data)}." for name, card in cards.iterrows()
                  if not varies(card)]  # fmt: skip
    if data.monitoring is not None:
        sentences.append(of_stopping(data))
    if data.by is not None:
        sentences += [f"By {kind}, {of_groups(data, kind)}" for kind in data.by.index.unique("by")]
    return sentences


def _warnings(data: Evaluation, screen: FirstScreen) -> list[str]:
    stated = screen.answer
    sentences = [f"Data: {stated.light}. {stated.doubts[0]} {stated.unobserved}".rstrip()]
    notes = [f"note: {text}" for text in stated.notes
             if text != stated.doubts[0]]  # fmt: skip
    sentences += notes[:_MOST_NOTES]
    if len(notes) > _MOST_NOTES:
        sentences.append(f"and {number_of(len(notes) - _MOST_NOTES, 'more note')}")
    if data.exclusions and not stated.doubts[0].startswith(left_out(data)):
        sentences.append(left_out(data, _MOST_REASONS))
    how = ", with how to recalibrate new runs" * (stated.action == RECALIBRATE)
    return [*sentences, _more(data.source.command, how), screen.about.partition(" · judged")[0]]


def _more(command: str, how: str) -> str:
    """Say where there is more, to who came by a command or by Python."""
    if not command:
        return f"All numbers: report.to_text(verbose=True); a page{how}: report.to_html(path)"
    page = "" if " --out" in command else f"; a page{how}: --out report.html"
    return f"All numbers: --verbose{page}"
