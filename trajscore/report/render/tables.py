"""The tables of a report, as people read them: on the page, in a terminal, in Markdown."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from trajscore.calibration.fixed_step import AUROC
from trajscore.core.outcomes import CENSORED
from trajscore.core.score_families import digits_of
from trajscore.core.ties import group_ties
from trajscore.core.values import number_of
from trajscore.evaluation.columns import DESCRIPTIONS, Column
from trajscore.evaluation.combined import HISTORY, LOSS, NOW
from trajscore.evaluation.evaluation import CLIPS, Evaluation
from trajscore.evaluation.groups import shown_groups
from trajscore.evaluation.options import (
    AS_GIVEN,
    CONSTANT,
    FORMS,
    GAIN,
    OVER_ALIVE,
    OVER_ALIVE_END,
    OVER_LENGTH,
    REFERENCES,
    RowKey,
    columns_of,
)
from trajscore.evaluation.recommendation import GAINED, Interval
from trajscore.report._disclosures import excluded_table
from trajscore.report.glossary import (
    GLOSSARY,
    LOCATORS,
    explain,
    fixed,
    short_number,
    with_interval,
)
from trajscore.report.verdicts import of_first_errors, of_groups

_OVER = {
    f"AUROC {OVER_ALIVE[0]}": "AUROC over counting",
    f"AUROC {OVER_ALIVE_END[0]}": "AUROC over counting, end known",
}
# Metrics of the first screen of a terminal, which says this below its table.
_SENTENCES = {"AUROC": "AUROC: 0.5 is chance, 1 a perfect ranking."}
_MOST_REASONS = 12
_MOST_PAIRED = 30
MARGINS = "Margins over the base rate"
STEPS = "Which step failed"


@dataclass(frozen=True)
class Table:
    """A table of texts: its index names the rows, and `about` says what columns mean."""

    title: str
    frame: pd.DataFrame = field(default_factory=pd.DataFrame)
    about: Mapping[str, str] = field(default_factory=dict)
    sentence: str = ""  # of these very rows; enough without them, too

    @property
    def note(self) -> str:
        """What the table is of."""
        return self.sentence or GLOSSARY.get(self.title, "")

    @property
    def rows(self) -> list[tuple[tuple[Any, ...], list[str]]]:
        """The names of each row, and its cells."""
        keys = self.frame.index.to_frame().itertuples(index=False, name=None)
        return list(zip(keys, self.frame.to_numpy().tolist(), strict=True))

    def meaning(self, column: str) -> str:
        """Say what a column means; "" where its name says it."""
        return self.about.get(column) or explain(column)


def tables_of(data: Evaluation) -> list[Table]:
    """Return every table that says something, the main one first."""
    tables = [
        _main(data), _margins(data), _signals(data), _pairs(data), _gains(data), *_groups(data),
        _stopping(data), of_locators(data), _steps(data), _equal_length(data), _stops(data),
        _left_out(data), _values(data), _sensitivity(data),
    ]  # fmt: skip
    return [table for table in tables if table.sentence or not table.frame.empty]


def _frame(rows: Mapping[Any, Mapping[str, str]], *names: str) -> pd.DataFrame:
    """Return a row of texts for each key, whose parts have these names."""
    frame = pd.DataFrame.from_dict(rows, orient="index").fillna("")
    return frame.rename_axis(index=names) if rows else frame


# -------------------------------------------------------------------- metrics


def main_columns(data: Evaluation) -> list[Column]:
    """Return the columns of the main table: what describes a row, and its metrics."""
    columns = list(DESCRIPTIONS)
    for name in (*data.options.metrics, *_OVER):
        better = "\u2193" if name in data.options.lower_is_better else "\u2191"
        sentence = _SENTENCES.get(name, "")
        columns.append(Column(name, _OVER.get(name, name), "", digits_of(name), better, sentence))
    return columns


def _main(data: Evaluation) -> Table:
    """Return what describes every row, and every metric of it."""
    heads = {f"{column.heading} {column.better}".strip(): column
             for column in main_columns(data)}  # fmt: skip
    rows = {}
    for name, form in _in_order(data, data.table):
        row = data.table.loc[(name, form)]
        label = name, "" if name in REFERENCES else FORMS[form]
        rows[label] = {
            head: short_number(row[each.name], each.digits) for head, each in heads.items()
        }
    return Table("All numbers", _frame(rows, "predictor", "form"))


def _in_order(data: Evaluation, table: pd.DataFrame) -> list[RowKey]:
    """Return the keys of a table, the best predictor first, the references last."""
    names = [*data.recommendations, *REFERENCES]
    return sorted(table.index, key=lambda key: names.index(key[0]))


def _margins(data: Evaluation) -> Table:
    """Return each score's margin over the base rate, of the rows that are probabilities."""
    columns = {name: columns_of(f"{name} margin") for name in data.options.score_names}
    rows = {}
    for name, form in _in_order(data, data.table):
        row = data.table.loc[(name, form)]
        margins = {score: Interval(*row[ends]) for score, ends in columns.items()}
        if form == CONSTANT or not margins[data.score_name].is_known:
            continue
        margins[data.score_name] = _of_card(data, name, form, margins[data.score_name])
        rows[name, FORMS[form]] = {
            score: with_interval(margin, digits_of(score), "+") for score, margin in margins.items()
        }
    about = dict.fromkeys(columns, explain("margin"))
    return Table(MARGINS, _frame(rows, "predictor", "form"), about)


def _of_card(data: Evaluation, name: str, estimate: str, alone: Interval) -> Interval:
    """Return the interval of a margin that its card has, for all cards at once, if there is one."""
    if name not in data.recommendations:
        return alone
    shared = data.recommendations[name].interval(estimate)
    is_same = math.isclose(shared.estimate, alone.estimate, rel_tol=1e-6, abs_tol=1e-9)
    return shared if is_same else alone


def _pairs(data: Evaluation) -> Table:
    """Return what each predictor is above each other one, at one error rate for all pairs."""
    pairs = [] if data.pairs is None else list(data.pairs.itertuples(index=False))
    names = list(data.recommendations)[:_MOST_PAIRED] if pairs else []
    digits = data.digits
    rows = {name: dict.fromkeys(names, "") for name in names}
    for name, other, value, low, high in pairs:
        mark = "*" * bool(low > 0 or high < 0)
        if name in rows and other in rows:
            rows[name][other] = fixed(value, digits, "+") + mark
            rows[other][name] = fixed(-value, digits, "+") + mark
    about = dict.fromkeys(names, "What the predictor of the row is above this one.")
    return Table("Every pair", _frame(rows, "predictor"), about)


def _signals(data: Evaluation) -> Table:
    """Return what each signal is worth by its value, with its history, and to the others."""
    title = "What each signal adds"
    if (table := data.signals) is None:
        return Table(title)
    heads = {NOW: "value", HISTORY: "with history", LOSS: "lost without"}
    cells = {
        head: _cells(table, columns_of(name), data.digits, "+") for name, head in heads.items()
    }
    cells["fewest"] = [f"{n}" if n else "" for n in table["order"]]
    cells["reached"] = [fixed(margin, data.digits, "+") for margin in table["reached"]]
    return Table(title, pd.DataFrame(cells, table.index))


def _gains(data: Evaluation) -> Table:
    """Return what recalibration changes in each metric of each predictor."""
    rows = {}
    table = data.calibration_gain
    keys = product(data.recommendations, data.options.metrics)
    for name, metric in (key for key in keys if key in table.index):
        row = table.loc[(name, metric)]
        digits = digits_of(metric)
        gain = Interval(*row[GAIN])
        if metric == data.score_name:
            gain = _of_card(data, name, GAINED, gain)
        rows[name, metric] = {
            "as given": f"{row['as_given']:.{digits}f}",
            "recalibrated": f"{row['recalibrated']:.{digits}f}",
            "gain": with_interval(gain, digits, "+"),
        }
    about = {form: explain(f"metric {form}") for form in FORMS.values()}
    return Table("What recalibration changes", _frame(rows, "predictor", "metric"), about)


# -------------------------------------------------------------------- groups and steps


def _groups(data: Evaluation) -> Iterator[Table]:
    """Return the cards within each kind of groups."""
    about = dict.fromkeys(FORMS.values(), explain("margin"))
    for kind, of_kind in data.groups_by_kind.items():
        groups, more = shown_groups(of_kind)
        rows = {}
        for each in groups:
            best = each.best
            cells = {
                "runs": f"{best.n_runs:,}",
                "success": f"{best.success_rate:.0%}",
                "what to do": str(best.action),
            }
            for form, words in FORMS.items():
                cells[words] = with_interval(best.interval(form), data.digits, "+")
            rows[each.group, best.predictor] = cells
        rest = f" Not shown: {number_of(more, 'smaller group')}." if more else ""
        sentence = f"By {kind}, {of_groups(data, kind)} {explain('Groups of runs')}{rest}"
        yield Table(f"By {kind}", _frame(rows, kind, "predictor"), about, sentence=sentence)


def _stopping(data: Evaluation) -> Table:
    """Return how often runs would be flagged early and what that saves, if asked for."""
    title = "Stopping failing runs early"
    table = data.monitoring
    options = data.facts.monitoring
    if table is None or table.empty or options is None:
        return Table(title)
    runs = zip(table["n_success"], table["n_failure"], strict=True)
    cells = {
        "good, bad runs": [f"{good:.0f}, {bad:.0f}" for good, bad in runs],
        "false alarms": _rates(table, "false_alarm_rate"),
        "power": _rates(table, "power"),
        "before the end": _rates(table, "power_before_end"),
        "stops at step": _written(table["mean_stopping_step"], ".1f"),
        "steps saved": _written(table["steps_saved"], ".1%"),
    }
    if "cost_saved" in table:
        cells[f"{options.cost_name} saved"] = _written(table["cost_saved"], ".1%")
    frame = pd.DataFrame(cells, table.index)
    return Table(title, frame.rename_axis(index={"alpha": "level"}))


def of_locators(data: Evaluation) -> Table:
    """Return what each locator of the first wrong step is worth over position, if that is known."""
    if data.first_errors is None:
        return Table(STEPS)
    table = data.first_errors.table
    cells = {
        "nats over position": _cells(table, ["difference", "low", "high"], 2, "+"),
        "steps read": _written(table["steps_read"], ".1f"),
        "steps in a window": _written(table["window"], ".1f"),
    }
    return Table(STEPS, pd.DataFrame(cells, table.index), LOCATORS, of_first_errors(data))


def _steps(data: Evaluation) -> Table:
    """Return AUROC of each predictor as given at each step, with how many runs get there."""
    rows: dict[int, dict[str, str]] = {}
    for (name, form, step), row in data.by_step.iterrows():
        if form == data.first_form(name):
            runs = rows.setdefault(step, {})
            runs |= {"runs": f"{row['n_runs']:,.0f}", name: with_interval(row[list(AUROC)])}
    about = dict.fromkeys(data.predictors, explain("AUROC"))
    return Table("AUROC at a step", _frame(dict(sorted(rows.items())), "step"), about)


def _equal_length(data: Evaluation) -> Table:
    """Return AUROC among runs of equal length, and what it is above that of length."""
    is_first = [form == data.first_form(name) for name, form in data.equal_length.index]
    table = data.equal_length[is_first].droplevel("form").dropna(subset="AUROC")
    cells = {
        "AUROC": _written(table["AUROC"], ".3f"),
        "over what is left of length": _cells(table, OVER_LENGTH, sign="+"),
    }
    return Table("AUROC among runs of equal length", pd.DataFrame(cells, table.index))


# -------------------------------------------------------------------- the data


def _stops(data: Evaluation) -> Table:
    """Count the stop reasons, where the runs have some."""
    rows = {}
    if "stop_reason" in data.ends:
        reasons = data.ends["stop_reason"].astype(object).fillna("(none)")
        for reason, n in Counter(reasons).most_common(_MOST_REASONS):
            outcomes = data.ends.loc[reasons == reason, "y"].to_numpy()
            seen = outcomes[outcomes != CENSORED]
            rows[str(reason)] = {
                "runs": f"{n:,}",
                "with an outcome": f"{len(seen):,}",
                "success": f"{seen.mean():.0%}" if len(seen) else "",
            }
    return Table("Why runs ended", _frame(rows, "stop reason"))


def _left_out(data: Evaluation) -> Table:
    table = excluded_table(data).set_index(["predictor", "reason"])
    cells = {"runs": _written(table["n_runs"], ",")}
    return Table("Runs left out", pd.DataFrame(cells, table.index))


def _values(data: Evaluation) -> Table:
    """Return range and ties of each predictor as given."""
    rows = {}
    for name in (best.predictor for best in data.singles):
        cells = data.traces[name, AS_GIVEN].cells
        is_probability = AS_GIVEN in data.forms_of(name)
        sure = float(((cells <= 0) | (cells >= 1)).mean())
        rows[name] = {
            "lowest": f"{cells.min():.3f}", "median": f"{np.median(cells):.3f}",
            "highest": f"{cells.max():.3f}", "values": f"{len(cells):,}",
            "distinct values": f"{len(group_ties(cells)[0]):,}",
            "exactly 0 or 1": f"{sure:.1%}" if is_probability else "",
            "read as": "probability" if is_probability else "signal",
        }  # fmt: skip
    return Table("The values as given", _frame(rows, "predictor"))


def _sensitivity(data: Evaluation) -> Table:
    """Return margins on the observed runs alone, and with other clips, where these change any."""
    table = data.sensitivity.dropna(subset="margin")
    table = table.loc[_in_order(data, table)].rename(index=FORMS, level="form")
    heads = {"margin": "all runs", "observed_only": "observed alone"}
    if "clipped" in table and table["clipped"].any():
        heads |= {"clipped": "clipped", **{name: name.replace("_", " ") for name in CLIPS}}
    signed = f"+z.{data.digits}f"
    cells = {
        head: _written(table[name], ".1%" if name == "clipped" else signed)
        for name, head in heads.items()
        if name in table
    }
    frame = pd.DataFrame(cells, table.index)
    return Table("Margins under other choices", frame if len(cells) > 1 else frame[:0])


# -------------------------------------------------------------------- cells


def _cells(table: pd.DataFrame, names: list[str], digits: int = 3, sign: str = "") -> list[str]:
    """Write values with their intervals, of three columns; nothing where there is no value."""
    return [with_interval(three, digits, sign) for three in table[names].to_numpy(dtype=float)]


def _rates(table: pd.DataFrame, name: str) -> list[str]:
    """Write rates with their intervals, as far as there are runs and splits to have them of."""
    return [
        fixed(three[0], 3) if math.isnan(three[1]) else with_interval(three)
        for three in table[columns_of(name)].to_numpy(dtype=float)
    ]


def _written(column: pd.Series, style: str) -> list[str]:
    return ["" if pd.isna(value) else f"{value:{style}}" for value in column]
