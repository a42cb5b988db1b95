"""The tables of a report, as people read them: on the page, in a terminal, in Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from trajscore.calibration.fixed_step import AUROC
from trajscore.core.equal_length import span, success_by_length
from trajscore.core.outcomes import CENSORED
from trajscore.core.score_families import digits_of
from trajscore.core.ties import group_ties
from trajscore.report._cards import gain_of, margin_of, ranked
from trajscore.report._data import (
    AS_GIVEN,
    BASE_RATE,
    CONSTANT,
    FORMS,
    MARGIN,
    OVER_ALIVE,
    OVER_ALIVE_END,
    REFERENCES,
    ReportData,
    columns_of,
)
from trajscore.report._equal_length import OVER_LENGTH
from trajscore.report._glossary import GLOSSARY, arrow, explain
from trajscore.report._groups import shown_groups
from trajscore.report._numbers import fixed, short_number, with_interval
from trajscore.report._verdict import of_groups

_OVER = {
    f"AUROC {OVER_ALIVE[0]}": "AUROC over counting",
    f"AUROC {OVER_ALIVE_END[0]}": "AUROC over counting, end known",
}
_SHORT = {"n_runs": "runs", "n_censored": "no outcome", **_OVER}
_MOST_LENGTHS = 10
_MOST_REASONS = 12
_MOST_PAIRED = 30
ALL_NUMBERS = "All numbers"
MARGINS = "Margins over the base rate"


@dataclass(frozen=True)
class Table:
    """A table of texts: its index names the rows, and `about` says what columns mean."""

    title: str
    frame: pd.DataFrame
    about: Mapping[str, str] = field(default_factory=dict)
    best: frozenset[tuple[Any, str]] = frozenset()
    said: str = ""  # of these very rows; enough without them, too

    @property
    def note(self) -> str:
        """What the table is of."""
        return self.said or GLOSSARY.get(self.title, "")

    @property
    def rows(self) -> list[tuple[tuple[Any, ...], list[str]]]:
        """The names of each row, and its cells."""
        keys = [key if isinstance(key, tuple) else (key,) for key in self.frame.index]
        return list(zip(keys, self.frame.to_numpy().tolist(), strict=True))

    def meaning(self, column: str) -> str:
        """Say what a column means; "" where its name says it."""
        return self.about.get(column) or (explain(column) if column in GLOSSARY else "")


def tables_of(data: ReportData) -> list[Table]:
    """Return every table that says something, the main one first."""
    tables = [
        _main(data), _margins(data), _pairs(data), _gains(data), *_groups(data),
        _stopping(data), _steps(data), _equal_length(data), _lengths(data), _stops(data),
        _left_out(data), _values(data), _sensitivity(data),
    ]  # fmt: skip
    return [table for table in tables if table.said or not table.frame.empty]


def _frame(cells: Mapping[Any, Mapping[str, str]], names: Sequence[str]) -> pd.DataFrame:
    """Return a row for each key."""
    frame = pd.DataFrame.from_dict(dict(cells), orient="index")
    if frame.empty:
        return frame
    several = len(names) > 1
    keys = pd.MultiIndex.from_tuples(list(cells)) if several else pd.Index(list(cells))
    return frame.set_axis(keys).rename_axis(list(names) if several else names[0])


# -------------------------------------------------------------------- metrics


def _main(data: ReportData) -> Table:
    """Return every metric of every row, best values marked."""
    columns = ["n_runs", "n_censored", *data.options.metrics, *_OVER]
    heads = {name: f"{_SHORT.get(name, name)} {arrow(name, data.options)}".strip()
             for name in columns}  # fmt: skip
    best_of = {column: _best(data, column) for column in columns}
    rows = {}
    best = set()
    for key in _in_order(data, data.table):
        name, form = key
        label = name, "" if name in REFERENCES else FORMS[form]
        rows[label] = {
            heads[column]: _text(data.table.loc[key, column], column) for column in columns
        }
        best |= {(label, heads[column]) for column in columns if key in best_of[column]}
    about = {heads[column]: explain(column) for column in columns}
    return Table(ALL_NUMBERS, _frame(rows, ["predictor", "form"]), about, frozenset(best))


def _in_order(data: ReportData, table: pd.DataFrame) -> list[tuple[str, str]]:
    """Return the keys of a table, the best predictor first, the references last."""
    names = [*ranked(data.cards), *REFERENCES]
    return sorted(table.index, key=lambda key: names.index(key[0]))


def _text(value: Any, name: str) -> str:
    if pd.isna(value):
        return ""
    return f"{int(value):,}" if name.startswith("n_") else short_number(value, digits_of(name))


def _best(data: ReportData, name: str) -> set[Any]:
    """Return the rows with the best value of a metric, among those that beat the base rate."""
    way = arrow(name, data.options)
    column = data.table[name].dropna().drop(list(REFERENCES), level="predictor", errors="ignore")
    known = column[[_beats(data, key, name, way) for key in column.index]] if way else column[:0]
    if known.empty:
        return set()
    best = known.min() if way == "\u2193" else known.max()
    return set(known.index[known == best])


def _beats(data: ReportData, key: tuple[str, str], name: str, way: str) -> bool:
    if name in _OVER:
        return bool(data.table.loc[key, f"{name}_low"] > 0)
    low, high = data.intervals.loc[(*key, name), MARGIN[1:]]
    by_card = data.cards.loc[key[0], f"{key[1]}_low"]
    return bool(by_card > 0 or (high < 0 if way == "\u2193" else low > 0))


def _margins(data: ReportData) -> Table:
    cells = margin_cells(data)
    cells = cells.loc[_in_order(data, cells)]
    keys = [(name, FORMS.get(form, "")) for name, form in cells.index]
    cells = cells.set_axis(pd.MultiIndex.from_tuples(keys, names=["predictor", "form"]))
    return Table(MARGINS, cells, dict.fromkeys(cells, explain("margin")))


def margin_cells(data: ReportData) -> pd.DataFrame:
    """Write each score's margin over the base rate, of the rows that are probabilities."""
    table = data.table[data.table.index.get_level_values("form") != CONSTANT]
    table = table[table[f"{data.score_name} margin"].notna()]
    margins: dict[str, Any] = {data.score_name: [margin_of(data, *key) for key in table.index]}
    for name in data.options.score_names[1:]:
        margins[name] = table[columns_of(f"{name} margin")].to_numpy()
    cells = {name: _cells(numbers, digits_of(name), "+") for name, numbers in margins.items()}
    return pd.DataFrame(cells, index=table.index)


def _pairs(data: ReportData) -> Table:
    """Return what each predictor is above each other one, at one error rate for all pairs."""
    pairs, names, digits = data.pairs, ranked(data.cards)[:_MOST_PAIRED], digits_of(data.score_name)
    if pairs is None or len(names) < 2 or not len(pairs):
        return Table("", pd.DataFrame())
    cells = pd.DataFrame("", index=pd.Index(names, name="predictor"), columns=names)
    for name, other, value, low, high in pairs.itertuples(index=False):
        mark = "*" * bool(low > 0 or high < 0)
        if name in cells.index and other in cells.index:
            cells.loc[name, other] = fixed(value, digits, "+") + mark
            cells.loc[other, name] = fixed(-value, digits, "+") + mark
    about = dict.fromkeys(names, "What the predictor of the row is above this one.")
    return Table("Every pair", cells, about)


def _gains(data: ReportData) -> Table:
    """Return what recalibration changes in each metric of each predictor."""
    table, rows = data.calibration_gain, {}
    for name in ranked(data.cards):
        for metric in data.options.metrics:
            if (name, metric) not in table.index:
                continue
            row, digits = table.loc[(name, metric)], digits_of(metric)
            rows[name, metric] = {
                "as given": f"{row['as_given']:.{digits}f}",
                "recalibrated": f"{row['recalibrated']:.{digits}f}",
                "gain": with_interval(gain_of(data, name, metric), digits, "+"),
            }
    about = {form: explain(f"metric {form}") for form in FORMS.values()}
    return Table("What recalibration changes", _frame(rows, ["predictor", "metric"]), about)


# -------------------------------------------------------------------- groups and steps


def _groups(data: ReportData) -> Iterator[Table]:
    """Return the cards within each kind of groups."""
    about = {"runs": explain("n_runs"), "success": explain("base rate"),
             "what to do": "What the card of the group says.",
             **dict.fromkeys(FORMS.values(), explain("margin"))}  # fmt: skip
    for kind in [] if data.by is None else data.by.index.unique("by"):
        cells, more = group_cells(data, kind)
        rest = f" {more} smaller groups are not shown." if more else ""
        said = f"By {kind}, {of_groups(data, kind)} {explain('Groups of runs')}{rest}"
        frame = cells.rename_axis([kind, "predictor"])
        yield Table(f"By {kind}", frame, about, said=said)


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
        ends = cards[columns_of(form)].to_numpy(dtype=float)
        columns[words] = _cells(ends, digits_of(data.score_name), "+")
    return pd.DataFrame(columns, index=cards.index), n_left_out


def _stopping(data: ReportData) -> Table:
    cells = stopping_cells(data)
    if not cells.empty:
        cells = cells.rename_axis(["predictor", "level"])
    return Table("Stopping failing runs early", cells)


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


def _steps(data: ReportData) -> Table:
    cells = step_cells(data)
    about = {name: explain("AUROC") for name in cells} | {"runs": explain("n_runs")}
    return Table("AUROC at a step", cells, about)


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


def _equal_length(data: ReportData) -> Table:
    """Return AUROC among runs of equal length, and what it is above that of length."""
    table = data.equal_length.xs(AS_GIVEN, level="form").dropna(subset="AUROC")
    over = "over what is left of length"
    cells = {
        "AUROC": [f"{value:.3f}" for value in table["AUROC"]],
        over: _cells(table[OVER_LENGTH].to_numpy(), sign="+"),
    }
    about = {"AUROC": explain("AUROC"), over: explain("over_length")}
    return Table("AUROC among runs of equal length", pd.DataFrame(cells, table.index), about)


# -------------------------------------------------------------------- the data


def _lengths(data: ReportData) -> Table:
    """Return the success rate of observed runs by their number of steps."""
    key = BASE_RATE, CONSTANT
    table = success_by_length(data.traces[key].lengths, data.outcomes[key], _MOST_LENGTHS)
    rows = {
        span(row["low"], row["high"]): {
            "runs": f"{row['n_runs']:,.0f}", "success": _percent(row["success_rate"])
        }
        for row in table.astype({"low": int, "high": int}).to_dict("records")
    }  # fmt: skip
    about = {"runs": explain("n_runs"), "success": explain("success")}
    return Table("Success by number of steps", _frame(rows, ["steps"]), about)


def _stops(data: ReportData) -> Table:
    """Count the stop reasons, where the runs have some."""
    key = BASE_RATE, CONSTANT
    meta, y, rows = data.traces[key].meta, data.outcomes[key], {}
    if "stop_reason" in meta:
        reasons = meta["stop_reason"].astype(object).where(meta["stop_reason"].notna(), "(none)")
        for reason, n in Counter(reasons).most_common(_MOST_REASONS):
            own = y[(reasons == reason).to_numpy()]
            seen = own[own != CENSORED]
            rows[str(reason)] = {
                "runs": f"{n:,}", "with an outcome": f"{len(seen):,}",
                "success": _percent(seen.mean() if len(seen) else np.nan),
            }  # fmt: skip
    about = {"runs": explain("runs ended")}
    return Table("Why runs ended", _frame(rows, ["stop reason"]), about)


def _left_out(data: ReportData) -> Table:
    rows = {
        (predictor, reason): {"runs": f"{n:,}"}
        for predictor, reason, n in data.excluded.itertuples(index=False)
    }
    about = {"runs": explain("left out")}
    return Table("Runs left out", _frame(rows, ["predictor", "reason"]), about)


def _values(data: ReportData) -> Table:
    """Return range and ties of each predictor as given."""
    rows = {}
    for name in ranked(data.cards):
        cells = data.traces[name, AS_GIVEN].cells
        is_probability = not pd.isna(data.table.loc[(name, AS_GIVEN), data.score_name])
        sure = float(((cells <= 0) | (cells >= 1)).mean())
        rows[name] = {
            "lowest": f"{cells.min():.3f}", "median": f"{np.median(cells):.3f}",
            "highest": f"{cells.max():.3f}", "values": f"{len(cells):,}",
            "distinct values": f"{len(group_ties(cells)[0]):,}",
            "exactly 0 or 1": f"{sure:.1%}" if is_probability else "",
            "read as": "probability" if is_probability else "signal",
        }  # fmt: skip
    about = dict.fromkeys(("lowest", "median", "highest"), explain("values"))
    about["read as"] = "A probability is scored as it is; a signal needs recalibration first."
    return Table("The values as given", _frame(rows, ["predictor"]), about)


def _sensitivity(data: ReportData) -> Table:
    """Return margins on the observed runs alone, and with other clips, where these change any."""
    table, digits = data.sensitivity, digits_of(data.score_name)
    heads = {"margin": "all runs", "observed_only": "observed alone", "clipped": "clipped"}
    heads |= {name: name.replace("_", " ") for name in table if name.startswith("clip_")}
    is_clipped = "clipped" in table and bool(table["clipped"].any())
    shown = [name for name in heads if name in table and (is_clipped or "clip" not in name)]
    if shown == ["margin"]:
        shown = []
    rows = {
        (key[0], FORMS[key[1]]): {
            heads[name]: f"{value:.1%}" if name == "clipped" else fixed(value, digits, "+")
            for name, value in table.loc[key, shown].items()
            if not pd.isna(value)
        }
        for key in _in_order(data, table.dropna(subset="margin"))
        if shown
    }
    about = dict.fromkeys(heads.values(), explain("margin"))
    frame = _frame(rows, ["predictor", "form"]).fillna("")
    return Table("Margins under other choices", frame, about)


# -------------------------------------------------------------------- cells


def _cells(numbers: Iterable[Sequence[float]], digits: int = 3, sign: str = "") -> list[str]:
    """Write values with their intervals; nothing where there is no value."""
    return ["" if pd.isna(three[0]) else with_interval(three, digits, sign) for three in numbers]


def _rates(table: pd.DataFrame, name: str) -> list[str]:
    """Write rates with their intervals, as far as there are runs and splits to have them of."""
    rates = table[columns_of(name)].to_numpy()
    cells = zip(rates, _cells(rates), strict=True)
    return [f"{three[0]:.3f}" if cell and pd.isna(three[1]) else cell for three, cell in cells]


def _shares(column: pd.Series) -> list[str]:
    return ["" if pd.isna(share) else f"{share:.1%}" for share in column]


def _percent(rate: float) -> str:
    return "" if pd.isna(rate) else f"{rate:.0%}"
