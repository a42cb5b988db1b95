"""A report as JSON, of a schema with a version: see docs/user_guide/evaluate.rst."""

import json
from collections.abc import Hashable
from dataclasses import asdict
from typing import Any

import pandas as pd

from trajscore.core.storage import plain
from trajscore.core.type_aliases import ByName
from trajscore.evaluation.evaluation import Evaluation
from trajscore.evaluation.options import LEVELS, REFERENCES, VALUE, RowKey
from trajscore.report._disclosures import disclosures, excluded_table
from trajscore.report._first_screen import FirstScreen, first_screen, without_marks
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
    metrics = _metrics(data)
    screen = first_screen(data)
    return {
        "format": FORMAT,
        "version": VERSION,
        "source": asdict(data.source),
        "answer": _answer(screen),
        "runs": {
            "n_runs": facts.n_runs,
            "n_observed": facts.n_observed,
            "n_counted": facts.n_counted,
            "success_rate": facts.success_rate,
            "rate_over_forecasts": facts.rate,
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
        "cards": data.cards.to_dict("index"),
        "observed_cards": (
            None if data.observed_cards is None else data.observed_cards.to_dict("index")
        ),
        "purchase": data.purchase and data.purchase._asdict(),
        "signals": _records(data.signals),
        "locators": _records(data.first_errors and data.first_errors.table),
        "pairs": _records(data.pairs),
        "by": _records(data.by),
        "predictors": {name: _forms(data, metrics, name) for name in data.predictors},
        "references": {name: _forms(data, metrics, name) for name in REFERENCES},
        "stopping": _records(data.monitoring),
        "sensitivity": _records(data.sensitivity),
        "by_step": _records(data.by_step),
        "equal_length": _records(data.equal_length),
        "verdicts": verdicts(data),
        "notes": screen.answer.notes,
        "disclosures": disclosures(data),
    }


def _answer(screen: FirstScreen) -> ByName:
    """Return the sentences of the first screen."""
    stated = screen.answer
    texts = {name: without_marks(text) for name, text in screen.texts.items()}
    return {
        "predictor": stated.predictor or None,
        "action": stated.action,
        "headline": stated.headline,
        "statements": [
            {"question": each.question, "answer": each.shown, "text": each.text}
            for each in stated.statements
        ],
        "next": stated.advice,
        "reason": stated.reason and ": ".join(stated.reason).replace("**", ""),
        "budget": stated.budget or None,
        "accept": texts.get("accept"),
        "stop": texts.get("stop"),
        "step_failed": texts.get("step") or None,
        "read_first": texts.get("worst"),
        "data": {"level": stated.light, "reasons": stated.doubts},
    }


def _forms(data: Evaluation, metrics: dict[RowKey, Any], name: str) -> ByName:
    """Return counts and metrics of a predictor in each of its forms."""
    rows = data.table[["n_runs", "n_censored"]].xs(name, level="predictor")
    forms = {
        form: {**counts, "metrics": metrics.get((name, form), {})}
        for form, counts in rows.astype(int).to_dict("index").items()
    }
    return {"forms": forms}


def _metrics(data: Evaluation) -> dict[RowKey, ByName]:
    """Return each row's metrics: value, differences from references, each with its interval."""
    methods = data.interval_methods.to_dict("index")
    metrics: dict[RowKey, ByName] = {}
    for key, row in data.intervals.to_dict("index").items():
        of_metric: ByName = {}
        for columns in LEVELS:
            if not pd.isna(row[columns[0]]):
                ends = dict(zip(VALUE, (row[name] for name in columns), strict=True))
                ends["method"] = methods[key][columns[0]]
                of_metric |= ends if columns == VALUE else {columns[0]: ends}
        metrics.setdefault(key[:2], {})[key[2]] = of_metric
    return metrics


def _records(table: pd.DataFrame | None) -> list[dict[Hashable, Any]] | None:
    """Return the rows of a table with their names, if they have any; None without a table."""
    if table is None:
        return None
    return table.reset_index(drop=table.index.names == [None]).to_dict("records")
