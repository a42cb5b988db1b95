"""What a report of made runs says, in each form."""

import json
from contextlib import chdir, redirect_stdout
from io import StringIO
from pathlib import Path
from unittest.mock import patch

import pytest

from stored_runs import hold, visible, write_files
from trajscore.cli import report as report_command
from trajscore.cli.main import main

COLUMNS = "--id run --step step --outcome solved"
BOTH = f"{COLUMNS} --score judge --score verbal --resamples 60"
CASES = {
    "plain": f"report runs.csv {BOTH} --group task --by model",
    "few": f"report few.csv {BOTH} --group run",
    "gaps": "report gaps.csv --id run --step step --outcome solved --risk judge --scale verbal=100 "
    "--score verbal --missing ffill --weights linear_front --horizon 6 --family brier --phi mean "
    "--resamples 60 --group run",
    "tasks": f"report tasks.csv {BOTH} --group task --by model --by why",
    "monitor": f"report tasks.csv {COLUMNS} --score judge --group run --monitor --splits 1 "
    "--resamples 20",
    "odd": f"report odd.csv {BOTH} --group run --calibrator platt --horizon 5 --end unknown",
    "stopped": f"report stopped.csv {BOTH} --group run --censored drop --stop-reason why "
    "--stop timeout=administrative,gave_up=informative,done=complete",
    "wide": "report wide.csv --wide step_ --id run --outcome solved --resamples 60 --phi last",
    "chats": "report chats.json --resamples 60 --by task --calibrator isotonic",
    "batches": f"report steps {COLUMNS} --score judge --score verbal --by model --resamples 60",
}
PAGES = ("plain", "few", "tasks", "chats")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stored")
    with chdir(folder):
        write_files()
        yield folder


@pytest.mark.parametrize("name", CASES)
def test_what_is_said_of_made_runs(files, name):
    texts, printed = {}, StringIO()

    def write(report, path, log):
        texts["json"] = json.dumps(json.loads(report.to_json(path).read_text()), indent=1)
        texts["md"] = report.to_markdown(path).read_text()
        texts["all"] = report.to_text(verbose=True)
        if name in PAGES:
            texts["html"] = visible(report.to_html(path, log=log).read_text())
        return path

    with patch.dict(report_command._WRITERS, {".html": write}), redirect_stdout(printed):
        assert main([*CASES[name].split(), "--out", f"{name}.html"]) == 0
    texts["txt"] = printed.getvalue()
    for kind, text in texts.items():
        hold(Path(__file__).parent / "stored" / f"{name}.{kind}", text)
