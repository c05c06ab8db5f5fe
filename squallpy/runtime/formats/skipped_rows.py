"""Rows left out under OPTIONS (on_error 'skip'): counted, the first few described, carried in a table's metadata.

NB: in the metadata because it then travels wherever Arrow tables go, from worker to driver too.
"""

import json
from dataclasses import dataclass
from typing import Any

KEY = b"squallpy.skipped"
EXAMPLES = 5


@dataclass(frozen=True, slots=True)
class Skipped:
    """How many rows were left out, and why the first of them were."""

    count: int = 0
    examples: tuple[str, ...] = ()

    def __add__(self, other: "Skipped") -> "Skipped":
        return Skipped(self.count + other.count, (self.examples + other.examples)[:EXAMPLES])


def mark_skipped(table: Any, skipped: Skipped) -> Any:
    """The table with the count in its metadata; unchanged if nothing was skipped."""
    from squallpy.runtime.formats.counted_table import marked

    if not skipped.count:
        return table
    return marked(table, {KEY: json.dumps([skipped.count, skipped.examples]).encode()})


def skipped(table: Any) -> Skipped:
    """What was left out when a table or record batch was read."""
    text = (table.schema.metadata or {}).get(KEY)
    if text is None:
        return Skipped()
    count, examples = json.loads(text)
    return Skipped(count, tuple(examples))
