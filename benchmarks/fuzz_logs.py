"""Mutated logs: each is read, or refused in a sentence; none crashes, hangs or gives nonsense.

    python benchmarks/fuzz_logs.py PATHS... [-n 20000] [--seed 0]

Real logs are cut, their values get other types, keys go, appear twice or are nested, and bytes are
damaged. Printed is how many were read and refused, how long the slowest took and how much memory
all needed; every raw error or odd run is shown with the seed that makes it again.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path

from trajscore import io

SECONDS = 20
ODD = (
    None, True, False, 0, -1, 1e308, 2**70, "", "x", "null", "[]", "{}", '"', "2026", "NaN",
    "\ud800", [], {}, [[]], [None], [{}], {"": None}, {"role": "assistant"}, {"messages": []},
    ["x", 1], float("nan"), float("inf"),
)  # fmt: skip


class TooSlowError(Exception):
    """Raised by the alarm."""


def paths_of(value, path=()):
    """Yield the path of every value within a JSON value."""
    yield path
    if isinstance(value, dict):
        for key in value:
            yield from paths_of(value[key], (*path, key))
    elif isinstance(value, list):
        for k, one in enumerate(value[:50]):
            yield from paths_of(one, (*path, k))


def replaced(value, path, change):
    """Return a copy in which the value at a path is changed; None as the change takes it out."""
    if not path:
        return change(value)
    first, *rest = path
    if isinstance(value, list):
        if not rest and change is None:
            return [*value[:first], *value[first + 1 :]]
        return [replaced(one, rest, change) if k == first else one for k, one in enumerate(value)]
    if not rest and change is None:
        return {key: one for key, one in value.items() if key != first}
    return {key: replaced(one, rest, change) if key == first else one for key, one in value.items()}


def within_text(change):
    """Make a change reach into JSON that is written as text."""

    def changed(value, rng):
        if isinstance(value, str) and value[:1] in "[{" and value:
            try:
                return json.dumps(mutated(json.loads(value), rng))
            except ValueError:
                pass
        return change(value, rng)

    return changed


CHANGES = {
    "type": within_text(lambda value, rng: rng.choice(ODD)),
    "nest": lambda value, rng: {"value": value} if rng.random() < 0.5 else [value],
    "deep": lambda value, rng: nested(value, rng.choice((3, 30, 3000))),
    "twice": lambda value, rng: value * 2 if isinstance(value, (list, str)) else [value, value],
    "shuffle": lambda value, rng: (
        rng.sample(value, len(value)) if isinstance(value, list) else value
    ),
    "text": lambda value, rng: json.dumps(value),
}


def nested(value, depth):
    """Return a value within as many lists."""
    for _ in range(depth):
        value = [value]
    return value


def mutated(value, rng):
    """Return a JSON value with one to three changes."""
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        path = rng.choice(list(paths_of(value)))
        name = rng.choice(("drop", "rename", *CHANGES))
        if name == "drop" and path:
            value = replaced(value, path, None)
        elif name == "rename" and path and isinstance(path[-1], str):
            inner = value
            for key in path:
                inner = inner[key]
            value = replaced(value, path, None)
            value = replaced(
                value, path[:-1], lambda one, k=path[-1], v=inner: {**one, k.upper(): v}
            )
        elif name in CHANGES:
            change = CHANGES[name]
            value = replaced(value, path, lambda one, change=change: change(one, rng))
    return value


def damaged(text, rng):
    """Return a text that is cut, or in which characters are wrong."""
    kind = rng.choice(("cut", "cut", "swap", "insert", "double"))
    place = rng.randrange(len(text) + 1)
    if kind == "cut":
        return text[:place]
    if kind == "swap":
        return text[:place] + rng.choice('{}[]",:0x\x00\n') + text[place + 1 :]
    if kind == "insert":
        return (
            text[:place]
            + "".join(rng.choices('{}[]",:\\n0é', k=rng.randrange(1, 9)))
            + text[place:]
        )
    return text[:place] + text[: rng.randrange(len(text) + 1)]


def mutate(source, text, rng):
    """Return the text of a log after a mutation."""
    if rng.random() < 0.25:
        return damaged(text, rng)
    try:
        if source.suffix == ".jsonl":
            lines = [json.loads(line) for line in text.splitlines()]
            k = rng.randrange(len(lines))
            lines[k] = mutated(lines[k], rng)
            if rng.random() < 0.2:
                lines = rng.sample(lines, len(lines))
            return "\n".join(json.dumps(line) for line in lines)
        return json.dumps(mutated(json.loads(text), rng))
    except (RecursionError, ValueError):  # of the mutation itself
        return damaged(text, rng)


def odd_about(runs):
    """Say what is wrong with runs that were read; "" if nothing is."""
    io.meta(runs)
    for run in runs:
        if not isinstance(run.id, str) or not run.id:
            return f"a run has the id {run.id!r}"
        if not (run.outcome == -1 or 0 <= run.outcome <= 1):
            return f"the outcome is {run.outcome!r}"
        agent = [step for step in run.steps if step.actor == "agent"]
        if not agent:
            return "no turn of the agent"
        for step in run.steps:
            calls = [type(one) for call in step.tool_calls for one in (call.name,)]
            if not isinstance(step.text, str) or set(calls) - {str}:
                return f"a text is {type(step.text).__name__}, names of calls {calls}"
            results = [call.result for call in step.tool_calls]
            if any(not isinstance(one, (str, type(None))) for one in results):
                return "a result is no text"
            numbers = (step.confidence, step.cost)
            if any(not isinstance(one, (int, float, type(None))) for one in numbers):
                return f"confidence and cost are {numbers}"
    return ""


def attempt(path):
    """Read a log; return what became of it, and the error or oddity."""
    signal.alarm(SECONDS)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            runs = io.read_runs(path)
            odd = odd_about(runs)
            with contextlib.suppress(ValueError):  # that says that there is none
                io.outcomes(runs)
        return ("odd", odd) if odd else ("read", "")
    except ValueError as error:
        sentence = str(error)
        short = len(sentence) < 1500 and "Traceback" not in sentence and sentence
        return ("refused", "") if short else ("odd", f"an error of {len(sentence)} characters")
    except TooSlowError:
        return "hang", f"more than {SECONDS} s"
    except Exception:
        return "raw", traceback.format_exc(limit=-4)
    finally:
        signal.alarm(0)


def raise_too_slow(number, frame):
    """Answer the alarm."""
    raise TooSlowError


def main():
    """Mutate, read and count."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("paths", nargs="+", type=Path, help="logs, or folders of logs")
    parser.add_argument("-n", type=int, default=20_000, help="mutations (default: 20,000)")
    parser.add_argument("--seed", type=int, default=0, help="the first seed (default: 0)")
    parser.add_argument("--largest", type=int, default=400_000, help="skip longer logs (bytes)")
    args = parser.parse_args()
    files = [one for path in args.paths for one in ([path] if path.is_file() else path.rglob("*"))]
    endings = (".json", ".jsonl", ".traj")
    files = [one for one in sorted(files) if one.suffix in endings]
    texts = {one: one.read_text() for one in files if one.stat().st_size < args.largest}
    signal.signal(signal.SIGALRM, raise_too_slow)
    counts, slowest, bad = Counter(), (0.0, 0), 0
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(args.seed, args.seed + args.n):
            rng = random.Random(seed)
            source = rng.choice(list(texts))
            path = Path(folder) / f"log{source.suffix}"
            path.write_text(mutate(source, texts[source], rng), errors="surrogatepass")
            start = time.perf_counter()
            what, why = attempt(path)
            slowest = max(slowest, (time.perf_counter() - start, seed))
            counts[what] += 1
            if what not in ("read", "refused"):
                bad += 1
                if bad <= 20:
                    print(f"seed {seed}, {source.name}: {what}: {why}")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{args.n} mutations of {len(texts)} logs: {dict(counts)}")
    print(f"slowest {slowest[0]:.2f} s (seed {slowest[1]}), most memory {peak:.0f} MB")
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
