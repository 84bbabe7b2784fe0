"""FAISS, Parquet and DuckDB read our bits as we mean them."""

import json
from dataclasses import replace

import numpy as np
import pytest

from starshl import BinaryCodes, Collection, HybridHasher, make_index
from starshl.exceptions import AdapterError
from starshl.hashers.baselines import LSHash

from .conftest import HAND_DISTANCES, HAND_ORDER


def test_faiss_computes_the_distances_counted_by_hand(hand_codes):
    pytest.importorskip("faiss")
    from starshl.index.adapters import to_faiss

    distances, ids = to_faiss(hand_codes, [10, 11, 12, 13, 14, 15]).search(hand_codes.packed[:1], 6)
    found = dict(zip(ids[0].tolist(), distances[0].tolist(), strict=True))
    assert [found[10 + i] for i in range(6)] == HAND_DISTANCES


def test_faiss_gives_codes_and_ids_back(random_codes):
    faiss = pytest.importorskip("faiss")
    from starshl.index.adapters import from_faiss, to_faiss

    ids = np.random.default_rng(1).permutation(1000)[:300]
    codes, found = from_faiss(to_faiss(random_codes, ids), 11)
    assert codes == random_codes
    assert found.tolist() == ids.tolist()
    plain = faiss.IndexBinaryFlat(16)
    plain.add(random_codes.packed)
    assert from_faiss(plain, 11)[0] == random_codes
    with pytest.raises(ValueError, match=r"16 bits.*not 17 padded"):
        from_faiss(plain, 17)
    with pytest.raises(ValueError, match="padding"):
        from_faiss(plain, 9)
    with pytest.raises(ValueError, match="does not keep its codes"):
        from_faiss(faiss.IndexBinaryHash(16, 8), 16)


def test_faiss_takes_a_collection_in_one_call(collection):
    pytest.importorskip("faiss")
    from starshl.index.adapters import FaissIndex

    index = FaissIndex.from_collection(collection)
    assert (index.ids.tolist(), index.space_id) == (collection.ids.tolist(), collection.space_id)
    assert index.reconstruct(collection.ids) == collection.codes(collection.ids)
    distances, ids = index.search(collection.codes([70]), 80)
    expected = collection.search(items=[70], k=80)[0]
    assert list(zip(distances[0], ids[0], strict=True)) == [(hit.distance, hit.id) for hit in expected]


@pytest.fixture
def hybrid_items(tmp_path):
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=90)
    X = rng.standard_normal((90, 12)) + 2 * y[:, None]
    hasher = HybridHasher(10, random_state=0).fit(X[:60], y[:60])
    with Collection.create(tmp_path / "hybrid", hasher) as items:
        items.add(X[:60], ids=np.arange(60) * 3, labels=[int(label) if label else None for label in y[:60]])
        yield items, X[60:], y


def test_faiss_takes_hybrid_codes_in_their_plain_form(hybrid_items):
    pytest.importorskip("faiss")
    from starshl.index.adapters import FaissIndex

    items, asked, y = hybrid_items
    hasher, index = items.hasher, FaissIndex.from_collection(items)
    plain = hasher.hamming_codes(items.codes(items.ids))
    assert index.n_bits == plain.n_bits > hasher.n_bits_
    assert index.reconstruct(items.ids) == plain
    queries = hasher.encode_queries(asked)
    found = index.search(hasher.hamming_codes(queries), 10).ids
    assert found.tolist() == make_index(plain, items.ids).search(hasher.hamming_codes(queries), 10).ids.tolist()
    assert np.mean(y[found // 3] == y[60:, None]) > 0.9
    with pytest.raises(ValueError, match="bits"):
        index.search(queries.codes, 10)


def test_exports_of_hybrid_codes_have_a_column_for_programs_that_count_bits(hybrid_items, tmp_path):
    pytest.importorskip("pyarrow")
    duckdb = pytest.importorskip("duckdb")
    from starshl.index.adapters import DUCKDB_NEAREST, read_parquet

    items, asked, _ = hybrid_items
    plain = items.hasher.hamming_codes(items.codes(items.ids))
    query = items.hasher.hamming_codes(items.hasher.encode_queries(asked[:1]))
    items.export(tmp_path / "items.parquet")
    items.export(tmp_path / "items.jsonl")
    assert read_parquet(tmp_path / "items.parquet")[0] == items.codes(items.ids)
    parameters = {"query": query.packed[0].tobytes(), "path": str(tmp_path / "items.parquet"), "k": 20}
    found = duckdb.execute(DUCKDB_NEAREST.replace("code::", "hamming_code::"), parameters).fetchall()
    expected = make_index(plain, items.ids).search(query, 20)
    assert found == list(zip(expected.ids[0].tolist(), expected.distances[0].tolist(), strict=True))
    lines = [json.loads(line) for line in (tmp_path / "items.jsonl").read_text().splitlines()]
    assert [line["hamming_code"] for line in lines] == [code.tobytes().hex() for code in plain.packed]


def test_parquet_gives_codes_and_ids_back(random_codes, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    from starshl.index.adapters import read_parquet, write_parquet

    path = tmp_path / "codes.parquet"
    write_parquet(path, random_codes, np.arange(300)[::-1], {"label": ["x"] * 300})
    codes, ids = read_parquet(path)
    assert codes == random_codes
    assert ids.tolist() == list(range(300))[::-1]
    table = parquet.read_table(path)
    assert table.schema.metadata[b"starshl.n_bits"] == b"11"
    parquet.write_table(table.replace_schema_metadata({}), path)
    with pytest.raises(AdapterError, match="bit order"):
        read_parquet(path)
    path.write_bytes(b"PAR1 and then nothing")
    with pytest.raises(AdapterError, match="not a readable Parquet file"):
        read_parquet(path)


def test_duckdb_computes_the_distances_counted_by_hand(hand_codes, tmp_path):
    duckdb = pytest.importorskip("duckdb")
    pytest.importorskip("pyarrow")
    from starshl.index.adapters import DUCKDB_NEAREST, write_parquet

    path = tmp_path / "codes.parquet"
    write_parquet(path, hand_codes)
    query = hand_codes.packed[0].tobytes()
    found = duckdb.execute(DUCKDB_NEAREST, {"query": query, "path": str(path), "k": 6}).fetchall()
    assert found == [(i, HAND_DISTANCES[i]) for i in HAND_ORDER]


def test_a_collection_exports_what_duckdb_searches(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    pytest.importorskip("pyarrow")
    from starshl.index.adapters import DUCKDB_NEAREST

    X = np.random.default_rng(0).standard_normal((80, 6))
    with Collection.create(tmp_path / "items", LSHash(13, random_state=0).fit(X)) as collection:
        collection.add(X, ids=np.arange(80) * 7, metadata=[{"label": i % 4} for i in range(80)])
        collection.export(tmp_path / "items.parquet")
        expected = collection.search(X[:1], k=20)[0]
        query = collection.hasher.encode(X[:1]).packed[0].tobytes()
    parameters = {"query": query, "path": str(tmp_path / "items.parquet"), "k": 20}
    found = duckdb.execute(DUCKDB_NEAREST, parameters).fetchall()
    assert found == [(hit.id, hit.distance) for hit in expected]


def test_packing_most_significant_bit_first_is_noticed():
    wrong = np.packbits(np.ones((1, 11), bool), axis=1)
    with pytest.raises(ValueError, match="bit order"):
        BinaryCodes(wrong, 11)


@pytest.mark.parametrize("space_id", [None, "a" * 16])
@pytest.mark.parametrize("metric", ["hamming", "hybrid"])
def test_parquet_keeps_the_space_of_codes(random_codes, tmp_path, space_id, metric):
    parquet_table = pytest.importorskip("starshl.index.adapters.parquet_table")
    codes = replace(random_codes, space_id=space_id, metric=metric)
    parquet_table.write_parquet(tmp_path / "codes.parquet", codes)
    read = parquet_table.read_parquet(tmp_path / "codes.parquet")[0]
    assert (read.space_id, read.metric) == (space_id, metric)


def test_faiss_refuses_hybrid_codes_and_takes_the_space_that_it_is_told(random_codes):
    faiss_index = pytest.importorskip("starshl.index.adapters.faiss_index")
    with pytest.raises(ValueError, match="all bits the same"):
        faiss_index.to_faiss(replace(random_codes, metric="hybrid"))
    codes, _ = faiss_index.from_faiss(faiss_index.to_faiss(random_codes), 11, space_id="a" * 16)
    assert codes.space_id == "a" * 16
