"""A session with its page, in this process."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import httpx
import pytest

import squallpy
from squallpy import Session
from tests.terminal.conftest import room, squall

__all__ = ["room", "squall"]  # fixtures

SCRIPT = "<script>alert(1)</script>"


@dataclass
class Site:
    """A session and its page."""

    session: Session
    url: str
    client: httpx.Client = field(init=False)

    def __post_init__(self) -> None:
        self.client = httpx.Client(base_url=self.url, timeout=120)

    def get(self, path: str, **headers: str) -> httpx.Response:
        return self.client.get(path, headers=headers)

    def step(self, *rows: tuple[int, str, str]) -> None:
        """Push rows and apply a batch."""
        self.session.push(
            "items", {"id": [r[0] for r in rows], "who": [r[1] for r in rows], "price": [r[2] for r in rows]}
        )
        self.session.step()


@contextmanager
def open_site() -> Iterator[Site]:
    with squallpy.connect() as session:
        session.stream("items", schema={"id": "BIGINT", "who": "VARCHAR", "price": "DECIMAL(12,2)"})
        session.sql(
            "CREATE MATERIALIZED VIEW rev AS SELECT who, COUNT(*) AS n, SUM(price) AS total FROM items GROUP BY who"
        )
        session.sql(f"CREATE MATERIALIZED VIEW `{SCRIPT}` AS SELECT id AS `<b>id</b>` FROM items WHERE price > 1")
        yield Site(session, session.serve_page("127.0.0.1:0"))


@pytest.fixture
def site() -> Iterator[Site]:
    """A session of one test."""
    with open_site() as site:
        yield site


@pytest.fixture(scope="module")
def quiet() -> Iterator[Site]:
    """A session that tests only look at."""
    with open_site() as site:
        yield site
