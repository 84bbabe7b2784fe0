"""``starshl images``, ``texts`` and ``vectors`` as typed."""

import json

import numpy as np
import pytest
from PIL import Image

from starshl.collection import Collection


@pytest.fixture
def run(starshl):
    """A function that runs a command, which must end with this code."""

    def call(*words, code=0):
        result = starshl(*words)
        assert result.exit_code == code, result.output
        return result

    return call


def test_images_makes_a_collection_and_lists_what_was_skipped(tmp_path, run):
    for number in range(6):
        folder = tmp_path / "pictures" / ("dark" if number % 2 else "bright")
        folder.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (16, 16), (40 * number,) * 3).save(folder / f"{number}.png")
    (tmp_path / "pictures" / "broken.png").write_bytes(b"?")
    result = run("images", tmp_path / "pictures", "-o", tmp_path / "made", "--json")
    answer = json.loads(result.stdout)
    assert (answer["n_items"], answer["classes"]) == (6, ["bright", "dark"])
    assert answer["skipped"][0]["path"] == "broken.png"
    result = run("images", tmp_path / "pictures", "-o", tmp_path / "made", code=2)
    assert "exists already" in result.stderr


def test_texts_reads_tables_and_lines(tmp_path, run):
    table, lines = tmp_path / "news.csv", tmp_path / "news.txt"
    table.write_text(
        "headline,topic,page\n" + "".join(f"bread and soup {i},food,{i}\ncar engine {i},cars,{i}\n" for i in range(15))
    )
    lines.write_text("one line here\n\nanother line there\n")
    result = run("texts", table, "--text", "headline", "--labels", "topic", "-o", tmp_path / "table")
    assert "all items have one of 2 classes (cars, food)" in result.stdout
    assert "starshl serve" in result.stdout
    with Collection(tmp_path / "table") as collection:
        hit = collection.search(collection.extract(["hot soup"]), k=1)[0][0]
        assert (hit.label, collection.title, hit.metadata["topic"]) == ("food", "headline", "food")
    assert "No item has a label" in run("texts", lines, "-o", tmp_path / "lines").stdout
    (tmp_path / "topics.csv").write_text("food\ncars\n")
    labeled = run("texts", lines, "--labels", tmp_path / "topics.csv", "-o", tmp_path / "labeled")
    assert "all items have one of 2 classes" in labeled.stdout
    assert "Name it with --text" in run("texts", table, "-o", tmp_path / "other", code=2).stderr
    assert (
        "Its columns are 'headline', 'topic', 'page'"
        in run("texts", table, "--text", "headlines", "-o", tmp_path / "other", code=2).stderr
    )
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--text", "x"), "has no columns, but --text names one"),
        (("--ids", "key"), "has no columns, but --ids names one"),
        (("--references", "path", "--ids", "key"), "has no columns, but --ids and --references name some"),
        (("--title", "headline"), "has no columns, but --title names one"),
        (("--drop", "page"), "has no columns, but --drop names one"),
        (("--labels", "topic"), "has no columns, and there is no file 'topic'"),
        (("--labels", "topic", "--no-labels"), "contradict each other"),
    ],
)
def test_texts_refuses_options_about_columns_of_a_file_without_columns(tmp_path, run, options, sentence):
    (tmp_path / "news.txt").write_text("one line here\nanother line there\n")
    result = run("texts", tmp_path / "news.txt", *options, "-o", tmp_path / "made", code=2)
    assert sentence in " ".join(result.stderr.split())
    assert not (tmp_path / "made").exists()


def test_vectors_makes_a_collection(tmp_path, run):
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    np.savez(tmp_path / "rows.npz", X=rng.standard_normal((60, 6)) + 3 * y[:, None], y=y)
    answer = json.loads(run("vectors", tmp_path / "rows.npz", "-o", tmp_path / "made", "--json").stdout)
    assert (answer["kind"], answer["n_items"], answer["n_labeled"]) == ("vectors", 60, 60)
    run("vectors", tmp_path / "rows.npz", "--bits", "4", "-o", tmp_path / "short")
    with Collection(tmp_path / "short", read_only=True) as short:
        assert short.n_bits == 4


@pytest.mark.parametrize("command", ["images", "texts", "vectors"])
def test_missing_inputs_are_named(tmp_path, run, command):
    result = run(command, tmp_path / "absent.csv", "-o", tmp_path / "made", code=2)
    assert "absent.csv" in result.stderr
    assert not (tmp_path / "made").exists()
