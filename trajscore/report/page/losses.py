"""Where are points lost: by not knowing, or by saying it wrongly."""

from __future__ import annotations

from trajscore.report._data import FORMS
from trajscore.report.page.view import NO_PROBABILITY, Section, View


def losses(view: View) -> Section:
    """Return what each forecast knows, and what of that its miscalibration loses."""
    data = view.data
    rows = []
    for name in view.names:
        for form in view.forms(name):
            lost = data.table.loc[(name, form), data.options.miscalibration]
            margin = data.table.loc[(name, form), f"{data.score_name} margin"]
            rows.append(
                {"name": name, "form": form, "called": FORMS[form], "knows": margin + lost,
                 "lost": lost, "margin": margin}
            )  # fmt: skip
    # what is lost may dwarf what is known: a bar ends at four times the largest of these
    longest = 4 * max((row["knows"] for row in rows), default=0) or 1.0
    for row in rows:
        row["knows_share"] = min(100.0, 100 * row["knows"] / longest)
        row["lost_share"] = min(100.0, 100 * row["lost"] / longest)
        row["cut"] = row["lost"] > longest
    return Section("losses", "Where are points lost?", _sentence(view, rows), {"rows": rows})


def _sentence(view: View, rows: list[dict[str, object]]) -> str:
    by_key = {(row["name"], row["form"]): row for row in rows}
    if not view.is_scored(view.best):
        return NO_PROBABILITY
    row = by_key[view.acted_on(view.best)]
    unit = view.data.options.unit
    knows, lost = f"{row['knows']:.{view.digits}f}", f"{row['lost']:.{view.digits}f}"
    return (
        f"{view.called(view.best)}: the best rising map of these very runs would be worth "
        f"{knows}{unit} over the base rate; {lost} of that is lost. A map for new runs gains less."
    )
