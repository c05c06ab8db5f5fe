"""Rows skipped under OPTIONS (on_error 'skip'): their count and first reasons travel in a table's metadata.

NB: in the metadata because it then travels wherever Arrow tables go, from worker to driver too.
"""

import json
from typing import Any

from squallpy.base.records import dataclass

KEY = b"squallpy.skipped"
EXAMPLES = 5


@dataclass(frozen=True, slots=True)
class SkippedRows:
    """The number of rows left out, the reasons of the first, and of all under on_error 'dead-letter', as JSON."""

    count: int = 0
    examples: tuple[str, ...] = ()
    letters: tuple[str, ...] = ()

    def __add__(self, other: "SkippedRows") -> "SkippedRows":
        examples = (self.examples + other.examples)[:EXAMPLES]
        return SkippedRows(self.count + other.count, examples, self.letters + other.letters)


def mark_skipped(table: Any, skipped: SkippedRows) -> Any:
    """Add the count to the table's metadata; unchanged if nothing was skipped."""
    from squallpy.runtime.formats.counted_table import with_metadata

    if not skipped.count:
        return table
    return with_metadata(table, {KEY: json.dumps([skipped.count, skipped.examples, skipped.letters]).encode()})


def skipped(table: Any) -> SkippedRows:
    """Read what was left out from the metadata of a table or record batch."""
    text = (table.schema.metadata or {}).get(KEY)
    if text is None:
        return SkippedRows()
    count, examples, letters = json.loads(text)
    return SkippedRows(count, tuple(examples), tuple(letters))
