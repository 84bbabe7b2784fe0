"""Results as lines of JSON: a run that was interrupted goes on where it stopped."""

import json
import sys
import time
from collections.abc import Callable, Collection, Iterable
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "results" / "defaults"


class Store:
    """One file of ``results/defaults``; every line is one unit of work with its rows of figures.

    ``again`` names the kinds of work whose earlier lines do not count, for some data sets or, if none are given, all.
    """

    def __init__(self, name: str, again: Iterable[str] = (), sets: Collection[str] = ()) -> None:
        self.path = FOLDER / f"{name}.jsonl"
        self.lines = read_lines(self.path)
        if forgotten := set(again):
            self.lines = [line for line in self.lines if line["work"] not in forgotten or not of_sets(line, sets)]
            self._rewrite()

    def measure(self, where: dict, work: str, action: Callable[[], list[dict]]) -> None:
        """Do a piece of work unless its result is here already, and append the result."""
        unit = {**where, "work": work}
        if any(unit.items() <= line.items() for line in self.lines):
            return
        print(" ".join(map(str, unit.values())), end=" ... ", file=sys.stderr, flush=True)
        start, cpu = time.perf_counter(), time.process_time()
        rows = action()
        seconds = {"cpu": round(time.process_time() - cpu, 2), "date": time.strftime("%Y-%m-%d", time.gmtime())}
        self.lines.append(unit | seconds | {"rows": rows})
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(self.lines[-1]) + "\n")
        print(f"{time.perf_counter() - start:.1f} s  {headline(rows)}", file=sys.stderr, flush=True)

    def _rewrite(self) -> None:
        whole = self.path.with_suffix(".new")
        whole.write_text("".join(json.dumps(line) + "\n" for line in self.lines), encoding="utf-8")
        whole.replace(self.path)


def of_sets(line: dict, sets: Collection[str]) -> bool:
    """Tell whether a line is about one of the data sets, all if none are given."""
    return not sets or line["set"] in sets


def read_lines(path: Path) -> list[dict]:
    """Return the lines of a file that are whole: the last one may have been cut off."""
    if not path.exists():
        return []
    lines = []
    for text in path.read_text(encoding="utf-8").splitlines():
        try:
            lines.append(json.loads(text))
        except json.JSONDecodeError:
            continue
    return lines


def headline(rows: list[dict]) -> str:
    if not rows:
        return ""
    return ", ".join(f"{name} {value}" for name, value in rows[0].items() if isinstance(value, float))
