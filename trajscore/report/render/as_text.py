"""A report as text: in a terminal, of 72 to 100 columns, or as Markdown, for a comment."""

import re
import shutil
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator

import pandas as pd

from trajscore.core.errors import visible
from trajscore.core.values import number_of
from trajscore.evaluation.evaluation import Evaluation
from trajscore.evaluation.options import FORMS
from trajscore.evaluation.runs import number_of_runs
from trajscore.report._disclosures import disclosures, left_out
from trajscore.report._first_screen import FirstScreen, first_screen
from trajscore.report.glossary import fixed
from trajscore.report.render.tables import MARGINS, Table, tables_of
from trajscore.report.verdicts import (
    card_reason,
    not_above_counting,
    of_groups,
    of_stopping,
    verdicts,
)
from trajscore.report.wording import answer, has_many_left_out, without_marks

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
    parts = [
        lines(stated.lines),
        lines(verdicts(data)),
        *(_whole_table(table, short) for table in tables_of(data)),
        lines(f"note: {note}" for note in stated.notes),
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
    names = list(data.recommendations)
    screen = first_screen(data)
    parts = [
        lines(screen.answer.lines),
        "\n".join([_table(data, names[:_MOST_ROWS]), lines(_about(data, names))]),
        lines([*_actions(data, screen), *_warnings(data, screen)]),
    ]
    return "\n\n".join(parts)


def _actions(data: Evaluation, screen: FirstScreen) -> list[str]:
    """Say which runs to accept, to stop, and to read."""
    if not (texts := screen.texts):
        return []
    rules = [texts["accept"], texts["stop"], texts["thresholds"]]
    if not data.best.is_useful:
        rules = ["No rule to accept or stop runs yet: no predictor is shown to beat the base rate."]
    rules += filter(None, [texts["step"], f"Read first: {texts['worst']}"])
    return list(map(without_marks, rules))


def _table(data: Evaluation, names: list[str]) -> str:
    rows = {}
    for name in names:
        best = data.recommendations[name]
        rows[name] = cells = {
            "what to do": str(best.action),
            "at its word": str(best.at_its_word),
        }
        for form, words in FORMS.items():
            margin = best.interval(form)
            cells[words] = fixed(margin.estimate, data.digits, "+") if margin.is_known else ""
        cells["AUROC"] = f"{data.table.loc[(name, data.first_form(name)), 'AUROC']:.3f}"
    return in_blocks(pd.DataFrame.from_dict(rows, orient="index"), short_names(names))


def _about(data: Evaluation, names: list[str]) -> list[str]:
    sentences = []
    if more := names[_MOST_ROWS:]:
        rest = Counter(data.recommendations[name].action for name in more).most_common()
        actions = ", ".join(f"{action} {n}" for action, n in rest)
        sentences.append(f"and {number_of(len(more), 'more predictor')}: {actions}")
    unit = data.options.unit and f", in{data.options.unit}"
    sentences.append(
        f"As given, recalibrated: gain in {data.score_name} over always saying the success rate"
        f"{unit}; above 0 is better. AUROC: 0.5 is chance, 1 a perfect ranking."
    )
    rows = [data.recommendations[name] for name in names[:_MOST_ROWS]]
    sentences += [f"{row.predictor} {card_reason(row, data)}." for row in rows if not row.varies]
    if data.monitoring is not None:
        sentences.append(of_stopping(data))
    sentences += [f"By {kind}, {of_groups(data, kind)}" for kind in data.groups_by_kind]
    return sentences


def _warnings(data: Evaluation, screen: FirstScreen) -> list[str]:
    stated = screen.answer
    sentences = [f"Data: {stated.light}. {stated.doubts[0]} {stated.unobserved}".rstrip()]
    notes = [f"note: {text}" for text in stated.notes
             if text != stated.doubts[0]]  # fmt: skip
    sentences += notes[:_MOST_NOTES]
    if len(notes) > _MOST_NOTES:
        sentences.append(f"and {number_of(len(notes) - _MOST_NOTES, 'more note')}")
    # which is the last of the doubts
    is_first_doubt = has_many_left_out(data) and len(stated.doubts) == 1
    if data.exclusions and not is_first_doubt:
        sentences.append(left_out(data, _MOST_REASONS))
    how = "; code for new runs: --code" * data.best.is_useful
    return [*sentences, _more(data.source.command, how), screen.about]


def _more(command: str, how: str) -> str:
    """Say where there is more, to who came by a command or by Python."""
    if not command:
        return "All numbers: report.to_text(verbose=True); a page, with code: report.to_html(path)"
    if any(word.partition("=")[0] == "--out" for word in command.split()):
        return f"All numbers: --verbose{how}"
    return f"All numbers: --verbose{how}; a page: --out report.html"


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
    shown = [of for of in tables_of(data) if of.title == MARGINS or of.sentence]
    settings = [f"**{name}**: {escaped(text)}" for name, text in disclosures(data).items()]
    parts = [
        f"# {escaped(stated.headline)}",
        *(f"**{each.question}** {escaped(each.reply)}" for each in stated.statements[1:]),
        f"**Next:** {escaped(stated.advice)}",
        f"**{why.question}:** {escaped(why.text, bold=True)}" if why else "",
        escaped(stated.budget),
        table(["predictor", "what to do", "at its word", "why"], _cards(data)),
        _marked_actions(screen),
        f"**Data: {stated.light}.** {escaped(stated.doubts[0])}",
        escaped(f"{screen.about} · {screen.judged}"),
        f"<details><summary>All numbers of {number_of_runs(data.facts.n_runs)}</summary>",
        *map(_section, shown),
        _list("In words", map(escaped, verdicts(data))),
        _list("Notes", [escaped(note) for note in stated.notes]),
        _list("How this was made", settings),
        f"## In Python\n\n```python\n{screen.texts['code']}\n```" if screen.texts else "",
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
    if not (texts := screen.texts):
        return ""
    sentences = (
        f"{texts['accept']} {texts['accept_note']}",
        f"{texts['stop']} {texts['stop_note']}",
        *filter(None, [texts["step"]]),
        f"**Read first:** {texts['worst']}",
    )
    return _list("", [escaped(text, bold=True) for text in sentences])


def _cards(data: Evaluation) -> Iterator[list[str]]:
    for name, best in data.recommendations.items():
        why = filter(None, [card_reason(best, data), not_above_counting(data, name)])
        yield [name, str(best.action), str(best.at_its_word), "; ".join(why)]


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
