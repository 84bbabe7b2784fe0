"""Converters on small files in the published formats."""

import gzip
import io
import tarfile
import tracemalloc

import numpy as np
import pytest
from scipy.io import savemat

from starshl.data.datasets import convert


def test_luma_weighs_the_channels_and_keeps_gray():
    gray = np.repeat(np.arange(256, dtype=np.uint8)[:, None, None], 3, axis=1)
    assert np.array_equal(convert.luma(gray)[:, 0], np.arange(256))
    pure = np.eye(3, dtype=np.uint8)[:, :, None] * 255
    assert convert.luma(pure)[:, 0].tolist() == [76, 150, 29]


def test_cifar_archive_becomes_gray_rows_in_batch_order(tmp_path):
    rng = np.random.default_rng(0)
    names = ["test_batch.bin", *(f"data_batch_{k}.bin" for k in (3, 1, 2, 5, 4)), "readme.html"]
    records = {name: rng.integers(0, 256, (2, 3073), dtype=np.uint8) for name in names}
    with tarfile.open(tmp_path / "cifar.tar.gz", "w:gz") as archive:
        for name, content in records.items():
            member = tarfile.TarInfo(f"cifar-10-batches-bin/{name}")
            member.size = content.nbytes
            archive.addfile(member, io.BytesIO(content.tobytes()))
    found = convert.cifar10_gray_from_archive([tmp_path / "cifar.tar.gz"])
    order = [*(f"data_batch_{k}.bin" for k in range(1, 6)), "test_batch.bin"]
    rows = np.concatenate([records[name] for name in order])
    assert np.array_equal(found["y"], rows[:, 0])
    pixel = rows[5, 1 + 77 :: 1024][:3].astype(float)
    assert abs(found["X"][5, 77] - pixel @ [0.299, 0.587, 0.114]) <= 0.51


def test_idx_files_become_rows(tmp_path):
    images = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    contents = {
        "images": b"\x00\x00\x08\x03" + np.array([2, 3, 4], ">u4").tobytes() + images.tobytes(),
        "labels": b"\x00\x00\x08\x01" + np.array([2], ">u4").tobytes() + bytes([7, 1]),
    }
    for name, content in contents.items():
        (tmp_path / name).write_bytes(gzip.compress(content))
    paths = [tmp_path / name for name in ("images", "labels", "images", "labels")]
    found = convert.digit_images_from_idx(paths)
    assert np.array_equal(found["X"][2], np.arange(12))
    assert found["y"].tolist() == [7, 1, 7, 1]
    assert found["split"].tolist() == [0, 0, 1, 1]


def test_demo_data_of_the_authors_is_read_in_either_orientation(tmp_path):
    rng = np.random.default_rng(1)
    parts = {"Ltr": rng.random((3, 784)), "te": rng.random((5, 784))}
    labels = {"Ltr_L": np.array([[2], [0], [1]]), "te_L": np.array([[1, 1, 0, 2, 2]])}
    savemat(tmp_path / "a.mat", parts | labels)
    savemat(tmp_path / "b.mat", {name: rows.T for name, rows in parts.items()} | labels)
    for file in ("a.mat", "b.mat"):
        found = convert.small_mnist_from_mat([tmp_path / file])
        assert np.array_equal(found["X"], np.concatenate([parts["Ltr"], parts["te"]]))
        assert found["y"].tolist() == [2, 0, 1, 1, 1, 0, 2, 2]
        assert found["split"].tolist() == [0] * 3 + [1] * 5


def test_mat_file_that_cannot_be_read_is_told_as_such(tmp_path):
    rng = np.random.default_rng(2)
    path = tmp_path / "a.mat"
    numbers = {"Ltr": rng.random((3, 784)), "te": rng.random((5, 784)), "Ltr_L": np.ones(3), "te_L": np.ones(5)}
    savemat(path, numbers, do_compression=True)
    content = path.read_bytes()
    n_refused = 0
    for _ in range(200):
        damaged = bytearray(content)
        place = int(rng.integers(len(content)))
        damaged[place : place + 4] = rng.bytes(4)
        path.write_bytes(damaged[:place] if rng.random() < 0.3 else damaged)
        try:
            convert.small_mnist_from_mat([path])
        except ValueError:
            n_refused += 1
    assert n_refused > 100


@pytest.mark.parametrize("content", [{}, {"Ltr": "text"}, {"Ltr": np.array([[1, "a"]], dtype=object)}], ids=str)
def test_mat_file_without_the_arrays_is_told_which_are_absent(content, tmp_path):
    savemat(tmp_path / "a.mat", content | {"other": 1})
    with pytest.raises(ValueError, match="named Ltr"):
        convert.small_mnist_from_mat([tmp_path / "a.mat"])


def test_arff_reads_quoted_classes_and_integers_written_as_floats(tmp_path):
    (tmp_path / "letter.arff").write_text("@relation x\n@attribute a numeric\n@DATA\n1.0,2,'C'\n3,4.0,A\n")
    found = convert.letter_from_arff([tmp_path / "letter.arff"])
    assert found["X"].tolist() == [[1, 2], [3, 4]]
    assert found["y"].tolist() == [2, 0]


def test_usps_labels_of_openml_start_at_one(tmp_path):
    (tmp_path / "usps.arff").write_text("@data\n-1,0.631,10\n-1,1,1\n")
    found = convert.usps_from_arff([tmp_path / "usps.arff"])
    assert found["X"].dtype == np.float32
    assert found["y"].tolist() == [9, 0]


def test_files_of_another_kind_are_refused(tmp_path):
    (tmp_path / "page.html").write_text("<html>not found</html>")
    with pytest.raises(ValueError, match="no rows after @DATA"):
        convert.letter_from_arff([tmp_path / "page.html"])
    (tmp_path / "page.gz").write_bytes(gzip.compress(b"<html>"))
    with pytest.raises(ValueError, match="not an IDX file"):
        convert.digit_images_from_idx([tmp_path / "page.gz"] * 4)


@pytest.mark.parametrize(
    ("shape", "content", "message"),
    [
        ([2**32 - 1] * 3, b"", "not that of"),
        ([2, 3], b"12345", "announces 6 bytes"),
        ([2, 3], b"1234567", "announces 6 bytes"),
        ([2], bytes(10**8), "announces 2 bytes"),
    ],
)
def test_idx_file_is_read_no_further_than_it_announces(shape, content, message, tmp_path):
    head = b"\x00\x00\x08" + bytes([len(shape)]) + np.array(shape, ">u4").tobytes()
    (tmp_path / "images.gz").write_bytes(gzip.compress(head + content))
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=message):
            convert.digit_images_from_idx([tmp_path / "images.gz"] * 4)
        assert tracemalloc.get_traced_memory()[1] < 10e6
    finally:
        tracemalloc.stop()
