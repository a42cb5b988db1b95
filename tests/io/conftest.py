"""Small hand-made logs."""

import gzip
import json

import pytest

from checked_tables import Tables
from trajscore import io


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
    call = {"id": "c1", "type": "function", "function": {"name": "find", "arguments": '{"x": 1}'}}
    return [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "Where is my bag?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "name": "find", "content": "Paris"},
        {"role": "assistant", "content": "In Paris."},
    ]


@pytest.fixture
def log(write, talk):
    """Write chats with other fields."""

    def write_log(*runs, name="a.json"):
        return write(name, [{"id": f"r{k}", "messages": talk} | run for k, run in enumerate(runs)])

    return write_log


@pytest.fixture
def lines(write):
    """Read rows of JSON lines, of this format unless another is asked for."""

    def read(*rows, format="jsonl", **options):  # noqa: A002
        return io.read_runs(write("log.jsonl", rows, lines=True), format=format, **options)

    return read


@pytest.fixture
def tables(tmp_path, capsys):
    return Tables(tmp_path, capsys)
