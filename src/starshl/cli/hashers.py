"""Hashers from what is typed: a method's name and settings, preprocessing, and code lengths with a model file each."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import OPTION_NAMES

if TYPE_CHECKING:
    from ..data.tables.reading import Table
    from ..hashers.base import BaseHasher

# Words that only one of the two methods knows, for a parameter that both have.
_WORDS_OF_STAR_SHL = {("unlabeled", "nearest"), ("kernels", "graph")}
_WORDS_OF_STAR_RIDGE = {("unlabeled", "ignore")}
_PYTHON_WORDS = {"True": True, "False": False, "None": None}  # JSON has its own spelling, which works too


def choose_method(params: dict[str, Any], *, paper: bool = False) -> str:
    """Return the method when none is named: StarRidge, or StarSHL if the options ask for what only StarSHL has."""
    of_star = _only_in("StarSHL", "StarRidge", params, _WORDS_OF_STAR_SHL) + ["paper"] * paper
    of_ridge = _only_in("StarRidge", "StarSHL", params, _WORDS_OF_STAR_RIDGE)
    if of_star and of_ridge:
        raise ValueError(
            f"Only StarSHL has {', '.join(of_star)}, and only StarRidge has {', '.join(of_ridge)}. "
            "Leave one of them out."
        )
    return "StarSHL" if of_star else "StarRidge"


def _only_in(method: str, other: str, params: dict[str, Any], words: set[tuple[str, str]]) -> list[str]:
    """Return the settings that one method has and the other has not."""
    from inspect import signature

    from ..hashers.catalog import get_class

    known, known_by_other = (signature(get_class(name)).parameters for name in (method, other))
    chosen_by_word = {name for name, _ in _WORDS_OF_STAR_SHL | _WORDS_OF_STAR_RIDGE}
    names = [name for name in params if name in known and name not in known_by_other and name not in chosen_by_word]
    return names + [f"{name}={word}" for name, word in sorted(words) if params.get(name) == word]


def make_hasher(
    method: str,
    n_bits: int,
    params: dict[str, Any] | None = None,
    *,
    paper: bool = False,
    seed: int = 0,
    progress: bool = False,
) -> BaseHasher:
    """Return an unfitted hasher; refuse parameters that its class does not have."""
    from inspect import signature

    from ..hashers.catalog import get_class

    params = params or {}
    hasher_class = get_class(method)
    known = list(signature(hasher_class).parameters)
    unknown = [name for name in params if name not in known]
    if unknown:
        taken = ", ".join(OPTION_NAMES.get(name, name) for name in known)
        raise ValueError(f"{method} has no parameter {', '.join(map(repr, unknown))}; it takes {taken}.")
    offered = {"random_state": seed, "verbose": int(progress)}
    params = {name: value for name, value in offered.items() if name in known} | params
    if not paper:
        return hasher_class(n_bits=n_bits, **params)
    if "paper" not in hasher_class.presets:
        raise ValueError(f"--paper stands for settings of StarSHL, but the method is {method}. Leave one of them out.")
    return hasher_class(n_bits=n_bits, **{**hasher_class.presets["paper"], **params})


@dataclass(frozen=True, slots=True)
class StepOptions:
    """The preprocessing that options ask for."""

    scale: bool = False
    impute: bool = False
    categories: bool = False
    text: str | None = None
    embedder: str | None = None

    def __post_init__(self) -> None:
        if self.embedder is not None and self.text is None:
            raise ValueError("--embedder makes features of texts, and --text names no column of them. Name it.")

    @property
    def read_text(self) -> bool:
        """Whether cells of text become features."""
        return self.categories or self.text is not None


def with_steps(hasher: BaseHasher, table: Table, options: StepOptions) -> BaseHasher:
    """Return the hasher together with the preprocessing that the options ask for."""
    from ..data.features.numeric import Impute, Scale
    from ..data.features.table import TableFeatures
    from ..hashers.prepared import PreparedHasher

    if options.read_text:
        column = None if options.text is None else _position(options.text, table)
        step = TableFeatures(text=column, impute=options.impute, scale=options.scale, embedder=options.embedder)
        return PreparedHasher([step], hasher)
    steps = ([Impute()] if options.impute else []) + ([Scale()] if options.scale else [])
    return PreparedHasher(steps, hasher) if steps else hasher


def _position(column: str, table: Table) -> int:
    names = table.feature_names or ()
    if column not in names:
        raise ValueError(f"--text names the column {column!r}; the columns are {', '.join(map(repr, names))}.")
    return names.index(column)


def parse_settings(settings: list[str] | None) -> dict[str, Any]:
    """Return parameters from words of the form NAME=VALUE."""
    from .._common.strict_json import parse_json

    params: dict[str, Any] = {}
    for setting in settings or ():
        name, equals, text = setting.partition("=")
        if not equals or not name:
            raise ValueError(f"--set got {setting!r}; write it as NAME=VALUE, for example --set tol=0.01.")
        try:
            params[name] = _PYTHON_WORDS[text] if text in _PYTHON_WORDS else parse_json(text)
        except ValueError:
            params[name] = text
    return params


def parse_lengths(text: str) -> tuple[int, ...]:
    """Return the code lengths in text such as "32" or "8,16,32,64"."""
    try:
        lengths = tuple(int(part) for part in text.split(","))
    except ValueError:
        raise ValueError(
            f"--bits got {text!r}; give a number such as 32, or several separated by commas, such as 8,16,32,64."
        ) from None
    if min(lengths) < 1:
        raise ValueError(f"--bits got {text!r}; every length must be at least 1.")
    if len(set(lengths)) < len(lengths):
        raise ValueError(f"--bits got {text!r}, which names a length twice. Name each length once.")
    return lengths


def model_files(output: Path, lengths: tuple[int, ...]) -> dict[int, Path]:
    """Return the file of each length: the output itself for one, and model.8.star, model.16.star, ... for several."""
    if len(lengths) == 1:
        return {lengths[0]: output}
    return {n_bits: output.with_name(f"{output.stem}.{n_bits}{output.suffix}") for n_bits in lengths}


def save_together(hashers: list[BaseHasher], files: list[Path]) -> None:
    """Write all model files; if one of them cannot be written, none appears."""
    from .._common.files import draft_folder

    if len(files) == 1:
        hashers[0].save(files[0])
        return
    drafts = draft_folder(files[0])
    try:
        for hasher, file in zip(hashers, files, strict=True):
            hasher.save(drafts / file.name)
        for file in files:
            os.replace(drafts / file.name, file)
    finally:
        shutil.rmtree(drafts, ignore_errors=True)
