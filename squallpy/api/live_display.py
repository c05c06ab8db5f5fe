"""Displays of views that refresh in place, in a notebook.

s.view("rev").live()           the output of the cell is the view, also after batches to come
live = s.view("rev").live()    is shown where `live` is; live.wait(10) waits for it, live.stop() ends it
"""

import threading
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from squallpy.api.html import Html, table_html

if TYPE_CHECKING:
    from squallpy.api.view import View
    from squallpy.live.open_session import OpenSession

SECONDS = 0.2
"""The least time between two refreshments."""
_SHARE = 10  # one that took long is followed by so many times as long without
_OPEN: "WeakSet[LiveDisplay]" = WeakSet()


class LiveDisplay(Html):
    """A view in a notebook, refreshed in place until the view or its session ends, or `stop`; a view has one."""

    def __init__(self, view: "View") -> None:
        stop_displays(view._session, view.name)
        self.view, self._types = view, view.columns
        self._handle: Any = None
        self._stopping, self._over = threading.Event(), threading.Event()
        self._changes = view._session.subscribe(view.name, newest=True)
        self._table, self._state = view.to_arrow(), "live"  # NB: a batch that comes before it is a change, too
        _OPEN.add(self)
        threading.Thread(target=self._follow, name=f"live {view.name}", daemon=True).start()

    @property
    def is_over(self) -> bool:
        """True if it is refreshed no more."""
        return self._over.is_set()

    def wait(self, seconds: float | None = None) -> None:
        """Wait until it is over, or so many seconds; an interrupt of the kernel stops it."""
        try:
            self._over.wait(seconds)
        except KeyboardInterrupt:
            self.stop()

    def stop(self) -> None:
        """Show the view as it is now, and leave it at that."""
        self._stopping.set()
        self._changes.close()
        self._over.wait()

    def _follow(self) -> None:
        """Refresh the display after batches, until there are no more to come."""
        try:
            while self._changes.next() is not None:
                started = monotonic()
                self._draw()
                self._stopping.wait(max(SECONDS, _SHARE * (monotonic() - started)))
            self._state = "stopped" if self._stopping.is_set() else "ended"
        except Exception as error:  # NB: of a batch
            self._state = str(error)
        try:
            self._draw()
        finally:
            self._over.set()

    def _draw(self) -> None:
        """Show the view as it is now; as it was, if it is gone."""
        with suppress(Exception):
            self._table = self.view.to_arrow()
        if self._handle is not None:
            self._handle.update(self._bundle, raw=True)

    def _repr_html_(self) -> str:
        return table_html(self._table, self.view.name, self._state, self._types)

    @property
    def _bundle(self) -> dict[str, str]:
        return {"text/html": self._repr_html_(), "text/plain": repr(self)}

    def _ipython_display_(self) -> None:
        from IPython.core.getipython import get_ipython
        from IPython.display import display

        show: Any = display
        handle = show(self._bundle, raw=True, display_id=True)
        # NB: IPython in a terminal would print each refreshment below the last
        self._handle = handle if hasattr(get_ipython(), "kernel") else None

    def __repr__(self) -> str:
        return f"<{self._state}: {self.view.name}, {len(self._table):,} rows>"


def stop_displays(session: "OpenSession", name: str | None = None) -> None:
    """Stop the displays of a view, or of all views of a session."""
    for each in [*_OPEN]:
        if each.view._session is session and name in (None, each.view.name):
            each.stop()
