"""Write the digest of every split of every named protocol to the ``split_digests.json`` next to its definition.

Run ``STARSHL_DATA=<folder of data sets> python scripts/freeze_splits.py`` after adding a protocol. A published
digest is never rewritten: the script stops if one differs.
"""

import json
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from starshl import datasets, evaluation, paper

PACKAGES = {"evaluation": evaluation.PROTOCOLS, "paper": paper.PAPER_PROTOCOLS}
SOURCE = Path(__file__).parents[1] / "src" / "starshl"


def main() -> None:
    for package, protocols in PACKAGES.items():
        freeze(SOURCE / package / "split_digests.json", protocols)


def freeze(target: Path, protocols: Mapping[str, evaluation.Protocol]) -> None:
    published = json.loads(target.read_text()) if target.exists() else {}
    for name in sorted({protocol.dataset for protocol in protocols.values()}):
        dataset = datasets.get(name, download=False)
        for protocol in protocols.values():
            if protocol.dataset != name:
                continue
            drawn = replace(protocol, digests=())
            digests = [drawn.split(dataset, run).digest for run in range(protocol.n_runs)]
            if published.setdefault(protocol.name, digests) != digests:
                sys.exit(f"The splits of {protocol.name} differ from the published ones; give it a new name.")
    target.write_text(json.dumps({name: published[name] for name in protocols}, indent=1) + "\n")


if __name__ == "__main__":
    main()
