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
        assert "'0,00' in column 'income'" in result.stderr
        assert "with a decimal point" in result.stderr
        assert "--drop age,income" in (" ".join(result.stderr.split()))
        assert "--categories" not in result.stderr


def test_decimal_commas_are_read_where_that_is_asked_for_and_the_model_remembers_it(tmp_path, answer, starshl):
    rows = [["1.204,5" if i == 5 else cells[0].replace(".", ","), cells[1]] for i, cells in enumerate(CELLS)]
    german = write(tmp_path / "de.csv", [[first, second.replace(".", ",")] for first, second in rows], ";")
    english = write(
        tmp_path / "en.csv", [["1204.5" if i == 5 else cells[0], cells[1]] for i, cells in enumerate(CELLS)]
    )
    for words in ((), ("--categories", "--scale", "--impute")):
        paths = [tmp_path / f"{name}{len(words)}" for name in ("de", "en")]
        for path, table, more in zip(paths, (german, english), (("--decimal", ","), ()), strict=True):
            answer("fit", table, "--labels", "kind", *words, *more, "-b", 4, "-o", path)
        card = answer("card", paths[0])
        assert (card["data"]["decimal"], "decimal" in answer("card", paths[1])["data"]) == (",", False)
        assert card["data"]["rows_sha256"] == answer("card", paths[1])["data"]["rows_sha256"]
        for command in (("predict",), ("predict", "--decimal", ",")):
            result = answer(command[0], paths[0], german, *command[1:], "--labels", "kind")
            expected = answer("predict", paths[1], english, "--labels", "kind")
            assert result["predictions"] == expected["predictions"]
        assert answer("predict", paths[0], english, "--decimal", ".")["n_rows"] == 40
        refused = starshl("predict", paths[0], english)
        assert refused.exit_code == 2
        assert "'0.00' in column 'income'" in refused.stderr
        assert "between thousands, as in 1.204,5" in refused.stderr


def test_items_and_queries_with_decimal_commas_are_read(tmp_path, answer, starshl):
    lines = [f"{i},5;{i % 4},25;{i},75;n{i}" for i in range(30)]
    table = tmp_path / "t.csv"
    table.write_text("a;b;price;name\n" + "\n".join(lines) + "\n")
    answer("fit", table, "--drop", "price,name", "--method", "LSHash", "-b", 8, "-o", tmp_path / "m", "--decimal", ",")
    answer("index", "build", tmp_path / "made", tmp_path / "m", table, "--keep", "float16", "--metadata", "a")
    found = answer("index", "search", tmp_path / "made", table, "-k", 1)
    assert found[3][0]["metadata"] == {"a": 3.5, "price": 3.75, "name": "n3"}
    wrong = starshl("index", "search", tmp_path / "made", table, "--decimal", ";")
    assert (wrong.exit_code, "--decimal is ';'" in wrong.stderr) == (2, True)


@pytest.mark.parametrize("words", [("--impute",), ("--impute", "--categories")])
def test_text_in_a_column_of_numbers_is_refused_with_its_place(words, with_mark, tmp_path, starshl, answer):
    answer("fit", write(tmp_path / "t.csv", CELLS), "--labels", "kind", *words, "-b", 8, "-o", tmp_path / "m")
    result = starshl("predict", tmp_path / "m", with_mark("old"))
    assert result.exit_code == 2
    assert "'old' in column 'age', line" in result.stderr
    assert "--drop" not in result.stderr


def test_a_gap_is_refused_by_a_model_that_was_fitted_without_impute(with_mark, tmp_path, starshl, answer):
    for words in ((), ("--categories",)):
        answer("fit", write(tmp_path / "t.csv", CELLS), "--labels", "kind", *words, "-b", 8, "-o", tmp_path / "m")
        result = starshl("predict", tmp_path / "m", with_mark("NA"))
        assert result.exit_code == 2
        assert "('NA') in column 'age', line" in result.stderr
        assert "`starshl fit --impute`" in result.stderr


def test_fit_and_card_say_what_each_column_became(tmp_path, starshl, answer):
    rows = [[f"{i % 7}" if i else "NA", "red" if i % 3 else "blue", "a fine day", "uv"[i % 2]] for i in range(40)]
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["age,color,note,kind", *map(",".join, rows)]) + "\n")
    words = ("--labels", "kind", "--text", "note", "--impute", "-b", 8, "-o", tmp_path / "m")
    printed = starshl("fit", path, *words).stdout.splitlines()
    assert printed[1] == "columns: 1 number (age: 1 missing), 1 category (color: 2 values), 1 text (note)"
    roles = [
        {"column": "age", "role": "number", "missing": 1},
        {"column": "color", "role": "category", "categories": 2},
        {"column": "note", "role": "text"},
    ]
    assert answer("fit", path, *words)["columns"] == roles
    assert answer("card", tmp_path / "m")["columns"] == roles
    assert "| color | category | 2 |  |" in starshl("card", tmp_path / "m").stdout


def test_the_card_says_the_same_as_the_fit_about_rows_without_a_label(tmp_path, starshl):
    lines = [f"{4 * (i % 2) + i / 40},{i % 3},{'uv'[i % 2] if i < 30 else ''}" for i in range(40)]
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["a,b,kind", *lines]) + "\n")
    words = ("--labels", "kind", "--unlabeled", "ignore", "-b", 8, "-o", tmp_path / "m")
    assert "10 unlabeled rows were left out" in starshl("fit", path, *words).stdout
    card = starshl("card", tmp_path / "m").stdout
    assert "30 of 40 rows had a label, and the others were left out of the fit." in card
    assert "helped" not in card


def test_columns_of_the_model_become_metadata_if_they_are_named_and_stay_so(tmp_path, answer, starshl):
    table = write(tmp_path / "t.csv", [[f"{20 + i}", cells[1]] for i, cells in enumerate(CELLS)])
    more = write(tmp_path / "more.csv", [["91", "0.25"], ["17", "0.5"]])
    model, made = tmp_path / "m", tmp_path / "made"
    answer("fit", table, "--labels", "kind", "--categories", "--scale", "-b", 4, "-o", model)
    plain = starshl("index", "build", tmp_path / "plain", model, table, "--no-labels", "--drop", "kind")
    assert "Hits will show ids and labels alone. To see columns, too, name them with --metadata." in plain.stdout
    answer("index", "build", made, model, table, "--labels", "kind", "--metadata", "age", "--field", "age=int")
    answer("index", "add", made, more, "--labels", "kind")
    ((hit, *_),) = answer("index", "search", made, "--item", 3, "-k", 1, "--where", "age=91")
    assert (hit["id"], hit["label"], hit["metadata"]) == (40, "u", {"age": 91})
    both = starshl("index", "build", tmp_path / "both", model, table, "--labels", "kind", "--metadata", "all")
    assert "Hits will show" not in both.stdout
    ((hit,),) = answer("index", "search", tmp_path / "both", "--item", 0, "-k", 1)
    assert (hit["label"], hit["metadata"]) == ("u", {"age": 20, "income": 0.0})
    refused = starshl("index", "build", tmp_path / "none", model, table, "--metadata", "name")
    assert (refused.exit_code, "'name' is no column" in refused.stderr) == (2, True)
    assert "come from age, income" in refused.stderr


def test_a_collection_of_vectors_keeps_columns_too(tmp_path, answer):
    table = write(tmp_path / "t.csv", CELLS)
    answer("vectors", table, "--labels", "kind", "-b", 2, "-o", tmp_path / "made", "--metadata", "income")
    ((hit,),) = answer("index", "search", tmp_path / "made", "--item", 1, "-k", 1)
    assert (hit["label"], hit["metadata"]) == ("v", {"income": 0.3})
