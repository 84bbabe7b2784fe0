"""Export of a collection to files that other programs read: Parquet and JSON lines.

Codes are written as packed bytes: bit j of a code is bit ``j % 8``, counted from the least significant, of byte
``j // 8``; unused bits of the last byte are zero. Beside hybrid codes, ``hamming_code`` is a longer code for programs
that compare bits alone (see ``hasher.hamming_codes``). In Parquet, the label and each declared field are columns of
their own types, and other metadata are a JSON text. If labels were guessed, ``guess`` and ``guess_confidence`` are
columns of their own, apart from the label. A declared field with the name of another column is
``metadata.NAME``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .._common.files import replacing_file
from ..codes.binary import BinaryCodes, n_bytes
from .fields import Fields
from .guesses import Guesses
from .items import Row, label_of
from .vocabulary import Vocabulary

if TYPE_CHECKING:
    from ..hashers.base import BaseHasher


def write_rows(
    path: str | os.PathLike[str],
    rows: Sequence[Row],
    vocabulary: Vocabulary,
    hasher: BaseHasher,
    fields: Fields,
    guesses: Guesses | None = None,
) -> None:
    """Write rows to a file in the format that its ending names; the file is complete or absent."""
    writers = {".parquet": _write_parquet, ".jsonl": _write_json_lines}
    ending = Path(path).suffix
    if ending not in writers:
        raise ValueError(f"The file name ends in {ending!r}; use {' or '.join(writers)}.")
    writers[ending](path, rows, vocabulary, hasher, fields, guesses)


def _write_json_lines(
    path: str | os.PathLike[str],
    rows: Sequence[Row],
    vocabulary: Vocabulary,
    hasher: BaseHasher,
    fields: Fields,
    guesses: Guesses | None,
) -> None:
    guessed = _guesses_of(rows, guesses)
    hamming = _hamming_codes(rows, hasher)
    with replacing_file(path) as file:
        for place, row in enumerate(rows):
            entry = {
                "id": row.id,
                "code": row.code.hex(),
                **({} if hamming is None else {"hamming_code": hamming.packed[place].tobytes().hex()}),
                "n_bits": hasher.n_bits_,
                "space_id": hasher.space_id_,
                "code_from": row.code_from,
                "model_digest": row.model_digest,
                "label": label_of(row, vocabulary),
                **({} if guessed is None else {name: values[place] for name, values in guessed.items()}),
                "reference": row.reference,
                "metadata": row.metadata,
            }
            file.write(json.dumps(entry).encode() + b"\n")


def _write_parquet(
    path: str | os.PathLike[str],
    rows: Sequence[Row],
    vocabulary: Vocabulary,
    hasher: BaseHasher,
    fields: Fields,
    guesses: Guesses | None,
) -> None:
    # Imported here because JSON lines must work without the library behind it.
    from ..index.adapters.parquet_table import write_parquet

    hamming = _hamming_codes(rows, hasher)
    others = [{name: value for name, value in row.metadata.items() if name not in fields} for row in rows]
    labels = [label_of(row, vocabulary) for row in rows]
    columns: dict[str, Sequence[Any]] = {
        "code_from": [row.code_from for row in rows],
        "model_digest": [row.model_digest for row in rows],
        "label": labels,
        "reference": [row.reference for row in rows],
        "metadata": [json.dumps(entry) for entry in others],
    }
    types = dict.fromkeys(columns, "str")
    for name, values in (_guesses_of(rows, guesses) or {}).items():
        known = next((value for value in values if value is not None), 0.0 if name == "guess_confidence" else "")
        columns[name], types[name] = values, type(known).__name__
    if hamming is not None:
        columns["hamming_code"], types["hamming_code"] = [code.tobytes() for code in hamming.packed], "bytes"
    types["label"] = next((type(label).__name__ for label in labels if label is not None), "str")
    for name, kind in fields.items():
        column = f"metadata.{name}" if name in ("id", "code", *columns) else name
        columns[column], types[column] = [row.metadata.get(name) for row in rows], kind
    write_parquet(path, _codes(rows, hasher), [row.id for row in rows], columns, types)


def _guesses_of(rows: Sequence[Row], guesses: Guesses | None) -> dict[str, list[Any]] | None:
    """Return the guessed label of each row and how sure it is, None where there is no guess."""
    if guesses is None:
        return None
    found = guesses.of([row.id for row in rows])
    return {
        "guess": [None if guess is None else guess.label for guess in found],
        "guess_confidence": [None if guess is None else guess.confidence for guess in found],
    }


def _codes(rows: Sequence[Row], hasher: BaseHasher) -> BinaryCodes:
    content = b"".join(row.code for row in rows)
    return hasher.as_codes(np.frombuffer(content, np.uint8).reshape(len(rows), n_bytes(hasher.n_bits_)))


def _hamming_codes(rows: Sequence[Row], hasher: BaseHasher) -> BinaryCodes | None:
    """Return codes that are compared bit by bit, None if the codes themselves are."""
    return hasher.hamming_codes(_codes(rows, hasher)) if hasher.code_metric == "hybrid" else None
