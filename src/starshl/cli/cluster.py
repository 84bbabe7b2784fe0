"""``starshl cluster``, and what ``starshl fit`` and ``starshl encode`` do with ``--cluster``."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .._common.words import counted
from .options import Port, check_output_folder, load_model
from .rows import local_files, read_partitions

if TYPE_CHECKING:
    from ..data.tables.columns import Columns
    from ..hashers.base import BaseHasher
    from .hashers import StepOptions

app = typer.Typer(no_args_is_help=True, help="Dask clusters for fit and encode.")
Cluster = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        metavar="ADDRESS",
        help="Let the workers of a Dask cluster do the work; give its address, such as tcp://127.0.0.1:8786. INPUT is "
        "then .parquet, .npy or .zarr: a file, a folder, a pattern such as 'rows-*.npy' or a URL, which all workers "
        "must be able to reach.",
    ),
]
Workers = Annotated[
    int | None,
    typer.Option("--workers", "-w", metavar="N", help="Number of processes; by default, one per core.", min=1),
]


@app.command("local")
def local(workers: Workers = None, port: Port = 0) -> None:
    """Start a cluster on this machine and print its address.

    Ctrl+C or SIGTERM stops it. It listens only to this machine. To start a cluster on several machines, use Dask's own
    commands, dask scheduler and dask worker; all of them need the same version of starshl.
    """
    import signal
    import threading

    from ..distributed.engine import local_cluster

    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())
    with local_cluster(workers, port=port) as cluster:
        n_workers = len(cluster.workers)
        typer.echo(cluster.scheduler_address)
        typer.echo(f"{counted(n_workers, 'worker')}; Ctrl+C stops the cluster", err=True)
        stopped.wait()
    typer.echo("The cluster has stopped.", err=True)


def encode_on_cluster(
    model: Path,
    source: str,
    folder: Path,
    columns: Columns,
    address: str,
    *,
    database: bool,
    one_file: bool,
    progress: bool,
) -> dict[str, Any]:
    """Encode a source of any size into a folder of codes; return what `--json` prints."""
    from ..distributed.encoding import encode

    check_output_folder(folder, {Path(file).parent for file in local_files(source)})
    hasher = load_model(model)
    _refuse_cells(hasher)
    table = read_partitions(source, columns, hasher)
    rows: Any = table.X
    manifest = encode(
        hasher,
        rows,
        folder,
        client=address,
        labels=table.y if database else None,
        database=database,
        one_file=one_file,
        progress=progress,
    )
    return {
        "output": str(folder),
        "codes_of": manifest["codes_of"],
        "n_codes": manifest["n_rows"],
        "n_bits": manifest["n_bits"],
        "bytes_per_code": manifest["bytes_per_code"],
        "n_partitions": len(manifest["partitions"]),
        "bit_order": manifest["bit_order"],
    }


def fit_on_cluster(address: str, hasher: BaseHasher, X: Any, y: Any) -> BaseHasher:
    """Fit a hasher on the rows of a source."""
    from ..distributed.training import fit

    return fit(hasher, X, y, client=address)


def refuse_steps(options: StepOptions) -> None:
    """Refuse preprocessing, which would need all rows in one place."""
    given = [f"--{name}" for name, value in asdict(options).items() if value]
    if given:
        raise ValueError(
            f"{' and '.join(given)} and --cluster contradict each other: preprocessing learns from all rows at once. "
            "Prepare the rows first, or fit without --cluster."
        )


def _refuse_cells(hasher: BaseHasher) -> None:
    from ..hashers.columns import columns_for

    columns = columns_for(hasher)
    if columns.raw or columns.allow_missing or columns.numbers:
        raise ValueError(
            "This model prepares text or missing values, but on a cluster, rows must be finite numbers. Encode "
            "without --cluster."
        )
