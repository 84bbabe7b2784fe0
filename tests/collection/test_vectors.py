"""Kept vectors: stored in step with their items, compared exactly, and never read when damaged."""

import threading

import numpy as np
import pytest

from starshl import Collection
from starshl.collection.store import Store
from starshl.collection.vectors import RecordLayout
from starshl.hashers.baselines import LSHash

from .kept_vectors import KINDS, brute_force, vector_file


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
        assert collection.vector_dtype == kind
        assert (collection.vectors([5, 3]) == layout.unpack(layout.pack(rows[[5, 3]]))).all()
        assert collection.vectors([]).shape == (0, 8)
        with pytest.raises(KeyError, match="777"):
            collection.vectors([777])


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
        assert reader.vector_dtype == kind
        with pytest.raises(ValueError, match=r"have 8 numbers.*rows of 11"):
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
    with Collection(kept) as collection, collection.reading() as (state, store):
        before = state.vectors_of(store, list(range(60)))
        collection.upsert(rows[::-1], ids=np.arange(60))
        collection.remove([7])
        collection.compact()
        assert (state.vectors_of(store, list(range(60))) == before).all()
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

        def remember(store, path, *, writable, cache):
            real_init(store, path, writable=writable, cache=cache)
            if not writable and threading.current_thread() is threading.main_thread():
                started.append(store)

        monkeypatch.setattr(Store, "__init__", remember)
        with Collection(kept, read_only=True) as reader:
            assert started == []
            assert len(reader.vectors(reader.ids)) == 55


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c, X: c.add(codes=c.codes([1])), "so X is needed"),
        (lambda c, X: c.add(X[:2], codes=c.codes([1])), "2 rows and codes 1"),
        (lambda c, X: c.add(X[:2, :5]), "5 features"),
        (lambda c, X: c.add(X[:2], codes=c.codes([1, 2]), ids=[100, 3]), "3 is already"),
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


@pytest.mark.parametrize("word", ["float32", 16, True])
def test_unknown_kinds_of_vectors_are_refused(tmp_path, hasher, word):
    with pytest.raises(ValueError, match="choose one of 'float16', 'int8'"):
        Collection.create(tmp_path / "items", hasher, vectors=word)
    assert list(tmp_path.iterdir()) == []
