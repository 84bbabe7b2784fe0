"""Items that are stored already: what tells that a new item is the same as one that is there."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from .._common.validation import n_rows
from ..codes.binary import BinaryCodes
from ..index.metadata import check_dictionaries, json_text
from .blocks import CODES, IDS, OWN_CODES, POSITIONS
from .fields import Fields
from .items import Row, reference_texts, vector_codes
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
    known = reference_texts(references, n_items) or [None] * n_items
    pictures = check_previews(previews, n_items) or []
    if any(picture is not None for picture in pictures):
        shown = [None if name is None else (name, picture) for name, picture in zip(known, pictures, strict=True)]
        return _looked_up(shown, _by_reference(store, {name for name in known if name is not None}))
    fields = store.fields()
    described = list(zip(known, _texts(metadata, n_items, fields), strict=True))
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
    return _looked_up(coded, _by_code(store, {key[2] for key in coded if key is not None}, own.packed.shape[1]))


def _looked_up(keys: Sequence[Any], stored: Mapping[Any, list[int]]) -> list[tuple[int, ...]]:
    return [() if key is None else tuple(stored.get(key, ())) for key in keys]


def _texts(metadata: Sequence[Mapping[str, Any]] | None, n_items: int, fields: Fields) -> list[str]:
    """Return metadata as JSON, after the round trip through declared fields."""
    if metadata is None:
        return [_NO_METADATA] * n_items
    check_dictionaries(metadata, n_items)
    return [_text(json.loads(json_text(entry, f"metadata[{number}]")), fields) for number, entry in enumerate(metadata)]


def _text(metadata: Mapping[str, Any], fields: Fields) -> str:
    """Return metadata in one spelling: a whole number in a field of numbers is stored as a float."""
    spelled = {
        name: float(value) if type(value) is int and fields.get(name) == "float" else value
        for name, value in metadata.items()
    }
    return json.dumps(spelled, sort_keys=True)


def _by_reference(store: Store, wanted: set[str]) -> dict[Any, list[int]]:
    found: defaultdict[Any, list[int]] = defaultdict(list)
    listed = "reference IN (SELECT value FROM json_each(?))"
    for row in _rows(store, store.texts.matching(listed, [json.dumps(list(wanted))])):
        preview = find_preview(store, row.id)
        found[(row.reference, None if preview is None else preview.content)].append(row.id)
    return found


def _by_vector(file: VectorFile, store: Store, wanted: set[bytes]) -> dict[Any, list[int]]:
    records, fields = file.find(wanted, store.meta("n_records")), store.fields()
    found: defaultdict[Any, list[int]] = defaultdict(list)
    held = np.isin(store.column(POSITIONS).filled(-1), np.array([*records], np.int64))
    for row in _rows(store, store.column(IDS).values[held]):
        assert row.vector_position is not None
        found[(row.reference, _text(row.metadata, fields), records[row.vector_position])].append(row.id)
    return found


def _by_code(store: Store, wanted: set[bytes], width: int) -> dict[Any, list[int]]:
    fields = store.fields()
    found: defaultdict[Any, list[int]] = defaultdict(list)
    packed = vector_codes(store.column(CODES), store.column(OWN_CODES), width)
    held = np.isin(_as_one(packed), _as_one(np.frombuffer(b"".join(wanted), np.uint8).reshape(-1, width)))
    for row in _rows(store, store.column(IDS).values[held]):
        found[(row.reference, _text(row.metadata, fields), row.vector_code)].append(row.id)
    return found


def _as_one(packed: np.ndarray) -> np.ndarray:
    """Return each code as one value."""
    return np.ascontiguousarray(packed).view(f"S{packed.shape[1]}").ravel()


def _rows(store: Store, ids: np.ndarray) -> Iterable[Row]:
    """Yield the rows, with their checksums compared; the lowest ids come first."""
    for portion in batches(ids.tolist()):
        yield from store.rows(portion)
