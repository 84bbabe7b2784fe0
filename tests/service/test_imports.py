"""An import checks all lines before it stores the first; what goes wrong later is told with what is stored."""

import io
import json

import numpy as np
import pytest

from starshl import Collection, StarRidge
from starshl.service import Searcher
from starshl.service.http.bulk_import import read_batches

from .asking import ended

THINGS = "/collections/things"
GOOD = {"vector": [0.0] * 8, "label": "a"}


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    """So small that the bad line of these tests is in a later batch than the first ones."""
    monkeypatch.setattr("starshl.service.http.bulk_import.LINES_AT_ONCE", 2)


def imported(ask, lines, **headers):
    content = "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines)
    return ended(ask, ask("POST", f"{THINGS}/import", content=content, headers=headers))


def n_items(ask):
    return ask("GET", THINGS).json()["n_items"]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{", "Line 5 is not JSON"),
        ("[1]", "Line 5, Input should be a valid dictionary"),
        ('{"vector": [1, true]}', "Line 5, vector.1: Input should be a valid number, and true or false arrived"),
        (
            '{"vector": [1], "size": 2}',
            "Line 5, size: there is no such field; the fields here are vector, id, label, metadata, reference",
        ),
        ('{"vector": [1], "id": "x"}', "Line 5, id: Input should be a valid integer, and text arrived"),
        (
            '{"vector": [1], "metadata": 3}',
            "Line 5, metadata: Input should be a valid dictionary, and a whole number arrived",
        ),
        ('{"vector": [1], "metadata": null}', "Line 5, metadata: Input should be a valid dictionary, and null arrived"),
        ('{"text": "a"}', "Line 5 is not a vector; an import takes items with the fields vector, id, label"),
        ('{"vector": [1], "row": [1]}', "Line 5 is not a vector"),
        ('{"id": 3}', "Line 5 is not a vector"),
        ('{"vector": [1]}', "The vector in line 5 has 1 numbers"),
        ({"vector": [10**400] + [0] * 7}, "Line 5, vector.0: Input should be a valid number"),
        ({"vector": [1e101] + [0] * 7}, "Line 5 has a vector with a number above 1e+100"),
        ({**GOOD, "label": 3}, "The label in line 5 is 3, one of numbers; those of the collection are text"),
        ({**GOOD, "label": True}, "The label in line 5 is True, one of booleans"),
        ({**GOOD, "label": "a\0"}, "Line 5 has a label that cannot be stored"),
        ({**GOOD, "metadata": {"a": "\0"}}, "The metadata of line 5 contains the NUL character"),
        (
            '{"vector": [0, 0, 0, 0, 0, 0, 0, 0], "reference": "\\ud800"}',
            "Line 5, reference: the text contains half of a surrogate pair",
        ),
        ({**GOOD, "metadata": {"a": "\ud800"}}, "The metadata of line 5 contains half of a surrogate pair"),
        ({**GOOD, "id": 3}, "have an id and some have none"),
    ],
)
def test_a_bad_line_fails_an_import_before_anything_is_stored(ask, line, words):
    job = imported(ask, [GOOD] * 3 + ["", line, GOOD])
    assert job["state"] == "failed"
    assert words in job["error"]
    assert job["error"].endswith("This import has stored nothing.")
    assert n_items(ask) == 60


@pytest.mark.parametrize(
    ("ids", "words"),
    [
        ([100, 101, 102, 100], "Line 4 has the id 100, which line 1 has, too"),
        ([100, 101, 102, 10**30], "Line 4, id: Input should be less than or equal to 9223372036854775807"),
        ([100, 101, 102, 59], "Line 4 has the id 59, which is already in the collection"),
        ([100, 101, None, None], "Some of the lines before line 3 have an id, and this one lacks one"),
        ([None, None, 100, 101], "Some of the lines before line 3 lack an id, and this one has one"),
    ],
)
def test_bad_ids_fail_an_import_before_anything_is_stored(ask, ids, words):
    job = imported(ask, [{**GOOD, "id": number} for number in ids])
    assert (job["state"], words in job["error"]) == ("failed", True), job["error"]
    assert n_items(ask) == 60


def test_metadata_that_do_not_fit_declared_fields_fail_an_import_before_anything_is_stored(ask):
    assert ask("PUT", f"{THINGS}/fields", json={"fields": {"price": "int"}}).status_code == 200
    job = imported(ask, [GOOD, GOOD, {**GOOD, "metadata": {"price": "high"}}])
    assert "Line 3 has 'high'" in job["error"]
    assert n_items(ask) == 60


def test_labels_of_one_kind_can_be_imported_once_no_item_has_another(ask, rows):
    lines = [{**GOOD, "label": 3}, {**GOOD, "label": 4}, {"vector": [0] * 8, "label": "a"}]
    nothing = [{"id": number, "label": None} for number in range(60)]
    assert ask("PUT", f"{THINGS}/labels", json={"items": nothing}).status_code == 200
    mixed = imported(ask, lines)
    assert "label in line 3" in mixed["error"]
    assert n_items(ask) == 60
    assert imported(ask, lines[:2])["result"]["stored"] == 2


def test_labels_of_another_kind_than_the_classes_fail_an_import(running, tmp_path, rows):
    hasher = StarRidge(8, random_state=0).fit(rows, np.arange(60) % 3)
    Collection.create(tmp_path / "things", hasher, vectors="float16").close()
    ask = running(tmp_path / "things")
    assert "classes of the hasher" in imported(ask, [GOOD])["error"]
    assert imported(ask, [{**GOOD, "label": 2}])["state"] == "done"


def test_a_second_import_with_the_key_of_the_first_may_hold_its_ids(ask):
    lines = [{**GOOD, "id": number} for number in (100, 101, 102)]
    key = {"Idempotency-Key": "file"}
    assert imported(ask, lines[:2], **key)["result"] == {"stored": 2, "repeated": 0}
    assert imported(ask, lines, **key)["result"] == {"stored": 1, "repeated": 2}
    reused = imported(ask, [{**GOOD, "id": 103}] * 2, **key)
    assert "was used for another request" in reused["error"]


def test_an_import_that_fails_while_it_stores_says_what_is_stored(ask, monkeypatch):
    lines, add = [{**GOOD, "id": number} for number in (100, 101, 102, 103, 104)], Searcher.add

    def add_after_somebody_else(self, items, key=None):
        if 102 in items.ids:
            ask("POST", f"{THINGS}/items", json={"items": [{**GOOD, "id": 103}]})
        return add(self, items, key)

    monkeypatch.setattr(Searcher, "add", add_after_somebody_else)
    job = imported(ask, lines, **{"Idempotency-Key": "file"})
    assert job["error"].startswith("2 of 5 items are stored. Those of lines 3 to 4 are not: The id 103 is already")
    assert job["error"].endswith(
        "Send all lines again with the header Idempotency-Key: file; what is stored is skipped."
    )
    assert n_items(ask) == 63


def test_batches_of_an_import_are_limited_in_bytes(monkeypatch):
    lines = [json.dumps({**GOOD, "reference": "x" * 100}).encode() + b"\n" for _ in range(7)]
    monkeypatch.setattr("starshl.service.http.bulk_import.BYTES_AT_ONCE", 3 * len(lines[0]))
    batches = list(read_batches(io.BytesIO(b"".join(lines)), n_lines=5))
    assert [batch.lines for batch in batches] == [[1, 2, 3], [4, 5, 6], [7]]
    assert [batch.number for batch in batches] == [0, 1, 2]
    assert [len(batch.lines) for batch in read_batches(io.BytesIO(b"".join(lines)), n_lines=2)] == [2, 2, 2, 1]
