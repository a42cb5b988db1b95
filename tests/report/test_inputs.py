"""`trajscore report` on logs of runs."""

import gzip
import json
import re

import numpy as np
import pandas as pd
import pytest

from trajscore.cli.main import main
from trajscore.core.errors import ArgumentError
from trajscore.io.fields import Fields
from trajscore.report._inputs import FromLog, FromTable, load


def talk(rng, k, words="It is there"):
    turns = []
    for _ in range(int(rng.integers(1, 5))):
        turns += [
            {"role": "user", "content": f"Where is bag {k}?"},
            {"role": "assistant", "content": words.format(p=rng.random())},
        ]
    return turns


def write_log(folder, words="It is there", name="results.json", n=24):
    rng = np.random.default_rng(0)
    simulations = [
        {
            "id": f"s{k:02d}",
            "task_id": f"t{k // 2}",
            "messages": talk(rng, k, words),
            "termination_reason": "max_steps" if k == 5 else "user_stop",
            "reward_info": {"reward": float(k % 3 == 0)},
        }
        for k in range(n)
    ]
    path = folder / name
    path.write_text(json.dumps({"info": {}, "simulations": simulations}))
    return path


def run(capsys, *arguments):
    code = main(["report", *map(str, arguments), "--verbose", "--resamples", "20"])
    out, err = capsys.readouterr()
    return code, out, err


def test_without_confidence_the_situation_is_judged(tmp_path, capsys):
    page = tmp_path / "report.html"
    code, out, err = run(capsys, write_log(tmp_path), "--out", page)
    assert (code, err) == (0, "")
    assert "the log has no confidence (neither token log-probabilities nor stated ones)" in out
    assert re.search("TRACER: [a-z ]+; as given it is not a probability", out)
    assert "turns: surprisal 0, " in out
    assert re.search(r"in (\d+) turns: .* repetition (\d+), agent_gap 0, user_gap \d+", out)
    assert re.search("^alive rate, end known +24", out, re.MULTILINE)
    assert "clusters of runs by 'task'" in out
    assert "1 of 24 runs not observed" in out
    assert page.exists()


def test_stated_confidence_is_judged(tmp_path, capsys):
    code, out, _ = run(capsys, write_log(tmp_path, "There. Confidence: {p:.2f}"))
    assert code == 0
    assert "verbal: in 100% of the agent's turns" in out
    assert re.search("verbal: [a-z ]+; as given", out)
    assert "TRACER" not in out


def test_chosen_predictors_and_groups(tmp_path, capsys):
    path = write_log(tmp_path)
    _, out, _ = run(capsys, path, "--score", "tool calls", "--group", "run")
    assert "TRACER given" not in out
    assert "24 clusters of runs by 'run'" in out
    code, _, err = run(capsys, path, "--score", "TRACR")
    assert (code, err.count("\n")) == (2, 1)
    assert "no predictor named 'TRACR'; did you mean 'TRACER'" in err
    code, _, err = run(capsys, path, "--group", "tusk")
    assert "did you mean 'task'" in err


def test_columns_of_tables_are_not_for_logs(tmp_path, capsys):
    path = write_log(tmp_path)
    for option in ("--step", "--risk"):
        code, _, err = run(capsys, path, option, "x")
        assert code == 2
        assert f"{option} names a column of a table, but" in err
    code, _, err = run(capsys, path, "--stop-reason", "x")
    assert (code, err.count("\n")) == (2, 1)
    assert "--stop-reason: no field of a run named 'x'" in err


def test_what_is_a_log(tmp_path):
    table = tmp_path / "table.jsonl"
    table.write_text('{"run_id": 1, "step": 1, "confidence": 0.4, "solved": 1}\n')
    chat = tmp_path / "logs" / "chat.jsonl"
    chat.parent.mkdir()
    messages = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
    chat.write_text(json.dumps({"messages": messages, "success": True}) + "\n")
    packed = tmp_path / "chat.json.gz"
    packed.write_bytes(gzip.compress(chat.read_bytes()))
    assert isinstance(load(table).origin, FromTable)
    for path in (chat, chat.parent, packed):
        assert isinstance(load(path).origin, FromLog)
    odd = tmp_path / "odd.jsonl"
    odd.write_text('{"x": 1}\n')
    with pytest.raises(ValueError, match="no column has a usual name"):
        load(odd)


def test_the_format_can_be_named(tmp_path, capsys):
    rows = [
        {"run": k // 2, "t": k % 2, "text": "x", "p": 0.1 * (k % 7), "y": k // 2 % 2}
        for k in range(40)
    ]
    path = tmp_path / "steps.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert isinstance(load(path).origin, FromTable)
    assert load(path, format="jsonl").origin.coverage == {"verbal": 1.0}
    (tmp_path / "odd.json").write_text('{"a": 1}')
    assert "; name it with --format, one of" in run(capsys, tmp_path / "odd.json")[2]
    assert "no format named 'tau'; did you mean" in run(capsys, path, "--format", "tau")[2]


def test_what_was_guessed_is_data(tmp_path):
    frame = pd.DataFrame({"id": [1, 1, 2], "t": [0, 1, 0], "p": [0.5, 0.4, 0.3], "y": [1, 1, 0]})
    frame.to_csv(tmp_path / "t.csv", index=False)
    inputs = load(tmp_path / "t.csv", Fields(id="id", stop_reason=None, group="y"))
    assert inputs.origin.guessed == {"step": ("t",), "outcome": ("y",), "scores": ("p",)}
    assert inputs.origin.first_step == 0
    assert inputs.y.tolist() == [1, 0]
    assert list(inputs.groups) == [1, 0]
    assert inputs.stop_reason is None
    assert str(inputs) == (
        "guessed step: column 't'; outcome: column 'y'; scores: column 'p'; steps are counted "
        "from 0\n2 clusters of runs by 'y'"
    )
    known = load(tmp_path / "t.csv", Fields("id", "t", "y", scores=("p",)), first_step=0)
    assert str(known) == ""
    assert "chess" in str(load(None))


def test_what_was_found_in_a_log_is_data(tmp_path):
    inputs = load(write_log(tmp_path, "There. Confidence: {p:.2f}"))
    origin = inputs.origin
    assert (origin.n_runs, origin.left_out) == (24, [])
    assert (origin.coverage, origin.too_rare, origin.n_turns) == ({"verbal": 1.0}, {}, None)
    assert (inputs.group, inputs.n_groups) == ("task", 12)
    origin = load(write_log(tmp_path)).origin
    assert origin.coverage == {}
    assert list(origin.n_signals) == ["surprisal", "repetition", "agent_gap", "user_gap"]
    assert origin.n_signals["repetition"] > 0
    for part, fields in (("scores", Fields(scores=("x",))), ("step", Fields(step="t"))):
        with pytest.raises(ArgumentError) as error:
            load(write_log(tmp_path), fields)
        assert error.value.part == part


def test_what_is_left_out_is_said(tmp_path, capsys):
    path = write_log(tmp_path)
    raw = json.loads(path.read_text())
    raw["simulations"][1]["messages"] = [{"role": "user", "content": "Hello?"}]
    raw["simulations"][2] = {"id": "broken", "termination_reason": "user_stop"}
    path.write_text(json.dumps(raw))
    inputs = load(path)
    assert len(inputs.y) == 22
    assert [one.id for one in inputs.origin.left_out] == ["s01", "broken"]
    assert "2 of 24 runs could not be read and are left out" in str(inputs)
    assert "run 's01' (index 1): it has no turn of the agent" in str(inputs)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"simulations": [{"id": 1, "mess', "results.json"),
        ('{"info": {}, "simulations": []}', "there are no runs in"),
        ('{"info": {}, "results": []}', "the format is not known"),
        ('{"info": {}, "simulations": [{"id": 1}]}', "none of the 1 runs can be read as tau2"),
    ],
)
def test_bad_logs_end_with_one_sentence(tmp_path, capsys, content, message):
    path = tmp_path / "results.json"
    path.write_text(content)
    code, _, err = run(capsys, path)
    assert code == 2
    assert message in err
    assert err.count("\n") == 1


def test_public_logs(public_file, capsys):
    code, out, _ = run(capsys, public_file("tau2", "airline_gpt-oss-120b.json"))
    assert code == 0
    assert "5 of 49 runs not observed" in out
    assert "too_many_errors" in out


def test_tokens_saved_of_a_log(tmp_path, capsys):
    log = write_log(tmp_path, n=80)
    told = json.loads(log.read_text())
    for simulation in told["simulations"]:
        for turn in simulation["messages"]:
            turn["usage"] = {"completion_tokens": 10}
    log.write_text(json.dumps(told))
    code, out, _ = run(capsys, log, "--monitor", "--splits", "2", "--score", "tool calls")
    assert code == 0
    assert "tokens saved: the same share of its own tokens" in " ".join(out.split())
