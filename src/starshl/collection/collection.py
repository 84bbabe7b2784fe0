"""Collection: items, their codes and the hasher that made them, in one folder that survives crashes."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from html import escape
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, Unpack

import numpy as np
from numpy.typing import ArrayLike

from .._common.files import atomic_folder
from .._common.labels import Label, LabelsLike
from .._common.lazy import library
from .._common.validation import SamplesLike, check_choice, check_integer, check_number, check_share, check_storable
from .._common.warn import warn_caller
from .._common.words import counted
from ..codes.binary import BinaryCodes
from ..data import features
from ..exceptions import UnknownIdError
from ..index.base import check_ids
from .answers import ClassChange, Explanation, Hit, Item, Prediction, Preview, SearchResult
from .changes import Samples, change_classes, declare, describe_items, put_items, replace_model, set_item_labels
from .columns import Value
from .duplicates import duplicates_of
from .embedding import ItemKind, embedder_file, item_meta, load_embedder, text_notes
from .explanation import explain_hits, id_of, with_explanations
from .export import write_rows
from .fields import check_fields, fields_text
from .filters import (
    count_labels,
    count_values,
    kind_of_labels,
    labels_by_id,
    named_items,
    passing_ids,
    unknown_labels_note,
)
from .folder import Kernels, digest_of_model, save_model
from .guesses import ORDERS, Guesses, GuessFile, Order, with_guesses
from .items import Row, item_of
from .journal import check_entry, check_receipt, find_receipt, read_entries
from .labels import check_kind, item_labels, kind_of, label_text
from .model_classes import ModelClasses, texts_of_classes
from .notebook import Found, cards_html
from .options import FilterKeywords, Filters, Metric, SearchKeywords, SearchOptions, takes_keywords
from .predictions import check_has_classes, predicted
from .previews import delete_previews, find_preview
from .refit import refitted_hasher
from .search import Queries, find_items, novelty_of, rejecting
from .session import DATABASE, Session, rebuild
from .state import State
from .store import Store
from .suspects import Suspect, find_suspects
from .vectors import VectorDtype, create_vectors
from .vocabulary import Vocabulary

if TYPE_CHECKING:
    from ..data.features.embedder import Embedder, Given
    from ..hashers.base import BaseHasher

sklearn_validation = library("sklearn.utils.validation")
_FIRST_SHOWN = 12  # items, in a notebook


class Collection:
    """A durable set of items with codes, searched exactly.

    A batch is stored completely or not at all, and once a method has returned, its change survives a crash of the
    process or the machine. One process may write at a time; any number may read at the same time, and each search sees
    one unchanging state. A damaged file is refused, never searched.

    An item may have a label, which can change at any time (:meth:`set_labels`). Hashers that give each class a codeword
    give labeled items that codeword; if the label is removed, the item has the code of its vector again. A newly fitted
    hasher has different hash functions, so every item must be encoded again: use :meth:`replace_hasher`, which needs
    nothing else if the collection keeps the vectors. Kept vectors also make searches more exact.

    Parameters
    ----------
    folder : path
    read_only : bool, default=False
        Leave the folder as it is; other processes may write to it.
    kernels : list of kernels, default=None
        Those of the hasher, if it was fitted with functions, which a file cannot hold.
    embedder : str, function, transformer or Embedder, default=None
        What the file of the embedder does not hold: a function or transformer, or a network that is in another folder
        now; see :meth:`starshl.data.features.Embedder.load`.
    n_jobs : int, default=None
        Threads of a search.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sklearn.datasets import load_digits
    >>> from starshl.hashers.baselines import LSHash
    >>> from starshl import Collection
    >>> X, y = load_digits(return_X_y=True)
    >>> folder = Path(tempfile.mkdtemp()) / "digits"
    >>> with Collection.create(folder, LSHash(32, random_state=0).fit(X), fields={"page": int}) as digits:
    ...     ids = digits.add(X, labels=y, metadata=[{"page": i // 100} for i in range(len(X))])
    ...     hits = digits.search(X[:1], k=2, labels=[0], where={"page": {"<": 10}})[0]
    >>> [(hit.id, hit.distance, hit.label, hit.metadata) for hit in hits]
    [(0, 0, 0, {'page': 0}), (458, 1, 0, {'page': 4})]
    """

    @classmethod
    def create(
        cls,
        folder: str | os.PathLike[str],
        hasher: BaseHasher,
        *,
        vectors: VectorDtype | None = None,
        fields: Mapping[str, type | str] | None = None,
        embedder: str | Given = None,
        kind: ItemKind | None = None,
        title: str | None = None,
        kernels: Kernels = None,
        n_jobs: int | None = None,
    ) -> Self:
        """Make a new, empty collection for codes of a fitted hasher; the folder must not exist yet.

        Parameters
        ----------
        folder : path
        hasher : fitted hasher
        vectors : {"float16", "int8", None}, default=None
            Keep the vectors of items in a file, two bytes or one per number, for searches that compare them and for
            :meth:`replace_hasher`. They take no memory besides the system's cache.
        fields : dict, default=None
            Metadata fields to filter by, with their types, such as ``{"year": int, "topic": str}``: a filter on them
            takes milliseconds. Types are int, float, str and bool. See also :meth:`declare_fields`.
        embedder : str, Embedder, function or transformer, default=None
            Makes the vectors of the hasher from raw pictures or texts; see :meth:`embed`. A name is one of
            :func:`starshl.data.features.make_embedder`, such as "minilm". For a function, ``kind`` says what it takes.
        kind : {"pictures", "texts", "vectors"}, default=None
            What items are, for pages that show them; None is what the embedder takes, or "vectors".
        title : str, default=None
            The metadata field that says what an item is; see :meth:`title_of`.
        kernels : list of kernels, default=None
            Those of the hasher, if it was fitted with functions, which a file cannot hold.
        n_jobs : int, default=None
            Threads of a search.
        """
        sklearn_validation.check_is_fitted(hasher)
        made = None if embedder is None else features.as_embedder(embedder, None if kind == "vectors" else kind)
        with atomic_folder(Path(folder), "Open it, or choose another folder.") as draft:
            meta: dict[str, str | int] = {"fields": fields_text(check_fields(fields or {}))}
            meta |= {} if vectors is None else create_vectors(draft, vectors, hasher)
            meta |= item_meta(draft, hasher, made, kind, title)
            model, space = save_model(draft, hasher, kernels)
            meta["space"] = space.space_id or ""
            vocabulary = Vocabulary().with_names(texts_of_classes(hasher), 0)
            meta["model_classes"] = ModelClasses.of(range(len(vocabulary.names)), 0, vocabulary).content
            Store.create(draft / DATABASE, model, hasher.n_bits_, meta, vocabulary.events)
        return cls(folder, kernels=kernels, embedder=None if made is None else made.given_steps, n_jobs=n_jobs)

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        read_only: bool = False,
        kernels: Kernels = None,
        embedder: str | Given = None,
        n_jobs: int | None = None,
    ) -> None:
        self.folder = Path(folder)
        self.read_only = read_only
        self.n_jobs = n_jobs
        self._given = embedder
        self._embedder: tuple[str, Embedder] | None = None
        self._session = Session(self.folder, read_only=read_only, kernels=kernels, n_jobs=n_jobs)
        self._guess_file = GuessFile(self.folder, read_only=read_only)

    def close(self) -> None:
        """Close the files; another process may write from then on."""
        self._session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        name = f"{type(self).__name__}({str(self.folder)!r}"
        if not self._session.is_open:
            return f"{name}, closed)"
        with self.reading() as (state, _):
            items, bits = counted(len(state.index), "item"), counted(state.index.n_bits, "bit")
            return f"{name}, {items}, {bits} of {state.space.method})"

    def _repr_html_(self) -> str | None:
        if not self._session.is_open:
            return None
        return f"<p>{escape(repr(self))}</p>{cards_html(self, self.get(self.ids[:_FIRST_SHOWN])) or ''}"

    def explore(self, *, height: int = 760) -> Any:
        """Show the pages of the explorer over this collection; a notebook shows them below the cell.

        They are at ``.address``, only for this machine, and stop with the process or with ``.close()``. What is labeled
        there is in this collection at once. Needs ``starshl[serve]``; see :class:`starshl.service.Explorer`.
        """
        # A service stands on collections, so this is the one place where one of them asks for it, by name.
        return importlib.import_module("starshl.service").Explorer(self, height)

    def __len__(self) -> int:
        with self.reading() as (state, _):
            return len(state.index)

    @property
    def hasher(self) -> BaseHasher:
        """The fitted hasher of this collection."""
        with self.reading() as (state, _):
            return state.hasher

    @property
    def n_bits(self) -> int:
        """The length of the codes."""
        with self.reading() as (state, _):
            return state.index.n_bits

    @property
    def vector_dtype(self) -> str | None:
        """How vectors are kept: "float16", "int8", or None if they are not."""
        with self.reading() as (state, _):
            return None if state.vectors is None else state.vectors.layout.vector_dtype

    @property
    def space_id(self) -> str | None:
        """The identity of the space of the codes, None if it is unknown; codes of other spaces are refused."""
        with self.reading() as (state, _):
            return state.space.space_id

    @property
    def model_digest(self) -> str:
        """A digest of the hasher's model file; items remember that of the model that encoded them."""
        with self.reading() as (state, _):
            return digest_of_model(state.model)

    @property
    def version(self) -> int:
        """The number of changes that were ever stored."""
        with self.reading() as (state, _):
            return state.generation

    @property
    def fields(self) -> dict[str, str]:
        """The declared metadata fields and their types: "int", "float", "str" or "bool"."""
        with self.reading() as (_, store):
            return store.fields()

    @property
    def label_kind(self) -> str | None:
        """What labels must be: "text", "numbers" or "booleans"; None as long as there are none to compare with."""
        with self.reading() as (state, store):
            return kind_of_labels(state, store)

    @cached_property
    def kind(self) -> str:
        """What items are: "pictures", "texts" or "vectors"."""
        with self.reading() as (_, store):
            return store.text_meta("kind")

    @cached_property
    def title(self) -> str | None:
        """The metadata field that says what an item is, None if none was named."""
        with self.reading() as (_, store):
            return store.text_meta("title_field") or None

    def add(
        self,
        X: SamplesLike | None = None,
        *,
        labels: LabelsLike = None,
        codes: BinaryCodes | None = None,
        model_digest: str | None = None,
        ids: ArrayLike | None = None,
        metadata: Sequence[Mapping[str, Any]] | None = None,
        references: Iterable[str | None] | None = None,
        previews: Iterable[bytes | None] | None = None,
    ) -> np.ndarray:
        """Store new items and return their ids.

        Parameters
        ----------
        X : samples for the hasher, default=None
        labels : array of shape (n_items,), default=None
            Labels of the items: strings, whole numbers or booleans; -1, NaN, None or empty text where there is none.
            If the hasher has a codeword for the class of a label, it becomes the code of the item.
        codes : BinaryCodes, default=None
            The codes of the vectors, if you have them already: instead of X, or in addition to X if vectors are kept.
        model_digest : str, default=None
            Which model made ``codes``, as :attr:`model_digest` of a collection names it; None if that is not known.
        ids : array of int, default=None
            New ids; the next free ones if None.
        metadata : list of dict, default=None
            One dictionary per item, of what JSON can hold; values of declared fields have their types.
        references : list of str or None, default=None
            Where the picture or text is, one per item.
        previews : list of bytes or None, default=None
            A small picture of each item, as a PNG, JPEG or WebP file of up to 256 KB; see
            :func:`starshl.data.features.preview_of`.
        """
        samples = Samples(X, codes, labels, model_digest)
        return put_items(self._session, samples, ids, metadata, references, previews, replace=False)

    def upsert(
        self,
        X: SamplesLike | None = None,
        *,
        ids: ArrayLike,
        labels: LabelsLike = None,
        codes: BinaryCodes | None = None,
        model_digest: str | None = None,
        metadata: Sequence[Mapping[str, Any]] | None = None,
        references: Iterable[str | None] | None = None,
        previews: Iterable[bytes | None] | None = None,
    ) -> np.ndarray:
        """Store items under given ids, replacing those that exist; the arguments are those of :meth:`add`.

        Nothing of a replaced item stays: not its label, its metadata or its preview.
        """
        samples = Samples(X, codes, labels, model_digest)
        return put_items(self._session, samples, ids, metadata, references, previews, replace=True)

    def set_labels(self, ids: ArrayLike, labels: LabelsLike, *, warn_unknown: bool = True) -> list[Item]:
        """Store the labels of items and the codes that follow from them; return the items as they are then.

        Parameters
        ----------
        ids : array of int
        labels : array of shape (n_items,), or None
            As in :meth:`add`. An item without a label, or with one that the hasher does not know, has the code of its
            vector; None removes the labels of all these items.
        warn_unknown : bool, default=True
            Warn if the hasher does not know a label.
        """
        return set_item_labels(self._session, check_ids(ids), labels, warn_unknown=warn_unknown)

    @property
    def classes(self) -> list[Label] | None:
        """The classes of the hasher under the names that they have now, None if it knows no classes.

        Merged classes count as one, and removed ones are left out. The hasher itself keeps the names of its fit.
        """
        with self.reading() as (state, _):
            return state.shown_classes.labels if state.classes.ids else None

    def predict(self, X: SamplesLike, *, probabilities: bool = False, reject: float | None = None) -> Prediction:
        """Predict the class of each row, under the names that classes have in this collection.

        Probabilities of merged classes are added before the most likely one is chosen, and removed classes are left
        out.

        Parameters
        ----------
        X : samples for the hasher
        probabilities : bool, default=False
            Return those of all classes, too.
        reject : float, default=None
            Answer None, "none of these", where :meth:`novelty` is at least 1 - reject. About this share of the rows
            that are like the training rows is rejected, too.
        """
        reject = None if reject is None else check_share(reject, "reject")
        with self.reading() as (state, _):
            check_has_classes(state.hasher)
            labels, shares = predicted(state.hasher, state.shown_classes, X, with_shares=probabilities)
            found = Prediction(labels)
            if probabilities and shares is not None:
                found = Prediction(labels, state.shown_classes.labels, shares.tolist())
            return found if reject is None else found.rejecting(novelty_of(state.hasher, X), reject)

    def rename_class(self, label: Label, name: Label) -> ClassChange:
        """Give a class another name: items, filters and predictions say it from then on, and no code changes.

        The old name is free for another class afterward. Like :meth:`merge_classes` and :meth:`remove_class`, this can
        be undone: :meth:`undo_class_change`.
        """
        text, new = label_text(label), label_text(name)
        check_kind([new], kind_of([text]), "the class")
        if not item_labels([name], 1).labeled[0]:
            raise ValueError(
                f"{name!r} marks items without a label, so no class has this name. Give another, or remove the class."
            )
        return change_classes(self._session, lambda known, version: known.renamed(text, new, version))

    def merge_classes(self, label: Label, into: Label) -> ClassChange:
        """Let a class count as another one: its items have the other label, and the old name still means it.

        No code changes. Classes that were merged into the first one follow it.
        """
        text, other = label_text(label), label_text(into)
        return change_classes(self._session, lambda known, version: known.merged(text, other, version))

    def remove_class(self, label: Label) -> ClassChange:
        """Hide a class: its items have no label until this is undone, and it is not predicted; no code changes.

        Probabilities, also those of hits, are those of queries that are of another class.
        """
        text = label_text(label)
        return change_classes(self._session, lambda known, version: known.without(text, version))

    def undo_class_change(self, number: int | None = None) -> ClassChange:
        """Undo a rename, merger or removal of a class, the last one that stands if ``number`` is None."""
        chosen = None if number is None else check_integer(number, "number", low=0)
        return change_classes(self._session, lambda known, version: known.undone(chosen, version))

    def class_changes(self) -> list[ClassChange]:
        """Return all renames, mergers and removals of classes, undone or not, the oldest first."""
        with self.reading() as (state, _):
            return list(state.vocabulary.changes)

    def label_since(self, label: Label | None, version: int) -> Label | None:
        """Return what the class that a label stood for at an earlier :attr:`version` is called now, None if removed."""
        with self.reading() as (state, _):
            vocabulary = state.vocabulary
        if label is None or not vocabulary.changes:
            return label
        class_id = vocabulary.as_of(version).id_of(label_text(label))
        return label if class_id is None else vocabulary.label(class_id)

    def update(self, ids: ArrayLike, metadata: Sequence[Mapping[str, Any]]) -> None:
        """Replace the metadata of items; labels, codes and references stay."""
        describe_items(self._session, check_ids(ids), metadata)

    def remove(self, ids: ArrayLike) -> np.ndarray:
        """Remove items and return their ids; if an id is unknown, nothing is removed."""
        ids = check_ids(ids)
        with self._session.writing() as change:
            missing = ids[~change.state.index.holds(ids)]
            if len(missing):
                raise UnknownIdError(int(missing[0]), "in the collection; nothing was removed")
            change.store.delete(ids)
            delete_previews(change.store, ids.tolist())
            change.change_codes(gone=ids)
        return ids

    def replace_hasher(
        self,
        hasher: BaseHasher,
        ids: ArrayLike | None = None,
        X: SamplesLike | None = None,
        *,
        codes: BinaryCodes | None = None,
        kernels: Kernels = None,
    ) -> None:
        """Change to another hasher; labels, metadata and references stay.

        Parameters
        ----------
        hasher : fitted hasher
            If the collection has an embedder, it stays, and the hasher takes what it makes.
        ids, X : default=None
            All items and their samples. A collection that keeps vectors encodes these if X is None; otherwise it keeps
            X from then on, which may have other columns. If the new hasher is of the same space (fitted to the same
            :class:`starshl.Codebook`), you need neither: items keep the codes of their vectors and their digests.
        codes : BinaryCodes, default=None
            The new codes of the vectors of ``ids``, if you have them already, instead of X: the change then takes no
            longer than storing them.
        kernels : as in :meth:`create`
        """
        sklearn_validation.check_is_fitted(hasher)
        replace_model(self._session, hasher, None if ids is None else check_ids(ids), X, codes, kernels)

    def refit(self) -> BaseHasher:
        """Fit the hasher anew, with the same settings, to the labels that items have now; return it as it is then.

        Its codes replace those of all items in one change, as in :meth:`replace_hasher`. The collection must keep
        vectors.
        """
        self._session.check_writable()
        self.replace_hasher(refitted_hasher(self))
        return self.hasher

    def suspects(self, n: int | None = 20, *, probability: float = 0.5) -> list[Suspect]:
        """Return items whose label is probably wrong, the least probable label first.

        Every labeled item is compared with what a fit to all other labeled items says of it. That takes kept vectors,
        and about as long as a fit of :class:`starshl.StarRidge`. Correct labels with :meth:`set_labels`.

        Parameters
        ----------
        n : int, default=20
            How many at most; None for no limit.
        probability : float, default=0.5
            From which probability that it is wrong a label is listed; 0 ranks all labeled items but those that are the
            only one of their class.
        """
        limit = None if n is None else check_integer(n, "n", low=1)
        if not 0 <= check_number(probability, "probability", low=0) <= 1:
            raise ValueError(f"probability is {probability!r}; it must be a number from 0 to 1.")
        return find_suspects(self, limit, probability)

    def declare_fields(self, fields: Mapping[str, type | str]) -> None:
        """Declare metadata fields, so that filters on them are fast; every item must fit, or nothing changes.

        Parameters
        ----------
        fields : dict
            Names and types, as in :meth:`create`. An item may lack a field, or have None there. A field that is
            declared already keeps its type.
        """
        declare(self._session, check_fields(fields))

    @takes_keywords(SearchKeywords)
    def search(
        self,
        X: SamplesLike | None = None,
        k: int = 10,
        *,
        items: ArrayLike | None = None,
        **options: Unpack[SearchKeywords],
    ) -> list[SearchResult]:
        """Return the k nearest items of each query, by distance and then by id.

        Each :class:`starshl.collection.SearchResult` is a sequence of hits.

        Parameters
        ----------
        X : samples for the hasher, default=None
        k : int, default=10
            If fewer items are stored, or pass the filters, all of them are returned.
        items : array of int, default=None
            Ids of stored items to search for, instead of X. Where codes are compared bit by bit, an item is its own
            nearest neighbor.
        """
        return self.answer(SearchOptions.of(k, **options), X, items=items)

    @takes_keywords(FilterKeywords)
    def search_radius(
        self,
        X: SamplesLike | None = None,
        radius: float | None = 0,
        *,
        items: ArrayLike | None = None,
        min_probability: float | None = None,
        **filters: Unpack[FilterKeywords],
    ) -> list[SearchResult]:
        """Return all items within ``radius`` of each query, by distance and then by id.

        Kept vectors are not used, so there are no options about them.

        Parameters
        ----------
        X : samples for the hasher, default=None
        radius : int or float, default=0
            A Hamming distance or, for hashers with probabilities, a distance of their index. None is no limit besides
            ``min_probability``.
        items : array of int, default=None
            Ids of stored items to search for, instead of X.
        min_probability : float, default=None
            Only items that are of the query's class with at least this probability.
        """
        return self.answer(SearchOptions.of_radius(radius, min_probability, **filters), X, items=items)

    def answer(
        self,
        options: SearchOptions,
        X: SamplesLike | None = None,
        *,
        items: ArrayLike | None = None,
        pause: Callable[[], None] = lambda: None,
    ) -> list[SearchResult]:
        """Return what each query finds; :meth:`search` and :meth:`search_radius` make the options, too.

        ``pause`` is called between pieces of the work, and ends the search if it raises an error.
        """
        options.check_query(X)
        with self.reading() as (state, store):
            queries, guesses = Queries.of(state, store, X, items, options), self._guess_file.read(state, store)
            found = find_items(state, store, queries, options, pause, guesses)
            if options.reject is not None and X is not None:
                found = rejecting(found, novelty_of(state.hasher, X), options.reject)
            if options.explain:
                found = with_explanations(state, store, X, items, found, options.metric or "euclidean", pause)
        return Found(found, self)

    def explain(self, X: SamplesLike, hits: Iterable[Hit | int], *, metric: Metric = "euclidean") -> list[Explanation]:
        """Say why items match a query: one :class:`Explanation` per hit, which prints as a few sentences.

        Parameters
        ----------
        X : one sample for the hasher, the query
        hits : what :meth:`search` has found for it, or ids
        metric : {"euclidean", "cosine"}, default="euclidean"
            The distance to state between vectors, if they are kept.
        """
        ids = [id_of(hit) for hit in hits]
        with self.reading() as (state, store):
            return explain_hits(state, store, X, ids, metric)

    def novelty(self, X: SamplesLike) -> np.ndarray:
        """Return how different each query is from the training rows of the hasher, from 0 to 1, shape (n,).

        Near 1, the nearest items are probably not what the query is about. It costs about as much as encoding the
        queries; :class:`starshl.StarRidge`, :class:`starshl.StarSHL` and :class:`starshl.HybridHasher` have it.
        """
        return novelty_of(self.hasher, X)

    def find(
        self,
        where: Mapping[str, Any] | None = None,
        *,
        among: ArrayLike | None = None,
        labels: LabelsLike = None,
        guesses: LabelsLike = None,
        order: Order = "id",
    ) -> np.ndarray:
        """Return the ids of the items that pass filters; the filters are those of :meth:`search`.

        Without filters, or with an empty one, these are the ids of all items. They ascend, or begin with the
        "likeliest" or the "least_sure" guess, if ``order`` says so; given labels are certain.
        """
        check_choice(order, "order", ORDERS)
        return self.passing(Filters.of(where, among, labels, guesses), order)

    def passing(self, filters: Filters, order: Order = "id") -> np.ndarray:
        """Return the ids of the items that pass filters; :meth:`find` makes the filters, too."""
        with self.reading() as (state, store):
            guesses = self._guess_file.read(state, store)
            found = passing_ids(state, store, filters, guesses)
            return found if guesses is None else guesses.ordered(found, order)

    def named(self, text: str) -> list[int]:
        """Return the ids of the items whose reference or title contains a text, such as a part of a file name.

        Letters count the same in capitals, as far as they are ASCII.
        """
        check_storable(text, "The name")
        with self.reading() as (state, store):
            return named_items(state, store, text)

    def unknown_labels_note(self, filters: Filters) -> str | None:
        """Say which of the wanted labels no item has, and which there are; None if all are known, or there are none."""
        with self.reading() as (state, store):
            return unknown_labels_note(state, store, filters.labels or ())

    def find_duplicates(
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
        with self.reading() as (state, store):
            found = duplicates_of(state, store, X, codes, metadata, references, previews)
        return [ids[0] if ids else None for ids in found]

    @property
    def ids(self) -> np.ndarray:
        """All ids, ascending."""
        with self.reading() as (state, _):
            return np.sort(state.index.ids)

    def get(self, ids: ArrayLike, *, vectors: bool = False) -> list[Item]:
        """Return items by id, with their kept vectors if asked for."""
        wanted = check_ids(ids).tolist()
        with self.reading() as (state, store):
            rows = store.rows(wanted)
            kept = state.vectors_of(store, wanted).tolist() if vectors else [None] * len(rows)
            items = [item_of(row, state.vocabulary, vector) for row, vector in zip(rows, kept, strict=True)]
            return with_guesses(items, self._guess_file.read(state, store))

    def title_of(self, item: Item | Hit) -> str:
        """Return what to call an item: its title, the last part of its reference, or its number."""
        found = item.metadata.get(self.title or "")
        if found is not None:
            return str(found)
        name = (item.reference or "").rstrip("/").rpartition("/")[2]
        return name or f"Item {item.id}"

    def codes(self, ids: ArrayLike) -> BinaryCodes:
        """Return the codes of items."""
        with self.reading() as (state, _):
            return state.index.reconstruct(ids)

    def vectors(self, ids: ArrayLike) -> np.ndarray:
        """Return the kept vectors of items, as float64 of shape (n_items, n_columns)."""
        with self.reading() as (state, store):
            return state.vectors_of(store, check_ids(ids).tolist())

    def preview(self, item: int) -> Preview | None:
        """Return the small picture of an item with its media type, None if it has none."""
        with self.reading() as (_, store):
            return find_preview(store, check_ids([item]).tolist()[0])

    def labels(self) -> dict[int, Label]:
        """Return the labels of all items that have one, by ascending id."""
        with self.reading() as (state, store):
            return labels_by_id(state, store)

    def label_counts(self) -> dict[Label, int]:
        """Return how many items have each label, the most frequent first; unlabeled items are not counted."""
        with self.reading() as (state, store):
            return count_labels(state, store)

    def guesses(self) -> Guesses | None:
        """Return the guessed labels of the items without one, None if no labels were guessed.

        A :class:`starshl.labeling.Lesson` guesses after each answer, and :func:`starshl.labeling.guess_labels` whenever
        it is called. Items and hits have their guess in ``guess``, and searches can ask for it (``guesses=["apple"]``).
        If something has changed since, such as a label, ``is_current`` is False until labels are guessed again.
        """
        with self.reading() as (state, store):
            return self._guess_file.read(state, store)

    def keep_guesses(self, guesses: Guesses, version: int) -> None:
        """Keep guesses that follow from what the collection held at a version, unless it has changed since."""
        with self.reading() as (state, store):
            if state.generation == version:
                self._guess_file.keep(state, store, guesses)

    def value_counts(self, field: str) -> dict[Value, int]:
        """Return how many items have each value of a declared field, the most frequent first."""
        with self.reading() as (state, store):
            return count_values(state, store, field)

    def rows(self) -> list[Row]:
        """Return every stored row by id, from one unchanging state."""
        with self.reading() as (_, store):
            return list(store.all_rows())

    def codes_and_items(self) -> tuple[BinaryCodes, list[Item]]:
        """Return the codes of all items, and the items, by id and from one unchanging state."""
        with self.reading() as (state, store):
            items = [item_of(row, state.vocabulary) for row in store.all_rows()]
            items = with_guesses(items, self._guess_file.read(state, store))
            return state.index.reconstruct([item.id for item in items]), items

    def kept_features(self) -> tuple[str, ...]:
        """Return the columns of the hasher's table that items have as metadata, too, as the first item shows."""
        with self.reading() as (state, store):
            names = state.hasher.feature_names
            if not names or not len(state.index):
                return ()
            first = store.rows([int(state.index.ids.min())])[0].metadata
            return tuple(name for name in names if name in first)

    @property
    def vectors_state(self) -> tuple[str, int, int]:
        """What changes whenever kept vectors do: the name of their file, how many were written, and how many remain."""
        with self.reading() as (state, store):
            n_written = 0 if state.vectors is None else store.meta("n_records")
            return state.vector_file_name, n_written, len(state.index)

    @property
    def embedder(self) -> Embedder | None:
        """What makes vectors from raw pictures or texts, None if the collection only knows vectors.

        It is loaded when it is first needed: a collection whose embedder needs a library that is not installed can
        still be searched by vector.
        """
        with self.reading() as (_, store):
            name = embedder_file(store)
        if name is None:
            return None
        if self._embedder is None or self._embedder[0] != name:
            self._embedder = name, load_embedder(self.folder, name, self._given)
        return self._embedder[1]

    @property
    def takes(self) -> tuple[str, ...]:
        """What :meth:`embed` makes vectors of; nothing without an embedder."""
        embedder = self.embedder
        return () if embedder is None else embedder.takes

    def embed(self, raw: Any, *, warn_unknown: bool = True) -> np.ndarray:
        """Return the vectors of raw pictures (paths, bytes or arrays), texts or rows, one per item, to search or add.

        Parameters
        ----------
        raw : list of pictures or texts, or matrix of rows
            What :attr:`takes` says.
        warn_unknown : bool, default=True
            Warn of texts without any known word, whose vectors are zeros, and of texts that are cut.
        """
        embedder = self.embedder
        if embedder is None:
            raise ValueError(
                "This collection has no embedder: it takes vectors as they are. Make a collection with an "
                "embedder: Collection.create(..., embedder=...)."
            )
        vectors = embedder.embed(raw)
        if warn_unknown and all(isinstance(item, str) for item in raw) and "texts" in embedder.takes:
            for note in text_notes(embedder, raw, vectors):
                warn_caller(note)
        return vectors

    def idempotent(self, key: str, text: str) -> AbstractContextManager[None]:
        """Store a text under a key together with the next change that this thread makes inside the block, or neither.

        If you lost the answer to a change, in a crash or with a connection, ask :meth:`receipt` whether it was stored
        before you try again. The newest 100,000 receipts are kept.
        """
        check_receipt(key, text)
        return self._session.idempotent(key, text)

    def receipt(self, key: str) -> str | None:
        """Return the text that a change stored under a key, None if there is no such change."""
        with self.reading() as (_, store):
            return find_receipt(store, key)

    def journaling(self, journal: str, text: str) -> AbstractContextManager[None]:
        """Append a text to a journal together with the next change that this thread makes inside the block, or neither.

        A journal keeps all of its entries, in the order of the changes; :meth:`journal` reads them.
        """
        check_entry(journal, text)
        return self._session.journaling(journal, text)

    def note(self, journal: str, text: str) -> None:
        """Append a text to a journal as a separate change."""
        with self.journaling(journal, text), self._session.writing() as change:
            change.change_codes()

    def journal(self, name: str, after: int = 0) -> list[str]:
        """Return the entries of a journal, the oldest first, without the first ``after`` of them."""
        with self.reading() as (_, store):
            return read_entries(store, name, after)

    def reading(self) -> AbstractContextManager[tuple[State, Store]]:
        """Yield the newest state, in memory and in the file, for several reads; neither changes inside the block."""
        return self._session.reading()

    def compact(self) -> None:
        """Give the space of removed items back to the file system."""
        self._session.compact()

    def verify(self) -> int:
        """Examine every page and every item; return the number of items or say what is damaged."""
        return self._session.verify()

    @staticmethod
    def rebuild(folder: str | os.PathLike[str]) -> int:
        """Make anew what is derived, for a collection that is refused because it is damaged there.

        This is the log of changes, which tells readers what to read again, and the indexes of SQLite. All else is
        stored once and stays as it is; if an item is damaged, nothing changes. Return the number of items.
        """
        return rebuild(Path(folder))

    def export(self, path: str | os.PathLike[str]) -> int:
        """Write all items to a file ending in .parquet or .jsonl; return how many there are.

        If labels were guessed (:meth:`guesses`), each item has its guess beside its label. In Parquet, the label and
        each declared field (:meth:`declare_fields`) are columns of their own types; other metadata are a JSON text in
        the column ``metadata``.
        """
        with self.reading() as (state, store):
            rows, fields = list(store.all_rows()), store.fields()
            guesses = self._guess_file.read(state, store)
        write_rows(path, rows, state.vocabulary, state.hasher, fields, guesses)
        return len(rows)


@contextmanager
def atomic_collection(
    folder: str | os.PathLike[str],
    hasher: BaseHasher,
    *,
    vectors: VectorDtype | None = None,
    fields: Mapping[str, type | str] | None = None,
    embedder: str | Given = None,
    kind: ItemKind | None = None,
    title: str | None = None,
) -> Iterator[Collection]:
    """Fill a new collection that appears complete when the block ends, or not at all; options as in ``create``."""
    with atomic_folder(Path(folder), "Open it, or choose another folder.") as draft:
        # A collection makes its own folder, so only the name of this one is needed.
        draft.rmdir()
        with Collection.create(
            draft, hasher, vectors=vectors, fields=fields, embedder=embedder, kind=kind, title=title
        ) as collection:
            yield collection
