"""Signals: a dialogue computed by hand, and logs as they come."""

import math
from importlib.util import find_spec
from typing import ClassVar

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from trajscore import TracerScorer, TracerSignals, io
from trajscore.io import Run, Step, ToolCall
from trajscore.tracer._embedders import WordLlamaEmbedder, make_embedder
from trajscore.tracer._stated_confidence import StatedConfidence

NAN = float("nan")


def agent(text="", *calls, observation=None, **more):
    return Step("agent", text, tool_calls=list(calls), observation=observation, **more)


def find(bag=1):
    return ToolCall("find", {"bag": bag})


def signals(*steps, embedder=None, **parameters):
    embedder = CountVectorizer() if embedder is None else embedder
    return TracerSignals(embedder, **parameters).fit_transform([Run("a", list(steps))])


def test_a_dialogue_by_hand():
    S = signals(
        Step("user", "lost bag"),
        agent("which flight", tokens=("which", " flight"), logprobs=(-0.9, -1.2)),
        Step("user", "flight seven", tokens=("flight", " seven"), logprobs=(-0.5, -0.02)),
        agent("", find(), observation="bag found"),
        agent("Which flight?"),
        Step("user", "flight seven please"),
        agent("flight bag", find()),
        agent("bag seven", tokens=("bag", " 7", "."), logprobs=(-0.01, -3.0, -2.0)),
    )
    expected = {
        # "which" is a stop word; " seven" surprises too little; " 7" and "." carry no content
        "surprisal": [NAN, 1.2, 0.5, NAN, NAN, NAN, NAN, 1e-4],
        # the same words two agent turns back; the same call within five; with "flight bag" the
        # last one shares one of three words, at a cosine of 1/2
        "repetition": [NAN, 0, NAN, 0, 1, NAN, 1, 1 / 6],
        # find, bag, 1 against bag, found: one common word of two and two (1 is no word here)
        "agent_gap": [NAN, NAN, NAN, 0.5, NAN, NAN, NAN, NAN],
        # one common word of two and two; of two and three
        "user_gap": [NAN, NAN, 0.5, NAN, NAN, 1 - 1 / math.sqrt(6), NAN, NAN],
        "is_agent": [0, 1, 0, 1, 1, 0, 1, 1],
        "tool_calls": [0, 0, 0, 1, 0, 0, 1, 0],
        "confidence": [NAN] * 8,
    }
    assert S.channels == tuple(expected)
    for name, values in expected.items():
        assert np.allclose(S[name].cells.ravel(), values, rtol=0, atol=1e-12, equal_nan=True), name
    risk = [0, 1.2, 0.5, 0.5, 1, 1 - 1 / math.sqrt(6), 1, 1 / 6]
    explained = TracerScorer().fit(S).explain(S)
    assert np.allclose(explained["risk"].cells.ravel(), risk, atol=1e-12)
    # the worst of eight steps, k = 0.1
    assert TracerScorer().fit(S).score_samples(S) == pytest.approx(1.2)
    assert TracerScorer(k=0.25, w=0.5).fit(S).score_samples(S) == pytest.approx(0.5 * 1.1 + 0.6)


def test_windows():
    said = [agent("lost bag"), *[agent(f"text{k}") for k in range(3)], agent("lost bag")]
    assert signals(*said)["repetition"].cells[-1] == 0  # four agent turns back
    assert signals(*said, window=4)["repetition"].cells[-1] == 1
    called = [agent("", find()), *[agent("", ToolCall(f"f{k}")) for k in range(5)]]
    assert signals(*called, agent("", find()))["repetition"].cells[-1] == 0
    assert signals(*called[:-1], agent("", find()))["repetition"].cells[-1] == 1
    assert signals(agent("", find()), agent("", find(2)))["repetition"].cells[-1] == 0
    # twice in one turn repeats no turn before
    assert signals(agent("", find(), find()))["repetition"].cells[-1] == 0


def user(text="", *calls, observation=None):
    return Step("user", text, tool_calls=list(calls), observation=observation)


def test_text_windows_by_definition():
    # "lost bag" again: two agent turns, three texts, or four steps later
    steps = [
        agent("lost bag"), user("yes"), agent("", find()), user("no"), agent("lost bag"),
    ]  # fmt: skip

    def last(**parameters):
        return signals(*steps, **parameters)["repetition"].cells[-1]

    assert last(window=2) == last(window=4, definition="paper") == 1
    assert last(window=1) == 0
    # with the call between, one word of three, at a cosine of 1/2
    assert last(window=3, definition="paper") == pytest.approx(1 / 6)


def test_repeated_calls_by_definition():
    # to the paper a call is a text like any other, and no more
    shared = signals(agent("", find(1)), agent("", find(1)), definition="paper")
    assert shared["repetition"].cells[-1] == 1
    other = signals(agent("", find(1)), user("a"), agent("", find(1)), window=1, definition="paper")
    assert other["repetition"].cells[-1] == 0


def test_gaps_of_users_follow_a_turn_of_the_agent():
    steps = [
        user("flight seven"),
        agent("which flight"),
        user("flight seven"),
        user("flight eight"),
        user("", find(), observation="bag found"),
        agent("which bag"),
        agent("", find(2)),
        user("bag seven"),
    ]
    # one common word of two and two
    for definition in ("trajscore", "paper"):
        found = signals(*steps, definition=definition)["user_gap"].cells.ravel()
        assert np.allclose(found, [NAN, NAN, 0.5, NAN, NAN, NAN, NAN, 0.5], equal_nan=True)


def test_turns_of_one_side():
    steps = [agent("lost bag"), user("yes"), agent("lost bag"), user("no")]
    S = signals(*steps)
    for actors, rows in (("agent", [0, 2]), ("user", [1, 3])):
        alone = signals(*steps, actors=actors)
        assert np.array_equal(alone.cells, S.cells[rows], equal_nan=True)
        assert alone.ended.tolist() == S.ended.tolist()
    with pytest.raises(ValueError, match=r"run 'a' \(row 0\) has no turn of the user"):
        signals(agent("hm"), actors="user")
    for parameter in ("definition", "actors"):
        with pytest.raises(ValueError, match=f"{parameter} must be"):
            signals(*steps, **{parameter: "theirs"})


def test_calls_are_compared_as_objects():
    as_text = ToolCall("find", '{"b": 2, "a": 1}')
    as_object = ToolCall("find", {"a": 1, "b": 2})
    odd = ToolCall("find", "not json")
    S = signals(agent("", as_text), agent("", as_object), agent("", odd), agent("", odd))
    assert S["repetition"].cells.ravel().tolist() == [0, 1, 0, 1]


def test_the_window_of_calls_counts_turns_of_users_too():
    between = [Step("user", "yes"), agent("hm")] * 2
    S = signals(agent("", find()), *between, agent("", find()))
    assert S["repetition"].cells[-1] == 1
    S = signals(agent("", find()), *between, Step("user", "no"), agent("", find()))
    assert S["repetition"].cells[-1] == 0


def test_keys_of_any_type_in_arguments():
    odd = ToolCall("find", {1: "a", "b": {None: [{2: 3, "x": 4}]}})
    assert signals(agent("", odd), agent("", odd))["repetition"].cells.ravel().tolist() == [0, 1]


def test_half_a_surrogate_pair_is_replaced():
    half = "bag \ud83d lost"
    call = ToolCall("find", {"bag": half})
    steps = [agent(half, call, observation=half), Step("user", half), agent("bag ? lost")]
    S = TracerSignals().fit_transform([Run("a", steps)])
    assert S["repetition"].cells[-1] == 1


def test_a_text_of_none_is_empty():
    assert signals(agent(None), agent("bag"))["repetition"].cells.ravel().tolist() == [0, 0]


def test_placeholders_for_logprobs_are_missing():
    words = ("bag", "lost")
    S = signals(
        agent("bag lost", tokens=words, logprobs=(-9999.0, -2.0)),
        agent("bag lost", tokens=words, logprobs=(-10000.0, -9999.0)),
        agent("bag lost", tokens=words, logprobs=(0.0, 0.0)),
        agent("bag lost", tokens=words, logprobs=(0.0, -1.0)),
    )
    assert np.array_equal(S["surprisal"].cells.ravel(), [2.0, NAN, NAN, 1.0], equal_nan=True)


def test_runs_and_users_do_not_mix():
    one = Run("a", [agent("lost bag", find())])
    two = Run("b", [agent("lost bag", find()), Step("user", "lost bag"), Step("user", "lost bag")])
    S = TracerSignals().fit_transform([one, two])
    assert S["repetition"].to_list()[1].tolist()[0] == 0
    gaps = S["user_gap"].to_list()[1].ravel()
    assert gaps[1] == pytest.approx(0.5, abs=0.5)  # the turn before is the agent's
    assert math.isnan(gaps[2])  # the turn before is the user's
    alone = TracerSignals().fit([one, two]).transform([two])
    assert np.array_equal(alone.cells, S[[1]].cells, equal_nan=True)


@pytest.mark.parametrize("least", [0.0, 0.05, 1.0])
def test_without_token_strings_only_the_filter_counts(least):
    S = signals(agent("lost bag", logprobs=(-0.01, -0.5, NAN)), least_surprisal=least)
    expected = {0.0: 0.255, 0.05: 0.5, 1.0: 1e-4}[least]
    assert S["surprisal"].cells[0] == pytest.approx(expected)


def test_logprobs_of_minus_infinity_and_above_zero():
    S = signals(agent("bag", tokens=("bag",), logprobs=(-math.inf,)))
    assert S["surprisal"].cells[0] == 100.0
    assert np.isnan(signals(agent("bag", logprobs=(NAN,)))["surprisal"].cells[0])
    run = Run("r7", [Step("user", "hi"), agent("bag", logprobs=(-0.1, 0.3), index=4)],
              meta={"file": "log.json"})  # fmt: skip
    with pytest.raises(
        ValueError,
        match=r"log\.json, run 'r7' \(row 0\), step 2 \(message 4\), token 1: the logprob 0\.3 is "
        r"above 0",
    ):
        TracerSignals().fit([run])
    short = Run("r8", [agent("bag", tokens=("b", "ag"), logprobs=(-0.1,))])
    with pytest.raises(ValueError, match=r"run 'r8' \(row 0\), step 1: there are 2 tokens for 1"):
        TracerSignals().fit([short])


def test_turns_without_text_results_without_calls_and_unknown_roles():
    S = signals(
        Step("environment", "Welcome"),
        agent("Wait a moment", observation="a result of no call"),
        Step("user", ""),
        agent("", find(), observation=""),
        agent("Is it blue?"),
    )
    assert S.lengths.tolist() == [4]
    for name in ("agent_gap", "user_gap", "surprisal"):
        assert np.isnan(S[name].cells).all(), name
    assert S["repetition"].cells[[0, 2, 3]].ravel().tolist() == [0, 0, 0]
    assert TracerScorer().fit(S).score_samples(S).tolist() == [0.0]


def test_other_scripts():
    S = signals(agent("你的航班号是多少"), agent("你的航班号是多少?"), agent("Где мой багаж?"),
                agent("где мой багаж"), embedder="char")  # fmt: skip
    repeated = S["repetition"].cells.ravel()
    assert repeated[1] > 0.85
    assert repeated[2] == 0
    assert repeated[3] > 0.6


def test_a_message_of_a_megabyte():
    long = "Where is my bag? " * 62_000
    S = signals(Step("user", long), agent(long), agent(long), embedder="char")
    assert S["repetition"].cells.ravel().tolist()[1:] == [0, 1]


def test_empty_texts_everywhere():
    assert np.isnan(signals(agent(), Step("user"), embedder="char")["user_gap"].cells).all()


@pytest.mark.parametrize(
    ("runs", "error", "message"),
    [
        ("log.json", TypeError, r"got str; read a log with trajscore\.io\.read_runs"),
        (5, TypeError, "got int; read a log with"),
        ([Run("a", [agent("hi")]), "b"], TypeError, "row 1 is of type str"),
        ([Run("a", [agent("hi")]), Run("b")], ValueError, r"run 'b' \(row 1\) has no turn of the"),
        ([], ValueError, "got an empty list of runs"),
    ],
)
def test_what_is_no_list_of_runs(runs, error, message):
    with pytest.raises(error, match=message):
        TracerSignals().fit(runs)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"window": 0}, "window must be a whole number of at least 1, got 0"),
        ({"stop_words": "the"}, r"must be a list of words, got the text 'the'; pass \['the'\]"),
        ({"least_surprisal": -1}, "least_surprisal must be at least 0"),
        ({"embedder": 3}, "embedder must be 'char', 'wordllama'"),
    ],
)
def test_bad_parameters(change, message):
    with pytest.raises(ValueError, match=message):
        TracerSignals(**change).fit([Run("a", [agent("hi")])])


def test_embedders_that_return_nonsense():
    for function, message in (
        (lambda texts: np.zeros((1, 2)), "one row of numbers for each text"),
        (lambda texts: np.full((len(texts), 2), np.inf), "not finite"),
    ):
        with pytest.raises(ValueError, match=message):
            signals(agent("a b"), agent("c d"), embedder=FunctionTransformer(function))


def test_each_text_is_embedded_once_and_kept(tmp_path):
    class Counting(CountVectorizer):
        seen: ClassVar[list] = []

        def fit_transform(self, texts, y=None):
            Counting.seen.append(list(texts))
            return super().fit_transform(texts)

    steps = [agent("lost bag"), Step("user", "lost bag"), agent("lost bag")]
    run = Run("a", steps)
    first = TracerSignals(Counting()).fit_transform([run, run])
    assert Counting.seen == [["lost bag"]]
    kept = TracerSignals(CountVectorizer(), memory=str(tmp_path))
    assert np.array_equal(kept.fit_transform([run]).cells, first[[0]].cells, equal_nan=True)
    again = clone(kept).fit_transform([run])
    assert np.array_equal(again.cells, first[[0]].cells, equal_nan=True)
    assert list(tmp_path.rglob("output.pkl"))


def test_batches_and_progress(monkeypatch):
    sizes, shown = [], []

    def lengths(texts):
        sizes.append(len(texts))
        return np.array([[len(text), 1.0] for text in texts])

    monkeypatch.setattr("trajscore.tracer._similarity._BATCH_TEXTS", 4)
    runs = [Run(f"r{k}", [agent("x" * (k + 1)), agent("y" * k)]) for k in range(10)]

    def progress(batches):
        for batch in batches:
            shown.append(batch)
            yield batch

    embedder = FunctionTransformer(lengths)
    S = TracerSignals(embedder, progress=progress).fit_transform(runs)
    assert len(shown) == len(sizes) == 5
    assert sum(sizes) == 19
    assert max(sizes) == 4
    monkeypatch.setattr("trajscore.tracer._similarity._BATCH_TEXTS", 100)
    whole = TracerSignals(FunctionTransformer(lengths)).fit_transform(runs)
    assert np.array_equal(S.cells, whole.cells, equal_nan=True)


def test_default_embedder_by_name():
    assert make_embedder("char").fit_transform(["bag"]).shape[0] == 1
    given = make_pipeline(CountVectorizer())
    assert make_embedder(given) is given
    assert make_embedder("all-MiniLM-L6-v2").get_params()["model_name"] == "all-MiniLM-L6-v2"


@pytest.mark.skipif(find_spec("sentence_transformers") is not None, reason="it is installed")
def test_missing_package_says_what_to_install():
    with pytest.raises(ImportError, match=r"scikit-trajscore\[sentence-transformers\]"):
        signals(agent("a b"), embedder="all-MiniLM-L6-v2")
    if find_spec("wordllama") is None:
        with pytest.raises(ImportError, match=r"scikit-trajscore\[embed\]"):
            signals(agent("a b"), embedder="wordllama")


@pytest.mark.skipif(find_spec("wordllama") is None, reason="needs wordllama")
def test_packaged_model_without_network():
    rows = WordLlamaEmbedder().transform(["my flight", "my flight", "a purple cow"])
    assert rows.shape == (3, 256)
    S = signals(agent("my flight"), agent("my flight"), embedder="wordllama")
    assert S["repetition"].cells.ravel().tolist() == [0, 1]
    long = signals(agent("Where is my bag? " * 62_000), agent("bag"), embedder="wordllama")
    assert np.isfinite(long["repetition"].cells).all()


def test_public_log(public_file):
    runs = io.read_runs(public_file("tau_bench", "gpt-4o-airline.json"))
    S = TracerSignals().fit_transform(runs)
    assert len(S) == 200
    assert S.lengths.tolist() == [len(run) for run in runs]
    assert np.isnan(S["surprisal"].cells).all()
    is_agent = S["is_agent"].cells.ravel() > 0
    assert np.array_equal(np.isnan(S["repetition"].cells.ravel()), ~is_agent)
    assert np.isnan(S["user_gap"].cells.ravel()[is_agent]).all()
    assert np.nanmax(S["repetition"].cells) == 1.0
    assert S["tool_calls"].cells.sum() == 1074 + 90
    assert S.meta["task"].nunique() == 50


@pytest.mark.parametrize(
    ("text", "scale", "value"),
    [
        ("<confidence>0.85</confidence>", "auto", 0.85),
        ('{"answer": 4, "confidence": 0.3}', "auto", 0.3),
        ("Confidence: 85%", "auto", 0.85),
        ("**Confidence:** 85", "auto", 0.85),
        ("Confidence is 8/10.", "auto", 0.8),
        ("confidence = .5", "auto", 0.5),
        ("Confidence: 0.2\nOn reflection:\nConfidence: 0.9", "auto", 0.9),
        ("Confidence: 1", "auto", 1.0),
        ("Confidence: 1%", "auto", 0.01),
        ("Confidence: 1.4", "fraction", 1.0),
        ("Confidence: -0.2", "fraction", 0.0),
        ("Confidence: 1", "percent", 0.01),
        ("Confidence: 250", "auto", NAN),
        ("Confidence: -0.2", "auto", NAN),
        ("Confidence: high", "auto", NAN),
        ("Confidence: 0,85", "auto", 0.85),
        ("Confidence: 85,5%", "auto", 0.855),
        ("Confidence: 85, or so", "auto", 0.85),
        ("Confidence: 0.85.", "auto", 0.85),
        ('{"confidence": 0.85,"n": 3}', "auto", 0.85),
        ('{"confidence": 5e-2}', "auto", 0.05),
        ("Confidence: 1,000", "auto", NAN),
        ("Confidence: 1.2.3", "auto", NAN),
        ("<confidence>0,85</confidence>", "auto", 0.85),
        ("Confidence: 150%", "auto", NAN),
        ("Confidence: -5%", "auto", NAN),
        ("Confidence: 150%", "fraction", 1.0),
        ("Confidence: 60%", "fraction", 0.6),
        ("Confidence: 6/10", "percent", 0.6),
        ("Confidence: 12/10", "auto", NAN),
        ("Confidence: 8/10", "auto", 0.8),
        ("Confidence (0-100): 80", "auto", 0.8),
        ("Confidence (0-100): 1", "auto", 0.01),
        ("**Confidence (0 to 10)**: 8", "auto", 0.8),
        ("Confidence (0-1): 0.8", "auto", 0.8),
        ("Confidence (0-100): 80%", "auto", 0.8),
        ("Confidence (0-10): 80", "auto", NAN),
        ("Confidence (high): 80", "auto", 0.8),
        ("I have every confidence", "auto", NAN),
        ("", "auto", NAN),
    ],
)
def test_stated_confidence(text, scale, value):
    found = StatedConfidence(scale=scale)([Step("agent", text)])
    assert np.array_equal(found, [value], equal_nan=True)


def test_stated_confidence_by_field_pattern_and_function():
    step = Step("agent", "I am 70 sure. Confidence: 0.1", confidence=0.4)
    assert StatedConfidence()([step]).tolist() == [0.4]
    step = Step("agent", "I am 70 sure")
    assert StatedConfidence(r"I am (\d+) sure")([step]).tolist() == [0.7]
    assert StatedConfidence(lambda one: len(one.text) / 100)([step]).tolist() == [0.12]
    assert np.isnan(StatedConfidence(lambda one: None)([step])).all()
    for bad, message in (("(", "a regular expression or a function"), ("sure", "needs a group")):
        with pytest.raises(ValueError, match=message):
            StatedConfidence(bad)
    with pytest.raises(ValueError, match="scale must be"):
        StatedConfidence(scale="ten")


def test_counts_of_texts_are_those_of_scikit_learn(rng):
    texts = [
        "lost bag",
        "",
        "lost  bag",
        "Caf\u00e9 " * 5,
        "lo",
        "lost bags",
        "a\U0001f44b \n\tb",
    ]
    texts += ["".join(map(chr, rng.choice([97, 98, 32, 0x4E00, 0x1F44B], 40))) for _ in range(20)]
    ours = make_embedder("char")[0]
    theirs = HashingVectorizer(analyzer="char", ngram_range=(3, 3), n_features=1 << 18)
    for some in (texts[:3], texts, texts[::-1], [""]):
        found, expected = ours.fit_transform(some), theirs.fit_transform(some)
        assert found.shape == expected.shape
        assert (found != expected).nnz == 0


class Counting(CountVectorizer):
    n_fits: ClassVar[int] = 0

    def fit_transform(self, texts, y=None):
        Counting.n_fits += 1
        return super().fit_transform(texts)


def test_stop_words_of_ones_own():
    steps = agent("lost bag"), agent("lost ring")
    assert signals(*steps)["repetition"].cells[-1] == pytest.approx(1 / 6)
    without = signals(*steps, stop_words=["lost"])
    assert without["repetition"].cells[-1] == 0  # bag and ring have no word in common


def test_a_search_with_memory_embeds_each_fold_once(talk, tmp_path):
    grid = {"tracerscorer__alpha": [0, 0.5, 1, 2], "tracerscorer__k": [0.1, 0.5]}
    for memory, n_fits in ((None, 8 * 3), (str(tmp_path), 3)):
        Counting.n_fits = 0
        model = make_pipeline(TracerSignals(Counting(), memory=memory), TracerScorer())
        search = GridSearchCV(model, grid, scoring="roc_auc", cv=3, refit=False)
        search.fit(talk, io.outcomes(talk))
        assert Counting.n_fits == n_fits
