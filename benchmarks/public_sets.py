"""Public runs of the board and of proper.py: where they are, a reader of each, and their sets.

Files are downloaded once into ``data_home`` (default: scikit-learn's data home), and checked by
their SHA-256. Where only git reaches GitHub, make an archive from a clone of its repository, at the
path that the error names::

    git archive --prefix=x/ -o PATH COMMIT FOLDER ...
"""

import csv
import hashlib
import io
import json
import re
import tarfile
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from trajscore import TrajectoryArray
from trajscore.datasets import fetch_evaluator, load_real_runs
from trajscore.datasets._real import retrieve
from trajscore.io import Run, Step, ToolCall, outcomes, read_runs

RAW = "https://raw.githubusercontent.com/"


class Found(NamedTuple):
    """Runs, or the values stated at each step, and their outcomes.

    `group` is what folds and clusters keep together, `identity` what else is known of a run before
    its first step, if anything is.
    """

    X: Any  # list of io.Run, or TrajectoryArray of one value a step
    y: Any
    group: Any
    identity: Any = None

    @property
    def is_log(self) -> bool:
        """Whether the steps are turns, and not values."""
        return not isinstance(self.X, TrajectoryArray)


class Archive(NamedTuple):
    """A repository at a commit, as GitHub packs it, and the files of it that are wanted."""

    repository: str
    commit: str
    pattern: str  # pattern of paths; its first group is the name
    sha256: str  # of these names and their contents, as the bytes of an archive may differ
    kind: str

    @property
    def file(self) -> str:
        return f"{self.repository.replace('/', '-')}-{self.commit[:12]}.tar.gz"

    def path(self, data_home: Path | None) -> Path:
        """Return the path of the archive, downloaded if need be."""
        url = f"https://github.com/{self.repository}/archive/{self.commit}.tar.gz"
        return retrieve(url, self.file, None, data_home, download_if_missing=True)

    def contents(self, data_home: Path | None) -> dict[str, bytes]:
        """Return the wanted files by their names, checked."""
        path = self.path(data_home)
        files = unpack(path, self.pattern)
        actual = checksum(files)
        if actual != self.sha256:
            raise ValueError(
                f"{path} does not hold the published {self.kind}: their SHA-256 starts with "
                f"{actual[:12]}, not with {self.sha256[:12]}; delete the file and fetch it again"
            )
        return files


def unpack(archive: Path, pattern: str) -> dict[str, bytes]:
    """Return the files of an archive whose path matches, by its first group, in order of name."""
    pattern, files = re.compile(pattern), {}
    with tarfile.open(archive) as members:
        for member in members:
            path = pattern.fullmatch(member.name)
            if path and (content := members.extractfile(member)):
                files[path[1]] = content.read()
    return dict(sorted(files.items()))


def checksum(files: Mapping[str, bytes]) -> str:
    digest = hashlib.sha256()
    for file, content in files.items():
        digest.update(f"{file}\n{len(content)}\n".encode() + content)
    return digest.hexdigest()


TAU_BENCH = "sierra-research/tau-bench/59a200c6d575d595120f1cb70fea53cef0632f6b"
AIRLINE = "gpt-4o-airline.json"
AIRLINE_SHA256 = "e9e6c0297660c537f83d4fd9c476ce7a9a86ecd2784874b7bfc13be598e37bfa"
# five models at Java issues, without a licence; one of them was evaluated on one issue only
MULTI_SWE_BENCH = Archive(
    "multi-swe-bench/experiments",
    "89888f1604001fcd80b0799a37af42a1bfebfd8f",
    r"[^/]*/(evaluation/java/verified/[^/]+/(?:trajs/[^/]+\.traj|results/results\.json))",
    "33b3c81ec0479c4bf29facb3503da5e7162694dae4e7a48d42db441f4555bb82",
    "runs of Multi-SWE-bench",
)


def tau_bench_log(data_home: Path | None) -> Path:
    """Return the log of 200 runs of gpt-4o at airline tasks (MIT licence)."""
    url = f"{RAW}{TAU_BENCH}/historical_trajectories/{AIRLINE}"
    return retrieve(url, AIRLINE, AIRLINE_SHA256, data_home, download_if_missing=True)


def unpacked_log(archive: Archive, data_home: Path | None) -> Path:
    """Return the folder into which the log of an archive was unpacked."""
    folder = archive.path(data_home).with_name(archive.file.removesuffix(".tar.gz"))
    for path, content in archive.contents(data_home).items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    return folder


DATABASES = r"sql/spider/ic_spider_dev"  # of each question
INTERCODE = {  # results of each set, and the SHA-256 of their paths and contents
    "SQL, ReAct": (
        rf"results/sql/gpt-3\.5/ic_sql_react_10_turns|{DATABASES}",
        "bd28acb2c9f369c9c63aa5be2370ebf1e24c8a302ababb56f65f7adfdcf95cc0",
    ),
    "SQL, try again": (
        rf"results/sql/gpt-3\.5/ic_sql_multiturn_gpt-3\.5_10_turns|{DATABASES}",
        "f17cfee23e8ebab2181322535860457f7e3e691f0b966f04ce591f04057e735c",
    ),
    "Bash, ReAct": (
        r"results/bash/gpt-3\.5/ic_bash_react_10_turns_fs_\d",
        "cbbcffb11b262bdb117acb3b41080f202f8fc7625f5820bb76f3ca4618c0d93c",
    ),
    "Bash, try again": (
        r"results/bash/gpt-4/ic_bash_multiturn_gpt-4_10_turns_fs_\d",
        "d7e63346deda55d09ceeac5cb06b401884787f2a240b734ea945fbabc2832b8b",
    ),
}
INTERCODE_COMMIT = "c3e46d827cfc9d4c704ec078f7abf9f41e3191d8"
CALL = re.compile(r"(\w+)\[(.*)\]", re.DOTALL)


def of_intercode(name: str, data_home: Path | None, folder: Path | None) -> Found:
    """Return runs of models in an SQL or a Bash environment (MIT licence).

    A run is a success where it reached the full reward. SQL is grouped by the database of its
    question; Bash by task, with the file system known.
    """
    wanted, sha256 = INTERCODE[name]
    archive = Archive(
        "princeton-nlp/intercode", INTERCODE_COMMIT, rf"[^/]*/data/({wanted})\.json", sha256,
        f"results of {name}",
    )  # fmt: skip
    logs = {path: json.loads(text) for path, text in archive.contents(data_home).items()}
    database = {asked["query"]: asked["db"] for asked in logs.pop(DATABASES, ())}
    runs, environment = [], []
    for number, log in enumerate(logs.values(), start=1):
        for key, fields in log.items():
            environment.append(database.get(fields["query"], f"fs_{number}"))
            runs.append(intercode_run(f"{environment[-1]}/{key}", fields))
    if database:
        return Found(runs, outcomes(runs), environment)
    return Found(runs, outcomes(runs), [run.task for run in runs], environment)


def intercode_run(task: str, fields: Mapping[str, Any]) -> Run:
    """Return a run of its turns; the question, which is known before the first, is left out."""
    history = fields["turn_history"]
    columns = (
        history.get(name) for name in ("thoughts", "actions", "observations", "valid_action")
    )
    cells = (column or [None] * len(history["actions"]) for column in columns)
    steps = [intercode_turn(*turn) for turn in zip(*cells, strict=True)]
    return Run(task, steps, outcome=int(fields["summary"]["max_reward"] == 1), task=task)


def intercode_turn(thought: Any, action: Any, result: Any, is_valid: Any) -> Step:
    """Return a turn of an action, such as ``execute[ls]``, ``submit`` or a bare command."""
    text = str(action)
    call = CALL.fullmatch(text.strip())
    bare = "submit" if text.strip() == "submit" else "execute"
    name, arguments = call.groups() if call else (bare, text)
    seen = None if result is None else str(result)
    error = None if is_valid is None else not is_valid
    calls = [ToolCall(name, arguments, result=seen, error=error)]
    return Step("agent", str(thought or ""), tool_calls=calls, observation=seen)


GAMES = {  # SHA-256 of paths and contents of the results of each game
    "BabaIsAI": "fc042c05d73b052de31db0033616136686bfbbc1086c957aefc6a185c8e9722e",
    "BabyAI": "dfd3a817ffc692f5014c53b9b20109adb109ed306ff9216fc59dfd3eb629f9a2",
    "MiniHack": "7bcfaccbfd077b5a849c82e4dae5fdd8f904342257de22b8a2dabaf059f46948",
    "TextWorld": "406936a3a5216184cd373dff2c1e20b1bcecf31f8066610fde90a25ea8a4e925",
}
BALROG_COMMIT = "989931c5f7acb66ace99d423a480fd537d74e749"


def balrog_archive(game: str) -> Archive:
    """Return where the results of a game are, about 80 MB with all others; without a licence."""
    pattern = rf"[^/]*/submissions/LLM/([^/]+/{game.lower()}/.*_run_\d+)\.json"
    of_game = pattern, GAMES[game], f"results of {game}"
    return Archive("balrog-ai/experiments", BALROG_COMMIT, *of_game)


def balrog(game: str, data_home: Path | None) -> pd.DataFrame:
    """Return the episodes of 16 language models: agent, task, number of steps, and whether won."""
    results = balrog_archive(game).contents(data_home)
    episodes = [json.loads(content) for content in results.values()]
    return pd.DataFrame(
        {
            "agent": [file.partition("/")[0] for file in results],
            "task": [episode["task"] for episode in episodes],
            "n_steps": [episode["num_steps"] for episode in episodes],
            "won": [int(episode["progression"] == 1) for episode in episodes],
        },
        index=list(results),
    )


def balrog_moves(game: str, data_home: Path | None) -> dict[str, list[Step]]:
    """Return the moves of each episode, which stand in a CSV file beside its result."""
    archive = balrog_archive(game)
    tables = unpack(archive.path(data_home), archive.pattern.replace(r"\.json", r"\.csv"))
    return {name: list(moves_of(content)) for name, content in tables.items()}


def moves_of(content: bytes) -> Iterator[Step]:
    """Yield moves; the observation in the row of a move is what the game answered to it."""
    text = io.TextIOWrapper(io.BytesIO(content), "utf-8", "replace").read().replace("\0", "")
    for row in csv.DictReader(text.splitlines(keepends=True)):
        seen = row.get("Observation")
        calls = [ToolCall("move", {"to": row.get("Action")}, result=seen)]
        yield Step("agent", row.get("Reasoning") or "", tool_calls=calls, observation=seen)


GAME24 = f"{RAW}princeton-nlp/tree-of-thought-llm/ab400345c5ea39d28ea6d7d3be0e417b11113c87/logs/"
GAME24_FILE = "gpt-4_0.7_propose1_value3_greedy5_start900_end1000.json"
GAME24_SHA256 = "e08f019024c99e83e540f8feec99acf619f30b0cf047278a03f62ff45888571b"
HIGHEST = 60.0  # three times "sure", at 20 each
BASKETBALL = (
    f"{RAW}fivethirtyeight/checking-our-work-data/f6d5b2e1d6da2889345d381c41431f9a4ee208dd/"
)
BASKETBALL_FILE = "march_madness_in_game_men.csv"
BASKETBALL_SHA256 = "584b6ba54c71e034632801c1f046b82e6ee657d3037ffc1ed8c1ee9d90ad18fe"


def game24(data_home: Path | None, folder: Path | None = None) -> Found:
    """Return what GPT-4 thought of each step of its solutions of the game of 24 (MIT licence).

    A tree of thoughts takes three steps and an answer. After each, GPT-4 values what it has, and
    the five best paths go on: the paths were selected by these values. Grouped by puzzle.
    """
    url = f"{GAME24}game24/{GAME24_FILE}"
    file = retrieve(url, GAME24_FILE, GAME24_SHA256, data_home, download_if_missing=True)
    values, success, task = [], [], []
    for puzzle in json.loads(file.read_text(encoding="utf-8")):
        by_path = [dict(zip(s["new_ys"], s["values"], strict=True)) for s in puzzle["steps"]]
        for answer, info in zip(puzzle["ys"], puzzle["infos"], strict=True):
            lines = answer.splitlines(keepends=True)
            paths = ["".join(lines[: k + 1]) for k in range(len(by_path))]
            values.append([of[path] for of, path in zip(by_path, paths, strict=True)])
            success.append(info["r"])
            task.append(puzzle["idx"])
    cells = np.minimum(np.array(values), HIGHEST) / HIGHEST
    X = TrajectoryArray(cells.ravel(), [cells.shape[1]] * len(cells))
    return Found(X, np.array(success, dtype=np.int64), task)


def win_probability(data_home: Path | None, folder: Path | None = None) -> Found:
    """Return win probabilities during 401 basketball games (fivethirtyeight, CC BY 4.0).

    They are calibrated as they are, which few are: a control for what recalibrates. Each game is a
    group.
    """
    url = BASKETBALL + BASKETBALL_FILE
    path = retrieve(url, BASKETBALL_FILE, BASKETBALL_SHA256, data_home, download_if_missing=True)
    table = pd.read_csv(path)
    game = table["season"].astype(str) + " " + table["team1"] + " - " + table["team2"]
    X, y = TrajectoryArray.from_frame(
        table.assign(game=game, update=table.groupby(game).cumcount() + 1),
        id="game", step="update", value="prob1", outcome="prob1_outcome",
    )  # fmt: skip
    return Found(X, y, X.ids)


HORIZON = 30  # the last step that counts
MOST_RUNS = 750  # of a log


def make_set(found: Found) -> Found:
    """Leave out runs without an outcome, and take away all that is not one of the first steps.

    Nothing is known of a run but its steps: ids are numbers, and outcome, stop, task and agent are
    taken out of it.
    """
    target, groups = np.asarray(found.y), np.asarray(found.group).astype(str)
    rows = np.flatnonzero(np.isin(target, (0, 1)))
    if isinstance(found.X, TrajectoryArray):
        chosen = found.X[rows].truncate(np.minimum(found.X[rows].lengths, HORIZON))
        steps: Any = TrajectoryArray(chosen.cells, chosen.lengths)
    else:
        rows = evenly(rows, groups[rows])
        steps = [Run(str(k), turns_of(found.X[row])[:HORIZON]) for k, row in enumerate(rows)]
    known = None if found.identity is None else np.asarray(found.identity).astype(str)[rows]
    return Found(steps, target[rows].astype(np.int64), groups[rows], known)


def turns_of(run: Run) -> list[Step]:
    """Return the turns of agent and user, which are the steps of all entries."""
    return [step for step in run.steps if step.actor in ("agent", "user")]


def evenly(rows: NDArray[np.int64], group: NDArray[Any]) -> NDArray[np.int64]:
    """Draw runs where there are many, as many of each group as can be."""
    if len(rows) <= MOST_RUNS:
        return rows
    drawn = np.random.default_rng(0).permutation(len(rows))
    place = pd.Series(drawn).groupby(group[drawn], sort=False).cumcount().to_numpy()
    return rows[np.sort(drawn[np.argsort(place, kind="stable")][:MOST_RUNS])]


def of_tau_bench(data_home: Path | None, folder: Path | None) -> Found:
    """Runs of gpt-4o at airline tasks; grouped by task."""
    runs = list(read_runs(tau_bench_log(data_home)))
    return Found(runs, outcomes(runs), [run.task for run in runs])


def of_tau2(data_home: Path | None, folder: Path | None) -> Found:
    """Results of tau2-bench in a folder; grouped by domain and task, identity is the file."""
    if folder is None or not (folder / "tau2").is_dir():
        raise OSError("put results of tau2-bench into a folder tau2 of --data")
    runs = list(read_runs(folder / "tau2"))
    files = [Path(run.meta["file"]).stem for run in runs]
    domain = [re.search("airline|retail|telecom|$", file)[0] for file in files]
    group = [f"{of} {run.task}" for of, run in zip(domain, runs, strict=True)]
    return Found(runs, outcomes(runs), group, files)


def of_multi_swe_bench(data_home: Path | None, folder: Path | None) -> Found:
    """Runs of five models at Java issues; grouped by issue, identity is the model."""
    runs = list(read_runs(unpacked_log(MULTI_SWE_BENCH, data_home)))
    model = [Path(run.meta["file"]).parent.parent.name for run in runs]
    return Found(runs, outcomes(runs), [run.task for run in runs], model)


def of_balrog(which: str, data_home: Path | None, folder: Path | None) -> Found:
    """Moves of language models in games; folds by agent or by task, whichever are more."""
    episodes = balrog(which, data_home)
    moves = balrog_moves(which, data_home)
    by, other = sorted(("agent", "task"), key=lambda column: -episodes[column].nunique())
    episodes = episodes[[bool(moves.get(episode)) for episode in episodes.index]]
    runs = [Run(episode, moves[episode]) for episode in episodes.index]
    return Found(runs, episodes["won"], episodes[by], episodes[other])


def of_real_runs(model: str, task: str, is_log: bool, *folders: Path | None) -> Found:
    """Bundled runs of a small language model, or the mean probability of the tokens of each turn.

    Grouped by task.
    """
    real = load_real_runs(model=model, task=task)
    X = list(real.runs) if is_log else real.data["token_probability"]
    return Found(X, real.target, real.data.meta["question"])


def of_evaluator(which: str, data_home: Path | None, folder: Path | None) -> Found:
    """Probabilities that a judge states; each question is a group."""
    X, y = fetch_evaluator(which, data_home=data_home, return_X_y=True)
    return Found(X, y, X.ids)


SMALL_MODELS = {
    f"{title}, {task}": (model, task)
    for title, model in (("Gemma 3 270M", "gemma3_270m"), ("SmolLM2 135M", "smollm2_135m"))
    for task in ("ring", "parcel")
}
SOURCES: dict[str, Callable[[Path | None, Path | None], Found]] = {
    "tau-bench airline": of_tau_bench,
    "tau2-bench": of_tau2,
    **{f"InterCode {name}": partial(of_intercode, name) for name in INTERCODE},
    "multi-SWE-bench Java": of_multi_swe_bench,
    **{f"BALROG {game}": partial(of_balrog, game) for game in GAMES},
    **{name: partial(of_real_runs, *of, True) for name, of in SMALL_MODELS.items()},
    "HotpotQA, judge": partial(of_evaluator, "hotpotqa"),
    "GSM8K, judge": partial(of_evaluator, "gsm8k"),
    "MATH, judge": partial(of_evaluator, "math"),
    "MMLU-Pro, judge": partial(of_evaluator, "mmlupro"),
    "game of 24, GPT-4's values": game24,
    **{f"{name}: tokens": partial(of_real_runs, *of, False) for name, of in SMALL_MODELS.items()},
    "basketball, win probabilities": win_probability,
}
