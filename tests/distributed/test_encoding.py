"""Codes of many partitions: the bytes of a single machine, each written once, whatever happens on the way."""

import json

import numpy as np
import pytest

pytest.importorskip("distributed", reason="the extra dask is not installed")

from starshl import StarRidge
from starshl.data.tables import TableError
from starshl.distributed import encode, load_codes, read_manifest
from starshl.distributed.code_folder import CodeFolder
from starshl.exceptions import ClusterError
from starshl.hashers.baselines import LSHash

PARTITION = 8192


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(0).standard_normal((30_000, 8)).astype(np.float32)


@pytest.fixture(scope="module")
def hasher(X):
    return LSHash(20, random_state=0).fit(X[:500])


@pytest.fixture(scope="module")
def files(X, tmp_path_factory):
    folder = tmp_path_factory.mktemp("rows")
    np.save(folder / "a.npy", X[:20_000])
    np.save(folder / "b.npy", X[20_000:])
    return folder


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_codes_are_those_of_a_single_machine(client, files, hasher, X, tmp_path):
    manifest = encode(hasher, files, tmp_path / "codes", client=client, partition_rows=PARTITION, one_file=True)
    assert names(tmp_path / "codes") == ["codes.npy", "manifest.json", *(f"part-{n:06d}.npy" for n in range(5))]
    assert [entry["rows"] for entry in manifest["partitions"]] == [8192, 8192, 3616, 8192, 1808]
    expected = np.concatenate([hasher.encode(X[:20_000]).packed, hasher.encode(X[20_000:]).packed])
    codes = load_codes(tmp_path / "codes")
    np.testing.assert_array_equal(codes.packed, expected)
    np.testing.assert_array_equal(np.load(tmp_path / "codes" / "codes.npy"), expected)
    assert codes.space_id == hasher.space_id_
    assert load_codes(tmp_path / "codes", 1) == codes[8192:16384]
    for partition in (-1, 5):
        with pytest.raises(ValueError, match=f"partition is {partition}"):
            load_codes(tmp_path / "codes", partition)


def test_items_with_labels_get_their_codewords(client, digits, tmp_path):
    X, y = digits
    hasher = StarRidge(16, random_state=0).fit(X[:300], y[:300])
    np.save(tmp_path / "rows.npy", X)
    encode(hasher, tmp_path / "rows.npy", tmp_path / "codes", client=client, labels=y, database=True)
    expected = hasher.encode_database(X, y)
    assert load_codes(tmp_path / "codes") == expected
    # Bytes do not say that these classes are certain; labels do.
    relabeled = hasher.relabel(load_codes(tmp_path / "codes"), y)
    np.testing.assert_array_equal(relabeled.classes, expected.classes)
    np.testing.assert_array_equal(hasher.words.posteriors_of(relabeled).max(axis=1), 1)


def test_a_killed_worker_costs_a_retry_and_not_the_run(client, files, hasher, X, tmp_path, kill_a_worker):
    killed = kill_a_worker("encode_partition")
    encode(hasher, files, tmp_path / "codes", client=client, partition_rows=PARTITION)
    assert killed()
    assert load_codes(tmp_path / "codes") == hasher.encode(X)


def interrupted(monkeypatch, n_written):
    """Let a run die after it has written some partitions."""
    write = CodeFolder.write

    def write_some(self, number, packed):
        if len(self.done) == n_written:
            raise KeyboardInterrupt
        write(self, number, packed)

    monkeypatch.setattr(CodeFolder, "write", write_some)


def test_an_interrupted_run_goes_on_and_does_no_partition_twice(client, files, hasher, X, tmp_path, monkeypatch):
    folder = tmp_path / "codes"
    with monkeypatch.context() as patch:
        interrupted(patch, 2)
        with pytest.raises(KeyboardInterrupt):
            encode(hasher, files, folder, client=client, partition_rows=PARTITION)
    with pytest.raises(ValueError, match="are not complete"):
        load_codes(folder)
    done = {path: path.stat().st_mtime_ns for path in folder.glob("part-*")}
    assert len(done) == 2
    written = []
    write = CodeFolder.write
    monkeypatch.setattr(CodeFolder, "write", lambda self, *task: (written.append(task[0]), write(self, *task)))
    encode(hasher, files, folder, client=client, partition_rows=PARTITION)
    assert len(written) == 3
    assert all(path.stat().st_mtime_ns == changed for path, changed in done.items())
    assert load_codes(folder) == hasher.encode(X)
    encode(hasher, files, folder, client=client, partition_rows=PARTITION)
    assert len(written) == 3


def test_half_a_journal_line_and_a_damaged_part_do_not_count(client, files, hasher, X, tmp_path, monkeypatch):
    folder = tmp_path / "codes"
    with monkeypatch.context() as patch:
        interrupted(patch, 3)
        with pytest.raises(KeyboardInterrupt):
            encode(hasher, files, folder, client=client, partition_rows=PARTITION)
    lines = (folder / "journal.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "journal.jsonl").write_bytes(b"".join(lines[:2]) + lines[2][:30])
    damaged = folder / json.loads(lines[0])["file"]
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"x")
    encode(hasher, files, folder, client=client, partition_rows=PARTITION)
    assert load_codes(folder) == hasher.encode(X)


def test_a_folder_of_another_run_is_refused_and_left_as_it_is(client, files, hasher, X, tmp_path):
    folder = tmp_path / "codes"
    encode(hasher, files, folder, client=client, partition_rows=PARTITION)
    before = read_manifest(folder)
    other = LSHash(20, random_state=1).fit(X[:500])
    with pytest.raises(ValueError, match="its space_id, model differ"):
        encode(other, files, folder, client=client, partition_rows=PARTITION)
    assert read_manifest(folder) == before
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("keep me")
    with pytest.raises(ValueError, match="holds no codes"):
        encode(hasher, files, tmp_path / "mine", client=client)
    assert names(tmp_path / "mine") == ["notes.txt"]


def test_a_folder_with_half_of_its_first_manifest_can_be_used(client, files, hasher, X, tmp_path):
    (tmp_path / "codes").mkdir()
    (tmp_path / "codes" / ".manifest.json.0123456789ab.partial").write_text('{"complete"')
    encode(hasher, files, tmp_path / "codes", client=client, partition_rows=PARTITION)
    assert load_codes(tmp_path / "codes") == hasher.encode(X)


def test_a_bad_row_is_named_and_what_was_done_before_stays(client, hasher, X, tmp_path):
    damaged = X.copy()
    damaged[25_112, 3] = np.nan
    (tmp_path / "rows").mkdir()
    np.save(tmp_path / "rows" / "a.npy", damaged[:20_000])
    np.save(tmp_path / "rows" / "b.npy", damaged[20_000:])
    with pytest.raises(TableError, match=r"b\.npy'.*column 3.*row 5112"):
        encode(hasher, tmp_path / "rows", tmp_path / "codes", client=client, partition_rows=PARTITION)
    assert not any(name.endswith(".partial") for name in names(tmp_path / "codes"))
    assert not read_manifest(tmp_path / "codes")["complete"]


@pytest.mark.parametrize(
    ("n_bytes", "file"), [(100, "manifest.json"), (5000, r"part-00000\d.npy"), (50_000, "codes.npy")]
)
def test_a_full_disk_is_named_and_leaves_no_half_a_file(client, files, hasher, X, tmp_path, full_disk, n_bytes, file):
    folder = tmp_path / "codes"
    with full_disk(after=n_bytes), pytest.raises(OSError, match=rf"File too large.*{file}"):
        encode(hasher, files, folder, client=client, partition_rows=PARTITION, one_file=True)
    assert not any(name.endswith(".partial") for name in names(folder))
    assert {len(np.load(part)) for part in folder.glob("part-*.npy")} <= {8192, 3616, 1808}
    encode(hasher, files, folder, client=client, partition_rows=PARTITION, one_file=True)
    assert load_codes(folder) == hasher.encode(X)
    np.testing.assert_array_equal(np.load(folder / "codes.npy"), hasher.encode(X).packed)


def test_two_runs_cannot_write_to_one_folder(client, files, hasher, tmp_path):
    with (
        CodeFolder(tmp_path, {"format": "starshl-codes", "version": 1}, 1).locked(),
        pytest.raises(ValueError, match="Another process is writing codes"),
    ):
        encode(hasher, files, tmp_path, client=client)


def test_wrong_arguments_are_refused_before_anything_is_written(client, files, hasher, X, tmp_path):
    wide = LSHash(8, random_state=0).fit(np.hstack([X[:50], X[:50]]))
    for arguments, settings, message in [
        ((wide, files), {}, "The rows have 8 features, but LSHash was fitted on 16"),
        ((hasher, files), {"partition_rows": 9000}, "must be a multiple of 8192"),
        ((hasher, files), {"labels": np.zeros(3)}, "There are 30000 rows and 3 labels"),
        ((hasher, tmp_path / "absent"), {}, "names no file"),
    ]:
        with pytest.raises(ValueError, match=message):
            encode(*arguments, tmp_path / "codes", client=client, **settings)
    assert not (tmp_path / "codes").exists()
    with pytest.raises(TypeError, match="client is a int"):
        encode(hasher, files, tmp_path / "codes", client=3)


def test_an_address_where_nobody_listens_is_named(files, hasher, tmp_path, monkeypatch):
    monkeypatch.setattr("starshl.distributed.engine.CONNECT_SECONDS", 0.5)
    with pytest.raises(ClusterError, match="no Dask scheduler"):
        encode(hasher, files, tmp_path / "codes", client="tcp://127.0.0.1:9")
    with pytest.raises(ValueError, match="not the address"):
        encode(hasher, files, tmp_path / "codes", client="banana")
    assert not (tmp_path / "codes").exists()
