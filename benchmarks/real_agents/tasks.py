"""Two families of tasks whose outcome is known: find the ring, and carry a parcel.

In ``ring`` an agent walks through rooms with notes until it takes the ring, or until its budget of
steps is spent. In ``parcel`` it hands a parcel on until the last person has it; one wrong hand ends
the run, so that a run's length tells much of its outcome. Examples in a prompt share no name with
the tasks.
"""

from __future__ import annotations

import itertools
import random

RING_BUDGET = 8
PLACES = [
    "hall",
    "barn",
    "attic",
    "garden",
    "kitchen",
    "cellar",
    "tower",
    "cave",
    "lake",
    "forest",
    "market",
    "church",
]
RING_EXAMPLES = """You are in the mill. A note says: the ring is in the farm.
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
RING_PLAIN = ("the ring is in the {right}.", "look in the {right}.")
RING_TRICKY = (
    "the ring is in the {right}, not in the {wrong}.",
    "it is not in the {wrong}, look in the {right}.",
    "it was in the {wrong}, now it is in the {right}.",
    "look in the {right}, not in the {wrong}.",
)

PEOPLE = [
    "Anna",
    "Ben",
    "Carl",
    "Dora",
    "Emil",
    "Hugo",
    "Ida",
    "Kate",
    "Leo",
    "Mary",
    "Olga",
    "Paul",
    "Rosa",
    "Sam",
    "Tom",
    "Vera",
]
PARCEL_EXAMPLES = """John says: take it to Lucy.
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
PARCEL_PLAIN = ("take it to {right}.", "it is for {right}.")
PARCEL_TRICKY = (
    "not {wrong}, it is for {right}.",
    "take it to {right}, not to {wrong}.",
    "{wrong} is away, take it to {right}.",
    "it was for {wrong}, now for {right}.",
)


def _notes(rng, chain, others, plain, tricky):
    """Draw what each stop of `chain` says of the next one; half of them name a wrong one, too."""
    notes = {}
    for here, right in itertools.pairwise(chain):
        note = rng.choice(tricky if rng.random() < 0.5 else plain)
        notes[here] = note.format(right=right, wrong=rng.choice(others))
    return notes


class Ring:
    """Find the ring: one to four notes lead to it; ``take`` ends the run, or the budget does."""

    examples = RING_EXAMPLES
    system = "Find the ring. Answer with a place, or with take where the ring is."
    ask = "Go to:"
    was_right = "Was that right, yes or no? Answer:"
    will_succeed = "Will the ring be taken in the end, yes or no? Answer:"
    percent = "Chance that the ring will be taken, in percent:"

    def __init__(self, seed: int):
        rng = random.Random(f"ring {seed}")
        self.chain = rng.sample(PLACES, rng.randint(2, 5))
        others = [place for place in PLACES if place not in self.chain]
        self.notes = _notes(rng, self.chain, others, RING_PLAIN, RING_TRICKY)
        self.here = self.chain[0]
        self.left = RING_BUDGET

    def see(self) -> str:
        """Return what the agent reads."""
        if self.here == self.chain[-1]:
            return f"You are in the {self.here}. The ring is here."
        if self.here in self.notes:
            return f"You are in the {self.here}. A note says: {self.notes[self.here]}"
        return f"You are in the {self.here}. Nothing here."

    def act(self, word: str) -> str | None:
        """Do `word`; return why the run ended, or None."""
        self.left -= 1
        if word == "take":
            return "success" if self.here == self.chain[-1] else "failure"
        if word in PLACES:
            self.here = word
        return None if self.left else "budget"


class Parcel:
    """Carry a parcel: three to six people hand it on; the last has it, or a wrong one."""

    examples = PARCEL_EXAMPLES
    system = "Hand the parcel on to the right person. Answer with a name."
    ask = "To:"
    was_right = "Was that right, yes or no? Answer:"
    will_succeed = "Will the parcel arrive in the end, yes or no? Answer:"
    percent = "Chance that the parcel will arrive, in percent:"

    def __init__(self, seed: int):
        rng = random.Random(f"parcel {seed}")
        self.chain = rng.sample(PEOPLE, rng.randint(4, 7))
        others = [person for person in PEOPLE if person not in self.chain]
        self.notes = _notes(rng, self.chain, others, PARCEL_PLAIN, PARCEL_TRICKY)
        self.at = 0

    def see(self) -> str:
        """Return what the agent reads."""
        here = self.chain[self.at]
        return f"{here} says: {self.notes[here]}"

    def act(self, word: str) -> str | None:
        """Do `word`; return why the run ended, or None."""
        self.at += 1
        if word != self.chain[self.at].lower():
            return "failure"
        return "success" if self.at == len(self.chain) - 1 else None


TASKS = {"ring": Ring, "parcel": Parcel}
