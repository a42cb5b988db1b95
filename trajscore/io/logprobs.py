"""Token log-probabilities, in all forms in which logs hold them."""

import math
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import zip_longest
from typing import Any, NamedTuple

from trajscore.core.values import UNIT_ROUNDING
from trajscore.io._run import MalformedRunError, Run, Step
from trajscore.io.files import Place
from trajscore.io.vocabulary import (
    HOLDERS,
    WORDS,
    Record,
    Values,
    as_fields,
    as_list,
    first,
    first_object,
    is_amount,
    parsed,
)

NOT_RECORDED = -9999.0  # written by servers where they have no value, as is any lower number

Top = tuple[tuple[str, float], ...]

_NAMES = WORDS["logprobs"]
_OUTER = {path[0] for path in _NAMES["paths"]}
MAY_HOLD = _OUTER | {"choices", "candidates", "outputs", *HOLDERS}
_NAMED = re.compile(r"log[ _-]?prob(?!lem|e)|completion_prob|token_likelihood", re.IGNORECASE)


class TokenScores(NamedTuple):
    """Tokens, their log-probabilities, and the likeliest alternatives; None where absent."""

    tokens: tuple[str, ...] | None = None
    logprobs: tuple[float, ...] | None = None
    top_logprobs: tuple[Top, ...] | None = None


def find_logprobs(answer: Any) -> Any:
    """Return the tokens with log-probabilities of an answer, or of a part of it; None if none."""
    if not isinstance(answer, dict) or _OUTER.isdisjoint(answer):
        return None
    for *outer, name in _NAMES["paths"]:
        owner = as_fields(answer, *outer)
        value = owner.get(name) if name else owner
        if isinstance(value, dict):
            lists = (_joined(value, names) for names in _NAMES["lists"] if _tokens(value, names[0]))
            value = next(lists, None)
        if value and "token_ids" in answer:
            pairs = zip(as_list(value), map(str, as_list(answer["token_ids"])), strict=False)
            return [
                {k: token[k], **token} if k in as_fields(token) else token for token, k in pairs
            ]
        if value:
            return value
    return None


def _tokens(value: Record, name: str) -> Values:
    """Return a list of tokens with log-probabilities; none where they are texts, as in `tokens`."""
    tokens = as_list(value.get(name))
    if name == "tokens" and not first_object(tokens):
        return []
    return tokens


def _joined(value: Record, names: tuple[str, str, str]) -> Values:
    """Return the tokens of an object, each with its alternatives and its text."""
    tokens: Values = value[names[0]]
    for name, other in zip(("top_logprobs", "token"), names[1:], strict=True):
        if listed := as_list(value.get(other)):
            pairs = zip_longest(tokens, listed[: len(tokens)])
            tokens = [{**_fields_of(token), name: item} for token, item in pairs]
    return tokens


def _fields_of(token: Any) -> Record:
    """Return a token as an object, of several likely ones the first, which was chosen."""
    several = token
    if isinstance(token, dict) and "logprob" not in token:
        several = list(token.values())
    likely = [item for item in as_list(several) if "logprob" in as_fields(item)]
    if likely:  # of vLLM, by their ids, or of LlamaIndex
        return {**likely[0], "top_logprobs": likely}
    if isinstance(token, list):  # of SGLang
        return dict(zip(("logprob", "id", "token"), token, strict=False))
    return token if isinstance(token, dict) else {"logprob": token}


def parse_logprobs(raw: Any, place: Place, index: int) -> TokenScores:
    """Read a message's log-probabilities; missing values and -9999 are not recorded."""
    if not isinstance(raw, (list, tuple)):
        raise MalformedRunError(
            f"message {index}: its logprobs are {type(raw).__name__}, not a list"
        )
    where = f"{place}, message {index}"
    entries = list(map(_fields_of, raw))
    texts: Values = list(map(_text_of, entries))
    top = tuple(_alternatives(first(entry, _NAMES["alternatives"]), where) for entry in entries)
    logprobs = tuple(_logprob_of(entry, where) for entry in entries)
    if not any_recorded(logprobs):
        return TokenScores()
    tokens = None if None in texts else tuple(texts)
    return TokenScores(tokens, logprobs, top if any(top) else None)


def any_recorded(logprobs: Iterable[float]) -> bool:
    """Tell whether any log-probability was recorded; 0 is certainty."""
    return any(value > NOT_RECORDED or value == -math.inf for value in logprobs)


def any_below_zero(logprobs: Iterable[float]) -> bool:
    """Tell whether any log-probability was recorded that is not 0."""
    return any_recorded(value for value in logprobs if value < 0)


def are_recorded(runs: Iterable[Run]) -> bool:
    """Tell whether a log has log-probabilities; where all are 0, a server has written none."""
    return any(any_below_zero(_logprobs_of(step)) for run in runs for step in run.steps)


def _logprobs_of(step: Step) -> Iterator[float]:
    yield from step.logprobs or ()
    for top in step.top_logprobs or ():
        yield from (logprob for _, logprob in top)


@lru_cache(1024)
def names_logprobs(name: str) -> bool:
    """Tell the name of log-probabilities, such as logprob, log_prob or logProbability."""
    return _NAMED.search(name) is not None


def recorded_in(value: Any) -> Iterator[float]:
    """Yield the numbers within a value that may be log-probabilities."""
    todo = [value]
    while todo:
        inner = parsed(todo.pop())
        if isinstance(inner, (dict, list)):
            todo += inner.values() if isinstance(inner, dict) else inner
        elif is_amount(inner) and any_below_zero((inner,)):
            yield float(inner)


def without_logprobs(answer: Any) -> Any:
    """Leave out the log-probabilities, the largest part of a message, which the step holds."""
    if isinstance(answer, list):
        return list(map(without_logprobs, answer))
    if not isinstance(answer, dict):
        return answer
    return {
        name: without_logprobs(value) if name in MAY_HOLD else value
        for name, value in answer.items()
        if not (names_logprobs(str(name)) and isinstance(value, (dict, list)))
    }


def _text_of(token: Record) -> str | None:
    text = first(token, _NAMES["text"], blank=True)
    return None if text is None else str(text)


def _logprob_of(token: Record, where: str) -> float:
    if "logprob" in token:
        return _number(token["logprob"], where)
    likely = map(as_fields, as_list(token.get("probs")))
    chosen = (fields for fields in likely if _text_of(fields) == _text_of(token))
    prob: Any = next(chosen, token).get("prob")
    if is_amount(prob) and prob >= 0:  # of llama.cpp
        return _number(math.log(prob) if prob else -math.inf, where)
    return _number(first(token, _NAMES["value"]), where)


def _number(value: Any, where: str) -> float:
    if value is None:
        return math.nan
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.inf
    if number > UNIT_ROUNDING:
        raise ValueError(
            f"{where}: the logprob is {value!r}, not a number of at most 0 (a natural logarithm); "
            f"convert it, or write null if it was not recorded"
        )
    if number <= NOT_RECORDED and number != -math.inf:
        return math.nan
    return min(number, 0.0)


def _alternatives(raw: Any, where: str) -> Top:
    raw = as_list(as_fields(raw).get("candidates")) or raw
    if isinstance(raw, dict):
        pairs = [(str(token), _number(value, where)) for token, value in raw.items()]
    else:
        entries = [_fields_of(entry) for entry in as_list(raw) if not isinstance(entry, str)]
        pairs = [(_text_of(entry) or "", _logprob_of(entry, where)) for entry in entries]
    return tuple(pair for pair in pairs if not math.isnan(pair[1]))
