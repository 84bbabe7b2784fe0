"""Measure the defaults of StarRidge and StarSHL against the other methods, and write the tables of docs/defaults.md.

    export STARSHL_DATA=folder/with/data/sets
    python benchmarks/defaults supervised               # all rows labeled
    python benchmarks/defaults supervised --catalog     # and every other method, which takes hours
    python benchmarks/defaults spread --splits 10       # 1 to 20 labels per class, beside other ways
    python benchmarks/defaults transductive             # queries as unlabeled rows of the fit
    python benchmarks/defaults no-labels                # clusters
    python benchmarks/defaults times                    # processor time of fits, side by side
    python benchmarks/defaults page                     # fill the tables of docs/defaults.md and few_labels.md

An interrupted run goes on where it stopped. After a change of a method, measure it again with `--again NAME`. No method
sees a test label.
"""

import argparse
import warnings

from sklearn.exceptions import ConvergenceWarning


def main() -> None:
    options = parse_options()
    warnings.simplefilter("ignore", ConvergenceWarning)
    if options.study == "supervised":
        from supervised import run
    elif options.study == "spread":
        from spread import run
    elif options.study == "transductive":
        from transductive import run
    elif options.study == "no-labels":
        from no_labels import run
    elif options.study == "times":
        from times import run
    else:
        from page import run
    run(options)


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", choices=("supervised", "spread", "transductive", "no-labels", "times", "page"))
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--sets", nargs="*", default=[], metavar="NAME", help="data sets; default: the main ones")
    parser.add_argument("--work", nargs="*", default=[], metavar="NAME", help="methods; default: all")
    parser.add_argument(
        "--again", nargs="*", default=[], metavar="NAME", help="methods to measure again, on these sets"
    )
    parser.add_argument("--catalog", action="store_true", help="every other method of the catalog, too")
    return parser.parse_args()


if __name__ == "__main__":
    main()
