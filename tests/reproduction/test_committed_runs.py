"""Runs of the committed summaries, done again, give the same figures: to the printed digits with the same libraries.

By default a few quick cells of digits are rerun; the whole figure is a slow test, and
``tests/campaigns/rerun_cells.py`` takes cells of any figure.
"""

from pathlib import Path

import pytest

from starshl.reproduction import SummaryFolder, figure, make_plan, summarize_record

SUMMARIES = {
    summary.key.cell: summary for summary in SummaryFolder(Path(__file__).parents[2] / "results" / "summaries")
}
PRINTED = 5e-4  # three digits
OTHER_LIBRARIES = 0.01  # k-means of another scikit-learn, for example, finds other anchors
QUICK = ["starridge", "hc-sdh", "codeword-svm", "1-agh", "2-agh", "sph", "lsh", "svc", "float"]


def figures(summary):
    scores = summary.scores
    values = {f"P@{s}": value for s, value in scores.get("precision_at", {}).items()}
    names = ("mean_average_precision", "pr_area", "accuracy", "accuracy_balanced", "accuracy_expected")
    return values | {name: scores[name] for name in names if name in scores}


def libraries(summary):
    """Name and feature release, such as 1.9, of the libraries that a run used."""
    versions = summary.record.versions
    return {name: versions[name].rsplit(".", 1)[0] for name in ("numpy", "scipy", "scikit-learn")}


def check(runs):
    compared = 0
    for planned in runs:
        committed = SUMMARIES.get(planned.key.cell)
        if committed is not None:
            again = summarize_record(planned.perform())
            # A library of another release may have other settings, such as those of scikit-learn's SVC.
            has_same_libraries = libraries(again) == libraries(committed)
            assert not has_same_libraries or committed.key == planned.key
            tolerance = PRINTED if has_same_libraries else OTHER_LIBRARIES
            assert figures(again) == pytest.approx(figures(committed), abs=tolerance), planned.title
            compared += 1
    return compared


def test_quick_cells_of_digits_give_the_committed_figures():
    plan = make_plan([figure("digits")], bits=[15], methods=QUICK, n_runs=1)
    assert check(plan.runs) == len(QUICK)


@pytest.mark.slow
def test_the_whole_figure_of_digits_gives_the_committed_figures():
    plan = make_plan([figure("digits")])
    assert check(plan.runs) == len(plan.runs) == 550
