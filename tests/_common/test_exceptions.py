"""Errors and warnings with fields arrive whole wherever they are copied or sent, and say what to do."""

import copy
import pickle
from pathlib import Path

import pytest

from starshl.exceptions import (
    BundleFormatError,
    CollectionFormatError,
    IndexFormatError,
    InputError,
    InputWarning,
    RecordFormatError,
)

FIELDS = {"parameter": "n_bits", "value": 1500, "low": 2000}


@pytest.mark.parametrize("kind", [InputError, InputWarning])
@pytest.mark.parametrize(
    "through",
    [copy.copy, lambda error: pickle.loads(pickle.dumps(error)), lambda error: type(error)(*error.args)],
    ids=["copy", "pickle", "arguments"],
)
def test_a_copy_has_the_fields_and_the_words(kind, through):
    error = kind("{parameter} is {value:,}", "it must be at least {low:,}", "Ask for more.", **FIELDS)
    copied = through(error)
    assert type(copied) is kind
    assert copied.fields == FIELDS
    assert str(copied) == "n_bits is 1,500; it must be at least 2,000. Ask for more."
    assert copied.worded({"n_bits": "--bits"}).startswith("--bits is 1,500")


@pytest.mark.parametrize("kind", [BundleFormatError, CollectionFormatError, IndexFormatError, RecordFormatError])
def test_an_error_about_a_file_says_what_is_wrong_and_what_to_do(kind):
    message = str(kind.damaged("it lacks {its} entry", Path("some") / "file"))
    assert message.startswith(f"{str(Path('some') / 'file')!r} is damaged: it lacks {{its}} entry. ")
    assert message.partition("entry. ")[2] == str(kind.unreadable("file", "it is empty")).partition("kind. ")[2] != ""
    assert "Install a newer starshl" in str(kind.of_format("file", 3, 2))


def test_whoever_knows_a_file_by_another_name_reads_that_name():
    error = BundleFormatError.damaged("its contents do not match their checksum", "upload-1").about("The body")
    assert str(error).startswith("The body is damaged: its contents do not match their checksum.")
