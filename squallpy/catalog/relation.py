"""Relations: streams and static tables as declared by CREATE STREAM and CREATE TABLE."""

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any

from squallpy.base.errors import Span
from squallpy.base.records import dataclass
from squallpy.base.types import BIGINT, INT, TIMESTAMP, VARCHAR, Type
from squallpy.catalog.connector_options import CHANGES, CONNECTORS
from squallpy.catalog.format_options import FORMATS, INTERVALS, RANDOM, row_format

COMPUTED = "matrix"  # the format of a relation whose rows are computed, not read
WORKING = "working"  # the format of a recursive table, as the queries read it that derive its rows
ROW_COUNT = "row count"  # the format of a relation of one row, in whose one column is how many rows a source has
CONSTANT = "constant"  # the format of a relation of one row, in whose one column is 0
MULT = "__mult"  # the multiplicity of a row of a change stream, +1 or −1: a column added by readers
TRUNCATED = -2
"""The multiplicity of what stands for all rows that are there, which go: no row, and all its columns are NULL."""
OPERATION = "__op"
"""The column in which connectors tell what a change is: −1 for a row that goes, a number above 0 for one that comes,
TRUNCATED."""


METADATA: Mapping[str, Type] = {"_file": VARCHAR, "_offset": BIGINT, "_partition": INT, "_timestamp": TIMESTAMP}
"""Columns that are not in a row, but tell where it is from, with their types."""


@dataclass(frozen=True, slots=True)
class Field:
    """One column of a relation. `nullable` is False only where NOT NULL or PRIMARY KEY says so.

    Args:
        nested: The names that lead to its value in a record, if FROM gives them. An empty name at the end asks for
            'true' where there is an object.
    """

    name: str
    type: Type
    nullable: bool = True
    nested: tuple[str, ...] = ()

    @property
    def path(self) -> tuple[str, ...]:
        """The names that lead to its value in a record."""
        return self.nested or (self.name,)

    @property
    def metadata(self) -> str | None:
        """The name of METADATA that it stands for; None for a column of rows."""
        name = self.path[0].lower()
        return name if len(self.path) == 1 and name in METADATA else None


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """A foreign key: fields whose values are among those of other fields, of another relation. Believed, not checked.

    `keys` as written: none stands for the primary key there.
    """

    fields: tuple[str, ...]
    relation: str
    keys: tuple[str, ...] = ()
    span: Span | None = None


@dataclass(frozen=True, slots=True)
class Split:
    """Parts of a text between the matches of a regular expression, numbered from 0; with `kept`, NULL has one part,
    NULL."""

    separator: str
    kept: bool = False

    def value_text(self, value: Any) -> str:
        return f"SPLIT({value}, '{self.separator}'){' OR NULL' if self.kept else ''}"


@dataclass(frozen=True, slots=True)
class Hops:
    """Windows of a time: of length `size`, one beginning every `slide` from `offset` on, in microseconds."""

    size: int
    slide: int
    offset: int = 0

    @property
    def most(self) -> int:
        """The number of windows that a time is in at most."""
        return -(-self.size // self.slide)

    def value_text(self, value: Any) -> str:
        lengths = (f"INTERVAL {length / 1e6:g} SECOND" for length in (self.size, self.slide, self.offset))
        return f"WINDOW({value}, {', '.join(lengths)})"


@dataclass(frozen=True, slots=True)
class Cumulations:
    """Windows of a time that begin together, every `size` from `offset` on, and end every `step` up to the size, in
    microseconds."""

    size: int
    step: int
    offset: int = 0

    @property
    def most(self) -> int:
        """The number of windows that a time is in at most."""
        return self.size // self.step

    def value_text(self, value: Any) -> str:
        lengths = (f"INTERVAL {length / 1e6:g} SECOND" for length in (self.step, self.size, self.offset))
        return f"CUMULATE({value}, {', '.join(lengths)})"


@dataclass(frozen=True, slots=True)
class Series:
    """Bounds and a step into numbers or moments: the start, then one step further each.

    `includes_stop`: up to the stop, else to before it. `strict`: a step away from the stop is an error, else there are
    none. `kept`: where there are none, or something is NULL, there is one, NULL.
    """

    function: str
    includes_stop: bool
    strict: bool
    kept: bool = False

    def value_text(self, value: Any) -> str:
        return f"{self.function} {value}{' OR NULL' if self.kept else ''}"


@dataclass(frozen=True, slots=True)
class Elements:
    """Elements of an ARRAY, numbered from 0, or keys and values of a MAP.

    Args:
        kept: An empty one gives a row of NULL, as LATERAL VIEW OUTER and EXPLODE_OUTER do.
    """

    is_map: bool = False
    kept: bool = False

    def value_text(self, value: Any) -> str:
        return f"ELEMENTS({value}){' OR NULL' if self.kept else ''}"


Generator = Split | Hops | Cumulations | Series | Elements


@dataclass(frozen=True, slots=True)
class Parts:
    """Derivation of a relation from another one: a row for each part of `value`, an expression over that one's fields.

    Columns of `value` name fields by their numbers (opaque here). The relation has the fields of `of`, then two of a
    part.
    """

    of: "Relation"
    value: Any
    generator: Generator

    def __str__(self) -> str:
        return f"{self.generator.value_text(self.value)} OF {self.of.name}"


@dataclass(frozen=True, slots=True)
class Relation:
    """A named source of rows. `stream` relations change; others are loaded once, before the first batch.

    `format` is that of files, the name of a source that others have written, COMPUTED for the cells of a matrix,
    CONSTANT, ROW_COUNT (then `counts` is the relation whose rows it counts) or WORKING; `options` as written (keys in
    lower case); `op` names the operation column of a change stream and is not one of `fields`.
    """

    name: str
    fields: tuple[Field, ...]
    stream: bool
    format: str
    options: Mapping[str, str] = field(default_factory=dict)
    primary_key: tuple[str, ...] = ()
    references: tuple[ForeignKey, ...] = ()
    timestamp: str | None = None
    delay_micros: int = 0
    span: Span | None = None
    parts: Parts | None = None
    counts: "Relation | None" = None

    def __hash__(self) -> int:
        return hash(self.name)

    @property
    def op(self) -> str | None:
        """The operation column of its files, if inserts and deletes are told by one."""
        return self.options.get("op")

    @property
    def is_keyed(self) -> bool:
        """True if a row replaces the one before that has its PRIMARY KEY."""
        return self.options.get("changelog") == "upsert" or (self.is_debezium and bool(self.primary_key))

    @property
    def is_debezium(self) -> bool:
        """True if its files have envelopes with the old and the new row of each change."""
        return self.options.get("changelog") == "debezium"

    @property
    def tombstone(self) -> Field | None:
        """The column of its files, not one of `fields`, that says which rows delete their key.

        In JSON it may be the object that other columns are in: those rows delete their key that have none.
        """
        if not (name := self.options.get("tombstone")):
            return None
        if name == OPERATION:
            return Field(name, BIGINT)
        path = tuple(name.split(".")) if self.row_format == "json" else ()
        is_around = path and any(field.nested[: len(path)] == path for field in self.fields)
        return Field(name, VARCHAR, nested=(*path, "") if is_around else path)

    @property
    def has_deletes(self) -> bool:
        """True if its rows may go."""
        return self.op is not None or "changelog" in self.options

    @property
    def expected_rows(self) -> int | None:
        """The number of rows that it has at a time, or nearly so; None if that is not declared."""
        rows = self.options.get("expected_rows")
        return int(rows) if rows else None

    @property
    def has_ledger(self) -> bool:
        """True if its inserts and deletes are counted, as deletes may be of rows that are not there."""
        return self.has_deletes and not self.is_keyed

    @property
    def is_signed(self) -> bool:
        """True if rows are read with their multiplicity."""
        return self.op is not None or self.tombstone is not None or self.is_debezium

    @property
    def row_format(self) -> str:
        """The format of its rows, that of the lines of a socket."""
        return row_format(self.format, self.options)

    @property
    def is_computed(self) -> bool:
        """True if its rows are computed, not read."""
        return self.format == COMPUTED

    @property
    def is_watched(self) -> bool:
        """True if files that come later are read, too."""
        return self.format in FORMATS and self.options.get("watch") == "true"

    @property
    def skips_faults(self) -> bool:
        """True if rows that cannot be read are left out, and counted."""
        return self.options.get("on_error", "fail") != "fail"

    @property
    def is_timed(self) -> bool:
        """True if processing time moves its windows, too."""
        return not {*INTERVALS}.isdisjoint(self.options)

    @property
    def is_foreign(self) -> bool:
        """True if a source that is no files brings its rows, as others have written it or a socket."""
        return self.format not in (*FORMATS, COMPUTED, CONSTANT, ROW_COUNT, WORKING)

    @property
    def is_implied(self) -> bool:
        """True if no statement declares it, but a query that needs its one row."""
        return self.format in (CONSTANT, ROW_COUNT)

    @property
    def is_random(self) -> bool:
        """True if its rows come in a random order, so that those that were read are a sample."""
        return self.options.get("order") == RANDOM

    @property
    def is_by_place(self) -> bool:
        """True if its columns are found by their positions in a row, not by names in the file."""
        return self.row_format == "csv" and self.options.get("header", "false") != "true"

    @property
    def source(self) -> "Relation":
        """The relation whose rows are read for its own."""
        return self.parts.of.source if self.parts else self

    @property
    def with_changes(self) -> "Relation":
        """The relation with how a server tells changes: by PRIMARY KEY if it has one, else by whole old rows."""
        if self.format not in CONNECTORS or not self.stream:
            return self
        if not CONNECTORS[self.format].tells:
            is_upsert = self.options.get("changelog") == "upsert"
            return replace(self, options={"tombstone": OPERATION, **self.options}) if is_upsert else self
        follows = CONNECTORS[self.format].follows
        told = {"changelog": "upsert", "tombstone": OPERATION} if self.primary_key else {"op": OPERATION}
        if follows:
            told = {"op": OPERATION} if self.options.get(follows) == "true" else {}
        kept = {name: value for name, value in self.options.items() if name not in CHANGES}
        return replace(self, options=kept | told)

    def nullable(self, name: str) -> bool:
        """True if a field may be NULL."""
        found = self.field(name)
        return found is None or found.nullable

    def field(self, name: str) -> Field | None:
        return next((f for f in self.fields if f.name.lower() == name.lower()), None)
