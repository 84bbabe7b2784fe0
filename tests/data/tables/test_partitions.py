"""Rows in many files, behind paths and URLs: the same numbers from each, and every complaint names its file."""

import pickle

import numpy as np
import pytest

from starshl.data.tables import ArrayRows, Columns, JoinedRows, TableError, ZarrRows, is_url, open_partitions

NUMBERS = np.array([0, 3, 699, 700, 701, 1399])


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(0).standard_normal((1400, 3)).astype(np.float32)


def write_parquet(path, rows, names="abc", **columns):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    values = {name: rows[:, j] for j, name in enumerate(names)} | columns
    pq.write_table(pa.table(values), path, row_group_size=200)


def write_files(folder, X, kind):
    halves = X[:700], X[700:]
    for number, rows in enumerate(halves):
        if kind == "parquet":
            write_parquet(folder / f"part-{number}.parquet", rows)
        elif kind == "npy":
            np.save(folder / f"part-{number}.npy", rows)
        else:
            zarr = pytest.importorskip("zarr")
            array = zarr.create_array(folder / f"part-{number}.zarr", shape=rows.shape, chunks=(300, 3), dtype="f4")
            array[:] = rows
    return f"{folder}/part-*.{kind}"


@pytest.mark.parametrize("prefix", ["", "file://"])
@pytest.mark.parametrize("kind", ["parquet", "npy", "zarr"])
def test_every_format_gives_the_same_rows_by_path_and_by_url(tmp_path, X, kind, prefix):
    if prefix:
        pytest.importorskip("fsspec")
    rows = open_partitions(prefix + write_files(tmp_path, X, kind)).X
    assert rows.shape == X.shape
    np.testing.assert_array_equal(rows.take(NUMBERS), X[NUMBERS])
    np.testing.assert_array_equal(np.concatenate(list(rows.blocks(np.arange(1400), 512))), X)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(rows)).take(NUMBERS), X[NUMBERS])


def test_rows_are_read_from_any_file_system_of_fsspec(X):
    fsspec = pytest.importorskip("fsspec")
    with fsspec.open("memory://rows/a.npy", "wb") as file:
        np.save(file, X)
    for address in ("memory://rows/a.npy", "memory://rows", "memory://rows/*.npy"):
        rows = open_partitions(address).X
        np.testing.assert_array_equal(rows.take(NUMBERS), X[NUMBERS])
    assert is_url(rows.parts[0].path)


def test_a_folder_is_all_its_files_in_the_order_of_their_names(tmp_path, X):
    write_files(tmp_path, X, "parquet")
    np.testing.assert_array_equal(open_partitions(tmp_path).X.take(NUMBERS), X[NUMBERS])


def test_labels_come_from_all_files(tmp_path, X):
    write_parquet(tmp_path / "a.parquet", X[:700], label=np.arange(700) % 3)
    write_parquet(tmp_path / "b.parquet", X[700:], label=np.arange(700) % 2)
    table = open_partitions(tmp_path, Columns(detect_labels=True))
    assert table.feature_names == ("a", "b", "c")
    np.testing.assert_array_equal(table.y, np.concatenate([np.arange(700) % 3, np.arange(700) % 2]))


def test_no_partition_holds_rows_of_two_files(tmp_path, X):
    partitions = open_partitions(write_files(tmp_path, X, "npy")).X.partitions(512)
    assert [(each.part, each.start, each.stop, each.first) for each in partitions] == [
        (0, 0, 512, 0),
        (0, 512, 700, 512),
        (1, 0, 512, 700),
        (1, 512, 700, 1212),
    ]


def test_only_the_row_groups_that_hold_wanted_rows_are_read(tmp_path, X, monkeypatch):
    parquet = pytest.importorskip("pyarrow.parquet")
    rows = open_partitions(write_files(tmp_path, X, "parquet")).X
    read, iterate = [], parquet.ParquetFile.iter_batches

    def watched(file, *arguments, row_groups=None, **settings):
        read.append(row_groups)
        return iterate(file, *arguments, row_groups=row_groups, **settings)

    monkeypatch.setattr(parquet.ParquetFile, "iter_batches", watched)
    np.testing.assert_array_equal(rows.take(np.array([5, 650])), X[[5, 650]])
    assert read == [[0], [3]]


def test_a_mapped_file_is_sent_to_other_processes_by_its_name(tmp_path, X):
    np.save(tmp_path / "rows.npy", X)
    sent = pickle.dumps(ArrayRows(np.load(tmp_path / "rows.npy", mmap_mode="r")))
    assert len(sent) < 1000
    np.testing.assert_array_equal(pickle.loads(sent).take(NUMBERS), X[NUMBERS])


@pytest.mark.parametrize("kind", ["parquet", "npy", "zarr"])
def test_a_bad_entry_is_named_with_its_own_file_and_row(tmp_path, X, kind):
    damaged = X.copy()
    damaged[1102, 1] = np.nan
    rows = open_partitions(write_files(tmp_path, damaged, kind)).X
    with pytest.raises(TableError, match=rf"part-1.{kind}' holds NaN.* row 402"):
        list(rows.blocks(np.arange(1400), 512))


def test_a_file_with_other_columns_is_refused_when_it_is_opened(tmp_path, X):
    write_parquet(tmp_path / "a.parquet", X)
    write_parquet(tmp_path / "b.parquet", X, names="abd")
    with pytest.raises(TableError, match=r"lacks the columns 'c'.*columns 'd'"):
        open_partitions(tmp_path)
    np.save(tmp_path / "a.npy", X)
    np.save(tmp_path / "b.npy", X[:, :2])
    with pytest.raises(TableError, match=r"b\.npy' has 2 features"):
        open_partitions(f"{tmp_path}/*.npy")


def test_what_cannot_be_rows_is_refused_by_name(tmp_path, X):
    zarr = pytest.importorskip("zarr")
    zarr.create_group(tmp_path / "group.zarr").create_array("X", shape=(2, 2), dtype="f4")
    np.save(tmp_path / "cube.npy", np.zeros((2, 2, 2)))
    np.save(tmp_path / "columns.npy", np.asfortranarray(X))
    (tmp_path / "broken.npy").write_bytes(b"\x93NUMPY, but no more of it")
    (tmp_path / "both").mkdir()
    np.save(tmp_path / "both" / "a.npy", X)
    write_parquet(tmp_path / "both" / "a.parquet", X)
    for name, message in [
        ("group.zarr", "is a group of Zarr arrays: X"),
        ("cube.npy", r"shape \(2, 2, 2\)"),
        ("broken.npy", "not a readable"),
        ("both", "is a folder with files that end in .parquet and in .npy"),
        ("absent.npy", "names no file"),
        ("rows.csv", "names no file"),
    ]:
        with pytest.raises(ValueError, match=message):
            open_partitions(tmp_path / name)
    with pytest.raises(TableError, match="stored by columns"):
        open_partitions(f"file://{tmp_path}/columns.npy")
    with pytest.raises(TableError, match="not a readable array file"):
        open_partitions(f"file://{tmp_path}/broken.npy")
    with pytest.raises(TableError, match="cannot be read"):
        open_partitions("nowhere://rows.npy")


def test_an_error_about_a_table_survives_the_way_to_another_process():
    error = TableError("rows.npy", ["is bad"], "Repair it.", droppable=["a"], unknown=["b"])
    arrived = pickle.loads(pickle.dumps(error))
    assert str(arrived) == str(error) == "'rows.npy' is bad. Repair it."
    assert (arrived.problems, arrived.droppable, arrived.unknown) == (("is bad",), ("a",), ("b",))


def test_parts_of_several_precisions_are_read_in_the_widest():
    rows = JoinedRows([ArrayRows(np.ones((2, 1), np.float32)), ArrayRows(np.full((1, 1), 0.1))])
    assert rows.take(np.arange(3)).tolist() == [[1.0], [1.0], [0.1]]


def test_a_zarr_array_is_opened_where_it_is_read(tmp_path, X):
    write_files(tmp_path, X, "zarr")
    assert len(pickle.dumps(ZarrRows(tmp_path / "part-0.zarr"))) < 1000
