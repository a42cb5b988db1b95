"""What of a table is asked about, or refused with the words that mend it."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from trajscore.core.errors import ArgumentError
from trajscore.core.frame import joined_ids, parse_numbers
from trajscore.core.meanings import bare_name, listed_outcomes
from trajscore.core.values import number_of, run_label
from trajscore.io.fields import (
    LAST,
    OF_ONE_RUN,
    ROWS,
    may_be_duration,
    several_runs,
    usual_names,
)

_OF_HEADERS = ("id", "step", "outcome", "confidence", "task")
_DECIMAL_COMMA = r"-?\d*,\d+"
_MEASURED = ("outcome", "confidence", "cost", "tokens")
_DATE = r"\d{1,2}[./-]\d{1,2}[./-]\d{2,4}\b"  # without the year first


def refuse_lines_above(head: list[str], sep: str) -> None:
    """Refuse a table with other lines above its column names."""
    for number, line in enumerate(head, start=1):
        names = [name.strip().strip('"') for name in line.split(sep)]
        if sum(bool(usual_names(part, names)) for part in _OF_HEADERS) > 1:
            if number > 1:
                raise ValueError(
                    f"the names of its columns seem to stand in line {number}; delete the lines "
                    f"above, tail -n +{number} FILE > table.csv, and give table.csv"
                )
            return


def refuse_shared_names(head: list[str], sep: str) -> None:
    """Refuse a table of which several columns have one name, as of two lines of names."""
    names = next(csv.reader(head[:1], delimiter=sep), [])
    counts = Counter(filter(None, names))
    name = max(counts, key=counts.__getitem__, default="")
    if counts[name] > 1:
        raise ValueError(
            f"{counts[name]} of its columns are named {name!r}; give each a name of its own. If "
            f"the names stand in two lines, write the table again, in pandas: df.columns = "
            f"['_'.join(map(str, names)) for names in df.columns]"
        )


def refuse_names_in_rows(frame: pd.DataFrame) -> None:
    """Refuse a table with a row for each value, whose name stands in a column."""
    for column in frame.select_dtypes(["object", "string"]):
        words = list({value for value in frame[column] if isinstance(value, str)})
        known = [name for part in _MEASURED for name in usual_names(part, words)]
        value = next(iter(frame.select_dtypes("number").columns[::-1]), None)
        index = [name for name in frame if name not in (column, value)]
        if (
            len(known) > 1
            and value is not None
            and index
            and frame[index].astype(str).duplicated().any()
        ):
            raise ValueError(
                f"column {column!r} holds names of values, such as {known[0]!r}; write a column "
                f"for each of them, in pandas: df = df.pivot_table(index={index!r}, "
                f"columns={column!r}, values={value!r}).reset_index()"
            )


def is_row_a_run(frame: pd.DataFrame) -> bool:
    """Tell a table in which no run or task has two rows, or that names none."""
    names = (*usual_names("id", frame)[:1], *usual_names("task", frame)[:1])[:1]
    return not names or not frame[names[0]].astype(str).duplicated().any()


def refuse_durations(frame: pd.DataFrame, steps: tuple[str, ...], ids: list[str]) -> None:
    """Ask about small numbers that fall within a run under a guessed name of times."""
    for step in steps:
        times = frame[step]
        if times.dtype.kind not in "iuf" or not may_be_duration(step, float(times.max())):
            return
        falls = (times.diff() < 0) & (frame[ids] == frame[ids].shift()).all(axis=1)
        if falls.any():
            row = int(np.argmax(falls))
            raise ArgumentError(
                f"column {step!r} goes from {times.iloc[row - 1]:g} to {times.iloc[row]:g} in rows "
                f"{row - 1} and {row}, so it may be how long each step took. If the rows are in "
                f"order, pass {{argument:step={ROWS}}}; if it is a clock, pass "
                f"{{argument:step={step}}}",
                "step",
            )


def refuse_several(frame: pd.DataFrame, ids: list[str], step: str, *, is_guessed: bool) -> None:
    """Ask about runs that have several models or trials, under a guessed id or one step twice."""
    names = _own_of_runs(frame, ids)
    if names and (is_guessed or (step in frame and frame.duplicated([*ids, step]).any())):
        run = _run_of_several(frame, ids, names[0])
        raise several_runs(names, run, ids, is_guessed=is_guessed)


def _own_of_runs(frame: pd.DataFrame, ids: Sequence[str]) -> list[str]:
    """Return the columns with one value in a run that have several under these ids."""
    names = [name for name in frame.columns if name in OF_ONE_RUN and name not in ids]
    return [name for name in names if _run_of_several(frame, ids, name)]


def _run_of_several(frame: pd.DataFrame, ids: Sequence[str], name: str) -> str:
    """Return the first run with several values in a column; "" without one."""
    try:
        counts = frame.groupby(list(ids), sort=False)[name].nunique()
    except TypeError:  # of lists, which are refused where they are read
        return ""
    run = counts.index[int(np.argmax(counts > 1))] if (counts > 1).any() else ()
    return "-".join(map(str, run if isinstance(run, tuple) else (run,)))


def _holds_objects(column: pd.Series) -> bool:
    is_object = column.dtype.kind == "O"
    return bool(is_object and column.map(lambda value: isinstance(value, (list, dict))).any())


def refuse_objects(frame: pd.DataFrame, outcome: str | None) -> None:
    """Refuse a column of outcomes that holds lists, such as those of several samples."""
    outcome = outcome or next(iter(usual_names("outcome", frame)), "")
    name = bare_name(str(outcome), frame.columns)
    if name in frame and _holds_objects(frame[name]):
        raise listed_outcomes(name)


def refuse_lists(
    frame: pd.DataFrame, ids: list[str], outcome: str, *, is_guessed: bool = True
) -> None:
    """Ask about a column of outcomes with a value a step."""
    name = bare_name(outcome, frame.columns)
    run = _run_of_several(frame, ids, name) if name in frame else ""
    if run:
        values = frame[name][joined_ids(frame, ids).astype(str) == run].unique().tolist()
        ask = (
            ""
            if is_guessed
            else f"if {{argument:id={ids[0]}}} names tasks, give the ids of runs instead, and "
            f"{{argument:group={ids[0]}}}; "
        )
        raise ArgumentError(
            f"column {name!r} has several values in run {run!r}, "
            f"{', '.join(map(run_label, values[:3]))} ...; {ask}if the last one counts, pass "
            f"{{argument:outcome={outcome}{LAST}}}; if their sum does, add a column, in pandas: "
            f"df['total'] = df.groupby({ids!r})[{name!r}].transform('sum'); otherwise correct the "
            f"rows, or name another column with {{argument}}",
            "outcome",
        )


def ids_of_tasks(frame: pd.DataFrame) -> str:
    """Return how to name tasks and trials as the id, where no step stands twice in them; or ""."""
    tasks, steps = list(usual_names("task", frame)[:1]), list(usual_names("step", frame)[:1])
    ids = [*tasks, *_own_of_runs(frame, tasks)] if tasks else []
    is_unique = ids and steps and not frame.duplicated([*ids, *steps]).any()
    return " ".join(f"{{argument:id={name}}}" for name in ids) if is_unique else ""


def refuse_words(frame: pd.DataFrame, scores: Sequence[str]) -> None:
    """Refuse scores that are words, and say how to make numbers of them."""
    for name in scores:
        column = frame[name].dropna()
        if column.dtype.kind != "O" or not len(column) or not parse_numbers(column).isna().all():
            continue
        column = column.astype(str)
        kind, map_ = "words", ".map({'low': 0.2, 'high': 0.9})"
        if column.str.fullmatch(_DECIMAL_COMMA).all():
            kind, map_ = "numbers with decimal commas", ".str.replace(',', '.').astype(float)"
        raise ArgumentError(
            f"column {name!r} holds {kind} such as {', '.join(map(repr, column.unique()[:3]))}. "
            f"Write a number from 0 to 1 for each of them, in pandas: df[{name!r}] = df[{name!r}]"
            f"{map_}; or name another column with {{argument}}",
            "scores",
        )


def refuse_codes(frame: pd.DataFrame, scores: Sequence[str]) -> None:
    """Ask about a -1 among fractions, which may stand for a missing value."""
    for name in scores:
        column = frame[name]
        n = int((column == -1).sum()) if column.dtype.kind == "f" else 0
        if n and column[column != -1].dropna().between(0, 1).all():
            raise ArgumentError(
                f"column {name!r} is -1 in {number_of(n, 'row')}, and between 0 and 1 in the "
                f"others. If -1 means missing, leave these cells empty, in pandas: df[{name!r}] = "
                f"df[{name!r}].replace(-1, np.nan); if it is a score, name the column with "
                f"{{argument}}",
                "scores",
            )


def refuse_codes_of(frame: pd.DataFrame, columns: Mapping[str, list[str]]) -> None:
    """Ask about a -1 among the fractions of columns of steps, behind the last one as anywhere."""
    for score, names in columns.items():
        numbers = frame[names].apply(parse_numbers).to_numpy()
        codes = numbers == -1
        if codes.any() and (codes | ((numbers >= 0) & (numbers <= 1)) | np.isnan(numbers)).all():
            raise ArgumentError(
                f"columns {names[0]} to {names[-1]} are -1 in {number_of(int(codes.sum()), 'cell')}"
                f", and between 0 and 1 in the others. If -1 means that a run has no such step, "
                f"leave these cells empty, in pandas: df = df.replace(dict.fromkeys({names!r}, "
                f"-1), np.nan); if it is a score, name {score!r} with {{argument:scores}}",
                "wide",
            )


def refuse_dates(column: pd.Series) -> None:
    """Ask about times in which day and month may be either way."""
    times = column.dropna().astype(str)
    odd = times[times.str.match(_DATE)]
    if len(odd):
        name = column.name
        raise ArgumentError(
            f"column {name!r} has {odd.iloc[0]!r}, in which day and month may be either way. Write "
            f"times as 2026-03-31, in pandas: df[{name!r}] = pd.to_datetime(df[{name!r}], "
            f"dayfirst=True) (False where the month comes first); or, if the rows are in order, "
            f"pass {{argument:step={ROWS}}}",
            "step",
        )
