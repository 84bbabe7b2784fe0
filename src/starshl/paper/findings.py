"""Say in plain words who wins, by how much, and where *SHL does not win."""

from __future__ import annotations

from collections.abc import Mapping

from ..reports.document import difference, digits_apart, interval, listed, signed
from ..reports.results import ProtocolResults
from ..reports.statistics import Paired, means_of, paired, require_paired, shared_runs, summarize
from .lineup import hashers_among, is_star, title_of
from .unequal import told_if_unequal

__all__ = [
    "STAR_KEYS",
    "contest",
    "describe_gap",
    "few_runs",
    "retrieval_findings",
    "shown_lengths",
    "transduction_findings",
]

STAR_KEYS = ("starshl-paper", "starshl")

_LENGTHS_OF_THE_PAPERS_CURVES = (45, 15)
_WARN_BELOW_RUNS = 5


def shown_lengths(protocol: ProtocolResults) -> list[int]:
    """Return the lengths at which lists and curves are shown: those of the paper, or the longest available."""
    return [n_bits for n_bits in _LENGTHS_OF_THE_PAPERS_CURVES if n_bits in protocol.lengths] or protocol.lengths[-1:]


def retrieval_findings(protocol: ProtocolResults) -> list[str]:
    """Return sentences about P@10, starting with the longest codes."""
    sentences = []
    for n_bits in shown_lengths(protocol):
        values = _hashers_at(protocol, n_bits)
        sentences += contest(f"At {n_bits} bits", "P@10", values)
        absent = [star for star in map(title_of, STAR_KEYS) if not values.get(star)]
        sentences += [f"At {n_bits} bits {' and '.join(absent)} was not run."] if absent else []
    sentences += _lengths_lost(protocol)
    sentences += _yardsticks(protocol)
    return sentences + few_runs(protocol.n_runs)


def few_runs(n_runs: int) -> list[str]:
    """Warn about figures from few runs."""
    if n_runs >= _WARN_BELOW_RUNS:
        return []
    if n_runs == 1:
        return ["ONE RUN ONLY: how much figures change from run to run is not known yet, so this is not a ranking."]
    return [f"{n_runs} runs support no strong claim: read differences of a few thousandths as ties."]


def contest(where: str, metric: str, values: Mapping[str, Mapping[int, float]]) -> list[str]:
    """Say who is best, ahead of whom, and how far each row of *SHL is behind; ``values`` maps title to run -> value.

    Only runs that all rows have are counted. Rows of *SHL compete with the others, not with each other.

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
        return [f"{where} all methods have no run in common, so none is called best."]
    best = ranking[0]
    second = next(name for name in ranking[1:] if not is_star(best) or not is_star(name))
    all_means = means_of(common)
    means = [all_means[name] for name in (best, second)]
    gap = describe_gap(common[best], common[second], second)
    sentences = [f"{where} {best} is best with {metric} {means[0]:.{digits_apart(*means)}f}, {gap}."]
    rivals = [name for name in ranking if name in rivals]
    alone = ", other rows of *SHL not counted" if len(ranking) - len(rivals) > 1 else ""
    for star in filter(is_star, ranking):
        above = rivals[: sum(ranking.index(rival) < ranking.index(star) for rival in rivals)]
        if above:
            gap = describe_gap(common[star], common[above[0]], above[0])
            place = f"place {len(above) + 1} of {len(rivals) + 1}" + alone
            sentences.append(f"{where} {star} does not win: {place}, {gap}.")
    return sentences


def describe_gap(first: Mapping[int, float], second: Mapping[int, float], name: str) -> str:
    """Write how far the first is ahead of, or behind, the second, which is called ``name``, and how sure that is."""
    gap = require_paired(first, second)
    if not any(gap.differences):
        return f"equal to {name} in {'the only run' if gap.n == 1 else f'all {gap.n} runs'}"
    size = signed(gap.difference).lstrip("+-")
    return f"{size} {'ahead of' if gap.difference >= 0 else 'behind'} {name} ({_with_interval(gap)})"


def _ranking(common: Mapping[str, Mapping[int, float]]) -> list[str]:
    """Return names by their mean over the same runs, best first; nothing if there is no such run."""
    means = means_of(common)
    return sorted(means, key=lambda name: -means[name])


def _with_interval(gap: Paired) -> str:
    if gap.n == 1:
        return "one run, no interval"
    if gap.low is None:
        return f"{gap.n} paired runs, too few for an interval: {listed(map(signed, gap.differences))}"
    verdict = "clear" if gap.clear else "not clear"
    return f"95% interval {interval(gap)} over {gap.n} paired runs, {verdict}"


def transduction_findings(
    n_bits: int, before: Mapping[int, float], after: Mapping[int, float], decoding: str, setting: str
) -> list[str]:
    """Say what transduction gains if both modes are decoded the same way, from run -> accuracy of each."""
    gain = paired(after, before)
    if gain is None:
        return []
    return [
        f"At {n_bits} bits with {setting}, both decoded by {decoding} distance, transduction changes the accuracy by "
        f"{difference(gain)} ({_with_interval(gain)})."
    ]


def _hashers_at(protocol: ProtocolResults, n_bits: int) -> dict[str, dict[int, float]]:
    return {title_of(key): protocol.values(key, n_bits, "P@10") for key in hashers_among(protocol.methods)}


def _lengths_lost(protocol: ProtocolResults) -> list[str]:
    rankings = [(n_bits, _ranking(shared_runs(_hashers_at(protocol, n_bits)))) for n_bits in protocol.lengths]
    winners = {
        n_bits: methods[0] for n_bits, methods in rankings if {is_star(name) for name in methods} == {True, False}
    }
    lost = {n_bits: best for n_bits, best in winners.items() if not is_star(best)}
    if not winners:
        return []
    if not lost:
        all_lengths = len(winners) == len(protocol.lengths)
        extent = "every length" if all_lengths else f"{listed(winners)} bits, the lengths it was run at"
        return [f"*SHL, with one setting or the other, is first at {extent}."]
    losses = ", ".join(f"{n_bits} ({best})" for n_bits, best in lost.items())
    return [f"Neither setting of *SHL is first at {len(lost)} of {len(winners)} lengths; bits and winner: {losses}."]


def _yardsticks(protocol: ProtocolResults) -> list[str]:
    sentences = []
    svc = summarize(protocol.values("svc", None, "accuracy").values())
    rows = summarize(protocol.values("float", None, "P@10").values())
    if svc is not None:
        sentences.append(f"A plain one-vs-one SVC has an accuracy of {svc.mean:.3f} on the queries.")
    if rows is not None:
        sentences.append(f"Euclidean search of the rows themselves has a P@10 of {rows.mean:.3f}.")
    return sentences + told_if_unequal(protocol)
