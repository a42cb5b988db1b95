"""Which step of a failed run was at fault? Signals beside the place of the step.

    python benchmarks/which_step.py [--data-home FOLDER] [--repeats 5]

Who&When: 184 failed runs of several agents, in each of which people named the step and the agent at
fault. A logistic regression gives each step a probability of being that one, from features of the
step, in 10 folds of runs. The table has the share of runs in which the likeliest step is the one,
and in which the step with the likeliest surroundings (two steps either way) is at most two steps
from it, with a 95% interval over runs. The features:

place     the number of the step, counted from either end, and as a share of the run
who       the agent that speaks
signals   how long the step is, whether it was said before, whether it reports an error, has code,
          or apologises
text      the hashed words of the step

`alone` is without the place; the others are added to it.
"""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, hstack
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import public_sets
from trajscore.inference import influence_interval

NEAR = 2  # steps
ERROR = re.compile(r"error|exception|traceback|failed|not found|unable|cannot", re.IGNORECASE)
SORRY = re.compile(r"sorry|apolog", re.IGNORECASE)


class Steps(NamedTuple):
    """All steps of all runs, one after another."""

    run: NDArray[np.int64]
    number: NDArray[np.int64]
    who: list[str]
    text: list[str]
    is_fault: NDArray[np.bool_]
    fault: NDArray[np.int64]  # of each run


def read(folder: Path) -> Steps:
    """Read the runs of a folder, in the order of their names."""
    run, number, who, text, is_fault, fault = [], [], [], [], [], []
    for k, file in enumerate(sorted(folder.rglob("*.json"))):
        log = json.loads(file.read_text(encoding="utf-8"))
        fault.append(int(log["mistake_step"]))
        for step, message in enumerate(log["history"]):
            run.append(k)
            number.append(step)
            # "Orchestrator (thought)" and "Orchestrator (-> WebSurfer)" are one agent
            who.append((message.get("name") or message["role"]).partition(" (")[0])
            text.append(message["content"])
            is_fault.append(step == fault[-1])
    return Steps(
        np.array(run), np.array(number), who, text, np.array(is_fault), np.array(fault)
    )  # fmt: skip


def features(steps: Steps) -> dict[str, csr_matrix]:
    """Return the columns of each group of features."""
    n = np.bincount(steps.run)[steps.run]
    place = np.column_stack([
        steps.number / n, np.log1p(steps.number), np.log1p(n - 1 - steps.number),
        steps.number == 0, steps.number == 1, steps.number == n - 1,
    ])  # fmt: skip
    seen: set[tuple[int, str]] = set()
    signals = []
    for run, text in zip(steps.run.tolist(), steps.text, strict=True):
        turn = (run, text.strip())
        matches = [bool(pattern.search(text)) for pattern in (ERROR, SORRY)]
        signals.append([np.log1p(len(text)), turn in seen, *matches, "```" in text])
        seen.add(turn)
    who = OneHotEncoder(min_frequency=10, handle_unknown="infrequent_if_exist")
    words = HashingVectorizer(n_features=2**14, alternate_sign=False, ngram_range=(1, 2))
    return {
        "place": csr_matrix(StandardScaler().fit_transform(place.astype(float))),
        "who": csr_matrix(who.fit_transform(np.array(steps.who)[:, None])),
        "signals": csr_matrix(StandardScaler().fit_transform(np.array(signals, dtype=float))),
        "text": csr_matrix(words.transform(steps.text)),
    }


def named(steps: Steps, columns: csr_matrix, seed: int) -> list[NDArray[np.int64]]:
    """Return the step of each run, alone and by its surroundings, that other runs make likely."""
    p = np.zeros(len(steps.run))
    for train, test in GroupKFold(10, shuffle=True, random_state=seed).split(p, groups=steps.run):
        fit = LogisticRegression(max_iter=500).fit(columns[train], steps.is_fault[train])
        p[test] = fit.predict_proba(columns[test])[:, 1]
    return [likeliest(steps, around(steps, p, reach)) for reach in (0, NEAR)]


def around(steps: Steps, p: NDArray[np.float64], reach: int) -> NDArray[np.float64]:
    """Add up the probabilities of the steps of a run that are at most so far away."""
    total = p.copy()
    for apart in range(1, reach + 1):
        is_same = steps.run[apart:] == steps.run[:-apart]
        total[apart:] += np.where(is_same, p[:-apart], 0)
        total[:-apart] += np.where(is_same, p[apart:], 0)
    return total


def likeliest(steps: Steps, p: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the step of each run with the highest value, of equals the first."""
    order = np.lexsort([-steps.number, p, steps.run])
    last = np.flatnonzero(np.diff(steps.run[order], append=-1))
    return steps.number[order][last]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-home", type=Path)
    parser.add_argument("--repeats", type=int, default=5)
    args = parser.parse_args()
    steps = read(public_sets.unpacked_log("who_and_when", args.data_home))
    parts = features(steps)
    sets: dict[str, Any] = {
        "place": ["place"], "place, who": ["place", "who"],
        "place, signals": ["place", "signals"], "place, text": ["place", "text"],
        "place, who, signals": ["place", "who", "signals"],
        "who alone": ["who"], "signals alone": ["signals"], "text alone": ["text"],
    }  # fmt: skip
    print(f"{len(steps.fault)} runs of {len(steps.run) / len(steps.fault):.1f} steps")
    near = {}
    for name, groups in sets.items():
        columns = csr_matrix(hstack([parts[group] for group in groups]))
        alone, by_surroundings = np.abs(
            [np.array(named(steps, columns, k)) - steps.fault for k in range(args.repeats)]
        ).swapaxes(0, 1)
        near[name] = (by_surroundings <= NEAR).mean(axis=0)
        difference = near[name] - near["place"]
        low, high = influence_interval(difference.mean(), difference - difference.mean())
        print(
            f"  {name:20} exactly {(alone == 0).mean():.3f}  within two {near[name].mean():.3f}, "
            f"minus place {difference.mean():+.3f} [{low:+.3f}, {high:+.3f}]"
        )


if __name__ == "__main__":
    main()
