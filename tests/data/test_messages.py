"""What is said of files that cannot be rows: which file, which column, which row."""

import numpy as np
import pytest
from PIL import Image

from starshl.data.features import open_picture
from starshl.data.tables import Columns, Table, TableError, open_partitions, read_table, with_kept_features
from starshl.exceptions import PictureError


def test_entries_that_are_not_numbers_are_named_by_file_column_and_row(tmp_path):
    X = np.zeros((4, 3))
    np.save(tmp_path / "part-0.npy", X)
    X[2, 1] = np.nan
    np.save(tmp_path / "part-1.npy", X)
    rows = open_partitions(f"{tmp_path}/part-*.npy").X
    with pytest.raises(TableError, match=r"part-1\.npy' holds NaN in column .+, first in row 2\."):
        list(rows.blocks(np.arange(8), 8))
    (tmp_path / "t.csv").write_text("a,b,c\n1,nan,2\n3,4,inf\n")
    with pytest.raises(TableError, match=r"\('nan'\) in column 'b'.*\('inf'\) in column 'c'"):
        read_table(tmp_path / "t.csv")


def test_files_of_different_widths_are_named_both(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros((2, 3)))
    np.save(tmp_path / "b.npy", np.zeros((2, 2)))
    with pytest.raises(TableError, match=r"b\.npy' has 2 features, and '.*a\.npy' has 3"):
        open_partitions(f"{tmp_path}/*.npy")


def test_what_cannot_be_read_says_why(tmp_path):
    with pytest.raises(TableError, match=r"'nowhere://rows\.npy' cannot be read"):
        open_partitions("nowhere://rows.npy")
    np.savez(tmp_path / "t.npz", X=np.ones((1, 2)), y=np.array([object], dtype=object))
    with pytest.raises(TableError, match=r"not a readable array file.*Python objects"):
        read_table(tmp_path / "t.npz", Columns(labels="y"))
    Image.new("F", (8, 8), 0.5).save(tmp_path / "depth.tif")
    with pytest.raises(PictureError, match=r"depth\.tif' holds floating-point numbers"):
        open_picture(tmp_path / "depth.tif")


def test_columns_that_can_be_kept_are_named():
    table = Table(np.zeros((2, 3)), feature_names=("age", "size", "city"))
    with pytest.raises(ValueError, match=r"'name' is no column.*age, size, city"):
        with_kept_features(table, ["age", "name"])
