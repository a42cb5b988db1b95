"""What section 5.2 of the paper asks every evaluation to say, and what else a reader should know.

References
----------
Raghu et al. (2026), Proper Scoring Rules for Agentic Uncertainty Quantification, Section 5.2.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from trajscore.core.ties import SUM_ROUNDING
from trajscore.inference.influence import FEW_CLUSTERS
from trajscore.inference.mean_intervals import ENOUGH, FEWEST_OF_DIFFERENCES
from trajscore.report._data import (
    BASE_RATE,
    BOOTSTRAP,
    CONSTANT,
    FORMS,
    INFLUENCE,
    Facts,
    Note,
    ReportData,
)
from trajscore.report._runs import number_of_runs
from trajscore.report._sentences import say

_SAME_RATE = 5e-4


# -------------------------------------------------------------------- of single predictors


def sentence(note: Note) -> str:
    """Write a note for people."""
    facts, n = note.facts, note.facts.get("n", 0)
    words = {
        "several": n > 1, "have": "has" if n == 1 else "have", "enough": FEW_CLUSTERS,
        "unequal": facts.get("effective", n) <= n - 0.5,
        "folds": "one of the two" if len(facts.get("maps", ())) == 1 else "both",
    }  # fmt: skip
    return f"{note.predictor}: {say(f'notes.{note.kind}', facts | words)}"


# -------------------------------------------------------------------- of the evaluation


def identification(data: ReportData) -> str:
    """Say what was judged, when, by which version and command."""
    source = data.source
    known = [source.name, source.created, f"trajscore {source.version}", source.command]
    return ", ".join(part for part in known if part)


def disclosures(data: ReportData) -> dict[str, str]:
    """Say what was computed, of which runs, and under which assumptions."""
    facts = data.facts
    outcomes = {"rate": facts.success_rate, "seen": facts.n_observed}
    texts = {
        "runs": say("outcomes", outcomes | {"population": population(facts)}),
        "score": "; ".join(_scores(data)),
        "weights": "; ".join(_weights(data)),
        "aggregation": say("aggregation", {"phi": data.options.phi}),
        "calibration": _calibration(facts.calibrators),
        "censoring": say("censoring", _of_runs(facts)),
        "intervals": _intervals(data),
        "equal length": say("equal_length", {}),
    }
    if (monitoring := facts.monitoring) is not None:
        texts["monitoring"] = say("monitoring", {
            "rule": monitoring.rule, "share": monitoring.known_share, "n": monitoring.n_splits,
            "cost": monitoring.cost_name if monitoring.cost is not None else "",
        })  # fmt: skip
    return texts


def population(facts: Facts) -> str:
    """Say which runs every number is of, and what unobserved ones stand for."""
    return say("population", _of_runs(facts))


def _of_runs(facts: Facts) -> dict[str, Any]:
    """Return what sentences ask of the runs."""
    return {
        "dropped": facts.censored == "drop", "all": not facts.n_censored,
        "soft": facts.censored == "q_z", "runs": number_of_runs(facts.n_runs),
        "hidden": f"{facts.n_censored:,}", "n": facts.n_runs,
    }  # fmt: skip


def _scores(data: ReportData) -> Iterator[str]:
    """Name the scores, and what the clip of the first that clips does."""
    options = data.options
    yield say("scores", {"names": ", ".join(options.score_names)})
    clipping = next((family for family in options.families if family.clip is not None), None)
    if clipping is not None:
        clip = f"{clipping.clip:g}".replace("e-0", "e-")
        yield say("clip", {"keyword": clipping.keyword, "unit": clipping.unit, "clip": clip})
        for (name, form), row in data.sensitivity[data.sensitivity["clipped"] > 0].iterrows():
            other = row.get("clip_1e-2", 0.0) if options.is_clipped else 0.0
            facts = {"share": row["clipped"], "name": name, "form": FORMS[form], "other": other}
            yield say("clipped", facts)
    yield from (f"{each.name} {each.emphasis}" for each in options.families if each.emphasis)


def _weights(data: ReportData) -> Iterator[str]:
    """Say what a forecast counts, and where the rates over forecasts and over runs differ."""
    weights, facts = data.options.weights, data.facts
    is_early, schedule = weights.schedule == "early", weights.schedule_name
    counts = "1/sqrt(t)" if is_early else f"its {schedule} weight"
    own = {"own": weights.is_own, "schedule": schedule, "name": weights.name, "counts": counts}
    yield say("weights", own)
    of_runs = float(data.labels[BASE_RATE, CONSTANT].mean())
    error = data.table.loc[(BASE_RATE, CONSTANT), "S-ECE"]
    if weights.is_own and facts.n_beyond:
        yield say("beyond_end", {"runs": number_of_runs(facts.n_beyond)})
    if weights.is_own and error > SUM_ROUNDING:
        yield say("cut_off", {"error": error})
    if not weights.is_own and facts.n_unscored:
        yield say("not_scored", {"n": facts.n_unscored})
    if not weights.is_own and abs(facts.rate - of_runs) > _SAME_RATE:
        yield say("rates", {"rate": facts.rate, "of_runs": of_runs})


def left_out(data: ReportData, most: int = 1000) -> str:
    """Say how many runs were left out, and for which reasons."""
    if data.excluded.empty:
        return "Left out: no run"
    rows = data.excluded.sort_values("n_runs", ascending=False, kind="stable")
    reasons = [
        f"{number_of_runs(n)} ({'' if predictor == 'all' else f'of {predictor}: '}{reason})"
        for predictor, reason, n in rows.itertuples(index=False)
    ]
    if len(reasons) > most:
        reasons[most:] = [number_of_runs(int(rows["n_runs"][most:].sum())) + " for other reasons"]
    return f"Left out: {'; '.join(reasons)}"


def _intervals(data: ReportData) -> str:
    """Say how intervals were made, and of which metrics by bootstrap where influences do not do."""
    draws, methods = data.facts.intervals, data.interval_methods
    facts: dict[str, Any] = {"n": draws.n_resamples, "enough": ENOUGH}
    facts["units"] = "clusters" if data.facts.is_clustered else "runs"
    leading = data.intervals.xs(data.score_name, level="metric")
    how = [say("resampled" if draws.intervals == BOOTSTRAP else "influence", facts)]
    # those of runs read in batches are of influences, too, where bootstrap is asked for
    method, topic = (INFLUENCE, "summed") if draws.intervals == BOOTSTRAP else (BOOTSTRAP, "drawn")
    others = methods.index[(methods == method).any(axis=1)].unique("metric")
    if len(others) and draws.intervals != INFLUENCE:
        how.append(say(topic, facts | {"metrics": ", ".join(others)}))
    if (leading["margin"].notna() & leading["margin_low"].isna()).any():
        how.append(say("no_interval", {"fewest": FEWEST_OF_DIFFERENCES}))
    return say("intervals", {
        "level": draws.confidence_level, "how": "; ".join(how), "margins": level_of_margins(data),
        "unit": "cluster of runs" if data.facts.is_clustered else "run",
        "mcb": data.options.miscalibration,
    })  # fmt: skip


def level_of_margins(data: ReportData) -> str:
    """Say at which level the intervals of leading margins are."""
    n, level = len(data.cards), data.facts.intervals.confidence_level
    at_once = f" for all {n} predictors at once" if n > 1 else ""
    return f"intervals of {data.score_name} margins hold at {100 * level:.3g}%{at_once}"


def _calibration(calibrators: dict[str, str] | None) -> str:
    """Name every calibrator that made a row, and its predictors where there are several."""
    made = list(dict.fromkeys((calibrators or {}).values()))
    names = made if len(made) == 1 else [
        f"{one} for {', '.join(name for name, its in (calibrators or {}).items() if its == one)}"
        for one in made
    ]  # fmt: skip
    ensemble = any("EnsembleCrossFitCalibrator(" in one for one in made)
    return say("calibration", {
        "asked": calibrators is not None, "fitted": made, "ensemble": ensemble,
        "calibrators": "; ".join(names) + ("; all" if len(made) > 1 else ","),
    })  # fmt: skip
