"""The signals of TRACER, from runs of steps."""

from itertools import chain
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import get_tags
from sklearn.utils.validation import check_memory

from trajscore.core.array import TrajectoryArray
from trajscore.core.values import BoolArray, FloatArray, as_count, check_choice
from trajscore.core.within_runs import run_numbers, step_numbers
from trajscore.io.logprobs import are_recorded
from trajscore.tracer._risk_scorer import ACTORS, CHANNELS
from trajscore.tracer._similarity import (
    PairsOfTurns,
    TextsOfTurns,
    cosines,
    embed,
    fit_embedder,
    make_embedder,
    new_texts,
    pairs_with_earlier,
    repeated_calls,
    word_overlaps,
)
from trajscore.tracer.step_confidence import StatedConfidence
from trajscore.tracer.turns import (
    RunTransformer,
    Turns,
    content_word,
    means_of_turns,
    take_tokens,
    take_turns,
)

DEFINITIONS = ("trajscore", "paper")
_EPSILON = 1e-4  # surprisal of a turn none of whose tokens counts


class TracerSignals(RunTransformer):
    r"""Turn runs into signals of trouble, one row for each turn of agent or user.

    Channels:

    surprisal
        :math:`U_t`, the mean surprisal in nats of the turn's content tokens: those with a
        log-probability of at most ``-least_surprisal`` that are neither stop words nor numbers;
        1e-4 if there is none. Missing where the turn has no log-probabilities.
    repetition
        :math:`D_a`, of agent turns: 1 if a tool call repeats one of the last `tool_window` turns,
        of either side, exactly; else the largest cosine times Jaccard overlap of what is said
        with what was said in the last `window` agent turns. See `definition`.
    agent_gap
        :math:`D_o^A`, of agent turns with calls and results: 1 - cosine of the turn and the
        results.
    user_gap
        :math:`D_o^U`, of user turns right after the agent's: 1 - cosine of the two (Eq. 15);
        missing where one of them is empty, which by the letter of Eq. 8 would be a gap of 1.
    is_agent, tool_calls, confidence
        Whether the agent acts, the number of calls, and the confidence stated in the turn.

    A signal that a turn cannot have, or that was not recorded, is missing, not 0.

    Parameters
    ----------
    embedder : str or transformer, default="char"
        From texts to rows. "char": character n-grams, hashed, with TF-IDF; needs no other package.
        "wordllama": the static model inside the package of that name. Another string is the name of
        a model of sentence-transformers. A transformer has ``fit`` and ``transform`` over texts.
    window : int, default=3
        Number of earlier agent turns that text is compared with.
    tool_window : int, default=5
        Number of earlier turns that calls are compared with; turns of the user count, too. Text
        is compared with earlier turns of the agent only, see `window`.
    least_surprisal : float, default=0.05
        Tokens that surprise less, in nats, are left out of `surprisal`.
    definition : {"trajscore", "paper"}, default="trajscore"
        Whose repetition, see Notes.
    actors : {"both", "agent", "user"}, default="both"
        Whose turns are rows. The signals are those of the whole dialogue; the turns of the other
        side are left out then, as the code of the paper does. `TracerScorer` has the paper's own
        attribution, in which they stay and carry no risk.
    memory : str, joblib.Memory or None, default=None
        Where joblib keeps embeddings from one call to the next: a folder, say.

    Attributes
    ----------
    embedder_ : transformer
        The fitted embedder.
    reads_one_ : bool
        Whether a bare stated 1 is certainty, as in `StepConfidence`.
    reads_zero_ : bool
        Whether a log-probability of 0 is certainty, as in `StepConfidence`.

    See Also
    --------
    TracerScorer : Turns the signals into risk.
    trajscore.StepConfidence : Confidences, where logs hold them.

    Notes
    -----
    With ``definition="paper"`` a repeated call is not 1 by itself. Whole turns, with their calls as
    text, are compared with those of the agent among the last `window` turns of both sides (Eq. 10
    and 11).

    An empty turn or result has no gap, in either definition: logs leave empty what they did not
    record, and the paper's rule, cosine 0, would take it for an answer that shares nothing.

    Runs are read in batches of about 260,000 characters, in which each text is embedded once, so
    that memory does not grow with the number of runs. An embedder that learns is given each
    different text once: all in one sorted list, or batches of them if it has ``partial_fit``. A
    search embeds the texts of a fold for every setting; with `memory` it does so once. A log-
    probability of -inf counts as -100; -9999 or below, and zeros where all in `fit` are 0, count as
    not recorded. Without token strings, as in some logs, only the filter by surprisal applies.
    Words are separated by spaces; characters of Chinese and Japanese script count as words. Steps
    of actors other than agent and user are ignored. Half of a surrogate pair in a text counts as
    "?". Of a text beyond 60,000 characters, pretrained models see the end.

    References
    ----------
    Tayebati et al. (2026), TRACER: Trajectory Risk Aggregation for Critical Episodes in Agentic
    Reasoning, Section III.

    Examples
    --------
    >>> from trajscore import TracerSignals, io
    >>> run = io.Run("a", [io.Step("user", "Where is my bag?"),
    ...                    io.Step("agent", "Tell me your booking number."),
    ...                    io.Step("agent", "Tell me your booking number.")])
    >>> S = TracerSignals().fit_transform([run])
    >>> S
    <TrajectoryArray: 1 run of 3 steps, channels surprisal, repetition, agent_gap, ...>
    >>> S["repetition"].to_list()
    [array([nan,  0.,  1.])]
    """

    _output_channels = CHANNELS
    embedder_: Any

    def __init__(
        self,
        embedder: Any = "char",
        window: int = 3,
        tool_window: int = 5,
        least_surprisal: float = 0.05,
        definition: str = "trajscore",
        actors: str = "both",
        memory: Any = None,
    ) -> None:
        self.embedder = embedder
        self.window = window
        self.tool_window = tool_window
        self.least_surprisal = least_surprisal
        self.definition = definition
        self.actors = actors
        self.memory = memory

    def _channels_of(self, X: Any, *, reset: bool) -> TrajectoryArray:
        self._check_parameters()
        turns = take_turns(X, ("agent", "user"), type(self).__name__)
        stated = StatedConfidence(reads_one=None if reset else self.reads_one_)
        confidence = stated(turns.steps)
        if reset:
            self.embedder_ = self._fitted_embedder(turns)
            self.reads_one_ = bool(stated.reads_one)
            self.reads_zero_ = are_recorded(turns.runs)
        signals = np.concatenate([self._signals(batch) for batch in turns.batches()])
        cells = np.column_stack([signals, confidence])
        if self.actors != "both":
            is_chosen = turns.is_agent == (self.actors == "agent")
            turns = turns.only(is_chosen, self.actors)
            cells = cells[is_chosen]
        return turns.container(cells, CHANNELS)

    def _fitted_embedder(self, turns: Turns) -> Any:
        """Fit the embedder, where it learns, on each different text once."""
        embedder = make_embedder(self.embedder)
        if not get_tags(embedder).requires_fit:
            return embedder
        embedder = clone(embedder)
        batches = new_texts(TextsOfTurns(batch).listed for batch in turns.batches())
        if hasattr(embedder, "partial_fit"):
            for texts in batches:
                embedder.partial_fit(texts)
            return embedder
        # sorted, so that the order of runs cannot matter
        texts = sorted(chain.from_iterable(batches)) or [""]
        return check_memory(self.memory).cache(fit_embedder)(embedder, texts)

    def _signals(self, turns: Turns) -> FloatArray:
        """Return all channels of some runs but the last, the confidence."""
        tokens, _ = take_tokens(turns, self.reads_zero_)
        texts = TextsOfTurns(turns)
        speech, repeated = self._repetition(turns, texts)
        turn = np.flatnonzero(turns.is_agent & (texts.whole >= 0) & (texts.result >= 0))
        results = PairsOfTurns(turn, texts.whole[turn], texts.result[turn])
        answers = self._answers(turns, texts)
        rows = check_memory(self.memory).cache(embed)(self.embedder_, texts.listed or [""])
        overlaps = word_overlaps(texts.listed, speech)
        columns = (
            surprisal(turns, tokens, self.least_surprisal),
            repetition(turns, speech, cosines(rows, speech) * overlaps, repeated),
            gap(turns, results, rows),
            gap(turns, answers, rows),
            turns.is_agent,
            [len(step.tool_calls) for step in turns.steps],
        )
        return np.stack(columns, axis=1, dtype=float)

    def _repetition(self, turns: Turns, texts: TextsOfTurns) -> tuple[PairsOfTurns, BoolArray]:
        """Return the texts that are compared, and the turns that repeat a call."""
        among = np.flatnonzero(turns.is_agent)
        text = texts.speech
        repeated = repeated_calls(turns, self.tool_window, {})
        if self.definition == "paper":  # the window counts turns of both sides
            among = np.arange(len(turns.steps))
            text = np.where(turns.is_agent, texts.whole, -1)
            repeated = np.zeros_like(repeated)
        return pairs_with_earlier(turns, among, text, self.window), repeated

    def _answers(self, turns: Turns, texts: TextsOfTurns) -> PairsOfTurns:
        """Pair each turn of a user with the agent's turn right before it."""
        turn = np.flatnonzero(~turns.is_agent[1:] & turns.is_agent[:-1]) + 1
        there = (turns.run_of[turn] == turns.run_of[turn - 1]) & (texts.whole[turn] >= 0)
        turn = turn[there & (texts.whole[turn - 1] >= 0)]
        return PairsOfTurns(turn, texts.whole[turn - 1], texts.whole[turn])

    def _check_parameters(self) -> None:
        check_choice(self.definition, "definition", DEFINITIONS)
        check_choice(self.actors, "actors", ACTORS)
        for name in ("window", "tool_window"):
            as_count(getattr(self, name), name)
        if not self.least_surprisal >= 0:
            raise ValueError(f"least_surprisal must be at least 0, got {self.least_surprisal!r}")


# ------------------------------------------------------------------ the signals


def repetition(
    turns: Turns, speech: PairsOfTurns, similarity: FloatArray, repeated: BoolArray
) -> FloatArray:
    """Return D_a: 1 where a call is repeated, else the largest cosine times Jaccard overlap."""
    out = np.where(turns.is_agent, 0.0, np.nan)
    np.maximum.at(out, speech.turn, similarity)
    out[repeated] = 1.0
    return out


def gap(turns: Turns, pairs: PairsOfTurns, rows: Any) -> FloatArray:
    """Return D_o: 1 - cosine, of the turns that have both texts."""
    out = np.full(len(turns.steps), np.nan)
    out[pairs.turn] = 1.0 - cosines(rows, pairs)
    return out


def surprisal(turns: Turns, tokens: TrajectoryArray, least: float) -> FloatArray:
    """Return U_t: the mean surprisal of the content tokens of each turn."""
    counted = tokens.cells <= -least  # False for NaN
    owner = run_numbers(tokens).tolist()
    number = step_numbers(tokens).tolist()
    for token in np.flatnonzero(counted).tolist():
        strings = turns.steps[owner[token]].tokens
        if strings is not None:  # without them, a token of any word counts
            counted[token] = content_word(strings[number[token] - 1]) is not None
    means = means_of_turns(np.where(counted, -tokens.cells, np.nan), tokens)
    return np.where(tokens.lengths, np.nan_to_num(means, nan=_EPSILON), np.nan)
