"""TRACER: trajectory risk aggregation for critical episodes (Tayebati et al., 2026)."""

from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from trajscore import TracerScorer, TracerSignals, TrajectoryArray, io
from trajscore.core.within_runs import running_sum
from trajscore.metrics import trajectory_diagnostics
from trajscore.plotting import EarlyWarningDisplay
from trajscore.tracer import ChannelRisk

from .items import Cell, Data, Paper, at_least

LOGS = {
    "tau_bench/gpt-4o-airline.json": "tau-bench airline",
    "tau2/toolorchestra_airline_gpt-5_1trial.json": "tau2 airline, toolorchestra",
    "tau2/airline_gpt-oss-120b.json": "tau2 airline, gpt-oss-120b",
    "tau2/retail_gpt-4.1.json": "tau2 retail",
    "tau2/telecom_gpt-4.1.json": "tau2 telecom",
}
PAPER = Paper("tracer")
GAIN_IS_LARGER = (
    "the smallest gain in Table II is 6.1% (2.5-pro, telecom: .691 against .651); none is 4.7%"
)
GAIN_LOST = "of averages over the nine rows, each side against the best baseline of that side"


def table_of(name: str) -> np.ndarray:
    return np.array([[float(one) for one in row if one[0] == "."] for row in PAPER.rows(name)])


def table_2(data: Data) -> Iterator[Cell]:
    """What the text says of Table II, from its cells."""
    table = table_of("Table II").reshape(9, 5, 2)
    gain = 100 * (table[:, 4] / table[:, :4].max(axis=1) - 1)  # over the strongest baseline
    row = "gain over the strongest baseline, %"
    for k, (measure, low, high, slack) in enumerate(
        (("AUROC", "4.7", "37.1", 0.13), ("AUARC", "6", "55", 0.7))
    ):
        yield Cell(row, f"{measure}, smallest", low, gain[:, k].min(), GAIN_IS_LARGER, slack)
        yield Cell(row, f"{measure}, largest", high, gain[:, k].max(), "", slack)
    lead = float((table[:, 4] - table[:, :4].max(axis=1)).min())
    yield at_least("TRACER is best everywhere", "least lead", 0, lead)


def table_3(data: Data) -> Iterator[Cell]:
    """How much of the gain is lost with one side, as the text says of Table III."""
    table = table_of("Table III").reshape(9, 5, 2)
    both = table_of("Table II").reshape(9, 5, 2)[:, :, 0]
    gain = (both[:, 4] - both[:, :4].max(axis=1)).mean()
    one_side = (table[:, 4] - table[:, :4].max(axis=1)).mean(axis=0)
    lost, why = 100 * (1 - one_side / gain), f"{GAIN_LOST}; printed as about"
    yield Cell("gain lost, %", "without the agent", "85", lost[1], why, 0.6)
    yield Cell("gain lost, %", "without the user", "70", lost[0], why, 0.6)


def table_4(data: Data) -> Iterator[Cell]:
    """Whether max is the column of Table II, and best."""
    table, best = table_of("Table IV"), table_of("Table II").reshape(9, 5, 2)[:, 4, 0]
    lead = float((table[:, 3] - table[:, :3].max(axis=1)).min())
    same = float(np.abs(table[:, 3] - best).max())
    yield Cell("max", "largest difference from Table II", "0.000", same)
    yield at_least("max is best everywhere", "least lead", 0, lead)


@cache
def signals(path: Path) -> tuple[np.ndarray, TrajectoryArray]:
    """Outcomes of the runs of a log, and their signals."""
    runs = io.read_runs(path)
    return io.outcomes(runs), TracerSignals().fit_transform(runs)


SCORERS: dict[str, Any] = {
    "TRACER": TracerScorer(),
    "run length": ChannelRisk(None, kind="count"),
    "tool calls": ChannelRisk("tool_calls", kind="count"),
}
MEASURES = ("AUROC", "AUROC of prefixes", "AUARC")


def public_logs(rows_of: Callable[..., pd.DataFrame], data: Data) -> pd.DataFrame:
    """One table of all public logs that are there."""
    tables = {
        LOGS[str(path.relative_to(data.folder))]: rows_of(*signals(path))
        for path in data.logs(*LOGS)
    }
    return pd.concat(tables) if tables else pd.DataFrame()


def judged(y: np.ndarray, risk: TrajectoryArray) -> dict[str, float]:
    """AUROC of runs, AUROC of all their prefixes, and AUARC; of runs with an outcome and a risk."""
    risk, y = risk[y != -1], y[y != -1]
    cells, last = risk.cells.ravel(), last_value(risk)
    runs = diagnostics(y, last)
    of_prefix = np.repeat(np.where(np.isnan(last), np.nan, y), risk.lengths)
    prefixes = diagnostics(of_prefix, np.where(np.isnan(of_prefix), np.nan, cells))
    values = runs["AUROC"], prefixes["AUROC"], 1 - runs["AURC"]
    return dict(zip(MEASURES, map(float, values), strict=True))


def last_value(risk: TrajectoryArray) -> np.ndarray:
    return risk.cells.ravel()[risk.offsets[1:] - 1]


def diagnostics(y: np.ndarray, risk: np.ndarray) -> pd.Series:
    rows = ~np.isnan(risk)
    return trajectory_diagnostics(y[rows], -risk[rows][:, None])


def ranking(y: np.ndarray, S: TrajectoryArray) -> pd.DataFrame:
    """AUROC, that of prefixes, and AUARC on the grid of the published code."""
    rows = {}
    for name, scorer in SCORERS.items():
        risk = scorer.fit_transform(S)
        last = last_value(risk)
        known = (y != -1) & ~np.isnan(last)
        rows[name] = judged(y, risk) | {"AUARC": auarc_on_grid(y[known], last[known])}
    return pd.DataFrame.from_dict(rows, orient="index")


def auarc_on_grid(y: np.ndarray, risk: np.ndarray, n_points: int = 20) -> float:
    """Return the AUARC of the published tables, expected over all orders of equal risks.

    It is the accuracy of the ceil(c n) least risky runs at coverages c = 1/20, ..., 1, by the
    trapezoidal rule; so the most it can be is 0.95.
    """
    _, group, size = np.unique(risk, return_inverse=True, return_counts=True)
    share = np.bincount(group, y) / size
    accepted = np.cumsum(share[np.sort(group)])  # expected number of successes among the first
    kept = -(-np.arange(1, n_points + 1) * len(y) // n_points)
    accuracy = accepted[kept - 1] / kept
    return float(((accuracy[1:] + accuracy[:-1]) / 2).sum() / n_points)


def by_actor(y: np.ndarray, S: TrajectoryArray) -> pd.DataFrame:
    """AUROC with the turns of both sides, of the agent alone, and of the user alone."""
    is_agent, calls = (S[name].cells.ravel() for name in ("is_agent", "tool_calls"))
    table = {}
    for actors, counted in {"both": is_agent**0, "agent": is_agent, "user": 1 - is_agent}.items():
        risks = {
            "TRACER": TracerScorer(actors=actors).fit_transform(S),
            "run length": S.with_cells(running_sum(S, counted)),
            "tool calls": S.with_cells(running_sum(S, counted * calls)),
        }
        table[actors] = {name: judged(y, risk)["AUROC"] for name, risk in risks.items()}
    return pd.DataFrame(table)


def by_aggregation(y: np.ndarray, S: TrajectoryArray) -> pd.DataFrame:
    """Judge the four aggregations; NaN for "multiplicative" where a run has no surprisal."""
    recorded = ~np.isnan(S["surprisal"].cells.ravel())
    everywhere = np.logical_or.reduceat(recorded, S.offsets[:-1]).all()
    rows = {}
    for way in ("max", "additive", "multiplicative", "separate"):
        rows[way] = dict.fromkeys(MEASURES, np.nan)
        if way != "multiplicative" or everywhere:
            rows[way] = judged(y, TracerScorer(aggregation=way).fit_transform(S))
    return pd.DataFrame.from_dict(rows, orient="index")


def draw_early_warning(data: Data) -> Any:
    """Draw detection against progress on the largest log."""
    y, S = signals((data.folder or Path("nowhere")) / "tau_bench" / "gpt-4o-airline.json")
    known = y != -1
    risks = {name: SCORERS[name].fit_transform(S)[known] for name in ("TRACER", "run length")}
    return EarlyWarningDisplay.from_predictions(y[known], risks).figure_


PAPER.make(
    cells={"Table II": [table_2], "Table III": [table_3], "Table IV": [table_4]},
    instead={
        "Table II": partial(public_logs, ranking),
        "Table III": partial(public_logs, by_actor),
        "Table IV": partial(public_logs, by_aggregation),
    },
    draw={"Figure 2": draw_early_warning},
)  # fmt: skip
