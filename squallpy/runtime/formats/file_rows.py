"""Rows of one file as they were read; checksums of what they were read from, and images of updates, in metadata.

NB: in the metadata because it then travels wherever Arrow tables go, as what was skipped does.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from squallpy.runtime.formats.conform import Problem
from squallpy.runtime.formats.counted_table import marked

_KEY = b"squallpy.checksums"
READ, IMAGES = "read", "images"  # as statistics call them
Checksums = Mapping[str, Mapping[str, int]]
"""By the number of a file of a source, and by column ('' for what all columns need): checksums of what was read."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Rows of a file; the problems of those at fault, by their number from the first; checksums by column; and how many
    more rows are the old ones of updates than the new ones."""

    table: pa.Table
    wrong: dict[int, Problem] = field(default_factory=dict)
    checksums: Mapping[str, int] = field(default_factory=dict)
    images: int = 0


def mark_read(table: Any, checksums: Checksums, images: int) -> Any:
    """The table with checksums and images in its metadata; unchanged if there are none."""
    if not checksums and not images:
        return table
    return marked(table, {**(table.schema.metadata or {}), _KEY: json.dumps([checksums, images]).encode()})


class Sums:
    """Checksums and images of what tables of several sources were read from; what is read twice counts once."""

    def __init__(self) -> None:
        self._found: dict[str, dict[str, dict[str, int]]] = {}
        self._images: dict[str, int] = {}

    def add(self, source: str, table: Any) -> None:
        """Take those of a table."""
        text = (table.schema.metadata or {}).get(_KEY)
        if text is None:
            return
        checksums, self._images[source] = json.loads(text)
        for part, sums in checksums.items():
            self._found.setdefault(source, {}).setdefault(part, {}).update(sums)

    @property
    def stats(self) -> dict[str, Any]:
        """As statistics of a batch, which are added up over its tasks: by source and file; none if nothing was read."""
        found = {s: {p: sum(sums.values()) for p, sums in parts.items()} for s, parts in self._found.items()}
        images = {source: count for source, count in self._images.items() if count}
        return ({READ: found} if found else {}) | ({IMAGES: images} if images else {})
