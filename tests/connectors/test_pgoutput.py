"""Messages of the log on their way to tasks."""

import struct

from squallpy.runtime.connectors.postgres.pgoutput import Changes, Layout
from squallpy.runtime.connectors.postgres.postgres_source import LogSlice
from squallpy.runtime.sources.input import Slices, decode_slices, encode_slices


def insert(number: int) -> bytes:
    text = str(number).encode()
    return b"I" + struct.pack(">IcH", 7, b"N", 1) + b"t" + struct.pack(">I", len(text)) + text


def test_tasks_are_sent_messages_packed() -> None:
    layout = Layout(7, "public.t", ("v",), (23,), (-1,))
    for count in (0, 3, 5000):
        slices = [Slices({"t": (LogSlice((Changes(layout, [*map(insert, range(count))]),), None),)}), Slices()]
        text = encode_slices(slices, {})
        assert len(text) < 1000 + 8 * count  # NB: of 15 bytes each, and more as objects
        found, nothing = decode_slices(text, {})
        assert not nothing
        if count:
            assert found["t"][0].read(("v",)).column("v").to_pylist() == [*map(str, range(count))]
