"""Attributes of a span, by the names that libraries give them."""

from trajscore.io._attributes import attributes_of


def test_names_of_nested_attributes_end_after_nine_levels():
    nested = 1
    for _ in range(20):
        nested = {"a": nested}
    names = attributes_of({"attributes": nested})
    assert sorted(names, key=len) == [".".join("a" * k) for k in range(1, 10)]
