"""Batches of what has come, until a view holds it."""

from collections.abc import Callable

from squallpy.live.open_session import OpenSession


def catch_up(session: OpenSession, name: str = "", is_left: Callable[[], bool] = lambda: False) -> None:
    """Apply batches until all is read that was there: of a source that always has more, by one batch that is not full.

    Args:
        name: The view that is waited for; of a source without end, more is not.
        is_left: Asked between batches whether nobody waits any longer.
    """
    if not session.is_writable:
        return
    is_endless = bool(name) and not session.has_end(name)
    while not is_left() and (report := session.step()) is not None:
        if is_endless and report.tuples < session.settings.batch_rows and _takes_all(session):
            return


def _takes_all(session: OpenSession) -> bool:
    """True if a batch that is not full has all that was there: a source is no files, and none is limited."""
    relations = [r for r in session.catalog.relations.values() if r.stream]
    limits = {"maxfilespertrigger", "maxbytespertrigger"}
    return any(r.is_foreign for r in relations) and not any(limits & r.options.keys() for r in relations)
