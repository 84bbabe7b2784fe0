"""Write the synchronous client from the asynchronous one, which is the same with ``async`` and ``await``.

Run it after changing src/starshl/client/asynchronous.py: python scripts/write_sync_client.py
"""

import re
from pathlib import Path

CLIENT = Path(__file__).parents[1] / "src" / "starshl" / "client"
SOURCE, TARGET = CLIENT / "asynchronous.py", CLIENT / "synchronous.py"
DOCSTRING = '''\
# Written by scripts/write_sync_client.py from asynchronous.py: change that file, and run the script.
"""Client: asks a service and waits for the answer."""
'''
#: Patterns and what they become, in this order.
REPLACEMENTS = (
    (r'\A""".*?"""\n', DOCSTRING),
    (r"import asyncio\n", ""),
    (r"await asyncio\.to_thread\(([\w.]+), ", r"\1("),
    (r"asyncio\.sleep", "time.sleep"),
    (r"\b(async|await) ", ""),
    (r"\bAsyncCollection\b", "RemoteCollection"),
    (r"\bAsync(Client|BaseTransport|Iterator)\b", r"\1"),
    (r"\b(__)?a(enter__|exit__|close|read|iter_bytes)\b", r"\1\2"),
    (r"A connection to a service, for asyncio\.", "A connection to a service."),
)


def synchronous(source: str) -> str:
    """Return the text of the synchronous client."""
    for pattern, replacement in REPLACEMENTS:
        source, n_replaced = re.subn(pattern, replacement, source, flags=re.DOTALL)
        if not n_replaced:
            raise ValueError(f"{SOURCE} has nothing like {pattern!r}; take this pattern out, or change it.")
    return source


if __name__ == "__main__":
    TARGET.write_text(synchronous(SOURCE.read_text(encoding="utf-8")), encoding="utf-8")
