"""Sessions as the page reads them, in this process or in another: `monitored(session)`.

The host of a session answers the pages of those who are attached by SERVICES; what is passed is plain, so it goes as it
is.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from squallpy.base.errors import SquallError
from squallpy.base.events import first_line
from squallpy.live.attached_session import AttachedSession
from squallpy.live.host import Answer, Service
from squallpy.live.hosted_run import HostedRun
from squallpy.live.live_session import LiveSession
from squallpy.live.open_session import OpenSession
from squallpy.web.protocol import MonitoredRows

if TYPE_CHECKING:
    from squallpy.live.subscription import ChangeReader
    from squallpy.web.protocol import Monitored

_MONITOR = "monitor"


def monitored(session: OpenSession | HostedRun) -> "Monitored":
    """Return a session, or the run of a script, as the page reads it."""
    if isinstance(session, HostedRun):
        from squallpy.web.monitored_run import MonitoredRun

        return MonitoredRun(session)
    if isinstance(session, LiveSession):
        from squallpy.web.monitored_session import MonitoredSession

        return MonitoredSession(session)
    assert isinstance(session, AttachedSession)
    return MonitoredElsewhere(session)


def _monitor(session: LiveSession | HostedRun) -> Service:
    """Answer what `MonitoredElsewhere` asks."""
    found = monitored(session)

    def answer(asked: Mapping[str, Any]) -> Answer:
        match asked["what"]:
            case "state":
                return {"edition": found.edition, "batch": found.batch, "trouble": found.trouble}, []
            case "catalogue":
                return {"catalogue": found.catalogue()}, []
            case "report":
                return {"report": found.report(asked["since"])}, []
            case "metrics":
                return {"metrics": found.metrics()}, []
            case "rows":
                rows = found.rows(asked["view"])
                return {"batch": rows.batch}, [rows.table]
        raise AssertionError(asked)

    return answer


SERVICES = {_MONITOR: _monitor}
"""The services of a host to those who are attached."""


class MonitoredElsewhere:
    """A session of another process, as its host tells of it."""

    def __init__(self, session: AttachedSession) -> None:
        self._session = session

    def _ask(self, what: str, **more: Any) -> Answer:
        return self._session.ask(_MONITOR, {"what": what, **more})

    @property
    def edition(self) -> int:
        return int(self._ask("state")[0]["edition"])

    @property
    def batch(self) -> int:
        return int(self._ask("state")[0]["batch"])

    @property
    def trouble(self) -> str:
        try:
            return str(self._ask("state")[0]["trouble"])
        except SquallError as error:  # NB: the host has ended
            return first_line(error)

    def catalogue(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self._ask("catalogue")[0]["catalogue"]
        return found

    def report(self, since: int = 0) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self._ask("report", since=since)[0]["report"]
        return found

    def metrics(self) -> str:
        return str(self._ask("metrics")[0]["metrics"])

    def rows(self, view: str) -> MonitoredRows:
        told, (table,) = self._ask("rows", view=view)
        return MonitoredRows(told["batch"], table)

    def changes(self, view: str) -> "ChangeReader":
        from squallpy.web.monitored_session import LIMIT

        return self._session.subscribe(view, limit=LIMIT)
