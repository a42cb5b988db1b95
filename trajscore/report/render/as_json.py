"""A report as JSON, of a schema with a version: see docs/user_guide/evaluate.rst."""

import json
from collections.abc import Hashable
from dataclasses import asdict
from typing import Any

import pandas as pd

from trajscore.core.storage import plain
from trajscore.core.values import ByName
from trajscore.evaluation.columns import DESCRIPTIONS
from trajscore.evaluation.evaluation import Evaluation
from trajscore.evaluation.options import LEVELS, REFERENCES, VALUE
from trajscore.report._disclosures import disclosures, excluded_table
from trajscore.report._first_screen import FirstScreen, first_screen
from trajscore.report.glossary import without_marks
from trajscore.report.verdicts import verdicts

FORMAT = "trajscore report"
VERSION = 2


def to_json(data: Evaluation) -> str:
    """Return all numbers and sentences of a report, without traces."""
    return json.dumps(plain(document(data)), indent=1, ensure_ascii=False, allow_nan=False)


def document(data: Evaluation) -> ByName:
    """Return what the JSON of a report holds."""
    facts = data.facts
    options = data.options
    rows = _rows(data)
    screen = first_screen(data)
    source = asdict(data.source)
    del source["writes_file"]  # which only says what else was written
    return {
        "format": FORMAT,
        "version": VERSION,
        "source": source,
        "answer": _answer(screen),
        "runs": {
            "n_runs": facts.n_runs,
            "n_observed": facts.n_observed,
            "n_counted": facts.n_counted,
            "success_rate": facts.success_rate,
            "rate_over_forecasts": facts.base_rate,
            "censored": facts.censored,
            "clustered": data.runs.groups is not None,
            "left_out": _records(excluded_table(data)),
            "steps_not_scored": facts.n_unscored,
        },
        "options": {
            "scores": options.score_names,
            "leading": data.score_name,
            "weights": options.weights.name,
            "phi": options.settings.phi,
            "confidence_level": options.settings.confidence_level,
            "lower_is_better": options.lower_is_better,
            "knows_end": dict.fromkeys(data.predictors, facts.knows_end),
            "calibrators": facts.calibrators,
        },
        "cards": {each.predictor: each.card() for each in data.recommended},
        "observed_cards": (
            data.observed and {each.predictor: each.card() for each in data.observed}
        ),
        "purchase": data.purchase and data.purchase._asdict(),
        "signals": _records(data.signals),
        "locators": _records(data.first_errors and data.first_errors.table),
        "pairs": _records(data.pairs),
        "by": _records(data.by),
        "predictors": {name: rows[name] for name in data.predictors},
        "references": {name: rows[name] for name in REFERENCES},
        "stopping": _records(data.monitoring),
        "sensitivity": _records(data.sensitivity),
        "by_step": _records(data.by_step),
        "equal_length": _records(data.equal_length),
        "verdicts": verdicts(data),
        "notes": [note.text for note in screen.answer.notes],
        "disclosures": disclosures(data),
    }


def _answer(screen: FirstScreen) -> ByName:
    """Return the sentences of the first screen."""
    stated = screen.answer
    return {
        "predictor": stated.predictor or None,
        "action": stated.action,
        "headline": stated.headline,
        "statements": [
            {"question": each.question, "answer": each.shown, "text": each.text}
            for each in stated.statements
        ],
        "next": stated.next_step.text,
        "reason": stated.reason and stated.reason.line,
        "budget": stated.budget or None,
        "accept": without_marks(screen.accept_rule) or None,
        "stop": without_marks(screen.stop_rule) or None,
        "step_failed": without_marks(screen.step) or None,
        "read_first": without_marks(screen.read_first) or None,
        "data": {"level": stated.light, "reasons": [doubt.text for doubt in stated.doubts]},
    }


def _rows(data: Evaluation) -> dict[str, ByName]:
    """Return what describes each predictor and reference, and its metrics, in each of its forms.

    A metric has a value and differences from references, each with its interval.
    """
    rows: dict[str, ByName] = {}
    described = data.table[[column.name for column in DESCRIPTIONS]]
    for (name, form), of_form in described.to_dict("index").items():
        rows.setdefault(name, {"forms": {}})["forms"][form] = of_form | {"metrics": {}}
    methods = data.interval_methods.to_dict("index")
    for key, row in data.intervals.to_dict("index").items():
        of_metric: ByName = {}
        for columns in LEVELS:
            if not pd.isna(row[columns[0]]):
                ends = dict(zip(VALUE, (row[name] for name in columns), strict=True))
                ends["method"] = methods[key][columns[0]]
                of_metric |= ends if columns == VALUE else {columns[0]: ends}
        name, form, metric = key
        rows[name]["forms"][form]["metrics"][metric] = of_metric
    return rows


def _records(table: pd.DataFrame | None) -> list[dict[Hashable, Any]] | None:
    """Return the rows of a table with their names, if they have any; None without a table."""
    if table is None:
        return None
    return table.reset_index(drop=table.index.names == [None]).to_dict("records")
