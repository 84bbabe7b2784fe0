"""Results made by hand, and a small folder of real records."""

import pytest

from starshl.reproduction import RecordFolder, SummaryFolder, execute, figure, make_plan
from starshl.reproduction.protocols import base_protocol
from starshl.reproduction.results import MethodRun, ProtocolResults, Results


@pytest.fixture(scope="session")
def made():
    """A function (protocol, values) -> Results; values maps (method, bits) to a list over runs of metric -> value."""

    def make(protocol, values, smallest_class=300):
        base = base_protocol(protocol)
        found = ProtocolResults(protocol, base.dataset, base, 3000, 1000, 10, smallest_class)
        for (method, n_bits), runs in values.items():
            found.runs += [MethodRun(method, n_bits, run, 0, dict(entry), None) for run, entry in enumerate(runs)]
        return Results(protocols=[found])

    return make


@pytest.fixture(scope="session")
def records(tmp_path_factory):
    """Records of fast methods in every study on digits, and of one that failed."""
    path = tmp_path_factory.mktemp("records")
    folder, summaries = RecordFolder(path), SummaryFolder(path / "summaries")
    for name, methods, bits in (
        ("digits", ["starshl", "lsh", "sph", "1-agh", "2-agh", "hc-sdh", "svc", "float"], [15]),
        ("digits", ["1-agh"], [400]),
        ("labels", ["starshl", "hc-sdh-labeled", "label-spreading", "self-training", "svc"], [8]),
        ("unsupervised", ["k-means", "itq", "lsh"], [8]),
    ):
        plan = make_plan([figure(name)], methods=methods, bits=bits, n_runs=2, quick=True)
        execute(plan.runs, folder, summaries)
    return path
