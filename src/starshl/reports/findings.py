"""In plain words: who wins, by how much, and where *SHL does not."""

from __future__ import annotations

from collections.abc import Mapping

from ..experiments import CONTESTANTS
from .document import difference, digits_apart, interval, listed, signed
from .results import ProtocolResults
from .statistics import Paired, paired, shared_runs, summarize

__all__ = ["contest", "few_runs", "is_star", "retrieval_findings", "star_methods", "told_gap", "transduction_findings"]

_HASHERS = {entry.title for entry in CONTESTANTS.values() if entry.kind == "hasher"}
_STARS = ("*SHL, paper settings", "*SHL, defaults")
_FEW_RUNS = 5


def is_star(name: str) -> bool:
    """Say whether a row is *SHL, under whatever settings."""
    return name.startswith("*SHL")


def star_methods(found: ProtocolResults) -> list[str]:
    """Return the settings of *SHL that took part."""
    return [method for method in _STARS if method in found.methods]


def retrieval_findings(found: ProtocolResults) -> list[str]:
    """Return sentences about P@10, from the longest code on."""
    sentences = []
    for n_bits in found.shown_lengths:
        values = _hashers_at(found, n_bits)
        sentences += contest(f"At {n_bits} bits", "P@10", values)
        absent = [star for star in _STARS if not values.get(star)]
        sentences += [f"At {n_bits} bits {' and '.join(absent)} took no part."] if absent else []
    sentences += _lengths_lost(found)
    sentences += _yardsticks(found)
    return sentences + few_runs(found.n_runs)


def few_runs(n_runs: int) -> list[str]:
    """Warn of figures from few runs."""
    if n_runs >= _FEW_RUNS:
        return []
    if n_runs == 1:
        return ["ONE RUN ONLY: how much figures change from run to run is not known, so they rank nothing for certain."]
    return [f"{n_runs} runs support no strong claim: read differences of a few thousandths as ties."]


def contest(where: str, metric: str, values: Mapping[str, Mapping[int, float]]) -> list[str]:
    """Say who is best, ahead of whom, and how far each row of *SHL is behind; ``values`` maps name to run -> value.

    Only runs that all have are counted. Rows of *SHL are rivals of the others, not of each other.

    Examples
    --------
    >>> contest("At 8 bits", "P@10", {"LSH": {0: 0.5}, "*SHL": {0: 0.4}})
    ['At 8 bits LSH is best with P@10 0.500, 0.100 ahead of *SHL (one run, no interval).',
     'At 8 bits *SHL does not win: place 2 of 2, 0.100 behind LSH (one run, no interval).']
    """
    common = shared_runs(values)
    rivals = [name for name in common if not is_star(name)]
    if len(common) < 2 or not rivals:
        return []
    ranking = _ranking(common)
    if not ranking:
        return [f"{where} no run is common to all methods, so none is called best."]
    best = ranking[0]
    second = next(name for name in ranking[1:] if not is_star(best) or not is_star(name))
    means = [summarize(common[name].values()).mean for name in (best, second)]
    gap = told_gap(common[best], common[second], second)
    sentences = [f"{where} {best} is best with {metric} {means[0]:.{digits_apart(*means)}f}, {gap}."]
    rivals = [name for name in ranking if name in rivals]
    alone = ", other rows of *SHL not counted" if len(ranking) - len(rivals) > 1 else ""
    for star in filter(is_star, ranking):
        above = rivals[: sum(ranking.index(rival) < ranking.index(star) for rival in rivals)]
        if above:
            gap = told_gap(common[star], common[above[0]], above[0])
            place = f"place {len(above) + 1} of {len(rivals) + 1}" + alone
            sentences.append(f"{where} {star} does not win: {place}, {gap}.")
    return sentences


def told_gap(first: Mapping[int, float], second: Mapping[int, float], name: str) -> str:
    """Write how far the first is ahead of the second, called ``name``, or behind, and how sure that is."""
    gap = paired(first, second)
    size = signed(gap.difference).lstrip("+-")
    return f"{size} {'ahead of' if gap.difference >= 0 else 'behind'} {name} ({_with_interval(gap)})"


def _ranking(common: Mapping[str, Mapping[int, float]]) -> list[str]:
    """Return names by their mean over the same runs, best first; nothing if there is no such run."""
    means = {name: summarize(runs.values()).mean for name, runs in common.items() if runs}
    return sorted(means, key=lambda name: -means[name])


def _with_interval(found: Paired) -> str:
    if found.n == 1:
        return "one run, no interval"
    if found.low is None:
        return f"{found.n} paired runs, too few for an interval: {listed(map(signed, found.differences))}"
    verdict = "clear" if found.clear else "not clear"
    return f"95 % interval {interval(found)} over {found.n} paired runs, {verdict}"


def transduction_findings(n_bits: int, rows: Mapping[str, Mapping[int, float]], setting: str) -> list[str]:
    """Say what transduction gains on each way of decoding; ``rows`` maps these and "transductive" to run -> value."""
    sentences = []
    for decoding, runs in rows.items():
        gain = paired(rows["transductive"], runs)
        if decoding != "transductive" and gain is not None:
            sentences.append(
                f"At {n_bits} bits with {setting} transduction changes the accuracy by {difference(gain)} against the "
                f"nearest codeword by {decoding} ({_with_interval(gain)})."
            )
    return sentences


def _hashers_at(found: ProtocolResults, n_bits: int) -> dict[str, dict[int, float]]:
    return {method: found.values(method, n_bits, "P@10") for method in found.methods if method in _HASHERS}


def _lengths_lost(found: ProtocolResults) -> list[str]:
    rankings = [(n_bits, _ranking(shared_runs(_hashers_at(found, n_bits)))) for n_bits in found.lengths]
    winners = {
        n_bits: methods[0] for n_bits, methods in rankings if {is_star(name) for name in methods} == {True, False}
    }
    lost = {n_bits: best for n_bits, best in winners.items() if not is_star(best)}
    if not winners:
        return []
    if not lost:
        extent = "every length" if len(winners) == len(found.lengths) else f"{listed(winners)} bits, where it was run"
        return [f"*SHL, in one setting or the other, is first at {extent}."]
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
