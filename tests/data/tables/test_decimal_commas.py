"""Numbers with a decimal comma in text tables."""

import numpy as np
import pytest

from starshl.data.tables import Columns, TableError, read_table

COMMA = Columns(decimal=",")


@pytest.fixture
def table(tmp_path):
    """A function that writes a table and returns its path."""

    def write(text, name="t.csv"):
        (tmp_path / name).write_text(text)
        return tmp_path / name

    return write


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("a;b\n4,5;-1.204,25\n7;,5\n", "t.csv"),
        ("a\tb\n4,5\t-1.204,25\n7\t0,5\n", "t.tsv"),
        ("a\tb\n4,5\t-1.204,25\n7\t0,5\n", "t.csv"),
        ('a,b\n"4,5","-1.204,25"\n7,"5,0e-1"\n', "t.csv"),
    ],
    ids=["semicolons", "tabs", "tabs in a .csv", "quotes"],
)
def test_commas_come_before_decimals_and_points_between_thousands(table, text, name):
    read = read_table(table(text, name), COMMA)
    assert read.feature_names == ("a", "b")
    assert read.X.tolist() == [[4.5, -1204.25], [7.0, 0.5]]
    assert read.decimal == ","


def test_a_table_without_a_header_is_recognized(table):
    assert read_table(table("4,5;1,5\n2;3,25\n"), COMMA).X.tolist() == [[4.5, 1.5], [2.0, 3.25]]
    assert read_table(table("4,5\n2,25\n"), COMMA).X.tolist() == [[4.5], [2.25]]


def test_only_columns_of_numbers_change_among_metadata_and_labels_never_do(table):
    path = table("a;price;size;label\n4,5;1,25;1,5;1,5\n3,5;2;XL;2,5\n")
    read = read_table(path, Columns(decimal=",", features=("a",), others="metadata", labels="label"))
    assert [(row["price"], row["size"]) for row in read.metadata] == [(1.25, "1,5"), (2.0, "XL")]
    assert read.y.tolist() == ["1,5", "2,5"]


def test_gaps_and_categories_are_read_as_with_points(table):
    text = "a;b;c\n4,5;NA;x\n;2,5;1,5\n"
    raw = read_table(table(text), Columns(decimal=",", raw=True, allow_missing=True)).X.tolist()
    assert raw == [[4.5, None, "x"], [None, 2.5, "1,5"]]
    gaps = read_table(table("a;b\n4,5;NA\n;2,5\n"), Columns(decimal=",", allow_missing=True)).X
    assert np.array_equal(gaps, [[4.5, np.nan], [np.nan, 2.5]], equal_nan=True)
    with pytest.raises(TableError, match="column 'a', line 3"):
        read_table(table("a;b\n4,5;1\n;2,5\n"), COMMA)


@pytest.mark.parametrize("columns", [COMMA, Columns(decimal=",", raw=True)])
@pytest.mark.parametrize("cells", ["1.204;2,5", "1.5;2,5"])
def test_a_point_that_could_mean_anything_is_refused(table, columns, cells):
    path = table(f"a;b\n1,5;2,5\n{cells}\n")
    with pytest.raises(TableError, match=r"line 3.*Decimals follow a comma") as refused:
        read_table(path, columns)
    assert refused.value.causes == ("point",)


def test_other_marks_are_refused(table):
    with pytest.raises(ValueError, match=r"decimal is ';'; choose one of '\.', ','"):
        read_table(table("a;b\n1;2\n"), Columns(decimal=";"))
