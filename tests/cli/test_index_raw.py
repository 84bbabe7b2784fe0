"""`starshl index add` and `starshl index search` with texts and pictures, which the collection's embedder reads."""

import json
import shutil
import sys
import types

import numpy as np
import pytest
from PIL import Image

from starshl import Collection, StarRidge
from starshl.collection import import_pictures
from starshl.data.features import Embedder, Reduce


@pytest.fixture
def run(starshl):
    """A function that runs `starshl index WORDS...`, which must end with this code."""

    def call(*words, code=0):
        result = starshl("index", *words)
        assert result.exit_code == code, result.output
        return result

    return call


@pytest.fixture
def places(made, tmp_path):
    """A copy of all that, for one test to change."""
    return shutil.copytree(made, tmp_path / "raw")


@pytest.fixture(scope="module")
def made(tmp_path_factory, starshl):
    """A collection of texts, one of pictures, one of vectors, and more of each to add or to ask."""
    place = tmp_path_factory.mktemp("raw")
    food = [f"hot soup and bread {number}" for number in range(20)]
    cars = [f"fast cars with engines {number}" for number in range(20)]
    rows = [f"{text},food" for text in food] + [f"{text},cars" for text in cars]
    (place / "news.csv").write_text("headline,topic\n" + "\n".join(rows) + "\n")
    (place / "more.csv").write_text("topic,headline,page,key\nfood,bread with soup,3,500\n,old engines of cars,4,501\n")
    (place / "lines.md").write_text("# Notes\n")
    (place / "lines.txt").write_text("more hot soup\nmore fast cars\n")
    rng = np.random.default_rng(0)
    for folder, n_pictures in (("photos", 12), ("later", 2)):
        for label, color in {"red": (200, 40, 40), "blue": (40, 40, 200)}.items():
            (place / folder / label).mkdir(parents=True)
            for number in range(n_pictures):
                pixels = rng.normal(color, 20, (16, 20, 3)).clip(0, 255).astype(np.uint8)
                Image.fromarray(pixels).save(place / folder / label / f"{number}.png")
    (place / "later" / "red" / "broken.jpg").write_bytes(b"no picture")
    Image.new("RGB", (30, 20), (40, 40, 200)).save(place / "blue.png")
    np.save(place / "rows.npy", rng.standard_normal((30, 5)))
    for words in (
        ("texts", place / "news.csv", "--text", "headline", "--labels", "topic", "-o", place / "news"),
        ("images", place / "photos", "-o", place / "album"),
        ("vectors", place / "rows.npy", "-o", place / "vectors"),
    ):
        result = starshl(*words)
        assert result.exit_code == 0, result.output
    return place


def test_a_table_of_texts_is_added_with_titles_labels_and_ids(places, run):
    words = ("add", places / "news", places / "more.csv", "--labels", "topic", "--ids", "key")
    answer = json.loads(run(*words, "--json").stdout)
    assert (answer["stored"], answer["labeled"], answer["skipped"]) == (2, 1, [])
    with Collection(places / "news", read_only=True) as news:
        soup, engines = news.get([500, 501])
        assert (soup.label, engines.label) == ("food", None)
        assert soup.metadata == {"page": 3, "headline": "bread with soup"}
        assert news.title_of(engines) == "old engines of cars"
        assert np.allclose(news.vectors([500]), news.embed(["bread with soup"]), atol=1e-3)
    assert "2 of the ids" in run(*words, code=2).stderr
    assert "1 of them with a label" in run(*words, "--replace").stdout


def test_lines_are_added_as_texts(places, run):
    assert "2 texts stored, without labels" in run("add", places / "news", places / "lines.txt").stdout
    with Collection(places / "news", read_only=True) as news:
        assert [item.metadata["headline"] for item in news.get(news.ids[-2:])] == ["more hot soup", "more fast cars"]


def test_the_column_of_texts_is_found_even_if_another_one_is_the_title(tmp_path, starshl, run):
    lines = "".join(f"n{number},{word} and more {word}\n" for number, word in enumerate(["soup", "cars"] * 12))
    (tmp_path / "notes.csv").write_text("name,body\n" + lines)
    made = tmp_path / "notes"
    words = ("texts", tmp_path / "notes.csv", "--text", "body", "--title", "name", "-o", made)
    assert starshl(*words).exit_code == 0
    run("add", made, tmp_path / "notes.csv", "--allow-duplicates")
    with Collection(made, read_only=True) as notes:
        assert notes.get([25])[0].metadata == {"name": "n1", "body": "cars and more cars"}
        assert np.array_equal(notes.vectors([1]), notes.vectors([25]))


def test_a_folder_is_added_with_previews_and_labels_and_broken_files_are_listed(places, run):
    result = run("add", places / "album", places / "later")
    assert "4 pictures stored, 4 of them with a label; 28 items in total" in result.stdout
    assert "1 file skipped:\n  'red/broken.jpg' is not a picture" in result.stdout
    answer = json.loads(run("add", places / "album", places / "blue.png", "--json").stdout)
    assert (answer["stored"], answer["items"], answer["labeled"]) == (1, 29, 0)
    with Collection(places / "album", read_only=True) as album:
        added = album.get(range(24, 29))
        assert [item.label for item in added] == ["blue", "blue", "red", "red", None]
        assert added[0].reference == "blue/0.png"
        assert all(album.preview(item.id).media_type == "image/webp" for item in added)
        assert album.verify() == 29


def test_what_is_there_already_is_not_stored_again_unless_that_is_asked_for(places, run):
    for name, source, n_items in (("album", "photos", 24), ("news", "news.csv", 40), ("vectors", "rows.npy", 30)):
        words = ("add", places / name, places / source, *(("--labels", "topic") if name == "news" else ()))
        result = run(*words)
        assert f"{n_items} items were there already and not stored again; --allow-duplicates" in result.stdout
        assert "0 " in result.stdout.splitlines()[0]
        answer = json.loads(run(*words, "--json").stdout)
        assert (answer["stored"], answer["present"], answer["items"]) == (0, n_items, n_items)
        answer = json.loads(run(*words, "--allow-duplicates", "--json").stdout)
        assert (answer["stored"], answer["present"], answer["items"]) == (n_items, 0, 2 * n_items)


def test_of_a_folder_that_has_grown_only_the_new_pictures_are_stored(places, run):
    Image.new("RGB", (30, 20), (200, 40, 40)).save(places / "photos" / "red" / "new.png")
    Image.new("RGB", (30, 20), (90, 40, 40)).save(places / "photos" / "red" / "0.png")  # changed since
    result = run("add", places / "album", places / "photos")
    assert "2 pictures stored, 2 of them with a label; 26 items in total\n23 items were there already" in result.stdout
    with Collection(places / "album", read_only=True) as album:
        assert [item.reference for item in album.get(album.ids[-2:])] == ["red/0.png", "red/new.png"]


def test_a_table_without_kept_vectors_is_stored_and_it_is_said_that_it_looks_known(tmp_path, starshl, run):
    rows = "".join(f"{number},{number % 7},{number % 3},n{number}\n" for number in range(30))
    (tmp_path / "rows.csv").write_text("a,b,c,name\n" + rows)
    (tmp_path / "one.csv").write_text("a,b,c,name\n1,1,1,n1\n2,2,2,other\n")
    model = tmp_path / "model.star"
    words = ("fit", tmp_path / "rows.csv", "-o", model, "--method", "LSHash", "--bits", "16", "--drop", "name")
    assert starshl(*words).exit_code == 0
    run("build", tmp_path / "made", model, tmp_path / "rows.csv")
    assert "look like" not in run("add", tmp_path / "made", tmp_path / "one.csv").stdout
    result = run("add", tmp_path / "made", tmp_path / "rows.csv")
    assert "30 items stored, 62 in total" in result.stdout
    assert "All of them look like items that were there already" in " ".join(result.stdout.split())
    assert "look like" not in run("add", tmp_path / "made", tmp_path / "rows.csv", "--allow-duplicates").stdout


def test_a_search_takes_a_text_or_a_picture_as_it_is(places, run):
    (hits,) = json.loads(run("search", places / "news", "--text", "a hot soup", "-k", "3", "--json").stdout)
    assert {hit["label"] for hit in hits} <= {"food", None}
    assert "soup" in hits[0]["metadata"]["headline"]
    both = json.loads(run("search", places / "news", "-t", "bread", "-t", "engines", "-k", "1", "--json").stdout)
    assert [hits[0]["label"] for hits in both] == ["food", "cars"]
    for words in (("--picture", places / "blue.png"), (places / "blue.png",)):
        (hits,) = json.loads(run("search", places / "album", *words, "-k", "5", "--json").stdout)
        assert {hit["label"] for hit in hits} <= {"blue", None}


def test_a_search_takes_tables_and_lines_of_texts(places, run):
    found = json.loads(run("search", places / "news", places / "news.csv", "-k", "1", "--json").stdout)
    assert [hits[0]["label"] for hits in found] == ["food"] * 20 + ["cars"] * 20
    found = json.loads(run("search", places / "news", places / "lines.txt", "-k", "1", "--explain", "--json").stdout)
    assert len(found) == 2
    assert found[0][0]["explanation"]
    named = run("search", places / "news", places / "news.csv", "--text-column", "topic", "-k", "1")
    assert len(named.stdout.splitlines()) == 41


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("add", "vectors", "photos"), "so it takes no pictures"),
        (("add", "vectors", "lines.txt"), "so it takes no texts"),
        (("add", "news", "blue.png"), "are texts, so"),
        (("add", "album", "blue.png", "--labels", "topic"), "pictures have none"),
        (("add", "album", "blue.png", "more.csv"), "more.csv' is not a picture by its name"),
        (("add", "album", "more.csv"), "a table in text (.csv)"),
        (("add", "album", "rows.npy"), "a NumPy array (.npy)"),
        (("add", "album", "lines.md"), "lines.md' is a text file"),
        (("search", "album", "lines.md"), "JPEG, PNG, WebP"),
        (("add", "album", "nothing.gif"), "no file or folder 'nothing.gif'"),
        (("add", "news", "more.csv", "lines.txt"), "one file at a time"),
        (("add", "vectors", "rows.npy", "--text", "x"), "for tables of texts"),
        (("search", "vectors", "--text", "soup"), "so it takes no texts"),
        (("search", "album", "--text", "soup"), "It takes pictures, folders"),
        (("search", "news", "--picture", "blue.png"), "so it takes no pictures"),
        (("search", "news", "--text", "soup", "--item", "3"), "Give one kind of query"),
    ],
)
def test_what_a_collection_cannot_take_is_said(places, run, words, sentence):
    made = [places / word if (places / word).exists() else word for word in words]
    assert sentence in " ".join(run(*made, code=2).stderr.split())


def test_a_text_without_a_known_word_is_warned_of(places, run):
    result = run("search", places / "news", "--text", "zzzz qqqq", "-k", "1")
    assert "the text 'zzzz qqqq'" in result.stderr
    assert "Warning" not in run("search", places / "news", "--text", "soup", "-k", "1").stderr


def test_the_classes_of_texts_are_predicted_from_a_table_or_lines(places, starshl):
    result = starshl("predict", places / "news", places / "news.csv", "--labels", "topic", "--json")
    assert (result.exit_code, json.loads(result.stdout)["accuracy"]) == (0, 1.0)
    assert starshl("predict", places / "news", places / "lines.txt").stdout.split() == ["food", "cars"]


def test_texts_are_binarized_beside_the_vectors_of_other_embedders(places, tmp_path, starshl, run):
    rows = [
        f"{text} of {number},{topic}" for number in range(150) for text, topic in (("hot soup", "a"), ("red cars", "b"))
    ]
    (tmp_path / "rows.csv").write_text("text,topic\n" + "\n".join(rows) + "\n")
    words = ("binarize", tmp_path / "codes", tmp_path / "rows.csv", "--text", "text", "--labels", "topic", "--json")
    answer = json.loads(run(*words).stdout)
    of_floats, of_int8, *others = (line["bytes_per_item"] for line in answer["embedders"][:5])
    names = [line["name"] for line in answer["embedders"][:5]]
    assert names[:3] == ["tfidf", "tfidf, int8", "tfidf, sign"]
    assert names[3:] == ["tfidf, RaBitQ (float queries)", "tfidf, PQ (float queries)"]
    assert of_floats == 4 * of_int8
    assert others == 3 * [-(-of_int8 // 8)], "sign, RaBitQ and product quantization take the same"
    assert "Embedders side by side" in (tmp_path / "codes" / "comparison.html").read_text()
    (tmp_path / "few.csv").write_text("text\n" + "\n".join(row.split(",")[0] for row in rows[:30]) + "\n")
    told = run("binarize", tmp_path / "few", tmp_path / "few.csv", "--text", "text").stdout
    assert "tfidf, PQ was left out: There are 27 rows" in told
    found = run("search", tmp_path / "codes", "--text", "some hot soup", "-k", "2").stdout
    assert found.count("hot soup of") == 2, "the text is shown with every hit"
    refused = starshl("index", words[0], tmp_path / "other", *words[2:-3], "--vectors", "text")
    assert (refused.exit_code, "for vectors, not for texts" in refused.stderr) == (2, True)


def test_rows_of_a_file_go_through_the_embedder_of_a_collection_of_rows(tmp_path, starshl, run):
    rows = np.random.default_rng(0).normal(size=(60, 5)) + 4 * (np.arange(60) % 2)[:, None]
    embedder = Embedder("rows", [Reduce(2)])
    vectors = embedder.fit_embed(rows)
    hasher = StarRidge(8, random_state=0).fit(vectors, np.arange(60) % 2)
    Collection.create(tmp_path / "rows", hasher, embedder=embedder, vectors="float16").close()
    np.save(tmp_path / "x.npy", rows)
    assert "60 items stored" in run("add", tmp_path / "rows", tmp_path / "x.npy").stdout
    with Collection(tmp_path / "rows", read_only=True) as made:
        assert np.allclose(made.vectors([59])[0], vectors[59], atol=0.01)
    np.save(tmp_path / "q.npy", rows[:1])
    (hits,) = json.loads(run("search", tmp_path / "rows", tmp_path / "q.npy", "-k", "1", "--json").stdout)
    assert (hits[0]["id"], hits[0]["rescored"] < 0.1) == (0, True)
    assert starshl("predict", tmp_path / "rows", tmp_path / "q.npy").stdout.split() == ["0"]


class _OfBoth:
    """What is used of a model of sentence-transformers in which texts are near their pictures."""

    max_seq_length = 64

    def __init__(self, name, device):
        pass

    def __getitem__(self, number):
        return type("CLIPModel", (), {})()

    def state_dict(self):
        return {}

    def tokenizer(self, text):
        return {"input_ids": text.split()}

    def encode(self, items, **_):
        return np.array([self.color(each) for each in items], np.float32) / 255

    def color(self, item):
        if isinstance(item, str):
            return [255.0 * (name in item) for name in ("red", "green", "blue")]
        return np.asarray(item.convert("RGB")).reshape(-1, 3).mean(axis=0)


def test_a_collection_of_pictures_is_searched_by_text_if_its_embedder_takes_both(tmp_path, run, monkeypatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", types.SimpleNamespace(SentenceTransformer=_OfBoth))
    for name, (red, blue) in {"warm": (255, 0), "cold": (0, 255)}.items():
        (tmp_path / "photos" / name).mkdir(parents=True)
        for number in range(12):
            Image.new("RGB", (16, 16), (red, number, blue)).save(tmp_path / "photos" / name / f"{number}.png")
    import_pictures(tmp_path / "photos", tmp_path / "album", embedder="sentence-transformers:both-kinds")
    found = run("search", tmp_path / "album", "--text", "something blue", "-k", "3", "--json").stdout
    assert [hit["label"] for hit in json.loads(found)[0]] == ["cold"] * 3


def test_info_says_what_a_collection_holds(made, starshl):
    shown = starshl("info", made / "album")
    assert shown.exit_code == 0
    assert "24 pictures" in shown.output
    assert "2: blue (12), red (12)" in shown.output
    told = json.loads(starshl("info", made / "album", "--json").stdout)
    assert (told["n_items"], told["n_labeled"], told["embedder"], told["n_guessed"]) == (24, 24, "pixels", None)


def test_a_folder_of_pictures_is_predicted_with_their_paths(made, starshl, tmp_path):
    (made / "unsorted").mkdir(exist_ok=True)
    shutil.copy(made / "blue.png", made / "unsorted" / "one.png")
    shutil.copy(made / "photos" / "red" / "0.png", made / "unsorted" / "two.png")
    said = starshl("predict", made / "album", made / "unsorted")
    assert said.stdout.splitlines() == ["one.png\tblue", "two.png\tred"]
    assert starshl("predict", made / "album", made / "blue.png").stdout == "blue.png\tblue\n"
    assert starshl("predict", made / "album", made / "unsorted", "-o", tmp_path / "labels.csv").exit_code == 0
    assert (tmp_path / "labels.csv").read_text() == "file,label\none.png,blue\ntwo.png,red\n"


def test_only_a_collection_of_pictures_predicts_a_folder(made, starshl):
    refused = starshl("predict", made / "news", made / "photos")
    assert refused.exit_code == 2
    assert "it takes no pictures" in refused.output
