"""Exported files hold what the collection holds, in columns that other programs can compare."""

import json

import numpy as np
import pytest

from starshl import Collection

parquet = pytest.importorskip("pyarrow.parquet")


@pytest.mark.parametrize(
    ("labels", "kind"), [(["a", None, "b"], "string"), ([3, -1, 1], "int64"), ([True, None, False], "bool")]
)
def test_labels_and_declared_fields_are_plain_columns_of_their_types(tmp_path, hasher, rows, labels, kind):
    fields = {"year": int, "price": float, "shop": str, "new": bool}
    metadata = [
        {"year": 1999, "price": 2, "shop": "x", "new": True, "note": {"deep": [1]}},
        {"year": None, "price": 2.5},
        {},
    ]
    with Collection.create(tmp_path / "made", hasher, fields=fields) as made:
        made.add(rows[:3], labels=labels, metadata=metadata, references=["a.png", None, None])
        codes = made.codes([0, 1, 2])
        assert made.export(tmp_path / "items.parquet") == 3
    table = parquet.read_table(tmp_path / "items.parquet")
    types = {name: str(table.schema.field(name).type) for name in ("label", *fields, "reference", "metadata")}
    assert types == {
        "label": kind,
        "year": "int64",
        "price": "double",
        "shop": "string",
        "new": "bool",
        "reference": "string",
        "metadata": "string",
    }
    found = table.to_pydict()
    assert found["label"] == [None if label == -1 else label for label in labels]
    assert (found["year"], found["price"]) == ([1999, None, None], [2.0, 2.5, None])
    assert (found["shop"], found["new"]) == (["x", None, None], [True, None, None])
    assert [json.loads(text) for text in found["metadata"]] == [{"note": {"deep": [1]}}, {}, {}]
    assert found["id"] == [0, 1, 2]
    assert np.array_equal(np.array([list(code) for code in found["code"]], np.uint8), codes.packed)


def test_columns_without_any_value_have_their_types_too(tmp_path, hasher, rows):
    with Collection.create(tmp_path / "made", hasher, fields={"year": int}) as made:
        made.export(tmp_path / "empty.parquet")
        made.add(rows[:2])
        made.export(tmp_path / "bare.parquet")
    for name in ("empty", "bare"):
        schema = parquet.read_schema(tmp_path / f"{name}.parquet")
        assert [str(schema.field(column).type) for column in ("label", "year", "reference")] == [
            "string",
            "int64",
            "string",
        ]


def test_a_field_with_the_name_of_a_column_is_told_apart(tmp_path, hasher, rows):
    with Collection.create(tmp_path / "made", hasher, fields={"label": int, "id": str}) as made:
        made.add(rows[:1], labels=["cat"], metadata=[{"label": 3, "id": "x7"}])
        made.export(tmp_path / "items.parquet")
    (row,) = parquet.read_table(tmp_path / "items.parquet").to_pylist()
    assert (row["id"], row["label"], row["metadata.label"], row["metadata.id"]) == (0, "cat", 3, "x7")
