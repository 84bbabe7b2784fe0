"""Work in another process: one function is called there with one task after another, and can be ended at any moment.

The process is a fresh interpreter, which knows nothing of the script that started it: no guard of ``__main__`` is
needed, and no thread or lock is copied. Both ends are the same program, which is why values may be pickled. Tasks go
through its standard input; when that ends, however the program that started it ended, so does the process, whatever
it is doing.
"""

from __future__ import annotations

import os
import pickle
import queue
import subprocess
import sys
import threading
import traceback
import weakref
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Any, BinaryIO, Generic, Literal, NamedTuple, NoReturn, Self, TypeVar

Result = TypeVar("Result")
_SECONDS_BETWEEN_CHECKS = 0.1  # a person who cancels does not notice it
_NICENESS = 10  # of work in the background: what a person waits for comes first
# Ctrl+C is for the program that started the process alone, which ends it if it wants to. Its folders of modules come
# last, or files of a user would be taken for modules of the same name.
_START = (
    "import pickle, signal, sys; "
    "signal.signal(signal.SIGINT, signal.SIG_IGN); "
    "sys.path += [folder for folder in pickle.load(sys.stdin.buffer) if folder not in sys.path]; "
    f"from {__name__} import serve; "
    "serve()"
)


class WorkerDiedError(RuntimeError):
    """The process of a worker ended before it had an answer, for example because memory ran out."""

    def __init__(self, exit_code: int) -> None:
        super().__init__(f"The process that did the work has ended with code {exit_code}.")
        self.exit_code = exit_code


class Worker(Generic[Result]):
    """Calls a function in a process of its own, with one task at a time.

    The process begins with the first task, keeps what the function keeps, and is replaced if it has died.

    Parameters
    ----------
    function : callable (task) or (task, report)
        Can be pickled, as functions of importable modules can, and partial ones of them; it is sent once.
    background : bool, default=False
        Nobody waits for it: the process has a low priority and does not show warnings.
    idle_seconds : float, default=None
        End a process that has had nothing to do for longer: it holds memory, and a new one starts within seconds.
    """

    def __init__(
        self, function: Callable[..., Result], *, background: bool = False, idle_seconds: float | None = None
    ) -> None:
        self._function = function
        self._background = background
        self._idle_seconds = idle_seconds
        self._lock = threading.Lock()
        self._process: _Process | None = None
        self._ending: threading.Timer | None = None

    @property
    def process_id(self) -> int | None:
        """The number of the process, None if there is none."""
        process = self._process
        return None if process is None else process.popen.pid

    def call(
        self,
        task: Any,
        *,
        report: Callable[[Any], None] | None = None,
        check: Callable[[], None] = lambda: None,
    ) -> Result:
        """Return what the function returns for a task, or raise what it raises.

        Parameters
        ----------
        task : anything that can be pickled
        report : callable, default=None
            Called here with what the function tells of its progress; the function then gets a second argument to do so.
        check : callable, default does nothing
            Called several times a second. What it or ``report`` raises ends the process: nobody waits for it any more.
        """
        self.send(task, with_progress=report is not None)
        return self.result(report=report, check=check)

    def send(self, task: Any, *, with_progress: bool = False) -> None:
        """Begin with a task, which need not be kept here until it is done; :meth:`result` waits for it."""
        with self._lock:
            self._stay()
            if self._process is None or self._process.popen.poll() is not None:
                self._discard()
                self._process = _Process(self._function, background=self._background)
                # A worker that nobody stopped ends its process when it is forgotten, or when this program ends.
                self._finalizer = weakref.finalize(self, self._process.end)
            process = self._process
        try:
            process.send((task, with_progress))
        except OSError:
            pass  # it has died, which its answer says
        except BaseException:
            # Half of a task has been written.
            self.stop()
            raise

    def result(
        self, *, report: Callable[[Any], None] | None = None, check: Callable[[], None] = lambda: None
    ) -> Result:
        """Wait for the task that was sent; see :meth:`call`."""
        process = self._process
        if process is None:
            raise WorkerDiedError(-1)
        try:
            answer = process.answer(report, check)
        except BaseException:
            self.stop()
            raise
        self._end_when_idle()
        if answer.kind == "error":
            error, trace = answer.content
            error.add_note(f"In another process:\n{trace}")
            raise error
        result: Result = answer.content
        return result

    def stop(self) -> None:
        """End the process, whatever it is doing; the next task begins a new one."""
        with self._lock:
            self._stay()
            self._discard()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def _discard(self) -> None:
        if self._process is not None:
            self._finalizer()
            self._process = None

    def _stay(self) -> None:
        if self._ending is not None:
            self._ending.cancel()
            self._ending = None

    def _end_when_idle(self) -> None:
        if self._idle_seconds is None:
            return
        with self._lock:
            self._stay()
            self._ending = threading.Timer(self._idle_seconds, self.stop)
            self._ending.daemon = True
            self._ending.start()


class _Answer(NamedTuple):
    """What the process says: ``content`` is that of a report, a result, or an error and where it was raised."""

    kind: Literal["progress", "result", "error", "died"]
    content: Any = None


class _Process:
    """One interpreter, and what it has answered."""

    def __init__(self, function: Callable[..., Any], *, background: bool) -> None:
        # Not from the folder of the user, whose files may be called like modules.
        command = [sys.executable, "-P", *(["-W", "ignore"] if background else []), "-c", _START]
        self.popen = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._answers: queue.SimpleQueue[_Answer] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, name="answers of a worker", daemon=True)
        self._reader.start()
        with suppress(OSError):
            self.send([os.path.abspath(folder) for folder in sys.path])
            self.send((function, background))

    def send(self, value: Any) -> None:
        assert self.popen.stdin is not None
        pickle.dump(value, self.popen.stdin, pickle.HIGHEST_PROTOCOL)
        self.popen.stdin.flush()

    def answer(self, report: Callable[[Any], None] | None, check: Callable[[], None]) -> _Answer:
        """Wait for a result or an error."""
        while True:
            check()
            try:
                answer = self._answers.get(timeout=_SECONDS_BETWEEN_CHECKS)
            except queue.Empty:
                continue
            if answer.kind == "died":
                check()  # if somebody has ended it, this says why
                raise WorkerDiedError(self.popen.wait())
            if answer.kind != "progress":
                return answer
            if report is not None:
                report(answer.content)

    def end(self) -> None:
        self.popen.kill()
        self.popen.wait()
        # Or Python would abort at the end of this program, if the thread still waited inside of the stream.
        self._reader.join()
        assert self.popen.stdin is not None
        with suppress(OSError):  # what could not be written any more
            self.popen.stdin.close()

    def _read(self) -> None:
        assert self.popen.stdout is not None
        with self.popen.stdout as answers:
            try:
                while True:
                    self._answers.put(_Answer(*pickle.load(answers)))
            except (EOFError, OSError, pickle.UnpicklingError):
                self._answers.put(_Answer("died"))
            except Exception as error:
                # The rest of what it writes cannot be told apart.
                self.popen.kill()
                self._answers.put(_Answer("error", (error, "")))


def serve() -> NoReturn:
    """Do the work of the other process: call the function that arrives first with each task that follows it."""
    # What anything below prints must not get among the answers.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    tasks: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_read_tasks, args=(sys.stdin.buffer, tasks), daemon=True).start()
    try:
        _serve(tasks, answers)
    except BaseException:
        traceback.print_exc()
    # Not by the usual way: Python aborts if a thread waits inside of sys.stdin then.
    os._exit(1)


def _read_tasks(source: BinaryIO, tasks: queue.SimpleQueue[Any]) -> None:
    try:
        while True:
            tasks.put(pickle.load(source))
    except EOFError:
        os._exit(0)
    except Exception as error:
        # Such as a class that cannot be imported here; the rest of the input cannot be told apart.
        tasks.put(error)


def _serve(tasks: queue.SimpleQueue[Any], answers: BinaryIO) -> None:
    def write(answer: bytes) -> None:
        with suppress(BrokenPipeError):  # nobody is left who could read it
            answers.write(answer)
            answers.flush()

    def report(content: Any) -> None:
        write(_pickled(_Answer("progress", content)))

    function, is_background = _next(tasks, write)
    if is_background and hasattr(os, "nice"):
        os.nice(_NICENESS)
    while True:
        task, with_progress = _next(tasks, write)
        try:
            answer = _pickled(_Answer("result", function(task, report) if with_progress else function(task)))
        except Exception as error:
            answer = _pickled_error(error)
        del task
        write(answer)


def _next(tasks: queue.SimpleQueue[Any], write: Callable[[bytes], None]) -> Any:
    task = tasks.get()
    if isinstance(task, Exception):
        write(_pickled_error(task))
        os._exit(1)
    return task


def _pickled(answer: _Answer) -> bytes:
    return pickle.dumps(tuple(answer), pickle.HIGHEST_PROTOCOL)


def _pickled_error(error: Exception) -> bytes:
    """Return an error as it is, or its words if its class takes other arguments than it keeps."""
    trace = "".join(traceback.format_exception(error))
    try:
        content = _pickled(_Answer("error", (error, trace)))
        pickle.loads(content)
    except Exception:
        return _pickled(_Answer("error", (RuntimeError(f"{type(error).__name__}: {error}"), trace)))
    return content
