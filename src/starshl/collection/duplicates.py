"""Items that are stored already: what tells that a new item is the same as one that is there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .._common.validation import n_rows
from ..codes.binary import BinaryCodes
from ..index.metadata import metadata_texts
from .items import Row, reference_texts
from .previews import check_previews, find_preview
from .state import State
from .store import Store
from .vectors import VectorFile, batches, kept_rows

_NO_METADATA = "{}"


def duplicates_of(
    state: State,
    store: Store,
    X: Any,
    codes: BinaryCodes | None,
    metadata: Sequence[Mapping[str, Any]] | None,
    references: Iterable[str | None] | None,
    previews: Iterable[bytes | None] | None,
) -> list[tuple[int, ...]]:
    """Return the ids of the stored items that are the same as each new one, ascending.

    Labels do not count: somebody may have changed them. Pictures are the same if their reference and their preview are;
    other items, if their reference, their metadata and their kept vector are. If vectors are not kept, the code stands
    in for them, but different items may share it, so at least a reference or metadata must be there.
    """
    n_items = n_rows(X)
    known = reference_texts(references, n_items)
    pictures = check_previews(previews, n_items)
    if any(picture is not None for picture in pictures):
        shown = [None if name is None else (name, picture) for name, picture in zip(known, pictures, strict=True)]
        return _looked_up(shown, _by_reference(store, {name for name in known if name is not None}))
    described = list(zip(known, metadata_texts(metadata, n_items), strict=True))
    file = state.vectors
    if file is not None:
        packed = file.layout.pack(kept_rows(state.hasher, X, file.layout.n_columns))
        kept = [(*about, record.tobytes()) for about, record in zip(described, packed, strict=True)]
        return _looked_up(kept, _by_vector(file, store, {key[2] for key in kept}))
    own = state.hasher.encode_database(X) if codes is None else codes
    coded = [
        None if about == (None, _NO_METADATA) else (*about, code.tobytes())
        for about, code in zip(described, own.packed, strict=True)
    ]
    return _looked_up(coded, _by_metadata(store, {key[1] for key in coded if key is not None}))


def _looked_up(keys: Sequence[Any], stored: Mapping[Any, list[int]]) -> list[tuple[int, ...]]:
    return [() if key is None else tuple(stored.get(key, ())) for key in keys]


def _by_reference(store: Store, wanted: set[str]) -> dict[Any, list[int]]:
    found: defaultdict[Any, list[int]] = defaultdict(list)
    for row in _rows(store, "reference", wanted):
        preview = find_preview(store, row.id)
        found[(row.reference, None if preview is None else preview.content)].append(row.id)
    return found


def _by_vector(file: VectorFile, store: Store, wanted: set[bytes]) -> dict[Any, list[int]]:
    records = file.find(wanted, store.meta("n_records"))
    found: defaultdict[Any, list[int]] = defaultdict(list)
    for row in _rows(store, "vector_position", records):
        assert row.vector_position is not None
        found[(row.reference, row.metadata, records[row.vector_position])].append(row.id)
    return found


def _by_metadata(store: Store, wanted: set[str]) -> dict[Any, list[int]]:
    found: defaultdict[Any, list[int]] = defaultdict(list)
    for row in _rows(store, "metadata", wanted):
        found[(row.reference, row.metadata, row.vector_code)].append(row.id)
    return found


def _rows(store: Store, column: str, wanted: Iterable[str | int]) -> Iterable[Row]:
    """Yield the rows, with their checksums compared, that have one of these values; the lowest ids come first."""
    for ids in batches(store.having(column, list(wanted))):
        yield from store.rows(ids)
