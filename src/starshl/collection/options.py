"""Filters and options of a search: read once, where they enter, into frozen values that travel whole to the index.

A search option is an entry of :class:`SearchKeywords` and a field of :class:`SearchOptions`, which says what it means
and checks it. Every surface (Python, the command line, HTTP, the pages) makes the same value.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, Literal, NamedTuple, Self, TypeAlias, TypedDict, TypeVar, Unpack, get_args

import numpy as np
from numpy.typing import ArrayLike

from .._common.labels import LabelsLike
from .._common.validation import (
    SamplesLike,
    check_choice,
    check_flag,
    check_integer,
    check_number,
    check_share,
    check_storable,
)
from ..exceptions import InputError
from ..index.base import check_ids
from .columns import COMPARISONS
from .fields import check_field_name
from .labels import label_filter

#: What a field can be compared with, as SQLite knows it.
Scalar: TypeAlias = str | int | float
#: The distances that vectors can be compared by.
Metric: TypeAlias = Literal["euclidean", "cosine"]
METRICS: tuple[str, ...] = get_args(Metric)
Function = TypeVar("Function", bound=Callable[..., Any])


class FilterKeywords(TypedDict, total=False):
    """Filters as users give them; :class:`Filters` says what they mean."""

    where: Mapping[str, Any] | None
    among: ArrayLike | None
    labels: LabelsLike
    guesses: LabelsLike


class SearchKeywords(FilterKeywords, total=False):
    """Options of a search as users give them; :class:`SearchOptions` says what they mean."""

    radius: float | None
    min_probability: float | None
    by_scores: bool
    rescore: bool | None
    oversample: int | None
    metric: Metric | None
    reject: float | None
    explain: bool


class Condition(NamedTuple):
    """A field, a comparison or "in", and the value or the values to compare with."""

    field: str
    word: str
    value: Scalar | tuple[Scalar, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Filters:
    """What items must pass to be found, as :meth:`of` reads it; None lets all pass. Items must pass all filters.

    Parameters
    ----------
    where : dict, default=None
        A filter on metadata, such as ``{"shop": "a", "price": {"<": 10}}``; an empty one lets all pass. Fields that are
        not declared are slow, and a warning says so.
    among : array of int, default=None
        Ids of the items that may be returned; unknown ids are ignored.
    labels : list of labels, default=None
        Labels of the items that may be returned.
    guesses : list of labels, default=None
        Guessed labels of the items that may be returned, see :meth:`starshl.Collection.guesses`. With ``labels``, items
        pass that have one of those or a guess of these, such as all apples, given and guessed.
    """

    where: tuple[Condition, ...] | None = None
    among: np.ndarray | None = None  # sorted, each id once
    labels: tuple[str, ...] | None = None  # JSON texts: 1 and true differ there
    guesses: tuple[str, ...] | None = None  # as labels

    @classmethod
    def of(
        cls,
        where: Mapping[str, Any] | None = None,
        among: ArrayLike | None = None,
        labels: LabelsLike = None,
        guesses: LabelsLike = None,
    ) -> Self:
        """Read filters as users give them, or say what is wrong with them."""
        return cls(
            # Programs that build filters send an empty one where there is nothing to compare.
            (None if where is None else parse_filter(where)) or None,
            None if among is None else check_ids(np.unique(np.asarray(among))),
            None if labels is None else tuple(label_filter(labels)),
            None if guesses is None else tuple(label_filter(guesses)),
        )

    def __bool__(self) -> bool:
        """Tell whether there is any filter."""
        return any(each is not None for each in (self.where, self.among, self.labels, self.guesses))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Filters) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    @property
    def fields(self) -> list[str]:
        """The metadata fields that are compared, each once."""
        return list(dict.fromkeys(condition.field for condition in self.where or ()))

    def _key(self) -> tuple[object, ...]:
        # By their texts, because 1, 1.0 and True are equal in Python.
        conditions = None if self.where is None else tuple(sorted(map(repr, self.where)))
        return conditions, None if self.among is None else self.among.tobytes(), self.labels, self.guesses


ALL_ITEMS = Filters()


def parse_filter(where: Mapping[str, Any]) -> tuple[Condition, ...]:
    """Return the conditions of a filter, all of which must hold.

    Each entry names a metadata field and gives a value to equal, or a dictionary of comparisons. An item without the
    field fails every comparison, also ``!=``.

    Examples
    --------
    >>> parse_filter({"price": {"<": 10}})
    (Condition(field='price', word='<', value=10),)
    """
    if not isinstance(where, Mapping):
        raise ValueError(
            f"The filter is {where!r}; it must be a dictionary such as {{'label': 3}} or "
            "{'price': {'<': 10}, 'shop': {'in': ['a', 'b']}}."
        )
    conditions = []
    for name, condition in where.items():
        check_field_name(name)
        if not isinstance(condition, Mapping):
            condition = {"=": condition}
        if not condition:
            raise ValueError(f"The filter on {name!r} is empty; give a value or a comparison.")
        conditions += [_condition(name, word, value) for word, value in condition.items()]
    return tuple(conditions)


def _condition(name: str, word: str, value: Any) -> Condition:
    if word == "in":
        if not isinstance(value, (list, tuple)) or not value:
            raise ValueError(f"The filter on {name!r} asks for one of {value!r}; give a list of values.")
        return Condition(name, word, tuple(_scalar(name, item) for item in value))
    if word not in COMPARISONS:
        allowed = ", ".join([*COMPARISONS, "in"])
        raise ValueError(f"The filter on {name!r} uses {word!r}; comparisons are {allowed}.")
    return Condition(name, word, _scalar(name, value))


def _scalar(name: str, value: Any) -> Scalar:
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise ValueError(f"The filter compares {name!r} with {value}, which does not fit in 64 bits.")
    if not isinstance(value, (str, int, float)):
        raise ValueError(
            f"The filter compares {name!r} with a {type(value).__name__}; strings, numbers and booleans can "
            "be compared."
        )
    if isinstance(value, str):
        check_storable(value, f"The text that the filter compares {name!r} with")
    return value


def _check_radius(value: object, name: str) -> float:
    """Return a radius, a whole one as int: some indexes compare nothing else."""
    number = check_number(value, name, low=0)
    return int(number) if number.is_integer() else number


def check_probability(value: object, name: str) -> float:
    """Return a probability as float."""
    number = check_number(value, name, low=0)
    if number > 1:
        raise InputError("{parameter} is {value!r}", "it must be from 0 to 1", parameter=name, value=value)
    return number


#: What each option may be, besides None, which leaves the choice to the collection.
_CHECKS: Mapping[str, Callable[[object, str], Any]] = {
    "k": partial(check_integer, low=1),
    "radius": _check_radius,
    "min_probability": check_probability,
    "by_scores": check_flag,
    "rescore": check_flag,
    "oversample": partial(check_integer, low=1),
    "metric": partial(check_choice, choices=METRICS),
    "reject": lambda value, _: check_share(value, "reject"),
    "explain": check_flag,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchOptions:
    """How to search, and among which items; what would have no effect is refused.

    :meth:`of` reads what users give. A service searches for all requests with equal options together.

    Parameters
    ----------
    k : int, default=10
        How many items to find. If fewer items are stored, or pass the filters, all of them are returned; None, for a
        search with a radius or a least probability, returns all that are near or likely enough.
    radius : int or float, default=None
        Only items within this distance of the codes; options about the order of the nearest are refused then.
    min_probability : float, default=None
        Only items that are of the query's class with at least this probability, which is :attr:`Hit.probability`. Of
        hashers without probabilities, such as ITQ, this is refused: a distance is none.
    by_scores : bool, default=False
        Order items at equal distance by their inner product with the real-valued scores of the query; needs X. Refused
        where codes stand for probabilities of classes, as those of :class:`starshl.StarRidge` and
        :class:`starshl.HybridHasher` do. Rescoring uses the scores in any other case.
    rescore : bool, default=None
        Order the nearest ``k * oversample`` items by the distance between the query and their kept vectors; by default
        if the collection keeps them.
    oversample : int, default=None
        Items to rescore per result; more find more of the nearest vectors. None is 10, or 200 for codes of up to 16
        bits, which many items share.
    metric : {"euclidean", "cosine"}, default=None
        The distance that rescoring compares and explanations state; "cosine" is 1 minus the cosine. None is
        "euclidean".
    reject : float, default=None
        Answer "none of these", no hits, where :meth:`starshl.Collection.novelty` is at least 1 - reject; needs X. About
        this share of the queries that are like the training rows is rejected, too.
    explain : bool, default=False
        Say why each item matches; stored items are explained by their kept vectors.
    filters : Filters
        Which items may be found.
    """

    k: int | None = 10
    radius: float | None = None
    min_probability: float | None = None
    by_scores: bool = False
    rescore: bool | None = None
    oversample: int | None = None
    metric: Metric | None = None
    reject: float | None = None
    explain: bool = False
    filters: Filters = ALL_ITEMS

    @classmethod
    def of(cls, k: int | None = 10, **options: Unpack[SearchKeywords]) -> Self:
        """Read options as users give them, or say what is wrong with them."""
        given = check_keywords(options, SearchKeywords)
        filters = {name: given.pop(name) for name in FilterKeywords.__annotations__ if name in given}
        return cls(k=k, filters=Filters.of(**filters), **given)

    @classmethod
    def of_radius(
        cls, radius: float | None, min_probability: float | None = None, **filters: Unpack[FilterKeywords]
    ) -> Self:
        """Read the options of a search for all items that are near or likely enough."""
        if radius is None and min_probability is None:
            reason = "without {min_probability}, there must be a limit"
            raise InputError("{parameter} is None", reason, "Give a distance.", parameter="radius")
        known = Filters.of(**check_keywords(filters, FilterKeywords))
        return cls(k=None, radius=radius, min_probability=min_probability, filters=known)

    def __post_init__(self) -> None:
        for name, check in _CHECKS.items():
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, check(value, name))
        if not self.finds_all:
            check_integer(self.k, "k", low=1)
        self._refuse_without_effect()

    @property
    def finds_all(self) -> bool:
        """Whether all items that are near or likely enough are found, of which the first k are shown."""
        return self.radius is not None or (self.k is None and self.min_probability is not None)

    @property
    def n_nearest(self) -> int:
        """How many items a search is to find that does not find all."""
        assert self.k is not None
        return self.k

    def check_query(self, X: SamplesLike | None) -> None:
        """Refuse a search for stored items, for which X is None, if the options need rows."""
        if X is not None:
            return
        if self.reject is not None:
            reason = "only rows can be compared with the training rows of the hasher"
            raise InputError("{parameter} needs {X}: {reason}", parameter="reject", reason=reason)
        if self.by_scores:
            reason = "a stored item has a code, but no scores"
            raise InputError("{parameter} needs {X}: {reason}", parameter="by_scores", reason=reason)

    def _refuse_without_effect(self) -> None:
        of_rescoring = [name for name in ("oversample", "metric") if getattr(self, name) is not None]
        if self.explain and "metric" in of_rescoring:
            of_rescoring.remove("metric")  # explanations state distances by it
        if self.finds_all:
            limit = "min_probability" if self.radius is None else "radius"
            # rescore=False asks for what happens anyway.
            for name in [name for name in ("by_scores", "rescore") if getattr(self, name)] + of_rescoring:
                raise InputError(
                    f"{{parameter}} says how the {{k}} nearest items are chosen, and does nothing with {{{limit}}} "
                    "alone, which compares codes only",
                    advice="Leave one of them out.",
                    parameter=name,
                )
        if self.rescore is False and of_rescoring:
            raise InputError(
                "{parameter} is {value!r}, and {rescore} is False",
                advice="It says how searches compare vectors: leave it out, or leave out {rescore}=False.",
                parameter=of_rescoring[0],
                value=getattr(self, of_rescoring[0]),
            )


def check_keywords(given: Mapping[str, Any], keywords: type) -> dict[str, Any]:
    """Return keywords of a search, all of which must be known."""
    allowed = list(keywords.__annotations__)
    unknown = [name for name in given if name not in allowed]
    if unknown:
        raise TypeError(f"{unknown[0]!r} is not an option here; options are {', '.join(allowed)}.")
    return dict(given)


def takes_keywords(keywords: type) -> Callable[[Function], Function]:
    """Let the signature and the docstring of a function list the options that it takes as keywords.

    The section of parameters is the last one of the docstring.
    """
    names = list(keywords.__annotations__)
    usual = {each.name: each.default for each in fields(SearchOptions)}

    def decorate(function: Function) -> Function:
        signature = inspect.signature(function)
        own = [each for each in signature.parameters.values() if each.kind is not each.VAR_KEYWORD]
        options = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=usual.get(name)) for name in names]
        vars(function)["__signature__"] = signature.replace(parameters=[*own, *options])
        described = _described(Filters) | _described(SearchOptions)
        texts = [inspect.cleandoc(function.__doc__ or ""), *(described.get(name, "") for name in names)]
        function.__doc__ = "\n".join(texts)
        return function

    return decorate


def _described(kind: type) -> dict[str, str]:
    """Return what a docstring says about each parameter; nothing if Python was told to drop docstrings."""
    section = inspect.cleandoc(kind.__doc__ or "").partition("----------\n")[2].partition("\n\n")[0]
    return {entry.partition(" : ")[0]: entry for entry in re.split(r"\n(?=\S)", section)}
