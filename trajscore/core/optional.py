"""Packages that are needed for some things only, and come with an extra."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def optional(module: str, need: str, extra: str, instead: str = "") -> Any:
    """Import a module, or say what needs it and which extra brings it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(
            f'{need}; run `pip install "scikit-trajscore[{extra}]"`{instead}'
        ) from error
