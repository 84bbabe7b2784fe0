"""Everything that the explore page shows about one question, gathered from the searcher."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..._common.labels import Label
from ...client.answers import CollectionInfo
from ...codes.binary import BinaryCodes
from ...collection.answers import Explanation, Hit, Item
from ...collection.collection import Collection
from ...exceptions import UnknownIdError
from ...hashers.base import BaseHasher
from ..inputs import text_vectors
from ..searcher import existing_items
from ..workspace import Workspace
from .question import Question
from .rendering import Card, cards_of, picture_of_upload

#: Of samples of known classes, about one in twenty has a novelty above it.
STRANGE = 0.95
_MOST_GUESSES, _LEAST_SHARE = 4, 0.005
_BROWSED = 48  # items per page: a few screens on a phone


@dataclass(frozen=True, slots=True)
class Guess:
    """A class and its probability, None if the hasher gives none."""

    label: Label
    probability: float | None


@dataclass(frozen=True, slots=True)
class Portrait:
    """A query as the hasher sees it.

    Attributes
    ----------
    bits : list of bool, the code
    n_class_bits : int, how many of them hold the class; 0 if that is not known
    guesses : the likeliest classes
    novelty : float or None, the share of training rows that look more familiar; near 1, it is none of the classes
    are_clusters : bool, whether the guesses are clusters, which no person has named
    """

    bits: list[bool]
    n_class_bits: int
    guesses: list[Guess]
    novelty: float | None
    are_clusters: bool = False


def portrait_of(collection: Collection, vector: np.ndarray) -> Portrait:
    """Return what the hasher of a collection makes of a vector."""
    hasher = collection.hasher.without_steps()
    rows, rule = np.asarray(vector)[None], hasher.class_rule
    return Portrait(
        bits=bits_of(hasher.encode(rows))[0],
        n_class_bits=0 if rule is None else rule.class_bits,
        guesses=_guesses(hasher, rows),
        novelty=float(hasher.novelty(rows)[0]) if "novelty" in hasher.supports else None,
        are_clusters=hasher.holds_clusters,
    )


def bits_of(codes: BinaryCodes) -> list[list[bool]]:
    """Return codes as booleans."""
    return (codes.to_signs() > 0).tolist()


def class_names(hasher: BaseHasher) -> list[Label]:
    """Return what pages call the classes of a hasher; the number of a cluster must not be taken for a label."""
    return [f"cluster {name}" for name in hasher.class_labels] if hasher.holds_clusters else hasher.class_labels


def _guesses(hasher: BaseHasher, rows: np.ndarray) -> list[Guess]:
    if "predict_proba" in hasher.supports:
        shares = hasher.predict_proba(rows)[0]
        best = [place for place in np.argsort(-shares, kind="stable")[:_MOST_GUESSES] if shares[place] >= _LEAST_SHARE]
        classes = class_names(hasher)
        return [Guess(classes[place], float(shares[place])) for place in best]
    if "predict" in hasher.supports and not hasher.holds_clusters:
        return [Guess(np.asarray(hasher.predict(rows)).tolist()[0], None)]
    return []


@dataclass(frozen=True, slots=True)
class Asked:
    """What is searched for: a stored item, an upload or a text; ``vector`` is None if vectors are not kept."""

    title: str
    picture: str | None
    item: Item | None
    vector: np.ndarray | None

    @property
    def label(self) -> Label | None:
        return None if self.item is None else self.item.label


@dataclass(frozen=True, slots=True)
class Ranked:
    """What one method found."""

    method: str
    about: str
    cards: list[Card]
    milliseconds: float
    total: int

    @property
    def n_judged(self) -> int:
        return sum(card.is_right is not None for card in self.cards)

    @property
    def n_right(self) -> int:
        return sum(card.is_right is True for card in self.cards)


@dataclass(frozen=True, slots=True)
class Match:
    """The codes of the query and of one hit, bit by bit, and why they match."""

    card: Card
    bits: list[bool]
    differing: set[int]
    explanation: Explanation | None


@dataclass(slots=True)
class Exploration:
    """The contents of the page; parts that were not asked for are empty."""

    info: CollectionInfo
    question: Question
    asked: Asked | None = None
    rankings: list[Ranked] = field(default_factory=list)
    portrait: Portrait | None = None
    match: Match | None = None
    browsed: list[Card] = field(default_factory=list)
    next_item: int | None = None
    preparing: Any = None

    @property
    def is_strange(self) -> bool:
        """Whether the query looks like none of the classes."""
        novelty = None if self.portrait is None else self.portrait.novelty
        return novelty is not None and novelty >= STRANGE


def browse(workspace: Workspace, question: Question) -> Exploration:
    """List items to begin with, of those that pass the filters."""
    info = workspace.searcher.info()
    items, more = workspace.searcher.list_items(question.after, _BROWSED, question.filters(info))
    with workspace.searcher.opened() as collection:
        return Exploration(info, question, browsed=cards_of(collection, info.name, items), next_item=more)


def neighbors(workspace: Workspace, question: Question) -> Exploration:
    """Search by the codes of the collection alone, which is fast."""
    info = workspace.searcher.info()
    asked = _asked(workspace, question)
    found = _by_codes(workspace, question, info, asked)
    return Exploration(info, question, asked, [found])


def look_closer(workspace: Workspace, exploration: Exploration, *, retry: bool = True) -> Exploration:
    """Add the other methods, what the hasher makes of the query, and why one of the hits matches.

    With ``retry``, a preparation of the other methods that failed begins anew.
    """
    question, info, asked = exploration.question, exploration.info, exploration.asked
    assert asked is not None
    if asked.vector is not None:
        with workspace.searcher.opened() as collection:
            exploration.portrait = portrait_of(collection, asked.vector)
        if question.radius is None:
            exploration.rankings += _others(workspace, question, info, asked)
            exploration.preparing = workspace.prepare_comparison(retry=retry)
    exploration.match = _match(workspace, exploration)
    return exploration


def _asked(workspace: Workspace, question: Question) -> Asked:
    name = workspace.searcher.name
    if question.item is not None:
        with workspace.searcher.opened() as collection:
            (item,) = collection.get([question.item])
            vector = collection.vectors([item.id])[0] if collection.vector_dtype else None
            card = _card(collection, name, item)
        return Asked(card.title, card.picture, item, vector)
    if question.upload is not None:
        upload = workspace.upload(question.upload)
        return Asked(upload.name, picture_of_upload(upload), None, upload.vector)
    # Not by the embedder itself, for which the text would be the path of a picture in a collection of pictures.
    vectors = text_vectors(workspace.searcher, [question.text or ""]).result()
    return Asked(f"“{question.text}”", None, None, vectors[0])


def _by_codes(workspace: Workspace, question: Question, info: CollectionInfo, asked: Asked) -> Ranked:
    about = f"{info.method}, {info.n_bits} bits"
    return _searched(workspace, question, info, asked, "Codes", about, rescore=False if info.vectors else None)


def _searched(
    workspace: Workspace,
    question: Question,
    info: CollectionInfo,
    asked: Asked,
    method: str,
    about: str,
    *,
    rescore: bool | None,
) -> Ranked:
    """Search with the collection's own hasher; a stored item is left out of its own neighbors."""
    options = replace(question.options(info, rescore=rescore), k=question.k + (asked.item is not None))
    started = time.perf_counter()
    if asked.item is None:
        assert asked.vector is not None
        future = workspace.searcher.search(vectors=asked.vector[None].tolist(), options=options)
    else:
        future = workspace.searcher.search(items=[asked.item.id], options=options)
    (found,) = future.result()
    milliseconds = 1000 * (time.perf_counter() - started)
    own = [] if asked.item is None else [asked.item.id]
    with workspace.searcher.opened() as collection:
        cards = _cards(collection, info, found.without(own, question.k), asked)
        # It is at no distance, and so counts as near, unless a filter leaves it out.
        n_own = len(collection.passing(replace(options.filters, among=np.array(own)))) if own else 0
    return Ranked(method, about, cards, milliseconds, found.total - n_own)


def _others(workspace: Workspace, question: Question, info: CollectionInfo, asked: Asked) -> list[Ranked]:
    """Search with rescoring, by exact distances, and by the codes of another method."""
    about = "the codes choose candidates, their vectors decide"
    if info.method == "HybridHasher":
        about += "; the likely class comes first"
    found = [_searched(workspace, question, info, asked, "Codes, then vectors", about, rescore=True)]
    if not workspace.comparison.is_ready:
        return found
    assert asked.vector is not None
    is_filtered = question.labels or question.fields
    with workspace.searcher.opened() as collection:
        among = collection.passing(question.filters(info)) if is_filtered else None
        for ranking in workspace.comparison.search(asked.vector, question.k + 1, among):
            own = None if asked.item is None else asked.item.id
            ids = [item for item in ranking.ids if item != own][: question.k]
            cards = _cards(collection, info, existing_items(collection, ids), asked)
            found.append(Ranked(ranking.method, ranking.about, cards, ranking.milliseconds, len(cards)))
    return found


def _cards(collection: Collection, info: CollectionInfo, hits: Sequence[Hit | Item], asked: Asked) -> list[Card]:
    notes = [_distance(hit) if isinstance(hit, Hit) else "" for hit in hits]
    return cards_of(collection, info.name, hits, asked=asked.label, notes=notes)


def _card(collection: Collection, name: str, item: Item, asked: Label | None = None) -> Card:
    """Return the card of one item; raise UnknownIdError if it was removed since it was read."""
    cards = cards_of(collection, name, [item], asked=asked)
    if not cards:
        raise UnknownIdError(item.id)
    return cards[0]


def _distance(hit: Hit) -> str:
    if hit.rescored is not None:
        return f"{hit.rescored:.3g}"
    return f"{hit.distance:.3g}" if isinstance(hit.distance, float) else f"{hit.distance} bits"


def _match(workspace: Workspace, exploration: Exploration) -> Match | None:
    """Compare the query with the hit that was asked for, or with the nearest one."""
    cards = exploration.rankings[0].cards
    wanted = exploration.question.hit
    if wanted is None:
        if not cards:
            return None
        wanted = cards[0].id
    try:
        with workspace.searcher.opened() as collection:
            return _compared(collection, exploration, wanted)
    except UnknownIdError:
        # If nobody has asked for it, an item that was removed since it was found is left out.
        if exploration.question.hit is None:
            return None
        raise


def _compared(collection: Collection, exploration: Exploration, wanted: int) -> Match:
    asked = exploration.asked
    assert asked is not None
    card = _card(collection, exploration.info.name, collection.get([wanted])[0], asked.label)
    (bits,) = bits_of(collection.codes([wanted]))
    explanation = None if asked.vector is None else collection.explain(asked.vector[None], [wanted])[0]
    own = _own_bits(collection, exploration)
    differing = {place for place, (one, other) in enumerate(zip(own, bits, strict=True)) if one != other}
    return Match(card, bits, differing, explanation)


def _own_bits(collection: Collection, exploration: Exploration) -> list[bool]:
    if exploration.portrait is not None:
        return exploration.portrait.bits
    asked = exploration.asked
    assert asked is not None
    assert asked.item is not None
    return bits_of(collection.codes([asked.item.id]))[0]
