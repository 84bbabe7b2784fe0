"""Commands that get something else than a collection name the command that makes one."""

import pytest


@pytest.fixture
def place(tmp_path, monkeypatch):
    """The current folder, with a folder of pictures, an empty one, and files."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "photos" / "cats").mkdir(parents=True)
    (tmp_path / "photos" / "cats" / "one.JPG").write_bytes(b"")
    (tmp_path / "empty").mkdir()
    for name in ("x.npy", "lines.txt", "news.csv"):
        (tmp_path / name).write_bytes(b"")
    return tmp_path


@pytest.mark.parametrize(
    "command",
    [("explore", "--no-browser", "--port", 0), ("serve", "--port", 0), ("index", "verify")],
    ids=["explore", "serve", "verify"],
)
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("photos", "'photos' is a folder of pictures, not a collection. Make one of it with `starshl images photos -o"),
        ("x.npy", "'x.npy' is a file, not a collection. Make one of it with `starshl vectors x.npy -o COLLECTION`"),
        ("lines.txt", "Make one of it with `starshl texts lines.txt -o COLLECTION`"),
        ("news.csv", "`starshl texts news.csv --text COLUMN -o COLLECTION`, or, if its columns are numbers"),
        ("empty", "'empty' is a folder, not a collection. To make a collection: `starshl images FOLDER -o COLLECTION`"),
        ("nothing", "There is no folder 'nothing'. To make a collection: `starshl images FOLDER -o COLLECTION`"),
    ],
)
def test_the_command_that_makes_a_collection_is_named(starshl, place, command, given, said):
    result = starshl(*command, given)
    assert result.exit_code != 0
    assert said in " ".join(result.output.split())
