"""A report as text, JSON, Markdown, one long table, and as a picture."""

import json
import math
import os
import pickle
import re
from copy import copy
from dataclasses import replace
from html import unescape
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from judged import drawn, evaluate
from trajscore import TrajectoryArray, __version__
from trajscore.datasets import make_trajectories
from trajscore.report import MonitoringOptions

STORED = Path(__file__).parent / "stored"
NUMBER = re.compile(r"(?<![\w.])[+-]?\d[\d,]*(?:\.\d+)?(?:e-?\d+)?")
HIDDEN = re.compile(r"<(script|style)\b.*?</\1>", re.DOTALL)
MARKS = "h1|h2|h3|h4|table|summary|form|figure"


# ------------------------------------------------------------------ one report of a known table


@pytest.fixture(scope="module")
def known():
    """Runs without a random number in them, so that each machine has the same."""
    n = 48
    lengths = 1 + np.arange(n) * 7 % 5
    run = np.repeat(np.arange(n), lengths)
    spread = (np.arange(len(run)) * 0.6180339887 + 0.1) % 1
    y = (np.arange(n) * 0.7548776662 % 1 < 0.45).astype(int)
    judge = 0.15 + 0.35 * y[run] + 0.45 * spread
    X = TrajectoryArray(
        np.column_stack([judge, 0.55 + 0.2 * judge + 0.2 * spread[::-1]]), lengths,
        channels=["judge", "verbal"], ids=[f"r{k:02d}" for k in range(n)],
    )  # fmt: skip
    y = np.where(np.arange(n) % 16 == 5, -1, y)
    by = {"model": np.where(np.arange(n) % 3 == 0, "small", "large")}
    draws = drawn(method="influence")
    how = {"calibrator": "platt", "families": ("log", "brier"), "intervals": draws}
    return evaluate(X, y, by=by, together=True, **how)


def timeless(text):
    text = re.sub(r"20\d\d-\d\d-\d\d(T[\d:]+Z)?", "TODAY", text)
    return text.replace(__version__, "VERSION")


def stored(name, now):
    """What was stored before; STORE=1 stores what is said now: read the difference then."""
    if os.environ.get("STORE"):
        (STORED / name).write_text(now + "\n")
    return (STORED / name).read_text().rstrip("\n")


def test_the_page_of_a_known_table_says_what_it_said(known):
    page = " ".join(HIDDEN.sub("", known.to_html()).split())
    text = unescape(re.sub("<[^>]*>", " ", re.sub(rf"<(/?)({MARKS})\b", r"\n<\1\2", page)))
    lines = [" ".join(line.split()) for line in timeless(text).splitlines()]
    now = "\n".join(line for line in lines if line)
    before = stored("page.txt", now)
    assert NUMBER.sub("#", now).splitlines() == NUMBER.sub("#", before).splitlines()
    off = []
    for old, new in zip(NUMBER.findall(before), NUMBER.findall(now), strict=True):
        last = 10.0 ** -len(old.partition(".")[2])  # a rounded number may fall to either side
        if abs(float(old.replace(",", "")) - float(new.replace(",", ""))) > 1.01 * last + 1e-6:
            off.append((old, new))
    assert off == []


def test_the_json_of_a_known_table_holds_what_it_held(known):
    found = json.loads(timeless(known.to_json()))

    def rounded(value):
        if isinstance(value, dict):
            return {name: rounded(one) for name, one in value.items()}
        if isinstance(value, list):
            return [rounded(one) for one in value]
        return round(value, 9) if isinstance(value, float) else value

    parts = [f"{json.dumps(name)}: {json.dumps(rounded(part))}" for name, part in found.items()]
    before = flat(json.loads(stored("report.json", "{\n" + ",\n".join(parts) + "\n}")))
    now = flat(found)
    places = [place for place, value in before.items() if isinstance(value, float)]
    numbers, expected = ([document.pop(place) for place in places] for document in (now, before))
    assert numbers == pytest.approx(expected, rel=0, abs=1e-6)
    assert list(now.items()) == list(before.items())


def flat(value, place=""):
    """Each number and text of a document by its place; numbers within texts do not matter."""
    if isinstance(value, dict | list) and value:
        parts = value.items() if isinstance(value, dict) else enumerate(value)
        return {k: v for name, part in parts for k, v in flat(part, f"{place}/{name}").items()}
    is_text = isinstance(value, str | dict | list)  # or nothing
    return {place: NUMBER.sub("#", str(value)) if is_text else value}


# ------------------------------------------------------------------ JSON


def test_json_holds_every_number(report):
    found = json.loads(report.to_json())
    assert (found["format"], found["version"]) == ("trajscore report", 2)
    assert found["runs"]["n_runs"] - found["runs"]["n_observed"] == 67
    assert found["runs"]["rate_over_forecasts"] == report.facts.base_rate
    assert found["options"]["leading"] == report.score_name
    assert list(found["predictors"]) == report.predictors
    assert list(found["references"]) == ["base rate", "alive rate", "alive rate, end known"]
    n = 0
    for name, one in (found["predictors"] | found["references"]).items():
        for form, row in one["forms"].items():
            for metric, ends in row["metrics"].items():
                expected = report.intervals.loc[(name, form, metric)]
                n += 1
                assert (ends["value"], ends["low"]) == (expected["value"], expected["low"])
                assert ends["method"] == report.interval_methods.loc[(name, form, metric), "value"]
                for level in ("margin", "over_alive", "over_alive_end", "over_as_given"):
                    assert (level in ends) == math.isfinite(expected[level])
                    if level in ends:
                        high = expected[f"{level}_high"]
                        assert ends[level]["high"] == (None if math.isnan(high) else high)
    assert n == len(report.intervals)
    assert found["disclosures"] == report.disclosures
    assert found["verdicts"] == report.verdicts()
    assert found["cards"]["engine"]["card"] == report.cards["card"]["engine"]
    assert found["pairs"] == report.pairs.to_dict("records")
    assert len(found["by_step"]) == len(report.by_step)


def test_files_are_what_is_returned_and_hold_no_nan(fast, tmp_path):
    X, y = make_trajectories(40, random_state=0, return_X_y=True)
    X = X.with_cells(np.where(X.cells > 0.9, 5.0, X.cells))
    report = evaluate(X, y, **fast, monitoring=MonitoringOptions(n_splits=2))
    for method in ("to_json", "to_markdown", "to_html"):
        path = getattr(report, method)(tmp_path / "r.x")
        assert path.read_text() == getattr(report, method)()
        assert method == "to_html" or "NaN" not in path.read_text()
    assert pickle.loads(pickle.dumps(report)).to_json() == report.to_json()


def test_a_build_may_fix_the_date(quick, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    report = evaluate([[0.5], [0.6]], [1, 0], intervals=quick)
    assert report.source.created == "1970-01-02T00:00:00Z"


# ------------------------------------------------------------------ tables, text, pictures


def test_one_long_table(report):
    frame = report.to_frame()
    assert len(frame) == len(report.intervals)
    row = frame.set_index(["predictor", "form", "metric"]).loc[("engine", "as_given", "TPS log")]
    assert row["margin"] == report.table.loc[("engine", "as_given"), "TPS log margin"]
    assert (row["n_runs"], row["method"]) == (360, "influence")


def test_margins_are_written_with_their_intervals(report):
    written = report.to_markdown()
    for name, form in product(report.cards.index, ("as_given", "recalibrated")):
        texts = []
        for score in report.options.score_names:
            columns = ["margin", "margin_low", "margin_high"]
            three = report.intervals.loc[(name, form, score), columns]
            if score == "TPS log":  # at the level of all cards
                three = report.cards.loc[name, [form, f"{form}_low", f"{form}_high"]]
            digits = 5 if "beta" in score else 3
            value, low, high = (f"{x:+.{digits}f}" for x in three)
            texts.append(f"{value} [{low}, {high}]")
        assert f"| {name} | {form.replace('_', ' ')} | {' | '.join(texts)} |" in written


def test_text_fits_the_terminal_and_tells_long_names_apart(fast, monkeypatch):
    X, y = make_trajectories(40, random_state=0, return_X_y=True)
    names = ["judge, prompt of the first day", "judge, prompt of the second day"]
    X = {names[0]: X, names[1]: X.with_cells(X.cells**2)}
    report = evaluate(X, y, **fast)
    for columns, width in (("60", 72), ("200", 100)):
        monkeypatch.setenv("COLUMNS", columns)
        for verbose in (True, False):
            text = report.to_text(verbose=verbose)
            assert max(map(len, text.splitlines())) <= width
        for end in ("first day", "second day"):
            assert re.search(rf"judge, \.\.\. ?{end}", report.to_text(verbose=True))
    assert report.to_text() == str(report)
    assert names[0] in report.to_text()


def test_every_table_is_in_text_and_markdown(report):
    text = report.to_text(verbose=True)
    for title in (
        "Margins over the base rate", "Every pair", "What recalibration changes", "AUROC at a step",
        "AUROC among runs of equal length", "The values as given", "Margins under other choices",
    ):  # fmt: skip
        assert title.lower() in text.lower(), title
    markdown = report.to_markdown()
    assert markdown.startswith("# ")
    assert "| material | as given |" in markdown
    for name, words in report.disclosures.items():
        assert f"**{name}**" in markdown
        assert words.split()[0] in text
    assert (report == report, report == copy(report)) == (True, False)


def test_a_report_draws_itself(report):
    pytest.importorskip("matplotlib")
    assert report.plot().metric == "TPS log"
    shown = report.plot("S-ECE")
    assert {text.get_text() for text in shown.ax_.get_yticklabels()} >= set(report.predictors)
    with pytest.raises(ValueError, match="'S-EC'; did you mean 'S-ECE'"):
        report.plot("S-EC")


def test_small_rates_are_not_written_as_none(fast):
    y = np.arange(400) % 200 == 0
    X = TrajectoryArray(np.linspace(0, 1, 400), np.ones(400, dtype=int))
    report = evaluate(X, y, **fast)
    assert str(report).endswith("400 runs · 400 steps · 0.5% succeeded")


def test_no_form_loses_a_doubt(fast):
    y = np.arange(60) % 2
    lengths = np.where(np.arange(60) % 5, 3 + 4 * y, 5)
    X = TrajectoryArray(np.repeat(y / 2 + 0.2, lengths), lengths, channels=["judge"])
    report = evaluate(X, y, groups=np.arange(60) % 4, **fast)
    reasons = json.loads(report.to_json())["answer"]["data"]["reasons"]
    assert len(reasons) == 3
    for form in (str(report), report.to_text(verbose=True), report.to_markdown(), report.to_html()):
        assert all(reason in " ".join(unescape(form).split()) for reason in reasons)
    assert "2 more notes: report.to_text(verbose=True)." in report._repr_html_()
    for writes in (False, True):  # a name is not read as an option
        source = replace(report.source, command="trajscore report 'a --out x'", writes_file=writes)
        assert ("a page: --out" in str(replace(report, source=source))) is not writes
