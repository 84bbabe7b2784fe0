"""PostgreSQL with pgvector and Milvus, each a real one, against the flat index."""

import sys
import time
from dataclasses import replace

import numpy as np
import pytest

from starshl.codes import BinaryCodes
from starshl.exceptions import AdapterError, SpaceMismatchError
from starshl.index import FlatIndex

from .conftest import HAND_DISTANCES, HAND_ORDER
from .servers import running_postgres

# A value that would let every item pass, were it pasted into a filter without care.
SHOP = "x\" or 1 == 1 or shop == '\\"


@pytest.fixture
def fresh_postgres():
    with running_postgres() as server:
        yield server


@pytest.fixture(params=["pgvector", "milvus"])
def open_index(request):
    """A function that opens an index of one database, with a table of its own."""
    name = f"codes_{time.time_ns()}"
    opened = []

    def open_one(n_bits, name=name, **options):
        if request.param == "pgvector":
            uri = request.getfixturevalue("postgres").get_uri()
            from starshl.adapters.pgvector_index import PgvectorIndex

            opened.append(PgvectorIndex(uri, n_bits, table=name, **options))
        else:
            file = request.getfixturevalue("milvus_file")
            from starshl.adapters.milvus_index import MilvusIndex

            opened.append(MilvusIndex(file, n_bits, name=name, **options))
        return opened[-1]

    yield open_one
    for index in opened:
        index.close()


def test_database_computes_the_distances_counted_by_hand(open_index, hand_codes):
    index = open_index(11)
    index.add(hand_codes)
    distances, ids = index.search(hand_codes[0], k=6)
    assert ids.tolist() == [HAND_ORDER]
    assert distances.tolist() == [[HAND_DISTANCES[i] for i in HAND_ORDER]]
    assert index.search_radius(hand_codes[0], 1).of(0).ids.tolist() == [0, 1, 2, 3]
    assert index.reconstruct([5, 4, 1]) == hand_codes[[5, 4, 1]]


def test_database_gives_the_answers_of_the_flat_index(open_index, random_codes):
    index, flat = open_index(11), FlatIndex(11)
    ids = np.random.default_rng(1).permutation(1000)[:300]
    for one in (index, flat):
        one.add(random_codes, ids)
        one.remove(ids[:50])
        one.add(random_codes[:10])
    assert index.ids.tolist() == flat.ids.tolist()
    assert len(index) == 260
    queries = random_codes[:4]
    for among in (None, ids[60:100]):
        found, expected = (one.search(queries, 25, among=among) for one in (index, flat))
        assert np.array_equal(found.ids, expected.ids)
        assert np.array_equal(found.distances, expected.distances)
        found, expected = (one.search_radius(queries, 3, among=among) for one in (index, flat))
        assert all(np.array_equal(a, b) for a, b in zip(found, expected, strict=True))
    assert index.reconstruct(flat.ids) == flat.reconstruct(flat.ids)


def test_database_filters_by_metadata(open_index, random_codes):
    index = open_index(11)
    index.add(random_codes, metadata=[{"label": i % 3, "shop": SHOP} for i in range(300)])
    _, ids = index.search(random_codes[:1], 200, where={"label": 1})
    assert sorted(ids[0].tolist()) == list(range(1, 300, 3))
    assert index.search(random_codes[:1], 10, where={"shop": SHOP, "label": 2}).ids.shape == (1, 10)
    assert index.search(random_codes[:1], 10, where={"shop": 'y" or 1 == 1'}).ids.shape == (1, 0)
    assert index.search(random_codes[:1], 10, where={"label": "1"}).ids.shape == (1, 0)


def test_database_filters_by_any_text(open_index, random_codes):
    texts = ["é", "e", "日本", "\U0001f600", 'a"b', "a\\b", "a'b", "\\u00e9", "\\", SHOP, "%", ""]
    index = open_index(11)
    index.add(random_codes[: len(texts)], metadata=[{"text": text} for text in texts])
    for number, text in enumerate(texts):
        assert index.search(random_codes[:1], len(texts), where={"text": text}).ids.tolist() == [[number]]


def test_database_refuses_filters_that_would_find_nothing_for_the_wrong_reason(open_index, random_codes):
    index = open_index(11)
    index.add(random_codes[:3], metadata=[{"price": 1.5}] * 3)
    with pytest.raises(ValueError, match=r"nan.*finite numbers|cannot be stored.*finite numbers"):
        index.search(random_codes[:1], 3, where={"price": float("nan")})


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("abc", "metadata\\[1\\] is a str; it must be a dictionary"),
        (["a"], "metadata\\[1\\] is a list; it must be a dictionary"),
        ({3: 1}, "key 3; keys must be strings"),
        ({"a": float("nan")}, "cannot be stored"),
        ({"a": {1}}, "a set is not JSON"),
        ({"a": "\ud800"}, "surrogates"),
    ],
)
def test_database_refuses_metadata_that_is_no_json(open_index, random_codes, entry, message):
    index = open_index(11)
    with pytest.raises(ValueError, match=message):
        index.add(random_codes[:2], metadata=[{}, entry])
    assert len(index) == 0


def test_database_takes_numbers_of_numpy(open_index, random_codes):
    index = open_index(11)
    index.add(random_codes[:2], metadata=[{"label": label} for label in np.array([3, 4])])
    assert index.search(random_codes[:1], 2, where={"label": np.int64(4)}).ids.tolist() == [[1]]


@pytest.mark.parametrize("key", ["id", "code", "n_bits", "$meta"])
def test_milvus_refuses_metadata_that_would_overwrite_its_own_fields(milvus_file, random_codes, key):
    from starshl.adapters.milvus_index import MilvusIndex

    index = MilvusIndex(milvus_file, 11, name="reserved")
    with pytest.raises(ValueError, match=r"is a field of the Milvus collection. Use another name"):
        index.add(random_codes[:1], metadata=[{key: 5}])
    index.add(random_codes[:1], [7])
    with pytest.raises(ValueError, match="cannot name a metadata field"):
        index.search(random_codes[:1], 1, where={key: 7})
    index.remove([7])
    index.close()


def test_milvus_says_that_it_cannot_compare_control_characters(milvus_file, random_codes):
    from starshl.adapters.milvus_index import MilvusIndex

    index = MilvusIndex(milvus_file, 11, name="control_characters")
    index.add(random_codes[:1], metadata=[{"text": "two\nlines"}])
    with pytest.raises(ValueError, match="cannot compare control characters"):
        index.search(random_codes[:1], 1, where={"text": "two\nlines"})
    index.close()


def test_database_refuses_what_is_wrong_and_changes_nothing(open_index, random_codes):
    index = open_index(11)
    index.add(random_codes)
    with pytest.raises(ValueError, match=r"already in the index, and nothing was added"):
        index.add(random_codes[:3], [1000, 1001, 7])
    with pytest.raises(KeyError, match="999 is not in the index"):
        index.remove([1, 999])
    with pytest.raises(KeyError, match="999 is not in the index"):
        index.reconstruct([1, 999])
    with pytest.raises(ValueError, match="more than once"):
        index.add(random_codes[:2], [2000, 2000])
    with pytest.raises(ValueError, match="1 dictionaries of metadata for 2 items"):
        index.add(random_codes[:2], metadata=[{}])
    with pytest.raises(ValueError, match="radius is -1"):
        index.search_radius(random_codes[:1], -1)
    with pytest.raises(ValueError, match="20 bits; this index holds codes of 11"):
        index.add(BinaryCodes.from_signs(np.ones((1, 20))))
    with pytest.raises(ValueError, match=r"holds .*20|holds .*11|holds .*16"):
        open_index(20)
    assert index.ids.tolist() == list(range(300))


def test_database_handles_more_ids_than_one_request_returns(open_index):
    codes = BinaryCodes.from_signs(np.random.default_rng(0).choice([-1, 1], size=(20_000, 11)))
    index = open_index(11)
    index.add(codes)
    assert index.reconstruct(np.arange(20_000)) == codes
    for taken in (0, 16_390, 19_999):
        with pytest.raises(ValueError, match=f"id {taken} is already in the index"):
            index.add(codes, np.r_[np.arange(100_000, 119_999), taken])
    with pytest.raises(KeyError, match="20000 is not in the index"):
        index.remove(np.arange(20_001))
    assert len(index) == 20_000
    index.remove(np.arange(1, 20_000))
    assert index.ids.tolist() == [0]


@pytest.mark.parametrize("emptied", [False, True])
def test_database_refuses_another_length_of_as_many_bytes(open_index, random_codes, emptied):
    index = open_index(11)
    index.add(random_codes[:5])
    if emptied:
        index.remove(index.ids)
    for n_bits in (8, 9, 10, 12, 16, 17):
        with pytest.raises(ValueError, match=rf"holds .*11.*, not .*{n_bits}"):
            open_index(n_bits)
    assert len(open_index(11)) == (0 if emptied else 5)


def test_milvus_reads_the_length_of_collections_that_do_not_describe_it(milvus_file, random_codes, monkeypatch):
    from starshl.adapters import milvus_index

    schema = milvus_index.pymilvus.CollectionSchema
    real = schema.add_field
    monkeypatch.setattr(schema, "add_field", lambda *given, description="", **more: real(*given, **more))
    index = milvus_index.MilvusIndex(milvus_file, 11, name="not_described")
    monkeypatch.undo()
    assert not any(field["description"] for field in index._client.describe_collection("not_described")["fields"])
    index.add(random_codes[:5])
    for n_bits in (8, 16):
        with pytest.raises(ValueError, match=f"holds codes of 11 bits, not {n_bits}"):
            milvus_index.MilvusIndex(milvus_file, n_bits, name="not_described")
    assert len(milvus_index.MilvusIndex(milvus_file, 11, name="not_described")) == 5
    index.close()


def test_database_takes_a_collection_in_one_call(open_index, collection):
    opened = open_index(13)
    place = {"table": opened.table} if hasattr(opened, "table") else {"name": opened.name}
    uri = opened.uri
    index = type(opened).from_collection(uri, collection, **place)
    query = collection.codes([70])
    assert index.ids.tolist() == collection.ids.tolist()
    for where in (None, {"label": 3}):
        expected = collection.search(items=[70], k=10, where=where)[0]
        assert index.search(query, 10, where=where).ids[0].tolist() == [hit.id for hit in expected]
    assert index.search(query, 10, where={"reference": "5.png"}).ids.tolist() == [[35]]
    with pytest.raises(ValueError, match="already in the index, and nothing was added"):
        type(opened).from_collection(uri, collection, **place)
    index.close()


def test_database_keeps_the_space_of_its_codes(open_index, random_codes):
    index, codes = open_index(11), replace(random_codes[:5], space_id="a" * 16)
    index.add(codes)
    place = {"table": index.table} if hasattr(index, "table") else {"name": index.name}
    again = type(index)(index.uri, 11, **place)
    assert again.space_id == "a" * 16
    with pytest.raises(SpaceMismatchError):
        again.add(replace(codes, space_id="b" * 16), [10, 11, 12, 13, 14])
    again.close()


def test_table_with_a_comment_of_its_own_keeps_it(postgres, random_codes):
    from starshl.adapters.pgvector_index import PgvectorIndex, psycopg

    index = PgvectorIndex(postgres.get_uri(), 11, table="with_comment")
    with psycopg.connect(index.uri) as connection:
        connection.execute("COMMENT ON TABLE with_comment IS 'do not touch'")
    index.add(replace(random_codes[:5], space_id="a" * 16))
    with index._transaction() as cursor:
        assert index._comment(cursor) == "do not touch"
    assert index.space_id == "a" * 16
    index.close()


def test_hnsw_finds_most_neighbors_of_different_codes(postgres):
    from starshl.adapters.pgvector_index import PgvectorIndex

    signs = np.random.default_rng(0).choice([-1, 1], size=(2000, 64))
    codes = BinaryCodes.from_signs(signs)
    index = PgvectorIndex(postgres.get_uri(), 64, table="with_hnsw", approximate=True)
    index.add(codes)
    index.create_hnsw()
    distances, ids = index.search(codes[:20], 1)
    # An approximate index may miss a neighbor, but an item of its own graph finds itself nearly always.
    assert np.mean(ids[:, 0] == np.arange(20)) >= 0.9
    assert (np.diff(distances, axis=1) >= 0).all()
    index.close()


@pytest.fixture(scope="module")
def graph_of_codes(postgres):
    """An approximate index of 3,000 different codes, and the codes."""
    from starshl.adapters.pgvector_index import PgvectorIndex

    codes = BinaryCodes.from_signs(np.random.default_rng(0).choice([-1, 1], size=(3000, 64)))
    index = PgvectorIndex(postgres.get_uri(), 64, table="with_filters", approximate=True)
    index.add(codes, metadata=[{"label": i % 50, "rare": i % 1000} for i in range(3000)])
    index.create_hnsw()
    with index._transaction() as cursor:
        cursor.execute("ANALYZE with_filters")
    yield index, codes
    index.close()


@pytest.mark.parametrize("k", [10, 100, 1000])
def test_hnsw_returns_as_many_items_as_asked_for(graph_of_codes, k):
    index, codes = graph_of_codes
    distances, ids = index.search(codes[:3], k)
    assert ids.shape == (3, k)
    assert all(len(set(row)) == k for row in ids.tolist())
    assert (np.diff(distances, axis=1) >= 0).all()


def test_hnsw_with_a_filter_returns_as_many_items_as_pass(graph_of_codes):
    index, codes = graph_of_codes
    assert index.search(codes[:3], 10, where={"label": 3}).ids.shape == (3, 10)
    assert (index.search(codes[:3], 60, where={"label": 3}).ids % 50 == 3).all()
    assert np.sort(index.search(codes[:3], 10, where={"rare": 7}).ids).tolist() == [[7, 1007, 2007]] * 3


@pytest.mark.parametrize("scans_on", [True, False])
def test_hnsw_goes_on_where_a_filter_lets_few_pass(graph_of_codes, monkeypatch, scans_on):
    index, codes = graph_of_codes
    if scans_on and not index._scans_on:
        pytest.skip("this pgvector has no iterative scan")
    real = index._scan_graph

    def scan_nothing_but_the_graph(cursor, k):
        real(cursor, k)
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute("SET LOCAL enable_bitmapscan = off")

    monkeypatch.setattr(index, "_scans_on", scans_on)
    monkeypatch.setattr(index, "_scan_graph", scan_nothing_but_the_graph)
    for where, n_passing in (({"label": 3}, 60), ({"rare": 7}, 3)):
        distances, ids = index.search(codes[:3], 50, where=where)
        assert ids.shape == (3, min(50, n_passing))
        assert (ids % 50 == (3 if n_passing == 60 else 7)).all()
        assert (np.diff(distances, axis=1) >= 0).all()


def test_hnsw_refuses_more_than_it_can_return(graph_of_codes):
    index, codes = graph_of_codes
    with pytest.raises(ValueError, match=r"k is 1001.*at most 1000.*approximate=False"):
        index.search(codes[:1], 1001)


def test_hnsw_options_out_of_range_are_refused_before_they_are_sent(graph_of_codes):
    index, _ = graph_of_codes
    with pytest.raises(ValueError, match="m is 500; it must be an integer from 2 to 100"):
        index.create_hnsw(m=500)
    with pytest.raises(ValueError, match="ef_construction is 64; it must be an integer from 80 to 1000"):
        index.create_hnsw(m=40)


@pytest.mark.parametrize("table", ["user", "select", "MixedCase"])
def test_any_table_name_of_letters_works(postgres, random_codes, table):
    from starshl.adapters.pgvector_index import PgvectorIndex

    index = PgvectorIndex(postgres.get_uri(), 11, table=table, approximate=True)
    index.add(random_codes)
    index.create_hnsw()
    index.remove([0])
    assert index.search(random_codes[1], 1).distances.tolist() == [[0]]
    assert index.search_radius(random_codes[1], 0, among=[1]).ids.tolist() == [1]
    assert len(PgvectorIndex(postgres.get_uri(), 11, table=table)) == 299
    with pytest.raises(ValueError, match=r"holds bit\(11\), not bit\(12\)"):
        PgvectorIndex(postgres.get_uri(), 12, table=table)
    index.close()


def test_postgres_refuses_the_character_nul_before_it_is_sent(postgres, random_codes):
    from starshl.adapters.pgvector_index import PgvectorIndex

    index = PgvectorIndex(postgres.get_uri(), 11, table="nul")
    for text in ("x\x00y", "\\\x00"):
        with pytest.raises(ValueError, match=r"metadata\[0\] contains the NUL character"):
            index.add(random_codes[:1], metadata=[{"a": text}])
    index.add(random_codes[:1], metadata=[{"a": "\\u0000"}])
    assert index.search(random_codes[:1], 1, where={"a": "\\u0000"}).ids.tolist() == [[0]]
    index.close()


def test_an_error_of_the_database_itself_is_worded_as_what_it_is(postgres, random_codes):
    from starshl.adapters.pgvector_index import PgvectorIndex

    index = PgvectorIndex(postgres.get_uri(), 11, table="dropped")
    with index._transaction() as cursor:
        cursor.execute("DROP TABLE dropped")
    with pytest.raises(AdapterError, match=r"refused the request .UndefinedTable(.|\n)*Nothing was changed") as caught:
        index.add(random_codes)
    assert "try again" not in str(caught.value)
    index.close()


def end_connection(index, postgres):
    """Let the server end the index's connection, as a restart would."""
    import psycopg

    with psycopg.connect(postgres.get_uri(), autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s)", [index._connection.info.backend_pid])


@pytest.mark.parametrize("committed", [False, True])
def test_a_connection_lost_at_the_commit_leaves_it_open_what_is_stored(postgres, random_codes, monkeypatch, committed):
    psycopg = pytest.importorskip("psycopg")
    from starshl.adapters.pgvector_index import PgvectorIndex

    index = PgvectorIndex(postgres.get_uri(), 11, table=f"commit_{committed}".lower())
    index.add(random_codes[:10])
    real = psycopg.Transaction.__exit__

    def lose_connection(transaction, *exception):
        if committed:
            real(transaction, *exception)
        end_connection(index, postgres)
        if committed:
            # The answer to COMMIT is what gets lost: any further word to the server notices that.
            transaction.connection.execute("SELECT 1")
        return real(transaction, *exception)

    monkeypatch.setattr(psycopg.Transaction, "__exit__", lose_connection)
    with pytest.raises(AdapterError, match="may or may not be stored: check") as caught:
        index.add(random_codes[:5])
    assert "Nothing of it was stored" not in str(caught.value)
    with pytest.raises(AdapterError, match="Nothing of it was stored; try again when the server answers"):
        len(index)
    monkeypatch.undo()
    assert len(index) == (15 if committed else 10)
    index.close()


def test_bad_table_names_never_reach_the_database(postgres):
    from starshl.adapters.pgvector_index import PgvectorIndex

    with pytest.raises(ValueError, match="use letters, digits and underscores"):
        PgvectorIndex(postgres.get_uri(), 8, table="codes; DROP TABLE users")


def test_a_server_that_is_down_is_a_clear_error(tmp_path):
    pytest.importorskip("psycopg")
    from starshl.adapters.pgvector_index import PgvectorIndex

    with pytest.raises(AdapterError, match=r"no connection to PostgreSQL(.|\n)*Check the address"):
        PgvectorIndex(f"postgresql://postgres@/postgres?host={tmp_path}", 8)


def test_a_server_stopped_in_the_middle_of_a_batch_keeps_nothing_of_it(fresh_postgres, random_codes, monkeypatch):
    pytest.importorskip("psycopg")
    from starshl.adapters import pgvector_index

    server = fresh_postgres
    index = pgvector_index.PgvectorIndex(server.get_uri(), 11)
    index.add(random_codes[:100])
    real = pgvector_index._bit_texts

    def stop_half_way(codes):
        for number, text in enumerate(real(codes)):
            if number == len(codes) // 2:
                server.stop()
            yield text

    monkeypatch.setattr(pgvector_index, "_bit_texts", stop_half_way)
    with pytest.raises(AdapterError, match="Nothing of it was stored"):
        index.add(random_codes[slice(100, 300)], np.arange(100, 300))
    monkeypatch.undo()
    with pytest.raises(AdapterError, match="try again when the server answers"):
        len(index)
    server.start()
    assert index.ids.tolist() == list(range(100))
    index.add(random_codes[slice(100, 300)], np.arange(100, 300))
    assert len(index) == 300
    index.close()


@pytest.mark.parametrize(
    ("module", "library"),
    [("faiss_index", "faiss"), ("pgvector_index", "psycopg"), ("milvus_index", "pymilvus")],
)
def test_a_missing_library_says_what_to_install(module, library, monkeypatch):
    monkeypatch.setitem(sys.modules, library, None)
    monkeypatch.delitem(sys.modules, f"starshl.adapters.{module}", raising=False)
    with pytest.raises(ImportError, match=rf"needs the library '{library}'.*pip install 'starshl\["):
        __import__(f"starshl.adapters.{module}")
