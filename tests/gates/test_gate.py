"""Gates and rules: sentences, bounds, and what a file of gates may hold."""

import pytest

from trajscore.gates import Gate
from trajscore.gates._gate import DataRules, Rules, allowed, read_gates


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({}, "success no worse than the baseline"),
        ({"margin": 0.05}, "success no worse than the baseline by more than 0.05"),
        ({"margin": "10%"}, "success no worse than the baseline by more than 10%"),
        ({"margin": "0%"}, "success no worse than the baseline"),
        ({"margin": -0.05}, "success better than the baseline by 0.05"),
        ({"versus": 0.7}, "success no worse than 0.7"),
        ({"metric": "AUROC", "predictor": "judge", "form": "recalibrated"},
         "AUROC of judge, recalibrated no worse than the baseline"),
        ({"metric": "AUROC", "form": "recalibrated"}, "AUROC no worse than the baseline"),
    ],
)  # fmt: skip
def test_sentences(options, sentence):
    assert str(Gate(**options)) == sentence


@pytest.mark.parametrize(
    ("margin", "share"),
    [("10%", 0.1), ("-5%", -0.05), (0.1, None), (0, None), ("0%", 0.0), ("250%", 2.5)],
)
def test_share(margin, share):
    assert Gate("length", margin=margin).share == share


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"margin": 1}, r"success lies in \[0, 1\], so margin = 1 decides nothing$"),
        ({"margin": -1}, r"so margin = -1 decides nothing$"),
        ({"margin": 5}, r"margin = 5 decides nothing; 5 of a hundred is 0.05"),
        ({"margin": 1.5}, r"margin = 1.5 decides nothing; 1.5 of a hundred is 0.015"),
        ({"versus": 1.01}, r"versus = 1.01 decides nothing; 1.01 of a hundred is 0.0101"),
        ({"versus": -0.01}, r"versus = -0.01 decides nothing$"),
        ({"margin": "much"}, "margin must be a number, or such as \"10%\", got 'much'"),
        ({"margin": "10"}, "margin must be a number, or such as \"10%\", got '10'"),
        ({"margin": "x%"}, 'margin must be a number, or such as "10%"'),
        ({"margin": True}, "margin must be a number"),
        ({"metric": "cost", "margin": 1e300}, "margin must be a number"),
        ({"metric": "cost", "margin": -1e300}, "margin must be a number"),
        ({"versus": "last"}, "versus must be 'baseline' or a number, got 'last'"),
        ({"margin": "10%", "versus": 0.5}, "margin '10%' is a share of the baseline; give a numb"),
        ({"metric": 3}, "metric must be text, got 3"),
        ({"metric": None}, "metric must be text, got None"),
        ({"predictor": 3}, "predictor must be text, got 3"),
        ({"form": "raw"}, "form"),
    ],
)
def test_bad_gates(options, message):
    with pytest.raises(ValueError, match=message):
        Gate(**options)


@pytest.mark.parametrize(
    "options",
    [
        {"margin": 0.99}, {"margin": -0.99}, {"versus": 0}, {"versus": 1}, {"margin": "100%"},
        {"metric": "cost", "margin": 5, "versus": 9e299},
    ],
)  # fmt: skip
def test_bounds_that_are_allowed(options):
    assert Gate(**options).form == "as_given"


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        (Rules, {"level": 0}, r"level must lie in \(0, 0.5\), got 0"),
        (Rules, {"level": 0.5}, r"level must lie in \(0, 0.5\), got 0.5"),
        (Rules, {"level": "5%"}, r"level must lie in \(0, 0.5\), got '5%'"),
        (Rules, {"undecided": "skip"}, "undecided"),
        (DataRules, {"least_runs": 0}, "least_runs must be a whole number above 0, got 0"),
        (DataRules, {"most_left_out": 1.01}, r"most_left_out must lie in \[0, 1\], got 1.01"),
        (DataRules, {"most_unobserved": -0.01}, r"most_unobserved must lie in \[0, 1\], got -0.01"),
    ],
)
def test_bad_rules(kind, options, message):
    with pytest.raises(ValueError, match=message):
        kind(**options)


def test_rules():
    assert Rules() == Rules((), 0.05, "undecided", DataRules(1, 1.0, 1.0))
    assert Rules(level=0.49).level == 0.49
    assert DataRules(most_left_out=0, most_unobserved=1).most_left_out == 0


def write(tmp_path, text):
    file = tmp_path / "gates.toml"
    file.write_text(text)
    return file


def test_file(tmp_path):
    text = """
    level = 0.1
    undecided = "pass"
    [data]
    least_runs = 30
    [[gate]]
    margin = 0.05
    [[gate]]
    metric = "cost"
    margin = "10%"
    """
    gates = (Gate(margin=0.05), Gate("cost", margin="10%"))
    assert read_gates(write(tmp_path, text)) == Rules(gates, 0.1, "pass", DataRules(30))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[gate", "is not a TOML file"),
        ("", r"has no gates; write a table for each: \[\[gate\]\]"),
        ("gate = 1", "has no gates"),
        ("gate = [1]", "gate 1: it must be a table, got 1"),
        ("[[gate]]\n[[gate]]\nmargin = 2", "gate 2: success lies in"),
        ("[[gate]]\nmargn = 2", "gate 1: .*'margn'.*; allowed are metric, predictor, form, versus"),
        ("levl = 0.1\n[[gate]]", "'levl'.*; allowed are level, undecided, data, gate$"),
        ("data = 3\n[[gate]]", r"\[data\]: it must be a table, got 3"),
        ("[[gate]]\n[data]\nleast_runs = 0", r"\[data\]: least_runs must be"),
        ("level = 2\n[[gate]]", "level must lie in"),
    ],
)
def test_bad_files(tmp_path, text, message):
    with pytest.raises(ValueError, match=rf"gates\.toml:? .*{message}"):
        read_gates(write(tmp_path, text))


def test_no_file(tmp_path):
    with pytest.raises(ValueError, match=r"none\.toml does not exist; give the path of a file of"):
        read_gates(tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("gate", "sign", "expected"),
    [
        (Gate(margin=0.1), 1, (1.0, 0.1)),
        (Gate(margin=0.1), -1, (1.0, 0.1)),
        (Gate(versus=0.25, margin=-0.1), 1, (1.0, -0.1)),
        (Gate(margin="20%"), 1, (0.8, 0.0)),
        (Gate("length", margin="20%"), -1, (1.2, 0.0)),
        (Gate("length", margin="20%"), 0, (1.0, 0.0)),
    ],
)
def test_what_is_allowed(gate, sign, expected):
    assert allowed(gate, sign) == pytest.approx(expected)
    if sign == 1:
        assert allowed(gate) == allowed(gate, 1)
