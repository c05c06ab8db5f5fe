"""A view of a session as a table that changes."""

from collections.abc import Callable

from squallpy.live.open_session import OpenSession
from squallpy.runtime.observers.report import BatchReport
from squallpy.terminal.batch_relay import BatchRelay
from squallpy.terminal.live_table import Live

_LOOK = 0.1  # seconds between two looks for a change
_BEHIND = 100_000  # batches between two drawings: they are added up, which takes no longer for more of them


def watch(session: OpenSession, name: str, relay: BatchRelay, is_over: Callable[[], bool]) -> None:
    """Draw a view as it changes until that is over; Ctrl-C leaves by its exception."""
    reader = session.subscribe(name, with_snapshot=True, limit=_BEHIND)
    live = Live(lambda: None)
    try:
        change = reader.next()
        assert change
        live.begin(session.entries.maintained[name.lower()].query, change.inserts.schema, None)
        number = change.number
        while True:
            while change:
                live.batch(0, change.deletes, change.inserts)
                number, change = change.number, reader.next(timeout=0)
            live.on_query_progress(BatchReport(number, total_tuples=relay.tuples))
            if is_over() or reader.is_closed:
                return
            change = reader.next(timeout=_LOOK)
    finally:
        live.close()
        reader.close()
