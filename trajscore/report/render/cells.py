"""Numbers with their intervals, as people read them."""

from __future__ import annotations

import math
from collections.abc import Iterable

import pandas as pd

from trajscore.calibration._fixed_step import AUROC
from trajscore.core.score_families import digits_of
from trajscore.report._cards import ENDS, GAINED, MARGINS
from trajscore.report._data import CONSTANT, GAIN, MARGIN, RAW, ReportData


def margin_cells(data: ReportData) -> pd.DataFrame:
    """Write each score's margin over the base rate, of the rows that are probabilities."""
    table = data.table[data.table.index.get_level_values("form") != CONSTANT]
    table = table[table[f"{data.score_name} margin"].notna()]
    cells = {data.score_name: [margin_of(data, *key) for key in table.index]}
    for name in data.options.score_names[1:]:
        cells[name] = list(zip(*(table[f"{name} {part}"] for part in MARGIN), strict=True))
    text = {
        name: [with_interval(three, digits_of(name), "+") for three in numbers]
        for name, numbers in cells.items()
    }
    return pd.DataFrame(text, index=table.index)


def margin_of(data: ReportData, name: str, form: str) -> tuple[float, ...]:
    """Return the leading margin of a row: with the interval that its card was decided by.

    Of references, and of batches, whose cards are of a sample, there is the one of `intervals`.
    """
    own = tuple(data.intervals.loc[(name, form, data.score_name), list(MARGIN)])
    return _of_card(data, name, MARGINS.get(form), own)


def gain_of(data: ReportData, name: str, metric: str) -> tuple[float, ...]:
    """Return what recalibration gains of a metric, that of the leading score as in its card."""
    own = tuple(data.calibration_gain.loc[(name, metric), list(GAIN)])
    return _of_card(data, name, GAINED if metric == data.score_name else None, own)


def _of_card(
    data: ReportData, name: str, column: str | None, own: tuple[float, ...]
) -> tuple[float, ...]:
    if column is None or name not in data.cards.index:
        return own
    three = tuple(data.cards.loc[name, [f"{column}{end}" for end in ENDS]])
    return three if math.isclose(three[0], own[0], rel_tol=1e-6, abs_tol=1e-9) else own


def gain_cells(data: ReportData) -> pd.DataFrame:
    """Write each metric raw, calibrated, and the gain; one column a predictor."""
    table = data.calibration_gain
    cells = {}
    for key, row in table.iterrows():
        n = digits_of(key[1])
        gain = with_interval(gain_of(data, *key), n, "+")
        cells[key] = f"{row['raw']:.{n}f} -> {row['calibrated']:.{n}f}  {gain}"
    if not cells:
        return pd.DataFrame()
    wide = pd.Series(cells).unstack(level=0)
    metrics = [name for name in data.options.metrics if name in wide.index]
    return wide.loc[metrics, [name for name in data.predictors if name in wide]].fillna("")


def step_cells(data: ReportData) -> pd.DataFrame:
    """Write AUROC of each predictor as given at each step, with how many runs get there."""
    table = data.by_step.xs(RAW, level="form") if len(data.by_step) else data.by_step
    if table.empty:
        return pd.DataFrame()
    cells = [
        "" if pd.isna(three[0]) else with_interval(three)
        for three in zip(*(table[name] for name in AUROC), strict=True)
    ]
    wide = pd.Series(cells, index=table.index).unstack("predictor").fillna("")
    wide.insert(0, "runs", table["n_runs"].groupby("step").max())
    return wide[["runs", *(name for name in data.predictors if name in wide)]]


def short_number(value: float, digits: int) -> str:
    """Write a number as printed tables do: .714, -.684.

    >>> short_number(-0.6841, 3), short_number(-0.00004, 3), short_number(10.5, 1)
    ('-.684', '.000', '10.5')
    """
    text = f"{round(value, digits) + 0.0:.{digits}f}"
    return text.replace("0.", ".", 1) if abs(value) < 1 and text[:2] in ("0.", "-0") else text


def with_interval(estimate: Iterable[float], digits: int = 3, sign: str = "") -> str:
    """Write a number with its interval; with "+", signs of positive ones too.

    >>> with_interval((0.1, -0.05, 0.2512), sign="+")
    '+0.100 [-0.050, +0.251]'
    """
    value, low, high = estimate
    return f"{fixed(value, digits, sign)} {interval(low, high, digits, sign)}"


def interval(low: float, high: float, digits: int, sign: str = "") -> str:
    """Write an interval; those that would hold too seldom are not given."""
    if math.isnan(low) or math.isnan(high):
        return "[no interval]"
    return f"[{fixed(low, digits, sign)}, {fixed(high, digits, sign)}]"


def fixed(value: float, digits: int, sign: str = "") -> str:
    """Write a number with so many digits; what rounds to zero has no minus.

    >>> fixed(-0.0004, 3, "+"), fixed(-0.0004, 4)
    ('+0.000', '-0.0004')
    """
    return f"{round(float(value), digits) + 0.0:{sign}.{digits}f}"


def digits_that_show(value: float, digits: int) -> int:
    """Return how many digits it takes to tell a number from zero, at least so many.

    >>> digits_that_show(0.2, 3), digits_that_show(0.00042, 3), digits_that_show(0.0, 3)
    (3, 4, 3)
    """
    if not value or round(value, digits) or not math.isfinite(value):
        return digits
    return math.ceil(-math.log10(abs(value)))


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


def _rates(table: pd.DataFrame, name: str) -> list[str]:
    numbers = zip(table[name], table[f"{name}_low"], table[f"{name}_high"], strict=True)
    return [_rate(*three) for three in numbers]


def _rate(rate: float, low: float, high: float) -> str:
    """Write a rate with its interval, as far as there are runs and splits to have them of."""
    if pd.isna(rate):
        return ""
    return f"{rate:.3f}" if pd.isna(low) else with_interval((rate, low, high))


def _shares(column: pd.Series) -> list[str]:
    return ["" if pd.isna(share) else f"{share:.1%}" for share in column]
