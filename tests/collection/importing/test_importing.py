"""Collections in one call: from picture folders, texts and vectors, whatever labels there are."""

import numpy as np
import pytest
from PIL import Image

from starshl import Collection
from starshl.collection import import_pictures, import_texts, import_vectors
from starshl.data.features import network, registry
from starshl.data.features.network import load_network
from starshl.exceptions import MissingExtraError

COLORS = {"red": (200, 40, 40), "blue": (40, 40, 200)}


def write_pictures(folder, labels, *, seed=0):
    """Write one noisy picture per label, in a folder of that name or at the top."""
    rng = np.random.default_rng(seed)
    for number, label in enumerate(labels):
        color = COLORS[label or "red"]
        place = folder / (label or "")
        place.mkdir(parents=True, exist_ok=True)
        pixels = rng.normal(color, 30, (24, 32, 3)).clip(0, 255).astype(np.uint8)
        kind = ("png", "jpg", "webp")[number % 3]
        Image.fromarray(pixels).save(place / f"{number:03}.{kind}")
    return folder


@pytest.fixture(scope="module")
def album(tmp_path_factory):
    """A collection of thirty pictures, ten of them without labels, from a folder with other files in it."""
    root = tmp_path_factory.mktemp("album")
    folder = write_pictures(root / "pictures", ["red", "blue", None] * 10)
    (folder / "red" / "broken.jpg").write_bytes(b"not a picture")
    (folder / "red" / "tiny.png").write_bytes(b"")
    (folder / "notes.txt").write_text("left alone")
    (folder / ".hidden.png").write_text("not seen")
    return root / "collection", import_pictures(folder, root / "collection", n_jobs=2)


def test_a_folder_becomes_a_collection_with_labels_and_previews(album):
    folder, summary = album
    assert (summary.n_items, summary.n_labeled, summary.classes) == (30, 20, ["blue", "red"])
    assert "20 of 30 items have one of 2 classes (blue, red)" in summary.labels
    with Collection(folder) as collection:
        assert (collection.kind, len(collection), collection.vector_dtype) == ("pictures", 30, "float16")
        items = collection.get(collection.ids)
        assert {item.label for item in items} == {"red", "blue", None}
        assert all((item.label or "") in item.reference for item in items)
        assert all(collection.preview(item.id).media_type == "image/webp" for item in items)
        assert collection.verify() == 30


def test_pictures_of_kinds_that_are_not_read_are_named(tmp_path):
    images = pytest.importorskip("PIL.Image")
    folder = tmp_path / "photos"
    folder.mkdir()
    for number in range(6):
        images.new("RGB", (20, 20), (40 * number, 10, 90)).save(folder / f"{number}.png")
    for name in ("old.gif", "scan.TIF", "paint.bmp"):
        images.new("RGB", (20, 20)).save(folder / name)
    for name in ("phone.heic", "broken.tiff"):
        (folder / name).write_bytes(b"II*\0 but nothing else")
    (folder / "notes.txt").write_text("not a picture")
    summary = import_pictures(folder, tmp_path / "album")
    assert (summary.n_items, summary.n_other_files) == (9, 1)
    assert [each.path for each in summary.skipped] == ["broken.tiff", "phone.heic"]
    assert "'phone.heic' is not a picture that can be read" in summary.skipped[1].reason
    with Collection(tmp_path / "album", read_only=True) as made:
        names = [item.reference for item in made.get(made.ids)]
        assert names[-3:] == ["old.gif", "paint.bmp", "scan.TIF"]
        assert all(made.preview(int(item)).media_type == "image/webp" for item in made.ids)


def test_broken_files_are_skipped_and_listed(album):
    _, summary = album
    assert [each.path for each in summary.skipped] == ["red/broken.jpg", "red/tiny.png"]
    assert all("is not a picture that can be read" in each.reason for each in summary.skipped)
    assert summary.skipped[0].reason.startswith("'red/broken.jpg' is not a picture")
    assert summary.n_other_files == 1
    assert summary.as_dict()["skipped"][0]["path"] == "red/broken.jpg"


def test_a_picture_from_outside_finds_pictures_of_its_color(album):
    folder, _ = album
    with Collection(folder, read_only=True) as collection:
        blue = Image.new("RGB", (50, 70), COLORS["blue"])
        hits = collection.search(collection.embed([blue]), k=5)[0]
        assert [hit.label for hit in hits] == ["blue"] * 5


def test_a_collection_does_not_depend_on_the_number_of_threads(album, tmp_path):
    folder, _ = album
    again = tmp_path / "again"
    import_pictures(folder.parent / "pictures", again)
    names = {path.name for path in folder.iterdir() if path.suffix in (".star", ".bin")}
    assert names == {path.name for path in again.iterdir() if path.suffix in (".star", ".bin")}
    assert all((folder / name).read_bytes() == (again / name).read_bytes() for name in names)


def test_pictures_without_labels_are_learned_without_them_and_that_is_said(tmp_path):
    write_pictures(tmp_path / "pictures", [None] * 25)
    summary = import_pictures(tmp_path / "pictures", tmp_path / "collection")
    assert summary.labels == "No item has a label: codes were learned without labels (the unsupervised mode)."
    with Collection(tmp_path / "collection") as collection:
        assert collection.search(items=[3], k=1)[0][0].id == 3


def test_one_class_alone_is_stored_and_not_learned(tmp_path):
    write_pictures(tmp_path / "pictures", ["red"] * 24)
    summary = import_pictures(tmp_path / "pictures", tmp_path / "collection")
    assert "all items are 'red'. One class alone teaches nothing" in summary.labels
    with Collection(tmp_path / "collection") as collection:
        assert {item.label for item in collection.get(collection.ids)} == {"red"}


@pytest.mark.parametrize("n_items", [1, 3])
def test_a_few_pictures_make_a_collection_too(tmp_path, n_items):
    write_pictures(tmp_path / "pictures", ["red", "blue", None][:n_items])
    summary = import_pictures(tmp_path / "pictures", tmp_path / "collection")
    assert "too few to learn from" in summary.choice
    with Collection(tmp_path / "collection") as collection:
        assert collection.search(items=[0], k=1)[0][0].id == 0


def test_pictures_need_no_network_unless_one_is_asked_for(tmp_path, monkeypatch):
    load_network.cache_clear()
    monkeypatch.setattr(network, "PACKAGE", "no_such_package")
    write_pictures(tmp_path / "pictures", ["red", "blue"])
    assert import_pictures(tmp_path / "pictures", tmp_path / "collection").n_items == 2
    with pytest.raises(MissingExtraError):
        import_pictures(tmp_path / "pictures", tmp_path / "other", embedder="efficientnet-lite0")


def test_an_interrupted_import_leaves_nothing(tmp_path, monkeypatch):
    write_pictures(tmp_path / "pictures", [None] * 3)

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(Collection, "add", interrupt)
    with pytest.raises(KeyboardInterrupt):
        import_pictures(tmp_path / "pictures", tmp_path / "collection")
    assert [path.name for path in tmp_path.iterdir()] == ["pictures"]


def test_bad_folders_are_refused_with_what_to_do(tmp_path):
    (tmp_path / "empty" / "inside").mkdir(parents=True)
    (tmp_path / "empty" / "inside" / "notes.txt").write_text("no picture")
    with pytest.raises(ValueError, match="no picture"):
        import_pictures(tmp_path / "empty", tmp_path / "collection")
    with pytest.raises(FileNotFoundError, match="no folder"):
        import_pictures(tmp_path / "absent", tmp_path / "collection")
    with pytest.raises(NotADirectoryError, match="is a file"):
        import_pictures(tmp_path / "empty" / "inside" / "notes.txt", tmp_path / "collection")
    with pytest.raises(FileExistsError, match="exists already"):
        import_pictures(tmp_path / "empty", tmp_path)
    (tmp_path / "empty" / "one.png").write_bytes(b"x")
    with pytest.raises(ValueError, match=r"one\.png"):
        import_pictures(tmp_path / "empty", tmp_path / "collection")


def test_many_pictures_are_reduced_by_what_a_sample_shows(tmp_path, monkeypatch):
    write_pictures(tmp_path / "pictures", ["red", "blue"] * 12)
    original = registry.Reduce
    monkeypatch.setattr(registry, "Reduce", lambda **settings: original(**settings, max_rows=10))
    summary = import_pictures(tmp_path / "pictures", tmp_path / "collection")
    assert (summary.n_items, summary.n_features) == (24, 9)


def test_texts_become_a_collection_with_titles(tmp_path):
    words = {"food": ["bread", "butter", "soup", "cheese"], "cars": ["engine", "wheel", "brake", "garage"]}
    rng = np.random.default_rng(0)
    labels = ["food", "cars", None] * 20
    texts = [" ".join(rng.choice(words[label or "food"], 3)) + f" number{i}" for i, label in enumerate(labels)]
    summary = import_texts(texts, tmp_path / "texts", labels, metadata=[{"page": i} for i in range(60)])
    assert (summary.n_items, summary.n_labeled) == (60, 40)
    with Collection(tmp_path / "texts") as collection:
        assert (collection.kind, collection.title) == ("texts", "text")
        hits = collection.search(collection.embed(["an engine without a brake"]), k=3)[0]
        assert {hit.label for hit in hits} == {"cars"}
        assert collection.title_of(hits[0]) == texts[hits[0].id]
        assert hits[0].metadata["page"] == hits[0].id


def test_metadata_for_other_texts_are_refused_before_anything_is_learned(tmp_path):
    with pytest.raises(ValueError, match="1 dictionaries of metadata"):
        import_texts(["fresh bread", "red cars"], tmp_path / "texts", metadata=[{}])
    assert not list(tmp_path.iterdir())


def test_texts_without_words_are_refused(tmp_path):
    with pytest.raises(ValueError, match="no word of two"):
        import_texts(["?", "!"], tmp_path / "texts")
    with pytest.raises(ValueError, match="no texts"):
        import_texts([], tmp_path / "texts")
    assert list(tmp_path.iterdir()) == []


def test_vectors_become_a_collection_that_keeps_them(tmp_path, digits):
    X, y = digits
    summary = import_vectors(
        X[:300], tmp_path / "digits", y[:300], title="name", metadata=[{"name": str(i)} for i in range(300)]
    )
    assert (summary.kind, summary.method, summary.n_features) == ("vectors", "HybridHasher", 64)
    with Collection(tmp_path / "digits") as collection:
        assert (collection.kind, collection.vector_dtype) == ("vectors", "float16")
        right = [hit.label == y[300 + i] for i, hits in enumerate(collection.search(X[300:400], k=10)) for hit in hits]
        assert np.mean(right) > 0.9
        assert collection.title_of(collection.get([7])[0]) == "7"


def test_vectors_that_are_none_are_refused(tmp_path):
    with pytest.raises(ValueError, match="NaN or infinite values"):
        import_vectors(np.vstack([np.eye(30), np.full(30, np.nan)]), tmp_path / "vectors")
    assert list(tmp_path.iterdir()) == []


def test_frequent_words_hardly_count_in_short_texts(tmp_path):
    titles = [f"the {word} in the {place}" for word in ("cup", "bank", "rain") for place in ("park", "town", "hall")]
    import_texts(titles * 3, tmp_path / "news")
    with Collection(tmp_path / "news", read_only=True) as news:
        frequent, rare, both = news.embed(["the in", "cup", "the cup in the"])
        assert both @ rare > 4 * (both @ frequent)
