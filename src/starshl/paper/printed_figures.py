"""A small table for each printed figure of the paper, next to what the paper says about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..reports.document import Block, Drawing, Section, Table, Text, counted, listed
from ..reports.results import ProtocolResults, Results
from ..reports.tables import Runs, table_of_means
from .claims import CLAIMS, Verdict
from .figures import FIGURES, Figure
from .lineup import title_of
from .notes import UNPUBLISHED_DATA_NOTE, unpublished
from .pictures import N_RETRIEVED, PAPERS_LENGTH, QUERY_CLASS, QUERY_RULE

__all__ = ["SHOWN", "printed_sections"]

SHOWN = (
    *("starshl-paper", "ksh", "bre", "1-agh", "2-agh", "sph", "lsh"),
    *("ksh-all", "starshl", "starridge", "float"),
)
RANDOM, MAJORITY = "random order", "largest class"

_TITLES = {
    "pendigits": "Pendigits",
    "usps": "USPS",
    "mnist": "MNIST",
    "cifar10": "CIFAR-10",
    "pascal07": "PASCAL07",
    "pictures": "retrieved pictures of CIFAR-10",
    "transductive": "transduction on Vowel and Letter",
}
_LENGTHS = (5, 15, 45)
_TRANSDUCTIVE_LENGTHS = (4, 8, 12, 15)
_ABOUT_ALL = (
    "*SHL is best at every length and strong at short ones, with the largest PR area; supervised methods beat "
    "unsupervised ones, except BRE, which needs longer codes"
)
_SAYS = {
    "pendigits": f"{_ABOUT_ALL}; AGH is good among the unsupervised methods, and 2-AGH is flatter in s than 1-AGH.",
    "usps": "the same as about Pendigits.",
    "mnist": "the same as about Pendigits.",
    "cifar10": "*SHL is significantly better than all others; only *SHL and KSH are useful.",
    "pascal07": "the same as about CIFAR-10.",
    "pictures": "*SHL retrieves more pictures of the query's class than the other methods do.",
    "transductive": "transduction shows merit across a range of code lengths.",
}
_TRANSDUCTIVE_ROWS = (
    ("inductive, Hamming", "starshl-paper", "accuracy, ties at random"),
    ("transductive, Hamming", "starshl-paper-transductive", "accuracy, ties at random"),
    ("inductive, hinge", "starshl-paper", "accuracy, hinge"),
    ("transductive, hinge", "starshl-paper-transductive", "accuracy, transductive"),
    ("StarRidge", "starridge", "accuracy"),
    ("StarRidge, transductive", "starridge-transductive", "accuracy, transductive"),
    ("one-vs-one SVC", "svc", "accuracy"),
)


def printed_sections(results: Results, verdicts: Sequence[Verdict], retrieved: str | None = None) -> list[Section]:
    """Return a section for each printed figure that has runs.

    ``retrieved`` is the address of the drawing of retrieved pictures, where there is one.
    """
    known = {protocol.name: protocol for protocol in results.protocols}
    sections = []
    for figure in sorted((f for f in FIGURES.values() if f.printed), key=lambda f: f.printed or 0):
        protocols = [known[protocol.name] for protocol in figure.protocols if protocol.name in known]
        blocks = _blocks(figure, protocols)
        if blocks and figure.name == "pictures" and retrieved is not None:
            blocks = [Drawing("An automobile and what each method retrieves", retrieved), Text((QUERY_RULE,)), *blocks]
        if blocks:
            outcome = _outcome(verdicts, {protocol.name for protocol in protocols}, figure.name)
            says = f"The paper says: {_SAYS[figure.name]}"
            title = f"Figure {figure.printed}: {_TITLES.get(figure.name, figure.title)}"
            lines = Text((says, *outcome, *_notes(protocols)))
            sections.append(Section(title, f"figure-{figure.printed}", [lines, *blocks]))
    return sections


def _blocks(figure: Figure, protocols: Sequence[ProtocolResults]) -> list[Block]:
    if figure.name == "transductive":
        return [_transductive_table(protocol) for protocol in protocols if protocol.lengths]
    if figure.name == "pictures":
        tables = [_class_table(protocol) for protocol in protocols]
    else:
        tables = [_retrieval_table(protocol) for protocol in protocols]
    return [table for table in tables if table is not None]


def _outcome(verdicts: Sequence[Verdict], protocols: set[str], figure: str) -> list[str]:
    """Say in one line which claims hold here."""
    if figure == "pictures":
        return []
    shorts = {claim.text: claim.short for claim in CLAIMS}
    by_word: dict[str, list[str]] = {}
    for verdict in verdicts:
        if verdict.protocol in protocols:
            where = f" ({verdict.dataset})" if len(protocols) > 1 else ""
            by_word.setdefault(verdict.word, []).append(shorts[verdict.claim] + where)
    outcome = "; ".join(f"{word.upper()}: {listed(claims)}" for word, claims in by_word.items())
    return [f"Here: {outcome}."] if outcome else []


def _notes(protocols: Sequence[ProtocolResults]) -> list[str]:
    return [UNPUBLISHED_DATA_NOTE] if any(unpublished(protocol.dataset) for protocol in protocols) else []


def _retrieval_table(protocol: ProtocolResults) -> Table | None:
    lengths = [n_bits for n_bits in _LENGTHS if n_bits in protocol.lengths] or protocol.lengths[-1:]
    if not lengths:
        return None
    unequal = protocol.unequal
    columns = [(f"P@10, {n_bits} bits", "P@10", n_bits) for n_bits in lengths]
    columns += [(name, name, lengths[-1]) for name in ("P@50", "PR area")]
    accuracies = (("accuracy", "accuracy"), ("balanced accuracy", "accuracy, balanced"))
    columns += [(*names, lengths[-1]) for names in accuracies] if unequal else []
    cells = {
        title_of(method): [protocol.values(method, n_bits, metric) for _, metric, n_bits in columns]
        for method in (*SHOWN, *(("svc",) if unequal else ()))
    }
    if unequal:
        chance = [protocol.random_precision if metric.startswith("P@") else {} for _, metric, _ in columns]
        cells[RANDOM] = chance
        cells[MAJORITY] = [
            *[{}] * (len(columns) - 1),
            dict.fromkeys(protocol.majority_accuracy, 1 / protocol.n_classes),
        ]
    caption = f"Mean and deviation over {counted(protocol.n_runs, 'run')}; columns without a length: {lengths[-1]} bits"
    skip = (title_of("float"), RANDOM, MAJORITY)
    names = ("method", *(name for name, _, _ in columns))
    return _without_empty(table_of_means(caption, names, cells, skip=skip, n_runs=protocol.n_runs))


def _class_table(protocol: ProtocolResults) -> Table | None:
    """Return P@15 over all queries of the class that the paper's picture shows."""
    if PAPERS_LENGTH not in protocol.lengths:
        return None
    cells: dict[str, Sequence[Runs]] = {
        title_of(method): [protocol.values_of_class(method, PAPERS_LENGTH, N_RETRIEVED, QUERY_CLASS)]
        for method in SHOWN
    }
    caption = f"Share of the query's class among {N_RETRIEVED} retrieved, mean over all queries of the class automobile"
    columns = ("method", f"P@{N_RETRIEVED}, {PAPERS_LENGTH} bits")
    table = table_of_means(caption, columns, cells, skip=(title_of("float"),))
    return _without_empty(table)


def _transductive_table(protocol: ProtocolResults) -> Table:
    lengths = [n_bits for n_bits in _TRANSDUCTIVE_LENGTHS if n_bits in protocol.lengths] or protocol.lengths
    cells = {
        name: [protocol.values(method, n_bits, metric) for n_bits in lengths]
        for name, method, metric in _TRANSDUCTIVE_ROWS
    }
    caption = f"{protocol.dataset}: accuracy, mean and deviation over {counted(protocol.n_runs, 'run')}"
    columns = ("*SHL, paper settings", *(f"{n_bits} bits" for n_bits in lengths))
    return _without_empty(table_of_means(caption, columns, cells))


def _without_empty(table: Table) -> Table:
    """Return a table without the rows that have no figure yet."""
    full = [number for number, row in enumerate(table.rows) if any(cell != "-" for cell in row[1:])]
    place: Mapping[int, int] = {number: position for position, number in enumerate(full)}
    strong = frozenset((place[number], column) for number, column in table.strong if number in place)
    return Table(table.caption, table.columns, tuple(table.rows[number] for number in full), strong)
