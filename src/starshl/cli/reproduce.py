"""``starshl reproduce``: run the experiments of the paper that have not been run yet, and report on all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from .lengths import parse_lengths
from .options import AsJson, print_json
from .outputs import check_output_folder
from .report import tell_damaged
from .reruns import Comparison, earlier_summaries, fresh_records

if TYPE_CHECKING:
    from ..evaluation import Outcome, Progress
    from ..paper import Plan

    Report: TypeAlias = Callable[[Progress], None]

__all__ = ["reproduce", "telling_progress"]

EXIT_SOME_FAILED = 1

_RECORDS = Path("starshl-records")
_SECONDS_BETWEEN_LINES = 5.0  # keeps a log readable

Figures = Annotated[
    list[str] | None,
    typer.Option(
        *("--figure", "-f"),
        metavar="NAME",
        help="pendigits, usps, mnist, cifar10, pascal07, pictures, transductive (or 1 to 7, as printed in the paper), "
        "labels, unsupervised, digits or all; may be repeated or separated by commas. Default: digits, which needs no "
        "download.",
    ),
]
Bits = Annotated[str | None, typer.Option("--bits", "-b", metavar="N,N,...", help="Code lengths; default: all.")]
Methods = Annotated[
    str | None,
    typer.Option("--methods", "-m", metavar="NAME,...", help="Rows of the tables, such as starshl,ksh; default: all."),
]
DataSets = Annotated[
    str | None,
    typer.Option("--data", "-d", metavar="NAME,...", help="Data sets, such as digits,usps; default: all of a figure."),
]
Runs = Annotated[int | None, typer.Option("--runs", "-r", metavar="N", help="Runs of each protocol; default: all.")]
Quick = Annotated[bool, typer.Option("--quick", help="A few hundred rows, two runs, three lengths: a first look.")]
Records = Annotated[
    Path | None,
    typer.Option(
        "--records",
        metavar="DIR",
        help="Folder of run records; finished runs are not repeated. Default: starshl-records, with --again a new "
        "folder in starshl-again.",
    ),
]
Summaries = Annotated[
    Path | None,
    typer.Option(
        "--summaries",
        metavar="DIR",
        help="Folder of summaries; runs that have one are not repeated. Default: results/summaries in a clone of the "
        "repository (not with --quick), elsewhere a folder within the records.",
    ),
]
Output = Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="Folder for the report.")]
Again = Annotated[
    bool,
    typer.Option(
        "--again",
        help="Do the runs anew, apart from earlier ones, and say of each whether its scores equal those of the "
        "summaries, which stay as they are. Exit code 1 if any differ.",
    ),
]
RetryFailed = Annotated[bool, typer.Option("--retry-failed", help="Repeat runs that failed before.")]
Jobs = Annotated[
    int | None,
    typer.Option("--jobs", "-j", metavar="N", help="Runs at a time; -1 is one per core. Codes do not depend on it."),
]


def reproduce(
    figure: Figures = None,
    bits: Bits = None,
    methods: Methods = None,
    data: DataSets = None,
    runs: Runs = None,
    quick: Quick = False,
    records: Records = None,
    summaries: Summaries = None,
    output: Output = Path("starshl-report"),
    again: Again = False,
    retry_failed: RetryFailed = False,
    jobs: Jobs = -1,
    as_json: AsJson = False,
) -> None:
    """Rerun the experiments of the paper and write one report.

    Every run is recorded when it is done, so you can stop this at any time and start it again. If a record is damaged,
    it is named and its run is repeated. Exit code 1 means that a run failed, that a data set was not available, that a
    record of another run could not be read, or, with --again, that scores differ; all other runs are done. The paper's
    selection of PASCAL VOC 2007 was never published: figure pascal07 uses other rows.
    """
    from ..evaluation import RecordFolder, SummaryFolder, execute
    from ..paper import default_summaries, figures_named, make_plan, write_report

    check_output_folder(output)
    figures = figures_named([name for text in figure or ["digits"] for name in _split(text, "--figure")])
    plan = make_plan(
        figures,
        bits=None if bits is None else parse_lengths(bits),
        methods=None if methods is None else _split(methods, "--methods"),
        data_sets=None if data is None else _split(data, "--data"),
        n_runs=runs,
        quick=quick,
    )
    earlier = None
    if again:
        records = records or fresh_records()
        earlier = earlier_summaries(summaries or default_summaries(_RECORDS), plan, records)
        summaries = records / "summaries"
    records = records or _RECORDS
    if summaries is None:
        # Quick looks do not belong in the repository.
        summaries = records / "summaries" if quick else default_summaries(records)
    folder, summary_folder = RecordFolder(records), SummaryFolder(summaries)
    with telling_progress() as report:
        outcome = execute(plan.runs, folder, summary_folder, n_jobs=jobs, retry_failed=retry_failed, report=report)
    damaged = [*summary_folder.damaged, *outcome.damaged]
    summary_folder.tidy()
    written = write_report(records, output, summaries=summaries, n_jobs=jobs)
    comparison = None if earlier is None else Comparison.of(plan, earlier, summary_folder)
    if as_json:
        told = _as_dict(plan, outcome, records, written.page) | {"damaged": damaged, "summaries": str(summaries)}
        print_json(told | (comparison.as_dict() if comparison else {}))
    else:
        if comparison:
            comparison.tell()
        _print(plan, outcome, records, written.page)
    for name in damaged:
        typer.echo(f"Damaged: {name} could not be read; if it was part of these runs, it was done again.", err=True)
    tell_damaged(written.results.damaged, records)
    differ = comparison is not None and comparison.n_different > 0
    if outcome.failed or plan.unavailable or written.results.damaged or differ:
        raise typer.Exit(EXIT_SOME_FAILED)


def _split(text: str, option: str) -> list[str]:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts:
        raise ValueError(f"{option} is empty; leave it out for the default, or name something.")
    return parts


def _as_dict(plan: Plan, outcome: Outcome, records: Path, page: Path) -> dict[str, Any]:
    return {
        "records": str(records),
        "report": str(page),
        "n_runs": len(plan.runs),
        "n_done_now": outcome.n_done,
        "n_done_before": outcome.n_reused,
        "failed": outcome.failed,
        "unavailable": plan.unavailable,
    }


def _print(plan: Plan, outcome: Outcome, records: Path, page: Path) -> None:
    for title, message in outcome.failed.items():
        typer.echo(f"Failed: {title}: {message}", err=True)
    for name, message in plan.unavailable.items():
        typer.echo(f"Left out: {name}: {message}", err=True)
    typer.echo(
        f"{len(plan.runs)} runs: {outcome.n_done} now, {outcome.n_reused} before; {len(outcome.failed)} of all failed. "
        f"Records in {records}"
    )
    typer.echo(f"Report: {page}")


@contextmanager
def telling_progress() -> Iterator[Report]:
    """Yield a function that reports each run on standard error: with a bar on a terminal, else a line now and then."""
    import sys

    if sys.stderr.isatty():
        with _bar() as report:
            yield report
    else:
        yield _lines()


def _lines() -> Report:
    from time import monotonic

    last = [float("-inf")]

    def report(progress: Progress) -> None:
        if monotonic() - last[0] >= _SECONDS_BETWEEN_LINES or progress.n_done == progress.n_total:
            last[0] = monotonic()
            left = _time(progress.seconds_left)
            typer.echo(f"{progress.n_done}/{progress.n_total} runs, {left} left: {progress.title}", err=True)

    return report


@contextmanager
def _bar() -> Iterator[Report]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
    from rich.progress import Progress as ProgressBar

    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[left]} left: {task.description}"))
    with ProgressBar(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("starting", total=None, left="?")

        def report(progress: Progress) -> None:
            left = _time(progress.seconds_left)
            bar.update(task, total=progress.n_total, completed=progress.n_done, description=progress.title, left=left)

        yield report


def _time(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"
