"""Rows of one file as read; checksums of the bytes read, and images of updates, travel in the table's metadata.

NB: in the metadata, as counts of skipped rows are, because it then travels wherever Arrow tables go.
"""

import json
from collections.abc import Mapping
from dataclasses import field
from typing import Any

import pyarrow as pa

from squallpy.base.records import dataclass
from squallpy.runtime.formats.counted_table import with_metadata
from squallpy.runtime.formats.type_conversion import Problem

_KEY = b"squallpy.checksums"
READ, IMAGES = "read", "images"  # the names of statistics
Checksums = Mapping[str, Mapping[str, int]]
"""Checksums by number of a source's file, then by column; '' for bytes that all columns need."""


@dataclass(frozen=True, slots=True)
class FileRows:
    """Rows of a file.

    Args:
        wrong: Problems of faulty rows, by their number from the first.
        checksums: Checksums by column.
        images: Number of old rows of updates minus that of new ones.
        is_ordered: False if others of the same table come beside them, no one knows which first.
    """

    table: pa.Table
    wrong: dict[int, Problem] = field(default_factory=dict)
    checksums: Mapping[str, int] = field(default_factory=dict)
    images: int = 0
    is_ordered: bool = True


def mark_read(table: Any, checksums: Checksums, images: int) -> Any:
    """Add checksums and images to the table's metadata; unchanged if there are none."""
    if not checksums and not images:
        return table
    return with_metadata(table, {**(table.schema.metadata or {}), _KEY: json.dumps([checksums, images]).encode()})


class ReadStats:
    """Checksums and images of the tables of several sources; a range that is read twice counts once."""

    def __init__(self) -> None:
        self._found: dict[str, dict[str, dict[str, int]]] = {}
        self._images: dict[str, int] = {}

    def add(self, source: str, table: Any) -> None:
        """Add those of a table."""
        text = (table.schema.metadata or {}).get(_KEY)
        if text is None:
            return
        checksums, self._images[source] = json.loads(text)
        for part, sums in checksums.items():
            self._found.setdefault(source, {}).setdefault(part, {}).update(sums)

    @property
    def stats(self) -> dict[str, Any]:
        """Statistics of a batch, which are added up over its tasks, by source and file; empty if nothing was read."""
        found = {s: {p: sum(sums.values()) for p, sums in parts.items()} for s, parts in self._found.items()}
        images = {source: count for source, count in self._images.items() if count}
        return ({READ: found} if found else {}) | ({IMAGES: images} if images else {})
