"""Work in another process: what it returns, tells and raises arrives here, and nothing of it stays behind."""

import os
import signal
import subprocess
import sys
import time
from functools import partial

import pytest

from starshl._common.worker import Worker, WorkerDiedError
from starshl.exceptions import InputError

# Functions that another process can import.
MODULE = """
import os, signal, time
from starshl.exceptions import InputError

class Awkward(Exception):
    def __init__(self, first, second):
        super().__init__("words")

class Counter:
    n_calls = 0
    def count(self, task):
        self.n_calls += 1
        return self.n_calls, os.getpid()

def refuse(task):
    raise InputError("{parameter} is {value}", "it must be more", parameter="n_bits", value=task)

def refuse_awkwardly(task):
    raise Awkward(1, 2)

def count_down(task, report):
    for number in range(task, 0, -1):
        report(number)
    return "zero"

def die(task):
    os.kill(os.getpid(), signal.SIGKILL)

def sleep(task):
    print("printed")
    time.sleep(task)

def make_function(task):
    return lambda: None

def niceness(task):
    return os.nice(0)
"""


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    folder = tmp_path_factory.mktemp("modules")
    (folder / "worker_tasks.py").write_text(MODULE)
    sys.path.append(str(folder))
    import worker_tasks

    yield worker_tasks
    sys.path.remove(str(folder))
    del sys.modules["worker_tasks"]


def is_running(number):
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    return True


def test_one_process_does_all_tasks_and_keeps_what_the_function_keeps(work):
    with Worker(work.Counter().count) as worker:
        (first, number), (second, same) = worker.call(None), worker.call(None)
        assert (first, second, number) == (1, 2, same)
        assert worker.process_id == number != os.getpid()
    assert worker.process_id is None
    assert not is_running(number)


def test_progress_arrives_in_order_before_the_result(work):
    told = []
    with Worker(work.count_down) as worker:
        assert worker.call(3, report=told.append) == "zero"
    assert told == [3, 2, 1]


def test_an_error_arrives_with_its_fields_and_the_process_goes_on(work):
    with Worker(work.refuse) as worker:
        with pytest.raises(InputError, match="n_bits is 7") as caught:
            worker.call(7)
        assert (caught.value.parameter, caught.value.value) == ("n_bits", 7)
        assert "in refuse" in caught.value.__notes__[0]
        number = worker.process_id
        with pytest.raises(InputError):
            worker.call(8)
        assert worker.process_id == number


def test_what_cannot_be_sent_is_told_in_words(work):
    with Worker(work.refuse_awkwardly) as worker, pytest.raises(RuntimeError, match="Awkward: words"):
        worker.call(None)
    with Worker(work.make_function) as worker, pytest.raises((AttributeError, TypeError), match="pickle"):
        worker.call(None)
    with Worker(work.refuse) as worker:
        with pytest.raises((AttributeError, TypeError), match="pickle"):
            worker.call(lambda: None)
        with pytest.raises(InputError):
            worker.call(1)


def test_a_function_that_the_process_cannot_import_is_refused(tmp_path, work):
    script = tmp_path / "script.py"
    script.write_text(
        "from starshl._common.worker import Worker\n"
        "def own(task): return 1\n"
        "try:\n    Worker(own).call(None)\n"
        "except AttributeError as error:\n    print(error)\n"
    )
    result = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=60, check=True)
    assert "own" in result.stdout


def test_a_process_that_dies_is_reported_and_replaced(work):
    with Worker(work.die) as worker:
        for _ in range(2):
            with pytest.raises(WorkerDiedError) as caught:
                worker.call(None)
            assert caught.value.exit_code == -signal.SIGKILL
    with Worker(work.Counter().count) as worker:
        _, number = worker.call(None)
        os.kill(number, signal.SIGKILL)
        os.waitid(os.P_PID, number, os.WEXITED | os.WNOWAIT)
        assert worker.call(None)[0] == 1


class Enough(Exception):
    pass


def test_what_the_check_raises_ends_the_process(work):
    numbers = []

    def check():
        if worker.process_id is not None and len(numbers) < 3:
            numbers.append(worker.process_id)
        if len(numbers) == 3:
            raise Enough

    with Worker(work.sleep) as worker:
        started = time.monotonic()
        with pytest.raises(Enough):
            worker.call(600, check=check)
        assert time.monotonic() - started < 60
        assert worker.process_id is None
    assert not is_running(numbers[0])


def test_a_process_without_work_is_ended_after_a_while(work):
    with Worker(work.Counter().count, idle_seconds=0.05) as worker:
        _, number = worker.call(None)
        end = time.monotonic() + 60
        while is_running(number):
            assert time.monotonic() < end
            time.sleep(0.01)
        assert worker.call(None)[0] == 1


@pytest.mark.skipif(not hasattr(os, "nice"), reason="processes have no niceness here")
def test_work_in_the_background_has_a_low_priority(work):
    with Worker(work.niceness, background=True) as modest, Worker(work.niceness) as equal:
        assert (modest.call(None), equal.call(None)) == (min(os.nice(0) + 10, 19), os.nice(0))


LEFT_ALONE = """
import sys, threading, time
from starshl._common.worker import Worker
from worker_tasks import sleep

worker = Worker(sleep)
worker.send(600)
print(worker.process_id, flush=True)
{ending}
"""


@pytest.mark.parametrize("ending", ["time.sleep(600)", "", "raise RuntimeError"])
def test_no_process_outlives_the_program_that_started_it(tmp_path, work, ending):
    script = tmp_path / "script.py"
    script.write_text(LEFT_ALONE.format(ending=ending))
    folder = os.path.dirname(work.__file__)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([folder, os.environ.get("PYTHONPATH", "")])}
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True, env=environment) as process:
        number = int(process.stdout.readline())
        if "sleep" in ending:
            process.kill()
        code = process.wait(60)
    assert code == {"time.sleep(600)": -signal.SIGKILL, "": 0, "raise RuntimeError": 1}[ending]
    end = time.monotonic() + 60
    while is_running(number):
        assert time.monotonic() < end
        time.sleep(0.01)


def test_ctrl_c_is_for_the_program_alone(work):
    with Worker(work.count_down) as worker:
        assert worker.call(2, report=lambda _: os.kill(worker.process_id, signal.SIGINT)) == "zero"


def test_partial_functions_are_sent_once(work):
    with Worker(partial(pow, 3)) as worker:
        assert [worker.call(2), worker.call(3)] == [9, 27]
