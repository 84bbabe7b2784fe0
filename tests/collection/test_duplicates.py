"""Items that are stored already are found by what is stored of them."""

import io

import numpy as np
import pytest
from PIL import Image

from starshl import Collection
from starshl.hashers.baselines import LSHash

X = np.random.default_rng(0).standard_normal((40, 6))
NAMES = [{"name": f"n{number}"} for number in range(40)]


@pytest.fixture
def make(tmp_path):
    """A function that makes a collection of the first 30 rows."""

    def call(**about):
        hasher = LSHash(16, random_state=0).fit(X)
        collection = Collection.create(tmp_path / "made", hasher, vectors=about.pop("vectors", None))
        collection.add(X[:30], **{name: column[:30] for name, column in about.items()})
        return collection

    return call


def preview(color):
    file = io.BytesIO()
    Image.new("RGB", (8, 8), color).save(file, "PNG")
    return file.getvalue()


@pytest.mark.parametrize("vectors", ["float16", "int8"])
def test_kept_vectors_are_compared_even_if_nothing_else_is_known(make, vectors):
    with make(vectors=vectors) as made:
        assert made.find_duplicates(X[25:35]) == [*range(25, 30), *[None] * 5]
        made.remove([26])
        made.set_labels([27], ["red"])
        assert made.find_duplicates(X[25:30]) == [25, None, 27, 28, 29]
        made.compact()
        assert made.find_duplicates(X[25:30]) == [25, None, 27, 28, 29]


@pytest.mark.parametrize("vectors", ["float16", None])
def test_items_with_other_metadata_or_references_are_others(make, vectors):
    with make(vectors=vectors, metadata=NAMES, references=["a"] * 40) as made:
        assert made.find_duplicates(X[:2], metadata=NAMES[:2], references=["a", "b"]) == [0, None]
        assert made.find_duplicates(X[:2], metadata=[{"name": "n0"}, {"name": "other"}], references=["a"] * 2) == [
            0,
            None,
        ]
        assert made.find_duplicates(X[:2], metadata=NAMES[:2]) == [None, None]
        assert made.find_duplicates(X[1:2], metadata=NAMES[:1], references=["a"]) == [None]


def test_codes_alone_tell_nothing(make):
    with make() as made:
        assert made.find_duplicates(X[:30]) == [None] * 30


def test_of_equal_items_the_lowest_id_is_returned(make):
    with make(vectors="float16") as made:
        made.add(X[:3])
        assert made.find_duplicates(X[:3]) == [0, 1, 2]


def test_pictures_are_the_same_if_reference_and_preview_are(make):
    shown = [preview("red")] * 40
    with make(vectors="float16", references=[f"{number}.png" for number in range(40)], previews=shown) as made:
        made.update([1], [{"note": "seen"}])
        found = made.find_duplicates(X[:3], references=["0.png", "1.png", None], previews=shown[:3])
        assert found == [0, 1, None]
        assert made.find_duplicates(X[:1], references=["0.png"], previews=[preview("blue")]) == [None]
