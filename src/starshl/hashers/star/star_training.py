"""From checked input to a finished descent: the steps of ``StarSHL.fit``, in their order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning

from ..._common.engine import current_engine
from ..._common.labels import Labels, LabelsLike, check_labels
from ..._common.progress import sweep_progress
from ..._common.threads import single_threaded_blas
from ..._common.validation import (
    check_choice,
    check_flag,
    check_integer,
    check_length,
    check_n_jobs,
    check_number,
    check_weights,
)
from ..._common.warn import warn_caller
from ..._common.words import counted
from ...codes.codebook import Codebook, CodewordsLike
from ...codes.codewords import random_codewords, separated_codewords
from ...exceptions import InputError, InputWarning
from ...learning.graphs.neighbor_graph import NeighborGraph
from ...learning.kernels.banks import Bank, MemoryPlan, RemoteBank
from ...learning.kernels.choice import KernelsLike, fit_kernels
from ...learning.kernels.kernel import Kernel
from ...learning.kernels.views import ViewsLike, check_views, describe_views
from ...learning.solvers.block_descent import BlockDescent
from ...learning.solvers.objective import UNWEIGHTED_ABOVE
from ...learning.solvers.problem import Problem, Solution, Start, on_threads
from ...learning.solvers.proposals import SMALLEST_TOL
from ...learning.solvers.svm import ACCEPTED_VIOLATION, LibSVM, PairwiseAscent
from ..supervision import question_classes
from .samples import Samples
from .unlabeled import Guess, graph_of_rows, guess_classes, guess_clusters

# Those of the experiments in Huang et al. 2015.
PAPER_SETTINGS: dict[str, Any] = {
    "kernels": "paper",
    "C": 1000.0,
    "kernel_norm": 2.0,
    "codewords": "random",
    "kernel_weights": "random",
    "codeword_constraint": "none",
    "keep_clusters": False,
    "unlabeled": "nearest",
    "tol": 0.05,
}
_SMALLEST_FLOAT32_TOL = 1e-4  # below it the rounding of kernels, not the tolerance, would end a descent


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingSettings:
    """The parameters of :class:`starshl.StarSHL` that training reads, each within its range.

    Codewords, kernels and kernel weights are checked where they are used: that takes the number of classes and kernels.
    """

    n_bits: int
    kernels: KernelsLike
    views: ViewsLike | None
    C: float
    kernel_norm: float
    codewords: CodewordsLike
    n_codewords: int | None
    kernel_weights: Literal["random"] | np.ndarray | None
    update_codewords: bool
    codeword_constraint: Literal["distinct", "nonconstant", "none"]
    keep_clusters: bool
    unlabeled: Literal["graph", "nearest"]
    unlabeled_weight: float
    solver: Literal["auto", "smo", "libsvm"]
    max_iter: int
    tol: float
    svm_tol: float
    n_jobs: int | None
    max_memory: float | None
    verbose: int

    def __post_init__(self) -> None:
        check_integer(self.n_bits, "n_bits", low=1)
        check_number(self.C, "C", low=0, strict=True)
        check_number(self.kernel_norm, "kernel_norm", low=1, finite=False)
        check_choice(self.unlabeled, "unlabeled", ("graph", "nearest"))
        check_number(self.unlabeled_weight, "unlabeled_weight", low=0)
        check_flag(self.update_codewords, "update_codewords")
        check_flag(self.keep_clusters, "keep_clusters")
        check_choice(self.codeword_constraint, "codeword_constraint", ("distinct", "nonconstant", "none"))
        check_choice(self.solver, "solver", ("auto", "smo", "libsvm"))
        check_integer(self.max_iter, "max_iter", low=1)
        check_number(self.tol, "tol", low=0)
        check_number(self.svm_tol, "svm_tol", low=SMALLEST_TOL)
        check_n_jobs(self.n_jobs)
        if self.max_memory is not None:
            check_number(self.max_memory, "max_memory", low=0, strict=True)
        if self.n_codewords is not None:
            check_integer(self.n_codewords, "n_codewords", low=1)
        if self.views is not None:
            check_views(self.views)


@dataclass(frozen=True, slots=True)
class TrainingSet:
    """The rows of positive weight: samples, labels, weights, costs in the objective and, perhaps, where to start.

    ``rows`` says where they stand among all rows, whose labels are ``all_labels``.
    """

    rows: np.ndarray
    all_labels: Labels
    samples: Samples
    labels: Labels
    classes: np.ndarray
    weights: np.ndarray
    cost: np.ndarray
    initial_assignments: np.ndarray | None
    guess: Guess | None = None

    @classmethod
    def read(
        cls,
        settings: TrainingSettings,
        samples: Samples,
        y: LabelsLike,
        sample_weight: ArrayLike | None,
        initial_assignments: ArrayLike | None,
    ) -> Self:
        """Check what a user gave with the samples, and leave out rows of no weight."""
        n_rows = len(samples)
        all_labels, all_weights = check_labels(y, n_rows), check_weights(sample_weight, n_rows)
        rows = np.flatnonzero(all_weights)
        labels = all_labels.take(rows)
        check_codebook(settings.codewords, labels, settings.n_bits)
        start_from = None
        if initial_assignments is not None:
            start_from = check_length(initial_assignments, "initial_assignments", n_rows)[rows]
        return cls(
            rows=rows,
            all_labels=all_labels,
            samples=samples if len(rows) == n_rows else samples.take(rows),
            labels=labels,
            classes=_choose_classes(settings, labels, is_given=y is not None),
            weights=all_weights[rows],
            cost=all_weights[rows] * np.where(labels.labeled, 1.0, float(settings.unlabeled_weight)),
            initial_assignments=start_from,
        )

    @property
    def late(self) -> bool:
        """Whether unlabeled rows enter after sweep 0, assigned by the functions of the labeled ones."""
        return bool(self.labels.labeled.any()) and self.initial_assignments is None and self.guess is None

    @property
    def free(self) -> np.ndarray:
        """Which rows the descent may assign to other codewords; those that the graph speaks for stay where it says."""
        return np.zeros(len(self.rows), dtype=bool) if self.guess else ~self.labels.labeled

    def with_guess(self, guess: Guess) -> Self:
        """Return the same rows, the unlabeled ones in the classes of a guess and weighed by the trust in it."""
        n_classes = guess.probabilities.shape[1]
        return replace(
            self,
            classes=self.classes if self.labels.labeled.any() else np.arange(n_classes),
            cost=self.cost * np.where(self.labels.labeled, 1.0, guess.trust),
            guess=guess,
        )


def check_codebook(codewords: CodewordsLike, labels: Labels, n_bits: int) -> None:
    """Refuse a codebook that does not go with the labels or the length, before the fit spends any time."""
    if not isinstance(codewords, Codebook):
        return
    if not labels.labeled.any():
        raise ValueError(
            "codewords is a Codebook, whose words belong to named classes, and y has no labels: it is not known which "
            "cluster is which class. Give some labels, or set codewords='separated'."
        )
    codewords.words_for(labels.classes, n_bits)


def _choose_classes(settings: TrainingSettings, labels: Labels, *, is_given: bool) -> np.ndarray:
    """Return the classes, one codeword each: those of y or, without labels, cluster numbers."""
    if not labels.labeled.any():
        # A y without any label is more likely a mistake than a wish for clusters.
        if settings.n_codewords is None and (is_given or settings.unlabeled == "nearest"):
            raise InputError(
                "No row has a label, so the number of clusters must be given",
                advice="Set {parameter}, for example to 10. Without y and with {unlabeled} 'graph', a number is "
                "suggested; with labels, one codeword per class is learned.",
                parameter="n_codewords",
            )
        if settings.unlabeled_weight == 0:
            raise ValueError(
                "unlabeled_weight is 0 and no row has a label, so nothing is left to learn from. "
                "Give some labels or a positive unlabeled_weight."
            )
        return np.arange(settings.n_codewords or 0)  # the graph may suggest a number
    check_n_codewords(settings.n_codewords, len(labels.classes))
    question_classes(labels)
    check_classes(labels, settings.unlabeled)
    return labels.classes


def check_n_codewords(n_codewords: int | None, n_classes: int) -> None:
    """Refuse a number of codewords that is not that of the classes."""
    if n_codewords not in (None, n_classes):
        raise InputError(
            "{parameter} is {value}, but the labels name {n_classes} classes, each of which gets one codeword",
            advice="Leave {parameter} out when rows have labels.",
            parameter="n_codewords",
            value=n_codewords,
            n_classes=n_classes,
        )


def check_classes(labels: Labels, unlabeled: str) -> None:
    """Warn if all labeled rows are of one class, and refuse to spread it to all others."""
    if len(labels.classes) > 1:
        return
    n_marked = int(np.sum(labels.given == -1)) if labels.dtype.kind in "iuf" else 0
    marked = " The {n_marked} rows of y that are -1 count as unlabeled. If -1 is a class, give it another name, for "
    marked = f"{marked}example 0." if n_marked else ""
    facts = {"only": labels.classes.tolist()[0], "n_marked": n_marked}
    if unlabeled == "graph" and not labels.labeled.all():
        raise InputError(
            "All labels are {only!r}, so every row would get this one, right or wrong",
            advice=f"Label at least one row of another class.{marked}",
            **facts,
        )
    warn_caller(
        InputWarning(
            "There is only one class ({only!r}), so every code will be that class's codeword",
            advice=f"Give rows of two classes or more, or no labels and {{n_codewords}}.{marked}",
            **facts,
        )
    )


def fit_bank(
    settings: TrainingSettings, kernels: str | Sequence[Kernel], training: TrainingSet
) -> tuple[list[Kernel], Bank | RemoteBank]:
    """Return fitted kernels, none if they are precomputed, and the bank that evaluates them between training rows.

    Where an engine runs the tasks of a fit, the bank is there.
    """
    fitted: list[Kernel] = []
    if not isinstance(kernels, str):
        # Bandwidths of presets count rows as every other statistic does; other kernels learn from all rows.
        is_preset = isinstance(settings.kernels, str) and settings.kernels != "graph"
        fitted = fit_kernels(kernels, training.samples.values, training.cost if is_preset else training.weights)
    in_float64 = min(settings.tol, settings.svm_tol) < _SMALLEST_FLOAT32_TOL
    plan, engine = MemoryPlan(settings.max_memory, settings.n_jobs, in_float64), current_engine()
    if engine is None:
        return fitted, training.samples.bank(fitted, plan)
    return fitted, RemoteBank(engine, engine.submit(_make_bank, training.samples, fitted, plan))


def _make_bank(samples: Samples, kernels: list[Kernel], plan: MemoryPlan) -> Bank:
    return samples.bank(kernels, plan)


def consult_graph(
    settings: TrainingSettings,
    training: TrainingSet,
    bank: Bank | RemoteBank,
    graph: NeighborGraph | None,
    rng: np.random.RandomState,
) -> TrainingSet:
    """Return the training set with classes of its unlabeled rows from their neighbor graph, if these are wanted."""
    labels, is_started = training.labels, training.initial_assignments is not None
    if settings.unlabeled == "nearest" or labels.labeled.all() or (is_started and len(training.classes)):
        return training
    plain = training.samples.plain_kernel(getattr(bank, "kernels", []), lambda: bank)
    graph = graph_of_rows(plain, graph, training.rows, training.all_labels.n_rows)
    if labels.labeled.any():
        return training.with_guess(guess_classes(plain, graph, labels.index, len(training.classes)))
    return training.with_guess(guess_clusters(plain, graph, settings.n_codewords, _draw_seed(rng)))


def choose_start(
    settings: TrainingSettings,
    training: TrainingSet,
    bank: Bank | RemoteBank,
    rng: np.random.RandomState,
) -> Start:
    """Return where the descent starts: codewords, kernel weights and assignments."""
    n_bits, norm, n_codewords = settings.n_bits, float(settings.kernel_norm), len(training.classes)
    warn_about_length(n_codewords, n_bits)
    distinct = settings.codeword_constraint == "distinct"
    codewords = initial_codewords(settings.codewords, training.classes, n_bits, rng, distinct=distinct)
    weights = initial_weights(settings.kernel_weights, n_bits, bank.n_kernels, norm, rng)
    return Start(codewords, _first_assignments(training, bank, rng), weights)


def warn_about_length(n_codewords: int, n_bits: int) -> None:
    """Warn if there are more classes than codes."""
    if n_codewords > 2**n_bits:
        warning = InputWarning(
            "{n_codewords} codewords do not fit into {value} bits, which make {n_codes} codes: some classes share one",
            advice="Use {parameter} >= {least}.",
            parameter="n_bits",
            value=n_bits,
            n_codewords=n_codewords,
            n_codes=2**n_bits,
            least=int(np.ceil(np.log2(n_codewords))),
        )
        warn_caller(warning)


def initial_codewords(
    codewords: CodewordsLike,
    classes: np.ndarray,
    n_bits: int,
    rng: np.random.RandomState,
    *,
    distinct: bool,
) -> np.ndarray:
    """Return (n_codewords, n_bits) signs from a word, an array or a codebook."""
    n_codewords = len(classes)
    if isinstance(codewords, Codebook):
        return codewords.words_for(classes, n_bits)
    if isinstance(codewords, str):
        check_choice(codewords, "codewords", ("separated", "random"), or_else="a Codebook or an array")
        if codewords == "separated":
            return separated_codewords(n_codewords, n_bits, rng)
        return random_codewords(n_codewords, n_bits, rng, distinct=distinct)
    signs = np.asarray(codewords)
    if signs.shape != (n_codewords, n_bits) or not np.isin(signs, (-1, 1)).all():
        other = "" if np.isin(signs, (-1, 1)).all() else " and entries other than -1 and +1"
        raise ValueError(
            f"codewords has shape {signs.shape}{other}; it must be 'separated', 'random', a Codebook or an "
            f"array of -1 and +1 of shape ({n_codewords}, {n_bits}), one row per class and one column per bit."
        )
    if len(np.unique(signs, axis=0)) < n_codewords and (n_bits > 30 or 2**n_bits >= n_codewords):
        warn_caller(
            "Some rows of codewords are equal: their classes share one code, and predict returns the most "
            "frequent of them. Use distinct codewords to tell them apart.",
        )
    return signs.astype(np.int8)


def initial_weights(
    kernel_weights: Literal["random"] | ArrayLike | None,
    n_bits: int,
    n_kernels: int,
    p: float,
    rng: np.random.RandomState,
) -> np.ndarray:
    """Return (n_bits, n_kernels) kernel weights from None, a word or an array, each row in the p-norm ball."""
    if kernel_weights is None:
        size = 1.0 if p > UNWEIGHTED_ABOVE else n_kernels ** (-1.0 / p)
        return np.full((n_bits, n_kernels), size)
    if isinstance(kernel_weights, str):
        check_choice(kernel_weights, "kernel_weights", ("random",))
        drawn = rng.uniform(size=(n_bits, n_kernels))
        return drawn / drawn.sum(axis=1, keepdims=True)
    weights = np.asarray(kernel_weights, dtype=np.float64)
    allowed = f"None, 'random' or an array of shape ({n_bits}, {n_kernels}), one row per bit and one column per kernel"
    if weights.shape != (n_bits, n_kernels):
        raise ValueError(f"kernel_weights has shape {weights.shape}; it must be {allowed}.")
    norms = np.linalg.norm(weights, ord=np.inf if p > UNWEIGHTED_ABOVE else p, axis=1)
    if not np.isfinite(weights).all() or (weights < 0).any() or (norms > 1 + 1e-9).any():
        raise ValueError(
            f"kernel_weights has negative entries or rows of {p:g}-norm up to {norms.max():.3g}; weights must be "
            f">= 0 with norms of at most 1. Divide each row by its {p:g}-norm."
        )
    if (norms == 0).any():
        raise ValueError("kernel_weights has rows of zeros; every bit needs at least one kernel. Use None for equal.")
    return weights.copy()


def _first_assignments(training: TrainingSet, bank: Bank | RemoteBank, rng: np.random.RandomState) -> np.ndarray:
    """Return a codeword index for each row: given, that of its label, or a cluster."""
    labels, n_codewords = training.labels, len(training.classes)
    if training.guess is not None:
        return training.guess.index
    if training.initial_assignments is not None:
        return check_assignments(training.initial_assignments, labels.index, n_codewords)
    if labels.labeled.any():
        return np.maximum(labels.index, 0)
    with single_threaded_blas():
        return training.samples.clusters(bank, training.cost, n_codewords, np.random.RandomState(_draw_seed(rng)))


def check_assignments(initial_assignments: ArrayLike, labels: np.ndarray, n_codewords: int) -> np.ndarray:
    """Return a codeword index for each row: given labels first, the user's choice for unlabeled rows."""
    given = np.asarray(initial_assignments)
    if given.shape != labels.shape or given.dtype.kind not in "iu":
        raise ValueError(
            f"initial_assignments has dtype {given.dtype} and shape {given.shape}; it must hold one codeword index "
            f"(an integer) per row, shape {labels.shape}."
        )
    chosen = np.where(labels >= 0, labels, given).astype(np.int64)
    if chosen.min() < 0 or chosen.max() >= n_codewords:
        raise ValueError(
            f"initial_assignments goes from {chosen.min()} to {chosen.max()} on the unlabeled rows; codeword "
            f"indices go from 0 to {n_codewords - 1}."
        )
    return chosen


def _draw_seed(rng: np.random.RandomState) -> int:
    return int(rng.randint(np.iinfo(np.int32).max))


def descend(
    settings: TrainingSettings,
    training: TrainingSet,
    bank: Bank | RemoteBank,
    start: Start,
) -> Solution:
    """Return the solution of the block descent."""
    constraint = settings.codeword_constraint
    if constraint == "distinct" and len(start.codewords) > 2**settings.n_bits:
        constraint = "nonconstant"
    svm = LibSVM if settings.solver == "libsvm" else PairwiseAscent
    with sweep_progress(settings.n_bits, settings.max_iter, shown=bool(settings.verbose)) as on_progress:
        problem = Problem(
            bank=bank,
            svm=svm(settings.svm_tol),
            cost=training.cost,
            free=training.free,
            late=training.late,
            C=float(settings.C),
            kernel_norm=float(settings.kernel_norm),
            constraint=constraint,
            update_codewords=settings.update_codewords and not isinstance(settings.codewords, Codebook),
            keep_clusters=settings.keep_clusters,
            max_iter=settings.max_iter,
            tol=settings.tol,
            map=RemoteBank.map if isinstance(bank, RemoteBank) else on_threads(settings.n_jobs),
            on_progress=on_progress,
        )
        return BlockDescent(problem).run(start)


def describe_choice(training: TrainingSet, view_weights: Mapping[str, float]) -> str:
    """Return one line about what became of unlabeled rows, and how much each view counts."""
    return "; ".join([_describe_unlabeled(training), *describe_views(view_weights)])


def _describe_unlabeled(training: TrainingSet) -> str:
    if training.guess is not None:
        return training.guess.note
    if training.labels.labeled.all():
        return "every row has a label"
    if training.initial_assignments is not None:
        return "unlabeled rows started from the given assignments and moved to their nearest codewords"
    if training.labels.labeled.any():
        return "unlabeled rows joined the nearest codeword, by hash functions learned from the labeled rows"
    return "rows started from k-means and moved to their nearest codewords"


def warn_about(settings: TrainingSettings, state: Solution) -> None:
    """Warn about non-convergence and collapsed codewords."""
    if not state.converged:
        warn_caller(
            f"Codewords, assignments or kernel weights still changed in sweep {state.n_iter} (tol={settings.tol:g}). "
            "Increase max_iter, or accept the result: every sweep lowered the objective.",
            ConvergenceWarning,
        )
    n_violating = int(np.sum(state.violation > ACCEPTED_VIOLATION * settings.svm_tol))
    if n_violating:
        warn_caller(
            f"The SVM of {counted(n_violating, 'bit')} stopped at a KKT violation of up to {state.violation.max():.1e} "
            f"(svm_tol={settings.svm_tol:g}). Rescale the kernels, lower C or raise svm_tol.",
            ConvergenceWarning,
        )
    if settings.codeword_constraint != "none" or len(state.codewords) == 1:
        return
    n_constant = int(np.sum(np.all(state.codewords == state.codewords[:1], axis=0)))
    n_distinct = len(np.unique(state.codewords, axis=0))
    if n_constant or n_distinct < len(state.codewords):
        warn_caller(
            f"Unconstrained, the codewords have {n_constant} constant bits and {n_distinct} distinct rows for "
            f"{len(state.codewords)} classes. Set codeword_constraint='distinct' to keep them apart.",
            ConvergenceWarning,
        )
