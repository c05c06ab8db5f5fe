"""One JSON line per batch, once.

{"batch": 0, "tuples": 10000, "rows": 25, "seconds": 0.31, "state_bytes": 65536, "skipped": 0, "unmatched": 0,
 "duplicates": 0, "late": 0, "received_bytes": 5210, "compared": 31000, "pairs": 9000, "stages": {"feed": 0.04, …},
 "views": {"M_S": {"records": 900, "bytes": 65536, "keys": 7200, …}, …}, "mapping": null, "ilf": null}

Bytes of state are those in use, in memory or mapped files, added up over partitions; room to grow is not counted. What
partitions received is what all stages were sent; "received_rows" are those of each partition. "rebuilt", if any
partition had lost its state, says of each which, and from what it was made anew: a snapshot and so many steps.

"compared" are the comparisons that lookups made: steps of searches in sorted indexes, one for each row that is hashed,
one for each record that was found; "pairs" are the rows that came of them.

Where a query reads matrices, "matrices" says of each program the "rank" of the batch as an update, "how" it was applied
(incremental, or evaluated anew: "why"), the "bytes" of its views, the largest relative "drift" that rounding was seen
to have made, and, if a matrix has no inverse now, which is "singular".

Where a join is on a grid, "mapping" is its (n, m), "ilf" how many tuples a joiner has, "ilf_ratio" its bytes by the
least that any mapping would make them, "busiest" what the joiner with most has by the mean of all in the grid, "epoch"
how many migrations are done, "migrated" how much of one that runs is (null: none does), "copied" the tuples that
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
        self._recorded = _recorded(path, whole)
        self._file.rewrite(whole)

    def begin(self, query: Query, schema: pa.Schema, batches: int) -> None:
        self._query = query.number

    def batch(self, number: int, deletes: pa.Table | None, inserts: pa.Table | None, stats: dict[str, Any]) -> None:
        if (self._query, number) in self._recorded:
            return
        self._recorded.add((self._query, number))
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
    shape |= {"matrices": stats["matrices"]} if "matrices" in stats else {}
    rebuilt = {"rebuilt": stats["rebuilt"]} if stats.get("rebuilt") else {}  # partitions that had lost their state
    return {"batch": number} | named | {"stages": stages, "views": views} | shape | rebuilt


def _recorded(path: Path, lines: bytes) -> set[tuple[int, int]]:
    """Find the batches of these lines of a file."""
    try:
        known = [json.loads(line) for line in lines.splitlines()]
        return {(line.get("query", 1), line["batch"]) for line in known}
    except (ValueError, KeyError, AttributeError, TypeError):
        raise SquallError("SQ7005", f"{path} is no metrics file of ours", hint="choose another") from None
