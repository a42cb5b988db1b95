"""Logs as engineers have them: right, or refused with what makes the next try right."""

import numpy as np
import pandas as pd
import pytest

from public_data import MADE_LOGS
from trajscore import StepConfidence, io

# What else is to be said, after the first try was refused.
SCORE, TABLE = {"openai_score.jsonl"}, {"openai_bare.json", "openai_noout.json"}


@pytest.mark.parametrize("part", range(4))
def test_made_logs(public_file, part):
    for name in list(MADE_LOGS)[part::4]:
        path, wanted = public_file("made_logs", name), (21, 19)
        runs = io.read_runs(path)
        if name in SCORE | TABLE:
            with pytest.raises(ValueError, match=r"no run has an outcome.*outcome=.*outcomes="):
                io.outcomes(runs)
        if name in SCORE:
            runs = io.read_runs(path, outcome="score")
        if name in TABLE:
            wanted = (20, 20)
            table = pd.DataFrame({"run_id": [run.id for run in runs], "ok": ["bad", "good"] * 20})
            words = {"outcome": "ok", "outcome_map": "good=1,bad=0"}
            runs = io.read_runs(path, outcomes=table, **words)
        assert len(runs) == 40, name
        assert tuple(np.bincount(io.outcomes(runs))) == wanted, name
        for run in runs:
            actors = [step.actor for step in run.steps]
            assert set(actors) <= {"user", "agent"}, name
            assert actors.count("user") <= 1, name
            assert run.steps[-1].text.startswith("Your order is on its way."), name
        X = StepConfidence(channels=["verbal"]).fit_transform(runs)
        assert (X.lengths >= 2).all(), name
        assert not np.isnan(X.cells).any(), name
