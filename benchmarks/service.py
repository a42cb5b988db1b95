"""The monitor as a service beside agents: killed at any moment, under load, and for a long time.

python benchmarks/service.py kill   [--kills 200] [--runs 5000]
python benchmarks/service.py load   [--runs 10000] [--seconds 60] [--rate 1000]
python benchmarks/service.py memory [--runs 1000000]
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import skops.io

from trajscore import DensityRatioEProcess
from trajscore.datasets import make_trajectories


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
    X, _ = make_trajectories(arguments.runs, lengths=(4, 12), random_state=1, return_X_y=True)
    lines, expected = [], process.monitor()
    for t in range(int(X.lengths.max())):
        for row in rng.permutation(np.flatnonzero(X.lengths > t)).tolist():
            done = bool(X.lengths[row] == t + 1)
            score = float(X[row][t])
            lines.append(({"id": row, "step": t + 1, "score": score, "end": done}, done))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        skops.io.dump(process, folder / "p.skops")
        sent, kills, wrong, lost = 0, 0, 0, 0
        share = len(lines) // (arguments.kills + 1)
        while sent < len(lines):
            monitor = served(folder)
            if kills < arguments.kills:
                pause = float(rng.uniform(0, 0.05))
                target = sent + share
            else:
                pause, target = 1e9, len(lines)
            answers: list[bytes] = []
            # without waiting for answers: the kill comes in the middle of many lines
            writer = threading.Thread(target=write, args=(monitor, lines[sent : target + 2000]))
            writer.start()
            while sent + len(answers) < min(target, len(lines)):
                answers.append(monitor.stdout.readline())
            if kills < arguments.kills:
                time.sleep(pause)
                monitor.kill()
                kills += 1
            rest = monitor.stdout.read() if kills <= arguments.kills and pause < 1e9 else b""
            answers += [one for one in rest.splitlines(keepends=True) if one.endswith(b"\n")]
            monitor.kill()
            writer.join()
            for (message, done), answer in zip(lines[sent:], answers, strict=False):
                own = expected.update(message["score"], message["id"], done=done)
                told = json.loads(answer)
                lost += "error" in told
                wrong += told.get("flagged") != own.flagged or told.get("step") != own.step
            sent += len(answers)
            # lines that were taken and not answered are sent again, and answered alike
        print(
            f"{kills} kills under {arguments.runs:,} open runs, {len(lines):,} lines: {wrong} "
            f"decisions differ from those of a monitor that lived on, {lost} lines were refused"
        )


def write(monitor: subprocess.Popen, lines: list) -> None:
    """Send lines until the monitor is gone."""
    try:
        for message, _ in lines:
            monitor.stdin.write(json.dumps(message).encode() + b"\n")
        monitor.stdin.flush()
    except OSError:
        pass


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
        start = time.perf_counter()
        for k in range(n):
            due = start + k / arguments.rate
            while time.perf_counter() < due:
                time.sleep(max(due - time.perf_counter(), 0) / 2)
            row = k % arguments.runs
            steps[row] += 1
            done = bool(steps[row] == 12)
            message = {"id": int(run[row]), "step": int(steps[row]), "score": float(rng.random())}
            sent = time.perf_counter()
            monitor.stdin.write(json.dumps(message | {"end": done}).encode() + b"\n")
            monitor.stdin.flush()
            answer = json.loads(monitor.stdout.readline())
            waits.append(time.perf_counter() - sent)
            assert "error" not in answer, answer
            if done:  # another run takes its place
                run[row] += arguments.runs
                steps[row] = 0
            if k % (n // 10) == 0:
                memory.append(resident(monitor.pid))
        rate = n / (time.perf_counter() - start)
        state = (folder / "state").stat().st_size
        monitor.kill()
    wait = 1e3 * np.quantile(waits, [0.5, 0.9, 0.99, 0.999, 1])
    print(f"{arguments.runs:,} open runs, {rate:,.0f} updates a second for {arguments.seconds} s")
    print("answer after ms, quantiles .5 .9 .99 .999 1:", " ".join(f"{one:.2f}" for one in wait))
    print(
        "memory MiB:", " ".join(f"{one:.0f}" for one in memory), f"; state {state / 2**20:.1f} MiB"
    )


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
    """Run one of the three."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=("kill", "load", "memory"))
    parser.add_argument("--runs", type=int)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--rate", type=float, default=1000)
    arguments = parser.parse_args()
    if arguments.runs is None:
        arguments.runs = {"kill": 5000, "load": 10_000, "memory": 1_000_000}[arguments.what]
    {"kill": kill, "load": load, "memory": memory}[arguments.what](arguments)


if __name__ == "__main__":
    main()
