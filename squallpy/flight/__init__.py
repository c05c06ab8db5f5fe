"""Arrow Flight SQL: views of a session, read over gRPC by clients such as ADBC, JDBC and DBeaver.

`wire` reads and writes protobuf, `messages` are those of Flight SQL, `metadata` and `sql_info` what clients ask about a
session, and `server` answers them, and SELECTs.
"""

from typing import TYPE_CHECKING

from squallpy.base.addresses import Address
from squallpy.base.errors import SquallError

if TYPE_CHECKING:
    from squallpy.flight.server import FlightServer
    from squallpy.live.open_session import OpenSession


def open_server(session: "OpenSession", address: Address) -> "FlightServer":
    """Serve the views of a session by Flight SQL; SQ7005 if it cannot listen there, SQ8009 without Arrow's Flight."""
    try:
        import pyarrow.flight  # noqa: F401
    except ImportError:
        hint = "install pyarrow from PyPI, whose wheels have it"
        raise SquallError("SQ8009", "Flight SQL needs pyarrow.flight, which is not installed", hint=hint) from None
    from squallpy.flight.server import FlightServer

    return FlightServer(session, address)
