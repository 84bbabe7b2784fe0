"""Features that become metadata, too."""

import numpy as np
import pytest
from scipy import sparse

from starshl.data.tables import Table, with_kept_features

NAMES = ("age", "size", "city")


def test_features_come_before_other_metadata_and_gaps_are_none():
    X = np.array([[70.0, 1.5, "Rom"], [29.0, None, None]], dtype=object)
    table = Table(X, feature_names=NAMES, metadata=[{"key": 1}, {"key": 2}])
    made = with_kept_features(table, ["city", "age", "size", "key"])
    assert made.metadata == [
        {"city": "Rom", "age": 70, "size": 1.5, "key": 1},
        {"city": None, "age": 29, "size": None, "key": 2},
    ]
    assert [list(row) for row in made.metadata] == [["city", "age", "size", "key"]] * 2
    assert all(type(row["age"]) is int for row in made.metadata)
    assert table.metadata == [{"key": 1}, {"key": 2}]


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
def test_numbers_are_whole_where_the_column_is(kind):
    table = Table(kind(np.array([[1.0, 0.5], [-3.0, 2.0]])), feature_names=("a", "b"))
    assert with_kept_features(table, ["a", "b"]).metadata == [{"a": 1, "b": 0.5}, {"a": -3, "b": 2.0}]
    assert with_kept_features(table, []) is table


def test_names_that_are_no_features_are_refused():
    table = Table(np.zeros((2, 3)), feature_names=NAMES)
    with pytest.raises(ValueError, match="'name' is no column"):
        with_kept_features(table, ["age", "name"])
    with pytest.raises(ValueError, match="Its features have no names"):
        with_kept_features(Table(np.zeros((2, 3))), ["age"])
