"""A report as text: in a terminal, of 72 to 100 columns, or as Markdown, for a comment."""

import re
import shutil
import textwrap
from collections import Counter
from collections.abc import Iterable

import pandas as pd

from trajscore.core.errors import visible
from trajscore.core.values import number_of
from trajscore.evaluation.evaluation import Evaluation
from trajscore.evaluation.options import FORMS
from trajscore.evaluation.runs import number_of_runs
from trajscore.report._disclosures import disclosures, left_out
from trajscore.report._first_screen import FirstScreen, first_screen
from trajscore.report.doubts import LEFT_OUT
from trajscore.report.glossary import fixed, without_marks
from trajscore.report.render.tables import MARGINS, Table, main_columns, tables_of
from trajscore.report.verdicts import (
    card_reason,
    not_above_counting,
    of_groups,
    of_stopping,
    verdicts,
)
from trajscore.report.wording import Answer, answer

_MOST_ROWS = 10
_MOST_NOTES = 2
_MOST_REASONS = 4
_NARROWEST = 72  # narrower, tables fall apart
_USUAL = 80
_WIDEST = 100  # wider, sentences are hard to read
_LONGEST_NAME = 20


def to_text(data: Evaluation, *, verbose: bool = False) -> str:
    """Return one screen of text; verbose, all tables, what was left out, and disclosures."""
    if not verbose:
        return to_summary(data)
    short = short_names(data.predictors)
    stated = answer(data)
    notes = [f"note: {note.text}" for note in stated.notes]
    if len(stated.doubts) > 1:  # of which the first screen may have but a number
        notes = _data(stated)
    parts = [
        lines(stated.lines),
        lines(verdicts(data)),
        *(_whole_table(table, short) for table in tables_of(data)),
        lines(notes),
        lines([left_out(data)]),
        lines(f"{name}: {text}" for name, text in disclosures(data).items()),
    ]
    return "\n\n".join(part for part in parts if part)


def _whole_table(table: Table, short: dict[str, str]) -> str:
    """Write a table under its title."""
    title = lines([f"{table.title}. {table.note}".strip()])
    return title if table.frame.empty else f"{title}\n{in_blocks(table.frame, short)}"


def to_summary(data: Evaluation) -> str:
    """Return the first screen: answer, a line a predictor, actions, what to know."""
    shown = _predictors(data).drop(columns="why")[:_MOST_ROWS]
    screen = first_screen(data)
    parts = [
        lines(screen.answer.lines),
        "\n".join([in_blocks(shown, short_names(shown.index)), lines(_about(data))]),
        lines([*_actions(data, screen), *_warnings(data, screen)]),
    ]
    return "\n\n".join(parts)


def _actions(data: Evaluation, screen: FirstScreen) -> list[str]:
    """Say which runs to accept, to stop, and to read."""
    if not screen.shown:
        return []
    rules = [screen.accept_rule, screen.stop_rule, screen.chosen]
    if not data.best.is_useful:
        rules = ["No rule to accept or stop runs yet: no predictor is shown to beat the base rate."]
    rules += filter(None, [screen.step, f"Read first: {screen.read_first}"])
    return list(map(without_marks, rules))


def _predictors(data: Evaluation) -> pd.DataFrame:
    """Write what to do with each predictor, why, and numbers of the form that it is given in."""
    rows = {}
    for name, best in data.recommendations.items():
        row = data.table.loc[(name, data.first_form(name))]
        rows[name] = cells = {
            "what to do": str(best.action),
            "at its word": str(best.at_its_word),
        }
        for form, words in FORMS.items():
            cells[words] = fixed(best.interval(form).estimate, data.digits, "+")
        for column in reversed(main_columns(data)):  # metrics before what describes a predictor
            if column.sentence:
                cells[column.heading] = fixed(row[column.name], column.digits)
        why = filter(None, [card_reason(best, data), not_above_counting(data, name)])
        cells["why"] = "; ".join(why)
    return pd.DataFrame.from_dict(rows, orient="index")


def _about(data: Evaluation) -> list[str]:
    sentences = []
    ranked = list(data.recommendations.values())
    if more := ranked[_MOST_ROWS:]:
        rest = Counter(each.action for each in more).most_common()
        actions = ", ".join(f"{action} {n}" for action, n in rest)
        sentences.append(f"and {number_of(len(more), 'more predictor')}: {actions}")
    unit = data.options.unit and f", in{data.options.unit}"
    about = [column.sentence for column in reversed(main_columns(data))]
    sentences.append(
        f"As given, recalibrated: gain in {data.score_name} over always saying the success rate"
        f"{unit}; above 0 is better. {' '.join(filter(None, about))}"
    )
    sentences += [
        f"{each.predictor} {card_reason(each, data)}."
        for each in ranked[:_MOST_ROWS]
        if not each.varies
    ]
    if data.monitoring is not None:
        sentences.append(of_stopping(data).text)
    sentences += [f"By {kind}, {of_groups(data, kind)}" for kind in data.groups_by_kind]
    return sentences


def _warnings(data: Evaluation, screen: FirstScreen) -> list[str]:
    stated = screen.answer
    light, *notes = _data(stated)
    sentences = [light, *notes[:_MOST_NOTES]]
    if len(notes) > _MOST_NOTES:
        sentences.append(f"and {number_of(len(notes) - _MOST_NOTES, 'more note')}")
    if data.exclusions and stated.doubts[0].kind != LEFT_OUT:
        sentences.append(left_out(data, _MOST_REASONS))
    return [*sentences, _more(data), screen.about]


def _data(stated: Answer) -> list[str]:
    """Say how sound the data are, by the worst doubt; then other doubts, and notes that are not.

    That many runs are left out is written beside them in any case.
    """
    first, *others = stated.doubts
    kinds = [doubt.kind for doubt in stated.doubts]
    others += [note for note in stated.notes if note.kind not in kinds]
    notes = [f"note: {each.text}" for each in others if each.kind != LEFT_OUT]
    return [f"Data: {stated.light}. {first.text} {stated.unobserved}".rstrip(), *notes]


def _more(data: Evaluation) -> str:
    """Say where there is more, to who came by a command or by Python."""
    if not data.source.command:
        return "All numbers: report.to_text(verbose=True); a page, with code: report.to_html(path)"
    code = "; code for new runs: --code" * data.best.is_useful
    page = "; a page: --out report.html" * (not data.source.writes_file)
    return f"All numbers: --verbose{code}{page}"


def width() -> int:
    """Return how many columns there are to write on."""
    columns = shutil.get_terminal_size(fallback=(_USUAL, 24)).columns
    return min(max(columns, _NARROWEST), _WIDEST)


def lines(sentences: Iterable[str]) -> str:
    """Write sentences, each from the start of a line."""
    return "\n".join(
        textwrap.fill(visible(sentence), width(), subsequent_indent="    ", break_long_words=False)
        for sentence in sentences
    )


def in_blocks(table: pd.DataFrame, short: dict[str, str]) -> str:
    """Print a table of text.

    Where it is wider than the terminal, names are shortened, and columns stand in blocks.
    """
    printed = _named(table, {})
    if len(_blocks(printed)) > 1:
        printed = _named(table, short)
    return "\n\n".join(printed.iloc[:, block].to_string() for block in _blocks(printed))


def _named(table: pd.DataFrame, short: dict[str, str]) -> pd.DataFrame:
    """Name rows and columns as they are printed."""
    keys = table.index.to_frame().itertuples(index=False, name=None)
    rows = [", ".join(short.get(part, str(part)) for part in key if part != "") for key in keys]
    return table.set_axis(map(visible, rows)).rename(
        columns=lambda name: visible(short.get(name, str(name)))
    )


def _blocks(table: pd.DataFrame) -> list[list[int]]:
    """Return the places of columns that stand beside each other in a terminal."""
    labels = table.index.str.len().max()
    blocks: list[list[int]] = [[]]
    room = width() - labels
    for place, name in enumerate(table):
        needed = 2 + max(len(name), table.iloc[:, place].str.len().max())
        if needed > room and blocks[-1]:
            blocks.append([])
            room = width() - labels
        blocks[-1].append(place)
        room -= needed
    return blocks


def short_names(names: Iterable[str]) -> dict[str, str]:
    """Shorten long names, at the end or in the middle, as long as they stay distinct."""
    distinct = list(dict.fromkeys(names))
    for head in (_LONGEST_NAME - 3, _LONGEST_NAME // 2 - 3):
        tail = _LONGEST_NAME - 3 - head
        short = [
            name if len(name) <= _LONGEST_NAME else name[:head] + "..." + name[len(name) - tail :]
            for name in distinct
        ]
        if len(set(short)) == len(distinct):
            return dict(zip(distinct, short, strict=True))
    return {name: name for name in distinct}


def to_markdown(data: Evaluation) -> str:
    """Return the first screen, then margins, verdicts, notes and disclosures, folded."""
    screen = first_screen(data)
    stated = screen.answer
    why = stated.reason
    first, *others = [escaped(doubt.text) for doubt in stated.doubts]
    shown = [of for of in tables_of(data) if of.title == MARGINS or of.sentence]
    # "why" has the metrics in words
    cards = _predictors(data).drop(columns=[*FORMS.values(), "AUROC"])
    settings = [f"**{name}**: {escaped(text)}" for name, text in disclosures(data).items()]
    parts = [
        f"# {escaped(stated.headline)}",
        *(f"**{each.question}** {escaped(each.reply)}" for each in stated.statements[1:]),
        f"**Next:** {escaped(stated.next_step.text)}",
        f"**{why.question}:** {escaped(why.text, bold=True)}" if why else "",
        escaped(stated.budget),
        table(["predictor", *cards], cards.reset_index().to_numpy()),
        _marked_actions(screen),
        f"**Data: {stated.light}.** {first}",
        _list("", others),
        escaped(f"{screen.about} · {screen.judged}"),
        f"<details><summary>All numbers of {number_of_runs(data.facts.n_runs)}</summary>",
        *map(_section, shown),
        _list("In words", map(escaped, verdicts(data))),
        _list("Notes", [escaped(note.text) for note in stated.notes]),
        _list("How this was made", settings),
        f"## In Python\n\n```python\n{screen.code}\n```" if screen.shown else "",
        "</details>",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _section(of: Table) -> str:
    """Write a table under its title."""
    rows = [[*map(str, key), *cells] for key, cells in of.rows]
    head = [*of.frame.index.names, *of.frame.columns]
    cells = f"\n\n{table(head, rows)}" if rows else ""
    return f"## {escaped(of.title)}\n\n{escaped(of.note)}{cells}"


def _marked_actions(screen: FirstScreen) -> str:
    """Say which runs to accept, to stop, and to read."""
    if not screen.shown:
        return ""
    sentences = (
        f"{screen.accept_rule} {screen.accept_note}",
        f"{screen.stop_rule} {screen.stop_note.text}",
        *filter(None, [screen.step]),
        f"**Read first:** {screen.read_first}",
    )
    return _list("", [escaped(text, bold=True) for text in sentences])


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Write a table; bars within cells are escaped."""
    names = list(head)
    lines = [names, ["---"] * len(names), *rows]
    cells = ([escaped(cell).replace("|", "\\|") for cell in line] for line in lines)
    return "\n".join(f"| {' | '.join(line)} |" for line in cells)


def escaped(text: str, *, bold: bool = False) -> str:
    """Keep names from being read as marks: of HTML, a formula, a style, a link; not bold words."""
    safe = re.sub(r"([<$*`\\]|(?<=\])\()", r"\\\1", visible(text)).replace("\n", " ")
    return safe.replace(r"\*\*", "**") if bold else safe


def _list(title: str, sentences: Iterable[str]) -> str:
    """Write sentences under a title, if there are any of either."""
    items = "\n".join(f"- {sentence}" for sentence in sentences)
    return f"## {title}\n\n{items}" if title and items else items
