"""Write the digest of every split of every named protocol to ``split_digests.json`` of the package.

Run ``STARSHL_DATA=<folder of data sets> python scripts/freeze_splits.py`` after adding a protocol. A published
digest is never rewritten: the script stops if one differs.
"""

import json
import sys
from dataclasses import replace
from pathlib import Path

from starshl.data import datasets
from starshl.reproduction import PROTOCOLS

TARGET = Path(__file__).parents[1] / "src" / "starshl" / "reproduction" / "split_digests.json"


def main() -> None:
    published = json.loads(TARGET.read_text()) if TARGET.exists() else {}
    for name in sorted({protocol.dataset for protocol in PROTOCOLS.values()}):
        dataset = datasets.get(name, download=False)
        for protocol in PROTOCOLS.values():
            if protocol.dataset != name:
                continue
            drawn = replace(protocol, digests=())
            digests = [drawn.split(dataset, run).digest for run in range(protocol.n_runs)]
            if published.setdefault(protocol.name, digests) != digests:
                sys.exit(f"The splits of {protocol.name} differ from the published ones; give it a new name.")
    TARGET.write_text(json.dumps({name: published[name] for name in PROTOCOLS}, indent=1) + "\n")


if __name__ == "__main__":
    main()
