"""What a collection answers: items, hits, explanations and previews, equal from a folder, a cluster or a service.

Importing this costs little: clients of a service need it, and nothing else of this package.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Self, overload

from .._common.labels import Label

if TYPE_CHECKING:
    import numpy as np


class JsonAnswer:
    """A value that travels as JSON; a reader ignores fields that only a newer service knows."""

    __slots__ = ()

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> Self:
        """Return the answer in a JSON object."""
        names = [each.name for each in fields(cls)]  # type: ignore[arg-type]  # every subclass is a dataclass
        return cls(**{name: answer[name] for name in names if name in answer})

    @classmethod
    def all_in(cls, name: str) -> Callable[[Mapping[str, Any]], list[Self]]:
        """Return a function that reads the answers in the list of this name in a JSON object."""
        return lambda answer: [cls.of(each) for each in answer[name]]


@dataclass(frozen=True, slots=True)
class Guess(JsonAnswer):
    """What the label of an item without one probably is, and how probably; see :meth:`starshl.Collection.guesses`.

    ``confidence`` is None where too few labels were given to tell.
    """

    label: Label
    confidence: float | None


def _guess_in(answer: Mapping[str, Any]) -> Guess | None:
    guess = answer.get("guess")
    return None if guess is None else Guess.of(guess)


@dataclass(frozen=True, slots=True)
class Item(JsonAnswer):
    """A stored item; ``code_from`` says whether its code follows from its label or its vector.

    ``model_digest`` is that of the model that encoded the vector, None if it is not known. ``vector`` is the kept
    vector, if it was asked for, and ``guess`` the guessed label of an item without one, if labels were guessed.
    """

    id: int
    label: Label | None
    metadata: dict[str, Any]
    reference: str | None
    code_from: str
    model_digest: str | None
    vector: list[float] | None = None
    guess: Guess | None = None

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> Self:
        return super(Item, cls).of({**answer, "guess": _guess_in(answer)})


@dataclass(frozen=True, slots=True)
class Prediction(JsonAnswer):
    """Predicted labels, and the probabilities of all classes if they were asked for.

    The label of a text without a known word is None, and ``notes`` name such texts; so is that of a class that was
    removed, if the hasher has no probabilities, and that of a row that was rejected: ``novelty``, how unlike the
    training rows each row is, from 0 to 1, is there if novel ones were to be rejected.
    """

    labels: list[Label | None]
    classes: list[Label] | None = None
    probabilities: list[list[float]] | None = None
    notes: list[str] = field(default_factory=list)
    novelty: list[float] | None = None

    def rejecting(self, novelty: np.ndarray, share: float) -> Prediction:
        """Return it without the labels of novel rows; about this share of rows like the training rows is novel."""
        limit, novel = 1.0 - share, novelty.tolist()
        labels = [label if own < limit else None for label, own in zip(self.labels, novel, strict=True)]
        return replace(self, labels=labels, novelty=novel)


@dataclass(frozen=True, slots=True)
class ClassChange(JsonAnswer):
    """A class that was renamed, merged into another one, or removed, in the change that made this version.

    ``kind`` is "rename", "merge" or "remove", ``label`` what the class was called, ``into`` its new name or the class
    that it was merged into. ``number`` tells it from other changes of classes, and ``undone`` whether it was undone.
    """

    number: int
    version: int
    kind: str
    label: Label
    into: Label | None
    undone: bool


@dataclass(frozen=True, slots=True)
class ClassOfCode(JsonAnswer):
    """The class that a query or an item looks like.

    Where hits have probabilities, it is the likeliest class, and ``probability`` says how likely; otherwise it is the
    one whose codeword is nearest, ``distance`` bits away.
    """

    label: Label
    distance: int | None = None
    probability: float | None = None


@dataclass(frozen=True, slots=True)
class Explanation(JsonAnswer):
    """Why an item matches a query; ``text`` puts it into words.

    Attributes
    ----------
    text : str
    id : int
    probability : how likely the item is of the query's class, None if the hasher cannot tell; for the classes of the
        fit and in their shares there, so a query of another class gets sure but wrong hits, which ``novelty`` may tell
    distance : int, the number of differing bits; of a HybridHasher, those of the neighborhood count
    neighbor_distance : what these add to the distance of the index, None if the hasher has no such bits; what is
        missing there follows from the probability
    agreeing, differing : lists of bits, the differing ones with the most certain scores of the query first
    query_class, item_class : what they look like, None if the hasher has no classes with names
    label : the item's label, or None
    code_from : "label" or "vector", what the item's code follows from
    rescored : distance of the vectors in terms of ``metric``, None if they are not kept
    metric : "euclidean" or "cosine"
    kernels : pairs of a kernel and its part of the query's score, for the item's class if the hasher scores classes,
        else for the item's code; largest first. Empty if the hasher has no kernels.
    views : pairs of a view and its part of the same score, largest first; empty without views
    training_rows : pairs of the number of a training row and its part of the same score, largest first
    novelty : how different the query is from the training rows, from 0 to 1; None if the hasher cannot tell
    """

    text: str
    id: int
    probability: float | None
    distance: int
    neighbor_distance: float | None
    agreeing: list[int]
    differing: list[int]
    query_class: ClassOfCode | None
    item_class: ClassOfCode | None
    label: Label | None
    code_from: str
    rescored: float | None
    metric: str
    kernels: list[tuple[str, float]]
    views: list[tuple[str, float]]
    training_rows: list[tuple[int, float]]
    novelty: float | None

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> Self:
        pairs = {name: [*map(tuple, answer[name])] for name in ("kernels", "views", "training_rows")}
        classes = {name: answer[name] and ClassOfCode.of(answer[name]) for name in ("query_class", "item_class")}
        return super(Explanation, cls).of({**answer, **pairs, **classes})

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Hit(JsonAnswer):
    """An item near a query.

    ``distance`` is that of the index: the Hamming distance of the codes, or a number in which the probability counts.
    ``probability`` says how likely the item is of the query's class, None if the hasher cannot tell. ``rescored`` is
    the distance of the vectors if these decided the order, too, and ``code_from`` says what the item's code follows
    from: "label" or "vector". ``explanation`` says why the item matches, if the search was to explain it, and ``guess``
    is the guessed label of an item without one, if labels were guessed.
    """

    id: int
    distance: int | float
    probability: float | None
    rescored: float | None
    label: Label | None
    metadata: dict[str, Any]
    reference: str | None
    code_from: str
    explanation: Explanation | None = None
    guess: Guess | None = None

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> Self:
        why = answer.get("explanation")
        explanation = None if why is None else Explanation.of(why)
        return super(Hit, cls).of({**answer, "explanation": explanation, "guess": _guess_in(answer)})


@dataclass(frozen=True, slots=True)
class SearchResult(JsonAnswer, Sequence[Hit]):
    """The hits of one query, nearest first; ``total`` counts also those that a search by radius leaves out.

    ``novelty`` is how unlike the training rows the query is, from 0 to 1, if the search was to reject novel ones.
    """

    hits: list[Hit]
    total: int
    novelty: float | None = None

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> Self:
        return super(SearchResult, cls).of({**answer, "hits": [Hit.of(hit) for hit in answer["hits"]]})

    def without(self, ids: Collection[int], k: int) -> SearchResult:
        """Return the first k hits besides some items."""
        hits = [hit for hit in self.hits if hit.id not in ids][:k]
        return SearchResult(hits, len(hits), self.novelty)

    def __len__(self) -> int:
        return len(self.hits)

    @overload
    def __getitem__(self, index: int) -> Hit: ...

    @overload
    def __getitem__(self, index: slice) -> list[Hit]: ...

    def __getitem__(self, index: int | slice) -> Hit | list[Hit]:
        return self.hits[index]


class Preview(NamedTuple):
    """A small picture: the bytes of a file, and their media type, such as "image/webp"."""

    content: bytes
    media_type: str
