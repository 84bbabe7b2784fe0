"""KernelHasher: what hashers over a kernel mixture share, whatever their loss."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
from sklearn.utils import ClassifierTags, Tags
from sklearn.utils.metaestimators import available_if

from ..._common.labels import Labels, LabelsLike, check_labels
from ..._common.validation import SamplesLike, check_choice
from ...codes.binary import BinaryCodes
from ...codes.codebook import Codebook
from ...exceptions import MissingCapabilityError
from ...learning.kernels.choice import KernelsLike, is_precomputed, resolve_kernels
from ...learning.kernels.kernel import Kernel
from ...learning.kernels.views import ViewsLike, kernels_of_views, view_shares
from ...learning.solvers.objective import hamming_distances, hinge_distances, nearest_codewords
from ..base import BaseHasher, Capability, FitSummary, supported
from .contributions import Contributions
from .expansion import Expansion
from .novelty import Rejection
from .samples import SAMPLE_TYPES, Samples, take_sparse
from .storage import digest_of_fit, pack_model, unpack_model

_SUPPORTED: frozenset[Capability] = frozenset(
    {"predict", "score", "novelty", "codeword_distances", "relabel", "compress", "contributions"}
)


class KernelHasher(Rejection, BaseHasher):
    """A hasher whose functions are kernel expansions over training rows, with a codeword for each class."""

    kernels: KernelsLike
    codewords: Any
    views: ViewsLike | None

    classes_: np.ndarray
    codewords_: np.ndarray
    kernels_: list[Kernel]
    kernel_weights_: np.ndarray
    dual_coef_: np.ndarray
    intercept_: np.ndarray
    sample_kind_: str
    support_: np.ndarray
    support_samples_: Any
    agreement_: float
    norms_: np.ndarray
    view_names_: np.ndarray
    view_shares_: np.ndarray

    @property
    def supports(self) -> frozenset[Capability]:
        """What hashers over a kernel mixture can do: less without labels, compressed, or without own kernels."""
        learned = vars(self)
        missing: set[Capability] = set()
        if "kernels_" in learned and "novelty_calibration_" not in learned:
            missing.add("novelty")
        if not learned.get("kernels_", True):
            missing.add("contributions")
        if "codebook_" in learned and self.holds_clusters:
            missing.add("relabel")  # clusters have numbers, which are no labels
        return _SUPPORTED - missing

    def _lacking(self, capability: Capability, parameter: str | None) -> MissingCapabilityError:
        if capability != "novelty":
            return super()._lacking(capability, parameter)
        return MissingCapabilityError(
            "This hasher was compressed and no longer has its training rows, which novelty compares samples with",
            advice="Use the hasher that it was made from.",
            parameter=parameter,
            method=self.method_name,
            capability=capability,
        )

    @staticmethod
    @abstractmethod
    def _check_state(state: Mapping[str, Any], n_bits: int, n_train: int) -> None:
        """Refuse learned attributes of a model file that do not belong together."""

    @abstractmethod
    def _settings(self) -> object:
        """Return the checked parameters, or refuse those that no fit can have had."""

    def _kernels_to_fit(self) -> str | list[Kernel]:
        """Return the kernels that are to be fitted, before views are looked up among the columns of X."""
        if not is_precomputed(self.kernels):
            return resolve_kernels(self.kernels)
        if self.views is not None:
            raise ValueError(
                "views names columns of X, and with kernels='precomputed' X holds kernel values. Give one kernel "
                "matrix per view instead, as an array of shape (n_kernels, n, n), or rows of numbers."
            )
        return "precomputed"

    def _kernels_of_views(self, kernels: str | list[Kernel]) -> str | list[Kernel]:
        """Return the kernels of every view, once the columns of X are known."""
        if self.views is None or isinstance(kernels, str):
            return kernels
        if self.row_width is None:
            raise ValueError(
                "views names columns of X, and these kernels compare samples that have none. Give rows of numbers."
            )
        return kernels_of_views(kernels, self.views, self.row_width, vars(self).get("feature_names_in_"))

    def _store_views(self) -> dict[str, float]:
        """Set and return how much each view counts."""
        shares = view_shares(self.kernels_, self.kernel_weights_) if self.kernels_ else {}
        self.view_names_ = np.array(list(shares), dtype=object)
        self.view_shares_ = np.array(list(shares.values()), dtype=np.float64)
        return shares

    @property
    def view_weights_(self) -> dict[str, float]:
        """The share of each view in the sum of the kernel weights; empty without views."""
        self._require_fit()
        return dict(zip(self.view_names_.tolist(), self.view_shares_.tolist(), strict=True))

    def codeword_distances(self, X: SamplesLike, metric: Literal["hamming", "hinge"] = "hamming") -> np.ndarray:
        """Return the distance of each sample to each codeword, (n, n_codewords), "hamming" or "hinge"."""
        check_choice(metric, "metric", ("hamming", "hinge"))
        if metric == "hamming":
            return hamming_distances(self.transform(X), self.codewords_)
        return hinge_distances(self.decision_function(X), self.codewords_)

    def encode_database(self, X: SamplesLike, y: LabelsLike = None) -> BinaryCodes:
        """Return the codes of items: the codeword of the label where a known class is given, else their own code.

        Parameters
        ----------
        X : samples as for ``fit``
        y : array of shape (n_samples,), default=None
            Labels of the items, where they are known. A label without a word in ``codebook_`` counts as
            unlabeled, and so does every label if the fit had none: clusters have no names.
        """
        codes = self.encode(X)
        return self.relabel(codes, y) if y is not None and "relabel" in self.supports else codes

    @available_if(supported("relabel"))
    def relabel(self, codes: BinaryCodes, y: LabelsLike) -> BinaryCodes:
        """Return the codes with the codewords of these labels; without a known label, a code stays as it is."""
        positions = self.codebook_.positions_of(check_labels(y, len(codes)))
        known = positions >= 0
        packed = codes.packed.copy()
        packed[known] = BinaryCodes.from_signs(self.codebook_.words[positions[known]]).packed
        return replace(codes, packed=packed)

    def contributions(self, X: SamplesLike) -> Contributions:
        """Return how much each kernel, view and training row adds to the scores of the one sample in X."""
        self.require("contributions")
        return Contributions.of(self.expansion, self._read(X).values, of_classes="class_scores" in self.supports)

    @property
    def fit_summary(self) -> FitSummary:
        """What the fit found besides the hash functions, with the shares of kernels and views."""
        weights = np.atleast_2d(self.kernel_weights_).mean(axis=0)
        has_shares = len(self.kernels_) > 0 and weights.sum() > 0
        return replace(
            super().fit_summary,
            kernels=list(zip(self.kernels_, (weights / weights.sum()).tolist(), strict=True)) if has_shares else [],
            views=self.view_weights_,
            agreement=vars(self).get("agreement_"),
        )

    @property
    def expansion(self) -> Expansion:
        """The fitted functions over the support rows."""
        return self._derived("expansion", self._make_expansion)

    def _make_expansion(self) -> Expansion:
        return Expansion(
            samples_of=SAMPLE_TYPES[self.sample_kind_],
            kernels=self.kernels_,
            weights=self.kernel_weights_,
            support=self.support_,
            support_samples=self.support_samples_,
            coefficients=self.dual_coef_[:, self.support_],
            intercept=self.intercept_,
        )

    def _codebook(self, given: object, *, is_named: bool) -> Codebook:
        """Return the codebook of the codewords: the given one, or a new one; clusters have no names."""
        if isinstance(given, Codebook):
            return given
        fit_digest = None
        if not is_named:
            earlier = self.class_codebook
            fit_digest = digest_of_fit(vars(self)) if earlier is None else earlier.fit_digest
        return Codebook(self.codewords_, self.classes_, fit_digest=fit_digest)

    def _read(self, X: SamplesLike) -> Samples:
        return SAMPLE_TYPES[self.sample_kind_].read(self, X, fitting=False)

    def pack(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        return pack_model(self._packable_params(), self._packable_state())

    @classmethod
    def unpack(
        cls,
        header: dict[str, Any],
        arrays: dict[str, np.ndarray],
        kernels: KernelsLike | None = None,
        steps: Sequence[Any] | None = None,
    ) -> Self:
        cls._refuse_given(steps=steps)
        params, state = unpack_model(header, arrays, kernels, cls._check_state)
        hasher = cls(**params)
        hasher._settings()  # refuses those that no fit can have had
        hasher._restore_state(state)
        return hasher

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = is_precomputed(self.kernels)
        with suppress(ValueError):  # of kernels that fit will refuse
            tags.input_tags.sparse = not tags.input_tags.pairwise and take_sparse(resolve_kernels(self.kernels))
        # With labels it is a classifier, and cross-validation then keeps every class in every fold.
        tags.estimator_type = "classifier"
        tags.classifier_tags = ClassifierTags()
        return tags


def nearest_classes(scores: np.ndarray, codewords: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return class indices; classes that share a codeword are answered by the most frequent of them.

    ``counts`` holds the weight of each class in training.
    """
    _, group = np.unique(codewords, axis=0, return_inverse=True)
    group = group.ravel()
    most_frequent_first = np.lexsort((np.arange(len(group)), -counts))
    speaker = np.empty(len(group), dtype=np.int64)
    speaker[group[most_frequent_first[::-1]]] = most_frequent_first[::-1]
    return speaker[group[nearest_codewords(scores, codewords)]]


def with_given_labels(predicted: np.ndarray, given: Labels) -> np.ndarray:
    """Return the predicted labels with those that were given, also of classes whose rows all have weight zero.

    Without any given label, predictions are numbers of clusters and keep their type: texts of the length of y, which
    marks every row by the empty text, would cut them off.
    """
    labels: np.ndarray = predicted.astype(given.dtype if given.labeled.any() else predicted.dtype)
    labels[given.labeled] = given.classes[given.index[given.labeled]]
    return labels
