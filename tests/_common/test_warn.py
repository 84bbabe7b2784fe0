import warnings
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import starshl
from starshl import Collection, StarRidge, StarSHL
from starshl._common.warn import warn_caller

X = np.random.default_rng(0).standard_normal((30, 4))
Y = np.repeat([0, 1, 2], 10)


def fit_with_a_column(tmp_path):
    StarRidge(8, random_state=0).fit(X, Y[:, None])


def fit_with_one_class(tmp_path):
    StarSHL(8, random_state=0).fit(X, np.zeros(30, int))


def filter_without_declaring(tmp_path):
    hasher = StarRidge(8, random_state=0).fit(X, Y)
    with Collection.create(tmp_path / "items", hasher) as collection:
        collection.add(X, metadata=[{"price": number} for number in range(30)])
        collection.search(X[:1], where={"price": 3})


@pytest.mark.parametrize("use", [fit_with_a_column, fit_with_one_class, filter_without_declaring])
def test_warnings_point_to_the_line_that_called_the_package(tmp_path, use):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        use(tmp_path)
    assert caught
    assert {warning.filename for warning in caught} == {__file__}


def test_context_managers_of_the_package_are_passed_over():
    inside = str(Path(starshl.__file__).parent / "part.py")
    names = {"contextmanager": contextmanager, "warn_caller": warn_caller}
    exec(compile("@contextmanager\ndef part():\n    warn_caller('odd')\n    yield\n", inside, "exec"), names)
    with pytest.warns(UserWarning, match="odd") as caught, names["part"]():
        pass
    assert caught[0].filename == __file__
