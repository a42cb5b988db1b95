"""Packages that come with an extra."""

import json

import pytest

from trajscore.core.optional import optional


def test_what_is_missing_is_named_with_its_extra():
    assert optional("json", "nothing needs it", "data") is json
    with pytest.raises(ImportError) as raised:
        optional("no_such_package.io", "tables need it", "data", ", or go without")
    assert str(raised.value) == (
        'tables need it; run `pip install "scikit-trajscore[data]"`, or go without'
    )
