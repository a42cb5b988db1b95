"""Every format has a page with a sample, which is read as the page says."""

from pathlib import Path

import pytest

from trajscore import io
from trajscore.io.registry import _FORMATS, detect_format

PAGES = Path(__file__).resolve().parents[2] / "docs" / "formats"
SAMPLES = sorted((PAGES / "samples").iterdir())
OURS = [name for name, one in _FORMATS.items() if type(one).__module__.startswith("trajscore.")]
# what they read is not one file of text: these have no sample
NO_SAMPLE = {"inspect", "scout"}
OBSERVED = {"jsonl", "langfuse", "langsmith", "mlflow", "openai", "otel", "tau2", "tau_bench"}


def test_every_format_has_a_page_and_a_sample():
    pages = {path.stem for path in PAGES.glob("*.rst")}
    assert pages == {*OURS, "index", "adding", "frameworks"}
    assert {path.stem for path in SAMPLES} == set(OURS) - NO_SAMPLE
    for path in SAMPLES:
        assert f"samples/{path.name}" in (PAGES / f"{path.stem}.rst").read_text()
    index = (PAGES / "index.rst").read_text().split()
    assert pages - {"index"} <= set(index)


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_samples_all_tell_the_same(path):
    assert detect_format(path).name == path.stem
    (run,) = io.read_runs(path)
    assert [(step.actor, step.text) for step in run.steps] == [
        ("user", "Where is order 3?"),
        ("agent", "I look."),
        ("agent", "In Paris."),
    ]
    (call,) = run.steps[1].tool_calls
    assert (call.name, run.steps[1].observation) == ("find", "in Paris")
    assert run.outcome == (1 if path.stem in OBSERVED else -1)
