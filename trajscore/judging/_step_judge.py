"""A model that is asked after each turn whether the run will succeed."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Self

from numpy.typing import ArrayLike

from trajscore.core.array import TrajectoryArray
from trajscore.judging.questions import CHANNEL, questions
from trajscore.tracer.turns import RunTransformer

QUESTION = "Will the agent succeed at its task in the end?"


class StepJudge(RunTransformer):
    """Ask a language model after each turn of the agent whether the run will succeed.

    The model sees the task, where a run has its text, and the run up to and including that turn: no
    result of its calls, no later message and no outcome. Any endpoint that speaks OpenAI's chat
    completions will do, local ones such as llama.cpp, vLLM and Ollama, too. The key comes from the
    environment variable ``OPENAI_API_KEY``; a local server needs none. The channel is called
    "judge".

    Parameters
    ----------
    model : str
        Name of the model, as the endpoint knows it. It must not think before it answers. A base
        model, which knows no chat, needs a server whose chat template is the text alone:
        ``{% for m in messages %}{{ m.content }}{% endfor %}``.
    base_url : str, optional
        Address of the endpoint, such as ``"http://localhost:8000/v1"``. Default: the environment
        variable ``OPENAI_BASE_URL``, else OpenAI's own.
    answer : {"yes_no", "number"}, default="yes_no"
        "yes_no": the probability of yes, among yes and no in any case, as the first token; where
        only one of them is among the 20 likeliest, that of the other counts as 0. "number": a
        number from 0 to 100 that the model writes, where an endpoint returns no
        log-probabilities.
    question : str, default="Will the agent succeed at its task in the end?"
        What is asked, as a question that yes answers; the form of the answer is added to it.
        "step" asks whether the turn itself is right: a signal for
        `trajscore.localization.FirstErrorLocator`.
    max_chars : int, default=12000
        A longer record of a run loses its middle, where a mark says how much. About 4 characters
        are a token: the default fits models that read 4,096 tokens.
    cache : str or Path, optional
        SQLite file in which each answer is kept as soon as it came, by the address, the model,
        the form and the text that was asked: what it holds is not asked again. Default: none.
    concurrency : int, default=8
        Number of requests at a time.
    progress : callable, optional
        Wraps the requests to show how far they are, as ``tqdm`` does.

    Raises
    ------
    ImportError
        Without the package openai (extra ``judge``).
    ValueError
        If the endpoint cannot be reached, redirects, refuses the key, the model or a request, or
        returns no chat completion with log-probabilities; the error says what to change. Answers
        that are under way are kept first.

    Warns
    -----
    UserWarning
        Counts the answers that could not be read, and names the first; counts the records that
        were cut.

    See Also
    --------
    StepConfidence : Confidences that a log holds already.

    Notes
    -----
    An answer that is neither yes nor no, or not a number from 0 to 100, is missing (NaN), not
    guessed; so is a number such as 0.7, which may be 70% or 0.7%, and yes where a log-probability
    is missing. After 429, 5xx and connections that fail before an answer it is asked again, up to
    four times; what was answered is paid for, and not asked again. `trajscore.evaluate` leaves a
    run with a missing value out of that predictor's rows and counts it; scorers and calibrators
    refuse missing values, which ``X.ffill()`` or dropping the run mends.

    Nothing is learned: `fit` checks the runs without asking anything. A judge is not calibrated;
    a calibrator may follow in a pipeline.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from trajscore import PlattCrossFitCalibrator, io
    >>> from trajscore.judging import StepJudge
    >>> judge = StepJudge("qwen3-8b", base_url="http://localhost:8000/v1", cache="judge.sqlite")
    >>> pipeline = make_pipeline(judge, PlattCrossFitCalibrator())
    >>> run = io.Run("a", [io.Step("user", "Where is my bag?"), io.Step("agent", "In Paris.")])
    >>> judge.fit([run]).get_feature_names_out()
    array(['judge'], dtype=object)
    """

    _learns = False
    _output_channels = (CHANNEL,)

    def __init__(
        self,
        model: str,
        base_url: str | None = None,
        answer: str = "yes_no",
        question: str = QUESTION,
        max_chars: int = 12_000,
        cache: str | Path | None = None,
        concurrency: int = 8,
        progress: Callable[[Iterable[Any]], Iterable[Any]] | None = None,
    ) -> None:
        self.model = model
        self.base_url = base_url
        self.answer = answer
        self.question = question
        self.max_chars = max_chars
        self.cache = cache
        self.concurrency = concurrency
        self.progress = progress

    def fit(self, X: Any, y: ArrayLike | None = None) -> Self:
        """Check parameters and runs (a list of Run); nothing is learned, and nothing asked."""
        questions(self, X)
        return self

    def _channels_of(self, X: Any, *, reset: bool) -> TrajectoryArray:
        judged = questions(self, X).ask()
        for note in judged.notes:
            warnings.warn(note, UserWarning, stacklevel=3)
        return judged.traces
