"""The commands of `starshl index`, in process."""

import json
import sqlite3
from contextlib import closing
from dataclasses import asdict

import numpy as np
import pytest
from sklearn.datasets import load_iris
from typer.testing import CliRunner

from starshl import Collection, load
from starshl.cli.main import app
from starshl.hashers.baselines import LSHash

runner = CliRunner()


@pytest.fixture
def place(tmp_path):
    """A folder with a model and 50 vectors with labels, ids 100 ... 149."""
    X = np.random.default_rng(0).standard_normal((50, 6)).astype(np.float32)
    LSHash(16, random_state=0).fit(X).save(tmp_path / "model.star")
    np.savez(tmp_path / "items.npz", X=X, label=np.arange(50) % 3, key=np.arange(100, 150))
    np.save(tmp_path / "queries.npy", X[:2])
    return tmp_path


@pytest.fixture
def built(place):
    result = run(place, "build", "items", "model.star", "items.npz", "--ids", "key")
    assert result.exit_code == 0, result.output
    return place


def run(place, *arguments):
    """Run a command; words that name files of the folder become their paths."""
    endings = (".npz", ".npy", ".star", ".csv", ".jsonl", ".parquet", ".txt")
    made = [str(place / word) if word == "items" or word.endswith(endings) else word for word in arguments]
    return runner.invoke(app, ["index", *made])


def test_build_search_and_verify_agree_with_the_library(built):
    result = json.loads(run(built, "search", "items", "queries.npy", "-k", "4", "--json").stdout)
    with Collection(built / "items", read_only=True) as collection:
        expected = collection.search(np.load(built / "queries.npy"), 4)
    assert [[{**hit, "explanation": None, "guess": None} for hit in hits] for hits in result] == [
        [asdict(hit) for hit in hits] for hits in expected
    ]
    assert result[0][0]["id"] == 100
    assert json.loads(run(built, "verify", "items", "--json").stdout)["items"] == 50


def test_search_filters_and_takes_stored_items(built):
    where = '{"label": {"in": [1, 2]}}'
    result = run(built, "search", "items", "--item", "101", "-k", "50", "--where", where, "--json")
    ids = [hit["id"] for hit in json.loads(result.stdout)[0]]
    assert ids[0] == 101
    assert sorted(ids) == [100 + i for i in range(50) if i % 3]
    text = run(built, "search", "items", "--item", "101", "--radius", "0")
    assert text.stdout.splitlines()[1].split()[:3] == ["0", "0", "101"]


def test_add_replace_and_remove_change_the_collection(built):
    again = run(built, "add", "items", "items.npz", "--ids", "key")
    assert (again.exit_code, "already in the collection" in again.stderr) == (2, True)
    assert run(built, "add", "items", "items.npz", "--ids", "key", "--replace").exit_code == 0
    assert json.loads(run(built, "add", "items", "queries.npy", "--json").stdout)["items"] == 52
    assert run(built, "remove", "items", "100", "150", "--compact").stdout == "2 items removed (100, 150), 50 left\n"


def test_removed_ids_are_said(built):
    answer = json.loads(run(built, "remove", "items", "103", "101", "--json").stdout)
    assert answer == {"removed": 2, "ids": [103, 101], "items": 48}


def test_search_names_its_columns_and_filters_by_one_field(built):
    heading, *found = run(built, "search", "items", "queries.npy", "-k", "3", "--where", "label=1").stdout.splitlines()
    assert heading.split() == ["query", "distance", "id"]
    assert len(found) == 6
    assert all('"label": 1' in line for line in found)


def test_export_writes_every_item(built):
    assert run(built, "export", "items", "-o", "out.jsonl").exit_code == 0
    assert len((built / "out.jsonl").read_text().splitlines()) == 50


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("build", "items", "model.star", "items.npz"), 2, "exists already"),
        (("add", "items", "nothing.parquet"), 2, "There is no file"),
        (("add", "items", "notes.txt"), 2, "It takes vectors"),
        (("add", "items", "items.npz", "--ids", "nokey"), 2, "has no column 'nokey'"),
        (("add", "items", "items.npz", "--replace"), 2, "--replace needs --ids"),
        (("remove", "items", "7"), 2, "id 7 is not"),
        (("search", "items", "--item", "101", "--where", '{"lable": 1}'), 2, "Did you mean 'label'?"),
        (("search", "items"), 2, "Give one kind of query"),
        (
            ("search", "items", "queries.npy", "--item", "101"),
            2,
            "Give one kind of query",
        ),
        (("search", "items", "--item", "7"), 2, "7"),
        (("search", "items", "queries.npy", "--radius", "2", "--by-scores"), 2, "Leave one of them out"),
        (("search", "items", "--item", "101", "--by-scores"), 2, "needs a query"),
        (("search", "items", "--item", "101", "--where", "label<=1"), 2, "neither NAME=VALUE nor JSON"),
        (("search", "items", "--item", "101", "--where", '{"label": {"~": 1}}'), 2, "uses '~'"),
        (("verify", "nowhere"), 2, "There is no folder 'nowhere'. To make a collection: `starshl images"),
        (("add", "items", "items.npz", "--ids", "key"), 2, "50 of the ids"),
        (("add", "items", "items.npz", "--vectors", "label"), 2, "vectors are lists of numbers"),
    ],
)
def test_bad_input_gets_one_clear_sentence(built, arguments, code, message):
    result = run(built, *arguments)
    assert result.exit_code == code
    assert message in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    assert result.stdout == ""


def test_a_failed_build_leaves_no_folder(place):
    np.savez(place / "items.npz", X=np.zeros((2, 6)), key=[1, 1])
    result = run(place, "build", "items", "model.star", "items.npz", "--ids", "key")
    assert (result.exit_code, "more than once" in result.stderr) == (2, True)
    assert not (place / "items").exists()


def test_a_damaged_collection_fails_verification(built):
    path = built / "items" / "items.sqlite"
    path.write_bytes(path.read_bytes()[:5000])
    assert run(built, "verify", "items").exit_code == 1


def test_a_collection_with_a_damaged_index_is_rebuilt(built):
    with closing(sqlite3.connect(built / "items" / "items.sqlite")) as database, database:
        database.execute("DELETE FROM changes")
    assert "starshl index rebuild" in run(built, "verify", "items").stderr
    assert json.loads(run(built, "rebuild", "items", "--json").stdout)["items"] == 50
    assert run(built, "verify", "items").exit_code == 0


def test_a_second_writer_is_refused_with_the_code_of_every_expected_error(built):
    with Collection(built / "items"):
        result = run(built, "remove", "items", "100")
        assert (result.exit_code, "Try again" in result.stderr) == (2, True)
        assert run(built, "verify", "items").exit_code == 0


def test_a_traceback_is_shown_if_the_environment_asks_for_it(built, monkeypatch):
    monkeypatch.setenv("STARSHL_TRACEBACK", "1")
    assert isinstance(run(built, "remove", "items", "7").exception, KeyError)


def test_nothing_but_errors_is_on_standard_error_without_a_terminal(built):
    for words in (
        ("add", "items", "queries.npy"),
        ("search", "items", "queries.npy"),
        ("export", "items", "-o", "e.jsonl"),
    ):
        result = run(built, *words)
        assert (result.exit_code, result.stderr) == (0, "")


def test_negative_ids_come_after_two_dashes(built):
    np.savez(built / "below.npz", X=np.ones((1, 6)), key=[-5])
    assert run(built, "add", "items", "below.npz", "--ids", "key").exit_code == 0
    assert run(built, "remove", "items", "--", "-5").exit_code == 0


def test_references_are_a_column_and_columns_can_be_dropped(built):
    names = np.array([f"{i}.png" for i in range(50)])
    X = np.load(built / "items.npz")["X"]
    np.savez(built / "more.npz", X=X, image=names, key=np.arange(200, 250), note=names, other=names)
    words = ("more.npz", "--ids", "key", "--references", "image", "--drop", "note,other")
    assert run(built, "add", "items", *words).exit_code == 0
    assert run(built, "build", str(built / "second"), "model.star", *words).exit_code == 0
    for folder in ("items", "second"):
        with Collection(built / folder, read_only=True) as collection:
            (item,) = collection.get([203])
            assert (item.reference, item.metadata, item.label, item.code_from) == ("3.png", {}, None, "vector")


@pytest.fixture
def iris(tmp_path):
    """A table with a model of its columns a, b, c, d; the same table with the columns reversed and one more."""
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    X, y = load_iris(return_X_y=True)
    columns = {name: X[:, j] for j, name in enumerate("abcd")}
    parquet.write_table(pyarrow.table({**columns, "kind": y}), tmp_path / "iris.parquet")
    turned = {"extra": X[:, 0], "kind": y, **dict(reversed(columns.items()))}
    parquet.write_table(pyarrow.table(turned), tmp_path / "turned.parquet")
    parquet.write_table(pyarrow.table({"a": X[:, 0], "d": X[:, 1]}), tmp_path / "few.parquet")
    words = ["fit", str(tmp_path / "iris.parquet"), "--labels", "kind", "--method", "LSHash", "--bits", "16"]
    assert runner.invoke(app, [*words, "-o", str(tmp_path / "model.star")]).exit_code == 0
    return tmp_path


def test_the_columns_of_a_model_are_found_by_name(iris):
    expected = load(iris / "model.star").encode(load_iris().data)
    built = run(iris, "build", "items", "model.star", "turned.parquet")
    assert built.stdout.endswith("vectors from 4 columns: a, b, c, d\n")
    assert run(iris, "add", "items", "turned.parquet").exit_code == 0
    with Collection(iris / "items", read_only=True) as collection:
        assert np.array_equal(collection.codes(np.arange(300)).packed, np.tile(expected.packed, (2, 1)))
        assert collection.get([0])[0].metadata == {"extra": 5.1, "kind": 0}
    result = json.loads(run(iris, "search", "items", "turned.parquet", "-k", "1", "--json").stdout)
    assert {hits[0]["distance"] for hits in result} == {0}
    for words in (("build", "other", "model.star", "few.parquet"), ("add", "items", "few.parquet")):
        result = run(iris, *words)
        assert (result.exit_code, "lacks 2 of the 4" in result.stderr) == (2, True)
        assert "'b', 'c'" in result.stderr


def test_a_csv_gives_items_as_it_gives_rows_to_fit(iris):
    X, y = load_iris(return_X_y=True)
    lines = [
        f"{i},{d},{c},{b},{a},{i}.png,{'xyz'[kind]}," for i, ((a, b, c, d), kind) in enumerate(zip(X, y, strict=True))
    ]
    (iris / "iris.csv").write_text("\n".join(["key,d,c,b,a,image,kind,note", *lines]) + "\n")
    words = ("iris.csv", "--ids", "key", "--references", "image")
    assert run(iris, "build", "items", "model.star", *words).exit_code == 0
    expected = load(iris / "model.star").encode(X)
    with Collection(iris / "items", read_only=True) as collection:
        assert np.array_equal(collection.codes(np.arange(150)).packed, expected.packed)
        (item,) = collection.get([60])
        assert (item.reference, item.metadata, item.label) == ("60.png", {"kind": "y", "note": None}, None)
    assert run(iris, "search", "items", "iris.csv", "-k", "1").stdout.splitlines()[1].split()[:3] == ["0", "0", "0"]
    words = (*words, "--labels", "kind", "--drop", "note", "--bits", "16", "--method", "LSHash", "--json")
    assert json.loads(run(iris, "binarize", str(iris / "new"), *words).stdout)["vectors"] == ["d", "c", "b", "a"]


def test_a_csv_without_header_has_numbered_columns(built):
    rows = np.load(built / "queries.npy").tolist()
    (built / "rows.csv").write_text("\n".join(",".join(map(repr, [7 + i, *row])) for i, row in enumerate(rows)) + "\n")
    result = run(built, "add", "items", "rows.csv", "--ids", "0")
    assert result.exit_code == 0, result.output
    with Collection(built / "items", read_only=True) as collection:
        assert np.array_equal(collection.codes([7, 8]).packed, collection.codes([100, 101]).packed)
    assert "has no column '9'" in run(built, "add", "items", "rows.csv", "--ids", "9").stderr


def test_binarize_keeps_the_names_of_columns(iris):
    words = ("iris.parquet", "--labels", "kind", "--method", "LSHash", "--bits", "16", "--json")
    assert json.loads(run(iris, "binarize", "items", *words).stdout)["vectors"] == list("abcd")
    result = json.loads(run(iris, "search", "items", "turned.parquet", "-k", "1", "--json").stdout)
    assert {hits[0]["distance"] for hits in result} == {0}


def test_binarize_takes_y_of_an_npz_as_fit_does(place):
    X = np.load(place / "items.npz")["X"]
    np.savez(place / "labeled.npz", X=X, y=np.arange(50) % 3)
    words = ("labeled.npz", "--bits", "8", "--method", "LSHash", "--json")
    assert json.loads(run(place, "binarize", str(place / "a"), *words).stdout)["labels"] == "y"
    assert json.loads(run(place, "binarize", str(place / "b"), *words, "--no-labels").stdout)["labels"] is None


def test_an_export_over_a_file_of_the_collection_is_refused(built):
    (built / "out.jsonl").symlink_to(built / "items" / "items.sqlite")
    before = (built / "items" / "items.sqlite").read_bytes()
    result = run(built, "export", "items", "-o", "out.jsonl")
    assert (result.exit_code, "same file as the input" in result.stderr) == (2, True)
    assert (built / "items" / "items.sqlite").read_bytes() == before


def test_items_and_queries_come_from_json_lines(built):
    rows = np.load(built / "queries.npy").tolist()
    lines = [json.dumps({"v": row, "key": 7 + i, "note": "new"}) for i, row in enumerate(rows)]
    (built / "rows.jsonl").write_text("\n".join(lines))
    assert run(built, "add", "items", "rows.jsonl", "--ids", "key").exit_code == 0
    answer = json.loads(run(built, "search", "items", "rows.jsonl", "-k", "1", "--json").stdout)
    assert answer[1][0] == {
        "id": 8,
        "distance": 0,
        "reference": None,
        "metadata": {"note": "new"},
        "label": None,
        "code_from": "vector",
        "rescored": None,
        "probability": None,
    }
