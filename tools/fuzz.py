"""Odd inputs to every public entry point, altered files and lines, and what must not matter.

python tools/fuzz.py [--calls 100000] [--files 10000] [--lines 10000] [--same 300]
                          [--logs LOGS...]

The calls of the examples in docstrings are recorded, and made again with one argument changed. What
comes of an input is sane (a result), refused (an error that this package, or scikit-learn's
validation, raises on purpose), raw (any other error), slow (more than 20 s) or, of things that must
not matter, nonsense. The first raw errors of each entry point are shown.
"""

from __future__ import annotations

import argparse
import contextlib
import linecache
import resource
import signal
import tempfile
import time
import traceback
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import trajscore
from fuzz_calls import ROOT, fuzz_calls

KINDS = ("sane", "refused", "raw", "slow", "nonsense")
SECONDS = 20
_NEVER_RAISED_ON_PURPOSE = (
    *(AssertionError, IndexError, OverflowError, ZeroDivisionError, RecursionError, MemoryError),
    *(UnboundLocalError, StopIteration, FloatingPointError),
)


class Tally:
    """What came of inputs, by entry point."""

    def __init__(self) -> None:
        self.counts: dict[str, Counter[str]] = defaultdict(Counter)
        self.shown: dict[str, dict[str, str]] = defaultdict(dict)

    def add(self, entry: str, kind: str, told: str = "") -> None:
        """Count one input."""
        self.counts[entry][kind] += 1
        if kind not in ("sane", "refused"):
            key = told.partition(" <- ")[0]
            self.shown[entry].setdefault(key, told)

    def run(self, entry: str, call: Callable[[], Any], told: str) -> Any:
        """Make a call and count what comes of it."""
        signal.alarm(SECONDS)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                result = call()
        except _Slow:
            self.add(entry, "slow", f"slow <- {told}")
        except Exception as error:
            kind = "refused" if on_purpose(error) else "raw"
            where = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{Path(where.filename).name}:{where.lineno}"
            message = " ".join(str(error).split())[:110]
            self.add(entry, kind, f"{type(error).__name__} {place}: {message} <- {told}")
        else:
            self.add(entry, "sane")
            return result
        finally:
            signal.alarm(0)
            plt.close("all")
        return None

    def report(self, shown: int) -> None:
        """Print a table, and the first errors that are not clear."""
        table = pd.DataFrame.from_dict(self.counts, orient="index").reindex(columns=KINDS)
        table = table.fillna(0).astype(int)
        table["all"] = table.sum(axis=1)
        total = table.sum().to_frame("together").T
        bad = table[(table["raw"] + table["slow"] + table["nonsense"]) > 0]
        print(bad.sort_values("raw", ascending=False).to_string() if len(bad) else "nothing raw")
        print(total.to_string())
        for entry, errors in self.shown.items():
            for told in list(errors.values())[:shown]:
                print(f"{entry}: {told}")


class _Slow(BaseException):
    pass


def _alarm(*_: Any) -> None:
    raise _Slow


def on_purpose(error: BaseException) -> bool:
    """Whether an error was raised, in words, by this package or scikit-learn's validation."""
    if isinstance(error, _NEVER_RAISED_ON_PURPOSE) or not str(error).strip():
        return False
    frame = traceback.extract_tb(error.__traceback__)[-1]
    if frame.filename == "<example>":  # the caller's own function, whose errors are passed on
        return True
    path = Path(frame.filename)
    if path.is_relative_to(ROOT):
        line = linecache.getline(frame.filename, frame.lineno or 0).strip()
        return line.startswith("raise") or "raise " in line
    # of libraries that check what they are given, in words
    line = linecache.getline(frame.filename, frame.lineno or 0)
    return bool({"sklearn", "joblib"} & set(path.parts)) and "raise " in line


# ------------------------------------------------------------------ altered files


def files(folder: Path) -> dict[str, tuple[Path, Callable[[Path], Any]]]:
    """A file of each kind that is read, and what reads it."""
    import skops.io

    from trajscore import DensityRatioEProcess, TrajectoryArray
    from trajscore.datasets import make_trajectories
    from trajscore.gates import RunSet, check, read_gates
    from trajscore.monitoring._persistence import load_process

    X, y = make_trajectories(40, random_state=0, return_X_y=True)
    process = DensityRatioEProcess(alpha=0.3).fit(X, y)
    made: dict[str, tuple[Path, Callable[[Path], Any]]] = {}
    for ending in (".npz", ".parquet"):
        path = folder / f"runs{ending}"
        X.save(path)
        made[f"load {ending}"] = path, lambda one: TrajectoryArray.load(one).padded()
    path = folder / "p.skops"
    skops.io.dump(process, path)
    made["model .skops"] = path, lambda one: load_process(one).monitor().update(0.4, "a")
    path = folder / "state"
    monitor = process.monitor(state=path)
    for step, score in enumerate([0.4, 0.2, 0.6], start=1):
        for run in ("a", 7):
            monitor.update(score, run, step=step)
    monitor.finish("a")
    monitor.close()
    made["monitor's state"] = path, lambda one: process.monitor(state=one).close()
    runs = RunSet(X, y, tasks=np.arange(40) % 8)
    path = folder / "baseline.json"
    path.write_text(check(runs, runs).to_json())
    made["baseline .json"] = path, lambda one: check(runs, RunSet.read(one))
    path = folder / "gates.toml"
    path.write_text(
        'level = 0.1\n[data]\nleast_runs = 3\n[[gate]]\nmetric = "success"\nmargin = "5%"\n'
    )
    made["gates .toml"] = path, lambda one: check(runs, runs, read_gates(one))
    frame = X.to_frame(id="run_id", step="step", value="confidence")
    frame["solved"] = np.repeat(y, X.lengths)
    frame.to_csv(folder / "t.csv", index=False)
    frame.to_json(folder / "t.jsonl", orient="records", lines=True)
    frame.to_csv(folder / "t.csv.gz", index=False)
    for name in ("t.csv", "t.jsonl", "t.csv.gz"):
        made[f"table {name[1:]}"] = folder / name, RunSet.read
    made |= _logs(folder)
    return made


def _logs(folder: Path) -> dict[str, tuple[Path, Callable[[Path], Any]]]:
    import gzip
    import json

    from trajscore import io

    record = {
        "id": "r", "task": "t", "outcome": 1, "stop_reason": "done",
        "messages": [
            {"role": "user", "content": "Book it"},
            {"role": "assistant", "content": "Confidence: 70%", "tool_calls": [
                {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "c", "content": "ok"},
            {"role": "assistant", "content": "Done", "confidence": 0.8},
        ],
    }  # fmt: skip
    records = [record | {"id": f"r{k}", "outcome": k % 2} for k in range(6)]
    (folder / "l.jsonl").write_text("\n".join(map(json.dumps, records)))
    (folder / "l.json").write_text(json.dumps(records))
    with gzip.open(folder / "l.json.gz", "wt") as file:
        file.write(json.dumps(records))
    names = ("l.jsonl", "l.json", "l.json.gz")
    return {f"log {name[1:]}": (folder / name, io.read_runs) for name in names}


def altered(content: bytes, rng: np.random.Generator) -> bytes:
    """Cut, repeat, flip or replace a few bytes; or put in what breaks parsers."""
    data = bytearray(content)
    for _ in range(rng.integers(1, 4)):
        at = int(rng.integers(max(len(data), 1)))
        end = at + int(rng.integers(1, 30))
        kind = rng.integers(7)
        if kind == 0:
            del data[at:]
        elif kind == 1:
            del data[at:end]
        elif kind == 2:
            data[at:at] = data[at:end]
        elif kind == 3 and data:
            data[at] ^= 1 << int(rng.integers(8))
        elif kind == 4:
            data[at:end] = bytes(rng.integers(256, size=end - at, dtype=np.uint8))
        else:
            odd = [b"null", b"-1", b"1e999", b"NaN", b'"a"', b"[]", b"{}", b"[" * 3000, b"9" * 400,
                   b"\xff", b"\\ud800", b"true", b"0"]  # fmt: skip
            data[at : at + (kind == 6)] = odd[rng.integers(len(odd))]
    return bytes(data)


def fuzz_files(tally: Tally, n: int, rng: np.random.Generator) -> None:
    """Read altered files of each kind."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for entry, (path, read) in files(folder).items():
            content = path.read_bytes()
            count = max(n // 14, 1) if ".skops" not in entry else max(n // 100, 1)
            for _ in range(count):
                data = altered(content, rng)
                path.write_bytes(data)
                tally.run(entry, lambda path=path, read=read: read(path), repr(data[:60]))
            path.write_bytes(content)


def fuzz_lines(tally: Tally, n: int, rng: np.random.Generator) -> None:
    """Send altered lines to a monitor: each gets an answer, and a good run is not harmed."""
    import io
    import json

    from trajscore import DensityRatioEProcess
    from trajscore.datasets import make_trajectories
    from trajscore.monitoring._service import serve

    X, y = make_trajectories(60, random_state=0, return_X_y=True)
    process = DensityRatioEProcess(alpha=0.3).fit(X, y)
    monitor, alone, good = process.monitor(), process.monitor(), 0
    line = b'{"id": "run 1", "step": 1, "score": 0.7, "end": false}'
    for _ in range(n):
        data = altered(line, rng).replace(b"\n", b" ")
        out = io.StringIO()
        tally.run(
            "monitor line", lambda data=data, out=out: serve(monitor, [data], out), repr(data)
        )
        if data.strip() and len([json.loads(one) for one in out.getvalue().splitlines()]) != 1:
            tally.add("monitor line", "nonsense", f"no answer <- {data!r}")
        if rng.random() < 0.05:
            good += 1
            score = float(rng.random())
            if monitor.update(score, "good", step=good) != alone.update(score, "good"):
                tally.add("monitor line", "nonsense", f"a run was harmed <- {data!r}")


# ------------------------------------------------------------------ what must not matter


def same_checks(seed: int) -> Iterator[tuple[str, bool]]:
    """Things that are equal by right, on random runs."""
    from trajscore import DensityRatioEProcess, PlattCrossFitCalibrator, evaluate, metrics
    from trajscore.datasets import make_trajectories
    from trajscore.gates import RunSet, check

    rng = np.random.default_rng(seed)
    n = int(rng.integers(12, 80))
    lengths = (1, int(rng.integers(2, 9)))
    X, y = make_trajectories(n, lengths=lengths, random_state=seed, return_X_y=True)
    if rng.random() < 0.3:
        X = X.with_cells(np.round(X.cells, 1))
    order = rng.permutation(n)
    score = metrics.tps_score(y, X)
    yield (
        "score of permuted rows",
        np.isclose(metrics.tps_score(y[order], X[order]), score, rtol=1e-12),
    )
    weight = rng.integers(0, 3, n)
    rows = np.repeat(np.arange(n), weight)
    if len(rows):
        again = trajscore.TrajectoryArray(X[rows].cells, X[rows].lengths)
        weighted = metrics.tps_score(y, X, sample_weight=weight)
        yield "a weight is so many runs", np.isclose(metrics.tps_score(y[rows], again), weighted)
    half = n // 2
    plain = {"normalize": False}  # the default divides by the weight of the whole set
    parts = [metrics.tps_samples(y[k], X[k], **plain) for k in (slice(half), slice(half, None))]
    whole = metrics.tps_samples(y, X, **plain)
    yield "runs in two parts", np.array_equal(np.concatenate(parts), whole)
    if len(np.unique(y)) > 1 and min(np.bincount(y)) > 3:
        fit = PlattCrossFitCalibrator().fit_transform
        yield "calibration of permuted rows", fit(X, y)[order] == fit(X[order], y[order])
        report = evaluate(X, y, intervals="influence")
        other = evaluate(X[order], y[order], intervals="influence")
        yield "report of permuted rows", report.table.equals(other.table)
        tasks = rng.integers(0, max(n // 4, 2), n)
        ours = RunSet(X, y, tasks=tasks), RunSet(X[order], y[order], tasks=tasks[order])
        base = RunSet(X[::-1], np.roll(y, 3)[::-1], tasks=tasks[::-1])
        came = [check(one, base).gates for one in ours]
        yield "gates of permuted rows", repr(came[0]) == repr(came[1])
        process = DensityRatioEProcess(alpha=0.3).fit(X, y)
        monitor, decided = process.monitor(), process.predict(X)
        flagged = []
        for row in range(n):
            for t, one in enumerate(X[row], start=1):
                last = monitor.update(one, int(X.ids[row]), done=t == X.lengths[row])
            flagged.append(last.flagged)
        yield "live and batch", np.array_equal(np.array(flagged), decided == 0)


def fuzz_same(tally: Tally, n: int, seed: int) -> None:
    """Count what differs where it must not."""
    for k in range(n):
        found: list[tuple[str, bool]] = []
        tally.run(
            "same", lambda k=k, found=found: found.extend(same_checks(seed + k)), f"seed {seed + k}"
        )
        for name, holds in found:
            tally.add(name, "sane" if holds else "nonsense", f"differs <- seed {seed + k}")


def fuzz_real_logs(tally: Tally, places: list[Path], n: int, seed: int) -> None:
    """Read real logs of which a part was cut, renamed or given another type (`fuzz_logs`)."""
    import random

    import fuzz_logs

    logs = fuzz_logs.seeds(places)
    with tempfile.TemporaryDirectory() as folder:
        for number in range(n):
            rng = random.Random(f"{seed}-{number}")
            name, ending, value = rng.choice(logs)
            what, data = fuzz_logs.mutate(value, ending, rng)
            path = Path(folder) / f"log-{number}{ending}"
            path.write_bytes(data)
            found, said = "hang", ""
            with contextlib.suppress(_Slow):
                found, said = fuzz_logs.try_out(path)
            path.unlink()
            kind = "slow" if found == "hang" else found
            tally.add(f"real log, {what}", kind, f"{said} <- {name}, mutation {number}")


def main() -> None:
    """Print what came of all inputs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=100_000)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--lines", type=int, default=10_000)
    parser.add_argument("--same", type=int, default=300)
    parser.add_argument("--logs", nargs="*", type=Path, default=[], help="real logs to mutate")
    parser.add_argument("--only", default="", help="entry points whose names contain this")
    parser.add_argument("--shown", type=int, default=3, help="errors of each entry point")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    signal.signal(signal.SIGALRM, _alarm)
    rng, tally, start = np.random.default_rng(arguments.seed), Tally(), time.perf_counter()
    logs = [place.resolve() for place in arguments.logs]
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):  # for what calls save
        fuzz_calls(tally, arguments.calls, rng, arguments.only)
        if not arguments.only:
            fuzz_files(tally, arguments.files, rng)
            fuzz_lines(tally, arguments.lines, rng)
            if logs:
                fuzz_real_logs(tally, logs, arguments.files, arguments.seed)
            fuzz_same(tally, arguments.same, arguments.seed)
    tally.report(arguments.shown)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{time.perf_counter() - start:.0f} s, {peak:.0f} MiB at most")


if __name__ == "__main__":
    main()
