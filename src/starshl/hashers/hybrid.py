"""HybridHasher: the class and the neighbors of a row in one code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, Self, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_random_state

from .._common.bundle import pack_values, unpack_values
from .._common.labels import LabelsLike, check_labels
from .._common.validation import Rows, SamplesLike, Seed, check_choice, check_integer, check_number, check_rows
from .._common.warn import warn_caller
from ..codes.binary import BinaryCodes, Metric, make_space_id, n_bytes
from ..codes.codebook import Codebook
from ..codes.codewords import binary_words
from ..codes.hamming_words import HammingWords
from ..codes.queries import EncodedQueries
from ..codes.score_rule import ScoreRule
from ..codes.word_dictionary import WordDictionary
from ..exceptions import BundleFormatError, InputError, InputWarning, MissingCapabilityError
from ..index.hybrid import MAX_CLASS_BITS, HybridIndex
from ..index.residual import Reconstruction, ResidualIndex
from ..learning.graphs.clusters import n_coherent_clusters, suggest_n_clusters
from ..learning.graphs.neighbor_graph import NeighborGraph
from ..learning.linalg import project, squared_distances
from .base import BaseHasher, Capability, FitSummary, all_or_nothing, check_learned_numbers, supported
from .baselines.itq import ITQ
from .catalog import pack_inner, unpack_inner
from .facts import Facts
from .hybrid_tuning import Neighborhoods, components_of, fit_reconstruction, training_rows_of
from .hybrid_words import choose_hamming_words
from .outer import OuterHasher
from .star.star_ridge import StarRidge
from .supervision import TrainingRows

HybridForm: TypeAlias = Literal["hamming", "residual"]
_HASHERS = ("class_hasher", "neighbor_hasher")
_OF_CLASS_HASHER: frozenset[Capability] = frozenset({"predict", "predict_proba", "novelty", "score", "compress"})
_SEEDS = np.iinfo(np.int32).max
# More words than classes by this factor: of 32 bits, further ones serve better as neighbor bits.
_EXTRA_BITS = 2
# Until no code changes, which takes fewer. Of 30 bits on 3,000 rows of AG News and MNIST, 50 lose .008 of the recall.
_ITQ_ITERATIONS = 300


class HybridHasher(OuterHasher):
    r"""Write what is known of the class of a row into the first bits of its code, its neighborhood into the others.

    A supervised code finds items of the right class, but cannot tell them apart. A hybrid code finds the nearest items
    of the right class. Its class field of c bits is a number below 2^c: that of the label, if the item has one, or else
    that of one of 2^c - G learned posteriors over the G classes, so that doubt is kept. The other bits come from a
    hasher that keeps neighbors near. A query keeps its own posterior, which gives each item the probability p that both
    are of the same class, and items are ordered by

    .. math:: s(d) - w\, u \log p,

    where d is the Hamming distance of the neighbor bits, s(d) grows little beyond the distance of neighbors
    ``saturation_``, u is ``unit_`` and w is ``class_weight``. :meth:`make_index` returns an index with this order,
    :meth:`encode_queries` queries for it. :meth:`hamming_codes` makes codes for systems that only count bits.

    ``form="residual"`` gets more out of the same codes: an item stands for a vector, the center of its class plus a
    step along each direction of the neighbor hasher, and this is compared with the vector of the query.

    Parameters
    ----------
    n_bits : int, default=32
        Length of the codes, both fields together.
    class_hasher : hasher with ``predict_proba``, default=None
        Fitted on a clone. None is :class:`starshl.StarRidge`. If there are no labels, the class field then holds one of
        2^f clusters, f = ceil(log2 k), where k is a suggested number of clusters, or fewer if these part near rows.
    neighbor_hasher : hasher, default=None
        Fitted on a clone, which gets the bits that the class field leaves. None is
        :class:`starshl.hashers.baselines.ITQ`, which then iterates until no code changes.
    form : {"hamming", "residual"}, default="hamming"
        How items are compared with queries: by codes, or by the vectors that they stand for. The codes are the same.
        "residual" needs a neighbor hasher with orthonormal directions, such as ITQ.
    class_weight : float, default=1.0
        How much the class counts. 0 orders by neighbors only, a large weight by class first and then by neighbors.
        With 1, ranks far beyond the neighbors hold as many items of the right class as the first ten; .5 finds more of
        the near items of any class.
    codewords : Codebook, default=None
        Fit the class hasher to it, and use its words in :meth:`hamming_codes`.
    n_jobs : int, default=None
        Number of threads; None means one, -1 means all. Codes do not depend on it.
    random_state : int, RandomState or None, default=None
        Seeds the default hashers, and the sample of rows on which distances are measured.

    Attributes
    ----------
    class_hasher_, neighbor_hasher_ : the fitted hashers; the second is None if the class field takes all bits
    classes_ : array of shape (n_classes,)
    class_bits_ : int
        Length of the class field: ceil(log2 G) + 2, if there are as many bits.
    dictionary_ : array of shape (n_words, n_classes)
        The posteriors that class fields stand for, first the certain ones of labels.
    unit_, saturation_ : float
        Of training rows and their ten nearest rows of the same class: the difference between the 90 % quantile of their
        distances and the median, and the 90 % quantile.
    field_holds_ : "classes", or "clusters" if the fit had no labels
    class_centers_, bit_scales_ : see :class:`starshl.index.Reconstruction`; only for "residual"
    training_codes_ : codes of the training rows as items; unlabeled rows have the posterior predicted without them

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from starshl import HybridHasher, make_index
    >>> X, y = load_digits(return_X_y=True)
    >>> hasher = HybridHasher(32, random_state=0).fit(X[:900], y[:900])
    >>> hasher.class_bits_, hasher.neighbor_hasher_.n_bits_
    (6, 26)
    >>> index = make_index(hasher.encode_database(X[:900], y[:900]), hasher=hasher)
    >>> distances, ids = index.search(hasher.encode_queries(X[900:]), k=10)
    >>> float((y[ids] == y[900:, None]).mean()) > 0.94
    True
    """

    facts = Facts(
        paper="this package: a class field and neighbor bits",
        year=2026,
        labels="optional",
        cost="that of both hashers",
        max_bits="rank",
        sparse=True,
    )

    code_metric: Metric = "hybrid"

    class_hasher_: BaseHasher
    neighbor_hasher_: BaseHasher | None
    training_packed_: np.ndarray

    def __init__(
        self,
        n_bits: int = 32,
        *,
        class_hasher: BaseHasher | None = None,
        neighbor_hasher: BaseHasher | None = None,
        form: HybridForm = "hamming",
        class_weight: float = 1.0,
        codewords: Codebook | None = None,
        n_jobs: int | None = None,
        random_state: Seed = None,
    ):
        self.n_bits = n_bits
        self.class_hasher = class_hasher
        self.neighbor_hasher = neighbor_hasher
        self.form = form
        self.class_weight = class_weight
        self.codewords = codewords
        self.n_jobs = n_jobs
        self.random_state = random_state

    @property
    def supports(self) -> frozenset[Capability]:
        """What the class hasher can do for a row, and with the codes what labels and kept training rows allow."""
        of_classes = self._answering.supports
        own = set(_OF_CLASS_HASHER & of_classes)
        if "training_rows" in of_classes:
            own.add("with_bits")
        if vars(self).get("field_holds_") == "classes":
            own |= {"relabel", "probability"}
            if {"class_scores", "contributions"} <= of_classes:
                own.add("contributions")
        return frozenset(own)

    def _lacking(self, capability: Capability, parameter: str | None) -> MissingCapabilityError:
        if capability in _OF_CLASS_HASHER:
            return self._answering._lacking(capability, parameter)
        return super()._lacking(capability, parameter)

    @property
    def _answering(self) -> BaseHasher:
        return vars(self).get("class_hasher_") or self.class_hasher or StarRidge()

    def _inward(self, X: SamplesLike) -> Rows:
        return check_rows(self, X, fitting=False, accept_sparse=True)

    @all_or_nothing
    def fit(self, X: SamplesLike, y: LabelsLike = None, **fit_params: Any) -> Self:
        """Fit the class hasher on the labels, the neighbor hasher on the rows, and measure distances.

        Parameters
        ----------
        X : array or CSR array of shape (n, n_features)
        y : array of shape (n,), default=None
            Labels, marked as for :class:`starshl.StarRidge` where there are none.
        fit_params : further arguments of ``fit`` of the class hasher, such as ``graph``
        """
        n_bits = check_settings(self)
        rows = check_rows(self, X, fitting=True, accept_sparse=self.form == "hamming")
        labels = check_labels(y, rows.shape[0])
        seeds = check_random_state(self.random_state).randint(_SEEDS, size=4).tolist()
        neighbors = None
        if labels.labeled.any():
            # Refused now, codes that cannot be made cost no fit of the classes.
            question_length(len(labels.classes), n_bits)
            self.class_bits_ = n_class_bits(len(labels.classes), n_bits)
            neighbors = self._fit_neighbors(rows, n_bits, seeds[2])
        self.field_holds_ = "classes" if labels.labeled.any() else "clusters"
        self.class_hasher_ = self._fit_classes(rows, y, seeds, fit_params)
        self.seeds_ = seeds[2:]
        training = training_rows_of(self.class_hasher_, rows, labels)
        self.vector_scales_ = self._neighborhoods(training).vector_scales()
        self._fit_bits(training, n_bits, neighbors)
        return self

    def _fit_bits(self, training: TrainingRows, n_bits: int, neighbors: BaseHasher | None = None) -> None:
        """Learn everything that depends on the length of the codes."""
        n_classes = training.posteriors.shape[1]
        class_bits = n_class_bits(n_classes, n_bits)
        if neighbors is None or class_bits != self.class_bits_:
            self.class_bits_ = class_bits
            neighbors = self._fit_neighbors(training.rows, n_bits, self.seeds_[0])
        self.neighbor_hasher_ = neighbors
        self.n_bits_ = n_bits
        self.dictionary_ = WordDictionary.fitted(training.posteriors, class_bits).entries
        codes = self._join(self._numbers(training.posteriors, training.label), training.rows)
        self.training_packed_ = codes.packed
        if self.form == "residual":
            signs = codes.to_signs()[:, class_bits:]
            fitted = fit_reconstruction(training.rows, training.own, signs, self._components, n_classes)
            self.class_centers_, self.bit_scales_ = fitted
        self.unit_, self.saturation_ = self._scale(training, codes)
        self._fit_hamming_words(training, codes)

    def _neighborhoods(self, training: TrainingRows) -> Neighborhoods:
        known = training.label >= 0
        askable = known if known.any() else np.ones_like(known)
        return Neighborhoods(training.rows, training.own, askable, self.seeds_[1])

    def _scale(self, training: TrainingRows, codes: BinaryCodes) -> tuple[float, float]:
        """Return unit and saturation of the distances of this form."""
        found = self._neighborhoods(training)
        if self.form == "residual":
            vectors = self._reconstruction.vectors(codes, self.words)
            return found.scale(
                lambda queries, items: squared_distances(np.asarray(training.rows[queries], np.float64), vectors[items])
            )
        signs = codes.to_signs()[:, self.class_bits_ :].astype(np.float64)
        return found.scale(lambda queries, items: (signs.shape[1] - project(signs[queries], signs[items])) / 2, 1.0)

    def _fit_hamming_words(self, training: TrainingRows, codes: BinaryCodes) -> None:
        codewords = None if self.codewords is None else self.codewords.words_for(self.classes_, self.codewords.n_bits)
        signs = codes.to_signs()[:, self.class_bits_ :]
        chosen = choose_hamming_words(training, signs, self.words, self.score_rule, codewords, self.seeds_[1])
        self.hamming_codewords_, self.hamming_sharpness_ = chosen.codewords, chosen.sharpness

    @property
    def _components(self) -> np.ndarray:
        return components_of(self.neighbor_hasher_, self.n_features_in_)

    @property
    def _reconstruction(self) -> Reconstruction:
        return Reconstruction(self.class_centers_, self._components, self.bit_scales_)

    def _fit_classes(self, rows: Rows, y: LabelsLike, seeds: list[int], fit_params: dict[str, Any]) -> BaseHasher:
        given = self.class_hasher
        chosen: Any = self._default_class_hasher(seeds[0]) if given is None else clone(given)
        if self.codewords is not None:
            chosen.set_params(n_bits=self.codewords.n_bits, codewords=self.codewords)
        elif given is None and self.field_holds_ == "clusters":
            graph = fit_params.get("graph") or NeighborGraph.of_rows(rows, n_jobs=self.n_jobs)
            rng = np.random.RandomState(seeds[1])
            chosen.n_codewords = n_coherent_clusters(graph, 2 ** n_digits(suggest_n_clusters(graph, rng)), rng)
            y, fit_params = None, {**fit_params, "graph": graph}
        return self._with_threads(chosen).fit(rows, y, **fit_params)

    def _default_class_hasher(self, seed: int) -> StarRidge:
        return StarRidge(random_state=seed)

    def _fit_neighbors(self, rows: Rows, n_bits: int, seed: int) -> BaseHasher | None:
        n_left = n_bits - self.class_bits_
        if n_left == 0:
            return None
        own = self.neighbor_hasher
        template = ITQ(max_iter=_ITQ_ITERATIONS, random_state=seed) if own is None else clone(own)
        try:
            return self._with_threads(template.set_params(n_bits=n_left)).fit(rows)
        except InputError as error:
            if error.parameter != "n_bits":
                raise
            # What is said about n_bits there is about these bits alone.
            reason = error.worded({"n_bits": "their number"}).rstrip(".")
            raise InputError(
                "{parameter} is {value}",
                "{class_bits} of them hold the class, and {method} cannot make the others: {reason}",
                parameter="n_bits",
                value=n_bits,
                class_bits=self.class_bits_,
                method=type(template).__name__,
                reason=reason,
            ) from error

    def _with_threads(self, hasher: Any) -> Any:
        if self.n_jobs is not None:
            hasher.n_jobs = self.n_jobs
        return hasher

    def _join(self, numbers: np.ndarray, rows: Rows) -> BinaryCodes:
        """Return codes of these words and of the neighbor bits of rows."""
        signs = binary_words(numbers, self.class_bits_)
        if self.neighbor_hasher_ is not None:
            signs = np.hstack([signs, self.neighbor_hasher_.encode(rows).to_signs()])
        return BinaryCodes.from_signs(signs)

    def _numbers(self, posteriors: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Return the words of posteriors, and of labels where ``columns`` is not -1."""
        return np.where(columns >= 0, self.words.numbers_of_classes(columns), self.words.numbers_of(posteriors))

    @property
    def words(self) -> WordDictionary:
        """What class fields stand for."""
        return self._derived("words", lambda: WordDictionary(self.dictionary_, self.class_bits_))

    def _scores(self, X: SamplesLike) -> np.ndarray:
        """Return +1 or -1 for the bits of the word, and the scores of the neighbor bits."""
        rows = self._inward(X)
        signs = self.words.encode(self.class_hasher_.predict_proba(rows))
        if self.neighbor_hasher_ is None:
            return signs.astype(rows.dtype)
        scores = self.neighbor_hasher_.decision_function(rows)
        return np.hstack([signs.astype(scores.dtype), scores])

    def _make_space_id(self) -> str:
        neighbors = None if self.neighbor_hasher_ is None else self.neighbor_hasher_.space_id_
        classes = Codebook.numbered(self.classes_).space_id
        return make_space_id([type(self).__name__, classes, neighbors], {"dictionary": self.dictionary_})

    def encode_queries(self, X: SamplesLike) -> EncodedQueries:
        """Return queries for the index of :meth:`make_index`: codes and posteriors, for "residual" also the rows."""
        rows = check_rows(self, X, fitting=False, accept_sparse=self.form == "hamming")
        posteriors = self.class_hasher_.predict_proba(rows)
        codes = self.as_codes(self._join(self.words.numbers_of(posteriors), rows).packed)
        return EncodedQueries(codes, posteriors, rows if self.form == "residual" else None)

    def encode_database(self, X: SamplesLike, y: LabelsLike = None) -> BinaryCodes:
        """Return the codes of items, with the word of the label if it is a class of the fit, and else that of the row.

        Labels change nothing if the fit had none, because its clusters have no names.
        """
        codes = self.encode(X)
        return self.relabel(codes, y) if y is not None and "relabel" in self.supports else codes

    @available_if(supported("relabel"))
    def relabel(self, codes: BinaryCodes, y: LabelsLike) -> BinaryCodes:
        """Return the codes with the words of these labels; without the label of a known class, a code stays as it is.

        Give the codes of the rows, as :meth:`encode` makes them: those that have had a label keep it.
        """
        columns = check_labels(y, len(codes)).positions_in(self.classes_)
        signs = codes.to_signs()
        numbers = self.words.numbers_of_classes(columns[columns >= 0])
        signs[columns >= 0, : self.class_bits_] = binary_words(numbers, self.class_bits_)
        return replace(codes, packed=BinaryCodes.from_signs(signs).packed)

    def hamming_codes(self, codes: BinaryCodes | EncodedQueries) -> BinaryCodes:
        """Return longer codes whose Hamming distance comes near the order of this hasher, for other systems.

        The class field becomes a word near the codewords of its classes, of a length that the fit has chosen. Give
        codes for items, and what :meth:`encode_queries` returns for queries.
        """
        self._require_fit()
        given = codes.codes if isinstance(codes, EncodedQueries) else codes
        if given.n_bits != self.n_bits_:
            raise ValueError(
                f"The codes have {given.n_bits} bits, and those of this hasher have {self.n_bits_}. Give codes that it "
                "has made."
            )
        words = HammingWords(self.hamming_codewords_, self.hamming_sharpness_)
        if isinstance(codes, EncodedQueries) and codes.posteriors is not None:
            signs = words.encode_queries(codes.posteriors)
        else:
            signs = words.encode_items(self.words.posteriors_of(given), self.words.columns_of(given))
        space_id = (
            None if given.space_id is None else make_space_id([type(self).__name__, "hamming", given.space_id], {})
        )
        return BinaryCodes.from_signs(np.hstack([signs, given.to_signs()[:, self.class_bits_ :]]), space_id)

    @available_if(supported("with_bits"))
    def with_bits(self, n_bits: int) -> Self:
        """Return a fitted hasher of another length, without a second fit of the classes.

        The neighbor bits are learned from the rows that the class hasher keeps: all training rows, so that the codes
        are those of a fit with ``n_bits`` and the same seed, or the landmarks of a large fit.
        """
        self._require_fit()
        other: Self = clone(self).set_params(n_bits=n_bits)
        check_settings(other)
        for name, value in self._learned_state().items():
            setattr(other, name, value)
        question_length(len(self.classes_), n_bits)
        other._fit_bits(self.class_hasher_.training_rows(), n_bits)
        return other

    @available_if(supported("compress"))
    def compress(self, n_support: int | None = None, X: SamplesLike | None = None, random_state: Seed = 0) -> Self:
        """Return a fitted hasher that encodes faster and takes less room; this one stays as it is.

        The class hasher is compressed, and so is the neighbor hasher if it keeps training rows; see
        :meth:`starshl.StarSHL.compress` for how, and for the parameters. What class fields stand for is kept, so that
        codes made before can be searched with the new hasher; the bits of an unlabeled row may change. There is no
        ``with_bits`` afterwards: choose the length first.
        """
        self._require_fit()
        further = None if X is None else self._inward(X)
        small: Self = clone(self)
        for name, value in self._learned_state().items():
            setattr(small, name, value)
        classes, neighbors = self.class_hasher_, self.neighbor_hasher_
        measured: dict[str, Any] = {}
        if isinstance(classes.inner, StarRidge):
            measured["codes_of"] = self._with_fixed_neighbors
        small.class_hasher_ = classes.compress(n_support, further, random_state=random_state, **measured)
        if neighbors is not None and "compress" in neighbors.supports:
            small.neighbor_hasher_ = neighbors.compress(n_support, further, random_state=random_state)
        return small

    def _with_fixed_neighbors(self, posteriors: np.ndarray) -> BinaryCodes:
        """Return codes that differ as far as posteriors do."""
        fixed = np.ones((len(posteriors), self.n_bits_ - self.class_bits_), dtype=np.int8)
        return BinaryCodes.from_signs(np.hstack([self.words.encode(posteriors), fixed]))

    @property
    def training_codes_(self) -> BinaryCodes:
        """Codes of the training rows, or after :meth:`with_bits` of those that the class hasher keeps, as items."""
        self._require_fit()
        return self.as_codes(self.training_packed_)

    def encode_left_out(self, X: SamplesLike) -> BinaryCodes:
        """Return the codes of the rows of the fit as items without labels, each of the posterior without itself."""
        rows = self._inward(X)
        return self.as_codes(self._join(self.words.numbers_of(self.class_hasher_.training_proba(rows)), rows).packed)

    def make_index(
        self, codes: BinaryCodes, ids: ArrayLike | None = None, *, n_jobs: int | None = None
    ) -> HybridIndex | ResidualIndex:
        """Return an index of these codes that uses the distance of this hasher."""
        self._require_fit()
        given: dict[str, Any] = {"words": self.words, "rule": self.score_rule, "n_jobs": n_jobs}
        if self.form == "residual":
            return ResidualIndex.from_codes(codes, ids, reconstruction=self._reconstruction, **given)
        return HybridIndex.from_codes(codes, ids, **given)

    @property
    def score_rule(self) -> ScoreRule:
        """How distances between codes and probabilities of the same class make one number."""
        return ScoreRule(self.class_weight, self.unit_, self.saturation_)

    def measure_vectors(self, X: Rows) -> None:
        """Learn how far neighbors are among other vectors of the training rows, which collections keep instead."""
        codes = self.training_codes_
        if not issparse(X):
            # No collection keeps a row with missing numbers.
            whole = np.flatnonzero(np.isfinite(X).all(axis=1))
            X, codes = X[whole], codes[whole]
        if not len(codes):
            return
        known = self.words.columns_of(codes) >= 0
        own = self.words.posteriors_of(codes).argmax(axis=1)
        askable = known if known.any() else np.ones_like(known)
        self.vector_scales_ = Neighborhoods(X, own, askable, self.seeds_[1]).vector_scales()

    def vector_rule(self, metric: Literal["euclidean", "cosine"]) -> ScoreRule:
        """Return how exact distances between vectors and probabilities of the same class make one number."""
        return ScoreRule(self.class_weight, *self.vector_scales_[("euclidean", "cosine").index(metric)].tolist())

    @property
    def class_words(self) -> np.ndarray | None:
        """The class fields of labels, None of clusters."""
        if self.holds_clusters:
            return None
        return binary_words(self.words.numbers_of_classes(np.arange(len(self.classes_))), self.class_bits_)

    @property
    def holds_clusters(self) -> bool:
        """Whether the fit had no labels."""
        return self.field_holds_ == "clusters"

    @property
    def fit_summary(self) -> FitSummary:
        """What the fit found: how long the class field is, what it holds, and how far neighbors are."""
        figures = {
            f"bits for the {'cluster' if self.holds_clusters else 'class'}": (
                f"{self.class_bits_}, which hold {self.field_holds_}"
            ),
            "words": f"{len(self.dictionary_):,}, of which {len(self.classes_):,} are those of labels",
            "weight of the class": f"{self.class_weight:g}, in units of {self.unit_:.4g}",
            "distance of neighbors": f"up to {self.saturation_:.4g}",
            "class by": type(self.class_hasher_).__name__,
            "neighbors by": type(self.neighbor_hasher_).__name__,
        }
        of_classes, agreement = self.class_hasher_.fit_summary, self.class_hasher_.fit_summary.agreement
        if agreement is not None and self.neighbor_hasher_ is not None:
            of_neighbors = self.neighbor_hasher_.fit_summary.agreement
            changed = 0.0 if of_neighbors is None else 1.0 - of_neighbors
            agreement -= changed * self.neighbor_hasher_.n_bits_ / self.n_bits_
        return replace(
            super().fit_summary,
            figures=figures,
            knows_probabilities=of_classes.knows_probabilities,
            agreement=agreement,
        )

    def leave_one_out(self, *, precision: bool = True) -> dict[str, Any] | None:
        """Return what the class hasher says about unseen rows; it knows nothing about searches with these codes."""
        return self.class_hasher_.leave_one_out(precision=False)

    @property
    def current_facts(self) -> Facts:
        """The facts of this setting, which depend on the hashers inside."""
        classes, neighbors = self.class_hasher or StarRidge(), self.neighbor_hasher or ITQ()
        of_classes, of_neighbors = classes.current_facts, neighbors.current_facts
        return replace(
            self.facts,
            labels=of_classes.labels,
            sparse=of_classes.sparse and of_neighbors.sparse and self.form == "hamming",
            max_bits=of_neighbors.max_bits,
        )

    def pack(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        params, state = self._packable_params(), self._packable_state()
        header: dict[str, Any] = {"hashers": {}, "given": [name for name in _HASHERS if params.pop(name) is not None]}
        arrays: dict[str, np.ndarray] = {}
        for name in _HASHERS:
            inner = state.pop(name + "_")
            if inner is not None:
                header["hashers"][name], own = pack_inner(inner, name + ".")
                arrays |= own
        header["params"], packed = pack_values(params, "param.")
        header["fitted"], fitted = pack_values(state, "fitted.")
        return header, arrays | packed | fitted

    @classmethod
    def unpack(
        cls,
        header: dict[str, Any],
        arrays: dict[str, np.ndarray],
        kernels: Sequence[Any] | None = None,
        steps: Sequence[Any] | None = None,
    ) -> Self:
        cls._refuse_given(steps=steps)
        inner: dict[str, Any] = dict.fromkeys(_HASHERS)
        for name in (name for name in _HASHERS if name in header["hashers"]):
            of_class = kernels if name == "class_hasher" else None
            inner[name] = unpack_inner(header["hashers"][name], arrays, name + ".", of_class)
        given = {name: clone(inner[name]) for name in _HASHERS if name in header["given"] and inner[name] is not None}
        hasher = cls(**unpack_values(header["params"], arrays, "param."), **given)
        for name, value in inner.items():
            setattr(hasher, name + "_", value)
        hasher._restore_state(unpack_values(header["fitted"], arrays, "fitted."))
        hasher._check_restored()
        return hasher

    def _check_restored(self) -> None:
        """Refuse a file whose parts are missing or do not fit together."""
        check_settings(self)
        try:
            for name, shape in self._learned_shapes().items():
                check_learned_numbers(getattr(self, name), name, shape)
            if not self._parts_fit():
                raise BundleFormatError.damaged("its class field and hashers do not fit together")
            self.make_index(self.training_codes_[:0])
        except AttributeError as error:
            raise BundleFormatError.damaged(f"it lacks {error.name}") from error
        except (ValueError, TypeError) as error:
            raise BundleFormatError.damaged(f"its class field and hashers cannot be used ({error})") from error

    def _learned_shapes(self) -> dict[str, tuple[int, ...]]:
        n_classes, n_neighbor_bits = len(self.classes_), self.n_bits_ - self.class_bits_
        shapes: dict[str, tuple[int, ...]] = {
            "dictionary_": (len(self.dictionary_), n_classes),
            "vector_scales_": (2, 2),
            "hamming_codewords_": (n_classes, self.hamming_codewords_.shape[1]),
            "training_packed_": (len(self.training_packed_), n_bytes(self.n_bits_)),
        }
        of_vectors = {"class_centers_": (n_classes, self.n_features_in_), "bit_scales_": (n_neighbor_bits,)}
        return shapes | (of_vectors if self.form == "residual" else {})

    def _parts_fit(self) -> bool:
        inner = [each for each in (self.class_hasher_, self.neighbor_hasher_) if each is not None]
        n_left = 0 if self.neighbor_hasher_ is None else self.neighbor_hasher_.n_bits_
        n_words, n_classes = self.dictionary_.shape
        return (
            all(type(number) is int for number in (self.n_bits_, self.class_bits_, self.n_features_in_, *self.seeds_))
            and len(self.seeds_) == 2
            and 1 <= self.class_bits_ <= MAX_CLASS_BITS
            and self.class_bits_ + n_left == self.n_bits_
            and 1 <= n_words <= 1 << self.class_bits_
            and self.words.has_labels == (2 * n_classes <= 1 << self.class_bits_)
            and np.allclose(self.dictionary_.sum(axis=1), 1.0, atol=1e-3)
            and bool(np.all(self.dictionary_ >= 0))
            and bool(np.isin(self.hamming_codewords_, (-1, 1)).all())
            and 0 < self.hamming_sharpness_ < np.inf
            and all(self.vector_rule(metric) for metric in ("euclidean", "cosine"))
            and "predict_proba" in self.class_hasher_.supports
            and all(each.n_features_in_ == self.n_features_in_ for each in inner)
            and self.field_holds_ in ("classes", "clusters")
        )


def n_class_bits(n_classes: int, n_bits: int) -> int:
    """Return the length of the class field in codes of ``n_bits``."""
    return min(n_digits(n_classes) + _EXTRA_BITS, n_bits, MAX_CLASS_BITS)


def question_length(n_classes: int, n_bits: int) -> None:
    """Warn if a class field has no room for labels besides doubt, and refuse more classes than any has room for."""
    least = n_digits(n_classes) + 1
    if least > MAX_CLASS_BITS:
        raise ValueError(f"There are {n_classes:,} classes; a class field holds at most {1 << MAX_CLASS_BITS - 1:,}.")
    if least > n_bits:
        warning = InputWarning(
            "{parameter} is {value}",
            "{n_classes} classes need {least} bits, so labels and several classes share words",
            "Use at least {more} bits, so that some are left for neighbors.",
            parameter="n_bits",
            value=n_bits,
            n_classes=n_classes,
            least=least,
            more=least + 1 + _EXTRA_BITS,
        )
        warn_caller(warning)


def n_digits(n_values: int) -> int:
    """Return how many binary digits count this many values: ceil(log2 n).

    >>> [n_digits(n) for n in (1, 2, 3, 4, 5)]
    [0, 1, 2, 2, 3]
    """
    return (n_values - 1).bit_length()


def check_settings(hasher: HybridHasher) -> int:
    """Return n_bits if all settings are possible."""
    check_choice(hasher.form, "form", get_args(HybridForm))
    check_number(hasher.class_weight, "class_weight", low=0)
    _check_hashers(hasher.class_hasher, hasher.neighbor_hasher)
    _check_codewords(hasher.codewords, hasher.class_hasher)
    return check_integer(hasher.n_bits, "n_bits", low=1)


def _check_hashers(class_hasher: object, neighbor_hasher: object) -> None:
    for name, given in (("class_hasher", class_hasher), ("neighbor_hasher", neighbor_hasher)):
        if given is not None and not isinstance(given, BaseHasher):
            raise ValueError(f"{name} is of type {type(given).__name__}; it must be a hasher or None.")
    if isinstance(class_hasher, BaseHasher):
        class_hasher.require("predict_proba", parameter="class_hasher")
    if isinstance(neighbor_hasher, BaseHasher) and "n_bits" not in neighbor_hasher.get_params():
        raise ValueError(
            f"neighbor_hasher is a {type(neighbor_hasher).__name__}, which has no parameter n_bits. Give a "
            "hasher such as ITQ, and prepare rows before the HybridHasher."
        )


def _check_codewords(codewords: object, class_hasher: object) -> None:
    if codewords is None:
        return
    if not isinstance(codewords, Codebook):
        raise ValueError(f"codewords is of type {type(codewords).__name__}; it must be a Codebook or None.")
    if isinstance(class_hasher, BaseHasher) and "codewords" not in class_hasher.get_params():
        raise ValueError(
            f"codewords is a Codebook, and the class_hasher is a {type(class_hasher).__name__}, which cannot be fitted "
            "to one. Use StarRidge, StarSHL or CodewordSVM."
        )
