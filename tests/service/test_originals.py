"""Picture files that the viewer shows: those that a collection was made from, and no other file of the machine."""

import io
import json
import os
import shutil

import pytest
from PIL import Image

from starshl import Collection
from starshl.collection import add_pictures, import_pictures

from .asking import page


@pytest.fixture
def album(tmp_path):
    """A folder of large pictures of several kinds in subfolders, and the folder of a collection of them."""
    folder = tmp_path / "photos" / "red"
    folder.mkdir(parents=True)
    for number, ending in enumerate(("jpg", "png", "webp", "gif", "bmp", "tif")):
        Image.new("RGB", (600, 400), (40 * number, 0, 0)).save(folder / f"{number}.{ending}")
    import_pictures(tmp_path / "photos", tmp_path / "album")
    return tmp_path / "photos", tmp_path / "album"


def original(ask, item):
    return ask("GET", f"/explore/album/originals/{item}", root="")


def kinds(answer):
    return answer.headers["content-type"], Image.open(io.BytesIO(answer.content)).size


def test_the_viewer_shows_the_picture_file_itself_with_its_path(running, album):
    ask = running(album[1])
    shown = page(ask, "/explore/album/items/0").text
    assert "/explore/album/originals/0" in shown
    assert "red/0.jpg" in shown
    assert original(ask, 0).content == (album[0] / "red" / "0.jpg").read_bytes()


def test_files_are_sent_as_what_they_are_or_as_what_browsers_show(running, album):
    ask = running(album[1])
    sent = [kinds(original(ask, item)) for item in range(6)]
    assert [kind for kind, _ in sent] == [
        "image/jpeg",
        "image/png",
        "image/webp",
        "image/gif",
        "image/webp",
        "image/webp",
    ]
    assert {size for _, size in sent} == {(600, 400)}
    assert "default-src 'none'" in original(ask, 0).headers["content-security-policy"]


def test_a_file_that_is_gone_leaves_the_small_copy(running, album):
    ask = running(album[1])
    (album[0] / "red" / "0.jpg").unlink()
    shown = page(ask, "/explore/album/items/0").text
    assert "small copy" in shown
    assert "/explore/album/originals/" not in shown
    assert original(ask, 0).status_code == 404


def test_pictures_that_are_added_are_found_in_the_folder_that_they_came_from(running, album, tmp_path):
    more = tmp_path / "more" / "red"
    more.mkdir(parents=True)
    Image.new("RGB", (50, 50), "blue").save(more / "0.jpg")
    Image.new("RGB", (50, 50), "green").save(tmp_path / "single.png")
    with Collection(album[1]) as collection:
        add_pictures(collection, [tmp_path / "more", tmp_path / "single.png"])
        assert collection.get([6])[0].reference == "red/0.jpg", "the same path as that of item 0"
    ask = running(album[1])
    assert original(ask, 6).content == (more / "0.jpg").read_bytes()
    assert original(ask, 0).content == (album[0] / "red" / "0.jpg").read_bytes()
    assert original(ask, 7).content == (tmp_path / "single.png").read_bytes()


@pytest.mark.parametrize(
    "reference",
    [
        "../secret.png",
        "red/../../secret.png",
        "{root}/secret.png",
        "link.png",
        "inside/secret.png",
        ".hidden.png",
        "notes.txt",
        "red",
        "",
        "pipe.png",
        "nothing.png",
        "loop.png",
        "~/x.png",
        "x" * 5000 + ".png",
    ],
)
def test_a_reference_opens_no_file_outside_of_the_folder_and_none_that_is_no_picture(
    running, album, tmp_path, reference
):
    secret = tmp_path / "secret.png"
    Image.new("RGB", (9, 9)).save(secret)
    shutil.copy(secret, album[0] / ".hidden.png")
    (album[0] / "notes.txt").write_text("words")
    (album[0] / "link.png").symlink_to(secret)
    (album[0] / "inside").symlink_to(tmp_path, target_is_directory=True)
    (album[0] / "loop.png").symlink_to(album[0] / "loop.png")
    os.mkfifo(album[0] / "pipe.png")
    ask = running(album[1])
    vector = ask("GET", "/collections/album/items/0?vectors=true").json()["vector"]
    item = {"id": 99, "vector": vector, "reference": reference.format(root=tmp_path)}
    put = ask("PUT", "/collections/album/items", json={"items": [item]})
    assert put.status_code == 200, put.text
    assert original(ask, 99).status_code == 404
    assert page(ask, "/explore/album/items/99").status_code == 200


def test_what_is_no_picture_by_its_content_is_not_sent(running, album):
    (album[0] / "red" / "0.jpg").write_text("<script>alert(1)</script>")
    answer = original(running(album[1]), 0)
    assert answer.status_code == 422
    assert "script" not in answer.text


def test_a_list_of_folders_that_cannot_be_read_is_damage(running, album):
    with Collection(album[1]) as collection:
        collection.note("folders", json.dumps({"labels_from": "inner", "split_levels": []}))
    assert original(running(album[1]), 0).status_code == 500
