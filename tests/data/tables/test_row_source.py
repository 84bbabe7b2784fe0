"""Rows that stay in arrays and files: the same numbers from each, and bad entries named."""

import numpy as np
import pytest

from starshl.data.tables import ArrayRows, Columns, ColumnWarning, ParquetRows, TableError, open_table, read_table

NUMBERS = np.array([0, 1, 2, 5, 6, 4097, 9000])


def saved(tmp_path, X):
    np.save(tmp_path / "rows.npy", X)
    return np.load(tmp_path / "rows.npy", mmap_mode="r")


def write_parquet(path, columns):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.table(columns), path, row_group_size=3000)
    return path


def as_lists(X):
    pa = pytest.importorskip("pyarrow")
    return pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), X.shape[1])


def random_rows(n_rows=10_000, dtype=np.float32):
    return np.random.default_rng(0).standard_normal((n_rows, 3)).astype(dtype)


def sources(tmp_path, X):
    columns = {f"x{j}": X[:, j] for j in range(X.shape[1])}
    return [
        ArrayRows(X),
        ArrayRows(saved(tmp_path, X)),
        ParquetRows(write_parquet(tmp_path / "lists.parquet", {"v": as_lists(X)}), ["v"]),
        ParquetRows(write_parquet(tmp_path / "columns.parquet", columns), list(columns)),
    ]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8, np.int64])
def test_arrays_and_files_give_the_same_rows(tmp_path, dtype):
    X = (random_rows() * 10).astype(dtype)
    expected = X.astype(np.float32 if dtype in (np.float32, np.int8) else np.float64)
    for source in sources(tmp_path, X):
        assert source.shape == X.shape
        assert source.dtype == expected.dtype
        np.testing.assert_array_equal(source.take(NUMBERS), expected[NUMBERS])
        blocks = list(source.blocks(np.arange(len(X)), 4096))
        assert [len(block) for block in blocks] == [4096, 4096, 10_000 - 2 * 4096]
        np.testing.assert_array_equal(np.concatenate(blocks), expected)


def test_rows_of_a_float_array_that_follow_each_other_are_not_copied():
    X = random_rows()
    assert all(np.shares_memory(block, X) for block in ArrayRows(X).blocks(np.arange(5, 500), 100))


@pytest.mark.parametrize("position", range(4))
def test_bad_entries_are_named(tmp_path, position):
    X = random_rows()
    X[7003, 1] = np.nan
    source = sources(tmp_path, X)[position]
    source.take(np.arange(7000))
    with pytest.raises(ValueError, match=r"('x1'|1), first in row 7003") as caught:
        list(source.blocks(np.arange(3, 9000), 512))
    if source.path is not None:
        assert isinstance(caught.value, TableError)
        assert str(source.path) in str(caught.value)


def test_a_null_in_a_parquet_column_is_a_bad_entry(tmp_path):
    source = ParquetRows(write_parquet(tmp_path / "a.parquet", {"a": [1.0, 2.0, None], "b": [1, 2, 3]}), ["a", "b"])
    with pytest.raises(TableError, match="column 'a', first in row"):
        source.take(np.arange(3))


def test_vectors_of_different_lengths_are_refused(tmp_path):
    source = ParquetRows(write_parquet(tmp_path / "a.parquet", {"v": [[1.0, 2.0], [3.0]]}), ["v"])
    with pytest.raises(TableError, match="same length"):
        source.take(np.arange(2))


@pytest.mark.parametrize("array", [np.zeros(3), np.zeros((0, 2)), np.array([["a"]])])
def test_what_is_no_matrix_of_numbers_is_refused(array):
    with pytest.raises(ValueError, match="a matrix of numbers"):
        ArrayRows(array)


def test_a_large_npy_stays_in_its_file(tmp_path):
    X = random_rows(300)
    np.save(tmp_path / "a.npy", X)
    table = open_table(tmp_path / "a.npy", most_in_memory=299)
    assert isinstance(table.X, ArrayRows)
    assert table.X.path == tmp_path / "a.npy"
    np.testing.assert_array_equal(table.X.take(np.arange(300)), X)
    assert isinstance(open_table(tmp_path / "a.npy", most_in_memory=300).X, np.ndarray)


def test_only_the_labels_of_a_large_parquet_are_read(tmp_path):
    X = random_rows(300)
    path = write_parquet(tmp_path / "a.parquet", {"label": ["a", "b", ""] * 100, "x": X[:, 0], "z": X[:, 1]})
    columns = Columns(detect_labels=True)
    table, whole = open_table(path, columns, most_in_memory=100), read_table(path, columns)
    assert isinstance(table.X, ParquetRows)
    assert table.feature_names == whole.feature_names == ("x", "z")
    assert table.label_column == "label"
    np.testing.assert_array_equal(table.y, whole.y)
    np.testing.assert_array_equal(table.X.take(np.arange(300)), whole.X)


def test_a_column_of_ids_in_a_large_parquet_is_warned_of(tmp_path):
    path = write_parquet(tmp_path / "a.parquet", {"id": np.arange(300), "x": random_rows(300)[:, 0]})
    with pytest.warns(ColumnWarning, match="like an id"):
        open_table(path, most_in_memory=100)


@pytest.mark.parametrize("array", [np.zeros(3), np.zeros((2, 2, 2))])
def test_other_arrays_are_left_to_the_reader_of_tables(tmp_path, array):
    np.save(tmp_path / "a.npy", array)
    if array.ndim == 1:
        with pytest.raises(TableError, match="rows of shape"):
            open_table(tmp_path / "a.npy", most_in_memory=1)
    else:
        assert open_table(tmp_path / "a.npy", most_in_memory=1).X.shape == (2, 2, 2)


@pytest.mark.parametrize("mode", ["r", "c", "r+"])
def test_giving_back_pages_of_a_map_loses_nothing(mode, tmp_path):
    X = np.random.default_rng(0).normal(size=(3000, 4))
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode=mode)
    if mode != "r":
        mapped[7] = X[7] = 5.0  # in memory alone, if the mode is "c"
    for _ in range(2):
        read = np.concatenate(list(ArrayRows(mapped).blocks(np.arange(3000), 512)))
        np.testing.assert_array_equal(read, X)
