"""How was this made, and what do the words mean."""

from __future__ import annotations

from trajscore.report._contradictions import contradictions
from trajscore.report._disclosures import disclosures, sentence
from trajscore.report._glossary import GLOSSARY
from trajscore.report._verdict import verdicts
from trajscore.report.page.view import Section, View

LITERATURE = (
    "Raghu et al. (2026), Proper Scoring Rules for Agentic Uncertainty Quantification: the scores.",
    "Estienne et al. (2026), arXiv:2605.20490: ECUAS.",
    "Sadhuka et al. (2025), E-valuator, arXiv:2512.03109: stopping early.",
    "Tayebati et al. (2026), TRACER: the risk of a dialogue.",
)


def method(view: View) -> Section:
    """Return disclosures, notes, glossary and references."""
    data = view.data
    return Section(
        "method",
        "How was this made?",
        "Recalibration is always fitted on other runs than those it is judged on. Every choice is "
        "listed below.",
        {
            "disclosures": disclosures(data),
            "notes": [sentence(note) for note in data.remarks],
            "verdicts": verdicts(data),
            "contradictions": [f"{sentence_}." for sentence_ in contradictions(data)],
            "glossary": GLOSSARY,
            "references": LITERATURE,
            "command": data.source.command,
        },
    )
