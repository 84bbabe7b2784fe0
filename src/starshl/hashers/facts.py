"""What is known about a hashing method before it is fitted: where it comes from, and what it asks for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

LabelUse = Literal["ignored", "required", "some", "optional"]
LABEL_USES: dict[LabelUse, str] = {
    "ignored": "y is not read",
    "required": "every row needs a label",
    "some": "some rows need a label, the others may have one",
    "optional": "all, some or none of the rows may have a label",
}


@dataclass(frozen=True, slots=True)
class Facts:
    """What a hasher class says about itself.

    Parameters
    ----------
    paper : authors and title of the publication
    year : when it was published
    labels : what ``fit`` does with y, a word of ``LABEL_USES``
    cost : of fitting, in the sizes of the input
    samples : what ``fit`` takes
    max_bits : "any", or what limits the code length
    bits_multiple_of : n_bits must be a multiple of this
    note : what a table adds to the name, for example that a method is a reconstruction
    sparse : ``fit`` takes sparse rows
    reads_blocks : ``fit`` takes rows that stay in a file, and reads them block by block
    full_length : made for one bit per feature: shorter codes only keep the leading features or coordinates, so tables
        of one code length show the method apart
    """

    paper: str
    year: int
    labels: LabelUse
    cost: str
    samples: str = "vectors"
    max_bits: str = "any"
    bits_multiple_of: int = 1
    note: str = ""
    sparse: bool = False
    reads_blocks: bool = False
    full_length: bool = False

    @property
    def needs_labels(self) -> bool:
        return self.labels in ("required", "some")


@dataclass(frozen=True, slots=True)
class Variant:
    """A setting of a method that papers list as a separate method.

    Parameters
    ----------
    name : what tables call it
    params : the constructor arguments that select it
    changes : the facts in which it differs from the method
    """

    name: str
    params: dict[str, Any]
    changes: dict[str, Any]

    def facts(self, of_method: Facts) -> Facts:
        """Return the facts of this variant."""
        return replace(of_method, **self.changes)
