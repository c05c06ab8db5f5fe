"""Relations: streams and static tables as declared by CREATE STREAM and CREATE TABLE."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from squallpy.base.errors import Span
from squallpy.base.types import Type

MADE = "matrix"  # the format of a relation whose rows are made, not read
MULT = "__mult"  # the multiplicity of a row of a change stream, +1 or −1: a column that readers add


@dataclass(frozen=True, slots=True)
class Field:
    """One column of a relation. `nullable` is False only where NOT NULL or PRIMARY KEY says so."""

    name: str
    type: Type
    nullable: bool = True


@dataclass(frozen=True, slots=True)
class Reference:
    """A foreign key: fields whose values are among those of other fields, of another relation. Believed, not checked.

    `keys` as written: none stands for the primary key there.
    """

    fields: tuple[str, ...]
    relation: str
    keys: tuple[str, ...] = ()
    span: Span | None = None


@dataclass(frozen=True, slots=True)
class Relation:
    """A named source of rows. `stream` relations change; others are loaded once, before the first batch.

    `format` is parquet or csv, or MADE for the cells of a matrix; `options` as written (keys in lower case), `path`
    among them; `op` names the operation column of a change stream and is not one of `fields`.
    """

    name: str
    fields: tuple[Field, ...]
    stream: bool
    format: str
    options: Mapping[str, str] = field(default_factory=dict)
    primary_key: tuple[str, ...] = ()
    references: tuple[Reference, ...] = ()
    timestamp: str | None = None
    delay_micros: int = 0
    span: Span | None = None

    def __hash__(self) -> int:
        return hash(self.name)

    @property
    def op(self) -> str | None:
        return self.options.get("op")

    @property
    def made(self) -> bool:
        """Are its rows made of those of others?"""
        return self.format == MADE

    def nullable(self, name: str) -> bool:
        """Can a field be NULL?"""
        found = self.field(name)
        return found is None or found.nullable

    def field(self, name: str) -> Field | None:
        return next((f for f in self.fields if f.name.lower() == name.lower()), None)
