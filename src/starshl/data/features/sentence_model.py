"""SentenceTransformerModel: a model of the package sentence-transformers, where that is installed."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..._common.extras import require
from ..._common.labels import LabelsLike
from ...exceptions import ChecksumError
from .picture_files import open_picture
from .step import Reader

_EXTRA = "sentence-transformers"


class SentenceTransformerModel(Reader):
    """Turn texts into what a model of the package ``sentence-transformers`` makes of them, with PyTorch.

    Parameters
    ----------
    model : name of a model, or path of its folder
        The package downloads a model that is not on this machine.

    Attributes
    ----------
    weights_ : str, the SHA-256 of all of its weights
    takes_ : "texts", or "texts, pictures" of a model of both
    """

    is_slow = True
    takes_: str

    def __init__(self, model: str):
        self.model = model

    def fit(self, X: Any = None, y: LabelsLike = None) -> Self:
        """Load the model; there is nothing to learn."""
        model, self.weights_ = _load(self.model)
        self.takes_ = "texts, pictures" if "CLIP" in type(model[0]).__name__ else "texts"
        self.n_features_in_ = 1
        self.n_features_out_ = int(np.shape(model.encode(["text"]))[1])
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Return one row per text, or per picture if the model takes them."""
        check_is_fitted(self)
        model, weights = _load(self.model)
        if weights != self.weights_:
            raise ChecksumError(
                f"The model {self.model!r} has other weights than before: their digest is {weights[:16]}, and "
                f"{self.weights_[:16]} is expected. Use the old version, or make the collection or model again."
            )
        items = [item if isinstance(item, str) else open_picture(item) for item in X]
        rows = model.encode(items, show_progress_bar=False, convert_to_numpy=True)
        return np.asarray(rows, dtype=np.float32)

    def count_cut(self, texts: Sequence[Any]) -> int:
        """Return how many texts are longer than the model reads."""
        model, _ = _load(self.model)
        limit = self.max_tokens
        long = [text for text in texts if isinstance(text, str) and len(text.encode()) > limit - 2]
        return sum(len(model.tokenizer(text)["input_ids"]) > limit for text in long)

    @property
    def max_tokens(self) -> int:
        """How much of a text the model reads."""
        return int(_load(self.model)[0].max_seq_length or 512)

    def _check_restored(self) -> None:
        self._require_counts()
        self._require(isinstance(self.model, str), "model")
        self._require(isinstance(getattr(self, "weights_", None), str), "weights_")
        self._require(getattr(self, "takes_", None) in ("texts", "texts, pictures"), "takes_")


@lru_cache(maxsize=2)
def _load(name: str) -> tuple[Any, str]:
    """Return a model and the digest of its weights."""
    model = require("sentence_transformers", extra=_EXTRA).SentenceTransformer(name, device="cpu")
    digest = hashlib.sha256()
    for key, tensor in sorted(model.state_dict().items()):
        values = tensor.detach().cpu().numpy()
        digest.update(f"{key} {values.dtype} {values.shape}\n".encode())
        digest.update(np.ascontiguousarray(values).tobytes())
    return model, digest.hexdigest()
