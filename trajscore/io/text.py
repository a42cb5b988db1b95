"""The text of messages."""

from __future__ import annotations

import json
from typing import Any

from trajscore.io._vocabulary import as_list

_OF_PART = ("text", "type")  # fields of a part of a message


def whole_text(text: str) -> str:
    """Put "?" for half of a surrogate pair, which JSON allows and text encodings do not."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


def text_of(content: Any) -> str:
    """Return the text of a message's content: text, parts, nothing, or any JSON value."""
    return whole_text(_text_of(content))


def _text_of(content: Any) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(filter(None, (_part_text(part) for part in content)))
    if isinstance(content, dict) and isinstance(content.get("text"), str):
        return str(content["text"])
    return json.dumps(content, ensure_ascii=False)


def _part_text(part: Any) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, dict):
        for name in ("text", "refusal"):
            if isinstance(part.get(name), str):
                return str(part[name])
        if isinstance(part.get("type"), str):  # a picture, a sound: kept in the step's extra
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
    more = (
        part
        for part in as_list(content)
        if isinstance(part, dict) and not part.keys() <= {*_OF_PART}
    )
    return is_known(content) and not any(more)
