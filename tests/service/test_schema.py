"""The description of the API is true: schemathesis sends what it allows, and what it forbids."""

import shutil
from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable

from starshl.service import Service, create_app

schemathesis = pytest.importorskip("schemathesis")
pytest.importorskip("schemathesis.specs.openapi.checks")
GenerationMode = schemathesis.GenerationMode
_CHECKS = schemathesis.specs.openapi.checks
# A schema cannot say how long the vectors of a collection are, or which ids exist.
EXCLUDED = [_CHECKS.ignored_auth, _CHECKS.positive_data_acceptance]


def test_the_description_lists_the_whole_api(shared):
    paths = shared.app.openapi()["paths"]
    parts = {path.removeprefix("/api/v1") for path in paths}
    assert {
        "/health/live",
        "/health/ready",
        "/metrics",
        "/collections",
        "/collections/{name}",
        "/collections/{name}/items",
        "/collections/{name}/items/{item}",
        "/collections/{name}/labels",
        "/collections/{name}/search",
        "/collections/{name}/encode",
        "/collections/{name}/predict",
        "/collections/{name}/fit",
        "/collections/{name}/import",
        "/collections/{name}/model",
        "/collections/{name}/jobs/{job}",
        "/collections/{name}/snapshots/{snapshot}/restore",
    } <= parts
    for methods in paths.values():
        for operation in methods.values():
            assert operation["summary"]
            assert "application/problem+json" in operation["responses"]["default"]["content"]


@pytest.fixture
def described(template, tmp_path):
    folder = shutil.copytree(template, tmp_path / "things")
    app = create_app(lambda observer: Service([folder], observer=observer))
    yield schemathesis.openapi.from_asgi("/api/v1/openapi.json", app, headers={"Host": "localhost"})
    app.state.service.close()


def send_cases(operation, mode, n_cases):
    """Send cases to an operation and compare the answers with the description; return how many were sent."""
    n_sent = 0

    @settings(max_examples=n_cases, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(case=operation.as_strategy(generation_mode=mode), exists=st.booleans())
    def send(case, exists):
        nonlocal n_sent
        n_sent += 1
        if mode is GenerationMode.POSITIVE and exists and "name" in (case.path_parameters or {}):
            case.path_parameters["name"] = "things"
        response = case.call(headers={"Host": "localhost"})
        case.validate_response(response, excluded_checks=EXCLUDED)

    # Some operations have nothing that could be wrong, and some take files that only we can make.
    with suppress(Unsatisfiable, schemathesis.core.errors.SerializationNotPossible):
        send()
    return n_sent


@pytest.mark.slow
def test_the_operations_answer_as_described(described):
    operations = [found.ok() for found in described.get_all_operations()]
    modes = (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
    assert sum(send_cases(operation, mode, 30) for operation in operations for mode in modes) > 800
