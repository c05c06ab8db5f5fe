"""Compressed text files: decompressed once in a process, so that any range of their rows can be read.

r.csv.gz, or OPTIONS (compression 'gzip')   →   gzip
"""

import tempfile
from functools import lru_cache
from typing import Any

import pyarrow as pa

from squallpy.base.errors import SquallError
from squallpy.runtime.formats.relation_files import File, reason

SUFFIXES = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4"}
OTHERS = (".zip", ".xz")
MAGIC = {b"\x1f\x8b\x08": "gzip", b"BZh": "bz2", b"\x28\xb5\x2f\xfd": "zstd", b"\x04\x22\x4d\x18": "lz4"}
OTHER_MAGIC = (b"PK\x03\x04", b"\xfd7zX")
CHUNK = 1 << 20
IN_MEMORY = 1 << 22  # bytes; longer texts are mapped
MOST_FILES = 64  # whose texts a process keeps


def named_codec(file: File, option: str) -> str:
    """Return the codec of a file: that of the `option`, else that of its suffix; none if it is not compressed."""
    if option:
        return "" if option == "none" else option
    return next((codec for suffix, codec in SUFFIXES.items() if file.display_name.endswith(suffix)), "")


def codec_of(file: File, option: str) -> str:
    """Return the codec of a file as it is named; SQ4001 where the first bytes are of another one."""
    with file.open() as source:
        head = source.read_at(min(4, file.size), 0)
    if (not option and file.display_name.endswith(OTHERS)) or head.startswith(OTHER_MAGIC):
        hint = "decompress it, or compress it as .gz, .bz2, .zst or .lz4"
        raise SquallError("SQ4001", f"{file.display_name} is compressed as zip or xz", hint=hint)
    codec = named_codec(file, option)
    found = next((codec for mark, codec in MAGIC.items() if head.startswith(mark)), "")
    if found and not option and not codec and found != "bz2":  # NB: a text may well begin with BZh
        hint = f"write OPTIONS (compression '{found}')"
        raise SquallError("SQ4001", f"{file.display_name} is compressed", hint=hint)
    return codec


def open_text(file: File, codec: str) -> tuple[Any, int]:
    """Open the text of a file for random access, and return its size."""
    if not codec:
        return file.open(), file.size
    text = _decompressed(file, codec)
    return pa.BufferReader(text), text.size


@lru_cache(maxsize=MOST_FILES)
def _decompressed(file: File, codec: str) -> pa.Buffer:
    """Read a file, decompressed; SQ4001 if it is not of the codec, or ends early."""
    with file.open() as source, tempfile.NamedTemporaryFile(prefix="squallpy-") as sink:
        try:
            with pa.CompressedInputStream(source.get_stream(0, file.size), codec) as stream:
                while data := stream.read(CHUNK):
                    sink.write(data)
        except (OSError, pa.ArrowInvalid) as error:
            message = f"{file.display_name} cannot be decompressed as {codec}: {reason(error)}"
            raise SquallError("SQ4001", message) from None
        file.check()
        sink.flush()
        if sink.tell() <= IN_MEMORY:
            sink.seek(0)
            return pa.py_buffer(sink.read())
        with pa.memory_map(sink.name) as mapped:  # NB: outlives the name
            return mapped.read_buffer()
