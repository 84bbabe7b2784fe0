"""``starshl index guess``: guess the labels of all items that have none."""

from __future__ import annotations

from typing import Annotated, Any, cast

import typer

from ..._common.words import counted
from ..options import AsJson, Jobs, Progress
from .common import Folder, busy, open_collection, print_answer

By = Annotated[
    str | None,
    typer.Option(
        "--by",
        metavar="lesson|hasher",
        help="From the labels of a few items, or by the model; by default, by the model if it was fitted to all "
        "classes, and by the labels if somebody has taught the collection.",
    ),
]
_MOST_CLASSES = 20  # in a text; --json has all of them


def guess(folder: Folder, by: By = None, jobs: Jobs = 1, progress: Progress = None, as_json: AsJson = False) -> None:
    """Guess the labels of all items that have none.

    Guesses are kept beside the labels, and never become labels by themselves: searches show them, and --guess finds
    items by them. They follow from the labels of other items, or from the model.
    """
    from ...labeling import guess_labels

    with open_collection(folder, n_jobs=jobs) as collection, busy("guessing", progress):
        guesses = guess_labels(collection, by=cast(Any, by), n_jobs=jobs)
        n_labels = sum(collection.label_counts().values())
    counts = guesses.counts()
    lines = [f"{label}\t{counted(count, 'item')}" for label, count in [*counts.items()][:_MOST_CLASSES]]
    more = len(counts) - _MOST_CLASSES
    lines += [f"and {counted(more, 'other class', 'other classes')}"] if more > 0 else []
    source = f"from {counted(n_labels, 'label')}" if guesses.by == "lesson" else "by the model"
    lines.append(f"guessed {source}: {counted(len(guesses), 'item')}")
    lines += [] if guesses.knows_confidence else ["Too few labels were given to tell how sure guesses are."]
    known: dict[str, object] = {"by": guesses.by, "knows_confidence": guesses.knows_confidence}
    answer = known | {"guesses": [{"label": label, "items": count} for label, count in counts.items()]}
    print_answer(answer, "\n".join(lines), as_json)
