"""Codes that were learned without labels: their clusters are not served as labels."""

import numpy as np
import pytest

from starshl import Collection, HybridHasher
from starshl.service import Service, create_app

from .conftest import InProcess


@pytest.fixture
def ask(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((90, 6)) + 8.0 * np.eye(6)[np.arange(90) % 3]
    with Collection.create(tmp_path / "unlabeled", HybridHasher(6, random_state=0).fit(X)) as made:
        made.add(X)
    service = InProcess(create_app(lambda observer: Service([tmp_path / "unlabeled"], observer=observer)))
    yield service
    service.close()


def test_numbers_of_clusters_are_not_predicted_as_labels(ask):
    info = ask("GET", "/collections/unlabeled").json()
    assert info["method"] == "HybridHasher"
    assert (info["predicts"], info["probabilities"], info["classes"]) == (False, False, None)
    refused = ask("POST", "/collections/unlabeled/predict", json={"vectors": [[0.0] * 6]})
    assert refused.status_code == 422
    assert "learned without labels" in refused.json()["detail"]
