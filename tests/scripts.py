"""Scripts of benchmarks/ and tools/, which tests hold too."""

import sys
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[1]


@cache
def load_script(name, folder="benchmarks"):
    """Import a script by its name; what it imports from its folder is forgotten again."""
    path = PROJECT / folder
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(path)
        module = import_module(name)
    for script in path.rglob("[!_]*.py"):  # tests have packages of the same names
        imported = sys.modules.get(script.stem)
        if imported is not None and Path(imported.__file__ or "").is_relative_to(path):
            del sys.modules[script.stem]
    return module
