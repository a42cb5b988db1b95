"""Signals: a dialogue computed by hand, and logs as they come."""

import math
import sys
import tracemalloc
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from trajscore import TracerScorer, TracerSignals
from trajscore.io import Run, Step, ToolCall

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
    in_call = signals(agent("", ToolCall("find", {"bag": 1}, result="bag found")))
    assert in_call["agent_gap"].cells == pytest.approx(0.5)
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


def test_the_window_of_calls_counts_turns_of_users_too():
    between = [Step("user", "yes"), agent("hm")] * 2
    S = signals(agent("", find()), *between, agent("", find()))
    assert S["repetition"].cells[-1] == 1
    S = signals(agent("", find()), *between, Step("user", "no"), agent("", find()))
    assert S["repetition"].cells[-1] == 0


def test_runs_and_users_do_not_mix():
    one = Run("a", [agent("lost bag", find())])
    two = Run("b", [agent("lost bag", find()), Step("user", "lost bag"), Step("user", "lost bag")])
    S = TracerSignals().fit_transform([one, two])
    assert S["repetition"].to_list()[1].tolist()[0] == 0
    gaps = S["user_gap"].to_list()[1].ravel()
    assert gaps[1] == pytest.approx(0.5, abs=0.5)  # the turn before is the agent's
    assert math.isnan(gaps[2])  # the turn before is the user's


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


def repeated(*steps, **parameters):
    return signals(*steps, **parameters)["repetition"].cells.ravel().tolist()


def test_calls_are_compared_as_objects():
    for arguments, same in [
        (('{"b": 2, "a": 1}', {"a": 1, "b": 2}), True),
        (("not json", "not json"), True),
        (({"a": 1}, {"a": 2}), False),
        (({1: "a", "b": {None: [{2: 3, "x": 4}]}}, {1: "a", "b": {None: [{2: 3, "x": 4}]}}), True),
        (({}, {}), True),
    ]:
        steps = [agent("", ToolCall("find", one)) for one in arguments]
        assert repeated(*steps) == [0, same], arguments


def test_odd_texts():
    assert repeated(agent(None), agent("bag")) == [0, 0]
    half = "bag \ud83d lost"  # half a surrogate pair is replaced
    steps = [agent(half, ToolCall("find", {"bag": half}), observation=half), agent("bag ? lost")]
    assert repeated(*steps, embedder="char")[-1] == 1
    assert np.isnan(signals(agent(), user(), embedder="char")["user_gap"].cells).all()
    long = "Where is my bag? " * 62_000
    assert repeated(user(long), agent(long), agent(long), embedder="char")[1:] == [0, 1]
    # a word in other scripts is a character, or what spaces part
    assert repeated(agent("\u65c5\u884c"), agent("\u65c5 x"))[-1] == 0


def test_words_that_overlap():
    # cosine of counts of words, times the share of words in common, but for stop words and numbers
    for first, second, expected in [
        ("the red bag", "red car", 1 / 3 / math.sqrt(6)),
        ("bag 7", "bag 8", 1 / 2),
        ("the", "the", 0),
        ("BAG, lost!", "lost bag", 1),
    ]:
        words = CountVectorizer(token_pattern=r"\w+")
        found = repeated(agent(first), agent(second), embedder=words)[-1]
        assert found == pytest.approx(expected), first
    assert repeated(agent("lost bag"), agent("lost ring"))[-1] == pytest.approx(1 / 6)


def test_surprisal_by_hand():
    for tokens, logprobs, options, expected in [
        # placeholders for what was not recorded
        (("bag", "lost"), (-9999.0, -2.0), {}, 2.0), (("a",), (-10000.0,), {}, NAN),
        (("bag", "lost"), (0.0, 0.0), {}, NAN), (("bag", "lost"), (0.0, -1.0), {}, 1.0),
        (("bag",), (-math.inf,), {}, 100.0), (None, (NAN,), {}, NAN),
        # words that say nothing, and parts of none
        (("the", " Bag,", "12.5%", "..."), (-9.0, -2.0, -9.0, -9.0), {}, 2.0),
        # without texts of tokens only the least surprisal counts
        (None, (-0.01, -0.5, NAN), {"least_surprisal": 0.0}, 0.255),
        (None, (-0.01, -0.5, NAN), {}, 0.5), (None, (-0.01, -0.5), {"least_surprisal": 1.0}, 1e-4),
        (None, (-0.5, -0.2), {"least_surprisal": 0.5}, 0.5),
    ]:  # fmt: skip
        S = signals(agent("bag lost", tokens=tokens, logprobs=logprobs), **options)
        found = S["surprisal"].cells.ravel()
        np.testing.assert_allclose(found, [expected], err_msg=f"{tokens} {logprobs}")


def test_triples_of_characters_are_those_of_scikit_learn(rng):
    texts = [
        "Where is my bag?", "", "ab", "abc", "aaaaaa", "WHERE  is\n\nmy bag?", "lost bag",
        "\u0433\u0434\u0435 \U0001f9f3 \u0431\u0430\u0433", "Caf\u00e9 " * 5, "a\U0001f44b \n\tb",
    ]  # fmt: skip
    texts += ["".join(map(chr, rng.choice([97, 98, 32, 0x4E00, 0x1F44B], 40))) for _ in range(9)]
    steps = [step for one in texts for step in (agent(one), user(texts[0] + one))]
    theirs = make_pipeline(
        HashingVectorizer(analyzer="char", ngram_range=(3, 3), n_features=1 << 18),
        TfidfTransformer(),
    )
    ours, expected = (signals(*steps, embedder=embedder) for embedder in ("char", theirs))
    np.testing.assert_allclose(ours.cells, expected.cells, rtol=0, atol=1e-12)


def by_length(batches, as_sparse=False):
    def rows(texts):
        batches.append([len(text) for text in texts])
        out = np.array([[len(text), 1.0] for text in texts])
        return sparse.csr_array(out) if as_sparse else out

    return FunctionTransformer(rows)


@pytest.mark.parametrize("as_sparse", [False, True])
def test_the_texts_of_a_batch_are_embedded_once(as_sparse):
    batches = []
    runs = [Run(f"r{k}", [agent("x" * (k + 1)), agent("y" * k)]) for k in range(200)]
    S = TracerSignals(by_length(batches, as_sparse)).fit_transform(runs)
    assert [len(one) for one in batches] == [399]
    # no word in common; the gap of results and answers is not there, and repetition is 0
    assert np.nanmax(S["repetition"].cells) == 0
    batches.clear()
    long = [Run(f"r{k}", [agent("x" * (1 << 18 - k))]) for k in range(4)]
    TracerSignals(by_length(batches, as_sparse)).fit_transform(long)
    assert [len(one) for one in batches] == [1, 3]


def test_gaps_are_one_minus_cosines_of_rows():
    S = signals(agent("xxx"), user("yyyyyyy"), embedder=by_length([]))
    assert S["user_gap"].cells[-1] == pytest.approx(1 - (3 * 7 + 1) / math.sqrt(10 * 50))
    opposite = FunctionTransformer(lambda texts: np.array([[1.0 - 2 * ("x" in t)] for t in texts]))
    assert signals(agent("x"), user("y"), embedder=opposite)["user_gap"].cells[-1] >= 1


def test_rows_that_are_none_are_refused():
    for function, problem in [
        (lambda texts: np.zeros((1, 2)), r"\(1, 2\) for 2 texts"),
        (lambda texts: np.ones(2), r"\(2,\) for 2 texts"),
        (lambda texts: np.full((2, 2), np.inf), "not finite"),
        (lambda texts: sparse.csr_array(np.full((2, 2), np.nan)), "not finite"),
    ]:
        with pytest.raises(ValueError, match=f"embedder .*{problem}"):
            signals(agent("a b"), agent("c d"), embedder=FunctionTransformer(function))


def test_what_is_learned_from_texts_is_remembered_in_a_folder(talk, tmp_path):
    n_fits = []

    class Counting(CountVectorizer):
        def fit_transform(self, texts, y=None):
            n_fits.append(len(texts))
            return super().fit_transform(texts)

    plain = TracerSignals(Counting()).fit_transform(talk)
    kept = TracerSignals(CountVectorizer(), memory=str(tmp_path))
    for signals_of_talk in (kept, clone(kept)):
        again = signals_of_talk.fit_transform(talk)
        assert np.array_equal(again.cells, plain.cells, equal_nan=True)
    assert len(list(tmp_path.rglob("output.pkl"))) == 2  # a fit, and the rows
    assert len(n_fits) == 1


def talks(n_runs, rng):
    words = np.array([f"word{k}" for k in range(999)])
    said = [[" ".join(rng.choice(words, 60)) for _ in range(3)] for _ in range(n_runs)]
    return [
        Run(
            f"r{k}", [user("Hello"), agent(texts[0], find(k), observation=texts[1]), user(texts[2])]
        )
        for k, texts in enumerate(said)
    ]


@pytest.mark.parametrize("embedder", ["char", CountVectorizer()], ids=repr)
def test_no_digit_depends_on_the_order_of_runs_or_on_their_batches(embedder, rng):
    runs = talks(400, rng)  # of several batches
    fitted = TracerSignals(embedder).fit(runs)
    S = fitted.transform(runs)
    back = TracerSignals(embedder).fit_transform(runs[::-1])
    assert np.array_equal(back[::-1].cells, S.cells, equal_nan=True)
    some = [7, 211, 399]
    alone = fitted.transform([runs[row] for row in some])
    assert np.array_equal(alone.cells, S[some].cells, equal_nan=True)


def test_a_text_of_two_batches_is_learned_once(rng):
    runs = talks(400, rng)
    twice = [*runs, *(Run(f"again {run.id}", run.steps) for run in runs)]
    S = TracerSignals().fit_transform(twice)
    assert np.array_equal(S[:400].cells, S[400:].cells, equal_nan=True)
    assert np.array_equal(S[:400].cells, TracerSignals().fit_transform(runs).cells, equal_nan=True)


def test_memory_is_that_of_a_batch_of_runs(rng):
    beyond = []
    for n_runs in (200, 400):  # of one batch, and of two
        runs = talks(n_runs, rng)
        tracemalloc.start()
        S = TracerSignals().fit_transform(runs)
        now, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert len(S) == n_runs
        beyond.append(peak - now)
    assert beyond[1] < 1.1 * beyond[0]


def test_a_pretrained_model_by_name(monkeypatch):
    seen = []

    class Model:
        def __init__(self, name):
            seen.append(name)

        def encode(self, texts, show_progress_bar):
            seen.append(max(len(text) for text in texts))
            return [[len(text), 1] for text in texts]

    module = SimpleNamespace(SentenceTransformer=Model)
    monkeypatch.setitem(sys.modules, "sentence_transformers", module)
    steps = [agent("xxx"), user("y" * 70_000)]
    for _ in range(2):
        S = signals(*steps, embedder="a model of this test")
    assert seen == ["a model of this test", 60_000, 60_000]  # loaded once; the end is kept
    cosine = (3 * 60_000 + 1) / math.sqrt(10 * (60_000**2 + 1))
    assert S["user_gap"].cells[-1] == pytest.approx(1 - cosine, abs=1e-6)
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(ImportError, match='sentence-transformers.*"char"'):
        signals(*steps, embedder="another model")


def test_bad_input_is_named():
    fine = Run("a", [agent("hi")])
    for runs, problem in [
        ("log.json", "got str.*read_runs"), (5, "got int.*read_runs"),
        (np.ones((2, 2)), "got ndarray"), ([fine, "b"], "row 1 .*str"),
        ([Run("a", ["hi"])], "'a': step 1 .*io.Step"), ([Run("a", [{}])], "'a': step 1 is dict"),
        ([], "empty list"), ([fine, Run("b")], r"run 'b' \(row 1\) has no turn"),
        ([Run("a", [Step("assistant", "hi")])], "'assistant'"),
        ([Run("a", [agent("x", logprobs=(-1.0,)), agent("x", logprobs=(0.5,))])],
         "step 2, token 0.* 0.5"),
        ([Run("r", [user("hi"), agent("x", logprobs=(-0.1, 0.3), index=4)],
              meta={"file": "log.json"})],
         r"log\.json, run 'r' \(row 0\), step 2 \(message 4\), token 1.* 0\.3"),
        ([Run("r", [agent("bag", tokens=("b", "ag"), logprobs=(-0.1,))])],
         r"run 'r' \(row 0\), step 1.* 2 tokens for 1"),
    ]:  # fmt: skip
        with pytest.raises((TypeError, ValueError), match=problem):
            TracerSignals().fit(runs)
    for name, value in {
        "window": 0, "tool_window": 0, "least_surprisal": -1, "embedder": 3,
        "definition": "theirs", "actors": "all",
    }.items():  # fmt: skip
        with pytest.raises(ValueError, match=f"{name} must be"):
            TracerSignals(**{name: value}).fit([fine])
