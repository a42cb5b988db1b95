"""The text of messages, whatever their content."""

import pytest

from trajscore.io.text import only_text, text_of, whole_text


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (None, ""), ("a", "a"), ([], ""), (["a", "", "b"], "a\nb"), ({"text": "a", "x": 1}, "a"),
        ([{"text": "a"}, {"type": "image"}, {"type": "text", "text": "b"}], "a\nb"),
        ([{"x": "é"}, 3], '{"x": "é"}\n3'), ({"text": 3}, '{"text": 3}'), (3, "3"), (True, "true"),
        ([{"text": None, "type": 3}], '{"text": null, "type": 3}'),
    ],
)  # fmt: skip
def test_text_of_any_content(content, text):
    assert text_of(content) == text


@pytest.mark.parametrize(
    ("content", "is_text"),
    [
        ("a", True), (None, True), (["a", 3], True), ([{"type": "text", "text": "a"}], True),
        ([{"text": "a"}, {"type": "image", "url": "u"}], False), ({"type": "image"}, True),
    ],
)  # fmt: skip
def test_nothing_but_text(content, is_text):
    assert only_text(content) == is_text


def test_halves_of_surrogate_pairs():
    assert whole_text("a\ud83d") == "a?"
    assert whole_text("é🧳") == "é🧳"
    assert text_of(["\udc00"]) == "?"


def test_a_refusal_is_text():
    parts = [{"type": "text", "text": "So."}, {"type": "refusal", "refusal": "No."}]
    assert text_of(parts) == "So.\nNo."
