"""What a docstring says of a default is what a call without the argument gets."""

import ast
import inspect
import re
from importlib import import_module
from pathlib import Path

import pytest

import trajscore

PARTS = [
    import_module(f"trajscore.{path.parent.name}")
    for path in sorted(Path(trajscore.__file__).parent.glob("*/__init__.py"))
]
PARAMETERS = re.compile(r"Parameters\n-+\n(.*?)(?:\n\n[A-Z][A-Za-z ]+\n-+\n|\Z)", re.DOTALL)
DEFAULT = re.compile(r"^(\w[\w, ]*) : [^\n]*?default=([^\n]+)$", re.MULTILINE)


def documented(thing):
    """Yield each parameter whose docstring names a default, with that default."""
    section = PARAMETERS.search(inspect.getdoc(thing) or "")
    for names, text in DEFAULT.findall(section[1]) if section else ():
        try:
            value = ast.literal_eval(text)
        except (SyntaxError, ValueError):  # not a value, but words
            continue
        several = names.split(", ")
        is_one_each = isinstance(value, tuple) and len(value) == len(several) > 1
        yield from zip(several, value if is_one_each else [value] * len(several), strict=True)


def callables(part):
    """Yield what is public of a part, and the methods of its classes."""
    for name in getattr(part, "__all__", ()):
        thing = getattr(part, name)
        if callable(thing):
            yield name, thing
        if inspect.isclass(thing):
            methods = inspect.getmembers(thing, inspect.isroutine)
            yield from ((f"{name}.{key}", one) for key, one in methods if not key.startswith("_"))


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.__name__)
def test_defaults_are_those_of_the_docstring(part):
    for name, thing in callables(part):
        defaults = dict(documented(thing))
        parameters = inspect.signature(thing).parameters if defaults else {}
        for parameter in defaults.keys() & parameters.keys():
            default = parameters[parameter].default
            if "factory" not in repr(default):  # of a field of a dataclass
                assert (default, type(default)) == (
                    defaults[parameter], type(defaults[parameter]),
                ), f"{name}, {parameter}"  # fmt: skip
