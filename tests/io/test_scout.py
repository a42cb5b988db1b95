"""Databases of Inspect Scout; its library is a stand-in."""

import sys
from types import SimpleNamespace as Record

import pytest

from known_dialogue import ALL, ASK, FOUND, LOOK, TOLD, said
from trajscore import io


class Message:
    def __init__(self, fields):
        self.fields = fields

    def model_dump(self, exclude_none):
        return self.fields if exclude_none else {}


NUMBERS = {"source_type": "phoenix", "agent": "a", "model": "m", "total_time": 2.5,
           "total_tokens": 7, "task_set": "s"}  # fmt: skip


def transcript(**fields):
    own = {"transcript_id": "t", "limit": None, "error": None, "task_id": 3, "task_repeat": 2,
           "metadata": {"x": 1}, "messages": list(map(Message, (ASK, LOOK, FOUND, TOLD))),
           "success": None, "score": None}  # fmt: skip
    return Record(**own | NUMBERS | fields)


class Database:
    def __init__(self, transcripts, calls):
        self.transcripts, self.calls = transcripts, calls

    async def connect(self):
        self.calls.append("connect")

    async def disconnect(self):
        self.calls.append("disconnect")

    async def select(self):
        for index in range(len(self.transcripts)):
            yield index

    async def read(self, index, content):
        assert content == {"messages": "all"}
        return self.transcripts[index]


@pytest.fixture
def read(monkeypatch, tmp_path):
    """Read transcripts through a stand-in for the library."""

    def read_transcripts(*transcripts):
        calls = []
        own = {"transcripts_db": lambda path: Database(transcripts, calls)}
        library = Record(**own, TranscriptContent=lambda **of: of)
        monkeypatch.setitem(sys.modules, "inspect_scout", library)
        (tmp_path / "transcripts_1.parquet").touch()
        runs = io.read_runs(tmp_path)  # a folder with transcripts is a database
        assert calls == ["connect", "disconnect"]
        return runs

    return read_transcripts


def test_what_a_run_holds(read):
    first, second = read(transcript(), transcript(transcript_id="u", success=False, score=0.5))
    assert (first.id, first.task, first.trial, first.stop_reason) == ("t", "3", 2, None)
    assert said(first) == ALL
    assert {name: first.meta[name] for name in NUMBERS} == NUMBERS
    assert (first.scores, first.extra) == ({}, {"metadata": {"x": 1}})
    assert (second.id, second.outcome, second.scores) == ("u", 0, {"success": False, "score": 0.5})


def test_stops(read):
    for fields, reason in (
        ({}, None), ({"error": "no"}, "error"), ({"limit": "tokens"}, "tokens"),
        ({"limit": "tokens", "error": "no"}, "tokens"),
    ):  # fmt: skip
        assert read(transcript(success=True, **fields))[0].stop_reason == reason


def test_scout_needs_its_extra(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "inspect_scout", None)
    (tmp_path / "transcripts_1.parquet").touch()
    with pytest.raises(ImportError, match=r"scikit-trajscore\[scout\]"):
        io.read_runs(tmp_path)
