"""Names → relations, views, matrices and matrix programs of a script; names are case-insensitive."""

from collections.abc import Iterable, Iterator
from dataclasses import field, replace
from itertools import count
from typing import Any

from squallpy.base.errors import Notice, Span, SquallError, nearest
from squallpy.base.records import dataclass
from squallpy.catalog.functions import DefinedFunction, signature
from squallpy.catalog.matrices import Matrix, MatrixProgramDefinition
from squallpy.catalog.relation import Parts, Relation
from squallpy.catalog.sink_spec import SinkSpec
from squallpy.catalog.variable_orders import OrderText

DEFAULT_SCHEMAS = ("default", "main", "public", "dbo")  # of Spark, DuckDB, PostgreSQL and SQL Server


def resolve_schema(name: str) -> str:
    """Return the name of a schema, '' for one that exists by default."""
    return "" if name.lower() in DEFAULT_SCHEMAS else name


def qualify_name(schema: str, name: str) -> str:
    """Qualify the name of a relation by its schema: sales, orders → sales.orders; public, orders → orders"""
    return f"{resolve_schema(schema)}.{name}" if resolve_schema(schema) else name


@dataclass(frozen=True, slots=True)
class ViewDefinition:
    """A named query; `query` is the frontend's parse, opaque here, bound again at each use."""

    name: str
    columns: tuple[str, ...]
    query: Any
    span: Span | None = None
    is_materialized: bool = False
    checked: Any = None
    """Its plan as it was bound for its mistakes."""


Entry = Relation | ViewDefinition | Matrix | MatrixProgramDefinition | OrderText | SinkSpec | DefinedFunction


def _is_implied(entry: Entry) -> bool:
    """True if nobody has declared it: a relation of one row."""
    return isinstance(entry, Relation) and entry.is_implied


@dataclass(slots=True)
class Catalog:
    """Declarations of a script, in their order."""

    entries: dict[str, Entry] = field(default_factory=dict)
    parts: dict[Parts, Relation] = field(default_factory=dict)  # declared by table functions of queries
    spare: Iterator[int] = field(default_factory=lambda: count(1 << 32))
    """Ids of columns for queries that are only bound to find their errors."""
    notices: dict[Notice, None] = field(default_factory=dict)  # each once: a view is bound wherever it is used

    def add(self, entry: Entry) -> None:
        """Declare something; SQ2007 if the name is taken."""
        if entry.name.lower() in self.entries:
            other = self.entries[entry.name.lower()]
            where = f" at {other.span}" if other.span else ""
            raise SquallError("SQ2007", f'"{entry.name}" is already declared{where}', entry.span)
        self.entries[entry.name.lower()] = entry

    def declare_implied(self, entry: Entry) -> None:
        """Declare what a table function stands for, once for equal calls; SQ2007 if another entry has the name."""
        other = self.entries.get(entry.name.lower())
        if other is None or replace(other, span=entry.span) != entry:
            self.add(entry)

    def find(self, name: str, others: Iterable[str] = ()) -> Entry:
        """Look up a declaration by its name; SQ2001 if there is none. `others` are further names to suggest."""
        if name.lower() not in self.entries:
            entries = (entry for entry in self.entries.values() if not isinstance(entry, DefinedFunction))
            known = [*(entry.name for entry in entries if not _is_implied(entry)), *others]
            elsewhere = [each for each in known if each.lower().endswith(f".{name.lower()}")]
            hint = f"write {' or '.join(sorted(elsewhere))}" if elsewhere else nearest(name, known)
            raise SquallError("SQ2001", f'unknown table "{name}"', hint=hint)
        return self.entries[name.lower()]

    def function(self, name: str) -> DefinedFunction | None:
        """Look up a function that the script declares."""
        found = self.entries.get(signature(name))
        return found if isinstance(found, DefinedFunction) else None

    @property
    def functions(self) -> list[DefinedFunction]:
        return [entry for entry in self.entries.values() if isinstance(entry, DefinedFunction)]

    @property
    def relations(self) -> dict[str, Relation]:
        return {entry.name: entry for entry in self.entries.values() if isinstance(entry, Relation)}

    @property
    def matrices(self) -> dict[str, Matrix]:
        return {entry.name: entry for entry in self.entries.values() if isinstance(entry, Matrix)}

    @property
    def orders(self) -> dict[str, OrderText]:
        return {entry.name: entry for entry in self.entries.values() if isinstance(entry, OrderText)}

    @property
    def programs(self) -> dict[str, MatrixProgramDefinition]:
        return {entry.name: entry for entry in self.entries.values() if isinstance(entry, MatrixProgramDefinition)}
