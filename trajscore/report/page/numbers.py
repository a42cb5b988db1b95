"""Numbers and method: every number, what may be wrong with the data, and how it was made."""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from trajscore.core.equal_length import span, success_by_length
from trajscore.core.outcomes import CENSORED
from trajscore.core.score_families import digits_of
from trajscore.core.ties import group_ties
from trajscore.report._cards import gain_of
from trajscore.report._contradictions import contradictions
from trajscore.report._data import (
    AS_GIVEN,
    BASE_RATE,
    CONSTANT,
    FORMS,
    GAIN,
    MARGIN,
    OVER_ALIVE,
    OVER_ALIVE_END,
    REFERENCES,
    ReportData,
)
from trajscore.report._disclosures import disclosures, sentence
from trajscore.report._equal_length import OVER_LENGTH
from trajscore.report._glossary import GLOSSARY, arrow, explain
from trajscore.report._numbers import fixed, interval, short_number, with_interval
from trajscore.report._verdict import of_groups, side_of_zero, verdicts
from trajscore.report.page.tables import Cell, Head, Table, table_of
from trajscore.report.page.view import Drawer, View
from trajscore.report.render.as_json import to_json
from trajscore.report.render.cells import group_cells, step_cells, stopping_cells

_OVER = {
    f"AUROC {OVER_ALIVE[0]}": "AUROC over counting",
    f"AUROC {OVER_ALIVE_END[0]}": "AUROC over counting, end known",
}
_SHORT = {"n_runs": "runs", "n_censored": "no outcome", **_OVER}
_MOST_LENGTHS = 10
_MOST_REASONS = 12
_MOST_PAIRED = 30
LITERATURE = (
    "Raghu et al. (2026), Proper Scoring Rules for Agentic Uncertainty Quantification: the scores.",
    "Estienne et al. (2026), arXiv:2605.20490: ECUAS.",
    "Sadhuka et al. (2025), E-valuator, arXiv:2512.03109: stopping early.",
    "Tayebati et al. (2026), TRACER: the risk of a dialogue.",
)


def numbers(view: View) -> Drawer:
    """Return all tables, and what the report discloses."""
    data = view.data
    parts = {
        "main": _main(view),
        "tables": [table for table in _tables(view) if table is not None],
        "files": {
            "report.json": _link(to_json(data), "application/json"),
            "report.csv": _link(
                data.intervals.reset_index().round(6).to_csv(index=False), "text/csv"
            ),
        },
        "reasons": view.screen.check.reasons,
        "verdicts": [*verdicts(data), *(f"{sentence_}." for sentence_ in contradictions(data))],
        "notes": [sentence(note) for note in data.remarks],
        "disclosures": disclosures(data),
        "glossary": GLOSSARY,
        "references": LITERATURE,
        "command": data.source.command,
        "guesses": data.source.guesses.splitlines(),
        "recipe": _recipe(view),
    }
    about = "every number, the data, how it was made, what the words mean"
    return Drawer("numbers", "Numbers and method", about, parts)


def _recipe(view: View) -> str:
    """Return the call that gives new runs the forecasts that the thresholds are for."""
    calibrators, (name, form) = view.data.facts.calibrators or {}, view.shown
    if form == AS_GIVEN or name not in calibrators:
        return ""
    return f"{calibrators[name]}.fit(X[{name!r}], y).transform(new[{name!r}])"


# -------------------------------------------------------------------- the main table


def _main(view: View) -> Table:
    """Return every metric of every row, best values marked."""
    data = view.data
    columns = ["n_runs", "n_censored", *data.options.metrics, *_OVER]
    best = {name: _best(data, name, arrow(name, data.options)) for name in columns}
    names = (*view.names, *REFERENCES)
    rows = []
    for key in (key for name in names for key in data.table.index if key[0] == name):
        name, form = key
        row = data.table.loc[key]
        cells = [
            Cell(_text(row[column], column), row[column], key in best[column]) for column in columns
        ]
        form_text = "" if name in REFERENCES else FORMS.get(form, "")
        rows.append([Cell(name), Cell(form_text), *cells])
    heads = [Head("predictor", "", False), Head("form", "", False)]
    for column in columns:
        text = f"{_SHORT.get(column, column)} {arrow(column, data.options)}".strip()
        heads.append(Head(text, explain(column)))
    note = (
        "Arrows say which way is better. Among the rows that beat the base rate, the best of each "
        "column is bold."
    )
    return Table("All numbers", heads, rows, note, 2, "all-numbers")


# -------------------------------------------------------------------- the other tables


def _tables(view: View) -> Iterator[Table | None]:
    """Return what else is known, a table a question."""
    data = view.data
    yield _pairs(view)
    yield _gains(view)
    for kind in [] if data.by is None else data.by.index.unique("by"):
        cells, more = group_cells(data, kind)
        rest = f" {more} smaller groups are not shown." if more else ""
        about = {"runs": explain("n_runs"), "success": explain("base rate"),
                 "what to do": "What the card of the group says.",
                 "as given": explain("margin"), "recalibrated": explain("margin")}  # fmt: skip
        note = (
            f"By {kind}, {of_groups(data, kind)} Where groups differ, margins are shrunken towards "
            f"what groups have in common, and intervals hold for all groups at once; where they do "
            f"not, the card and the shares are those of all runs.{rest}"
        )
        yield table_of(f"By {kind}", cells, [kind, "predictor"], about=about, note=note)
    note = "On runs that the rule was not fitted on; alive rate is what counting steps alone does."
    yield table_of("Stopping failing runs early", stopping_cells(data), ["predictor", "level"],
                   note=note)  # fmt: skip
    steps = step_cells(data)
    about = {name: explain("AUROC") for name in steps} | {"runs": explain("n_runs")}
    note = "Of the runs that are at least that long, which counting steps cannot rank; as given."
    yield table_of("AUROC at a step", steps, ["step"], about=about, note=note)
    yield _equal_length(view)
    yield _lengths(view)
    yield _stops(view)
    yield _left_out(view)
    yield _columns(view)
    yield _sensitivity(view)


def _pairs(view: View) -> Table | None:
    """Return what each predictor is above each other one, at one error rate for all pairs."""
    pairs, names = view.data.pairs, view.names[:_MOST_PAIRED]
    if pairs is None or len(names) < 2 or not len(pairs):
        return None
    cells = pd.DataFrame("", index=names, columns=names)
    for name, other, *three in pairs.itertuples(index=False):
        for row, column, sign in ((name, other, 1), (other, name, -1)):
            if row in cells.index and column in cells.index:
                value, *ends = (sign * end for end in three)
                mark = "*" * (
                    side_of_zero(*ends) != 0 if sign > 0 else side_of_zero(*ends[::-1]) != 0
                )
                cells.loc[row, column] = fixed(value, view.digits, "+") + mark
    apart = sum(bool(side_of_zero(low, high)) for low, high in pairs[["low", "high"]].to_numpy())
    note = (
        f"What the row is above the column, each in the form its card speaks for. A star marks the "
        f"{apart} of {len(pairs)} pairs that differ significantly, at one error rate for all pairs."
    )
    about = dict.fromkeys(names, "What the predictor of the row is above this one.")
    return table_of("Every pair", cells, ["predictor"], about=about, note=note)


def _gains(view: View) -> Table | None:
    """Return what recalibration changes in each metric of each predictor."""
    data, rows = view.data, {}
    for (name, metric), row in data.calibration_gain.iterrows():
        digits, (gain, low, high) = digits_of(metric), gain_of(data, name, metric)
        rows[name, metric] = {
            "as given": f"{row['as_given']:.{digits}f}",
            "recalibrated": f"{row['recalibrated']:.{digits}f}",
            GAIN[0]: fixed(gain, digits, "+"),
            "interval": interval(low, high, digits, "+"),
        }
    about = {form: explain(f"metric {form}") for form in FORMS.values()}
    note = "A gain above 0 is better, whichever way the metric points; intervals are paired by run."
    frame = pd.DataFrame.from_dict(rows, orient="index")
    return table_of("What recalibration changes", frame, ["predictor", "metric"], about=about,
                    note=note)  # fmt: skip


def _equal_length(view: View) -> Table | None:
    """Return AUROC among runs of equal length, and what it is above that of length."""
    table = view.data.equal_length.xs(AS_GIVEN, level="form").dropna(subset="AUROC")
    cells = {
        "AUROC": [f"{value:.3f}" for value in table["AUROC"]],
        "over what is left of length": [
            with_interval(three, sign="+") for three in table[list(OVER_LENGTH)].to_numpy()
        ],
    }
    about = {"AUROC": explain("AUROC"), "over what is left of length": explain("over_length")}
    note = (
        "As given, and what it is above ranking each pair by the small difference in length that "
        "is left (beyond 10 steps, a tenth at most)."
    )
    frame = pd.DataFrame(cells, index=table.index)
    return table_of("AUROC among runs of equal length", frame, ["predictor"], about=about,
                    note=note)  # fmt: skip


def _lengths(view: View) -> Table | None:
    """Return the success rate of observed runs by their number of steps."""
    y = view.data.outcomes[BASE_RATE, CONSTANT]
    table = success_by_length(view.constant.lengths, y, _MOST_LENGTHS)
    frame = pd.DataFrame(
        {"runs": [f"{n:,}" for n in table["n_runs"]], "success": _rates(table["success_rate"])},
        index=[span(*ends) for ends in table[["low", "high"]].to_numpy()],
    )
    about = {"runs": explain("n_runs"), "success": explain("success")}
    return table_of("Success by number of steps", frame, ["steps"], about=about)


def _stops(view: View) -> Table | None:
    """Count the stop reasons, where the runs have some."""
    meta = view.constant.meta
    if "stop_reason" not in meta:
        return None
    reasons = meta["stop_reason"].astype(object).where(meta["stop_reason"].notna(), "(none)")
    y, rows = view.data.outcomes[BASE_RATE, CONSTANT], {}
    for reason, n in Counter(reasons).most_common(_MOST_REASONS):
        own = y[(reasons == reason).to_numpy()]
        seen = own[own != CENSORED]
        rate = float(seen.mean()) if len(seen) else np.nan
        rows[str(reason)] = {
            "runs": f"{n:,}", "with an outcome": f"{len(seen):,}", "success": _rates([rate])[0]
        }  # fmt: skip
    about = {"runs": explain("runs ended")}
    frame = pd.DataFrame.from_dict(rows, orient="index")
    return table_of("Why runs ended", frame, ["stop reason"], about=about)


def _left_out(view: View) -> Table | None:
    table = view.data.excluded
    keys = pd.MultiIndex.from_frame(table[["predictor", "reason"]])
    frame = pd.DataFrame({"runs": [f"{n:,}" for n in table["n_runs"]]}, index=keys)
    about = {"runs": explain("left out")}
    return table_of("Runs left out", frame, ["predictor", "reason"], about=about)


def _columns(view: View) -> Table | None:
    """Return range and ties of each predictor as given."""
    rows = {}
    for name in view.names:
        cells = view.data.traces[name, AS_GIVEN].cells
        is_probability = AS_GIVEN in view.forms(name)
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
    frame = pd.DataFrame.from_dict(rows, orient="index")
    return table_of("The values as given", frame, ["predictor"], about=about)


def _sensitivity(view: View) -> Table | None:
    """Return margins on the observed runs alone, where some were not observed."""
    table, rows = view.data.sensitivity, {}
    if "observed_only" not in table:
        return None
    for name in view.names:
        for form in view.forms(name):
            ours, theirs = table.loc[(name, form), ["margin", "observed_only"]]
            rows[name, FORMS[form]] = {
                "all runs": fixed(ours, view.digits, "+"),
                "observed alone": "" if pd.isna(theirs) else fixed(theirs, view.digits, "+"),
            }
    about = dict.fromkeys(("all runs", "observed alone"), explain("margin"))
    frame = pd.DataFrame.from_dict(rows, orient="index")
    note = "Everything is fitted anew on the runs with an outcome alone."
    return table_of("Margins without the runs that have no outcome", frame, ["predictor", "form"],
                    about=about, note=note)  # fmt: skip


def _rates(rates: Any) -> list[str]:
    return ["" if pd.isna(rate) else f"{rate:.0%}" for rate in rates]


def _text(value: Any, name: str) -> str:
    if pd.isna(value):
        return ""
    return f"{int(value):,}" if name.startswith("n_") else short_number(value, digits_of(name))


def _best(data: ReportData, name: str, way: str) -> set[Any]:
    """Return the rows with the best value, among those that beat the base rate."""
    column = data.table[name].dropna().drop(list(REFERENCES), level="predictor", errors="ignore")
    known = column[[_beats(data, key, name, way) for key in column.index]] if way else column[:0]
    if known.empty:
        return set()
    best = known.min() if way == "\u2193" else known.max()
    return set(known.index[known == best])


def _beats(data: ReportData, key: tuple[str, str], name: str, way: str) -> bool:
    if name in _OVER:
        return bool(data.table.loc[key, f"{name}_low"] > 0)
    low, high = data.intervals.loc[(*key, name), list(MARGIN[1:])]
    by_card = data.cards.loc[key[0], f"{key[1]}_low"]
    return bool(by_card > 0 or (high < 0 if way == "\u2193" else low > 0))


def _link(text: str, kind: str) -> str:
    """Return a file as a link, which needs no script and no server."""
    return f"data:{kind};base64,{base64.b64encode(text.encode()).decode()}"
