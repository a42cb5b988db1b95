"""What is wrong with a log, and what was not used, in sentences for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from trajscore.core.errors import ArgumentError
from trajscore.core.meanings import (
    bare_name,
    note_on_words,
    outcome_candidates,
    outcome_hint,
    refuse_words,
    sounds_bad,
    turned_note,
)
from trajscore.core.stops import notes_on_stops
from trajscore.core.values import number_of, unknown_name
from trajscore.io._selection import Selection
from trajscore.io.fields import LAST
from trajscore.io.outcome_tables import examples, unmatched
from trajscore.io.tally import Tally

_MAX_CANDIDATES = 5
_MAX_EXAMPLES = 3
_ODD = {  # the word to count, and what is said of them
    "turn": ("turn", "without any content that is known"),
    "content": ("turn", "with content of an unknown form, kept as JSON"),
    "call": ("call", "of a tool without a name"),
    "unanswered": ("call", "of a model without an answer, which is not a turn"),
    "aside": ("message", "of subagents, other branches or the program, or taken back, not used"),
    "replaced_scores": ("score", "with another value than one of the same name; the last counts"),
    "durations": (
        "run",
        "with the lines in the order of the file: small times fall, as durations do",
    ),
    "lines_of_run": ("line", "without anything that a step holds, taken as fields of the run"),
    "without_role": ("turn", "without a role, where others have one, taken as the agent's"),
    "result": ("result", "of a tool without its call, kept with the turn before it"),
}
_MAX_ROLES = 12


@dataclass
class Findings:
    """The counts of a log as sentences; they name arguments as `ArgumentError` does."""

    selection: Selection
    tally: Tally = field(default_factory=Tally)

    def check_names(self, file: str) -> None:
        """Refuse a log in which a named field is nowhere, or an outcome is a word."""
        tally, fields = self.tally, self.selection.fields
        if tally.words:
            bare = bare_name(fields.outcome or "")
            bare = bare if bare != fields.outcome else ""
            refuse_words(tally.words, tally.n_runs, self.selection.meanings, f"{file}: ", bare)
        self._refuse_lists(file)
        for part in ("outcome", "confidence", "stop_reason"):
            name = getattr(fields, part)
            if name is None or tally.used[part, name] or not tally.n_runs:
                continue
            if part == "outcome" and self.selection.table is not None:  # a column of the table
                continue
            raise ArgumentError(f"{file}: {{argument}}: {self._not_there(part, name)}", part)
        for role in self.selection.roles:
            if not tally.used["roles", role]:
                known = [*tally.unknown_roles, *tally.names_of_users]
                problem = unknown_name("role", role, known)
                raise ArgumentError(f"{file}: {{argument}}: {problem}", "roles")

    def _not_there(self, part: str, name: str) -> str:
        """Say that a named field is nowhere, or is an object, and which there are."""
        tally = self.tally
        owner, known = ("run", list(tally.values))
        if part == "confidence":
            owner, known = "turn", list(tally.names_of_turns)
        if part == "outcome" and name in tally.objects:
            known = [f"{name}.{inner}" for inner in tally.objects[name]]
        if not known:
            remedy = "leave {argument} out"
            if part == "outcome":
                remedy = "give a table of run ids and outcomes with {argument:outcomes}"
            return f"no {owner} has a field {name!r}; {remedy}"
        bare = bare_name(name) if part != "stop_reason" else name
        known = [outcome_hint(other) for other in known] if bare != name else known
        return unknown_name(f"field of a {owner}", name, known)

    def _refuse_lists(self, file: str) -> None:
        """Refuse outcomes of which runs have several."""
        for name, (run, values) in self.tally.lists.items():
            raise ArgumentError(
                f"{file}: the outcome {name!r} has several values in run {run!r}, "
                f"{', '.join(map(repr, values[:_MAX_EXAMPLES]))} ...; if the last one counts, pass "
                f"{{argument:outcome={name}{LAST}}}; otherwise name another field with "
                f"{{argument}}, or give a table of run ids and outcomes with {{argument:outcomes}}",
                "outcome",
            )

    def outcome_problem(self) -> str:
        """Say how to name the outcome where no run has one; "" otherwise."""
        tally, table = self.tally, self.selection.table
        is_wanted = table is not None and not table  # an empty one says that none is known
        if tally.n_with_outcome or not tally.n_runs or is_wanted:
            return ""
        ids = examples(tally.ids)
        if table is not None:
            return (
                f"no run has an outcome: no run id of the log ({ids}) is in the table of outcomes "
                f"({examples(table)}); name the field with the table's ids with {{argument:id}}"
            )
        fields = []
        for name, counts in list(tally.candidates().items())[:_MAX_CANDIDATES]:
            common = ", ".join(f"{value} {n}" for value, n in counts.most_common(_MAX_EXAMPLES))
            fields.append(f"{name!r}: {common}{', ...' * (len(counts) > _MAX_EXAMPLES)}")
        candidates = f" (the runs have {'; '.join(fields)})" if fields else ""
        hints = outcome_candidates(tally.candidates())
        hint = f", such as {hints[0]}" if hints else ""
        return (
            f"no run has an outcome{candidates}; name the field with {{argument:outcome}}{hint}, "
            f"or give a table of run ids ({ids} ...) and outcomes with {{argument:outcomes}}"
        )

    def problem(self) -> str:
        """Say what keeps the runs from being judged, and what to name; "" otherwise."""
        problems = (self.outcome_problem(), self.id_problem(), self.role_problem())
        return next(filter(None, problems), "")

    def role_problem(self) -> str:
        """Ask who acts under roles that are not known, where these have most turns; or ""."""
        unknown, n_agent = self.tally.unknown_roles, self.tally.n_turns
        named = self.tally.names_of_users.items()
        users = Counter({name: n for name, n in named if name not in self.selection.roles})
        if users:
            names = users
            problem = (
                f"{number_of(users.total(), 'turn')} of the user have the names of several users, "
                f"or of an agent"
            )
        elif unknown.total() > n_agent:
            names = unknown
            problem = (
                f"{number_of(n_agent, 'turn')} of the agent and {unknown.total():,} of roles that "
                f"are not known"
            )
        else:
            return ""
        listed = [name for name, _ in names.most_common(_MAX_ROLES)]
        return (
            f"{problem} ({', '.join(map(repr, listed))}); say which are the agent's, the user's or "
            f"the environment's, for example with {{argument:roles={listed[0]}=agent}}"
        )

    def id_problem(self) -> str:
        """Say how to name the id where several runs share one; "" otherwise."""
        shared = {name: n for name, n in self.tally.ids.items() if n > 1}
        if not shared:
            return ""
        name, n_runs = next(iter(shared.items()))
        more = f", and {len(shared) - 1} other ids are shared too" if len(shared) > 1 else ""
        return (
            f"{n_runs} runs have the id {name!r}{more}; name the field that holds the id with "
            f"{{argument:id}}, or several fields, such as file and id"
        )

    def notes(self) -> list[str]:
        """Say what of the log was not used, one sentence each."""
        tally, table = self.tally, self.selection.table
        notes = [*self._readings(), *notes_on_stops(tally.stops, tally.n_runs)]
        if table is not None and tally.n_with_outcome:
            n_matched = len(tally.in_table)
            notes += unmatched(len(table) - n_matched, tally.n_runs - n_matched)
        for (owner, name), n in sorted(tally.unused.items()):
            if n:
                part, owners = ("outcome", "runs") if owner == "run" else ("confidence", "turns")
                notes.append(
                    f"{number_of(n, 'score')} of {owners} named {name!r} not used; to use "
                    f"{'it' if n == 1 else 'them'}, pass {{argument:{part}={outcome_hint(name)}}}"
                )
        if tables := tally.tables:
            notes.append(
                f"{number_of(len(tables), 'table')} beside the logs not read, such as {tables[0]}; "
                f"if it holds outcomes, pass {{argument:outcomes={tables[0]}}}"
            )
        return [*notes, *self._odd_turns(), *self._joined_records()]

    def _odd_turns(self) -> Iterator[str]:
        """Say of turns, calls and results what could not be made of them."""
        for kind, (word, sentence) in _ODD.items():
            if n := self.tally.odd[kind]:
                yield f"{number_of(n, word)} {sentence}"
        if unknown := self.tally.unknown_roles:
            (role, _), *_ = unknown.most_common()
            yield (
                f"{number_of(unknown.total(), 'turn')} of roles that are not known, such as "
                f"{role!r}, taken as the environment's; if it is an agent's, pass "
                f"{{argument:roles={role}=agent}}"
            )
        remedy = "; token_probability needs a list with one for each token"
        for counts, noun, more in (
            (self.tally.unread, "text", ""),
            (self.tally.unread_logprobs, "log-probability field", remedy),
        ):
            if counts:
                fields = ", ".join(repr(name) for name, _ in counts.most_common(_MAX_EXAMPLES))
                yield f"{number_of(counts.total(), noun)} not read, in {fields}{more}"

    def _joined_records(self) -> Iterator[str]:
        """Say which records may be of one run."""
        tally = self.tally
        if n := tally.n_beginnings():
            yield (
                f"{number_of(n, 'run')} of {tally.n_runs:,} hold only the beginning of another "
                f"run; if they are calls or states of one run, name what these share with "
                f"{{argument:id}}"
            )

    def _readings(self) -> Iterator[str]:
        """Say how outcomes and confidences were read, where names or words are not plain."""
        fields = self.selection.fields
        name, confidence = fields.outcome or "", fields.confidence or ""
        if bare_name(name) != name and self.tally.n_with_outcome:
            yield turned_note(bare_name(name))
        if words := note_on_words(self.tally.texts, self.selection.meanings):
            yield words
        if (bare := bare_name(confidence)) != confidence:
            yield f"confidence: 1 minus {bare!r}"
        elif sounds_bad(confidence):
            yield (
                f"confidence: high {confidence!r} stands for success; if it stands for failure, "
                f"pass {{argument:confidence={outcome_hint(confidence)}}}"
            )
