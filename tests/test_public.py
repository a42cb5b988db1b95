"""What is public is documented as it is, has an example and is narrow; helpers are brief."""

import ast
import inspect
import re
import tomllib
from dataclasses import fields, is_dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest
from sklearn.base import BaseEstimator

import trajscore
from scripts import PROJECT, load_script
from trajscore.monitoring import StoppingRule

ROOT = Path(trajscore.__file__).parent
TOP = "trajscore"
PARTS = [TOP, *sorted(path.parent.name for path in ROOT.glob("*/__init__.py"))]

MOST_NAMES = 107  # may only shrink; calibrators, stopping rules and displays may grow
MOST_OF_AN_ESTIMATOR, MOST_OF_A_FUNCTION = 8, 10
# name: why it has more parameters; this table may only shrink, but where a signature is agreed
WIDE = {
    # weights are two arguments everywhere, a schedule and its horizon
    "censored_tps_interval": "what is scored, what is known of cut runs, and the interval",
    "practice_shift": "what is scored, what is known of cut runs, and the interval",
    "TrajectoryArray.from_frame": "seven are columns, and three say what their words mean",
    "TracerScorer": "five are the symbols of the paper",
}

each_part = pytest.mark.parametrize("part", PARTS)


def package(part):
    return import_module(TOP if part == TOP else f"{TOP}.{part}")


def public(part):
    """What is public of a part, by full name: its `__all__`. What core has is public at the top."""
    module = package(part)
    things = {f"{module.__name__}.{name}": getattr(module, name) for name in _all(module)}
    return {name: thing for name, thing in things.items() if not isinstance(thing, ModuleType)}


def _all(module):
    return list(getattr(module, "__all__", []))


def everything_public():
    """One name for each public thing: the shortest there is."""
    named = [(id(thing), name) for part in PARTS for name, thing in public(part).items()]
    return sorted(dict(reversed(named)).values())


def documented(part):
    """Public classes and functions of a part, and the methods of these classes that are ours."""
    for name, thing in public(part).items():
        if inspect.isclass(thing) or inspect.isfunction(thing):
            yield name, thing
        if inspect.isclass(thing):
            for method, value in inspect.getmembers(thing):
                function = getattr(value, "__func__", value)
                ours = inspect.isfunction(function) and function.__module__.startswith(TOP)
                if ours and not method.startswith("_"):
                    yield f"{name}.{method}", function


# ------------------------------------------------------------------------------ names


@each_part
def test_all_holds_what_the_package_imports(part):
    module = package(part)
    taken = {
        alias.asname or alias.name
        for node in ast.walk(ast.parse(Path(module.__file__).read_text()))
        if isinstance(node, ast.ImportFrom) and node.module.startswith(TOP)
        for alias in node.names
        if alias.name != "__version__"
    }
    assert taken <= {*_all(module), "__version__"}


def test_the_api_page_has_every_public_name_and_nothing_else():
    page = load_script("api_page", "docs").api_page()
    assert f".. currentmodule:: {TOP}\n" in page
    names = re.findall(r"^   ([A-Za-z][\w.]*)$", page, re.MULTILINE)
    assert sorted(f"{TOP}.{name}" for name in names) == everything_public()


def test_there_are_few_public_names():
    things = {name: thing for part in PARTS for name, thing in public(part).items()}
    names = [name for name in everything_public() if not _is_of_a_family(things[name])]
    assert len(names) <= MOST_NAMES


def _is_of_a_family(thing):
    """Whether it is one more calibrator, stopping rule or display."""
    is_rule = inspect.isclass(thing) and issubclass(thing, StoppingRule)
    is_display = getattr(thing, "__name__", "").endswith("Display")
    return is_rule or is_display or bool(getattr(thing, "keyword", None))


# -------------------------------------------------------------------------- docstrings


@each_part
def test_what_is_public_has_a_docstring_in_numpydoc(part):
    validate = pytest.importorskip("numpydoc.validate").validate
    settings = tomllib.loads((PROJECT / "pyproject.toml").read_text())
    checks = {"GL08", *settings["tool"]["numpydoc_validation"]["checks"]}  # GL08: there is none
    wrong = [
        f"{name}: {code} {text}"
        for name, thing in documented(part)
        for code, text in validate(name)["errors"]
        if code in checks - _not_asked_of(name, thing, part)
    ]
    assert not wrong, "\n".join(wrong)


def _not_asked_of(name, thing, part):
    if name in public(part):
        return {"PR01"} if _tells_its_fields(thing) else set()
    if not thing.__doc__ and inspect.getdoc(thing):  # that of the method which it overrides
        return {"GL08"}
    # a method may refer to where its parameters are explained, or say all in a line
    in_a_line = "\n" not in inspect.getdoc(thing) and _width(thing) <= 2
    return {"PR03", "PR04"} | ({"PR01", "RT01"} if in_a_line else set())


def _tells_its_fields(thing):
    """Whether a record, which nobody builds by hand, lists its fields as attributes."""
    if not is_dataclass(thing):
        return False
    text = inspect.getdoc(thing).partition("Attributes\n----------\n")[2]
    told = re.findall(r"^(\w[\w, ]*)(?: :|$)", text, re.MULTILINE)
    return {one.name for one in fields(thing)} <= {x for names in told for x in names.split(", ")}


PARAMETERS = re.compile(r"Parameters\n-+\n(.*?)(?:\n\n[A-Z][A-Za-z ]+\n-+\n|\Z)", re.DOTALL)
DEFAULT = re.compile(r"^(\w[\w, ]*) : [^\n]*?default=([^\n]+)$", re.MULTILINE)


def told_defaults(thing):
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


@each_part
def test_defaults_are_those_of_the_docstring(part):
    for name, thing in documented(part):
        parameters = inspect.signature(thing).parameters
        for parameter, told in told_defaults(thing):
            default = parameters[parameter].default if parameter in parameters else told
            if "factory" not in repr(default):  # of a field of a dataclass
                assert (default, type(default)) == (told, type(told)), f"{name}, {parameter}"


@each_part
def test_what_is_public_has_an_example_that_runs(part):
    # the examples themselves are run where they stand
    wrong = [name for name, thing in documented(part) if name in public(part) and not _shown(thing)]
    assert not wrong, "\n".join(wrong)


def _shown(thing):
    lines = (inspect.getdoc(thing) or "").partition("Examples\n--------\n")[2].splitlines()
    return any(line.startswith(">>> ") and "+SKIP" not in line for line in lines)


@each_part
def test_docstrings_of_helpers_are_brief(part):
    # one line; or a few, no more than they describe, and no numpydoc; an example is welcome
    paths = ROOT.glob("*.py") if part == TOP else (ROOT / part).rglob("*.py")
    wrong = [
        f"{path.relative_to(ROOT)}:{helper.lineno} {helper.name}"
        for path in sorted(paths)
        for helper in helpers(path)
        if not _is_brief(helper)
    ]
    assert not wrong, "\n".join(wrong)


def helpers(path):
    """Functions that are not public, methods of private classes, private methods."""
    names = {name.rpartition(".")[2] for name in everything_public()}
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef) and node.name not in names:
            yield node
        if isinstance(node, ast.ClassDef):
            for one in node.body:
                private = node.name.startswith("_") or getattr(one, "name", "").startswith("_")
                if isinstance(one, ast.FunctionDef) and private:
                    yield one


def _is_brief(function):
    text = (ast.get_docstring(function) or "").partition(">>> ")[0].rstrip()
    first, last = function.body[0], function.body[-1]
    told, done = len(text.splitlines()), last.end_lineno - first.end_lineno
    return told <= 1 or (told <= max(done, 3) and "\n---" not in text)


@each_part
def test_nothing_public_takes_too_many_parameters(part):
    names = {thing.__qualname__: _width(thing) - _most(thing) for _, thing in documented(part)}
    assert {name for name, excess in names.items() if excess > 0} == set(WIDE) & set(names)


def _width(thing):
    if inspect.isclass(thing) and issubclass(thing, Exception):
        return 0
    return len(set(inspect.signature(thing).parameters) - {"self", "cls"})


def _most(thing):
    if not inspect.isclass(thing):
        return MOST_OF_A_FUNCTION
    return MOST_OF_AN_ESTIMATOR if issubclass(thing, BaseEstimator) else 99
