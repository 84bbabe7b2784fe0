"""Doing the runs: each once, whatever dies on the way."""

import shutil
import signal
import subprocess
import sys
from dataclasses import replace

import pytest

from starshl.hashers.baselines import LSHash
from starshl.reproduction import RecordFolder, SummaryFolder, executor, figure, make_plan
from starshl.reproduction import execute as execute_with_summaries

FAST = ["lsh", "sph", "float"]


def plan_of(methods=FAST, n_runs=2, bits=(8,)):
    return make_plan([figure("digits")], bits=list(bits), methods=list(methods), n_runs=n_runs, quick=True).runs


def execute(jobs, folder, **settings):
    return execute_with_summaries(jobs, folder, SummaryFolder(folder.path / "summaries"), **settings)


def digests(folder):
    return {record.key.file_name: record.digests for record in folder}


def test_finished_runs_are_never_repeated(tmp_path):
    folder = RecordFolder(tmp_path)
    first = execute(plan_of(), folder)
    times = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.run")}
    second = execute(plan_of(), folder)
    assert (first.n_done, first.n_reused, second.n_done, second.n_reused) == (6, 0, 0, 6)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.run")} == times


def test_a_run_that_is_asked_for_twice_is_done_once(tmp_path):
    outcome = execute([*plan_of(), *plan_of()], RecordFolder(tmp_path))
    assert (outcome.n_done, outcome.n_reused, outcome.failed) == (6, 0, {})


def test_a_run_of_a_method_whose_defaults_have_changed_is_repeated(tmp_path, monkeypatch):
    folder = RecordFolder(tmp_path)
    execute(plan_of(), folder)
    monkeypatch.setitem(LSHash.__init__.__kwdefaults__, "center", False)
    again = execute(plan_of(), folder)
    n_hashed = sum(job.key.method == "lsh" for job in plan_of())
    assert (again.n_done, again.n_reused) == (n_hashed, 6 - n_hashed)


def test_workers_do_each_run_once_and_give_the_same_codes_as_one_process(tmp_path):
    folders = [RecordFolder(tmp_path / name) for name in ("one", "two")]
    seen = []
    execute(plan_of(), folders[0])
    outcome = execute([*plan_of(), *plan_of()], folders[1], n_jobs=2, report=seen.append)
    assert (outcome.n_done, outcome.n_reused, outcome.failed) == (6, 0, {})
    assert digests(folders[0]) == digests(folders[1])
    assert [progress.n_done for progress in seen] == [1, 2, 3, 4, 5, 6]
    assert seen[-1].seconds_left == 0


def test_a_method_that_fails_is_recorded_and_the_rest_goes_on(tmp_path):
    folder = RecordFolder(tmp_path)
    # An anchor graph of 300 anchors has no 400 smooth functions.
    jobs = plan_of(["1-agh", "lsh"], n_runs=1, bits=[400])
    outcome = execute(jobs, folder)
    [(title, message)] = outcome.failed.items()
    assert title.startswith("1-AGH, 400 bits")
    assert "n_bits is 400" in message
    assert {record.key.method: record.status for record in folder} == {"1-agh": "failed", "lsh": "ok"}
    again = execute(jobs, folder)
    assert (again.n_done, list(again.failed)) == (0, [title])
    assert execute(jobs, folder, retry_failed=True).n_done == 1


def test_runs_resume_from_summaries_alone(tmp_path):
    execute(plan_of(), RecordFolder(tmp_path / "first"))
    folder = RecordFolder(tmp_path / "second")
    shutil.copytree(tmp_path / "first" / "summaries", folder.path / "summaries")
    again = execute(plan_of(), folder)
    assert (again.n_done, again.n_reused, len(folder)) == (0, 6, 0)


def test_a_run_whose_codes_are_shown_is_repeated_if_only_its_summary_is_left(tmp_path):
    jobs = [replace(job, needs_codes=True) for job in plan_of(["lsh"], n_runs=1)]
    folder = RecordFolder(tmp_path)
    execute(jobs, folder)
    [path] = folder.paths()
    path.unlink()
    assert (execute(jobs, folder).n_done, len(folder)) == (1, 1)


def test_records_without_a_summary_are_scored_not_repeated(tmp_path):
    folder = RecordFolder(tmp_path)
    execute(plan_of(), folder)
    shutil.rmtree(tmp_path / "summaries")
    again = execute(plan_of(), folder)
    assert (again.n_done, again.n_reused) == (0, 6)
    assert len(SummaryFolder(tmp_path / "summaries")) == 6


@pytest.mark.parametrize("with_summaries", [True, False])
def test_a_damaged_record_is_named_and_its_run_done_again(tmp_path, with_summaries):
    folder = RecordFolder(tmp_path)
    execute(plan_of(), folder)
    if not with_summaries:
        shutil.rmtree(tmp_path / "summaries")
    damaged = folder.paths()[0]
    damaged.write_bytes(damaged.read_bytes()[:100])
    outcome = execute(plan_of(), folder)
    assert outcome.damaged == [damaged.relative_to(tmp_path).as_posix()]
    assert (outcome.n_done, outcome.n_reused) == (1, 5)
    assert all(record.ok for record in folder)


SCRIPT = """
import sys
from starshl.reproduction import RecordFolder, SummaryFolder, execute, figure, make_plan

if __name__ == "__main__":
    jobs = make_plan([figure("digits")], bits=[4, 6, 8], methods=["lsh", "sph"], n_runs=2, quick=True).runs
    # Nothing arrives on standard input: after three runs this process does nothing more, and is killed.
    report = lambda progress: (print("done", flush=True), progress.n_done == 3 and sys.stdin.read())
    folder, summaries = RecordFolder(sys.argv[1]), SummaryFolder(sys.argv[1] + "/summaries")
    execute(jobs, folder, summaries, n_jobs=2, report=report)
"""


def test_a_kill_loses_no_finished_run(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    words = [sys.executable, str(script), str(tmp_path / "records")]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    for _ in range(3):
        assert process.stdout.readline() == "done\n"
    process.send_signal(signal.SIGKILL)
    # Its workers end with it.
    assert process.communicate()[0] == ""
    times = {path: path.stat().st_mtime_ns for path in (tmp_path / "records").rglob("*.run")}
    assert len(times) in (3, 4)
    again = execute(plan_of(["lsh", "sph"], bits=[4, 6, 8]), RecordFolder(tmp_path / "records"))
    assert (again.n_done, again.n_reused) == (12 - len(times), len(times))
    assert times.items() <= {path: path.stat().st_mtime_ns for path in (tmp_path / "records").rglob("*.run")}.items()
    assert len(RecordFolder(tmp_path / "records")) == 12


# A job that ends its own process, as the system does for lack of memory; workers import it.
DEADLY = """
import os, signal
from dataclasses import dataclass
from typing import Any

@dataclass
class Deadly:
    job: Any
    key = property(lambda self: self.job.key)
    dataset = property(lambda self: self.job.dataset)
    title = property(lambda self: self.job.title)
    group = property(lambda self: self.job.group)
    needs_codes = False

    def effort(self, *, first):
        return 1.0

    def perform(self):
        os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_worker_that_is_killed_costs_its_run_alone(tmp_path, monkeypatch):
    (tmp_path / "deadly_jobs.py").write_text(DEADLY)
    monkeypatch.syspath_prepend(tmp_path)
    from deadly_jobs import Deadly

    folder = RecordFolder(tmp_path / "records")
    jobs = [Deadly(job) if job.key.method == "lsh" else job for job in plan_of(FAST, n_runs=1)]
    outcome = execute(jobs, folder, n_jobs=2)
    [(title, message)] = outcome.failed.items()
    assert title.startswith("LSH")
    assert "memory may have run out" in message
    assert {record.key.method: record.ok for record in folder} == {"lsh": False, "sph": True, "float": True}


def test_workers_end_with_the_runs_however_these_end(tmp_path):
    def interrupt(progress):
        raise KeyboardInterrupt

    folder = RecordFolder(tmp_path / "records")
    with pytest.raises(KeyboardInterrupt):
        execute(plan_of(), folder, n_jobs=2, report=interrupt)
    assert all(record.ok for record in folder)
    assert execute(plan_of(), folder).failed == {}


@pytest.mark.parametrize(("free", "n_workers", "expected"), [(24, 1, 12), (24, 2, 6), (None, 2, 2), (24, 0, 12)])
def test_workers_share_half_of_the_free_memory_for_what_runs_have_in_common(monkeypatch, free, n_workers, expected):
    monkeypatch.setattr(executor, "available_bytes", lambda: free and free << 30)
    assert executor.bytes_to_share(n_workers) == expected << 30
