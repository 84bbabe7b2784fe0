"""Reading tables and labels from every kind of file."""

import numpy as np
import pyarrow as arrow
import pyarrow.parquet as parquet
import pytest

from starshl.cli._columns import labels_from_text
from starshl.cli._csv import _look_at
from starshl.cli.io import read_labels, read_rows


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def test_a_csv_without_header_has_numbered_columns(tmp_path):
    path = write(tmp_path / "t.csv", "1,2,0\n3,4,1\n")
    assert read_rows(path).X.tolist() == [[1, 2, 0], [3, 4, 1]]
    table = read_rows(path, labels="-1", drop=["0"])
    assert (table.X.tolist(), table.y.tolist(), table.names) == ([[2], [4]], [0, 1], None)


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_a_csv_with_header_finds_columns_by_name(separator, tmp_path):
    text = 'id,a,"b c",kind\nr1,1,2,x\n\nr2,3,4,""\n'.replace(",", separator)
    table = read_rows(write(tmp_path / "t.csv", "\ufeff" + text), labels="kind", drop=["id"])
    assert (table.X.tolist(), table.names) == ([[1, 2], [3, 4]], ("a", "b c"))
    assert table.y.tolist() == ["x", None]


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
    layout = _look_at(write(tmp_path / "t.csv", text))
    assert (layout.names is not None) == has_header


def test_columns_of_a_model_are_found_in_any_order_and_among_others(tmp_path):
    path = write(tmp_path / "t.csv", "note,b,a\nhello,1,2\n")
    assert read_rows(path, keep=["a", "b"]).X.tolist() == [[2, 1]]


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["0", "2", "-1", ""], [0, 2, -1, -1]),
        (["1.0", "nan", "3.0"], [1, -1, 3]),
        (["cat", "", "-1", "dog"], ["cat", None, None, "dog"]),
        (["0.5", "1"], ["0.5", "1"]),
    ],
)
def test_labels_in_text_are_integers_if_all_are_and_empty_or_minus_one_is_unlabeled(cells, expected):
    assert labels_from_text(np.array(cells, dtype=object)).tolist() == expected


def test_parquet_keeps_names_precision_and_missing_labels(tmp_path):
    columns = {"a": np.array([1, 2], np.float32), "b": np.array([3, 4], np.float32), "kind": ["x", None]}
    parquet.write_table(arrow.table(columns), tmp_path / "t.parquet")
    table = read_rows(tmp_path / "t.parquet", labels="kind")
    assert (table.X.tolist(), table.X.dtype, table.names) == ([[1, 3], [2, 4]], np.float32, ("a", "b"))
    assert table.y.tolist() == ["x", None]
    parquet.write_table(arrow.table({"label": [3, None]}), tmp_path / "y.parquet")
    assert read_labels(tmp_path / "y.parquet").tolist() == [3, -1]


def test_labels_come_from_files_of_their_own(tmp_path):
    np.save(tmp_path / "y.npy", [2, -1, 0])
    np.savez(tmp_path / "y.npz", X=np.zeros((3, 1)), y=[2, -1, 0])
    write(tmp_path / "plain.csv", "2\n\n0\n")
    write(tmp_path / "named.csv", "row,label\n0,2\n1,\n2,0\n")
    write(tmp_path / "text.csv", "dog\n\ncat\n")
    assert read_labels(tmp_path / "text.csv").tolist() == ["dog", None, "cat"]
    for name in ("y.npy", "y.npz", "plain.csv", "named.csv"):
        assert read_labels(tmp_path / name).tolist() == [2, -1, 0], name


def test_float32_arrays_stay_float32(tmp_path):
    np.save(tmp_path / "x.npy", np.ones((2, 2), np.float32))
    assert read_rows(tmp_path / "x.npy").X.dtype == np.float32


def test_a_parquet_column_of_lists_holds_the_rows(tmp_path, answer, starshl):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)) + 8.0 * np.eye(3)[np.arange(40) % 3], np.arange(40) % 3
    path = tmp_path / "t.parquet"
    lists = arrow.array(X.tolist(), arrow.large_list(arrow.float64()))
    parquet.write_table(arrow.table({"key": np.arange(40), "v": lists, "price": X[:, 0], "topic": y}), path)
    table = read_rows(path, labels="topic")
    assert (table.X.tolist(), table.y.tolist(), table.names, table.vectors) == (X.tolist(), y.tolist(), None, "v")
    model = tmp_path / "model.star"
    assert answer("fit", path, "--labels", "topic", "--bits", 8, "--output", model)["vectors"] == "v"
    assert answer("encode", model, path, "--output", tmp_path / "codes.npz")["n_codes"] == 40
    assert answer("predict", model, path, "--labels", "topic")["accuracy"] == 1.0
    both = tmp_path / "both.parquet"
    parquet.write_table(arrow.table({"v": lists, "w": lists, "topic": y}), both)
    words = ("encode", model, both, "--output", tmp_path / "both.npz")
    refused = starshl(*words)
    assert (refused.exit_code, "several columns of lists (v, w); name one with --vectors" in refused.stderr) == (
        2,
        True,
    )
    assert answer(*words, "--vectors", "w")["n_codes"] == 40
    with np.load(tmp_path / "codes.npz") as codes, np.load(tmp_path / "both.npz") as same:
        assert np.array_equal(codes["packed"], same["packed"])


def test_vectors_may_be_an_array_of_any_name(tmp_path):
    np.savez(tmp_path / "t.npz", embedding=np.ones((2, 3)), y=[0, 1])
    assert read_rows(tmp_path / "t.npz", vectors="embedding").X.shape == (2, 3)
    with pytest.raises(ValueError, match=r"named by --vectors"):
        read_rows(tmp_path / "t.npz")
    for name in ("t.npy", "t.csv"):
        np.save(tmp_path / "t.npy", np.ones((2, 3)))
        write(tmp_path / "t.csv", "1,2\n3,4\n")
        with pytest.raises(ValueError, match=r"--vectors names .* Leave it out"):
            read_rows(tmp_path / name, vectors="v")
