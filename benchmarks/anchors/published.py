"""Published mAP on CIFAR-10, by features and by number of bits, each with its source and its rows."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["PUBLISHED", "Published"]


@dataclass(frozen=True, slots=True)
class Published:
    """Figures of one method: mAP by number of bits, on which features and rows, and where they are printed."""

    features: str
    method: str
    by_bits: dict[int, float]
    rows: str
    source: str


_SDH_REPOSITORY = "TreezzZ/SDH_PyTorch on GitHub, README"
# These are passed on in the literature without their table; we could not check them there.
_PASSED_ON = "passed on in the literature, probably from Jiang, Cui, Li 2017 (DDSH); not checked at the source"
_ROWS = "1,000 queries, 5,000 training rows"

PUBLISHED = (
    Published("gist", "SDH", {12: 0.3964, 24: 0.4357, 32: 0.4611, 48: 0.4790}, _ROWS, _SDH_REPOSITORY),
    Published("alexnet", "SDH", {12: 0.4966, 24: 0.5226, 32: 0.5377, 48: 0.5411}, _ROWS, _SDH_REPOSITORY),
    Published("network", "SDH", {12: 0.454, 24: 0.633, 32: 0.651, 48: 0.660}, _ROWS, _PASSED_ON),
    Published("network", "COSDISH", {12: 0.583, 24: 0.661, 32: 0.680, 48: 0.702}, _ROWS, _PASSED_ON),
    Published("network", "DPSH", {12: 0.682, 24: 0.720, 32: 0.734, 48: 0.746}, _ROWS, _PASSED_ON),
)
