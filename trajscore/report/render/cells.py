"""Numbers with their intervals, as people read them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pandas as pd

from trajscore.calibration.fixed_step import AUROC
from trajscore.core.score_families import digits_of
from trajscore.report._cards import ENDS, gain_of, margin_of
from trajscore.report._data import AS_GIVEN, CONSTANT, FORMS, MARGIN, ReportData
from trajscore.report._groups import shown_groups
from trajscore.report._numbers import with_interval


def margin_cells(data: ReportData) -> pd.DataFrame:
    """Write each score's margin over the base rate, of the rows that are probabilities."""
    table = data.table[data.table.index.get_level_values("form") != CONSTANT]
    table = table[table[f"{data.score_name} margin"].notna()]
    margins: dict[str, Any] = {data.score_name: [margin_of(data, *key) for key in table.index]}
    for name in data.options.score_names[1:]:
        margins[name] = table[[f"{name} {part}" for part in MARGIN]].to_numpy()
    cells = {name: _cells(numbers, digits_of(name), "+") for name, numbers in margins.items()}
    return pd.DataFrame(cells, index=table.index)


def gain_cells(data: ReportData) -> pd.DataFrame:
    """Write each metric raw, calibrated, and the gain; one column a predictor."""
    table = data.calibration_gain
    cells = {}
    for key, row in table.iterrows():
        n = digits_of(key[1])
        gain = with_interval(gain_of(data, *key), n, "+")
        cells[key] = f"{row['as_given']:.{n}f} -> {row['recalibrated']:.{n}f}  {gain}"
    if not cells:
        return pd.DataFrame()
    wide = pd.Series(cells).unstack(level=0)
    metrics = [name for name in data.options.metrics if name in wide.index]
    return wide.loc[metrics, [name for name in data.predictors if name in wide]].fillna("")


def step_cells(data: ReportData) -> pd.DataFrame:
    """Write AUROC of each predictor as given at each step, with how many runs get there."""
    table = data.by_step.xs(AS_GIVEN, level="form") if len(data.by_step) else data.by_step
    if table.empty:
        return pd.DataFrame()
    cells = pd.Series(_cells(table[list(AUROC)].to_numpy()), index=table.index)
    wide = cells.unstack("predictor").fillna("")
    n_runs = table["n_runs"].groupby("step").max()
    wide.insert(0, "runs", [f"{n:,}" for n in n_runs])
    return wide[["runs", *(name for name in data.predictors if name in wide)]]


def group_cells(data: ReportData, kind: str) -> tuple[pd.DataFrame, int]:
    """Write the cards of a kind's groups, by group and predictor; and count groups left out."""
    assert data.by is not None
    cards, n_left_out = shown_groups(data.by.loc[kind])
    columns = {
        "runs": [f"{n:,}" for n in cards["n_runs"]],
        "success": [f"{rate:.0%}" for rate in cards["success_rate"]],
        "what to do": cards["card"].tolist(),
    }
    for form, words in FORMS.items():
        ends = cards[[f"{form}{end}" for end in ENDS]].to_numpy(dtype=float)
        columns[words] = _cells(ends, digits_of(data.score_name), "+")
    return pd.DataFrame(columns, index=cards.index), n_left_out


def stopping_cells(data: ReportData) -> pd.DataFrame:
    """Write how often runs would be flagged early and what that saves; empty if not asked for."""
    table = data.monitoring
    if table is None or table.empty:
        return pd.DataFrame()
    steps = table["mean_stopping_step"]
    cells = {
        "good, bad runs": [
            f"{good:.0f}, {bad:.0f}"
            for good, bad in zip(table["n_success"], table["n_failure"], strict=True)
        ],
        "false alarms": _rates(table, "false_alarm_rate"),
        "power": _rates(table, "power"),
        "before the end": _rates(table, "power_before_end"),
        "stops at step": ["" if pd.isna(step) else f"{step:.1f}" for step in steps],
        "steps saved": _shares(table["steps_saved"]),
    }
    options = data.facts.monitoring
    if "cost_saved" in table and options is not None:
        cells[f"{options.cost_name} saved"] = _shares(table["cost_saved"])
    return pd.DataFrame(cells, index=table.index)


def _cells(numbers: Iterable[Sequence[float]], digits: int = 3, sign: str = "") -> list[str]:
    """Write values with their intervals; nothing where there is no value."""
    return ["" if pd.isna(three[0]) else with_interval(three, digits, sign) for three in numbers]


def _rates(table: pd.DataFrame, name: str) -> list[str]:
    """Write rates with their intervals, as far as there are runs and splits to have them of."""
    rates = table[[name, f"{name}_low", f"{name}_high"]].to_numpy()
    cells = zip(rates, _cells(rates), strict=True)
    return [f"{three[0]:.3f}" if cell and pd.isna(three[1]) else cell for three, cell in cells]


def _shares(column: pd.Series) -> list[str]:
    return ["" if pd.isna(share) else f"{share:.1%}" for share in column]
