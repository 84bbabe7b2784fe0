"""The section of a transductive protocol: accuracy over code length, both modes decoded the same way."""

from __future__ import annotations

from typing import TypeAlias

from ..evaluation.reports.document import (
    Block,
    Chart,
    Section,
    Table,
    Text,
    difference,
    interval,
    line_over,
    table_of_means,
)
from ..evaluation.reports.statistics import means_of, paired
from .compared_methods import is_star, title_of
from .coverage import introduction, section_title
from .findings import describe_ranking, transduction_findings, warn_of_few_runs
from .results import ProtocolResults

# Title -> length of the codes -> run -> value.
ByLength: TypeAlias = dict[str, dict[int, dict[int, float]]]
# The keys of the inductive and the transductive row of each setting.
_SETTINGS = {
    "paper settings": ("starshl-paper", "starshl-paper-transductive"),
    "defaults": ("starshl", "starshl-transductive"),
}
#: The metrics of an inductive and of a transductive run, by distance to the codewords.
DECODINGS = {
    "Hamming": ("accuracy, ties at random", "accuracy, ties at random"),
    "hinge": ("accuracy, hinge", "accuracy, transductive"),
}


def transductive_section(protocol: ProtocolResults) -> Section:
    """Return accuracy over code length: inductive and transductive, by Hamming and by hinge distance."""
    rows = {}
    for setting, methods in _SETTINGS.items():
        for decoding, metrics in DECODINGS.items():
            for mode, method, metric in zip(("inductive", "transductive"), methods, metrics, strict=True):
                rows[_row(mode, decoding, setting)] = (method, metric)
    rows[title_of("starridge")] = ("starridge", "accuracy")
    rows[title_of("starridge-transductive")] = ("starridge-transductive", "accuracy, transductive")
    rows[title_of("svc")] = ("svc", "accuracy")
    values = {
        name: {n_bits: protocol.values(method, n_bits, metric) for n_bits in protocol.lengths}
        for name, (method, metric) in rows.items()
    }
    values = {name: by_length for name, by_length in values.items() if any(by_length.values())}
    lines = (line_over(name, by_length.items(), emphasized=is_star(name)) for name, by_length in values.items())
    shown = tuple(line for line in lines if line is not None)
    blocks: list[Block | None] = [
        introduction(protocol),
        Text(tuple(_sentences(protocol, values))),
        Chart("Accuracy over the length of the codes", "bits", "accuracy", shown, tuple(protocol.lengths)),
        _accuracy_table(protocol, values),
        _gains_table(protocol, values),
    ]
    return Section(section_title(protocol), protocol.name, [block for block in blocks if block is not None])


def _row(mode: str, decoding: str, setting: str) -> str:
    return f"*SHL {mode}, {decoding} ({setting})"


def _sentences(protocol: ProtocolResults, values: ByLength) -> list[str]:
    n_bits = protocol.lengths[-1]
    sentences = [
        "Both modes are decoded the same way. By Hamming distance, a query has the class of the nearest codeword, and "
        "the expected accuracy of a random pick if several are equally near; by hinge distance there are no ties.",
        "The paper assigns unlabeled rows by hinge distance. To compare that with ties at random would count a finer "
        "decoding as a gain of transduction. With the default settings, labels spread over the neighbor graph of all "
        "rows.",
        "Code lengths of 4 to 15 bits are our reading of the paper's plots.",
    ]
    rows = {name: runs[n_bits] for name, runs in values.items()}
    sentences += describe_ranking(f"At {n_bits} bits", "accuracy", _best_of_each_setting(rows))
    for setting in _SETTINGS:
        for decoding in DECODINGS:
            before, after = (values.get(_row(mode, decoding, setting)) for mode in ("inductive", "transductive"))
            if before is not None and after is not None:
                sentences += transduction_findings(n_bits, before[n_bits], after[n_bits], decoding, setting)
    return sentences + warn_of_few_runs(protocol.n_runs)


def _best_of_each_setting(rows: dict[str, dict[int, float]]) -> dict[str, dict[int, float]]:
    """Leave out the rows of *SHL that are behind another row with the same settings."""
    means = means_of(rows)
    surpassed = set()
    for setting in _SETTINGS:
        own = [name for name in means if name.endswith(f"({setting})")]
        surpassed |= set(own) - ({max(own, key=means.__getitem__)} if own else set())
    return {name: runs for name, runs in rows.items() if name not in surpassed}


def _accuracy_table(protocol: ProtocolResults, values: ByLength) -> Table:
    cells = {name: [by_length[n_bits] for n_bits in protocol.lengths] for name, by_length in values.items()}
    columns = ("row", *(f"{n_bits} bits" for n_bits in protocol.lengths))
    return table_of_means("Accuracy, mean and deviation over runs; best in bold", columns, cells)


def _gains_table(protocol: ProtocolResults, values: ByLength) -> Table | None:
    rows = []
    lengths = (protocol.lengths[0], protocol.lengths[len(protocol.lengths) // 2], protocol.lengths[-1])
    for setting in _SETTINGS:
        for decoding in DECODINGS:
            before, after = (values.get(_row(mode, decoding, setting), {}) for mode in ("inductive", "transductive"))
            for n_bits in dict.fromkeys(lengths):
                gain = paired(after.get(n_bits, {}), before.get(n_bits, {}))
                if gain is not None:
                    cells = (difference(gain), interval(gain), f"{gain.n_won} of {gain.n}")
                    rows.append((f"transductive minus inductive, {decoding} ({setting})", str(n_bits), *cells))
    columns = ("difference", "bits", "mean", "95% interval", "runs won")
    caption = "What transduction gains, on the same rows from the same first codewords"
    return Table(caption, columns, tuple(rows), n_text_columns=1) if rows else None
