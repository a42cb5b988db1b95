"""What the commands say of made runs."""

import io as streams
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from stored_runs import hold, table, write_files
from trajscore.cli.main import main

GATES = """\
level = 0.05
undecided = "pass"

[data]
least_runs = 20
most_unobserved = 0.1

[[gate]]
metric = "success"
margin = 0.1

[[gate]]
metric = "length"
margin = "10%"

[[gate]]
metric = "TPS log margin"
predictor = "judge"
form = "recalibrated"
versus = 0

[[gate]]
metric = "S-ECE"
predictor = "judge"
versus = 0.02

[[gate]]
metric = "AUROC"
predictor = "verbal"
versus = 0.6
"""
COLUMNS = "--id run --step step --score judge --score verbal --outcome solved"
CHECK = f"{COLUMNS} --group task --baseline tasks.csv"
CASES = {
    "compare": f"compare tasks.csv other.csv {COLUMNS} --group task",
    "compare_unpaired": f"compare runs.csv tasks.csv {COLUMNS} --group run",
    "compare_few": f"compare few.csv runs.csv {COLUMNS} --group run",
    "compare_chats": "compare chats.json chats.json",
    "check": f"check other.csv {CHECK} --margin 0.05",
    "check_gates": f"check other.csv {CHECK} --gates gates.toml --junit out.xml",
    "watch": f"watch reference.csv shifted.csv {COLUMNS} --group run --after 100",
    "fit": f"fit runs.csv {COLUMNS.replace(' --score verbal', '')} --group run --alpha 0.2 "
    "--out model.skops",
    "fit_guard": "fit chats.json --guard --out guard.skops",
}
WRITTEN = {
    "check_gates": "out.xml",
}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stored")
    with chdir(folder):
        write_files()
        table(80, seed=2, tasks=8).to_csv("other.csv", index=False)
        table(600, seed=3, tasks=200).to_csv("reference.csv", index=False)
        shifted = table(400, seed=4)
        late = shifted["run"].str[1:].astype(int) > 80
        shifted = shifted.assign(
            solved=shifted["solved"].mask(late, 0), run=shifted["run"].str.replace("r", "new ")
        )
        shifted.to_csv("shifted.csv", index=False)
        Path("gates.toml").write_text(GATES)
        yield folder


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("name", CASES)
def test_what_a_command_says(files, name):
    if name.startswith("fit"):
        pytest.importorskip("skops")
    out, err = streams.StringIO(), streams.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(CASES[name].split())
    texts = [f"exit code {code}", out.getvalue(), err.getvalue()]
    if name in WRITTEN:
        texts.append(Path(WRITTEN[name]).read_text())
    hold(Path(__file__).parent / "stored" / f"{name}.txt", "\n".join(texts))


@pytest.mark.filterwarnings("default")
def test_what_a_monitor_answers(files, monkeypatch):
    pytest.importorskip("skops")
    with redirect_stdout(streams.StringIO()):
        main([*CASES["fit"].split()[:-1], "model.skops"])
    lines = [
        f'{{"id": "{run}", "score": {score}}}'
        for run, score in table(20, seed=5)[["run", "judge"]].itertuples(index=False)
    ]
    monkeypatch.setattr(
        sys, "stdin", streams.TextIOWrapper(streams.BytesIO("\n".join(lines).encode()))
    )
    out = streams.StringIO()
    with redirect_stdout(out):
        assert main(["monitor", "--model", "model.skops"]) == 0
    hold(Path(__file__).parent / "stored" / "monitor.txt", out.getvalue())
