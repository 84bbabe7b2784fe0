"""The commands of `starshl index`, in process."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from starshl.baselines import LSHash
from starshl.cli.index import app
from starshl.collection import Collection, read_table

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
    result = run(place, "build", "items", "items.npz", "--model", "model.star", "--ids", "key")
    assert result.exit_code == 0, result.output
    return place


def run(place, *arguments):
    """Run a command; words that name files of the folder become their paths."""
    names = ("items", "items.npz", "queries.npy", "model.star")
    made = [
        str(place / word) if word in names or word.endswith((".jsonl", ".parquet", ".txt")) else word
        for word in arguments
    ]
    return runner.invoke(app, made)


def test_build_search_and_verify_agree_with_the_library(built):
    found = json.loads(run(built, "search", "items", "queries.npy", "-k", "4", "--json").stdout)
    with Collection(built / "items", read_only=True) as collection:
        expected = collection.search(np.load(built / "queries.npy"), 4)
    assert found == [[hit._asdict() for hit in hits] for hits in expected]
    assert found[0][0]["id"] == 100
    assert json.loads(run(built, "verify", "items", "--json").stdout)["items"] == 50


def test_search_filters_and_takes_stored_items(built):
    where = '{"label": {"in": [1, 2]}}'
    found = run(built, "search", "items", "--item", "101", "-k", "50", "--where", where, "--json")
    ids = [hit["id"] for hit in json.loads(found.stdout)[0]]
    assert ids[0] == 101
    assert sorted(ids) == [100 + i for i in range(50) if i % 3]
    text = run(built, "search", "items", "--item", "101", "--radius", "0")
    assert text.stdout.split()[:3] == ["0", "0", "101"]


def test_add_replace_and_remove_change_the_collection(built):
    again = run(built, "add", "items", "items.npz", "--ids", "key")
    assert (again.exit_code, "already in the collection" in again.stderr) == (2, True)
    assert run(built, "add", "items", "items.npz", "--ids", "key", "--replace").exit_code == 0
    assert json.loads(run(built, "add", "items", "queries.npy", "--json").stdout)["items"] == 52
    assert run(built, "remove", "items", "100", "150", "--compact").stdout == "2 items removed, 50 left\n"


def test_export_writes_every_item(built):
    assert run(built, "export", "items", "out.jsonl").exit_code == 0
    assert len((built / "out.jsonl").read_text().splitlines()) == 50


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("build", "items", "items.npz", "-m", "model.star"), 2, "exists already"),
        (("add", "items", "nothing.parquet"), 2, "There is no file"),
        (("add", "items", "notes.txt"), 2, "vectors are read from .npy"),
        (("add", "items", "items.npz", "--ids", "nokey"), 2, "has no column 'nokey'"),
        (("add", "items", "items.npz", "--replace"), 2, "--replace needs --ids"),
        (("remove", "items", "7"), 2, "The id 7 is not in the collection"),
        (("search", "items", "--item", "101", "-k", "51"), 2, "holds 50 items"),
        (("search", "items"), 2, "either X or items"),
        (("search", "items", "--item", "101", "--where", "label=1"), 2, "is not JSON"),
        (("search", "items", "--item", "101", "--where", '{"label": {"~": 1}}'), 2, "uses '~'"),
        (("verify", "nowhere"), 2, "There is no collection"),
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
    result = run(place, "build", "items", "items.npz", "-m", "model.star", "--ids", "key")
    assert (result.exit_code, "more than once" in result.stderr) == (2, True)
    assert not (place / "items").exists()


def test_a_damaged_collection_fails_verification(built):
    path = built / "items" / "items.sqlite"
    path.write_bytes(path.read_bytes()[:5000])
    assert run(built, "verify", "items").exit_code == 1


def test_parquet_columns_become_vectors_ids_and_metadata(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    X = np.arange(12, dtype=np.float32).reshape(4, 3)
    columns = {"key": [4, 3, 2, 1], "text": list("abcd")}
    parquet.write_table(pyarrow.table({"v": list(X), **columns}), tmp_path / "lists.parquet")
    wide = {f"x{j}": X[:, j] for j in range(3)}
    parquet.write_table(pyarrow.table({**columns, **wide}), tmp_path / "wide.parquet")
    for name in ("lists.parquet", "wide.parquet"):
        table = read_table(tmp_path / name, ids="key")
        assert np.array_equal(table.X, X)
        assert table.ids.tolist() == [4, 3, 2, 1]
        assert table.metadata[2] == {"text": "c"}
    ragged = pyarrow.table({"v": [[1.0], [1.0, 2.0, 3.0]]})
    parquet.write_table(ragged, tmp_path / "ragged.parquet")
    with pytest.raises(ValueError, match=r"lengths \[1, 3\]; all must agree"):
        read_table(tmp_path / "ragged.parquet")


def test_a_damaged_archive_of_vectors_is_refused_with_a_sentence(tmp_path):
    np.savez_compressed(tmp_path / "rows.npz", X=np.random.default_rng(0).random((50, 4)), key=np.arange(50))
    content = bytearray((tmp_path / "rows.npz").read_bytes())
    (tmp_path / "cut.npz").write_bytes(content[:-40])
    content[300] ^= 1
    (tmp_path / "flipped.npz").write_bytes(content)
    for name in ("cut.npz", "flipped.npz"):
        with pytest.raises(ValueError, match="is not a readable array file"):
            read_table(tmp_path / name, ids="key")
