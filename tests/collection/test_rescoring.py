"""Rescoring: candidates by their codes, the order by kept vectors; that with probabilities is in another file."""

import numpy as np
import pytest

from starshl import Collection
from starshl.hashers.baselines import ITQ, LSHash

from .kept_vectors import KINDS, brute_force


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("kind", KINDS)
def test_rescoring_all_items_is_brute_force_over_the_vectors(kept, rows, metric, kind):
    queries = np.random.default_rng(1).standard_normal((7, 8))
    with Collection(kept) as collection:
        stored = collection.vectors(np.arange(60))
        found = collection.search(queries, k=6, oversample=10, metric=metric)
        for query, hits in zip(queries, found, strict=True):
            ids, distances = brute_force(query, stored, np.arange(60), 6, metric)
            assert [hit.id for hit in hits] == ids
            np.testing.assert_allclose([hit.rescored for hit in hits], distances, atol=1e-12)
        codes, items = collection.hasher.encode(queries), collection.codes(np.arange(60))
        hamming = codes.distances(items)
        assert all(hit.distance == hamming[q, hit.id] for q, hits in enumerate(found) for hit in hits)


def test_rescoring_chooses_candidates_by_scores_and_then_by_vectors(tmp_path):
    X = np.random.default_rng(0).standard_normal((3000, 16))
    hasher = ITQ(12, random_state=0).fit(X)
    queries = X[:20] + 0.3
    with Collection.create(tmp_path / "items", hasher, vectors="float16") as collection:
        collection.add(X)
        found = collection.search(queries, k=3, oversample=5)
        stored = collection.vectors(np.arange(3000))
    signs, scores = hasher.encode_database(X).to_signs(), hasher.decision_function(queries)
    hamming = hasher.encode(queries).distances(hasher.encode_database(X))
    for q, hits in enumerate(found):
        shortlist = np.lexsort((np.arange(3000), hamming[q]))[:150]
        # Rounded: sums of the same numbers in another order.
        products = np.round(signs[shortlist] @ scores[q], 9)
        candidates = shortlist[np.lexsort((shortlist, -products))[:15]]
        assert [hit.id for hit in hits] == brute_force(queries[q], stored[candidates], candidates, 3)[0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"oversample": 5}, r"oversample is 5"),
        ({"metric": "cosine"}, r"metric is 'cosine'"),
        ({"rescore": True}, r"keeps no vectors"),
    ],
)
def test_without_vectors_nothing_about_rescoring_is_ignored(folder, rows, options, message):
    with Collection(folder) as collection, pytest.raises(ValueError, match=message):
        collection.search(rows[:1], **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rescore": False, "oversample": 5}, r"oversample is 5.*rescore=False"),
        ({"oversample": 0}, "oversample is 0"),
        ({"metric": "hamming"}, "metric is 'hamming'"),
    ],
)
def test_options_of_rescoring_that_cannot_be_meant_are_refused(kept, rows, options, message):
    with Collection(kept) as collection, pytest.raises(ValueError, match=message):
        collection.search(rows[:1], **options)


def test_more_candidates_find_more_of_the_nearest_vectors(tmp_path):
    X = np.random.default_rng(0).standard_normal((3000, 16))
    queries = np.random.default_rng(1).standard_normal((30, 16))
    true = np.argsort(np.linalg.norm(queries[:, None] - X, axis=2), axis=1)[:, :10]

    def recall(**options):
        found = collection.search(queries, k=10, **options)
        return np.mean([len({hit.id for hit in hits} & set(ids)) / 10 for hits, ids in zip(found, true, strict=True)])

    with Collection.create(tmp_path / "items", ITQ(16, random_state=0).fit(X), vectors="float16") as collection:
        collection.add(X)
        plain, few, many = recall(rescore=False), recall(oversample=2), recall(oversample=20)
    assert plain < few < many


@pytest.mark.parametrize("kind", KINDS)
def test_equal_vectors_are_ordered_by_id(tmp_path, hasher, rows, kind):
    with Collection.create(tmp_path / "items", hasher, vectors=kind) as collection:
        collection.add(np.repeat(rows[:2], 20, axis=0), ids=np.arange(40)[::-1])
        hits = collection.search(rows[:1], k=15)[0]
        assert [hit.id for hit in hits] == list(range(20, 35))
        assert len({hit.rescored for hit in hits}) == 1


def test_filters_apply_before_rescoring(kept, rows):
    with Collection(kept) as collection:
        stored = collection.vectors(np.arange(60))
        hits = collection.search(rows[:1], k=3, oversample=1000, where={"price": {">=": 40}}, among=np.arange(50))[0]
        assert [hit.id for hit in hits] == brute_force(rows[0], stored[40:50], np.arange(40, 50), 3)[0]
        collection.set_labels([7, 9], ["a", "a"])
        assert {hit.id for hit in collection.search(rows[:1], labels=["a"])[0]} == {7, 9}
        assert [*map(len, collection.search(rows[:1], among=[]))] == [0]


@pytest.mark.parametrize("kind", KINDS)
def test_an_item_is_its_own_nearest_neighbor(kept, kind):
    with Collection(kept) as collection:
        for item, hits in zip([3, 9], collection.search(items=[3, 9], k=5), strict=True):
            assert (hits[0].id, hits[0].rescored) == (item, 0.0)


def test_answers_do_not_depend_on_how_many_queries_come_at_once(kept, rows, monkeypatch):
    with Collection(kept) as collection:
        together = collection.search(rows, k=5, oversample=3)
        assert together == [collection.search(rows[q : q + 1], k=5, oversample=3)[0] for q in range(60)]


def test_without_rescoring_the_codes_decide(kept, folder, rows):
    def plain(hits):
        return [[(hit.id, hit.distance, hit.rescored) for hit in found] for found in hits]

    with Collection(kept) as with_vectors, Collection(folder) as without:
        expected = plain(without.search(rows[:5], k=7))
        assert plain(with_vectors.search(rows[:5], k=7, rescore=False)) == expected


def test_rescoring_without_vectors_is_refused(folder, rows):
    with Collection(folder) as collection:
        for use in (
            lambda: collection.search(rows[:1], rescore=True),
            lambda: collection.vectors([1]),
        ):
            with pytest.raises(ValueError, match="keeps no vectors"):
                use()
        with pytest.raises(ValueError, match="every item exactly once"):
            collection.replace_hasher(LSHash(24, random_state=5).fit(rows))


def test_short_codes_that_many_items_share_hide_no_neighbor(tmp_path):
    X = np.random.default_rng(3).standard_normal((300, 6))
    with Collection.create(tmp_path / "items", ITQ(3, random_state=0).fit(X), vectors="float16") as collection:
        collection.add(X)
        stored = collection.vectors(collection.ids)
        for query in X[-20:] + 0.1:
            (expected,), _ = brute_force(query, stored, collection.ids, 1)
            assert collection.search(query[None], k=1)[0][0].id == expected
