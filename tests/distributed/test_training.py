"""Fits on a cluster: the bytes of a single machine, or what is left of them when sums are taken in another order."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("distributed", reason="the extra dask is not installed")

from starshl import StarRidge, StarSHL
from starshl._common.engine import using_engine
from starshl.data.tables import ArrayRows, TableError, open_partitions
from starshl.distributed import fit
from starshl.hashers.baselines import ITQ
from starshl.learning.kernels import Kernel, ScaledGaussian, scaled_kernels
from starshl.learning.kernels.banks import PART_ROWS, GramBank, MemoryPlan, make_bank
from starshl.learning.kernels.choice import fit_kernels
from starshl.learning.kernels.vector_bank import VectorBank

# Sums of float64 in another order differ by 1e-16 of their size; solving for the coefficients multiplies that by the
# condition of the kernel matrix over the ridge, at most 1e6 here.
TOLERANCE = 1e-9

KERNELS = [ScaledGaussian(0.5), ScaledGaussian(1.0)]


@pytest.fixture
def engine():
    file = Path(__file__).with_name("inline_engine.py")
    spec = importlib.util.spec_from_file_location("inline_engine", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.InlineEngine()


@pytest.fixture(scope="module")
def rows():
    """40,000 rows of three classes that meet, in two files' worth."""
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=40_000)
    X = rng.standard_normal((40_000, 4)).astype(np.float32)
    X[:, 0] += 2 * (y == 1)
    X[:, 1] += 2 * (y == 2)
    return X, y


@pytest.fixture(scope="module")
def files(rows, tmp_path_factory):
    folder = tmp_path_factory.mktemp("rows")
    np.save(folder / "a.npy", rows[0][:25_000])
    np.save(folder / "b.npy", rows[0][25_000:])
    return folder


def ridge(**settings):
    return StarRidge(16, kernels=KERNELS, max_exact_rows=30_000, n_landmarks=60, random_state=0, **settings)


@pytest.fixture(scope="module")
def on_one_machine(rows):
    return ridge().fit(*rows)


def assert_equal_but_for_the_order_of_sums(fitted, expected):
    np.testing.assert_array_equal(fitted.support_, expected.support_)
    np.testing.assert_array_equal(fitted.kernel_weights_, expected.kernel_weights_)
    assert fitted.ridge_ == expected.ridge_
    for name in ("dual_coef_", "intercept_"):
        ours, theirs = getattr(fitted, name), getattr(expected, name)
        assert np.abs(ours - theirs).max() <= TOLERANCE * np.abs(theirs).max()
    np.testing.assert_allclose(fitted.training_scores_, expected.training_scores_, atol=1e-5)


class LinearKernel(Kernel):
    """Inner products."""

    def __call__(self, A, B):
        return A @ B.T


def learned(hasher):
    header, arrays = hasher.pack()
    return str(header), {name: array.tobytes() for name, array in arrays.items()}


def test_blocks_of_rows_as_tasks_change_nothing_but_the_order_of_sums(engine, rows, files, on_one_machine):
    with using_engine(engine):
        fitted = ridge().fit(open_partitions(files).X, rows[1])
    assert {"_sums_of", "_solved", "_apply_to_pieces"} <= set(engine.names)
    assert_equal_but_for_the_order_of_sums(fitted, on_one_machine)
    assert (fitted.encode(rows[0]).packed != on_one_machine.encode(rows[0]).packed).any(axis=1).sum() == 0


def test_weights_and_left_out_rows_are_those_of_a_single_machine(engine, rows):
    X, y = rows
    y = np.where(np.arange(len(y)) % 10 == 0, -1, y)
    weights = np.where(np.arange(len(y)) % 3 == 0, 2.0, 1.0)
    expected = ridge(unlabeled="ignore").fit(X, y, sample_weight=weights)
    with using_engine(engine):
        fitted = ridge(unlabeled="ignore").fit(X, y, sample_weight=weights)
    assert "_sums_of" in engine.names
    assert_equal_but_for_the_order_of_sums(fitted, expected)


@pytest.mark.filterwarnings("ignore:Codewords, assignments or kernel weights still changed")
@pytest.mark.parametrize("settings", [{"unlabeled": "nearest"}, {"views": {"a": slice(0, 32), "b": slice(32, 64)}}])
def test_bits_as_tasks_give_the_bytes_of_a_single_machine(engine, digits, settings):
    X, y = digits[0][:1600], digits[1][:1600]
    y = np.where(np.arange(len(y)) % 4 == 0, -1, y) if "unlabeled" in settings else y
    expected = StarSHL(4, kernels=KERNELS, max_iter=1, random_state=0, **settings).fit(X, y)
    with using_engine(engine):
        fitted = StarSHL(4, kernels=KERNELS, max_iter=1, random_state=0, **settings).fit(X, y)
    assert {"_make_bank", "_called", "_expanded"} <= set(engine.names)
    assert learned(fitted) == learned(expected)


@pytest.mark.parametrize("as_grams", [False, True])
def test_parts_of_an_expansion_are_the_bytes_of_the_whole(as_grams):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((PART_ROWS + 200, 3)).astype(np.float32)
    # A kernel of another type than the built-in ones is stored as a matrix.
    kernels = [LinearKernel()] if as_grams else fit_kernels(scaled_kernels(), X)
    bank = make_bank(kernels, X, MemoryPlan())
    assert isinstance(bank, GramBank if as_grams else VectorBank)
    coefficients = rng.standard_normal((3, len(X))) * (rng.random((3, len(X))) < 0.3)
    whole = bank.expand(coefficients)
    parts = [bank.expand(coefficients, 0.0, part) for part in (slice(0, PART_ROWS), slice(PART_ROWS, len(X)))]
    assert np.concatenate(parts, axis=2).tobytes() == whole.tobytes()


def test_a_killed_worker_costs_a_retry_and_not_the_fit(client, rows, files, on_one_machine, kill_a_worker):
    killed = kill_a_worker("sums_of")
    fitted = fit(ridge(), files, rows[1], client=client)
    assert killed()
    assert_equal_but_for_the_order_of_sums(fitted, on_one_machine)


@pytest.mark.filterwarnings("ignore:Codewords, assignments or kernel weights still changed")
def test_bits_on_a_cluster_survive_a_killed_worker_byte_for_byte(client, digits, kill_a_worker):
    X, y = digits
    expected = StarSHL(4, kernels=KERNELS, max_iter=2, random_state=0).fit(X[:900], y[:900])
    killed = kill_a_worker("called")
    fitted = fit(StarSHL(4, kernels=KERNELS, max_iter=2, random_state=0), X[:900], y[:900], client=client)
    assert killed()
    assert learned(fitted) == learned(expected)


def test_other_methods_are_fitted_as_a_whole_by_one_worker(client, rows, files):
    fitted = fit(ITQ(4, random_state=0), files, client=client)
    assert learned(fitted) == learned(ITQ(4, random_state=0).fit(rows[0]))


def test_what_does_not_spread_is_refused(client, rows, files):
    y = rows[1].copy()
    y[5] = -1
    with pytest.raises(ValueError, match=r"1 of 40,000 rows.*unlabeled='ignore'"):
        fit(ridge(), files, y, client=client)


def test_a_bad_row_is_named_and_the_hasher_stays_as_it_was(client, rows, tmp_path):
    X = rows[0].copy()
    X[39_000, 2] = np.inf
    np.save(tmp_path / "rows.npy", X)
    hasher = ridge()
    with pytest.raises(TableError, match=r"rows\.npy'.*column 2.*row 39000"):
        fit(hasher, tmp_path / "rows.npy", rows[1], client=client)
    assert not hasattr(hasher, "n_bits_")


def test_the_client_reads_no_more_than_a_sample_of_the_rows(client, rows, files, on_one_machine, monkeypatch):
    read, blocks = [], ArrayRows.blocks

    def watched(self, numbers, size):
        read.append(min(len(numbers), size))
        return blocks(self, numbers, size)

    monkeypatch.setattr(ArrayRows, "blocks", watched)  # here, not on the workers
    fitted = fit(ridge(), files, rows[1], client=client)
    assert_equal_but_for_the_order_of_sums(fitted, on_one_machine)
    assert max(read) <= 5000  # the rows that kernels are fitted on; a task has 32,768
    assert sum(read) < len(rows[0]) / 2


MEASURED_CLIENT = """
import resource, sys
import numpy as np
from starshl import StarRidge
from starshl.data.tables import ArrayRows, JoinedRows
from starshl.distributed import encode, fit
from starshl.learning.kernels import ScaledGaussian

GIGABYTE = 10**9
address, file, folder, times = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
resource.setrlimit(resource.RLIMIT_DATA, (GIGABYTE, GIGABYTE))
rows = JoinedRows([ArrayRows(np.load(file, mmap_mode="r"))] * times)
y = np.arange(len(rows)) % 5
hasher = StarRidge(16, kernels=[ScaledGaussian(1.0)], n_landmarks=100, random_state=0)
fit(hasher, rows, y, client=address)
encode(hasher, rows, folder, client=address)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
try:
    rows.take(np.arange(len(rows)))
except MemoryError:
    print("all rows at once do not fit")
"""


@pytest.mark.slow
def test_a_client_of_one_gigabyte_fits_and_encodes_more_than_it_could_hold(cluster, tmp_path):
    X = np.random.default_rng(0).standard_normal((50_000, 1000)).astype(np.float32)
    np.save(tmp_path / "rows.npy", X)
    times = 10  # two gigabytes of rows
    words = [cluster.scheduler_address, str(tmp_path / "rows.npy"), str(tmp_path / "codes"), str(times)]
    run = subprocess.run([sys.executable, "-c", MEASURED_CLIENT, *words], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    most, told = run.stdout.splitlines()
    assert int(most) < 1_000_000  # kilobytes
    assert told == "all rows at once do not fit"
