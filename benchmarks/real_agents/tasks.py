"""Two families of tasks whose outcome is known: find the ring, and carry a parcel.

In ``ring`` an agent walks through rooms with notes until it takes the ring, or until its budget of
steps is spent. In ``parcel`` it hands a parcel on until the last person has it; one wrong hand ends
the run, so that a run's length tells much of its outcome. Examples in a prompt share no name with
the tasks.
"""

import itertools
import random

# fmt: off
PLACES = (
    "hall", "barn", "attic", "garden", "kitchen", "cellar", "tower", "cave", "lake", "forest",
    "market", "church",
)
PEOPLE = (
    "Anna", "Ben", "Carl", "Dora", "Emil", "Hugo", "Ida", "Kate", "Leo", "Mary", "Olga", "Paul",
    "Rosa", "Sam", "Tom", "Vera",
)
# fmt: on


class Task:
    """A chain of places or people to go along, each with a note about the next one.

    A subclass says what is drawn (`names`, `lengths` of the chain, notes that name the right one
    alone, and a wrong one, too), what the prompt and its questions hold, what the agent sees
    (`see`), and why the run ended, if it did, by an action (`act`).
    """

    was_right = "Was that right, yes or no? Answer:"

    def __init__(self, seed: int):
        rng = random.Random(f"{type(self).__name__.lower()} {seed}")
        self.chain = rng.sample(self.names, rng.randint(*self.lengths))
        others = [name for name in self.names if name not in self.chain]
        self.notes = {}
        for here, right in itertools.pairwise(self.chain):
            note = rng.choice(self.tricky if rng.random() < 0.5 else self.plain)
            self.notes[here] = note.format(right=right, wrong=rng.choice(others))
        self.here, self.n_actions = self.chain[0], 0


class Ring(Task):
    """Find the ring: one to four notes lead to it; ``take`` ends the run, or the budget does."""

    budget = 8
    names, lengths = PLACES, (2, 5)
    plain = ("the ring is in the {right}.", "look in the {right}.")
    tricky = (
        "the ring is in the {right}, not in the {wrong}.",
        "it is not in the {wrong}, look in the {right}.",
        "it was in the {wrong}, now it is in the {right}.",
        "look in the {right}, not in the {wrong}.",
    )
    system = "Find the ring. Answer with a place, or with take where the ring is."
    examples = """You are in the mill. A note says: the ring is in the farm.
Go to: farm
You are in the farm. The ring is here.
Go to: take

You are in the bridge. A note says: it is not in the inn, look in the school.
Go to: school
You are in the school. A note says: the ring is in the palace, not in the temple.
Go to: palace
You are in the palace. The ring is here.
Go to: take

You are in the harbour. A note says: it was in the well, now it is in the stable.
Go to: inn
You are in the inn. Nothing here.
Go to: stable
You are in the stable. The ring is here.
Go to: take

"""
    ask = "Go to:"
    will_succeed = "Will the ring be taken in the end, yes or no? Answer:"
    percent = "Chance that the ring will be taken, in percent:"

    def see(self) -> str:
        if self.here == self.chain[-1]:
            return f"You are in the {self.here}. The ring is here."
        if self.here in self.notes:
            return f"You are in the {self.here}. A note says: {self.notes[self.here]}"
        return f"You are in the {self.here}. Nothing here."

    def act(self, word: str) -> str | None:
        self.n_actions += 1
        if word == "take":
            return "success" if self.here == self.chain[-1] else "failure"
        if word in self.names:
            self.here = word
        return "budget" if self.n_actions == self.budget else None


class Parcel(Task):
    """Carry a parcel: three to six people hand it on; the last has it, or a wrong one."""

    names, lengths = PEOPLE, (4, 7)
    plain = ("take it to {right}.", "it is for {right}.")
    tricky = (
        "not {wrong}, it is for {right}.",
        "take it to {right}, not to {wrong}.",
        "{wrong} is away, take it to {right}.",
        "it was for {wrong}, now for {right}.",
    )
    system = "Hand the parcel on to the right person. Answer with a name."
    examples = """John says: take it to Lucy.
To: Lucy
Lucy says: not Mark, it is for Nina.
To: Nina

Peter says: Alice is away, take it to Frank.
To: Frank
Frank says: it is for Oscar.
To: Oscar
Oscar says: it was for Jane, now for David.
To: David

"""
    ask = "To:"
    will_succeed = "Will the parcel arrive in the end, yes or no? Answer:"
    percent = "Chance that the parcel will arrive, in percent:"

    def see(self) -> str:
        return f"{self.here} says: {self.notes[self.here]}"

    def act(self, word: str) -> str | None:
        self.n_actions += 1
        self.here = self.chain[self.n_actions]
        if word != self.here.lower():
            return "failure"
        return "success" if self.here == self.chain[-1] else None


TASKS = {"ring": Ring, "parcel": Parcel}
