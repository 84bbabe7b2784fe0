"""Rows and labels from every kind of file."""

import json
import os
import re
from pathlib import Path

import numpy as np
import pyarrow as arrow
import pyarrow.parquet as parquet
import pytest
from scipy import sparse

import starshl.data.tables
from starshl.data.tables import (
    Columns,
    ColumnWarning,
    TableError,
    open_partitions,
    open_table,
    read_labels,
    read_table,
    read_vectors,
)
from starshl.data.tables.cells import labels_from_text, typed_cells
from starshl.data.tables.text import TextSource


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def test_a_csv_without_header_has_numbered_columns(tmp_path):
    path = write(tmp_path / "t.csv", "1,2,0\n3,4,1\n")
    assert read_table(path).X.tolist() == [[1, 2, 0], [3, 4, 1]]
    table = read_table(path, Columns(labels="-1", drop=["0"]))
    assert (table.X.tolist(), table.y.tolist(), table.feature_names) == ([[2], [4]], [0, 1], None)


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_a_csv_with_header_finds_columns_by_name(separator, tmp_path):
    text = 'id,a,"b c",kind\nr1,1,2,x\n\nr2,3,4,""\n'.replace(",", separator)
    table = read_table(write(tmp_path / "t.csv", "\ufeff" + text), Columns(labels="kind", drop=["id"]))
    assert (table.X.tolist(), table.feature_names) == ([[1, 2], [3, 4]], ("a", "b c"))
    assert table.y.tolist() == ["x", None]


def test_a_tsv_is_split_at_tabs_even_if_commas_are_more(tmp_path):
    table = read_table(write(tmp_path / "t.tsv", "a\tb\tkind\n1\t2\tx,y,z,w\n3\t4\tz\n"), Columns(labels="kind"))
    assert (table.X.tolist(), table.y.tolist()) == ([[1, 2], [3, 4]], ["x,y,z,w", "z"])


@pytest.mark.parametrize(
    ("text", "has_header"),
    [
        ("a,b\n1,2\n", True),
        ("0,1,kind\n5.1,3.5,1\n", True),
        ("0,1,kind\n5.1,3.5,x\n", True),
        (",a,b\n0,1,2\n", True),
        ("1,2\n3,4\n", False),
        ("5.1,3.5,setosa\n4.9,3.0,setosa\n", False),
        ("5.1,,setosa\n4.9,3.0,\n", False),
    ],
)
def test_a_header_is_told_from_a_row_with_text(text, has_header, tmp_path):
    assert TextSource(write(tmp_path / "t.csv", text)).has_names == has_header


def test_columns_of_a_model_are_found_in_any_order_and_among_others(tmp_path):
    path = write(tmp_path / "t.csv", "note,b,a\nhello,1,2\n")
    assert read_table(path, Columns(features=["a", "b"])).X.tolist() == [[2, 1]]
    lines = write(tmp_path / "t.jsonl", '{"b": 1, "note": "hello", "a": 2}\n')
    assert read_table(lines, Columns(features=["a", "b"])).X.tolist() == [[2, 1]]


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["0", "2", "-1", ""], [0, 2, -1, -1]),
        (["9007199254740992", "9007199254740993"], [9007199254740992, 9007199254740993]),
        (["0123", "123"], ["0123", "123"]),
        (["1_0", "10"], ["1_0", "10"]),
        (["+1", "1", "-0"], ["+1", "1", "-0"]),
        (["\u0663", "3"], ["\u0663", "3"]),
        (["1.0", "nan", "3.0", "1"], ["1.0", None, "3.0", "1"]),
        (["9223372036854775808", "1"], ["9223372036854775808", "1"]),
        (["cat", "", "nan", "-1"], ["cat", None, "nan", "-1"]),
        (["0.5", "1"], ["0.5", "1"]),
        (["", ""], [-1, -1]),
    ],
)
def test_labels_in_text_are_integers_only_if_each_survives_a_round_trip(cells, expected):
    assert labels_from_text(cells).tolist() == expected


def test_cells_of_metadata_keep_leading_zeros(tmp_path):
    assert typed_cells(["0123", "123", ""]) == ["0123", "123", None]
    assert typed_cells(["1.5", "-2e3", ""]) == [1.5, -2000.0, None]
    assert typed_cells(["1_0", "2"]) == ["1_0", "2"]


def test_labels_of_typed_files_keep_their_type_and_gaps_are_unlabeled(tmp_path):
    columns = {"a": [1.0, 2.0, 3.0], "i": [3, None, 1], "f": [1.0, None, 2.5], "t": ["x", "", None]}
    parquet.write_table(arrow.table(columns), tmp_path / "t.parquet")
    lines = [json.dumps(dict(zip(columns, row, strict=True))) for row in zip(*columns.values(), strict=True)]
    write(tmp_path / "t.jsonl", "\n".join(lines))
    for name in ("t.parquet", "t.jsonl"):
        features = {"features": ["a"]}
        assert read_table(tmp_path / name, Columns(labels="i", **features)).y.tolist() == [3, -1, 1]
        assert read_table(tmp_path / name, Columns(labels="t", **features)).y.tolist() == ["x", None, None]
        np.testing.assert_equal(read_table(tmp_path / name, Columns(labels="f", **features)).y, [1.0, np.nan, 2.5])
    np.savez(tmp_path / "t.npz", X=np.ones((2, 2)), y=np.array(["x", ""]))
    assert read_table(tmp_path / "t.npz", Columns(labels="y")).y.tolist() == ["x", None]


def test_labels_are_detected_in_y_of_an_npz_and_in_the_column_label(tmp_path):
    np.savez(tmp_path / "t.npz", X=np.ones((2, 2)), y=[0, 1])
    write(tmp_path / "t.csv", "x,y,label\n1,2,a\n3,5,b\n")
    for name, column in {"t.npz": "y", "t.csv": "label"}.items():
        table = read_table(tmp_path / name, Columns(detect_labels=True))
        assert (table.X.shape, table.label_column, len(table.y)) == ((2, 2), column, 2)
        assert read_table(tmp_path / name, Columns(drop=[column])).y is None
        ignored = read_table(tmp_path / name, Columns(detect_labels=True, ignore_labels=True))
        assert (ignored.X.shape, ignored.label_column, ignored.y) == ((2, 2), None, None)


def test_labels_may_be_in_a_file_of_their_own(tmp_path):
    rows, labels = write(tmp_path / "rows.csv", "a,b\n1,2\n3,5\n"), write(tmp_path / "labels.csv", "label\nx\ny\n")
    np.save(tmp_path / "rows.npy", np.ones((2, 2)))
    for table in (
        read_table(rows, Columns(labels=labels)),
        open_table(tmp_path / "rows.npy", Columns(labels=labels), most_in_memory=1),
        open_partitions(tmp_path / "rows.npy", Columns(labels=labels)),
    ):
        assert (table.X.shape, table.label_column, table.y.tolist()) == ((2, 2), str(labels), ["x", "y"])


def test_parquet_keeps_names_and_precision(tmp_path):
    columns = {"a": np.array([1, 2], np.float32), "b": np.array([3, 4], np.float32), "kind": ["x", None]}
    parquet.write_table(arrow.table(columns), tmp_path / "t.parquet")
    table = read_table(tmp_path / "t.parquet", Columns(labels="kind"))
    assert (table.X.tolist(), table.X.dtype, table.feature_names) == ([[1, 3], [2, 4]], np.float32, ("a", "b"))
    assert table.y.tolist() == ["x", None]


def test_labels_come_from_files_of_their_own(tmp_path):
    np.save(tmp_path / "y.npy", [2, -1, 0])
    np.savez(tmp_path / "y.npz", X=np.zeros((3, 1)), y=[2, -1, 0])
    parquet.write_table(arrow.table({"label": [2, None, 0]}), tmp_path / "y.parquet")
    write(tmp_path / "plain.csv", "2\n\n0\n")
    write(tmp_path / "named.csv", "row,label\n0,2\n1,\n2,0\n")
    write(tmp_path / "y.jsonl", '{"label": 2}\n{"label": null}\n{"label": 0}\n')
    write(tmp_path / "text.csv", "dog\n\ncat\n")
    assert read_labels(tmp_path / "text.csv").tolist() == ["dog", None, "cat"]
    for name in ("y.npy", "y.npz", "y.parquet", "plain.csv", "named.csv", "y.jsonl"):
        assert read_labels(tmp_path / name).tolist() == [2, -1, 0], name
    with pytest.raises(TableError, match=r"'label' or 'y'.*'a', 'b'"):
        read_labels(write(tmp_path / "two.csv", "a,b\n1,2\n"))


def test_float32_stays_and_other_numbers_become_float64(tmp_path):
    for kind, expected in {"float32": "float32", "float64": "float64", "uint8": "float64", "bool": "float64"}.items():
        np.save(tmp_path / "x.npy", np.ones((2, 2), kind))
        assert read_table(tmp_path / "x.npy").X.dtype == expected


def test_vectors_may_be_an_array_of_any_name(tmp_path):
    np.savez(tmp_path / "t.npz", embedding=np.ones((2, 3)), y=[0, 1])
    assert read_table(tmp_path / "t.npz", Columns(vectors="embedding")).X.shape == (2, 3)
    with pytest.raises(TableError, match="none called 'X'"):
        read_table(tmp_path / "t.npz")
    np.save(tmp_path / "t.npy", np.ones((2, 3)))
    with pytest.raises(TableError, match="has no column 'v'"):
        read_table(tmp_path / "t.npy", Columns(vectors="v"))
    with pytest.raises(TableError, match="text in '0'"):
        read_table(write(tmp_path / "t.csv", "1,2\n3,4\n"), Columns(vectors="0"))


def test_lists_in_json_lines_are_vectors(tmp_path):
    path = write(tmp_path / "t.jsonl", '{"v": [1, 2.5], "n": 3}\n\n{"v": [3, 4], "n": null}\n')
    table = read_table(path, Columns(others="metadata"))
    assert (table.X.tolist(), table.vectors, table.metadata) == ([[1, 2.5], [3, 4]], "v", [{"n": 3}, {"n": None}])
    with pytest.raises(TableError, match="in column 'v'"):
        read_table(write(tmp_path / "u.jsonl", '{"v": [1]}\n{"v": [1, 2]}\n'))
    for text in ("[1]\n", "{\n", "", "[" * 100_000):
        with pytest.raises(TableError, match=r"one JSON object per line"):
            read_table(write(tmp_path / "bad.jsonl", text))


def test_all_unknown_columns_are_named_at_once(tmp_path):
    path = write(tmp_path / "t.csv", "a,b,kind\n1,2,x\n")
    with pytest.raises(TableError) as caught:
        read_table(path, Columns(labels="kinds", drop=["c", "b"], ids="key"))
    message = str(caught.value)
    assert "(nearest: 'kind')" in message
    assert message.endswith("Its columns are 'a', 'b', 'kind'.")
    assert caught.value.unknown == ("kinds", "key", "c")


def test_all_columns_with_bad_cells_are_named_at_once(tmp_path):
    path = write(tmp_path / "t.csv", "a,b,c\n1,two,\n3,4,5\nx,6,7\n")
    with pytest.raises(TableError, match=r"'two' in column 'b'.*column 'c', line 2") as caught:
        read_table(path)
    assert "column 'a', line 4" in str(caught.value)
    assert sorted(caught.value.droppable) == ["a", "b", "c"]
    missing = write(tmp_path / "u.csv", "a,b,c\n1,nan,2\n3,4,inf\n")
    with pytest.raises(TableError, match=r"column 'b'.*column 'c'"):
        read_table(missing)
    parquet.write_table(arrow.table({"a": [1.0], "s": ["x"], "t": ["y"]}), tmp_path / "t.parquet")
    with pytest.raises(TableError, match=r"'s' \(string\), 't' \(string\)"):
        read_table(tmp_path / "t.parquet")


def test_missing_features_are_returned_if_they_are_allowed(tmp_path):
    write(tmp_path / "t.csv", "a,b\n1,\n3,nan\n")
    write(tmp_path / "t.jsonl", '{"a": 1, "b": null}\n{"a": 3}\n')
    parquet.write_table(
        arrow.table({"a": [1.0, 3.0], "b": arrow.array([None, None], "double")}), tmp_path / "t.parquet"
    )
    for name in ("t.csv", "t.parquet"):
        np.testing.assert_equal(read_table(tmp_path / name, Columns(allow_missing=True)).X, [[1, np.nan], [3, np.nan]])
    with pytest.raises(TableError, match="'two' in column 'b'"):
        read_table(write(tmp_path / "t.csv", "a,b\n1,two\n"), Columns(allow_missing=True))


@pytest.mark.parametrize("name", ["id", "ID", "_id", "index", "uuid", ""])
def test_a_column_of_ids_among_the_features_is_warned_of(name, tmp_path):
    path = write(tmp_path / "t.csv", f"a,{name},b\n1.5,7,2\n2.5,3,2\n0.5,9,1\n")
    with pytest.warns(ColumnWarning, match="integer in every row") as caught:
        read_table(path)
    assert caught[0].message.columns == (name,)


def test_a_first_column_that_counts_the_rows_is_warned_of(tmp_path, recwarn):
    with pytest.warns(ColumnWarning, match="'nr'"):
        read_table(write(tmp_path / "t.csv", "nr,b\n5,2\n6,2\n7,1\n"))
    recwarn.clear()
    read_table(write(tmp_path / "u.csv", "id,b\n5,2\n5,2\n7,1\n"))  # not unique
    read_table(write(tmp_path / "v.csv", "nr,b\n5,2\n8,2\n7,1\n"))  # no such name, not counting
    read_table(write(tmp_path / "w.csv", "nr,b\n5,2\n6,2\n7,1\n"), Columns(features=["nr", "b"]))  # asked for
    assert not recwarn.list


@pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
def test_a_sparse_matrix_of_scipy_stays_sparse(kind, tmp_path):
    matrix = sparse.random(20, 30, density=0.1, format=kind, random_state=0)
    sparse.save_npz(tmp_path / "t.npz", matrix)
    X = read_table(tmp_path / "t.npz", Columns(detect_labels=True)).X
    assert sparse.issparse(X)
    assert X.format == "csr"
    np.testing.assert_array_equal(X.toarray(), matrix.toarray())
    matrix.data[3] = np.nan
    sparse.save_npz(tmp_path / "nan.npz", matrix)
    with pytest.raises(TableError, match=r"missing value \(NaN\) in column"):
        read_table(tmp_path / "nan.npz")


def test_a_sparse_matrix_with_indices_out_of_range_is_refused(tmp_path):
    matrix = sparse.random(20, 30, density=0.1, format="csr", random_state=0)
    members = {"format": b"csr", "shape": (20, 30), "data": matrix.data, "indptr": matrix.indptr}
    np.savez(tmp_path / "t.npz", indices=matrix.indices + 1_000_000, **members)
    with pytest.raises(TableError, match="not a readable array file"):
        read_table(tmp_path / "t.npz")


def test_arrays_that_nobody_asked_for_are_not_expanded(tmp_path, monkeypatch):
    np.savez_compressed(tmp_path / "t.npz", X=np.ones((3, 2)), y=[0, 1, 2], bomb=np.zeros((1000, 1000)))
    loaded = []
    original = np.lib.npyio.NpzFile.__getitem__
    monkeypatch.setattr(
        np.lib.npyio.NpzFile, "__getitem__", lambda file, name: loaded.append(name) or original(file, name)
    )
    read_table(tmp_path / "t.npz", Columns(labels="y"))
    assert loaded == ["X", "y"]
    loaded.clear()
    with pytest.warns(UserWarning, match=r"\(1000, 1000\) in 'bomb'.* left out"):
        assert read_table(tmp_path / "t.npz", Columns(others="metadata")).metadata[1] == {"y": 1}
    assert "bomb" not in loaded


def test_an_array_that_claims_more_entries_than_its_bytes_is_refused(tmp_path):
    np.save(tmp_path / "t.npy", np.zeros((10, 10)))
    content = (tmp_path / "t.npy").read_bytes()
    (tmp_path / "t.npy").write_bytes(content.replace(b"(10, 10), }    ", b"(10, 99999999)}"))
    with pytest.raises(TableError, match="does not fit into"):
        read_table(tmp_path / "t.npy")


def test_arrays_of_python_objects_are_refused(tmp_path):
    class Trap:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "executed"),)

    np.savez(tmp_path / "t.npz", X=np.ones((1, 2)), y=np.array([Trap()], dtype=object))
    with pytest.raises(TableError, match="Python objects"):
        read_table(tmp_path / "t.npz", Columns(labels="y"))
    assert not (tmp_path / "executed").exists()
    assert read_vectors(tmp_path / "t.npz").shape == (1, 2)


def test_a_folder_is_no_table(tmp_path):
    with pytest.raises(ValueError, match="is a folder"):
        read_table(tmp_path)


def test_no_message_of_the_reader_names_an_option():
    for path in Path(starshl.data.tables.__file__).parent.glob("*.py"):
        assert not re.search(r"--[a-z]", path.read_text(encoding="utf-8")), path


LONG = "x" * 200_000


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (f"name,label\nb,1\n{LONG},2\n", 3),
        (f"{LONG},label\nb,1\n", 1),
        (f"name,label\n{LONG},2\n", 2),
        ('name,label\nb,1\n"c,2\n' + "d,3\n" * 50_000, 3),
    ],
    ids=["a row", "the header", "the first row", "an open quotation mark"],
)
def test_a_cell_that_is_too_long_is_named_by_file_and_line(tmp_path, text, line):
    (tmp_path / "long.csv").write_text(text)
    with pytest.raises(TableError, match=rf"long\.csv' has a cell of more than 131,072 .* in line {line}\. .*\.jsonl"):
        read_table(tmp_path / "long.csv", Columns(features=("name",), text="name", raw=True, labels="label"))


def test_a_single_column_of_words_has_a_header_if_somebody_named_it(tmp_path):
    path = tmp_path / "notes.csv"
    path.write_text("note\na red car\nfresh bread\n")
    for columns in (Columns(raw=True, text="note"), Columns(raw=True, features=("note",))):
        table = read_table(path, columns)
        assert (table.X.tolist(), table.feature_names) == ([["a red car"], ["fresh bread"]], ("note",))
    with pytest.raises(ValueError, match="no names of columns"):
        read_table(path, Columns(raw=True))
