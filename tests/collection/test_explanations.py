"""Explanations say what is true of a match: every number in them is recomputed here another way."""

import numpy as np
import pytest

from starshl import Collection, HybridHasher, StarRidge, StarSHL
from starshl.collection import ClassOfCode
from starshl.data.features import Scale
from starshl.exceptions import MissingCapabilityError
from starshl.hashers import PreparedHasher


@pytest.fixture(scope="module")
def labels(rows):
    return np.array(["blue", "green", "red"])[np.argmax(rows[:, :3], axis=1)]


@pytest.fixture(scope="module")
def query():
    return np.random.default_rng(5).standard_normal((1, 8))


@pytest.fixture(scope="module")
def ridge(rows, labels):
    return StarRidge(16, random_state=0).fit(rows, labels)


@pytest.fixture
def collection(tmp_path, ridge, rows, labels):
    with Collection.create(tmp_path / "items", ridge, vectors="float16") as collection:
        collection.add(rows, labels=[label if number % 2 else None for number, label in enumerate(labels)])
        yield collection


def test_parts_of_kernels_and_rows_sum_to_the_scores(rows, labels, query, ridge):
    star = StarSHL(8, random_state=0).fit(rows, labels)
    for hasher, scores in ((ridge, ridge.class_scores(query)[0]), (star, star.decision_function(query)[0])):
        parts = hasher.contributions(query)
        np.testing.assert_allclose(parts.by_kernel.sum(axis=1) + hasher.intercept_, scores, atol=1e-5)
        np.testing.assert_allclose(parts.by_row.sum(axis=1) + hasher.intercept_, scores, atol=1e-5)
        assert len(parts.kernels) == len(hasher.kernels_)
        assert (parts.rows == hasher.support_).all()


def test_bits_classes_and_distances_are_those_of_the_codes(collection, ridge, query):
    hits = collection.search(query, k=10)[0]
    query_signs = ridge.transform(query)[0]
    vectors = collection.vectors([hit.id for hit in hits])
    for hit, why, vector in zip(hits, collection.explain(query, hits), vectors, strict=True):
        signs = collection.codes([hit.id]).to_signs()[0]
        assert (why.id, why.probability, why.label, why.code_from) == (
            hit.id,
            hit.probability,
            hit.label,
            hit.code_from,
        )
        assert why.agreeing == np.flatnonzero(signs == query_signs).tolist()
        assert sorted(why.differing) == np.flatnonzero(signs != query_signs).tolist()
        assert why.rescored == hit.rescored == pytest.approx(np.linalg.norm(vector - query[0]))
        assert why.distance == len(why.differing)
        of_item = ridge.words.posteriors_of(collection.codes([hit.id]))[0]
        for found, shares in ((why.query_class, ridge.predict_proba(query)[0]), (why.item_class, of_item)):
            assert found == ClassOfCode(ridge.classes_[shares.argmax()], None, pytest.approx(shares.max(), abs=1e-6))
    labeled = [why for why in collection.explain(query, hits) if why.code_from == "label"]
    assert labeled
    assert all(why.item_class == ClassOfCode(why.label, None, 1.0) for why in labeled)


def test_without_probabilities_the_nearest_codewords_are_named(tmp_path, rows, labels, query):
    hasher = StarSHL(8, random_state=0).fit(rows, labels)
    with Collection.create(tmp_path / "items", hasher) as collection:
        collection.add(rows, labels=labels)
        hits = collection.search(query, k=5)[0]
        for hit, why in zip(hits, collection.explain(query, hits), strict=True):
            codes = hasher.transform(query)[0], collection.codes([hit.id]).to_signs()[0]
            assert (why.distance, why.probability, why.neighbor_distance) == (hit.distance, None, None)
            for found, code in zip((why.query_class, why.item_class), codes, strict=True):
                distances = (hasher.codewords_ != code).sum(axis=1)
                assert found == ClassOfCode(hasher.classes_[distances.argmin()], distances.min())


def test_the_largest_parts_are_those_of_the_items_class(collection, ridge, query):
    why = collection.explain(query, [1])[0]
    parts, place = ridge.contributions(query), ridge.classes_.tolist().index(why.item_class.label)
    assert [part for _, part in why.kernels] == pytest.approx(np.sort(parts.by_kernel[place])[::-1][:3])
    assert why.training_rows[0][0] == parts.rows[parts.by_row[place].argmax()]


def test_without_class_scores_the_parts_are_those_of_the_agreement_with_the_code(tmp_path, rows, labels, query):
    hasher = StarSHL(8, random_state=0).fit(rows, labels)
    with Collection.create(tmp_path / "items", hasher) as collection:
        collection.add(rows)
        why = collection.explain(query, [4])[0]
        agreement = collection.codes([4]).to_signs()[0] / 8
    parts = hasher.contributions(query)
    assert why.training_rows[0][1] == pytest.approx((agreement @ parts.by_row).max())
    assert why.rescored is None


def test_certain_bits_come_first_among_those_that_differ(folder, hasher, query):
    with Collection(folder) as collection:
        why = collection.explain(query, collection.search(query, k=60)[0][-1:])[0]
    certainty = np.abs(hasher.decision_function(query)[0])[why.differing]
    assert len(certainty) > 3
    assert (np.diff(certainty) <= 0).all()
    assert (why.query_class, why.kernels, why.training_rows) == (None, [], [])


def test_an_explanation_reads_as_sentences(collection, query):
    text = str(collection.explain(query, [1])[0])
    assert text.startswith("Item 1 differs from the query in ")
    assert "Its code follows from its label, " in text
    for part in (
        " of 16 bits",
        "It is of the query's class with a probability of ",
        " apart (euclidean).",
        "Kernels that",
    ):
        assert part in text


def test_prepared_hashers_are_explained_too(tmp_path, rows, labels, query):
    hasher = PreparedHasher([Scale()], StarRidge(8, random_state=0)).fit(rows, labels)
    with Collection.create(tmp_path / "items", hasher) as collection:
        collection.add(rows, labels=labels)
        why = collection.explain(query, collection.search(query, k=1)[0])[0]
    assert len(why.kernels) == len(why.training_rows) == 3
    assert why.item_class.probability == 1


@pytest.mark.parametrize("form", ["hamming", "residual"])
def test_both_parts_of_the_distance_of_a_hybrid_are_explained(tmp_path, rows, labels, query, form):
    hasher = HybridHasher(8, class_hasher=StarRidge(random_state=0), form=form, random_state=0).fit(rows, labels)
    with Collection.create(tmp_path / "items", hasher) as collection:
        collection.add(rows, labels=labels)
        hits = collection.search(query, k=60)[0]
        explained = collection.explain(query, hits)
        why = collection.explain(query, [4])[0]
        signs = collection.codes([4]).to_signs()[0]
    costs = hasher.score_rule.class_costs([hit.probability for hit in hits])
    assert [each.probability for each in explained] == [hit.probability for hit in hits]
    near = [each.neighbor_distance for each in explained]
    assert near == pytest.approx([hit.distance - cost for hit, cost in zip(hits, costs, strict=True)], abs=1e-9)
    if form == "hamming":
        assert near == pytest.approx(hasher.score_rule.saturated([each.distance for each in explained]))
    first = hasher.class_bits_
    assert sorted([*why.agreeing, *why.differing]) == list(range(first, 8))
    assert sorted(why.differing) == [b for b in range(first, 8) if signs[b] != hasher.transform(query)[0][b]]
    assert "The neighborhood adds" in str(why)
    assert why.item_class == ClassOfCode(labels[4], None, 1.0)
    assert why.query_class.label == hasher.predict(query)[0]
    parts, place = hasher.contributions(query), hasher.classes_.tolist().index(labels[4])
    assert [part for _, part in why.kernels] == pytest.approx(np.sort(parts.by_kernel[place])[::-1][:3])


def test_clusters_of_words_are_told_by_the_nearest_codewords(tmp_path, rows, query):
    clusters = StarRidge(16, n_codewords=4, random_state=0).fit(rows)
    with Collection.create(tmp_path / "clusters", clusters) as collection:
        collection.add(rows)
        (why,) = collection.explain(query, collection.search(query, k=1)[0])
    assert why.probability is None
    distances = clusters.codeword_distances(query)[0]
    assert why.query_class == ClassOfCode(int(distances.argmin()), int(distances.min()))
    assert why.kernels
    assert why.training_rows


def test_clusters_in_a_hybrid_code_have_no_names(tmp_path, rows, query):
    hasher = HybridHasher(8, random_state=0).fit(rows)
    with Collection.create(tmp_path / "items", hasher) as collection:
        collection.add(rows)
        why = collection.explain(query, [4])[0]
    assert (why.query_class, why.item_class, why.probability, why.kernels) == (None, None, None, [])
    assert why.neighbor_distance >= 0


def test_views_that_weigh_most_are_named(tmp_path, rows, labels, query):
    half = rows.shape[1] // 2
    views = {"left": slice(0, half), "right": slice(half, None)}
    hasher = StarRidge(8, views=views, random_state=0).fit(rows, labels)
    with Collection.create(tmp_path / "items", hasher) as collection:
        collection.add(rows, labels=labels)
        why = collection.explain(query, collection.search(query, k=1)[0])[0]
    assert {view for view, _ in why.views} == {"left", "right"}
    assert why.kernels[0][0].startswith(("left: ", "right: "))
    assert f"Views that matter most: {why.views[0][0]} (" in str(why)


@pytest.fixture(scope="module")
def strange(query):
    """The query, and a row far away from all that the hasher has seen."""
    return np.vstack([query / 3, np.full((1, 8), 40.0)])


def test_a_search_says_none_of_these_where_the_query_is_like_no_training_row(collection, ridge, strange):
    def found(**options):
        return [each.hits for each in collection.search(strange, k=3, **options)]

    usual = found()
    assert collection.novelty(strange).tolist() == ridge.novelty(strange).tolist()
    assert [each.novelty for each in collection.search(strange, reject=0.05)] == ridge.novelty(strange).tolist()
    assert found(reject=0.05) == [usual[0], []]
    assert found(reject=0) == usual
    assert found(reject=1) == [[], []]


def test_a_prediction_is_none_where_the_row_is_like_no_training_row(collection, ridge, strange):
    usual = collection.predict(strange, probabilities=True)
    assert usual.novelty is None
    rejected = collection.predict(strange, probabilities=True, reject=0.05)
    assert rejected.labels == [usual.labels[0], None]
    assert (rejected.novelty, rejected.probabilities) == (ridge.novelty(strange).tolist(), usual.probabilities)
    assert collection.predict(strange, reject=0).labels == usual.labels
    assert collection.predict(strange, reject=1).labels == [None, None]


def test_an_explanation_says_how_familiar_the_query_is(collection, ridge, strange):
    for row in range(2):
        why = collection.explain(strange[row : row + 1], [1])[0]
        assert why.novelty == ridge.novelty(strange[row : row + 1])[0]
        assert f"Of the training rows, {why.novelty:.0%} look more familiar than the query." in str(why)


def test_hashers_that_cannot_tell_say_so_instead(tmp_path, folder, ridge, rows, query):
    with Collection(folder) as plain:
        assert plain.explain(query, [1])[0].novelty is None
        for ask in (lambda: plain.novelty(query), lambda: plain.search(query, reject=0.1)):
            with pytest.raises(MissingCapabilityError) as refused:
                ask()
            assert (refused.value.fields["method"], refused.value.fields["capability"]) == ("LSHash", "novelty")
    with Collection.create(tmp_path / "small", ridge.compress(30)) as small:
        small.add(rows)
        assert small.explain(query, [1])[0].novelty is None
        with pytest.raises(ValueError, match="This hasher was compressed"):
            small.novelty(query)


@pytest.mark.parametrize(
    ("use", "error", "message"),
    [
        (lambda c, x: c.explain(np.repeat(x, 2, axis=0), [1]), ValueError, "X has 2 rows"),
        (lambda c, x: c.explain(x, c.search(x)), TypeError, "hits holds a SearchResult"),
        (lambda c, x: c.explain(x, [777]), KeyError, "777 is not"),
        (lambda c, x: c.search(x, reject=5), ValueError, "reject is 5"),
        (lambda c, x: c.predict(x, reject=5), ValueError, "reject is 5"),
        (lambda c, x: c.search(items=[1], reject=0.1), ValueError, "reject needs X"),
        (lambda c, x: c.explain(x, [1], metric="hamming"), ValueError, "choose one of 'euclidean', 'cosine'"),
    ],
)
def test_bad_requests_are_refused(collection, query, use, error, message):
    with pytest.raises(error, match=message):
        use(collection, query)
