"""The sentences of a report, each looked up in `sentences.toml` by the facts that hold.

And what each number means, in a line: tooltips of the page, help of the terminal.
"""

from __future__ import annotations

import tomllib
from importlib.resources import files
from typing import Any

from trajscore.core.policy import MIN_EFFECTIVE_CLUSTERS
from trajscore.core.visible import visible
from trajscore.evaluation.options import RUN_METRICS, Note, Options

_FILE = files("trajscore.report").joinpath("sentences.toml")
SENTENCES: dict[str, Any] = tomllib.loads(_FILE.read_text(encoding="utf-8"))
GLOSSARY: dict[str, str] = SENTENCES["glossary"] | {
    name.partition("_")[0]: metric.meaning for name, metric in RUN_METRICS.items()
}


def say(topic: str, facts: dict[str, Any]) -> str:
    """Return the first sentence of a topic whose facts hold, filled in; "" where none does."""
    table, _, name = topic.rpartition(".")
    of = (SENTENCES[table] if table else SENTENCES)[name]
    pairs = [("", of)] if isinstance(of, str) else of
    text = next((text for when, text in pairs if _holds(when, facts)), "")
    return visible(text.format_map(facts))


def _holds(when: str, facts: dict[str, Any]) -> bool:
    """Whether all facts named hold, and those after a ! do not."""
    return all(bool(facts[name.lstrip("!")]) != name.startswith("!") for name in when.split())


def sentence(note: Note) -> str:
    """Write a note for people."""
    facts, n = note.facts, note.facts.get("n", 0)
    is_far = "low" in facts
    words = {
        "enough": MIN_EFFECTIVE_CLUSTERS,
        "first": f" (the first of {n} such values)" if n > 1 else "",
        "outside": "far outside the others, {low:g} to {high:g}".format_map(facts)
        if is_far
        else "outside [0, 1]",
        "mistaken": "an error" if is_far else "a probability",
        "folds": "one of the two" if len(facts.get("maps", ())) == 1 else "both",
    }
    return f"{note.predictor}: {say(f'notes.{note.kind}', facts | words)}"


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
