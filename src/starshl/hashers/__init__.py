"""From rows to codes: *SHL, hybrid codes, 27 other methods, and what they share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._common.lazy import on_first_use

if TYPE_CHECKING:
    from .._common.labels import LabelsLike
    from .._common.validation import SamplesLike, Seed, check_integer, check_rows
    from .base import CAPABILITIES, BaseHasher, FitSummary, LinearHasher, all_or_nothing
    from .card import card_markdown, measure, model_card
    from .catalog import Configuration, configurations, get_class, load
    from .classifier import ClassifierHasher
    from .facts import Facts, Variant
    from .fitting import encode_blocks, fit_lengths
    from .hybrid import HybridHasher
    from .prepared import PreparedHasher, picture_hasher
    from .star.bound import GeneralizationBound
    from .star.star_ridge import StarRidge
    from .star.star_shl import StarSHL
    from .supervision import Pairs, pairs_from_labels, triplets_from_labels

__all__ = [
    "CAPABILITIES",
    "BaseHasher",
    "ClassifierHasher",
    "Configuration",
    "Facts",
    "FitSummary",
    "GeneralizationBound",
    "HybridHasher",
    "LabelsLike",
    "LinearHasher",
    "Pairs",
    "PreparedHasher",
    "SamplesLike",
    "Seed",
    "StarRidge",
    "StarSHL",
    "Variant",
    "all_or_nothing",
    "card_markdown",
    "check_integer",
    "check_rows",
    "configurations",
    "encode_blocks",
    "fit_lengths",
    "get_class",
    "load",
    "measure",
    "model_card",
    "pairs_from_labels",
    "picture_hasher",
    "triplets_from_labels",
]

__getattr__, __dir__ = on_first_use(
    __name__,
    {
        "._common.labels": ["LabelsLike"],
        "._common.validation": ["SamplesLike", "Seed", "check_integer", "check_rows"],
        "base": ["CAPABILITIES", "BaseHasher", "FitSummary", "LinearHasher", "all_or_nothing"],
        "classifier": ["ClassifierHasher"],
        "catalog": ["Configuration", "configurations", "get_class", "load"],
        "facts": ["Facts", "Variant"],
        "fitting": ["encode_blocks", "fit_lengths"],
        "hybrid": ["HybridHasher"],
        "card": ["card_markdown", "measure", "model_card"],
        "prepared": ["PreparedHasher", "picture_hasher"],
        "star.bound": ["GeneralizationBound"],
        "star.star_ridge": ["StarRidge"],
        "star.star_shl": ["StarSHL"],
        "supervision": ["Pairs", "pairs_from_labels", "triplets_from_labels"],
    },
)
