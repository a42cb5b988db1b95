"""Signals and risks of a run so far do not depend on what comes after, on public logs."""

from dataclasses import replace

import numpy as np
import pytest

from trajscore import ActionSignals, StepConfidence, TracerScorer, TracerSignals, io
from trajscore.tracer import SAUP, ChannelRisk

LOGS = [
    ("tau_bench", "gpt-4o-airline.json"),
    ("tau2", "airline_gpt-oss-120b.json"),
    ("tau2", "telecom_gpt-4.1.json"),
]
SCORERS = [
    *(TracerScorer(aggregation=one) for one in ("max", "additive", "separate")),
    TracerScorer(k=0.4, actors="agent"),
    ChannelRisk(None, kind="count"), ChannelRisk("tool_calls", kind="count"),
    ChannelRisk("confidence", kind="confidence"), ChannelRisk(),
    SAUP(),
]  # fmt: skip
SIGNALS = [
    TracerSignals(), TracerSignals(definition="paper"),
    ActionSignals(), ActionSignals(so_far=False), StepConfidence(),
]  # fmt: skip


@pytest.fixture(scope="module", params=LOGS, ids="/".join)
def runs(request, public_file):
    return list(io.read_runs(public_file(*request.param)))[:40]


def test_risks_of_prefixes(runs, rng):
    S = TracerSignals().fit_transform(runs)
    for scorer in SCORERS:
        whole = scorer.fit(S).transform(S)
        for _ in range(3):
            cut = rng.integers(1, S.lengths + 1)
            found = scorer.transform(S.truncate(cut))
            assert np.array_equal(found.cells, whole.truncate(cut).cells, equal_nan=True), scorer
            last = found.cells[found.offsets[1:] - 1].ravel()
            assert np.array_equal(scorer.score_samples(S.truncate(cut)), last, equal_nan=True)


@pytest.mark.parametrize("signals", SIGNALS, ids=repr)
def test_signals_of_prefixes(runs, signals, rng):
    runs = [run for run in runs if len(run.steps) > 3]  # a prefix then has a turn of each side
    cut = [replace(run, steps=run.steps[: rng.integers(3, len(run.steps))]) for run in runs]
    whole, short = signals.fit(runs).transform(runs), signals.transform(cut)
    expected = whole.truncate(short.lengths).cells
    np.testing.assert_allclose(short.cells, expected, rtol=0, atol=1e-12)
