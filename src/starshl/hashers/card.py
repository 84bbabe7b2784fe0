"""Model cards: what a model is, what it was fitted on, how well it does, and what it is for."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._common.labels import LabelsLike, check_labels
from .._common.validation import SamplesLike, n_rows
from .base import BaseHasher
from .columns import columns_sentence, describe_columns
from .fit_record import data_digest

_N_NEAREST = 10  # precision at 10, as in the docs
_MOST_SHOWN = 30  # classes of which a card shows the counts
_UNEVEN = 5  # times as many rows in the largest class as in the smallest: a card then says so
_AS_RUN = ("n_jobs", "verbose")  # how a fit was run, which does not change the model


def model_card(hasher: BaseHasher) -> dict[str, Any]:
    """Return the card of a fitted hasher, of values that JSON holds.

    Parameters
    ----------
    hasher : fitted hasher
        One that was put together from fitted parts, such as a pipeline, knows nothing about its data.

    Returns
    -------
    card : dict
        ``model`` (method, settings, length), ``data`` (sizes, SHA-256 of rows and labels, label counts), ``columns``
        (of a table with names: the role of each), ``measured`` (a list of measurements, each with how it was made),
        ``versions``, ``intended_use`` and ``limits``.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from starshl import StarRidge, model_card
    >>> X, y = load_digits(return_X_y=True)
    >>> card = model_card(StarRidge(16, random_state=0).fit(X[:300], y[:300]))
    >>> card["data"]["rows"], card["data"]["label_counts"]["7"]
    (300, 29)
    >>> card["measured"][0]["accuracy"] > 0.9  # of rows that are each scored without themselves
    True
    """
    check_is_fitted(hasher)
    record = dict(hasher.fit_record)
    versions, measured = record.pop("versions", {}), list(record.pop("measured", []))
    missing = record.pop("missing_cells", {})
    inner = hasher.inner
    estimate = inner.leave_one_out()
    return {
        "model": _describe_model(hasher, inner),
        "data": record,
        "columns": describe_columns(hasher, missing),
        "measured": ([] if estimate is None else [estimate]) + measured,
        "versions": versions,
        "intended_use": _intended_use(hasher, inner, record),
        "limits": _limits(inner, record),
    }


def measure(hasher: BaseHasher, X: SamplesLike, y: LabelsLike) -> dict[str, Any]:
    """Measure a fitted hasher on labeled rows that its fit has not seen, and add the result to its card.

    Every second row becomes an item without a label, the others become queries. A new measurement on the same rows
    replaces the earlier one; ``save`` writes it.

    Parameters
    ----------
    hasher : fitted hasher
    X : samples as for ``fit``, 20 or more
    y : array of shape (n_samples,), their labels

    Returns
    -------
    measurement : dict
        ``precision_at_10``: the share of the ten nearest items that are of the class of the query; ``accuracy`` of the
        queries, if the hasher predicts.
    """
    check_is_fitted(hasher)
    rows: Any = X
    n_samples = n_rows(rows)
    labels = check_labels(y, n_samples)
    if not labels.labeled.all() or n_samples < 2 * _N_NEAREST:
        raise ValueError(
            f"{int(labels.labeled.sum())} of {n_samples} rows have a label; a measurement needs {2 * _N_NEAREST} rows "
            "or more, all of them labeled. Leave out the others."
        )
    # Slices, because these select rows of a list, an array and a table alike.
    (items, item_index), (queries, query_index) = ((rows[start::2], labels.index[start::2]) for start in (0, 1))
    index = hasher.make_index(hasher.encode_database(items))
    _, found = index.search(cast(Any, hasher.encode_queries(queries)), k=_N_NEAREST)
    hits = item_index[found] == query_index[:, None]
    result: dict[str, Any] = {
        "how": f"held-out rows: {len(query_index):,} queries among {len(item_index):,} items without labels",
        "rows_sha256": data_digest(X),
        "precision_at_10": round(float(hits.mean()), 4),
    }
    if "predict" in hasher.supports:
        predicted = np.asarray(hasher.predict(queries))
        result["accuracy"] = round(float(np.mean(predicted == labels.classes[query_index])), 4)
    record = hasher.fit_record or {"versions": {}}
    others = [each for each in record.get("measured", []) if each.get("rows_sha256") != result["rows_sha256"]]
    hasher.fit_record_ = {**record, "measured": [*others, result]}
    return result


def card_markdown(card: Mapping[str, Any]) -> str:
    """Return a card as a page of Markdown."""
    model, data = card["model"], card["data"]
    lines = [f"# Model card: {model['method']}, {model['n_bits']} bits", "", card["intended_use"], "", "## Model", ""]
    about = {"method": model["method"], "paper": f"{model['paper']} ({model['year']})", "space": model["space_id"]}
    if model["steps"]:
        about["preprocessing"] = ", ".join(model["steps"])
    if model["choice"]:
        about["the fit chose"] = model["choice"]
    lines += [*_table(about), "", *_table(model["settings"], "setting")]
    lines += ["", "## Data", "", *_data_lines(data), *_column_lines(card["columns"]), "", "## Measured", ""]
    lines += [_measured_line(each) for each in card["measured"]] or [
        "Nothing yet. `starshl card MODEL --held-out FILE -o NEW_MODEL` measures on labeled rows."
    ]
    lines += ["", "## Limits", "", *(f"- {limit}" for limit in card["limits"])]
    if card["versions"]:
        lines += ["", "## Versions", "", ", ".join(f"{name} {text}" for name, text in sorted(card["versions"].items()))]
    return "\n".join(lines) + "\n"


def _describe_model(hasher: BaseHasher, inner: BaseHasher) -> dict[str, Any]:
    facts, settings = inner.current_facts, inner.get_params(deep=False)
    return {
        "method": hasher.method_name,
        "paper": facts.paper,
        "year": facts.year,
        "n_bits": hasher.n_bits_,
        "space_id": hasher.space_id_,
        "steps": [type(step).__name__ for step in hasher.fitted_steps],
        "settings": {name: _plain(value) for name, value in settings.items() if name not in _AS_RUN},
        "choice": inner.fit_summary.choice,
    }


def _plain(value: Any) -> Any:
    """Return a setting as JSON holds it; arrays by their shape, and objects by the name of their class."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return f"array of shape {value.shape}"
    if isinstance(value, Mapping):
        return {str(name): _plain(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if value is None or isinstance(value, str | bool | int | float):
        return value
    return str(value) if isinstance(value, slice) else getattr(value, "__name__", type(value).__name__)


def _intended_use(hasher: BaseHasher, inner: BaseHasher, record: Mapping[str, Any]) -> str:
    n_columns = record.get("columns")
    samples = f"samples ({inner.current_facts.samples})" if n_columns is None else f"rows of {n_columns:,} columns"
    what = "by Hamming distance" if inner.words is None else "by how likely items are of the class of a query"
    what += " and by neighbors" if inner.code_metric == "hybrid" else ""
    return (
        f"Turns {samples} into codes of {hasher.n_bits_} bits, for exact search {what} among items that this model has "
        "encoded, or another one of the same space."
    )


def _limits(inner: BaseHasher, record: Mapping[str, Any]) -> list[str]:
    summary = inner.fit_summary
    limits = ["Rows that are unlike the training rows get codes, too; you get no warning unless you ask for one."]
    if "novelty" in inner.supports:
        limits[0] = (
            "Rows of classes that the fit has not seen get the code of a known class; `novelty` and `predict(X, "
            "reject=0.05)` point them out."
        )
    if summary.agreement is not None:
        limits.append("Compressed: the codes differ a little from those of the model it was made from.")
    counts = list(record.get("label_counts", {}).values())
    if counts and max(counts) > _UNEVEN * min(counts):
        limits.append(
            f"Classes are uneven: the largest has {max(counts):,} labeled rows, the smallest {min(counts):,}."
        )
    if record.get("labeled") and record["labeled"] < record["rows"]:
        were_left_out = re.search("unlabeled rows? (was|were) left out", summary.choice or "")
        others = ", and the others were left out of the fit" if were_left_out else ""
        limits.append(f"{record['labeled']:,} of {record['rows']:,} rows had a label{others}.")
    limits += summary.cautions
    limits.append("Figures apply to rows like those they were measured on; they say nothing about fairness or harm.")
    return limits


def _data_lines(data: Mapping[str, Any]) -> list[str]:
    if not data:
        return ["Not recorded: the model was put together from parts that had been fitted before."]
    shown = {name: value for name, value in data.items() if name != "label_counts"}
    counts = data.get("label_counts", {})
    lines = _table({name.replace("_", " "): "-" if value is None else value for name, value in shown.items()})
    if 0 < len(counts) <= _MOST_SHOWN:
        lines += ["", *_table(counts, "label", "rows")]
    return lines


def _column_lines(roles: Sequence[Mapping[str, Any]]) -> list[str]:
    if not roles:
        return []
    if len(roles) > _MOST_SHOWN:
        return ["", f"Columns: {columns_sentence(roles)}."]
    rows = [[each["column"], each["role"], each.get("categories", ""), each.get("missing", "")] for each in roles]
    lines = [f"| {' | '.join(_cell(value) for value in row)} |" for row in rows]
    return ["", "| column | role | categories | missing |", "|---|---|---|---|", *lines]


def _measured_line(measured: Mapping[str, Any]) -> str:
    names = {"precision_at_10": "precision at 10", "accuracy": "accuracy"}
    figures = ", ".join(f"{text} {measured[name]:.4f}" for name, text in names.items() if name in measured)
    return f"- {figures} ({measured['how']})"


def _table(entries: Mapping[str, Any], name: str = "", value: str = "") -> list[str]:
    rows = [f"| {key} | {_cell(entry)} |" for key, entry in entries.items()]
    return [f"| {name} | {value} |", "|---|---|", *rows]


def _cell(value: Any) -> str:
    text = f"{value:,}" if type(value) is int else str(value)
    return text.replace("|", "\\|").replace("\n", " ")
