"""Deltas on the move: pre-aggregated changes as key columns and payload words, and how they travel between stages.

Keys are one int64 matrix (n, K), as `base/keys.py` has them. A VARCHAR travels as text, since each partition numbers
its own strings, and so do the digits of decimals that have no room.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from squallpy.base.errors import SquallError
from squallpy.base.keys import HOLE, LEAST, NULL
from squallpy.base.records import dataclass
from squallpy.base.rings import Ring
from squallpy.base.types import Kind, decimal
from squallpy.logical.expressions import Column, Expr
from squallpy.runtime.evaluate.vectors import Vec, from_arrow, full
from squallpy.runtime.kernels.column_packing import packed, unpacked
from squallpy.runtime.kernels.dictionary import Dictionary
from squallpy.runtime.kernels.memory_regions import Words
from squallpy.runtime.kernels.payload_columns import pack, to_decimal128
from squallpy.runtime.state.state_store import StringCells

TEXT, DIGITS = "text", "digits"  # what a message calls the columns that spell out keys


@dataclass(frozen=True, slots=True)
class Delta:
    """Rows of one delta: keys (n, K) under a dictionary, payload words (n, W)."""

    name: str
    keys: Words
    words: Words

    def take(self, rows: Words) -> "Delta":
        """Take some of its rows."""
        return Delta(self.name, self.keys.take(rows, axis=0), self.words.take(rows, axis=0))

    def with_rows(self, keys: Words, words: Words) -> "Delta":
        """Append rows."""
        return Delta(self.name, np.concatenate([self.keys, keys]), np.concatenate([self.words, words]))


def encode(vec: Vec, key: Expr, rows: int, dictionary: Dictionary, origin: Expr | None = None) -> Words:
    """Encode values as a key column; SQ5003, which names the key or the `origin` of its values, if one is the
    `HOLE`."""
    type = key.type
    if type.kind is Kind.NULL:
        return np.full(rows, NULL)
    values, valid = full(vec, type, rows)
    if type.kind is Kind.VARCHAR:
        if valid is not None:
            values = pa.compute.if_else(pa.array(valid), values, pa.scalar(None, values.type))
        return dictionary.intern(values)
    if type.kind is Kind.DOUBLE:
        keys: Any = np.where(np.isnan(values), np.nan, values + 0.0).view(np.int64)
    elif type.is_wide:
        keys = _encode_wide(values, valid, dictionary)
    else:
        keys = values.astype(np.int64, copy=False)
        if type.is_integer and (low := keys <= HOLE).any():
            keys = _encode_low(keys, low if valid is None else low & valid, origin or key)
    return keys if valid is None else np.where(valid, keys, NULL)


def _encode_low(values: Words, low: Any, expr: Expr) -> Words:
    """Encode integers as keys, of which those that are `low` are not above the hole."""
    if np.any(low & (values == HOLE)):
        text = f"{expr}: {HOLE} is reserved, the one BIGINT that cannot be selected, grouped, ordered or joined on"
        what = "declare it" if isinstance(expr, Column) else "CAST it to"
        raise SquallError("SQ5003", text, hint=f"{what} DECIMAL(19,0)")
    return np.asarray(values + low, np.int64)


def rank_of(values: Words, step: int) -> Words:
    """Encode integers as keys to search for: the hole as the next above it, or below it if `step` is negative."""
    low = values < HOLE if step < 0 else values <= HOLE
    return np.asarray(values + low, np.int64)


def decode(keys: Words, column: Column, dictionary: Dictionary) -> Vec:
    """Decode a key column to a vector."""
    kind = column.type.kind
    if kind is Kind.VARCHAR:
        return Vec(dictionary.strings(keys), keys >= 0 if column.nullable else None)
    valid = keys != NULL if column.nullable else None
    if valid is not None and valid.all():  # then nobody has to look again
        valid = None
    if kind is Kind.DOUBLE:
        return Vec(np.ascontiguousarray(keys).view(np.float64), valid)
    if column.type.is_wide and (some := spelled(keys)).any():
        digits = dictionary.strings(keys[some] - NULL - 1).cast(pa.decimal128(38, 0))
        values = keys.astype(object)
        values[some] = from_arrow(digits, decimal(38, 0)).values
        return Vec(values, valid)
    if column.type.is_integer and (low := keys <= HOLE).any():
        return Vec(keys - (low & (keys != NULL)), valid)
    return Vec(keys != 0 if kind is Kind.BOOLEAN else keys, valid)


def spelled(keys: Words) -> Any:
    """Mark the keys of a wide column that are numbers of texts."""
    return (keys > NULL) & (keys < LEAST)


def numbered(columns: Iterable[Column], start: int = 0) -> tuple[StringCells, ...]:
    """Find the columns of keys, from some column on, that are numbers of strings."""
    found = list[StringCells]()
    for at, column in enumerate(columns, start):
        if column.type.kind is Kind.VARCHAR:
            found.append(StringCells(at, 0, 2**31))
        elif column.type.is_wide:
            found.append(StringCells(at, NULL + 1, LEAST))
    return tuple(found)


def _encode_wide(values: Any, valid: Any, dictionary: Dictionary) -> Words:
    if values.dtype == np.int64 and not np.any(values < LEAST):
        return np.asarray(values)
    words = pack(values, Ring.EXACT)
    keys, high = words[:, 0].copy(), words[:, 1]
    spelled = (high != keys >> 63) | (keys < LEAST)
    if valid is not None:
        spelled &= valid
    if spelled.any():
        digits = to_decimal128(words[spelled], 38, 0).cast(pa.string())
        keys[spelled] = NULL + 1 + dictionary.intern(digits)
    return keys


def pack_deltas(
    deltas: Sequence[tuple[Delta, tuple[Column, ...]]], dictionary: Dictionary, head: dict[str, Any]
) -> bytes:
    """Pack deltas into one message.

    It has a head of plain facts, then for each delta a head, its keys, its words, and as an Arrow stream the texts that
    stand for keys.
    """
    parts: list[Any] = [pack_head(head)]
    for delta, columns in deltas:
        keys, texts = _spelled_out(delta.keys, columns, dictionary)
        shape = [len(delta.keys), delta.keys.shape[1], delta.words.shape[1]]
        parts += [pack_head({"name": delta.name, "shape": shape, "texts": bool(texts)}), packed(keys)]
        parts += [packed(np.ascontiguousarray(delta.words)), *([_stream(texts)] if texts else ())]
    return b"".join(parts)


def unpack_deltas(message: bytes, dictionary: Dictionary) -> tuple[dict[str, Any], list[Delta]]:
    """Unpack the head and the deltas of a message, strings numbered by `dictionary`."""
    head, source = unpack_head(message)
    start, deltas = pa.py_buffer(message).address, []
    while source.tell() < source.size():
        note = _read_head(source)
        rows, *widths = note["shape"]
        keys, words = (_matrix(source, start, rows, width) for width in widths)
        if note["texts"]:
            _number(keys, source, dictionary)
        deltas.append(Delta(note["name"], keys, words))
    return head, deltas


def _spelled_out(keys: Words, columns: tuple[Column, ...], dictionary: Dictionary) -> tuple[Words, dict[str, pa.Array]]:
    """Split keys into those without their numbers of texts, and the texts."""
    keys, texts = np.ascontiguousarray(keys), dict[str, pa.Array]()
    for i, column in enumerate(columns):
        if column.type.kind is Kind.VARCHAR:
            texts[f"{TEXT} {i}"] = dictionary.strings(np.ascontiguousarray(keys[:, i]))
        elif column.type.is_wide and (some := spelled(keys[:, i])).any():
            texts[f"{DIGITS} {i}"] = dictionary.strings(np.where(some, keys[:, i] - NULL - 1, -1))
    if texts:
        keys = keys.copy()
        keys[:, [int(name.split()[1]) for name in texts if name.startswith(TEXT)]] = 0
    return keys, texts


def _number(keys: Words, source: pa.BufferReader, dictionary: Dictionary) -> None:
    """Number the texts that stand for keys."""
    with pa.ipc.open_stream(source) as reader:
        batch = reader.read_next_batch()
        for _ in reader:
            raise AssertionError("one batch a delta")
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        kind, at = name.split()
        numbers, own = dictionary.intern(column), keys[:, int(at)]
        keys[:, int(at)] = numbers if kind == TEXT else np.where(numbers < 0, own, NULL + 1 + numbers)


def _stream(columns: dict[str, pa.Array]) -> Any:
    """Write columns as an Arrow stream, padded."""
    sink, batch = pa.BufferOutputStream(), pa.record_batch(columns)
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue()


def _matrix(source: pa.BufferReader, start: int, rows: int, width: int) -> Words:
    """Read the next matrix of a message that starts at an address."""
    matrix, size = unpacked(start + source.tell(), rows, width)
    source.seek(size, 1)
    return matrix


def pack_head(facts: dict[str, Any]) -> bytes:
    """Pack plain facts as the beginning of a message, padded so that what Arrow writes behind them is aligned."""
    line = json.dumps(facts).encode()
    line += b" " * (-(len(line) + 4) % 64)
    return len(line).to_bytes(4, "little") + line


def unpack_head(message: bytes) -> tuple[dict[str, Any], pa.BufferReader]:
    """Unpack the facts at the beginning of a message, with a reader of the rest."""
    source = pa.BufferReader(message)
    return _read_head(source), source


def _read_head(source: pa.BufferReader) -> Any:
    return json.loads(source.read(int.from_bytes(source.read(4), "little")))
