"""``starshl reproduce`` and ``starshl report``: the experiments of the paper, run anew where needed, and told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from .hashers import parse_lengths
from .options import AsJson, check_output, check_output_folder, print_json
from .options import Jobs as CommonJobs

if TYPE_CHECKING:
    from ..reproduction.executor import Outcome, Progress
    from ..reproduction.plan import Plan
    from ..reproduction.summaries import Rerun, SummaryFolder

    Report: TypeAlias = Callable[[Progress], None]

_RECORDS = Path("starshl-records")
_RERUNS = Path("starshl-again")
_N_SCORES_SHOWN = 3
_SECONDS_BETWEEN_LINES = 5.0  # keeps a log readable
_EXIT_FAILURE = 1
Figures = Annotated[
    list[str] | None,
    typer.Option(
        *("--figure", "-f"),
        metavar="NAME",
        help="pendigits, usps, mnist, cifar10, pascal07, pictures, transductive (or 1 to 7, as printed in the paper), "
        "lists, labels, unsupervised, digits or all; may be repeated or separated by commas. Default: digits, which "
        "needs no download.",
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
ReportedRecords = Annotated[
    Path | None,
    typer.Argument(
        metavar="RECORDS", help="A folder of run records, from `starshl reproduce`; default: starshl-records."
    ),
]
ReportedSummaries = Annotated[
    Path | None,
    typer.Option(
        "--summaries",
        metavar="DIR",
        help="Folder of summaries, which are enough without RECORDS. Default: the folder inside RECORDS; without "
        "RECORDS, results/summaries in a clone of the repository.",
    ),
]
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
    from ..reproduction.executor import execute
    from ..reproduction.figures import figures_named
    from ..reproduction.plan import make_plan
    from ..reproduction.records import RecordFolder
    from ..reproduction.report import default_summaries, write_report
    from ..reproduction.summaries import SummaryFolder

    check_output_folder(output, [records, summaries])
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
    comparison = None if earlier is None else RerunComparison.of(plan, earlier, summary_folder)
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
        raise typer.Exit(_EXIT_FAILURE)


def report(
    records: ReportedRecords = None,
    summaries: ReportedSummaries = None,
    output: Output = Path("starshl-report"),
    markdown: Markdown = None,
    pages: Pages = None,
    jobs: CommonJobs = -1,
    as_json: AsJson = False,
) -> None:
    """Write a report of all runs.

    It consists of report.html (one file, no network needed), report.md and CSV tables. Summaries alone are enough,
    except for the pictures. Exit code 1 means that a record or a summary could not be read; the report is made from
    the others.
    """
    from .._common.files import write_atomically
    from ..reproduction.claims import check_claims
    from ..reproduction.pages import write_pages
    from ..reproduction.records import RecordFolder
    from ..reproduction.report import default_summaries, write_report

    if summaries is None and records is None:
        summaries = default_summaries(_RECORDS)
    records = records or _RECORDS
    check_output_folder(output, [records, summaries])
    if markdown is not None:
        check_output(markdown, [*records.rglob("*"), *(() if summaries is None else summaries.rglob("*"))])
    if pages is not None:
        check_output_folder(pages, [records, summaries])
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
        raise typer.Exit(_EXIT_FAILURE)


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


def tell_damaged(damaged: list[str], records: Path) -> None:
    """Name on standard error what could not be read."""
    for name in damaged:
        where, what = (records / name, "run record") if name.endswith(".run") else (name, "summary")
        typer.echo(f"Left out: {where} is not a readable {what}. Delete it, and the run is repeated.", err=True)


def fresh_records() -> Path:
    """Return a folder that does not exist yet."""
    return _RERUNS / f"{datetime.now(UTC):%Y%m%d-%H%M%S-%f}"


def earlier_summaries(path: Path, plan: Plan, records: Path) -> SummaryFolder:
    """Return the summaries to compare with; refuse a folder that has none of these runs or gets the new ones."""
    from ..reproduction.summaries import SummaryFolder

    if path.resolve() == (records / "summaries").resolve():
        raise ValueError(
            f"--again would write the summaries of the new runs to {str(path)!r}, which it compares them with. "
            "Name another folder with --records, or leave that out."
        )
    summaries = SummaryFolder(path)
    if not any(summaries.get(planned.key) for planned in plan.runs):
        raise ValueError(
            f"--again compares with earlier summaries, and {str(path)!r} has none of these runs. Name a folder that "
            "has with --summaries, choose other runs, or leave out --again."
        )
    return summaries


@dataclass(frozen=True, slots=True)
class RerunComparison:
    """What changed in each run, by title; None if there is nothing to compare it with."""

    earlier: Path
    reruns: dict[str, Rerun | None]

    @classmethod
    def of(cls, plan: Plan, earlier: SummaryFolder, now: SummaryFolder) -> RerunComparison:
        from ..reproduction.summaries import compare_rerun

        reruns: dict[str, Rerun | None] = {}
        for planned in plan.runs:
            before, after = earlier.get(planned.key), now.get(planned.key)
            reruns[planned.title] = compare_rerun(before, after) if before and after else None
        return cls(earlier.path, reruns)

    @property
    def compared(self) -> dict[str, Rerun]:
        return {title: rerun for title, rerun in self.reruns.items() if rerun is not None}

    @property
    def n_different(self) -> int:
        return sum(not rerun.equal for rerun in self.compared.values())

    def as_dict(self) -> dict[str, Any]:
        """Return the comparison as plain values."""
        return {
            "compared_with": str(self.earlier),
            "n_equal": len(self.compared) - self.n_different,
            "n_different": self.n_different,
            "n_not_compared": len(self.reruns) - len(self.compared),
            "compared": {
                title: {"equal": rerun.equal, "differences": rerun.differences, "versions": rerun.versions}
                for title, rerun in self.compared.items()
            },
        }

    def tell(self) -> None:
        """Print a line for each run, then how many are equal, and which libraries have other versions."""
        for title, rerun in self.reruns.items():
            typer.echo(f"{_verdict(rerun)}: {title}{_told(rerun)}")
        typer.echo(
            f"Compared with {self.earlier} in the third digit of every score: "
            f"{len(self.compared) - self.n_different} equal, {self.n_different} different, "
            f"{len(self.reruns) - len(self.compared)} without an earlier summary."
        )
        different = [rerun for rerun in self.compared.values() if not rerun.equal]
        versions = {(name, *pair) for rerun in different for name, pair in rerun.versions.items()}
        if versions:
            listed = "; ".join(f"{name} {old}, now {new or 'absent'}" for name, old, new in sorted(versions))
            typer.echo(f"Other versions of libraries may be the cause: {listed}.")


def _verdict(rerun: Rerun | None) -> str:
    if rerun is None:
        return "no earlier summary"
    return "equal" if rerun.equal else "different"


def _told(rerun: Rerun | None) -> str:
    """Write the first scores that differ, and how many others do."""
    if rerun is None or rerun.equal:
        return ""
    shown = [f"{name} {_number(before)}, now {_number(now)}" for name, (before, now) in rerun.differences.items()]
    others = f"; {len(shown) - _N_SCORES_SHOWN} more" if len(shown) > _N_SCORES_SHOWN else ""
    return f" ({'; '.join(shown[:_N_SCORES_SHOWN])}{others})"


def _number(value: object) -> str:
    return f"{value:.4f}" if isinstance(value, float) else "undefined" if value is None else str(value)


@contextmanager
def telling_progress() -> Iterator[Report]:
    """Yield a function that reports each run on standard error: with a bar on a terminal, else a line now and then."""
    import sys

    from .._common.progress import run_progress

    if sys.stderr.isatty():
        with run_progress() as update:
            yield lambda state: update(state.n_done, state.n_total, state.title, duration_text(state.seconds_left))
    else:
        yield _lines()


def _lines() -> Report:
    from time import monotonic

    last = [float("-inf")]

    def report(progress: Progress) -> None:
        if monotonic() - last[0] >= _SECONDS_BETWEEN_LINES or progress.n_done == progress.n_total:
            last[0] = monotonic()
            left = duration_text(progress.seconds_left)
            typer.echo(f"{progress.n_done}/{progress.n_total} runs, {left} left: {progress.title}", err=True)

    return report


def duration_text(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"
