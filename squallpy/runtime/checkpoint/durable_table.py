"""Tables as files of a durable folder: Arrow's IPC format, with a checksum at the end."""

import zlib
from functools import lru_cache

import pyarrow as pa

from squallpy.runtime.checkpoint.checksummed_record import damaged_error
from squallpy.runtime.checkpoint.durable_folder import open_durable

_CRC = 4  # bytes of the checksum


def write_table(folder: str, name: str, table: pa.Table, writer: str, compression: str | None = None) -> None:
    """Write a table with its metadata.

    Args:
        folder: The path or URI of a durable folder.
        writer: Who writes there (`open_durable`).
        compression: lz4 or zstd; None: none.
    """
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as stream:
        stream.write_table(table)
    data = sink.getvalue()
    parts = data, zlib.crc32(data).to_bytes(_CRC, "big")
    open_durable(folder, writer).create(name, lambda file: [file.write(part) for part in parts])


def read_table(folder: str, name: str) -> pa.Table:
    """Read a table; SQ6005 if its file is damaged or not there."""
    data = open_durable(folder).read(name)
    if data is None or zlib.crc32(memoryview(data)[:-_CRC]) != int.from_bytes(data[-_CRC:], "big"):
        raise damaged_error(name, folder)
    with pa.ipc.open_file(pa.BufferReader(memoryview(data)[:-_CRC])) as reader:
        return reader.read_all()


read_again = lru_cache(maxsize=4)(read_table)
"""Reads a table whose file does not change: successive batches read the same ones."""
