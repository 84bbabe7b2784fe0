"""What the reproduction says of records and labels that it cannot use."""

import numpy as np
import pytest

from starshl.reproduction import RecordFolder, write_report
from starshl.reproduction.label_efficiency import draw_labels


def test_a_folder_without_a_readable_run_names_the_damaged_ones(tmp_path):
    folder = RecordFolder(tmp_path / "records")
    (folder.path / "paper-usps").mkdir()
    (folder.path / "paper-usps" / "lsh.run").write_bytes(b"no record")
    with pytest.raises(ValueError, match=r"no readable run; damaged: paper-usps/lsh\.run"):
        write_report(folder.path, tmp_path / "report")


def test_labels_that_are_not_class_numbers_are_told_how_to_be_numbered():
    with pytest.raises(ValueError, match=r"y holds .* whole numbers from 0, .* Number the classes: np\.unique"):
        draw_labels(np.array(["a", "b"] * 9), 2, np.random.default_rng(0))
