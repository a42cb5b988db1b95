"""Traces of OpenAI's Agents SDK, and the end of runs of smolagents."""

import json

import pytest

from known_dialogue import ALL, SAMPLES, said
from trajscore import io

ROWS = [json.loads(line) for line in (SAMPLES / "openai_agents.jsonl").read_text().splitlines()]


def test_spans_in_any_order_and_with_a_response(write):
    response = {"instructions": "Be kind.", "output": ROWS[0]["span_data"]["output"], "model": "m"}
    rich = {"type": "response", "input": ROWS[0]["span_data"]["input"], "response": response}
    grouped = [*ROWS[:4], ROWS[4] | {"group_id": "g"}]
    for rows in (ROWS[::-1], grouped, [ROWS[0] | {"span_data": rich}, *ROWS[1:]]):
        for path in (write("s.jsonl", rows, lines=True), write("s.json", {"data": rows})):
            (run,) = io.read_runs(path)
            assert [part for part in said(run) if part[0] != "system"] == ALL
            assert run.steps[1].extra["model"] == "m"
    assert io.read_runs(write("s.json", grouped), id="session")[0].id == "g"


def test_what_ended_a_trace_and_what_it_lacks(write):
    ended = {"message": "Max turns exceeded", "data": {"max_turns": 2}}
    failed = [ROWS[0], ROWS[1] | {"error": {"message": "Error running tool"}}, ROWS[2]]
    (run,) = io.read_runs(write("s.json", [*failed, ROWS[3] | {"error": ended}]))
    assert (run.stop_reason, run.outcome) == ("max_turns", -1)
    assert run.steps[1].tool_calls[0].error
    bare = [row | {"span_data": {"type": "response", "response_id": "r"}} for row in ROWS[:1]]
    with pytest.raises(ValueError, match=r"no model's words; save result\.to_input_list\(\)"):
        io.read_runs(write("s.json", [*bare, *ROWS[1:2]]))


def test_how_a_run_of_smolagents_ended(write):
    task = {"task": "Hi", "task_images": None}
    step = {"step_number": 1, "model_output": "Yes", "is_final_answer": True, "error": None}
    cap = step | {"model_output": None, "action_output": "No", "is_final_answer": False}
    cap["error"] = {"type": "AgentMaxStepsError", "message": "Reached max steps."}
    for steps, ended in (([task, step], "success"), ([task, cap], "max_steps_error")):
        record = {"output": "x", "state": ended, "steps": steps, "token_usage": None}
        others = [{"id": "a", "result": record}], {"memory": steps}, {"agent": "a", "steps": steps}
        for value in (steps, record, [record], *others):
            (run,) = io.read_runs(write("r.json", value))
            assert [one.text for one in run.steps] == ["Hi", "No" if ended != "success" else "Yes"]
            assert run.stop_reason == ended
