"""Columns as a file holds them → the types of the relation, and the rows for which that is not possible.

    "12.50", "x", null  as DECIMAL(8,2)   →   12.50, null, null   and   row 1: SQ4004

Arrow's checked casts do the work. Where one fails, the values at fault are found by halving, so that the cost of good
rows stays that of the cast.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from squallpy.base.errors import SquallError, nearest
from squallpy.base.types import BIGINT, BOOLEAN, DATE, DOUBLE, INT, TIMESTAMP, VARCHAR, Kind, Type, decimal
from squallpy.catalog.relation import Field
from squallpy.runtime.evaluate.vector import arrow_type

Cast = Callable[[pa.Array], pa.Array]


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a row cannot be used. With a `hint` there is no leaving it out."""

    code: str
    text: str
    hint: str = ""


def check_names(file: str, has: Sequence[str], wanted: Iterable[str]) -> None:
    """Every wanted column must be in the file; SQ4002."""
    known = {name.lower() for name in has}
    for name in wanted:
        if name.lower() not in known:
            raise SquallError("SQ4002", f'{file} has no column "{name}"', hint=nearest(name, has))


def check_once(file: str, has: Sequence[str], read: Iterable[str]) -> None:
    """No column that is read may be in the file twice, its name in another case; SQ4002."""
    known = [name.lower() for name in has]
    for name in read:
        if known.count(name.lower()) > 1:
            raise SquallError("SQ4002", f'{file} has several columns "{name}"')


def column_type(type: Type) -> pa.DataType:
    """The Arrow type in which a source gives columns of a SQL type: integers of either size in 64 bits."""
    return pa.int64() if type.is_integer else arrow_type(type)


def sql_type(type: pa.DataType) -> Type | None:
    """The SQL type for a column of a file; None where there is none."""
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
    return VARCHAR if is_text(type) or pa.types.is_null(type) else None


def is_text(type: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_string(type) or types.is_large_string(type) or types.is_string_view(type)
        or types.is_binary(type) or types.is_large_binary(type) or types.is_binary_view(type)
    )  # fmt: skip


def convertible(given: pa.DataType, type: Type) -> bool:
    """Whether any value of a file's type can become one of the SQL type; single values may still not."""
    source = sql_type(given)
    if source is None:
        return False
    if source == type or pa.types.is_null(given) or source.kind is Kind.VARCHAR:
        return True
    if type.kind is Kind.VARCHAR:
        return source.kind is not Kind.DOUBLE
    return (source.is_numeric and type.is_numeric) or (source.is_temporal and type.is_temporal)


def conform(table: pa.Table, fields: tuple[Field, ...], wrong: dict[int, Problem]) -> list[pa.Array | pa.ChunkedArray]:
    """The columns of a table in the types of fields; what cannot be is noted in `wrong` and NULL in the result."""
    return [_field(table.column(i), f, wrong) for i, f in enumerate(fields)]


def _field(values: pa.ChunkedArray, field: Field, wrong: dict[int, Problem]) -> pa.ChunkedArray:
    if values.type != column_type(field.type) or field.type.kind is Kind.INT:
        values = _convert(values, field, wrong)
    if not field.nullable and values.null_count:
        text = f'column "{field.name}" is NULL, declared NOT NULL'
        for row in pc.indices_nonzero(values.is_null()).to_pylist():
            wrong.setdefault(row, Problem("SQ4006", text))
    return values


def _convert(values: pa.ChunkedArray, field: Field, wrong: dict[int, Problem]) -> pa.ChunkedArray:
    cast, chunks, start = _cast(values.type, field.type), [], 0
    for chunk in values.chunks:
        try:
            chunks.append(cast(chunk))
        except pa.ArrowInvalid:
            bad = list(_failures(chunk, cast, 0))
            for row in bad:
                text = f'column "{field.name}": {_shown(chunk[row])} is not a valid {field.type}'
                wrong.setdefault(start + row, Problem("SQ4004", text))
            mask = pc.is_in(pa.array(range(len(chunk)), pa.int64()), pa.array(bad, pa.int64()))
            chunks.append(cast(pc.if_else(mask, pa.scalar(None, chunk.type), chunk)))
        start += len(chunk)
    return pa.chunked_array(chunks, column_type(field.type))


def _failures(values: pa.Array, cast: Cast, start: int) -> Iterator[int]:
    """The positions of values that cannot be cast, by halving."""
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
    plain = value.as_py()
    if plain is None:
        return "NULL"
    if isinstance(plain, bytes):
        plain = plain.decode(errors="backslashreplace")
    return shorten(repr(plain) if isinstance(plain, str) else str(plain))


def shorten(text: str) -> str:
    """A text in quotes, cut for a message."""
    return text if len(text) <= 60 else text[:56] + "...'"


def _cast(given: pa.DataType, type: Type) -> Cast:
    """The cast from a file's type; it raises ArrowInvalid rather than lose anything."""
    target = column_type(type)
    if pa.types.is_dictionary(given):
        inner = _cast(given.value_type, type)
        return lambda values: inner(values.dictionary_decode())
    if is_text(given):
        return lambda values: parse_text(values, type, target)
    if type.kind is Kind.INT:  # within 32 bits, held in 64
        return lambda values: values.cast(pa.int32()).cast(target)
    if pa.types.is_integer(given) and type.kind is Kind.DECIMAL:
        whole = pa.decimal128(20 if given == pa.uint64() else 19, 0)
        return lambda values: values.cast(whole).cast(target)
    if pa.types.is_floating(given) and type.kind is Kind.DECIMAL:
        return lambda values: _same(values, values.cast(target))
    if pa.types.is_timestamp(given) and type.kind is Kind.DATE:
        return lambda values: _same(values, values.cast(target))
    if type.kind is Kind.BOOLEAN and not pa.types.is_boolean(given) and not pa.types.is_null(given):
        raise SquallError("SQ4002", f"{given} cannot become BOOLEAN")
    return lambda values: values.cast(target)


def _same(values: pa.Array, result: pa.Array) -> pa.Array:
    """The result of a cast that rounds, if it did not."""
    if pc.all(pc.equal(result.cast(values.type), values)).as_py() is False:
        raise pa.ArrowInvalid("rounded")
    return result


def parse_text(values: pa.Array, type: Type, target: pa.DataType) -> pa.Array:
    """Text as written by people: blanks around and a plus sign before numbers are no harm."""
    values = values.cast(pa.string())
    if type.kind is Kind.VARCHAR:
        return values
    values = pc.utf8_trim_whitespace(values)
    if type.is_numeric:
        values = pc.replace_substring_regex(values, pattern=r"^\+", replacement="", max_replacements=1)
    if type.kind is Kind.BOOLEAN:
        values = pc.replace_substring_regex(pc.utf8_lower(values), pattern="^t$", replacement="true")
        values = pc.replace_substring_regex(values, pattern="^f$", replacement="false")
    if type.kind is Kind.INT:
        return values.cast(pa.int32()).cast(target)
    return values.cast(target)
