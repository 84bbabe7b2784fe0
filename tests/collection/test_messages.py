"""What a collection says of wrong questions and of files that fail: what happened, what is allowed, and what to do."""

from dataclasses import replace

import numpy as np
import pytest

from starshl import Collection, binarize
from starshl.collection import import_pictures
from starshl.collection.options import FilterKeywords, SearchKeywords
from starshl.exceptions import CollectionError, CollectionFormatError
from starshl.hashers.baselines import LSHash

from .kept_vectors import vector_file

OPTIONS = ", ".join(name for name in SearchKeywords.__annotations__ if name not in FilterKeywords.__annotations__)


@pytest.mark.parametrize(
    ("ask", "sentence"),
    [
        (lambda c, X: c.search(X, shop="a"), f"'shop' is not an option here; options are .*{OPTIONS}"),
        (
            lambda c, X: c.search_radius(X, 3, rescore=True),
            r"'rescore' is not an option here; options are where, among, labels, guesses\.",
        ),
        (
            lambda c, X: c.search(X, where={"lable": 1}),
            r"'lable', but no item has .*Did you mean 'label'.*label, name, price",
        ),
        (lambda c, X: c.search(X, metric="cosine"), r"metric is 'cosine', and this collection keeps no vectors"),
        (lambda c, X: c.search(X, oversample=5), r"oversample is 5, and this collection keeps no vectors"),
        (lambda c, X: c.search(X, min_probability=2), r"min_probability is 2; it must be from 0 to 1\."),
        (
            lambda c, X: c.search(X, min_probability=0.5),
            r"This LSHash compares codes by a distance that is no probability\. Use .*such as StarRidge",
        ),
        (
            lambda c, X: c.search_radius(X, None),
            r"radius is None; without min_probability, there must be a limit\. Give a distance\.",
        ),
        (lambda c, X: c.search(X, rescore=True), r"keeps no vectors\. Make one that does: Collection\.create"),
        (lambda c, X: c.novelty(X), r"This LSHash cannot tell .* StarRidge, StarSHL and HybridHasher can"),
        (
            lambda c, X: c.add(codes=replace(c.hasher.encode(X), space_id="0" * 16)),
            r"of space \w+; the collection holds codes of space",
        ),
    ],
)
def test_wrong_questions_are_answered_with_the_right_ones(folder, rows, ask, sentence):
    with Collection(folder) as collection, pytest.raises((ValueError, TypeError), match=sentence):
        ask(collection, rows[:1])


def test_fields_that_can_be_counted_are_named(tmp_path, hasher):
    collection = Collection.create(tmp_path / "items", hasher, fields={"shop": str, "new": bool})
    with collection, pytest.raises(ValueError, match=r"'size' is not.*new, shop"):
        collection.value_counts("size")


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (OSError(28, "No space left on device"), r"No space left on device.*Free some space.*Nothing of this change"),
        (OSError(5, "Input/output error"), r"Input/output error.*Nothing of this change"),
    ],
)
def test_a_disk_that_fails_says_that_nothing_was_stored(kept, rows, monkeypatch, error, sentence):
    def fail(*arguments):
        raise error

    with Collection(kept) as collection:
        monkeypatch.setattr("os.pwrite", fail)
        with pytest.raises(CollectionError, match=sentence):
            collection.add(rows)


def test_a_change_that_is_stored_but_not_acknowledged_says_so(folder, rows, monkeypatch):
    def fail(*arguments):
        raise OSError(5, "Input/output error")

    with Collection(folder) as collection:
        monkeypatch.setattr("os.pwrite", fail)
        with pytest.raises(CollectionError, match=r"The change is stored, but .*acknowledged.*Input/output error"):
            collection.add(rows)


def test_lost_changes_are_counted(folder, rows, tmp_path):
    before = (folder / "items.sqlite").read_bytes()
    with Collection(folder) as collection:
        collection.add(rows)
        collection.remove([3])
    (folder / "items.sqlite").write_bytes(before)
    with pytest.raises(
        CollectionFormatError, match=r"3 were stored, .* ends with number 1\. .* whole folder from a copy"
    ):
        Collection(folder)


def test_a_damaged_vector_is_named_by_its_item(kept):
    path = vector_file(kept)
    content = bytearray(path.read_bytes())
    content[7 * len(content) // 60 + 9] ^= 4
    path.write_bytes(content)
    checksum = "vector of item 7 does not match its checksum"
    with Collection(kept) as collection, pytest.raises(CollectionFormatError, match=checksum):
        collection.vectors([7])
    path.write_bytes(content[:-1])
    n_bytes = len(content)
    with pytest.raises(CollectionFormatError, match=f"has {n_bytes - 1} bytes, and its vectors need {n_bytes}"):
        Collection(kept)


def test_a_folder_without_pictures_is_told_what_they_are(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "notes.txt").write_text("no picture")
    with pytest.raises(ValueError, match=r"no picture in .*empty.*1 of its files.*\.jpg, \.jpeg, \.png, .*, \.tiff\."):
        import_pictures(tmp_path / "empty", tmp_path / "collection")
    (tmp_path / "empty" / "one.png").write_bytes(b"x")
    with pytest.raises(ValueError, match=r"None of 1 picture.*'one\.png' is not"):
        import_pictures(tmp_path / "empty", tmp_path / "collection")


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"ids": np.zeros(60, int)}, "more than once"),
        ({"metadata": [{"p": float("nan")}] * 60}, "cannot be stored"),
        ({"metadata": [{"p": object()}] * 60}, "cannot be stored"),
        ({"references": [1] * 60}, "references must hold"),
    ],
)
def test_items_that_cannot_be_stored_are_told_why(rows, tmp_path, wrong, sentence):
    with pytest.raises(ValueError, match=sentence):
        binarize(rows, tmp_path / "new", hasher=LSHash(16), **wrong)
