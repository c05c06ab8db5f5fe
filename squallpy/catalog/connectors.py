"""Connectors to servers, and their options.

CONNECTORS["postgres"].source   →   the options of USING postgres for streams and tables, with what each says
"""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from squallpy.base.batch_trigger import parse_interval
from squallpy.base.errors import SquallError, nearest
from squallpy.base.secrets import resolve


@dataclass(frozen=True, slots=True)
class Connector:
    """A connector that is a part of this package.

    Args:
        module: Where its functions are: `infer`, `open_source` and `open_sink`.
        source: Options of streams and tables; those of `tables` are for both.
        sink: Options of sinks.
    """

    module: str
    source: Mapping[str, str]
    tables: tuple[str, ...]
    sink: Mapping[str, str]


_SERVER = {
    "url": "the server: postgresql://user@host:5432/database",
    "table": "the table, with its schema if that is not public",
    "user": "the user, if the url names none",
    "password": "the password: '${env:NAME}' or '${file:/run/secrets/name}'",
    "connect_timeout": "how long to wait for a server that is away when the run begins: '30 seconds'",
}
CONNECTORS: Mapping[str, Connector] = {
    "postgres": Connector(
        "squallpy.runtime.connectors.postgres.connector",
        {
            **_SERVER,
            "slot.name": "the replication slot, one for all streams of a script that name it",
            "publication.name": "the publication that the table is in",
            "snapshot.mode": "initial: first the rows that are there; never: only changes from now on",
        },
        tuple(_SERVER),
        {**_SERVER, "existing": "what becomes of rows that are there when a run begins anew: keep or replace"},
    )
}
CHOICES: Mapping[str, tuple[str, ...]] = {"snapshot.mode": ("initial", "never"), "existing": ("keep", "replace")}
REQUIRED = ("url",)
CHANGES = ("op", "changelog", "tombstone")
"""Options that say how rows tell changes, which servers tell by themselves."""


def load_connector(format: str) -> Any:
    """Import the functions of a connector; SQ8009 without the package that it needs."""
    return import_module(CONNECTORS[format].module)  # NB: a room above those that ask for it


def check_connector_option(format: str, key: str, value: str, known: Mapping[str, str]) -> tuple[str, str]:
    """Check an option of a connector, of those that are known, and return its name and value; SQ7002."""
    name = key.lower()
    if name not in known:
        raise SquallError("SQ7002", f'unknown option "{key}" of {format}', hint=nearest(key, known))
    if not value.strip():
        raise SquallError("SQ7002", f'option "{key}" is empty', hint=known[name])
    if name in CHOICES and value.lower() not in CHOICES[name]:
        raise SquallError("SQ7002", f'option "{key}" cannot be "{value}"', hint=nearest(value, CHOICES[name]))
    if name == "connect_timeout" and parse_interval(value) is None:
        raise SquallError(
            "SQ7002", f'option "{key}" cannot be "{value}"', hint="an interval above 0, such as '30 seconds'"
        )
    resolve(value)
    return name, value.lower() if name in CHOICES else value
