"""A report as Markdown, for a comment or a file beside the code."""

import re
from collections.abc import Iterable, Iterator

from trajscore.core.errors import visible
from trajscore.evaluation.evaluation import Evaluation
from trajscore.evaluation.runs import number_of_runs
from trajscore.report._disclosures import disclosures
from trajscore.report._first_screen import FirstScreen, first_screen
from trajscore.report.render.tables import MARGINS, Table, tables_of
from trajscore.report.verdicts import card_reason, not_above_counting, verdicts


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
        _actions(screen),
        f"**Data: {stated.light}.** {escaped(stated.doubts[0])}",
        escaped(screen.about),
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


def _actions(screen: FirstScreen) -> str:
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
