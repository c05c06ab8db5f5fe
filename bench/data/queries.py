"""What is measured: the examples, as they stand.

q1 … q22     TPC-H                ds3 … ds79     TPC-DS, as in Table 1 of the paper: both are PAPER
nexmark0 …   Nexmark              STREAMING      those of TPC-H that also run on Spark, beside its streaming SQL
vwap …       the order book
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from squallpy.catalog.relation import Relation
from squallpy.script_session import ScriptSession
from squallpy.testing.oracle import to_duckdb

EXAMPLES = Path(__file__).parents[2] / "examples"
BY_HAND = Path(__file__).parent / "by_hand"


@dataclass(frozen=True)
class Query:
    """An example script with one query."""

    name: str
    path: Path

    @property
    def benchmark(self) -> str:
        return self.path.parent.name

    @cached_property
    def session(self) -> ScriptSession:
        return ScriptSession(self.path)

    @cached_property
    def relations(self) -> dict[str, Relation]:
        return dict(self.session.script.relations)

    @property
    def tables(self) -> tuple[str, ...]:
        return tuple(self.relations)

    @cached_property
    def text(self) -> str:
        """The query alone, in Spark's dialect, as ours is."""
        [query] = self.session.script.queries
        return query.text.strip().rstrip(";")

    @property
    def for_duckdb(self) -> str:
        """In its dialect, which Polars reads, too; where NULLs sort is said, for it is not the same everywhere."""
        return to_duckdb(self.text)

    @property
    def by_hand(self) -> str | None:
        """The same for DuckDB by window functions, where it sees nothing better than to compare all with all."""
        path = BY_HAND / f"{self.name}.sql"
        return path.read_text().strip().rstrip(";") if path.exists() else None

    @property
    def select(self) -> str:
        """Without its order: streams of changed groups cannot be sorted."""
        return self.text.rpartition("ORDER BY")[0] or self.text

    @property
    def order(self) -> str:
        return self.text[len(self.select) :]

    @cached_property
    def columns(self) -> dict[str, list[str]]:
        """The columns of each table that the query names, and what deletes need; nobody is made to carry others."""
        words, every = set(re.findall(r"\w+", self.text)), "*," in self.text or "SELECT *\n" in self.text
        return {
            name: [f.name for f in r.fields if every or f.name in words or (r.op and f.name in r.primary_key)]
            for name, r in self.relations.items()
        }

    def types(self, table: str) -> dict[str, str]:
        """The SQL types of the columns that the query names."""
        return {f.name: str(f.type) for f in self.relations[table].fields if f.name in self.columns[table]}

    def script(self, folder: str) -> str:
        """The example over the files in `folder`."""
        return self.session.text.replace("(path 'data/", f"(path '{folder}/")


def _examples() -> Iterator[Query]:
    for benchmark, prefix in (("tpch", "q"), ("tpcds", "ds"), ("nexmark", "nexmark")):
        for number in sorted(int(path.stem[1:]) for path in (EXAMPLES / benchmark).glob("q*.sql")):
            yield Query(f"{prefix}{number}", EXAMPLES / benchmark / f"q{number}.sql")
    for path in sorted((EXAMPLES / "orderbook").glob("*.sql")):
        yield Query(path.stem, path)


QUERIES = {query.name: query for query in _examples()}
PAPER = tuple(name for name, query in QUERIES.items() if query.benchmark in ("tpch", "tpcds"))
STREAMING = ("q1", "q3", "q6", "q12")
