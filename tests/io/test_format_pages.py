"""Every format has a row on the page of formats, and a sample, which is read as it says."""

import re
from pathlib import Path

from known_dialogue import ALL, said, turns
from trajscore import io

PAGES = Path(__file__).resolve().parents[2] / "docs" / "formats"
SAMPLES = sorted((PAGES / "samples").iterdir())
# what they read is not one file of text: these have no sample
NO_SAMPLE = {"inspect", "scout"}
# a table or a file beside them has the outcome
NO_OUTCOME = {"atif", "claude_code", "codex", "swe_agent"}


def kinds_of(kind):
    """Return a class and all that are made of it."""
    return {kind, *(one for inner in kind.__subclasses__() for one in kinds_of(inner))}


def test_every_format_has_a_row_and_a_sample():
    io.read_runs(SAMPLES[0])  # which imports all formats
    known = [kind for kind in kinds_of(io.Format) if hasattr(kind, "name")]
    ours = {kind.name: kind for kind in known if kind.__module__.startswith("trajscore.")}
    page = (PAGES / "index.rst").read_text()
    rows = [row.split("\n     - ") for row in page.split("\n   * - ")[2:]]
    names = [re.match(r"(?::download:`)?(\w+)", row[0])[1] for row in rows]
    assert sorted(names) == sorted(ours)
    assert {path.stem for path in SAMPLES} == ours.keys() - NO_SAMPLE
    assert [path.name for path in SAMPLES if f"<samples/{path.name}>" not in page] == []
    for name, (saved, keys, scores, tried) in zip(names, rows, strict=True):
        marks = [ours[name].holds, *ours[name].endings]
        assert any(f"``{mark}``" in keys for mark in marks), (name, "how it is recognised")
        assert ":" in saved or "," in saved, (name, "how it is saved")
        assert scores.count(" · ") == 2, (name, "outcome, confidence and stop")
        tried = tried.partition(";")[0] + saved.partition("tried with")[2]
        assert re.search(r"\d|no program", tried), (name, "tried with")


OF_SAMPLES = {  # the id, why it stopped, the model, and how sure both turns of the agent are
    "atif": ("s1", None, "m", None, 0.9),
    "claude_code": ("s1", "end_turn", "m", None, None),
    "codex": ("s1", "completed", "m", None, None),
    "events": ("r1", None, None, None, None),
    "jsonl": ("r1", None, None, 0.7, 0.9),
    "langfuse": ("t1", None, None, 0.7, 0.9),
    "langsmith": ("0", None, None, 0.7, None),
    "mlflow": ("tr-1", None, None, 0.7, None),
    "openai": ("r1", None, None, None, None),
    "openai_agents": ("trace_1", None, None, None, None),
    "openhands": ("s1", None, None, None, None),
    "otel": ("5b8efff798038103", None, None, 0.7, 0.9),
    "swe_agent": ("swe_agent", "submitted", None, None, None),
    "tau2": ("r1", "user_stop", None, None, None),
    "tau_bench": ("7-0", None, None, None, None),
}


def test_samples_all_tell_the_same():
    read = {path.stem: io.read_runs(path) for path in SAMPLES}
    assert read == {path.stem: io.read_runs(path, format=path.stem) for path in SAMPLES}
    for name, (run,) in read.items():
        assert turns(run) == [ALL[0], ALL[1], ALL[3]], name
        assert said(run) == ALL or name in {"jsonl", "swe_agent"}, name
        assert [step.observation or None for step in run.steps] == [None, "in Paris", None], name
        stated = [step.confidence for step in run.steps[1:]]
        assert (run.id, run.stop_reason, run.meta.get("model"), *stated) == OF_SAMPLES[name]
        assert run.outcome == (-1 if name in NO_OUTCOME else 1), name
    assert read["atif"][0].steps[1].logprobs == (-0.1, -0.3)
    calls = [step.tool_calls[0].arguments for step in read["swe_agent"][0].steps[1:]]
    assert (calls, read["swe_agent"][0].meta["cost"]) == (["find 3", "submit"], 0.01)
    assert read["swe_agent"][0].meta["input_tokens"] == 7
    assert [step.index for step in read["openai"][0].steps] == [0, 1, 3]
    assert said(read["jsonl"][0])[2][:2] == ALL[2][:2]
