"""The true chance that a parcel arrives, given the run so far, by the model's own probabilities.

The first wrong hand ends a run, the notes of a task are known, and an answer is drawn from the
probabilities that the server's sampler leaves. So the chance after a step is 0 after a wrong hand,
1 after the last right one, and otherwise the sum over all texts of the next answer that name the
right person, each times the chance of the rest of the run that it leads to.
"""

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
from trajscore.io import Run, Step

TOP_K, TOP_P, MIN_P = 40, 0.95, 0.05  # of the server's sampler, before the temperature
RARE = 0.005  # a text less likely than this is cut short, and goes on as the likeliest one does
N_CHECKED, N_DRAWS = 50, 100  # prompts of a model that are asked anew, and answers to each


def prompt_after(text: str, world: Parcel, step: int) -> str:
    """Return what the model completes after `step` hands, `text` being the run so far."""
    here = world.chain[step]
    return f"{text}{here} says: {world.notes[here]}\n{world.ask}"


class LoggedRun:
    """A run of the log: its task, the agent's steps, and the text before and after each."""

    def __init__(self, run: Run):
        self.world = Parcel(int(run.task.rpartition("-")[2]))
        self.steps = [step for step in run.steps if step.actor == "agent"]
        self.won = run.outcome == 1
        self.texts = [self.world.examples]
        for k, step in enumerate(self.steps):
            prompt = prompt_after(self.texts[-1], self.world, k)
            self.texts.append(f"{prompt} {step.text}\n")  # all answers are a name after a space

    def right_name(self, k: int) -> str:
        """Return the name that is right at step `k`."""
        return self.world.chain[k + 1].lower()


class Chances:
    """Chances of one model; what has been asked is kept."""

    def __init__(self, model: Model):
        self.model = model
        self.known: dict[str, tuple[float, float]] = {}

    def next_tokens(self, prompt: str, before: list[int]) -> list[tuple[int, str, float]]:
        """Return each token that may come next: its number, its text and its probability."""
        choice, _ = self.model.complete(
            [prompt, *before],
            also={"post_sampling_probs": True},
            temperature=TEMPERATURE,
            logprobs=TOP_K,
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
                ended = line_end or not piece or len(before) + 1 == N_TOKENS
                if ended or chance * share < RARE:
                    if word_of(line) == name:
                        texts[line.rstrip()] += chance * share
                elif name.startswith(word_of(line)):
                    begun.append(([*before, number], line, chance * share))
        return texts

    def after(self, text: str, world: Parcel, step: int, odd: float = 1) -> tuple[float, float]:
        """Return the chances, after `step` right hands, to arrive, and that the next is right.

        `odd` is how likely the text is, where answers in it are not the likeliest right ones.
        """
        if step == len(world.chain) - 1:
            return 1.0, 1.0
        prompt = prompt_after(text, world, step)
        if prompt not in self.known:
            texts = self.right_texts(prompt, world.chain[step + 1].lower())
            arrives, likeliest = 0.0, None
            for line, share in texts.most_common():
                rest = likeliest
                if likeliest is None:
                    rest, _ = self.after(f"{prompt}{line}\n", world, step + 1, odd)
                    likeliest = rest
                elif odd * share >= RARE:
                    rest, _ = self.after(f"{prompt}{line}\n", world, step + 1, odd * share)
                arrives += share * rest
            # of six digits, as the server's are in single precision
            self.known[prompt] = round(arrives, 6), round(texts.total(), 6)
        return self.known[prompt]

    def of_run(self, run: LoggedRun) -> dict[str, list[float]]:
        """Return, for each step, the chance after it, and before it that it would be right."""
        n_right = len(run.steps) if run.won else len(run.steps) - 1
        chances = [self.after(run.texts[k], run.world, k) for k in range(n_right + 1)]
        arrives = [arrives for arrives, _ in chances[1:]] + [0.0] * (not run.won)
        return {"q": arrives, "right": [right for _, right in chances][: len(run.steps)]}

    def drawn_anew(self, run: LoggedRun, k: int, rng: np.random.Generator) -> list[float]:
        """Ask for step `k` again: return its chance, and the share of right answers."""
        prompt, name = prompt_after(run.texts[k], run.world, k), run.right_name(k)
        # the server computes a prompt that it knows otherwise than a new one: as those that follow
        _, p = (self.right_texts(prompt, name).total() for _ in range(2))
        seeds = rng.integers(2**31, size=N_DRAWS).tolist()
        answers = [self.model.complete(prompt, temperature=TEMPERATURE, seed=s)[0] for s in seeds]
        return [p, float(np.mean([word_of(answer.text) == name for answer in answers]))]


def logged_chance(step: Step, name: str) -> float:
    """Return the chance of `name` by the log-probabilities that the run itself had.

    NaN where a token that the sampler leaves begins the name without being all of it.
    """
    words = [word_of(token) for token, _ in step.top_logprobs[0]]
    p = np.exp([logprob for _, logprob in step.top_logprobs[0]])
    left = (np.cumsum(p) - p < TOP_P) & (p >= MIN_P * p[0])
    share = np.where(left, p ** (1 / TEMPERATURE), 0)
    begins = [name.startswith(word) and word != name for word in words]
    whole = np.array([word == name for word in words])
    return np.nan if (left & begins).any() else float(share[whole].sum() / share.sum())


def checks(log: dict[str, LoggedRun], chances: dict, drawn: list) -> dict[str, float]:
    """Hold the chances against answers drawn anew, and against what the runs did."""
    p, share = np.round(np.transpose(drawn), 6)
    in_doubt = (p > 0) & (p < 1)  # asked again, a few leave no doubt
    statistic = (N_DRAWS * (share - p) ** 2)[in_doubt] / (p * (1 - p))[in_doubt]
    right = np.concatenate([chances[name]["right"] for name in log])
    did = np.concatenate([[1] * (len(run.steps) - 1) + [run.won] for run in log.values()])
    logged = np.array(
        [logged_chance(step, run.right_name(k)) for run in log.values()
         for k, step in enumerate(run.steps)]
    )  # fmt: skip
    doubt = (right > 0) & (right < 1)
    known = np.isfinite(logged)
    return {
        "n_drawn": int(in_doubt.sum()),
        "drawn_chi2": statistic.sum(),
        "drawn_p_value": chi2.sf(statistic.sum(), in_doubt.sum()),
        "n_steps": len(right),
        "n_certain": int((~doubt).sum()),
        "n_contradicted": int((did != right)[~doubt].sum() + (share != p)[~in_doubt].sum()),
        "steps_z": (did - right).sum() / np.sqrt((right * (1 - right)).sum()),
        "logged_z": (did - logged)[known].sum() / np.sqrt((logged * (1 - logged))[known].sum()),
        "n_logged_contradicted": int((did != logged)[known & np.isin(logged, (0, 1))].sum()),
        "off_in_doubt": np.sqrt(((right - logged)[known & doubt] ** 2).mean()),
        "off": np.sqrt(((right - logged)[known] ** 2).mean()),
    }


def compute(model: str, log: dict[str, LoggedRun]) -> dict:
    """Return the chances of all runs of a model, and those of prompts that were asked anew."""
    with served(model, threads=1) as url:
        asked = Chances(Model(url, 0))
        chances = {name: asked.of_run(run) for name, run in tqdm(log.items(), desc=model)}
        doubts = [
            (name, k) for name in log for k, p in enumerate(chances[name]["right"]) if 0 < p < 1
        ]
        rng = np.random.default_rng(0)
        chosen = [doubts[k] for k in rng.choice(len(doubts), N_CHECKED, replace=False)]
        drawn = [asked.drawn_anew(log[name], k, rng) for name, k in tqdm(chosen, desc="drawn")]
    return {"chances": chances, "drawn": drawn}


def write(folder: pathlib.Path, data: pathlib.Path, figures: pathlib.Path) -> None:
    """Write the chances of all runs as one array, and what checks them."""
    checked, traces = {}, {}
    for model in MODELS:
        runs = [run for run in load_real_runs(model=model).runs if run.extra["family"] == "parcel"]
        log, path = {run.id: LoggedRun(run) for run in runs}, folder / f"{model}-chances.json"
        if not path.exists():
            path.write_text(json.dumps(compute(model, log)))
        of_model = json.loads(path.read_text())
        checked[model] = checks(log, **of_model)
        traces |= {name: of_model["chances"][name]["q"] for name in log}
    TrajectoryArray.from_list(list(traces.values()), ids=list(traces)).save(data)
    figures.write_text(json.dumps(checked, indent=1, default=float) + "\n")
    print(json.dumps(checked, indent=1, default=float))
