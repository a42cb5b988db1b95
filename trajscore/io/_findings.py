"""What is wrong with a log, and what was not used, in sentences for people."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from trajscore.core.errors import ArgumentError
from trajscore.core.outcomes import (
    bare_name,
    note_on_words,
    outcome_hint,
    refuse_words,
    sounds_bad,
    turned_note,
)
from trajscore.core.stops import notes_on_stops
from trajscore.core.values import number_of, unknown_name
from trajscore.io._run import leftover
from trajscore.io._selection import Selection, Tally
from trajscore.io.fields import note_on_trials
from trajscore.io.outcome_tables import examples, unmatched
from trajscore.io.unread import shorten
from trajscore.io.vocabulary import ROLES, WORDS


@dataclass
class Findings:
    """The counts of a log as sentences; they name arguments as `ArgumentError` does."""

    selection: Selection
    tally: Tally = field(default_factory=Tally)

    def check_names(self, file: str) -> None:
        """Refuse a log in which a named field is nowhere, or an outcome is a word or a list."""
        tally = self.tally
        fields = self.selection.fields
        if tally.words:
            bare = bare_name(fields.outcome or "")
            if bare == fields.outcome:
                bare = ""
            refuse_words(tally.words, tally.n_runs, self.selection.meanings, f"{file}: ", bare)
        for part in ("outcome", "confidence", "stop_reason"):
            name = getattr(fields, part)
            in_table = part == "outcome" and self.selection.table is not None
            if name is not None and not tally.used[part, name] and tally.n_runs and not in_table:
                raise ArgumentError(f"{file}: {{argument}}: {self._not_there(part, name)}", part)
        for role, actor in self.selection.roles.items():
            usual_actor = ROLES.get(role.strip().lower())
            if usual_actor in ("system", "tool"):
                usual_actor = "environment"
            if not tally.used["roles", role] and usual_actor != actor:
                problem = unknown_name("role", role, [*tally.unknown_roles, *tally.names_of_users])
                if usual_actor is not None:
                    problem = f"the role {role!r} is always the {usual_actor}'s; leave it out"
                raise ArgumentError(f"{file}: {{argument}}: {problem}", "roles")

    def _not_there(self, part: str, name: str) -> str:
        """Say that a named field is nowhere, or holds nothing of use, and which there are."""
        owner = "run"
        names = list(+self.tally.names_of_runs)
        if part == "confidence":
            owner = "turn"
            names = list(self.tally.names_of_turns)
            if bare_name(name) in names:
                return f"no turn has a number in its field {name!r}; name another field"
        if part != "stop_reason" and bare_name(name) != name:
            names = list(map(outcome_hint, names))
        return f"{unknown_name(f'field of a {owner}', name, names)}; or leave {{argument}} out"

    def outcome_problem(self) -> str:
        """Say how to name the outcome where no run has one; "" otherwise."""
        tally = self.tally
        table = self.selection.table
        is_wanted = table is not None and not table  # an empty one says that none is known
        if tally.n_with_outcome or not tally.n_runs or is_wanted:
            return ""
        likely = tally.likely_outcomes
        names = sorted(+tally.names_of_runs, key=likely.__getitem__, reverse=True)
        there = ""
        if names:
            there = f" (the runs have {examples(names)})"
        named = ""
        if likely:
            named = f"={outcome_hint(names[0])}"
        text = (
            f"no run has an outcome{there}; name its field with {{argument:outcome{named}}}, or "
            f"give a table of run ids and outcomes with {{argument:outcomes}}"
        )
        if table is not None:
            text = (
                f"no run has an outcome: the ids of the log ({examples(tally.ids)}) are not in the "
                f"table of outcomes ({examples(table)}); name the field of ids with {{argument:id}}"
            )
        shorten(problem := ArgumentError(text))
        return problem.text

    def problem(self) -> str:
        """Say which runs cannot be distinguished, or who acts in them; "" otherwise."""
        return self.id_problem() or self.role_problem() or self._text_problem()

    def _text_problem(self) -> str:
        """Say which texts are not read, where half of the turns hold nothing that is known."""
        unread = self.tally.unread
        n_empty = self.tally.odd["turn"]
        if 2 * n_empty <= self.tally.n_turns or unread.total() < n_empty:
            return ""
        steps = next(iter(unread)).partition(".")[0]
        return (
            f"{number_of(n_empty, 'turn')} without any content that is known, and texts not read "
            f"in {examples(unread)}; name them, {{argument:fields=steps={steps},text=NAME}}"
        )

    def role_problem(self) -> str:
        """Ask who acts under names of users, or under roles that have most turns; or ""."""
        tally = self.tally
        roles = self.selection.roles
        names = Counter(leftover(tally.names_of_users, roles))
        problem = f"{number_of(names.total(), 'turn')} of users with several names, or an agent's"
        more = ",NAME=user" * (len(names) == 1)  # who may stand under the agent's role
        if not names:
            names = tally.unknown_roles
            if names.total() <= tally.n_turns:
                return ""
            problem = f"{names.total():,} turns of roles not known, {tally.n_turns:,} of the agent"
        listed = [name for name, _ in names.most_common()]
        return (
            f"{problem} ({examples(listed)}); say who is the agent, the user or the environment, "
            f"such as {{argument:roles={listed[0]}=agent{more}}}"
        )

    def id_problem(self) -> str:
        """Say how to name the id where several runs share one; "" otherwise."""
        shared = {name: n for name, n in self.tally.ids.items() if n > 1}
        if not shared:
            return ""
        name, n_runs = next(iter(shared.items()))
        more = ""
        if len(shared) > 1:
            more = f", and {len(shared) - 1} other ids are shared too"
        remedy = (
            "save each once, with all its messages, or name the id with {argument:id}, such as "
            "file and id"
        )
        if self.tally.n_beginnings() >= len(shared):
            remedy = "each goes on from the one before it, so keep the longest of each id"
        return f"{n_runs} runs have the id {name!r}{more}; {remedy}"

    def notes(self) -> list[str]:
        """Say what of the log was not used, one sentence each."""
        tally = self.tally
        table = self.selection.table
        notes = [*self._readings(), *notes_on_stops(tally.stops, tally.n_runs)]
        if table and tally.n_with_outcome:
            n_matched = len(tally.in_table)
            notes += unmatched(len(table) - n_matched, tally.n_runs - n_matched)
        for (owner, name), n in sorted((+tally.unused).items()):
            part = "confidence"
            if owner == "run":
                part = "outcome"
            to_use = f"; to use, pass {{argument:{part}={outcome_hint(name)}}}"
            if owner == "run" and table is not None:
                to_use = ", but the table of outcomes"
            notes.append(f"{number_of(n, 'score')} of {owner}s named {name!r} not used{to_use}")
        return [*notes, *self._counts()]

    def _readings(self) -> Iterator[str]:
        """Say how outcomes and confidences were read, where names or words are not plain."""
        fields = self.selection.fields
        name = fields.outcome or ""
        confidence = fields.confidence or ""
        if bare_name(name) != name and self.tally.n_with_outcome:
            yield turned_note(bare_name(name))
        if words := note_on_words(self.tally.texts, self.selection.meanings):
            yield words
        if self.tally.likely_outcomes and (problem := self.outcome_problem()):
            yield problem
        if bare_name(confidence) == confidence and sounds_bad(confidence):
            yield (
                f"confidence: high {confidence!r} stands for success; if it stands for failure, "
                f"pass {{argument:confidence={outcome_hint(confidence)}}}"
            )

    def _counts(self) -> Iterator[str]:
        """Say what no part of a run used, or what could not be made of it."""
        tally = self.tally
        for kind, (word, sentence) in WORDS["odd"].items():
            if n := tally.odd[kind]:
                yield f"{number_of(n, word)} {sentence}"
        if tally.n_scored and not tally.is_scored:
            yield (
                f"log-probabilities of {number_of(tally.n_scored, 'turn')} are all 0.0, which "
                f"servers write where they record none, not used"
            )
        if unknown := tally.unknown_roles:
            ((role, _),) = unknown.most_common(1)
            yield (
                f"{number_of(unknown.total(), 'turn')} of roles that are not known, taken as the "
                f"environment's; if it is an agent's, pass {{argument:roles={role}=agent}}"
            )
        for counts, noun in (
            (tally.unread, "text"),
            (tally.unread_logprobs, "log-probability field"),
        ):
            if counts:
                names = examples(name for name, _ in counts.most_common())
                yield f"{number_of(counts.total(), noun)} not read, in {names}"
        yield from note_on_trials(tally.trials)
        if n := tally.n_beginnings():
            remedy = "keep the longest"
            if tally.n_with_session:
                remedy = "pass {argument:id=session}"
            yield (
                f"{number_of(n, 'run')} of {tally.n_runs:,} hold only the beginning of another; if "
                f"they are of one run, {remedy}"
            )
