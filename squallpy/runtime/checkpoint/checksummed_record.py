"""Small records of a durable folder: a line of text with its checksum, without which it is rejected.

write_record(folder, "batch", "24")   →   24 3b8a2c5e
"""

import zlib

from squallpy.base.errors import SquallError
from squallpy.base.local_paths import join_path
from squallpy.runtime.checkpoint.durable_folder import Durable

ANEW = "bring it back from a copy, or choose a new checkpoint"


def write_record(folder: Durable, name: str, text: str) -> None:
    """Write a record, replacing the former one."""
    folder.create(name, lambda sink: sink.write(_with_checksum(text.encode())))


def read_record(folder: Durable, name: str, path: str) -> str | None:
    """Read a record of the folder at `path`; None if there is none, SQ6005 if it is damaged."""
    data = folder.read(name)
    if data is None:
        return None
    text = data.rpartition(b" ")[0]
    if data != _with_checksum(text):
        raise damaged_error(name, path)
    return text.decode()


def damaged_error(name: str, path: str) -> SquallError:
    return SquallError("SQ6005", f"the state is lost: {join_path(path, name)} damaged", hint=ANEW)


def _with_checksum(text: bytes) -> bytes:
    return text + b" %08x" % zlib.crc32(text)
