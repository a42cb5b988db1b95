"""The true chance that a parcel arrives, given the run so far, by the model's own probabilities.

The first wrong hand ends a run, the notes of a task are known, and an answer is drawn from the
probabilities that the server's sampler leaves. So the chance after a step is 0 after a wrong hand,
1 after the last right one, and otherwise the sum over all texts of the next answer that name the
right person, each times the chance of the rest of the run that it leads to.
"""

from __future__ import annotations

import json
import pathlib
from collections import Counter

import numpy as np
from agents import N_TOKENS, TEMPERATURE, Model, word_of
from scipy.stats import chi2
from serve import MODELS, served
from tasks import Parcel
from tqdm import tqdm

from trajscore import TrajectoryArray
from trajscore.datasets import load_real_runs
from trajscore.io import Run

KEPT = 40  # tokens that the sampler keeps at most
RARE = 1e-3  # a text less likely than this goes on as the likeliest does
N_CHECKED, N_DRAWS = 50, 100  # prompts of a model that are asked anew, and answers to each


class Chances:
    """Chances of one model; what has been asked is kept."""

    def __init__(self, model: Model):
        self.model = model
        self.known: dict[tuple[str, str], tuple[float, float, float]] = {}

    def next_tokens(self, prompt: str, before: list[int]) -> list[tuple[int, str, float]]:
        """Return each token that may come next: its number, its text and its probability."""
        choice, _ = self.model.complete(
            [prompt, *before],
            also={"post_sampling_probs": True},
            temperature=TEMPERATURE,
            logprobs=KEPT,
            max_tokens=1,
            stop=[],
        )
        (token,) = choice.logprobs.content
        return [(one["id"], one["token"], one["prob"]) for one in token["top_probs"]]

    def right_texts(self, prompt: str, name: str) -> Counter[str]:
        """Return the probability of each answer whose first word is `name`."""
        texts: Counter[str] = Counter()
        begun: list[tuple[list[int], str, float]] = [([], "", 1.0)]
        while begun:
            before, text, chance = begun.pop()
            for number, piece, share in self.next_tokens(prompt, before):
                line, line_end, _ = (text + piece).partition("\n")
                if line_end or not piece or len(before) + 1 == N_TOKENS:
                    if word_of(line) == name:
                        texts[line.rstrip()] += chance * share
                elif name.startswith(word_of(line)):
                    begun.append(([*before, number], line, chance * share))
        return texts

    def after(self, text: str, world: Parcel, step: int) -> tuple[float, float, float]:
        """Return the chances of the run `text` after `step` right hands.

        That it arrives; a bound of the error of that; that the next hand is right.
        """
        if step == len(world.chain) - 1:
            return 1.0, 0.0, 1.0
        here, name = world.chain[step : step + 2]
        prompt = f"{text}{here} says: {world.notes[here]}\n{world.ask}"
        if (prompt, name) not in self.known:
            texts = self.right_texts(prompt, name.lower())
            arrives, error, chances = 0.0, 0.0, []
            for line, share in texts.most_common():
                if share >= RARE or not chances:
                    on, unsure, _ = self.after(f"{prompt}{line}\n", world, step + 1)
                else:
                    on, unsure = chances[0], 1.0
                chances.append(on)
                arrives += share * on
                error += share * unsure
            # of six digits, as the server's are in single precision
            self.known[prompt, name] = round(arrives, 6), error, round(texts.total(), 6)
        return self.known[prompt, name]

    def of_run(self, run: Run) -> dict[str, list[float]]:
        """Return, for each step of a run, the chances after it, and that it would be right."""
        world = Parcel(int(run.task.rpartition("-")[2]))
        said = [step.text for step in run.steps if step.actor == "agent"]
        text, chances = world.examples, [self.after(world.examples, world, 0)]
        for step, name in enumerate(said, 1):
            here, right = world.chain[step - 1 : step + 1]
            # all answers of the log are a name after a space
            text = f"{text}{here} says: {world.notes[here]}\n{world.ask} {name}\n"
            is_right = name.lower() == right.lower()
            chances.append(self.after(text, world, step) if is_right else (0.0, 0.0, 0.0))
        arrives, error, right = zip(*chances, strict=True)
        return {"q": arrives[1:], "error": error[1:], "right": right[:-1]}

    def drawn_anew(self, rng: np.random.Generator) -> list[tuple[float, float]]:
        """Return, of random prompts that leave a doubt, the chance to be right and its share."""
        doubts = [(key, p) for key, (_, _, p) in self.known.items() if 0 < p < 1]
        checked = []
        for k in rng.choice(len(doubts), N_CHECKED, replace=False):
            (prompt, name), p = doubts[k]
            answers = (
                self.model.complete(prompt, temperature=TEMPERATURE, seed=int(seed))[0].text
                for seed in rng.integers(2**31, size=N_DRAWS)
            )
            checked.append((p, np.mean([word_of(answer) == name.lower() for answer in answers])))
        return checked


def compute(model: str, path: pathlib.Path) -> None:
    """Write the chances of all runs of a model, and the prompts that were asked anew."""
    with served(model, threads=1) as url:
        chances = Chances(Model(url, 0))
        log = [run for run in load_real_runs(model=model).runs if run.extra["family"] == "parcel"]
        runs = {run.id: chances.of_run(run) for run in tqdm(log, desc=model)}
        drawn = chances.drawn_anew(np.random.default_rng(0))
    path.write_text(json.dumps({"runs": runs, "drawn": drawn}))


def checks(of_model: dict) -> dict[str, float]:
    """Hold the chances against answers drawn anew, and against what the runs did."""
    p, share = np.transpose(of_model["drawn"])
    statistic = (N_DRAWS * (share - p) ** 2 / (p * (1 - p))).sum()
    runs = of_model["runs"].values()
    right = np.concatenate([run["right"] for run in runs])
    did = np.concatenate([[1] * (len(run["q"]) - 1) + [run["q"][-1]] for run in runs])
    spread = np.sqrt((right * (1 - right)).sum())
    return {
        "n_drawn": len(p),
        "drawn_chi2": statistic,
        "drawn_p_value": chi2.sf(statistic, len(p)),
        "drawn_mean_z": ((share - p).sum() / np.sqrt((p * (1 - p)).sum() / N_DRAWS)),
        "n_steps": len(right),
        "n_certain": int(np.isin(right, (0, 1)).sum()),
        "n_contradicted": int(((right == 0) & (did == 1) | (right == 1) & (did == 0)).sum()),
        "steps_z": (did - right).sum() / spread,
        "largest_error": max(max(run["error"]) for run in runs),
    }


def write(folder: pathlib.Path, data: pathlib.Path, figures: pathlib.Path) -> None:
    """Write the chances of all runs as one array, and what checks them."""
    checked, traces = {}, {}
    for model in MODELS:
        path = folder / f"{model}-chances.json"
        if not path.exists():
            compute(model, path)
        of_model = json.loads(path.read_text())
        checked[model] = checks(of_model)
        traces |= {name: run["q"] for name, run in of_model["runs"].items()}
    TrajectoryArray.from_list(traces.values(), ids=list(traces)).save(data)
    figures.write_text(json.dumps(checked, indent=1, default=float) + "\n")
    print(json.dumps(checked, indent=1, default=float))
