"""Put the sections of the report together."""

from __future__ import annotations

from collections.abc import Sequence

from .. import __version__
from ..evaluation import LabelEfficiency, RecordFolder
from ..reports.document import Document, Section
from ..reports.label_efficiency import label_efficiency_section
from ..reports.results import ProtocolResults, Results
from .circumstances import claims_section, settings_section, what_was_run
from .claims import check_claims
from .label_curve import EMPHASIZED
from .lineup import title_of
from .pictures import pictures_section
from .retrieval import reading_notes, retrieval_section
from .studies import labels_section, unsupervised_section
from .transduction import transductive_section

__all__ = ["STYLES", "build_document", "label_sections"]


# The strongest rivals come first, because the first eight looks also differ in color.
_STYLED_KEYS = (
    *("starshl-paper", "starshl", "ksh", "ksh-all", "hc-sdh", "codeword-svm", "svc", "float"),
    *("bre", "1-agh", "2-agh", "sph", "lsh", "starridge"),
)
STYLES = {title_of(key): style for style, key in enumerate(_STYLED_KEYS)}


def build_document(
    folder: RecordFolder | None, results: Results, label_curves: Sequence[LabelEfficiency] = ()
) -> Document:
    """Return the whole report; the same results give the same report. Pictures need the folder of records."""
    subtitle = f"starshl {__version__}; last run finished {results.finished or 'never'}"
    sections = [what_was_run(results)]
    sections += [label_efficiency_section(label_curves, EMPHASIZED)] if label_curves else []
    sections.append(claims_section(check_claims(results)))
    retrieval = [retrieval_section(protocol) for protocol in results.of_task("retrieval") if protocol.lengths]
    sections += [reading_notes(), *retrieval] if retrieval else []
    sections += _pictures(folder, results)
    sections += [transductive_section(protocol) for protocol in results.of_task("transductive") if protocol.lengths]
    sections += label_sections(results)
    sections += [unsupervised_section(protocol) for protocol in results.of_task("unsupervised") if protocol.lengths]
    sections.append(settings_section(results))
    return Document("Hash function learning via codewords: the experiments rerun", subtitle, sections, STYLES)


def label_sections(results: Results) -> list[Section]:
    """Return a section for each data set of the label studies."""
    groups: dict[tuple[str, bool], list[ProtocolResults]] = {}
    for protocol in results.of_task("labels"):
        groups.setdefault((protocol.dataset, protocol.reduced), []).append(protocol)
    return [labels_section(group) for group in groups.values()]


def _pictures(folder: RecordFolder | None, results: Results) -> list[Section]:
    sections = (pictures_section(folder, protocol) for protocol in results.of_task("retrieval"))
    return [section for section in sections if section is not None]
