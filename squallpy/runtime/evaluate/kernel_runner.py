"""The runner of programs over record batches, or over vectors, whose memory the kernel reads in place."""

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from squallpy.base.types import Kind
from squallpy.runtime.evaluate.kernel_programs import ComputedColumn, KernelProgram
from squallpy.runtime.evaluate.vectors import Vec, VectorFrame
from squallpy.runtime.kernels import batch_expressions as op
from squallpy.runtime.kernels.memory_regions import Words

_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)

_FORMATS = {  # formats in which kernels read Arrow's types, by SQL kind
    Kind.BOOLEAN: {pa.lib.Type_BOOL: op.BITS},
    Kind.DATE: {pa.lib.Type_DATE32: op.HALVES},
    Kind.TIMESTAMP: {pa.lib.Type_TIMESTAMP: op.WORDS},
    Kind.DAY_TO_SECOND: {pa.lib.Type_DURATION: op.WORDS},
    Kind.INT: {pa.lib.Type_INT64: op.WORDS},
    Kind.BIGINT: {pa.lib.Type_INT64: op.WORDS},
    Kind.DECIMAL: {pa.lib.Type_DECIMAL128: op.DECIMALS},
    Kind.DOUBLE: {pa.lib.Type_DOUBLE: op.WORDS},
    Kind.VARCHAR: {pa.lib.Type_STRING: op.TEXTS, pa.lib.Type_LARGE_STRING: op.LONG_TEXTS},
}

KernelResult = tuple[Words, Words, Words]
_NO_SUMS = np.empty(0, np.int64)
_LENGTH, _OFFSET, _ARRAY_WORDS = 0, 2, 10  # of an ArrowArray


class ExportedBatch:
    """A record batch exported through Arrow's C data interface: `address` is valid as long as this object lives."""

    def __init__(self, table: pa.RecordBatch) -> None:
        self.table, self.rows, self.schema = table, len(table), table.schema
        _, self._exported = table.__arrow_c_array__()
        self.address = _pointer(self._exported, b"arrow_array")


class ExportedRange(ExportedBatch):
    """Rows of a record batch that is exported once: a copy of its `ArrowArray`, which begins elsewhere.

    To export the slice of a batch for each of its rows' ranges takes longer than a program over a few hundred rows.
    """

    def __init__(self, whole: ExportedBatch) -> None:
        self._whole, self.schema = whole, whole.schema
        self._array = np.array((ctypes.c_int64 * _ARRAY_WORDS).from_address(whole.address), np.int64)
        self._offset = int(self._array[_OFFSET])
        self.address, self._begin = int(self._array.ctypes.data), 0
        self.move(0, 0)

    def move(self, begin: int, rows: int) -> None:
        """Let it be other rows."""
        self.rows, self._begin = rows, begin
        self._array[_LENGTH], self._array[_OFFSET] = rows, self._offset + begin

    @property
    def table(self) -> pa.RecordBatch:
        """The rows as a slice."""
        return self._whole.table.slice(self._begin, self.rows)


class Runner:
    """A program with its buffers. Not shared between threads: it reuses its scratch.

    Its results are keys, payloads and numbers of the rows that passed the filter; None if slower evaluators have to be
    used.
    """

    def __init__(self, program: KernelProgram, key_width: int, payload_width: int) -> None:
        self._program, self._widths = program, (key_width, payload_width)
        self._columns = np.zeros((len(program.sources), op.COLUMN), np.int64)
        self._computed = [(c, source) for c, source in enumerate(program.sources) if isinstance(source, ComputedColumn)]
        self._scratch = np.empty(op.scratch_words(program.registers), np.int64)
        self._schema: pa.Schema | None = None
        self._readable = False

    @property
    def is_whole(self) -> bool:
        """True if the program reads nothing but fields."""
        return not self._computed

    @property
    def arrays(self) -> tuple[Words, Words, Words]:
        """The program, its columns, which are rewritten in place, and its scratch."""
        return self._program.code, self._columns, self._scratch

    @property
    def widths(self) -> tuple[int, int]:
        """Words of a key and of a payload."""
        return self._widths

    def fits(self, schema: pa.Schema) -> bool:
        """Locate the fields in batches of a schema; False if the program cannot read one of them."""
        self._schema, self._readable = schema, self._locate_fields(schema)
        return self._readable

    def over_batch(
        self, batch: ExportedBatch, frame: Callable[[], VectorFrame], sums: Words | None = None
    ) -> KernelResult | None:
        """Run over a record batch, of which `frame` has the fields; payloads are added to `sums`, if there are any."""
        if self._schema is None or not self._schema.equals(batch.schema):
            self._schema, self._readable = batch.schema, self._locate_fields(batch.schema)
        if not self._readable:
            return None
        owners = [self._set_column(c, source(frame()), batch.rows) for c, source in self._computed]
        return self._run(batch.rows, batch.address, sums) if all(owners) else None

    def over_vectors(
        self, rows: int, read: Callable[[str], Vec], frame: Callable[[], VectorFrame], sums: Words | None = None
    ) -> KernelResult | None:
        """Run over vectors; `read` gives fields, and `frame` has them; adds payloads to `sums`, if there are any."""
        self._schema = None
        owners = []
        for c, source in enumerate(self._program.sources):
            owners.append(
                self._set_column(c, source(frame()) if isinstance(source, ComputedColumn) else read(source), rows)
            )
            if not owners[-1]:
                return None
        return self._run(rows, 0, sums)

    def _run(self, rows: int, address: int, sums: Words | None) -> KernelResult | None:
        held = rows if sums is None else 0
        keys, words = (np.empty((held, width), np.int64) for width in self._widths)
        row_numbers = np.empty(held, np.int64)
        remaining = op.run_program(
            self._program.code,
            self._columns,
            address,
            rows,
            self._scratch,
            keys,
            words,
            row_numbers,
            _NO_SUMS if sums is None else sums,
        )
        return None if remaining < 0 else (keys[:remaining], words[:remaining], row_numbers[:remaining])

    def _set_column(self, c: int, vec: Vec, rows: int) -> Vec | None:
        """Let a column read a vector, and return the owner of its memory; None if programs cannot read it."""
        if not isinstance(vec.values, np.ndarray) or vec.values.dtype == object:
            return None
        values = np.ascontiguousarray(vec.values)
        valid = None if vec.valid is None else np.ascontiguousarray(vec.valid)
        assert len(values) == rows and (valid is None or len(valid) == rows), "the kernel relies on this"
        format = op.FLAGS if values.dtype == bool else op.WORDS
        self._columns[c] = format, -1, _address(values), 0 if valid is None else _address(valid), 0, 0
        return Vec(values, valid)

    def _locate_fields(self, schema: pa.Schema) -> bool:
        """Locate the fields in a batch; False if programs cannot read one of them."""
        for c, (source, type) in enumerate(zip(self._program.sources, self._program.types, strict=True)):
            if isinstance(source, ComputedColumn):
                continue
            child = schema.get_field_index(source)
            format = _FORMATS.get(type.kind, {}).get(schema.types[child].id) if child >= 0 else None
            if format is None:
                return False
            self._columns[c, [op.FORMAT, op.CHILD]] = format, child
        return True


def _address(array: Any) -> int:
    return int(array.__array_interface__["data"][0])
