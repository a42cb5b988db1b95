"""Which monitors of agents beat counting steps? Every entry, on every public set at hand.

    python benchmarks/board.py [--data-home FOLDER] [--data FOLDER] [--only WORD ...]
                               [--entry FILE] [--out FILE]

docs/board.rst says how entries are judged, `public_sets.py` what the sets are, and
`board_entries.py` what is entered. An entry whose forecast depends on anything but the steps so far
is refused. The same numbers come out of every run, whatever --jobs is.

--entry takes a Python file with an ``ENTRY``: a transformer from runs to numbers, a row a step. It
is judged on the logs beside the others. --data is a folder whose subfolder tau2 has results of
tau2-bench; the other sets are fetched, to --data-home if it is given. The page of the docs is built
from ``--out docs/stored/board.json``.
"""

import json
import runpy
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from scipy.stats import friedmanchisquare, rankdata, studentized_range
from sklearn.base import clone
from sklearn.model_selection import StratifiedGroupKFold
from sklearn.pipeline import Pipeline
from threadpoolctl import threadpool_limits

from board_entries import LENGTH, Entry, entries_of
from public_sets import HORIZON, SOURCES, Found, make_set
from shared import options
from trajscore.calibration import cross_fit_traces
from trajscore.calibration.look_ahead import sample_look_ahead
from trajscore.inference import compare_predictors
from trajscore.metrics import tps_samples

N_FOLDS, N_REPEATS, N_RESAMPLES = 5, 2, 5000
RANKED = (LENGTH, "repeated calls", "TRACER", "agent-tracer", "actions", "text classifier")


class RefusedError(ValueError):
    """An entry whose numbers could not be made while a run is under way."""


def refuse_look_ahead(entry: Entry, runs: Found) -> None:
    """Cut some runs short, and compare what the entry makes of them with what it makes of all.

    Both are compared: the forecasts, and the numbers of which a pipeline makes them.
    """
    fitted = clone(entry.pipeline).fit(runs.X, runs.y)
    steps = [step for _, step in fitted.steps] if isinstance(fitted, Pipeline) else [fitted]
    lengths = np.array([len(run) for run in runs.X])
    rows = steps[0].transform(runs.X).lengths
    if (rows != lengths).any():
        run = int(np.argmax(rows != lengths))
        raise RefusedError(
            f"run {run} has {lengths[run]} steps, but the entry gives {rows[run]} rows; give a row "
            f"for each step, those of the user too"
        )
    for last in {max(1, len(steps) - 1), len(steps)}:

        def transform(X: Any, upto: int = last) -> Any:
            for step in steps[:upto]:
                X = step.transform(X)
            return X

        if ahead := sample_look_ahead(transform, runs.X, transform(runs.X)):
            raise RefusedError(ahead)


def forecasts(entry: Entry, runs: Found, repeat: int) -> Any:
    """Return forecasts by fits on other groups."""
    dealt = StratifiedGroupKFold(N_FOLDS, shuffle=True, random_state=repeat)
    folds = list(dealt.split(runs.y, runs.y, runs.group))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of references that know who a run is
        return cross_fit_traces(entry.pipeline, runs.X, runs.y, groups=runs.group, cv=folds)


def scores(entry: Entry, runs: Found, n_repeats: int = N_REPEATS) -> Any:
    """Return the score of each run, whose mean is that of the set."""
    traces = [forecasts(entry, runs, repeat) for repeat in range(n_repeats)]
    return np.mean([tps_samples(runs.y, one, horizon=HORIZON) for one in traces], axis=0)


def judge(
    name_of_set: str, runs: Found, entries: dict[str, Entry], n_repeats: int = N_REPEATS
) -> dict[str, Any]:
    """Return the rows of a set: the score of each entry, and its margin over its reference."""
    of_runs, refused = {}, {}
    for name, entry in entries.items():
        try:
            if entry.is_checked:
                refuse_look_ahead(entry, runs)
            of_runs[name] = scores(entry, runs, n_repeats)
        except RefusedError as error:
            refused[name] = str(error)
        except Exception as error:  # other people's code may raise anything
            if not entry.is_own:
                raise
            refused[name] = f"{type(error).__name__}: {error}"
    rows = {name: {"score": float(values.mean())} for name, values in of_runs.items()}
    for reference in dict.fromkeys(entries[name].reference for name in of_runs):
        held = [name for name in of_runs if entries[name].reference == reference != name]
        table = pd.DataFrame({name: of_runs[name] for name in [*held, reference]})
        compared = compare_predictors(
            table, reference=reference, groups=runs.group, n_resamples=N_RESAMPLES, random_state=0
        )
        for _, row in compared.iterrows():
            name, low, high = row[["predictor", "low", "high"]]
            if np.abs(of_runs[name] - of_runs[reference]).max() < 1e-12:  # the same forecasts
                low = high = 0.0
            rows[name] |= {
                "over": reference, "margin": row["difference"], "low": low, "high": high,
                "p_holm": row["p_holm"],
            }  # fmt: skip
    lengths = [len(run) for run in runs.X]
    return {
        "name": name_of_set,
        "kind": "log" if runs.is_log else "values",
        "runs": len(runs.y),
        "groups": len(set(runs.group)),
        "success": float(runs.y.mean()),
        "steps": float(np.mean(lengths)),
        "rows": rows,
        "refused": refused,
    }


def rank(sets: list[dict[str, Any]]) -> dict[str, Any]:
    """Rank the entries that all logs have; those closer than the critical difference are tied."""
    logs = [one for one in sets if set(RANKED) <= set(one["rows"])]
    if len(logs) < 3:
        return {}
    values = np.array([[one["rows"][name]["score"] for name in RANKED] for one in logs])
    n, k = values.shape
    mean = np.mean([rankdata(-row) for row in values], axis=0)
    quantile = studentized_range.ppf(0.95, k, np.inf) / np.sqrt(2)
    critical = float(quantile * np.sqrt(k * (k + 1) / (6 * n)))
    order = np.argsort(mean, kind="stable")
    groups: list[list[str]] = []
    for place, first in enumerate(order):
        tied = [RANKED[one] for one in order[place:] if mean[one] - mean[first] <= critical]
        if not groups or not set(tied) <= set(groups[-1]):
            groups.append(tied)
    return {
        "sets": n,
        "mean_rank": {RANKED[one]: float(mean[one]) for one in order},
        "friedman_p": float(friedmanchisquare(*values.T).pvalue),
        "critical_difference": critical,
        "tied": groups,
    }


def of_set(name: str, args: Any) -> tuple[dict[str, Any] | str, float]:
    """Judge the entries of a set; of a set that cannot be had, say why. With seconds."""
    started = time.perf_counter()
    try:
        runs = make_set(SOURCES[name](args.data_home, args.data))
    except (OSError, ImportError) as error:
        return f"{name}: {error}", 0.0
    # so that sums run in one order, however many sets are judged at a time
    with threadpool_limits(1):
        judged = judge(name, runs, entries_of(runs, read_entry(args.entry)))
    return judged, time.perf_counter() - started


def read_entry(file: Path | None) -> dict[str, Any]:
    if file is None:
        return {}
    if not file.exists():
        raise SystemExit(f"{file} does not exist; give a Python file with an ENTRY")
    entry = runpy.run_path(str(file)).get("ENTRY")
    if not hasattr(entry, "transform"):
        raise SystemExit(f"{file} has no ENTRY = a transformer from runs to numbers, a row a step")
    return {file.stem: entry}


def as_text(value: Any) -> str:
    rounded = json.loads(json.dumps(value), parse_float=lambda number: round(float(number), 6))
    return json.dumps(rounded, indent=1)


def show(one: dict[str, Any]) -> None:
    """Print a set: margins in thousandths of a nat."""
    print(
        f"\n{one['name']}: {one['runs']} runs in {one['groups']} groups, {one['success']:.0%} "
        f"succeed, {one['steps']:.1f} steps"
    )
    for name, row in one["rows"].items():
        text = f"  {name:32} {row['score']:+.4f}"
        if "margin" in row:
            margin, low, high = (1000 * row[part] for part in ("margin", "low", "high"))
            star = "*" if row["p_holm"] < 0.05 else " "
            text += f" {margin:+7.1f}{star} [{low:+.1f}, {high:+.1f}] over {row['over']}"
        print(text)
    for name, why in one["refused"].items():
        print(f"  {name:32} refused: {why}")
    print(
        "  score in nats a step; margin in thousandths [interval]; * differs from 0 at 5%, by Holm"
    )


def main() -> int:
    """Judge the sets, print them as they come, and write all numbers; 1 where one is refused."""
    args = options(__doc__, data_home=Path, only=[""], entry=Path, out=Path, jobs=2)
    read_entry(args.entry)
    started = time.perf_counter()
    names = [name for name in SOURCES if any(word in name for word in args.only)]
    if not names:
        known = ", ".join(SOURCES)
        raise SystemExit(f"no set is named {' or '.join(args.only)}; the sets: {known}")
    judged: dict[str, Any] = {}
    todo = Parallel(args.jobs, return_as="generator_unordered")(
        delayed(of_set)(name, args) for name in names
    )
    left_out = []
    for done, (one, seconds) in enumerate(todo, start=1):
        if isinstance(one, str):
            left_out.append(one)
            print(f"\n{one}")
        else:
            judged[one["name"]] = one
            show(one)
        print(f"  ({done} of {len(names)} sets, {seconds:.0f} s)", flush=True)
    sets = [judged[name] for name in names if name in judged]
    result = {
        "horizon": HORIZON, "weights": "early", "folds": N_FOLDS, "repeats": N_REPEATS,
        "sets": sets, "ranks": rank(sets),
        "left_out": [one.partition(":")[0] for one in left_out],
    }  # fmt: skip
    if args.out is not None:
        args.out.write_text(as_text(result) + "\n", encoding="utf-8")
    if result["ranks"]:
        print(f"\n{as_text(result['ranks'])}")
    print(f"\n{len(sets)} sets in {time.perf_counter() - started:.0f} s")
    return int(not sets or any(one["refused"] for one in sets))


if __name__ == "__main__":
    sys.exit(main())
