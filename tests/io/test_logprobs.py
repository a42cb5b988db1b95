"""Log-probabilities where clients and servers keep them: read, or named as not read."""

import json
import math
import random

import numpy as np
import pytest

from trajscore import StepConfidence, TracerSignals, io
from trajscore.cli.main import main

ASK = {"role": "user", "content": "Where is the bag?"}
SAID = {"role": "assistant", "content": "In Rome"}
TOP = [[("In", -0.25), ("At", -2.0)], [(" Rome", -0.5), (" it", -1.0)]]
CHOSEN = [first for first, _ in TOP]


def pair(token, value, text="token", name="logprob"):
    return {text: token, "id": 7, name: value}


LISTED = [pair(*top[0]) | {"top_logprobs": [pair(*own) for own in top]} for top in TOP]
LEGACY = {
    "tokens": ["In", " Rome"], "token_logprobs": [-0.25, -0.5], "top_logprobs": list(map(dict, TOP))
}  # fmt: skip


def google(chosen, top, name):
    """Return the result of Gemini, whose names Python writes in another case."""
    tops = [{"candidates": [pair(*own, name=name) for own in alternatives]} for alternatives in TOP]
    return {chosen: [pair(*own, name=name) for own in CHOSEN], top: tops}


CAMEL = google("chosenCandidates", "topCandidates", "logProbability")
SNAKE = google("chosen_candidates", "top_candidates", "log_probability")
MODEL = {"role": "model", "parts": [{"text": "In Rome"}]}
RESPONSE = {"kind": "response", "parts": [{"part_kind": "text", "content": "In Rome"}]}
TURNS = {  # the turn of an agent, or the answer to a request, by who writes it so
    "chat completions": {"choices": [{"message": SAID, "logprobs": {"content": LISTED}}]},
    "responses": {"type": "message", "role": "assistant", "content":
     [{"type": "output_text", "text": "In Rome", "logprobs": LISTED}]},
    "legacy completions": SAID | {"logprobs": LEGACY}, "ollama": SAID | {"logprobs": LISTED},
    "langchain": {"type": "ai", "content": "In Rome", "response_metadata": {"logprobs":
     {"content": LISTED}, "model_name": "m"}},
    "langchain, gemini": {"type": "ai", "content": "In Rome", "response_metadata":
     {"logprobs_result": LISTED, "avg_logprobs": -0.375}},
    "llama index": {"message": {"role": "assistant", "blocks": [{"block_type": "text", "text":
     "In Rome"}]}, "raw": None, "logprobs": [[pair(*own) for own in top] for top in TOP]},
    "pydantic ai": RESPONSE | {"provider_details": {"logprobs": LISTED}},
    "pydantic ai, responses": {"kind": "response", "parts":
     [RESPONSE["parts"][0] | {"provider_details": {"logprobs": LISTED}}]},
    "pydantic ai, xai": {"kind": "response", "parts":
     [RESPONSE["parts"][0] | {"provider_details": {"logprobs": {"content": LISTED}}}]},
    "pydantic ai, gemini": RESPONSE | {"provider_details": {"logprobs": SNAKE, "avg_logprobs": -1}},
    "gemini": MODEL | {"logprobsResult": CAMEL, "avgLogprobs": -0.375},
    "gemini, candidate": {"content": MODEL, "logprobsResult": CAMEL, "avgLogprobs": -0.375},
    "google adk": {"author": "a", "content": MODEL, "actions": {}, "avg_logprobs": -0.375,
     "logprobs_result": SNAKE},
}  # fmt: skip
PROBS = [[(token, math.exp(value)) for token, value in own] for own in TOP]
BY_ID = [
    {str(k): pair(*own) | {"decoded_token": own[0], "token": None} for k, own in enumerate(top)}
    for top in TOP
]
SGLANG = [[[value, 7, token] for token, value in top] for top in TOP]
TGI = [[pair(*own, text="text") for own in top] for top in TOP]


def before(first):
    """Return log-probabilities of the prompt, which are not the answer's."""
    return [first, {"id": 3, "text": " is", "logprob": -7.5}]


ANSWERS = {  # the responses of servers
    "gemini": {"candidates": [TURNS["gemini, candidate"]]},
    "chat completions": TURNS["chat completions"],
    "completions": {"choices": [{"text": "In Rome", "logprobs": LEGACY}]},
    "llama.cpp": {"content": "In Rome", "tokens_predicted": 2, "completion_probabilities": LISTED},
    "llama.cpp, sampled": {"content": "In Rome", "completion_probabilities": [
        pair(*own[0], name="prob") | {"top_probs": [pair(*one, name="prob") for one in own]}
        for own in PROBS]},
    "llama.cpp, old": {"content": "In Rome", "completion_probabilities": [
        {"content": own[0][0], "probs": [pair(*one, "tok_str", "prob") for one in own[::-1]]}
        for own in PROBS]},
    "tgi": {"generated_text": "In Rome", "details": {"prefill": before({"id": 1, "logprob": None}),
     "tokens": [own[0] for own in TGI], "top_tokens": TGI}},
    "sglang": {"text": "In Rome", "meta_info": {"input_token_logprobs": [[-7.5, 3, "is"]],
     "output_token_logprobs": [own[0] for own in SGLANG], "output_top_logprobs": SGLANG}},
    "vllm": {"prompt_token_ids": [3], "prompt_logprobs": [None, {"3": {"logprob": -7.5}}],
     "outputs": [{"text": "In Rome", "token_ids": [0, 0], "logprobs":
      [dict(sorted(own.items())[::-1]) for own in BY_ID]}]},
    "ollama": {"model": "m", "message": SAID, "done": True, "logprobs": LISTED},
    "ollama, generate": {"model": "m", "response": "In Rome", "done": True, "logprobs": LISTED},
    "responses": {"object": "response", "text": {"format": {"type": "text"}}, "output":
     [TURNS["responses"]]},
}  # fmt: skip


def test_dialects(write):
    records = [(name, {"messages": [ASK, turn]}) for name, turn in TURNS.items()]
    for name, answer in ANSWERS.items():
        asked = {"request": {"messages": [ASK]}, "response": answer}
        records += [(name, record) for record in (
            asked, answer, {"messages": [ASK, answer]}, {"messages": [ASK, SAID | {"raw": answer}]},
            {"steps": [{"response": answer}]}, {"run_id": "r", "step": 1, "response": answer},
            {"run_id": "r", **answer}, {"responses": [answer]}, {"prompt": "Where?", **answer},
            {"messages": [ASK], "response": answer}, {"messages": [ASK], "raw": json.dumps(answer)},
            {"messages": [ASK], "completion": [answer]},
        )]  # fmt: skip
        records += [(name, {"messages": [ASK], **answer})] * (name != "responses")
    for name, record in records:
        runs = io.read_runs(write("log.jsonl", [{"id": "r", "success": True} | record], lines=True))
        step = runs[0].steps[-1]
        tops = [sorted(dict(own).items()) for own in step.top_logprobs or ()]
        assert step.logprobs == pytest.approx((-0.25, -0.5), rel=1e-12), (name, record)
        assert [[token for token, _ in own] for own in tops] == [sorted(dict(t)) for t in TOP], name
        values = [value for own in tops for _, value in own]
        assert values == pytest.approx([v for top in TOP for _, v in sorted(top)]), name
        said = (step.actor, step.text, step.tokens, runs.notes, runs[0].outcome)
        assert said == ("agent", "In Rome", ("In", " Rome"), [], 1), (name, record)
        # what the step holds is not kept twice
        assert name == "responses" or "top_logprobs" not in json.dumps(step.extra), name


def test_a_file_of_responses_has_a_run_a_line(write):
    for answer in ANSWERS.values():
        runs = io.read_runs(write("log.jsonl", [answer] * 2, lines=True))
        assert [(len(run.steps), len(run.steps[0].logprobs)) for run in runs] == [(1, 2)] * 2


def test_pieces_of_a_stream_are_no_runs(write):
    chunk = {"object": "chat.completion.chunk", "choices": [{"delta": {"content": "In"}}]}
    for piece in (
        chunk, ANSWERS["ollama"] | {"done": False}, ANSWERS["llama.cpp"] | {"stop": False},
    ):  # fmt: skip
        with pytest.raises(ValueError, match=r"log\.jsonl"):
            io.read_runs(write("log.jsonl", [piece] * 2, lines=True))


@pytest.mark.parametrize(
    ("name", "turns", "logprobs_of"),
    [
        ("pydantic", "messages", lambda turn: turn["provider_details"]["logprobs"]),
        ("gemini", "contents", lambda turn: turn["logprobsResult"]["chosenCandidates"]),
        ("adk", "events", lambda turn: turn["logprobs_result"]["chosen_candidates"]),
    ],
)
def test_files_of_clients(name, turns, logprobs_of, public_file, capsys):
    path = public_file("logprobs", f"{name}.jsonl")
    records = [json.loads(line) for line in path.read_text().splitlines()]
    runs = io.read_runs(path)
    assert [run.id for run in runs] == [record["id"] for record in records]
    assert io.outcomes(runs).tolist() == [int(record["success"]) for record in records]
    assert [len(run.steps) for run in runs] == [len(record[turns]) for record in records]
    expected = []
    for record in records:
        for turn in record[turns]:
            try:
                tokens = logprobs_of(turn)
            except KeyError:
                continue
            values = [next(v for k, v in own.items() if "prob" in k.lower()) for own in tokens]
            expected.append(np.mean(np.exp(values)))
    X = StepConfidence().fit_transform(runs)["token_probability"]
    assert X.lengths.tolist() == [sum(step.actor == "agent" for step in r.steps) for r in runs]
    np.testing.assert_array_equal(X.cells, expected)
    assert main(["report", str(path), "--resamples", "10", "--jobs", "1"]) == 0
    out = capsys.readouterr().out
    assert "token_probability: in 100% of the agent's turns" in out
    assert "no confidence" not in out
    assert "not read" not in out


def test_fields_that_are_not_read_are_named(write):
    def notes(**more):
        record = {"id": "r", "success": True, "messages": [ASK, SAID | more]}
        return io.read_runs(write("log.jsonl", [record], lines=True)).notes

    read = {"logprobs": LISTED}
    other = {"choices": [{"message": SAID, "logprobs": LISTED}, {"logprobs": [-0.75]}]}
    for more, n, name in (
        ({"avgLogprobs": -0.5}, "1", "avgLogprobs"),
        ({"x": [{"LOG_PROB": -1}, {"LOG_PROB": -2}]}, "2", "x.LOG_PROB"),
        ({"x": {"logprobs": '{"values": [-1]}'}}, "1", "x.logprobs"),
        ({"llm.0.logprob": -1, "llm.1.logprob": -1}, "2", "llm.logprob"),
    ):
        (note,) = (note for note in notes(**more) if "log-prob" in note)
        assert note == f"{n} log-probability field{'s' * (n > '1')} not read, in 'messages.{name}'"
    for more in (
        {"logprobs": None, "log_prob": [], "logprobs_result": {"a": [None]}, "logprob": ""},
        {"avg_logprobs": 0.0, "logProb": [0, -9999.0], "x": {"logprobs": True, "top_logprobs": 5}},
        read | {"avg_logprobs": -0.375, "prompt_logprobs": [-3.0]},  # beside what is read
        other,  # another answer
        {"log_problems": [-1]}, {"details": {"tokens": [[1, 2]]}, "meta_info": [-1], "logprob": 3},
        {"provider_details": "x", "details": [1]},
    ):  # fmt: skip
        assert not [note for note in notes(**more) if "log-prob" in note], more


def test_a_log_with_log_probabilities_is_not_said_to_have_none(tmp_path, capsys):
    path = tmp_path / "log.jsonl"
    rows = [
        {"id": k, "success": k % 3 > 0, "contents": [ASK, MODEL | {"avgLogprobs": -0.5 - k}] * 2}
        for k in range(24)
    ]
    path.write_text("\n".join(map(json.dumps, rows)))
    assert main(["report", str(path), "--resamples", "10", "--jobs", "1"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "the log has no confidence" not in out
    assert "no confidence of the log could be read" in out
    assert "48 log-probability fields not read, in 'contents.avgLogprobs'" in out


def test_any_object_is_read_or_refused_in_words(write):
    draw = random.Random(0)
    names = (
        "logprobs", "logprobsResult", "logprobs_result", "response_metadata", "provider_details",
        "choices", "raw_data", "content",
        "token_logprobs", "top_logprobs", "tokens", "chosenCandidates", "topCandidates",
        "candidates", "output_token_logprobs", "output_top_logprobs", "top_tokens", "logprob",
        "prob", "probs", "token", "text", "x",
    )  # fmt: skip
    leaves = (None, True, 0, 5, -0.5, -math.inf, 10**400, 0.5, "", "a", "-0.5", "[-1]", [], {})

    def value(depth):
        kind = draw.randrange(5) if depth else 4
        if kind == 4:
            return draw.choice(leaves)
        if kind < 2:
            return [value(depth - 1) for _ in range(draw.randrange(4))]
        return {draw.choice(names): value(depth - 1) for _ in range(draw.randrange(5))}

    n_read, refused = 0, []
    for _ in range(300):
        more = {draw.choice(names): value(draw.randrange(8)) for _ in range(3)}
        deep = {}
        for _ in range(draw.choice((0, 0, 200))):
            deep = {draw.choice(names): [deep] if draw.random() < 0.5 else deep}
        record = {"id": "r", "messages": [ASK, SAID | more | {"y": deep, **deep}]}
        path = write("log.jsonl", [record], lines=True)
        try:
            n_read += len(io.read_runs(path)[0].steps)
        except ValueError as error:
            refused.append((path.name in str(error), error))
    assert all(names for names, _ in refused), refused
    assert n_read > len(refused) > 10


def sure(k, *logprobs):
    turns = [SAID | {"logprobs": [{"token": "a", "logprob": p}]} for p in logprobs]
    return {"id": str(k), "success": k % 2, "messages": [ASK, *turns]}


def test_zeros_are_certainty_where_any_log_probability_differs(write, capsys):
    rows = [sure(k, 0.0, -0.5 * (k % 3 == 0)) for k in range(24)]
    path = write("log.jsonl", rows, lines=True)
    runs = io.read_runs(path)
    assert runs.notes == []
    assert io.meta(runs)["n_logprobs"].tolist() == [2] * 24
    read = list(io.iter_runs(path))
    X = StepConfidence().fit_transform(read)["token_probability"]
    assert X.cells[:4].tolist() == pytest.approx([1, math.exp(-0.5), 1, 1])
    assert TracerSignals().fit_transform(read)["surprisal"].cells[4] == 1e-4
    assert main(["report", str(path), "--resamples", "10", "--jobs", "1"]) == 0
    assert "token_probability: in 100% of the agent's turns" in capsys.readouterr().out


@pytest.mark.parametrize("top", [None, 0.0, -9999.0, -2.0])
def test_a_log_of_zeros_alone_has_none_and_is_told_so(write, top):
    rows = [sure(k, 0.0, 0.0) for k in range(4)]
    if top is not None:
        rows[3]["messages"][2]["logprobs"][0]["top_logprobs"] = [{"token": "b", "logprob": top}]
    runs = io.read_runs(write("log.jsonl", rows, lines=True))
    is_recorded = top == -2
    assert io.meta(runs)["n_logprobs"].tolist() == [2 * is_recorded] * 4
    assert [note.split(" of ")[1][:7] for note in runs.notes] == ["8 turns"] * (not is_recorded)
    signals = StepConfidence(["token_probability"]).fit(runs)
    assert signals.n_missing_["token_probability"] == 8 * (not is_recorded)
    surprisal = TracerSignals().fit_transform(runs)["surprisal"]
    assert np.isnan(surprisal.cells).all() == (not is_recorded)


def test_sure_turns_of_a_real_log_count(public_file, capsys):
    path = public_file("field", "lp_zero.jsonl")
    assert main(["report", str(path), "--resamples", "10", "--jobs", "1"]) == 0
    assert "40 runs · 80 steps" in capsys.readouterr().out
