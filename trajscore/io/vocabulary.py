"""The keys under which logs keep the same things, whatever library wrote them, and their texts."""

import json
import tomllib
from collections.abc import Iterable, Mapping
from importlib.resources import files
from typing import Any, Literal

Record = Mapping[str, Any]
"""An object of JSON."""
Values = list[Any]
"""A list of JSON."""

WORDS: dict[str, Any] = tomllib.loads(
    files("trajscore.io").joinpath("words.toml").read_text(encoding="utf-8")
)
"""All words, by what they are for; words.toml says what each list is."""


def _by_word(kinds: Mapping[str, Iterable[str]]) -> dict[str, Any]:
    """Return what each word means, of the words by their meaning."""
    return {word: kind for kind, words in kinds.items() for word in words}


# ------------------------------------------------------------------ where messages are
CALL_SIDES = WORDS["call_sides"]
ITEM_LISTS = WORDS["item_lists"]
MESSAGE_OWNERS = WORDS["message_owners"]
PAYLOADS = WORDS["payloads"]
OF_USER = [name for name, side in PAYLOADS.items() if side == "user"]
"""Fields of a request whose bare text is the user's."""

ANSWERS = WORDS["answers"]["turns"]
OF_ANSWERS = {*ANSWERS, *WORDS["answers"]["beside"]}
"""All fields of a response that are of its turn, or of how it was made."""
HOLDERS = WORDS["answers"]["holders"]
_KNOWN_ANSWERS = [({*names}, path) for names, path in WORDS["answers"]["known"]]
_IN_ANSWERS = {*ANSWERS, "logprobs"}
# one of which every response has, and few other objects
_MARKS = {name for names, _ in _KNOWN_ANSWERS for name in names} - {*ANSWERS, "model"}
_MARKS |= {"generated_text", "object", "response_id"}

# ------------------------------------------------------------------ messages and their parts
Role = Literal["agent", "user", "environment", "system", "tool"]
ROLES: dict[str, Role] = _by_word(WORDS["roles"])
MESSAGE_CLASSES = _by_word(WORDS["classes"])
TYPES = WORDS["types"]
PARTS = WORDS["parts"]
USAGES = WORDS["usage"]["fields"]
FORMATS = WORDS["formats"]
"""What only the logs of one format have, by its name."""
USAGE = WORDS["usage"]["tokens"]
"""The number of tokens by side, in the usage that a call of a model reports."""

# ------------------------------------------------------------------ spans
Kind = Literal["model", "tool", "other"]
SPANS = WORDS["spans"]
SPAN_KINDS: dict[str, Kind] = _by_word(SPANS["kinds"])


def first(fields: Record, names: Iterable[str], *, blank: bool = False) -> Any:
    """Return the first of some fields that is not None, nor empty text unless `blank`."""
    for name in names:
        if name in fields:  # rarely
            value = fields[name]
            if value is not None and (blank or value != ""):
                return value
    return None


def as_fields(value: Any, *path: str) -> Record:
    """Return an object of JSON, or that on a path within it; an empty one for anything else."""
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    if isinstance(value, dict):
        return value
    return {}


def as_list(value: Any) -> list[Any]:
    """Return a list of JSON; an empty one for anything else."""
    if isinstance(value, list):
        return value
    return []


def first_object(values: Any) -> Record:
    """Return the first item of a list of JSON; an empty object where that is none."""
    return as_fields(next(iter(as_list(values)), None))


def is_response(value: Any) -> bool:
    """Tell an answer of OpenAI's Responses, or what its Agents SDK keeps of one."""
    fields = as_fields(value)
    is_answer = fields.get("object") == "response" or "response_id" in fields
    return is_answer and "input" not in fields and isinstance(fields.get("output"), list)


def answer_part(fields: Record) -> Record:
    """Return the first answer of a server's response; an empty object for other objects."""
    if _MARKS.isdisjoint(fields):  # as of most objects
        return {}
    is_piece = False in (fields.get("done"), fields.get("stop"))  # of a stream
    if is_piece or str(fields.get("object")).endswith(".chunk"):
        return {}
    for names, path in _KNOWN_ANSWERS:
        if names <= fields.keys():
            part = first_object(fields[path]) if path else fields
            is_other = path == "candidates" and not as_fields(part, "content")
            if not (is_other or _IN_ANSWERS.isdisjoint(part)):
                return part
    if is_response(fields):
        return {"output": fields["output"]}
    return {}


def role_of(role: Any) -> Role:
    """Return agent, user, system or tool; environment for an unknown role."""
    if isinstance(role, str) and role in ROLES:
        return ROLES[role]
    return ROLES.get(str(getattr(role, "value", role)).strip().lower(), "environment")


def is_own_score(name: Any) -> bool:
    """Tell a score that a guard gave, and not a judge of the log."""
    return str(name).startswith("trajscore")


def is_amount(value: Any) -> bool:
    """Tell a number of JSON from true and false, and from all else."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def token_counts(usage: Any, keys: Mapping[str, tuple[str, ...]] = USAGE) -> Record:
    """Return the number of tokens by side, "input" and "output"."""
    return {side: first(as_fields(usage), names) for side, names in keys.items()}


def span_kind(kind: Any) -> Kind:
    """Return what a span stands for by the word of its library."""
    return SPAN_KINDS.get(str(kind).lower().rpartition(".")[2], "other")


def parsed(value: Any) -> Any:
    """Return what is written as JSON text within JSON; other text, and all else, as it is.

    >>> parsed('[{"role": "user"}]'), parsed("[sic]")
    ([{'role': 'user'}], '[sic]')
    """
    if not isinstance(value, str) or not value.lstrip().startswith(("{", "[", '"')):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def unnested(value: Any, depth: int = 6) -> Any:
    """Return what is written as JSON text, also where that holds JSON text again."""
    inner = parsed(value)
    if depth > 1 and inner is not value:
        return unnested(inner, depth - 1)
    return inner


_OF_PART = ("text", "type", "media_type")  # fields of a part of a message


def whole_text(text: str) -> str:
    """Put "?" for half of a surrogate pair, which JSON allows and text encodings do not."""
    if text.isascii():
        return text
    return text.encode(errors="replace").decode()


def text_of(content: Any) -> str:
    """Return the text of a message's content: text, parts, nothing, or any JSON value."""
    return whole_text(content if isinstance(content, str) else _text_of(content))


def _text_of(content: Any) -> str:
    if content is None:
        return ""
    if isinstance(content, list):
        return "\n".join(filter(None, map(_part_text, content)))
    if isinstance(content, dict) and isinstance(content.get("text"), str):
        return str(content["text"])
    return json.dumps(content, ensure_ascii=False)


def _part_text(part: Any) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, dict):
        for name in ("text", "refusal", "logs"):
            if isinstance(part.get(name), str):
                return str(part[name])
        kind = first(part, _OF_PART[1:])
        if isinstance(kind, str) and not kind.endswith("_result"):  # a picture, a sound: in extra
            return ""
    return json.dumps(part, ensure_ascii=False)


def is_known(content: Any) -> bool:
    """Tell content whose text is found, or which has none, from JSON of an unknown form."""
    if content is None or isinstance(content, str):
        return True
    parts, names = (content, _OF_PART) if isinstance(content, list) else ([content], _OF_PART[:1])
    return all(
        isinstance(part, (str, type(None)))
        or (isinstance(part, dict) and any(isinstance(part.get(name), str) for name in names))
        for part in parts
    )


def only_text(content: Any) -> bool:
    """Tell whether the content of a message holds nothing but text."""
    if content is None or isinstance(content, str):
        return True
    parts = map(as_fields, as_list(content))
    return is_known(content) and all(part.keys() <= {*_OF_PART} for part in parts)
