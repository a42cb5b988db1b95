"""What of a table is asked about, or refused with the words that mend it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from trajscore.core.errors import ArgumentError
from trajscore.core.frame import joined_ids
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

_DATE = r"\d{1,2}[./-]\d{1,2}[./-]\d{2,4}\b"  # without the year first


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
