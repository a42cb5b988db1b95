"""Every table, figure and printed constant of the four papers: what is printed, and ours.

    python benchmarks/reproduce.py [--data FOLDER] [--only ecuas|tps|evaluator|tracer] [--write]

FOLDER holds public data as ``expected_cost/NAME/scores.npy`` and ``targets.npy``,
``evaluator/NAME_w_scores_compressed.csv.gz``, ``tau_bench/`` and ``tau2/``; what is not there is
said. Without it, score sets and tables of verifiers are fetched, and agent logs left out. With
--write, the tables of docs/reproduction.rst and its figures are made anew. Rates of the e-valuator
paper are means over --splits random splits (50, as there); 10 are enough for a look.
"""

import time
import warnings
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd

from reproduction import ecuas, evaluator, tps, tracer
from reproduction.items import Cell, Data, Item
from shared import options
from trajscore.plotting._display import SERIES

PAPERS = {
    "ecuas": ecuas.PAPER, "tps": tps.PAPER, "evaluator": evaluator.PAPER, "tracer": tracer.PAPER,
}  # fmt: skip
DOCS = Path(__file__).resolve().parents[1] / "docs"


def status(item: Item, cells: list[Cell], data: Data) -> str:
    """Sum an item up in a sentence."""
    parts = []
    if cells:
        wrong = [one for one in cells if not one.equal]
        parts.append(f"{len(cells) - len(wrong)} of {len(cells)} equal")
        for why in dict.fromkeys(one.why for one in wrong):
            places = sum(one.why == why for one in wrong)
            parts.append(f"{places} differ{'s' * (places == 1)}, because {why}")
    if item.missing:
        rest = ", the rest" if cells else ""
        parts.append(f"not possible{rest}, because {item.missing}")
    absent = data.absent(item.needs)
    if absent:
        parts.append(f"not run: {', '.join(absent)} (public, but not in the folder)")
    return "; ".join(parts) or "shown by the tests and benchmarks named"


def largest(cells: list[Cell]) -> str:
    """Return the largest difference of numbers that differ."""
    wrong = [one for one in cells if one.holds is None and not one.equal]
    if not wrong:
        return ""
    one = max(wrong, key=lambda cell: abs(cell.difference))
    return f"{one.difference:+.{one.decimals}f}"


def csv_table(table: pd.DataFrame, widths: str = "auto") -> Iterator[str]:
    yield ".. csv-table::"
    yield f"   :header: {line(table.columns)}"
    yield f"   :widths: {widths}"
    yield ""
    for row in table.to_numpy():
        yield f"   {line(row)}"
    yield ""


def line(row: Iterable[object]) -> str:
    return ", ".join('"' + text(one).replace('"', '""') + '"' for one in row)


def text(value: object) -> str:
    """Three decimals, or what the number needs to be seen."""
    if not isinstance(value, float):
        return str(value)
    return "—" if np.isnan(value) else f"{value:.3f}" if abs(value) >= 0.01 else f"{value:.5f}"


def cell_tables(cells: list[Cell]) -> Iterator[str]:
    """Ours, with what is printed where the two differ: a table for rows of the same columns."""
    by_row: dict[str, dict[str, str]] = {}
    for one in cells:
        by_row.setdefault(one.row, {})[one.column] = one.shown()
    for columns in dict.fromkeys(map(tuple, by_row.values())):
        rows = [{"": key} | row for key, row in by_row.items() if tuple(row) == columns]
        yield from csv_table(pd.DataFrame(rows))


def details(item: Item, cells: list[Cell], data: Data, picture: str | None) -> Iterator[str]:
    """Numbers of an item, the same on public data, and its figure."""
    table = pd.DataFrame()
    if item.instead:
        with suppress(FileNotFoundError):
            table = item.instead(data)
    if not (cells or len(table) or picture):
        return
    title = f"{item.name}: {item.what}"
    yield from [title, "^" * len(title), ""]
    yield from cell_tables(cells)
    if len(table):
        yield from [item.note, ""]
        names = [str(name or "") for name in table.index.names]
        yield from csv_table(table.rename_axis(names).reset_index(allow_duplicates=True))
    if picture:
        yield from [
            f".. figure:: _static/reproduction/{picture}",
            f"   :alt: {item.caption}",
            "   :width: 80%",
            "",
            f"   {item.caption}",
            "",
        ]


def draw(item: Item, name: str, data: Data, folder: Path) -> str | None:
    if item.draw is None:
        return None
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}_{item.name.lower().replace(' ', '_')}.svg"
    # the same picture gives the same file
    style = {"svg.hashsalt": "trajscore", "svg.fonttype": "none", "savefig.bbox": "tight"}
    style["axes.prop_cycle"] = mpl.cycler(color=SERIES)
    with suppress(FileNotFoundError), mpl.rc_context(style):
        item.draw(data).savefig(path, metadata={"Date": None})
        path.write_text("".join(f"{one.rstrip()}\n" for one in path.read_text().splitlines()))
        return path.name
    return None


def page(name: str, cells_of: dict[str, list[Cell]], data: Data, docs: Path) -> str:
    items = PAPERS[name].items
    columns = ["Item", "What", "How ours is made", "Largest difference", "Status"]
    rows = []
    for item in items:
        cells = cells_of[item.name]
        rows.append([item.name, item.what, item.how, largest(cells), status(item, cells, data)])
    lines = list(csv_table(pd.DataFrame(rows, columns=columns), "9 20 26 9 36"))
    for item in items:
        picture = draw(item, name, data, docs / "_static" / "reproduction")
        lines += details(item, cells_of[item.name], data, picture)
    return "\n".join(lines)


def write(name: str, cells_of: dict[str, list[Cell]], data: Data, docs: Path = DOCS) -> None:
    """Write a paper's part of the page, and all of its cells as a table."""
    folder = docs / "reproduction"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.inc").write_text(page(name, cells_of, data, docs))
    rows = []
    for item, cells in cells_of.items():
        for one in cells:
            off = f"{one.difference:+.{one.decimals}f}" if one.holds is None else ""
            rows.append([item, *one[:3], f"{one.ours:.6g}", off, one.status])
    columns = ["item", "row", "column", "printed", "ours", "difference", "status"]
    table = pd.DataFrame(rows, columns=columns)
    table.to_csv(folder / f"{name}.csv", index=False, lineterminator="\n")


def show_items(name: str, cells_of: dict[str, list[Cell]], data: Data) -> None:
    print(f"\n== {PAPERS[name].title}")
    for item in PAPERS[name].items:
        cells = cells_of[item.name]
        print(f"{item.name}: {item.what}\n    {status(item, cells, data)}")
        for one in cells:
            if not one.equal:
                print(f"    {one.row}, {one.column}: {one.shown()}")


def main() -> None:
    args = options(__doc__, only=[], splits=50, write=False)
    mpl.use("Agg")
    warnings.simplefilter("ignore", UserWarning)  # what they say is in the tables
    data = Data(args.data, args.splits)
    for name in args.only or PAPERS:
        start = time.perf_counter()
        cells_of = {item.name: item.found(data) for item in PAPERS[name].items}
        show_items(name, cells_of, data)
        if args.write:
            write(name, cells_of, data)
        print(f"    {time.perf_counter() - start:.0f} s", flush=True)


if __name__ == "__main__":
    main()
