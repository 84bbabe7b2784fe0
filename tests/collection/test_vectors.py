"""Kept vectors: stored in step with their items, compared exactly, and never read when damaged."""

import os
import sqlite3
import threading

import numpy as np
import pytest

from starshl import HybridHasher, StarRidge
from starshl.baselines import ITQ, LSHash
from starshl.collection import Collection
from starshl.collection.quantization import RecordLayout
from starshl.collection.store import Store
from starshl.exceptions import CollectionError, CollectionFormatError

KINDS = ("float16", "int8")


@pytest.fixture
def kind():
    """How vectors are kept, unless a test tries both ways."""
    return "float16"


@pytest.fixture
def kept(tmp_path, hasher, rows, kind):
    """A closed collection of 60 items that keeps their vectors."""
    path = tmp_path / "kept"
    with Collection.create(path, hasher, vectors=kind) as collection:
        collection.add(rows, metadata=[{"price": number} for number in range(60)])
    return path


def vector_file(folder):
    (path,) = folder.glob("vectors-*.bin")
    return path


def brute_force(query, stored, ids, k, metric="euclidean"):
    """Return ids and distances by comparing the query with every stored vector."""
    if metric == "euclidean":
        distances = np.linalg.norm(stored - query, axis=1)
    else:
        distances = 1 - stored @ query / (np.linalg.norm(stored, axis=1) * np.linalg.norm(query))
    order = np.lexsort((ids, distances))[:k]
    return np.asarray(ids)[order].tolist(), distances[order]


@pytest.mark.parametrize("scale", [1.0, 1e-30, 1e30, 1e300])
def test_rounding_stays_within_its_bounds(scale):
    X = scale * np.random.default_rng(0).standard_normal((50, 7))
    largest = np.abs(X).max(axis=1, keepdims=True)
    halves, bytes_ = RecordLayout("float16", 7), RecordLayout("int8", 7)
    bound = np.maximum(2.0**-11 * np.abs(X), 2.0**-25 * 2 * largest)
    assert (np.abs(halves.unpack(halves.pack(X)) - X) <= bound).all()
    assert (np.abs(bytes_.unpack(bytes_.pack(X)) - X) <= largest / 254 * (1 + 1e-9)).all()
    assert halves.dtype.itemsize == 8 + 2 * 7
    assert bytes_.dtype.itemsize == 8 + 7


def test_numbers_that_fit_come_back_exactly():
    X = np.array([[0.0, 0.0], [1.5, -2.0], [-127.0, 127.0], [65504.0, 1.0]])
    halves, bytes_ = RecordLayout("float16", 2), RecordLayout("int8", 2)
    assert (halves.unpack(halves.pack(X)) == X).all()
    assert (bytes_.unpack(bytes_.pack(X[[0, 2]])) == X[[0, 2]]).all()


@pytest.mark.parametrize("kind", KINDS)
def test_vectors_come_back(kept, rows, kind):
    layout = RecordLayout(kind, 8)
    with Collection(kept) as collection:
        assert collection.keeps == kind
        assert (collection.vectors([5, 3]) == layout.unpack(layout.pack(rows[[5, 3]]))).all()
        assert collection.vectors([]).shape == (0, 8)
        with pytest.raises(KeyError, match="777"):
            collection.vectors([777])


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


@pytest.fixture(scope="module", params=["hamming", "residual"])
def hybrid(request, rows):
    y = (rows[:, 0] > 0).astype(int)
    return HybridHasher(StarRidge(random_state=0), n_bits=6, form=request.param, class_first=4, random_state=0).fit(
        rows, y
    )


@pytest.fixture
def classes(tmp_path, hybrid, rows):
    """An open collection of hybrid codes, of which every third item has a label that contradicts its vector."""
    labels = (rows[:, 0] > 0) ^ (np.arange(60) % 3 == 0)
    with Collection.create(tmp_path / "classes", hybrid, vectors="float16") as collection:
        collection.add(rows, labels=labels.astype(int))
        yield collection


@pytest.mark.parametrize(("given", "n_first"), [(None, 4), (0, 0), (1, 1), (100, 100)])
def test_the_nearest_vectors_of_the_querys_class_come_first(classes, rows, given, n_first):
    queries = rows[:12] + 0.3
    stored, labels = classes.vectors(np.arange(60)), np.array([item.label for item in classes.get(np.arange(60))])
    found = classes.search(queries, k=7, oversample=60, class_first=given)
    for query, predicted, hits in zip(queries, classes.hasher.predict(queries), found, strict=True):
        exact = np.linalg.norm(stored - query, axis=1)
        by_distance = sorted(range(60), key=lambda item: (exact[item], item))
        first = [item for item in by_distance if labels[item] == predicted][:n_first]
        assert [hit.id for hit in hits] == [*first, *(item for item in by_distance if item not in first)][:7]
        assert [hit.rescored for hit in hits] == pytest.approx([exact[hit.id] for hit in hits])


def test_few_candidates_are_enough_of_the_querys_class(classes, rows):
    labels = np.array([item.label for item in classes.get(np.arange(60))])
    for query, predicted in zip(rows[:12] + 0.3, classes.hasher.predict(rows[:12] + 0.3), strict=True):
        hits = classes.search(query[None], k=6, oversample=1)[0]
        assert [labels[hit.id] == predicted for hit in hits[:4]] == [True] * 4


def test_filters_count_before_the_class_does(classes, rows):
    labels = np.array([item.label for item in classes.get(np.arange(60))])
    predicted = classes.hasher.predict(rows[:1])[0]
    of_class, others = np.flatnonzero(labels == predicted)[:2], np.flatnonzero(labels != predicted)[:10]
    hits = classes.search(rows[:1], k=5, among=[*of_class, *others])[0]
    assert {hit.id for hit in hits[:2]} == set(of_class)
    assert {hit.id for hit in hits[2:]} <= set(others)


def test_a_stored_item_finds_itself_first(classes):
    assert [hits[0].id for hits in classes.search(items=[5, 6], k=3)] == [5, 6]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"oversample": 5}, r"oversample is 5, and this collection keeps no vectors\. .* make one that does"),
        ({"metric": "cosine"}, "metric is 'cosine', and this collection keeps no vectors"),
        ({"class_first": 0}, "class_first is 0, and this collection keeps no vectors"),
        ({"rescore": True}, r"keeps no vectors\. Make one that does: Collection\.create"),
    ],
)
def test_without_vectors_nothing_about_rescoring_is_ignored(folder, rows, options, message):
    with Collection(folder) as collection, pytest.raises(ValueError, match=message):
        collection.search(rows[:1], **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rescore": False, "oversample": 5}, r"oversample is 5, and rescore is False\..*leave out rescore=False"),
        ({"oversample": 0}, "oversample is 0; it must be an integer of at least 1"),
        ({"metric": "hamming"}, "metric is 'hamming'; choose one of 'euclidean', 'cosine'"),
        ({"class_first": -1}, "class_first is -1; it must be an integer of at least 0"),
        ({"class_first": 3}, r"class_first is 3, and the codes of a LSHash do not begin with a class"),
    ],
)
def test_options_of_rescoring_that_cannot_be_meant_are_refused(kept, rows, options, message):
    with Collection(kept) as collection:
        with pytest.raises(ValueError, match=message):
            collection.search(rows[:1], **options)
        assert collection.search(rows[:1], class_first=0) == collection.search(rows[:1])


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
        assert collection.search(rows[:1], among=[]) == [[]]


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


@pytest.mark.parametrize("kind", KINDS)
def test_another_hasher_needs_nothing_from_the_user(kept, rows, kind):
    other = LSHash(40, random_state=1).fit(rows)
    with Collection(kept) as collection:
        collection.remove([5])
        stored = collection.vectors(collection.ids)
        collection.replace_hasher(other)
        assert collection.codes(collection.ids) == other.encode(stored)
        assert (collection.vectors(collection.ids) == stored).all()
        assert collection.verify() == 59
    with Collection(kept, read_only=True) as collection:
        assert collection.n_bits == 40


@pytest.mark.parametrize("kind", KINDS)
def test_another_hasher_may_come_with_other_vectors(kept, kind):
    wider = np.random.default_rng(3).standard_normal((60, 11))
    other = LSHash(24, random_state=1).fit(wider)
    layout = RecordLayout(kind, 11)
    with Collection(kept) as collection, Collection(kept, read_only=True) as reader:
        assert reader.keeps == kind
        with pytest.raises(ValueError, match="kept vectors have 8 numbers; this hasher was fitted on rows of 11"):
            collection.replace_hasher(other)
        collection.replace_hasher(other, np.arange(60)[::-1], wider)
        for opened in (collection, reader):
            assert (opened.vectors(np.arange(60)[::-1]) == layout.unpack(layout.pack(wider))).all()
            assert opened.search(wider[:1], k=1)[0][0].id == 59
        assert collection.verify() == 60
    Collection(kept).close()
    assert vector_file(kept).stat().st_size == 60 * layout.dtype.itemsize


def test_names_of_columns_do_not_get_in_the_way(tmp_path, rows, recwarn):
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(rows, columns=list("abcdefgh"))
    with Collection.create(tmp_path / "items", LSHash(24, random_state=0).fit(table), vectors="int8") as collection:
        collection.add(table)
        collection.search(table[:2], k=3)
        collection.search(items=[3], k=3)
        collection.replace_hasher(LSHash(32, random_state=0).fit(table))
    assert [str(warning.message) for warning in recwarn] == []


@pytest.mark.parametrize("kind", KINDS)
def test_removed_vectors_leave_gaps_that_compact_closes(kept, rows, kind):
    size = RecordLayout(kind, 8).dtype.itemsize
    with Collection(kept) as collection, Collection(kept, read_only=True) as reader:
        collection.remove(np.arange(20))
        collection.upsert(rows[:5], ids=np.arange(20, 25))
        assert len(reader) == 40
        expected = collection.vectors(collection.ids)
        assert vector_file(kept).stat().st_size == 65 * size
        collection.compact()
        assert vector_file(kept).stat().st_size == 40 * size
        for opened in (collection, reader):
            assert (opened.vectors(opened.ids) == expected).all()
            assert opened.verify() == 40
        collection.add(rows[:1], ids=[99])
        assert (reader.vectors([99]) == collection.vectors([20])).all()
        name = vector_file(kept).name
        collection.compact()
        assert vector_file(kept).name == name


@pytest.mark.parametrize("kind", KINDS)
def test_any_sequence_of_changes_leaves_each_item_its_last_vector(tmp_path, hasher, kind):
    rng = np.random.default_rng(0)
    layout = RecordLayout(kind, 8)
    expected, folder = {}, tmp_path / "items"
    Collection.create(folder, hasher, vectors=kind).close()
    with Collection(folder, read_only=True) as reader:
        for _ in range(4):
            with Collection(folder) as collection:
                for _ in range(6):
                    ids = rng.choice(30, size=rng.integers(1, 8), replace=False)
                    vectors = rng.standard_normal((len(ids), 8))
                    step = rng.choice(["upsert", "upsert", "remove", "label"])
                    held = [item for item in ids.tolist() if item in expected]
                    if step == "upsert":
                        collection.upsert(vectors, ids=ids)
                        expected |= dict(zip(ids.tolist(), layout.unpack(layout.pack(vectors)), strict=True))
                    elif step == "remove":
                        collection.remove(held)
                        expected = {item: vector for item, vector in expected.items() if item not in held}
                    else:
                        collection.set_labels(held, ["a"] * len(held))
                collection.compact()
            ids = sorted(expected)
            assert reader.ids.tolist() == ids
            stored = np.array([expected[item] for item in ids])
            assert (reader.vectors(ids) == stored).all()
            query = rng.standard_normal((1, 8))
            hits = reader.search(query, k=3, oversample=30)[0]
            assert [hit.id for hit in hits] == brute_force(query[0], stored, ids, 3)[0]
            assert reader.verify() == len(ids)
    assert vector_file(folder).stat().st_size == len(expected) * layout.dtype.itemsize


@pytest.fixture
def without_vacuum(monkeypatch):
    """Leave out the part of a compaction that waits ten seconds for a reader in the middle of a state."""
    monkeypatch.setattr(Store, "compact", lambda store: None)


@pytest.mark.usefixtures("without_vacuum")
def test_a_state_keeps_its_vectors_while_changes_follow(kept, rows):
    with Collection(kept) as collection, collection._session.reading() as (snapshot, store):
        before = snapshot.vectors_of(store, list(range(60)))
        collection.upsert(rows[::-1], ids=np.arange(60))
        collection.remove([7])
        collection.compact()
        assert (snapshot.vectors_of(store, list(range(60))) == before).all()
        assert len(collection) == 59


@pytest.mark.usefixtures("without_vacuum")
def test_a_reader_that_meets_a_compaction_begins_again(kept, rows, monkeypatch):
    with Collection(kept) as writer:
        writer.remove(np.arange(5))
        real_name = Store.model_name

        def model_name(store):
            name = real_name(store)
            if store in started:
                started.clear()
                thread = threading.Thread(target=writer.compact)
                thread.start()
                thread.join()
            return name

        started = []
        monkeypatch.setattr(Store, "model_name", model_name)
        real_init = Store.__init__

        def remember(store, path, *, writable):
            real_init(store, path, writable=writable)
            if not writable and threading.current_thread() is threading.main_thread():
                started.append(store)

        monkeypatch.setattr(Store, "__init__", remember)
        with Collection(kept, read_only=True) as reader:
            assert started == []
            assert len(reader.vectors(reader.ids)) == 55


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c, X: c.add(codes=c.codes([1])), "keeps vectors, so X is needed"),
        (lambda c, X: c.add(X[:2], codes=c.codes([1])), "X has 2 rows and codes 1"),
        (lambda c, X: c.add(X[:2, :5]), "5 features"),
        (lambda c, X: c.add(X[:2], codes=c.codes([1, 2]), ids=[100, 3]), "3 is already in the collection"),
        (lambda c, X: c.add(X[:1] * np.nan, codes=c.codes([1])), "X holds NaN or infinity"),
        (lambda c, X: c.add([["a"] * 8], codes=c.codes([1])), "does not hold numbers only"),
        (lambda c, X: c.add(X[:1], metadata=[{"a": object()}]), "cannot be stored"),
        (lambda c, X: c.search(X[:1], oversample=0), "oversample is 0"),
        (lambda c, X: c.search(X[:1], oversample=2.5), "oversample is 2.5"),
        (lambda c, X: c.search(X[:1], metric="manhattan"), "choose one of 'euclidean', 'cosine'"),
        (lambda c, X: c.search(X[:1], k=0), "k is 0"),
    ],
)
def test_bad_input_changes_nothing(kept, rows, change, message):
    with Collection(kept) as collection:
        before, size = collection.rows(), vector_file(kept).stat().st_size
        with pytest.raises(ValueError, match=message):
            change(collection, rows)
        assert collection.rows() == before
        assert collection.verify() == 60
        assert vector_file(kept).stat().st_size == size


def test_sparse_rows_are_refused_with_a_way_out(kept, rows):
    from scipy.sparse import csr_array

    with Collection(kept) as collection, pytest.raises(ValueError, match=r"Pass X\.toarray\(\)|sparse"):
        collection.add(csr_array(rows[:2]), codes=collection.codes([1, 2]))


def test_rescoring_without_vectors_is_refused(folder, rows):
    with Collection(folder) as collection:
        for use in (
            lambda: collection.search(rows[:1], rescore=True),
            lambda: collection.vectors([1]),
        ):
            with pytest.raises(ValueError, match=r"keeps no vectors\. Make one that does"):
                use()
        with pytest.raises(ValueError, match="keeps no vectors: a new hasher needs every item exactly once"):
            collection.replace_hasher(LSHash(24, random_state=5).fit(rows))


@pytest.mark.parametrize("word", ["float32", 16, True])
def test_unknown_kinds_of_vectors_are_refused(tmp_path, hasher, word):
    with pytest.raises(ValueError, match="choose one of 'float16', 'int8'"):
        Collection.create(tmp_path / "items", hasher, vectors=word)
    assert list(tmp_path.iterdir()) == []


def test_a_change_that_fails_leaves_nothing_that_is_ever_read(kept, rows, monkeypatch):
    def die(*arguments, **options):
        raise KeyboardInterrupt

    with Collection(kept) as collection:
        before = collection.rows()
        monkeypatch.setattr(Store, "put", die)
        with pytest.raises(KeyboardInterrupt):
            collection.add(rows)
        monkeypatch.undo()
        assert vector_file(kept).stat().st_size == 2 * 60 * collection._session._snapshot.vectors.layout.dtype.itemsize
        assert collection.rows() == before
    with Collection(kept) as collection:
        assert vector_file(kept).stat().st_size == 60 * collection._session._snapshot.vectors.layout.dtype.itemsize
        assert collection.verify() == 60
        collection.add(rows[:3])
        assert (collection.vectors([60, 61, 62]) == collection.vectors([0, 1, 2])).all()


@pytest.mark.parametrize("step", ["move", "set_fact"])
def test_a_compaction_that_fails_changes_nothing(kept, monkeypatch, step):
    def die(*arguments):
        raise KeyboardInterrupt

    with Collection(kept) as collection:
        collection.remove([3])
        before, name = collection.rows(), vector_file(kept).name
        monkeypatch.setattr(Store, step, die)
        with pytest.raises(KeyboardInterrupt):
            collection.compact()
        monkeypatch.undo()
        assert collection.rows() == before
        assert collection.verify() == 59
        collection.compact()
        assert collection.verify() == 59
        assert vector_file(kept).name != name


def test_a_disk_that_fails_or_is_full_stores_nothing_and_says_so(kept, rows, monkeypatch):
    real_write = os.pwrite

    def fail(handle, content, place):
        if len(content) > 100:
            real_write(handle, content[:50], place)
            raise OSError(28, "No space left on device")
        return real_write(handle, content, place)

    with Collection(kept) as collection:
        before, size = collection.rows(), vector_file(kept).stat().st_size
        monkeypatch.setattr(os, "pwrite", fail)
        with pytest.raises(CollectionError, match=r"No space left on device.*Free some space.*Nothing of this change"):
            collection.add(rows)
        monkeypatch.undo()
        assert collection.rows() == before
        assert vector_file(kept).stat().st_size == size
        collection.add(rows)
        assert collection.verify() == 120


def test_vectors_are_on_the_disk_before_the_database_knows_them(kept, rows, monkeypatch):
    events = []
    real_fsync, real_put = os.fsync, Store.put
    number = vector_file(kept).stat().st_ino

    def fsync(handle):
        real_fsync(handle)
        if os.fstat(handle).st_ino == number:
            events.append(f"flushed {os.fstat(handle).st_size}")

    def put(store, added, **options):
        events.append("stored")
        real_put(store, added, **options)

    with Collection(kept) as collection:
        width = collection._session._snapshot.vectors.layout.dtype.itemsize
        monkeypatch.setattr(os, "fsync", fsync)
        monkeypatch.setattr(Store, "put", put)
        collection.add(rows[:10])
    assert events == [f"flushed {70 * width}", "stored"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_vector_is_refused_whenever_it_would_be_read(kept, rows, kind):
    path = vector_file(kept)
    content = bytearray(path.read_bytes())
    width = len(content) // 60
    content[7 * width + 9] ^= 4
    path.write_bytes(content)
    with Collection(kept) as collection:
        for read in (
            lambda: collection.vectors([3, 7]),
            lambda: collection.search(rows[:1], k=10),
            lambda: collection.verify(),
            lambda: collection.replace_hasher(LSHash(24, random_state=1).fit(rows)),
            lambda: (collection.remove([3]), collection.compact()),
        ):
            with pytest.raises(CollectionFormatError, match=r"vector of item 7 .* does not match its checksum"):
                read()
        assert len(collection.search(rows[:1], k=10, rescore=False)[0]) == 10
        assert (collection.vectors([8]) == collection.vectors([8])).all()
        collection.upsert(rows[7:8], ids=[7])
        assert collection.verify() == 59


def test_vectors_that_change_places_are_noticed(kept):
    path = vector_file(kept)
    content = path.read_bytes()
    width = len(content) // 60
    path.write_bytes(content[width : 2 * width] + content[:width] + content[2 * width :])
    with Collection(kept) as collection, pytest.raises(CollectionFormatError, match="vector of item 0"):
        collection.vectors([0])


def test_a_cut_or_missing_file_of_vectors_is_refused_at_once(kept):
    path = vector_file(kept)
    content = path.read_bytes()
    for length in (0, 1, len(content) - 1):
        path.write_bytes(content[:length])
        for read_only in (True, False):
            with pytest.raises(CollectionFormatError, match=f"has {length} bytes, and its vectors need {len(content)}"):
                Collection(kept, read_only=read_only)
    path.unlink()
    for read_only in (True, False):
        with pytest.raises(CollectionFormatError, match=r"vectors-0\.bin' is missing\. Restore the whole folder"):
            Collection(kept, read_only=read_only)


def test_a_file_that_is_cut_while_it_is_open_is_refused(kept):
    with Collection(kept) as collection:
        collection.vectors([59])
        os.truncate(vector_file(kept), 10)
        with pytest.raises(CollectionFormatError, match="has 10 bytes"):
            collection.vectors([59])


@pytest.mark.parametrize(
    "spoil",
    [
        "UPDATE facts SET value = 'float64' WHERE name = 'vector_kind'",
        "UPDATE facts SET value = 0 WHERE name = 'n_columns'",
        "UPDATE facts SET value = value + 1 WHERE name = 'n_columns'",
        "UPDATE facts SET value = 59 WHERE name = 'n_slots'",
        "UPDATE facts SET value = 61 WHERE name = 'n_slots'",
        "UPDATE facts SET value = '' WHERE name = 'vector_file'",
        "UPDATE facts SET value = '../x' WHERE name = 'vector_file'",
        "DELETE FROM facts WHERE name = 'vector_file'",
    ],
)
def test_damaged_facts_are_refused_at_opening(kept, spoil):
    run(kept, spoil)
    with pytest.raises(CollectionFormatError, match="damaged"):
        Collection(kept)


@pytest.mark.parametrize(
    "spoil",
    [
        "UPDATE items SET slot = 5 WHERE id = 7",
        "UPDATE items SET vector_sum = vector_sum + 1 WHERE id = 7",
        "UPDATE items SET slot = NULL, vector_sum = NULL WHERE id = 7",
        "UPDATE items SET label = '3' WHERE id = 7",
        "UPDATE items SET own_code = code WHERE id = 7",
        "UPDATE items SET encoder = '0123456789abcdef' WHERE id = 7",
        "DELETE FROM items WHERE id = 7",
    ],
)
def test_a_damaged_row_is_refused_when_it_is_read(kept, rows, spoil):
    run(kept, spoil)
    with Collection(kept, read_only=True) as collection:
        for read in (
            lambda: collection.get([7]),
            lambda: collection.search(rows[7:8], k=1),
            lambda: collection.rows(),
            lambda: collection.verify(),
        ):
            with pytest.raises(CollectionFormatError, match="damaged"):
                read()


def run(folder, statement):
    connection = sqlite3.connect(folder / "items.sqlite")
    with connection:
        connection.execute(statement)
    connection.close()
