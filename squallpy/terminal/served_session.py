"""A session that others look into, by a page or by Flight SQL, until Ctrl-C or SIGTERM."""

from squallpy.live.open_session import OpenSession
from squallpy.terminal.failures import OK, Terminated
from squallpy.terminal.interrupt import Interruption

_LOOK = 0.2  # seconds between two looks whether the session goes on


def serve_until_stopped(session: OpenSession, interruption: Interruption) -> int:
    """Apply batches, where this process has the session, and return the exit status; raises what ends it instead.

    SIGTERM is how a service is stopped: the status is 0 then.
    """
    if not session.is_attached:
        session.start()
    interruption.working(True)  # NB: the first signal lets the batch in work end
    while not (failure := session.failure) and not interruption.stop.wait(_LOOK):
        pass
    if failure:
        raise failure
    return OK if interruption.kind is Terminated else interruption.kind.status
