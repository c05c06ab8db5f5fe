"""Replication slots that runs have left behind: what they hold back, and their end.

list_slots(server)             →   [Slot("squall_t", is_active=False, held=52_428_800, …)]
drop_slot(server, "squall_t")      SQ4009 for one that is in use
"""

from squallpy.base.errors import SquallError, nearest
from squallpy.base.records import dataclass
from squallpy.runtime.connectors.postgres.connection import Server, asking
from squallpy.runtime.connectors.postgres.tables import NOT_FOLLOWED

PREFIX = "squall"  # names that begin so are ours


@dataclass(frozen=True, slots=True)
class Slot:
    """A replication slot.

    Args:
        held: Bytes of the log that the server keeps for it; None if it has lost them.
        confirmed: The place up to which changes are durable at us.
    """

    name: str
    is_active: bool
    held: int | None
    confirmed: str


def list_slots(server: Server) -> list[Slot]:
    """List the slots of a database that are ours, by name."""
    rows = server.ask(
        lambda connection: connection.execute(
            "SELECT slot_name, active, pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)::bigint,"
            " confirmed_flush_lsn::text FROM pg_replication_slots"
            " WHERE plugin = 'pgoutput' AND database = current_database() AND starts_with(slot_name, %s)"
            " AND NOT temporary ORDER BY slot_name",
            (PREFIX,),
        ).fetchall()
    )
    return [Slot(*row) for row in rows]


def drop_slot(server: Server, name: str) -> None:
    """Drop a slot of ours that nobody uses; SQ4009 otherwise."""
    known = {slot.name: slot for slot in list_slots(server)}
    if name not in known:
        message = f'{server} has no replication slot "{name}" whose name begins with {PREFIX}'
        raise SquallError(NOT_FOLLOWED, message, hint=nearest(name, known))
    if known[name].is_active:
        raise SquallError(NOT_FOLLOWED, f'the replication slot "{name}" is in use', hint="stop the run first")
    with server.connect() as connection, asking(server):
        connection.execute("SELECT pg_drop_replication_slot(%s)", (name,))
