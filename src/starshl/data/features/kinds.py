"""What an embedder takes, and so what items may be before they are vectors."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

#: What an embedder takes.
RawKind: TypeAlias = Literal["texts", "pictures", "rows"]
RAW_KINDS: tuple[str, ...] = get_args(RawKind)
