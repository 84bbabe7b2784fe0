"""CodeSpace: what searches of stored items need to know of a hasher, in a file beside the model.

A search by a stored item or a code compares codes, and needs no hasher for that. The file saves it from importing what
hashers are made of and from reading the model, which both take longer than opening the collection and searching it.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np

from .._common.bundle import read_bundle, write_bundle
from ..codes.binary import BinaryCodes, n_bytes
from ..codes.hamming_words import HammingWords
from ..codes.score_rule import ScoreRule
from ..codes.word_dictionary import WordDictionary
from ..exceptions import CollectionFormatError
from ..index.choice import make_index, unpack_index
from ..index.memory import CodeIndex, MemoryIndex
from .items import class_kind
from .model_classes import texts_of_classes
from .options import METRICS, Metric

if TYPE_CHECKING:
    from ..hashers.base import BaseHasher


@dataclass(frozen=True, slots=True, eq=False)
class CodeSpace:
    """How codes of a hasher are compared, and what it makes of labels.

    Attributes
    ----------
    method : the name of the hashing method
    supports : what the hasher can do
    class_kind : what the labels of the classes are that give items their codes, "" if none do
    n_classes : how many classes the hasher was fitted to; clusters are no classes
    rules : how items whose vectors are kept are ordered, by the metric of these; see ``BaseHasher.vector_rule``
    empty : the index of no codes
    """

    method: str
    supports: frozenset[str]
    class_kind: str
    n_classes: int
    rules: Mapping[str, ScoreRule | None]
    empty: MemoryIndex

    @classmethod
    def of(cls, hasher: BaseHasher) -> Self:
        """Return what a hasher says of itself."""
        empty = hasher.make_index(hasher.as_codes(np.empty((0, n_bytes(hasher.n_bits_)), np.uint8)))
        empty.space_id = hasher.space_id_
        rules = {metric: hasher.vector_rule(cast(Metric, metric)) for metric in METRICS}
        names = texts_of_classes(hasher)
        return cls(hasher.method_name, frozenset(hasher.supports), class_kind(hasher), len(names), rules, empty)

    @property
    def n_bits(self) -> int:
        return self.empty.n_bits

    @property
    def space_id(self) -> str | None:
        return self.empty.space_id

    @property
    def label_words(self) -> HammingWords | WordDictionary | None:
        """The words of codes, if labels change them."""
        words = getattr(self.empty, "words", None)
        return words if "relabel" in self.supports else None

    def make_index(self, codes: BinaryCodes, ids: np.ndarray, n_jobs: int | None) -> MemoryIndex:
        """Return the index that suits these codes, as ``hasher.make_index`` does."""
        codes = replace(codes, space_id=self.space_id)
        if isinstance(self.empty, CodeIndex):
            return make_index(codes, ids, n_jobs=n_jobs)
        index = copy(self.empty)
        index.n_jobs = n_jobs
        index.add(codes, ids)
        return index

    def save(self, path: Path, model: str) -> None:
        """Write a file that belongs to the model of this name."""
        index, arrays = self.empty.pack()
        parts = {name: None if rule is None else astuple(rule) for name, rule in self.rules.items()}
        header: dict[str, Any] = {"kind": "CodeSpace", "model": model, "index": index, "rules": parts}
        header |= {"hasher": self.method, "supports": sorted(self.supports)}
        header |= {"class_kind": self.class_kind, "n_classes": self.n_classes}
        write_bundle(path, header, arrays)

    @classmethod
    def read(cls, path: Path, model: str) -> Self:
        """Undo :meth:`save`, or refuse the file."""
        try:
            header, arrays = read_bundle(path)
            if header["model"] != model:
                raise ValueError(f"it belongs to {header['model']!r}")
            return cls(**_checked(header), empty=unpack_index(header["index"], arrays))
        except FileNotFoundError as error:
            raise CollectionFormatError.damaged(f"the file {str(path)!r} is missing") from error
        except Exception as error:  # a header that anyone may have written can lack or misplace anything
            what = f"the file {str(path)!r} does not describe its model ({error})"
            raise CollectionFormatError.damaged(what) from error


def _checked(header: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a header besides the index, or raise."""
    method, kind, n_classes = header["hasher"], header["class_kind"], header["n_classes"]
    if not isinstance(method, str) or not isinstance(kind, str) or type(n_classes) is not int:
        raise ValueError("it names no method, or no classes")
    rules = {metric: None if parts is None else ScoreRule(*parts) for metric, parts in header["rules"].items()}
    if set(rules) != set(METRICS):
        raise ValueError(f"it has rules for {sorted(rules)}")
    supports = frozenset(map(str, header["supports"]))
    return {"method": method, "class_kind": kind, "n_classes": n_classes, "supports": supports, "rules": rules}
