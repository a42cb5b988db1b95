"""Tables as the commands read them: the runs and what is said, or the sentence that refuses."""

import gzip
import json
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
import pandas as pd

from trajscore.cli import check
from trajscore.cli.main import main


def write_table(path, table):
    """Write a table in the form of its ending; text as it is, and a list as JSON lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(table, list):
        table = "".join(json.dumps(row) + "\n" for row in table)
    if isinstance(table, str):
        data = table.encode()
        path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    elif path.suffix == ".parquet":
        table.to_parquet(path)
    else:
        table.to_csv(path, index=False, sep="\t" if path.suffix == ".tsv" else ",")
    return path


def of_runs(runs, said):
    """Return what was read, and what was said of it."""
    found = SimpleNamespace(said=said, ids=runs.ids.tolist(), outcomes=runs.y.tolist())
    found.tasks = None if runs.tasks is None else runs.tasks.tolist()
    found.lengths, found.predictors = runs.lengths.tolist(), {}
    for name, trace in runs.traces.items():
        cells = trace.cells.ravel()
        found.predictors[name] = np.where(np.isnan(cells), None, cells).tolist()
        for stop in {"stop_reason", "stop_kind"} & set(() if trace.meta is None else trace.meta):
            setattr(found, stop, trace.meta[stop].tolist())
    return found


class Tables:
    """Writes tables into a folder and reads them by `trajscore check` and `trajscore report`."""

    def __init__(self, folder, capsys):
        self.folder, self.capsys = folder, capsys

    def read(self, table, *options, name="t.csv"):
        """Return what was made of a table, which must be usable."""
        path = write_table(self.folder / name, table)
        return self.runs(path, *options)

    def runs(self, path, *options):
        """Return what was made of a file or a folder."""
        gates, read, found = self.folder / "gates.toml", check.read, []
        gates.write_text("[[gate]]\nversus = 0.5\n")

        def remember(*args, **named):
            found.append(read(*args, **named))
            return found[-1]

        with patch.object(check, "read", side_effect=remember):
            code = main(["check", str(path), "--gates", str(gates), *options])
        said = self.capsys.readouterr()
        assert code != 2, said.err
        return of_runs(found[0], said.out + said.err)

    def refuse(self, table, *options, name="t.csv"):
        """Return the one line by which a table is refused."""
        return self.refusal(write_table(self.folder / name, table), *options)

    def refusal(self, path, *options):
        """Return the one line by which a file is refused."""
        code = main(["report", str(path), "--resamples", "10", *options])
        out, error = self.capsys.readouterr()
        assert code == 2, out
        assert error.startswith("trajscore: ")
        assert "\n" not in error.strip(), error
        return error


def steps(**columns):
    """Return a table of two runs with two steps each; None takes a column away."""
    usual = {"run": ["a", "a", "b", "b"], "step": [1, 2, 1, 2], "p": [0.5, 0.25, 0.75, 0.8]}
    columns = usual | {"solved": [1, 1, 0, 0]} | columns
    return pd.DataFrame({name: values for name, values in columns.items() if values is not None})
