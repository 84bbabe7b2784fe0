"""Fitted scikit-learn classifiers as files hold them: well-known ones as data, all others by name.

A file holds settings and learned arrays, and never code. Only classes in the tables below are made from one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, Normalizer, StandardScaler
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier
from sklearn.tree._tree import NODE_DTYPE, Tree

from .._common.bundle import pack_values, unpack_values
from ..exceptions import BundleFormatError

Arrays = dict[str, np.ndarray]

_LINEAR = ("classes_", "coef_", "intercept_", "n_features_in_")
_NETWORK = ("classes_", "coefs_", "intercepts_", "n_layers_", "n_outputs_", "out_activation_", "n_features_in_")
_TREE = ("classes_", "n_classes_", "n_outputs_", "n_features_in_")
#: The learned attributes by which each class prepares rows or tells probabilities.
_LEARNED: dict[type, tuple[str, ...]] = {
    LogisticRegression: _LINEAR,
    SGDClassifier: _LINEAR,
    LinearDiscriminantAnalysis: _LINEAR,
    GaussianNB: ("classes_", "theta_", "var_", "class_prior_", "n_features_in_"),
    MLPClassifier: _NETWORK,
    DecisionTreeClassifier: _TREE,
    ExtraTreeClassifier: _TREE,
    RandomForestClassifier: _TREE,
    ExtraTreesClassifier: _TREE,
    StandardScaler: ("mean_", "var_", "scale_", "n_samples_seen_", "n_features_in_"),
    MinMaxScaler: ("min_", "scale_", "data_min_", "data_max_", "data_range_", "n_features_in_"),
    MaxAbsScaler: ("scale_", "max_abs_", "n_features_in_"),
    Normalizer: ("n_features_in_",),
    PCA: ("components_", "mean_", "explained_variance_", "n_components_", "n_features_in_"),
    TruncatedSVD: ("components_", "n_features_in_"),
}
_CLASSES = {kind.__name__: kind for kind in _LEARNED}


def pack_classifier(classifier: Any, arrays: Arrays, prefix: str = "classifier.") -> dict[str, Any]:
    """Return what a file's header says about a fitted classifier; add its arrays to ``arrays``."""
    held: Arrays = {}
    try:
        spec = _pack(classifier, prefix, held)
    except TypeError:  # a part or a setting that no file holds
        return {"class": None, "type": type(classifier).__name__}
    arrays |= held
    return spec


def unpack_classifier(spec: dict[str, Any], arrays: Arrays, prefix: str = "classifier.") -> Any:
    """Return the classifier that :func:`pack_classifier` was given, None if the file does not hold it."""
    if spec["class"] is None:
        return None
    if spec["class"] == "Pipeline":
        parts = [(name, _unpack_part(part, arrays, f"{prefix}{n}.")) for n, (name, part) in enumerate(spec["steps"])]
        return Pipeline(parts)
    if spec["class"] not in _CLASSES:
        raise BundleFormatError.damaged(f"it names a classifier {spec['class']!r} that this version does not know")
    kind = _CLASSES[spec["class"]]
    made: Any = kind(**unpack_values(spec["params"], arrays, f"{prefix}params."))
    for name, value in unpack_values(spec["learned"], arrays, f"{prefix}learned.").items():
        if name not in _LEARNED[kind]:
            raise BundleFormatError.damaged(f"it sets {name!r}, which a {spec['class']} does not learn")
        setattr(made, name, value)
    for name, values in spec["lists"].items():
        if name not in _LEARNED[kind]:
            raise BundleFormatError.damaged(f"it sets {name!r}, which a {spec['class']} does not learn")
        members = unpack_values(values, arrays, f"{prefix}{name}.")
        setattr(made, name, [members[str(number)] for number in range(len(members))])
    if kind in (DecisionTreeClassifier, ExtraTreeClassifier):
        made.tree_ = _unpack_tree(unpack_values(spec["tree"], arrays, f"{prefix}tree."), made)
    if kind in (RandomForestClassifier, ExtraTreesClassifier):
        trees = [_unpack_part(tree, arrays, f"{prefix}{number}.") for number, tree in enumerate(spec["trees"])]
        if not trees or not all(isinstance(tree, DecisionTreeClassifier) for tree in trees):
            raise BundleFormatError.damaged("its forest has no trees")
        made.estimators_ = trees
    return made


def _unpack_part(spec: Any, arrays: Arrays, prefix: str) -> Any:
    part = None if spec["class"] == "Pipeline" else unpack_classifier(spec, arrays, prefix)
    if part is None:
        raise BundleFormatError.damaged("a part of its classifier is missing")
    return part


def _pack(part: Any, prefix: str, arrays: Arrays) -> dict[str, Any]:
    """Return the entry of one estimator, or raise TypeError if a file cannot hold it."""
    if type(part) is Pipeline:
        steps = [(name, step) for name, step in part.steps if step not in (None, "passthrough")]
        return {
            "class": "Pipeline",
            "steps": [[name, _pack(step, f"{prefix}{n}.", arrays)] for n, (name, step) in enumerate(steps)],
        }
    if type(part) not in _LEARNED:
        raise TypeError(type(part).__name__)
    settle(part)
    params = part.get_params(deep=False)
    if not isinstance(params.get("random_state"), (int, np.integer, type(None))):
        params["random_state"] = None
    learned = {name: getattr(part, name) for name in _LEARNED[type(part)] if hasattr(part, name)}
    lists = {name: learned.pop(name) for name in list(learned) if isinstance(learned[name], list)}
    spec: dict[str, Any] = {"class": type(part).__name__, "lists": {}}
    for name, values in {"params": params, "learned": learned}.items():
        spec[name], packed = pack_values(values, f"{prefix}{name}.")
        arrays |= packed
    for name, members in lists.items():
        numbered = {str(number): member for number, member in enumerate(members)}
        spec["lists"][name], packed = pack_values(numbered, f"{prefix}{name}.")
        arrays |= packed
    if isinstance(part, DecisionTreeClassifier):
        state = part.tree_.__getstate__()
        fields = {name: np.ascontiguousarray(state["nodes"][name]) for name in NODE_DTYPE.names}
        spec["tree"], packed = pack_values(
            fields | {"values": state["values"], "depth": state["max_depth"]}, f"{prefix}tree."
        )
        arrays |= packed
    if hasattr(part, "estimators_"):
        spec["trees"] = [_pack(tree, f"{prefix}{number}.", arrays) for number, tree in enumerate(part.estimators_)]
    return spec


def settle(classifier: Any) -> None:
    """Lay out learned arrays as a file keeps them: products of others differ in the last bits."""
    parts = [step for _, step in classifier.steps] if type(classifier) is Pipeline else [classifier]
    for part in parts:
        for name in _LEARNED.get(type(part), ()):
            value = getattr(part, name, None)
            if isinstance(value, np.ndarray):
                setattr(part, name, np.ascontiguousarray(value))
            elif isinstance(value, list):
                setattr(part, name, [np.ascontiguousarray(each) for each in value])


def _unpack_tree(values: dict[str, Any], made: Any) -> Tree:
    """Return a tree whose nodes lead from the root to leaves: compiled code follows them without looking."""
    depth, shares, n_features = values.pop("depth"), values.pop("values"), made.n_features_in_
    counts = {np.shape(values[name]) for name in NODE_DTYPE.names}
    n_nodes = len(shares) if np.ndim(shares) == 3 else 0
    if counts != {(n_nodes,)} or not n_nodes or shares.shape[1:] != (1, len(made.classes_)):
        raise BundleFormatError.damaged("its tree has nodes without values")
    nodes = np.zeros(n_nodes, NODE_DTYPE)
    for name in NODE_DTYPE.names:
        nodes[name] = values[name]
    left, right, feature = nodes["left_child"], nodes["right_child"], nodes["feature"]
    is_leaf, places = left == -1, np.arange(n_nodes)
    # Children come after their parents, so that every path ends.
    inner = ~is_leaf & (left > places) & (right > places) & (left < n_nodes) & (right < n_nodes)
    if not np.all(is_leaf | (inner & (feature >= 0) & (feature < n_features))) or type(depth) is not int:
        raise BundleFormatError.damaged("its tree does not lead to leaves")
    tree = Tree(n_features, np.array([len(made.classes_)], np.intp), 1)
    state = {
        "max_depth": depth,
        "node_count": n_nodes,
        "nodes": nodes,
        "values": np.ascontiguousarray(shares, np.float64),
    }
    tree.__setstate__(state)
    return tree
