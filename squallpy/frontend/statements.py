"""The statements of a script."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from squallpy.base.errors import Span
from squallpy.catalog.matrices import Matrix, MatrixProgram
from squallpy.catalog.orders import OrderText
from squallpy.catalog.relation import Relation
from squallpy.catalog.sink_spec import SinkSpec

if TYPE_CHECKING:
    from squallpy.frontend.query import SelectText
    from squallpy.frontend.source_text import ScriptText


@dataclass(frozen=True, slots=True)
class CreateRelation:
    """CREATE STREAM or CREATE TABLE; the relation's fields are empty where no columns were listed."""

    relation: Relation
    span: Span


@dataclass(frozen=True, slots=True)
class CreateView:
    """CREATE VIEW name [(columns)] AS query."""

    name: str
    columns: tuple[str, ...]
    query: "SelectText"
    span: Span


@dataclass(frozen=True, slots=True)
class CreateSink:
    """CREATE SINK name USING format OPTIONS (…) AS query."""

    sink: SinkSpec
    query: "SelectText"


@dataclass(frozen=True, slots=True)
class Body:
    """A text between $$ and $$, of a matrix program or a variable order: a place in a script."""

    script: "ScriptText"
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class CreateMatrix:
    """CREATE MATRIX; `spans` are those of its relation and its columns."""

    matrix: Matrix
    spans: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class CreateProgram:
    """CREATE MATRIX PROGRAM, its outputs not known yet."""

    program: MatrixProgram
    over: Span | None


@dataclass(frozen=True, slots=True)
class CreateOrder:
    """CREATE VARIABLE ORDER."""

    order: OrderText


@dataclass(frozen=True, slots=True)
class Select:
    """A query of the script."""

    query: "SelectText"


Statement = CreateRelation | CreateView | CreateSink | CreateMatrix | CreateProgram | CreateOrder | Select
