"""Items that are there already and arrive with another label: nothing is stored until somebody says which is right."""

import numpy as np
import pytest
from PIL import Image

from starshl import Collection
from starshl.collection import add_pictures, add_texts, import_pictures, import_texts
from starshl.exceptions import InputError

WORDS = ["hot soup", "fresh bread", "old cars", "fast engines"]
TEXTS = [f"{WORDS[number % 4]} {number}" for number in range(24)]
LABELS = ["food", "food", "cars", "cars"] * 6


@pytest.fixture
def news(tmp_path):
    import_texts(TEXTS, tmp_path / "news", LABELS)
    with Collection(tmp_path / "news") as made:
        yield made


def labels_of(collection):
    return [item.label for item in collection.get(collection.ids)]


def test_another_label_is_refused_with_both_labels_and_nothing_is_stored(news):
    version = news.version
    with pytest.raises(InputError, match=r"1 item is .*another label.*1 is 'food' there and 'cars' here"):
        add_texts(news, ["new soup", TEXTS[1], TEXTS[2]], ["food", "cars", "cars"])
    assert (news.version, labels_of(news)) == (version, LABELS)


def test_new_labels_are_taken_where_that_is_asked_for(news):
    news.set_labels([2], None)
    added = add_texts(news, ["new soup", *TEXTS[:4]], ["food", "food", "cars", "cars", None], update_labels=True)
    assert (added.n_stored, added.n_present, added.n_relabeled) == (1, 4, 2)
    assert labels_of(news)[:4] == ["food", "cars", "cars", "cars"]
    assert news.verify() == 25


def test_stored_labels_are_kept_where_that_is_asked_for(news):
    added = add_texts(news, ["new soup", *TEXTS[:2]], ["food", "cars", "cars"], keep_labels=True)
    assert (added.n_stored, added.n_present, added.n_relabeled) == (1, 2, 0)
    assert labels_of(news) == [*LABELS, "food"]


def test_rows_without_a_label_change_none(news):
    assert add_texts(news, TEXTS).n_present == 24
    assert add_texts(news, TEXTS, ["", None, *LABELS[2:]], update_labels=True).n_relabeled == 0
    assert labels_of(news) == LABELS


def test_row_i_gets_the_id_that_follows_the_highest_by_i(news):
    add_texts(news, [TEXTS[0], "new soup", TEXTS[3], TEXTS[5], "new cars"])
    assert news.ids[24:].tolist() == [25, 28]
    add_texts(news, ["more soup", "new cars"])
    assert news.ids[24:].tolist() == [25, 28, 29]
    add_texts(news, TEXTS)
    assert len(news) == 27


def test_equal_items_with_different_labels_can_be_added_again_and_corrected(news):
    add_texts(news, ["tea", "tea"], ["food", "cars"], allow_duplicates=True)
    for labels in (["food", "cars"], ["cars", "food"]):
        assert add_texts(news, ["tea", "tea"], labels).n_present == 2
    assert add_texts(news, ["tea"], ["cars"]).n_present == 1
    with pytest.raises(InputError, match="25 is 'cars' there and 'food' here"):
        add_texts(news, ["tea", "tea"], ["food", "food"])
    add_texts(news, ["tea", "tea"], ["food", "food"], update_labels=True)
    assert labels_of(news)[24:] == ["food", "food"]


def test_one_item_cannot_take_two_labels(news):
    version = news.version
    for labels in (["cars", "food"], ["cars", "tools"]):
        with pytest.raises(InputError, match="different labels"):
            add_texts(news, ["new soup", TEXTS[0], TEXTS[0]], ["food", *labels], update_labels=True)
    assert news.version == version
    add_texts(news, [TEXTS[0], TEXTS[0]], ["cars", "cars"], update_labels=True)
    assert labels_of(news)[0] == "cars"


def test_labels_of_another_type_are_refused_before_anything_is_stored(news):
    with pytest.raises(ValueError, match="labels are numbers"):
        add_texts(news, ["new soup", TEXTS[0]], [None, 3], update_labels=True)
    assert len(news) == 24


@pytest.mark.parametrize(
    "wrong",
    [
        {"update_labels": True, "keep_labels": True},
        {"update_labels": True, "allow_duplicates": True},
        {"keep_labels": True, "ids": [70]},
    ],
)
def test_options_that_contradict_each_other_are_refused(news, wrong):
    with pytest.raises(InputError, match="Leave one of them out"):
        add_texts(news, TEXTS[:1], ["cars"], **wrong)


def test_pictures_follow_the_same_rules(tmp_path):
    for number in range(6):
        path = tmp_path / "photos" / "AB"[number % 2] / "inner" / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (16, 16), (40 * number, 90, 10)).save(path)
    import_pictures(tmp_path / "photos", tmp_path / "album", labels_from="outer")
    Image.new("RGB", (16, 16), (1, 2, 200)).save(tmp_path / "photos" / "B" / "inner" / "9.png")
    with Collection(tmp_path / "album") as album:
        album.set_labels([1], ["C"])
        with pytest.raises(InputError, match="1 is 'C' there and 'A' here"):
            add_pictures(album, [tmp_path / "photos"], labels_from="outer")
        assert len(album) == 6
        added = add_pictures(album, [tmp_path / "photos"], labels_from="outer", keep_labels=True)
        assert (added.n_stored, album.ids[-1], album.get([1])[0].label) == (1, 12, "C")
        assert add_pictures(album, [tmp_path / "photos"], labels_from="outer", update_labels=True).n_relabeled == 1
        assert labels_of(album) == ["A", "A", "A", "B", "B", "B", "B"]


def test_items_without_kept_vectors_that_look_the_same_are_asked_about_too(tmp_path):
    from starshl.collection.importing.building import add_items
    from starshl.hashers.baselines import LSHash

    X = np.random.default_rng(0).standard_normal((10, 4))
    names = [f"{number}.txt" for number in range(10)]
    with Collection.create(tmp_path / "made", LSHash(16, random_state=0).fit(X)) as made:
        made.add(X, labels=["a"] * 10, references=names)
        with pytest.raises(InputError, match="another label"):
            add_items(made, X, labels=["b"] + ["a"] * 9, references=names)
        assert len(made) == 10
        assert add_items(made, X, labels=["b"] * 10, references=names, update_labels=True).n_relabeled == 10
        assert (len(made), made.label_counts()) == (10, {"b": 10})
