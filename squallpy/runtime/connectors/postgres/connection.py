"""Connections to PostgreSQL: addresses without secrets, waiting for a server that is away, errors in one line.

server = Server.of({"url": "postgresql://ann:${env:PW}@db:5432/shop"})
str(server)            →   db:5432/shop
server.connect()       →   a psycopg connection, after `connect_timeout` at most
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field
from math import inf
from typing import Any, TypeVar

import psycopg
from psycopg import conninfo, pq
from psycopg.pq.abc import PGconn

from squallpy.base.batch_trigger import parse_interval
from squallpy.base.errors import SquallError
from squallpy.base.records import dataclass
from squallpy.base.secrets import resolve
from squallpy.runtime.connectors.backoff import pause

T = TypeVar("T")
MOST_TRIES = 10  # of a work during which the server goes away
PATIENCE = 30.0  # seconds for a server that is away when a run begins
SETTINGS = "-c timezone=UTC -c datestyle=ISO -c intervalstyle=postgres -c extra_float_digits=1 -c bytea_output=hex"
_PASSING = ("08", "40", "53300", "55006", "57P01", "57P02", "57P03")  # classes and codes of what a retry may mend
Connection = psycopg.Connection[tuple[Any, ...]]


@dataclass(frozen=True)
class Server:
    """A database of a server.

    Args:
        info: What libpq needs to connect, secrets included: never shown.
    """

    info: Mapping[str, Any] = field(repr=False)
    patience: float = PATIENCE

    @classmethod
    def of(cls, options: Mapping[str, str]) -> "Server":
        """Read the options of a connector; SQ7002 for a url that is none."""
        url = options["url"]
        is_whole = url.startswith("${") and url.find("}") == len(url) - 1
        try:
            info = conninfo.conninfo_to_dict(resolve(url, in_url=url.startswith("postgres") and not is_whole))
        except psycopg.Error:  # NB: its words would repeat the url, which may have a password
            hint = "such as postgresql://user@host:5432/database"
            raise SquallError("SQ7002", "the url is none of PostgreSQL", hint=hint) from None
        info |= {name: resolve(options[name]) for name in ("user", "password") if name in options}
        info.setdefault("application_name", "squallpy")
        info["options"] = f"{info.get('options') or ''} {SETTINGS}".strip()
        return cls(info, parse_interval(options.get("connect_timeout", "")) or PATIENCE)

    def __str__(self) -> str:
        host = self.info.get("host") or self.info.get("hostaddr") or "localhost"
        return f"{host}:{self.info.get('port') or 5432}/{self.info.get('dbname') or self.info.get('user') or ''}"

    def connect(self, patience: float | None = None) -> Connection:
        """Connect, and wait for a server that is away; SQ8010 after `patience` seconds, and at once if that cannot
        help."""
        until = time.monotonic() + (self.patience if patience is None else patience)
        return self._patiently(self._connect, until=until)

    def ask(self, work: Callable[[Connection], T]) -> T:
        """Do over a connection what may be done again, if the server goes away meanwhile; SQ8010 as `connect`."""

        def attempt() -> T:
            with self.connect() as connection:
                return work(connection)

        return self._patiently(attempt, most=MOST_TRIES)

    def replicate(self) -> PGconn:
        """Connect for the commands of replication, at once or not."""
        info = {**self.info, "replication": "database", "connect_timeout": 10}
        made = pq.PGconn.connect(conninfo.make_conninfo(**info).encode())
        if made.status != pq.ConnStatus.OK:
            said = made.error_message.decode(errors="replace")
            made.finish()
            raise psycopg.OperationalError(said)
        return made

    def error(self, error: psycopg.Error, what: str = "") -> SquallError:
        """Describe in one line what a server says, with its address."""
        says = _one_line(error)
        where = f"PostgreSQL at {self}"
        if error.sqlstate is None:
            return SquallError("SQ8010", f"{where} cannot be reached{what}: {says}", hint=_hint(error))
        return SquallError("SQ8010", f"{where} says{what}: {says} ({error.sqlstate})", hint=_hint(error))

    def _connect(self) -> Connection:
        made = psycopg.connect(conninfo.make_conninfo(**self.info), autocommit=True, connect_timeout=10)
        made.prepare_threshold = None
        return made

    def _patiently(self, attempt: Callable[[], T], until: float = inf, most: float = inf) -> T:
        """Try until a time, or again so many times, as long as that may help; SQ8010 then."""
        tries = 0
        while True:
            try:
                return attempt()
            except psycopg.Error as error:
                if not is_passing(error) or time.monotonic() >= until or tries >= most:
                    raise self.error(error) from None
            time.sleep(min(pause(tries), max(0.0, until - time.monotonic())))
            tries += 1


def is_passing(error: psycopg.Error) -> bool:
    """True if the same may succeed later: the server is away, starts or stops, or another transaction was first."""
    if error.sqlstate is not None:
        return error.sqlstate.startswith(_PASSING)
    said = str(error).lower()
    wrong = ("authentication failed", "does not exist", "no pg_hba.conf entry", "no password supplied", "certificate",
             "does not support ssl", "must be superuser", "permission denied", "not permitted to log in")  # fmt: skip
    refused = any(each in said for each in wrong) or "could not translate host name" in said
    return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError) and not refused


@contextmanager
def asking(server: Server) -> Iterator[None]:
    """Raise what a server says as SQ8010."""
    try:
        yield
    except psycopg.Error as error:
        raise server.error(error) from None


def _one_line(error: psycopg.Error) -> str:
    diag = error.diag.message_primary if error.sqlstate is not None else None
    detail = error.diag.message_detail if error.sqlstate is not None else None
    said = diag or str(error)
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return "; ".join([*lines[:1], *([" ".join(detail.split())] if detail else [])])


def _hint(error: psycopg.Error) -> str:
    if is_passing(error):
        return "it may pass: run the same command again when the server is there"
    return "a retry does not help before that is mended"
