"""The usual names of fields and columns in logs and tables without a fixed format."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from trajscore.core.errors import ArgumentError
from trajscore.core.outcomes import bare_name
from trajscore.core.stops import ERROR_FIELDS, STOP_FIELDS, names_among
from trajscore.core.values import number_of, run_label
from trajscore.io.vocabulary import WORDS, Record, as_fields, as_list, first, is_amount

USUAL: dict[str, Sequence[str]] = {
    **WORDS["usual"], "stop_reason": STOP_FIELDS, "error": ERROR_FIELDS,
}  # fmt: skip
"""The usual names of each part, the most specific first; "runId" is the same as "run_id"."""

SCORES = (*USUAL["confidence"], *WORDS["names"]["judged"])
"""The usual names of predictors: of confidences, of judgements, and those that we write.

Columns of tables with these names are judged; of logs only confidences, and others are asked for.
"""

TIMES = WORDS["names"]["times"]
"""The usual names of columns that say when a run or a step started."""

OUTCOMES_IN_WORDS = ("result",)
"""Names of columns that are outcomes if they hold words such as PASS: numbers are of a tool."""

OF_STEPS = ("action", "tool_calls", "observation", "logprobs")
"""Parts that only steps have."""
ANY_OF_STEPS = ("actor", "text", *OF_STEPS, "cost")
"""The same, and parts that steps have among others."""
NAMED_PARTS = ("steps", *ANY_OF_STEPS, "task", "trial")
"""Parts of a log of any JSON, which a user names."""

ANY_PARTS = (*NAMED_PARTS, "id", "step", "confidence", "outcome", "stop_reason")
"""The same, and those that have an option of their own."""

_WITHIN = dict.fromkeys(WORDS["names"]["within"]).keys()
OF_ONE_RUN = {*WORDS["names"]["of_one_run"]}
"""Fields that have one value in a run, unless its id is that of several."""

_NUMBERS = ("value", "score", "avg", "mean")
_WORDS = ("stringValue", "string_value")

ROWS = "rows"
"""Given as the column of steps of a table, it stands for the order of the rows."""

LAST = ".-1"
"""What follows the name of a list of outcomes, of which the last one counts."""


def several_runs(name: str, run: str, ids: Sequence[str]) -> ArgumentError:
    """Return the error for an id that nobody named, under which a field has several values."""
    options = " ".join(f"{{argument:id={option}}}" for option in ids)
    return ArgumentError(
        f"run {run_label(run)} has several values of {name!r}; if each is a run of its own, pass "
        f"{options} {{argument:id={name}}}; if not, pass {options}",
        "id",
    )


def note_on_trials(trials: Counter[tuple[Any, Any]]) -> Iterator[str]:
    """Say how many runs have the task and the trial of another."""
    n = trials.total() - len(trials)
    for (task, trial), _ in trials.most_common(min(n, 1)):
        yield (
            f"{number_of(n, 'run')} with the task and the trial of another, such as task {task!r}, "
            f"trial {trial!r}: all count; if they are copies, leave all but one out of the data"
        )


def usual_names(part: str, names: Iterable[Any]) -> tuple[Any, ...]:
    """Return those names that usually mean a part, the most specific first."""
    return _names_by_part(tuple(names))[part]


@lru_cache(maxsize=1024)  # lines of one log have the same names
def _names_by_part(names: tuple[Any, ...]) -> dict[str, tuple[Any, ...]]:
    return {part: names_among(usual, names) for part, usual in USUAL.items()}


def dig(fields: Any, path: str) -> Any:
    """Follow a dotted path, ``info.exit_status``, into nested objects and lists."""
    parts = path.split(".")
    for k, part in enumerate(parts):
        if isinstance(fields, dict):
            if (rest := ".".join(parts[k:])) in fields:  # a name with dots
                return fields[rest]
            fields = fields.get(part)
        elif isinstance(fields, list) and part.lstrip("-").isdigit():
            position = int(part)
            fields = fields[position] if -len(fields) <= position < len(fields) else None
        elif part != LAST[1:]:  # the last of one value is that value
            return None
    return fields


Name = str | None
"""A name that a user gave, if any."""
Names = tuple[str, ...]
"""Names of fields, of columns, or of what names of files end with."""


@dataclass(frozen=True)
class Fields:
    """The names that a user gave; a part without a name is searched under its usual names.

    A part is a column of a table, or a field of a record, where dots lead into nested fields.
    """

    id: str | Names | None = None  # several names make an id of all their values
    step: Name = None
    outcome: Name = None
    stop_reason: Name = None
    scores: Names = ()  # columns of predictors
    risks: Names = ()  # predictors whose high values go with failure
    scales: tuple[tuple[str, float], ...] = ()  # predictors with the value that means certainty
    wide: Names = ()  # what columns of steps begin with, in a table with one row a run
    group: Name = None  # column of clusters of runs
    first_error: Name = None  # number of the first wrong step of a run
    step_label: Name = None  # verdict on a step
    confidence: Name = None
    task: Name = None
    trial: Name = None
    actor: Name = None
    text: Name = None
    action: Name = None
    tool_calls: Name = None
    observation: Name = None
    logprobs: Name = None
    cost: Name = None
    steps: Name = None

    def over(self, other: Fields) -> Fields:
        """Return these names, and those of another for the rest."""
        return replace(other, **{k: v for k, v in vars(self).items() if v not in (None, ())})

    @property
    def named_parts(self) -> dict[str, str]:
        """The names of the parts of any JSON log."""
        return {part: name for part in NAMED_PARTS if (name := getattr(self, part)) is not None}

    @property
    def label(self) -> str | None:
        """The name of what says which step was the first wrong one."""
        return self.first_error or self.step_label

    @property
    def predictors(self) -> Names:
        """The names of the predictors of a table."""
        scores = dict.fromkeys((*self.scores, *self.risks, *dict(self.scales)))
        if self.confidence is None or self.confidence in scores:
            return tuple(scores)
        return (self.confidence, *scores)

    @property
    def ids(self) -> Names:
        """The names of the id, one or several, or none."""
        if isinstance(self.id, str):
            return (self.id,)
        return self.id or ()

    def id_of(self, record: Record) -> str | None:
        """Return the id of a record: the value of its name, or those of several names joined."""
        parts = [dig(record, name) for name in self.ids] or [self.value(record, "id")]
        if any(part in (None, "") for part in parts):
            return None
        return "-".join(map(str, parts))

    def names(self, record: Record, parts: Iterable[str]) -> dict[str, str]:
        """Return the name under which a record holds each of some parts, if it does."""
        usual = _names_by_part(tuple(record))
        names: dict[str, str] = {}
        for part in parts:
            name = getattr(self, part)
            if name is not None and part in _MAY_BE_TURNED:
                name = named_path(record, bare_name(name, record))
            if name is None:
                for key in reversed(usual[part]):
                    if record[key] is not None:
                        name = key
            if name is None and part in _SEARCHED_WITHIN:
                name = _path_within(record, part)
            if name is not None:
                names[part] = name
        return names

    def values(self, record: Record, parts: Iterable[str]) -> Record:
        """Return the values of some parts of a record, None for those that it does not have."""
        names = self.names(record, parts)
        return {part: dig(record, names[part]) if part in names else None for part in parts}

    def value(self, record: Record, part: str) -> Any:
        """Return the value of one part of a record, or None."""
        if part == "id" and isinstance(self.id, tuple):
            return self.id_of(record)
        return self.values(record, (part,))[part]


# Parts of which "not failed" names the field in which high values are failures.
_MAY_BE_TURNED = ("outcome", "confidence")
# Parts whose usual name may stand one level deeper.
_SEARCHED_WITHIN = ("outcome", "stop_reason", "confidence", "task")


def _owners(record: Record, depth: int = 2) -> Iterator[tuple[str, Any]]:
    """Yield a record, and the objects within it whose fields are searched too, by their paths."""
    yield "", record
    if not depth or _WITHIN.isdisjoint(record):
        return
    for name in _WITHIN:
        if isinstance(inner := record.get(name), dict):
            yield from ((f"{name}.{path}", owner) for path, owner in _owners(inner, depth - 1))


def _path_within(record: Record, part: str) -> str | None:
    """Return the path of a part within an object of a record, such as ``metadata.success``."""
    owners = sorted(_owners(record), key=lambda owner: owner[0].count("."))[1:]
    for path, inner in owners:
        for key in _names_by_part(tuple(inner))[part]:
            if scalar(inner[key]) is not None:
                return f"{path}{key}"
    return None


def steps_field(record: Any) -> str | None:
    """Return the usual field in which a run lists its steps, or their confidences."""
    lists = [name for name, value in as_fields(record).items() if _lists_steps(value)]
    return next(map(str, usual_names("steps", lists)), None)


def _lists_steps(value: Any) -> bool:
    if not as_list(value):
        return False
    return all(map(is_amount, value)) or all(isinstance(item, dict) for item in value)


def named_path(record: Record, name: str) -> str:
    """Return the path of a named field, which may stand within an object of a record."""
    owners = _owners(record, 1)
    return next((f"{path}{name}" for path, owner in owners if dig(owner, name) is not None), name)


def stop_paths(record: Record) -> Iterator[str]:
    """Yield the paths of the fields that may say why a run ended, also within objects."""
    for path, owner in _owners(record):
        for part in ("stop_reason", "error"):
            yield from (f"{path}{name}" for name in usual_names(part, owner))


def scalar(value: Any) -> Any:
    """Return the value of a judgement, also out of an object; None if it has several or none.

    Where an object declares that it holds words, as in Langfuse and LangSmith, its number is none.

    >>> scalar({"value": 0, "stringValue": "bad", "dataType": "TEXT"}), scalar({"avg": 0.5})
    ('bad', 0.5)
    """
    if not isinstance(value, dict):
        if isinstance(value, (list, tuple)):
            return None
        return value
    kind = str(first(value, ("dataType", "data_type"))).upper()
    has_word = kind in ("CATEGORICAL", "TEXT")
    inner = first(value, (*_WORDS, *_NUMBERS) if has_word else (*_NUMBERS, *_WORDS), blank=True)
    if has_word and not isinstance(inner, str):
        return None
    if kind == "BOOLEAN" and is_amount(inner):
        return bool(inner)
    labels = value.get("values")  # with their counts, beside a mean where there are numbers
    if inner is None and "avg" in value and isinstance(labels, dict) and len(labels) == 1:
        (inner,) = labels
    if isinstance(inner, dict):
        return None
    return scalar(inner)


USUAL_FIELDS = Fields()
"""No names: every part is searched under its usual names."""
