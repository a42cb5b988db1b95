"""Tables with one row a run: its steps are columns, or lists in a column."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from trajscore.core.errors import ArgumentError
from trajscore.core.values import is_number, number_of
from trajscore.io.fields import OF_STEPS, ROWS, Fields, usual_names

_RUN = "run"  # column of the numbers of rows, where a table has no ids
_OF_RUN = ("id", "outcome", "stop_reason")
_EDGES = "_-. ()[]#:"  # of the name of a predictor
_LIST = re.compile(r"\[.*\]", re.DOTALL)

Long = tuple[pd.DataFrame, Fields, tuple[str, ...]]


def as_long(frame: pd.DataFrame, fields: Fields) -> Long:
    """Return a table with one row a step, its names, and what was done, in sentences."""
    if fields.wide:
        return _of_columns(frame, fields)
    lists = _list_columns(frame) if fields.step is None and _has_row_a_run(frame, fields) else []
    if not lists:
        return frame, fields, ()
    return _of_lists(frame, fields, lists)


def _split(name: str) -> tuple[str, int | None]:
    """Return what a column begins with, and its number: "p_" and 1 of "p_1", "s*_p" of "s1_p"."""
    parts = re.fullmatch(r"(.*?)(\d+)(\D*)", name, re.DOTALL)
    if parts is None:
        return name, None
    return (f"{parts[1]}*{parts[3]}" if parts[3] else parts[1]), int(parts[2])


def _has_row_a_run(frame: pd.DataFrame, fields: Fields) -> bool:
    """Whether no run has two rows."""
    ids = list(fields.ids or usual_names("id", frame.columns)[:1])
    return set(ids) <= set(frame.columns) and not (ids and frame.duplicated(ids).any())


def _with_ids(frame: pd.DataFrame, fields: Fields) -> tuple[pd.DataFrame, Fields]:
    """Number the runs of a table that has no ids."""
    if fields.ids or usual_names("id", frame.columns):
        return frame, fields
    return frame.assign(**{_RUN: np.arange(len(frame))}), replace(fields, id=_RUN)


def _with_scores(fields: Fields, names: Sequence[str]) -> Fields:
    is_named = fields.scores or fields.risks or fields.scales or fields.confidence
    return fields if is_named else replace(fields, scores=tuple(names))


def _left_out(n_runs: int, where: str) -> list[str]:
    return [f"Left out: {number_of(n_runs, 'run')} without a value in {where}"] * (n_runs > 0)


# ------------------------------------------------------------------ a column a step


def _of_columns(frame: pd.DataFrame, fields: Fields) -> Long:
    if not _has_row_a_run(frame, fields):
        raise ArgumentError(
            "{argument} is for tables with one row a run, but run ids occur twice; leave it out",
            "wide",
        )
    columns = {prefix: _columns_of(frame, prefix) for prefix in fields.wide}
    n_steps = max(map(len, columns.values()))
    rest = frame.drop(columns=[name for names in columns.values() for name in names])
    rest, fields = _with_ids(rest, fields)
    blocks: dict[str, Any] = {}
    for prefix, names in columns.items():
        block = np.full((len(frame), n_steps), np.nan, dtype=object)
        block[:, : len(names)] = frame[names].to_numpy(dtype=object)
        blocks[_score_name(prefix, [*map(str, rest.columns), *blocks])] = block
    there = np.logical_or.reduce([pd.notna(block) for block in blocks.values()])
    lengths = np.where(there.any(axis=1), n_steps - np.argmax(there[:, ::-1], axis=1), 0)
    within = np.arange(n_steps) < lengths[:, None]
    values = {name: pd.Series(block[within]).infer_objects() for name, block in blocks.items()}
    long = rest.iloc[np.repeat(np.arange(len(frame)), lengths)].reset_index(drop=True)
    where = " and ".join(f"{names[0]} to {names[-1]}" for names in columns.values())
    remarks = [f"steps: columns {where}", *_left_out(int((lengths == 0).sum()), f"columns {where}")]
    if n := sum(int(column.isna().sum()) for column in values.values()):
        remarks.append(f"missing: {number_of(n, 'value')} before the last step of a run")
    fields = replace(_with_scores(fields, list(values)), step=ROWS, wide=())
    return long.assign(**values), fields, tuple(remarks)


def _columns_of(frame: pd.DataFrame, prefix: str) -> list[str]:
    """Return the columns of a prefix in the order of their numbers, of which none is missing."""
    split = {name: _split(str(name)) for name in frame.columns}
    numbered = {
        number: name
        for name, (start, number) in split.items()
        if start == prefix and number is not None
    }
    if not numbered:
        raise ArgumentError(
            f"{{argument}}: no columns are named {prefix!r} with numbers from 1 on", "wide"
        )
    order = sorted(numbered)
    for number in range(order[0], order[-1]):
        if number not in numbered:
            raise ArgumentError(
                f"{{argument}}: there are columns {numbered[order[0]]} and {numbered[order[-1]]}, "
                f"but none with the number {number}; add it, empty where runs have no value",
                "wide",
            )
    return [numbered[number] for number in order]


def _score_name(prefix: str, taken: Sequence[str]) -> str:
    """Return the name of a predictor whose columns begin with a prefix."""
    before, star, after = prefix.rpartition("*")
    name = after.strip(_EDGES)
    if not name:
        before = before if star else prefix
        name = re.sub(r"\W*(step|turn)$", "", before.strip(_EDGES), flags=re.IGNORECASE)
    return "confidence" if not name or name in taken or usual_names("step", [name]) else name


# ------------------------------------------------------------------ lists in a column


def _list_columns(frame: pd.DataFrame) -> list[str]:
    """Return the columns that hold lists of numbers, or of objects."""
    columns = frame.select_dtypes(["object", "string"])
    others = {name for part in OF_STEPS for name in usual_names(part, columns)}
    names = [str(name) for name in columns if name not in others and _holds_lists(frame[name])]
    # outcomes alone are those of several samples
    return names if {*names} - {*usual_names("outcome", names)} else []


def _holds_lists(column: pd.Series) -> bool:
    values = column.dropna()
    if not len(values) or not all(map(_is_list, values)):
        return False
    items = [item for value in values for item in _as_list(value) if item is not None]
    of_numbers = all(is_number(item) and not isinstance(item, bool) for item in items)
    return bool(items) and (of_numbers or all(isinstance(item, Mapping) for item in items))


def _is_list(value: Any) -> bool:
    is_text = isinstance(value, str) and _LIST.fullmatch(value) is not None
    return isinstance(value, (list, tuple, np.ndarray)) or is_text


def _as_list(value: Any) -> list[Any]:
    """Return a list, also of JSON; of a missing value an empty one."""
    if isinstance(value, str):
        try:
            value = json.loads(re.sub(r"\b(nan|None)\b", "null", value))
        except ValueError:
            return [value]
    return list(value) if _is_list(value) else []


def _of_lists(frame: pd.DataFrame, fields: Fields, names: list[str]) -> Long:
    frame, fields = _with_ids(frame, fields)
    asked = {*fields.scores, *fields.risks, *(name for name, _ in fields.scales)}
    names = [name for name in names if name in asked] or names
    lists = {name: frame[name].map(_as_list) for name in names}
    lengths = {name: column.map(len) for name, column in lists.items()}
    first = lengths[names[0]]
    if any(not own.equals(first) for own in lengths.values()):
        raise ArgumentError(
            f"columns {', '.join(map(repr, names))} hold lists of different lengths; with "
            f"{{argument}}, name those that hold a value for each step",
            "scores",
        )
    rest = frame.drop(columns=names)
    long = rest.iloc[np.repeat(np.arange(len(frame)), first)].reset_index(drop=True)
    steps: dict[str, Any] = {}
    for name, column in lists.items():
        items = [item for own in column for item in own]
        if any(isinstance(item, Mapping) for item in items):
            objects = [item if isinstance(item, Mapping) else {} for item in items]
            steps |= _columns_of_objects(name, pd.DataFrame(objects), rest)
        else:
            steps[name] = pd.Series(items)
    where = f"the list{'s' * (len(names) > 1)} {', '.join(names)}"
    remarks = [f"steps: {where}", *_left_out(int((first == 0).sum()), where)]
    fields = replace(fields, step=next(iter(usual_names("step", steps)), ROWS))
    return long.assign(**steps), fields, tuple(remarks)


def _columns_of_objects(name: str, steps: pd.DataFrame, rest: pd.DataFrame) -> dict[str, Any]:
    """Return the columns of steps; those that would pass for columns of the run are renamed."""
    hidden = {str(column) for column in rest.columns}
    for part in _OF_RUN:
        if usual_names(part, rest.columns):
            hidden |= set(usual_names(part, steps.columns))
    return {
        f"{name}.{column}" if column in hidden else str(column): steps[column]
        for column in steps.columns
    }
