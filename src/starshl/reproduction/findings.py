"""What tables and curves say in plain words: who wins, by how much, and what needs no learning at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..evaluation.reports.document import Runs, difference, digits_apart, interval, joined, signed
from ..evaluation.reports.statistics import Paired, means_of, paired, require_paired, shared_runs, summarize
from .compared_methods import is_star
from .results import CLASS_MEAN, ProtocolResults

BALANCED = "accuracy, balanced"
RANDOM, MAJORITY = "random order", "largest class"
_WARN_BELOW_RUNS = 5


def describe_ranking(where: str, metric: str, values: Mapping[str, Mapping[int, float]]) -> list[str]:
    """Say who is best, ahead of whom, and how far each row of *SHL is behind; ``values`` maps title to run -> value.

    Only runs that all rows have are counted. Rows of *SHL compete with the others, not with each other.

    Examples
    --------
    >>> describe_ranking("At 8 bits", "P@10", {"LSH": {0: 0.5}, "*SHL": {0: 0.4}})
    ['At 8 bits LSH is best with P@10 0.500, 0.100 ahead of *SHL (one run, no interval).',
     'At 8 bits *SHL does not win: place 2 of 2, 0.100 behind LSH (one run, no interval).']
    """
    common = shared_runs(values)
    rivals = [name for name in common if not is_star(name)]
    if len(common) < 2 or not rivals:
        return []
    ranking = ranking_of(common)
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


def _with_interval(gap: Paired) -> str:
    if gap.n == 1:
        return "one run, no interval"
    if gap.low is None:
        return f"{gap.n} paired runs, too few for an interval: {joined(map(signed, gap.differences))}"
    verdict = "clear" if gap.clear else "not clear"
    return f"95% interval {interval(gap)} over {gap.n} paired runs, {verdict}"


def ranking_of(common: Mapping[str, Mapping[int, float]]) -> list[str]:
    """Return names by their mean over the same runs, best first; nothing if there is no such run."""
    means = means_of(common)
    return sorted(means, key=lambda name: -means[name])


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


def warn_of_few_runs(n_runs: int) -> list[str]:
    """Warn about figures from few runs."""
    if n_runs >= _WARN_BELOW_RUNS:
        return []
    if n_runs == 1:
        return ["ONE RUN ONLY: how much figures change from run to run is not known yet, so this is not a ranking."]
    return [f"{n_runs} runs support no strong claim: read differences of a few thousandths as ties."]


def format_labels_used(protocol: ProtocolResults, method: str, n_bits: int | None) -> str:
    """Write how many labels a method learned from: a number, or a range if runs differ; "-" if it is not known."""
    numbers = sorted({int(number) for number in protocol.values(method, n_bits, "labels used").values()})
    return " to ".join(f"{number:,}" for number in dict.fromkeys([numbers[0], numbers[-1]])) if numbers else "-"


def rows_without_learning(protocol: ProtocolResults, metrics: Sequence[str]) -> dict[str, list[Runs]]:
    """Return what a random order of the database scores, and what naming or retrieving only the largest class does."""
    even = dict.fromkeys(protocol.majority_accuracy, 1 / protocol.n_classes)
    chance, always = protocol.random_precision, protocol.majority_accuracy
    random = {"P@10": chance, "P@50": chance, CLASS_MEAN: even}
    largest = {"P@10": always, "P@50": always, CLASS_MEAN: even, "accuracy": always, BALANCED: even}
    return {name: [own.get(metric, {}) for metric in metrics] for name, own in ((RANDOM, random), (MAJORITY, largest))}


def describe_class_sizes(protocol: ProtocolResults) -> list[str]:
    """Say in one sentence what needs no learning; nothing where classes are equally large."""
    chance, largest = (summarize(own.values()) for own in (protocol.random_precision, protocol.majority_accuracy))
    if not protocol.unequal or chance is None or largest is None:
        return []
    return [
        f"Classes are unequal: a random order of the database has a P@10 of {chance.mean:.3f}, and naming the "
        f"largest class an accuracy of {largest.mean:.3f} (balanced: {1 / protocol.n_classes:.3f})."
    ]
