"""What the queries of a command are: vectors in a file, or texts and pictures that the collection's extractor reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..rows import RowOptions, cells_taken_by, decimal_of, feature_names
from ..texts import LINES, read_texts

if TYPE_CHECKING:
    from ...collection import Collection

__all__ = ["QueryOptions", "holding_vectors", "holds_pictures", "holds_texts"]

_OF_VECTORS = (".npy", ".npz")  # files that cannot hold texts here


@dataclass(frozen=True, slots=True)
class QueryOptions:
    """Where the queries of a search come from: a file, texts, pictures, or stored items."""

    input: Path | None
    items: list[int] | None
    texts: list[str] | None
    pictures: list[Path] | None
    vectors: str | None = None
    column: str | None = None
    decimal: str | None = None

    def check(self) -> None:
        """Refuse no query, and queries of several kinds."""
        if sum(map(bool, (self.input, self.items, self.texts, self.pictures))) != 1:
            raise ValueError("Give one kind of query: a file, --text, --picture, or --item, the id of a stored item.")
        RowOptions(decimal=self.decimal).check()

    def rows(self, collection: Collection) -> Any:
        """Return the queries as rows for the hasher of a collection, None if they are stored items."""
        if self.items:
            return None
        if self.texts:
            _check_takes(collection, "texts")
            return collection.extract(self.texts)
        pictures = self.pictures or ([] if self.input is None else [self.input])
        if self.pictures or holds_pictures(collection, pictures):
            return _picture_rows(collection, pictures)
        assert self.input is not None
        if holds_texts(collection, self.input, self.vectors):
            return collection.extract(self._texts_of_file(self.input, collection))
        return _read_vectors(self.input, self.vectors, collection, self.decimal)

    def _texts_of_file(self, input: Path, collection: Collection) -> list[str]:
        from ...importing.more import text_field

        texts, _ = read_texts(
            input, self.column or text_field(collection), RowOptions(), {"--text-column": self.column}
        )
        return texts


def holds_texts(collection: Collection, input: Path, vectors: str | None) -> bool:
    """Return whether a file holds texts for a collection of texts: not vectors by its ending or by an option."""
    if input.suffix.lower() == LINES:
        _check_takes(collection, "texts")
        return True
    takes_texts = collection.kind == "texts" and collection.extractor is not None
    return takes_texts and vectors is None and input.suffix.lower() not in _OF_VECTORS


def holds_pictures(collection: Collection, inputs: Sequence[Path]) -> bool:
    """Return whether these are pictures or folders; a collection that takes none refuses them."""
    from ...features.picture_files import is_picture_file

    if not any(path.is_dir() or is_picture_file(path) for path in inputs):
        return False
    _check_takes(collection, "pictures")
    return True


def _picture_rows(collection: Collection, paths: Sequence[Path]) -> Any:
    from ...importing.folders import collect_pictures

    _check_takes(collection, "pictures")
    return collection.extract([file.path for file in collect_pictures(paths)[0]])


def _read_vectors(input: Path, vectors: str | None, collection: Collection, decimal: str | None) -> Any:
    from ...tables import Columns, read_vectors

    hasher = collection.hasher
    names, cells = feature_names(hasher), cells_taken_by(hasher)
    columns = Columns(
        vectors=vectors, features=names, others="metadata", decimal=decimal or decimal_of(hasher), **cells
    )
    with holding_vectors(collection, input) as check:
        rows = read_vectors(input, columns)
        check(rows)
    return rows


@contextmanager
def holding_vectors(collection: Collection, input: Path) -> Iterator[Callable[[Any], None]]:
    """Say what a file is and what a collection of pictures takes if the file holds no vectors for it.

    Reading happens inside the block, which gets a function that checks the rows. Other collections get the message
    about the table as it is.
    """
    from ..._file_kinds import file_kind
    from ...features.picture_files import KINDS

    if collection.kind != "pictures" or collection.extractor is None:
        yield lambda rows: None
        return
    if not input.exists():
        raise FileNotFoundError(f"There is no file or folder {str(input)!r}. Give pictures, or a folder of them.")
    width = collection.hasher.n_features_in_

    def check(rows: Any) -> None:
        if rows.shape[1] != width:
            raise ValueError(f"rows of {rows.shape[1]} numbers")

    try:
        yield check
    except ValueError as error:
        what = file_kind(input) or "of a kind that is not known here"
        raise ValueError(
            f"{str(input)!r} is {what}, and holds no vectors of {width} numbers. The items of this collection are "
            f"pictures: it takes {KINDS} files, folders of them, or a table of such vectors. Give one of these."
        ) from error


def _check_takes(collection: Collection, kind: str) -> None:
    if collection.kind == kind and collection.extractor is not None:
        return
    takes = {
        "vectors": "vectors, in a .npy, .npz, .csv, .tsv, .jsonl or .parquet file",
        "texts": "texts, in a table or a .txt file, or vectors",
        "pictures": "pictures, folders of pictures, or vectors",
    }["vectors" if collection.extractor is None else collection.kind]
    raise ValueError(f"The items of this collection are {collection.kind}, so it takes no {kind}. It takes {takes}.")
