"""Vectors, ids, references and metadata from files of other programs."""

import datetime
import json

import numpy as np
import pytest

from starshl.data.tables import Columns
from starshl.data.tables import read_table as read_any_table
from starshl.data.tables import read_vectors as read_any_vectors

arrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

X = np.arange(12, dtype=np.float32).reshape(4, 3)


def read_table(path, **columns):
    return read_any_table(path, Columns(others="metadata", **columns))


def read_vectors(path, **columns):
    return read_any_vectors(path, Columns(others="metadata", **columns))


def lists(kind=None):
    return arrow.array(X.tolist(), kind or arrow.list_(arrow.float32()))


def written(path, **columns):
    parquet.write_table(arrow.table(columns), path)
    return path


@pytest.mark.parametrize(
    "kind",
    [
        arrow.list_(arrow.float32()),
        arrow.list_(arrow.float32(), 3),
        arrow.large_list(arrow.float32()),
        arrow.large_list(arrow.float64()),
        arrow.list_(arrow.int8()),
    ],
    ids=str,
)
def test_every_kind_of_list_is_a_vector_and_scalars_beside_it_are_metadata(tmp_path, kind):
    values = arrow.array(X.astype(int).tolist(), kind)
    table = read_table(written(tmp_path / "t.parquet", v=values, price=[0.5, 1.5, 2.5, 3.5]))
    assert np.array_equal(table.X, X)
    assert (table.vectors, table.feature_names) == ("v", None)
    assert table.metadata[1] == {"price": 1.5}


def test_the_lists_of_polars_are_vectors(tmp_path):
    polars = pytest.importorskip("polars")
    polars.DataFrame({"v": X.tolist(), "stars": [1.0, 2.0, 3.0, 4.0]}).write_parquet(tmp_path / "t.parquet")
    table = read_table(tmp_path / "t.parquet")
    assert np.array_equal(table.X, X)
    assert table.metadata[0] == {"stars": 1.0}


def test_scalars_do_not_stand_in_for_lists_of_the_wrong_kind(tmp_path):
    path = written(tmp_path / "t.parquet", tags=[["a"], [], ["b"], ["c"]], price=[0.5, 1.5, 2.5, 3.5])
    with pytest.raises(ValueError, match=r"tags \(list<.*string>\)"):
        read_table(path)
    assert read_table(path, drop=["tags"]).feature_names == ("price",)


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        ("price", r"double in 'price'.*vectors: v, w"),
        ("nothing", "'v', 'w', 'price'"),
        (None, r"several columns of vectors.*v, w"),
    ],
)
def test_the_column_of_vectors_is_checked(tmp_path, vectors, message):
    path = written(tmp_path / "t.parquet", v=lists(), w=lists(), price=[0.5, 1.5, 2.5, 3.5])
    with pytest.raises(ValueError, match=message):
        read_table(path, vectors=vectors)
    assert np.array_equal(read_vectors(path, vectors="w"), X)


def test_the_features_of_a_model_are_found_by_name(tmp_path):
    path = written(tmp_path / "t.parquet", c=X[:, 2], b=X[:, 1].astype(int), kind=list("xyzx"), a=X[:, 0], d=X[:, 0])
    table = read_table(path, features=["a", "b", "c"])
    assert np.array_equal(table.X, X)
    assert table.metadata[1] == {"kind": "y", "d": 3.0}
    assert np.array_equal(read_vectors(path, features=["a", "b", "c"]), X)
    with pytest.raises(ValueError, match=r"lacks 2 of the 3.*'e', 'f'"):
        read_table(path, features=["a", "e", "f"])


def test_dates_become_text_and_nan_becomes_none(tmp_path):
    when = [datetime.datetime(2020, 1, 2, 3), None, datetime.datetime(2021, 1, 1), datetime.datetime(2022, 1, 1)]
    path = written(
        tmp_path / "t.parquet",
        v=lists(),
        when=when,
        day=[datetime.date(2020, 5, 1)] * 4,
        p=[float("nan"), 1.0, 2.0, 3.0],
        parts=[[float("nan"), 1.0]] * 4,
    )
    with pytest.raises(ValueError, match="several columns"):
        read_table(path)
    table = read_table(path, vectors="v")
    expected = {"when": "2020-01-02T03:00:00", "day": "2020-05-01", "p": None, "parts": [None, 1.0]}
    assert table.metadata[0] == expected
    assert table.metadata[1]["when"] is None
    json.dumps(table.metadata, allow_nan=False)
    np.savez(tmp_path / "t.npz", X=X, when=np.array(["2020-01-02", "NaT", "2020-01-03", "2020-01-04"], "M8[ns]"))
    assert [entry["when"] for entry in read_table(tmp_path / "t.npz").metadata][:2] == [
        "2020-01-02T00:00:00.000000000",
        None,
    ]


def test_metadata_that_json_cannot_hold_is_refused_by_name(tmp_path):
    path = written(tmp_path / "t.parquet", v=lists(), raw=[b"x"] * 4)
    with pytest.raises(ValueError, match="holds b'x' in column 'raw'"):
        read_table(path)
    assert read_table(path, drop=["raw"]).metadata == [{}] * 4
    endless = written(tmp_path / "u.parquet", v=lists(), p=[float("inf")] * 4)
    with pytest.raises(ValueError, match="holds inf in column 'p'"):
        read_table(endless)
    with pytest.raises(ValueError, match="has no column 'q'"):
        read_table(endless, drop=["q"])


def test_labels_with_gaps_are_unlabeled_rows(tmp_path):
    path = written(tmp_path / "t.parquet", v=lists(), k=[1, None, 0, -1], t=[1.0, float("nan"), 0.0, 1.0])
    table = read_table(path, labels="t")
    assert read_table(path, labels="k").y.tolist() == [1, -1, 0, -1]
    np.testing.assert_equal(table.y, [1.0, np.nan, 0.0, 1.0])
    assert table.metadata[1] == {"k": None}


def test_labels_are_metadata_only_where_they_are_not_used(tmp_path):
    path = written(tmp_path / "t.parquet", v=lists(), k=[1, 2, 0, 1])
    assert read_table(path, labels="k").metadata == [{}] * 4
    assert read_table(path, labels="k", ignore_labels=True).metadata[1] == {"k": 2}


def test_a_column_of_labels_is_no_part_of_the_vectors(tmp_path):
    path = written(tmp_path / "t.parquet", a=X[:, 0], b=X[:, 1], score=X[:, 2])
    assert read_table(path, labels="score").feature_names == ("a", "b")
    with pytest.raises(ValueError, match="column 'a' as a feature"):
        read_table(path, labels="a", features=["a", "b"])


def test_references_and_ids_are_columns_of_their_own(tmp_path):
    path = written(tmp_path / "t.parquet", v=lists(), file=["a.png", None, "c.png", "d.png"], key=[4, 3, 2, 1])
    table = read_table(path, ids="key", references="file")
    assert (table.references, table.ids.tolist(), table.metadata[0]) == (
        ["a.png", None, "c.png", "d.png"],
        [4, 3, 2, 1],
        {},
    )
    with pytest.raises(ValueError, match="references holds 4"):
        read_table(path, references="key")
    with pytest.raises(ValueError, match=r"ids holds 'a\.png'"):
        read_table(path, ids="file")


def test_missing_numbers_are_refused_with_their_column(tmp_path):
    path = written(tmp_path / "t.parquet", a=[1.0, None, 2.0], b=[1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="column 'a', first in row"):
        read_table(path)
    empty = written(tmp_path / "u.parquet", v=[[1.0], None])
    with pytest.raises(ValueError, match="in 1 rows of column"):
        read_table(empty)


def test_an_array_of_another_length_is_named(tmp_path):
    np.savez(tmp_path / "t.npz", X=X, y=np.arange(3))
    with pytest.raises(ValueError, match=r"\(3,\) in 'y'"):
        read_table(tmp_path / "t.npz", labels="y")
    with pytest.warns(UserWarning, match="array is left out"):
        assert read_table(tmp_path / "t.npz").metadata == [{}] * 4


def test_columns_become_vectors_ids_and_metadata(tmp_path):
    columns = {"key": [4, 3, 2, 1], "text": list("abcd")}
    wide = {f"x{j}": X[:, j] for j in range(3)}
    paths = [
        written(tmp_path / "lists.parquet", v=lists(), **columns),
        written(tmp_path / "wide.parquet", **columns, **wide),
    ]
    for path in paths:
        table = read_table(path, ids="key")
        assert np.array_equal(table.X, X)
        assert table.ids.tolist() == [4, 3, 2, 1]
        assert table.metadata[2] == {"text": "c"}
    with pytest.raises(ValueError, match=r"lengths \[1, 3\]"):
        read_table(written(tmp_path / "ragged.parquet", v=[[1.0], [1.0, 2.0, 3.0]]))


def test_a_damaged_archive_is_refused_with_a_sentence(tmp_path):
    np.savez_compressed(tmp_path / "rows.npz", X=np.random.default_rng(0).random((50, 4)), key=np.arange(50))
    content = bytearray((tmp_path / "rows.npz").read_bytes())
    (tmp_path / "cut.npz").write_bytes(content[:-40])
    content[300] ^= 1
    (tmp_path / "flipped.npz").write_bytes(content)
    for name in ("cut.npz", "flipped.npz"):
        with pytest.raises(ValueError, match="not a readable array file"):
            read_table(tmp_path / name, ids="key")
