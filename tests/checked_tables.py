"""Tables as the commands read them: the runs and what is said, or the sentence that refuses."""

import gzip
import json
from types import SimpleNamespace

import pandas as pd

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
        written = self.folder / "written.json"
        code = main(["check", str(path), "--json", str(written), *options])
        said = self.capsys.readouterr()
        assert code == 0, said.err
        return SimpleNamespace(said=said.out, **json.loads(written.read_text())["runs"])

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
