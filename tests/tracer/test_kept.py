"""What is kept of runs: found again by their content, and only then."""

import copy
import pickle

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from trajscore import ActionSignals, StepConfidence, TracerScorer, TracerSignals, io
from trajscore.io import Run, Step, ToolCall
from trajscore.tracer import _embedders, _turns
from trajscore.tracer._kept import Store, content_key


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch):
    monkeypatch.setattr(_turns, "_CHANNELS", Store(1 << 27))
    monkeypatch.setattr(_embedders, "_ROWS", Store(1 << 20))


@pytest.fixture
def computed(monkeypatch):
    """Names of the transformers that computed something, in order."""
    names = []
    for kind in (ActionSignals, StepConfidence, TracerSignals):

        def channels_of(self, X, *, reset, true=kind._channels_of):
            names.append(type(self).__name__)
            return true(self, X, reset=reset)

        monkeypatch.setattr(kind, "_channels_of", channels_of)
    return names


@pytest.mark.parametrize("kind", [ActionSignals, StepConfidence, TracerSignals])
def test_the_second_time_at_once(kind, talk, computed):
    first = kind()
    X, Z = first.fit_transform(talk[:8]), first.transform(talk)
    again = kind().fit(copy.deepcopy(talk[:8]))
    assert again.transform(copy.deepcopy(talk)) == Z
    assert again.transform(talk[:8]) == X
    assert len(computed) == 3
    fitted = {name for name in vars(first) if name.endswith("_")}
    assert fitted == {name for name in vars(again) if name.endswith("_")}
    assert pickle.loads(pickle.dumps(again)).transform(talk) == Z
    assert len(computed) == 3


def test_what_is_fitted_on_counts(computed):
    said = ["My bag is lost", "Is the bag here", "The bus is late", "A late bus"]
    talk = [Run(text, [Step("agent", text), Step("user", said[k - 1])])
            for k, text in enumerate(said)]  # fmt: skip
    one, other = TracerSignals().fit(talk[:1]), TracerSignals().fit(talk[2:])
    assert one.transform(talk) == TracerSignals().fit(talk[:1]).transform(talk)
    assert not np.array_equal(
        one.transform(talk).cells, other.transform(talk).cells, equal_nan=True
    )
    assert len(computed) == 4
    ActionSignals().fit_transform(talk)
    ActionSignals(so_far=False).fit_transform(talk)
    assert len(computed) == 6


def change_text(run):
    run.steps[1].text += " now"


def change_argument(run):
    run.steps[1].tool_calls[0].arguments["way"].append("x")


def change_usage(run):
    run.steps[1].extra["usage"]["completion_tokens"] = 9


def change_outcome(run):
    run.outcome = -1


def add_turn(run):
    run.steps.append(Step("agent", "Bye"))


@pytest.mark.parametrize(
    "change", [change_text, change_argument, change_usage, change_outcome, add_turn]
)
def test_a_changed_run_is_another_one(change):
    step = Step("agent", "Hi", [ToolCall("find", {"way": ["a"]}, result="b")],
                extra={"usage": {"completion_tokens": 4}})  # fmt: skip
    run = Run("a", [Step("user", "Hello"), step], outcome=1)
    signals = ActionSignals(signals=["agent_turns", "agent_text", "arguments", "tokens"])
    before = signals.fit_transform([run])
    change(run)
    after = signals.fit_transform([run])
    same = np.array_equal(before.cells, after.cells, equal_nan=True)
    assert not (same and np.array_equal(before.ended, after.ended))


def test_what_is_not_known_by_its_value_is_not_kept(talk, computed):
    for _ in range(2):
        TracerSignals(CountVectorizer()).fit(talk).transform(talk)
        StepConfidence(verbal=lambda step: 0.5).fit_transform(talk)
    assert len(computed) == 6
    talk[0].steps[0].extra["handle"] = lambda: None
    assert content_key("", talk) is None
    assert ActionSignals().fit_transform(talk) == ActionSignals().fit_transform(talk)
    assert len(computed) == 8


def test_a_search_computes_each_fold_once(talk, computed):
    model = make_pipeline(TracerSignals(), TracerScorer())
    grid = {"tracerscorer__alpha": [0, 0.5, 1, 2], "tracerscorer__k": [0.1, 0.5]}
    GridSearchCV(model, grid, scoring="roc_auc", cv=3).fit(talk, io.outcomes(talk))
    assert len(computed) == 2 * 3 + 1


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
    ours = _embedders.make_embedder("char")[0]
    theirs = HashingVectorizer(analyzer="char", ngram_range=(3, 3), n_features=1 << 18)
    for some in (texts[:3], texts, texts[::-1], [""]):
        found, expected = ours.fit_transform(some), theirs.fit_transform(some)
        assert found.shape == expected.shape
        assert (found != expected).nnz == 0


def test_what_is_not_read_is_no_part_of_the_key(talk, computed):
    S = TracerSignals().fit_transform(talk)
    talk[0].steps[0].extra["handle"] = lambda: None
    assert TracerSignals().fit_transform(talk) == S
    assert computed == ["TracerSignals"]
    talk[0].meta["itself"] = talk[0].meta
    assert content_key("", talk, extra=False) is None


def test_a_store_forgets_what_was_not_asked_for():
    store = Store(limit=10)
    for key in "abc":
        store.put(key, key.upper(), 3)
    assert store.get("a") == "A"
    store.put("d", "D", 3)
    assert [store.get(key) for key in "abcd"] == ["A", None, "C", "D"]
    store.put("d", "E", 4)
    store.put("huge", "H", 11)
    assert [store.get(key) for key in ("a", "c", "d", "huge")] == ["A", "C", "E", None]
    store.put("all", "A", 10)
    assert [store.get(key) for key in ("a", "d", "all")] == [None, None, "A"]
