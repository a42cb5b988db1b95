"""Logs of Inspect AI, through its own library."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from trajscore.core.meanings import sounds_bad
from trajscore.core.optional import optional
from trajscore.io._conversation import Conversation
from trajscore.io._run import Run, as_outcome
from trajscore.io._spans import Span, add_spans
from trajscore.io._vocabulary import is_own_score, token_counts
from trajscore.io.files import LogFile, Place
from trajscore.io.registry import Format, Head, register
from trajscore.io.text import text_of

_LETTERS = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}
_BULK = {"messages", "events", "attachments", "input", "output", "choices", "timelines"}


def _library() -> Any:
    return optional("inspect_ai.log", "reading logs of Inspect AI needs inspect-ai", "inspect")


@register
class Inspect(Format):
    name, holds = "inspect", "samples"
    beside = ("eval", "version", "status")
    endings = (".eval",)

    def recognise(self, head: Head) -> bool:
        return (
            not head.listed
            and "eval" in head.fields
            and bool({"version", "samples"} & head.fields.keys())
        )

    def runs(self, file: LogFile, options: Any) -> Iterator[tuple[Place, Any]]:
        head = _library().read_eval_log(str(file.path), header_only=True)
        file.info.update(status=getattr(head, "status", None), eval=_dump(head.eval))
        for index, sample in enumerate(_samples(str(file.path), head)):
            yield file.place(index), sample

    def run(self, sample: Any, place: Place, options: Any) -> Run:
        epoch = getattr(sample, "epoch", None)
        name = place.name(getattr(sample, "uuid", None), f"{sample.id}-{epoch}")
        scores = {
            name: _value(score.value)
            for name, score in (getattr(sample, "scores", None) or {}).items()
            if not is_own_score(name)
        }
        only = next(iter(scores), "") if len(scores) == 1 else ""
        score = None if sounds_bad(only) else scores.get(only)  # only the user knows what it means
        score = score if isinstance(score, (int, float)) else None
        run = Run(
            id=name,
            outcome=as_outcome(score),
            stop_reason=_stop(sample),
            task=sample.id,
            trial=epoch,
            meta={} if score is None else {"reward": score},
            extra=_dump(sample, _BULK) | ({"scores": scores} if scores else {}),
        )
        talk, spans = Conversation(place), _spans(getattr(sample, "events", None) or [])
        if any(span.kind == "model" for span in spans):
            return add_spans(talk, spans, run)
        for index, message in enumerate(getattr(sample, "messages", None) or []):
            talk.add(_dump(message), index)
        return talk.finish(run)


def _samples(file: str, head: Any) -> Iterable[Any]:
    if getattr(getattr(head.eval, "dataset", None), "sample_ids", None) is None:
        # logs without a list of samples, as older ones are, can only be read as a whole
        return _library().read_eval_log(file, resolve_attachments=True).samples or []
    samples: Iterable[Any] = _library().read_eval_log_samples(
        file, all_samples_required=False, resolve_attachments=True
    )
    return samples


def _stop(sample: Any) -> str | None:
    limit = getattr(sample, "limit", None)
    if limit is not None:
        return str(limit.type)
    return None if getattr(sample, "error", None) is None else "error"


def _value(value: Any) -> Any:
    """Return a score, or the parts of one, with the letters of grades as numbers."""
    if isinstance(value, Mapping):
        return {name: _value(part) for name, part in value.items()}
    return _LETTERS.get(value, value) if isinstance(value, str) else value


def _spans(events: list[Any]) -> list[Span]:
    """Return the calls of models and tools but a scorer's; a rating is of the last model's."""
    spans: list[Span] = []
    of_scorers: set[Any] = set()
    n_scorers = 0  # that have begun and not ended, in older logs
    for index, event in enumerate(events):
        kind, own = getattr(event, "event", None), getattr(event, "span_id", None)
        if kind == "span_begin":
            is_inner = getattr(event, "parent_id", None) in of_scorers
            of_scorers |= {event.id} if is_inner or event.type in ("scorer", "scorers") else set()
        elif kind == "step" and getattr(event, "type", None) == "scorer":
            n_scorers += 1 if event.action == "begin" else -1
        elif kind == "score" and getattr(event, "intermediate", False):
            value = getattr(event.score, "value", None)
            last = next((span for span in reversed(spans) if span.kind == "model"), None)
            if last is not None and isinstance(value, (int, float)):
                last.extra = {"confidence": value}
        elif n_scorers > 0 or getattr(event, "role", None) == "grader" or own in of_scorers:
            continue
        elif kind == "model":
            spans += _call_of_model(event, index)
        elif kind == "tool":
            spans.append(_call_of_tool(event, index))
    return spans


def _call_of_model(event: Any, index: int) -> list[Span]:
    choices = getattr(getattr(event, "output", None), "choices", None)
    if not choices or getattr(event, "error", None) is not None:
        return []  # a call that failed gave no turn
    fields = _dump(choices[0].message)
    fields["logprobs"] = _dump(getattr(choices[0], "logprobs", None))
    if getattr(choices[0], "stop_reason", None) is not None:
        fields["finish_reason"] = choices[0].stop_reason
    inputs = list(map(_dump, getattr(event, "input", None) or []))
    tokens = token_counts(_dump(getattr(event.output, "usage", None)))
    return [Span(index, "model", inputs=inputs, outputs=[fields], tokens=tokens)]


def _call_of_tool(event: Any, index: int) -> Span:
    error = getattr(event, "error", None)
    text = text_of(_plain(getattr(event, "result", None)))
    return Span(
        index,
        "tool",
        name=getattr(event, "function", None),
        inputs=_plain(getattr(event, "arguments", None)),
        outputs=text if error is None or text else str(getattr(error, "message", error)),
        call=getattr(event, "id", None),
        error=error is not None,
    )


def _dump(value: Any, without: set[str] | None = None) -> dict[str, Any]:
    """Turn a record of Inspect into plain values."""
    if value is None:
        return {}
    if hasattr(value, "model_dump"):
        return dict(value.model_dump(exclude=without, exclude_none=True))
    fields = value if isinstance(value, Mapping) else vars(value)
    return {k: _plain(v) for k, v in fields.items() if v is not None and k not in (without or ())}


def _plain(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return list(map(_plain, value))
    if hasattr(value, "model_dump") or hasattr(value, "__dict__"):
        return _dump(value)
    return {k: _plain(v) for k, v in value.items()} if isinstance(value, Mapping) else value
