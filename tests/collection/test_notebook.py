"""What a notebook shows of a collection and of what a search found."""

import pickle

import numpy as np
import pytest

from starshl import Collection
from starshl.hashers.baselines import LSHash

PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(range(20))


@pytest.fixture
def album(tmp_path):
    rows = np.random.default_rng(0).standard_normal((30, 4))
    with Collection.create(tmp_path / "album", LSHash(8, random_state=0).fit(rows), vectors="float16") as collection:
        collection.add(
            rows,
            labels=["<round>" if item % 2 else None for item in range(30)],
            references=[f"folder/{item:02}.png" for item in range(30)],
            previews=[PICTURE] * 30,
        )
        yield collection


def test_what_a_search_found_is_shown_as_pictures_with_names_and_labels(album):
    found = album.search(items=[1], k=5)
    html = found._repr_html_()
    assert html.count("<img ") == 5
    assert "01.png" in html
    assert "&lt;round&gt;" in html
    assert "<round>" not in html
    assert "Query" not in html
    assert "<b>Query 1</b>" in album.search(items=[1, 2], k=5)._repr_html_()
    assert album.search(items=list(range(30)), k=10)._repr_html_().count("<img ") == 60


def test_what_was_found_is_an_ordinary_list_that_can_be_sent_to_another_process(album):
    found = album.search(items=[1, 2], k=3)
    assert found == list(found)
    again = pickle.loads(pickle.dumps(found))
    assert type(again) is list
    assert again == found


def test_a_collection_is_shown_by_its_first_items_and_after_it_is_closed_by_its_name(album):
    html = album._repr_html_()
    assert html.count("<img ") == 12
    assert "30 items" in html
    found = album.search(items=[1])
    album.close()
    assert album._repr_html_() is None
    assert found._repr_html_() is None
    assert "closed" in repr(album)
