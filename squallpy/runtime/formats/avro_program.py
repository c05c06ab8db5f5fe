"""Schemas of Avro, compiled to programs that decode records to columns.

{"fields": [{"name": "id", "type": "long"}, {"name": "who", "type": ["null", "string"]}]}, columns (who)
    →   LONG −   UNION of 2: nothing   BYTE_STRING who   END

Records within records, unions of them and null, and logical types are programs; arrays and maps are passed over, and
fastavro decodes those that are read.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from squallpy.base.records import dataclass
from squallpy.runtime.formats.avro_kernel import (
    BOOLEAN,
    BYTE_STRING,
    DECIMAL,
    DOUBLE,
    END,
    FIXED,
    FIXED_DECIMAL,
    FLOAT,
    ITEMS,
    JUMP,
    LONG,
    NEXT,
    PRESENT,
    UNION,
    decode,
    gather,
)
from squallpy.runtime.formats.avro_schema import DEBEZIUM, PLAIN, TIMES

Path = tuple[str, ...]
_START = np.zeros(1, np.int64)
_READ = {
    "boolean": BOOLEAN, "int": LONG, "long": LONG, "float": FLOAT, "double": DOUBLE, "bytes": BYTE_STRING,
    "string": BYTE_STRING,
}  # fmt: skip


class NotFlat(Exception):
    """A schema of which no program can be made."""


@dataclass(frozen=True, slots=True)
class AvroColumn:
    """A column of a program: how its values are read, and what they are."""

    op: int
    type: pa.DataType
    symbols: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AvroProgram:
    """A compiled schema, with a column for each path that is wanted; None for those that it does not have.

    Args:
        depth: How many arrays and maps are within each other.
    """

    code: npt.NDArray[np.int64]
    jumps: npt.NDArray[np.int64]
    columns: tuple[AvroColumn | None, ...]
    depth: int = 0

    def run(self, data: npt.NDArray[np.uint8], starts: Any, ends: Any) -> tuple[list[pa.Array], npt.NDArray[np.uint8]]:
        """Decode records between places of bytes; return the columns, and which records are none."""
        found, wrong = self._run(data, starts, ends, len(starts))
        return [pa.nulls(len(starts)) if column is None else column for column in found], wrong

    def run_through(self, data: bytes, rows: int) -> list[pa.ChunkedArray | None]:
        """Decode records that follow each other, to the end of the bytes; ValueError if one is none."""
        found, wrong = self._run(np.frombuffer(data, np.uint8), _START, np.array([len(data)]), rows)
        if wrong.any():
            raise ValueError(f"record {int(wrong.argmax()) + 1:,} of a block is none of its schema")
        return [column if column is None else pa.chunked_array([column]) for column in found]

    def _run(
        self, data: npt.NDArray[np.uint8], starts: Any, ends: Any, rows: int
    ) -> tuple[list[pa.Array | None], npt.NDArray[np.uint8]]:
        shape = len(self.columns), rows
        words, lengths, valid = np.zeros(shape, np.int64), np.zeros(shape, np.int64), np.zeros(shape, np.uint8)
        wrong = np.zeros(rows, np.uint8)
        counts = np.zeros(self.depth + 1, np.int64)
        decode(data, starts, ends, self.code, self.jumps, counts, words, lengths, valid, wrong)
        valid[:, wrong != 0] = 0
        found = [
            None if column is None else _values(column, data, words[i], lengths[i], valid[i])
            for i, column in enumerate(self.columns)
        ]
        return found, wrong


@lru_cache(maxsize=256)
def program_of(schema: str, wanted: tuple[Path, ...]) -> AvroProgram | None:
    """Compile a schema for some paths, in any case; None if no program can be made."""
    compiler = _Compiler([tuple(name.lower() for name in path) for path in wanted])
    try:
        compiler.value(json.loads(schema), ())
    except NotFlat:
        return None
    compiler.emit(END)
    code, jumps = np.array(compiler.code, np.int64), np.array([*compiler.jumps, 0], np.int64)
    return AvroProgram(code, jumps, tuple(compiler.columns.get(i) for i in range(len(wanted))), compiler.deepest)


@dataclass
class _Compiler:
    wanted: Sequence[Path]
    code: list[int] = field(default_factory=list)
    jumps: list[int] = field(default_factory=list)
    columns: dict[int, AvroColumn] = field(default_factory=dict)
    named: dict[str, Any] = field(default_factory=dict)
    inside: list[str] = field(default_factory=list)
    depth: int = 0
    deepest: int = 0

    def emit(self, op: int, column: int = -1, extra: int = 0) -> None:
        self.code += [op, column, extra]

    def value(self, schema: Any, path: Path) -> None:
        """Compile what reads a value at a path."""
        if isinstance(schema, list):
            self._union(schema, path)
        elif isinstance(schema, str) and schema not in PLAIN:
            if schema not in self.named or schema in self.inside:
                raise NotFlat
            self.value(self.named[schema], path)
        elif isinstance(schema, dict) and schema["type"] in ("record", "error"):
            self._record(schema, path)
        else:
            self._leaf(schema if isinstance(schema, dict) else {"type": schema}, path)

    def _record(self, schema: Mapping[str, Any], path: Path) -> None:
        if path in self.wanted:
            raise NotFlat
        name = self._name(schema)
        if (*path, "") in self.wanted:
            self.emit(PRESENT, self._column((*path, ""), AvroColumn(PRESENT, pa.string())))
        self.inside.append(name)
        for each in schema["fields"]:
            self.value(each["type"], (*path, each["name"].lower()))
        self.inside.pop()

    def _union(self, branches: Sequence[Any], path: Path) -> None:
        first, ends = len(self.jumps), list[int]()
        self.emit(UNION, len(branches), first)
        self.jumps += [0] * len(branches)
        for number, branch in enumerate(branches):
            self.jumps[first + number] = len(self.code)
            if branch != "null":
                self.value(branch, path)
            ends.append(len(self.code) + 2)
            self.emit(JUMP)
        for at in ends:
            self.code[at] = len(self.code)

    def _items(self, schema: Mapping[str, Any], path: Path) -> None:
        """Compile what passes over an array or a map."""
        if any(each[: len(path)] == path for each in self.wanted):
            raise NotFlat
        head, self.depth = len(self.code), self.depth + 1
        self.deepest = max(self.deepest, self.depth)
        self.emit(ITEMS, self.depth)
        if schema["type"] == "map":
            self.emit(BYTE_STRING)
        self.value(schema["items" if schema["type"] == "array" else "values"], (*path, "[]"))
        if len(self.code) == head + 3:  # NB: of items without a byte there may be any number
            raise NotFlat
        self.emit(NEXT, self.depth, head)
        self.code[head + 2] = len(self.code)
        self.depth -= 1

    def _leaf(self, schema: Mapping[str, Any], path: Path) -> None:
        kind, logical = schema["type"], schema.get("logicalType")
        if isinstance(kind, dict | list):
            self.value(kind, path)
            return
        if kind in ("array", "map"):
            self._items(schema, path)
            return
        if any(len(each) > len(path) and each[: len(path)] == path for each in self.wanted):
            raise NotFlat
        if kind == "null":
            return
        if kind in ("enum", "fixed"):
            self._name(schema)
        type = DEBEZIUM.get(schema.get("connect.name", "")) or TIMES.get(logical or "")
        size = schema.get("size", 0)
        if kind == "enum":
            column, size = AvroColumn(LONG, pa.string(), tuple(schema["symbols"])), len(schema["symbols"])
        elif logical == "decimal" and kind in ("bytes", "fixed") and schema["precision"] <= 38:
            decimal = pa.decimal128(schema["precision"], schema.get("scale", 0))
            column = AvroColumn(DECIMAL if kind == "bytes" else FIXED_DECIMAL, decimal)
        elif kind == "fixed":
            column = AvroColumn(FIXED, pa.binary())
        elif kind in _READ:
            column = AvroColumn(_READ[kind], type or PLAIN[kind])
        else:
            self.value(kind, path)
            return
        self.emit(column.op, self._column(path, column), size)

    def _column(self, path: Path, column: AvroColumn) -> int:
        """Find the column that gets what is at a path; −1 if none does."""
        places = [i for i, each in enumerate(self.wanted) if each == path]
        if not places:
            return -1
        known = self.columns.setdefault(places[0], column)
        if len(places) > 1 or known.op != column.op or known.symbols != column.symbols:
            raise NotFlat
        if known.type != column.type:
            wide = pa.int64() if pa.types.is_integer(known.type) and pa.types.is_integer(column.type) else None
            if wide is None:
                raise NotFlat
            self.columns[places[0]] = AvroColumn(column.op, wide)
        return places[0]

    def _name(self, schema: Mapping[str, Any]) -> str:
        """Note a schema by its name, with and without its namespace."""
        name: str = schema["name"]
        for each in (name, name.rpartition(".")[2], f"{schema.get('namespace', '')}.{name}"):
            self.named[each] = schema
        return name


def _values(column: AvroColumn, data: Any, words: Any, lengths: Any, valid: Any) -> pa.Array:
    """Make a column of what a program has read."""
    mask, op, type = valid == 0, column.op, column.type
    if op == PRESENT:
        return pc.if_else(pa.array(valid != 0), "true", pa.scalar(None, pa.string()))
    if column.symbols:
        return pa.array(column.symbols).take(pa.array(np.where(mask, 0, words), mask=mask))
    if op == LONG:
        numbers = pa.array(words, mask=mask)
        if pa.types.is_temporal(type) and type.bit_width == 64:
            return numbers.cast(type)
        return numbers.cast(pa.int32(), safe=False).cast(type) if type.bit_width == 32 else numbers
    if op == BOOLEAN:
        return pa.array(words != 0, mask=mask)
    if op == FLOAT:
        return pa.array(words.astype(np.uint32).view(np.float32), mask=mask)
    if op == DOUBLE:
        return pa.array(words.view(np.float64), mask=mask)
    bitmap = pa.array(valid != 0).buffers()[1] if mask.any() else None
    if op in (DECIMAL, FIXED_DECIMAL):
        both = np.ascontiguousarray(np.stack([words, lengths], axis=1))
        return pa.Array.from_buffers(type, len(words), [bitmap, pa.py_buffer(both)])
    offsets = np.zeros(len(words) + 1, np.int32)
    sizes = np.where(mask, 0, lengths)
    np.cumsum(sizes, out=offsets[1:])
    out = np.empty(int(offsets[-1]), np.uint8)
    gather(data, words, sizes, out)
    found = pa.Array.from_buffers(pa.binary(), len(words), [bitmap, pa.py_buffer(offsets), pa.py_buffer(out)])
    return found.cast(pa.string()) if pa.types.is_string(type) and _is_text(found) else found


def _is_text(values: pa.Array) -> bool:
    """True if values are UTF-8; others are bytes, for which their rows are at fault where they are read as text."""
    try:
        values.cast(pa.string())
    except pa.ArrowInvalid:
        return False
    return True
