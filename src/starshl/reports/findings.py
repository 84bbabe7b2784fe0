"""In plain words: who wins, by how much, and where *SHL does not."""

from __future__ import annotations

from collections.abc import Mapping

from ..experiments import CONTESTANTS
from .document import difference, interval
from .results import ProtocolResults
from .statistics import Paired, paired, summarize

__all__ = ["contest", "few_runs", "retrieval_findings", "star_methods", "transduction_findings"]

_HASHERS = {entry.title for entry in CONTESTANTS.values() if entry.kind == "hasher"}
_STARS = ("*SHL, paper settings", "*SHL, defaults")
_FEW_RUNS = 5


def star_methods(found: ProtocolResults) -> list[str]:
    """Return the settings of *SHL that took part."""
    return [method for method in _STARS if method in found.methods]


def retrieval_findings(found: ProtocolResults) -> list[str]:
    """Return sentences about P@10, from the longest code on."""
    sentences = []
    for n_bits in found.shown_lengths:
        sentences += contest(f"At {n_bits} bits", "P@10", _hashers_at(found, n_bits))
    sentences += _lengths_lost(found)
    sentences += _yardsticks(found)
    return sentences + few_runs(found.n_runs)


def few_runs(n_runs: int) -> list[str]:
    """Warn of figures from few runs."""
    if n_runs >= _FEW_RUNS:
        return []
    runs = "One run supports" if n_runs == 1 else f"{n_runs} runs support"
    return [f"{runs} no strong claim: read differences of a few thousandths as ties."]


def contest(where: str, metric: str, values: Mapping[str, Mapping[int, float]]) -> list[str]:
    """Say who is best, ahead of whom, and how far each row of *SHL is behind; ``values`` maps name to run -> value.

    Examples
    --------
    >>> contest("At 8 bits", "P@10", {"LSH": {0: 0.5}, "*SHL": {0: 0.4}})
    ['At 8 bits LSH is best with P@10 0.500, +0.100 to *SHL (one run, no interval).',
     'At 8 bits *SHL does not win: place 2 of 2, -0.100 to LSH (one run, no interval).']
    """
    ranking = _ranking(values)
    if len(ranking) < 2:
        return []
    best, second = ranking[:2]
    mean = summarize(values[best].values()).mean
    sentences = [f"{where} {best} is best with {metric} {mean:.3f}{_compared(values[best], values[second], second)}."]
    for place, name in enumerate(ranking[1:], start=2):
        if name.startswith("*SHL"):
            gap = _compared(values[name], values[best], best)
            sentences.append(f"{where} {name} does not win: place {place} of {len(ranking)}{gap}.")
    return sentences


def _ranking(values: Mapping[str, Mapping[int, float]]) -> list[str]:
    """Return names by their mean, best first."""
    summaries = {name: summarize(runs.values()) for name, runs in values.items()}
    means = {name: summary.mean for name, summary in summaries.items() if summary is not None}
    return sorted(means, key=lambda name: -means[name])


def _compared(first: Mapping[int, float], second: Mapping[int, float], name: str) -> str:
    gap = paired(first, second)
    return "" if gap is None else f", {difference(gap)} to {name} ({_with_interval(gap)})"


def _with_interval(found: Paired) -> str:
    if found.low is None:
        return "one run, no interval"
    verdict = "clear" if found.clear else "not clear"
    return f"95 % interval {interval(found)} over {found.n} paired runs, {verdict}"


def transduction_findings(n_bits: int, rows: Mapping[str, Mapping[int, float]], setting: str) -> list[str]:
    """Say what transduction gains on either way of decoding; ``rows`` has "Hamming", "hinge" and "transductive"."""
    sentences = []
    for decoding in ("Hamming", "hinge"):
        gain = paired(rows["transductive"], rows[decoding])
        if gain is not None:
            sentences.append(
                f"At {n_bits} bits with {setting} transduction changes the accuracy by {difference(gain)} against the "
                f"nearest codeword by {decoding} distance ({_with_interval(gain)})."
            )
    return sentences


def _hashers_at(found: ProtocolResults, n_bits: int) -> dict[str, dict[int, float]]:
    return {method: found.values(method, n_bits, "P@10") for method in found.methods if method in _HASHERS}


def _lengths_lost(found: ProtocolResults) -> list[str]:
    rankings = {n_bits: _ranking(_hashers_at(found, n_bits)) for n_bits in found.lengths}
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
