"""The statements of a script."""

from enum import Enum
from typing import TYPE_CHECKING

from squallpy.base.errors import Span
from squallpy.base.records import dataclass
from squallpy.base.types import Type
from squallpy.catalog.matrices import Matrix, MatrixProgramDefinition
from squallpy.catalog.relation import Relation
from squallpy.catalog.sink_spec import SinkSpec
from squallpy.catalog.variable_orders import OrderText

if TYPE_CHECKING:
    from squallpy.frontend.query import SelectText
    from squallpy.frontend.source_text import ScriptText


class Existing(Enum):
    """Treatment of an entry that has the name of a new one already."""

    REFUSE = ""
    KEEP = "IF NOT EXISTS"
    REPLACE = "OR REPLACE"


@dataclass(frozen=True, slots=True)
class CreateRelation:
    """CREATE STREAM or CREATE TABLE; the relation's fields are empty where no columns were listed."""

    relation: Relation
    span: Span
    existing: Existing = Existing.REFUSE


@dataclass(frozen=True, slots=True)
class CreateView:
    """CREATE [MATERIALIZED] VIEW name [(columns)] AS query; ALTER VIEW is one that `alters`."""

    name: str
    columns: tuple[str, ...]
    query: "SelectText"
    span: Span
    is_materialized: bool = False
    existing: Existing = Existing.REFUSE
    alters: bool = False


@dataclass(frozen=True, slots=True)
class CreateSink:
    """CREATE SINK name USING format OPTIONS (…) AS query."""

    sink: SinkSpec
    query: "SelectText"
    existing: Existing = Existing.REFUSE


@dataclass(frozen=True, slots=True)
class Body:
    """A text between $$ and $$, of a matrix program, a variable order or a function: a place in a script."""

    script: "ScriptText"
    start: int
    end: int

    @property
    def text(self) -> str:
        return self.script.text[self.start : self.end]


@dataclass(frozen=True, slots=True)
class CreateFunction:
    """CREATE FUNCTION name(parameters) RETURNS type RETURN expression, or LANGUAGE PYTHON AS $$ … $$.

    Args:
        returned: SELECT of the expression, or the lines of Python.
        spans: Those of the parameters.
    """

    name: str
    parameters: tuple[tuple[str, Type], ...]
    returns: Type
    returned: "SelectText | Body"
    span: Span
    spans: tuple[Span, ...] = ()
    existing: Existing = Existing.REFUSE


@dataclass(frozen=True, slots=True)
class CreateMatrix:
    """CREATE MATRIX; `spans` are those of its relation and its columns."""

    matrix: Matrix
    spans: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class CreateProgram:
    """CREATE MATRIX PROGRAM, its outputs not known yet."""

    program: MatrixProgramDefinition
    over: Span | None


@dataclass(frozen=True, slots=True)
class CreateOrder:
    """CREATE VARIABLE ORDER."""

    order: OrderText


@dataclass(frozen=True, slots=True)
class Select:
    """A query of the script."""

    query: "SelectText"


@dataclass(frozen=True, slots=True)
class Drop:
    """DROP kind [IF EXISTS] name [CASCADE]; `kind` is STREAM, TABLE, SINK, FUNCTION, VIEW or MATERIALIZED VIEW."""

    kind: str
    name: str
    span: Span
    if_exists: bool = False
    cascades: bool = False


@dataclass(frozen=True, slots=True)
class Show:
    """SHOW what: streams, tables, views, sinks, functions, queries or settings."""

    what: str
    span: Span


@dataclass(frozen=True, slots=True)
class Describe:
    """DESCRIBE name: its columns."""

    name: str
    span: Span


@dataclass(frozen=True, slots=True)
class Explain:
    """EXPLAIN [stage] of a view by name, or of a query; the stage is empty where none is written."""

    stage: str
    name: str
    query: "SelectText | None"
    span: Span


@dataclass(frozen=True, slots=True)
class Subscribe:
    """SUBSCRIBE name [WITH SNAPSHOT]: the changes of a view."""

    name: str
    span: Span
    with_snapshot: bool = False


@dataclass(frozen=True, slots=True)
class Set:
    """SET name = value: a setting of the session."""

    name: str
    value: str
    span: Span


@dataclass(frozen=True, slots=True)
class Pause:
    """PAUSE or RESUME: no batches, or batches again."""

    resumes: bool
    span: Span


Declaration = CreateRelation | CreateView | CreateSink | CreateFunction | CreateMatrix | CreateProgram | CreateOrder
"""Statements that a script has besides queries."""
SessionStatement = Drop | Show | Describe | Explain | Subscribe | Set | Pause
"""Statements that only a session has."""
Statement = Declaration | Select | SessionStatement

READS = (Select, Show, Describe, Explain, Subscribe)
"""Statements that change nothing."""
