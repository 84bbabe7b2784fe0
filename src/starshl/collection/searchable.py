"""An open collection that answers questions: searches, and what they find, explained."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._types import LabelsLike, SamplesLike
from ..codes import BinaryCodes
from .explanation import Explanation, explain_hits
from .filtering import Filters
from .opened import OpenCollection
from .rescoring import RescoringOptions
from .sameness import same_items
from .search import Hit, Queries, check_has_scores, check_rejecting, id_of, novelty_of, search_nearest, search_within

__all__ = ["SearchableCollection"]


class SearchableCollection(OpenCollection):
    """The questions that a collection answers; :class:`Collection` adds changes."""

    def search(
        self,
        X: SamplesLike | None = None,
        k: int = 10,
        *,
        items: ArrayLike | None = None,
        where: Mapping[str, Any] | None = None,
        among: ArrayLike | None = None,
        labels: LabelsLike = None,
        by_scores: bool = False,
        rescore: bool | None = None,
        oversample: int | None = None,
        metric: str | None = None,
        class_first: int | None = None,
        reject: float | None = None,
    ) -> list[list[Hit]]:
        """Return the k nearest items of each query, by distance and then by id.

        Parameters
        ----------
        X : samples for the hasher, default=None
        k : int, default=10
            If fewer items are stored, or pass the filters, all of them are returned.
        items : array of int, default=None
            Ids of stored items to search for, instead of X; an item is its own nearest neighbor.
        where : dict, default=None
            A filter on metadata, such as ``{"shop": "a", "price": {"<": 10}}``. Fields that are not declared are slow,
            and a warning says so.
        among : array of int, default=None
            Ids of the items that may be returned; unknown ids are ignored.
        labels : list of labels, default=None
            Labels of the items that may be returned. Items must pass all filters.
        by_scores : bool, default=False
            Order items at equal distance by their inner product with the real-valued scores of the query; needs X.
            The residual form of a :class:`starshl.HybridHasher`, which compares vectors anyway, does not support it.
            Rescoring uses the scores in any other case.
        rescore : bool, default=None
            Order the nearest ``k * oversample`` items by the distance between the query and their kept vectors; by
            default if the collection keeps them.
        oversample : int, default=None
            Items to rescore per result; more find more of the nearest vectors. None is 10, or
            200 for codes of up to 16 bits, which many items share.
        metric : {"euclidean", "cosine"}, default=None
            The distance that rescoring compares; "cosine" is 1 minus the cosine. None is "euclidean".
        class_first : int, default=None
            Rescoring puts this many items of the query's class before all others. None is the setting of the
            :class:`starshl.HybridHasher`, 10 by default; 0 compares vectors regardless of class.
        reject : float, default=None
            Answer "none of these", an empty list, where :meth:`novelty` is at least 1 - reject; needs X. About this
            share of the queries that are like the training rows is rejected, too.
        """
        share = None if reject is None else check_rejecting(reject, X)
        if by_scores:
            check_has_scores(X)
        with self._session.reading() as (snapshot, store):
            options = RescoringOptions(rescore, oversample, metric, class_first)
            if options.apply_to(snapshot):
                queries = Queries.to_rescore(snapshot, store, X, items, options)
            else:
                queries = Queries.of(snapshot, X, items, with_scores=by_scores)
            found = search_nearest(snapshot, store, queries, k, Filters(where, among, labels))
            if share is None or X is None:
                return found
            rejected = novelty_of(snapshot.hasher, X) >= 1.0 - share
        return [[] if is_new else hits for hits, is_new in zip(found, rejected.tolist(), strict=True)]

    def search_radius(
        self,
        X: SamplesLike | None = None,
        radius: float = 0,
        *,
        items: ArrayLike | None = None,
        where: Mapping[str, Any] | None = None,
        among: ArrayLike | None = None,
        labels: LabelsLike = None,
    ) -> list[list[Hit]]:
        """Return all items within ``radius`` of each query; the other arguments are those of :meth:`search`.

        The radius is a Hamming distance or, for a :class:`starshl.HybridHasher`, a distance of its index. Kept vectors
        are not used, so there are no options about them.
        """
        with self._session.reading() as (snapshot, store):
            queries = Queries.of(snapshot, X, items, with_scores=False)
            return search_within(snapshot, store, queries, radius, Filters(where, among, labels))

    def find_same(
        self,
        X: SamplesLike,
        *,
        codes: BinaryCodes | None = None,
        metadata: Sequence[Mapping[str, Any]] | None = None,
        references: Iterable[str | None] | None = None,
        previews: Iterable[bytes | None] | None = None,
    ) -> list[int | None]:
        """Return, for items that are not stored yet, the id of a stored one that is the same, or None.

        Labels do not count. Items with previews are the same if their references and previews are, other items if their
        references, metadata and kept vectors are. If vectors are not kept, codes stand in for them: an answer then
        means that two items look the same, and items without a reference and metadata are never said to.

        Parameters
        ----------
        X : samples for the hasher
        codes : BinaryCodes, default=None
            Their codes, if you have them already.
        metadata, references, previews : as in :meth:`Collection.add`
        """
        with self._session.reading() as (snapshot, store):
            return same_items(snapshot, store, X, codes, metadata, references, previews)

    def novelty(self, X: SamplesLike) -> np.ndarray:
        """Return how different each query is from the training rows of the hasher, from 0 to 1, shape (n,).

        Near 1, the nearest items are probably not what the query is about. It costs about as much as encoding the
        queries; :class:`starshl.StarRidge`, :class:`starshl.StarSHL` and :class:`starshl.HybridHasher` have it.
        """
        return novelty_of(self.hasher, X)

    def explain(self, X: SamplesLike, hits: Iterable[Hit | int], *, metric: str = "euclidean") -> list[Explanation]:
        """Say why items match a query: one :class:`Explanation` per hit, which prints as a few sentences.

        Parameters
        ----------
        X : one sample for the hasher, the query
        hits : what :meth:`search` has found for it, or ids
        metric : {"euclidean", "cosine"}, default="euclidean"
            The distance to state between vectors, if they are kept.
        """
        ids = [id_of(hit) for hit in hits]
        with self._session.reading() as (snapshot, store):
            return explain_hits(snapshot, store, X, ids, metric)
