"""The protocols of the paper's experiments, and all protocols that its reproduction uses."""

from __future__ import annotations

from ..evaluation import PROTOCOLS as GENERIC_PROTOCOLS
from ..evaluation import Protocol, Rows, frozen_protocols

__all__ = ["PAPER_PROTOCOLS", "PROTOCOLS"]

# The paper prints no table of code lengths; these are our reading of the ticks of its plots.
_RETRIEVAL_BITS = tuple(range(5, 50, 5))
_TRANSDUCTIVE_BITS = tuple(range(4, 16))


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
            Rows(n_train, n_query, every_class=True),
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
            Rows(n_train, n_query),
            n_runs=20,
            scaling="range",
            bits=_TRANSDUCTIVE_BITS,
            about=f"{source}; a class may be absent from the training rows",
        )
        for dataset, (n_train, n_query) in sizes.items()
    ]


PAPER_PROTOCOLS = frozen_protocols((*_paper_retrieval(), *_paper_transductive()), __package__)

PROTOCOLS: dict[str, Protocol] = PAPER_PROTOCOLS | GENERIC_PROTOCOLS
