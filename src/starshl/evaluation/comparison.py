"""Compare a hasher with float search and with other methods at equal length."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from .._common.labels import LabelsLike
from .._common.validation import Seed
from .._common.words import counted
from ..codes.binary import n_bytes as code_bytes
from ..exceptions import MissingExtraError
from ..hashers.base import BaseHasher
from ..hashers.catalog import get_class
from ..hashers.fitting import fit_lengths
from .benchmark import (
    CLASS_FIRST,
    COLUMNS,
    FLOAT_QUERIES,
    FROM_VECTORS,
    LABEL_COLUMN,
    Bench,
    HeldOut,
    Measured,
    MethodResult,
    hold_out,
)
from .hasher_choice import Choice, choose_hasher
from .verdict import (
    ENOUGH_ITEMS,
    GOOD_RECALL,
    about_class_first,
    about_float_search,
    about_rivals,
    keeps_neighbors,
    verdict,
)
from .whole_lists import Reliability

_OF_FLOAT_QUERIES = ("RaBitQ", "PQ")
_CLASS_FIRST = "LogisticRegression"
#: Hashers of the catalog, RaBitQ's estimates, product quantization, and a classifier before float search.
RIVALS = ("ITQ", "SignBinarizer", "LSHash", *_OF_FLOAT_QUERIES, _CLASS_FIRST)
_N_EXAMPLES = 8  # real queries on the page; more would be too long to read
# Of precision at 10: of ten lists of ten, one wrong item more.
_SMALL_LOSS = 0.01
# A ceiling that shows as 1.000.
_NEARLY_ONE = 0.9995
_UNITS = ("bytes", "kB", "MB", "GB", "TB")
EXPLANATION = (
    "Precision at 10: the share of the 10 nearest that have the query's class, averaged over all orders of equal "
    "distances. mAP: the mean over queries of the average precision of the list of all items. PR area: the area under "
    "precision over recall of all pairs, by one threshold for all queries; a dash if a method tells no distances. "
    "Recall of 10 in 10 and in 100: the share of the 10 nearest vectors that are among the 10 or 100 first "
    "found; equal distances are ordered by the real-valued scores of the query. In 100 is shown only when more than "
    "100 rows are searched. Bytes per item: of a vector in the type in which it was given, of a code without its id. "
    "Model: the file that turns a query into a code, kept once for all items. Items and model: all searched rows, and "
    "the model. Different codes: how many different codes the searched rows have; rows with the same code are equally "
    "near. Times: from a float query to its ten hits, encoding included, for a query that comes alone (median of 15), "
    "and for each of 100 that come together (median of 3)."
)
ABOUT_EMBEDDERS = (
    "Float search in the vectors of each embedder, and in the same vectors rounded to one byte per number (int8) or to "
    "one bit, its sign; RaBitQ and PQ take as many bytes as the signs. Recall counts the nearest vectors of the same "
    "embedder. No labels are used."
)
_ABOUT_CLASS_FIRST = (
    "Linear classifier: logistic regression, fitted on the same rows, names the class of a query, and vectors are "
    "searched within it, then among the others. It needs no codes, and all vectors."
)
OF_VECTORS, OF_LABELS = "Items coded from vectors", "Items that carry labels"
_ABOUT_LABEL_COLUMN = (
    "Label column: the labels of items alone, the likeliest ones for the query first. Where items carry labels, no "
    "bits find more items of the class: what they add is the order within it."
)
_ABOUT_VECTORS_ALONE = (
    "Coded from vectors alone: the same items and queries, but without the labels of the items. These items are the "
    "training rows; new items without labels may lose more."
)
_ABOUT_FLOAT_QUERIES = (
    "Float queries: only items become codes; a query keeps its full precision, and distances are estimated."
)


@dataclass(frozen=True, slots=True)
class ExampleAnswer:
    """What a method finds first for a query, as numbers of rows of X, and whether each is right, None if unknown."""

    method: str
    rows: list[int]
    right: list[bool | None]


@dataclass(frozen=True, slots=True)
class ExampleQuery:
    """A held-out row, its label, None if it has none, and the answers to it."""

    row: int
    label: Any
    answers: list[ExampleAnswer]


@dataclass(frozen=True, slots=True)
class LengthComparison:
    """All methods at one code length.

    Attributes
    ----------
    n_bits : length of the codes
    methods : the figures of the hasher, those of items coded from vectors alone if they differ, and of the others
    verdict : what the codes of the hasher are good for and what they lose, in plain words
    left_out : why some methods could not be compared
    reliability : how right the probabilities of hits are, None if hits have none
    """

    n_bits: int
    methods: list[MethodResult]
    verdict: str
    left_out: dict[str, str] = field(default_factory=dict)
    reliability: Reliability | None = None

    def tables(self, exact: MethodResult) -> dict[str, list[MethodResult]]:
        """Return methods by what is known of items: their vectors alone, or labels, too, the labels alone first."""
        tables: dict[str, list[MethodResult]] = {}
        for method in sorted([exact, *self.methods], key=lambda each: each.name != LABEL_COLUMN):
            tables.setdefault(OF_LABELS if method.reads_labels else OF_VECTORS, []).append(method)
        return {title: tables[title] for title in (OF_VECTORS, OF_LABELS) if title in tables}

    def about_probabilities(self) -> str:
        """Return how right the probabilities of hits are, in plain words; empty if hits have none."""
        found = self.reliability
        if found is None:
            return ""
        return (
            f"Hits say how likely they are of the query's class. For {sum(found.n_pairs):,} pairs of held-out rows, "
            "one of them coded as an item without a label, what is said differs from what is so by "
            f"{found.calibration_error:.4f} on average (calibration error), and the log loss is {found.log_loss:.4f}."
        )


@dataclass(frozen=True, slots=True)
class StoredSizes:
    """Bytes of a collection on disk, without these pages, and of the model among them."""

    folder: int
    model: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """Codes against vectors on held-out queries.

    Attributes
    ----------
    choice : which method was chosen and why, in plain words
    n_queries, n_items : rows held out, and rows that were fitted on and searched
    n_labeled_queries, n_labeled_items : how many of them have labels; precision is measured only on these
    precision_ceiling : the precision at 10 of a perfect ranking; below 1 if a class has fewer than 10 labeled items.
        None if precision was not measured
    exact : the figures of float search
    all_items_milliseconds : what a query that comes alone takes by float search over all rows, queries included
    lengths : one comparison per code length
    n_bits : the length to use, which :func:`binarize` stores
    length_choice : why this length, in plain words; empty if there is only one
    questions : some of the queries, and what each method finds for them with codes of this length
    stored : bytes of the collection that :func:`binarize` made of all rows; None if there is none
    embedders : vectors of several embedders, as they are, with one byte per number, with its sign, and as short as the
        signs by RaBitQ and product quantization; empty if items came as vectors
    embedders_left_out : why some of these could not be measured
    """

    choice: str
    n_queries: int
    n_items: int
    n_labeled_queries: int
    n_labeled_items: int
    precision_ceiling: float | None
    exact: MethodResult
    all_items_milliseconds: float
    lengths: list[LengthComparison]
    n_bits: int
    length_choice: str
    questions: list[ExampleQuery]
    stored: StoredSizes | None = None
    embedders: list[MethodResult] = field(default_factory=list)
    embedders_left_out: dict[str, str] = field(default_factory=dict)

    @property
    def chosen(self) -> LengthComparison:
        """The comparison at the chosen length."""
        return next(length for length in self.lengths if length.n_bits == self.n_bits)

    @property
    def methods(self) -> list[MethodResult]:
        """Float search, then the hasher and the other methods at the chosen length."""
        return [self.exact, *self.chosen.methods]

    @property
    def method(self) -> str:
        """The name of the hasher."""
        return self.chosen.methods[0].name.removesuffix(FLOAT_QUERIES).rstrip()

    @property
    def verdict(self) -> str:
        """The verdict on the codes of the chosen length."""
        return self.chosen.verdict

    @property
    def left_out(self) -> dict[str, str]:
        """Why some methods could not be compared at the chosen length."""
        return self.chosen.left_out

    @property
    def bytes_before(self) -> float:
        """Bytes of a vector."""
        return self.exact.bytes_per_item

    @property
    def bytes_after(self) -> float:
        """Bytes of a code of the chosen length."""
        return self.chosen.methods[0].bytes_per_item

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain values that JSON can hold; verdict and methods are those of the chosen length."""
        sizes = {"bytes_before": self.bytes_before, "bytes_after": self.bytes_after}
        own = {"verdict": self.verdict, "methods": [asdict(method) for method in self.methods]}
        return {**own, **sizes, **asdict(self)}

    def sentences(self) -> list[str]:
        """Return what was compared and chosen, and what it means, one paragraph each."""
        held_out = (
            f"{counted(self.n_queries, 'row')}, drawn at random, "
            f"{'was held out as a query' if self.n_queries == 1 else 'were held out as queries'}; "
            f"the other {self.n_items:,} were used to fit, and searched."
        )
        verdict = f"{self.verdict} {about_float_search(self.n_queries + self.n_items, self.all_items_milliseconds)}"
        paragraphs = [verdict, self.choice, self.length_choice, self._sizes(), held_out + self._about_labels()]
        return [paragraph for paragraph in paragraphs if paragraph]

    def page(self) -> str:
        """Return the comparison as one page of Markdown."""
        lines = ["# Codes against vectors"]
        for paragraph in self.sentences():
            lines += ["", paragraph]
        for length in self.lengths:
            if len(self.lengths) > 1:
                lines += ["", f"## {counted(length.n_bits, 'bit')}"]
            if length.n_bits != self.n_bits:
                lines += ["", length.verdict]
            for title, methods in length.tables(self.exact).items():
                lines += ["", f"{title}:", "", f"| {' | '.join(COLUMNS)} |", "|---" * len(COLUMNS) + "|"]
                lines += [method.line() for method in methods]
            lines += [f"\n{about}" for about in [length.about_probabilities()] if about]
            lines += [f"\n{name} was left out: {reason}" for name, reason in length.left_out.items()]
        if self.embedders:
            lines += ["", "## Embedders side by side", "", ABOUT_EMBEDDERS, ""]
            lines += [f"| {' | '.join(COLUMNS)} |", "|---" * len(COLUMNS) + "|"]
            lines += [method.line() for method in self.embedders]
            lines += [f"\n{name} was left out: {reason}" for name, reason in self.embedders_left_out.items()]
        return "\n".join([*lines, "", self.explanation(), ""])

    def explanation(self) -> str:
        """Return what the columns and names of the tables mean."""
        names = [method.name for length in self.lengths for method in length.methods]
        parts = [EXPLANATION]
        if any(name.endswith(FROM_VECTORS) for name in names):
            parts.append(_ABOUT_VECTORS_ALONE)
        if any(FLOAT_QUERIES in name for name in names):
            parts.append(_ABOUT_FLOAT_QUERIES)
        if CLASS_FIRST in names:
            parts.append(_ABOUT_CLASS_FIRST)
        if LABEL_COLUMN in names:
            parts.append(_ABOUT_LABEL_COLUMN)
        return " ".join(parts)

    def _sizes(self) -> str:
        """Return what all rows take as vectors and as codes, with the model, without which codes find nothing."""
        n_rows = self.n_queries + self.n_items
        model = self.stored.model if self.stored else self.chosen.methods[0].model_bytes or 0
        vectors, codes = n_rows * self.bytes_before, n_rows * self.bytes_after
        told = (
            f"A vector takes {self.bytes_before:,g} bytes as given, a code {self.bytes_after:,g}. {n_rows:,} vectors "
            f"take {_amount(vectors)}; their codes {_amount(codes)}, and the model that encodes queries "
            f"{_amount(model)}: {_amount(codes + model)} in all, {_ratio(vectors, codes + model)}, "
            f"which is {(codes + model) / n_rows:,.1f} bytes per item."
        )
        if self.stored is None:
            return told
        return f"{told} The folder takes {_amount(self.stored.folder)}, with ids and labels, and without this page."

    def _about_labels(self) -> str:
        """Return on how many labels precision rests, and how high it can get."""
        if self.precision_ceiling is None:
            return ""
        counts = (
            f" Precision is measured on {counted(self.n_labeled_queries, 'labeled query', 'labeled queries')} and "
            f"{counted(self.n_labeled_items, 'labeled item')}."
        )
        if self.precision_ceiling > _NEARLY_ONE:
            return counts
        return (
            f"{counts} No ranking can exceed {self.precision_ceiling:.3f}, because some queries have fewer than 10 "
            "labeled items of their class."
        )


def _amount(n_bytes: float) -> str:
    """Write a number of bytes in the largest unit that keeps it above one.

    Examples
    --------
    >>> _amount(800), _amount(30_400), _amount(15_564_800)
    ('800 bytes', '30.4 kB', '15.6 MB')
    """
    power = 0
    while n_bytes >= 1000 and power < len(_UNITS) - 1:
        n_bytes, power = n_bytes / 1000, power + 1
    return f"{n_bytes:,.{1 if power else 0}f} {_UNITS[power]}"


def _ratio(before: float, after: float) -> str:
    """Write how much less or more something takes than before.

    Examples
    --------
    >>> _ratio(64, 4), _ratio(64, 128), _ratio(64, 62)
    ('16 times less', '2.0 times more', '1.0 times less')
    """
    times = before / after
    many = times if times >= 1 else 1 / times
    return f"{many:,.{0 if many >= 10 else 1}f} times {'less' if times >= 1 else 'more'}"


def compare(
    X: ArrayLike,
    y: LabelsLike = None,
    *,
    hasher: BaseHasher | None = None,
    n_bits: int | Sequence[int] | None = None,
    rivals: Sequence[str] = RIVALS,
    n_queries: int | None = None,
    random_state: Seed = 0,
) -> Comparison:
    """Compare a hasher with float search and with other methods at equal length.

    ``rivals`` are names of the catalog. "RaBitQ" stands for its estimates of distances, and "PQ" for product
    quantization by FAISS, at equal bytes where they can be equal; "LogisticRegression" for float search within the
    class that it gives a query, where there are labels. One that cannot be made of these vectors is left
    out, and the page says why. The other arguments are those of :func:`binarize`.
    """
    split = hold_out(X, y, n_queries, random_state)
    return compare_choice(split, choose_hasher(split, hasher, n_bits), rivals)


def compare_choice(split: HeldOut, choice: Choice, rivals: Sequence[str] = RIVALS) -> Comparison:
    """Compare a chosen hasher at all its lengths."""
    bench = Bench(split)
    n_labeled_queries = int((split.label_index[split.query] >= 0).sum())
    parts = [
        _at_length(bench, fitted, seconds, rivals, n_labeled_queries) for fitted, seconds in _fitted(choice, split)
    ]
    lengths = [part.comparison for part in parts]
    n_bits, length_choice = choose_length(lengths, len(split.base))
    found = next(part.found for part in parts if part.comparison.n_bits == n_bits)
    return Comparison(
        choice=choice.reason,
        n_queries=len(split.query),
        n_items=len(split.base),
        n_labeled_queries=n_labeled_queries,
        n_labeled_items=int((split.label_index[split.base] >= 0).sum()),
        precision_ceiling=split.precision_ceiling(),
        exact=bench.exact.result,
        all_items_milliseconds=bench.all_items_milliseconds,
        lengths=lengths,
        n_bits=n_bits,
        length_choice=length_choice,
        questions=example_queries(split, {bench.exact.result.name: bench.exact.found, **found}),
    )


def compare_embedders(split: HeldOut, vectors: Mapping[str, np.ndarray]) -> tuple[list[MethodResult], dict[str, str]]:
    """Measure search in the vectors that embedders made of all rows, by their names, and in shorter forms of them.

    Also return which of these could not be made, and why.
    """
    results: list[MethodResult] = []
    left_out: dict[str, str] = {}
    for name, X in vectors.items():
        bench = Bench(replace(split, X=X))
        results.append(replace(bench.exact.result, name=name))
        forms = {"int8": bench.of_int8, "sign": bench.of_signs}
        forms |= {form: _rival(form, 8 * code_bytes(X.shape[1]), bench) for form in _OF_FLOAT_QUERIES}
        for form, measure in forms.items():
            try:
                result = measure().result
                results.append(replace(result, name=f"{name}, {result.name}"))
            except (ValueError, MissingExtraError) as error:
                left_out[f"{name}, {form}"] = " ".join(str(error).split())
    return results, left_out


@dataclass(frozen=True, slots=True)
class _AtLength:
    """One length: its comparison, and what each method finds."""

    comparison: LengthComparison
    found: dict[str, np.ndarray]


def _fitted(choice: Choice, split: HeldOut) -> Iterator[tuple[BaseHasher, float]]:
    """Fit a copy of the hasher at each length; yield it with the seconds that its fit takes."""
    hasher = _seeded(clone(choice.hasher))
    shared = 0.0
    started = time.perf_counter()
    for fitted in fit_lengths(hasher, split.items, split.item_labels, choice.lengths):
        seconds = shared + time.perf_counter() - started
        # A hasher that changes its length had its fit before.
        shared = seconds if "with_bits" in fitted.supports and not shared else shared
        yield fitted, seconds
        started = time.perf_counter()


def _seeded(hasher: BaseHasher) -> BaseHasher:
    """Give a hasher without a seed one, so that the same rows make the same page."""
    has_none = hasher.get_params().get("random_state", 0) is None
    return hasher.set_params(random_state=0) if has_none else hasher


def _at_length(
    bench: Bench, fitted: BaseHasher, fit_seconds: float, rivals: Sequence[str], n_labeled_queries: int
) -> _AtLength:
    own = bench.of_hasher(fitted, fit_seconds)
    n_bits = int(fitted.n_bits_)
    measured, left_out = list(own), {}
    for name in rivals:
        if name == type(fitted).__name__ and name not in _OF_FLOAT_QUERIES:
            continue
        if name == _CLASS_FIRST and not bench.split.has_labels:
            continue
        try:
            measured.append(_rival(name, n_bits, bench)())
        except (ValueError, MissingExtraError) as error:
            # Only the requested hasher must fit these vectors.
            left_out[name] = " ".join(str(error).split())
    unlabeled = next((one.result for one in own if one.result.name.endswith(FROM_VECTORS)), None)
    told = verdict(bench.exact.result, own[0].result, unlabeled, len(bench.split.base), n_labeled_queries)
    others = [one.result for one in measured[len(own) :]]
    class_first = next((one for one in others if one.name == CLASS_FIRST), None)
    more = (about_class_first(class_first), about_rivals(own[0].result, others))
    told = " ".join([told, *filter(None, more)])
    calibration = bench.reliability_of(fitted)
    comparison = LengthComparison(n_bits, [one.result for one in measured], told, left_out, calibration)
    shown = [one for one in measured if not one.result.name.endswith((FROM_VECTORS, LABEL_COLUMN))]
    return _AtLength(comparison, {one.result.name: one.found for one in shown})


def _rival(name: str, n_bits: int, bench: Bench) -> Callable[[], Measured]:
    if name == "RaBitQ":
        return lambda: bench.of_estimates(n_bits)
    if name == "PQ":
        return lambda: bench.of_products(n_bits)
    if name == _CLASS_FIRST:
        return bench.of_class_first
    return lambda: _measured_hasher(name, n_bits, bench)


def _measured_hasher(name: str, n_bits: int, bench: Bench) -> Measured:
    hasher = _seeded(get_class(name)(n_bits=n_bits))
    started = time.perf_counter()
    hasher.fit(bench.split.items, bench.split.item_labels)
    return bench.of_hasher(hasher, time.perf_counter() - started)[0]


def choose_length(lengths: Sequence[LengthComparison], n_items: int) -> tuple[int, str]:
    """Return the length to keep, and why.

    It is the shortest whose precision, where measured, is within .01 of the best and that keeps the neighbors, with a
    recall of at least .8; the longest if there is none.
    """
    if len(lengths) == 1:
        return lengths[0].n_bits, ""
    precisions = [length.methods[0].precision_at_10 for length in lengths]
    best = max((precision for precision in precisions if precision is not None), default=0.0)
    by_length = sorted(lengths, key=lambda length: length.n_bits)
    names = [str(length.n_bits) for length in by_length]
    tried = f"Of {', '.join(names[:-1])} and {names[-1]} bits, "
    for length in by_length:
        own = length.methods[0]
        precise = own.precision_at_10 is None or own.precision_at_10 >= best - _SMALL_LOSS
        if precise and keeps_neighbors(own, n_items):
            reason = f"a recall of 10 in 100 of at least {GOOD_RECALL:g}"
            if own.precision_at_10 is not None:
                reason = f"precision within {_SMALL_LOSS:g} of the best and {reason}"
            return length.n_bits, f"{tried}{length.n_bits} were chosen: the shortest codes with {reason}."
    longest = by_length[-1].n_bits
    why = (
        "shorter codes lose too much" if n_items >= ENOUGH_ITEMS else "there are too few items to tell how much is lost"
    )
    return longest, f"{tried}{longest} were chosen: {why}."


def example_queries(split: HeldOut, found: Mapping[str, np.ndarray]) -> list[ExampleQuery]:
    """Return up to eight queries, of as many classes as possible, each in the order in which they were drawn.

    ``found`` maps a method to the positions of the items that it finds first, shape (n_queries, k).
    """
    return [_example(split, number, found) for number in _chosen(split.label_index[split.query])]


def _chosen(labels: np.ndarray) -> list[int]:
    """Return the first query of each class, then the second ones; those without a label last."""
    seen: dict[int, int] = {}
    places = []
    for number, label in enumerate(labels.tolist()):
        place = seen[label] = seen.get(label, 0) + 1
        places.append((label < 0, place, number))
    return [number for _, _, number in sorted(places)[:_N_EXAMPLES]]


def _example(split: HeldOut, number: int, found: Mapping[str, np.ndarray]) -> ExampleQuery:
    row = int(split.query[number])
    answers = []
    for method, positions in found.items():
        rows = split.base[positions[number]]
        known = (split.label_index[rows] >= 0) & (split.label_index[row] >= 0)
        same = split.label_index[rows] == split.label_index[row]
        right = [bool(s) if k else None for s, k in zip(same, known, strict=True)]
        answers.append(ExampleAnswer(method, rows.tolist(), right))
    return ExampleQuery(row, _label_of(split, row), answers)


def _label_of(split: HeldOut, row: int) -> Any:
    if split.labels is None or split.label_index[row] < 0:
        return None
    label = split.labels.classes[split.label_index[row]]
    return label.item() if isinstance(label, np.generic) else label
