"""Which column of a table holds what: as the user names it, or by a usual name."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from trajscore.core.errors import ArgumentError
from trajscore.core.frame import joined_ids, step_places
from trajscore.core.outcomes import bare_name, propose
from trajscore.core.stops import names_among, stop_columns
from trajscore.core.ties import OrdinaryRange
from trajscore.core.values import (
    as_numbers,
    first_true,
    number_of,
    outside_unit,
    parse_numbers,
    run_label,
    unknown_name,
)
from trajscore.io.fields import (
    OF_ONE_RUN,
    OUTCOMES_IN_WORDS,
    ROWS,
    SCORES,
    USUAL,
    Fields,
    note_on_trials,
    several_runs,
    usual_names,
)
from trajscore.io.unread import save_instead
from trajscore.io.vocabulary import role_of
from trajscore.io.wide_tables import INDEX, as_lists, usual_ids

PARTS = {"id": "run id", "step": "step", "outcome": "outcome", "stop_reason": "stop reason"}
"""The parts of a table, and their names in sentences."""

TABLE_STEP = "step of the table"
"""The column of the numbers that steps had before rows of others than the agent were left out."""

_ONE_OF = ("id", "outcome")  # of which a table may have one column with a usual name
_MOST_NAMED = 10


# ------------------------------------------------------------------ columns


def choose_columns(
    frame: pd.DataFrame, fields: Fields, there: Sequence[Any] | None = None
) -> tuple[Fields, dict[str, tuple[str, ...]]]:
    """Return the columns of all parts, and those of them that nobody named.

    Errors list the columns that were `there` before others were added.

    >>> frame = pd.DataFrame({"run_id": [1], "step": [1], "confidence": [0.5], "solved": [1]})
    >>> choose_columns(frame, Fields(id="run_id"))[1]
    {'step': ('step',), 'outcome': ('solved',), 'scores': ('confidence',)}
    """
    if there is None:
        there = list(frame)
    _check_names(fields, frame, there)
    usual = {part: usual_column(frame, part) for part in PARTS if not getattr(fields, part)}
    missing = [part for part, name in usual.items() if name is None and part != "stop_reason"]
    if missing:
        raise _missing_parts(missing, frame, there)
    chosen = replace(fields, **usual)
    guessed: dict[str, tuple[str, ...]] = {
        part: (str(name),) for part, name in usual.items() if name is not None
    }
    outcome = bare_name(str(chosen.outcome), frame)
    for name in (*chosen.ids, outcome):
        if holds_objects(frame[name]):
            raise ValueError(
                f"column {name!r} holds a list or an object; give one value a run, in pandas "
                f"df.explode([{name!r}, ...]) with the other lists"
            )
    if "id" in guessed:
        _refuse_several_runs(frame, chosen.ids)
    scores = fields.predictors
    if not replace(fields, scales=()).predictors:  # a scale chooses none
        taken = {*chosen.ids, chosen.step, outcome, chosen.stop_reason, fields.label, *scores}
        score_names = names_among(SCORES, [name for name in frame if name not in taken])
        guessed["scores"] = tuple(name for name in frame if name in score_names)
        scores += guessed["scores"]
        if not scores:
            raise _no_scores(frame, chosen)
    return replace(chosen, scores=scores), guessed


def _check_names(fields: Fields, frame: pd.DataFrame, there: Sequence[Any]) -> None:
    """Refuse a name that no column has."""
    named = vars(fields) | {"id": fields.ids, "scores": fields.predictors}
    named["outcome"] = fields.outcome and bare_name(fields.outcome, frame)
    for part in (*PARTS, "risks", "scales", "scores", "group", "first_error", "step_label"):
        names = named[part] or ()
        if part == "scales":
            names = dict(names)
        for name in (names,) if isinstance(names, str) else names:
            if name not in frame and (part, name) != ("step", ROWS):
                raise ArgumentError(f"{{argument}}: {unknown_name('column', name, there)}", part)


def usual_column(frame: pd.DataFrame, part: str) -> Any:
    """Return the column with a usual name of a part; None without one."""
    finders: dict[str, Any] = {"id": usual_ids, "stop_reason": stop_columns}
    names = finders[part](frame) if part in finders else usual_names(part, frame)
    if part == "outcome" and not names:
        names = [name for name in names_among(OUTCOMES_IN_WORDS, frame) if _are_words(frame[name])]
    if len(names) > 1 and part in _ONE_OF:
        raise ArgumentError(
            f"columns {' and '.join(map(repr, names))} may each be the {PARTS[part]}; name one "
            f"with {{argument}}",
            part,
        )
    return next(iter(names), None)


def _are_words(column: pd.Series) -> bool:
    """Tell words that usually mean an outcome, such as PASS and FAIL, from all else."""
    words = column.dropna()
    is_text = pd.api.types.infer_dtype(words) == "string"
    return is_text and "?" not in propose(words.unique()).values()


def _missing_parts(parts: list[str], frame: pd.DataFrame, there: Sequence[Any]) -> ArgumentError:
    """Say which parts no column has, and how to name their columns."""
    hints = {
        "step": f" ({ROWS} for their order; {{argument:wide}} where a row is a run)",
        "outcome": " (or a table of them: {argument:outcomes})",
    }
    lists = [str(name) for name in frame if as_lists(frame[name]) is not None]
    if lists and "step" in parts:
        return ArgumentError(
            f"no column has a usual name of the step, and lists of numbers are in: "
            f"{_listed(lists)}; if a list holds the score of each step, pass {{argument}}",
            "scores",
            lists[0],
        )
    if instead := save_instead(there, 2):  # one name is that of a column of any table
        return ArgumentError(f"the rows are neither steps nor runs; {instead}", parts[0])
    names = " and ".join(PARTS[part] for part in parts)
    options = ", ".join(f"{{argument:{part}}}{hints.get(part, '')}" for part in parts)
    return ArgumentError(
        f"no column has a usual name of the {names}; name it with {options}; there are: "
        f"{_listed(there)}",
        parts[0],
    )


def _no_scores(frame: pd.DataFrame, chosen: Fields) -> ArgumentError:
    _, others = unused_columns(frame, chosen)
    there = "no other has numbers"
    if others:
        there = f"columns of numbers are: {_listed(others)}"
    return ArgumentError(
        f"no column has a usual name of a score ({', '.join(SCORES[:3])} ...); name it with "
        f"{{argument}}; {there}",
        "scores",
    )


def _listed(names: Sequence[Any]) -> str:
    more = ""
    if len(names) > _MOST_NAMED:
        more = f" and {len(names) - _MOST_NAMED} more"
    return ", ".join(map(str, names[:_MOST_NAMED])) + more


def holds_objects(column: pd.Series) -> bool:
    """Tell a column with lists or objects."""
    return column.dtype == object and not column.map(pd.api.types.is_hashable).all()


def _refuse_several_runs(frame: pd.DataFrame, ids: Sequence[str]) -> None:
    """Ask about runs that have several models or trials, where nobody named the id."""
    for name in frame:
        if name not in OF_ONE_RUN or name in ids or holds_objects(frame[name]):
            continue
        if frame[name].dtype.kind == "f" and (frame[name] % 1 > 0).any():  # a signal of that name
            continue
        counts = frame.groupby(list(ids), sort=False)[name].nunique()
        if counts.max() > 1:
            raise several_runs(name, str((counts > 1).idxmax()), ids)


def unused_columns(frame: pd.DataFrame, chosen: Fields) -> tuple[list[Any], list[Any]]:
    """Return the columns that have neither a part nor a usual name: all, and those of numbers."""
    outcome = bare_name(chosen.outcome or "", frame)
    taken = {*chosen.ids, chosen.step, outcome, chosen.stop_reason, chosen.group, chosen.label}
    taken |= {name for part in USUAL for name in usual_names(part, frame)}
    taken |= {*chosen.scores, *OF_ONE_RUN, INDEX}
    unused = [name for name in frame if name not in taken]
    return unused, list(frame[unused].select_dtypes("number").columns)


def notes_on_trials(frame: pd.DataFrame, ids: Sequence[str]) -> tuple[str, ...]:
    """Say how many runs of a table have the task and the trial of another."""
    names = [name for part in ("task", "trial") for name in usual_names(part, frame)[:1]]
    if len(names) < 2:
        return ()
    rows = frame[list({*ids, *names})].dropna().astype(str).drop_duplicates()
    return tuple(note_on_trials(Counter(rows[names].itertuples(index=False, name=None))))


def beyond_unit(frame: pd.DataFrame, names: Sequence[str]) -> list[str]:
    """Return the columns of numbers up to 100, but for outliers: they may be shares of a scale."""
    numbers = frame[list(names)].select_dtypes("number")
    return [
        str(name)
        for name, column in numbers.items()
        if OrdinaryRange.of(as_numbers(column, str(name))).may_be_percent
    ]


# ------------------------------------------------------------------ rows


def agent_rows(frame: pd.DataFrame, chosen: Fields) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Leave out rows of the user, of tools and of the system, where a column says whose each is.

    A run without a row of the agent keeps one, without step and scores. Labels of first wrong steps
    go with their rows.
    """
    taken = {*chosen.ids, chosen.step, chosen.outcome, *chosen.scores}
    for name in usual_names("actor", frame)[:1]:
        whose = frame[name].map(role_of)
        others = whose.isin(("user", "tool", "system"))
        if name in taken or not others.any() or not (whose == "agent").any():
            break
        keys = [frame[key] for key in chosen.ids]
        numbers = frame.groupby(keys).cumcount() + 1
        if chosen.step is not None:  # steps are counted anew
            steps = frame[chosen.step].dropna()
            places, are_times = step_places(steps)
            numbers = pd.Series(places, steps.index) + 1 - guess_first_step(frame, chosen)
            if are_times:
                numbers = numbers.groupby(keys).rank(method="dense")
        numbers = numbers.reindex(frame.index).mask(others)
        counted = numbers.groupby(keys).rank(method="dense")
        frame = frame.assign(**{TABLE_STEP: numbers})
        if chosen.step is not None:
            frame[chosen.step] = frame[chosen.step].mask(others) if are_times else counted
        left_out = f"{int(others.sum())} of {number_of(len(frame), 'row')} left out: by column"
        notes = [f"{left_out} {name!r} they are not the agent's; a report counts the others from 1"]
        if chosen.first_error is not None:
            first = parse_numbers(frame[chosen.first_error])
            step = counted.where(numbers == first).groupby(keys).transform("min")
            frame[chosen.first_error] = frame[chosen.first_error].mask(first > 0, step)
            ids = joined_ids(frame, chosen.ids)[(first > 0) & step.isna()]
            notes += [
                f"{number_of(ids.nunique(), 'run')} taken as not labelled: the first wrong step is "
                f"not the agent's, such as step {first[row]:g} of run {ids[row]!r}"
                for row in ids.index[:1]
            ]
        unstarted = others.groupby(keys).transform("all")
        unstarted &= ~unstarted.groupby(keys).cumcount().astype(bool)  # the first row of each
        if n := int(unstarted.sum()):
            frame = frame.assign(**{name: frame[name].mask(unstarted) for name in chosen.scores})
            notes.append(
                f"{number_of(n, 'run')} without a row of the agent, counted in success rates alone"
            )
        return frame[~others | unstarted], tuple(notes)
    return frame, ()


def with_scales(frame: pd.DataFrame, fields: Fields) -> pd.DataFrame:
    """Divide predictors by their scales; make risks p into 1 - p, or -p beyond [0, 1]."""
    changed: dict[str, pd.Series] = {}
    for name, scale in fields.scales:
        column = frame[name]
        if column.dtype.kind in "OUT":  # "85%" is that share of the scale
            texts = column.astype(str)
            shares = parse_numbers(texts.str.rstrip(" %")) / 100
            column = column.astype(object).mask(texts.str.endswith("%"), shares * scale)
        changed[name] = parse_numbers(column) / scale
        row = first_true(outside_unit(changed[name]))
        if row is not None:
            raise ArgumentError(
                f"row {row}: column {name!r} has {run_label(frame[name].iloc[row])}, outside 0 to "
                f"{scale:g}; correct it, or give the value that means certainty with {{argument}}",
                "scales",
            )
    unscaled = frame[[name for name in fields.scores if name not in changed]]
    for name, cells in unscaled.select_dtypes(["object", "string", "category"]).items():
        shares = cells.astype(str).str.endswith("%")
        row = first_true(shares)
        if row is not None:
            top = 1 + 99 * (shares | cells.isna()).all()  # else shares stand beside numbers
            raise ArgumentError(
                f"row {row}: column {name!r} has {str(cells.iloc[row])!r}, not a number; "
                f"pass {{argument}}",
                "scales",
                f"{name}={top}",
            )
    for name in fields.risks:
        risk = changed.get(name, parse_numbers(frame[name]))
        changed[name] = -risk if outside_unit(risk).any() else 1 - risk
    for name, numbers in changed.items():
        if (numbers.isna() & frame[name].notna()).any():  # the container names run and step
            changed[name] = numbers.astype(object).where(numbers.notna(), frame[name])
    if changed:
        return frame.assign(**changed)
    return frame


def guess_first_step(frame: pd.DataFrame, fields: Fields) -> int:
    """Return 0 if every run starts at step 0, else 1."""
    if frame.empty or fields.step not in frame:
        return 1
    firsts = parse_numbers(frame[fields.step]).groupby([frame[name] for name in fields.ids]).min()
    return int((firsts.dropna() != 0).any())
