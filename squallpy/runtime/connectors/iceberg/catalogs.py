"""Catalogs of Iceberg and their tables: settings with secrets, waiting for one that is away, errors in one line.

place = Place.of({"catalog.uri": "https://lake/", "catalog.token": "${env:TOKEN}", "table": "shop.orders"})
place.table()            →   the table, after `connect_timeout` at most; SQ4001 if there is none
"""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TypeVar

from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError
from pyiceberg.table import Table

from squallpy.base.batch_trigger import parse_interval
from squallpy.base.errors import SquallError, shorten
from squallpy.base.records import dataclass
from squallpy.base.secrets import resolve
from squallpy.catalog.connector_options import CATALOG
from squallpy.runtime.connectors.backoff import PATIENCE, ask_again, is_store_away

T = TypeVar("T")
NOT_FOLLOWED = "SQ4009"
NAME = "default"  # the name of a catalog whose options say none, which is pyiceberg's
_PASSING = {
    "ConnectionError", "Timeout", "OperationalError", "InterfaceError", "ServerError", "ServiceUnavailableError",
    "TooManyRequestsError", "CommitStateUnknownException",
}  # fmt: skip
"""Names of errors, of the catalog's client or its driver, that a retry may mend."""
_OF_DATABASES = {"IntegrityError", "OperationalError", "ProgrammingError"}
OPENINGS = (
    3  # of a SQL catalog, which has two tables: each may be made by another run, after this one has looked for it
)


@dataclass(frozen=True)
class Place:
    """A table of a catalog. Secrets are looked up where the catalog is opened.

    Args:
        settings: Those of the catalog, as they are written.
        name: The table with its namespace.
    """

    settings: tuple[tuple[str, str], ...]
    name: str
    patience: float = PATIENCE

    @classmethod
    def of(cls, options: Mapping[str, str]) -> "Place":
        """Read the options of a connector; SQ7002 for a table that is not named with its namespace."""
        settings = ((name.removeprefix(CATALOG), each) for name, each in options.items() if name.startswith(CATALOG))
        table = options.get("table", "")
        if "." not in table.strip("."):
            raise SquallError("SQ7002", "the table is not named with its namespace", hint="such as table 'shop.orders'")
        return cls(tuple(sorted(settings)), table, parse_interval(options.get("connect_timeout", "")) or PATIENCE)

    def __str__(self) -> str:
        return f"the Iceberg table {self.name}"

    @property
    def catalog(self) -> Catalog:
        """The catalog, opened once in a process."""
        return _open(self.settings)

    def find(self, patience: float = 0.0) -> Table | None:
        """Open the table, after waiting for a catalog that is away; None if there is none. SQ8010."""
        try:
            return self.patiently(lambda: self.catalog.load_table(self.name), patience)
        except (NoSuchTableError, NoSuchNamespaceError):
            return None

    def table(self, patience: float = 0.0) -> Table:
        """Open the table; SQ4001 if there is none."""
        found = self.find(patience)
        if found is None:
            raise SquallError("SQ4001", f"there is no Iceberg table {self.name}", hint="make one, or mend the name")
        return found

    def patiently(self, ask: Callable[[], T], patience: float) -> T:
        """Ask the catalog, again while it is away; SQ8010 after some seconds, and at once if a retry cannot help."""
        try:
            return ask_again(ask, is_passing, self, patience)
        except (SquallError, NoSuchTableError, NoSuchNamespaceError):
            raise
        except Exception as error:
            raise self.fault(error) from None

    def gone(self, what: str) -> SquallError:
        """Describe snapshots that are there no more."""
        message = f"{what} of {self.name} cannot be read any more: expired, or rolled back"
        return SquallError(
            NOT_FOLLOWED, message, hint="begin anew with another checkpoint: it reads the table as it is"
        )

    def fault(self, error: Exception) -> SquallError:
        """Describe in one line what the catalog or the storage says."""
        if is_passing(error):
            hint = "it may pass: run the same command again when the catalog is there"
        else:
            hint = "a retry does not help before that is mended"
        return SquallError("SQ8010", f"{self} cannot be read: {one_line(error)}", hint=hint)


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


def one_line(error: Exception) -> str:
    """Return what an error says, in one line and without the links of its driver."""
    said = " ".join(str(error).partition("(Background on this error")[0].split()) or type(error).__name__
    return shorten(said) if len(said) > 300 else said
