"""Named experiments: for each run, which rows train, which form the database and which are queries.

A frozen protocol carries the SHA-256 of each of its splits. A split that comes out differently is refused, so two
results of the same protocol and run were measured on the same rows.
"""

from __future__ import annotations

import difflib
import json
import re
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Literal, TypeAlias, get_args

from .._common.validation import check_choice, check_integer
from ..data.datasets.store import Dataset
from ..exceptions import ChecksumError
from .records import check_file_stem
from .splits import Sampling, Scaling, Split, draw_rows

#: What a protocol measures.
Task: TypeAlias = Literal["retrieval", "lists", "transductive", "labels", "unsupervised"]
# The paper prints no table of code lengths; these are our reading of the ticks of its plots.
_RETRIEVAL_BITS = tuple(range(5, 50, 5))
_TRANSDUCTIVE_BITS = tuple(range(4, 16))
_FEW_LABELS = (1, 5, 20, 100)
_SEMI_SUPERVISED = {
    "digits": (1_300, 497),
    "pendigits": (3_000, 2_000),
    "usps": (3_000, 2_000),
    "mnist": (3_000, 2_000),
    "agnews": (3_000, 2_000),
}
# Training rows, queries, and at most so many items that are neither.
_LISTS = {
    "digits": (1_000, 297, 500),
    "pendigits": (3_000, 1_000, 5_000),
    "usps": (3_000, 1_000, 5_000),
    "mnist": (3_000, 1_000, 5_000),
    "cifar10": (3_000, 1_000, 5_000),
    "pascal07": (2_000, 700, 1_000),
    "letter": (3_000, 1_000, 5_000),
    "agnews": (3_000, 1_000, 3_600),
    "banking77": (3_000, 1_000, 5_000),
    "pascal07_objects": (3_000, 1_000, 5_000),
    "caltech101": (3_000, 1_000, 4_600),
    "cifar10_color": (1_000, 400, 600),
}


@dataclass(frozen=True, slots=True)
class Protocol:
    """How rows of a data set are used, ``n_runs`` times.

    Parameters
    ----------
    name, dataset : str
    task : {"retrieval", "lists", "transductive", "labels", "unsupervised"}
    rows : Sampling
        How many rows train, query and carry labels, and how they are drawn.
    n_runs : int
    scaling : {"raw", "max", "range", "standard", "unit"}
        See :func:`starshl.reproduction.split_data`.
    bits : tuple of int
        Code lengths at which methods are compared.
    about : str
        Where the protocol comes from and how it departs from its source.
    digests : tuple of str
        SHA-256 of the split of each run; empty: splits are not checked.
    """

    name: str
    dataset: str
    task: Task
    rows: Sampling
    n_runs: int = 5
    scaling: Scaling = "max"
    bits: tuple[int, ...] = (16, 32, 64)
    about: str = ""
    digests: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_file_stem(self.name, "A protocol")
        check_choice(self.task, "task", get_args(Task))
        check_integer(self.n_runs, "n_runs", low=1)

    def split(self, dataset: Dataset, run: int) -> Split:
        """Return the rows of one run, the same on every machine."""
        run = check_integer(run, "run", low=0, high=self.n_runs - 1)
        if dataset.name != self.dataset:
            raise ValueError(
                f"Protocol {self.name!r} is about {self.dataset!r}; the data set given is {dataset.name!r}."
            )
        split = draw_rows(self.rows, dataset, run, self.name)
        if self.digests and (expected := self.digests[run]) != split.digest:
            raise ChecksumError(
                f"Run {run} of protocol {self.name!r} gave rows with digest {split.digest[:12]}..., not the "
                f"published {expected[:12]}...: the data set or the generator of random numbers differs."
            )
        return split

    def reduced(self, *, n_train: int, n_query: int, n_runs: int) -> Protocol:
        """Return a smaller protocol of the same kind, under a name that says so, for a quick look."""
        rows = replace(self.rows, n_train=n_train, n_query=n_query, official=False)
        name = f"{self.name}-{n_train}-{n_query}"
        return replace(self, name=name, rows=rows, n_runs=n_runs, digests=())


def protocol(name: str) -> Protocol:
    """Return a protocol by name; the error for an unknown name lists the closest ones.

    Examples
    --------
    >>> protocol("labels-digits-5").rows.n_train
    1300
    """
    if name in PROTOCOLS:
        return PROTOCOLS[name]
    close = difflib.get_close_matches(str(name).lower(), PROTOCOLS, n=3, cutoff=0.4)
    advice = f"The closest are {', '.join(map(repr, close))}." if close else f"Known are {', '.join(PROTOCOLS)}."
    raise ValueError(f"There is no protocol {name!r}. {advice}")


def base_protocol(name: str) -> Protocol | None:
    """Return the protocol with this name, or the one it is a reduced form of; None if there is neither."""
    return PROTOCOLS.get(name) or PROTOCOLS.get(re.sub(r"-\d+-\d+$", "", name))


def _paper_retrieval() -> list[Protocol]:
    sizes = {
        "pendigits": (3_000, None, "16 features, not the 256 that the paper states"),
        "usps": (3_000, None, "gray values from -1 to 1"),
        "mnist": (10_000, None, ""),
        "cifar10": (10_000, None, "gray by ITU-R 601 luma; the paper does not say how"),
        "pascal07": (3_000, 710, "the paper's 6,878 samples were never published; ten largest classes here"),
    }
    source = "Huang et al. 2015, supervised comparison: random split, the training rows are the database"
    return [
        Protocol(
            f"paper-{dataset}",
            dataset,
            "retrieval",
            Sampling(n_train, n_query, every_class=True),
            bits=_RETRIEVAL_BITS,
            about="; ".join(filter(None, (source, remark))),
        )
        for dataset, (n_train, n_query, remark) in sizes.items()
    ]


def _paper_transductive() -> list[Protocol]:
    source = "Huang et al. 2015, transductive study: labeled rows train, queries are the unlabeled rows"
    sizes = {"vowel": (330, 220), "letter": (300, 200)}
    return [
        Protocol(
            f"transductive-{dataset}",
            dataset,
            "transductive",
            Sampling(n_train, n_query),
            n_runs=20,
            scaling="range",
            bits=_TRANSDUCTIVE_BITS,
            about=f"{source}; a class may be absent from the training rows",
        )
        for dataset, (n_train, n_query) in sizes.items()
    ]


def _digits_retrieval() -> list[Protocol]:
    return [
        Protocol(
            "retrieval-digits",
            "digits",
            "retrieval",
            Sampling(1_000, None, every_class=True),
            bits=_RETRIEVAL_BITS,
            about="Random rows of scikit-learn's digits, which need no download; the training rows are the database",
        )
    ]


def _lists() -> list[Protocol]:
    source = "Random rows train, others are queries, others are coded from their vectors; training rows carry labels"
    remarks = {"pascal07_objects": "; training rows and the others are objects of different pictures"}
    return [
        Protocol(
            f"lists-{dataset}",
            dataset,
            "lists",
            Sampling(n_train, n_query, database="unseen", n_items=n_items, by_part=dataset == "pascal07_objects"),
            bits=(32,),
            about=f"{source}{remarks.get(dataset, '')}",
        )
        for dataset, (n_train, n_query, n_items) in _LISTS.items()
    ]


def _label_efficiency() -> list[Protocol]:
    about = "Few labels per class, the other training rows unlabeled; fewer labels are a subset of more"
    return [
        Protocol(
            f"labels-{dataset}-{n_labels}",
            dataset,
            "labels",
            Sampling(n_train, n_query, n_labels=n_labels, stream=f"few-{dataset}"),
            bits=(32,),
            about=about,
        )
        for dataset, (n_train, n_query) in _SEMI_SUPERVISED.items()
        for n_labels in _FEW_LABELS
    ]


def _unsupervised() -> list[Protocol]:
    about = "No labels in training; the rows are those of the label efficiency protocols"
    return [
        Protocol(
            f"unsupervised-{dataset}",
            dataset,
            "unsupervised",
            Sampling(n_train, n_query, n_labels=0, stream=f"few-{dataset}"),
            bits=(32,),
            about=about,
        )
        for dataset, (n_train, n_query) in _SEMI_SUPERVISED.items()
    ]


def _cifar10_of_the_literature() -> list[Protocol]:
    return [
        Protocol(
            "cifar10-1000q-5000t",
            "cifar10",
            "retrieval",
            Sampling(5_000, 1_000, per_class=True, database="rest", stream="cifar10-1000q"),
            about="100 queries per class; the other 59,000 rows are the database, and 500 per class of them train",
        ),
        Protocol(
            "cifar10-1000q-59000t",
            "cifar10",
            "retrieval",
            Sampling(59_000, 1_000, per_class=True, database="rest", stream="cifar10-1000q"),
            about="100 queries per class; the other 59,000 rows are the database and train",
        ),
        Protocol(
            "cifar10-10000q-50000t",
            "cifar10",
            "retrieval",
            Sampling(official=True),
            n_runs=1,
            about="the official split: 50,000 train and are the database, 10,000 queries",
        ),
    ]


def _frozen_protocols() -> dict[str, Protocol]:
    """Return all protocols by name, those of the paper first, with the digests of their splits."""
    digests = json.loads(files(__package__).joinpath("split_digests.json").read_text())
    protocols = (
        *_paper_retrieval(),
        *_paper_transductive(),
        *_digits_retrieval(),
        *_lists(),
        *_label_efficiency(),
        *_unsupervised(),
        *_cifar10_of_the_literature(),
    )
    # A protocol without digests yet can be used to compute them: see scripts/freeze_splits.py.
    return {p.name: replace(p, digests=tuple(digests.get(p.name, ()))) for p in protocols}


PROTOCOLS = _frozen_protocols()
