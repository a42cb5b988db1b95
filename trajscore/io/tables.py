"""Reading a table, and choosing which column holds what; the usual names are in `fields`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from trajscore.core.errors import ArgumentError
from trajscore.core.frame import parse_numbers
from trajscore.core.meanings import (
    bare_name,
    outcome_candidates,
    sounds_bad,
    words_of,
)
from trajscore.core.optional import optional
from trajscore.core.stops import stop_columns
from trajscore.core.type_aliases import FloatArray
from trajscore.core.values import (
    check_file,
    number_of,
    outside_unit,
    parse_number,
    run_label,
    to_unit,
    unknown_name,
)
from trajscore.io._table_problems import (
    refuse_codes,
    refuse_dates,
    refuse_durations,
    refuse_lists,
    refuse_objects,
    refuse_several,
)
from trajscore.io._vocabulary import ROLES
from trajscore.io.fields import (
    LAST,
    ROWS,
    TIME_WORDS,
    USUAL,
    Fields,
    usual_names,
)
from trajscore.io.files import (
    open_text,
    parquet_dataset,
    parquet_files,
)
from trajscore.io.json_rows import json_rows

_MOST_ROWS = 5_000_000
_OTHER_FILES = {  # which are not read, by their endings
    **dict.fromkeys((".zip", ".tar", ".7z", ".bz2", ".xz", ".zst"), "; unpack it first"),
    **dict.fromkeys((".xlsx", ".xls", ".ods"), "; save the sheet as CSV"),
    **dict.fromkeys((".pkl", ".pickle"), "; a pickle may run code, write it with to_parquet"),
    **dict.fromkeys((".feather", ".arrow", ".orc"), "; write it with to_parquet"),
    **dict.fromkeys((".yaml", ".yml", ".xml", ".log", ".txt"), "; write it as JSON or CSV"),
}
PARTS = {"id": "run id", "step": "step", "outcome": "outcome", "stop_reason": "stop reason"}
"""The parts of a table, and their names in sentences."""

_DECIMAL_COMMA = re.compile(r"(?:^|;)-?\d*,\d+(?=;|\s*$)")
_ZEROS = r"0\d+"
_HEAD_LINES = 20  # of which one may have the names of columns
_HEAD = 1000  # rows by which a column of text is told from one of shares

# Words in the names of numbers that are not confidences, whatever their values.
_NO_CONFIDENCE = {
    "temperature", "temp", "top", "cost", "price", "usd", "eur", "budget", "latency", "duration",
    "time", "seconds", "ms", "elapsed", "seed", "lr", "rate", "penalty", "threshold", "weight",
    "share", "progress", "discount", "gamma", "epsilon", "horizon", "tokens", "length",
}  # fmt: skip


def read_table(path: Path, max_size: int | None = None) -> pd.DataFrame:
    """Read a CSV (also gzipped), Parquet, JSON or JSON-lines file."""
    if not path.exists():
        raise ValueError(f"{path} does not exist; give the path of a table")
    if not path.is_dir():
        check_file(path)
    if path.is_file() and not path.stat().st_size:
        raise ValueError(f"{path} is empty; give a table with a row of column names")
    name = path.name.lower().removesuffix(".gz")
    try:
        if name.endswith((".csv", ".tsv")):
            with open_text(path, max_size) as file:
                head = list(islice(file, _HEAD_LINES))
            sep = _separator(head, "\t" if name.endswith(".tsv") else ",")
            has_commas = sep == ";" and any(map(_DECIMAL_COMMA.search, head[1:]))
            options: Any = {"sep": sep, "low_memory": False, "decimal": "," if has_commas else "."}
            with open_text(path, max_size) as file:
                texts = _names_with_zeros(pd.read_csv(file, sep=sep, nrows=_HEAD, dtype=str))
            with open_text(path, max_size) as file:
                return pd.read_csv(file, dtype=dict.fromkeys(texts, str), **options)
        if name.endswith((".json", ".jsonl", ".ndjson")):
            return pd.DataFrame(list(json_rows(path, max_size)))
        if name.endswith(".parquet"):
            optional("pyarrow", f"{path}: Parquet files need pyarrow", "data")
            return pd.read_parquet(path)
        if path.is_dir() and next(parquet_files(path), None):
            return _of_folder(path)
    except ArgumentError:
        raise
    except (ValueError, OSError, OverflowError, RecursionError, TypeError) as error:
        raise ValueError(f"{path} cannot be read as a table: {str(error).strip()}") from error
    other = next((hint for ending, hint in _OTHER_FILES.items() if name.endswith(ending)), "")
    raise ValueError(
        f"{path} is not a table; expected the ending .csv, .csv.gz, .tsv, .parquet, .jsonl or "
        f".json{other}"
    )


def _names_with_zeros(head: pd.DataFrame) -> list[str]:
    """Return the columns of ids such as 007, which as numbers would be those of others."""
    numbers = ("step", "outcome", "confidence", "cost", "tokens")
    known = {name for part in numbers for name in usual_names(part, head)}
    texts = {name: head[name].dropna().astype(str) for name in head if name not in known}
    return [name for name, column in texts.items() if column.str.fullmatch(_ZEROS).any()]


def _of_folder(path: Path) -> pd.DataFrame:
    """Read a folder of Parquet files that memory can hold."""
    files = parquet_dataset(path)
    if (n_rows := files.count_rows()) > _MOST_ROWS:
        raise ValueError(
            f"it has {n_rows:,} rows; trajscore report reads them in batches, or give one file"
        )
    return files.to_table(use_threads=False).to_pandas()


def _separator(head: list[str], usual: str) -> str:
    """Return what separates the columns of a text: where commas are for decimals, semicolons."""
    names = head[0] if head else ""
    return usual if usual in names else next((sep for sep in ";\t|," if sep in names), usual)


def choose_columns(
    frame: pd.DataFrame, fields: Fields
) -> tuple[Fields, dict[str, tuple[str, ...]]]:
    """Return the columns of all parts, and those of them that were guessed.

    >>> frame = pd.DataFrame({"run_id": [1], "step": [1], "confidence": [0.5], "solved": [1]})
    >>> choose_columns(frame, Fields(id="run_id"))[1]
    {'step': ('step',), 'outcome': ('solved',), 'scores': ('confidence',)}
    """
    columns = list(frame.columns)
    guessed: dict[str, tuple[str, ...]] = {}
    chosen: dict[str, Any] = {}
    missing = []
    refuse_objects(frame, fields.outcome)
    for part in PARTS:
        names = fields.ids if part == "id" else getattr(fields, part)
        if names:
            _check(names, part, columns)
        elif usual := stop_columns(frame) if part == "stop_reason" else usual_names(part, columns):
            chosen[part] = str(usual[0])
            guessed[part] = (chosen[part],)
        elif part != "stop_reason":
            missing.append(part)
    if missing:
        raise _missing_parts(missing, frame)
    ids, step = list(fields.ids or guessed["id"]), fields.step or chosen["step"]
    refuse_durations(frame, guessed.get("step", ()), ids)
    refuse_several(frame, ids, step, is_guessed="id" in guessed)
    outcome = str(chosen.get("outcome", fields.outcome))
    refuse_lists(frame, ids, outcome, is_guessed="id" in guessed)
    scores = tuple(dict.fromkeys((*fields.scores, *fields.risks, *(n for n, _ in fields.scales))))
    if fields.confidence is not None and fields.confidence not in scores:
        scores = (fields.confidence, *scores)
    for part, names in {
        "risks": fields.risks,
        "scales": tuple(name for name, _ in fields.scales),
        "scores": scores,
        "group": () if fields.group is None else (fields.group,),
    }.items():
        _check(names, part, columns)
    if not scores:
        outcome = bare_name(fields.outcome or "", columns)
        taken = {*chosen.values(), *fields.ids, fields.step, outcome, fields.stop_reason}
        rest = [str(name) for name in columns if str(name) not in taken]
        scores = guessed["scores"] = _guess_scores(frame, rest)
    refuse_codes(frame, guessed.get("scores", ()))
    return replace(fields, **chosen, scores=scores), guessed


def with_last_outcome(frame: pd.DataFrame, fields: Fields) -> tuple[pd.DataFrame, Fields]:
    """Give every row of a run its last outcome, where that was asked for."""
    outcome = (fields.outcome or "").removesuffix(LAST)
    name, ids = bare_name(outcome, frame.columns), fields.ids or usual_names("id", frame)[:1]
    if outcome == fields.outcome or name not in frame or not {*ids} <= {*frame} or not ids:
        return frame, fields
    step = fields.step or next(iter(usual_names("step", frame)), ROWS)
    times = parse_numbers(frame[step]) if step in frame else pd.Series(0, frame.index)
    times = frame[step] if times.isna().all() else times
    ordered = frame.loc[times.sort_values(kind="stable").index]
    last = ordered.groupby(list(ids))[name].transform("last")
    return frame.assign(**{name: last}), replace(fields, outcome=outcome)


def agent_rows(frame: pd.DataFrame, chosen: Fields) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Leave out rows of the user, of tools and of the system, where a column says whose each is."""
    taken = {*chosen.ids, chosen.step, chosen.outcome, *chosen.scores}
    for name in usual_names("actor", frame.columns)[:1]:
        whose = frame[name].map(lambda role: ROLES.get(str(role).strip().lower()))
        others = whose.isin(("user", "tool", "system"))
        if name in taken or not others.any() or not (whose == "agent").any():
            break
        if chosen.step is not None:  # steps are counted anew
            steps = frame[~others].groupby([frame[key] for key in chosen.ids])[chosen.step]
            frame = frame.assign(**{chosen.step: steps.rank(method="dense")})
        note = (
            f"{int(others.sum())} of {number_of(len(frame), 'row')} left out: by column {name!r} "
            f"they are not the agent's"
        )
        return frame[~others], (note,)
    return frame, ()


def _check(names: str | Sequence[str], part: str, columns: Sequence[str]) -> None:
    for name in (names,) if isinstance(names, str) else names:
        column = bare_name(name, columns) if part == "outcome" else name
        if column not in columns and not (part == "step" and name == ROWS):
            raise ArgumentError(f"{{argument}}: {unknown_name('column', name, columns)}", part)


def _missing_parts(parts: list[str], frame: pd.DataFrame) -> ArgumentError:
    """Say which parts no column has, and how to name their columns."""
    hints = {
        "step": f", or give {ROWS!r} for the order of the rows. Where a row is a run, name columns "
        f"of steps with {{argument:wide}}; without steps it is for trajscore compare, or for "
        f"{{argument:outcomes}} beside a log"
    }
    if "outcome" in parts:
        candidates = " or ".join(_outcome_candidates(frame))
        default = "if it holds words, say what they mean with {argument:outcome_map}, pass=1,fail=0"
        hints["outcome"] = (
            f" ({f'it may be {candidates}' if candidates else default}), or give a table of run "
            f"ids and outcomes with {{argument:outcomes}}"
        )
    names = {parts[0]: "{argument}"}
    problems = "; ".join(
        f"no column has a usual name for the {PARTS[part]} ({', '.join(USUAL[part])}); "
        f"name it with {names.get(part, f'{{argument:{part}}}')}{hints.get(part, '')}"
        for part in parts
    )
    columns = ", ".join(map(str, frame.columns))
    return ArgumentError(f"{problems}; the table has: {columns}", parts[0])


def _outcome_candidates(frame: pd.DataFrame) -> list[str]:
    """Return how to name the columns that may be the outcome by their words, or their names."""
    columns = {str(name): frame[name].dropna() for name in frame.columns}
    numbers = {name for name, values in columns.items() if values.dtype.kind in "biuf"}
    kinds = {name: v if name in numbers else v.map(str) for name, v in columns.items()}
    return outcome_candidates({name: values.unique().tolist() for name, values in kinds.items()})


def _guess_scores(frame: pd.DataFrame, rest: list[str]) -> tuple[str, ...]:
    """Return the columns with usual names, or else all other columns of fractions."""
    names = usual_names("confidence", rest) or tuple(
        name
        for name in rest
        if not (is_setting(name) or sounds_bad(name)) and _holds_fractions(frame[name])
    )
    names = tuple(name for name in rest if name in names)
    if not names:
        names_of_top: dict[float, list[str]] = {}
        for name, top in scales_of(frame, rest).items():
            names_of_top.setdefault(top, []).append(name)
        scaled = "".join(
            f"; if {top:g} means certainty in {' and '.join(named)}, pass "
            + " ".join(f"{{argument:scales={name}={top:g}}}" for name in named)
            for top, named in names_of_top.items()
        )
        raise ArgumentError(
            f"no column looks like a score; name the column with {{argument}}{scaled}"
            f"; the table has: {', '.join(map(str, frame.columns))}",
            "scores",
        )
    return names


def other_columns(frame: pd.DataFrame, chosen: Fields) -> list[str]:
    """Return the columns that have no part."""
    outcome = bare_name(chosen.outcome or "", frame.columns)
    taken = {*chosen.ids, chosen.step, outcome, chosen.stop_reason, chosen.group}
    return [str(name) for name in frame.columns if name not in {*taken, *chosen.scores}]


def settings(frame: pd.DataFrame, chosen: Fields) -> list[str]:
    """Return the columns of fractions that are costs or settings by their names."""
    names = other_columns(frame, chosen)
    return [name for name in names if is_setting(name) and _holds_fractions(frame[name])]


def constants(frame: pd.DataFrame, chosen: Fields) -> dict[str, float]:
    """Return the columns that hold one fraction, which are not taken unasked, with its value."""
    columns = {name: frame[name] for name in other_columns(frame, chosen) if not is_setting(name)}
    values = {name: own.dropna().unique() for name, own in columns.items() if own.dtype.kind == "f"}
    return {
        name: float(own[0]) for name, own in values.items() if len(own) == 1 and 0 <= own[0] <= 1
    }


def _holds_fractions(column: pd.Series) -> bool:
    return len(_fractions(column)) > 1  # settings do not vary


def _fractions(column: pd.Series) -> FloatArray:
    """Return the distinct values of a column of fractions; none of flags, of zeros and ones."""
    if column.dtype.kind != "f":
        return np.empty(0)
    values = np.unique(to_unit(column.dropna().to_numpy()))
    holds = ((values >= 0) & (values <= 1)).all() and not np.isin(values, (0, 1)).all()
    return np.asarray(values if holds else values[:0])


def is_setting(name: str) -> bool:
    """Tell the name of a cost or a setting from that of a confidence."""
    return bool(words_of(name) & _NO_CONFIDENCE)


def skipped(frame: pd.DataFrame, chosen: Fields) -> dict[str, float]:
    """Return the columns not chosen that may be confidences from 0 to 10 or 100, with that end."""
    return scales_of(frame, other_columns(frame, chosen))


def scales_of(frame: pd.DataFrame, names: Sequence[str]) -> dict[str, float]:
    """Return the columns that may be confidences from 0 to 10 or 100, with that end."""
    scales = {}
    for name in names:
        column = frame[name]
        if column.dtype.kind not in "iuf" or not words_of(str(name)) & _STATED:
            continue
        if column.min() >= 0 and 1 < column.max() <= 100:
            scales[str(name)] = 10.0 if column.max() <= 10 else 100.0
    return scales


_STATED = {
    "verbal", "confidence", "conf", "sure", "certainty", "probability", "prob", "chance", "percent",
    "judge", "judged", "score", "rating", "verifier", "belief", "trust", "likelihood",
}  # fmt: skip


def with_scales(frame: pd.DataFrame, fields: Fields) -> pd.DataFrame:
    """Divide predictors by their scales; make risks p into 1 - p, or -p beyond [0, 1]."""
    changed = {}
    for name, scale in fields.scales:
        changed[name] = _numbers(frame[name], scale)
        beyond = outside_unit(changed[name])
        if beyond.any():
            row = int(np.argmax(beyond))
            raise ArgumentError(
                f"row {row}: column {name!r} has {run_label(frame[name].iloc[row])}, outside 0 to "
                f"{scale:g}; give the value that means certainty with {{argument}}",
                "scales",
            )
        shares = changed[name] * scale
        most, is_read = shares.max(), changed[name].notna() | frame[name].isna()
        if scale > 1 and is_read.all() and most <= 1 and ((shares > 0) & (shares < 1)).any():
            raise ArgumentError(
                f"column {name!r} holds fractions up to {most:g}, which "
                f"{{argument:scales={name}={scale:g}}} would make {most / scale:.1%} at most; "
                f"leave it out, and where another file has percentages, divide them by {scale:g}",
                "scales",
            )
    for name in fields.risks:
        risk = changed.get(name, parse_numbers(frame[name]))
        changed[name] = -risk if outside_unit(risk).any() else 1 - risk
    for name, numbers in changed.items():
        word = numbers.isna() & frame[name].notna()
        if word.any():  # remains, so that the container refuses it by run and step
            changed[name] = numbers.astype(object).where(~word, frame[name])
    return frame.assign(**changed) if changed else frame


def with_fractions(frame: pd.DataFrame, fields: Fields) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Read columns of text such as "85%" as 0.85, and say so; those with a scale come later."""
    scaled = {name for name, _ in fields.scales}
    changed, remarks = {}, []
    for name in (name for name in frame.select_dtypes(["object", "string"]) if name not in scaled):
        if not any(map(_is_per_cent, frame[name].head(_HEAD))):
            continue
        n_per_cent = int(frame[name].map(_is_per_cent).sum())
        numbers = _numbers(frame[name], 1.0)
        if not (numbers.isna() & frame[name].notna()).any():
            changed[name] = numbers
            n = number_of(n_per_cent, "value")
            remarks.append(f"column {name!r}: {n} in per cent, read as fractions")
    return (frame.assign(**changed) if changed else frame), tuple(remarks)


def _is_per_cent(value: Any) -> bool:
    return isinstance(value, str) and value.strip().endswith("%")


def _numbers(column: pd.Series, scale: float) -> pd.Series:
    """Return numbers as shares of a scale; text in per cent is such a share."""

    def as_number(value: Any) -> Any:
        share = parse_number(value) if _is_per_cent(value) else None
        return value if share is None else share * scale

    if column.dtype.kind in "OUT":
        column = column.astype(object).map(as_number)
    return parse_numbers(column) / scale


def with_times(frame: pd.DataFrame, step: str | None) -> tuple[pd.DataFrame, str | None]:
    """Return the table and its column of steps, None for the order of the rows."""
    if step is None or (step == ROWS and step not in frame.columns):
        return frame, None
    numbers = parse_numbers(frame[step])
    has_gaps = numbers.isna().any() or not np.isfinite(numbers).all()
    if has_gaps:
        refuse_dates(frame[step])
    if not words_of(step) & TIME_WORDS or has_gaps:
        return frame, step  # the container will refuse gaps by row
    if numbers.min() in (0, 1) and (numbers == numbers.round()).all():
        return frame, step
    order = pd.factorize(numbers, sort=True)[0]  # whatever the unit and the zero
    return frame.assign(**{step: pd.to_datetime(order, unit="s", utc=True)}), step


def guess_first_step(frame: pd.DataFrame, fields: Fields) -> int:
    """Return 0 if every run starts at step 0, else 1."""
    if frame.empty or fields.step is None or fields.step not in frame.columns:
        return 1  # nothing to guess from
    numbers = parse_numbers(frame[fields.step])
    keys = [frame[name] for name in fields.ids]
    try:
        return 0 if (numbers.groupby(keys).min() == 0).all() else 1
    except TypeError:
        raise ArgumentError(
            f"column {', '.join(map(repr, fields.ids))} has a list or an object as a run id; ids "
            f"must be words or numbers; name another column with {{argument}}",
            "id",
        ) from None
