"""Values as JSON has them."""

import json

import numpy as np
import pandas as pd
import pytest

from trajscore.core.plain import plain, unique_keys


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        ("text", "text"),
        (0.5, 0.5),
        (float("nan"), None),
        (float("inf"), None),
        (-np.inf, None),
        (np.float32(0.5), 0.5),
        (np.float64("nan"), None),
        (np.int64(3), 3),
        (np.bool_(True), True),
        ((1, (2.0, np.nan)), [1, [2.0, None]]),
        ({1: [np.inf], "a": {None: ()}}, {"1": [None], "a": {"None": []}}),
        ([10**400], [10**400]),
    ],
)
def test_values(value, expected):
    found = plain(value)
    assert found == expected
    assert type(found) is type(expected)
    assert json.loads(json.dumps(found, allow_nan=False)) == expected


def test_other_objects_stay():
    table = pd.DataFrame()
    assert plain([table])[0] is table


def test_keys_stand_once():
    assert unique_keys([]) == {}
    assert unique_keys([("a", 1), ("b", 1)]) == {"a": 1, "b": 1}
    words = "the key 'b' stands twice in one object; keep one of them"
    with pytest.raises(ValueError, match=words):
        unique_keys([("a", 1), ("b", 1), ("c", 1), ("c", 1), ("b", 1)])
    with pytest.raises(ValueError, match=words):
        json.loads('{"a": {"b": 1, "b": 1}}', object_pairs_hook=unique_keys)
