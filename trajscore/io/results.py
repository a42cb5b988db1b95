"""Rows in JSON: items of a list, lines, or the results that an evaluation tool nests in a file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from trajscore.core.values import is_number
from trajscore.io._vocabulary import as_fields, as_list
from trajscore.io.fields import by_keys, dig, named_values, steps_field, usual_names, with_key
from trajscore.io.files import Broken, LogFile

_DEPTH = 3
# Lists of measures of one run, each with its name.
_MEASURES = ("stats", "metrics", "metricsdata", "metrics_data", "scores", "evaluations")
_AVERAGES = {"results", "configs"}  # of lm-evaluation-harness

NO_STEPS = (
    "{} holds outcomes of runs, and no steps. Compare it with another such file by trajscore "
    "compare or check, or pass it with --outcomes beside a log"
)

Row = dict[str, Any]


class Result(Row):
    """A record of a run that has its outcome and no steps."""


class AveragesError(ValueError):
    """A file that holds no outcomes of runs."""


def json_rows(path: Path, max_size: int | None = None) -> Iterator[Row]:
    """Yield the objects of a list in JSON, of JSON lines, or of the results within an object."""
    fields: Row = {}
    for key, index, row in LogFile(path, max_size=max_size).items():
        if index is None:
            fields[str(key)] = row
        elif isinstance(row, Broken):
            raise ValueError(row)
        elif not isinstance(row, dict):
            raise ValueError(f"row {index} is {type(row).__name__}, not an object")
        else:
            yield with_measures(row)
    if fields:
        yield from _results(fields)


def is_results(path: Path, max_size: int | None = None) -> bool:
    """Tell a file of a record a run with its outcome, and no steps or scores, from other JSON."""
    try:
        row = next(json_rows(path, max_size), {})
    except AveragesError as error:
        raise AveragesError(f"{path}: {error}") from error
    except ValueError:
        return False
    steps = dig(row, steps_field(row) or "")
    first = steps[0] if isinstance(steps, list) else None
    is_scored = usual_names("confidence", first) if isinstance(first, Mapping) else is_number(first)
    is_step = _has_steps(row) and usual_names("confidence", row)
    return is_result(row) or bool(usual_names("outcome", row) and (is_scored or is_step))


def outcomes_only(path: Path, max_size: int | None = None) -> str:
    """Say that a file holds outcomes of runs without steps, and what takes it; "" of another."""
    try:
        row = next(json_rows(path, max_size), {})
    except ValueError:
        return ""
    return NO_STEPS.format(path) if is_result(row) else ""


def is_result(row: Mapping[str, Any]) -> bool:
    """Tell the record of a run that has its outcome, and no steps, from other rows."""
    parts = ("outcome", "task", "step", "confidence")
    outcome, task, step, confidence = (usual_names(part, row) for part in parts)
    if any(isinstance(value, Mapping) for value in row.values()):
        confidence = tuple(name for name in confidence if name != "score")  # of the answer
    lists = any(isinstance(next(iter(as_list(value)), None), dict) for value in row.values())
    is_plain = outcome and task and not (step or confidence or lists or steps_field(row))
    return isinstance(row, Result) or bool(is_plain)


def with_measures(row: Mapping[str, Any]) -> Row:
    """Return a row with a column for each measure that it lists by name.

    >>> with_measures({"id": 1, "stats": [{"name": {"name": "exact_match"}, "mean": 1.0}]})
    {'id': 1, 'exact_match': 1.0}
    """
    listed = {name: named_values(row[name]) for name in row if str(name).lower() in _MEASURES}
    listed = {name: measures for name, measures in listed.items() if measures}
    if not listed:
        return dict(row)
    flat = Result({name: value for name, value in row.items() if name not in listed})
    for name, measures in listed.items():
        flat |= {n if n not in row else f"{name}.{n}": v for n, v in measures.items()}
    return Result(flat)


def _results(fields: Mapping[str, Any]) -> list[Row]:
    """Return the records with an outcome each that an object lists, or its only list of objects."""
    if fields.keys() >= _AVERAGES and not any(isinstance(v, list) for v in fields.values()):
        raise AveragesError(
            "it holds averages, not the outcome of each run; give the file with one record a "
            "task, such as samples_*.jsonl of lm-evaluation-harness (--log_samples)"
        )
    if rows := _of_pandas(fields) or _by_id(fields):
        return rows
    lists = list(_lists(fields, _DEPTH))
    with_outcome = [rows for rows in lists if usual_names("outcome", with_measures(rows[0]))]
    if with_outcome:
        lengths = [len(rows) for rows in with_outcome]
        longest = with_outcome[lengths.index(max(lengths))]
        rows = list(map(with_measures, longest))
        return rows if _has_steps(rows[0]) else list(map(Result, rows))
    if len(lists) == 1:
        return list(map(with_measures, lists[0]))
    raise ValueError(
        "it holds a single object; write a list of rows, as pandas does with orient='records', or "
        "one row a line"
    )


def _has_steps(row: Row) -> bool:
    return bool(steps_field(row) or usual_names("step", row))


def _by_id(fields: Mapping[str, Any]) -> list[Row]:
    """Return outcomes that an object holds by the ids of runs, or as the ids of those resolved."""
    resolved = fields.get("resolved_ids")
    if isinstance(resolved, list):  # a report of SWE-bench
        lists = (value for name, value in fields.items() if name.endswith("_ids"))
        names = dict.fromkeys(str(run) for runs in lists if isinstance(runs, list) for run in runs)
        there = set(map(str, resolved))
        return [Result(id=name, resolved=name in there) for name in names]
    if all(isinstance(value, bool) for value in fields.values()):
        return [Result(id=name, outcome=value) for name, value in fields.items()]
    rows = by_keys(fields, lambda value: bool(usual_names("outcome", as_fields(value))))
    flat = [with_key(path, with_measures(row)) for path, row in rows]
    if flat and _has_steps(flat[0]):
        return flat
    return [] if any(len(path) > 1 for path, _ in rows) else list(map(Result, flat))


def _of_pandas(fields: Mapping[str, Any]) -> list[Row]:
    """Return the rows of a table as pandas writes it with orient="split" or "columns"."""
    names, data = fields.get("columns"), fields.get("data")
    if isinstance(names, list) and isinstance(data, list) and all(map(as_list, data)):
        return [dict(zip(map(str, names), row, strict=True)) for row in data]
    lists = list(map(as_list, fields.values()))
    if usual_names("outcome", fields) and lists[0] and len(set(map(len, lists))) == 1:
        return [dict(zip(map(str, fields), row, strict=True)) for row in zip(*lists, strict=True)]
    columns = list(map(as_fields, fields.values()))
    if not usual_names("outcome", fields) or any(c.keys() != columns[0].keys() for c in columns):
        return []
    return [{name: column[k] for name, column in fields.items()} for k in columns[0]]


def _lists(fields: Mapping[str, Any], depth: int) -> Iterator[list[Row]]:
    """Yield the lists of objects within an object."""
    for value in fields.values():
        if isinstance(value, list) and value and all(isinstance(v, dict) for v in value):
            yield value
        elif isinstance(value, Mapping) and depth > 1:
            yield from _lists(value, depth - 1)
