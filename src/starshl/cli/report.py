"""``starshl report``: write a report of runs that are done."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from .options import AsJson, Jobs, print_json
from .outputs import check_output, check_output_folder

__all__ = ["report", "tell_damaged"]

EXIT_DAMAGED = 1

_DEFAULT_RECORDS = Path("starshl-records")

Records = Annotated[
    Path | None,
    typer.Argument(
        metavar="RECORDS", help="A folder of run records, from `starshl reproduce`; default: starshl-records."
    ),
]
Summaries = Annotated[
    Path | None,
    typer.Option(
        "--summaries",
        metavar="DIR",
        help="Folder of summaries, which are enough without RECORDS. Default: the folder inside RECORDS; without "
        "RECORDS, results/summaries in a clone of the repository.",
    ),
]
Output = Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="Folder for the report.")]
Markdown = Annotated[
    Path | None, typer.Option("--markdown", metavar="FILE", help="Also write the Markdown version to this file.")
]
Pages = Annotated[
    Path | None,
    typer.Option(
        "--pages",
        metavar="DIR",
        help="Also write results.md (the answer on one page) and results/ (its appendix and drawings) to this folder.",
    ),
]


def report(
    records: Records = None,
    summaries: Summaries = None,
    output: Output = Path("starshl-report"),
    markdown: Markdown = None,
    pages: Pages = None,
    jobs: Jobs = -1,
    as_json: AsJson = False,
) -> None:
    """Write a report of all runs.

    It consists of report.html (one file, no network needed), report.md and CSV tables. Summaries alone are enough,
    except for the pictures. Exit code 1 means that a record or a summary could not be read; the report is made from
    the others.
    """
    from .._files import write_atomically
    from ..evaluation import RecordFolder
    from ..paper import check_claims, default_summaries, write_pages, write_report

    if summaries is None and records is None:
        summaries = default_summaries(_DEFAULT_RECORDS)
    records = records or _DEFAULT_RECORDS
    check_output_folder(output)
    if markdown is not None:
        check_output(markdown, [*records.rglob("*"), *(() if summaries is None else summaries.rglob("*"))])
    if pages is not None:
        check_output_folder(pages)
    written = write_report(records, output, summaries=summaries, n_jobs=jobs)
    if markdown is not None:
        write_atomically(markdown, written.markdown.read_bytes())
    if pages is not None:
        write_pages(written.results, pages, RecordFolder(records) if records.is_dir() else None)
    verdicts = check_claims(written.results)
    if as_json:
        print_json(
            {
                "page": str(written.page),
                "markdown": str(written.markdown),
                "tables": [str(path) for path in written.tables],
                "n_runs": sum(len(protocol.runs) for protocol in written.results.protocols),
                "n_failed": len(written.results.failures),
                "damaged": written.results.damaged,
                "claims": [{"claim": v.claim, "protocol": v.protocol, "verdict": v.word} for v in verdicts],
            }
        )
    else:
        counts = ", ".join(f"{word}: {n}" for word, n in sorted(Counter(v.word for v in verdicts).items()))
        typer.echo(f"The paper's claims, counted by protocol: {counts}.")
        typer.echo(f"Report: {written.page}")
    if written.results.damaged:
        tell_damaged(written.results.damaged, records)
        raise typer.Exit(EXIT_DAMAGED)


def tell_damaged(damaged: list[str], records: Path) -> None:
    """Name on standard error what could not be read."""
    for name in damaged:
        where, what = (records / name, "run record") if name.endswith(".run") else (name, "summary")
        typer.echo(f"Left out: {where} is not a readable {what}. Delete it, and the run is repeated.", err=True)
