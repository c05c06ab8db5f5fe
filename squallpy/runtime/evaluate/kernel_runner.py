"""Programs run over record batches, or over vectors, whose memory the kernel reads as it is."""

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from squallpy.base.types import Kind
from squallpy.runtime.evaluate.kernel_programs import Computed, Program
from squallpy.runtime.evaluate.vectors import Frame, Vec
from squallpy.runtime.kernels import expressions as op
from squallpy.runtime.kernels.regions import Words

_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)

_FORMATS = {  # how a kernel reads Arrow's types, by kind of ours
    Kind.BOOLEAN: {pa.lib.Type_BOOL: op.BITS},
    Kind.DATE: {pa.lib.Type_DATE32: op.HALVES},
    Kind.TIMESTAMP: {pa.lib.Type_TIMESTAMP: op.WORDS},
    Kind.INT: {pa.lib.Type_INT64: op.WORDS},
    Kind.BIGINT: {pa.lib.Type_INT64: op.WORDS},
    Kind.DECIMAL: {pa.lib.Type_DECIMAL128: op.DECIMALS},
    Kind.DOUBLE: {pa.lib.Type_DOUBLE: op.WORDS},
    Kind.VARCHAR: {pa.lib.Type_STRING: op.TEXTS, pa.lib.Type_LARGE_STRING: op.LONG_TEXTS},
}

Found = tuple[Words, Words, Words]


class Batch:
    """A record batch, exported through Arrow's C data interface: `address` is good as long as this lives."""

    def __init__(self, table: pa.RecordBatch) -> None:
        self.rows, self.schema = len(table), table.schema
        _, self._exported = table.__arrow_c_array__()
        self.address = _pointer(self._exported, b"arrow_array")


class Runner:
    """A program made runnable. Not shared between threads: it reuses its scratch.

    What it answers with are keys, payloads and numbers of the rows that are left; None where only slower ways have an
    answer.
    """

    def __init__(self, program: Program, key_width: int, payload_width: int) -> None:
        self._program, self._widths = program, (key_width, payload_width)
        self._columns = np.zeros((len(program.sources), op.COLUMN), np.int64)
        self._computed = [(c, source) for c, source in enumerate(program.sources) if isinstance(source, Computed)]
        self._scratch = np.empty(op.scratch_words(program.registers), np.int64)
        self._schema: pa.Schema | None = None
        self._readable = False

    def over_batch(self, batch: Batch, frame: Callable[[], Frame]) -> Found | None:
        """Run over a record batch, of which `frame` has the fields."""
        if self._schema is None or not self._schema.equals(batch.schema):
            self._schema, self._readable = batch.schema, self._find(batch.schema)
        if not self._readable:
            return None
        held = [self._give(c, source(frame()), batch.rows) for c, source in self._computed]
        return self._run(batch.rows, batch.address) if all(held) else None

    def over_vectors(self, rows: int, read: Callable[[str], Vec], frame: Callable[[], Frame]) -> Found | None:
        """Run over vectors; `read` gives fields, and `frame` has them."""
        self._schema = None
        held = []
        for c, source in enumerate(self._program.sources):
            held.append(self._give(c, source(frame()) if isinstance(source, Computed) else read(source), rows))
            if not held[-1]:
                return None
        return self._run(rows, 0)

    def _run(self, rows: int, address: int) -> Found | None:
        keys, words = (np.empty((rows, width), np.int64) for width in self._widths)
        kept = np.empty(rows, np.int64)
        left = op.run_program(self._program.code, self._columns, address, rows, self._scratch, keys, words, kept)
        return None if left < 0 else (keys[:left], words[:left], kept[:left])

    def _give(self, c: int, vec: Vec, rows: int) -> Vec | None:
        """Let a column be a vector: what holds its memory; None if it is not as programs read it."""
        if not isinstance(vec.values, np.ndarray) or vec.values.dtype == object:
            return None
        values = np.ascontiguousarray(vec.values)
        valid = None if vec.valid is None else np.ascontiguousarray(vec.valid)
        assert len(values) == rows and (valid is None or len(valid) == rows), "the kernel trusts this"
        format = op.FLAGS if values.dtype == bool else op.WORDS
        self._columns[c] = format, -1, _address(values), 0 if valid is None else _address(valid), 0, 0
        return Vec(values, valid)

    def _find(self, schema: pa.Schema) -> bool:
        """Note where in a batch the fields are; False if one is not as programs read it."""
        for c, (source, type) in enumerate(zip(self._program.sources, self._program.types, strict=True)):
            if isinstance(source, Computed):
                continue
            child = schema.get_field_index(source)
            format = _FORMATS.get(type.kind, {}).get(schema.types[child].id) if child >= 0 else None
            if format is None:
                return False
            self._columns[c, [op.FORMAT, op.CHILD]] = format, child
        return True


def _address(array: Any) -> int:
    return int(array.__array_interface__["data"][0])
