"""Small hand-made logs."""

from __future__ import annotations

import gzip
import json

import pytest


@pytest.fixture
def write(tmp_path):
    """Write a value as JSON, a list of values as JSON lines, or text as it is."""

    def write_one(name, value, *, lines=False):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if lines:
            value = "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in value)
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        if name.endswith(".gz"):
            path.write_bytes(gzip.compress(text.encode()))
        else:
            path.write_text(text, encoding="utf-8")
        return path

    return write_one


@pytest.fixture
def talk():
    """A dialogue with one call and its result."""
    return [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "Where is my bag?"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": "c1",
                    "type": "function",
                    "function": {"name": "find", "arguments": '{"x": 1}'},
                }
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "name": "find", "content": "Paris"},
        {"role": "assistant", "content": "In Paris."},
    ]
