"""Degenerate and bad input: what works, what warns and what each refusal says."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from starshl import StarSHL
from starshl.exceptions import InputError
from starshl.learning.kernels import Gaussian, GraphGaussian, NormalizedLinear, SpectrumKernel
from starshl.learning.solvers.svm import PairwiseAscent

RNG = np.random.default_rng(0)
X3 = np.vstack([RNG.standard_normal((12, 4)) + 4 * np.eye(4)[c] for c in range(3)])
Y3 = np.repeat([0, 1, 2], 12)


def test_a_bit_with_constant_labels_is_a_constant_function():
    codewords = np.array([[1, 1, 1], [1, -1, 1], [1, 1, -1]])
    hasher = StarSHL(3, codewords=codewords, codeword_constraint="none", update_codewords=False)
    with pytest.warns(ConvergenceWarning, match="1 constant bits"):
        hasher.fit(X3, Y3)
    assert hasher.n_constant_bits_ == 1
    assert np.all(hasher.decision_function(X3)[:, 0] == 1.0)
    assert not hasher.dual_coef_[0].any()
    assert hasher.kernel_weights_[0] == pytest.approx(6**-0.5)


def test_more_classes_than_codes_warns_and_predicts_the_most_frequent_sharer():
    X = np.repeat(np.eye(5), [6, 2, 3, 4, 5], axis=0) + 0.01 * RNG.standard_normal((20, 5))
    y = np.repeat(np.arange(5), [6, 2, 3, 4, 5])
    with pytest.warns(UserWarning, match=r"5 codewords.*n_bits >= 3"):
        hasher = StarSHL(2, random_state=0).fit(X, y)
    _, group = np.unique(hasher.codewords_, axis=0, return_inverse=True)
    for members in (np.flatnonzero(group == g) for g in np.unique(group)):
        most_frequent = members[np.argmax(np.bincount(y)[members])]
        assert set(hasher.predict(X[np.isin(y, members)])) == {most_frequent}


def test_equal_codewords_warn_and_are_answered_by_the_most_frequent_class():
    codewords = np.array([[1, 1], [1, 1], [-1, -1]])
    X, y = X3[6:], Y3[6:]
    with pytest.warns(UserWarning, match="rows of codewords are equal"):
        hasher = StarSHL(2, codewords=codewords, update_codewords=False).fit(X, y)
    assert set(hasher.predict(X[y < 2])) == {1}


def test_zero_rows_and_constant_columns_work():
    X = X3.copy()
    X[:2] = 0.0
    X[:, 3] = 1.0
    X[0] = 0.0
    for kernels in ("scaled", "paper", [NormalizedLinear()]):
        scores = StarSHL(4, kernels=kernels, random_state=0).fit(X, Y3).decision_function(np.zeros((3, 4)))
        assert np.isfinite(scores).all()


def test_one_class_works_with_a_warning():
    with pytest.warns(UserWarning, match="only one class"):
        hasher = StarSHL(4, random_state=0).fit(X3, np.full(36, "only"))
    assert set(hasher.predict(X3)) == {"only"}
    assert hasher.n_constant_bits_ == 4
    assert hasher.transform(X3).shape == (36, 4)


def test_equal_rows_with_different_labels_end():
    X = np.repeat(X3[:6], 2, axis=0)
    y = np.tile([0, 1], 6)
    hasher = StarSHL(3, random_state=0).fit(X, y)
    assert np.isfinite(hasher.objective_history_).all()
    # Each conflicting pair costs at least 2 on every bit in which the two codewords differ.
    n_differing = np.sum(hasher.codewords_[0] != hasher.codewords_[1])
    assert hasher.surrogate_history_[-1] >= 2 * 6 * n_differing - 1e-6


def test_fewer_rows_than_codewords_and_classes_of_one_row_work():
    hasher = StarSHL(6, random_state=0).fit(X3[::9], np.arange(4))
    assert hasher.predict(X3[::9]).tolist() == [0, 1, 2, 3]
    clusters = StarSHL(6, n_codewords=8, random_state=0).fit(X3[:5])
    assert len(np.unique(clusters.assignments_)) == 5


def test_one_bit_and_one_kernel_work():
    hasher = StarSHL(1, kernels=[Gaussian(2.0)], random_state=0).fit(X3[:24], Y3[:24])
    assert hasher.kernel_weights_.tolist() == [[1.0]]
    assert hasher.score(X3[:24], Y3[:24]) == 1.0


def test_a_score_of_zero_becomes_a_set_bit():
    hasher = StarSHL(2, random_state=0).fit(X3, Y3)
    hasher.dual_coef_[:], hasher.intercept_[:] = 0.0, 0.0
    assert np.all(hasher.transform(X3) == 1)


def test_unsupervised_mode_does_not_collapse():
    for C in (0.001, 0.01, 0.1, 10.0):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            hasher = StarSHL(6, n_codewords=3, C=C, random_state=0).fit(X3)
        assert len(np.unique(hasher.assignments_)) == 3


def test_clusters_keep_their_numbers_if_empty_text_marks_every_row():
    hasher = StarSHL(4, n_codewords=12, random_state=0).fit(X3, np.array([""] * len(X3)))
    assert np.array_equal(hasher.transduction_, hasher.predict(X3))
    assert hasher.transduction_.max() > 9  # cut off to one letter, 10 and 11 would be 1


def test_the_papers_settings_let_clusters_empty():
    X = np.random.default_rng(0).standard_normal((40, 2))
    first = np.r_[np.zeros(39, dtype=int), 1]
    X[39] = X[0]
    settings = {"n_codewords": 2, "C": 0.01, "codewords": [[1, 1], [-1, -1]], "update_codewords": False}
    kept, emptied = (
        StarSHL(2, keep_clusters=keep, **settings).fit(X, initial_assignments=first).assignments_
        for keep in (True, False)
    )
    assert np.bincount(kept, minlength=2).tolist() == [39, 1]
    assert np.bincount(emptied, minlength=2).tolist() == [40, 0]
    assert not StarSHL.paper(2).keep_clusters


def test_a_tolerance_that_rounding_cannot_reach_is_refused():
    with pytest.raises(InputError) as refused:
        StarSHL(2, svm_tol=1e-15).fit(np.eye(4), [0, 1, 0, 1])
    assert (refused.value.parameter, refused.value.value) == ("svm_tol", 1e-15)


@pytest.mark.parametrize("scale", [1e19, 1e20])
def test_rows_whose_squares_overflow_are_refused(scale):
    X = scale * np.random.default_rng(0).standard_normal((20, 3)).astype(np.float32)
    with pytest.raises(ValueError, match="leaves the range of float32"):
        StarSHL(2).fit(X, np.arange(20) % 2)


def test_unconstrained_codewords_collapse_at_small_C_with_a_warning():
    with pytest.warns(ConvergenceWarning, match="distinct rows for 3 classes"):
        hasher = StarSHL(4, C=1e-4, codeword_constraint="none", random_state=0).fit(X3, Y3)
    assert len(np.unique(hasher.codewords_, axis=0)) == 1
    assert hasher.objective_history_[-1] == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("constraint", ["distinct", "nonconstant"])
def test_constraints_keep_codewords_apart_at_small_C(constraint):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        hasher = StarSHL(4, C=1e-4, codeword_constraint=constraint, random_state=0).fit(X3, Y3)
    assert np.all(np.abs(hasher.codewords_.sum(axis=0)) < 3)
    if constraint == "distinct":
        assert len(np.unique(hasher.codewords_, axis=0)) == 3


def test_rows_of_weight_zero_may_hold_a_class_of_their_own():
    y = Y3.copy()
    y[:3] = 9
    weights = np.where(y == 9, 0.0, 1.0)
    hasher = StarSHL(4, random_state=0).fit(X3, y, sample_weight=weights)
    assert hasher.classes_.tolist() == [0, 1, 2]
    assert hasher.transduction_[:3].tolist() == [9, 9, 9]
    assert hasher.dual_coef_.shape == (4, 36)
    assert not hasher.dual_coef_[:, :3].any()


def test_too_few_sweeps_warn_with_the_numbers():
    with pytest.warns(ConvergenceWarning, match=r"sweep 1 \(tol=1e-09\)"):
        StarSHL(4, max_iter=1, tol=1e-9, random_state=0).fit(X3, Y3)


def test_an_svm_that_gave_up_warns_with_the_numbers(monkeypatch):
    solve = PairwiseAscent.solve

    def solve_in_two_steps(self, *args, **others):
        self.max_iter = 2
        return solve(self, *args, **others)

    monkeypatch.setattr(PairwiseAscent, "solve", solve_in_two_steps)
    with pytest.warns(ConvergenceWarning, match=r"stopped at a KKT violation.*svm_tol=0.001"):
        StarSHL(4, random_state=0).fit(X3, Y3)


def with_entry(value):
    X = X3.copy()
    X[5, 2] = value
    return X


INDEFINITE = np.array([[0.0, 1.0], [1.0, 0.0]])
BAD_FITS = {
    "NaN": (lambda: StarSHL().fit(with_entry(np.nan), Y3), "NaN in column 2, first in row 5"),
    "infinity": (lambda: StarSHL().fit(with_entry(np.inf), Y3), "inf.* in column 2"),
    "no rows": (lambda: StarSHL().fit(np.empty((0, 3)), []), "0 sample"),
    "one row": (lambda: StarSHL().fit(X3[:1], Y3[:1]), "minimum of 2"),
    "no columns": (lambda: StarSHL().fit(np.empty((5, 0)), Y3[:5]), "0 feature"),
    "labels too short": (lambda: StarSHL().fit(X3, Y3[:5]), r"y has shape \(5,\); X has 36 rows"),
    "mixed labels": (lambda: StarSHL().fit(X3[:2], np.array(["a", 1], object)), "mixes labels of the types int, str"),
    "infinite labels": (lambda: StarSHL().fit(X3, np.full(36, np.inf)), "y contains infinity"),
    "no labels and no n_codewords": (lambda: StarSHL(unlabeled="nearest").fit(X3), "Set n_codewords"),
    "y without labels and no n_codewords": (lambda: StarSHL().fit(X3, [-1] * 36), "Set n_codewords"),
    "n_codewords against labels": (
        lambda: StarSHL(n_codewords=5).fit(X3, Y3),
        "n_codewords is 5, but the labels name 3",
    ),
    "weights all zero": (lambda: StarSHL().fit(X3, Y3, np.zeros(36)), "All entries of sample_weight are zero"),
    "negative weights": (lambda: StarSHL().fit(X3, Y3, -np.ones(36)), "negative, infinite or NaN"),
    "nothing to learn": (lambda: StarSHL(n_codewords=2, unlabeled_weight=0).fit(X3), "nothing is left"),
    "n_bits": (lambda: StarSHL(0).fit(X3, Y3), "n_bits is 0; it must be an integer of at least 1"),
    "n_bits float": (lambda: StarSHL(2.5).fit(X3, Y3), "n_bits is 2.5"),
    "C": (lambda: StarSHL(C=-1).fit(X3, Y3), "C is -1; it must be a finite number above 0"),
    "kernel_norm": (lambda: StarSHL(kernel_norm=0.5).fit(X3, Y3), "kernel_norm is 0.5.*at least 1"),
    "update_codewords": (
        lambda: StarSHL(update_codewords="no").fit(X3, Y3),
        "update_codewords is 'no'; it must be True or False",
    ),
    "no threads": (lambda: StarSHL(n_jobs=0).fit(X3, Y3), "n_jobs is 0; it must be None"),
    "a word for threads": (lambda: StarSHL(n_jobs="all").fit(X3, Y3), "n_jobs is 'all'; it must be None"),
    "solver": (lambda: StarSHL(solver="magic").fit(X3, Y3), "solver is 'magic'; choose one of 'auto'"),
    "constraint": (lambda: StarSHL(codeword_constraint="all").fit(X3, Y3), "choose one of 'distinct'"),
    "kernels word": (lambda: StarSHL(kernels="rbf").fit(X3, Y3), "kernels is 'rbf'; choose one of 'scaled'"),
    "no kernels": (lambda: StarSHL(kernels=[]).fit(X3, Y3), "at least one kernel"),
    "kernel class": (lambda: StarSHL(kernels=[Gaussian]).fit(X3, Y3), "with parentheses"),
    "codewords word": (lambda: StarSHL(codewords="far").fit(X3, Y3), "choose one of 'separated', 'random'"),
    "codewords shape": (
        lambda: StarSHL(4, codewords=np.ones((2, 4))).fit(X3, Y3),
        r"shape \(3, 4\), one row per class",
    ),
    "codewords values": (lambda: StarSHL(4, codewords=np.zeros((3, 4))).fit(X3, Y3), r"entries other than -1 and \+1"),
    "weights shape": (lambda: StarSHL(4, kernel_weights=np.ones(6)).fit(X3, Y3), r"shape \(4, 6\)"),
    "weights too large": (lambda: StarSHL(4, kernel_weights=np.ones((4, 6))).fit(X3, Y3), "norms of at most 1"),
    "assignments shape": (lambda: StarSHL(n_codewords=2).fit(X3, None, None, [0, 1]), r"must be \(36,\)"),
    "assignments range": (lambda: StarSHL(n_codewords=2).fit(X3, None, None, [7] * 36), "go from 0 to 1"),
    "kernel not square": (lambda: StarSHL(kernels="precomputed").fit(X3, Y3), "square"),
    "kernel asymmetric": (
        lambda: StarSHL(kernels="precomputed").fit(np.array([[1.0, 0.5], [0.2, 1.0]]), [0, 1]),
        "not symmetric",
    ),
    "kernel indefinite": (
        lambda: StarSHL(kernels="precomputed").fit(INDEFINITE, [0, 1]),
        "not positive semi-definite: on 2 rows its eigenvalues go from -1.00e[+]00",
    ),
    "callable indefinite": (
        lambda: StarSHL(kernels=[lambda a, b: -float(a @ b)]).fit(X3, Y3),
        r"kernels\[0\] is not positive semi-definite",
    ),
    "callable of wrong shape": (
        lambda: StarSHL(kernels=[lambda a, b: np.nan]).fit(X3, Y3),
        "returned NaN",
    ),
    "strings for vector kernels": (lambda: StarSHL().fit(["a", "b"], [0, 1]), ""),
    "one string": (lambda: StarSHL(kernels=[SpectrumKernel()]).fit("text", [0, 1]), "X is a str"),
}


@pytest.mark.parametrize("case", BAD_FITS)
def test_bad_input_to_fit_is_refused_in_a_sentence(case):
    act, message = BAD_FITS[case]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(ValueError, match=message):
            act()


def test_a_failed_fit_learns_nothing():
    hasher = StarSHL(kernels="precomputed")
    with pytest.raises(ValueError, match="symmetric"):
        hasher.fit(np.array([[1.0, 0.5], [0.2, 1.0]]), [0, 1])
    with pytest.raises(NotFittedError):
        hasher.transform(np.eye(2))


def test_wrong_feature_count_and_wrong_metric_are_refused():
    hasher = StarSHL(4, random_state=0).fit(X3, Y3)
    with pytest.raises(ValueError, match=r"3 features, .*expecting 4"):
        hasher.transform(X3[:, :3])
    with pytest.raises(InputError) as refused:
        hasher.codeword_distances(X3, metric="cosine")
    assert (refused.value.parameter, refused.value.value) == ("metric", "cosine")
    with pytest.raises(ValueError, match=r"classes \[3\]"):
        hasher.generalization_bound(X3, Y3 + 1)


def test_several_precomputed_kernels_equal_the_kernels_they_hold():
    kernels = [NormalizedLinear(), Gaussian(2.0)]
    settings = {"random_state": 0, "svm_tol": 1e-8}
    direct = StarSHL(6, kernels=kernels, **settings).fit(X3[::2], Y3[::2])
    precomputed = StarSHL(6, kernels="precomputed", **settings)
    precomputed.fit(np.array([kernel(X3[::2], X3[::2]) for kernel in kernels]), Y3[::2])
    values = np.array([kernel(X3, X3[::2]) for kernel in kernels])
    assert np.abs(precomputed.decision_function(values) - direct.decision_function(X3)).max() < 1e-6
    with pytest.raises(ValueError, match="2 kernels and 18 rows"):
        precomputed.decision_function(values[:1])


def test_strings_are_hashed_by_a_string_kernel_with_few_labels():
    words = ["one two three", "two three", "three one", "uno dos tres", "dos tres", "tres uno", "one one", "uno uno"]
    y = np.array([0, -1, -1, 1, -1, -1, -1, -1])
    hasher = StarSHL(4, kernels=[SpectrumKernel(2)], random_state=0).fit(words, y)
    assert hasher.transduction_.tolist() == [0, 0, 0, 1, 1, 1, 0, 1]
    assert hasher.predict(["two one", "dos uno"]).tolist() == [0, 1]


def test_any_objects_are_hashed_by_a_function_of_two_of_them():
    graphs = [{"edges": frozenset(edges)} for edges in ([(0, 1)], [(0, 1), (1, 2)], [(5, 6)], [(5, 6), (6, 7)])]

    def shared_edges(a, b):
        return float(len(a["edges"] & b["edges"]))

    hasher = StarSHL(3, kernels=[shared_edges], random_state=0).fit(graphs, [0, 0, 1, 1])
    assert hasher.predict(graphs).tolist() == [0, 0, 1, 1]
    clusters = StarSHL(3, kernels=[shared_edges], n_codewords=2, random_state=0).fit(graphs)
    assert len(set(clusters.assignments_[:2])) == len(set(clusters.assignments_[2:])) == 1


def test_graph_kernel_sees_rows_that_the_loss_does_not():
    two_moons_like = np.vstack([np.column_stack([np.linspace(0, 5, 40), np.full(40, h)]) for h in (0.0, 1.0)])
    truth = np.repeat([0, 1], 40)
    y = np.full(80, -1)
    y[[0, 79]] = [0, 1]
    settings = {"unlabeled": "nearest", "unlabeled_weight": 0.0, "random_state": 0}
    plain = StarSHL(4, **settings).fit(two_moons_like, y)
    graph = StarSHL(4, kernels=[GraphGaussian(0.5, 2)], **settings).fit(two_moons_like, y)
    assert np.mean(graph.transduction_ == truth) == 1.0
    assert np.mean(plain.transduction_ == truth) < 0.8


def test_interrupting_a_fit_leaves_nothing_behind(monkeypatch):
    hasher = StarSHL(4, random_state=0)

    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("starshl.learning.solvers.block_descent.BlockDescent.run", interrupt)
    with pytest.raises(KeyboardInterrupt):
        hasher.fit(X3, Y3)
    assert not [name for name in vars(hasher) if name.endswith("_") and name != "n_features_in_"]


def test_verbose_shows_a_bar_with_the_objective_on_standard_error(capsys):
    hasher = StarSHL(4, random_state=0, verbose=1).fit(X3, Y3)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "sweep" in shown.err or "done" in shown.err
    assert f"{hasher.objective_history_[-1]:.6g}" in shown.err


def test_active_rows_whose_matrix_does_not_fit_into_memory_are_refused(monkeypatch):
    monkeypatch.setattr("starshl.learning.kernels.banks.available_bytes", lambda: 40_000)
    with pytest.raises(MemoryError, match=r"36 active rows.*Use fewer rows"):
        StarSHL(4, n_jobs=2).fit(X3, Y3)
    StarSHL(4, n_jobs=1).fit(X3[::2].astype(np.float32), Y3[::2])
    with pytest.raises(MemoryError, match="36 active rows"):
        StarSHL(4, max_memory=1e-5).fit(X3, Y3)


def test_stored_kernels_that_do_not_fit_into_memory_are_refused():
    with pytest.raises(MemoryError, match="max_memory"):
        StarSHL(4, kernels=[lambda a, b: float(a @ b)], max_memory=1e-5).fit(X3, Y3)


def test_distances_that_do_not_fit_into_memory_are_computed_anew_with_the_same_result(monkeypatch):
    stored = StarSHL(6, random_state=0).fit(X3, Y3)
    monkeypatch.setattr(
        "starshl.learning.kernels.distances.DistanceTiles.stored_bytes", staticmethod(lambda *sizes: np.inf)
    )
    computed = StarSHL(6, random_state=0, max_memory=1.0).fit(X3, Y3)
    assert computed.decision_function(X3).tobytes() == stored.decision_function(X3).tobytes()
