"""A report as a file: what programs and people read of it."""

import json
import math
import re

import pytest

from trajscore import evaluate
from trajscore.datasets import make_trajectories
from trajscore.report import IntervalOptions
from trajscore.report._data import MARGIN, columns_of


def test_json_holds_every_number(report):
    found = json.loads(report.to_json())
    assert (found["format"], found["version"]) == ("trajscore report", 2)
    assert found["runs"]["n_runs"] - found["runs"]["n_observed"] == 67
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
                        assert math.isnan(high) == (metric == "ECUAS_128")  # not given
    assert n == len(report.intervals)
    assert found["disclosures"] == report.disclosures
    assert found["cards"]["engine"]["card"] == "recalibrate"
    assert found["pairs"][0].keys() == {"predictor", "reference", "difference", "low", "high"}
    assert found["verdicts"] == report.verdicts()


def test_json_has_no_number_that_is_none(tmp_path):
    X, y = make_trajectories(40, random_state=0, return_X_y=True)
    report = evaluate(X, y, intervals=IntervalOptions(20), monitoring=True)
    path = report.to_json(tmp_path / "r.json")
    assert "NaN" not in path.read_text()
    found = json.loads(path.read_text())
    assert found["stopping"][0]["predictor"] == "forecast"
    assert found["source"]["created"].endswith("Z")


def test_one_long_table(report):
    frame = report.to_frame()
    assert len(frame) == len(report.intervals)
    row = frame.set_index(["predictor", "form", "metric"]).loc[("engine", "as_given", "TPS log")]
    assert row["margin"] == report.table.loc[("engine", "as_given"), "TPS log margin"]
    assert (row["n_runs"], row["method"]) == (360, "influence")


def test_markdown_is_a_summary():
    X, y = make_trajectories(40, random_state=0, return_X_y=True)
    text = evaluate({"a|b": X}, y, intervals=IntervalOptions(20)).to_markdown()
    assert text.startswith("# Use a|b as it is: ")
    assert "| a\\|b | use as it is | " in text
    assert "| a\\|b | as given |" in text
    assert "**censoring**: none: every outcome was observed" in text
    assert "- **Read first:** " in text
    few = evaluate({"a": X[:8]}, y[:8], intervals=IntervalOptions(20)).to_markdown()
    assert "Read first" not in few


def test_names_are_no_marks_in_markdown():
    X, y = make_trajectories(40, random_state=0, return_X_y=True)
    names = ("<script>alert(1)</script>", "$x_1$", "[a](b)")
    text = evaluate(dict.fromkeys(names, X), y, intervals=IntervalOptions(20)).to_markdown()
    body = re.sub("</?(details|summary)>", "", text)
    assert re.findall(r"(?<!\\)(?:<|\$|\]\()", body) == []
    assert "| \\<script>alert(1)\\</script> | as given |" in text


def test_a_build_may_fix_the_date(monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    report = evaluate([[0.5], [0.6]], [1, 0], intervals=IntervalOptions(2))
    assert report.source.created == "1970-01-02T00:00:00Z"


def test_html_is_returned_or_written(report, tmp_path):
    page = report.to_html(tmp_path / "r.html")
    assert page.read_text() == report.to_html()


@pytest.mark.parametrize("method", ["to_json", "to_markdown"])
def test_files_are_what_is_returned(report, tmp_path, method):
    path = getattr(report, method)(tmp_path / "r.x")
    assert path.read_text() == getattr(report, method)()


def test_margins_are_written_with_their_intervals(report):
    cells = report.margins()
    assert list(cells) == report.options.score_names
    assert ("base rate", "constant") not in cells.index
    for (name, form), row in cells.iterrows():
        for score, text in row.items():
            three = report.intervals.loc[(name, form, score), MARGIN]
            if score == "TPS log" and name in report.cards.index:
                three = report.cards.loc[name, columns_of(form)]
            digits = {"TPS log": 3, "TPS brier": 3}.get(score, 5)
            value, low, high = (f"{x:+.{digits}f}" for x in three)
            assert text == f"{value} [{low}, {high}]"
