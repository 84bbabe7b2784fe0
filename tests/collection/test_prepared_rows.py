"""Collections of table rows: text and numbers, which the steps of the hasher turn into the vectors that are kept."""

import numpy as np
import pytest

from starshl import Collection, HybridHasher, StarRidge
from starshl.data.features import Scale, TableFeatures
from starshl.hashers import PreparedHasher
from starshl.hashers.baselines import LSHash

CITIES = ["Rom", "Oslo", "Paris"]


@pytest.fixture(scope="module")
def people():
    """Rows of an age, an income and a city, their classes, and a fitted hasher of such rows."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 120)
    cells = [
        [age, income, CITIES[city]]
        for age, income, city in zip(
            rng.normal(30 + 30 * y, 5), rng.normal(30_000 + 40_000 * y, 5_000), rng.integers(0, 3, 120), strict=True
        )
    ]
    rows = np.array(cells, dtype=object)
    steps = [TableFeatures(), Scale()]
    return rows, y, PreparedHasher(steps, HybridHasher(4, random_state=0)).fit(rows, y)


@pytest.fixture
def collection(people, tmp_path):
    rows, y, hasher = people
    with Collection.create(tmp_path / "people", hasher, vectors="float16") as made:
        made.add(rows, labels=y)
        yield made


def test_prepared_rows_are_kept_and_order_what_the_codes_find(people, collection):
    rows, _, hasher = people
    prepared = hasher.prepare(rows)
    assert np.allclose(collection.vectors(range(120)), prepared, atol=1e-2)
    found = collection.search(rows[:20], k=3, oversample=40)
    for query, hits in enumerate(found):
        same = np.flatnonzero(hasher.predict(rows) == hasher.predict(rows[query : query + 1]))
        distances = np.linalg.norm(prepared[same] - prepared[query], axis=1)
        assert np.allclose([hit.rescored for hit in hits], np.sort(distances)[:3], atol=1e-2)
    assert "apart (euclidean)" in str(collection.explain(rows[:1], found[0])[0])


def test_a_stored_item_finds_itself_and_its_kept_vector_finds_it_too(collection):
    by_id = collection.search(items=[7], k=4)[0]
    by_vector = collection.search(collection.vectors([7]), k=4)[0]
    assert by_id[0].id == 7
    assert [hit.id for hit in by_vector] == [hit.id for hit in by_id]


def test_a_kept_vector_as_wide_as_its_row_is_not_prepared_again(tmp_path):
    numbers = np.random.default_rng(0).normal(50, 10, (200, 4))
    rows = np.array([[*row, "Rom" if row[0] > 50 else None] for row in numbers], dtype=object)
    hasher = PreparedHasher([TableFeatures(), Scale()], LSHash(64, random_state=0)).fit(rows)
    with Collection.create(tmp_path / "people", hasher, vectors="float16") as collection:
        collection.add(rows)
        by_id = collection.search(items=range(200), k=3, oversample=1)
        by_row = collection.search(rows, k=3, oversample=1)
        same = [[hit.id for hit in one] == [hit.id for hit in other] for one, other in zip(by_id, by_row, strict=True)]
        assert np.mean(same) > 0.95, "but for what float16 rounds"


def test_a_hasher_of_the_kept_vectors_takes_rows_afterward(people, collection):
    rows, y, _ = people
    vectors = collection.vectors(range(120))
    collection.replace_hasher(StarRidge(8, random_state=0).fit(vectors, y))
    assert (collection.hasher.predict(rows) == y).mean() > 0.95
    assert collection.search(rows[:1], k=1)[0][0].rescored < 1e-2
    assert collection.verify() == 120


def test_a_hasher_with_other_steps_needs_the_rows(people, collection):
    rows, y, _ = people
    other = PreparedHasher([TableFeatures(), Scale()], StarRidge(8, random_state=0)).fit(rows[:60], y[:60])
    with pytest.raises(ValueError, match="Give the ids and X"):
        collection.replace_hasher(other)
    collection.replace_hasher(other, np.arange(120), rows)
    assert np.allclose(collection.vectors(range(120)), other.prepare(rows), atol=1e-2)
