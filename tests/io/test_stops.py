"""Whatever reads a log, a stop reason means the same: what the one table says."""

import json

import pytest

from trajscore import io
from trajscore.core.stops import STOP_REASONS, mechanism_of

TURN = {"role": "assistant", "content": "Hello"}
REASONS = [
    *(reason for reasons in STOP_REASONS.values() for reason in reasons),
    "timeout",
    "AgentTimeoutError",
    "rate limit",
]


def logs(write, reasons):
    """Write an unobserved run with each stop reason in formats that have a place for it."""
    simulations = [
        {"id": reason, "messages": [TURN], "termination_reason": reason} for reason in reasons
    ]
    write("tau2.json", {"info": {}, "simulations": simulations})
    runs = [{"id": reason, "messages": [TURN], "stop_reason": reason} for reason in reasons]
    write("openai.json", runs)
    rows = [{"run": reason, "text": "x", "stop_reason": reason} for reason in reasons]
    write("jsonl.jsonl", rows, lines=True)


def kinds_of(path):
    """Return the kind of stop of each run of a log, left out or not."""
    runs = io.read_runs(path)
    kinds = {run.id: run.stop_kind for run in runs}
    return kinds | {run.id: run.kind for run in runs.left_out}


@pytest.mark.filterwarnings("ignore:.* excluded:UserWarning")
def test_every_reader_gives_the_same_answer(write, tmp_path):
    logs(write, REASONS)
    expected = {reason: mechanism_of(reason) for reason in REASONS}
    for name in ("tau2.json", "openai.json", "jsonl.jsonl"):
        assert kinds_of(tmp_path / name) == expected, name
    step = {"source": "agent", "message": "x"}
    log = {"schema_version": "ATIF-v1.8", "trajectory_id": "a", "steps": [step]}
    for reason in REASONS[::8]:  # a folder each
        write("result.json", {"exception_info": {"exception_type": reason}})
        write("atif.json", log)
        assert list(kinds_of(tmp_path / "atif.json").values()) == [expected[reason]], reason


def test_a_rule_is_asked_before_the_table(write, talk):
    runs = [{"id": k, "messages": talk, "stop_reason": k} for k in ("Max Steps", "timeout", "x")]
    path = write("a.json", json.dumps(runs))
    found = io.read_runs(
        path, format="openai", rule={"timeout": "administrative", "max-steps": "informative"}
    )
    assert [run.stop_kind for run in found] == ["informative", "administrative", "unknown"]
    found = io.read_runs(path, rule=lambda reason: "administrative")
    assert [run.stop_kind for run in found] == ["administrative"] * 3
    with pytest.warns(UserWarning, match=r"1 of 3 runs is excluded \(x 1\)"):
        found = list(io.iter_runs(path, rule={"x": "excluded"}))
    assert len(found) == 2


def test_an_observed_outcome_is_complete_and_no_reason_has_no_kind(write, talk):
    runs = [
        {"id": "a", "messages": talk, "stop_reason": "user_error", "success": True},
        {"id": "b", "messages": talk},
        {"id": "c", "messages": talk, "stop_reason": "done"},
    ]
    found = io.read_runs(write("a.json", runs), format="openai")
    assert [run.stop_kind for run in found] == ["complete", None, "complete"]
    assert io.outcomes(found).tolist() == [1, -1, -1]
