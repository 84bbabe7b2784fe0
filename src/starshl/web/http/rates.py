"""How often each client may ask."""

from __future__ import annotations

import time
from collections import OrderedDict

__all__ = ["Rates"]

_MOST_CLIENTS = 10_000  # remembered at a time, so that many addresses cannot fill the memory


class Rates:
    """One bucket of permissions per client, which fills at ``rate`` per second up to ``burst``."""

    def __init__(self, rate: float, burst: int) -> None:
        self._rate = rate
        self._burst = float(burst)
        self._levels: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, client: str) -> float:
        """Take one permission; return 0, or the seconds to wait for one."""
        now = time.monotonic()
        level, seen = self._levels.pop(client, (self._burst, now))
        level = min(self._burst, level + (now - seen) * self._rate)
        self._levels[client] = (max(level - 1.0, 0.0) if level >= 1.0 else level), now
        if len(self._levels) > _MOST_CLIENTS:
            self._levels.popitem(last=False)
        return 0.0 if level >= 1.0 else (1.0 - level) / self._rate
