"""Early stopping of a task of Inspect, with a fake model."""

import pytest

pytest.importorskip("inspect_ai")
from inspect_ai import Task
from inspect_ai import eval as evaluate
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import match

from trajscore.integrations.inspect_ai import StopWhenDecided

pytestmark = pytest.mark.filterwarnings("ignore")  # of Inspect itself


def run(tmp_path, texts, **options):
    def answers():
        for text in texts:
            output = ModelOutput.from_content("mockllm/model", text)
            output.usage = ModelUsage(input_tokens=1, output_tokens=1)  # else they are counted
            yield output

    samples = [Sample(id=k, input="Where is it?", target="Oslo") for k in range(len(texts))]
    task = Task(dataset=samples, scorer=match(), early_stopping=StopWhenDecided(**options))
    model = get_model("mockllm/model", custom_outputs=answers())
    (log,) = evaluate(task, model=model, log_dir=str(tmp_path), max_samples=1, display="none")
    assert log.status == "success", log.error
    return log


@pytest.mark.parametrize(("text", "side"), [("Oslo", "above"), ("Bergen", "below")])
def test_no_more_samples_are_bought_once_it_is_decided(tmp_path, text, side):
    log = run(tmp_path, [text] * 60, target=0.5)
    decided = log.results.early_stopping.metadata
    assert decided["success"] == side
    assert decided["after"] <= len(log.samples) < 30
    assert decided["low"] <= (text == "Oslo") <= decided["high"]


def test_all_are_bought_where_it_stays_open(tmp_path):
    log = run(tmp_path, ["Oslo", "Bergen"] * 8, target=0.5)
    assert log.results.early_stopping.metadata["success"] == "undecided"
    assert len(log.samples) == 16
