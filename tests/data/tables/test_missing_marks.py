"""Cells that stand for a missing number, and numbers that other programs write with commas."""

import pytest

from starshl.data.tables import Columns, ColumnWarning, TableError, read_table

MARKS = ["NA", "N/A", "NaN", "null", "None", "-", "?", ""]


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("mark", MARKS)
@pytest.mark.parametrize("raw", [False, True])
def test_a_mark_among_numbers_is_a_missing_number(mark, raw, tmp_path):
    path = write(tmp_path / "t.csv", f"a,b\n1.5,2\n{mark},3\n")
    column = read_table(path, Columns(raw=raw, allow_missing=True)).X[:, 0].tolist()
    assert column[0] == 1.5
    assert column[1] is None or column[1] != column[1]
    with pytest.raises(TableError, match=r"line 3.*A number is missing") as caught:
        read_table(path, Columns(raw=raw))
    assert (caught.value.causes, caught.value.droppable) == (("missing",), ("a",))


def test_a_mark_among_words_stays_a_word(tmp_path):
    path = write(tmp_path / "t.csv", "region,b\nEU,2\nNA,3\n")
    assert read_table(path, Columns(raw=True)).X[:, 0].tolist() == ["EU", "NA"]


def test_a_mark_in_lines_of_json_is_a_missing_number(tmp_path):
    path = write(tmp_path / "t.jsonl", '{"a": 1.5}\n{"a": "NA"}\n')
    assert read_table(path, Columns(raw=True, allow_missing=True)).X[:, 0].tolist() == [1.5, None]
    assert read_table(path, Columns(allow_missing=True)).X[0, 0] == 1.5
    with pytest.raises(TableError, match="column 'a', row 1"):
        read_table(path, Columns(raw=True))


def test_a_first_line_that_lacks_a_number_is_no_header(tmp_path):
    path = write(tmp_path / "t.csv", "NA,1.5,x\n2,2.5,y\n")
    table = read_table(path, Columns(labels="2", allow_missing=True))
    assert table.X.shape == (2, 2)
    sodium = write(tmp_path / "u.csv", "Na,kind\n1.5,x\n2.5,y\n")
    assert read_table(sodium, Columns(labels="kind")).feature_names == ("Na",)


@pytest.mark.parametrize("number", ["4,126", "-0,5", "1.204,5", "1,204,000", "1,204.5"])
def test_numbers_with_commas_are_refused_and_not_read_as_categories(number, tmp_path):
    path = write(tmp_path / "t.csv", f"a;b\n{number};2\n3;NA\n")
    for raw in (False, True):
        columns = Columns(raw=raw, allow_missing=True)
        with pytest.raises(TableError, match=rf"'{number}' in column 'a'.*line 2.*decimal point") as caught:
            read_table(path, columns)
        assert caught.value.causes == ("comma",)


def test_semicolons_between_decimal_commas_separate_even_without_a_header(tmp_path):
    path = write(tmp_path / "t.csv", "1,5;2,5\n3,5;4,5\n")
    with pytest.raises(TableError, match=r"'1,5' in column 0.*'2,5' in column 1"):
        read_table(path)


def test_numbers_without_a_digit_before_the_point_are_numbers(tmp_path):
    path = write(tmp_path / "t.csv", "a,b\n.5,x\n-.25,y\n3.,x\n")
    assert read_table(path, Columns(raw=True)).X[:, 0].tolist() == [0.5, -0.25, 3.0]


def test_words_among_numbers_and_names_of_rows_bring_a_warning(tmp_path):
    path = write(tmp_path / "t.csv", "a,b\n1.5,x\n2.5,y\nmany,x\n")
    with pytest.warns(ColumnWarning, match=r"2 rows of 'a'.*'many'"):
        read_table(path, Columns(raw=True))
    rows = "".join(f"person {i},{i % 7}\n" for i in range(30))
    with pytest.warns(ColumnWarning, match="30 rows of 'name'"):
        read_table(write(tmp_path / "u.csv", f"name,b\n{rows}"), Columns(raw=True))


def test_columns_that_a_model_knows_as_numbers_hold_nothing_else(tmp_path):
    path = write(tmp_path / "t.csv", "a,b\n1,3\nold,NA\n")
    fitted = Columns(raw=True, features=("a", "b"), numbers=("a",))
    with pytest.raises(TableError, match=r"'old'.*line 3.*fitted on numbers") as caught:
        read_table(path, fitted)
    assert caught.value.droppable == ()
    fitted = Columns(raw=True, features=("a", "b"), numbers=(), allow_missing=True)
    assert read_table(path, fitted).X.tolist() == [["1", "3"], ["old", "NA"]]
