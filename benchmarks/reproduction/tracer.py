"""TRACER: trajectory risk aggregation for critical episodes (Tayebati et al., 2026)."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import tracer as benchmark
import tracer_ablation
from trajscore import TracerScorer, TracerSignals, TrajectoryArray
from trajscore.plotting import EarlyWarningDisplay
from trajscore.tracer import ChannelRisk

from .items import Cell, Data, Item, Paper, at_least, numbers

LOGS = {
    "tau_bench/gpt-4o-airline.json": "tau-bench airline",
    "tau2/toolorchestra_airline_gpt-5_1trial.json": "tau2 airline, toolorchestra",
    "tau2/airline_gpt-oss-120b.json": "tau2 airline, gpt-oss-120b",
    "tau2/retail_gpt-4.1.json": "tau2 retail",
    "tau2/telecom_gpt-4.1.json": "tau2 telecom",
}
# Table II: AUROC and AUARC of normalised entropy, stated confidence, semantic entropy, SAUP, TRACER
TABLE_II = """
2.5-pro,airline    .600 .514 .462 .451 .603 .516 .595 .517 .735 .629
2.5-pro,retail     .553 .661 .440 .590 .556 .673 .525 .684 .673 .725
2.5-pro,telecom    .649 .392 .507 .283 .651 .395 .639 .379 .691 .517
2.5-flash,airline  .568 .612 .663 .645 .666 .648 .540 .599 .725 .697
2.5-flash,retail   .468 .497 .530 .544 .533 .547 .428 .467 .707 .670
2.5-flash,telecom  .559 .358 .423 .257 .621 .392 .673 .446 .809 .520
4.1-mini,airline   .538 .402 .290 .236 .541 .427 .531 .403 .742 .615
4.1-mini,retail    .617 .571 .577 .555 .620 .579 .609 .584 .689 .632
4.1-mini,telecom   .548 .270 .683 .389 .686 .394 .534 .347 .765 .613
"""
# Table III: AUROC of the agent's and of the user's turns, the same five
TABLE_III = """
.610 .535 .430 .547 .618 .551 .626 .496 .678 .582
.504 .573 .474 .428 .521 .576 .555 .524 .637 .489
.644 .555 .421 .555 .648 .571 .671 .593 .647 .622
.530 .558 .718 .589 .721 .572 .531 .574 .650 .591
.478 .453 .534 .506 .538 .510 .468 .465 .692 .4682
.543 .546 .377 .556 .566 .563 .626 .596 .672 .602
.582 .500 .421 .366 .585 .521 .590 .536 .602 .725
.575 .633 .568 .544 .578 .635 .560 .632 .579 .636
.554 .553 .645 .668 .648 .669 .655 .506 .674 .672
"""
# Table IV: AUROC of additive, multiplicative, separate, max
TABLE_IV = """
.726 .661 .711 .735
.660 .582 .623 .673
.678 .681 .672 .691
.620 .632 .675 .725
.677 .500 .638 .707
.795 .785 .764 .809
.731 .643 .648 .742
.668 .627 .679 .689
.761 .689 .753 .765
"""
NOT_PUBLIC = "the paper's logs, with token log-probabilities, are not public"
GAIN_IS_LARGER = (
    "the smallest gain in Table II is 6.1% (2.5-pro, telecom: .691 against .651); none is 4.7%"
)
GAIN_LOST = "of averages over the nine rows, each side against the best baseline of that side"


def printed(text: str) -> np.ndarray:
    """Numbers of a printed table."""
    return np.array([[float(one) for one in line if one[0] == "."] for line in numbers(text)])


def table_2(data: Data) -> list[Cell]:
    """What the text says of Table II, from its cells."""
    table = printed(TABLE_II).reshape(9, 5, 2)
    gain = 100 * (table[:, 4] / table[:, :4].max(axis=1) - 1)  # over the strongest baseline
    row = "gain over the strongest baseline, %"
    cells = []
    for k, (measure, low, high, slack) in enumerate(
        (("AUROC", "4.7", "37.1", 0.13), ("AUARC", "6", "55", 0.7))
    ):
        cells += [
            Cell(row, f"{measure}, smallest", low, gain[:, k].min(), GAIN_IS_LARGER, slack),
            Cell(row, f"{measure}, largest", high, gain[:, k].max(), "", slack),
        ]
    lead = float((table[:, 4] - table[:, :4].max(axis=1)).min())
    return [*cells, at_least("TRACER is best everywhere", "least lead", 0, lead)]


def table_3(data: Data) -> list[Cell]:
    """How much of the gain is lost with one side, as the text says of Table III."""
    table = printed(TABLE_III).reshape(9, 5, 2)
    both = printed(TABLE_II).reshape(9, 5, 2)[:, :, 0]
    gain = (both[:, 4] - both[:, :4].max(axis=1)).mean()
    one_side = (table[:, 4] - table[:, :4].max(axis=1)).mean(axis=0)
    lost = 100 * (1 - one_side / gain)
    row = "gain lost, %"
    return [
        Cell(row, "without the agent", "85", lost[1], f"{GAIN_LOST}; printed as about", 0.6),
        Cell(row, "without the user", "70", lost[0], f"{GAIN_LOST}; printed as about", 0.6),
    ]


def table_4(data: Data) -> list[Cell]:
    """Whether max is the column of Table II, and best."""
    table, best = printed(TABLE_IV), printed(TABLE_II).reshape(9, 5, 2)[:, 4, 0]
    lead = float((table[:, 3] - table[:, :3].max(axis=1)).min())
    same = float(np.abs(table[:, 3] - best).max())
    return [
        Cell("max", "largest difference from Table II", "0.000", same),
        at_least("max is best everywhere", "least lead", 0, lead),
    ]


def figure_2(data: Data) -> list[Cell]:
    """Gains in detection by a fifth of the run, of the printed shares."""
    shares = {
        "airline": (68.0, 56.0, "12.0"), "retail": (97.3, 66.2, "31.1"),
        "telecom": (97.4, 82.1, "15.3"),
    }  # fmt: skip
    return [
        Cell("2.5-pro, percentage points", domain, text, tracer - baseline)
        for domain, (tracer, baseline, text) in shares.items()
    ]


@cache
def signals(path: Path) -> tuple[benchmark.Log, TrajectoryArray]:
    """Runs of a log, and their signals."""
    log = benchmark.load(path)
    return log, TracerSignals().fit_transform(log.runs)


SCORERS: dict[str, Any] = {
    "TRACER": TracerScorer(),
    "run length": ChannelRisk(None, kind="count"),
    "tool calls": ChannelRisk("tool_calls", kind="count"),
}


def public_logs(data: Data, rows_of: Any) -> pd.DataFrame:
    """One table of all public logs that are there."""
    tables = {
        LOGS[str(path.relative_to(data.folder))]: rows_of(*signals(path))
        for path in data.logs(*LOGS)
    }
    titles = {"auroc": "AUROC", "prefix_auroc": "AUROC of prefixes", "auarc": "AUARC"}
    return pd.concat(tables).rename(columns=titles) if tables else pd.DataFrame()


def ranking(log: benchmark.Log, S: TrajectoryArray) -> pd.DataFrame:
    """AUROC, that of prefixes, and AUARC on the grid of the published code."""
    rows = {}
    for name, scorer in SCORERS.items():
        risk = scorer.fit_transform(S)
        known = benchmark.judged_runs(log.y, risk)
        grid = benchmark.auarc_on_grid(log.y[known], benchmark.final(risk)[known])
        found = tracer_ablation.values(scorer, S, log.y)
        rows[name] = {
            "AUROC": found["auroc"], "AUROC of prefixes": found["prefix_auroc"], "AUARC": grid,
        }  # fmt: skip
    return pd.DataFrame.from_dict(rows, orient="index")


def draw_early_warning(data: Data, path: Path) -> None:
    """Draw detection against progress on the largest log."""
    for log_path in data.logs("tau_bench/gpt-4o-airline.json"):
        log, S = signals(log_path)
        risks = {name: SCORERS[name].fit_transform(S) for name in ("TRACER", "run length")}
        known = log.y != -1
        risks = {name: risk[known] for name, risk in risks.items()}
        EarlyWarningDisplay.from_predictions(log.y[known], risks).figure_.savefig(path)


WITHOUT = "Public logs hold no token log-probabilities, so TRACER runs on its other signals."
PAPER = Paper(
    "TRACER: Trajectory Risk Aggregation for Critical Episodes in Agentic Reasoning",
    [
        Item("Figure 1", "Overview", missing="it is a drawing: nothing to compute"),
        Item("Table I", "Domains of tau2-bench",
             missing="these are counts of the benchmark: nothing to compute"),
        Item(
            "Table II", "AUROC and AUARC of five scorers, three models, three domains",
            "what the text says of its cells; ``benchmarks/tracer.py`` on public logs", table_2,
            f"{NOT_PUBLIC} (the cells)",
            lambda data: public_logs(data, ranking),
            f"{WITHOUT} AUROC for failures, of runs and of all prefixes; AUARC on the published "
            "code's grid of 20 coverages. No confidence is stated in them, so of the baselines "
            "only run length and tool calls, which are not in the paper, can be shown.",
        ),
        Item(
            "Figure 2", "Early warning",
            "differences of shares in the text; drawn for tau-bench airline, with the threshold "
            "of the same runs; ``tests/tracer/test_early_warning.py``",
            figure_2, f"{NOT_PUBLIC} (the shares)", draw=draw_early_warning,
            caption="Share flagged as runs go on, tau-bench airline.",
        ),
        Item(
            "Table III", "AUROC of the agent's and of the user's turns alone",
            "what the text says of its cells; ``benchmarks/tracer_ablation.py`` on public logs",
            table_3, f"{NOT_PUBLIC} (the cells)",
            lambda data: public_logs(
                data, lambda log, S: tracer_ablation.actor_ablation(S, log.y)
            ),
            "AUROC with the turns of both sides, of the agent alone and of the user alone.",
        ),
        Item(
            "Table IV", "Four ways to aggregate",
            "what the text says of its cells; ``benchmarks/tracer_ablation.py`` on public logs",
            table_4, f"{NOT_PUBLIC} (the cells)",
            lambda data: public_logs(
                data, lambda log, S: tracer_ablation.aggregation_ablation(S, log.y)
            ),
            f"{WITHOUT} Multiplying by a missing surprisal gives no risk.",
        ),
        Item(
            "Theorems A.1 to A.9", "Decomposition, coherence, stability, control",
            "``tests/tracer/test_theory.py``, ``test_tail.py``, ``test_tracer_scorer.py``",
        ),
    ],
)  # fmt: skip
