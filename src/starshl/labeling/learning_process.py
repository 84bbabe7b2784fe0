"""The process that learns codes: it reads rows once and then tasks, and writes how far it is and what it has learned.

Both ends are the same program, which is why values may be pickled. It ends with its input.
"""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, BinaryIO

from .codes import learn_codes

_NICENESS = 10  # what a person waits for comes first


def _work(tasks: BinaryIO, answers: BinaryIO) -> None:
    def write(kind: str, content: Any) -> None:
        pickle.dump((kind, content), answers, pickle.HIGHEST_PROTOCOL)
        answers.flush()

    rows = pickle.load(tasks)
    report: Callable[[str], None] = partial(write, "stage")
    while True:
        task = pickle.load(tasks)
        try:
            learned = learn_codes(rows, task, report)
        except (ValueError, ArithmeticError, MemoryError) as error:
            write("error", str(error))
        else:
            write("learned", learned)


if __name__ == "__main__":
    if hasattr(os, "nice"):
        os.nice(_NICENESS)
    # What anything below prints must not get among the answers.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    with suppress(EOFError, BrokenPipeError):
        _work(sys.stdin.buffer, answers)
    # Not by the usual way, which would write to the closed pipe once more.
    os._exit(0)
