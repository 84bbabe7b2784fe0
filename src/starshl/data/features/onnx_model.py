"""OnnxModel: any network of texts or pictures in a folder, with its tokenizer or the size of its pictures beside it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple, Self, cast

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..._common.labels import LabelsLike
from ..._common.threads import run_all
from ...exceptions import ChecksumError
from .onnx_graph import onnx_session
from .picture_files import SquareShape
from .step import Reader
from .text_network import INPUTS, Pooling, TextNetwork

_TOKENIZER, _PICTURES = "tokenizer.json", "preprocessor_config.json"
_MAX_TOKENS = 512  # if neither the tokenizer nor a configuration says it
_EXTRA = "texts"
_GREATEST = 255.0  # of a channel
_PICTURE_RANK = 4


class OnnxModel(Reader):
    """Turn texts, or pictures that :class:`ReadPictures` has read, into what a network in an ONNX file makes of them.

    The folder has one ONNX file, or ``model.onnx``, at its top or in the folder ``onnx``. A network of texts has
    ``tokenizer.json`` beside it and takes ``input_ids``, perhaps with ``attention_mask`` and ``token_type_ids``; its
    vectors have length one. A network of pictures has ``preprocessor_config.json`` beside it, with their size, mean and
    standard deviation, and takes one input of shape (n, 3, height, width). Both are laid out so by Hugging Face.

    Parameters
    ----------
    folder : path

    Attributes
    ----------
    weights_ : str, the SHA-256 of the files that are used
    kind_ : "texts" or "pictures"
    """

    is_slow = True
    kind_: str

    def __init__(self, folder: str):
        self.folder = folder

    def fit(self, X: Any = None, y: LabelsLike = None) -> Self:
        """Read the folder; there is nothing to learn."""
        files = _Files.of(self.folder)
        self.weights_ = files.digest
        self.kind_ = "texts" if files.tokenizer else "pictures"
        if files.tokenizer:
            made = load_text_model(self.folder, self.weights_).embed(["text"])
            self.n_features_in_ = 1
        else:
            model = load_picture_model(self.folder, self.weights_)
            self.n_features_in_ = model.side * model.side * 3
            made = model.run(np.zeros((1, model.side, model.side, 3), np.uint8))
        self.n_features_out_ = int(made.shape[1])
        return self

    @property
    def reading(self) -> tuple[int, SquareShape]:
        """The side of pictures, and what becomes of those that are not square."""
        model = load_picture_model(self.folder, self.weights_)
        return model.side, model.shape

    def transform(self, X: Any) -> np.ndarray:
        """Return one row per text or picture."""
        check_is_fitted(self)
        if self.kind_ == "texts":
            return load_text_model(self.folder, self.weights_).embed(X)
        return load_picture_model(self.folder, self.weights_).run(X)

    def count_cut(self, texts: Sequence[str]) -> int:
        """Return how many texts are longer than the network reads."""
        return load_text_model(self.folder, self.weights_).count_cut(texts) if self.kind_ == "texts" else 0

    @property
    def max_tokens(self) -> int:
        """How much of a text the network reads."""
        return _max_tokens(_Files.of(self.folder))

    def _check_restored(self) -> None:
        self._require_counts()
        self._require(isinstance(self.folder, str), "folder")
        self._require(getattr(self, "kind_", None) in ("texts", "pictures"), "kind_")
        self._require(isinstance(getattr(self, "weights_", None), str), "weights_")


class _Files(NamedTuple):
    model: Path
    tokenizer: Path | None
    pictures: Path | None
    folder: Path

    @classmethod
    def of(cls, folder: str) -> _Files:
        """Find the files of a model, or say which one is missing."""
        base = Path(folder)
        if not base.is_dir():
            raise FileNotFoundError(
                f"There is no folder {folder!r} with an ONNX model. Put it there again, or open what was made with it "
                "from where it is now: Collection(..., embedder='onnx:FOLDER')."
            )
        models = sorted(base.glob("*.onnx")) or sorted((base / "onnx").glob("*.onnx"))
        models = [each for each in models if each.name == "model.onnx"] or models
        if len(models) != 1:
            found = f"{len(models)} ONNX files, and none is called model.onnx" if models else "no ONNX file"
            raise FileNotFoundError(f"The folder {folder!r} has {found}. Give a folder with one model.")
        tokenizer, pictures = (
            next((place / name for place in (models[0].parent, base) if (place / name).is_file()), None)
            for name in (_TOKENIZER, _PICTURES)
        )
        if tokenizer is None and pictures is None:
            raise FileNotFoundError(
                f"The folder {folder!r} has a model, but neither {_TOKENIZER}, which a model of texts needs, nor "
                f"{_PICTURES} with the size of pictures. Put the one that belongs to the model beside it."
            )
        return cls(models[0], tokenizer, pictures, base)

    @property
    def digest(self) -> str:
        """The SHA-256 of the SHA-256 of all files that decide about vectors."""
        data = sorted(self.model.parent.glob(f"{self.model.name}?data*"))
        settings = [self.folder / "sentence_bert_config.json", self.folder / "1_Pooling" / "config.json"]
        used = [self.model, *data, *(file for file in (self.tokenizer, self.pictures, *settings) if file)]
        digest = hashlib.sha256()
        for file in used:
            if file.is_file():
                with file.open("rb") as opened:
                    digest.update(hashlib.file_digest(opened, "sha256").digest())
        return digest.hexdigest()

    def checked(self, weights: str) -> _Files:
        """Return the files, if they are those of that digest."""
        if self.digest != weights:
            raise ChecksumError(
                f"The model in {str(self.folder)!r} is another one than before: its digest is {self.digest[:16]}, and "
                f"{weights[:16]} is expected. Put the old files there again, or make the collection or model again."
            )
        return self


@lru_cache(maxsize=4)
def load_text_model(folder: str, weights: str) -> TextNetwork:
    """Return the network of texts in a folder, if it has this digest."""
    files = _Files.of(folder).checked(weights)
    session = _session(files.model)
    inputs = [each.name for each in session.get_inputs()]
    if "input_ids" not in inputs or set(inputs) - set(INPUTS):
        raise ValueError(
            f"The model {str(files.model)!r} takes {', '.join(inputs)}; a model of texts takes {INPUTS[0]}, and "
            f"perhaps {INPUTS[1]} and {INPUTS[2]}. Export it with these inputs."
        )
    fixed = [each.shape for each in session.get_inputs() if any(isinstance(size, int) for size in each.shape)]
    if fixed:
        raise ValueError(
            f"The model {str(files.model)!r} takes texts of the fixed shape {fixed[0]}; the number of texts and of "
            "tokens must be free. Export it with dynamic axes."
        )
    outputs = {each.name: len(each.shape) for each in session.get_outputs()}
    output = "sentence_embedding" if "sentence_embedding" in outputs else next(iter(outputs))
    pooled = _settings(files.folder / "1_Pooling" / "config.json").get("pooling_mode_cls_token", False)
    pooling: Pooling = "cls" if pooled else "mean"
    tokenizer = cast(Path, files.tokenizer).read_bytes()
    try:
        return TextNetwork(session, tokenizer, _max_tokens(files), inputs=inputs, output=output, pooling=pooling)
    except ImportError:
        raise
    except Exception as error:  # the library raises Exception itself
        raise ValueError(
            f"{str(files.tokenizer)!r} is not a tokenizer that can be read ({error}). Put the file that belongs to the "
            "model there."
        ) from error


class _PictureNetwork(NamedTuple):
    session: Any
    side: int
    shape: SquareShape
    mean: np.ndarray
    deviation: np.ndarray

    def run(self, pictures: Any) -> np.ndarray:
        """Return one row per picture, an array of shape (n, side, side, 3) of uint8."""
        pictures = np.asarray(pictures)
        if pictures.dtype != np.uint8 or pictures.shape[1:] != (self.side, self.side, 3):
            raise ValueError(
                f"X has shape {pictures.shape} of {pictures.dtype}; the network takes arrays of (n, {self.side}, "
                f"{self.side}, 3) of uint8. Put ReadPictures(side={self.side}) before it."
            )
        return np.concatenate(run_all([partial(self._run_one, picture) for picture in pictures]))

    def _run_one(self, picture: np.ndarray) -> np.ndarray:
        scaled = (picture / np.float32(_GREATEST) - self.mean) / self.deviation
        values = self.session.run(None, {self.session.get_inputs()[0].name: scaled.transpose(2, 0, 1)[None]})[0]
        # A map or a row of tokens per picture becomes one vector.
        return values.reshape(1, -1) if values.ndim != 3 else values[:, 0]


@lru_cache(maxsize=4)
def load_picture_model(folder: str, weights: str) -> _PictureNetwork:
    """Return the network of pictures in a folder, if it has this digest."""
    files = _Files.of(folder).checked(weights)
    session = _session(files.model)
    inputs = session.get_inputs()
    if len(inputs) != 1 or len(inputs[0].shape) != _PICTURE_RANK:
        taken = ", ".join(f"{each.name} of shape {each.shape}" for each in inputs)
        raise ValueError(
            f"The model {str(files.model)!r} takes {taken}; a model of pictures takes one input of shape (n, 3, "
            "height, width). Export it so."
        )
    settings = _settings(cast(Path, files.pictures))
    size = settings.get("crop_size") if settings.get("do_center_crop") else settings.get("size")
    if isinstance(size, dict):
        size = size.get("shortest_edge") or (size.get("height") if size.get("height") == size.get("width") else None)
    if not isinstance(size, int) or size < 1:
        raise ValueError(
            f"{str(files.pictures)!r} does not say how large pictures are; it must have a size such as "
            '{"size": 224}, and the same for height and width. Write it there.'
        )
    mean, deviation = (
        np.array(settings.get(name, default), np.float32)
        for name, default in (("image_mean", [0.0] * 3), ("image_std", [1.0] * 3))
    )
    if mean.shape != (3,) or deviation.shape != (3,) or not (deviation > 0).all():
        raise ValueError(
            f"{str(files.pictures)!r} has image_mean {mean.tolist()} and image_std {deviation.tolist()}; both must be "
            "three numbers, one per channel. Write them there."
        )
    return _PictureNetwork(session, size, "center" if settings.get("do_center_crop") else "whole", mean, deviation)


def _session(file: Path) -> Any:
    try:
        return onnx_session(str(file), extra=_EXTRA)
    except ImportError:
        raise
    except Exception as error:  # a file that anyone may have made can fail anywhere in the library
        raise ValueError(f"{str(file)!r} is not an ONNX model that can be run ({error}). Give another one.") from error


def _max_tokens(files: _Files) -> int:
    """Return how many tokens the network reads, as its configuration or its tokenizer says."""
    named = _settings(files.folder / "sentence_bert_config.json").get("max_seq_length")
    cut = (_settings(cast(Path, files.tokenizer)).get("truncation") or {}).get("max_length")
    return int(named or cut or _MAX_TOKENS)


def _settings(file: Path) -> dict[str, Any]:
    try:
        settings = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    except ValueError as error:
        raise ValueError(
            f"{str(file)!r} is not JSON ({error}). Put the file that belongs to the model there."
        ) from error
    return settings if isinstance(settings, dict) else {}
