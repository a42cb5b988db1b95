"""Tables with one row a run: its steps are columns, or lists in a column."""

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd

from trajscore.core.errors import ArgumentError
from trajscore.core.stops import names_among
from trajscore.core.values import is_number, number_of
from trajscore.io.fields import ROWS, SCORES, Fields, usual_names
from trajscore.io.vocabulary import parsed

_RUN = "run"  # column of the numbers of rows, where a table has no ids
INDEX = "Unnamed: 0"
"""What an index without a name is read as, from a CSV that pandas wrote."""
_EDGES = "_-. ()[]#:"  # of the name of a predictor


def usual_ids(frame: pd.DataFrame) -> tuple[Any, ...]:
    """Return the columns with usual names of ids, or else an index of texts without a name."""
    index = frame.filter([INDEX]).select_dtypes(exclude="number")
    return usual_names("id", frame) or tuple(index)


def has_row_per_run(frame: pd.DataFrame, ids: Sequence[str]) -> bool:
    """Tell a table without columns of ids, or in which no run has two rows."""
    return {*ids} <= {*frame} and not frame[list(ids)].astype(str).duplicated().any()


def as_long(frame: pd.DataFrame, fields: Fields) -> tuple[pd.DataFrame, Fields, tuple[str, ...]]:
    """Return a table with one row a step, its names, and what was done, in sentences."""
    ids = list(fields.ids or usual_ids(frame)[:1])
    is_wide = has_row_per_run(frame, ids)
    if fields.wide and not is_wide:
        raise ArgumentError(
            "{argument} is for tables with one row a run, but run ids occur twice; leave it out",
            "wide",
        )
    if not fields.wide and (fields.step is not None or not is_wide):
        return frame, fields, ()
    names: tuple[str, ...] = ()
    where = ""
    if fields.wide:
        frame, names, where = _with_lists(frame, fields.wide)
        fields = replace(fields, scores=fields.scores if fields.predictors else names, wide=())
    lists = {str(name): column for name in frame if (column := as_lists(frame[name])) is not None}
    lists |= {name: frame[name] for name in names}
    usual = names_among(SCORES, [*lists])
    scores = names or [name for name in fields.predictors or usual if name in lists]
    if not scores:
        return frame, fields, ()
    lengths = lists[scores[0]].map(len)
    columns = {name: column for name, column in lists.items() if column.map(len).equals(lengths)}
    if len({*scores} & {*columns}) < len(scores):
        raise ArgumentError(
            f"columns {', '.join(map(repr, scores))} hold lists of different lengths; with "
            f"{{argument}}, name those that hold a value for each step",
            "scores",
        )
    if not ids:  # runs without ids are numbered
        frame = frame.assign(**{_RUN: np.arange(len(frame))})
        fields = replace(fields, id=_RUN)
    rows = np.repeat(np.arange(len(frame)), lengths)
    long = frame.drop(columns=list(columns)).iloc[rows].reset_index(drop=True)
    steps = {name: pd.Series([*chain(*column)]) for name, column in columns.items()}
    where = where or f"the list{'s' * (len(columns) > 1)} {', '.join(columns)}"
    remarks = [f"steps: {where}"]
    if others := [name for name in lists if name not in columns]:
        remarks.append(f"lists of other lengths not used: {', '.join(others)}")
    if n := int((lengths == 0).sum()):
        remarks.append(f"Left out: {number_of(n, 'run')} without a value in {where}")
    fields = replace(fields, step=next(iter(usual_names("step", steps)), ROWS))
    return long.assign(**steps), fields, tuple(remarks)


def _with_lists(
    frame: pd.DataFrame, prefixes: Sequence[str]
) -> tuple[pd.DataFrame, tuple[str, ...], str]:
    """Put columns of steps together as lists, up to the last value that a run has in any."""
    columns = {prefix: _columns_of(frame, prefix) for prefix in prefixes}
    n_steps = max(map(len, columns.values()))
    rest = frame.drop(columns=[*chain(*columns.values())])
    blocks: dict[str, Any] = {}
    for prefix, names in columns.items():
        block = np.full((len(frame), n_steps), np.nan, dtype=object)
        block[:, : len(names)] = frame[names].to_numpy(dtype=object)
        before, _, after = prefix.partition("*")
        name = after.strip(_EDGES) or before.strip(_EDGES)
        taken = {"", *rest, *blocks, *usual_names("step", [name])}
        blocks["confidence" if name in taken else name] = block
    there = np.logical_or.reduce([pd.notna(block) for block in blocks.values()])
    lengths = (there * np.arange(1, n_steps + 1)).max(axis=1, initial=0)
    lists = {
        name: [list(row[:length]) for row, length in zip(block, lengths, strict=True)]
        for name, block in blocks.items()
    }
    where = " and ".join(f"{names[0]} to {names[-1]}" for names in columns.values())
    return rest.assign(**lists), tuple(blocks), f"columns {where}"


def _columns_of(frame: pd.DataFrame, prefix: str) -> list[str]:
    """Return the columns of a prefix in the order of their numbers, of which none is missing."""
    before, star, after = prefix.partition("*")
    pattern = re.compile(rf"{re.escape(before)}(\d+){re.escape(after if star else '')}")
    matches = {name: pattern.fullmatch(str(name)) for name in frame}
    numbered = {int(match[1]): name for name, match in matches.items() if match}
    if not numbered:
        raise ArgumentError(
            f"{{argument}}: no columns are named {prefix!r} with numbers from 1 on", "wide"
        )
    order = sorted(numbered)
    if missing := {*range(order[0], order[-1])} - {*order}:
        raise ArgumentError(
            f"{{argument}}: there are columns {numbered[order[0]]} and {numbered[order[-1]]}, but "
            f"none with the number {min(missing)}; add it, empty where runs have no value",
            "wide",
        )
    return [numbered[number] for number in order]


def as_lists(column: pd.Series) -> pd.Series | None:
    """Return a column of lists of numbers, also as JSON text; None of anything else."""
    if column.dtype.kind not in "OUT":
        return None
    parsed = column.map(_as_list)
    lists = parsed.map(lambda items_of_row: items_of_row or [])
    items = [*chain(*lists)]
    is_list = column.isna() | parsed.notna()
    if not items or not is_list.all() or not all(item is None or is_number(item) for item in items):
        return None
    return lists


def _as_list(value: Any) -> list[Any] | None:
    if isinstance(value, str) and value.startswith("["):
        value = parsed(re.sub(r"\b(nan|None)\b", "null", value))  # as pandas writes them
    if isinstance(value, (list, tuple, np.ndarray)):
        return list(value)
    return None
