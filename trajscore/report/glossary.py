"""What each number means, in a line: tooltips of the page, help of the terminal.

With them, the sentences that the script of the page fills in as well as Python does.
"""

from __future__ import annotations

import tomllib
from importlib.resources import files

from trajscore.evaluation.options import RUN_METRICS, Options

_TEXTS = tomllib.loads(files("trajscore.report").joinpath("glossary.toml").read_text("utf-8"))
LITERATURE: list[str] = _TEXTS["literature"]
TEMPLATES: dict[str, dict[str, str]] = {name: _TEXTS[name] for name in ("accept", "stop")}
GLOSSARY: dict[str, str] = _TEXTS["glossary"] | {
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
    if name in options.lower_is_better:
        return "\u2193"
    return "\u2191"
