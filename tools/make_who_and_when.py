"""Make the bundled Who&When data, numbers and labels without a text, of the folder of its authors.

python tools/make_who_and_when.py "Agents_Failure_Attribution/Who&When"
"""

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd

WORDS = {  # of the text of a step
    "code": "```",
    "error": "(?i)error|exception|failed|unable|cannot",
    "hedge": "(?i)assum|approximat|estimat|hypothetical",
    "final": "(?i)final answer|terminate|the answer",
}
AGENTS = {"terminal": "(?i)terminal", "orchestrator": "^Orchestrator"}
parts = []
for path in sorted(Path(sys.argv[1]).glob("*/*.json")):
    run = json.loads(path.read_text("utf-8"))
    steps = pd.DataFrame(run["history"])
    text = steps["content"].fillna("")
    agent = steps["name" if "name" in steps else "role"]
    log_chars = np.log1p(text.str.len()).round(3)
    table = pd.DataFrame({"step": range(1, len(steps) + 1), "agent": agent, "log_chars": log_chars})
    for source, words in ((text, WORDS), (agent, AGENTS)):
        for name, word in words.items():
            table[name] = source.str.contains(word) * 1
    table.insert(0, "run", f"{path.parent.name}/{path.stem}")
    parts.append(
        table.assign(question=run["question_ID"], first_error=int(run["mistake_step"]) + 1)
    )
target = Path("trajscore/datasets/data/who_and_when.csv.gz")
pd.concat(parts).to_csv(target, index=False, compression={"method": "gzip", "mtime": 0})
