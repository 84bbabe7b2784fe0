"""``starshl images``, ``texts`` and ``vectors`` as typed."""

import json

import numpy as np
import pytest
from PIL import Image

from starshl import Collection


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
    result = run("images", tmp_path / "pictures", "-o", tmp_path / "again")
    assert "1 file skipped:\n  'broken.png' is not a picture that can be read (it is of another kind)" in result.stdout
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
        hit = collection.search(collection.embed(["hot soup"]), k=1)[0][0]
        assert (hit.label, collection.title, "topic" in hit.metadata) == ("food", "headline", False)
    assert "No item has a label" in run("texts", lines, "-o", tmp_path / "lines").stdout
    (tmp_path / "topics.csv").write_text("food\ncars\n")
    labeled = run("texts", lines, "--labels", tmp_path / "topics.csv", "-o", tmp_path / "labeled")
    assert "all items have one of 2 classes" in labeled.stdout
    assert "Name it with --text" in run("texts", table, "-o", tmp_path / "other", code=2).stderr
    assert (
        "'headline', 'topic', 'page'"
        in run("texts", table, "--text", "headlines", "-o", tmp_path / "other", code=2).stderr
    )
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--text", "x"), "but --text names one"),
        (("--ids", "key"), "but --ids names one"),
        (("--references", "path", "--ids", "key"), "--ids and --references name some"),
        (("--title", "headline"), "but --title names one"),
        (("--drop", "page"), "but --drop names one"),
        (("--labels", "topic"), "there is no file 'topic'"),
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


def test_each_step_of_an_import_is_shown_with_its_time(tmp_path, run):
    (tmp_path / "pictures").mkdir()
    for number in range(6):
        Image.new("RGB", (16, 16), (40 * number,) * 3).save(tmp_path / "pictures" / f"{number}.png")
    np.save(tmp_path / "rows.npy", np.random.default_rng(0).standard_normal((60, 6)))
    (tmp_path / "lines.txt").write_text("one word\ntwo words\nthree words\n")
    for words, first in [
        (("images", tmp_path / "pictures"), ["reading pictures", "learning features"]),
        (("texts", tmp_path / "lines.txt"), []),
        (("vectors", tmp_path / "rows.npy"), []),
    ]:
        shown = run(*words, "-o", tmp_path / words[0], "--progress").stderr
        steps = ["starting", *first, "learning codes", "storing items"]
        places = [shown.index(step) for step in steps]
        assert places == sorted(places)
        assert shown.count("0:00:0") >= len(steps)
        assert run(*words, "-o", tmp_path / f"quiet {words[0]}").stderr == ""


@pytest.mark.parametrize("command", ["images", "texts", "vectors"])
def test_missing_inputs_are_named(tmp_path, run, command):
    result = run(command, tmp_path / "absent.csv", "-o", tmp_path / "made", code=2)
    assert "absent.csv" in result.stderr
    assert not (tmp_path / "made").exists()


def test_texts_offers_the_nearest_column_and_speaks_of_no_model(tmp_path, run):
    (tmp_path / "news.csv").write_text("headline,topic\nbread and soup,food\ncar engine,cars\n")
    told = run("texts", tmp_path / "news.csv", "--text", "headlin", "-o", tmp_path / "made", code=2).stderr
    assert "has no column 'headlin' (nearest: 'headline')" in told
    assert "model" not in told


@pytest.mark.parametrize("name", ["photo.png", "folder"])
def test_texts_says_which_files_hold_texts(name, tmp_path, run):
    (tmp_path / "folder").mkdir()
    (tmp_path / "photo.png").write_bytes(b"\x89PNG")
    told = run("texts", tmp_path / name, "-o", tmp_path / "made", code=2).stderr
    assert "texts are read from .txt, one per line, or from a column of" in told


def test_a_single_text_makes_a_collection_without_a_warning(tmp_path, run):
    (tmp_path / "one.txt").write_text("one line of words\n")
    result = run("texts", tmp_path / "one.txt", "-o", tmp_path / "made")
    assert result.stderr == ""
    assert "1 item is too few to learn from" in result.stdout
    assert "Vectors: tfidf, 1 number." in result.stdout


def test_rows_that_are_all_equal_are_called_that(tmp_path, run):
    np.save(tmp_path / "same.npy", np.ones((60, 4)))
    told = run("vectors", tmp_path / "same.npy", "-o", tmp_path / "made", code=2).stderr
    assert "rows are equal" in told
    assert "--bits" not in told


def test_too_many_bits_are_refused_with_the_reason_and_options_that_exist(tmp_path, run):
    np.save(tmp_path / "rows.npy", np.random.default_rng(0).normal(size=(60, 4)))
    told = run("vectors", tmp_path / "rows.npy", "--bits", "200", "-o", tmp_path / "made", code=2).stderr
    assert "--bits is 200; the codes are fitted on 54 of the 60 rows (the others measure them)" in told
    assert "in 4 directions and give 4 bits. Lower --bits." in told
    assert "name a method" not in told


def test_images_says_which_of_nested_folders_are_labels(tmp_path, run):
    for number, name in enumerate(["train/Fruit/Apple", "test/Fruit/Apple", "Milk"]):
        (tmp_path / "food" / name).mkdir(parents=True)
        Image.new("RGB", (16, 16), (80 * number, 9, 9)).save(tmp_path / "food" / name / "1.png")
    said = run("images", tmp_path / "food", "-o", tmp_path / "inner").stdout
    assert "2 classes from the innermost of 2 levels" in said
    assert "--labels-from outer" in said
    assert "test, train are splits" in said
    chosen = run("images", tmp_path / "food", "--labels-from", "1", "-o", tmp_path / "outer", "--json")
    assert json.loads(chosen.stdout)["classes"] == ["Fruit", "Milk"]
    assert (
        "--labels-from is 'deep'"
        in run("images", tmp_path / "food", "--labels-from", "deep", "-o", tmp_path / "none", code=2).stderr
    )
    added = run("index", "add", tmp_path / "outer", tmp_path / "food", "--labels-from", "path", "--allow-duplicates")
    assert "2 classes from the whole path of 2 levels" in added.stdout
