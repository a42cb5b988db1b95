"""The sentences of a report, each looked up in `sentences.toml` by the facts that hold."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from typing import Any

_FILE = files("trajscore.report").joinpath("sentences.toml")
SENTENCES: dict[str, Any] = tomllib.loads(_FILE.read_text(encoding="utf-8"))


def say(topic: str, facts: dict[str, Any]) -> str:
    """Return the first sentence of a topic whose facts hold, filled in; "" where none does."""
    table, _, name = topic.rpartition(".")
    of = (SENTENCES[table] if table else SENTENCES)[name]
    pairs = [("", of)] if isinstance(of, str) else of
    text = next((text for when, text in pairs if _holds(when, facts)), "")
    return str(text.format_map(facts))


def _holds(when: str, facts: dict[str, Any]) -> bool:
    """Whether all facts named hold, and those after a ! do not."""
    return all(bool(facts[name.lstrip("!")]) != name.startswith("!") for name in when.split())
