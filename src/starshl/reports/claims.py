"""Every claim of the paper's experiments section, checked against the records.

Claims are about means over runs, with the paper's settings of *SHL. "Flat" is a loss of at most 0.01 from P@10 to P@50;
"useful" is a P@10 above that of Euclidean search of the rows themselves, chance being told beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from .results import ProtocolResults, Results
from .statistics import summarize

__all__ = ["FLAT", "Verdict", "check_claims"]

FLAT = 0.01
_LONGEST_LIST = 50

_STAR = "*SHL, paper settings"
_TRANSDUCTIVE = "*SHL transductive, paper settings"
_UNSUPERVISED = ("1-AGH", "2-AGH", "SPH", "LSH")
_OTHERS = ("KSH", "BRE", *_UNSUPERVISED)
_DIGITS = ("pendigits", "usps", "mnist", "digits")
_NO_DIGITS = ("cifar10", "pascal07")


@dataclass(frozen=True, slots=True)
class Verdict:
    """A claim on one protocol: ``holds`` is None if the records do not suffice."""

    claim: str
    protocol: str
    dataset: str
    holds: bool | None
    figures: str

    @property
    def word(self) -> str:
        return {True: "holds", False: "does not hold", None: "not measured"}[self.holds]


def check_claims(results: Results) -> list[Verdict]:
    """Return a verdict for every claim on every protocol that it is about; claims without any come once."""
    verdicts = []
    for claim, task, datasets, check in _CLAIMS:
        about = [found for found in results.of_task(task) if datasets is None or found.dataset in datasets]
        for found in about:
            holds, figures = check(found)
            verdicts.append(Verdict(claim, found.name, found.dataset, holds, figures))
        if not about:
            verdicts.append(Verdict(claim, "", "", None, "no runs"))
    return verdicts


def _mean(found: ProtocolResults, method: str, n_bits: int | None, metric: str = "P@10") -> float | None:
    summary = summarize(found.values(method, n_bits, metric).values())
    return None if summary is None else summary.mean


def _means(found: ProtocolResults, methods, n_bits: int, metric: str = "P@10") -> dict[str, float]:
    means = {method: _mean(found, method, n_bits, metric) for method in methods}
    return {method: mean for method, mean in means.items() if mean is not None}


def _told(means: dict[str, float]) -> str:
    return ", ".join(f"{method} {mean:.3f}" for method, mean in means.items())


def _best_everywhere(found: ProtocolResults) -> tuple[bool | None, str]:
    lost, compared = [], []
    for n_bits in found.lengths:
        star, others = _mean(found, _STAR, n_bits), _means(found, _OTHERS, n_bits)
        if star is None or not others:
            continue
        best = max(others, key=others.get)
        compared.append(f"{n_bits} bits: {star:.3f}, best other {best} {others[best]:.3f}")
        if others[best] >= star:
            lost.append(n_bits)
    if not compared:
        return None, "no runs"
    where = f"not at {', '.join(map(str, lost))} bits. " if lost else ""
    return not lost, where + "; ".join(compared)


def _at_longest(needed: tuple[str, ...]) -> Callable:
    """Return a decorator that calls a check with the means at the longest length that has all methods needed."""

    def decorate(check: Callable[[ProtocolResults, int], tuple[bool, str]]):
        def checked(found: ProtocolResults) -> tuple[bool | None, str]:
            for n_bits in reversed(found.lengths):
                if len(_means(found, needed, n_bits)) == len(needed):
                    holds, figures = check(found, n_bits)
                    return holds, f"{n_bits} bits: {figures}"
            return None, f"needs {', '.join(needed)}"

        return checked

    return decorate


@_at_longest((_STAR, "KSH", *_UNSUPERVISED))
def _supervised_above(found: ProtocolResults, n_bits: int) -> tuple[bool, str]:
    with_labels, without = _means(found, (_STAR, "KSH"), n_bits), _means(found, _UNSUPERVISED, n_bits)
    return min(with_labels.values()) > max(without.values()), f"{_told(with_labels)}; {_told(without)}"


@_at_longest(("BRE", *_UNSUPERVISED))
def _bre_not_above(found: ProtocolResults, n_bits: int) -> tuple[bool, str]:
    bre, without = _mean(found, "BRE", n_bits), _means(found, _UNSUPERVISED, n_bits)
    return bre <= max(without.values()), f"BRE {bre:.3f}; {_told(without)}"


def _if_classes_suffice(check: Callable) -> Callable:
    """Return a check that is left out where a class has fewer rows than the longest list: every method falls there."""

    def checked(found: ProtocolResults) -> tuple[bool | None, str]:
        if found.smallest_class < _LONGEST_LIST:
            return None, f"a class has {found.smallest_class} training rows, fewer than the {_LONGEST_LIST} looked at"
        return check(found)

    return checked


def _losses(found: ProtocolResults, methods, n_bits: int) -> dict[str, float]:
    near, far = _means(found, methods, n_bits), _means(found, methods, n_bits, "P@50")
    return {method: near[method] - far[method] for method in methods if method in near and method in far}


@_if_classes_suffice
@_at_longest(("BRE", *_UNSUPERVISED))
def _others_degrade(found: ProtocolResults, n_bits: int) -> tuple[bool, str]:
    losses = _losses(found, ("BRE", *_UNSUPERVISED), n_bits)
    return all(loss > FLAT for loss in losses.values()), f"loss from P@10 to P@50: {_told(losses)}"


@_if_classes_suffice
@_at_longest((_STAR, "KSH"))
def _supervised_flat(found: ProtocolResults, n_bits: int) -> tuple[bool, str]:
    losses = _losses(found, (_STAR, "KSH"), n_bits)
    return all(loss <= FLAT for loss in losses.values()), f"loss from P@10 to P@50: {_told(losses)}"


@_if_classes_suffice
@_at_longest(("1-AGH", "2-AGH"))
def _two_layers_flatter(found: ProtocolResults, n_bits: int) -> tuple[bool, str]:
    losses = _losses(found, ("1-AGH", "2-AGH"), n_bits)
    return losses["2-AGH"] < losses["1-AGH"], f"loss from P@10 to P@50: {_told(losses)}"


@_at_longest((_STAR, *_OTHERS, "float search"))
def _only_two_useful(found: ProtocolResults, n_bits: int) -> tuple[bool, str]:
    bar = _mean(found, "float search", n_bits)
    means = _means(found, (_STAR, *_OTHERS), n_bits)
    useful = {method for method, mean in means.items() if mean > bar}
    figures = f"float search {bar:.3f}, chance {1 / found.n_classes:.3f} if classes were equal; {_told(means)}"
    return useful == {_STAR, "KSH"}, figures


def _transduction_helps(found: ProtocolResults) -> tuple[bool | None, str]:
    lost, told = [], []
    for n_bits in found.lengths:
        before = _mean(found, _STAR, n_bits, "accuracy")
        after = _mean(found, _TRANSDUCTIVE, n_bits, "accuracy, transductive")
        hinge = _mean(found, _STAR, n_bits, "accuracy, hinge")
        if before is None or after is None:
            continue
        told.append(f"{n_bits} bits: {before:.3f} to {after:.3f} (inductive by hinge distance {hinge:.3f})")
        if after <= before:
            lost.append(n_bits)
    if not told:
        return None, "no runs"
    where = f"not at {', '.join(map(str, lost))} bits. " if lost else ""
    return not lost, where + "; ".join(_ends(told))


def _ends(told: list[str]) -> Iterator[str]:
    """Yield the first, middle and last of a long list."""
    picked = {0, len(told) // 2, len(told) - 1}
    yield from (text for place, text in enumerate(told) if place in picked)


_CLAIMS = (
    ("*SHL is best, at every code length", "retrieval", None, _best_everywhere),
    ("Supervised methods (*SHL, KSH) beat the unsupervised ones", "retrieval", None, _supervised_above),
    ("BRE is the exception: no better than the unsupervised ones", "retrieval", None, _bre_not_above),
    ("BRE and unsupervised methods degrade as s grows from 10 to 50", "retrieval", None, _others_degrade),
    ("*SHL and KSH stay flat as s grows from 10 to 50", "retrieval", None, _supervised_flat),
    ("2-AGH is flatter in s than 1-AGH on digits", "retrieval", _DIGITS, _two_layers_flatter),
    ("Only *SHL and KSH are useful on sets other than digits", "retrieval", _NO_DIGITS, _only_two_useful),
    ("Transductive *SHL beats inductive *SHL, at every code length", "transductive", None, _transduction_helps),
)
