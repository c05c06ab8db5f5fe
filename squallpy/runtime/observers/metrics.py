"""Metrics of batches: one JSON line for each.

{"batch": 0, "tuples": 10000, "rows": 25, "seconds": 0.31, "state_bytes": 65536, "skipped": 0, "unmatched": 0,
 "duplicates": 0, "late": 0, "received_bytes": 5210, "compared": 31000, "pairs": 9000, "stages": {"feed": 0.04, …},
 "views": {"M_S": {"records": 900, "bytes": 65536, "keys": 7200, …}, …}, "mapping": null, "ilf": null}

"state_bytes" are bytes in use, in memory or mapped files, summed over partitions, without free space. "received_bytes"
are the messages to all stages, "received_rows" the rows for each partition. "rebuilt", if partitions had lost their
state, has for each the snapshot and the number of steps from which it was rebuilt.

"compared" are the comparisons of lookups: steps of searches in sorted indexes, one for each row that is hashed, one for
each record that is found; "pairs" are the rows that result.

If a query reads matrices, "matrices" has for each program the "rank" of the batch as an update, "how" it was applied
(incremental, or evaluated anew: "why"), the "bytes" of its views, the largest relative "drift" observed from rounding,
and, if a matrix has no inverse now, its name as "singular". If a regression over a join touched groups with features
that are constant or collinear, "singular" has their number by its label.

If a join is on a grid, "mapping" is its (n, m), "ilf" the tuples of a joiner, "ilf_ratio" the ratio of its bytes to
those under the best mapping, "busiest" the ratio of the largest joiner to the mean in the grid, "epoch" the number of
completed migrations, "migrated" the completed fraction of a running one (null: none runs), "copied" the tuples that
joiners sent each other. Under Hybrid, "heavy_keys" have grids of their own.
"""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa

from squallpy.base.errors import SquallError
from squallpy.logical.nodes import Query
from squallpy.runtime.sinks.output_file import AppendedFile

_STAGE = "_seconds"
_OF_A_GRID = ("ilf_ratio", "busiest", "epoch", "migrated", "copied", "heavy_keys")
_OF_LOOKUPS = ("compared", "pairs")
_LEFT_OUT = ("skipped", "unmatched", "duplicates", "late")
_NAMED = ("tuples", "rows", "seconds", "state_bytes", *_LEFT_OUT, "received_bytes", *_OF_LOOKUPS)


class Metrics:
    """A sink that adds lines to a file: a resumed run adds those that the file lacks, any other run starts it over."""

    def __init__(self, path: Path, several: bool = False, resumed: bool = False) -> None:
        self._several, self._query, self._file = several, 1, AppendedFile(path)
        before = self._file.read() if resumed else b""
        whole = before[: before.rfind(b"\n") + 1]  # NB: a crash may have cut the last line short
        self._recorded_batches = _recorded(path, whole)
        self._file.rewrite(whole)

    def begin(self, query: Query, schema: pa.Schema, batches: int | None) -> None:
        self._query = query.number

    def batch(self, number: int, deletes: pa.Table | None, inserts: pa.Table | None, stats: dict[str, Any]) -> None:
        if (self._query, number) in self._recorded_batches:
            return
        self._recorded_batches.add((self._query, number))
        line = metrics_line(number, stats)
        text = json.dumps({"query": self._query} | line if self._several else line)
        self._file.append(f"{text}\n".encode())

    def final(self, table: pa.Table) -> None: ...

    def finish(self, summary: dict[str, Any]) -> None: ...

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def metrics_line(number: int, stats: dict[str, Any]) -> dict[str, Any]:
    """Make the record of a batch; None for figures that are not known."""
    views = stats.get("views")
    known = stats | {"state_bytes": views and sum(view["bytes"] for view in views.values())}
    named = {name: known.get(name) for name in _NAMED}
    stages = {name.removesuffix(_STAGE): value for name, value in stats.items() if name.endswith(_STAGE)}
    shape = {"mapping": stats.get("mapping"), "ilf": stats.get("ilf")}
    if rows := stats.get("received_rows"):
        shape["received_rows"] = [rows.get(str(partition), 0) for partition in range(1 + max(map(int, rows)))]
    shape |= {name: stats[name] for name in _OF_A_GRID if name in stats}
    shape |= {name: stats[name] for name in ("matrices", "singular") if name in stats}
    rebuilt = {"rebuilt": stats["rebuilt"]} if stats.get("rebuilt") else {}  # partitions that had lost their state
    return {"batch": number} | named | {"stages": stages, "views": views} | shape | rebuilt


def _recorded(path: Path, lines: bytes) -> set[tuple[int, int]]:
    """Find the batches of these lines of a file."""
    try:
        known = [json.loads(line) for line in lines.splitlines()]
        return {(line.get("query", 1), line["batch"]) for line in known}
    except (ValueError, KeyError, AttributeError, TypeError):
        raise SquallError("SQ7005", f"{path} is no metrics file of ours", hint="choose another") from None
