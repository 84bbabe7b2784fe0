"""In plain words: who wins, by how much, and where *SHL does not."""

from __future__ import annotations

from ..experiments import CONTESTANTS
from .document import difference, interval
from .results import ProtocolResults
from .statistics import Paired, paired, summarize

__all__ = ["retrieval_findings", "star_methods"]

_HASHERS = {entry.title for entry in CONTESTANTS.values() if entry.kind == "hasher"}
_STARS = ("*SHL, paper settings", "*SHL, defaults")
_FEW_RUNS = 5


def star_methods(found: ProtocolResults) -> list[str]:
    """Return the settings of *SHL that took part."""
    return [method for method in _STARS if method in found.methods]


def retrieval_findings(found: ProtocolResults) -> list[str]:
    """Return sentences about P@10, from the longest code on."""
    sentences = [sentence for n_bits in found.shown_lengths for sentence in _at_length(found, n_bits)]
    sentences += _lengths_lost(found)
    sentences += _yardsticks(found)
    if found.n_runs < _FEW_RUNS:
        runs = "One run supports" if found.n_runs == 1 else f"{found.n_runs} runs support"
        sentences.append(f"{runs} no strong claim: read differences of a few thousandths as ties.")
    return sentences


def _ranking(found: ProtocolResults, n_bits: int) -> list[tuple[str, float]]:
    """Return hashers and their mean P@10, best first."""
    summaries = {method: summarize(found.values(method, n_bits, "P@10").values()) for method in found.methods}
    means = {method: s.mean for method, s in summaries.items() if s is not None and method in _HASHERS}
    return sorted(means.items(), key=lambda entry: -entry[1])


def _at_length(found: ProtocolResults, n_bits: int) -> list[str]:
    ranking = _ranking(found, n_bits)
    if len(ranking) < 2:
        return []
    (best, mean), (second, _) = ranking[:2]
    lead = paired(found.values(best, n_bits, "P@10"), found.values(second, n_bits, "P@10"))
    sentences = [f"At {n_bits} bits {best} is best with P@10 {mean:.3f}{_ahead_of(lead, second)}."]
    for star in star_methods(found):
        gap = paired(found.values(star, n_bits, "P@10"), found.values(best, n_bits, "P@10"))
        if star == best or gap is None:
            continue
        place = [method for method, _ in ranking].index(star) + 1
        sentences.append(
            f"At {n_bits} bits {star} does not win: place {place} of {len(ranking)}, {difference(gap)} to {best} "
            f"({_with_interval(gap)})."
        )
    return sentences


def _ahead_of(lead: Paired | None, second: str) -> str:
    if lead is None:
        return ""
    return f", {difference(lead)} to {second} ({_with_interval(lead)})"


def _with_interval(found: Paired) -> str:
    if found.low is None:
        return "one run, no interval"
    verdict = "clear" if found.clear else "not clear"
    return f"95 % interval {interval(found)} over {found.n} paired runs, {verdict}"


def _lengths_lost(found: ProtocolResults) -> list[str]:
    rankings = {n_bits: [method for method, _ in _ranking(found, n_bits)] for n_bits in found.lengths}
    winners = {n_bits: methods[0] for n_bits, methods in rankings.items() if set(methods) - set(_STARS)}
    lost = {n_bits: best for n_bits, best in winners.items() if best not in _STARS}
    if not star_methods(found) or not winners:
        return []
    if not lost:
        return ["*SHL, in one setting or the other, is first at every length."]
    told = ", ".join(f"{n_bits} ({best})" for n_bits, best in lost.items())
    return [f"Neither setting of *SHL is first at {len(lost)} of {len(winners)} lengths; bits and winner: {told}."]


def _yardsticks(found: ProtocolResults) -> list[str]:
    sentences = []
    svc = summarize(found.values("one-vs-one SVC", None, "accuracy").values())
    rows = summarize(found.values("float search", None, "P@10").values())
    if svc is not None:
        sentences.append(f"A plain one-vs-one SVC names the class of a query right with {svc.mean:.3f}.")
    if rows is not None:
        sentences.append(f"Euclidean search of the rows themselves has P@10 {rows.mean:.3f}.")
    return sentences
