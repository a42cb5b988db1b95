"""Make the bundled Who&When data of its authors: python tools/make_who_and_when.py FOLDER."""

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd

FLAGS = {
    "code": "```", "error": "(?i)error|exception|failed|unable|cannot",
    "hedge": "(?i)assum|approximat|estimat|hypothetical",
    "final": "(?i)final answer|terminate|the answer",
}  # fmt: skip
parts = []
for path in sorted(Path(sys.argv[1]).glob("*/*.json")):
    run = json.loads(path.read_text("utf-8"))
    steps = pd.DataFrame(run["history"])
    text, agent = steps["content"].fillna(""), steps["name" if "name" in steps else "role"]
    table = pd.DataFrame({"run": f"{path.parent.name}/{path.stem}", "step": steps.index + 1})
    table = table.assign(agent=agent, log_chars=np.log1p(text.str.len()).round(3))
    table = table.assign(**{name: text.str.contains(word) * 1 for name, word in FLAGS.items()})
    table["terminal"] = agent.str.contains("(?i)terminal") * 1
    table["orchestrator"] = agent.str.startswith("Orchestrator") * 1
    first_error = int(run["mistake_step"]) + 1  # there it counts from 0
    parts.append(table.assign(question=run["question_ID"], first_error=first_error))
target = Path("trajscore/datasets/data/who_and_when.csv.gz")
pd.concat(parts).to_csv(target, index=False, compression={"method": "gzip", "mtime": 0})
