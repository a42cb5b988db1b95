"""Every table, figure and printed constant of the four papers: what is printed, and ours.

    python benchmarks/reproduce.py [--data FOLDER] [--only ecuas|tps|evaluator|tracer] [--write]

FOLDER holds public data as ``expected_cost/NAME/scores.npy`` and ``targets.npy``,
``evaluator/NAME_w_scores_compressed.csv.gz``, ``tau_bench/`` and ``tau2/``; what is not there is
said. Without it, score sets and tables of verifiers are fetched, and agent logs left out. With
--write, the tables of docs/reproduction.rst and its figures are made anew. Rates of the e-valuator
paper are means over --splits random splits (50, as there); 10 are enough for a look.
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd

from reproduction import ecuas, evaluator, tps, tracer
from reproduction.items import Cell, Data, Item
from trajscore.plotting._display import SERIES

PAPERS = {
    "ecuas": ecuas.PAPER, "tps": tps.PAPER, "evaluator": evaluator.PAPER, "tracer": tracer.PAPER,
}  # fmt: skip
DOCS = Path(__file__).resolve().parents[1] / "docs"
COLUMNS = ("item", "row", "column", "printed", "ours", "difference", "status")


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


# --------------------------------------------------------------------------- pages


def csv_table(header: list[str], rows: list[list[str]], widths: str = "auto") -> Iterator[str]:
    """Yield a csv-table directive."""
    yield ".. csv-table::"
    yield f"   :header: {', '.join(quoted(one) for one in header)}"
    yield f"   :widths: {widths}"
    yield ""
    for row in rows:
        yield f"   {', '.join(quoted(one) for one in row)}"
    yield ""


def quoted(text: str) -> str:
    """Quote a cell."""
    return '"' + str(text).replace('"', '""') + '"'


def heading(text: str, line: str) -> list[str]:
    """Underline."""
    return [text, line * len(text), ""]


def pivoted(cells: list[Cell]) -> Iterator[list[Cell]]:
    """Group cells into tables whose rows have the same columns."""
    by_row: dict[str, list[Cell]] = {}
    for one in cells:
        by_row.setdefault(one.row, []).append(one)
    by_columns: dict[tuple[str, ...], list[Cell]] = {}
    for row in by_row.values():
        by_columns.setdefault(tuple(one.column for one in row), []).extend(row)
    yield from by_columns.values()


def cell_tables(cells: list[Cell]) -> Iterator[str]:
    """Ours, with what is printed where the two differ."""
    for group in pivoted(cells):
        columns = list(dict.fromkeys(one.column for one in group))
        rows = [group[k : k + len(columns)] for k in range(0, len(group), len(columns))]
        lines = [[row[0].row, *(one.shown() for one in row)] for row in rows]
        yield from csv_table(["", *columns], lines)


def frame_table(table: pd.DataFrame) -> Iterator[str]:
    """Yield a data frame with its index."""
    depth = table.index.nlevels
    names = [str(name or "") for name in table.index.names]
    rows = [
        [*map(str, key if depth > 1 else (key,)), *map(text, row)]
        for key, row in zip(table.index, table.to_numpy(), strict=True)
    ]
    yield from csv_table([*names, *map(str, table.columns)], rows)


def text(value: object) -> str:
    """Three decimals, or what the number needs to be seen."""
    if not isinstance(value, float):
        return str(value)
    return "—" if np.isnan(value) else f"{value:.3f}" if abs(value) >= 0.01 else f"{value:.5f}"


def details(item: Item, cells: list[Cell], data: Data, picture: str | None) -> Iterator[str]:
    """Numbers of an item, the same on public data, and its figure."""
    table = item.instead(data) if item.instead else pd.DataFrame()
    if not (cells or len(table) or picture):
        return
    yield from heading(f"{item.name}: {item.what}", "^")
    yield from cell_tables(cells)
    if len(table):
        yield from [item.note, ""]
        yield from frame_table(table)
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
    """Draw an item; None if there is nothing to draw it of."""
    if item.draw is None:
        return None
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}_{item.name.lower().replace(' ', '_')}.svg"
    # the same picture gives the same file
    style = {
        "svg.hashsalt": "trajscore",
        "svg.fonttype": "none",
        "savefig.bbox": "tight",
        "axes.prop_cycle": mpl.cycler(color=SERIES),
    }
    with mpl.rc_context(style):
        item.draw(data, path)
    if not path.exists():
        return None
    lines = path.read_text().splitlines()
    lines = [line.rstrip() for line in lines if "<dc:date>" not in line]
    path.write_text("\n".join(lines) + "\n")
    return path.name


def page(name: str, found: dict[str, list[Cell]], data: Data, docs: Path) -> str:
    """Write a paper's part of the page."""
    items = PAPERS[name].items
    summary = [
        [
            item.name,
            item.what,
            item.how,
            largest(found[item.name]),
            status(item, found[item.name], data),
        ]
        for item in items
    ]
    header = ["Item", "What", "How ours is made", "Largest difference", "Status"]
    lines = list(csv_table(header, summary, "9 20 26 9 36"))
    for item in items:
        picture = draw(item, name, data, docs / "_static" / "reproduction")
        lines += details(item, found[item.name], data, picture)
    return "\n".join(lines)


def write(name: str, found: dict[str, list[Cell]], data: Data, docs: Path = DOCS) -> None:
    """Write a paper's part of the page, and all of its cells as a table."""
    folder = docs / "reproduction"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.inc").write_text(page(name, found, data, docs))
    with (folder / f"{name}.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for item, cells in found.items():
            for one in cells:
                ours = f"{one.ours:.6g}"
                gap = "" if one.holds is not None else f"{one.difference:+.{one.decimals}f}"
                writer.writerow([item, one.row, one.column, one.printed, ours, gap, one.status])


def show(name: str, found: dict[str, list[Cell]], data: Data) -> None:
    """Print every item, and every cell that differs."""
    print(f"\n== {PAPERS[name].title}")
    for item in PAPERS[name].items:
        cells = found[item.name]
        print(f"{item.name}: {item.what}\n    {status(item, cells, data)}")
        for one in cells:
            if not one.equal:
                print(f"    {one.row}, {one.column}: {one.shown()}")


def main() -> None:
    """Make all cells; print, and write the page where asked to."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, help="folder of public data; default: fetch")
    parser.add_argument("--only", choices=PAPERS)
    parser.add_argument("--splits", type=int, default=50)
    parser.add_argument("--write", action="store_true", help="write docs/reproduction and figures")
    arguments = parser.parse_args()
    mpl.use("Agg")
    warnings.simplefilter("ignore", UserWarning)  # what they say is in the tables
    data = Data(arguments.data, arguments.splits)
    for name in [arguments.only] if arguments.only else PAPERS:
        start = time.perf_counter()
        items = PAPERS[name].items
        found = {item.name: item.cells(data) if item.cells else [] for item in items}
        show(name, found, data)
        if arguments.write:
            write(name, found, data)
        print(f"    {time.perf_counter() - start:.0f} s", flush=True)


if __name__ == "__main__":
    main()
