"""What a collection says about many items at once."""

import numpy as np
import pytest

from starshl import Collection
from starshl.hashers.baselines import LSHash


@pytest.fixture
def shop(tmp_path):
    """Six items with labels, prices and a declared field."""
    X = np.random.default_rng(0).standard_normal((6, 5))
    with Collection.create(
        tmp_path / "shop",
        LSHash(8, random_state=0).fit(X),
        vectors="float16",
        fields={"shop": str, "new": bool, "price": int},
    ) as collection:
        collection.add(
            X,
            ids=[5, 3, 9, 1, 7, 2],
            labels=["pear", "fig", "", "fig", "pear", "fig"],
            metadata=[{"shop": "ab"[i % 2], "new": i > 3, "price": i} for i in range(5)] + [{}],
        )
        yield collection


def test_labels_are_counted_the_most_frequent_first(shop):
    assert list(shop.label_counts().items()) == [("fig", 3), ("pear", 2)]


def test_counts_follow_a_change_of_labels(shop):
    shop.set_labels([9], ["pear"])
    shop.set_labels([1], None)
    assert shop.label_counts() == {"pear": 3, "fig": 2}


def test_values_of_a_declared_field_are_counted_without_items_that_lack_it(shop):
    assert list(shop.value_counts("shop").items()) == [("a", 3), ("b", 2)]
    assert shop.value_counts("new") == {False: 4, True: 1}
    assert all(type(value) is bool for value in shop.value_counts("new"))


def test_counting_a_field_that_is_not_declared_is_refused(shop):
    with pytest.raises(ValueError, match="'size' is not"):
        shop.value_counts("size")


def test_find_gives_the_ids_that_a_search_may_return(shop):
    assert shop.find().tolist() == [1, 2, 3, 5, 7, 9]
    assert shop.find({"shop": "a"}).tolist() == [5, 7, 9]
    assert shop.find({"price": {">=": 1}}, labels=["fig"]).tolist() == [1, 3]
    assert shop.find(among=[9, 1, 4]).tolist() == [1, 9]


def test_the_state_of_vectors_changes_with_items_and_not_with_labels(shop):
    before = shop.vectors_state
    shop.set_labels([9], ["pear"])
    assert shop.vectors_state == before
    shop.remove([9])
    without = shop.vectors_state
    shop.add(np.zeros((1, 5)), ids=[9])
    assert len({before, without, shop.vectors_state}) == 3
