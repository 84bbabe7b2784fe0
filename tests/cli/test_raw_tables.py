"""Tables as people have them: gaps, marks of missing values, decimal commas, and words where numbers were."""

import pytest

CELLS = [[f"{4 * (i % 2) + (i * 7 % 10) / 10:.2f}", f"{(i * 3 % 11) / 10:.2f}"] for i in range(40)]


def write(path, rows, separator=","):
    lines = [separator.join([*cells, "uv"[i % 2]]) for i, cells in enumerate(rows)]
    path.write_text("\n".join([separator.join(["age", "income", "kind"]), *lines]) + "\n")
    return path


@pytest.fixture
def with_mark(tmp_path):
    """A function that writes the table with one cell replaced, in line 8."""

    def make(mark):
        rows = [list(cells) for cells in CELLS]
        rows[6][0] = mark
        return write(tmp_path / "marked.csv", rows)

    return make


@pytest.mark.parametrize("mark", ["NA", "", "nan", "?"])
def test_a_missing_mark_leaves_a_column_one_of_numbers(mark, with_mark, tmp_path, answer):
    words = ("--labels", "kind", "--categories", "--scale", "--impute", "-b", 8, "-o", tmp_path / "m")
    answer("fit", with_mark(mark), *words)
    arrays = {array["name"]: array["shape"] for array in answer("info", tmp_path / "m")["arrays"]}
    assert [shape for name, shape in arrays.items() if name.endswith("number_columns_")] == [[2]]
    assert answer("predict", tmp_path / "m", with_mark(mark), "--labels", "kind")["accuracy"] >= 0.975


@pytest.mark.parametrize("words", [(), ("--categories",), ("--categories", "--scale")])
def test_a_gap_without_impute_is_refused_with_file_column_line_and_option(words, with_mark, tmp_path, starshl):
    for mark, what in {"": "an empty cell", "NA": r"a missing value ('NA')"}.items():
        result = starshl("fit", with_mark(mark), "--labels", "kind", *words, "-o", tmp_path / "m")
        assert result.exit_code == 2
        assert f"marked.csv' has {what} in column 'age', line 8." in result.stderr
        assert "--impute" in result.stderr


def test_decimal_commas_are_refused_with_what_to_do(tmp_path, starshl):
    path = write(tmp_path / "de.csv", [[cell.replace(".", ",") for cell in cells] for cells in CELLS], ";")
    for words in ((), ("--categories", "--scale", "--impute")):
        result = starshl("fit", path, "--labels", "kind", *words, "-o", tmp_path / "m")
        assert result.exit_code == 2
        assert "de.csv' has '0,00' in column 'age', line 2; it has '0,00' in column 'income'" in result.stderr
        assert "Write these numbers with a decimal point" in result.stderr
        assert "--categories" not in result.stderr


@pytest.mark.parametrize("words", [("--impute",), ("--impute", "--categories")])
def test_text_in_a_column_of_numbers_is_refused_with_its_place(words, with_mark, tmp_path, starshl, answer):
    answer("fit", write(tmp_path / "t.csv", CELLS), "--labels", "kind", *words, "-b", 8, "-o", tmp_path / "m")
    result = starshl("predict", tmp_path / "m", with_mark("old"))
    assert result.exit_code == 2
    assert "marked.csv' has 'old' in column 'age', line 8. The model was fitted on numbers there." in result.stderr
    assert "--drop" not in result.stderr


def test_a_gap_is_refused_by_a_model_that_was_fitted_without_impute(with_mark, tmp_path, starshl, answer):
    for words in ((), ("--categories",)):
        answer("fit", write(tmp_path / "t.csv", CELLS), "--labels", "kind", *words, "-b", 8, "-o", tmp_path / "m")
        result = starshl("predict", tmp_path / "m", with_mark("NA"))
        assert result.exit_code == 2
        assert "a missing value ('NA') in column 'age', line 8." in result.stderr
        assert "`starshl fit --impute`" in result.stderr
