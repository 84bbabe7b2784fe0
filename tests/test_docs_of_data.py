"""The pages about data sets and evaluation say what the code does."""

from pathlib import Path

from starshl import reproduction
from starshl.data import datasets

DOCS = Path(__file__).parents[1] / "docs"


def test_every_data_set_is_in_the_table_with_its_size():
    page = (DOCS / "datasets.md").read_text()
    for about in datasets.describe_all():
        assert f"| `{about.name}` | {about.n_rows:,} | {about.n_features:,} | {about.n_classes} |" in page


def test_every_family_of_protocols_and_every_metric_is_documented():
    page = (DOCS / "evaluation.md").read_text()
    named = [name for name in reproduction.PROTOCOLS if not name.startswith(("labels-", "lists-", "unsupervised-"))]
    metrics = ["precision_at", "mean_average_precision", "hamming_histograms", "precision_recall", "pr_area"]
    for name in [*named, *metrics, "lookup", "occupancy", "codeword_accuracy", "knn_accuracy", "list_size"]:
        assert f"`{name}" in page
