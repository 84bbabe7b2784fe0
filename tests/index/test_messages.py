"""What indexes say of operations that they lack, and adapters of libraries that are not installed."""

import sys

import pytest

from starshl.exceptions import UnsupportedOperationError
from starshl.index import FlatIndex


@pytest.mark.parametrize(
    ("module", "library"),
    [("faiss_index", "faiss"), ("pgvector_index", "psycopg"), ("milvus_index", "pymilvus")],
)
def test_a_missing_library_says_what_to_install(module, library, monkeypatch):
    monkeypatch.setitem(sys.modules, library, None)
    monkeypatch.delitem(sys.modules, f"starshl.index.adapters.{module}", raising=False)
    with pytest.raises(ImportError, match=rf"needs the library '{library}'.*pip install 'starshl\["):
        __import__(f"starshl.index.adapters.{module}")


def test_an_operation_that_is_not_declared_is_told_with_those_that_are():
    plain = type("Plain", (FlatIndex,), {"supports": frozenset()})(8)
    with pytest.raises(UnsupportedOperationError, match=r"Plain does not support 'remove' .* nothing beyond adding"):
        plain.remove([1])
