"""``trajscore monitor``: lines in, decisions out."""

import json
import subprocess
import sys
from functools import partial

import pytest

from trajscore import DensityRatioEProcess
from trajscore.datasets import make_trajectories

skops = pytest.importorskip("skops.io")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    X, y = make_trajectories(800, lengths=(1, 6), random_state=0, return_X_y=True)
    process = DensityRatioEProcess(alpha=[0.1, 0.3]).fit(X, y)
    path = tmp_path_factory.mktemp("model") / "process.skops"
    skops.dump(process, path)
    return process, X, path


@pytest.fixture
def send(model, monitored):
    return partial(monitored, model[2])


def test_it_answers_bad_lines_and_goes_on(send):
    bad = {
        "score": "not JSON",
        "[" * 5000: "not JSON",
        b'{"id": "\xff"}': "not UTF-8, at byte 8",
        '{"id": "a", "score": ' + "1" * (1 << 20) + "}": "1,048,576 bytes",
        "[1]": "not an object",
        '{"score": 0.4}': '"id" is missing',
        '{"id": 0.5, "score": 0.4}': '"id" must be text or a whole number',
        '{"id": "a", "score": 0.4, "score": 0.9}': "'score' stands twice",
        '{"id": "a", "score": 1e308}': "step 2: the score 1e+308",
        '{"run_id": "a", "score": 0.4}': "'run_id'; did you mean 'id'",
        '{"id": "a", "prob": 0.4}': "id, step, score, end",
        '{"id": "a"}': '"score" is missing',
        '{"id": "a", "score": NaN}': "step 2: the score nan",
        '{"id": "a", "score": 0.4, "step": 4}': "step 4, expected step 2",
        '{"id": "a", "score": 0.4, "step": true}': '"step" must be',
        '{"id": "a", "score": 0.4, "end": 1}': '"end" must be true or false',
        '{"id": "b", "end": true}': "run 'b' is not open",
    }
    good = ['{"id": "a", "score": 0.4}', "", '{"id": "a", "score": 0.3}']
    code, answers, err = send([good[0], *bad, *good[1:]])
    assert (code, f"answered {len(bad)} lines by an error" in err) == (2, True)
    assert [answer.get("step") for answer in answers] == [1, *[None] * len(bad), 2]
    pairs = zip(answers[1:-1], bad.values(), strict=True)
    for number, (answer, named) in enumerate(pairs, start=2):
        assert named in answer["error"]
        assert answer["line"] == number


@pytest.mark.filterwarnings("default")
def test_a_step_after_the_end_and_a_score_out_of_range(send):
    ends = [{"id": "a", "step": 1, "score": 0.4, "end": True}, {"id": "a", "step": 2, "score": 0.4}]
    _, answers, _ = send(map(json.dumps, ends))
    assert "run 'a': step 2 comes after its end" in answers[1]["error"]
    code, _, err = send([json.dumps({"id": "b", "step": 1, "score": 7})])
    assert err.startswith("warning: run 'b', step 1: score 7 is out of range")
    assert (code, err.count("\n")) == (0, 1)


class Interrupted:
    """Standard input that gives one line before somebody interrupts."""

    def __init__(self, line):
        self.buffer, self.lines = self, [line]

    def readline(self, _):
        if not self.lines:
            raise KeyboardInterrupt
        return self.lines.pop()


def test_a_state_survives_interrupts_and_ends(model, send, tmp_path):
    options = ("--state", tmp_path / "state", "--durability", "full")
    first = Interrupted(b'{"id": "a", "step": 1, "score": 0.4}')
    code, answers, _ = send([], *options, stdin=first)
    assert (code, [one["step"] for one in answers]) == (130, [1])
    for step in (2, 3):
        code, answers, _ = send([json.dumps({"id": "a", "step": step, "score": 0.3})], *options)
        assert (code, answers[0]["step"]) == (0, step)
    monitor = model[0].monitor()
    decisions = [monitor.update(score, "a") for score in (0.4, 0.3, 0.3)]
    assert decisions[-1].flagged == answers[0]["flagged"]


def test_it_goes_on_where_it_was_killed(model, send, tmp_path):
    process, X, path = model
    rows = [row for row in range(20) if X.lengths[row] > 1]
    lines = []
    for row in rows:
        for t, score in enumerate(X[row].tolist(), start=1):
            end = {"end": True} if t == X.lengths[row] else {}
            lines.append(json.dumps({"id": row, "step": t, "score": score} | end))
    state = ("--state", str(tmp_path / "state"))
    command = [sys.executable, "-m", "trajscore", "monitor", "--model", str(path), *state]
    half = len(lines) // 2
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as served:
        served.stdin.write("".join(line + "\n" for line in lines[:half]).encode())
        served.stdin.flush()
        answers = [json.loads(served.stdout.readline()) for _ in range(half)]
        served.kill()
    # the last line that was answered is sent again, as a client may who does not know
    _, rest, _ = send(lines[half - 1 :], *state)
    assert rest[0] == answers[-1]
    last = {answer["id"]: answer["flagged"] for answer in [*answers, *rest]}
    assert [last[row] for row in rows] == (process.predict(X[rows], 0.1) == 0).tolist()


def test_what_cannot_be_used(model, send, refuses):
    cases = [
        ("--alpha 0.5", "--alpha 0.5 was not fitted"),
        ("--forget-after 0", "--forget-after must"),
    ]
    refuses(cases, f"monitor --model {model[2]}")
    with pytest.raises(SystemExit):
        send([], "--durability", "some")
