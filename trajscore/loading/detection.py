"""Whether a file or a folder is a table with one row a step, or a log of runs."""

from pathlib import Path
from typing import Any

from trajscore.io.fields import OF_STEPS, steps_field, usual_names
from trajscore.io.files import TABLE_ENDINGS, has_ending, parquet_files, refuse_binary
from trajscore.io.registry import (
    Format,
    all_formats,
    detect,
    detect_format,
    heads,
    is_turn,
    log_endings,
    unknown_format,
)
from trajscore.io.vocabulary import as_list, first_object


def detect_log(path: Path, max_size: int | None) -> Format | None:
    """Return the format of a log; None for a table with one row a step, also in JSON."""
    if is_folder_of_tables(path):
        return None
    if path.is_dir():
        return detect_format(path, max_size)
    if not has_ending(path, (*TABLE_ENDINGS, *log_endings())):
        if path.is_file():
            refuse_binary(path)
        return None
    file, log_format = detect(path, max_size)
    is_table = has_ending(path, TABLE_ENDINGS)
    if is_table or not (log_format is None or log_format.name == "jsonl"):
        return log_format
    *_, head = heads(file)
    row = head.fields
    fields = {**row, **first_object(row.get(steps_field(row) or ""))}
    if head.listed and usual_names("confidence", fields):
        return None  # numbers are a table, messages on lines of their own a log
    if log_format is not None and is_turn(fields, (*OF_STEPS, "text")):
        return log_format
    if head.listed and all(map(_is_plain, row.values())):
        return None
    raise unknown_format(file)


def _is_plain(value: Any) -> bool:
    """Tell what a cell of a table may be: a value, or a list of numbers."""
    is_numbers = all(isinstance(item, (int, float, type(None))) for item in as_list(value))
    return not isinstance(value, dict) and is_numbers


def is_folder_of_tables(path: Path) -> bool:
    """Tell a folder of Parquet files of steps from one of logs."""
    if not path.is_dir() or any(candidate.folder(path) for candidate in all_formats()):
        return False
    logs = any(has_ending(file, log_endings()) for file in path.iterdir())
    return not logs and next(parquet_files(path), None) is not None
