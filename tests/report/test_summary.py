"""What one screen of a terminal says beside the tables."""

from types import SimpleNamespace

import pandas as pd
import pytest

from made_cards import card, cards_of, data_of
from trajscore.report._cards import AVOID, RECALIBRATE, TOO_FEW, USE
from trajscore.report._data import Note, Source
from trajscore.report.render.summary import _about, _actions, _more, _remedy, _table, _warnings

NAN = float("nan")
NOTHING = pd.DataFrame(columns=["predictor", "reason", "n_runs"])


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("", "All numbers: report.to_text(verbose=True); a page: report.to_html('report.html')"),
        ("trajscore report a.csv", "All numbers: --verbose; a page: --out report.html"),
        ("trajscore report a.csv --out b.html", "All numbers: --verbose"),
        ("trajscore report a.csv --out=b.html", "All numbers: --verbose"),
        ("trajscore report --outcome won", "All numbers: --verbose; a page: --out report.html"),
    ],
)
def test_where_there_is_more(command, said):
    assert _more(command) == said


@pytest.mark.parametrize(
    ("reasons", "command", "said"),
    [
        (["no outcome; stopped by crash, not by a budget"], "", ""),
        (
            ["a value of judge is missing"],
            "",
            "; missing='ffill' lets a value hold until the next one",
        ),
        (
            ["no outcome", "values of a and b are missing"],
            "trajscore report",
            "; --missing ffill lets a value hold until the next one",
        ),
    ],
)
def test_a_remedy_is_named_where_values_are_missing(reasons, command, said):
    excluded = pd.DataFrame({"predictor": "all", "reason": reasons, "n_runs": 1})
    data = SimpleNamespace(excluded=excluded, source=Source(command=command))
    assert _remedy(data) == said


def data_with(areas, cards, **others):
    index = pd.MultiIndex.from_tuples([(name, "as_given") for name in cards])
    table = pd.DataFrame({"AUROC": areas}, index=index)
    return data_of(cards, table=table, **others)


def test_a_line_for_each_predictor():
    cards = {
        "a": card(USE, as_given=(0.1234, 0.1, 0.2), recalibrated=(NAN,) * 3),
        "b": card(TOO_FEW, as_given=(-0.0004, -1, 1), recalibrated=(0.5, -1, 1), n_needed=1200),
    }
    lines = _table(data_with([0.6666, 0.5], cards), ["a", "b"]).splitlines()
    assert lines[0].split() == [
        "what",
        "to",
        "do",
        "more",
        "runs",
        "as",
        "given",
        "recalibrated",
        "AUROC",
    ]
    assert lines[1].split() == ["a", "use", "as", "it", "is", "+0.123", "0.667"]
    assert lines[2].split() == ["b", "too", "few", "runs", "1,200", "+0.000", "+0.500", "0.500"]
    sure = _table(data_with([0.5], {"a": card(USE)}), ["a"])
    assert "more runs" not in sure


def test_predictors_beyond_ten_are_counted_by_what_to_do():
    cards = {f"p{k}": card(AVOID if k > 8 else RECALIBRATE) for k in range(13)}
    names = list(cards)
    assert _about(data_of(cards), names)[0] == "and 3 more predictors: do not use 3"
    unit = "Margins of TPS log over the base rate, in nats."
    assert _about(data_of(cards), names[:10]) == [unit]
    cards["p12"] = card(USE)
    assert _about(data_of(cards), names)[0] == "and 3 more predictors: do not use 2, use as it is 1"


def screen_of(**others):
    check = SimpleNamespace(level="check this", reasons=["First.", "Second."])
    stated = {
        "shown": "judge", "about": "3 runs \u00b7 judged today", "check": check,
        "accept_sentence": "**Accept.** Any threshold from 1 to 2.", "stop_sentence": "**Stop.**",
        "worst_sentence": "**r1**.", "data_sentence": "Data: check this. First.",
        "answer": SimpleNamespace(predictor="judge"),
    }  # fmt: skip
    return SimpleNamespace(**(stated | others))


def test_actions_name_the_predictor_where_the_answer_does_not():
    assert _actions(screen_of()) == [
        "Accept. A failure let through costs 2.", "Stop.", "Read first: r1.",
    ]  # fmt: skip
    other = _actions(screen_of(answer=SimpleNamespace(predictor="")))
    assert [text.partition(" ")[0] for text in other] == ["judge:", "judge:", "Read"]
    assert _actions(screen_of(shown="")) == []


@pytest.mark.parametrize(("n", "n_shown", "more"), [(1, 1, 0), (2, 2, 0), (3, 2, 1), (5, 2, 3)])
def test_two_notes_are_shown_and_the_others_counted(n, n_shown, more):
    notes = [Note(f"p{k}", "filled", {"share": 0.5}) for k in range(n)]
    data = data_of(cards_of(a=USE), remarks=notes, excluded=NOTHING)
    said = _warnings(data, screen_of())
    assert said[0] == "Data: check this. First."
    assert sum(text.startswith("note: p") for text in said) == n_shown
    assert [text for text in said if "more notes" in text] == [f"and {more} more notes"] * bool(
        more
    )
    assert said[-2:] == [_more(""), "3 runs"]


def test_the_note_that_the_light_says_is_not_said_again():
    note = Note("all", "filled", {"share": 0.5})
    text = "all: 50.0% of its values were missing; the value before was used."
    check = SimpleNamespace(level="check this", reasons=[text])
    data = data_of(cards_of(a=USE), remarks=[note], excluded=NOTHING)
    assert not any(said.startswith("note") for said in _warnings(data, screen_of(check=check)))


def test_four_reasons_for_leaving_runs_out_are_named():
    excluded = pd.DataFrame(
        {"predictor": "all", "reason": [f"reason {k}" for k in range(6)], "n_runs": range(6, 0, -1)}
    )
    data = data_of(cards_of(a=USE), remarks=[], excluded=excluded)
    assert _warnings(data, screen_of())[1] == (
        "Left out: 6 runs (reason 0); 5 runs (reason 1); 4 runs (reason 2); 3 runs (reason 3); "
        "3 runs for other reasons"
    )
