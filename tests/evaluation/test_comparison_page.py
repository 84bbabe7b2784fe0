"""The HTML page: real queries, what each method finds, and nothing from elsewhere."""

import json
import re
from importlib.util import find_spec

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.neighbors import NearestNeighbors
from typer.testing import CliRunner

from starshl.cli.main import app
from starshl.evaluation import compare, write_page
from starshl.evaluation.benchmark import hold_out
from starshl.evaluation.comparison import example_queries
from starshl.evaluation.comparison_page import comparison_page, find_titles, guess_picture_shape
from starshl.evaluation.reports.document import Pictures
from starshl.hashers.baselines import LSHash


@pytest.fixture(scope="module")
def compared():
    """Digits without every third label."""
    X, y = load_digits(return_X_y=True)
    X, some = X[:400], np.where(np.arange(400) % 3 == 0, -1, y[:400])
    return X, some, compare(X, some, hasher=LSHash(16), n_bits=[8, 16], rivals=["ITQ"], n_queries=60, random_state=1)


def test_questions_are_held_out_rows_with_what_float_search_finds(compared):
    X, some, result = compared
    order = np.random.RandomState(1).permutation(400)
    query, base = order[:60], order[60:]
    search = NearestNeighbors(n_neighbors=10).fit(X[base])
    assert len({question.label for question in result.questions}) == len(result.questions) == 8
    for question in result.questions:
        assert question.row in query
        assert question.label == some[question.row]
        answer = question.answers[0]
        assert answer.method == "float search"
        expected = base[search.kneighbors(X[[question.row]], return_distance=False)[0]]
        assert answer.rows == expected.tolist()
        right = [None if some[row] < 0 else bool(some[row] == question.label) for row in expected]
        assert answer.right == right
        assert [one.method for one in question.answers] == ["float search", "LSHash", "ITQ"]


def test_questions_without_labels_come_in_the_order_in_which_they_were_drawn():
    split = hold_out(np.arange(40.0).reshape(20, 2), None, 9, 0)
    questions = example_queries(split, {"first": np.zeros((9, 1), int)})
    assert [question.row for question in questions] == split.query[:8].tolist()
    assert questions[0].answers[0].rows == [split.base[0]]
    assert (questions[0].label, questions[0].answers[0].right) == (None, [None])


def test_rows_of_pixels_are_shown_as_pictures(compared):
    X, _, result = compared
    blocks = comparison_page(result, X).sections[1].blocks
    pictures = [block for block in blocks if isinstance(block, Pictures)]
    first = result.questions[0]
    assert len(pictures) == 8
    assert pictures[0].caption == f"Row {first.row}, class {first.label}"
    # Gray levels of digits go from 0 to 16.
    assert np.array_equal(pictures[0].query, np.round(255 * X[first.row].reshape(8, 8) / 16))
    name, images, right = pictures[0].rows[0]
    assert (name, list(right)) == ("float search", first.answers[0].right)
    assert np.array_equal(images[3], np.round(255 * X[first.answers[0].rows[3]].reshape(8, 8) / 16))


def test_titles_are_shown_with_marks_for_right_and_wrong(compared, tmp_path):
    X, _, result = compared
    write_page(tmp_path / "page.html", result, X, titles=[f"<row {row}>" for row in range(400)])
    page = (tmp_path / "page.html").read_text()
    question = result.questions[0]
    assert f"<h3>&lt;row {question.row}&gt;</h3>" in page
    for answer in question.answers:
        for row, right in zip(answer.rows[:5], answer.right, strict=False):
            kind = {True: "right", False: "wrong", None: "unknown"}[right]
            assert re.search(rf'<li class="{kind}" title="[^"]*">&lt;row {row}&gt;</li>', page)


def test_the_page_needs_nothing_from_elsewhere(compared, tmp_path):
    X, _, result = compared
    write_page(tmp_path / "page.html", result, X)
    page = (tmp_path / "page.html").read_text()
    assert not re.findall(r'(?:src|href)="(?!data:|#)[^"]*"|url\(|@import|https?://(?!www\.w3\.org)', page)
    assert 'content="light dark"' in page
    for sentence in result.sentences():
        assert sentence in page.replace("&#x27;", "'").replace("&amp;", "&")


def test_several_lengths_have_a_table_each_and_curves(compared):
    X, _, result = compared
    section = comparison_page(result, X).sections[2]
    tables = [block for block in section.blocks if hasattr(block, "columns")]
    assert [table.rows[1] for table in tables] == [length.methods[0].cells() for length in result.lengths]
    charts = [block for block in section.blocks if hasattr(block, "series")]
    assert [series.name for series in charts[0].series] == ["LSHash", "ITQ"]
    assert charts[0].series[0].y == tuple(length.methods[0].precision_at_10 for length in result.lengths)


def test_titles_come_from_the_likeliest_field():
    metadata = [{"author": "a", "Title": "x  y"}, {"author": "b", "Title": None}]
    assert find_titles(metadata) == ["x y", "row 1"]
    assert find_titles(metadata, field="author") == ["a", "b"]
    assert find_titles([{"year": 3}], ["file.png"]) == ["file.png"]
    assert find_titles([{"year": 3}]) is None
    with pytest.raises(ValueError, match=r"'Titel'.*'author', 'Title'"):
        find_titles(metadata, field="Titel")
    assert len(find_titles([{"text": "word " * 100}])[0]) == 160


def test_bad_titles_and_shapes_are_refused(compared):
    X, _, result = compared
    with pytest.raises(ValueError, match="3 titles and 400 rows"):
        comparison_page(result, X, titles=["a", "b", "c"])
    with pytest.raises(ValueError, match=r"63 pixels.*64 features"):
        comparison_page(result, X, picture_shape=(7, 9))


@pytest.mark.parametrize("X", [np.full((3, 64), 0.5), np.full((3, 60), 3.0), np.full((3, 16), 3.0), -np.ones((3, 64))])
def test_rows_that_are_no_pictures_are_not_taken_for_some(X):
    assert guess_picture_shape(X) is None


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "rows.npz", X=rng.standard_normal((60, 20)), headline=[f"news {row}" for row in range(60)])
    return tmp_path


def run(*words):
    return CliRunner().invoke(app, ["index", "binarize", *map(str, words)])


def test_the_command_writes_the_page_and_says_everything_in_json(table):
    words = (table / "rows.npz", "--bits", "4,8", "--report", table / "page.html", "--json")
    result = run(table / "items", *words)
    assert result.exit_code == 0, result.output
    answer = json.loads(result.stdout)
    assert (answer["method"], answer["report"]) == ("ITQ", str(table / "page.html"))
    assert [length["n_bits"] for length in answer["lengths"]] == [4, 8]
    assert (answer["n_bits"], answer["bytes_before"], answer["bytes_after"]) == (8, 160, 1)
    assert {"choice", "length_choice", "verdict", "precision_ceiling", "n_labeled_queries"} <= set(answer)
    reason = "There are 54 rows" if find_spec("faiss") else "This needs the library 'faiss'"
    assert answer["lengths"][0]["left_out"]["PQ"].startswith(reason)
    page = (table / "page.html").read_text()
    assert f"<h3>news {answer['questions'][0]['row']}</h3>" in page
    assert page == (table / "items" / "comparison.html").read_text()


@pytest.mark.parametrize(("dtype", "n_bytes"), [("float16", 2), ("float32", 4), ("float64", 8), ("uint8", 1)])
def test_the_command_counts_vectors_in_the_type_of_their_file(tmp_path, dtype, n_bytes):
    X = (50 * np.random.default_rng(0).random((60, 20))).astype(dtype)
    np.save(tmp_path / "rows.npy", X)
    np.savez(tmp_path / "rows.npz", X=X)
    for number, name in enumerate(("rows.npy", "rows.npz")):
        result = run(tmp_path / str(number), tmp_path / name, "--bits", "4", "--json")
        answer = json.loads(result.stdout)
        assert (answer["bytes_before"], answer["exact"]["total_bytes"]) == (20 * n_bytes, 54 * 20 * n_bytes)


def test_the_command_shows_rows_as_asked(table):
    assert run(table / "a", table / "rows.npz", "--pictures", "4x5").exit_code == 0
    assert 'alt="query"' in (table / "a" / "comparison.html").read_text()
    assert run(table / "b", table / "rows.npz", "--title", "headline").exit_code == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--title", "name"], "titles is 'name'"),
        (["--pictures", "4x4"], "16 pixels; rows have"),
        (["--pictures", "big"], "--pictures got 'big'"),
        (["--pictures", "4x5", "--title", "headline"], "contradict each other"),
        (["--report", "page.pdf"], "it may be .html, .htm"),
        (["--bits", "8,x"], "--bits got '8,x'"),
        (
            ["--bits", "8,64"],
            "--bits is 64",
        ),
    ],
)
def test_options_that_make_no_sense_are_refused_before_anything_is_written(table, words, message):
    result = run(table / "new", table / "rows.npz", *words)
    assert (result.exit_code, message in " ".join(result.stderr.split())) == (2, True), result.stderr
    assert not (table / "new").exists()
