"""A collection that knows where its vectors come from: pictures or texts, their embedder, titles and previews."""

import io
import shutil
import sqlite3

import numpy as np
import pytest
from PIL import Image
from sklearn.preprocessing import Normalizer

from starshl import Collection
from starshl.collection import Preview
from starshl.data.features import Embedder, Reduce, Scale, Text, preview_of
from starshl.exceptions import CollectionFormatError
from starshl.hashers.baselines import LSHash

TEXTS = ["a red car", "a blue car", "fresh bread", "old bread and butter", "a car with bread in it"]


@pytest.fixture(scope="module")
def embedder():
    return Embedder("texts", [Text(4).fit(TEXTS)])


@pytest.fixture(scope="module")
def text_hasher(embedder):
    return LSHash(32, random_state=0).fit(embedder.embed(TEXTS))


@pytest.fixture(scope="module")
def pictures():
    colors = np.random.default_rng(0).integers(0, 256, (5, 3))
    return [preview_of(Image.new("RGB", (8, 8), tuple(color))) for color in colors.tolist()]


@pytest.fixture
def texts(tmp_path, embedder, text_hasher, pictures):
    """A closed collection of five texts; the first three have previews."""
    with Collection.create(
        tmp_path / "texts", text_hasher, vectors="float16", embedder=embedder, title="headline"
    ) as collection:
        metadata = [{"headline": text.upper()} for text in TEXTS]
        collection.add(collection.embed(TEXTS), metadata=metadata, previews=[*pictures[:3], None, None])
    return tmp_path / "texts"


def test_a_text_is_searched_for_as_it_is(texts):
    with Collection(texts, read_only=True) as collection:
        assert (collection.kind, collection.title) == ("texts", "headline")
        hits = collection.search(collection.embed(["some red car"]), k=2)[0]
        assert [collection.title_of(hit) for hit in hits] == ["A RED CAR", "A BLUE CAR"]


def test_a_collection_without_an_embedder_says_that_it_takes_vectors(folder):
    with Collection(folder, read_only=True) as collection:
        assert (collection.kind, collection.title, collection.embedder) == ("vectors", None, None)
        assert collection.title_of(collection.get([3])[0]) == "3.png"
        with pytest.raises(ValueError, match="takes vectors"):
            collection.embed(["a text"])


def test_an_item_without_title_and_reference_is_called_by_its_number(tmp_path, hasher, rows):
    with Collection.create(tmp_path / "items", hasher, kind="pictures") as collection:
        collection.add(rows[:2])
        assert collection.kind == "pictures"
        assert collection.title_of(collection.get([1])[0]) == "Item 1"


def test_a_transformer_that_a_file_cannot_hold_is_given_again(tmp_path, text_hasher):
    steps = [Text(4).fit(TEXTS), Normalizer().fit(np.eye(4))]
    path = tmp_path / "texts"
    with Collection.create(path, text_hasher, embedder=Embedder("texts", steps, TEXTS)) as collection:
        expected = collection.embed(TEXTS)
    with Collection(path) as collection, pytest.raises(ValueError, match="Normalizer at position 1"):
        collection.embed(TEXTS)
    for given in ([None, Normalizer()], Normalizer()):
        with Collection(path, embedder=given) as collection:
            assert np.array_equal(collection.embed(TEXTS), expected)


def test_a_new_hasher_keeps_the_embedder_and_the_previews(texts, embedder, pictures):
    other = LSHash(16, random_state=1).fit(embedder.embed(TEXTS))
    with Collection(texts) as collection:
        collection.replace_hasher(other)
        assert collection.search(collection.embed(TEXTS[2:3]), k=1)[0][0].id == 2
        assert collection.preview(2) == Preview(pictures[2], "image/webp")
        with pytest.raises(ValueError, match=r"vectors of 4.*rows of 3"):
            collection.replace_hasher(LSHash(8).fit(np.eye(3)), range(5), np.eye(5, 3))
        assert collection.verify() == 5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"embedder": Text(2)}, "not clear what it takes"),
        ({"embedder": 7}, "a name such as"),
        ({"embedder": "tfidf"}, "has not seen any"),
        ({"embedder": "bert"}, "no embedder 'bert'"),
        ({"kind": "sounds"}, "kind"),
        ({"kind": "pictures", "embedder": Embedder("texts", [Text(8).fit(TEXTS * 2)])}, "takes texts"),
        ({"embedder": Embedder("texts", [Text(2).fit(TEXTS)])}, "makes vectors of 2 numbers"),
        ({"title": ""}, "a metadata field"),
    ],
)
def test_what_does_not_fit_together_is_refused_and_nothing_is_made(tmp_path, hasher, options, message):
    with pytest.raises(ValueError, match=message):
        Collection.create(tmp_path / "items", hasher, **options)
    assert list(tmp_path.iterdir()) == []


def test_a_changed_or_missing_embedder_is_noticed(texts):
    file = next(texts.glob("embedder-*.star"))
    content = file.read_bytes()
    file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with Collection(texts, read_only=True) as collection:
        with pytest.raises(CollectionFormatError, match="was changed"):
            collection.embed(TEXTS)
        with pytest.raises(CollectionFormatError, match="was changed"):
            collection.verify()
        file.unlink()
        with pytest.raises(CollectionFormatError, match="is missing"):
            collection.embed(TEXTS)
        assert len(collection) == 5


def test_a_copy_of_the_folder_has_everything(texts, tmp_path, pictures):
    shutil.copytree(texts, tmp_path / "copy")
    with Collection(tmp_path / "copy") as collection:
        assert collection.embed(TEXTS).shape == (5, 4)
        assert collection.preview(0) == Preview(pictures[0], "image/webp")


def test_previews_come_and_go_with_their_items(texts, pictures):
    with Collection(texts) as collection:
        assert [collection.preview(i) is None for i in range(5)] == [False, False, False, True, True]
        collection.set_labels([0], ["vehicle"])
        collection.update([0], [{"headline": "changed"}])
        assert collection.preview(0).content == pictures[0]
        collection.upsert(collection.embed(TEXTS[:2]), ids=[0, 1], previews=[None, pictures[4]])
        assert (collection.preview(0), collection.preview(1).content) == (None, pictures[4])
        collection.remove([2])
        with pytest.raises(KeyError):
            collection.preview(2)
        collection.add(collection.embed(TEXTS[:1]), ids=[2])
        assert collection.preview(2) is None
        collection.compact()
        assert collection.verify() == 5


def test_png_and_jpeg_previews_are_named_as_such(tmp_path, hasher, rows):
    files = {}
    for kind in ("PNG", "JPEG"):
        file = io.BytesIO()
        Image.new("RGB", (8, 8)).save(file, kind)
        files[f"image/{kind.lower()}"] = file.getvalue()
    with Collection.create(tmp_path / "items", hasher) as collection:
        collection.add(rows[:2], previews=files.values())
        assert [collection.preview(i).media_type for i in (0, 1)] == list(files)


@pytest.mark.parametrize(
    ("previews", "message"),
    [
        ([b"<script>"], "1 preview for 2 items"),
        ([b"<script>", None], "beginning with b'<script>'"),
        (["a.png", None], "of type str"),
        ([b"\xff\xd8\xff" + bytes(1 << 18), None], "Make it smaller"),
    ],
)
def test_what_is_no_preview_is_refused_and_nothing_is_stored(folder, rows, previews, message):
    with Collection(folder) as collection:
        with pytest.raises(ValueError, match=message):
            collection.add(rows[:2], previews=previews)
        assert (len(collection), collection.preview(0)) == (60, None)


def test_a_reader_sees_the_first_preview_of_a_collection(folder, pictures, rows):
    with Collection(folder) as collection, Collection(folder, read_only=True) as reader:
        assert reader.preview(0) is None
        collection.add(rows[:1], previews=pictures[:1])
        assert reader.preview(60).content == pictures[0]


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("UPDATE previews SET content = CAST(content || x'00' AS BLOB) WHERE id = 1", "does not match its checksum"),
        ("DELETE FROM previews WHERE id = 1", "2 previews where 3"),
        ("UPDATE previews SET id = 9 WHERE id = 1", "item 9"),
        ("DELETE FROM previews", "0 previews where 3"),
    ],
)
def test_damaged_previews_are_found(texts, statement, message):
    with sqlite3.connect(texts / "items.sqlite") as connection:
        connection.execute(statement)
    with Collection(texts) as collection, pytest.raises(CollectionFormatError, match=message):
        collection.verify()


def test_rows_are_what_an_embedder_takes_like_texts_and_pictures(tmp_path):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(40, 6)) * [1, 100, 1, 1, 1, 1]
    embedder = Embedder("rows", [Scale(), Reduce(3)])
    vectors = embedder.fit_embed(rows)
    assert (embedder.takes, embedder.dimension) == (("rows",), 3)
    with Collection.create(tmp_path / "rows", LSHash(32, random_state=0).fit(vectors), embedder=embedder) as made:
        made.add(made.embed(rows))
    with Collection(tmp_path / "rows") as again:
        assert (again.kind, again.takes) == ("rows", ("rows",))
        assert np.array_equal(again.embed(rows), vectors)
        assert again.search(again.embed(rows[7:8]), k=1)[0][0].id == 7
        with pytest.raises(ValueError, match="6 features"):
            again.embed(rows[:, :4])


def test_a_function_of_two_kinds_gets_each_as_it_is():
    def of_texts_and_rows(items):
        return np.array([[len(item), 1.0 if isinstance(item, str) else 0.0] for item in items])

    embedder = Embedder(["texts", "rows"], [of_texts_and_rows])
    assert embedder.embed(["four", np.zeros(3)]).tolist() == [[4, 1], [3, 0]]
    only_rows = Embedder("rows", [lambda rows: np.asarray(rows)[:, :2]])
    assert only_rows.embed(np.arange(6.0).reshape(2, 3)).tolist() == [[0, 1], [3, 4]]
    with pytest.raises(ValueError, match="empty"):
        embedder.embed(["", np.zeros(3)])
