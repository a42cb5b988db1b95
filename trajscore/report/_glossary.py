"""What each number of a report means, in a line: tooltips of the page, help of the terminal."""

from __future__ import annotations

from trajscore.report._data import RUN_METRICS, Options
from trajscore.report._sentences import SENTENCES

GLOSSARY: dict[str, str] = SENTENCES["glossary"] | {
    name.partition("_")[0]: metric.meaning for name, metric in RUN_METRICS.items()
}


def explain(name: str) -> str:
    """Return the line for a column: its own, or that of its family.

    >>> explain("S-ECE late") == explain("S-ECE")
    True
    """
    if name in GLOSSARY:
        return GLOSSARY[name]
    if " over_" in name:
        return GLOSSARY[name.rpartition(" ")[2]]
    return GLOSSARY[next(family for family in GLOSSARY if name.startswith(family))]


def arrow(name: str, options: Options) -> str:
    """Say which way a metric is better: up, down, or neither."""
    if name.startswith("n_"):
        return ""
    return "\u2193" if name in options.lower_is_better else "\u2191"
