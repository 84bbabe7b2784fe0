"""ClassifierHasher: codes from the probabilities of any scikit-learn classifier."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.sparse import issparse
from scipy.special import softmax
from sklearn.base import BaseEstimator, clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import ClassifierTags, Tags, get_tags
from sklearn.utils.validation import check_is_fitted, check_random_state

from .._common.bundle import pack_values, unpack_values
from .._common.labels import Labels, LabelsLike
from .._common.threads import single_threaded_blas
from .._common.validation import Rows, SamplesLike, Seed, check_integer, check_rows
from ..codes.binary import BinaryCodes
from ..codes.codebook import CodewordsLike
from ..exceptions import BundleFormatError, MissingFunctionError
from .base import Capability, all_or_nothing
from .classifier_files import pack_classifier, settle, unpack_classifier
from .facts import Facts
from .star.star_training import check_codebook
from .supervision import require_labels
from .word_hasher import WordHasher

_SUPPORTED: frozenset[Capability] = frozenset(
    {"predict", "predict_proba", "score", "relabel", "with_bits", "probability"}
)
_SEEDS = np.iinfo(np.int32).max
_FOLDS = 3
# Of a probability: a forest whose trees agree says that all other classes are impossible.
LEAST_SHARE = 1e-6
_LOG_TEMPERATURES = np.log([0.02, 50.0])
_PROBE_ROWS = 3


class ClassifierHasher(WordHasher):
    r"""Turn any classifier with probabilities into a hasher.

    The classifier is fitted to all labeled rows and, to learn what its probabilities are worth, to two thirds of them
    at a time: what it says of the third that it has not seen decides the temperature T of the posterior
    :math:`p \propto q^T`, q being its probabilities, and how sharp words are. From there on, codes and searches are
    those of :class:`starshl.StarRidge`: the code of an item is the word that keeps most of its posterior, and a query
    keeps its own.

    A classifier that is fitted already, ``ClassifierHasher(FrozenEstimator(classifier))``, stays as it is. ``fit`` then
    takes rows that it has not seen, some hundred, and learns the temperature and the words from them.

    Parameters
    ----------
    estimator : classifier with ``predict_proba``, default=None
        Fitted on a clone; a pipeline that ends in one will do. None is logistic regression on scaled features.
    n_bits : int, default=32
        Length of the codes.
    codewords : {"separated", "random"}, array of shape (n_classes, n_bits) or Codebook, default="separated"
        As for :class:`starshl.StarRidge`.
    n_jobs : int, default=None
        Number of threads that look for words; None means one, -1 means all. Codes do not depend on it.
    random_state : int, RandomState or None, default=None
        Seeds the codewords, the thirds, and classifiers whose own random_state is None.

    Attributes
    ----------
    estimator_ : the classifier, fitted to all labeled rows
    classes_ : array of shape (n_classes,)
    codewords_ : array of shape (n_classes, n_bits), int8
    codebook_ : Codebook, which class has which codeword
    temperature_ : T above
    sharpness_ : how fast words of this length lose the probability of a class with the distance from its codeword
    training_posteriors_ : array of shape (n_train, n_classes)
        Of the rows of the fit, by a classifier that has not seen them.
    training_classes_ : array of shape (n_train,), their classes, -1 where unlabeled
    codebook_seed_ : seed of the codewords

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from starshl.hashers import ClassifierHasher
    >>> X, y = load_digits(return_X_y=True)
    >>> hasher = ClassifierHasher(RandomForestClassifier(50), n_bits=16, random_state=0).fit(X[:900], y[:900])
    >>> hasher.score(X[900:], y[900:]) > 0.9
    True
    >>> hasher.temperature_ > 1  # forests are less sure than they could be
    True
    """

    facts = Facts(
        paper="this package: words for the posteriors of any classifier",
        year=2026,
        labels="some",
        cost="that of the classifier, four times",
    )

    estimator_: Any
    training_posteriors_: np.ndarray
    training_classes_: np.ndarray
    probe_: np.ndarray
    temperature_: float

    def __init__(
        self,
        estimator: BaseEstimator | None = None,
        n_bits: int = 32,
        *,
        codewords: CodewordsLike = "separated",
        n_jobs: int | None = None,
        random_state: Seed = None,
    ):
        self.estimator = estimator
        self.n_bits = n_bits
        self.codewords = codewords
        self.n_jobs = n_jobs
        self.random_state = random_state

    @property
    def supports(self) -> frozenset[Capability]:
        """What probabilities are enough for."""
        return _SUPPORTED

    @property
    def current_facts(self) -> Facts:
        """The facts of this setting: whether the classifier takes sparse rows."""
        return replace(super().current_facts, sparse=get_tags(self._given_estimator()).input_tags.sparse)

    @all_or_nothing
    def fit(self, X: SamplesLike, y: LabelsLike = None) -> Self:
        """Fit the classifier, and learn how its probabilities become words.

        Parameters
        ----------
        X : array or CSR array of shape (n, n_features)
        y : array of shape (n,)
            Labels. Unlabeled rows (-1 among numbers, NaN, None or empty text) are left out of the fit.
        """
        n_bits = check_integer(self.n_bits, "n_bits", low=1)
        estimator = self._check_estimator()
        rows = check_rows(self, X, fitting=True, accept_sparse=self.current_facts.sparse)
        is_frozen = isinstance(estimator, FrozenEstimator)
        labels = require_labels(self, y, rows.shape[0], partial=True, n_classes=1 if is_frozen else 2)
        check_codebook(self.codewords, labels, n_bits)
        seeds = check_random_state(self.random_state).randint(_SEEDS, size=3).tolist()
        self.codebook_seed_ = seeds[0]
        with single_threaded_blas():
            self._learn(_seeded(estimator, seeds[1]), rows, labels, seeds[2])
        few: Any = rows[:_PROBE_ROWS]
        self.probe_rows_ = few.toarray() if issparse(few) else np.array(few)
        self.probe_ = self._probabilities(self.probe_rows_)
        self._set_codewords(n_bits, self.codewords)
        return self

    def _learn(self, estimator: Any, rows: Rows, labels: Labels, seed: int) -> None:
        """Set everything but the codewords."""
        known = np.flatnonzero(labels.labeled)
        if isinstance(estimator, FrozenEstimator):
            self.estimator_, self.classes_ = estimator.estimator, _classes_of(estimator.estimator, labels)
            settle(self.estimator_)
            said = self._probabilities(rows)
            index = labels.positions_in(self.classes_)
            is_left_out = labels.labeled
        else:
            self.classes_, index = labels.classes, np.where(labels.labeled, labels.index, -1)
            self.estimator_ = clone(estimator).fit(rows[known], labels.classes[index[known]])
            # As given: another fit draws other numbers.
            self.estimator_.set_params(**_random_states(self._given_estimator()))
            settle(self.estimator_)
            said = self._probabilities(rows)
            said[known], seen = _left_out(estimator, rows[known], index[known], labels.classes, seed)
            is_left_out = np.zeros(len(index), bool)
            is_left_out[known] = seen
        self.temperature_ = _best_temperature(said[is_left_out], index[is_left_out])
        self.training_classes_ = index
        self.training_posteriors_ = _tempered(said, self.temperature_).astype(np.float32)

    def predict_proba(self, X: SamplesLike) -> np.ndarray:
        """Return the probability of each class, shape (n, n_classes), in the order of ``classes_``."""
        self._require_fit()
        rows = check_rows(self, X, fitting=False, accept_sparse=self.current_facts.sparse)
        return _tempered(self._probabilities(rows), self.temperature_).astype(rows.dtype)

    def training_proba(self, X: SamplesLike | None = None) -> np.ndarray:
        """Return the probability of each class for each row of the fit, by a classifier that has not seen it."""
        self._require_fit()
        return self.training_posteriors_

    def predict(self, X: SamplesLike) -> np.ndarray:
        """Return the likeliest class of each row."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def predict_training(self, X: SamplesLike) -> np.ndarray:
        """Return the class of each row of the fit, predicted by a classifier that has not seen it."""
        return self.classes_[self.training_proba().argmax(axis=1)]

    @property
    def training_codes_(self) -> BinaryCodes:
        """Codes of the rows of the fit as items: codewords of labels, and words of posteriors where unlabeled."""
        self._require_fit()
        return self._item_codes(self.training_posteriors_, self.training_classes_)

    def leave_one_out(self, *, precision: bool = True) -> dict[str, Any] | None:
        """Return the accuracy on rows of the fit that the classifier had not seen."""
        rows = np.flatnonzero(self.training_classes_ >= 0)
        right = self.training_posteriors_[rows].argmax(axis=1) == self.training_classes_[rows]
        how = f"{len(rows):,} labeled rows of the fit, each by a classifier that has not seen it"
        return {"how": how, "accuracy": round(float(np.mean(right)), 4)}

    def _given_estimator(self) -> Any:
        if self.estimator is not None:
            return self.estimator
        return make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))

    def _check_estimator(self) -> Any:
        estimator = self._given_estimator()
        if not isinstance(estimator, BaseEstimator) or isinstance(estimator, type):
            raise ValueError(
                f"estimator is {estimator!r}; it must be a scikit-learn classifier, such as LogisticRegression()."
            )
        if get_tags(estimator).estimator_type == "regressor":
            raise ValueError(
                f"estimator is a {type(estimator).__name__}, a regressor; it must be a classifier. Give one, such as "
                "LogisticRegression()."
            )
        if not hasattr(estimator, "predict_proba"):
            raise ValueError(
                f"estimator is a {type(estimator).__name__}, which has no predict_proba. Use a classifier that has, or "
                "wrap this one: sklearn.calibration.CalibratedClassifierCV(estimator)."
            )
        if isinstance(estimator, FrozenEstimator):
            check_is_fitted(estimator.estimator)
        return estimator

    def _unseen_posteriors(self) -> np.ndarray:
        return self.training_posteriors_[self.training_classes_ >= 0]

    def _scores(self, X: SamplesLike) -> np.ndarray:
        """Return the expected codeword bits."""
        posteriors = self.predict_proba(X)
        return posteriors @ self.codewords_.astype(posteriors.dtype)

    def _probabilities(self, rows: Rows) -> np.ndarray:
        """Return what the classifier says, in the order of ``classes_``."""
        with single_threaded_blas():
            return np.asarray(self.estimator_.predict_proba(rows), dtype=np.float64)

    def pack(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        params, state = self._packable_params(), self._packable_state()
        given = params.pop("estimator")
        if isinstance(params["codewords"], list | tuple):
            params["codewords"] = np.asarray(params["codewords"])
        arrays: dict[str, np.ndarray] = {}
        kind = "default" if given is None else "frozen" if isinstance(given, FrozenEstimator) else "fitted"
        header: dict[str, Any] = {"kind": kind, "classifier": pack_classifier(state.pop("estimator_"), arrays)}
        for name, values in {"params": params, "fitted": state}.items():
            header[name], packed = pack_values(values, f"{name}.")
            arrays |= packed
        return header, arrays

    @classmethod
    def unpack(
        cls,
        header: dict[str, Any],
        arrays: dict[str, np.ndarray],
        kernels: Sequence[Any] | None = None,
        steps: Sequence[Any] | None = None,
    ) -> Self:
        cls._refuse_given(kernels=kernels)
        classifier = unpack_classifier(header["classifier"], arrays)
        if classifier is None and steps is None:
            raise MissingFunctionError(
                "This model was fitted with a {kind}, which a file cannot hold",
                advice="Reopen it with load(path, steps=[classifier]), the fitted {kind}.",
                kind=header["classifier"]["type"],
            )
        if classifier is None:
            classifier = steps[0] if steps is not None and len(steps) == 1 else None
            if not hasattr(classifier, "predict_proba"):
                raise ValueError("steps must hold the fitted classifier of this model and nothing else.")
        elif steps is not None:
            raise ValueError("The classifier of this model is in the file. Load it without steps.")
        params = unpack_values(header["params"], arrays, "params.")
        made: dict[str, Callable[[Any], Any]] = {"default": lambda _: None, "frozen": FrozenEstimator, "fitted": clone}
        hasher = cls(made[header["kind"]](classifier), **params)
        state = unpack_values(header["fitted"], arrays, "fitted.")
        hasher.estimator_ = classifier
        hasher._restore_state(state)
        hasher._check_restored()
        return hasher

    def _check_restored(self) -> None:
        """Refuse a file whose parts do not belong together, or a classifier that is another one."""
        n_classes, n_rows = len(self.classes_), len(self.training_classes_)
        numbers = (self.temperature_, self.sharpness_)
        fits = (
            self.codewords_.shape == (n_classes, self.n_bits_)
            and bool(np.isin(self.codewords_, (-1, 1)).all())
            and self.training_posteriors_.shape == (n_rows, n_classes)
            and bool(np.isfinite(self.training_posteriors_).all())
            and self.training_classes_.dtype.kind == "i"
            and bool(np.all((self.training_classes_ >= -1) & (self.training_classes_ < n_classes)))
            and all(type(number) is float and 0 < number < np.inf for number in numbers)
            and type(self.codebook_seed_) is int
            and 0 <= self.codebook_seed_ < 2**32
        )
        if not fits:
            raise BundleFormatError.damaged("its arrays do not fit together")
        self._check_restored_codebook()
        try:
            said = self._probabilities(self.probe_rows_)
        except Exception as error:
            raise BundleFormatError.damaged(f"its classifier cannot be used ({error!r})") from error
        if said.shape != self.probe_.shape or not np.allclose(said, self.probe_, rtol=1e-5, atol=1e-7):
            raise ValueError(
                "The classifier gives other probabilities on rows of the fit than that of the fit did: it is another "
                "one, or fitted on other rows. Pass the fitted classifier of this model."
            )

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.estimator_type, tags.classifier_tags = "classifier", ClassifierTags()
        return tags


def _seeded(estimator: Any, seed: int) -> Any:
    """Return a classifier whose fits are the same every time; a frozen one is not fitted again."""
    if isinstance(estimator, FrozenEstimator):
        return estimator
    seeded, given = clone(estimator), _random_states(estimator)
    return seeded.set_params(**{name: seed if value is None else value for name, value in given.items()})


def _random_states(estimator: Any) -> dict[str, Any]:
    """Return the settings of a classifier and of its parts that say what they draw."""
    params = estimator.get_params().items()
    return {name: value for name, value in params if name.rpartition("__")[2] == "random_state"}


def _classes_of(estimator: Any, labels: Labels) -> np.ndarray:
    """Return the classes of a fitted classifier, or say that the labels are others."""
    classes = np.asarray(estimator.classes_)
    if len(classes) < 2:
        raise ValueError(
            f"estimator was fitted to one class, {classes.tolist()[0]!r}; there is nothing to tell apart. Use a "
            "classifier of two classes or more."
        )
    unknown = np.unique(labels.index[labels.labeled & (labels.positions_in(classes) < 0)])
    if len(unknown):
        first = labels.classes.tolist()[unknown[0]]
        raise ValueError(
            f"y holds {first!r}, which is none of the {len(classes)} classes that estimator was fitted to, such as "
            f"{classes.tolist()[0]!r}. Give rows of its classes, or the classifier without FrozenEstimator."
        )
    return classes


def _left_out(
    estimator: Any, rows: Rows, index: np.ndarray, classes: np.ndarray, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return what classifiers say of rows that they have not seen, and which rows are of classes that they have."""
    fold = _folds(index, seed)
    said, is_known = np.zeros((len(index), len(classes))), np.zeros(len(index), bool)
    for number in range(_FOLDS):
        own, others = np.flatnonzero(fold == number), np.flatnonzero(fold != number)
        seen = np.unique(index[others])
        if len(seen) < 2:
            raise ValueError(
                f"Without a third of the labeled rows, y holds {len(seen)} class; a classifier learns from two. Label "
                "more rows: three or more of two classes."
            )
        if len(own):
            fitted = clone(estimator).fit(rows[others], classes[index[others]])
            said[np.ix_(own, seen)] = fitted.predict_proba(rows[own])
            is_known[own] = np.isin(index[own], seen)
    if not is_known.any():
        raise ValueError(
            f"y holds {len(index)} labels, no two of one class, so no classifier has seen the class of a row that it "
            "has not seen. Label more rows: three or more of two classes."
        )
    return said, is_known


def _folds(index: np.ndarray, seed: int) -> np.ndarray:
    """Return one of three folds for each row, as many rows of each class in all of them as can be."""
    shuffled = np.random.RandomState(seed).permutation(len(index))
    by_class = shuffled[np.argsort(index[shuffled], kind="stable")]
    fold = np.empty(len(index), np.int64)
    fold[by_class] = np.arange(len(index)) % _FOLDS
    return fold


def _tempered(said: np.ndarray, temperature: float) -> np.ndarray:
    """Return probabilities in proportion to ``said ** temperature``."""
    return softmax(temperature * np.log(np.maximum(said, LEAST_SHARE)), axis=1)


def _best_temperature(said: np.ndarray, index: np.ndarray) -> float:
    """Return the temperature of least log loss."""

    def loss(log_temperature: float) -> float:
        shares = _tempered(said, float(np.exp(log_temperature)))
        return -float(np.mean(np.log(shares[np.arange(len(index)), index])))

    return float(np.exp(minimize_scalar(loss, bounds=tuple(_LOG_TEMPERATURES), method="bounded").x))
