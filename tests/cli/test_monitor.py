"""``trajscore monitor``: lines in, decisions out."""

import io
import json
import subprocess
import sys

import pytest

from trajscore import DensityRatioEProcess
from trajscore.cli.main import main
from trajscore.datasets import make_trajectories


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    skops = pytest.importorskip("skops.io")
    X, y = make_trajectories(800, lengths=(1, 6), random_state=0, return_X_y=True)
    process = DensityRatioEProcess(alpha=[0.1, 0.3]).fit(X, y)
    path = tmp_path_factory.mktemp("model") / "process.skops"
    skops.dump(process, path)
    return process, X, path


def monitored(path, lines, monkeypatch, capsys, *options):
    given = io.BytesIO(b"\n".join(one if isinstance(one, bytes) else one.encode() for one in lines))
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(given))
    code = main(["monitor", "--model", str(path), *options])
    return code, [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_monitor_decides_as_the_process_does(model, monkeypatch, capsys):
    process, X, path = model
    lines = []
    for row in range(30):
        lines += [json.dumps({"id": row, "score": score}) for score in X[row].tolist()]
        lines.append(json.dumps({"id": row, "end": True}))
    for options, alpha in (((), 0.1), (("--alpha", "0.3"), 0.3)):
        code, answers = monitored(path, lines, monkeypatch, capsys, *options)
        assert code == 0
        assert len(answers) == len(lines)
        last = {answer["id"]: answer["flagged"] for answer in answers}
        assert [not last[row] for row in range(30)] == (
            process.predict(X[:30], alpha) == 1
        ).tolist()


def test_monitor_answers_bad_lines_and_goes_on(model, monkeypatch, capsys):
    _, _, path = model
    bad = {
        "score": "not JSON; send an object",
        "[" * 5000: "not JSON; send an object",
        b'{"id": "\xff"}': "not UTF-8, at byte 8",
        '{"id": "a", "score": ' + "1" * (1 << 20) + "}": "the line has more than 1,048,576 bytes",
        "[1]": "not an object",
        '{"score": 0.4}': '"id" is missing',
        '{"id": "a", "score": 0.4, "score": 0.9}': "the key 'score' stands twice in one object",
        '{"id": "a", "score": 1e308}': "step 2: the score 1e+308 is not a finite number",
        '{"run_id": "a", "score": 0.4}': "no key named 'run_id'; did you mean 'id'?",
        '{"id": "a", "prob": 0.4}': 'id, step, score, end; send an object such as {"id": "run 1"',
        '{"id": "a"}': '"score" is missing',
        '{"id": "a", "score": NaN}': "step 2: the score nan is not a finite number",
        '{"id": "a", "score": 0.4, "step": 4}': "got step 4, expected step 2",
        '{"id": "a", "score": 0.4, "step": true}': '"step" must be a whole number from 1 on',
        '{"id": "b", "end": true}': "run 'b' is not open: it has no score yet",
    }
    good = ['{"id": "a", "score": 0.4}', "", '{"id": "a", "score": 0.3}']
    _, answers = monitored(path, [good[0], *bad, *good[1:]], monkeypatch, capsys)
    assert [answer.get("step") for answer in answers] == [1, *[None] * len(bad), 2]
    pairs = zip(answers[1:-1], bad.values(), strict=True)
    for number, (answer, message) in enumerate(pairs, start=2):
        assert message in answer["error"]
        assert answer["line"] == number


@pytest.mark.filterwarnings("default")
def test_a_step_after_the_end_and_a_score_out_of_range(model, monkeypatch, capsys):
    ends = [{"id": "a", "step": 1, "score": 0.4, "end": True}, {"id": "a", "step": 2, "score": 0.4}]
    lines = [json.dumps(line) for line in [*ends, {"id": "b", "step": 1, "score": 7}]]
    _, answers = monitored(model[2], lines[:2], monkeypatch, capsys)
    assert answers[1]["error"] == (
        "run 'a': step 2 comes after its end; begin a new run of that id with step 1"
    )
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(lines[2].encode())))
    assert main(["monitor", "--model", str(model[2])]) == 0
    err = capsys.readouterr().err
    assert err.startswith("warning: run 'b', step 1: score 7 is out of range: training scores go")
    assert err.count("\n") == 1


def test_monitor_ends_quietly_when_it_is_interrupted(model, monkeypatch, capsys, tmp_path):
    def interrupted(_):
        yield b'{"id": "a", "step": 1, "score": 0.4}'
        raise KeyboardInterrupt

    process, _, path = model
    monkeypatch.setattr("trajscore.cli.monitor.lines_of", interrupted)
    state = tmp_path / "state"
    code, answers = monitored(path, [], monkeypatch, capsys, "--state", str(state))
    assert (code, [one["step"] for one in answers]) == (130, [1])
    monitor = process.monitor(state=state)  # what was answered is kept
    assert monitor.update(0.3, "a", step=2).step == 2
    monitor.close()


def test_monitor_keeps_a_state_that_survives_power_cuts(model, monkeypatch, capsys, tmp_path):
    options = ("--state", str(tmp_path / "state"), "--durability", "full")
    for step in (1, 2):
        line = json.dumps({"id": "a", "step": step, "score": 0.4})
        code, answers = monitored(model[2], [line], monkeypatch, capsys, *options)
        assert (code, [answer.get("step") for answer in answers]) == (0, [step])
    with pytest.raises(SystemExit):
        main(["monitor", "--model", str(model[2]), "--durability", "some"])
    capsys.readouterr()


def test_monitor_forgets_runs_after_a_week_unless_told_otherwise(model, monkeypatch, capsys):
    _, _, path = model
    seconds = []
    monkeypatch.setattr("trajscore.cli.monitor.serve", lambda *given: seconds.append(given[-1]))
    for options in ((), ("--forget-after", "0.5")):
        monitored(path, [], monkeypatch, capsys, *options)
    assert seconds == [7 * 24 * 3600, 1800]
    assert monitored(path, [], monkeypatch, capsys, "--forget-after", "0")[0] == 2


def test_monitor_goes_on_where_it_was_killed(model, tmp_path):
    """Started again, it answers the line that was not answered, and those sent twice, alike."""
    process, X, path = model
    rows = [row for row in range(30) if X.lengths[row] > 1]
    lines = []
    for t in range(int(X.lengths.max())):
        for row in rows:
            if t < X.lengths[row]:
                ends = {"end": True} if t + 1 == X.lengths[row] else {}
                message = {"id": row, "step": t + 1, "score": float(X[row][t])}
                lines.append(json.dumps(message | ends) + "\n")
    command = [sys.executable, "-m", "trajscore", "monitor", "--model", str(path)]
    command += ["--state", str(tmp_path / "state")]
    answers = []
    while len(answers) < len(lines):
        served = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        # the last line that was answered is sent again, as a client may who does not know
        for k in range(max(len(answers) - 1, 0), min(len(answers) + 60, len(lines))):
            served.stdin.write(lines[k].encode())
            served.stdin.flush()
            answer = json.loads(served.stdout.readline())
            assert "error" not in answer
            if k < len(answers):
                assert answer == answers[k]
            else:
                answers.append(answer)
        served.kill()
        served.wait()
        served.stdin.close()
        served.stdout.close()
    last = {answer["id"]: answer["flagged"] for answer in answers}
    expected = process.predict(X[rows], 0.1) == 0
    assert [last[row] for row in rows] == expected.tolist()


def test_monitor_says_what_is_wrong_with_a_model(tmp_path, capsys, model):
    skops = pytest.importorskip("skops.io")
    assert main(["monitor", "--model", str(tmp_path / "none.skops")]) == 2
    assert "does not exist; write it with trajscore fit" in capsys.readouterr().err
    (tmp_path / "text.skops").write_text("text")
    assert main(["monitor", "--model", str(tmp_path / "text.skops")]) == 2
    assert "is not a .skops file" in capsys.readouterr().err
    skops.dump([1, 2], tmp_path / "list.skops")
    assert main(["monitor", "--model", str(tmp_path / "list.skops")]) == 2
    assert "holds a list, not a DensityRatioEProcess" in capsys.readouterr().err
    assert main(["monitor", "--model", str(model[2]), "--alpha", "0.5"]) == 2
    assert "--alpha 0.5 was not fitted; the fitted levels are " in capsys.readouterr().err
