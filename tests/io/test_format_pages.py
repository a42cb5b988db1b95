"""Every format has a row on the page of formats, and a sample, which is read as it says."""

import re
from pathlib import Path

from known_dialogue import ALL, turns
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
    known = [kind for kind in kinds_of(io.Format) if hasattr(kind, "name")]
    ours = {kind.name for kind in known if kind.__module__.startswith("trajscore.")}
    page = (PAGES / "index.rst").read_text()
    rows = re.findall(r"^   \* - (?::download:`)?(\w+)", page, re.MULTILINE)
    assert {*rows} - {"Format"} == ours
    assert len(rows) == len(ours) + 1
    assert {path.stem for path in SAMPLES} == ours - NO_SAMPLE
    assert [path.name for path in SAMPLES if f"<samples/{path.name}>" not in page] == []


def test_samples_all_tell_the_same():
    for path in SAMPLES:
        (run,) = runs = io.read_runs(path)
        assert runs == io.read_runs(path, format=path.stem)
        assert turns(run) == [ALL[0], ALL[1], ALL[3]], path
        (call,) = run.steps[1].tool_calls
        assert (call.name, run.steps[1].observation) == ("find", "in Paris"), path
        assert run.outcome == (-1 if path.stem in NO_OUTCOME else 1), path
