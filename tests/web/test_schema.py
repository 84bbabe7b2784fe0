"""The description of the API is true: schemathesis sends what it allows, and what it forbids."""

import shutil

import pytest
from hypothesis import HealthCheck, settings

from starshl.web import Service
from starshl.web.http import create_app

schemathesis = pytest.importorskip("schemathesis")


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
def described(template, tmp_path_factory):
    """The schema of a service that is fresh for each operation, as schemathesis changes what it finds."""
    folder = shutil.copytree(template, tmp_path_factory.mktemp("described") / "things")
    app = create_app(lambda observer: Service([folder], observer=observer))
    schema = schemathesis.openapi.from_asgi("/api/v1/openapi.json", app, headers={"Host": "localhost"})
    yield schema
    app.state.service.close()


schema = schemathesis.pytest.from_fixture("described")


@pytest.mark.slow
@schema.parametrize()
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
def test_every_answer_is_one_that_the_description_names(case):
    # Half of the requests go to the collection that exists.
    if "name" in (case.path_parameters or {}) and hash(str(case.path_parameters["name"])) % 2:
        case.path_parameters["name"] = "things"
    case.headers = {**(case.headers or {}), "Host": "localhost"}
    case.call_and_validate(excluded_checks=[schemathesis.checks.CHECKS.get_one("ignored_auth")])
