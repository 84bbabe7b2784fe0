"""The pages of the explorer inside a notebook, over a collection that is open there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from .app import create_app
from .http.server import BackgroundServer
from .service import Service
from .settings import Settings

if TYPE_CHECKING:
    from types import TracebackType

    from ..collection.collection import Collection


class Explorer:
    """The pages of an open collection, at an address on this machine; they stop with this process.

    A notebook shows them below the cell. What is labeled there is in the collection at once.

    Parameters
    ----------
    collection : Collection
    height : int, default=760
        Of the pages in a notebook, in pixels.

    Attributes
    ----------
    address : str, such as "http://127.0.0.1:49152/explore/album"
    """

    def __init__(self, collection: Collection, height: int = 760) -> None:
        settings = Settings(port=0, in_frames=True)
        app = create_app(
            lambda observer: Service([collection], read_only=collection.read_only, observer=observer), settings
        )
        (name,) = app.state.service.searchers
        self._server = BackgroundServer(app, settings)
        self._height = int(height)
        self.address = f"{self._server.address}/explore/{name}"

    def __repr__(self) -> str:
        return f"{type(self).__name__} at {self.address}"

    def _repr_html_(self) -> str:
        frame = f'<iframe src="{self.address}" width="100%" height="{self._height}" style="border:0"></iframe>'
        return f'<p><a href="{self.address}" target="_blank">Open in its own window</a></p>{frame}'

    def close(self) -> None:
        """Stop the pages; the collection stays open."""
        self._server.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
