"""Doing the runs: each once, whatever dies on the way."""

import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import replace

import pytest

from starshl.hashers.baselines.lsh import LSHash
from starshl.reproduction.records import RecordFolder
from starshl.reproduction.summaries import SummaryFolder
from starshl.reproduction import executor as executor
from starshl.reproduction.executor import execute as execute_with_summaries
from starshl.reproduction.executor import _serve
from starshl.reproduction.figures import figure
from starshl.reproduction.plan import make_plan

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


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_run_that_is_asked_for_twice_is_done_once(tmp_path, n_jobs):
    outcome = execute([*plan_of(), *plan_of()], RecordFolder(tmp_path), n_jobs=n_jobs)
    assert (outcome.n_done, outcome.n_reused, outcome.failed) == (6, 0, {})


def test_a_run_of_a_method_whose_defaults_have_changed_is_repeated(tmp_path, monkeypatch):
    folder = RecordFolder(tmp_path)
    execute(plan_of(), folder)
    monkeypatch.setitem(LSHash.__init__.__kwdefaults__, "center", False)
    again = execute(plan_of(), folder)
    n_hashed = sum(job.key.method == "lsh" for job in plan_of())
    assert (again.n_done, again.n_reused) == (n_hashed, 6 - n_hashed)


def test_workers_give_the_same_codes_as_one_process(tmp_path):
    folders = [RecordFolder(tmp_path / name) for name in ("one", "two")]
    seen = []
    execute(plan_of(), folders[0])
    outcome = execute(plan_of(), folders[1], n_jobs=2, report=seen.append)
    assert outcome.n_done == 6
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
from starshl.evaluation import RecordFolder, SummaryFolder, execute
from starshl.paper import figure, make_plan

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
    # Its workers end after the run that they are at; they share its output, which ends with the last of them.
    assert process.communicate()[0] == ""
    times = {path: path.stat().st_mtime_ns for path in (tmp_path / "records").rglob("*.run")}
    assert len(times) in (3, 4)
    again = execute(plan_of(["lsh", "sph"], bits=[4, 6, 8]), RecordFolder(tmp_path / "records"))
    assert (again.n_done, again.n_reused) == (12 - len(times), len(times))
    assert times.items() <= {path: path.stat().st_mtime_ns for path in (tmp_path / "records").rglob("*.run")}.items()
    assert len(RecordFolder(tmp_path / "records")) == 12


def test_a_worker_that_is_killed_costs_its_run_alone(tmp_path, monkeypatch):
    folder = RecordFolder(tmp_path)
    jobs = plan_of(["starshl-paper", "lsh", "sph"], n_runs=1)
    seen, give = [], executor._Worker.give

    def give_and_stop(worker, queue):
        give(worker, queue)
        if worker.job is not None and worker.job.key.method == "starshl-paper":
            os.kill(worker.process.pid, signal.SIGSTOP)

    def kill_all_once(progress):
        if not seen:
            for worker in multiprocessing.active_children():
                worker.kill()
                worker.join()
        seen.append(progress.title)

    monkeypatch.setattr(executor._Worker, "give", give_and_stop)
    outcome = execute(jobs, folder, n_jobs=2, report=kill_all_once)
    # The first to finish is SPH; *SHL is under way then, as it is stopped, and LSH goes to a worker that has just died.
    assert seen[0].startswith("SPH")
    [(title, message)] = outcome.failed.items()
    assert title.startswith("*SHL, paper settings")
    assert "memory may have run out" in message
    assert {record.key.method for record in folder if record.ok} == {"lsh", "sph"}
    assert len(folder) == 3


@pytest.mark.parametrize("error", [EOFError, BrokenPipeError, ConnectionResetError])
def test_a_worker_ends_quietly_when_the_process_that_hands_out_runs_is_gone(tmp_path, error):
    class ClosedConnection:
        def recv(self):
            raise error

        def send(self, summary):
            raise AssertionError("there is nothing to send")

    assert _serve(ClosedConnection(), tmp_path / "records", 0) is None


@pytest.mark.parametrize(("free", "n_workers", "expected"), [(24, 1, 12), (24, 2, 6), (None, 2, 2), (24, 0, 12)])
def test_workers_share_half_of_the_free_memory_for_what_runs_have_in_common(monkeypatch, free, n_workers, expected):
    monkeypatch.setattr(executor, "available_bytes", lambda: free and free << 30)
    assert executor._bytes_to_share(n_workers) == expected << 30
