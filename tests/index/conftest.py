import pytest

from starshl.index.files import read_index_file


@pytest.fixture
def stored(tmp_path):
    """Return a function that saves an index and returns the arrays of its file."""

    def arrays_of(index):
        index.save(tmp_path / "stored.index")
        return read_index_file(tmp_path / "stored.index", memory_map=False, verify=True)[1]

    return arrays_of
