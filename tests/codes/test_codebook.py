import copy

import numpy as np
import pytest

import starshl
from starshl import Codebook
from starshl.codes import minimum_distance, separated_codewords
from starshl.exceptions import BundleFormatError
from starshl.hashers.baselines import LSHash


@pytest.fixture
def animals():
    return Codebook.make(["cat", "dog", "bird"], n_bits=16, n_reserved=5, random_state=0)


def test_make_gives_separated_words(animals):
    expected = separated_codewords(8, 16, np.random.RandomState(0))
    np.testing.assert_array_equal(animals.words, expected)
    assert minimum_distance(animals.words) == 8
    assert (animals.n_bits, animals.n_reserved) == (16, 5)


def test_assigning_a_reserved_word_keeps_the_identity_and_every_word(animals):
    larger = animals
    for label in ("cow", "fish", "rhinoceros"):
        larger = larger.assign(label)
    assert larger.space_id == animals.space_id
    assert larger.classes.tolist() == ["cat", "dog", "bird", "cow", "fish", "rhinoceros"]
    np.testing.assert_array_equal(larger.words, animals.words)
    np.testing.assert_array_equal(larger.word_of(["rhinoceros", "cat"]), animals.words[[5, 0]])
    assert animals.classes.tolist() == ["cat", "dog", "bird"]


def test_renaming_a_class_keeps_the_identity_and_every_word(animals, tmp_path):
    renamed = animals.rename("dog", "hound").assign("dog")
    assert renamed.classes.tolist() == ["cat", "hound", "bird", "dog"]
    np.testing.assert_array_equal(renamed.word_of(["hound", "dog"]), animals.words[[1, 3]])
    renamed.save(tmp_path / "book")
    assert Codebook.load(tmp_path / "book").space_id == animals.space_id
    assert renamed.resized(12).space_id == animals.resized(12).space_id


def test_renaming_to_a_name_that_is_longer_than_all_others_keeps_it_whole():
    assert Codebook.make([3, 5], 4, random_state=0).rename(5, 70_000).classes.tolist() == [3, 70_000]
    assert Codebook.make(["a", "b"], 4, random_state=0).rename("a", "long name").classes.tolist() == ["long name", "b"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [("cow", "pig", "no class 'cow'"), ("cat", "dog", "'dog' exists already"), ("cat", 7, "another type")],
)
def test_a_name_that_cannot_be_given_is_refused(animals, old, new, message):
    with pytest.raises(ValueError, match=message):
        animals.rename(old, new)


def test_identity_depends_on_words_order_of_classes_and_reserve():
    words = separated_codewords(4, 8, np.random.RandomState(0))
    ids = {
        Codebook(words, [0, 1, 2, 3]).space_id,
        Codebook(words, [1, 0, 2, 3]).space_id,
        Codebook(words, [0, 1, 2]).space_id,
        Codebook(words[:3], [0, 1, 2]).space_id,
        Codebook(-words, [0, 1, 2, 3]).space_id,
        Codebook(words, ["0", "1", "2", "3"]).space_id,
        Codebook(words, [0, 1, 2, 3], fit_digest="a").space_id,
        Codebook(words, [0, 1, 2, 3], fit_digest="b").space_id,
    }
    assert len(ids) == 8


@pytest.mark.parametrize("classes", [np.array([3, 7], np.int8), np.array([3.0, 7.0]), np.array([3, 7], object)])
def test_identity_does_not_depend_on_how_numbers_are_held(classes):
    words = np.array([[1, 1, -1], [-1, 1, 1]])
    assert Codebook(words, classes).space_id == Codebook(words, [3, 7]).space_id


def test_numbered_words_are_binary_numbers_and_leave_room_for_the_reserve():
    codebook = Codebook.numbered(["a", "b", "c"], n_reserved=2)
    assert codebook.words.tolist() == [[-1, -1, -1], [1, -1, -1], [-1, 1, -1], [1, 1, -1], [-1, -1, 1]]
    assert Codebook.numbered(["a", "b", "c"]).n_bits == 2
    assert Codebook.numbered(["a"]).n_bits == 1


def test_codes_of_labels_carry_the_identity(animals):
    codes = animals.codes_of(["dog", "dog", "cat"])
    assert codes.space_id == animals.space_id
    np.testing.assert_array_equal(codes.to_signs(), animals.words[[1, 1, 0]])


def test_positions_are_negative_where_a_label_is_missing_or_unknown(animals):
    assert animals.positions(["dog", "", "cow"]).tolist() == [1, -1, -1]


@pytest.mark.parametrize("classes", [["cat", "dög"], [3, 5], np.array(["x", "long text"], object), [2.0, 4.0]])
def test_saved_codebook_comes_back_with_its_identity(tmp_path, classes):
    new_class = "new" if isinstance(np.asarray(classes).tolist()[0], str) else 9
    codebook = Codebook.make(classes, 12, n_reserved=3, random_state=1).assign(new_class)
    codebook.save(tmp_path / "book")
    again = Codebook.load(tmp_path / "book")
    assert again == codebook
    assert again.space_id == codebook.space_id
    assert again.assign("last" if new_class == "new" else 11).space_id == codebook.space_id


def test_codebook_cannot_be_changed(animals):
    with pytest.raises(ValueError, match="read-only"):
        animals.words[0, 0] = 1
    with pytest.raises(AttributeError):
        animals.classes = np.array(["a"])
    assert copy.deepcopy(animals) is animals


def test_full_codebook_refuses_another_class():
    with pytest.raises(ValueError, match=r"All 2 words.*n_reserved"):
        Codebook.make([0, 1], 4, random_state=0).assign(2)


def test_label_of_another_type_is_refused(animals):
    with pytest.raises(ValueError, match="another type than the classes"):
        animals.assign(7)


def test_class_that_has_a_word_is_refused(animals):
    with pytest.raises(ValueError, match="'dog' has a word already"):
        animals.assign("dog")


def test_unknown_label_is_refused(animals):
    with pytest.raises(ValueError, match="'cow' has no word"):
        animals.word_of(["cat", "cow"])


@pytest.mark.parametrize(
    ("words", "classes", "message"),
    [
        ([[1, 0]], [1], "other than -1 and"),
        ([[1, 1]], [1, 2], "2 classes and 1 word"),
        ([[1, 1], [1, -1]], [1, 1], "more than once"),
        ([[1, 1], [1, -1]], [1, -1], "without a label"),
        ([1, 1], [1], "words has shape"),
        ([[1], [1, 1]], [1], "rows of different lengths"),
        ([[1, 1]], 1, "classes is 1"),
    ],
)
def test_wrong_words_and_classes_are_refused(words, classes, message):
    with pytest.raises(ValueError, match=message):
        Codebook(words, classes)


def test_a_list_where_one_label_belongs_is_refused_and_the_other_way_round(animals):
    with pytest.raises(ValueError, match=r"label is \['cow', 'pig'\]"):
        animals.assign(["cow", "pig"])
    with pytest.raises(ValueError, match=r"labels has shape \(\)"):
        animals.word_of("cat")


def test_a_fit_is_not_told_to_assign_more_words_than_there_are(animals):
    unknown = np.array([f"new {number}" for number in range(animals.n_reserved + 1)])
    with pytest.raises(ValueError, match="which is not enough"):
        animals.words_for(unknown, animals.n_bits)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="There is no codebook at"):
        Codebook.load(tmp_path / "absent")


def test_too_short_words_for_the_reserve_are_refused():
    with pytest.raises(ValueError, match="Use at least 3 bits"):
        Codebook.make([0, 1, 2], 2, n_reserved=2)


def test_model_file_and_codebook_file_are_not_mixed_up(tmp_path, animals):
    animals.save(tmp_path / "book")
    with pytest.raises(BundleFormatError, match=r"holds a codebook.*Codebook\.load"):
        starshl.load(tmp_path / "book")
    hasher = LSHash(4, random_state=0).fit(np.eye(5))
    hasher.save(tmp_path / "model")
    with pytest.raises(BundleFormatError, match="does not hold a codebook"):
        Codebook.load(tmp_path / "model")
