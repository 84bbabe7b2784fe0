"""What a caller stores in addition to the items: receipts and journals, in the transactions of changes."""

from __future__ import annotations

from contextlib import AbstractContextManager

from .journal import check_entry, read_entries
from .receipts import check_receipt, find_receipt
from .searchable import SearchableCollection

__all__ = ["RecordedCollection"]


class RecordedCollection(SearchableCollection):
    """A collection to search, with receipts and journals; :class:`Collection` adds changes of items."""

    def receipting(self, key: str, text: str) -> AbstractContextManager[None]:
        """Store a text under a key together with the next change that this thread makes inside the block, or neither.

        If you lost the answer to a change, in a crash or with a connection, ask :meth:`receipt` whether it was stored
        before you try again. The newest 100,000 receipts are kept.
        """
        check_receipt(key, text)
        return self._session.receipting(key, text)

    def receipt(self, key: str) -> str | None:
        """Return the text that a change stored under a key, None if there is no such change."""
        with self._session.reading() as (_, store):
            return find_receipt(store, key)

    def noting(self, journal: str, text: str) -> AbstractContextManager[None]:
        """Append a text to a journal together with the next change that this thread makes inside the block, or neither.

        A journal keeps all of its entries, in the order of the changes; :meth:`journal` reads them.
        """
        check_entry(journal, text)
        return self._session.noting(journal, text)

    def note(self, journal: str, text: str) -> None:
        """Append a text to a journal as a separate change."""
        with self.noting(journal, text), self._session.writing() as change:
            change.change_codes()

    def journal(self, name: str, after: int = 0) -> list[str]:
        """Return the entries of a journal, the oldest first, without the first ``after`` of them."""
        with self._session.reading() as (_, store):
            return read_entries(store, name, after)
