"""The monitor as a service beside agents: killed, damaged, under load, and for a long time.

python tools/service.py kill   [--kills 200] [--runs 5000]
python tools/service.py damage [--trials 200] [--runs 5000]
python tools/service.py load   [--runs 10000] [--seconds 60] [--rate 1000]
python tools/service.py memory [--runs 1000000]
"""

import argparse
import json
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

import numpy as np
import skops.io

from trajscore import DensityRatioEProcess
from trajscore.datasets import make_trajectories
from trajscore.monitoring import EProcessMonitor


def fitted() -> DensityRatioEProcess:
    """A process of runs of up to 12 steps."""
    X, y = make_trajectories(2000, lengths=(1, 12), random_state=0, return_X_y=True)
    return DensityRatioEProcess(alpha=0.1).fit(X, y)


def served(folder: Path) -> subprocess.Popen:
    """``trajscore monitor`` with a state."""
    command = [sys.executable, "-m", "trajscore", "monitor", "--model", str(folder / "p.skops")]
    return subprocess.Popen(
        [*command, "--state", str(folder / "state")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )


def kill(arguments: argparse.Namespace) -> None:
    """Kill the monitor at random moments; compare its answers with those of one that lives on."""
    rng = np.random.default_rng(0)
    process = fitted()
    expected, lines = process.monitor(), traffic(arguments.runs, rng)
    unanswered: deque[dict] = deque()
    found: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        skops.io.dump(process, folder / "p.skops")
        # until all runs are open; then one life for each kill, and one to see what came of the last
        lives = [(2 * arguments.runs, 0.0), *moments(arguments.kills, rng), (arguments.runs, 0.0)]
        for least, pause in lives:
            unanswered.extend(islice(lines, max(0, _AHEAD - len(unanswered))))
            answers = until_killed(folder, unanswered, least, pause)
            found["kills before an answer"] += not answers
            found["all"] += len(answers)
            for answer in answers:
                own, told = answer_of(expected, unanswered.popleft()), json.loads(answer)
                found["refused"] += "error" in told
                found["different"] += any(told.get(name) != one for name, one in own.items())
        begun = time.perf_counter()
        monitor = process.monitor(state=folder / "state")
        seconds = time.perf_counter() - begun
        assert {own.id for own in monitor} == {own.id for own in expected}
        monitor.close()
        files = sorted(path.name for path in folder.iterdir())
    print(
        f"{len(lives) - 2} kills, {found['kills before an answer']} of them before the first "
        f"answer, under {len(expected):,} open runs, whose state is opened within {seconds:.2f} s; "
        f"files: {', '.join(files)}\n"
        f"{found['all']:,} answers: {found['different']} differ from those of a monitor that lived "
        f"on, {found['refused']} lines were refused"
    )


_AHEAD = 50_000  # lines that are sent without waiting for answers, so that kills come amid many


def traffic(n_open: int, rng: np.random.Generator) -> Iterator[dict]:
    """Steps of runs of which always as many are open: another takes the place of one that ends."""
    X, _ = make_trajectories(20_000, lengths=(2, 6), random_state=1, return_X_y=True)
    n_places = n_open * 4 // 3  # of 4 steps; a place is empty between two runs
    runs, steps = np.arange(n_places), np.zeros(n_places, dtype=int)
    while True:
        for place in rng.permutation(n_places).tolist():
            run, scores = int(runs[place]), X[int(runs[place]) % len(X)]
            steps[place] += 1
            step = int(steps[place])
            done = step == len(scores)
            yield {"id": run, "step": step, "score": float(scores[step - 1]), "end": done}
            if done:
                runs[place] += n_places
                steps[place] = 0


def moments(n: int, rng: np.random.Generator) -> Iterator[tuple[int, float]]:
    """Answers and seconds to wait before a kill: three in four come amid answers."""
    for amid in rng.random(n) < 0.75:
        yield (1, rng.exponential(0.5)) if amid else (0, rng.uniform(0, 4))


def answer_of(monitor: EProcessMonitor, message: dict) -> dict:
    """What a monitor says to a line, as JSON holds it."""
    own = monitor.update(message["score"], message["id"], done=message["end"])
    numbers = {"log_e_value": own.log_e_value, "margin": own.margin}
    return {"id": own.id, "step": own.step, "flagged": bool(own.flagged), **numbers}


def until_killed(folder: Path, messages: Iterable[dict], least: int, pause: float) -> list[bytes]:
    """Send lines, kill the monitor after so many answers and a pause; return all whole answers."""
    monitor = served(folder)
    writer = threading.Thread(target=write, args=(monitor, list(messages)))
    writer.start()
    answers = [monitor.stdout.readline() for _ in range(least)]
    timer = threading.Timer(pause, monitor.kill)
    timer.start()
    answers += monitor.stdout.read().splitlines(keepends=True)
    timer.join()
    writer.join()
    assert monitor.wait() == -signal.SIGKILL, monitor.returncode
    return [one for one in answers if one.endswith(b"\n")]


def write(monitor: subprocess.Popen, lines: list[dict]) -> None:
    """Send lines until the monitor is gone."""
    with suppress(OSError):
        for message in lines:
            monitor.stdin.write(json.dumps(message).encode() + b"\n")
        monitor.stdin.flush()
    monitor.wait()
    with suppress(OSError):
        monitor.stdin.close()


def load(arguments: argparse.Namespace) -> None:
    """Send updates at a rate, and print how long answers take."""
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        skops.io.dump(fitted(), folder / "p.skops")
        monitor = served(folder)
        steps = np.zeros(arguments.runs, dtype=int)
        run = np.arange(arguments.runs)
        n, waits, memory = int(arguments.rate * arguments.seconds), [], []
        start = 0.0
        for k in range(-arguments.runs, n):  # a step of each run first
            start = time.perf_counter() if k == 0 else start
            due = start + k / arguments.rate
            is_late = time.perf_counter() > due  # then the line has waited since it was due
            while time.perf_counter() < due and k > 0:
                time.sleep(max(due - time.perf_counter(), 0) / 2)
            row = k % arguments.runs
            steps[row] += 1
            done = bool(steps[row] == 12)
            message = {"id": int(run[row]), "step": int(steps[row]), "score": float(rng.random())}
            sent = due if is_late and k > 0 else time.perf_counter()
            monitor.stdin.write(json.dumps(message | {"end": done}).encode() + b"\n")
            monitor.stdin.flush()
            answer = json.loads(monitor.stdout.readline())
            waits.append(time.perf_counter() - sent)
            assert "error" not in answer, answer
            if done:  # another run takes its place
                run[row] += arguments.runs
                steps[row] = 0
            if k >= 0 and k % (n // 10) == 0:
                memory.append(resident(monitor.pid))
        waits = waits[-n:]
        rate = n / (time.perf_counter() - start)
        state = (folder / "state").stat().st_size
        monitor.kill()
    wait = 1e3 * np.quantile(waits, [0.5, 0.9, 0.99, 0.999, 1])
    print(f"{arguments.runs:,} open runs, {rate:,.0f} updates a second for {arguments.seconds} s")
    print("answer after ms, quantiles .5 .9 .99 .999 1:", " ".join(f"{one:.2f}" for one in wait))
    print(
        "memory MiB:", " ".join(f"{one:.0f}" for one in memory), f"; state {state / 2**20:.1f} MiB"
    )


def damage(arguments: argparse.Namespace) -> None:
    """Change random bytes of a state; every run must go on as it was, or be refused."""
    rng, process = np.random.default_rng(0), fitted()
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "state"
        monitor, reference = process.monitor(state=path), process.monitor()
        for message in islice(traffic(arguments.runs, rng), 4 * arguments.runs):
            answer_of(monitor, message)
            answer_of(reference, message)
        monitor.close()
        whole = path.read_bytes()
        print(f"{len(reference):,} open runs in {len(whole) / 2**20:.1f} MiB")
        for n_bytes in (1, 30, 1000):
            counts: Counter[str] = Counter()
            for _ in range(arguments.trials):
                data = np.frombuffer(whole, dtype=np.uint8).copy()
                data[rng.integers(len(data), size=n_bytes)] = rng.integers(256, size=n_bytes)
                path.write_bytes(data.tobytes())
                counts.update(after_damage(process, path, reference))
            print(f"{n_bytes:5,} bytes:", ", ".join(f"{n:,} {what}" for what, n in counts.items()))


def after_damage(
    process: DensityRatioEProcess, path: Path, reference: EProcessMonitor
) -> Counter[str]:
    """Open a damaged state, and send a step without its number to each run that should be open."""
    expected, counts = {own.id: own for own in reference}, Counter({"states": 1})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            monitor = process.monitor(state=path)
        except ValueError:
            return Counter(states=1, refused_as_a_whole=1)
    there = {own.id: own for own in monitor}
    lost = expected.keys() - there.keys()
    counts["runs that go on"] = len(there)
    counts["wrong"] = sum(own != expected.get(run) for run, own in there.items())
    counts["runs that are lost"] = len(lost)
    counts["states with a warning"] = len(caught)
    for run in lost:
        try:
            monitor.update(0.4, run)
        except ValueError as error:
            counts["lost without a word"] += "damaged" not in str(error)
        else:
            counts["lost without a word"] += 1
    for run in list(there)[::50]:
        next_step = reference._after(reference._runs[run], np.array([0.4])).last
        counts["wrong"] += monitor.update(0.4, run) != next_step
    monitor.close()
    for part in path.parent.glob("state.damaged-*"):
        part.unlink()
    return counts


def resident(pid: int) -> float:
    """MiB of a process in memory."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    return float("nan")


def memory(arguments: argparse.Namespace) -> None:
    """Begin and finish many runs in one process, and print its memory."""
    with tempfile.TemporaryDirectory() as name:
        monitor = fitted().monitor(state=Path(name) / "state")
        for k in range(arguments.runs):
            monitor.update(0.6, k)
            monitor.update(0.4, k, done=True)
            if k % (arguments.runs // 10) == 0:
                used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
                size = (Path(name) / "state").stat().st_size / 2**20
                print(f"{k:10,} runs: {used:.0f} MiB at most, state {size:.1f} MiB", flush=True)


def main() -> None:
    """Run one of the four."""
    trials = {"kill": kill, "damage": damage, "load": load, "memory": memory}
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=tuple(trials))
    parser.add_argument("--runs", type=int)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--rate", type=float, default=1000)
    arguments = parser.parse_args()
    if arguments.runs is None:
        arguments.runs = {"load": 10_000, "memory": 1_000_000}.get(arguments.what, 5000)
    trials[arguments.what](arguments)


if __name__ == "__main__":
    main()
