"""Put the sections of a report together."""

from __future__ import annotations

from .. import __version__
from ..evaluation import RecordFolder
from .circumstances import claims_section, settings_section, what_was_run
from .claims import check_claims
from .document import Document, Section
from .pictures import pictures_section
from .results import Results
from .retrieval import reading_notes, retrieval_section
from .studies import labels_section, transductive_section, unsupervised_section

__all__ = ["build_document"]


def build_document(folder: RecordFolder, results: Results) -> Document:
    """Return the whole report of a folder; the same records give the same report."""
    subtitle = f"starshl {__version__}; last run finished {results.finished or 'never'}"
    sections = [what_was_run(results), claims_section(check_claims(results))]
    retrieval = [retrieval_section(found) for found in results.of_task("retrieval") if found.lengths]
    sections += [reading_notes(), *retrieval] if retrieval else []
    sections += _pictures(folder, results)
    sections += [transductive_section(found) for found in results.of_task("transductive") if found.lengths]
    sections += _labels(results)
    sections += [unsupervised_section(found) for found in results.of_task("unsupervised") if found.lengths]
    sections.append(settings_section(results))
    return Document("Hash function learning via codewords: the experiments rerun", subtitle, sections)


def _labels(results: Results) -> list[Section]:
    groups: dict[tuple[str, bool], list] = {}
    for found in results.of_task("labels"):
        groups.setdefault((found.dataset, found.reduced), []).append(found)
    return [labels_section(group) for group in groups.values()]


def _pictures(folder: RecordFolder, results: Results) -> list[Section]:
    sections = (pictures_section(folder, found) for found in results.of_task("retrieval"))
    return [section for section in sections if section is not None]
