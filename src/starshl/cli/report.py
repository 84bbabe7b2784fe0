"""``starshl report``: score what was recorded and write it up."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .options import AsJson, Jobs, print_json

__all__ = ["report"]

Records = Annotated[Path, typer.Argument(metavar="RECORDS", help="A folder of run records, from `starshl reproduce`.")]
Output = Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="Folder for the report.")]
Markdown = Annotated[
    Path | None, typer.Option("--markdown", metavar="FILE", help="Write the Markdown twin to this file, too.")
]


def report(
    records: Records = Path("starshl-records"),
    output: Output = Path("starshl-report"),
    markdown: Markdown = None,
    jobs: Jobs = -1,
    as_json: AsJson = False,
) -> None:
    """Write a report of all records: report.html (one file, no network needed), report.md and CSV tables."""
    from .._files import write_atomically
    from ..reports import check_claims, write_report

    written = write_report(records, output, n_jobs=jobs)
    if markdown is not None:
        write_atomically(markdown, written.markdown.read_bytes())
    verdicts = check_claims(written.results)
    if as_json:
        print_json(
            {
                "page": str(written.page),
                "markdown": str(written.markdown),
                "tables": [str(path) for path in written.tables],
                "n_runs": sum(len(found.runs) for found in written.results.protocols),
                "n_failed": len(written.results.failures),
                "claims": [{"claim": v.claim, "protocol": v.protocol, "verdict": v.word} for v in verdicts],
            }
        )
        return
    held, refuted = (sum(v.holds is wanted for v in verdicts) for wanted in (True, False))
    typer.echo(f"Of the paper's claims, {held} hold and {refuted} do not, counted by protocol.")
    typer.echo(f"Report: {written.page}")
