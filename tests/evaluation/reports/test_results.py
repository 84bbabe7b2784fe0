"""What reports gather from summaries."""

from starshl.reproduction import Record, RunKey, RunSummary, SummaryFolder
from starshl.reproduction.results import read_results


def test_the_same_settings_in_another_order_are_listed_once(tmp_path):
    summaries = SummaryFolder(tmp_path)
    for protocol, settings in (
        ("paper-usps", {"scaling": "max", "C": "1", "tol": "0.1"}),
        ("paper-mnist", {"C": "1", "tol": "0.1", "scaling": "max"}),
        ("paper-pendigits", {"C": "2", "tol": "0.1", "scaling": "max"}),
    ):
        key = RunKey(protocol, 0, "lsh", 16, seed=7, split_digest="...", settings=settings)
        summaries.add(RunSummary(Record(key, "data", "failed", message="no memory")))
    assert read_results(None, summaries).settings == {
        "lsh": {
            "C=1, scaling=max, tol=0.1": ["paper-mnist", "paper-usps"],
            "C=2, scaling=max, tol=0.1": ["paper-pendigits"],
        }
    }
