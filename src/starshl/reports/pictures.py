"""A query and the pictures that each method retrieves for it, found from the stored codes."""

from __future__ import annotations

from math import isqrt

import numpy as np

from .. import datasets
from ..datasets import Dataset
from ..evaluation import Record, RecordFolder
from ..exceptions import DatasetUnavailableError
from .document import Pictures, Section, Text
from .results import ProtocolResults

__all__ = ["pictures_section"]

N_RETRIEVED = 15

# The class of the query in the paper's figure; other data sets show their second class as well.
_QUERY_CLASS = 1
_WITH_PICTURES = ("cifar10", "digits")


def pictures_section(folder: RecordFolder, found: ProtocolResults) -> Section | None:
    """Return the pictures of the first run at the longest length; None if the data set has none to show.

    The query is the first row of its class among the queries. Items at equal distance come in the order of the
    database, which is random.
    """
    if found.dataset not in _WITH_PICTURES or found.base is None or not found.lengths:
        return None
    n_bits = found.lengths[-1]
    first_runs = (record for record in folder.of_protocol(found.name) if record.key.run == 0 and record.ok)
    chosen = {record.key.method: record for record in first_runs if record.key.n_bits == n_bits}
    section = Section(f"{found.dataset}: pictures retrieved at {n_bits} bits", f"pictures-{found.name}")
    try:
        dataset = datasets.get(found.dataset, download=False)
    except DatasetUnavailableError as error:
        section.blocks.append(Text((f"The pictures are not shown: {error}",)))
        return section
    protocol = (
        found.base.reduced(n_train=found.n_train, n_query=found.n_query, n_runs=1) if found.reduced else found.base
    )
    split = protocol.split(dataset, 0)
    query = int(np.flatnonzero(dataset.y[split.query] == _QUERY_CLASS)[0])
    ordered = [chosen[method] for method in found.methods if method in chosen]
    rows = tuple(_row(record, dataset, split.database, query) for record in ordered)
    caption = (
        f"Left the query ({dataset.names[_QUERY_CLASS]}), then the {N_RETRIEVED} nearest codes of the database; "
        "a dashed frame marks another class"
    )
    section.blocks.append(Pictures(caption, _picture(dataset, split.query[query]), rows))
    return section


def _row(record: Record, dataset: Dataset, database: np.ndarray, query: int):
    distances = record.codes("query")[query : query + 1].distances(record.codes("database"))[0]
    nearest = database[np.argsort(distances, kind="stable")[:N_RETRIEVED]]
    images = tuple(_picture(dataset, row) for row in nearest)
    return record.key.method, images, tuple((dataset.y[nearest] == _QUERY_CLASS).tolist())


def _picture(dataset: Dataset, row: int) -> np.ndarray:
    side = isqrt(dataset.X.shape[1])
    pixels = dataset.X[row].astype(np.float64).reshape(side, side)
    return np.round(255 * pixels / float(dataset.X.max())).astype(np.uint8)
