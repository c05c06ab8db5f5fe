"""`squall slots`: replication slots of PostgreSQL that runs have left behind."""

import sys

import click

from squallpy.base.errors import SquallError
from squallpy.catalog.connector_options import load_connector
from squallpy.terminal.stderr_lines import say


def show_slots(url: str) -> None:
    """Print the slots of a database that are ours; SQ8009 without psycopg."""
    load_connector("postgres")
    from squallpy.runtime.connectors.postgres.connection import Server
    from squallpy.runtime.connectors.postgres.slots import list_slots

    print("name,active,held_bytes,confirmed")
    for slot in list_slots(Server.of({"url": url})):
        held = "lost" if slot.held is None else slot.held
        print(f"{slot.name},{str(slot.is_active).lower()},{held},{slot.confirmed}")


def drop(url: str, name: str, is_sure: bool) -> None:
    """Drop a slot, after a question on a terminal; SQ7004 without one and without --yes."""
    load_connector("postgres")
    from squallpy.runtime.connectors.postgres.connection import Server
    from squallpy.runtime.connectors.postgres.slots import drop_slot

    server = Server.of({"url": url})
    if not is_sure and not sys.stdin.isatty():
        raise SquallError("SQ7004", f'"{name}" is dropped only when that is confirmed', hint="give --yes")
    if is_sure or click.confirm(f"drop the slot {name} of {server}? A run whose checkpoint needs it cannot go on"):
        drop_slot(server, name)
        say(f"dropped {name}")
