"""How long a call takes, and a line that holds a number against its target."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np


def median_seconds(function: Callable[[], object], repeats: int = 5) -> float:
    """Median wall time of a call, after one call to warm up."""
    function()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def against_target(name: str, value: float, unit: str, target: float) -> None:
    """Print one line of a table."""
    verdict = "ok" if value <= target else "MISSED"
    print(f"{name:<58} {value:9.3g} {unit:<6} target {target:g} {unit} {verdict}", flush=True)
