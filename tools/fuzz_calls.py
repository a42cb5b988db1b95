"""Calls of public functions, recorded from examples, with one odd argument: for fuzz.py."""

from __future__ import annotations

import contextlib
import copy
import doctest
import inspect
import sys
import time
import warnings
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

import trajscore

if TYPE_CHECKING:
    from fuzz import Tally

ROOT = Path(trajscore.__file__).parent


# ------------------------------------------------------------------ recorded calls


class Call:
    """A call of a public function or method that an example makes."""

    def __init__(self, name: str, function: Callable[..., Any], args: Any, kwargs: Any) -> None:
        self.name, self.function = name, function
        self.bound = inspect.signature(function).bind(*args, **kwargs)
        self.seconds = 0.05

    def arguments(self) -> dict[str, Any]:
        """Return what it was given, by name, and defaults."""
        bound = copy.copy(self.bound)
        bound.arguments = dict(self.bound.arguments)
        bound.apply_defaults()
        return bound.arguments

    def again(self, arguments: dict[str, Any]) -> Any:
        """Make the call with other arguments."""
        bound = copy.copy(self.bound)
        bound.arguments = arguments
        return self.function(*bound.args, **bound.kwargs)


def recorded(only: str = "") -> list[Call]:
    """Record a call of each public function and method, from the examples."""
    calls: dict[str, Call] = {}
    for part in sorted(path.parent.name for path in ROOT.glob("*/__init__.py")):
        module = import_module(f"trajscore.{part}")
        for name in getattr(module, "__all__", []):
            thing = getattr(module, name)
            if name.startswith("fetch_") or part == "testing":  # the network; any estimator
                continue
            if inspect.isclass(thing) or inspect.isfunction(thing):
                _record(f"{part}.{name}", name, thing, module, calls)
    found = [call for name, call in calls.items() if only in name]
    for call in found:
        start = time.perf_counter()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                call.again(_copied(call.arguments()))
        except Exception:
            pass
        call.seconds = time.perf_counter() - start
    return found


def _record(label: str, name: str, thing: Any, module: Any, calls: dict[str, Call]) -> None:
    home = sys.modules[thing.__module__]
    if inspect.isclass(thing):
        undo = _watch_class(label, thing, calls)
    else:
        places = [one for one in (trajscore, module, home) if getattr(one, name, None) is thing]
        undo = [(place, name, thing) for place in places]
        for place in places:
            setattr(place, name, _recorder(label, thing, calls))
    space = dict(vars(home))
    for example in doctest.DocTestParser().get_examples(inspect.getdoc(thing) or ""):
        with (
            warnings.catch_warnings(),
            contextlib.suppress(Exception),  # examples show errors too
            contextlib.redirect_stdout(None),
        ):
            warnings.simplefilter("ignore")
            exec(compile(example.source, "<example>", "single"), space)
    for place, attribute, before in undo:
        if before is None:
            delattr(place, attribute)
        else:
            setattr(place, attribute, before)


def _watch_class(label: str, thing: Any, calls: dict[str, Call]) -> list[tuple[Any, str, Any]]:
    undo = []
    for method, function in inspect.getmembers(thing, inspect.isfunction):
        ours = function.__module__.startswith("trajscore")
        if ours and (method == "__init__" or not method.startswith("_")):
            undo.append((thing, method, thing.__dict__.get(method)))
            setattr(thing, method, _recorder(f"{label}.{method}", function, calls))
    for method, value in inspect.getmembers(thing, inspect.ismethod):  # class methods
        if not method.startswith("_") and value.__module__.startswith("trajscore"):
            name = f"{label}.{method}"
            given = ([[0.5, 0.6], [0.4]],)  # plausible for a maker of containers
            with contextlib.suppress(TypeError):
                calls.setdefault(name, Call(name, value, given, {}))
    return undo


def _recorder(label: str, function: Any, calls: dict[str, Call]) -> Callable[..., Any]:
    def record(*args: Any, **kwargs: Any) -> Any:
        if label not in calls:
            with contextlib.suppress(TypeError, ValueError):
                calls[label] = Call(label, function, _copied(args), _copied(kwargs))
        return function(*args, **kwargs)

    record.__name__, record.__doc__ = function.__name__, function.__doc__
    record.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    record.__module__ = function.__module__
    return record


def _copied(thing: Any) -> Any:
    try:
        return copy.deepcopy(thing)
    except Exception:
        return thing


# ------------------------------------------------------------------ odd values


def odd_values() -> list[Any]:
    """Values that no argument is meant to have, and some that it may."""
    return [
        *(None, True, False, 0, 1, -1, 2, 0.0, -0.5, 0.5, 1.5, 1e308, 5e-324, 10**400, 2**63),
        *(float("nan"), float("inf"), -float("inf"), 1j, "", "a", "log", "nan", "\ud800", "\x00"),
        *(b"x", [], [[]], [[], []], {}, {"a": 1}, {"a": [[0.5]]}, (), set(), [None], ["a"]),
        *([0.5], [[0.5], [0.4]], [[0.5, 0.6], [0.4]], [[0.5], [None]], [[float("nan")]], [0, 1]),
        *([-1, -1], [0, 1, 1], [[1, 2], [3, 4]], [[[0.5]]], range(3)),
        np.array(3), np.array([]), np.empty((0, 0)), np.array([1, 2], dtype="M8[D]"),
        np.array(["a", None], dtype=object), np.ones((2, 3)), np.ones((2, 3, 4)), np.float32(0.5),
        np.ma.array([0.5, 0.6], mask=[0, 1]), np.arange(6) * 1j, np.int8(-1), np.bool_(True),
        pd.Series([0.5, 0.4]), pd.Series([], dtype=float), pd.DataFrame({"a": [0.5, 0.4]}),
        pd.DataFrame(), pd.NA, pd.NaT, pd.Timestamp(0), pd.Categorical(["a", "b"]),
        trajscore.TrajectoryArray.from_list([[0.5, 0.6], [0.4]]),
        trajscore.TrajectoryArray.from_list([[5.0], [-3.0]], ids=["a", "b"]),
        trajscore.TrajectoryArray.from_list([]),
    ]  # fmt: skip


def changed(value: Any, rng: np.random.Generator) -> Any:
    """A value like the one that was given, with a fault in it."""
    if isinstance(value, trajscore.TrajectoryArray):
        return _changed_runs(value, rng)
    if isinstance(value, (pd.DataFrame, pd.Series)) and len(value):
        return [
            lambda: value.iloc[:0],
            lambda: value.iloc[1:],
            lambda: pd.concat([value, value]),
            lambda: value.sample(frac=1, random_state=int(rng.integers(9))),
            lambda: value.mask(rng.random(value.shape) < 0.2),
            lambda: value.astype(str),
            lambda: value.set_axis(range(len(value), 0, -1)),
        ][rng.integers(7)]()
    if isinstance(value, (list, tuple, np.ndarray)) and len(value):
        return _changed_list(value, rng)
    if isinstance(value, (bool, str, bytes, dict)) or value is None:
        return rng.choice([None, "", "x", "log", 3], replace=True)
    if isinstance(value, (int, float, np.number)):
        return [-value, value + 1, value * 1e9, value / 3, float(value), str(value)][
            rng.integers(6)
        ]
    return None


def _changed_runs(X: Any, rng: np.random.Generator) -> Any:
    cells = np.array(X.cells)
    at = tuple(rng.integers(n) for n in cells.shape) if cells.size else ()
    kind = rng.integers(7)
    if kind == 0:
        return X[rng.permutation(len(X))]
    if kind == 1:
        return X[: len(X) // 2]
    if kind == 2:
        return X.padded()
    if kind == 3 and cells.size:
        cells[at] = np.nan
        return X.with_cells(cells)
    if kind == 4:
        return X.with_cells(cells * 100)
    if kind == 5:
        return X.with_cells(np.full(cells.shape, 0.5))
    return trajscore.TrajectoryArray.concat([X, X])


def _changed_list(value: Any, rng: np.random.Generator) -> Any:
    odd = [None, float("nan"), float("inf"), -1, 2, "a", [], 10**400, True, 0.5]
    kind = rng.integers(6)
    items = list(value)
    if kind == 0:
        return items[:-1]
    if kind == 1:
        return items + items
    if kind == 2:
        return np.asarray(value, dtype=object)
    if kind == 3:
        return [items]
    items[rng.integers(len(items))] = odd[rng.integers(len(odd))]
    return items


def fuzz_calls(tally: Tally, n: int, rng: np.random.Generator, only: str) -> None:
    """Change one argument of recorded calls, slow ones more seldom."""
    calls, odd = recorded(only), odd_values()
    print(f"{len(calls)} public functions and methods", flush=True)
    chances = 1 / np.maximum([call.seconds for call in calls], 0.01)
    for k in rng.choice(len(calls), n, p=chances / chances.sum()):
        call = calls[k]
        arguments = call.arguments()
        parameters = inspect.signature(call.function).parameters
        keywords = [one for one in parameters.values() if one.kind is one.VAR_KEYWORD]
        beside = {"self", "ax", *(one.name for one in keywords)}  # axes, options of matplotlib
        names = [name for name in arguments if name not in beside]
        if not names:
            continue
        name = names[rng.integers(len(names))]
        given = _copied(arguments)
        try:
            given[name] = (
                changed(given[name], rng) if rng.random() < 0.5 else odd[rng.integers(len(odd))]
            )
        except (ValueError, TypeError, IndexError):
            continue
        if parameters[name].kind is inspect.Parameter.VAR_POSITIONAL:
            given[name] = (odd[rng.integers(len(odd))],)
        shown = repr(given[name]) if not isinstance(given[name], str) else ascii(given[name])
        told = f"{name}={' '.join(shown.split())[:90]}"
        tally.run(call.name, lambda call=call, given=given: call.again(given), told)
