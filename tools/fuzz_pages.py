"""Make a page of 300 random tables of 8 to 60 runs: `python tools/fuzz_pages.py [n_tables]`."""

from __future__ import annotations

import sys
import time
from collections import Counter
from pathlib import Path

from trajscore import evaluate
from trajscore.report import IntervalOptions, MonitoringOptions

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "report"))
from test_page import check, random_table


def main(n_tables: int = 300) -> None:
    """Print how many pages were made, how large they are, and which cards they hold."""
    cards: Counter[str] = Counter()
    sizes, start = [], time.perf_counter()
    for seed in range(n_tables):
        X, y = random_table(1000 + seed)
        report = evaluate(
            X, y, by=[k % 3 for k in range(len(y))], intervals=IntervalOptions(50),
            monitoring=MonitoringOptions(n_splits=2) if seed % 5 == 0 else False,
        )  # fmt: skip
        sizes.append(len(check(report.to_html())))
        cards.update(report.cards["card"])
    spent = time.perf_counter() - start
    print(f"{len(sizes)} pages of {min(sizes):,} to {max(sizes):,} bytes in {spent:.0f} s")
    for card, n in cards.most_common():
        print(f"{n:>5}  {card}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
