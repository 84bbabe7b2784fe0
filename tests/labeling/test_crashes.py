import os
import signal
import subprocess
import sys

from starshl import Collection
from starshl.labeling import Lesson

# Answers item after item while codes are fitted in the background, and tells each one once it was acknowledged.
_TEACHER = """
import sys
from starshl import Collection
from starshl.labeling import Lesson

with Collection(sys.argv[1]) as collection, Lesson(collection, auto_refit=True) as lesson:
    for item in range(100, 220):
        lesson.answer([item], "ant" if item % 2 else "bee")
        print(item, flush=True)
"""


def test_a_killed_teacher_loses_no_answer(collection):
    folder = collection.folder
    collection.close()
    told = []
    with subprocess.Popen([sys.executable, "-c", _TEACHER, str(folder)], stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            told.append(int(line))
            if len(told) == 8:
                os.kill(process.pid, signal.SIGKILL)
                break
        told += [int(line) for line in process.stdout if line.endswith("\n")]
    with Collection(folder) as again, Lesson(again) as lesson:
        n_given = lesson.state().n_given
        assert n_given in (len(told), len(told) + 1)  # the last one may have been stored and not told
        assert [lesson.collection.get([item])[0].label for item in told] == ["ant" if i % 2 else "bee" for i in told]
        assert len(lesson.curve()) == n_given
        assert again.verify() == 120
        lesson.undo()
        assert lesson.state().n_given == n_given - 1
