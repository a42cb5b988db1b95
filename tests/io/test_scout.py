"""Databases of Inspect Scout; its library is a stand-in."""

import sys
from types import SimpleNamespace as Record

import pytest

from trajscore import io
from trajscore.io.formats.scout import Scout
from trajscore.io.registry import Head


class Message:
    def __init__(self, role, content):
        self.fields = {"role": role, "content": content}

    def model_dump(self, exclude_none):
        return self.fields if exclude_none else {}


TALK = [Message("user", "Hi"), Message("assistant", "Yes")]
NUMBERS = {"source_type": "phoenix", "agent": "a", "model": "m", "total_time": 2.5,
           "total_tokens": 7, "task_set": "s"}  # fmt: skip


def transcript(**fields):
    own = {"transcript_id": "t", "limit": None, "error": None, "task_id": 3, "task_repeat": 2,
           "metadata": {"x": 1}, "messages": TALK, "success": None, "score": None}  # fmt: skip
    return Record(**own | NUMBERS | fields)


@pytest.fixture
def read(monkeypatch, tmp_path):
    """Read transcripts through a stand-in for the library."""
    calls = []

    class Database:
        def __init__(self, transcripts):
            self.transcripts = transcripts

        async def connect(self):
            calls.append("connect")

        async def disconnect(self):
            calls.append("disconnect")

        async def select(self):
            for index in range(len(self.transcripts)):
                yield index

        async def read(self, index, content):
            assert content == {"messages": "all"}
            return self.transcripts[index]

    def read_transcripts(*transcripts, **options):
        library = Record(
            transcripts_db=lambda path: Database(transcripts), TranscriptContent=lambda **of: of
        )
        monkeypatch.setitem(sys.modules, "inspect_scout", library)
        (tmp_path / "inner").mkdir(exist_ok=True)
        (tmp_path / "inner" / "transcripts_1.parquet").touch()
        runs = io.read_runs(tmp_path, format="scout", **options)
        assert calls == ["connect", "disconnect"]
        calls.clear()
        return runs

    return read_transcripts


def test_what_a_run_holds(read):
    first, second = read(transcript(), transcript(transcript_id="u", success=False, score=0.5))
    assert (first.id, first.task, first.trial, first.stop_reason) == ("t", "3", 2, None)
    assert [(step.actor, step.text) for step in first.steps] == [("user", "Hi"), ("agent", "Yes")]
    assert {name: first.meta[name] for name in NUMBERS} == NUMBERS
    assert (first.scores, first.extra) == ({}, {"metadata": {"x": 1}})
    assert (second.id, second.scores) == ("u", {"success": False, "score": 0.5})


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({}, None), ({"error": "no"}, "error"), ({"limit": "tokens"}, "tokens"),
        ({"limit": "tokens", "error": "no"}, "tokens"),
    ],
)  # fmt: skip
def test_stops(read, fields, reason):
    assert read(transcript(success=True, **fields))[0].stop_reason == reason


def test_a_folder_with_transcripts_is_a_database(tmp_path):
    assert Scout().folder(tmp_path) == []
    path = tmp_path / "a" / "b" / "transcripts_x.parquet"
    path.parent.mkdir(parents=True)
    path.touch()
    assert Scout().folder(tmp_path) == [tmp_path]
    assert Scout().folder(path) == []
    assert not Scout().recognise(Head({"transcript_id": 1}, whole=True))
