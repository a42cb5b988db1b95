"""Logs of Inspect AI, through its own library."""

from collections.abc import Iterable
from typing import Any
from zipfile import is_zipfile

from trajscore.core.errors import optional
from trajscore.core.outcomes import sounds_bad
from trajscore.core.storage import check_archive
from trajscore.io._run import Run, as_outcome, leftover
from trajscore.io._spans import Span, add_spans
from trajscore.io.conversation import Conversation
from trajscore.io.files import LogFile, Place
from trajscore.io.registry import Format, Head, RawRuns, register
from trajscore.io.vocabulary import (
    FORMATS,
    Record,
    as_fields,
    is_amount,
    is_own_score,
    text_of,
    token_counts,
)


@register
class Inspect(Format):
    name = "inspect"
    holds = "samples"
    endings = (".eval",)

    def recognise(self, head: Head) -> bool:
        return (
            not head.listed
            and "eval" in head.fields
            and bool({"version", "samples"} & head.fields.keys())
        )

    def runs(self, file: LogFile) -> RawRuns:
        if is_zipfile(file.path):
            check_archive(file.path, file.max_size)
        library = optional(
            "inspect_ai.log", "reading logs of Inspect AI needs inspect-ai", "inspect"
        )
        try:
            head = library.read_eval_log(str(file.path), header_only=True)
            file.info.update(status=head.status, eval=head.eval.model_dump(exclude_none=True))
            for index, sample in enumerate(_samples(library, str(file.path), head)):
                yield file.place(index), sample
        except Exception as error:  # whatever the library raises
            raise ValueError(
                f"{file.path} cannot be read by inspect-ai ({type(error).__name__}); get the file "
                f"again, or a newer inspect-ai"
            ) from error

    def run(self, sample: Any, place: Place) -> Run:
        raw = sample.model_dump(exclude_none=True)
        scores = {
            name: _value(score.get("value"))
            for name, score in raw.get("scores", {}).items()
            if not is_own_score(name)
        }
        score = None  # only the user knows what it means
        if len(scores) == 1 and not any(map(sounds_bad, scores)):
            (score,) = scores.values()
        if not isinstance(score, (int, float)):
            score = None
        run = self._new_run(
            raw,
            place.name(raw.get("uuid"), f"{raw['id']}-{raw['epoch']}"),
            outcome=as_outcome(score),
            stop_reason=as_fields(raw, "limit").get("type", "error" if "error" in raw else None),
        )
        run.meta = leftover({"reward": score})
        if scores:
            run.extra["scores"] = scores
        spans = _spans(raw.get("events", []))
        if any(span.kind == "model" for span in spans):
            return add_spans(place, spans, run)
        return Conversation(place, raw.get("messages", [])).finish(run)


def _samples(library: Any, file: str, head: Any) -> Iterable[Any]:
    if head.eval.dataset.sample_ids is None:
        # logs without a list of samples, as older ones are, can only be read as a whole
        return library.read_eval_log(file, resolve_attachments=True).samples or []
    samples: Iterable[Any] = library.read_eval_log_samples(
        file, all_samples_required=False, resolve_attachments=True
    )
    return samples


def _value(value: Any) -> Any:
    """Return a score, or the parts of one, with the letters of grades as numbers."""
    if isinstance(value, dict):
        return {name: _value(part) for name, part in value.items()}
    if isinstance(value, str):
        return FORMATS["inspect"]["letters"].get(value, value)
    return value


def _spans(events: list[Record]) -> list[Span]:
    """Return the calls of models and tools but a scorer's; a rating is of the last model's."""
    spans: list[Span] = []
    of_scorers: set[Any] = set()
    n_scorers = 0  # that have begun and not ended, in older logs
    for index, event in enumerate(events):
        kind = event["event"]
        if kind == "span_begin":
            is_inner = event.get("parent_id") in of_scorers
            if is_inner or event.get("type") in ("scorer", "scorers"):
                of_scorers.add(event["id"])
        elif kind == "step" and event.get("type") == "scorer":
            n_scorers += 1 if event["action"] == "begin" else -1
        elif kind == "score" and event.get("intermediate"):
            value = event["score"].get("value")
            last = next((span for span in reversed(spans) if span.kind == "model"), None)
            if last is not None and is_amount(value):
                last.extra = {"confidence": value}
        elif n_scorers > 0 or event.get("role") == "grader" or event.get("span_id") in of_scorers:
            continue
        elif kind == "model":
            spans += _call_of_model(event, index)
        elif kind == "tool":
            spans.append(_call_of_tool(event, index))
    return spans


def _call_of_model(event: Record, index: int) -> list[Span]:
    choices = event["output"].get("choices")
    if not choices or "error" in event:
        return []  # a call that failed gave no turn
    choice = choices[0]
    of_choice = {"logprobs": choice.get("logprobs"), "finish_reason": choice.get("stop_reason")}
    turns = [choice["message"] | of_choice]
    tokens = token_counts(event["output"].get("usage"))
    return [Span(index, "model", inputs=event.get("input"), outputs=turns, tokens=tokens)]


def _call_of_tool(event: Record, index: int) -> Span:
    text = text_of(event.get("result"))
    error = as_fields(event, "error")
    return Span(
        index,
        "tool",
        name=event.get("function"),
        inputs=event.get("arguments"),
        outputs=text or error.get("message", text),
        call=event.get("id"),
        error=bool(error),
    )
