"""Do runs of the committed summaries again, drawn at random, and compare all figures.

    python tests/campaigns/rerun_cells.py --cells 10                          # of the figures whose data sets are here
    python tests/campaigns/rerun_cells.py --figure usps,digits --cells 20 --seed 3

It prints P@10 (or the accuracy) as committed and as measured now, and fails if a figure differs in its third digit.
"""

from __future__ import annotations

import argparse
import random
import sys
from pathlib import Path

from starshl.reproduction import RunSummary, SummaryFolder, compare_rerun, make_plan, summarize_record
from starshl.reproduction.figures import figures_named

SUMMARIES = Path(__file__).parents[2] / "results" / "summaries"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--figure", default="all", help="names, separated by commas")
    parser.add_argument("--cells", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    committed = SummaryFolder(SUMMARIES)
    runs = [run for run in make_plan(figures_named(given.figure.split(","))).runs if committed.get(run.key)]
    drawn = random.Random(given.seed).sample(runs, min(given.cells, len(runs)))
    n_different = 0
    for run in drawn:
        before, now = committed.get(run.key), summarize_record(run.perform())
        rerun = compare_rerun(before, now)
        n_different += not rerun.equal
        different = ", ".join(rerun.differences) or "no score"
        print(f"{headline(before)} {headline(now)} {different} differs  {run.title}", flush=True)
    print(f"{len(drawn)} of {len(runs)} committed runs done again, {n_different} differ")
    sys.exit(n_different > 0)


def headline(summary: RunSummary) -> str:
    scores = summary.scores
    return f"{scores.get('precision_at', {}).get(10, scores.get('accuracy', float('nan'))):.4f}"


if __name__ == "__main__":
    main()
