"""Catalogs of Iceberg and their tables: settings with secrets, waiting for one that is away, errors in one line.

options = {"catalog.uri": "https://lake/", "catalog.token": "${env:TOKEN}", "table": "shop.orders"}
IcebergTableLocation.of(options).table(30.0)    →   the table, after 30 seconds at most; SQ4001 if there is none
"""

from collections.abc import Mapping
from functools import lru_cache

from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
    ValidationException,
)
from pyiceberg.table import Table

from squallpy.base.batch_trigger import parse_interval
from squallpy.base.errors import SquallError
from squallpy.base.records import dataclass
from squallpy.base.secrets import resolve
from squallpy.catalog.connector_options import CATALOG
from squallpy.runtime.connectors.backoff import PATIENCE, is_store_away
from squallpy.runtime.connectors.table_location import TableLocation

NAME = "default"  # the name of a catalog whose options say none, which is pyiceberg's
_PASSING = {
    "ConnectionError", "ChunkedEncodingError", "Timeout", "OperationalError", "InterfaceError", "ServerError",
    "ServiceUnavailableError", "TooManyRequestsError", "CommitStateUnknownException",
}  # fmt: skip
"""Names of errors, of the catalog's client or its driver, that a retry may mend."""
_OF_DATABASES = {"IntegrityError", "OperationalError", "ProgrammingError"}
OPENINGS = (
    3  # of a SQL catalog, which has two tables: each may be made by another run, after this one has looked for it
)


@dataclass(frozen=True)
class IcebergTableLocation(TableLocation[Table]):
    """A table of a catalog. Secrets are looked up where the catalog is opened.

    Args:
        settings: Those of the catalog, as they are written.
        table_name: The table with its namespace.
    """

    kind, service, expiry = "Iceberg", "catalog", "expired, or rolled back"
    missing = (NoSuchTableError, NoSuchNamespaceError)
    faults = (Exception,)  # NB: of the clients of catalogs and storages, and of the drivers of databases

    settings: tuple[tuple[str, str], ...]
    table_name: str
    patience: float = PATIENCE

    @classmethod
    def of(cls, options: Mapping[str, str]) -> "IcebergTableLocation":
        """Read the options of a connector; SQ7002 for a table that is not named with its namespace."""
        settings = ((name.removeprefix(CATALOG), each) for name, each in options.items() if name.startswith(CATALOG))
        table = options.get("table", "")
        if "." not in table.strip("."):
            raise SquallError("SQ7002", "the table is not named with its namespace", hint="such as table 'shop.orders'")
        return cls(tuple(sorted(settings)), table, parse_interval(options.get("connect_timeout", "")) or PATIENCE)

    @property
    def name(self) -> str:
        return self.table_name

    @property
    def catalog(self) -> Catalog:
        """The catalog, opened once in a process."""
        return _open(self.settings)

    def open(self) -> Table:
        return self.catalog.load_table(self.table_name)

    def is_passing(self, error: Exception) -> bool:
        return is_passing(error)

    def is_conflict(self, error: Exception) -> bool:
        return isinstance(error, (CommitFailedException, ValidationException, TableAlreadyExistsError))


@lru_cache(maxsize=16)
def _open(settings: tuple[tuple[str, str], ...]) -> Catalog:
    """Open a catalog; uris have secrets as they are written there."""
    known = {name: resolve(value, in_url=name == "uri" and not value.startswith("${")) for name, value in settings}
    name = known.pop("name", NAME)
    for _ in range(OPENINGS - 1):
        try:
            return load_catalog(name, **known)
        except Exception as error:
            if is_passing(error) or not _OF_DATABASES & _names(error):
                raise
    return load_catalog(name, **known)


def is_passing(error: Exception) -> bool:
    """True if the same may succeed later: the catalog or its storage is away, or too busy."""
    if "(sqlite3." in str(error) and "locked" not in str(error):  # NB: a file, which does not come back by itself
        return False
    return bool(_PASSING & _names(error)) or is_store_away(error)


def _names(error: Exception) -> set[str]:
    """Return the names of the classes of an error."""
    return {each.__name__ for each in type(error).__mro__}
