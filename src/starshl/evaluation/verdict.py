"""The verdict on codes in plain words: what they are good for, and what they lose."""

from __future__ import annotations

from collections.abc import Sequence

from .benchmark import MethodResult

# A loss of precision that a user of the search would hardly notice: one wrong item in five lists of ten.
_SMALL_LOSS = 0.02
#: Of ten near vectors, at least eight reach the list of a hundred that a second, exact ranking would look at.
GOOD_RECALL = 0.8
# Among fewer items, a list of 100 holds most neighbors whatever the codes are.
ENOUGH_ITEMS = 1000
# If more items than this share a code on average, a search cannot tell the ten nearest apart.
_CROWDED = 10
# With fewer queries, chance alone moves a precision by more than .05.
_ENOUGH_QUERIES = 50
# A difference in precision that is worth a sentence.
_WORTH_TELLING = 0.005
# If a rival finds this many more of the nearest vectors, people who want these should use it.
_MUCH_MORE = 0.05
# Milliseconds of a query that comes alone. People notice a hundred, and most of these go elsewhere.
_FAST_ENOUGH = 10


def verdict(
    exact: MethodResult, own: MethodResult, unlabeled: MethodResult | None, n_items: int, n_labeled_queries: int
) -> str:
    """Return two or three sentences about the codes of a hasher.

    Parameters
    ----------
    exact : figures of the search by vectors
    own : figures of the codes, where items with a label are coded by it if the hasher can
    unlabeled : figures of the same items coded from their vectors alone; None if those codes are the same
    n_items : how many items were searched
    n_labeled_queries : how many queries precision was measured with
    """
    judgment = _judgment(exact, own, unlabeled, n_items)
    if own.precision_at_10 is None or n_labeled_queries >= _ENOUGH_QUERIES:
        return judgment
    queries = "query has a label" if n_labeled_queries == 1 else "queries have labels"
    return f"{judgment} Only {n_labeled_queries} {queries}, so the figures about classes are rough."


def about_rivals(own: MethodResult, rivals: Sequence[MethodResult]) -> str:
    """Return a sentence about a method that finds many more of the nearest vectors in as many bytes, empty if none."""
    small = [rival for rival in rivals if rival.bytes_per_item <= own.bytes_per_item]
    best = max(small, key=lambda rival: rival.recall_10_at_100 or 0.0, default=None)
    if best is None or (best.recall_10_at_100 or 0.0) < (own.recall_10_at_100 or 0.0) + _MUCH_MORE:
        return ""
    shares = f"{percent(best.recall_10_at_10)} of them in its first ten, {percent(best.recall_10_at_100 or 0.0)} in "
    told = f"If the nearest vectors are all you want, {best.name} finds {shares}its first 100"
    if best.precision_at_10 is not None:
        told += f", with {best.precision_at_10:.1%} of the first ten in the class of the query"
    return f"{told}, in no more bytes per item."


def about_class_first(class_first: MethodResult | None) -> str:
    """Return a sentence about a classifier before float search, which needs no codes; empty if none was measured."""
    if class_first is None or class_first.precision_at_10 is None:
        return ""
    return f"A linear classifier, then float search within its class, reaches {class_first.precision_at_10:.1%}."


def about_float_search(n_items: int, milliseconds: float) -> str:
    """Return a sentence that says whether float search over all items is fast enough to need no codes."""
    if milliseconds >= _FAST_ENOUGH:
        return f"Float search over all {n_items:,} items takes {milliseconds:,.0f} ms per query here."
    enough = f"Float search is enough for {n_items:,} items"
    return f"{enough}: over all of them it takes {milliseconds:.2g} ms per query here."


def keeps_neighbors(own: MethodResult, n_items: int) -> bool:
    """Tell whether codes find most of the nearest vectors, among enough items and with enough different codes."""
    return n_items >= ENOUGH_ITEMS and _recalls(own, n_items)


def _recalls(own: MethodResult, n_items: int) -> bool:
    return own.recall_10_at_100 is not None and own.recall_10_at_100 >= GOOD_RECALL and not _is_crowded(own, n_items)


def _is_crowded(own: MethodResult, n_items: int) -> bool:
    return (own.n_different_codes or 0) * _CROWDED < n_items


def _judgment(exact: MethodResult, own: MethodResult, unlabeled: MethodResult | None, n_items: int) -> str:
    shares = [share for share in (_class_share(exact, own), _neighbor_share(own)) if share]
    if own.recall_10_at_100 is None and own.precision_at_10 is None:
        return f"There are too few rows to judge these codes: {_different(own, n_items)}."
    finds_class = _keeps_precision(exact, own)
    if finds_class and (_is_crowded(own, n_items) or _loses_neighbors(own)):
        return _of_classes(exact, own, unlabeled, n_items)
    found = ["items of the same class"] * finds_class + [_kind_of_neighbors(own)] * keeps_neighbors(own, n_items)
    if found:
        opening = f"These codes are good for finding {' and '.join(found)}: {', and '.join(shares)}."
    elif _recalls(own, n_items):
        opening = (
            f"These codes keep most neighbors in a list of 100, but {n_items:,} items are few to judge by: "
            f"{', and '.join(shares)}."
        )
    else:
        opening = f"These codes lose much of the vectors: {', and '.join(shares)}. Use more bits or another method."
    return " ".join([opening, f"{_capitalized(_different(own, n_items))}.", *_advice(own, unlabeled)])


def _kind_of_neighbors(own: MethodResult) -> str:
    """Return what the codes find: the nearest vectors, or only lists that hold them."""
    return "the nearest vectors" if own.recall_10_at_10 >= GOOD_RECALL else "100 candidates that vectors put in order"


def _keeps_precision(exact: MethodResult, own: MethodResult) -> bool:
    if own.precision_at_10 is None or exact.precision_at_10 is None:
        return False
    return own.precision_at_10 >= exact.precision_at_10 - _SMALL_LOSS


def _loses_neighbors(own: MethodResult) -> bool:
    return own.recall_10_at_100 is not None and own.recall_10_at_100 < GOOD_RECALL


def _of_classes(exact: MethodResult, own: MethodResult, unlabeled: MethodResult | None, n_items: int) -> str:
    """Return the verdict on codes that know the class better than the neighbors."""
    if _is_crowded(own, n_items):
        lost = f", and {_neighbor_share(own)}" if _loses_neighbors(own) else ", and equal codes are equally near"
        loss = f"They do not tell which items of a class are closest: {_different(own, n_items)}{lost}."
    else:
        loss = f"They keep only part of the neighbors: {_neighbor_share(own)}, and {_different(own, n_items)}."
    opening = f"These codes are good for finding items of the same class: {_class_share(exact, own)}."
    return " ".join([opening, loss, *_advice(own, unlabeled)])


def _class_share(exact: MethodResult, own: MethodResult) -> str:
    if own.precision_at_10 is None or exact.precision_at_10 is None:
        return ""
    return (
        f"{own.precision_at_10:.1%} of the ten nearest codes have the class of the query, "
        f"against {exact.precision_at_10:.1%} of the ten nearest vectors"
    )


def _neighbor_share(own: MethodResult) -> str:
    if own.recall_10_at_100 is None:
        return ""
    return (
        f"of the ten nearest vectors, {percent(own.recall_10_at_10)} are among the ten nearest codes and "
        f"{percent(own.recall_10_at_100)} among the 100 nearest"
    )


def _different(own: MethodResult, n_items: int) -> str:
    return f"{n_items:,} items have {own.n_different_codes:,} different codes"


def _advice(own: MethodResult, unlabeled: MethodResult | None) -> list[str]:
    if unlabeled is None or own.precision_at_10 is None or unlabeled.precision_at_10 is None:
        return []
    if own.precision_at_10 - unlabeled.precision_at_10 < _WORTH_TELLING:
        return []
    return [f"Add items with their labels: coded from vectors alone, they reach {unlabeled.precision_at_10:.1%}."]


def _capitalized(sentence: str) -> str:
    return sentence[0].upper() + sentence[1:]


def percent(share: float) -> str:
    """Write a share as a percentage; only all is 100%.

    Examples
    --------
    >>> percent(0.914), percent(0.997), percent(1.0)
    ('91%', 'over 99%', '100%')
    """
    return "over 99%" if 0.995 <= share < 1 else f"{share:.0%}"
