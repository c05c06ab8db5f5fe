"""Conversion of a file's columns to the types of a relation, with the rows for which that is impossible.

    "12.50", "x", null  as DECIMAL(8,2)   →   12.50, null, null   and   row 1: SQ4004

Arrow's checked casts convert whole columns. If one fails, bisection finds the faulty values, so that good rows cost no
more than the cast.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from squallpy.base.errors import SquallError, nearest, shorten
from squallpy.base.records import dataclass
from squallpy.base.text_casts import parse
from squallpy.base.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DAY_TO_SECOND,
    DOUBLE,
    INT,
    TIMESTAMP,
    VARCHAR,
    Kind,
    Shape,
    Type,
    decimal,
    nested_type,
)
from squallpy.catalog.relation import OPERATION, Field
from squallpy.runtime.evaluate.text_column_casts import column_type, parse_texts
from squallpy.runtime.formats.nested_values import hold, inner_types, is_readable

ArrayCast = Callable[[pa.Array], pa.Array]


@dataclass(frozen=True, slots=True)
class Problem:
    """The reason why a row cannot be used. With a `hint` it ends the query even under on_error 'skip'."""

    code: str
    text: str
    hint: str = ""


PROGRESS = Problem("", "it is a message of progress, not a row")  # skipped and not counted


def check_names(file: str, has: Sequence[str], wanted: Iterable[str]) -> None:
    """Check that the file has every wanted column; SQ4002."""
    known = {name.lower() for name in has}
    for name in wanted:
        if name.lower() not in known:
            hint = nearest(name, [each for each in has if each != OPERATION])
            raise SquallError("SQ4002", f'{file} has no column "{name}"', hint=hint)


def check_once(file: str, has: Sequence[str], read: Iterable[str]) -> None:
    """Check that no column read is in the file twice, in whatever case; SQ4002."""
    known = [name.lower() for name in has]
    for name in read:
        if known.count(name.lower()) > 1:
            raise SquallError("SQ4002", f'{file} has several columns "{name}"')


def sql_type(type: pa.DataType) -> Type | None:
    """Return the SQL type for a column of a file; None where there is none."""
    if pa.types.is_dictionary(type):
        return sql_type(type.value_type)
    if pa.types.is_boolean(type):
        return BOOLEAN
    if pa.types.is_integer(type):
        if type.bit_width < 32 or type == pa.int32():
            return INT
        return decimal(20, 0) if type == pa.uint64() else BIGINT
    if pa.types.is_decimal(type):
        return decimal(type.precision, type.scale) if 0 <= type.scale <= type.precision <= 38 else None
    if pa.types.is_floating(type):
        return DOUBLE
    if pa.types.is_date(type):
        return DATE
    if pa.types.is_timestamp(type):
        return TIMESTAMP
    if pa.types.is_duration(type):
        return DAY_TO_SECOND
    if is_text(type) or is_uuid(type) or pa.types.is_null(type):
        return VARCHAR
    return _nested(type)


def _nested(type: pa.DataType) -> Type | None:
    """Return the SQL type for a type that has parts."""
    inner = inner_types(type)
    known = [found for _, each in inner if (found := sql_type(each)) is not None]
    if not inner or len(known) < len(inner):
        return None
    if pa.types.is_struct(type):
        return nested_type(Shape.STRUCT, known, [name for name, _ in inner])
    return nested_type(Shape.MAP if pa.types.is_map(type) else Shape.ARRAY, known)


def is_uuid(type: pa.DataType) -> bool:
    return isinstance(type, pa.UuidType)


def is_text(type: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_string(type) or types.is_large_string(type) or types.is_string_view(type)
        or types.is_binary(type) or types.is_large_binary(type) or types.is_binary_view(type)
        or types.is_fixed_size_binary(type)
    )  # fmt: skip


def is_convertible(source_type: pa.DataType, type: Type) -> bool:
    """True if values of a file's type can become the SQL type; single values may still fail."""
    source = sql_type(source_type)
    if type.nested:
        return is_readable(source_type, type)
    if source is None or source.nested:
        return False
    if source == type or pa.types.is_null(source_type) or source.kind is Kind.VARCHAR:
        return True
    if type.kind is Kind.VARCHAR:
        return source.kind is not Kind.DOUBLE
    return (source.is_numeric and type.is_numeric) or (source.is_temporal and type.is_temporal)


def conform(table: pa.Table, fields: tuple[Field, ...], wrong: dict[int, Problem]) -> list[pa.Array | pa.ChunkedArray]:
    """Convert the columns of a table to the types of fields; impossible values are noted in `wrong`, and NULL."""
    return [_field(table.column(i), f, wrong) for i, f in enumerate(fields)]


def _field(values: pa.ChunkedArray, field: Field, wrong: dict[int, Problem]) -> pa.ChunkedArray:
    if field.type.nested:
        values, shown = hold(values, field, _cast)
        for row, text in shown.items():
            wrong.setdefault(row, Problem("SQ4004", f'column "{field.name}": {text} is not a valid {field.type}'))
    elif pa.types.is_null(values.type):
        values = pa.chunked_array([pa.nulls(len(values), column_type(field.type))])
    elif values.type != column_type(field.type) or field.type.kind is Kind.INT or field.type.is_temporal:
        values = _convert(values, field, wrong)
    if not field.nullable and values.null_count:
        note_nulls(values.is_null(), field, wrong)
    return values


def note_nulls(where: pa.ChunkedArray, field: Field, wrong: dict[int, Problem]) -> None:
    """Note the rows in which a NOT NULL column is NULL."""
    for row in pc.indices_nonzero(where).to_pylist():
        wrong.setdefault(row, Problem("SQ4006", f'column "{field.name}" is NULL, declared NOT NULL'))


def _convert(values: pa.ChunkedArray, field: Field, wrong: dict[int, Problem]) -> pa.ChunkedArray:
    cast, chunks, start = _cast(values.type, field.type), [], 0
    for chunk in values.chunks:
        converted = _cast_or_null(chunk, cast)
        if converted.null_count > chunk.null_count:
            bad = pc.and_(converted.is_null(), chunk.is_valid())
            for row in pc.indices_nonzero(bad).to_pylist():
                text = f'column "{field.name}": {_shown(chunk[row])} is not a valid {field.type}'
                wrong.setdefault(start + row, Problem("SQ4004", text))
        chunks.append(converted)
        start += len(chunk)
    return pa.chunked_array(chunks, column_type(field.type))


def _cast_or_null(values: pa.Array, cast: ArrayCast) -> pa.Array:
    """Cast values, with NULL for those that cannot be."""
    try:
        return cast(values)
    except pa.ArrowInvalid:
        bad = pa.array(list(_failures(values, cast, 0)), pa.int64())
    mask = pc.is_in(pa.array(range(len(values)), pa.int64()), bad)
    return cast(pc.if_else(mask, pa.scalar(None, values.type), values))


def _failures(values: pa.Array, cast: ArrayCast, start: int) -> Iterator[int]:
    """Find the positions of values that cannot be cast, by bisection."""
    try:
        cast(values)
    except pa.ArrowInvalid:
        if len(values) == 1:
            yield start
            return
        half = len(values) // 2
        yield from _failures(values.slice(0, half), cast, start)
        yield from _failures(values.slice(half), cast, start + half)


def _shown(value: pa.Scalar) -> str:
    try:
        plain = value.as_py()
    except (ValueError, OverflowError):  # of Python's dates
        return "a time outside the years 1 to 9999"
    if plain is None:
        return "NULL"
    if isinstance(plain, bytes):
        plain = plain.decode(errors="backslashreplace")
    return shorten(repr(plain) if isinstance(plain, str) else str(plain))


def _cast(source_type: pa.DataType, type: Type) -> ArrayCast:
    """Choose the cast from a file's type; it cuts off nanoseconds, and gives NULL or raises ArrowInvalid where a value
    would lose anything else."""
    target = column_type(type)
    if pa.types.is_dictionary(source_type):
        inner = _cast(source_type.value_type, type)
        return lambda values: inner(values.dictionary_decode())
    if is_uuid(source_type):
        return lambda values: parse_texts(_uuid_texts(values), type)
    if pa.types.is_fixed_size_binary(source_type):
        return lambda values: parse_texts(values.cast(pa.binary()).cast(pa.string()), type)
    if is_text(source_type):
        return lambda values: parse_texts(values.cast(pa.string()), type)
    if type.kind is Kind.INT:  # within 32 bits, held in 64
        return lambda values: values.cast(pa.int32()).cast(target)
    if pa.types.is_integer(source_type) and type.kind is Kind.DECIMAL:
        whole = pa.decimal128(20 if source_type == pa.uint64() else 19, 0)
        return lambda values: values.cast(whole).cast(target)
    if pa.types.is_floating(source_type) and type.kind is Kind.DECIMAL:
        return lambda values: _check_exact(values, values.cast(target))
    if pa.types.is_timestamp(source_type) and type.kind is Kind.DATE:
        return lambda values: _in_range(_check_exact(values, values.cast(target)), type)
    if pa.types.is_timestamp(source_type) and type.kind is Kind.TIMESTAMP:
        return lambda values: _in_range(_microseconds(values), type)
    if type.is_temporal:
        return lambda values: _in_range(values.cast(target), type)
    if type.kind is Kind.BOOLEAN and not pa.types.is_boolean(source_type) and not pa.types.is_null(source_type):
        raise SquallError("SQ4002", f"{source_type} cannot become BOOLEAN")
    return lambda values: values.cast(target)


def _uuid_texts(values: pa.Array) -> pa.Array:
    """Write UUIDs as text: 16 bytes → "00000000-0000-0000-0000-000000000005"."""
    held = values.storage
    data = np.frombuffer(held.buffers()[1], np.uint8)[16 * held.offset : 16 * (held.offset + len(held))]
    digits = np.frombuffer(b"0123456789abcdef", np.uint8)
    texts = np.full((len(held), 36), ord("-"), np.uint8)
    texts[:, _UUID_DIGITS] = digits[np.stack([data >> 4, data & 15], axis=1)].reshape(len(held), 32)
    ends = pa.py_buffer(np.arange(0, 36 * len(held) + 1, 36, dtype=np.int32))
    found = pa.Array.from_buffers(pa.string(), len(held), [None, ends, pa.py_buffer(texts)])
    return pc.if_else(held.is_valid(), found, pa.scalar(None, pa.string())) if held.null_count else found


_UUID_DIGITS = [at for at in range(36) if at not in (8, 13, 18, 23)]


def _microseconds(values: pa.Array) -> pa.Array:
    """Truncate times to microseconds."""
    micros = column_type(TIMESTAMP)
    try:
        return values.cast(micros)
    except pa.ArrowInvalid:
        if values.type.unit != "ns":
            raise
    return pc.floor_temporal(values.cast(pa.timestamp("ns")), unit="microsecond").cast(micros)


def _in_range(values: pa.Array, type: Type) -> pa.Array:
    """Replace dates and times outside the years 1 to 9999 by NULL."""
    held = pa.int32() if type.kind is Kind.DATE else pa.int64()
    first, last = (pa.scalar(parse(text, type), held) for text in ("0001-01-01", "9999-12-31 23:59:59.999999"))
    numbers = values.view(held)
    ends = pc.min_max(numbers)
    if pc.and_(pc.greater_equal(ends["min"], first), pc.less_equal(ends["max"], last)).as_py() is not False:
        return values
    fits = pc.and_(pc.greater_equal(numbers, first), pc.less_equal(numbers, last))
    return pc.if_else(fits, values, pa.scalar(None, values.type))


def _check_exact(values: pa.Array, result: pa.Array) -> pa.Array:
    """Return the result of a cast; ArrowInvalid if it rounded."""
    if pc.all(pc.equal(result.cast(values.type), values)).as_py() is False:
        raise pa.ArrowInvalid("rounded")
    return result
