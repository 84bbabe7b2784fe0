"""PostgreSQL with pgvector: its graph index, its table names, and connections that are lost."""

from dataclasses import replace

import numpy as np
import pytest

from starshl import BinaryCodes
from starshl.exceptions import AdapterError, InputError

from .servers import running_postgres


@pytest.fixture
def fresh_postgres():
    with running_postgres() as server:
        yield server


def test_table_with_a_comment_of_its_own_keeps_it(postgres, random_codes):
    from starshl.index.adapters import PgvectorIndex
    from starshl.index.adapters.pgvector_index import psycopg

    index = PgvectorIndex(postgres.get_uri(), 11, table="with_comment")
    with psycopg.connect(index.uri) as connection:
        connection.execute("COMMENT ON TABLE with_comment IS 'do not touch'")
    index.add(replace(random_codes[:5], space_id="a" * 16))
    with index._transaction() as cursor:
        assert index._comment(cursor) == "do not touch"
    assert index.space_id == "a" * 16
    index.close()


def test_hnsw_finds_most_neighbors_of_different_codes(postgres):
    from starshl.index.adapters import PgvectorIndex

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
    from starshl.index.adapters import PgvectorIndex

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
def test_hnsw_goes_on_where_a_filter_lets_few_pass(graph_of_codes, postgres, scans_on):
    import psycopg

    from starshl.index.adapters import PgvectorIndex

    _, codes = graph_of_codes
    nothing_but_the_graph = "-c enable_seqscan=off -c enable_bitmapscan=off"
    uri = psycopg.conninfo.make_conninfo(postgres.get_uri(), options=nothing_but_the_graph)
    with psycopg.connect(uri) as connection:
        (version,) = connection.execute("SELECT extversion FROM pg_extension WHERE extname = 'vector'").fetchone()
        if scans_on and tuple(map(int, version.split(".")[:2])) < (0, 8):
            pytest.skip("this pgvector has no iterative scan")
        _set_version(connection, version if scans_on else "0.7.4")
    index = PgvectorIndex(uri, 64, table="with_filters", approximate=True)
    with psycopg.connect(uri) as connection:
        _set_version(connection, version)
    for where, n_passing in (({"label": 3}, 60), ({"rare": 7}, 3)):
        distances, ids = index.search(codes[:3], 50, where=where)
        assert ids.shape == (3, min(50, n_passing))
        assert (ids % 50 == (3 if n_passing == 60 else 7)).all()
        assert (np.diff(distances, axis=1) >= 0).all()
    index.close()


def _set_version(connection, version):
    """Let PostgreSQL name this version of pgvector, by which an index tells what it can do."""
    connection.execute("UPDATE pg_extension SET extversion = %s WHERE extname = 'vector'", [version])


def test_hnsw_refuses_more_than_it_can_return(graph_of_codes):
    index, codes = graph_of_codes
    with pytest.raises(ValueError, match=r"k is 1001.*at most 1000.*approximate=False"):
        index.search(codes[:1], 1001)


def test_hnsw_options_out_of_range_are_refused_before_they_are_sent(graph_of_codes):
    index, _ = graph_of_codes
    with pytest.raises(InputError) as refused:
        index.create_hnsw(m=500)
    assert (refused.value.parameter, refused.value.value) == ("m", 500)
    with pytest.raises(InputError) as refused:
        index.create_hnsw(m=40)
    assert (refused.value.parameter, refused.value.value) == ("ef_construction", 64)


@pytest.mark.parametrize("table", ["user", "select", "MixedCase"])
def test_any_table_name_of_letters_works(postgres, random_codes, table):
    from starshl.index.adapters import PgvectorIndex

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
    from starshl.index.adapters import PgvectorIndex

    index = PgvectorIndex(postgres.get_uri(), 11, table="nul")
    for text in ("x\x00y", "\\\x00"):
        with pytest.raises(ValueError, match=r"metadata\[0\] contains the NUL character"):
            index.add(random_codes[:1], metadata=[{"a": text}])
    index.add(random_codes[:1], metadata=[{"a": "\\u0000"}])
    assert index.search(random_codes[:1], 1, where={"a": "\\u0000"}).ids.tolist() == [[0]]
    index.close()


def test_an_error_of_the_database_itself_is_worded_as_what_it_is(postgres, random_codes):
    from starshl.index.adapters import PgvectorIndex

    index = PgvectorIndex(postgres.get_uri(), 11, table="dropped")
    with index._transaction() as cursor:
        cursor.execute("DROP TABLE dropped")
    with pytest.raises(AdapterError, match=r"UndefinedTable(.|\n)*Nothing was changed") as caught:
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
    from starshl.index.adapters import PgvectorIndex

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
    with pytest.raises(AdapterError, match="may or may not") as caught:
        index.add(random_codes[:5])
    assert "Nothing of it was stored" not in str(caught.value)
    with pytest.raises(AdapterError, match="Nothing of it was stored"):
        len(index)
    monkeypatch.undo()
    assert len(index) == (15 if committed else 10)
    index.close()


def test_bad_table_names_never_reach_the_database(postgres):
    from starshl.index.adapters import PgvectorIndex

    with pytest.raises(ValueError, match="use letters, digits and underscores"):
        PgvectorIndex(postgres.get_uri(), 8, table="codes; DROP TABLE users")


def test_a_server_that_is_down_is_a_clear_error(tmp_path):
    pytest.importorskip("psycopg")
    from starshl.index.adapters import PgvectorIndex

    with pytest.raises(AdapterError, match=r"no connection(.|\n)*Check the address"):
        PgvectorIndex(f"postgresql://postgres@/postgres?host={tmp_path}", 8)


def test_a_server_stopped_in_the_middle_of_a_batch_keeps_nothing_of_it(fresh_postgres, random_codes, monkeypatch):
    psycopg = pytest.importorskip("psycopg")
    from starshl.index.adapters import PgvectorIndex

    server = fresh_postgres
    index = PgvectorIndex(server.get_uri(), 11)
    index.add(random_codes[:100])
    write_row, written = psycopg.Copy.write_row, []

    def stop_half_way(copy, row):
        if len(written) == 100:
            server.stop()
        written.append(row)
        write_row(copy, row)

    monkeypatch.setattr(psycopg.Copy, "write_row", stop_half_way)
    with pytest.raises(AdapterError, match="Nothing of it was stored"):
        index.add(random_codes[slice(100, 300)], np.arange(100, 300))
    monkeypatch.undo()
    with pytest.raises(AdapterError, match="when the server answers"):
        len(index)
    server.start()
    assert index.ids.tolist() == list(range(100))
    index.add(random_codes[slice(100, 300)], np.arange(100, 300))
    assert len(index) == 300
    index.close()
