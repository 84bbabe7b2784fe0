"""Hits say how likely they are of the query's class, and searches leave out what is not likely enough."""

import numpy as np
import pytest

from starshl import BinaryCodes, Collection, HybridHasher, StarRidge, StarSHL
from starshl.codes import EncodedQueries
from starshl.collection.model_classes import ShownClasses
from starshl.exceptions import InputError, MissingCapabilityError
from starshl.hashers.baselines import ITQ


@pytest.fixture(scope="module")
def blobs():
    """Rows of four classes that overlap, so that there is doubt."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 260)
    return rng.normal(size=(4, 6))[y] * 1.2 + rng.normal(size=(260, 6)), np.array(["ant", "bee", "cow", "dog"])[y]


@pytest.fixture(scope="module", params=["ridge", "hamming", "residual"])
def hasher(request, blobs):
    X, y = blobs
    if request.param == "ridge":
        return StarRidge(16, random_state=0).fit(X[:120], y[:120])
    return HybridHasher(9, form=request.param, random_state=0).fit(X[:120], y[:120])


@pytest.fixture
def collection(tmp_path, hasher, blobs):
    """Items of which every other one has its label."""
    X, y = blobs
    labels = [label if number % 2 else None for number, label in enumerate(y[:200].tolist())]
    with Collection.create(tmp_path / "items", hasher) as collection:
        collection.add(X[:200], labels=labels)
        yield collection


def said(collection, X):
    """P(same) of all items by the formula: the posterior of the query times what the code of an item stands for."""
    hasher, items = collection.hasher, collection.get(np.arange(len(collection)))
    stands_for = hasher.words.posteriors_of(hasher.encode_database(collection_rows[: len(items)]))
    for number, item in enumerate(items):
        if item.label is not None:
            stands_for[number] = hasher.classes_ == item.label
    return hasher.predict_proba(X) @ stands_for.T


@pytest.fixture(autouse=True)
def rows_of_items(blobs):
    global collection_rows
    collection_rows = blobs[0]


def test_a_hit_says_how_likely_it_is_of_the_class_of_the_query(collection, blobs):
    queries = blobs[0][200:220]
    for expected, hits in zip(said(collection, queries), collection.search(queries, k=200), strict=True):
        assert len(hits) == 200
        assert [hit.probability for hit in hits] == pytest.approx([expected[hit.id] for hit in hits], abs=1e-5)


def test_the_probability_of_a_labeled_item_is_that_of_its_label(collection, blobs):
    query = blobs[0][200:201]
    shares = collection.predict(query, probabilities=True)
    of_label = dict(zip(shares.classes, shares.probabilities[0], strict=True))
    labeled = [hit for hit in collection.search(query, k=200)[0] if hit.label is not None]
    assert len(labeled) == 100
    assert [hit.probability for hit in labeled] == pytest.approx([of_label[hit.label] for hit in labeled], abs=1e-6)


def test_merged_classes_are_one_class_and_removed_ones_none(collection, blobs):
    query = blobs[0][200:201]
    before = dict(zip(collection.hasher.classes_.tolist(), collection.hasher.predict_proba(query)[0], strict=True))
    codes = collection.codes(collection.ids)
    collection.merge_classes("ant", "bee")
    collection.remove_class("cow")
    kept = 1 - before["cow"]
    together = {"bee": (before["ant"] + before["bee"]) / kept, "dog": before["dog"] / kept}
    hits = collection.search(query, k=200)[0]
    labeled = [hit for hit in hits if hit.label is not None]
    assert [hit.probability for hit in labeled] == pytest.approx([together[hit.label] for hit in labeled], abs=1e-6)
    hidden = [hit.probability for hit in hits if blobs[1][hit.id] == "cow" and hit.id % 2]
    assert hidden
    assert set(hidden) == {0.0}
    said = collection.predict(query, probabilities=True)
    assert dict(zip(said.classes, said.probabilities[0], strict=True)) == pytest.approx(together, abs=1e-6)
    assert collection.codes(collection.ids) == codes
    for _ in range(2):
        collection.undo_class_change()
    assert [hit.probability for hit in collection.search(query, k=200)[0] if hit.label == "ant"] == pytest.approx(
        [before["ant"]] * np.sum(blobs[1][1:200:2] == "ant"), abs=1e-6
    )


def test_the_probability_of_merged_classes_is_the_sum_over_their_pairs():
    posteriors = np.random.default_rng(0).dirichlet(np.ones(12), 200).astype(np.float32)
    stored = np.random.default_rng(1).dirichlet(np.ones(12), 5)
    queries = EncodedQueries(BinaryCodes.from_signs(np.ones((200, 3))), posteriors)
    classes = ShownClasses(["a", "b", "c", "d"], np.array([0, 1, 0, -1, 2, 2, 2, -1, 3, 0, 0, 0]))
    pooled = classes.pooled(queries).posteriors
    same = (classes.columns[:, None] == classes.columns) & (classes.columns >= 0)[:, None]
    by_hand = posteriors @ same @ stored.T / posteriors[:, classes.columns >= 0].sum(axis=1, keepdims=True)
    np.testing.assert_allclose(pooled @ stored.T, by_hand, atol=1e-6)
    alone = [classes.pooled(queries[row : row + 1]).posteriors for row in range(200)]
    np.testing.assert_array_equal(pooled, np.concatenate(alone))


def test_a_query_of_removed_classes_alone_may_be_of_any_other():
    queries = EncodedQueries(BinaryCodes.from_signs([[1]]), [[0, 1, 0]])
    assert ShownClasses(["a", "c"], np.array([0, -1, 1])).pooled(queries).posteriors.tolist() == [[0.5, 0, 0.5]]
    assert ShownClasses([], np.array([-1, -1, -1])).pooled(queries).posteriors.tolist() == [[0, 0, 0]]
    codes = EncodedQueries(queries.codes)
    assert ShownClasses(["a"], np.array([0, 0])).pooled(codes) is codes


def test_scores_cannot_order_what_probabilities_order(collection, blobs):
    with pytest.raises(InputError, match=r"by_scores orders .* more than bits\. Leave it out") as error:
        collection.search(blobs[0][200:201], by_scores=True)
    assert error.value.parameter == "by_scores"


def test_a_least_probability_leaves_out_what_is_less_likely(collection, blobs):
    queries = blobs[0][200:210]
    everything = collection.search(queries, k=200)
    for least in (0.0, 0.3, 0.9, 1.0):
        likely = [[hit for hit in hits if hit.probability >= least] for hits in everything]
        assert [found.hits for found in collection.search(queries, k=7, min_probability=least)] == [
            hits[:7] for hits in likely
        ]
        assert [found.hits for found in collection.search_radius(queries, None, min_probability=least)] == likely
        radius = everything[0][60].distance
        near = [[hit for hit in hits if hit.distance <= radius] for hits in likely]
        found = collection.search_radius(queries, radius, min_probability=least)
        assert [each.hits for each in found] == near
        shown = collection.search(queries, 3, radius=radius, min_probability=least)
        assert [(each.hits, each.total) for each in shown] == [(hits[:3], len(hits)) for hits in near]


def test_filters_and_a_least_probability_both_count(collection, blobs):
    query = blobs[0][200:201]
    hits = [hit for hit in collection.search(query, k=200)[0] if hit.probability >= 0.2 and hit.id < 50]
    assert collection.search(query, k=200, min_probability=0.2, among=np.arange(50))[0].hits == hits


def test_stored_items_are_asked_for_by_what_their_codes_stand_for(collection):
    words = collection.hasher.words
    labeled, unlabeled = collection.search(items=[1, 2], k=200)
    label = collection.get([1])[0].label
    assert {hit.probability for hit in labeled if hit.label == label} == {1.0}
    own = words.posteriors_of(collection.codes([2]))[0]
    known = [hit for hit in unlabeled if hit.label is not None]
    place = collection.hasher.classes_.tolist().index
    assert [hit.probability for hit in known] == pytest.approx([own[place(hit.label)] for hit in known], abs=1e-6)


def test_a_label_changes_no_other_code_and_no_other_hit(collection, blobs):
    queries = blobs[0][200:210]
    before, codes = collection.search(queries, k=200), collection.codes(collection.ids)
    collection.set_labels([0, 1], ["dog", None])
    after = collection.search(queries, k=200)
    for one, other in zip(before, after, strict=True):
        same = [{hit.id: hit for hit in hits if hit.id > 1} for hits in (one, other)]
        assert same[0] == same[1]
    assert collection.codes(np.arange(2, 200)) == codes[2:]
    collection.set_labels([0, 1], [None, blobs[1][1]])
    assert collection.search(queries, k=200) == before


def test_another_process_and_the_next_one_see_the_same_labels(collection, blobs):
    queries = blobs[0][200:205]
    with Collection(collection.folder, read_only=True) as reader:
        assert reader.search(queries, k=50) == collection.search(queries, k=50)
        collection.set_labels([0, 4, 1], ["dog", "ant", None])
        collection.remove([7])
        collection.add(blobs[0][250:], labels=["cow"] * 10)
        expected = collection.search(queries, k=250)
        assert reader.search(queries, k=250) == expected
    with Collection(collection.folder, read_only=True) as later:
        assert later.search(queries, k=250) == expected
        assert later.codes(later.ids) == collection.codes(collection.ids)


def test_a_class_that_the_fit_did_not_know_leaves_an_item_the_code_of_its_vector(collection, blobs):
    query, before = blobs[0][200:201], collection.codes([0])
    probability = {hit.id: hit.probability for hit in collection.search(query, k=200)[0]}
    with pytest.warns(UserWarning, match="does not know the label"):
        collection.set_labels([0], ["emu"])
    assert collection.codes([0]) == before
    assert {hit.id: hit.probability for hit in collection.search(query, k=200)[0]} == probability


def test_likelier_items_come_first_and_vectors_decide_among_equals(tmp_path, blobs):
    X, y = blobs
    hasher = StarRidge(16, random_state=0).fit(X[:120], y[:120])
    with Collection.create(tmp_path / "kept", hasher, vectors="float16") as kept:
        kept.add(X[:200], labels=[label if number % 2 else None for number, label in enumerate(y[:200].tolist())])
        stored = kept.vectors(np.arange(200))
        for query, hits in zip(X[200:206], kept.search(X[200:206], k=200, oversample=1), strict=True):
            exact = np.linalg.norm(stored - query, axis=1)
            assert [hit.rescored for hit in hits] == pytest.approx([exact[hit.id] for hit in hits])
            keys = [(-max(hit.probability, 1e-6), hit.rescored, hit.id) for hit in hits]
            assert keys == sorted(keys)


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("form", ["hamming", "residual"])
def test_a_hybrid_orders_kept_vectors_by_distance_and_probability(tmp_path, blobs, form, metric):
    X, y = blobs
    for weight in (1.0, 0.0):
        hasher = HybridHasher(9, form=form, class_weight=weight, random_state=0).fit(X[:120], y[:120])
        with Collection.create(tmp_path / f"kept {weight}", hasher, vectors="float16") as kept:
            kept.add(X[:200], labels=y[:200])
            hits = kept.search(X[200:201], k=200, metric=metric)[0]
        rule = hasher.vector_rule(metric)
        scores = rule.scores([hit.rescored for hit in hits], [hit.probability for hit in hits])
        assert (np.diff(scores) >= 0).all()
        if weight == 0:
            assert (np.diff([hit.rescored for hit in hits]) >= 0).all()


def test_a_least_probability_holds_for_vectors_that_are_compared(tmp_path, blobs):
    X, y = blobs
    hasher = HybridHasher(9, random_state=0).fit(X[:120], y[:120])
    with Collection.create(tmp_path / "kept", hasher, vectors="int8") as kept:
        kept.add(X[:200], labels=y[:200])
        everything = kept.search(X[200:205], k=200)
        for hits, likely in zip(everything, kept.search(X[200:205], k=200, min_probability=0.4), strict=True):
            assert likely.hits == [hit for hit in hits if hit.probability >= 0.4]


@pytest.mark.parametrize("least", [-0.1, 1.1, float("nan"), float("inf"), "much", True])
def test_what_is_no_probability_is_refused(collection, blobs, least):
    with pytest.raises(InputError) as caught:
        collection.search(blobs[0][:1], min_probability=least)
    assert caught.value.parameter == "min_probability"


def test_a_distance_that_is_no_probability_has_none(tmp_path, blobs):
    X, y = blobs
    makers = {
        "ITQ": ITQ(6, random_state=0).fit(X),
        "StarSHL": StarSHL(8, random_state=0).fit(X[:60], y[:60]),
        "HybridHasher": HybridHasher(8, random_state=0).fit(X),  # clusters
    }
    for method, hasher in makers.items():
        with Collection.create(tmp_path / method, hasher) as plain:
            plain.add(X[:50])
            assert {hit.probability for hit in plain.search(X[:1])[0]} == {None}
            for ask in (
                lambda: plain.search(X[:1], min_probability=0.5),
                lambda: plain.search_radius(X[:1], None, min_probability=0.5),
                lambda: plain.search(items=[1], min_probability=0.5),
            ):
                with pytest.raises(MissingCapabilityError) as refused:
                    ask()
                assert (refused.value.fields["method"], refused.value.fields["capability"]) == (method, "probability")


def test_a_search_without_any_limit_is_refused(collection, blobs):
    with pytest.raises(InputError, match="radius"):
        collection.search_radius(blobs[0][:1], None)
