"""What was judged, when, by which command, and of how many runs."""

from __future__ import annotations

from typing import Any

from trajscore.report._cards import TOO_FEW
from trajscore.report._disclosures import population
from trajscore.report._left_out import number_of_runs
from trajscore.report.page.view import View


def header(view: View) -> dict[str, Any]:
    """Return what the head of the page says."""
    data, facts = view.data, view.data.facts
    lengths = view.constant.lengths
    few = [name for name in view.names if view.cards.loc[name, "card"] == TOO_FEW]
    return {
        "source": data.source,
        "name": data.source.name or "data given in Python",
        "counts": {
            "runs": f"{facts.n_runs:,}",
            "steps": f"{int(lengths.sum()):,}, from {lengths.min()} to {lengths.max()} a run",
            "success": f"{facts.success_rate:.1%} of the {facts.n_observed:,} with an outcome",
            "outcome not observed": f"{facts.n_censored / max(facts.n_runs, 1):.1%} of the runs",
            "left out": number_of_runs(int(data.excluded["n_runs"].sum())),
        },
        "population": population(facts),
        "few": len(few) == len(view.names),
        "n_needed": int(view.cards.loc[few, "n_needed"].min()) if few else 0,
        "n_runs": facts.n_runs,
    }
