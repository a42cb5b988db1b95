"""The answer of ``trajscore report`` on the bundled chess data; STORE=1 stores what is said now."""

import os
import re
from pathlib import Path

from trajscore.cli.main import main

STORED = Path(__file__).parent / "chess.txt"
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def test_the_report_of_the_chess_data(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    assert main(["report", "--resamples", "50"]) == 0
    said = capsys.readouterr().out
    if "STORE" in os.environ:
        STORED.write_text(said)
    stored = STORED.read_text()
    assert NUMBER.sub("#", said) == NUMBER.sub("#", stored)
    numbers = zip(NUMBER.findall(said), NUMBER.findall(stored), strict=True)
    assert [(now, was) for now, was in numbers if not is_near(now, was)] == []


def is_near(now, was):
    """Whether a number is another but for its last digit, which a release of SciPy may round."""
    digits = len(was.partition(".")[2])
    return abs(float(now) - float(was)) <= (1.01 * 10.0**-digits if digits else 0)
