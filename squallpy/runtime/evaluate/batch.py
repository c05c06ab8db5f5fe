"""Programs run over record batches, whose memory the kernel reads as it is."""

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from squallpy.runtime.evaluate.coded import Program
from squallpy.runtime.evaluate.vector import Frame
from squallpy.runtime.kernels import expressions as op
from squallpy.runtime.kernels.storage import Words

_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)

_FORMATS = {
    pa.lib.Type_BOOL: op.BITS,
    pa.lib.Type_INT64: op.WORDS,
    pa.lib.Type_TIMESTAMP: op.WORDS,
    pa.lib.Type_DOUBLE: op.WORDS,
    pa.lib.Type_DATE32: op.HALVES,
    pa.lib.Type_DECIMAL128: op.DECIMALS,
    pa.lib.Type_STRING: op.TEXTS,
    pa.lib.Type_LARGE_STRING: op.LONG_TEXTS,
}


class Batch:
    """A record batch, exported through Arrow's C data interface: `address` is good as long as this lives."""

    def __init__(self, table: pa.RecordBatch) -> None:
        self.rows, self.schema = len(table), table.schema
        _, self._exported = table.__arrow_c_array__()
        self.address = _pointer(self._exported, b"arrow_array")


class Runner:
    """A program made runnable. Not shared between threads: it reuses its scratch."""

    def __init__(self, program: Program, key_width: int, payload_width: int) -> None:
        self._program, self._widths = program, (key_width, payload_width)
        self._computed = [(c, source) for c, source in enumerate(program.sources) if not isinstance(source, str)]
        self._columns = np.zeros((len(program.sources), op.COLUMN), np.int64)
        self._scratch = np.empty(op.scratch_words(program.registers), np.int64)
        self._schema: pa.Schema | None = None
        self._readable = False

    def __call__(self, batch: Batch, frame: Callable[[], Frame]) -> tuple[Words, Words, Words] | None:
        """Keys, payloads and numbers of the rows that are left; None where only slower ways have an answer."""
        if self._schema is None or not self._schema.equals(batch.schema):
            self._schema, self._readable = batch.schema, self._find(batch.schema)
        if not self._readable:
            return None
        computed = [(c, *source(frame())) for c, source in self._computed]  # NB: holds the memory until the end
        for c, values, valid in computed:
            self._columns[c, op.VALUES] = _address(values)
            self._columns[c, op.VALID] = 0 if valid is None else _address(valid)
        keys, words = (np.empty((batch.rows, width), np.int64) for width in self._widths)
        kept = np.empty(batch.rows, np.int64)
        program = self._program
        left = op.run_program(program.code, self._columns, batch.address, batch.rows, self._scratch, keys, words, kept)
        return None if left < 0 else (keys[:left], words[:left], kept[:left])

    def _find(self, schema: pa.Schema) -> bool:
        """Note where in a batch the fields are; False if one is not as programs read it."""
        for c, (source, format) in enumerate(zip(self._program.sources, self._program.formats, strict=True)):
            child = schema.get_field_index(source) if isinstance(source, str) else -1
            if child >= 0:
                found = _FORMATS.get(schema.types[child].id, -1)
                if found != format and (found, format) != (op.LONG_TEXTS, op.TEXTS):
                    return False
                format = found
            self._columns[c, [op.FORMAT, op.CHILD]] = format, child
        return True


def _address(array: Any) -> int:
    return int(array.__array_interface__["data"][0])
