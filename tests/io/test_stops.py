"""Whatever reads a log, a stop reason means the same."""

import pytest

from trajscore import io

TURN = {"role": "assistant", "content": "Hello"}
KINDS = {
    "done": "complete", "user_stop": "complete", "max_steps": "administrative",
    "Max Turns": "administrative", "too_many_errors": "informative", "refusal": "informative",
    "timeout": "unknown", "huh": "unknown", "user_error": "excluded", "crash": "informative",
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:.* excluded:UserWarning")
def test_every_reader_gives_the_same_answer(write):
    stopped = [{"id": reason, "messages": [TURN], "stop_reason": reason} for reason in KINDS]
    rows = [{"run": reason, "text": "x", "stop_reason": reason} for reason in KINDS]
    simulations = [run | {"termination_reason": run["stop_reason"]} for run in stopped]
    for path in (
        write("openai.json", stopped),
        write("jsonl.jsonl", rows, lines=True),
        write("tau2.json", {"info": {}, "simulations": simulations}),
    ):
        runs = io.read_runs(path)
        kinds = {run.id: run.stop_kind for run in runs}
        assert kinds | {run.id: run.kind for run in runs.left_out} == KINDS, path


def test_a_rule_is_asked_before_the_table(write, talk):
    runs = [{"id": k, "messages": talk, "stop_reason": k} for k in ("Max Steps", "timeout", "x")]
    path = write("a.json", runs)
    found = io.read_runs(path, rule={"timeout": "administrative", "max-steps": "informative"})
    assert [run.stop_kind for run in found] == ["informative", "administrative", "unknown"]
    found = io.read_runs(path, rule=lambda reason: "administrative")
    assert [run.stop_kind for run in found] == ["administrative"] * 3
    with pytest.warns(UserWarning, match=r"1 of 3 runs is excluded \(x 1\)"):
        found = list(io.iter_runs(path, rule={"x": "excluded"}))
    assert len(found) == 2
