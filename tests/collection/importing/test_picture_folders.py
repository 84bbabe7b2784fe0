"""Nested folders of pictures: which folder is the label, which are splits, and what is said about it."""

import os
import socket
import sys

import pytest
from PIL import Image

from starshl import Collection
from starshl.collection import add_pictures, import_pictures
from starshl.data.features import ReadPictures
from starshl.exceptions import PictureError

NESTED = ["Fruit/Apple/Golden/1.png", "Fruit/Apple/Gala/1.png", "Fruit/Banana/1.png", "Milk/1.png", "top.png"]


def draw(folder, names):
    for number, name in enumerate(names):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (16, 16), (30 * number % 256, 90, 7 * number % 256)).save(folder / name)
    return folder


def items_by_path(folder):
    with Collection(folder, read_only=True) as made:
        return {item.reference: item for item in made.get(made.ids)}


@pytest.mark.parametrize(
    ("labels_from", "expected", "said"),
    [
        ("inner", ["Golden", "Gala", "Banana", "Milk", None], "4 classes from the innermost of 3 levels"),
        ("outer", ["Fruit", "Fruit", "Fruit", "Milk", None], "2 classes from the outermost of 3 levels"),
        (
            "path",
            ["Fruit/Apple/Golden", "Fruit/Apple/Gala", "Fruit/Banana", "Milk", None],
            "4 classes from the whole path of 3 levels",
        ),
        (1, ["Fruit", "Fruit", "Fruit", "Milk", None], "2 classes from level 1 of 3 levels"),
        (2, ["Apple", "Apple", "Banana", "Milk", None], "3 classes from level 2 of 3 levels"),
        (3, ["Golden", "Gala", "Banana", "Milk", None], "4 classes from level 3 of 3 levels"),
    ],
)
def test_the_chosen_folder_is_the_label(tmp_path, labels_from, expected, said):
    draw(tmp_path / "food", NESTED)
    summary = import_pictures(tmp_path / "food", tmp_path / "album", labels_from=labels_from)
    assert said in summary.folders
    found = items_by_path(tmp_path / "album")
    assert [found[name].label for name in NESTED] == expected


def test_the_innermost_folder_is_the_label_by_default_and_nothing_is_said_of_one_level(tmp_path):
    draw(tmp_path / "food", NESTED)
    summary = import_pictures(tmp_path / "food", tmp_path / "album")
    assert (summary.classes, summary.n_folder_levels) == (["Banana", "Gala", "Golden", "Milk"], 3)
    draw(tmp_path / "flat", ["cat/1.png", "dog/2.png"])
    assert import_pictures(tmp_path / "flat", tmp_path / "pets").folders == ""


def test_splits_are_no_classes_and_can_be_filtered_by(tmp_path):
    names = ["train/cat/1.png", "TEST/cat/2.png", "dev/4.png", "dog/5.png"]
    draw(tmp_path / "pets", names)
    summary = import_pictures(tmp_path / "pets", tmp_path / "album", labels_from="outer")
    assert summary.classes == ["cat", "dog"]
    assert "dev, test, train are splits" in summary.folders
    assert "level" not in summary.folders
    found = items_by_path(tmp_path / "album")
    assert [found[name].label for name in names] == ["cat", "cat", None, "dog"]
    assert [found[name].metadata.get("split") for name in names] == ["train", "test", "dev", None]
    with Collection(tmp_path / "album", read_only=True) as made:
        assert made.value_counts("split") == {"dev": 1, "test": 1, "train": 1}


@pytest.mark.parametrize("splits", [("training", "testing"), ("Training", "validation"), ("train", "testing")])
def test_splits_may_have_their_long_names(tmp_path, splits):
    names = [f"{splits[0]}/cat/1.png", f"{splits[1]}/dog/2.png"]
    summary = import_pictures(draw(tmp_path / "pets", names), tmp_path / "album", labels_from="outer")
    assert summary.classes == ["cat", "dog"]
    found = items_by_path(tmp_path / "album")
    assert [found[name].metadata["split"] for name in names] == [split.lower() for split in splits]


def test_splits_may_be_inside_of_classes_and_one_of_them_may_be_alone_there(tmp_path):
    names = ["cat/train/1.png", "cat/Val/2.png", "dog/train/3.png"]
    summary = import_pictures(draw(tmp_path / "pets", names), tmp_path / "album")
    assert (summary.classes, summary.n_folder_levels) == (["cat", "dog"], 1)
    found = items_by_path(tmp_path / "album")
    assert [found[name].metadata["split"] for name in names] == ["train", "val", "train"]


@pytest.mark.parametrize(
    ("names", "classes"),
    [
        (["train/1.png", "bus/2.png", "car/3.png"], ["bus", "car", "train"]),
        (["training/1.png", "running/2.png"], ["running", "training"]),
        (["medicine/test/1.png", "vehicles/train/2.png", "vehicles/bus/3.png"], ["bus", "test", "train"]),
    ],
)
def test_a_folder_with_the_name_of_a_split_is_a_class_where_no_other_split_is_beside_it(tmp_path, names, classes):
    summary = import_pictures(draw(tmp_path / "things", names), tmp_path / "album")
    assert summary.classes == classes
    assert "split" not in summary.folders


def test_folders_of_one_name_in_several_places_are_one_class_and_that_is_said(tmp_path):
    draw(tmp_path / "food", ["Apple/Red/1.png", "Pepper/Red/2.png", "Pepper/Green/3.png"])
    summary = import_pictures(tmp_path / "food", tmp_path / "album")
    assert summary.classes == ["Green", "Red"]
    assert "1 class of them has several folders of the same name (Red)" in summary.folders


def test_added_folders_follow_the_same_rule(tmp_path):
    draw(tmp_path / "food", NESTED)
    import_pictures(tmp_path / "food", tmp_path / "album", labels_from=2)
    draw(tmp_path / "more", ["test/Fruit/Apple/Gala/9.png", "train/Milk/9.png"])
    with Collection(tmp_path / "album") as made:
        added = add_pictures(made, [tmp_path / "more"])
        assert "2 classes from level 2 of 3 levels" in added.folders
        assert [(item.label, item.metadata["split"]) for item in made.get([5, 6])] == [
            ("Apple", "test"),
            ("Milk", "train"),
        ]


def test_added_folders_follow_another_rule_only_if_that_is_asked_for(tmp_path):
    import_pictures(draw(tmp_path / "food", NESTED), tmp_path / "album", labels_from="outer")
    more = draw(tmp_path / "more", ["Fruit/Kiwi/9.png"])
    with Collection(tmp_path / "album") as made:
        add_pictures(made, [more], labels_from="inner", allow_duplicates=True)
        add_pictures(made, [more], allow_duplicates=True)
        assert [item.label for item in made.get([5, 6])] == ["Kiwi", "Fruit"]


def test_a_remembered_level_may_be_deeper_than_folders_that_are_added(tmp_path):
    import_pictures(draw(tmp_path / "food", NESTED), tmp_path / "album", labels_from=3)
    with Collection(tmp_path / "album") as made:
        add_pictures(made, [draw(tmp_path / "more", ["Fruit/Kiwi/9.png"])])
        assert made.get([5])[0].label == "Kiwi"


def test_a_split_that_is_added_alone_is_still_a_split(tmp_path):
    import_pictures(draw(tmp_path / "pets", ["train/cat/1.png", "test/dog/2.png"]), tmp_path / "album")
    with Collection(tmp_path / "album") as made:
        add_pictures(made, [draw(tmp_path / "more", ["val/cat/9.png"])], labels_from="outer")
        assert (made.get([2])[0].label, made.get([2])[0].metadata) == ("cat", {"split": "val"})


def test_a_level_below_all_folders_is_refused_with_the_number_of_levels(tmp_path):
    draw(tmp_path / "food", NESTED)
    with pytest.raises(ValueError, match="labels_from is 4, and there are 3 levels"):
        import_pictures(tmp_path / "food", tmp_path / "album", labels_from=4)
    assert not (tmp_path / "album").exists()
    import_pictures(tmp_path / "food", tmp_path / "album")
    with Collection(tmp_path / "album") as made:
        with pytest.raises(ValueError, match="labels_from is 7, and there are 3 levels"):
            add_pictures(made, [tmp_path / "food"], labels_from=7)
        with pytest.raises(ValueError, match="no levels"):
            add_pictures(made, [tmp_path / "food" / "top.png"], labels_from=1)


@pytest.mark.parametrize("labels_from", ["innermost", 0, -1, True, None, 1.5])
def test_what_names_no_folder_is_refused_before_anything_is_read(tmp_path, labels_from):
    with pytest.raises(ValueError, match="labels_from is"):
        import_pictures(tmp_path / "absent", tmp_path / "album", labels_from=labels_from)


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pipes with names")
def test_pipes_sockets_and_devices_are_skipped_and_listed(tmp_path, monkeypatch):
    folder = draw(tmp_path / "photos", ["1.png", "2.png", "3.png"])
    os.mkfifo(folder / "pipe.png")
    (folder / "zero.png").symlink_to("/dev/zero")
    monkeypatch.chdir(folder)  # the path of a socket must be short
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket.jpg")
        summary = import_pictures(folder, tmp_path / "album")
    assert summary.n_items == 3
    assert [each.path for each in summary.skipped] == ["pipe.png", "socket.jpg", "zero.png"]
    assert all("a pipe, a socket or a device" in each.reason for each in summary.skipped)
    with pytest.raises(PictureError, match="a pipe"):
        ReadPictures(16).fit().transform([folder / "pipe.png"])
